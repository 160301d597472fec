/* CPU kernels of sort, argsort, topk, kthvalue, mode and searchsorted, each on one line along the axis at a
 * time, converted to integer keys. */
#include "ops/ints.h"
#include "ops/sort/packed.h"
#include "impl/sort.h"

#include <stdatomic.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

/* Lines of x along an axis, and the output of each: `take` values from sorted position `skip` on. */
typedef struct line_sort {
    const proa_tensor *x;
    char *values;    /* may be NULL */
    int64_t *places; /* may be NULL */
    int64_t length, inner, take, skip;
    bool descending, mode;
    atomic_bool failed;
} line_sort;

enum { SELECT_BLOCK = 64, SELECT_SPARE = 32, SELECT_ORDERED = 32 };

/* Bit mask of those of n ≤ 64 keys that are below `below`. */
static uint64_t keys_below(const uint32_t *keys, int64_t n, uint32_t below)
{
    uint64_t hits = 0;
#if defined(__AVX512F__)
    if (n == SELECT_BLOCK) {
        for (int k = 0; k < SELECT_BLOCK; k += 16) {
            __m512i v = _mm512_loadu_si512(keys + k);
            hits |= (uint64_t)_mm512_cmplt_epu32_mask(v, _mm512_set1_epi32((int)below)) << k;
        }
        return hits;
    }
#endif
    for (int64_t k = 0; k < n; k++) hits |= (uint64_t)(keys[k] < below) << k;
    return hits;
}

/* Up to SELECT_BLOCK elements: a bit for each whose key is below `below` (not `full`: for each), and those
 * keys. */
static uint64_t block_keys(proa_dtype dtype, const char *from, int64_t stride, int64_t n, uint64_t flip,
                           bool full, uint64_t below, uint64_t *keys)
{
    uint64_t hits = UINT64_MAX >> (SELECT_BLOCK - n);
    if (dtype == PROA_F32 && stride == (int64_t)sizeof(float)) {
        uint32_t narrow[SELECT_BLOCK];
        uint32_t least = f32_keys((const uint32_t *)(const void *)from, n, (uint32_t)flip, narrow);
        if (full && least >= below) return 0;
        if (full) hits = keys_below(narrow, n, (uint32_t)below);
        for (uint64_t rest = hits; rest; rest &= rest - 1)
            keys[__builtin_ctzll(rest)] = narrow[__builtin_ctzll(rest)];
        return hits;
    }
    for (int64_t i = 0; i < n; i++) {
        keys[i] = key_of(dtype, from + i * stride) ^ flip;
        if (full && keys[i] >= below) hits &= ~((uint64_t)1 << i);
    }
    return hits;
}

/* True if none of SELECT_BLOCK float32 has a key below `below`, as far as comparing numbers can tell: most
 * blocks of a long line, which then need no keys. */
static bool none_better(const float *x, uint32_t below, bool descending)
{
    union {
        uint32_t bits;
        float number;
    } last;
    if (!f32_of_key(descending ? ~below : below, &last.bits) && last.bits) return false; /* NaN */
    int better = 0;
    if (descending) {
#pragma omp simd reduction(| : better)
        for (int k = 0; k < SELECT_BLOCK; k++) better |= !(x[k] <= last.number);
    } else {
#pragma omp simd reduction(| : better)
        for (int k = 0; k < SELECT_BLOCK; k++) better |= !(x[k] >= last.number);
    }
    return !better;
}

/* Insertion: puts a pair into `count` ordered ones, behind those that are not worse; the last is dropped. */
static void put_in_order(sort_pair *p, int64_t count, sort_pair pair)
{
    for (; count > 1 && p[count - 2].key > pair.key; count--) p[count - 1] = p[count - 2];
    p[count - 1] = pair;
}

/* Top-k for few of many: the best `want` of a line, in order. p has space for 2 · `capacity` candidates: very
 * few are kept sorted; otherwise, when the buffer is full, all but the best are dropped, and the worst of
 * those becomes the threshold. */
