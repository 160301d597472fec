/* Gathering by index on a GPU, and writes of one value by index or mask (index_fill, masked_fill, one_hot),
 * whose order cannot change the result. A thread moves 1 to 16 bytes of the output at a time, so that memory
 * accesses coalesce. */
#include "ops/elementwise/cuda/elementwise.h"
#include "ops/index/cuda/index.h"

/* ---- whole slices along an axis ---------------------------------------------------------- */

struct take_plan {
    const char *x;
    char *out;
    cuda_indices index;
    int64_t count, length, units, total; /* indices; of the axis; items a slice; items of the output */
};

template <class T> __global__ void take_kernel(take_plan p)
{
    for (CUDA_EACH(i, p.total)) {
        int64_t outer = i, unit = cuda_split(outer, p.units), k = cuda_split(outer, p.count),
                at = p.index.at(k);
        T item = {};
        if (at >= 0) item = ((const T *)(const void *)p.x)[(outer * p.length + at) * p.units + unit];
        ((T *)(void *)p.out)[i] = item;
    }
}

static proa_status take(cuda_context *c, const proa_tensor *x, const proa_tensor *index, int64_t axis,
                        const proa_tensor *out)
{
    cuda_tensor from = cuda_look(x), to = cuda_look(out);
    index_around r = index_around_of(x, axis);
    int64_t bytes = r.inner * cuda_item(from.dtype), unit = cuda_unit(bytes, from.data, to.data);
    take_plan p = {from.data, to.data, cuda_indices_of(c, "index", index, r.length), cuda_look(index).numel,
                   r.length};
    p.units = bytes / unit;
    p.total = r.outer * p.count * p.units;
    if (p.total == 0) return PROA_OK;
    CUDA_SWITCH_UNIT(unit, T, return cuda_launch(c, cuda_blocks(p.total), CUDA_BLOCK, take_kernel<T>, p);)
}

CUDA_KERNEL(gather, true)
{
    int64_t axis = a->axis;
    cuda_ints(&a->axis_tensor, 1, &axis);
    return take(c, a->x, a->index, axis, a->out);
}
CUDA_KERNEL(index_select, true) { return take(c, a->x, a->index, a->axis, a->out); }

/* ---- points ------------------------------------------------------------------------------ */

template <class T>
__global__ void gather_nd_kernel(index_points p, const T *x, T *out, int64_t units, int64_t total)
{
    for (CUDA_EACH(i, total)) {
        int64_t k = i, unit = cuda_split(k, units), row = p.row(k);
        T item = {};
        if (row >= 0) item = x[row * units + unit];
        out[i] = item;
    }
}

CUDA_KERNEL(gather_nd, true)
{
    cuda_tensor x = cuda_look(a->x), out = cuda_look(a->out);
    index_points p = index_points_of(c, a->index, a->x);
    int64_t bytes = p.inner * cuda_item(x.dtype), unit = cuda_unit(bytes, x.data, out.data),
            units = bytes / unit;
    if (out.numel == 0) return PROA_OK;
    CUDA_SWITCH_UNIT(unit, T,
                     return cuda_launch(c, cuda_blocks(p.count * units), CUDA_BLOCK, gather_nd_kernel<T>, p,
                                        x.as<T>(), out.as<T>(), units, p.count * units);)
}

/* ---- along an axis ----------------------------------------------------------------------- */

template <class T> __global__ void take_along_kernel(index_walk w, cuda_indices index, const T *x, T *out)
{
    for (CUDA_EACH(i, w.count)) {
        int64_t at = index.at(w.index_at(i));
        T item = {};
        if (at >= 0) item = x[w.data_at(i, at)];
        out[i] = item;
    }
}

static proa_status take_along(cuda_context *c, const char *argument, const proa_tensor *x,
                              const proa_tensor *index, int64_t axis, const proa_tensor *out)
{
    cuda_tensor from = cuda_look(x), to = cuda_look(out);
    int at = (int)(axis < 0 ? axis + from.ndim : axis);
    if (to.numel == 0) return PROA_OK;
    index_walk w = index_walk_of(index, x, NULL, to.shape, at, false);
    cuda_indices indices = cuda_indices_of(c, argument, index, from.shape[at]);
    CUDA_SWITCH_UNIT(cuda_item(from.dtype), T,
                     return cuda_launch(c, cuda_blocks(w.count), CUDA_BLOCK, take_along_kernel<T>, w, indices,
                                        from.as<T>(), to.as<T>());)
}

CUDA_KERNEL(take_along_axis, true) { return take_along(c, "indices", a->arr, a->indices, a->axis, a->out); }
CUDA_KERNEL(index_sample, true) { return take_along(c, "index", a->x, a->index, 1, a->out); }

/* ---- rows of one of many ----------------------------------------------------------------- */

/* Copies the rows for which index selects tensor k. */
template <class T>
__global__ void multiplex_kernel(cuda_indices index, int64_t k, const T *x, T *out, int64_t units,
                                 int64_t total)
{
    for (CUDA_EACH(i, total)) {
        int64_t row = cuda_div(i, units);
        if ((k ? index.raw(row) : index.at(row)) == k) out[i] = x[i]; /* checked once */
    }
}

