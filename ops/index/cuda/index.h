/* Shared parts of the GPU's index kernels: the view of a tensor as [outer, axis, inner], loops along an axis,
 * and sums by destination. For .cu files. */
#ifndef PROA_OPS_INDEX_CUDA_INDEX_H
#define PROA_OPS_INDEX_CUDA_INDEX_H

#include "devices/cuda/sort.h"

/* A row-major tensor as [outer][length][inner] round one axis. */
struct index_around {
    int64_t outer, length, inner;
};
static inline index_around index_around_of(const proa_tensor *t, int64_t axis)
{
    cuda_tensor x = cuda_look(t);
    index_around r = {1, 1, 1};
    int at = (int)(axis < 0 ? axis + x.ndim : axis);
    for (int i = 0; i < x.ndim; i++) *(i < at ? &r.outer : i == at ? &r.length : &r.inner) *= x.shape[i];
    return r;
}

/* Copies x to out unless they are the same memory. */
static inline proa_status index_start(cuda_context *c, const proa_tensor *out, const proa_tensor *x)
{
    cuda_tensor to = cuda_look(out), from = cuda_look(x);
    return to.data == from.data ? PROA_OK
                                : cuda_move(c, to.data, from.data, (size_t)(to.numel * cuda_item(to.dtype)));
}
static inline proa_status index_clear(cuda_context *c, const proa_tensor *out)
{
    cuda_tensor to = cuda_look(out);
    static const uint64_t zero[2] = {0, 0};
    return cuda_fill(c, to.data, zero, (size_t)cuda_item(to.dtype), to.numel);
}

/* The slices of x that an index tensor selects by its rows of leading coordinates. */
struct index_points {
    cuda_indices index;
    int64_t depth, count, inner, rows, shape[PROA_MAX_DIMS];
    CUDA_MEMBER int64_t row(int64_t k) const
    {
        int64_t row = 0;
        for (int64_t j = 0; j < depth; j++) {
            int64_t v = index.raw(k * depth + j);
            if (v < 0 || v >= shape[j]) {
                cuda_raise(index.report, k * depth + j, v, 0, shape[j] - 1);
                return -1;
            }
            row = row * shape[j] + v;
        }
        return row;
    }
};
static inline index_points index_points_of(const cuda_context *c, const proa_tensor *index,
                                           const proa_tensor *x)
{
    cuda_tensor t = cuda_look(index), d = cuda_look(x);
    index_points p = {cuda_indices_of(c, "index", index, 0), t.ndim ? t.dim(-1) : 1, 1, 1, 1};
    for (int i = 0; i + 1 < t.ndim; i++) p.count *= t.shape[i];
    for (int i = 0; i < d.ndim; i++) *(i < p.depth ? &p.rows : &p.inner) *= p.shape[i] = d.shape[i];
    return p;
}

/* Iteration over the entries of an index tensor along an axis of another tensor; strides in elements, 0 on
 * broadcast axes. */
struct index_walk {
    int ndim;
    int64_t count, shape[PROA_MAX_DIMS], index[PROA_MAX_DIMS], data[PROA_MAX_DIMS], value[PROA_MAX_DIMS];
    int64_t along; /* the step of one index, in elements of data */
    CUDA_MEMBER int64_t index_at(int64_t i) const { return cuda_offset(ndim, shape, index, i); }
    CUDA_MEMBER int64_t data_at(int64_t i, int64_t v) const
    {
        return cuda_offset(ndim, shape, data, i) + v * along;
    }
    CUDA_MEMBER int64_t value_at(int64_t i) const { return cuda_offset(ndim, shape, value, i); }
};

static inline void index_steps(const proa_tensor *tensor, int ndim, const int64_t *places, int64_t *steps)
{
    cuda_tensor t = cuda_look(tensor);
    int64_t step = 1, lead = ndim - t.ndim;
    for (int i = ndim - 1; i >= lead; step *= t.shape[i - lead], i--)
        steps[i] = t.shape[i - lead] == 1 && places[i] != 1 ? 0 : step;
    for (int i = 0; i < lead; i++) steps[i] = 0;
}

/* Walk over the entries of `index`, which has shape `places`: data is indexed along axis, values (may be
 * NULL) have an element per entry. lines: the axis is innermost, which is the order in which the CPU adds. */
static inline index_walk index_walk_of(const proa_tensor *index, const proa_tensor *data,
                                       const proa_tensor *values, const int64_t *places, int axis, bool lines)
{
    cuda_tensor d = cuda_look(data);
    index_walk w = {d.ndim, 1};
    int64_t is[PROA_MAX_DIMS] = {0}, vs[PROA_MAX_DIMS] = {0}, ds[PROA_MAX_DIMS] = {0}, step = 1;
    index_steps(index, d.ndim, places, is);
    if (values) index_steps(values, d.ndim, places, vs);
    for (int i = d.ndim - 1; i >= 0; step *= d.shape[i--]) ds[i] = d.shape[i] == 1 && i != axis ? 0 : step;
    w.along = ds[axis];
    ds[axis] = 0;
    for (int i = 0, at = 0; i < d.ndim; i++, at++) {
        at += lines && at == axis; /* the axis becomes innermost */
        int from = lines && i + 1 == d.ndim ? axis : at;
        w.shape[i] = places[from], w.index[i] = is[from], w.data[i] = ds[from], w.value[i] = vs[from];
        w.count *= places[from];
    }
    return w;
}

/* Adds rows to rows of a tensor: from[o][n][inner] to out[o][rows][inner], for each of `outer`. With a walk
 * (outer and inner are 1), element n is at the walk's value position. */
struct index_sum {
    const char *from;
    char *out;
    proa_dtype from_dtype, dtype;
    int64_t outer, inner, rows;
    bool replace; /* the former content of a row is ignored */
    const index_walk *walk;
};
/* o: one line, whose keys are destination rows; key `rows` means none. Sorts it, and adds each row's terms in
 * their order, in double (integers wrap). */
proa_status index_sum_rows(cuda_context *c, cuda_order *o, const index_sum *s);
/* Allocates an order of n entries with keys in [0, rows]. */
static inline proa_status index_order(cuda_context *c, cuda_order *o, int64_t n, int64_t rows)
{
    int bits = 1;
    while (bits < 63 && rows >> bits) bits++;
    return cuda_order_new(c, o, 1, n, bits);
}

#endif