static void select_few(sort_pair *p, int64_t capacity, const line_sort *s, const char *from, int64_t stride,
                       int64_t want)
{
    proa_dtype dtype = (proa_dtype)s->x->dtype;
    uint64_t keys[SELECT_BLOCK], flip = flip_of(dtype, s->descending), last = 0;
    bool full = false, plain = dtype == PROA_F32 && stride == (int64_t)sizeof(float);
    int64_t count = 0;
    for (int64_t i = 0; i < s->length; i += SELECT_BLOCK) {
        int64_t n = s->length - i < SELECT_BLOCK ? s->length - i : SELECT_BLOCK;
        if (full && plain && n == SELECT_BLOCK &&
            none_better((const float *)(const void *)(from + i * stride), (uint32_t)last, s->descending))
            continue;
        uint64_t hits = block_keys(dtype, from + i * stride, stride, n, flip, full, last, keys);
        for (; hits; hits &= hits - 1) {
            int k = __builtin_ctzll(hits);
            if (full && keys[k] >= last) continue;
            if (want <= SELECT_ORDERED) {
                count += !full;
                put_in_order(p, count, (sort_pair){keys[k], i + k});
                full = count == want, last = p[count - 1].key;
                continue;
            }
            p[count++] = (sort_pair){keys[k], i + k};
            if (count < capacity) continue;
            sort_pairs(p, p + capacity, count, key_bits(dtype));
            count = want, last = p[want - 1].key, full = true;
        }
    }
    sort_pairs(p, p + capacity, count, key_bits(dtype));
}

/* Last index of the longest run of equal keys: the mode, at its last position. */
static int64_t longest_run(const sort_pair *p, int64_t n)
{
    int64_t best = 0, longest = 0;
    for (int64_t from = 0, i = 0; i < n; i++) {
        if (p[i].key != p[from].key) from = i;
        if (i - from + 1 > longest) longest = i - from + 1, best = i;
    }
    return best;
}

/* Writes `take` values and indices of a sorted line, from sorted position `skip` on. */
typedef struct line_out {
    const line_sort *s;
    const uint64_t *sorted;
    const char *from;
    int64_t to;
    uint32_t flip;
} line_out;

static void write_line(int64_t begin, int64_t end, void *context)
{
    const line_out *w = context;
    const line_sort *s = w->s;
    proa_dtype dtype = (proa_dtype)s->x->dtype;
    int64_t item = (int64_t)proa_dtype_size(dtype);
    for (int64_t k = begin; k < end; k++) {
        uint64_t pair = w->sorted[s->skip + k];
        int64_t place = (int64_t)(pair & UINT32_MAX), at = w->to + k * s->inner;
        uint32_t bits;
        if (s->places) s->places[at] = place;
        if (!s->values) continue;
        if (dtype == PROA_F32 && f32_of_key((uint32_t)(pair >> 32) ^ w->flip, &bits))
            ((uint32_t *)(void *)s->values)[at] = bits;
        else memcpy(s->values + at * item, w->from + place * s->inner * item, (size_t)item);
    }
}

/* A whole line by packed keys; p has space for twice its length. */
static void sort_line_packed(const line_sort *s, uint64_t *p, const char *from, int64_t to)
{
    proa_dtype dtype = (proa_dtype)s->x->dtype;
    int64_t n = s->length;
    uint32_t flip = (uint32_t)flip_of(dtype, s->descending);
    fill_packed(p, n, dtype, from, s->inner * (int64_t)proa_dtype_size(dtype), flip);
    line_out w = {s, sort_packed(p, p + n, n, key_bits(dtype)), from, to, flip};
    proa__parallel(s->take, PACKED_SHARED_FROM / 2, write_line, &w);
}

static void sort_lines(int64_t begin, int64_t end, void *context)
{
    line_sort *s = context;
    proa_dtype dtype = (proa_dtype)s->x->dtype;
    int64_t item = (int64_t)proa_dtype_size(dtype), want = s->mode ? s->length : s->skip + s->take;
    bool few = !s->mode && want * 4 < s->length;
    bool packed =
        !few && !s->mode && key_bits(dtype) <= 32 && s->length >= SORT_RADIX_FROM && s->length <= UINT32_MAX;
    int64_t capacity = few ? 2 * want + SELECT_SPARE : s->length;
    sort_pair *p = proa_scratch((size_t)capacity * 2 * sizeof *p);
    if (!p) {
        atomic_store(&s->failed, true);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        int64_t outer = i / s->inner, inner = i % s->inner;
        const char *from = s->x->data + (outer * s->length * s->inner + inner) * item;
        int64_t to = outer * s->take * s->inner + inner;
        if (packed) {
            sort_line_packed(s, (uint64_t *)(void *)p, from, to);
            continue;
        }
        if (few) {
            select_few(p, capacity, s, from, s->inner * item, want);
        } else {
            fill_pairs(p, s->length, dtype, from, s->inner * item, s->descending);
            sort_pairs(p, p + s->length, s->length, key_bits(dtype));
        }
        int64_t skip = s->mode ? longest_run(p, s->length) : s->skip;
        for (int64_t k = 0; k < s->take; k++) {
            int64_t place = p[skip + k].place, at = to + k * s->inner;
            if (s->places) s->places[at] = place;
            if (s->values) memcpy(s->values + at * item, from + place * s->inner * item, (size_t)item);
        }
    }
    proa_scratch_free(p);
}

