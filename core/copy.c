/* Strided copies, split among threads: sorts the dims by the destination's strides and merges contiguous
 * ones; transposes go in square blocks of whole cache lines. Also copies by non-temporal stores, describes
 * copies for devices, and makes contiguous copies. May use core only. */
#include "core/blocked.h"
#include "core/copy.h"
#include "core/device.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* A copy: shape, and byte strides of the destination (to) and the source (from), outermost dim first. */
typedef struct copy_plan {
    int ndim;
    int64_t shape[PROA_MAX_DIMS], to[PROA_MAX_DIMS], from[PROA_MAX_DIMS];
    char *dst;
    const char *src;
    size_t item;
    bool nontemporal; /* the destination is written by non-temporal stores */
    int64_t rows;     /* over all dims but the innermost */
} copy_plan;

/* ---- non-temporal stores ------------------------------------------------------------------ */

void proa__copy_nontemporal(char *to, const char *from, int64_t n)
{
#if defined(__SSE2__)
    int64_t i = (int64_t)(-(uintptr_t)to & 63);
    if (n < i + 64) {
        memcpy(to, from, (size_t)n);
        return;
    }
    memcpy(to, from, (size_t)i);
    for (; i + 64 <= n; i += 64) {
        const __m128i *s = (const __m128i *)(const void *)(from + i);
        __m128i *d = (__m128i *)(void *)(to + i);
        __m128i a = _mm_loadu_si128(s), b = _mm_loadu_si128(s + 1);
        __m128i c = _mm_loadu_si128(s + 2), e = _mm_loadu_si128(s + 3);
        _mm_stream_si128(d, a), _mm_stream_si128(d + 1, b);
        _mm_stream_si128(d + 2, c), _mm_stream_si128(d + 3, e);
    }
    memcpy(to + i, from + i, (size_t)(n - i));
#else
    memcpy(to, from, (size_t)n);
#endif
}

void proa__copy_nontemporal_end(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

void proa__copy_bytes_ahead(char *to, const char *from, size_t n)
{
    typedef uint64_t vector __attribute__((vector_size(16), aligned(1), may_alias));
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        vector part[4];
        for (int k = 0; k < 4; k++) part[k] = ((const vector *)(const void *)(from + i))[k];
        for (int k = 0; k < 4; k++) ((vector *)(void *)(to + i))[k] = part[k];
    }
    memcpy(to + i, from + i, n - i);
}

/* ---- strided ---------------------------------------------------------------------------- */

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

/* STAGE: bytes gathered in a buffer before they are stored non-temporally. MIN_ROW: shortest row, in bytes,
 * for which that pays. FEW_ROWS: below this number of long rows, threads share each row. */
enum { STAGE = 2048, MIN_ROW = 512, FEW_ROWS = 16 };

/* Copies one row. Three cases: any strides, one element repeated, and reversed; the last two are
 * vectorized. */
#define COPY_ROW(T)                                                                             \
    if (ds == (int64_t)sizeof(T) && ss == 0)                                                    \
        for (int64_t i = 0; i < n; i++) ((T *)(void *)d)[i] = *(const T *)(const void *)s;      \
    else if (ds == (int64_t)sizeof(T) && ss == -ds)                                             \
        for (int64_t i = 0; i < n; i++) ((T *)(void *)d)[i] = ((const T *)(const void *)s)[-i]; \
    else                                                                                        \
        for (int64_t i = 0; i < n; i++) *(T *)(void *)(d + i * ds) = *(const T *)(const void *)(s + i * ss)

/* Copies a row of n elements of `item` bytes; ds and ss: byte strides of destination and source, which do not
 * overlap (`restrict`). nontemporal: by non-temporal stores, if the destination is contiguous. */
