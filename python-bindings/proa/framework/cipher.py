"""Ciphers of encrypted models, byte for byte Paddle's; over proa/cipher.h. The loading of an encrypted model is the
user's own: decrypt its files, then Config.set_model_buffer."""
from .. import _core

__all__ = ["Cipher", "CipherFactory", "CipherUtils"]


class Cipher(_core.Cipher):
    """AES in one of Paddle's four modes; CipherFactory.create_cipher makes it. Keys are 16, 24 or 32 bytes."""

    def encrypt_to_file(self, text, key, path):
        """Writes the encrypted text, whole or not at all."""
        with _core.FileWriter(path) as f:
            f.write(self.encrypt(text, key))

    def decrypt_from_file(self, key, path):
        """The text of an encrypted file, as bytes."""
        with open(path, "rb") as f:
            return self.decrypt(f.read(), key)


class CipherFactory:
    """Makes ciphers."""

    @staticmethod
    def create_cipher(config_file=""):
        """The cipher of a configuration file: lines `key : value`, with cipher_name, iv_size and tag_size; "":
        AES_CTR_NoPadding."""
        return Cipher(config_file)


class CipherUtils:
    """Keys: raw bytes, their number given in bits."""

    @staticmethod
    def gen_key(length):
        """A random key of 128, 192 or 256 bits."""
        if not isinstance(length, int) or length not in (128, 192, 256):
            raise ValueError(f"gen_key: expected 128, 192 or 256 bits, got {length!r}")
        return _core.make_key(length // 8)

    @staticmethod
    def gen_key_to_file(length, path):
        """The same, and its bytes in a file."""
        key = CipherUtils.gen_key(length)
        with _core.FileWriter(path) as f:
            f.write(key)
        return key

    @staticmethod
    def read_key_from_file(path):
        """The key in a file."""
        with open(path, "rb") as f:
            return f.read()
