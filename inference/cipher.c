/* Paddle's four AES ciphers through libcrypto, which is loaded when a cipher or key is first made. May use
 * core and io. */
#include "core/internal.h"

#include <ctype.h>
#include <dlfcn.h>
#include <limits.h>
#include <proa/cipher.h>
#include <proa/io.h>
#include <pthread.h>
#include <stdlib.h>

#include "io/file.h"

/* ---- libcrypto -------------------------------------------------------------------------- */

typedef struct evp_context evp_context;
typedef struct evp_cipher evp_cipher;

static struct {
    evp_context *(*new_context)(void);
    void (*free_context)(evp_context *);
    const evp_cipher *(*by_name)(const char *);
    int (*init)(evp_context *, const evp_cipher *, void *, const unsigned char *, const unsigned char *, int);
    int (*update)(evp_context *, unsigned char *, int *, const unsigned char *, int);
    int (*final)(evp_context *, unsigned char *, int *);
    int (*ctrl)(evp_context *, int, int, void *);
    int (*random)(unsigned char *, int);
} evp;

enum { SET_IV_LENGTH = 9, GET_TAG = 16, SET_TAG = 17 }; /* numbers of EVP_CIPHER_CTX_ctrl, fixed by its ABI */

static bool loaded;

static void load(void)
{
    static const char *const names[] = {"libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.so"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
#define FIND(field, name) *(void **)(void *)&evp.field = dlsym(library, name)
    FIND(new_context, "EVP_CIPHER_CTX_new");
    FIND(free_context, "EVP_CIPHER_CTX_free");
    FIND(by_name, "EVP_get_cipherbyname");
    FIND(init, "EVP_CipherInit_ex");
    FIND(update, "EVP_CipherUpdate");
    FIND(final, "EVP_CipherFinal_ex");
    FIND(ctrl, "EVP_CIPHER_CTX_ctrl");
    FIND(random, "RAND_bytes");
#undef FIND
    loaded = evp.new_context && evp.free_context && evp.by_name && evp.init && evp.update && evp.final &&
             evp.ctrl && evp.random;
}

static proa_status need_library(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (loaded) return PROA_OK;
    return proa_fail(PROA_ERR_UNAVAILABLE,
                     "cipher: libcrypto is not there; install OpenSSL 1.1 or 3 (Debian: libssl3)");
}

/* ---- configuration ---------------------------------------------------------------------- */

typedef enum mode { CTR, CBC, ECB, GCM } mode;

struct proa_cipher {
    mode mode;
    size_t iv_bytes, tag_bytes; /* 0: none */
};

static const struct {
    const char *name, *evp;
} modes[] = {{"AES_CTR_NoPadding", "ctr"},
             {"AES_CBC_PKCSPadding", "cbc"},
             {"AES_ECB_PKCSPadding", "ecb"},
             {"AES_GCM_NoPadding", "gcm"}};

/* Takes the setting of one line "key : value" into the cipher; unknown keys are ignored. Sizes in the file
 * are in bits. path is for messages. */
static proa_status take_setting(proa_cipher *c, const char *path, const char *key, const char *value)
{
    if (strcmp(key, "cipher_name") == 0) {
        for (int i = 0; i < 4; i++) {
            if (strcmp(value, modes[i].name) != 0) continue;
            c->mode = (mode)i;
            return PROA_OK;
        }
        return proa_fail(
            PROA_ERR_UNSUPPORTED,
            "cipher: '%s': there is no cipher '%s'; there are AES_CTR_NoPadding, AES_CBC_PKCSPadding, "
            "AES_ECB_PKCSPadding and AES_GCM_NoPadding",
            path, value);
    }
    bool iv = strcmp(key, "iv_size") == 0;
    if (!iv && strcmp(key, "tag_size") != 0) return PROA_OK;
    char *end;
    long bits = strtol(value, &end, 10);
    if (*end || bits < 32 || bits > 128 || bits % 8)
        return proa_fail(PROA_ERR_CORRUPT,
                         "cipher: '%s': %s is '%s'; expected 32 to 128 bits, a multiple of 8", path, key,
                         value);
    *(iv ? &c->iv_bytes : &c->tag_bytes) = (size_t)bits / 8;
    return PROA_OK;
}

static proa_status read_settings(proa_cipher *c, const char *path)
{
    size_t bytes;
    char *text = proa__read_whole(path, &bytes), *next = NULL;
    if (!text) return proa_error();
    proa_status status = PROA_OK;
    for (char *line = strtok_r(text, "\r\n", &next); line && status == PROA_OK;
         line = strtok_r(NULL, "\r\n", &next)) {
        char *word = NULL, *key, *colon, *value;
        line[strcspn(line, "#")] = 0;
        key = strtok_r(line, " \t", &word);
        if (!key) continue; /* a blank line */
        colon = strtok_r(NULL, " \t", &word);
        value = strtok_r(NULL, " \t", &word);
        if (colon && value && strcmp(colon, ":") == 0) status = take_setting(c, path, key, value);
        else
            status = proa_fail(PROA_ERR_CORRUPT,
                               "cipher: '%s': '%s' begins no line of the form `key : value`", path, key);
    }
    proa__free(text);
    return status;
}

proa_cipher *proa_cipher_new(const char *config_file)
{
    if (proa_error() != PROA_OK || need_library() != PROA_OK) return NULL;
    proa_cipher *c = proa__calloc(sizeof *c);
    if (!c) return NULL;
    c->iv_bytes = c->tag_bytes = 16;
    bool ok = !config_file || !*config_file || read_settings(c, config_file) == PROA_OK;
    if (ok && c->mode != GCM && c->iv_bytes != 16)
        ok = proa_fail(PROA_ERR_CORRUPT, "cipher: '%s': iv_size is %zu bits; %s takes 128", config_file,
                       c->iv_bytes * 8, modes[c->mode].name) == PROA_OK;
    if (ok) {
        if (c->mode == ECB) c->iv_bytes = 0;
        if (c->mode != GCM) c->tag_bytes = 0;
        return c;
    }
    proa__free(c);
    return NULL;
}

void proa_cipher_free(proa_cipher *c) { proa__free(c); }

/* ---- AES -------------------------------------------------------------------------------- */

void proa_cipher_release(void *out, size_t bytes)
{
    volatile unsigned char *p = out;
    for (size_t i = 0; p && i < bytes; i++) p[i] = 0;
    proa__free(out);
}

static proa_status check(const proa_cipher *c, const void *data, size_t n, const void *key, size_t key_bytes)
{
    PROA_TRY(proa_error());
    if (!c || (n && !data) || !key)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "cipher: the %s is NULL",
                         !c     ? "cipher"
                         : !key ? "key"
                                : "data");
    if (key_bytes != 16 && key_bytes != 24 && key_bytes != 32)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "cipher: %zu bytes are not a valid key length; expected 16, 24 or 32", key_bytes);
    return PROA_OK;
}

