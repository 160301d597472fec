"""Encrypted models: what real Paddle encrypts is decrypted here and the other way round, in all modes; wrong keys and
damaged files are errors."""
import json
import pathlib

import numpy as np
import pytest

import oracle
import proa as paddle
from conftest import NEEDS_PADDLE
from proa import inference
from proa.fluid.core import CipherFactory, CipherUtils
from proa.static import InputSpec

MODES = ("AES_CTR_NoPadding", "AES_CBC_PKCSPadding", "AES_ECB_PKCSPadding", "AES_GCM_NoPadding")
TEXTS = (b"", b"a", b"sixteen bytes ab", bytes(range(256)) * 5)

THEIRS = """
import json, sys
from paddle.base.core import CipherFactory
folder = sys.argv[1]
for i, (config, key) in enumerate(json.load(open(folder + "/cases.json"))):
    cipher, key = CipherFactory.create_cipher(config), bytes.fromhex(key)
    for k in range(1, 4):
        text = open(f"{folder}/text{k}", "rb").read()
        open(f"{folder}/theirs_{i}_{k}", "wb").write(cipher.encrypt(text, key))
        assert cipher.decrypt(open(f"{folder}/ours_{i}_{k}", "rb").read(), key) == text, (config, k)
"""


def config_of(folder, mode, **sizes):
    path = folder / (mode + "".join(map(str, sizes.values())))
    path.write_text(f"# a cipher\n\ncipher_name : {mode}\n" + "".join(f"{k} : {v}\n" for k, v in sizes.items()))
    return str(path)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bits", [128, 192, 256])
def test_round_trips(tmp_path, mode, bits):
    cipher, key = CipherFactory.create_cipher(config_of(tmp_path, mode)), CipherUtils.gen_key(bits)
    assert len(key) == bits // 8
    for text in TEXTS:
        data = cipher.encrypt(text, key)
        assert cipher.decrypt(data, key) == text
        if mode != MODES[2]:
            assert cipher.encrypt(text, key) != data  # IVs are random
        cipher.encrypt_to_file(text, key, str(tmp_path / "file"))
        assert cipher.decrypt_from_file(key, str(tmp_path / "file")) == text


@NEEDS_PADDLE
def test_equals_paddle(tmp_path):
    configs = ["", *(str(config_of(tmp_path, mode)) for mode in MODES),
               config_of(tmp_path, MODES[3], iv_size=96, tag_size=128)]
    for config in configs[1:]:  # an empty line is an error there
        text = pathlib.Path(config).read_text().replace("\n\n", "\n")
        pathlib.Path(config).write_text(text)
    cases = [(config, CipherUtils.gen_key(bits).hex()) for config in configs for bits in (128, 192, 256)]
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    for k, text in enumerate(TEXTS):
        (tmp_path / f"text{k}").write_bytes(text)
    for i, (config, key) in enumerate(cases):
        cipher = CipherFactory.create_cipher(config)
        for k in range(1, 4):
            (tmp_path / f"ours_{i}_{k}").write_bytes(cipher.encrypt(TEXTS[k], bytes.fromhex(key)))
    oracle.ask("-c", THEIRS, tmp_path)
    for i, (config, key) in enumerate(cases):
        cipher = CipherFactory.create_cipher(config)
        for k in range(1, 4):
            assert cipher.decrypt((tmp_path / f"theirs_{i}_{k}").read_bytes(), bytes.fromhex(key)) == TEXTS[k]


def test_a_model(tmp_path):
    net = paddle.nn.Linear(3, 2)
    paddle.jit.save(net, str(tmp_path / "m"), input_spec=[InputSpec([None, 3], "float32", "x")])
    key = CipherUtils.gen_key_to_file(256, str(tmp_path / "key"))
    assert CipherUtils.read_key_from_file(str(tmp_path / "key")) == key
    cipher = CipherFactory.create_cipher()
    for end in ("pdmodel", "pdiparams"):
        cipher.encrypt_to_file((tmp_path / f"m.{end}").read_bytes(), key, str(tmp_path / f"secret.{end}"))
    model, params = (cipher.decrypt_from_file(key, str(tmp_path / f"secret.{end}")) for end in ("pdmodel", "pdiparams"))
    config = inference.Config()
    config.set_model_buffer(model, len(model), params, len(params))
    predictor = inference.create_predictor(config)
    x = np.random.RandomState(0).randn(4, 3).astype("float32")
    out, = predictor.run([paddle.to_tensor(x)])
    np.testing.assert_allclose(out.numpy(), net(paddle.to_tensor(x)).numpy(), rtol=1e-6, atol=1e-6)
    encrypted = (tmp_path / "secret.pdmodel").read_bytes()
    config = inference.Config()
    config.set_model_buffer(encrypted, len(encrypted), params, len(params))
    with pytest.raises(ValueError, match="is no program"):
        inference.create_predictor(config)


def test_wrong_use(tmp_path):
    gcm, cbc = (CipherFactory.create_cipher(config_of(tmp_path, mode)) for mode in (MODES[3], MODES[1]))
    key = CipherUtils.gen_key(128)
    for cipher in (gcm, cbc):
        data = cipher.encrypt(b"some text", key)
        with pytest.raises(ValueError, match="not a valid key length"):
            cipher.encrypt(b"x", b"short")
        with pytest.raises(ValueError, match="cut off"):
            cipher.decrypt(data[:9], key)
    data = gcm.encrypt(b"some text", key)
    for wrong in (data[:-1], data[:-1] + bytes([data[-1] ^ 1]), bytes([data[0] ^ 1]) + data[1:]):
        with pytest.raises(ValueError, match="another key, or damaged"):
            gcm.decrypt(wrong, key)
    with pytest.raises(ValueError, match="another key, or damaged"):
        gcm.decrypt(data, CipherUtils.gen_key(128))
    with pytest.raises(ValueError, match="bits"):
        CipherUtils.gen_key(100)
    for text, error in (("cipher_name : DES\n", NotImplementedError), ("iv_size : x\n", ValueError),
                        ("iv_size 128\n", ValueError), ("cipher_name : AES_CTR_NoPadding\niv_size : 96\n", ValueError)):
        (tmp_path / "wrong").write_text(text)
        with pytest.raises(error):
            CipherFactory.create_cipher(str(tmp_path / "wrong"))
    with pytest.raises(FileNotFoundError):
        CipherFactory.create_cipher(str(tmp_path / "nothing"))
