/* Kernels that write by index: scatter, index_fill, put_along_axis, masked_fill, set_value; also
 * take_along_axis and index_sample. Several writes to one element happen in the order of the indices,
 * whatever the thread count. */
#include "core/copy.h"
#include "ops/index/indices.h"
#include "ops/scalar.h"
#include "ops/shape/accumulate.h"
#include "ops/shape/slice.h"
#include "impl/index.h"

/* ---- rows -------------------------------------------------------------------------------- */

/* Each thread owns a range of out's rows and walks all indices in order. */
typedef struct row_job {
    const proa_tensor *index;
    const char *updates;
    int64_t chunk, item, inner;
    const accumulator *acc;
    char *seen; /* one flag a row: whether its sum has begun; NULL: rows are overwritten */
} row_job;

static void scatter_rows(int64_t begin, int64_t end, void *context)
{
    const row_job *j = context;
    const int64_t n = j->index->numel, chunk = j->inner * j->acc->item;
    for (int64_t k = 0; k < n; k++) {
        int64_t row = index_at(j->index, k);
        if (row < begin || row >= end) continue;
        char *to = j->acc->data + row * chunk;
        const char *from = j->updates + k * j->chunk;
        if (!j->seen) {
            memcpy(to, from, (size_t)chunk);
            continue;
        }
        if (!j->seen[row]) memset(to, 0, (size_t)chunk);
        j->seen[row] = 1;
        accumulate_row(j->acc, to, j->acc->item, from, j->item, j->inner);
    }
}

PROA_KERNEL(scatter_cpu, scatter)
{
    around r = around_axis(a->out, 0);
    int64_t item = (int64_t)proa_dtype_size((proa_dtype)a->x->dtype);
    accumulator acc = {a->out, a->out->data, NULL, item};
    row_job j = {.index = a->index,
                 .updates = a->updates->data,
                 .chunk = r.inner * item,
                 .item = item,
                 .inner = r.inner,
                 .acc = &acc};
    PROA_TRY(check_indices("scatter", "index", a->index, r.length));
    PROA_TRY(proa__copy(a->out, a->x));
    if (!a->index->numel || !a->updates->numel) return PROA_OK;
    int64_t grain = ACCUMULATE_GRAIN / (a->index->numel * r.inner / r.length + 1) + 1;
    if (a->overwrite) {
        proa__parallel_scans(r.length, grain, scatter_rows, &j);
        return PROA_OK;
    }
    PROA_TRY(accumulate_begin(&acc, a->out, a->out));
    j.seen = proa_scratch((size_t)r.length);
    if (j.seen) {
        memset(j.seen, 0, (size_t)r.length);
        proa__parallel_scans(r.length, grain, scatter_rows, &j);
    }
    proa_scratch_free(j.seen);
    PROA_TRY(accumulate_end(&acc));
    return proa_error();
}

PROA_KERNEL(index_fill_cpu, index_fill)
{
    int axis;
    char one[16];
    PROA_TRY(proa__axis("index_fill", "axis", a->axis, a->x->ndim, &axis));
    PROA_TRY(check_indices("index_fill", "index", a->index, around_axis(a->x, axis).length));
    proa__scalar_to(&a->value, (proa_dtype)a->x->dtype, 0, one);
    PROA_TRY(proa__copy(a->out, a->x));
    for (int64_t k = 0; k < a->index->numel; k++) {
        proa_tensor slice = proa__window(a->out);
        if (slice.ndim) proa__narrow(&slice, axis, index_at(a->index, k), 1, 1);
        PROA_TRY(proa__fill_window(&slice, one));
    }
    return PROA_OK;
}

/* ---- along an axis ---------------------------------------------------------------------- */

/* Iterates over all entries of an index tensor, with the axis innermost: lines of `length` entries along the
 * axis. */
typedef struct lines {
    int ndim; /* without the axis */
    int64_t shape[PROA_MAX_DIMS], count, length;
    int64_t index_step[PROA_MAX_DIMS], data_step[PROA_MAX_DIMS],
        value_step[PROA_MAX_DIMS]; /* elements; bytes; bytes */
    int64_t index_along, data_along, value_along;
} lines;

/* Strides of t for iteration over `places`: 0 on broadcast axes. */
static void broadcast_steps(const proa_tensor *t, int ndim, const int64_t *places, int64_t *steps)
{
    int lead = ndim - t->ndim;
    for (int i = 0; i < ndim; i++) {
        bool repeats = i < lead || (t->shape[i - lead] == 1 && places[i] != 1);
        steps[i] = repeats ? 0 : t->strides[i - lead];
    }
}