static proa_status run_lines(const char *who, line_sort *s, int64_t axis)
{
    int at;
    int64_t outer = 1;
    size_t bytes;
    PROA_TRY(proa__axis(who, "axis", axis, s->x->ndim, &at));
    s->length = s->x->ndim ? s->x->shape[at] : 1;
    s->inner = 1;
    for (int i = 0; i < at; i++) outer *= s->x->shape[i];
    for (int i = at + 1; i < s->x->ndim; i++) s->inner *= s->x->shape[i];
    if (s->take < 0) s->take = s->length;
    if (s->x->numel == 0) return PROA_OK;
    if (!proa__mul_size((size_t)s->length, 2 * sizeof(sort_pair), &bytes)) return proa_error();
    proa__parallel(outer * s->inner, 1 + 4096 / s->length, sort_lines, s);
    if (!atomic_load(&s->failed)) return PROA_OK;
    return OP_FAIL(who, OUT_OF_MEMORY, "x", "needs %zu bytes of scratch a thread to be sorted", bytes);
}

static int64_t *places_in(const proa_tensor *t) { return (int64_t *)(void *)t->data; }

PROA_KERNEL(sort_cpu, sort)
{
    line_sort s = {.x = a->x,
                   .values = a->out->data,
                   .places = places_in(a->indices),
                   .take = -1,
                   .descending = a->descending};
    return run_lines("sort", &s, a->axis);
}

PROA_KERNEL(argsort_cpu, argsort)
{
    line_sort s = {.x = a->x, .places = places_in(a->out), .take = -1, .descending = a->descending};
    return run_lines("argsort", &s, a->axis);
}

PROA_KERNEL(topk_cpu, topk)
{
    line_sort s = {
        .x = a->x, .values = a->out->data, .places = places_in(a->indices), .descending = a->largest};
    PROA_TRY(proa__int_or("topk", "k", a->k, &a->k_tensor, &s.take));
    return run_lines("topk", &s, a->axis);
}

PROA_KERNEL(kthvalue_cpu, kthvalue)
{
    line_sort s = {
        .x = a->x, .values = a->out->data, .places = places_in(a->indices), .take = 1, .skip = a->k - 1};
    return run_lines("kthvalue", &s, a->axis);
}

PROA_KERNEL(mode_cpu, mode)
{
    line_sort s = {
        .x = a->x, .values = a->out->data, .places = places_in(a->indices), .take = 1, .mode = true};
    return run_lines("mode", &s, a->axis);
}

/* ---- searchsorted ----------------------------------------------------------------------- */

typedef struct searching {
    const proa_tensor *sequence, *values;
    proa_tensor *out;
    bool right;
} searching;

static void search_range(int64_t begin, int64_t end, void *context)
{
    const searching *s = context;
    proa_dtype dtype = (proa_dtype)s->values->dtype;
    int64_t item = (int64_t)proa_dtype_size(dtype), n = s->sequence->shape[s->sequence->ndim - 1];
    int64_t row = s->sequence->ndim > 1 ? s->values->shape[s->values->ndim - 1] : 0;
    for (int64_t i = begin; i < end; i++) {
        const char *line = s->sequence->data + (row ? i / row * n * item : 0);
        uint64_t key = key_of(dtype, s->values->data + i * item);
        int64_t low = 0, high = n;
        while (low < high) {
            int64_t mid = low + (high - low) / 2;
            uint64_t there = key_of(dtype, line + mid * item);
            if (s->right ? there <= key : there < key) low = mid + 1;
            else high = mid;
        }
        if (s->out->dtype == PROA_I32) ((int32_t *)(void *)s->out->data)[i] = (int32_t)low;
        else ((int64_t *)(void *)s->out->data)[i] = low;
    }
}

PROA_KERNEL(searchsorted_cpu, searchsorted)
{
    searching s = {a->sorted_sequence, a->values, a->out, a->right};
    if (a->out_int32 && a->sorted_sequence->shape[a->sorted_sequence->ndim - 1] > INT32_MAX)
        return OP_FAIL("searchsorted", OVERFLOW, "sorted_sequence", "is %s, too long for int32 results",
                       proa__tensor_text(a->sorted_sequence));
    proa__parallel(a->values->numel, 4096, search_range, &s);
    return PROA_OK;
}
