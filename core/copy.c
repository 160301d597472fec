/* Strided copy: dims are sorted by the destination's strides and merged; the inner two run as a tile
 * so that transposes stay in cache. May use core only. */
#include "core/blocked.h"
#include "core/copy.h"
#include "core/device.h"

typedef struct copy_plan {
    int ndim;
    int64_t shape[PROA_MAX_DIMS], to[PROA_MAX_DIMS], from[PROA_MAX_DIMS]; /* outermost first */
    char *dst;
    const char *src;
    size_t item;
} copy_plan;

static int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }

static void sort_dims(copy_plan *p)
{
    for (int i = 1; i < p->ndim; i++)
        for (int j = i; j > 0 && magnitude(p->to[j - 1]) < magnitude(p->to[j]); j--) {
            int64_t s = p->shape[j], t = p->to[j], f = p->from[j];
            p->shape[j] = p->shape[j - 1], p->to[j] = p->to[j - 1], p->from[j] = p->from[j - 1];
            p->shape[j - 1] = s, p->to[j - 1] = t, p->from[j - 1] = f;
        }
}

static void merge_dims(copy_plan *p)
{
    int n = 0;
    for (int i = 0; i < p->ndim; i++) {
        if (p->shape[i] == 1) continue;
        if (n && p->to[n - 1] == p->to[i] * p->shape[i] && p->from[n - 1] == p->from[i] * p->shape[i]) {
            p->shape[n - 1] *= p->shape[i];
        } else {
            p->shape[n] = p->shape[i];
            n++;
        }
        p->to[n - 1] = p->to[i], p->from[n - 1] = p->from[i];
    }
    p->ndim = n;
}

typedef struct bytes16 {
    uint64_t lo, hi;
} bytes16;

#define COPY_ROW(T) \
    for (int64_t i = 0; i < n; i++) *(T *)(void *)(d + i * ds) = *(const T *)(const void *)(s + i * ss)

static void copy_row(char *d, const char *s, int64_t n, int64_t ds, int64_t ss, size_t item)
{
    if (ds == (int64_t)item && ss == (int64_t)item) {
        memmove(d, s, (size_t)n * item);
        return;
    }
    switch (item) {
    case 1: COPY_ROW(uint8_t); break;
    case 2: COPY_ROW(uint16_t); break;
    case 4: COPY_ROW(uint32_t); break;
    case 8: COPY_ROW(uint64_t); break;
    default: COPY_ROW(bytes16); break;
    }
}

/* A tile edge that keeps both sides of a transpose in L1. */
enum { TILE = 32 };

static void copy_plane(const copy_plan *p, char *d, const char *s, int64_t begin, int64_t end)
{
    int in = p->ndim - 1, out = p->ndim - 2;
    int64_t n = p->shape[in];
    bool transposed = magnitude(p->from[in]) > magnitude(p->from[out]);
    if (!transposed) {
        for (int64_t i = begin; i < end; i++)
            copy_row(d + i * p->to[out], s + i * p->from[out], n, p->to[in], p->from[in], p->item);
        return;
    }
    for (int64_t r = begin; r < end; r += TILE)
        for (int64_t c = 0; c < n; c += TILE) {
            int64_t rows = r + TILE < end ? r + TILE : end, cols = n - c < TILE ? n - c : TILE;
            for (int64_t i = r; i < rows; i++)
                copy_row(d + i * p->to[out] + c * p->to[in], s + i * p->from[out] + c * p->from[in], cols,
                         p->to[in], p->from[in], p->item);
        }
}