static void copy_row(char *restrict d, const char *restrict s, int64_t n, int64_t ds, int64_t ss, size_t item,
                     bool nontemporal)
{
    if (ds == (int64_t)item && ss == (int64_t)item) {
        if (nontemporal) proa__copy_nontemporal(d, s, n * ds);
        else proa__copy_bytes(d, s, (size_t)n * item);
        return;
    }
    if (nontemporal && ds == (int64_t)item) { /* a strided source: gathered in cache, then streamed */
        _Alignas(64) char part[STAGE];
        int64_t step = STAGE / ds;
        for (int64_t i = 0; i < n; i += step) {
            int64_t m = n - i < step ? n - i : step;
            copy_row(part, s + i * ss, m, ds, ss, item, false);
            proa__copy_nontemporal(d + i * ds, part, m * ds);
        }
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

/* Moves the dim along which the source is contiguous next to the innermost one; the two dims form a matrix
 * ("plane"), which is copied as a transpose. */
static void pair_dims(copy_plan *p)
{
    int in = p->ndim - 1, best = in;
    for (int i = in - 1; i >= 0; i--)
        if (p->from[i] && magnitude(p->from[i]) < magnitude(p->from[best])) best = i;
    if (best == in) return;
    int64_t s = p->shape[best], t = p->to[best], f = p->from[best];
    for (int i = best; i < in - 1; i++)
        p->shape[i] = p->shape[i + 1], p->to[i] = p->to[i + 1], p->from[i] = p->from[i + 1];
    p->shape[in - 1] = s, p->to[in - 1] = t, p->from[in - 1] = f;
}

/* ---- transposes: a block is as many rows and columns as a cache line has elements ---- */

enum { LINE = 64, TILE = 32 }; /* bytes of a cache line; edge of a tile that neither side has contiguous */
/* Blocks adjacent in the source; columns at a time of rows of no block; rows at a time in turn_short. */
enum { TURN_ROWS = 8, TURN_COLUMNS = 64, SHORT_ROWS = 256 };

typedef uint32_t four __attribute__((vector_size(16), aligned(4), may_alias));

/* Transposes 4 × 4 elements of 4 bytes. */
static inline void turn_four(uint32_t *to, int64_t to_rs, const char *from, int64_t rs)
{
    four a = *(const four *)(const void *)from, b = *(const four *)(const void *)(from + rs);
    four c = *(const four *)(const void *)(from + 2 * rs), d = *(const four *)(const void *)(from + 3 * rs);
    four ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    four cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(four *)to = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5);
    *(four *)(to + to_rs) = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
    *(four *)(to + 2 * to_rs) = __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5);
    *(four *)(to + 3 * to_rs) = __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7);
}

#define TURN(T)                                         \
    for (int j = 0; j < LINE / (int)sizeof(T); j++)     \
        for (int i = 0; i < LINE / (int)sizeof(T); i++) \
    ((T *)(void *)block)[i * (LINE / (int)sizeof(T)) + j] = ((const T *)(const void *)(s + j * ss))[i]

#if defined(__x86_64__) && defined(__GNUC__)
#define TURN_SIXTEEN 1
/* Transposes 16 × 16 elements of 4 bytes in registers, with non-temporal stores: d and ds are multiples of a
 * line. */
static __attribute__((target("avx512f"))) void turn_sixteen(char *d, int64_t ds, const char *s, int64_t ss)
{
    __m512i a[16], b[16];
    for (int i = 0; i < 16; i++) a[i] = _mm512_loadu_si512(s + i * ss);
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) { /* a[i + c]: column c of each quarter, of four rows */
        a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]), a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
        a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]),
              a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
    }
    for (int c = 0; c < 4; c++) {
        __m512i low = _mm512_shuffle_i32x4(a[c], a[c + 4], 0x88),
                high = _mm512_shuffle_i32x4(a[c], a[c + 4], 0xdd);
        __m512i low2 = _mm512_shuffle_i32x4(a[c + 8], a[c + 12], 0x88);
        __m512i high2 = _mm512_shuffle_i32x4(a[c + 8], a[c + 12], 0xdd);
        _mm512_stream_si512((void *)(d + c * ds), _mm512_shuffle_i32x4(low, low2, 0x88));
        _mm512_stream_si512((void *)(d + (c + 4) * ds), _mm512_shuffle_i32x4(high, high2, 0x88));
        _mm512_stream_si512((void *)(d + (c + 8) * ds), _mm512_shuffle_i32x4(low, low2, 0xdd));
        _mm512_stream_si512((void *)(d + (c + 12) * ds), _mm512_shuffle_i32x4(high, high2, 0xdd));
    }
}
#endif

