/* Fuzzes encrypted models: a model is encrypted, damaged as the input's last four bytes say, decrypted, and
 * loaded if decryption succeeds. */
#include "tests/fuzz/ciphers.h"
#include "tests/fuzz/predict.h"

enum { DAMAGE = 4 };

static const char key[FUZZ_KEY + 1] = "sixteen key byte";

/* damage: the cipher, a position (little-endian), and the bits to flip there, which 0 leaves as they are. */
static void load(const uint8_t *data, size_t size, const uint8_t damage[DAMAGE])
{
    const proa_cipher *c = fuzz_cipher(damage[0] % FUZZ_CIPHERS);
    void *secret = NULL, *plain = NULL;
    size_t n = 0, m = 0;
    if (proa_cipher_encrypt(c, data, size, key, FUZZ_KEY, &secret, &n) != PROA_OK) abort();
    if (n) ((uint8_t *)secret)[(damage[1] | (size_t)damage[2] << 8) % n] ^= damage[3];
    fuzz_model model;
    if (proa_cipher_decrypt(c, secret, n, key, FUZZ_KEY, &plain, &m) != PROA_OK) {
        if (proa_error() == PROA_OK || damage[3] == 0) abort();
        proa_clear_error();
    } else if (!damage[3] && (m != size || (size && memcmp(plain, data, size) != 0))) {
        abort();
    } else if (fuzz_model_of(plain, m, &model)) {
        fuzz_predict_memory(&model, PROA_CONFIG_IR_OPTIM);
    }
    proa_cipher_release(secret, n);
    proa_cipher_release(plain, m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= DAMAGE) load(data, size, data + size - DAMAGE);
    return 0;
}
