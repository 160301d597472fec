/* Fuzzes the configuration files of ciphers, and key files: the input is the file. */
#define _GNU_SOURCE
#include <proa/cipher.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[32], key[40], text[] = "text";
    size_t n = 0;
    int file = memfd_create("cipher", 0);
    if (file < 0 || write(file, data, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    proa_cipher *c = proa_cipher_new(path);
    void *secret = NULL, *plain = NULL;
    size_t m = 0, k = 0;
    if (!c && proa_error() == PROA_OK) abort();
    if (c && (proa_cipher_encrypt(c, text, sizeof text, "sixteen key byte", 16, &secret, &m) != PROA_OK ||
              proa_cipher_decrypt(c, secret, m, "sixteen key byte", 16, &plain, &k) != PROA_OK ||
              k != sizeof text))
        abort();
    proa_cipher_release(secret, m);
    proa_cipher_release(plain, k);
    proa_cipher_free(c);
    proa_clear_error();
    if (proa_cipher_read_key(path, key, sizeof key, &n) == PROA_OK ? n > sizeof key : proa_error() == PROA_OK)
        abort();
    (void)!proa_finish(NULL);
    close(file);
    return 0;
}