/* Transposes one block: d[i][j] = s[j][i]. Reads whole rows of the source and writes whole rows of the
 * destination. */
static void turn_block(char *d, int64_t ds, const char *s, int64_t ss, size_t item, bool nontemporal)
{
    bool lines = nontemporal && (((uintptr_t)d | (uintptr_t)ds) & (LINE - 1)) == 0;
#if defined(TURN_SIXTEEN)
    if (lines && item == 4 && proa__cpu_level() >= 2) {
        turn_sixteen(d, ds, s, ss);
        return;
    }
#endif
    _Alignas(LINE) char block[LINE * LINE];
    int edge = LINE / (int)item;
    switch (item) {
    case 1: TURN(uint8_t); break;
    case 2: TURN(uint16_t); break;
    case 4:
        for (int j = 0; j < 16; j += 4)
            for (int i = 0; i < 16; i += 4)
                turn_four((uint32_t *)(void *)block + i * 16 + j, 16, s + j * ss + i * 4, ss);
        break;
    case 8: TURN(uint64_t); break;
    default: TURN(bytes16); break;
    }
    if (lines)
        for (int i = 0; i < edge; i++) proa__copy_nontemporal(d + i * ds, block + i * LINE, LINE);
    else
        for (int i = 0; i < edge; i++) memcpy(d + i * ds, block + i * LINE, LINE);
}

/* Interleaves three planes of 4-byte elements, ss bytes apart, to rows of three (RGB), four rows at a time.
 * Returns the number of rows made, a multiple of four. */
static int64_t turn_three(char *d, const char *s, int64_t ss, int64_t rows)
{
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4, s += sizeof(four), d += 3 * sizeof(four)) {
        four a = *(const four *)(const void *)s, b = *(const four *)(const void *)(s + ss);
        four c = *(const four *)(const void *)(s + 2 * ss), *to = (four *)(void *)d;
        four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), bc = __builtin_shufflevector(b, c, 1, 5, 2, 6);
        four ca = __builtin_shufflevector(c, a, 2, 7, 3, 7);
        to[0] = __builtin_shufflevector(ab, c, 0, 1, 4, 2);
        to[1] = __builtin_shufflevector(bc, a, 0, 1, 6, 2);
        to[2] = __builtin_shufflevector(ca, __builtin_shufflevector(b, c, 3, 7, 3, 7), 0, 1, 4, 5);
    }
    return r;
}

#if defined(TURN_SIXTEEN)
/* turn_three of 1-byte elements, 16 rows at a time. */
static __attribute__((target("ssse3"))) int64_t turn_three_bytes(char *d, const char *s, int64_t ss,
                                                                 int64_t rows)
{
    static const int8_t from[9][16] = {
        /* by result and plane: the byte that goes there; −1: another plane's */
        {0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5},
        {-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1},
        {-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1},
        {-1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10, -1},
        {5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10},
        {-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1},
        {-1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1},
        {-1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1},
        {10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15}};
    __m128i pick[9];
    for (int i = 0; i < 9; i++) pick[i] = _mm_loadu_si128((const __m128i *)(const void *)from[i]);
    int64_t r = 0;
    for (; r + 16 <= rows; r += 16, s += 16, d += 48) {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)s);
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(s + ss));
        __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(s + 2 * ss));
        for (int i = 0; i < 3; i++) {
            __m128i ab = _mm_or_si128(_mm_shuffle_epi8(a, pick[3 * i]), _mm_shuffle_epi8(b, pick[3 * i + 1]));
            _mm_storeu_si128((__m128i *)(void *)(d + 16 * i),
                             _mm_or_si128(ab, _mm_shuffle_epi8(c, pick[3 * i + 2])));
        }
    }
    return r;
}
#endif

