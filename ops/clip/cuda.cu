/* Clipping by norm on a GPU. Squares are summed in double over fixed chunks, whose sums are added in a fixed
 * order; norms stay on the GPU. */
#include "devices/cuda/lists.h"

__global__ void squares_kernel(cuda_list<1> l, double *parts)
{
    for (int64_t c = blockIdx.x; c < l.chunks(); c += gridDim.x) {
        cuda_piece<1> piece = cuda_piece<1>::of(l, c);
        proa_dtype d = (proa_dtype)l.dtype[0][piece.i];
        double sum = 0;
        for (CUDA_PIECES(at, n, piece, l.aligned[piece.i])) {
            double x[CUDA_FOUR];
            cuda_some_read<double>(l.at[0][piece.i], d, at, (int)n, x);
            for (int i = 0; i < CUDA_FOUR; i++) sum += x[i] * x[i];
        }
        sum = cuda_block_reduce<cuda_sum>(sum);
        if (threadIdx.x == 0) parts[c] = sum;
    }
}

__global__ void add_parts_kernel(const double *parts, int64_t n, char *to, proa_dtype d)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += CUDA_BLOCK) sum += parts[i];
    sum = cuda_block_reduce<cuda_sum>(sum);
    if (threadIdx.x == 0) cuda_store<double>(to, d, sum);
}

/* The sum of squares of all elements of a list into one number of dtype d. */
static proa_status add_squares(cuda_context *c, const proa_tensors *xs, char *to, proa_dtype d)
{
    const proa_tensors *const lists[1] = {xs};
    int64_t chunks = 0, done = 0;
    for (int64_t i = 0; i < xs->count; i++)
        chunks += (cuda_look(xs->at[i]).numel + CUDA_CHUNK - 1) / CUDA_CHUNK;
    double *parts = (double *)cuda_scratch(c, (size_t)(chunks + 1) * sizeof(double));
    if (!parts) return cuda_host->error();
    proa_status status = cuda_each_list<1>(lists, cuda_leave_none, [&](const cuda_list<1> &l) {
        cuda_list<1> list = l;
        double *own = parts + done;
        done += l.chunks();
        return cuda_launch(c, cuda_blocks(l.chunks(), 1), CUDA_BLOCK, squares_kernel, list, own);
    });
    if (status == PROA_OK) status = cuda_launch(c, 1, CUDA_BLOCK, add_parts_kernel, parts, chunks, to, d);
    cuda_scratch_free(c, parts);
    return status;
}

/* Multiplies the entries of list 0 by max / max(norm, max) and writes them to list 1, which may be the
 * same. */
template <class X>
__global__ void clip_norm_kernel(cuda_list<2> l, const char *squared, proa_dtype squared_dtype, double max)
{
    double norm = sqrt(cuda_load<double>(squared, squared_dtype));
    X factor = (X)(norm > max ? max / norm : 1);
    for (int64_t c = blockIdx.x; c < l.chunks(); c += gridDim.x) {
        cuda_piece<2> piece = cuda_piece<2>::of(l, c);
        for (CUDA_PIECES(at, n, piece, l.aligned[piece.i])) {
            X x[CUDA_FOUR];
            cuda_some_read<X>(l.at[0][piece.i], (proa_dtype)l.dtype[0][piece.i], at, (int)n, x);
            for (int i = 0; i < CUDA_FOUR; i++) x[i] *= factor;
            cuda_some_write<X>(l.at[1][piece.i], (proa_dtype)l.dtype[1][piece.i], at, (int)n, x);
        }
    }
}

static proa_status scale_all(cuda_context *c, const proa_tensors *xs, const proa_tensors *outs,
                             const char *squared, proa_dtype d, double max)
{
    const proa_tensors *const lists[2] = {xs, outs};
    for (int wide = 0; wide < 2; wide++) {
        auto leave = [&](int64_t i) { return (cuda_look(xs->at[i]).dtype == PROA_F64) != wide; };
        PROA_TRY(cuda_each_list<2>(lists, leave, [&](const cuda_list<2> &l) {
            cuda_list<2> list = l;
            unsigned blocks = cuda_blocks(l.chunks(), 1);
            if (wide)
                return cuda_launch(c, blocks, CUDA_BLOCK, clip_norm_kernel<double>, list, squared, d, max);
            return cuda_launch(c, blocks, CUDA_BLOCK, clip_norm_kernel<float>, list, squared, d, max);
        }));
    }
    return PROA_OK;
}

CUDA_KERNEL(clip_by_norm, true)
{
    proa_tensor *x[1] = {a->x}, *out[1] = {a->out};
    proa_tensors xs = {1, x}, outs = {1, out};
    char *squared = (char *)cuda_scratch(c, sizeof(double));
    if (!squared) return cuda_host->error();
    proa_status status = add_squares(c, &xs, squared, PROA_F64);
    if (status == PROA_OK) status = scale_all(c, &xs, &outs, squared, PROA_F64, a->max_norm);
    cuda_scratch_free(c, squared);
    return status;
}

CUDA_KERNEL_EITHER(squared_l2_norm, true)
{
    proa_tensor *x[1] = {a->x};
    proa_tensors xs = {1, x};
    cuda_tensor out = cuda_look(a->out);
    return add_squares(c, &xs, out.data, out.dtype);
}

CUDA_KERNEL_EITHER(global_squared_norm, true)
{
    cuda_tensor out = cuda_look(a->out);
    return add_squares(c, &a->xs, out.data, out.dtype);
}

CUDA_KERNEL_EITHER(clip_by_global_norm, true)
{
    const proa_tensors *const lists[1] = {&a->xs};
    PROA_TRY(cuda_lists_alike<1>(c, lists, 0));
    cuda_tensor squared = cuda_look(a->squared_norm);
    return scale_all(c, &a->xs, &a->xs, squared.data, squared.dtype, a->max_norm);
}