/* data: the tensor indexed along axis; values (may be NULL): one value per index entry. */
static lines lines_of(const proa_tensor *index, const proa_tensor *data, int64_t item,
                      const proa_tensor *values, const int64_t *places, int axis)
{
    lines l = {.count = 1, .length = places[axis]};
    int64_t is[PROA_MAX_DIMS] = {0}, ds[PROA_MAX_DIMS] = {0}, vs[PROA_MAX_DIMS] = {0}, step = item;
    int64_t index_item = (int64_t)proa_dtype_size((proa_dtype)index->dtype);
    broadcast_steps(index, data->ndim, places, is);
    if (values) broadcast_steps(values, data->ndim, places, vs);
    for (int i = data->ndim - 1; i >= 0; step *= data->shape[i--])
        ds[i] = data->shape[i] == 1 && i != axis ? 0 : step;
    l.index_along = is[axis] / index_item, l.data_along = ds[axis], l.value_along = vs[axis];
    for (int i = 0; i < data->ndim; i++) {
        if (i == axis) continue;
        l.shape[l.ndim] = places[i];
        l.count *= places[i];
        l.index_step[l.ndim] = is[i] / index_item, l.data_step[l.ndim] = ds[i], l.value_step[l.ndim] = vs[i];
        l.ndim++;
    }
    return l;
}

typedef struct line {
    int64_t index, data, value; /* where the line starts: entry, byte, byte */
} line;

static line line_at(const lines *l, int64_t i)
{
    line at = {0, 0, 0};
    for (int k = l->ndim - 1; k >= 0; k--) {
        int64_t c = i % l->shape[k];
        i /= l->shape[k];
        at.index += c * l->index_step[k], at.data += c * l->data_step[k], at.value += c * l->value_step[k];
    }
    return at;
}

typedef struct line_job {
    lines l;
    const proa_tensor *index;
    char *data;   /* indexed along the axis */
    char *values; /* one a place */
    int64_t item;
    const accumulator *acc;
    char *counts; /* put: number of values combined into each data element, int64; may be NULL */
    proa_put_mode mode;
    bool include_self;
} line_job;

static void take_lines(int64_t begin, int64_t end, void *context)
{
    const line_job *j = context;
    bool plain = j->item == 4 && j->index->dtype == PROA_I64 && j->l.index_along == 1 &&
                 j->l.data_along == 4 && j->l.value_along == 4; /* lines of neighbors */
    for (int64_t i = begin; i < end; i++) {
        line at = line_at(&j->l, i);
        if (plain) {
            uint32_t *to = (uint32_t *)(void *)(j->values + at.value);
            const uint32_t *from = (const uint32_t *)(const void *)(j->data + at.data);
            const int64_t *index = (const int64_t *)(const void *)j->index->data + at.index;
            for (int64_t k = 0; k < j->l.length; k++) to[k] = from[index[k]];
            continue;
        }
        for (int64_t k = 0; k < j->l.length; k++)
            copy_item(j->values + at.value + k * j->l.value_along,
                      j->data + at.data +
                          index_at(j->index, at.index + k * j->l.index_along) * j->l.data_along,
                      j->item);
    }
}

static proa_status take_along(const char *who, const char *arg, const proa_tensor *x,
                              const proa_tensor *index, int64_t axis, const proa_tensor *out)
{
    int at;
    PROA_TRY(proa__axis(who, "axis", axis, x->ndim, &at));
    PROA_TRY(check_indices(who, arg, index, x->shape[at]));
    int64_t item = (int64_t)proa_dtype_size((proa_dtype)x->dtype);
    line_job j = {lines_of(index, x, item, out, out->shape, at),
                  index,
                  x->data,
                  out->data,
                  item,
                  NULL,
                  NULL,
                  PROA_PUT_MODE_ASSIGN,
                  true};
    if (out->numel) proa__parallel(j.l.count, grain_for(j.l.length * 16), take_lines, &j);
    return PROA_OK;
}

PROA_KERNEL(take_along_axis_cpu, take_along_axis)
{
    return take_along("take_along_axis", "indices", a->arr, a->indices, a->axis, a->out);
}
PROA_KERNEL(index_sample_cpu, index_sample)
{
    return take_along("index_sample", "index", a->x, a->index, 1, a->out);
}

