/* Fuzzes decryption: the first byte chooses the cipher, the next 16 are the key. What follows is decrypted,
 * or is a typed error; what is encrypted again is decrypted to the same. */
#include <proa/cipher.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY = 16, CIPHERS = 4 };

/* The ciphers, each from a file of its own that is written once. */
static proa_cipher *cipher(unsigned which)
{
    static const char *const names[CIPHERS] = {"AES_CTR_NoPadding", "AES_CBC_PKCSPadding",
                                               "AES_ECB_PKCSPadding", "AES_GCM_NoPadding"};
    static proa_cipher *made[CIPHERS];
    if (made[which]) return made[which];
    char path[] = "/tmp/fuzz_cipher_XXXXXX";
    int file = mkstemp(path);
    FILE *to = file < 0 ? NULL : fdopen(file, "w");
    if (!to || fprintf(to, "cipher_name : %s\niv_size : 128\ntag_size : 128\n", names[which]) < 0) abort();
    if (fclose(to) != 0) abort();
    made[which] = proa_cipher_new(path);
    if (remove(path) != 0) abort();
    return made[which];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 + KEY) return 0;
    const uint8_t *key = data + 1;
    proa_cipher *c = cipher(data[0] % CIPHERS);
    data += 1 + KEY, size -= 1 + KEY;
    void *plain = NULL, *secret = NULL, *again = NULL;
    size_t n = 0, m = 0, k = 0;
    if (c && proa_cipher_decrypt(c, data, size, key, KEY, &plain, &n) == PROA_OK) {
        if (proa_cipher_encrypt(c, plain, n, key, KEY, &secret, &m) != PROA_OK) abort();
        if (proa_cipher_decrypt(c, secret, m, key, KEY, &again, &k) != PROA_OK) abort();
        if (k != n || (n && memcmp(plain, again, n) != 0)) abort();
    } else if (proa_error() == PROA_OK) {
        abort();
    }
    proa_cipher_release(plain, n);
    proa_cipher_release(secret, m);
    proa_cipher_release(again, k);
    (void)!proa_finish(NULL);
    return 0;
}
