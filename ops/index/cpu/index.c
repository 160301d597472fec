/* CPU kernels that gather slices or points by index, their gradients, which scatter-add, and index_add,
 * scatter_nd_add and index_put. Writes are divided among threads by destination columns or outer slices, so
 * that they happen in the order of the indices whatever the thread count. */
#include "core/copy.h"
#include "ops/index/indices.h"
#include "kernels/nontemporal.h"
#include "ops/shape/accumulate.h"
#include "ops/index/index.h"
#include "ops/shape/slice.h"
#include "impl/index.h"

/* ---- whole slices along an axis ---------------------------------------------------------- */

typedef struct taking {
    const proa_tensor *index;
    const char *from;
    char *to;
    around x;
    int64_t chunk;    /* bytes of one slice's inner part */
    bool nontemporal; /* out is written by non-temporal stores */
} taking;

/* AHEAD: slices of random addresses are prefetched this many copies before they are read. */
enum { AHEAD = 2, FETCH = 2048, MIN_NONTEMPORAL = 512 };

static void take_slices(const taking *t, const char *from, char *to, int64_t first, int64_t count)
{
    for (int64_t k = 0; k < count; k++) {
        const char *slice = from + index_at(t->index, first + k) * t->chunk;
        const char *next = NULL;
        if (k + AHEAD < count) next = from + index_at(t->index, first + k + AHEAD) * t->chunk;
        if (next && !t->nontemporal) nontemporal_prefetch(next, 0, t->chunk < FETCH ? t->chunk : FETCH);
        if (t->nontemporal) nontemporal_copy_prefetching(to + k * t->chunk, slice, t->chunk, next);
        else copy_item(to + k * t->chunk, slice, t->chunk);
    }
}

static void take_range(int64_t begin, int64_t end, void *context)
{
    const taking *t = context;
    int64_t n = t->index->numel;
    for (int64_t i = begin; i < end;) { /* one outer slice, or this thread's part of it */
        int64_t first = i % n, count = n - first < end - i ? n - first : end - i;
        const char *from = t->from + i / n * t->x.length * t->chunk;
        char *to = t->to + i * t->chunk;
        if (t->chunk == 4) {
            for (int64_t k = 0; k < count; k++)
                ((uint32_t *)(void *)to)[k] =
                    ((const uint32_t *)(const void *)from)[index_at(t->index, first + k)];
        } else {
            take_slices(t, from, to, first, count);
        }
        i += count;
    }
    if (t->nontemporal) proa__copy_nontemporal_end();
}

static proa_status take(const char *who, const proa_tensor *x, const proa_tensor *index, int64_t axis,
                        proa_tensor *out)
{
    int at;
    PROA_TRY(proa__axis(who, "axis", axis, x->ndim, &at));
    taking t = {index, x->data, out->data, around_axis(x, at), 0, false};
    PROA_TRY(check_indices(who, "index", index, t.x.length));
    t.chunk = t.x.inner * (int64_t)proa_dtype_size((proa_dtype)x->dtype);
    t.nontemporal =
        t.chunk >= MIN_NONTEMPORAL && t.chunk * t.x.outer * index->numel >= proa__nontemporal_bytes();
    if (out->numel) proa__parallel(t.x.outer * index->numel, grain_for(t.chunk), take_range, &t);
    return PROA_OK;
}

PROA_KERNEL(gather_cpu, gather)
{
    int64_t axis;
    PROA_TRY(proa__int_or("gather", "axis", a->axis, &a->axis_tensor, &axis));
    return take("gather", a->x, a->index, axis, a->out);
}
PROA_KERNEL(index_select_cpu, index_select) { return take("index_select", a->x, a->index, a->axis, a->out); }

typedef struct adding {
    const accumulator *acc;
    const proa_tensor *index;
    const char *from;
    around x;
    int64_t columns, pieces; /* elements a piece of the inner part; pieces a slice */
} adding;

static void add_range(int64_t begin, int64_t end, void *context)
{
    const adding *t = context;
    int64_t n = t->index->numel, item = (int64_t)proa_dtype_size((proa_dtype)t->acc->out->dtype);
    for (int64_t i = begin; i < end; i++) {
        int64_t outer = i / t->pieces, first = i % t->pieces * t->columns;
        int64_t width = t->x.inner - first < t->columns ? t->x.inner - first : t->columns;
        for (int64_t k = 0; k < n; k++) {
            int64_t row = outer * t->x.length + index_at(t->index, k);
            accumulate_row(t->acc, t->acc->data + (row * t->x.inner + first) * t->acc->item, t->acc->item,
                           t->from + ((outer * n + k) * t->x.inner + first) * item, item, width);
        }
    }
}

