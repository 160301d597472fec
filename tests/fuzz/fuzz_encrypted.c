/* Fuzzes encrypted models: a model is encrypted, damaged as the input's last four bytes say, decrypted, and
 * loaded if decryption succeeds. */
#include "tests/fuzz/predict.h"

#include <proa/cipher.h>

#include <stdio.h>

enum { KEY = 16, CIPHERS = 4, DAMAGE = 4 };

static const char key[KEY + 1] = "sixteen key byte";

/* The ciphers, each from a configuration file of its own that is written once. */
static proa_cipher *cipher(unsigned which)
{
    static const char *const names[CIPHERS] = {"AES_CTR_NoPadding", "AES_CBC_PKCSPadding",
                                               "AES_ECB_PKCSPadding", "AES_GCM_NoPadding"};
    static proa_cipher *made[CIPHERS];
    if (made[which]) return made[which];
    char path[] = "/tmp/fuzz_encrypted_XXXXXX";
    int file = mkstemp(path);
    FILE *to = file < 0 ? NULL : fdopen(file, "w");
    if (!to || fprintf(to, "cipher_name : %s\n", names[which]) < 0 || fclose(to) != 0) abort();
    made[which] = proa_cipher_new(path);
    if (!made[which] || remove(path) != 0) abort();
    return made[which];
}

/* damage: the cipher, a position (little-endian), and the bits to flip there, which 0 leaves as they are. */
static void load(const uint8_t *data, size_t size, const uint8_t damage[DAMAGE])
{
    const proa_cipher *c = cipher(damage[0] % CIPHERS);
    void *secret = NULL, *plain = NULL;
    size_t n = 0, m = 0;
    if (proa_cipher_encrypt(c, data, size, key, KEY, &secret, &n) != PROA_OK) abort();
    if (n) ((uint8_t *)secret)[(damage[1] | (size_t)damage[2] << 8) % n] ^= damage[3];
    fuzz_model model;
    if (proa_cipher_decrypt(c, secret, n, key, KEY, &plain, &m) != PROA_OK) {
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