/* Transposes rows that are shorter than a cache line and adjacent (few channels): reads one column at a time,
 * of as many rows as stay in the first-level cache. */
static void turn_short(const copy_plan *p, char *d, const char *s, int64_t begin, int64_t end)
{
    int in = p->ndim - 1;
    int64_t item = (int64_t)p->item, ds = p->to[p->ndim - 2];
    if (p->shape[in] == 3 && item == 4 && ds == 12)
        begin += turn_three(d + begin * ds, s + begin * item, p->from[in], end - begin);
#if defined(TURN_SIXTEEN)
    if (p->shape[in] == 3 && item == 1 && ds == 3 && proa__cpu_level() >= 1)
        begin += turn_three_bytes(d + begin * ds, s + begin, p->from[in], end - begin);
#endif
    for (int64_t r = begin; r < end; r += SHORT_ROWS)
        for (int64_t c = 0; c < p->shape[in]; c++)
            copy_row(d + r * ds + c * item, s + r * item + c * p->from[in],
                     end - r < SHORT_ROWS ? end - r : SHORT_ROWS, ds, item, p->item, false);
}

/* Makes rows [begin, end) of a transpose: they are contiguous in the destination, and columns of the
 * source. */
static void turn_plane(const copy_plan *p, char *d, const char *s, int64_t begin, int64_t end)
{
    int in = p->ndim - 1, out = p->ndim - 2;
    int64_t item = (int64_t)p->item, edge = LINE / item, n = p->shape[in], ds = p->to[out], ss = p->from[in];
    int64_t rows = begin + (end - begin) / edge * edge, columns = n / edge * edge;
    if (columns == 0 && ds <= LINE) {
        turn_short(p, d, s, begin, end);
        return;
    }
    for (int64_t r0 = begin; r0 < rows; r0 += TURN_ROWS * edge)
        for (int64_t c = 0; c < columns; c += edge)
            for (int64_t r = r0; r < rows && r < r0 + TURN_ROWS * edge; r += edge) {
                const char *block = s + r * item + c * ss;
                if (c + edge < columns) /* rows are too far apart for the hardware prefetcher */
                    for (int64_t i = edge; i < 2 * edge; i++) __builtin_prefetch(block + i * ss, 0, 2);
                turn_block(d + r * ds + c * item, ds, block, ss, p->item, p->nontemporal);
            }
    for (int64_t r = begin; r < rows && columns < n; r++)
        copy_row(d + r * ds + columns * item, s + r * item + columns * ss, n - columns, item, ss, p->item,
                 false);
    for (int64_t c = 0; c < n; c += TURN_COLUMNS) { /* rows of no block, which share lines of s */
        int64_t m = n - c < TURN_COLUMNS ? n - c : TURN_COLUMNS;
        for (int64_t r = rows; r < end; r++)
            copy_row(d + r * ds + c * item, s + r * item + c * ss, m, item, ss, p->item, false);
    }
}

static void copy_plane(const copy_plan *p, char *d, const char *s, int64_t begin, int64_t end)
{
    int in = p->ndim - 1, out = p->ndim - 2;
    int64_t n = p->shape[in], item = (int64_t)p->item;
    bool transposed = magnitude(p->from[in]) > magnitude(p->from[out]);
    if (!transposed) {
        for (int64_t i = begin; i < end; i++)
            copy_row(d + i * p->to[out], s + i * p->from[out], n, p->to[in], p->from[in], p->item,
                     p->nontemporal);
        return;
    }
    if (p->to[in] == item && p->from[out] == item) {
        turn_plane(p, d, s, begin, end);
        return;
    }
    for (int64_t r = begin; r < end; r += TILE)
        for (int64_t c = 0; c < n; c += TILE) {
            int64_t rows = r + TILE < end ? r + TILE : end, cols = n - c < TILE ? n - c : TILE;
            for (int64_t i = r; i < rows; i++)
                copy_row(d + i * p->to[out] + c * p->to[in], s + i * p->from[out] + c * p->from[in], cols,
                         p->to[in], p->from[in], p->item, false);
        }
}

