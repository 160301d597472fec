/* Scattering by index on a GPU where several writes may meet in one element. Sums and put_along_axis sort the
 * writes stably by destination and combine those of each destination in a fixed order; a scatter that
 * overwrites lets the last index of each row write. No atomics on elements, so results are bitwise
 * reproducible. */
#include "ops/index/cuda/index.h"

/* ---- sums by row ------------------------------------------------------------------------- */

enum { SUM_PART = 64 }; /* terms that one thread adds up */

struct sum_plan {
    cuda_order o;
    index_sum s;
    index_walk walk;
    int64_t item, from_item, columns, parts;
};

/* The sum of column `column` of terms [at, end) of the sorted line. */
template <class A> CUDA_FN A sum_terms(const sum_plan &p, int64_t column, int64_t at, int64_t end)
{
    A sum = {};
    int64_t outer = column, inner = cuda_split(outer, p.s.inner);
    for (; at < end; at++) {
        int64_t k = p.o.place(at);
        int64_t element = p.s.walk ? p.walk.value_at(k) : (outer * p.o.length + k) * p.s.inner + inner;
        sum = sum + cuda_load<A>(p.s.from + element * p.from_item, p.s.from_dtype);
    }
    return sum;
}

/* End of the row that term `at` belongs to, searched for up to `limit`. */
CUDA_FN int64_t sum_row_end(const cuda_order &o, int64_t at, int64_t limit)
{
    uint64_t row = o.key(at);
    int64_t low = at + 1, high = limit;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (o.key(mid) == row) low = mid + 1;
        else high = mid;
    }
    return low;
}
CUDA_FN int64_t sum_part_end(const cuda_order &o, int64_t at)
{
    int64_t end = (at / SUM_PART + 1) * SUM_PART;
    return end < o.length ? end : o.length;
}

/* Partial sums of rows that continue from the part before. */
template <class A> __global__ void sum_parts_kernel(sum_plan p, A *part)
{
    for (CUDA_EACH(i, p.parts * p.columns)) {
        int64_t q = i, column = cuda_split(q, p.columns), at = q * SUM_PART;
        uint64_t row = p.o.key(at);
        if (at == 0 || (int64_t)row >= p.s.rows || p.o.key(at - 1) != row) continue;
        part[i] = sum_terms<A>(p, column, at, sum_row_end(p.o, at, sum_part_end(p.o, at)));
    }
}

/* The first term of a row adds those of its own part, then the parts that follow. */
template <class A> __global__ void sum_rows_kernel(sum_plan p, const A *part)
{
    for (CUDA_EACH(i, p.o.length * p.columns)) {
        int64_t at = i, column = cuda_split(at, p.columns);
        uint64_t row = p.o.key(at);
        if ((int64_t)row >= p.s.rows || (at > 0 && p.o.key(at - 1) == row)) continue;
        int64_t end = sum_part_end(p.o, at), last = sum_row_end(p.o, at, end);
        A sum = sum_terms<A>(p, column, at, last);
        for (; last == end && end < p.o.length && p.o.key(end) == row; last = end = sum_part_end(p.o, end))
            sum = sum + part[end / SUM_PART * p.columns + column];
        int64_t outer = column, inner = cuda_split(outer, p.s.inner);
        char *to = p.s.out + ((outer * p.s.rows + (int64_t)row) * p.s.inner + inner) * p.item;
        if (!p.s.replace) sum = cuda_load<A>(to, p.s.dtype) + sum;
        cuda_store<A>(to, p.s.dtype, sum);
    }
}

template <class A> static proa_status sum_rows(cuda_context *c, const sum_plan &p)
{
    A *part = (A *)cuda_scratch(c, (size_t)(p.parts * p.columns) * sizeof *part);
    if (!part) return cuda_host->error();
    proa_status s =
        cuda_launch(c, cuda_blocks(p.parts * p.columns), CUDA_BLOCK, sum_parts_kernel<A>, p, part);
    if (s == PROA_OK)
        s = cuda_launch(c, cuda_blocks(p.o.length * p.columns), CUDA_BLOCK, sum_rows_kernel<A>, p, part);
    cuda_scratch_free(c, part);
    return s;
}