PROA_KERNEL(take_along_axis_grad_cpu, take_along_axis_grad)
{
    int axis;
    accumulator acc;
    static const char who[] = "take_along_axis_grad";
    PROA_TRY(proa__axis(who, "axis", a->axis, a->d_arr->ndim, &axis));
    PROA_TRY(check_indices(who, "indices", a->indices, a->d_arr->shape[axis]));
    PROA_TRY(accumulate_begin(&acc, a->d_arr, NULL));
    lines l = lines_of(a->indices, a->d_arr, acc.item, a->d_out, a->d_out->shape, axis);
    for (int64_t i = 0; i < l.count && a->d_out->numel;
         i++) { /* broadcast lines may hit the same elements: sequential */
        line at = line_at(&l, i);
        for (int64_t k = 0; k < l.length; k++)
            accumulate_row(
                &acc, acc.data + at.data + index_at(a->indices, at.index + k * l.index_along) * l.data_along,
                0, a->d_out->data + at.value + k * l.value_along, 0, 1);
    }
    return accumulate_end(&acc);
}

/* ---- put -------------------------------------------------------------------------------- */

#define BY_MODE(SUM, V, MORE, LESS)                                           \
    switch (mode) {                                                           \
    case PROA_PUT_MODE_ASSIGN: *at = (SUM)(V); break;                         \
    case PROA_PUT_MODE_MULTIPLY: *at = (SUM)(first ? (V) : *at * (V)); break; \
    case PROA_PUT_MODE_AMAX: *at = (SUM)(first || (MORE) ? (V) : *at); break; \
    case PROA_PUT_MODE_AMIN: *at = (SUM)(first || (LESS) ? (V) : *at); break; \
    default: *at = (SUM)(first ? (V) : *at + (V)); break;                     \
    }                                                                         \
    break
#define PUT_CASE(SUM, T, VALUE)                                \
    {                                                          \
        SUM *at = (SUM *)(void *)to;                           \
        T raw = *(const T *)(const void *)value;               \
        SUM v = VALUE;                                         \
        BY_MODE(SUM, v, v > *at || v != v, v < *at || v != v); \
    }
/* Combines one value into its element; `first`: the old content is ignored. */
static void put_one(proa_dtype dtype, proa_put_mode mode, bool first, char *to, const char *value)
{
    switch (dtype) {
    case PROA_I8: PUT_CASE(int8_t, int8_t, raw)
    case PROA_U8: PUT_CASE(uint8_t, uint8_t, raw)
    case PROA_I16: PUT_CASE(int16_t, int16_t, raw)
    case PROA_I32:
        if (mode == PROA_PUT_MODE_AMAX || mode == PROA_PUT_MODE_AMIN) PUT_CASE(int32_t, int32_t, raw)
        else PUT_CASE(uint32_t, uint32_t, raw)
    case PROA_I64:
        if (mode == PROA_PUT_MODE_AMAX || mode == PROA_PUT_MODE_AMIN) PUT_CASE(int64_t, int64_t, raw)
        else PUT_CASE(uint64_t, uint64_t, raw)
    case PROA_F16: PUT_CASE(float, uint16_t, proa__f16_to_f32(raw))
    case PROA_BF16: PUT_CASE(float, uint16_t, proa__bf16_to_f32(raw))
    case PROA_F64: PUT_CASE(double, double, raw)
    default: PUT_CASE(float, float, raw)
    }
}

#define DIVIDE_CASE(T)           \
    {                            \
        T *at = (T *)(void *)to; \
        *at = (T)(*at / (T)n);   \
        break;                   \
    }

static void divide_one(proa_dtype dtype, char *to, int64_t n)
{
    switch (dtype) {
    case PROA_I8: DIVIDE_CASE(int8_t)
    case PROA_U8: DIVIDE_CASE(uint8_t)
    case PROA_I16: DIVIDE_CASE(int16_t)
    case PROA_I32: DIVIDE_CASE(int32_t)
    case PROA_I64: DIVIDE_CASE(int64_t)
    case PROA_F64: DIVIDE_CASE(double)
    default: DIVIDE_CASE(float)
    }
}

/* PUT_TOGETHER: lines of an axis other than the last that advance together, since their elements share cache
 * lines. */
enum { PUT_TOGETHER = 64 };

typedef enum put_kind { PUT_ANY, PUT_4, PUT_8, PUT_SUM } put_kind;

/* A loop over entries: their number, and the steps of indices (elements), data and values (bytes). */
typedef struct put_loop {
    int64_t n, index, data, value;
} put_loop;

