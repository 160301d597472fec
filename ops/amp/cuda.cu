/* Loss scaling on a GPU. The scale, its counters and the flag for infinite gradients stay on the GPU, so that
 * the host does not wait. */
#include "devices/cuda/lists.h"

template <class X>
__global__ void unscale_kernel(cuda_list<1> l, const char *scale, proa_dtype scale_dtype, uint8_t *found)
{
    X factor = (X)(1 / cuda_load<double>(scale, scale_dtype)), probe = 0;
    for (int64_t c = blockIdx.x; c < l.chunks(); c += gridDim.x) {
        cuda_piece<1> piece = cuda_piece<1>::of(l, c);
        proa_dtype d = (proa_dtype)l.dtype[0][piece.i];
        for (CUDA_PIECES(at, n, piece, l.aligned[piece.i])) {
            X x[CUDA_FOUR];
            cuda_some_read<X>(l.at[0][piece.i], d, at, (int)n, x);
            for (int i = 0; i < CUDA_FOUR; i++) { /* x·0 is 0 only for finite x */
                probe += x[i] * 0;
                x[i] *= factor;
            }
            cuda_some_write<X>(l.at[0][piece.i], d, at, (int)n, x);
        }
    }
    if (!(probe == 0)) *found = 1; /* all threads that write write the same value */
}

CUDA_KERNEL_EITHER(check_finite_and_unscale, true)
{
    const proa_tensors *const lists[1] = {&a->xs};
    PROA_TRY(cuda_lists_alike<1>(c, lists, 0));
    const uint8_t none = 0;
    uint8_t *found = cuda_look(a->found_infinite).as<uint8_t>();
    cuda_tensor scale = cuda_look(a->scale);
    const char *at = scale.data;
    proa_dtype d = scale.dtype;
    PROA_TRY(cuda_fill(c, found, &none, 1, 1));
    for (int wide = 0; wide < 2; wide++) {
        auto leave = [&](int64_t i) { return (cuda_look(a->xs.at[i]).dtype == PROA_F64) != wide; };
        PROA_TRY(cuda_each_list<1>(lists, leave, [&](const cuda_list<1> &l) {
            cuda_list<1> list = l;
            unsigned blocks = cuda_blocks(l.chunks(), 1);
            if (wide) return cuda_launch(c, blocks, CUDA_BLOCK, unscale_kernel<double>, list, at, d, found);
            return cuda_launch(c, blocks, CUDA_BLOCK, unscale_kernel<float>, list, at, d, found);
        }));
    }
    return PROA_OK;
}

/* Zeroes the gradients if an infinite one was found. */
__global__ void zero_found_kernel(cuda_list<1> l, const uint8_t *found)
{
    if (!*found) return;
    for (int64_t c = blockIdx.x; c < l.chunks(); c += gridDim.x) {
        cuda_piece<1> piece = cuda_piece<1>::of(l, c);
        proa_dtype d = (proa_dtype)l.dtype[0][piece.i];
        for (CUDA_PIECES(at, n, piece, l.aligned[piece.i])) {
            double zeros[CUDA_FOUR] = {0, 0, 0, 0};
            cuda_some_write<double>(l.at[0][piece.i], d, at, (int)n, zeros);
        }
    }
}

struct scaling_job {
    const uint8_t *found, *stop; /* stop: NULL, or one bool */
    char *scale;
    proa_dtype dtype;
    int32_t *good, *bad;
    int64_t grow_after, shrink_after;
    double grow, shrink;
};

__global__ void update_scaling_kernel(scaling_job j)
{
    if (j.stop && *j.stop) return;
    double scale = cuda_load<double>(j.scale, j.dtype);
    if (*j.found) {
        *j.good = 0;
        if (++*j.bad < j.shrink_after) return;
        *j.bad = 0;
        scale *= j.shrink;
        cuda_store<double>(j.scale, j.dtype, scale < 1 ? 1 : scale);
        return;
    }
    *j.bad = 0;
    if (++*j.good < j.grow_after) return;
    *j.good = 0;
    scale *= j.grow;
    if (j.dtype != PROA_F64) scale = (double)(float)scale;
    if (scale * 0 == 0) cuda_store<double>(j.scale, j.dtype, scale);
}

CUDA_KERNEL_EITHER(update_loss_scaling, true)
{
    const proa_tensors *const lists[1] = {&a->xs};
    PROA_TRY(cuda_lists_alike<1>(c, lists, 0));
    scaling_job j = {};
    j.found = cuda_look(a->found_infinite).as<uint8_t>();
    const uint8_t *found = j.found;
    PROA_TRY(cuda_each_list<1>(lists, cuda_leave_none, [&](const cuda_list<1> &l) {
        cuda_list<1> list = l;
        return cuda_launch(c, cuda_blocks(l.chunks(), 1), CUDA_BLOCK, zero_found_kernel, list, found);
    }));
    if (a->stop_update) return PROA_OK;
    cuda_tensor scale = cuda_look(a->loss_scaling);
    j.stop = cuda_given(a->stop) ? cuda_look(a->stop).as<uint8_t>() : NULL;
    j.scale = scale.data;
    j.dtype = scale.dtype;
    j.good = cuda_look(a->good_steps).as<int32_t>();
    j.bad = cuda_look(a->bad_steps).as<int32_t>();
    j.grow_after = a->incr_every_n_steps;
    j.shrink_after = a->decr_every_n_nan_or_inf;
    j.grow = a->incr_ratio;
    j.shrink = a->decr_ratio;
    return cuda_launch(c, 1, 1, update_scaling_kernel, j);
}