proa_status index_sum_rows(cuda_context *c, cuda_order *o, const index_sum *s)
{
    sum_plan p = {*o, *s, {}, cuda_item(s->dtype), cuda_item(s->from_dtype), s->outer * s->inner};
    p.parts = (o->length + SUM_PART - 1) / SUM_PART;
    if (s->walk) p.walk = *s->walk;
    if (o->length * p.columns == 0) return PROA_OK;
    proa_status status = cuda_sort(c, o);
    p.o = *o;
    if (status == PROA_OK) CUDA_SWITCH_SUM(s->dtype, A, status = sum_rows<A>(c, p););
    return status;
}

/* ---- along an axis ----------------------------------------------------------------------- */

__global__ void sum_index_keys_kernel(cuda_order o, cuda_indices index)
{
    for (CUDA_EACH(i, o.length)) {
        int64_t at = index.at(i);
        o.put_key(i, (uint64_t)(at < 0 ? index.limit : at));
    }
}

/* out[…, index[k], …] += from[…, k, …] */
static proa_status add_slices(cuda_context *c, const proa_tensor *out, int64_t axis, const proa_tensor *index,
                              const proa_tensor *from, bool replace)
{
    cuda_order o;
    cuda_tensor to = cuda_look(out), x = cuda_look(from);
    index_around r = index_around_of(out, axis);
    int64_t n = cuda_look(index).numel;
    if (n == 0 || x.numel == 0) return PROA_OK;
    proa_status s = index_order(c, &o, n, r.length);
    if (s == PROA_OK)
        s = cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, sum_index_keys_kernel, o,
                        cuda_indices_of(c, "index", index, r.length));
    index_sum sum = {x.data, to.data, x.dtype, to.dtype, r.outer, r.inner, r.length, replace, NULL};
    if (s == PROA_OK) s = index_sum_rows(c, &o, &sum);
    cuda_order_free(c, &o);
    return s;
}

CUDA_KERNEL(index_select_grad, true)
{
    proa_status s = index_clear(c, a->d_x);
    return s == PROA_OK ? add_slices(c, a->d_x, a->axis, a->index, a->d_out, false) : s;
}
CUDA_KERNEL(index_add, true)
{
    proa_status s = index_start(c, a->out, a->x);
    return s == PROA_OK ? add_slices(c, a->out, a->axis, a->index, a->value, false) : s;
}

/* ---- rows -------------------------------------------------------------------------------- */

/* owner[row] = 1 + the last index that names the row, which alone writes it; 0: none. */
__global__ void scatter_owners_kernel(cuda_indices index, int64_t count, int64_t *owner)
{
    for (CUDA_EACH(k, count)) {
        int64_t row = index.at(k);
        if (row >= 0) cuda_atomic_max(&owner[row], k + 1);
    }
}
template <class T>
__global__ void scatter_move_kernel(cuda_indices index, const int64_t *owner, const T *updates, T *out,
                                    int64_t units, int64_t total)
{
    for (CUDA_EACH(i, total)) {
        int64_t k = i, unit = cuda_split(k, units), row = index.raw(k);
        if (row >= 0 && row < index.limit && owner[row] == k + 1) out[row * units + unit] = updates[i];
    }
}