/* acc[…, index[k], …] += from[…, k, …] */
static proa_status add_slices(const accumulator *acc, const proa_tensor *index, const proa_tensor *from,
                              int axis)
{
    adding t = {acc, index, from->data, around_axis(acc->out, axis), 64, 1};
    t.pieces = (t.x.inner + t.columns - 1) / t.columns;
    if (from->numel)
        proa__parallel(t.x.outer * t.pieces, grain_for(index->numel * t.columns * 4), add_range, &t);
    return PROA_OK;
}

PROA_KERNEL(index_select_grad_cpu, index_select_grad)
{
    int axis;
    accumulator acc;
    PROA_TRY(proa__axis("index_select_grad", "axis", a->axis, a->d_x->ndim, &axis));
    PROA_TRY(check_indices("index_select_grad", "index", a->index, a->d_x->shape[axis]));
    PROA_TRY(accumulate_begin(&acc, a->d_x, NULL));
    PROA_TRY(add_slices(&acc, a->index, a->d_out, axis));
    return accumulate_end(&acc);
}

PROA_KERNEL(index_add_cpu, index_add)
{
    int axis;
    accumulator acc;
    PROA_TRY(proa__axis("index_add", "axis", a->axis, a->out->ndim, &axis));
    PROA_TRY(check_indices("index_add", "index", a->index, a->out->shape[axis]));
    PROA_TRY(accumulate_begin(&acc, a->out, a->x));
    PROA_TRY(add_slices(&acc, a->index, a->value, axis));
    return accumulate_end(&acc);
}

/* ---- points ------------------------------------------------------------------------------ */

/* The slice number that each row of index names, checked; scratch. */
static int64_t *point_rows(const char *who, const proa_tensor *index, const proa_tensor *x, int64_t *count,
                           int64_t *inner)
{
    int64_t depth = index->ndim ? index->shape[index->ndim - 1] : 1;
    size_t bytes;
    *count = 1, *inner = 1;
    for (int i = 0; i + 1 < index->ndim; i++) *count *= index->shape[i];
    for (int i = (int)depth; i < x->ndim; i++) *inner *= x->shape[i];
    if (!proa__mul_size((size_t)*count, sizeof(int64_t), &bytes)) return NULL;
    int64_t *rows = proa_scratch(bytes);
    for (int64_t k = 0; rows && k < *count; k++) {
        rows[k] = 0;
        for (int64_t j = 0; j < depth; j++) {
            int64_t v = index_at(index, k * depth + j);
            if (v < 0 || v >= x->shape[j]) {
                OP_FAIL(who, OUT_OF_RANGE, "index", "point %lld has %lld on axis %lld; expected 0 to %lld",
                        (long long)k, (long long)v, (long long)j, (long long)x->shape[j] - 1);
                proa_scratch_free(rows);
                return NULL;
            }
            rows[k] = rows[k] * x->shape[j] + v;
        }
    }
    return rows;
}

typedef struct points {
    const int64_t *rows;
    const char *from;
    char *to;
    int64_t chunk;
} points;

static void gather_points(int64_t begin, int64_t end, void *context)
{
    const points *p = context;
    for (int64_t k = begin; k < end; k++)
        copy_item(p->to + k * p->chunk, p->from + p->rows[k] * p->chunk, p->chunk);
}

PROA_KERNEL(gather_nd_cpu, gather_nd)
{
    int64_t count, inner;
    int64_t *rows = point_rows("gather_nd", a->index, a->x, &count, &inner);
    if (!rows) return proa_error();
    points p = {rows, a->x->data, a->out->data, inner * (int64_t)proa_dtype_size((proa_dtype)a->x->dtype)};
    if (a->out->numel) proa__parallel(count, grain_for(p.chunk), gather_points, &p);
    proa_scratch_free(rows);
    return PROA_OK;
}

typedef struct point_sums {
    const accumulator *acc;
    const int64_t *rows;
    const char *from;
    int64_t count, inner, item;
} point_sums;

/* Adds columns [begin, end) of every point's slice, in the order of the points. */
static void add_points(int64_t begin, int64_t end, void *context)
{
    const point_sums *p = context;
    for (int64_t k = 0; k < p->count; k++)
        accumulate_row(p->acc, p->acc->data + (p->rows[k] * p->inner + begin) * p->acc->item, p->acc->item,
                       p->from + (k * p->inner + begin) * p->item, p->item, end - begin);
}

/* out = base (NULL: zeros) with the slices of `from` added at the points of index. */
static proa_status scatter_points(const char *who, proa_tensor *out, const proa_tensor *base,
                                  const proa_tensor *index, const proa_tensor *from)
{
    accumulator acc;
    int64_t count, inner;
    int64_t *rows = point_rows(who, index, out, &count, &inner);
    if (!rows) return proa_error();
    proa_status status = accumulate_begin(&acc, out, base);
    if (status == PROA_OK) {
        point_sums p = {&acc,  rows,  from->data,
                        count, inner, (int64_t)proa_dtype_size((proa_dtype)out->dtype)};
        if (from->numel) proa__parallel_scans(inner, grain_for(count * 4) + 63, add_points, &p);
        status = accumulate_end(&acc);
    }
    proa_scratch_free(rows);
    return status;
}