/* Encrypts or decrypts n bytes in pieces of at most INT_MAX; *made is the number of bytes written. False if
 * libcrypto fails. */
static bool transform(const proa_cipher *c, bool encrypts, const unsigned char *key, size_t key_bytes,
                      const unsigned char *iv, const unsigned char *from, size_t n, unsigned char *tag,
                      unsigned char *to, size_t *made)
{
    char name[32];
    snprintf(name, sizeof name, "aes-%zu-%s", key_bytes * 8, modes[c->mode].evp);
    const evp_cipher *cipher = evp.by_name(name);
    evp_context *context = cipher ? evp.new_context() : NULL;
    int count = 0;
    *made = 0;
    bool ok = context && evp.init(context, cipher, NULL, NULL, NULL, encrypts) == 1;
    if (ok && c->mode == GCM) ok = evp.ctrl(context, SET_IV_LENGTH, (int)c->iv_bytes, NULL) == 1;
    ok = ok && evp.init(context, NULL, NULL, key, iv, encrypts) == 1;
    for (size_t at = 0; ok && at < n;) {
        size_t piece = n - at < INT_MAX / 2 ? n - at : INT_MAX / 2;
        ok = evp.update(context, to + *made, &count, from + at, (int)piece) == 1;
        *made += ok ? (size_t)count : 0;
        at += piece;
    }
    if (ok && c->mode == GCM && !encrypts) ok = evp.ctrl(context, SET_TAG, (int)c->tag_bytes, tag) == 1;
    ok = ok && evp.final(context, to + *made, &count) == 1;
    if (ok) *made += (size_t)count;
    if (ok && c->mode == GCM && encrypts) ok = evp.ctrl(context, GET_TAG, (int)c->tag_bytes, tag) == 1;
    if (context) evp.free_context(context);
    return ok;
}