static proa_status scatter_last(cuda_context *c, const proa_scatter_args *a, const index_around &r)
{
    cuda_tensor out = cuda_look(a->out), updates = cuda_look(a->updates);
    int64_t count = cuda_look(a->index).numel, bytes = r.inner * cuda_item(out.dtype);
    int64_t unit = cuda_unit(bytes, out.data, updates.data), units = bytes / unit, zero = 0;
    cuda_indices index = cuda_indices_of(c, "index", a->index, r.length);
    if (count * units == 0) return PROA_OK;
    int64_t *owner = (int64_t *)cuda_scratch(c, (size_t)r.length * sizeof *owner);
    if (!owner) return cuda_host->error();
    proa_status s = cuda_fill(c, owner, &zero, sizeof zero, r.length);
    if (s == PROA_OK)
        s = cuda_launch(c, cuda_blocks(count), CUDA_BLOCK, scatter_owners_kernel, index, count, owner);
    if (s == PROA_OK)
        CUDA_SWITCH_UNIT(unit, T,
                         s = cuda_launch(c, cuda_blocks(count * units), CUDA_BLOCK, scatter_move_kernel<T>,
                                         index, owner, updates.as<T>(), out.as<T>(), units, count * units);)
    cuda_scratch_free(c, owner);
    return s;
}

CUDA_KERNEL(scatter, true)
{
    proa_status s = index_start(c, a->out, a->x);
    if (s != PROA_OK) return s;
    if (a->overwrite) return scatter_last(c, a, index_around_of(a->out, 0));
    return add_slices(c, a->out, 0, a->index, a->updates, true);
}

/* ---- points ------------------------------------------------------------------------------ */

__global__ void sum_point_keys_kernel(cuda_order o, index_points p)
{
    for (CUDA_EACH(k, o.length)) {
        int64_t row = p.row(k);
        o.put_key(k, (uint64_t)(row < 0 ? p.rows : row));
    }
}

static proa_status add_points(cuda_context *c, const proa_tensor *out, const proa_tensor *index,
                              const proa_tensor *from)
{
    cuda_order o;
    cuda_tensor to = cuda_look(out), x = cuda_look(from);
    index_points p = index_points_of(c, index, out);
    if (x.numel == 0) return PROA_OK;
    proa_status s = index_order(c, &o, p.count, p.rows);
    if (s == PROA_OK) s = cuda_launch(c, cuda_blocks(p.count), CUDA_BLOCK, sum_point_keys_kernel, o, p);
    index_sum sum = {x.data, to.data, x.dtype, to.dtype, 1, p.inner, p.rows, false, NULL};
    if (s == PROA_OK) s = index_sum_rows(c, &o, &sum);
    cuda_order_free(c, &o);
    return s;
}

CUDA_KERNEL(gather_nd_grad, true)
{
    proa_status s = index_clear(c, a->d_x);
    return s == PROA_OK ? add_points(c, a->d_x, a->index, a->d_out) : s;
}
CUDA_KERNEL(scatter_nd_add, true)
{
    proa_status s = index_start(c, a->out, a->x);
    return s == PROA_OK ? add_points(c, a->out, a->index, a->updates) : s;
}

/* ---- elements along an axis -------------------------------------------------------------- */

__global__ void sum_walk_keys_kernel(cuda_order o, index_walk w, cuda_indices index, int64_t rows)
{
    for (CUDA_EACH(i, o.length)) {
        int64_t at = index.at(w.index_at(i));
        o.put_key(i, (uint64_t)(at < 0 ? rows : w.data_at(i, at)));
    }
}

/* Sorts the entries of a walk by the element of out that each writes to; equal ones keep their order. */
static proa_status walk_order(cuda_context *c, cuda_order *o, const index_walk &w, const proa_tensor *index,
                              const proa_tensor *out, int axis)
{
    cuda_tensor to = cuda_look(out);
    proa_status s = index_order(c, o, w.count, to.numel);
    if (s != PROA_OK) return s;
    return cuda_launch(c, cuda_blocks(w.count), CUDA_BLOCK, sum_walk_keys_kernel, *o, w,
                       cuda_indices_of(c, "indices", index, to.shape[axis]), to.numel);
}