PROA_KERNEL(gather_nd_grad_cpu, gather_nd_grad)
{
    return scatter_points("gather_nd_grad", a->d_x, NULL, a->index, a->d_out);
}
PROA_KERNEL(scatter_nd_add_cpu, scatter_nd_add)
{
    return scatter_points("scatter_nd_add", a->out, a->x, a->index, a->updates);
}

/* ---- put --------------------------------------------------------------------------------- */

/* The slice numbers at which the mask holds; scratch. */
static int64_t *mask_rows(const proa_tensor *mask, int64_t *count)
{
    size_t bytes;
    *count = 0;
    for (int64_t i = 0; i < mask->numel; i++) *count += mask->data[i] != 0;
    if (!proa__mul_size((size_t)*count, sizeof(int64_t), &bytes)) return NULL;
    int64_t *rows = proa_scratch(bytes);
    for (int64_t i = 0, n = 0; rows && i < mask->numel; i++)
        if (mask->data[i]) rows[n++] = i;
    return rows;
}

/* Writes columns [begin, end) of every point's slice in the order of the points, so that the last write
 * wins. */
static void put_points(int64_t begin, int64_t end, void *context)
{
    const point_sums *p = context;
    for (int64_t k = 0; k < p->count; k++)
        copy_item(p->acc->data + (p->rows[k] * p->inner + begin) * p->item,
                  p->from + (k * p->inner + begin) * p->item, (end - begin) * p->item);
}

/* value as [count, axes of x behind the points…], contiguous: itself or a copy, which the caller drops. */
static proa_tensor *value_at_points(const proa_index_put_args *a, int64_t count)
{
    bool mask = a->index->dtype == PROA_BOOL;
    int lead = mask ? 1 : a->index->ndim - 1;
    int64_t depth = mask ? a->index->ndim : a->index->shape[lead];
    proa_meta places = {.dtype = (proa_dtype)a->x->dtype};
    for (int i = 0; i < lead; i++) places.shape[places.ndim++] = mask ? count : a->index->shape[i];
    for (int64_t i = depth; i < a->x->ndim; i++) places.shape[places.ndim++] = a->x->shape[i];
    if (proa__check_broadcast("index_put", "value", a->value, &places) != PROA_OK) return NULL;
    int64_t numel = 1;
    for (int i = 0; i < places.ndim; i++) numel *= places.shape[i];
    if (a->value->numel == numel) return a->value;
    proa_tensor *full = proa__tensor_new(&places);
    if (!full) return NULL;
    proa_tensor to = proa__window(full), from = proa__window(a->value);
    proa__expand_window(&from, to.ndim, to.shape);
    if (proa__copy_window(&to, &from) == PROA_OK) return full;
    proa_drop(full);
    return NULL;
}

static proa_status put_rows(const proa_index_put_args *a, const int64_t *rows, int64_t count, int64_t inner)
{
    accumulator acc;
    proa_tensor *value = value_at_points(a, count);
    if (!value) return proa_error();
    int64_t item = (int64_t)proa_dtype_size((proa_dtype)a->x->dtype);
    proa_status status = PROA_OK;
    point_sums p = {&acc, rows, value->data, count, inner, item};
    bool any = value->numel > 0;
    if (a->accumulate) {
        status = accumulate_begin(&acc, a->out, a->x);
        if (status == PROA_OK && any) proa__parallel_scans(inner, grain_for(count * 4) + 63, add_points, &p);
        if (status == PROA_OK) status = accumulate_end(&acc);
    } else {
        status = proa__copy(a->out, a->x);
        acc = (accumulator){a->out, a->out->data, NULL, item};
        if (status == PROA_OK && any)
            proa__parallel_scans(inner, grain_for(count * item) + 63, put_points, &p);
    }
    if (value != a->value) proa_drop(value);
    return status;
}

PROA_KERNEL(index_put_cpu, index_put)
{
    int64_t count, inner = 1;
    bool mask = a->index->dtype == PROA_BOOL;
    int64_t *rows =
        mask ? mask_rows(a->index, &count) : point_rows("index_put", a->index, a->x, &count, &inner);
    if (!rows) return proa_error();
    for (int i = a->index->ndim; mask && i < a->x->ndim; i++) inner *= a->x->shape[i];
    proa_status status = put_rows(a, rows, count, inner);
    proa_scratch_free(rows);
    return status;
}
