/* tril and triu on a GPU. */
#include "devices/cuda/kernel.h"

struct triangle {
    int64_t rows, columns, diagonal, numel;
    bool lower;
};
template <class T> __global__ void triangle_kernel(triangle t, const T *x, T *out)
{
    for (CUDA_EACH(i, t.numel)) {
        int64_t row = i, column = cuda_split(row, t.columns),
                edge = row - cuda_div(row, t.rows) * t.rows + t.diagonal;
        T item = {};
        if (t.lower ? column <= edge : column >= edge) item = x[i];
        out[i] = item;
    }
}

static proa_status triangle_of(cuda_context *c, const proa_tensor *x, const proa_tensor *out,
                               int64_t diagonal, bool lower)
{
    cuda_tensor from = cuda_look(x), to = cuda_look(out);
    if (to.numel == 0) return PROA_OK;
    triangle t = {from.dim(-2), from.dim(-1), diagonal, to.numel, lower};
    int64_t limit = t.rows + t.columns;
    t.diagonal = diagonal > limit ? limit : diagonal < -limit ? -limit : diagonal;
    CUDA_SWITCH_UNIT(cuda_item(from.dtype), T,
                     return cuda_launch(c, cuda_blocks(t.numel), CUDA_BLOCK, triangle_kernel<T>, t,
                                        from.as<T>(), to.as<T>());)
}

CUDA_KERNEL(tril, true) { return triangle_of(c, a->x, a->out, a->diagonal, true); }
CUDA_KERNEL(triu, true) { return triangle_of(c, a->x, a->out, a->diagonal, false); }