proa_status proa_cipher_encrypt(const proa_cipher *c, const void *text, size_t n, const void *key,
                                size_t key_bytes, void **out, size_t *out_bytes)
{
    PROA_TRY(check(c, text, n, key, key_bytes));
    if (!out || !out_bytes) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "cipher: out is NULL");
    unsigned char *made = proa__alloc(c->iv_bytes + n + 32 + c->tag_bytes),
                  tag[16]; /* 32: a block of padding */
    size_t written = 0;
    if (!made) return proa_error();
    bool ok = (!c->iv_bytes || evp.random(made, (int)c->iv_bytes) == 1) &&
              transform(c, true, key, key_bytes, made, text, n, tag, made + c->iv_bytes, &written);
    if (!ok) {
        proa__free(made);
        return proa_fail(PROA_ERR_INTERNAL, "cipher: libcrypto cannot encrypt with %s", modes[c->mode].name);
    }
    memcpy(made + c->iv_bytes + written, tag, c->tag_bytes);
    *out = made;
    *out_bytes = c->iv_bytes + written + c->tag_bytes;
    return PROA_OK;
}

proa_status proa_cipher_decrypt(const proa_cipher *c, const void *data, size_t n, const void *key,
                                size_t key_bytes, void **out, size_t *out_bytes)
{
    PROA_TRY(check(c, data, n, key, key_bytes));
    if (!out || !out_bytes) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "cipher: out is NULL");
    size_t around = c->iv_bytes + c->tag_bytes;
    if (n < around)
        return proa_fail(PROA_ERR_CORRUPT, "cipher: %zu bytes are cut off: %s has %zu beside the text", n,
                         modes[c->mode].name, around);
    const unsigned char *from = data;
    unsigned char *made = proa__alloc(n - around + 32), tag[16];
    size_t written = 0;
    if (!made) return proa_error();
    memcpy(tag, from + n - c->tag_bytes, c->tag_bytes);
    if (transform(c, false, key, key_bytes, from, from + c->iv_bytes, n - around, tag, made, &written)) {
        *out = made;
        *out_bytes = written;
        return PROA_OK;
    }
    proa_cipher_release(made, n - around + 32);
    return proa_fail(PROA_ERR_CORRUPT,
                     "cipher: %zu bytes cannot be decrypted with %s: another key, or damaged data", n,
                     modes[c->mode].name);
}

/* ---- keys and files --------------------------------------------------------------------- */

proa_status proa_cipher_make_key(void *key, size_t key_bytes)
{
    static const proa_cipher any = {CTR, 16, 0};
    PROA_TRY(check(&any, NULL, 0, key, key_bytes));
    PROA_TRY(need_library());
    if (evp.random(key, (int)key_bytes) == 1) return PROA_OK;
    return proa_fail(PROA_ERR_INTERNAL, "cipher: libcrypto has no random numbers");
}

static proa_status write_file(const char *path, const void *data, size_t n)
{
    if (!path) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "cipher: the path is NULL");
    proa_writer *w = proa_writer_open(path);
    if (!w) return proa_error();
    if (proa_writer_put(w, data, n) == PROA_OK) return proa_writer_commit(w);
    proa_writer_abort(w);
    return proa_error();
}

proa_status proa_cipher_make_key_file(void *key, size_t key_bytes, const char *path)
{
    PROA_TRY(proa_cipher_make_key(key, key_bytes));
    return write_file(path, key, key_bytes);
}

proa_status proa_cipher_read_key(const char *path, void *key, size_t capacity, size_t *key_bytes)
{
    PROA_TRY(proa_error());
    if (!path || !key || !key_bytes)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "cipher: an argument is NULL");
    size_t n;
    char *data = proa__read_whole(path, &n);
    if (!data) return proa_error();
    proa_status status = PROA_OK;
    if (n > capacity)
        status = proa_fail(PROA_ERR_CORRUPT, "cipher: '%s' holds %zu bytes, more than a key", path, n);
    else memcpy(key, data, *key_bytes = n);
    proa_cipher_release(data, n);
    return status;
}

proa_status proa_cipher_encrypt_file(const proa_cipher *c, const void *text, size_t n, const void *key,
                                     size_t key_bytes, const char *path)
{
    void *out = NULL;
    size_t bytes = 0;
    PROA_TRY(proa_cipher_encrypt(c, text, n, key, key_bytes, &out, &bytes));
    proa_status status = write_file(path, out, bytes);
    proa__free(out);
    return status;
}

proa_status proa_cipher_decrypt_file(const proa_cipher *c, const char *path, const void *key,
                                     size_t key_bytes, void **out, size_t *out_bytes)
{
    PROA_TRY(proa_error());
    if (!path) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "cipher: the path is NULL");
    size_t n;
    char *data = proa__read_whole(path, &n);
    if (!data) return proa_error();
    proa_status status = proa_cipher_decrypt(c, data, n, key, key_bytes, out, out_bytes);
    proa__free(data);
    return status;
}
