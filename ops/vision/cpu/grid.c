/* Kernels of grid_sample, its gradient, and affine_grid. May use core and kernels only. */
#include "kernels/rowwise.h"
#include "ops/vision/vision.h"

#include <math.h>

typedef struct grid_job {
    int dims; /* 2 or 3 */
    bool corners, nearest;
    proa_sample_padding padding;
    int64_t channels, pixels, points, in[3];
    const void *x, *grid, *d_out;
    void *out, *d_x, *d_grid;
} grid_job;

typedef struct affine_job {
    int dims;
    bool corners;
    int64_t points, size[3];
    const void *theta;
    void *out;
} affine_job;

#define T float
#include "grid.inc"
#undef T
#define T double
#include "grid.inc"
#undef T

static grid_job grid_of(const proa_tensor *x, const proa_tensor *grid, proa_sample_mode mode,
                        proa_sample_padding padding, bool corners)
{
    grid_job j = {.dims = x->ndim - 2,
                  .corners = corners,
                  .nearest = mode == PROA_SAMPLE_MODE_NEAREST,
                  .padding = padding,
                  .channels = x->shape[1],
                  .pixels = 1,
                  .points = 1,
                  .x = x->data,
                  .grid = grid->data};
    for (int i = 0; i < j.dims; i++) {
        j.in[i] = x->shape[i + 2];
        j.pixels *= x->shape[i + 2];
        j.points *= grid->shape[i + 1];
    }
    return j;
}

PROA_KERNEL(grid_sample_cpu, grid_sample)
{
    grid_job j = grid_of(a->x, a->grid, a->mode, a->padding_mode, a->align_corners);
    j.out = a->out->data;
    if (a->out->numel == 0) return PROA_OK;
    proa__parallel(a->x->shape[0] * j.points, rows_grain(j.channels << j.dims),
                   a->x->dtype == PROA_F64 ? sample_double : sample_float, &j);
    return PROA_OK;
}

PROA_KERNEL(grid_sample_grad_cpu, grid_sample_grad)
{
    grid_job j = grid_of(a->x, a->grid, a->mode, a->padding_mode, a->align_corners);
    j.d_out = a->d_out->data, j.d_x = a->d_x->data, j.d_grid = a->d_grid->data;
    proa__parallel(a->x->shape[0], rows_grain(j.points * j.channels),
                   a->x->dtype == PROA_F64 ? sample_back_double : sample_back_float, &j);
    return PROA_OK;
}

PROA_KERNEL(affine_grid_cpu, affine_grid)
{
    const proa_tensor *out = a->out;
    affine_job j = {.dims = out->ndim - 2,
                    .corners = a->align_corners,
                    .points = 1,
                    .theta = a->theta->data,
                    .out = out->data};
    for (int i = 0; i < j.dims; i++) j.points *= j.size[i] = out->shape[i + 1];
    if (out->numel == 0) return PROA_OK;
    proa__parallel(out->shape[0] * j.points, 1024, out->dtype == PROA_F64 ? affine_double : affine_float, &j);
    return PROA_OK;
}
