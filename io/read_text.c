/* Datasets of text: tokenizes a file by bytes or by its distinct characters, and yields windows of token ids,
 * with the window one token later as target. Core and io's own headers. */
#include "io/dataset.h"
#include "io/file.h"

#include "core/device.h"

#include <stdlib.h>

enum { WINDOW = 64 };
static const uint32_t point_end = 0x110000;

struct proa_text {
    bool bytes;
    int64_t n;
    uint32_t *points; /* the vocabulary, sorted; NULL for bytes */
    proa_tensor *tokens;
};

/* Decodes the UTF-8 character at p; returns its length in bytes, 0 where the bytes are invalid. */
static int decode(const unsigned char *p, const unsigned char *end, uint32_t *point)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int n = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 : *p >> 3 == 30 ? 4 : 0;
    if (n == 0 || end - p < n) return 0;
    *point = n == 1 ? *p : *p & (0x7fu >> n);
    for (int i = 1; i < n; i++) {
        if (p[i] >> 6 != 2) return 0;
        *point = *point << 6 | (p[i] & 0x3f);
    }
    return *point >= least[n] && *point < point_end && (*point < 0xd800 || *point > 0xdfff) ? n : 0;
}

static int encode(uint32_t point, char to[5])
{
    memset(to, 0, 5);
    if (point < 0x80) {
        to[0] = (char)point;
        return 1;
    }
    int n = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, point >>= 6) to[i] = (char)(0x80 | (point & 0x3f));
    to[0] = (char)((0xf00u >> n & 0xf0u) | point);
    return n;
}

static int by_point(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Collects the distinct code points of the text, sorted, through a bit set. */
static proa_status make_vocabulary(proa_text *t, const unsigned char *p, size_t bytes)
{
    const unsigned char *begin = p, *end = p + bytes;
    unsigned char *seen = proa__calloc(point_end / 8);
    if (!seen) return proa_error();
    proa_status status = PROA_OK;
    for (uint32_t point; p < end && status == PROA_OK;) {
        int n = decode(p, end, &point);
        if (n == 0) {
            status = proa_fail(PROA_ERR_CORRUPT, "text: byte %zu is no UTF-8; use the byte vocabulary",
                               (size_t)(p - begin));
            break;
        }
        t->n += !(seen[point / 8] >> point % 8 & 1);
        seen[point / 8] |= (unsigned char)(1 << point % 8);
        p += n;
    }
    if (status == PROA_OK && !(t->points = proa__alloc(((size_t)t->n + 1) * sizeof *t->points)))
        status = proa_error();
    int64_t k = 0;
    for (uint32_t point = 0; point < point_end && status == PROA_OK; point++)
        if (seen[point / 8] >> point % 8 & 1) t->points[k++] = point;
    proa__free(seen);
    return status;
}

/* Converts a text to a new int64 tensor of token ids. */
static proa_tensor *tokenize(const proa_text *t, const unsigned char *p, size_t bytes)
{
    const unsigned char *end = p + bytes;
    int64_t n = 0;
    uint32_t point;
    for (const unsigned char *q = p; q < end; n++) {
        int length = t->bytes ? 1 : decode(q, end, &point);
        if (length == 0) {
            proa_fail(PROA_ERR_CORRUPT, "text: byte %zu is no UTF-8", (size_t)(q - p));
            return NULL;
        }
        q += length;
    }
    PROA__ON_CPU;
    proa_tensor *tokens = proa_empty(PROA_SHAPE(n), PROA_I64);
    int64_t *to = tokens ? (int64_t *)(void *)tokens->data : NULL;
    while (tokens && p < end) {
        int length = t->bytes ? 1 : decode(p, end, &point);
        if (t->bytes) {
            *to++ = *p;
        } else {
            const uint32_t *found = bsearch(&point, t->points, (size_t)t->n, sizeof point, by_point);
            if (!found) {
                proa_fail(PROA_ERR_NOT_FOUND, "text: the vocabulary has no character '%.*s' (U+%04X)", length,
                          (const char *)p, point);
                return NULL;
            }
            *to++ = found - t->points;
        }
        p += length;
    }
    return tokens;
}

proa_text *proa_text_from_memory(const void *data, size_t n, bool bytes)
{
    if (proa_error() != PROA_OK) return NULL;
    if (!data && n) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "text: data must not be NULL");
        return NULL;
    }
    PROA_SCOPED;
    proa_text *t = proa__calloc(sizeof *t);
    if (!t) return NULL;
    t->bytes = bytes;
    if (bytes) t->n = 256;
    else make_vocabulary(t, data, n);
    proa_tensor *tokens = proa_error() == PROA_OK ? tokenize(t, data, n) : NULL;
    if (tokens) t->tokens = proa_keep(tokens);
    if (t->tokens) return t;
    proa_text_free(t);
    return NULL;
}

