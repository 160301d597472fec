/* The ciphers that fuzzers use. */
#ifndef PROA_TESTS_FUZZ_CIPHERS_H
#define PROA_TESTS_FUZZ_CIPHERS_H

#include <proa/cipher.h>

#include <stdio.h>
#include <stdlib.h>

enum { FUZZ_KEY = 16, FUZZ_CIPHERS = 4 };

/* Cipher number `which`, from a configuration file of its own that is written once. */
static inline proa_cipher *fuzz_cipher(unsigned which)
{
    static const char *const names[FUZZ_CIPHERS] = {"AES_CTR_NoPadding", "AES_CBC_PKCSPadding",
                                                    "AES_ECB_PKCSPadding", "AES_GCM_NoPadding"};
    static proa_cipher *made[FUZZ_CIPHERS];
    if (made[which]) return made[which];
    char path[] = "/tmp/fuzz_cipher_XXXXXX";
    int file = mkstemp(path);
    FILE *to = file < 0 ? NULL : fdopen(file, "w");
    if (!to || fprintf(to, "cipher_name : %s\niv_size : 128\ntag_size : 128\n", names[which]) < 0) abort();
    if (fclose(to) != 0) abort();
    made[which] = proa_cipher_new(path);
    if (!made[which] || remove(path) != 0) abort();
    return made[which];
}

#endif
