/* Encrypted models: Paddle's ciphers, byte for byte. A model is decrypted to memory and given to
 * proa_config_set_buffers. Needs libcrypto (OpenSSL 1.1 or 3) when it is used, not when Proa is built.
 * Implemented by inference/. */
#ifndef PROA_CIPHER_H
#define PROA_CIPHER_H

#include <proa/core.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct proa_cipher proa_cipher;

/* A cipher described by a configuration file of lines `key : value`, with comments after #: cipher_name
 * (AES_CTR_NoPadding, AES_CBC_PKCSPadding, AES_ECB_PKCSPadding, AES_GCM_NoPadding), iv_size and tag_size in
 * bits (both 128 by default). NULL or "": AES_CTR_NoPadding. NO_FILE or CORRUPT for a bad file; UNAVAILABLE
 * without libcrypto. */
PROA_API proa_cipher *proa_cipher_new(const char *config_file);
PROA_API void proa_cipher_free(proa_cipher *c); /* accepts NULL */

/* Encrypts n bytes with a key of 16, 24 or 32 bytes. *out: IV, cipher text and tag, as the cipher has them,
 * to be released with proa_cipher_release; the IV is random. INVALID_ARGUMENT for other lengths of keys. */
PROA_API proa_status proa_cipher_encrypt(const proa_cipher *c, const void *text, size_t n, const void *key,
                                         size_t key_bytes, void **out, size_t *out_bytes);
/* Decrypts n bytes; *out: the text, to be released with proa_cipher_release. CORRUPT if the data are too
 * short, or if padding or tag show that the key is wrong. */
PROA_API proa_status proa_cipher_decrypt(const proa_cipher *c, const void *data, size_t n, const void *key,
                                         size_t key_bytes, void **out, size_t *out_bytes);
/* Overwrites `bytes` bytes at out, a result of encryption or decryption, and frees it. Accepts NULL. */
PROA_API void proa_cipher_release(void *out, size_t bytes);
/* Fills a key with key_bytes random bytes: 16, 24 or 32. */
PROA_API proa_status proa_cipher_make_key(void *key, size_t key_bytes);

/* proa_cipher_encrypt into a file, which is written whole or not at all; proa_cipher_decrypt of a file. */
PROA_API proa_status proa_cipher_encrypt_file(const proa_cipher *c, const void *text, size_t n,
                                              const void *key, size_t key_bytes, const char *path);
PROA_API proa_status proa_cipher_decrypt_file(const proa_cipher *c, const char *path, const void *key,
                                              size_t key_bytes, void **out, size_t *out_bytes);
/* Makes a random key, as proa_cipher_make_key does, and writes its raw bytes to a file. */
PROA_API proa_status proa_cipher_make_key_file(void *key, size_t key_bytes, const char *path);
/* Reads a key from a file of raw bytes. *key_bytes: its length, at most `capacity`. */
PROA_API proa_status proa_cipher_read_key(const char *path, void *key, size_t capacity, size_t *key_bytes);

#ifdef __cplusplus
}
#endif
#endif