/* Copies rows [begin, end), numbered over all dims but the innermost. */
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
    if (p->nontemporal) proa__copy_nontemporal_end();
}

/* copy_range of whole blocks of a transpose. */
static void turn_range(int64_t begin, int64_t end, void *context)
{
    const copy_plan *p = context;
    int64_t edge = LINE / (int64_t)p->item, until = end * edge;
    copy_range(begin * edge, until < p->rows ? until : p->rows, context);
}

/* Copies cache lines [begin, end) of a contiguous copy; the last line may be short. */
static void copy_flat(int64_t begin, int64_t end, void *context)
{
    const copy_plan *p = context;
    int64_t from = begin * LINE, to = end * LINE < p->shape[0] ? end * LINE : p->shape[0];
    if (p->nontemporal)
        proa__copy_nontemporal(p->dst + from, p->src + from, to - from), proa__copy_nontemporal_end();
    else proa__copy_bytes(p->dst + from, p->src + from, (size_t)(to - from));
}

static void copy_lines(copy_plan *p)
{
    proa__parallel((p->shape[0] + LINE - 1) / LINE, (1 << 18) / LINE, copy_flat, p);
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
    p.nontemporal = src->numel * (int64_t)p.item >= proa__nontemporal_bytes();
    if (!((dst->flags | src->flags) & PROA_T_STRIDED)) {
        p.shape[0] = src->numel * (int64_t)p.item;
        p.nontemporal = proa__nontemporal_pays(p.shape[0], 2 * p.shape[0]);
        copy_lines(&p);
        return PROA_OK;
    }
    for (int i = 0; i < p.ndim; i++)
        p.shape[i] = dst->shape[i], p.to[i] = dst->strides[i], p.from[i] = src->strides[i];
    sort_dims(&p);
    merge_dims(&p);
    if (p.ndim > 2) pair_dims(&p);
    while (p.ndim < 2) {
        for (int i = p.ndim; i > 0; i--)
            p.shape[i] = p.shape[i - 1], p.to[i] = p.to[i - 1], p.from[i] = p.from[i - 1];
        p.shape[0] = 1, p.to[0] = p.from[0] = 0;
        p.ndim++;
    }
    if (p.shape[p.ndim - 1] == 1 && p.to[p.ndim - 1] == 0) p.to[p.ndim - 1] = (int64_t)p.item;
    p.rows = 1;
    for (int i = 0; i < p.ndim - 1; i++) p.rows *= p.shape[i];
    int in = p.ndim - 1;
    int64_t row_bytes = p.shape[in] * (int64_t)p.item;
    if (p.ndim == 2 && p.rows < FEW_ROWS && row_bytes >= 1 << 20 && p.to[in] == p.from[in] &&
        p.to[in] == (int64_t)p.item) { /* threads share each row */
        copy_plan row = {.dst = p.dst, .src = p.src, .nontemporal = p.nontemporal, .shape = {row_bytes}};
        for (int64_t i = 0; i < p.rows; i++, row.dst += p.to[0], row.src += p.from[0]) copy_lines(&row);
        return PROA_OK;
    }
    bool turned = magnitude(p.from[in]) > magnitude(p.from[in - 1]) && p.to[in] == (int64_t)p.item;
    p.nontemporal &= turned || row_bytes >= MIN_ROW;
    int64_t grain = row_bytes >= 1 << 18 ? 1 : (1 << 18) / (row_bytes + 1) + 1;
    int64_t edge = LINE / (int64_t)p.item;
    if (turned && p.shape[in - 1] >= edge)
        proa__parallel((p.rows + edge - 1) / edge, grain / edge, turn_range, &p);
    else proa__parallel(p.rows, grain, copy_range, &p);
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