static void put_any(const line_job *j, char *to, const char *value)
{
    int64_t *got = j->counts ? (int64_t *)(void *)j->counts + (to - j->acc->data) / j->acc->item : NULL;
    bool first = got && *got == 0 && !j->include_self;
    if (got) ++*got;
    put_one((proa_dtype)j->acc->out->dtype, j->mode, first, to, value);
}

static put_kind kind_of(const line_job *j)
{
    const proa_dtype dtype = (proa_dtype)j->acc->out->dtype;
    if (j->counts || accumulates_half(j->acc)) return PUT_ANY;
    if (j->mode == PROA_PUT_MODE_ADD && dtype == PROA_F32) return PUT_SUM;
    if (j->mode != PROA_PUT_MODE_ASSIGN) return PUT_ANY;
    return j->acc->item == 4 ? PUT_4 : j->acc->item == 8 ? PUT_8 : PUT_ANY;
}

/* Puts all entries of two nested loops. Inlined with constants for `narrow` (int32 indices) and kind. */
static inline __attribute__((always_inline)) void put_entries(const line_job *j, line at, put_loop outer,
                                                              put_loop inner, const bool narrow,
                                                              const put_kind kind)
{
    const int64_t along = j->l.data_along;
    for (int64_t a = 0; a < outer.n; a++) {
        const char *index = j->index->data + (at.index + a * outer.index) * (narrow ? 4 : 8);
        char *data = j->acc->data + at.data + a * outer.data;
        const char *value = j->values + at.value + a * outer.value;
        for (int64_t b = 0; b < inner.n; b++, value += inner.value) {
            int64_t k = narrow ? ((const int32_t *)(const void *)index)[b * inner.index]
                               : ((const int64_t *)(const void *)index)[b * inner.index];
            char *to = data + b * inner.data + k * along;
            if (kind == PUT_4) memcpy(to, value, 4);
            else if (kind == PUT_8) memcpy(to, value, 8);
            else if (kind == PUT_SUM) *(float *)(void *)to += *(const float *)(const void *)value;
            else put_any(j, to, value);
        }
    }
}

#define PUT_KIND(KIND)                                                                 \
    case KIND:                                                                         \
        if (j->index->dtype == PROA_I32) put_entries(j, at, outer, inner, true, KIND); \
        else put_entries(j, at, outer, inner, false, KIND);                            \
        break

/* The entries of a line stay in order: along the axis, line by line, or, if it is not the last axis, a few
 * neighboring lines at a time. */
static void put_lines(int64_t begin, int64_t end, void *context)
{
    const line_job *j = context;
    const lines *l = &j->l;
    const put_kind kind = kind_of(j);
    const int last = l->ndim - 1;
    const put_loop axis = {l->length, l->index_along, 0, l->value_along};
    const bool apart = last < 0 || l->data_along <= l->data_step[last];
    for (int64_t i = begin; i < end;) {
        put_loop outer = {1, 0, 0, 0}, inner = axis;
        if (!apart) {
            int64_t rest = l->shape[last] - i % l->shape[last], n = end - i < rest ? end - i : rest;
            outer = axis;
            inner = (put_loop){n < PUT_TOGETHER ? n : PUT_TOGETHER, l->index_step[last], l->data_step[last],
                               l->value_step[last]};
        }
        line at = line_at(l, i);
        switch (kind) {
            PUT_KIND(PUT_ANY);
            PUT_KIND(PUT_4);
            PUT_KIND(PUT_8);
            PUT_KIND(PUT_SUM);
        }
        i += apart ? 1 : inner.n;
    }
}

