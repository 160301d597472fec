/* proa__map_run: applies an inner loop to broadcast, strided operands of any dtype, in threads. An operand
 * that is not contiguous in the loop's dtype passes through a buffer that fits the cache; a large transposed
 * one is copied first. May use core and kernels only. */
#include "kernels/iterator.h"

#include "core/copy.h"

#include <stdlib.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

typedef enum operand_kind { DIRECT, SCALAR, WALK } operand_kind;

typedef struct operand {
    operand_kind kind;
    proa_dtype own, as;
    int64_t size, as_size;
    proa_walk walk;
} operand;

typedef struct map_plan {
    const proa_map *map;
    operand operand[PROA_MAP_MAX];
    int64_t numel, chunk, shared;
    bool stream;
    bool all_direct;
    proa_range_fn range;
} map_plan;

/* STREAM_CHUNK: bytes per chunk of outputs that are written with non-temporal stores; short alternating reads
 * and writes keep memory busy (with 4 KiB chunks a third of the bandwidth is lost). */
enum { STREAM_CHUNK = 2048, GRAIN_BYTES = 1 << 17 };
/* Threads divide the elements in multiples of 64, whole vectors: only the tensor's end is computed by the
 * scalar remainder of an inner loop, which may round differently, so results do not depend on the thread
 * count. Where an operand is walked, they divide them in chunks: rows that chunks divide are then read in
 * place. */
enum { SHARED = 64 };

/* Addresses of the next chunk of each DIRECT input whose elements have the output's size: prefetched while
 * this chunk's output is written with non-temporal stores, so that reading and writing overlap. */
typedef struct ahead {
    int n;
    const char *at[PROA_MAP_MAX];
} ahead;

static inline void prefetch_line(const ahead *next, int64_t i)
{
    for (int k = 0; k < next->n; k++) __builtin_prefetch(next->at[k] + i, 0, 3);
}

/* Copies to 64-byte aligned `to` without reading its cache lines; n is a multiple of 64. */
static void stream_copy(char *to, const char *from, int64_t n, const ahead *next)
{
#if defined(__AVX512F__)
    for (int64_t i = 0; i < n; i += 64) {
        prefetch_line(next, i);
        _mm512_stream_si512((void *)(to + i), _mm512_load_si512((const void *)(from + i)));
    }
#elif defined(__AVX__)
    for (int64_t i = 0; i < n; i += 32) {
        if ((i & 32) == 0) prefetch_line(next, i);
        _mm256_stream_si256((void *)(to + i), _mm256_load_si256((const void *)(from + i)));
    }
#elif defined(__SSE2__)
    for (int64_t i = 0; i < n; i += 16) {
        if ((i & 48) == 0) prefetch_line(next, i);
        _mm_stream_si128((void *)(to + i), _mm_load_si128((const void *)(from + i)));
    }
#else
    (void)next;
    memcpy(to, from, (size_t)n);
#endif
}

static ahead look_ahead(const map_plan *p, int64_t begin)
{
    ahead next = {0};
    for (int k = 1; k < p->map->n; k++)
        if (p->operand[k].kind == DIRECT && p->operand[k].size == p->operand[0].size)
            next.at[next.n++] = p->operand[k].walk.data + begin * p->operand[k].size;
    return next;
}

/* Whether a chunk can be written with non-temporal stores: whole cache lines at an aligned address. */
static bool can_stream(const char *to, int64_t bytes)
{
    return ((uintptr_t)to & 63) == 0 && (bytes & 63) == 0;
}

static const char *read_operand(const operand *o, int64_t begin, int64_t n, char *raw, char *converted)
{
    char *gathered = o->own == o->as ? converted : raw;
    const char *p = o->kind == DIRECT ? o->walk.data + begin * o->size
                                      : proa__args_visit_read(&o->walk, begin, n, gathered);
    if (o->own == o->as) return p;
    proa__convert(o->as, converted, o->own, p, n);
    return converted;
}

static void fill_scalar(const operand *o, int64_t n, char *buffer)
{
    _Alignas(16) char one[16];
    proa__convert(o->as, one, o->own, o->walk.data, 1);
    proa__gather(buffer, one, n, 0, o->as_size);
}