proa_text *proa_text_load(const char *path, bool bytes)
{
    size_t n;
    if (proa_error() != PROA_OK) return NULL;
    if (!path) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "text: path must not be NULL");
        return NULL;
    }
    char *data = proa__read_whole(path, &n);
    proa_text *t = data ? proa_text_from_memory(data, n, bytes) : NULL;
    proa__free(data);
    return t;
}

void proa_text_free(proa_text *t)
{
    if (!t) return;
    proa_release(t->tokens);
    proa__free(t->points);
    proa__free(t);
}

int64_t proa_text_vocabulary(const proa_text *t) { return t ? t->n : 0; }
proa_tensor *proa_text_tokens(const proa_text *t) { return t ? t->tokens : NULL; }

proa_tensor *proa_text_encode(const proa_text *t, const char *text)
{
    if (proa_error() != PROA_OK) return NULL;
    if (!t || !text) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "text_encode: text must not be NULL");
        return NULL;
    }
    return tokenize(t, (const unsigned char *)text, strlen(text));
}

proa_status proa_text_decode(const proa_text *t, int64_t token, char to[5])
{
    PROA_TRY(proa_error());
    if (!t || token < 0 || token >= t->n)
        return proa_fail(PROA_ERR_OUT_OF_RANGE, "text_decode: token %lld of a vocabulary of %lld",
                         (long long)token, (long long)(t ? t->n : 0));
    memset(to, 0, 5);
    if (t->bytes) to[0] = (char)token;
    else encode(t->points[token], to);
    return PROA_OK;
}

/* ---- windows --------------------------------------------------------------------------- */

typedef struct windows {
    proa_tensor *tokens;
    int64_t window, stride;
} windows;

static proa_status windows_batch(void *context, const int64_t *indices, int64_t n, proa_tensor **to)
{
    PROA__ON_CPU;
    const windows *w = context;
    const int64_t *tokens = (const int64_t *)(void *)w->tokens->data;
    size_t bytes = (size_t)w->window * sizeof *tokens;
    for (int k = 0; k < 2; k++) { /* y is x one token later */
        to[k] = proa_empty(PROA_SHAPE(n, w->window), PROA_I64);
        if (!to[k]) return proa_error();
        for (int64_t i = 0; i < n; i++)
            memcpy(to[k]->data + (size_t)i * bytes, tokens + indices[i] * w->stride + k, bytes);
    }
    return PROA_OK;
}

static void windows_release(void *context)
{
    windows *w = context;
    proa_release(w->tokens);
    proa__free(w);
}

proa_dataset *proa_text_dataset(const proa_text *t, int64_t window, int64_t stride)
{
    if (proa_error() != PROA_OK) return NULL;
    if (window == 0) window = WINDOW;
    if (stride == 0) stride = window;
    if (!t || window < 1 || stride < 1) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "text_dataset: needs a text, a positive window and stride");
        return NULL;
    }
    int64_t n = proa_numel(t->tokens);
    windows *w = proa__alloc(sizeof *w);
    if (!w) return NULL;
    *w = (windows){proa_keep(t->tokens), window, stride};
    proa_dataset_desc desc = {.count = n > window ? (n - 1 - window) / stride + 1 : 0,
                              .fields = 2,
                              .batch = windows_batch,
                              .release = windows_release,
                              .context = w};
    proa_dataset *d = proa_dataset_new(&desc);
    if (!d) windows_release(w);
    return d;
}

proa_loader *proa_load_text_opt(const proa_text *t, proa_data_opts opts)
{
    proa_dataset *d = proa_text_dataset(t, opts.window, opts.stride);
    return d ? proa_loader_opt(d, opts) : NULL;
}