PROA_KERNEL(put_along_axis_cpu, put_along_axis)
{
    int axis;
    accumulator acc;
    size_t bytes;
    int64_t places[PROA_MAX_DIMS];
    proa_dtype dtype = (proa_dtype)a->arr->dtype;
    PROA_TRY(proa__axis("put_along_axis", "axis", a->axis, a->arr->ndim, &axis));
    PROA_TRY(check_indices("put_along_axis", "indices", a->indices, a->arr->shape[axis]));
    PROA_TRY(accumulate_begin(&acc, a->out, a->arr));
    bool any = a->out->numel && a->indices->numel,
         counts = a->reduce == PROA_PUT_MODE_MEAN || !a->include_self;
    for (int i = 0; i < a->arr->ndim; i++)
        places[i] =
            i != axis && a->broadcast && a->indices->shape[i] == 1 ? a->arr->shape[i] : a->indices->shape[i];
    line_job j = {.l = lines_of(a->indices, a->out, acc.item, a->values, places, axis),
                  .index = a->indices,
                  .values = a->values->data,
                  .acc = &acc,
                  .mode = a->reduce,
                  .include_self = a->include_self};
    if (any && counts) {
        if (proa__mul_size((size_t)a->out->numel, sizeof(int64_t), &bytes)) j.counts = proa_scratch(bytes);
        if (!j.counts) {
            proa_scratch_free(acc.scratch);
            return proa_error();
        }
        memset(j.counts, 0, bytes);
    }
    if (any) proa__parallel(j.l.count, grain_for(j.l.length * 16), put_lines, &j);
    for (int64_t i = 0; j.counts && a->reduce == PROA_PUT_MODE_MEAN && i < a->out->numel; i++) {
        int64_t n = ((int64_t *)(void *)j.counts)[i];
        if (n) divide_one(dtype, acc.data + i * acc.item, n + a->include_self);
    }
    proa_scratch_free(j.counts);
    return accumulate_end(&acc);
}

/* ---- masks and slices ------------------------------------------------------------------- */

PROA_KERNEL(masked_fill_cpu, masked_fill)
{
    char one[16];
    proa_tensor dst = proa__window(a->out), src = proa__window(a->x);
    int64_t item = (int64_t)proa_dtype_size((proa_dtype)a->x->dtype), steps[PROA_MAX_DIMS];
    proa__scalar_to(&a->value, (proa_dtype)a->x->dtype, 0, one);
    if (a->out->data != a->x->data) {
        proa__expand_window(&src, dst.ndim, dst.shape);
        PROA_TRY(proa__copy_window(&dst, &src));
    }
    broadcast_steps(a->mask, a->out->ndim, a->out->shape, steps);
    int last = a->out->ndim - 1;
    int64_t n = last < 0 ? 1 : a->out->shape[last], along = last < 0 ? 0 : steps[last];
    for (int64_t row = 0; row * n < a->out->numel; row++) {
        int64_t at = 0, rest = row;
        for (int i = last - 1; i >= 0; rest /= a->out->shape[i--]) at += rest % a->out->shape[i] * steps[i];
        for (int64_t i = 0; i < n; i++)
            if (a->mask->data[at + i * along]) copy_item(a->out->data + (row * n + i) * item, one, item);
    }
    return PROA_OK;
}

proa_status proa__set_value_places(const proa_set_value_args *a, proa_cut *c, proa_meta *m);

/* value itself, or a copy of it if it overlaps the destination: x[1:] = x[:-1]. */
static proa_tensor *apart(proa_tensor *value, const proa_tensor *out)
{
    if (!value->storage || value->storage != out->storage) return value;
    int64_t item = (int64_t)proa_dtype_size((proa_dtype)out->dtype), low = 0, high = item;
    for (int i = 0; i < value->ndim; i++) {
        int64_t reach = (value->shape[i] - 1) * value->strides[i];
        *(reach < 0 ? &low : &high) += reach;
    }
    int64_t at = value->data - out->data; /* a plan's tensors share one storage, side by side */
    if (at + high <= 0 || at + low >= out->numel * item) return value;
    proa_meta meta = proa_meta_of(value);
    proa_tensor *copy = proa__tensor_new(&meta);
    return copy && proa__copy(copy, value) == PROA_OK ? copy : NULL;
}

PROA_KERNEL_ANYWHERE(set_value_cpu, set_value)
{
    proa_cut c;
    proa_meta places;
    PROA_TRY(proa__set_value_places(a, &c, &places));
    PROA_TRY(proa__copy(a->out, a->x));
    proa_tensor *value = apart(a->value, a->out);
    if (!value) return proa_error();
    proa_tensor dst = proa__window(a->out), src = proa__window(value);
    proa__cut_window(&c, &dst);
    proa__expand_window(&src, places.ndim, places.shape);
    for (int64_t i = a->none_axes.count - 1; i >= 0; i--) { /* axes of length 1 that only value has */
        for (int k = (int)a->none_axes.at[i]; k + 1 < src.ndim; k++)
            src.shape[k] = src.shape[k + 1], src.strides[k] = src.strides[k + 1];
        src.ndim--;
    }
    proa_status status = proa__copy_window(&dst, &src);
    if (value != a->value) proa_drop(value);
    return status;
}