static void map_range(int64_t begin, int64_t end, void *context)
{
    const map_plan *p = context;
    _Alignas(64) char buffers[PROA_MAP_MAX][PROA_STAGE_BYTES];
    _Alignas(64) char raw[PROA_STAGE_BYTES];
    const operand *out = &p->operand[0];
    char *at[PROA_MAP_MAX] = {0};
    int64_t chunk = p->chunk < end - begin ? p->chunk : end - begin;
    for (int k = 1; k < p->map->n; k++) {
        at[k] = buffers[k];
        if (p->operand[k].kind == SCALAR) fill_scalar(&p->operand[k], chunk, buffers[k]);
    }
    for (int64_t i = begin; i < end;) {
        int64_t n = end - i < chunk ? end - i : chunk;
        char *to = out->walk.data + i * out->size;
        if (p->stream && ((uintptr_t)to & 63)) { /* up to the next cache line */
            int64_t head = (64 - (int64_t)((uintptr_t)to & 63)) / out->size;
            n = head < n ? head : n;
        }
        for (int k = 1; k < p->map->n; k++)
            if (p->operand[k].kind != SCALAR)
                at[k] = (char *)(uintptr_t)read_operand(&p->operand[k], i, n, raw, buffers[k]);
        bool stream = p->stream && can_stream(to, n * out->size);
        bool stage = stream || out->own != out->as;
        ahead next = {0};
        if (stream) next = look_ahead(p, i + n);
        at[0] = stage ? buffers[0] : to;
        p->map->row(at, n, p->map->args);
        if (out->own != out->as) {
            char *place = stream ? raw : to;
            proa__convert(out->own, place, out->as, buffers[0], n);
            if (stream) stream_copy(to, raw, n * out->size, &next);
        } else if (stream) {
            stream_copy(to, buffers[0], n * out->size, &next);
        }
        i += n;
    }
#if defined(__SSE2__)
    if (p->stream) _mm_sfence();
#endif
}

/* All operands are contiguous in the loop's dtypes: one call of the inner loop for the whole range. */
static void direct_range(int64_t begin, int64_t end, void *context)
{
    const map_plan *p = context;
    char *at[PROA_MAP_MAX] = {0};
    for (int k = 0; k < p->map->n; k++) at[k] = p->operand[k].walk.data + begin * p->operand[k].size;
    p->map->row(at, end - begin, p->map->args);
}

/* Like direct_range, for an inner loop that makes non-temporal stores itself: ranges are whole cache
 * lines. */