CUDA_KERNEL(multiplex, true)
{
    cuda_tensor out = cuda_look(a->out);
    cuda_indices index = cuda_indices_of(c, "index", a->index, a->inputs.count);
    if (out.numel == 0) return PROA_OK;
    int64_t bytes = out.numel / out.shape[0] * cuda_item(out.dtype);
    proa_status s = index_clear(c, a->out); /* rows with an invalid index are zero */
    for (int64_t k = 0; k < a->inputs.count && s == PROA_OK; k++) {
        cuda_tensor x = cuda_look(a->inputs.at[k]);
        int64_t unit = cuda_unit(bytes, x.data, out.data), units = bytes / unit, total = units * out.shape[0];
        CUDA_SWITCH_UNIT(unit, T,
                         s = cuda_launch(c, cuda_blocks(total), CUDA_BLOCK, multiplex_kernel<T>, index, k,
                                         x.as<T>(), out.as<T>(), units, total);)
    }
    return s;
}

struct shards {
    int64_t size, id, ignore, count;
    char *out;
};
__global__ void shard_kernel(shards s, cuda_indices x)
{
    for (CUDA_EACH(i, s.count)) {
        int64_t v = x.at(i), shard = v < 0 ? -1 : cuda_split(v, s.size);
        int64_t to = shard >= 0 && v == s.id ? shard : s.ignore;
        if (x.narrow) ((int32_t *)(void *)s.out)[i] = (int32_t)to;
        else ((int64_t *)(void *)s.out)[i] = to;
    }
}
CUDA_KERNEL(shard_index, true)
{
    cuda_tensor out = cuda_look(a->out);
    shards s = {a->index_num / a->nshards + (a->index_num % a->nshards != 0), a->shard_id, a->ignore_value,
                out.numel, out.data};
    if (s.count == 0) return PROA_OK;
    return cuda_launch(c, cuda_blocks(s.count), CUDA_BLOCK, shard_kernel, s,
                       cuda_indices_of(c, "input", a->input, a->index_num));
}

/* ---- one value --------------------------------------------------------------------------- */

template <class T>
__global__ void index_fill_kernel(cuda_indices index, index_around r, int64_t count, T *out, T value,
                                  int64_t total)
{
    for (CUDA_EACH(i, total)) {
        int64_t outer = i, inner = cuda_split(outer, r.inner), at = index.at(cuda_split(outer, count));
        if (at >= 0) out[(outer * r.length + at) * r.inner + inner] = value;
    }
}

CUDA_KERNEL(index_fill, true)
{
    cuda_tensor out = cuda_look(a->out);
    index_around r = index_around_of(a->x, a->axis);
    int64_t count = cuda_look(a->index).numel, total = r.outer * count * r.inner;
    char one[16];
    cuda_scalar_to(&a->value, out.dtype, one);
    proa_status s = index_start(c, a->out, a->x);
    if (s != PROA_OK || total == 0) return s;
    CUDA_SWITCH_UNIT(cuda_item(out.dtype), T, T value; memcpy(&value, one, sizeof value);
                     return cuda_launch(c, cuda_blocks(total), CUDA_BLOCK, index_fill_kernel<T>,
                                        cuda_indices_of(c, "index", a->index, r.length), r, count,
                                        out.as<T>(), value, total);)
}

template <class T> __global__ void masked_fill_kernel(cuda_map<2> m, T value)
{
    for (CUDA_EACH(i, m.numel)) {
        const char *mask = m.at[2].data + cuda_offset(m.ndim, m.shape, m.at[2].strides, i);
        const char *x = m.at[1].data + cuda_offset(m.ndim, m.shape, m.at[1].strides, i);
        ((T *)(void *)m.at[0].data)[i] = *mask ? value : *(const T *)(const void *)x;
    }
}

CUDA_KERNEL(masked_fill, true)
{
    cuda_map<2> m;
    proa_tensor *t[] = {a->out, a->x, a->mask};
    char one[16];
    if (!cuda_map_fill(&m, t)) return PROA_OK;
    cuda_scalar_to(&a->value, m.at[0].dtype, one);
    CUDA_SWITCH_UNIT(
        cuda_item(m.at[0].dtype), T, T value; memcpy(&value, one, sizeof value);
        return cuda_launch(c, cuda_blocks(m.numel), CUDA_BLOCK, masked_fill_kernel<T>, m, value);)
}

template <class T> __global__ void one_hot_kernel(cuda_indices x, bool any, int64_t count, T *out, T one)
{
    for (CUDA_EACH(i, count)) {
        int64_t v = any ? x.raw(i) : x.at(i);
        if (v >= 0 && v < x.limit) out[i * x.limit + v] = one;
    }
}

CUDA_KERNEL(one_hot, true)
{
    cuda_tensor out = cuda_look(a->out), x = cuda_look(a->x);
    cuda_indices index = cuda_indices_of(c, "x", a->x, out.dim(-1));
    proa_scalar unit = {PROA_SCALAR_INT, 1};
    char one[16];
    cuda_scalar_to(&unit, out.dtype, one);
    proa_status s = index_clear(c, a->out);
    if (s != PROA_OK || x.numel == 0) return s;
    CUDA_SWITCH_UNIT(cuda_item(out.dtype), T, T value; memcpy(&value, one, sizeof value);
                     return cuda_launch(c, cuda_blocks(x.numel), CUDA_BLOCK, one_hot_kernel<T>, index,
                                        a->allow_out_of_range, x.numel, out.as<T>(), value);)
}