/* Rows [begin, end) of all planes, counted through every dim but the innermost. */
static void copy_range(int64_t begin, int64_t end, void *context)
{
    const copy_plan *p = context;
    int out = p->ndim - 2;
    int64_t rows = p->shape[out];
    while (begin < end) {
        int64_t plane = begin / rows, first = begin % rows;
        int64_t last = first + (end - begin) < rows ? first + (end - begin) : rows;
        char *d = p->dst;
        const char *s = p->src;
        int64_t rest = plane;
        for (int i = out - 1; i >= 0; i--) {
            int64_t k = rest % p->shape[i];
            rest /= p->shape[i];
            d += k * p->to[i];
            s += k * p->from[i];
        }
        copy_plane(p, d, s, first, last);
        begin += last - first;
    }
}

typedef struct flat_copy {
    char *dst;
    const char *src;
} flat_copy;

static void copy_flat(int64_t begin, int64_t end, void *context)
{
    const flat_copy *c = context;
    memmove(c->dst + begin, c->src + begin, (size_t)(end - begin));
}

void proa__copy_describe(proa_strided_copy *c, const proa_tensor *dst, const proa_tensor *src)
{
    copy_plan p = {.ndim = dst->ndim};
    for (int i = 0; i < p.ndim; i++)
        p.shape[i] = dst->shape[i], p.to[i] = dst->strides[i], p.from[i] = src->strides[i];
    sort_dims(&p);
    merge_dims(&p);
    *c = (proa_strided_copy){dst->data, src->data, proa_dtype_size((proa_dtype)dst->dtype), p.ndim, {0},
                             {0},       {0}};
    for (int i = 0; i < p.ndim; i++) c->shape[i] = p.shape[i], c->to[i] = p.to[i], c->from[i] = p.from[i];
    if (p.ndim > 0) return;
    c->ndim = 1;
    c->shape[0] = 1;
}

proa_status proa__copy(proa_tensor *dst, const proa_tensor *src)
{
    PROA_TRY(proa__plain(src));
    PROA_TRY(proa__plain_to_write(dst));
    if (src->numel <= 0 ||
        (dst->data == src->data && !memcmp(dst->strides, src->strides, sizeof dst->strides)))
        return PROA_OK;
    if ((dst->flags | src->flags) & PROA_T_DEVICE) return proa__copy_devices(dst, src);
    copy_plan p = {.ndim = dst->ndim, .dst = dst->data, .src = src->data};
    p.item = proa_dtype_size((proa_dtype)dst->dtype);
    if (!((dst->flags | src->flags) & PROA_T_STRIDED)) {
        flat_copy c = {dst->data, src->data};
        proa__parallel(src->numel * (int64_t)p.item, 1 << 20, copy_flat, &c);
        return PROA_OK;
    }
    for (int i = 0; i < p.ndim; i++)
        p.shape[i] = dst->shape[i], p.to[i] = dst->strides[i], p.from[i] = src->strides[i];
    sort_dims(&p);
    merge_dims(&p);
    while (p.ndim < 2) {
        for (int i = p.ndim; i > 0; i--)
            p.shape[i] = p.shape[i - 1], p.to[i] = p.to[i - 1], p.from[i] = p.from[i - 1];
        p.shape[0] = 1, p.to[0] = p.from[0] = 0;
        p.ndim++;
    }
    if (p.shape[p.ndim - 1] == 1 && p.to[p.ndim - 1] == 0) p.to[p.ndim - 1] = (int64_t)p.item;
    int64_t rows = 1;
    for (int i = 0; i < p.ndim - 1; i++) rows *= p.shape[i];
    int64_t row_bytes = p.shape[p.ndim - 1] * (int64_t)p.item;
    int64_t grain = row_bytes >= 1 << 18 ? 1 : (1 << 18) / (row_bytes + 1) + 1;
    proa__parallel(rows, grain, copy_range, &p);
    return PROA_OK;
}

proa_tensor *proa__contiguous(proa_tensor *t)
{
    if (!t || t == proa_none || !(t->flags & PROA_T_STRIDED)) return t;
    proa_meta meta = proa_meta_of(t);
    proa_tensor *copy = proa__tensor_new(&meta);
    if (copy && proa__copy(copy, t) != PROA_OK) return NULL;
    return copy;
}