static void nontemporal_range(int64_t begin, int64_t end, void *context)
{
    const map_plan *p = context;
    char *at[PROA_MAP_MAX] = {0};
    const int64_t size = p->operand[0].size;
    int64_t head = (int64_t)(-(uintptr_t)(p->operand[0].walk.data + begin * size) & 63) / size;
    if (head > end - begin) head = end - begin;
    const int64_t lines = (end - begin - head) * size / 64 * 64 / size;
    const int64_t part[3] = {head, lines, end - begin - head - lines};
    for (int i = 0; i < 3; begin += part[i++]) {
        for (int k = 0; k < p->map->n; k++) at[k] = p->operand[k].walk.data + begin * p->operand[k].size;
        if (part[i]) (i == 1 ? p->map->nontemporal : p->map->row)(at, part[i], p->map->args);
    }
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

static void shared_range(int64_t begin, int64_t end, void *context)
{
    const map_plan *p = context;
    int64_t until = end * p->shared;
    p->range(begin * p->shared, until < p->numel ? until : p->numel, context);
}

static void plan_operand(map_plan *p, int k)
{
    const proa_map *map = p->map;
    const proa_tensor *t = map->tensor[k], *out = map->tensor[0];
    operand *o = &p->operand[k];
    o->own = (proa_dtype)t->dtype;
    o->as = map->as[k];
    if (o->own == PROA_BOOL && o->as == PROA_U8) o->as = PROA_BOOL; /* the same bytes */
    o->size = (int64_t)proa_dtype_size(o->own);
    o->as_size = (int64_t)proa_dtype_size(o->as);
    o->walk.data = t->data;
    if (t->numel == out->numel && !(t->flags & PROA_T_STRIDED)) o->kind = DIRECT;
    else if (t->numel == 1) o->kind = SCALAR;
    else o->kind = WALK;
    if (o->kind == WALK) proa__args_visit_init(&o->walk, t, out->ndim, out->shape);
    if (o->kind != DIRECT || o->own != o->as) p->all_direct = false;
}

/* Fast path for small tensors that need no plan; false if the call does not qualify. The inner loop sees
 * operand k in dtype as[k], or, if `as` is NULL, every operand in dtype `all`. */
static inline bool run_small(proa_row row, int64_t grain, int n, proa_tensor *const *tensor,
                             const proa_dtype *as, proa_dtype all, const void *args)
{
    int64_t numel = tensor[0]->numel;
    if (numel > PROA_GRAIN || (grain && numel >= 2 * grain)) return false;
    char *at[PROA_MAP_MAX];
    for (int k = 0; k < n; k++) {
        const proa_tensor *t = tensor[k];
        if (t->numel != numel || (as ? as[k] : all) != (proa_dtype)t->dtype ||
            (t->flags & PROA_T_STRIDED && numel != 1))
            return false;
        at[k] = t->data;
    }
    row(at, numel, args);
    return true;
}

/* ---- transposed operands ------------------------------------------------------------------ */

/* TRANSPOSED_BYTES: smallest transposed operand that is copied, in bytes: its columns no longer stay in the
 * L1 cache until the next row is gathered from them. */
enum { TRANSPOSED_BYTES = 1 << 15 };

/* Whether t's elements are closer to each other along another axis than along the last one, so that a row of
 * them takes as many cache lines as elements. */
static bool is_transposed(const proa_tensor *t)
{
    if (!(t->flags & PROA_T_STRIDED) ||
        t->numel * (int64_t)proa_dtype_size((proa_dtype)t->dtype) < TRANSPOSED_BYTES)
        return false;
    int last = t->ndim - 1;
    int64_t least = INT64_MAX;
    while (last > 0 && t->shape[last] == 1) last--;
    for (int i = 0; i < last; i++)
        if (t->shape[i] > 1 && llabs(t->strides[i]) < least) least = llabs(t->strides[i]);
    return least > 0 && least < llabs(t->strides[last]);
}

/* The addresses between which t's elements are. */
static void extent(const proa_tensor *t, const char **low, const char **high)
{
    *low = t->data;
    *high = t->data + proa_dtype_size((proa_dtype)t->dtype);
    for (int i = 0; i < t->ndim; i++) *(t->strides[i] < 0 ? low : high) += (t->shape[i] - 1) * t->strides[i];
}

/* Whether operand k may be copied to the output's memory: it has the output's size, and no operand that the
 * row reads is there. */
static bool fits_output(const proa_map *map, int k)
{
    const proa_tensor *out = map->tensor[0];
    const char *low, *high, *from, *to;
    if (!map->in_place || map->tensor[k]->dtype != out->dtype || map->tensor[k]->numel != out->numel)
        return false;
    extent(out, &low, &high);
    for (int i = 1; i < map->n; i++) {
        extent(map->tensor[i], &from, &to);
        if (from < high && low < to) return false;
    }
    return true;
}

/* Copies transposed operands, in blocks of whole cache lines, to the output's memory or to scratch, and runs
 * the map on the copies. */
static __attribute__((noinline)) proa_status run_transposed(const proa_map *map)
{
    proa_map direct = *map;
    proa_tensor copies[PROA_MAP_MAX];
    void *scratch[PROA_MAP_MAX] = {NULL};
    proa_status status = PROA_OK;
    for (int k = 1; k < map->n && status == PROA_OK; k++) {
        if (!is_transposed(map->tensor[k])) continue;
        proa_tensor *copy = &copies[k];
        *copy = proa__shallow_copy(map->tensor[k]);
        const size_t item = proa_dtype_size((proa_dtype)copy->dtype);
        const bool here = fits_output(&direct, k);
        copy->flags = 0;
        copy->data = here ? map->tensor[0]->data : (scratch[k] = proa_scratch((size_t)copy->numel * item));
        for (int64_t i = copy->ndim - 1, step = (int64_t)item; i >= 0; step *= copy->shape[i--])
            copy->strides[i] = step;
        status = copy->data ? proa__copy(copy, map->tensor[k]) : proa_error();
        direct.tensor[k] = copy;
    }
    if (status == PROA_OK) status = proa__map_run(&direct);
    for (int k = 1; k < map->n; k++) proa_scratch_free(scratch[k]);
    return status;
}

proa_status proa__map_run(const proa_map *map)
{
    const proa_tensor *out = map->tensor[0];
    int64_t numel = out->numel;
    if (numel <= 0) return PROA_OK;
    if (run_small(map->row, map->grain, map->n, map->tensor, map->as, PROA_NODTYPE, map->args))
        return PROA_OK;
    for (int k = 1; k < map->n; k++)
        if (is_transposed(map->tensor[k])) return run_transposed(map);
    map_plan p; /* plan_operand fills what is used of the operands */
    p.map = map;
    p.all_direct = true;
    int64_t widest = 1, bytes = 0, all = 0; /* bytes: of an element of each operand; all: of the call */
    for (int k = 0; k < map->n; k++) {
        plan_operand(&p, k);
        const operand *o = &p.operand[k];
        if (o->size > widest) widest = o->size;
        if (o->as_size > widest) widest = o->as_size;
        bytes += o->size;
        all += map->tensor[k]->numel * o->size;
    }
    bool in_place = false;
    for (int k = 1; k < map->n; k++) in_place |= map->tensor[k]->data == out->data;
    p.stream = !in_place && proa__nontemporal_pays(numel * p.operand[0].size, all);
    p.chunk = (p.stream ? STREAM_CHUNK : PROA_STAGE_BYTES) / widest;
    int64_t grain = GRAIN_BYTES / bytes;
    if (map->grain && map->grain < grain) grain = map->grain;
    p.numel = numel;
    p.range = !p.all_direct      ? map_range
              : !p.stream        ? direct_range
              : map->nontemporal ? nontemporal_range
                                 : map_range;
    p.shared = p.all_direct ? SHARED : p.chunk;
    proa__parallel((numel + p.shared - 1) / p.shared, grain / p.shared, shared_range, &p);
    return PROA_OK;
}

/* The dtype in which an inner loop for dtype d computes. */
static proa_dtype compute_dtype(const proa_rows *rows, proa_dtype d)
{
    if (rows->at[d]) return d;
    if (d == PROA_F16 || d == PROA_BF16) return PROA_F32;
    if (d <= PROA_I64)
        for (int w = (int)d + 1; w <= PROA_I64; w++)
            if (rows->at[w]) return (proa_dtype)w;
    if (d == PROA_C64 && rows->at[PROA_C128]) return PROA_C128;
    return PROA_F32;
}

/* proa__map_rows of a call that needs a plan. */
static __attribute__((noinline)) proa_status plan_rows(const proa_rows *rows, proa_dtype d, int n,
                                                       proa_tensor *const *tensors, const void *args)
{
    proa_map map = {.row = rows->at[d], .grain = rows->grain, .in_place = true, .n = n, .args = args};
    if (d == PROA_F32) map.nontemporal = rows->nontemporal;
    map.as[0] = rows->out == PROA_ROW_OUT_BOOL                     ? PROA_BOOL
                : rows->out == PROA_ROW_OUT_REAL && d == PROA_C64  ? PROA_F32
                : rows->out == PROA_ROW_OUT_REAL && d == PROA_C128 ? PROA_F64
                                                                   : d;
    for (int k = 0; k < n; k++) {
        map.tensor[k] = tensors[k];
        if (k) map.as[k] = d;
    }
    if (!map.row) return proa_fail(PROA_ERR_INTERNAL, "an op has no row for %s", proa_dtype_name(d));
    return proa__map_run(&map);
}

proa_status proa__map_rows(const proa_rows *rows, int n, proa_tensor *const *tensors, const void *args)
{
    proa_dtype d = compute_dtype(rows, (proa_dtype)tensors[1]->dtype);
    if (rows->out == PROA_ROW_OUT_SAME && rows->at[d] &&
        run_small(rows->at[d], rows->grain, n, tensors, NULL, d, args))
        return PROA_OK;
    return plan_rows(rows, d, n, tensors, args);
}
