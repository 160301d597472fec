/* Fuzzes decryption: the first byte chooses the cipher, the next 16 are the key. What follows is decrypted,
 * or is a typed error; what is encrypted again is decrypted to the same. */
#include "tests/fuzz/ciphers.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 + FUZZ_KEY) return 0;
    const uint8_t *key = data + 1;
    proa_cipher *c = fuzz_cipher(data[0] % FUZZ_CIPHERS);
    data += 1 + FUZZ_KEY, size -= 1 + FUZZ_KEY;
    void *plain = NULL, *secret = NULL, *again = NULL;
    size_t n = 0, m = 0, k = 0;
    if (proa_cipher_decrypt(c, data, size, key, FUZZ_KEY, &plain, &n) == PROA_OK) {
        if (proa_cipher_encrypt(c, plain, n, key, FUZZ_KEY, &secret, &m) != PROA_OK) abort();
        if (proa_cipher_decrypt(c, secret, m, key, FUZZ_KEY, &again, &k) != PROA_OK) abort();
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