CUDA_KERNEL(take_along_axis_grad, true)
{
    cuda_order o;
    cuda_tensor to = cuda_look(a->d_arr), from = cuda_look(a->d_out);
    int axis = (int)(a->axis < 0 ? a->axis + to.ndim : a->axis);
    proa_status s = index_clear(c, a->d_arr);
    if (s != PROA_OK || from.numel == 0 || to.numel == 0) return s;
    index_walk w = index_walk_of(a->indices, a->d_arr, a->d_out, from.shape, axis, true);
    s = walk_order(c, &o, w, a->indices, a->d_arr, axis);
    index_sum sum = {from.data, to.data, from.dtype, to.dtype, 1, 1, to.numel, false, &w};
    if (s == PROA_OK) s = index_sum_rows(c, &o, &sum);
    cuda_order_free(c, &o);
    return s;
}

struct put_plan {
    cuda_order o;
    index_walk walk;
    const char *values;
    char *out;
    proa_dtype dtype;
    int64_t item, rows;
    proa_put_mode mode;
    bool include_self;
};

template <class A> CUDA_FN A put_join(proa_put_mode mode, A old, A v)
{
    switch (mode) {
    case PROA_PUT_MODE_ASSIGN: return v;
    case PROA_PUT_MODE_MULTIPLY: return old * v;
    case PROA_PUT_MODE_AMAX: return v > old || v != v ? v : old;
    case PROA_PUT_MODE_AMIN: return v < old || v != v ? v : old;
    default: return old + v;
    }
}

/* The thread of an element's first value combines all its values. */
template <class A> __global__ void put_kernel(put_plan p)
{
    for (CUDA_EACH(first, p.o.length)) {
        uint64_t row = p.o.key(first);
        if ((int64_t)row >= p.rows || (first > 0 && p.o.key(first - 1) == row)) continue;
        char *to = p.out + (int64_t)row * p.item;
        A sum = cuda_load<A>(to, p.dtype);
        int64_t at = first;
        for (; at < p.o.length && p.o.key(at) == row; at++) {
            A v = cuda_load<A>(p.values + p.walk.value_at(p.o.place(at)) * p.item, p.dtype);
            sum = at == first && !p.include_self ? v : put_join(p.mode, sum, v);
        }
        if (p.mode == PROA_PUT_MODE_MEAN) {
            cuda_store<A>(to, p.dtype, sum); /* integers wrap before they are divided */
            if (p.dtype <= PROA_I64) sum = cuda_load<A>(to, p.dtype);
            sum = sum / (A)(at - first + p.include_self);
        }
        cuda_store<A>(to, p.dtype, sum);
    }
}

CUDA_KERNEL(put_along_axis, true)
{
    cuda_tensor to = cuda_look(a->out), index = cuda_look(a->indices), values = cuda_look(a->values);
    int axis = (int)(a->axis < 0 ? a->axis + to.ndim : a->axis);
    int64_t places[PROA_MAX_DIMS];
    for (int i = 0; i < to.ndim; i++)
        places[i] = i != axis && a->broadcast && index.shape[i] == 1 ? to.shape[i] : index.shape[i];
    proa_status s = index_start(c, a->out, a->arr);
    if (s != PROA_OK || to.numel == 0 || index.numel == 0) return s;
    put_plan p = {{},
                  index_walk_of(a->indices, a->out, a->values, places, axis, true),
                  values.data,
                  to.data,
                  to.dtype,
                  cuda_item(to.dtype),
                  to.numel,
                  a->reduce,
                  a->include_self};
    s = walk_order(c, &p.o, p.walk, a->indices, a->out, axis);
    if (s == PROA_OK) s = cuda_sort(c, &p.o);
    if (s == PROA_OK && to.dtype <= PROA_I64)
        s = cuda_launch(c, cuda_blocks(p.o.length), CUDA_BLOCK, put_kernel<int64_t>, p);
    else if (s == PROA_OK && to.dtype == PROA_F64)
        s = cuda_launch(c, cuda_blocks(p.o.length), CUDA_BLOCK, put_kernel<double>, p);
    else if (s == PROA_OK) s = cuda_launch(c, cuda_blocks(p.o.length), CUDA_BLOCK, put_kernel<float>, p);
    cuda_order_free(c, &p.o);
    return s;
}
