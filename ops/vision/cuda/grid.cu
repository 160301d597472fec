/* grid_sample, its gradient, and affine_grid on a GPU, one thread per sampled point. The image's gradient is
 * summed without atomics: a thread that owns a pixel scans all points in order. */
#include "devices/cuda/kernel.h"

enum { GRID_CORNERS = 8 };

struct grid_plan {
    int dims; /* 2 or 3 */
    bool corners, nearest;
    proa_sample_padding padding;
    int64_t images, channels, pixels, points, in[3];
};

/* Maps a coordinate to a fractional pixel index; *slope is its derivative by the coordinate. */
template <class T> CUDA_FN T grid_place(const grid_plan &j, T v, int64_t size, T *slope)
{
    T last = (T)(size - 1), at;
    *slope = j.corners ? last / 2 : (T)size / 2;
    at = j.corners ? (v + 1) * last / 2 : ((v + 1) * (T)size - 1) / 2;
    if (j.padding == PROA_SAMPLE_PADDING_ZEROS) return at;
    if (j.padding == PROA_SAMPLE_PADDING_REFLECTION) { /* triangle wave between outer centers or edges */
        T low = j.corners ? 0 : (T)-0.5, period = 2 * (j.corners ? last : (T)size), moved = at - low;
        if (period == 0) return *slope = 0;
        if (moved < 0) moved = -moved, *slope = -*slope;
        moved -= (T)(int64_t)(moved / period) * period;
        if (period - moved < moved) moved = period - moved, *slope = -*slope;
        at = moved + low;
    }
    if (!(at > 0) || at >= last) *slope = 0;
    return !(at > 0) ? 0 : at >= last ? last : at;
}

/* The up to 8 pixels round one position: offsets (-1: outside), weights, and (unless NULL) their slopes. */
template <class T>
CUDA_FN void grid_corners(const grid_plan &j, const T *grid, int64_t *at, T *weight, T (*slopes)[3])
{
    int64_t low[3];
    T share[3], slope[3];
    for (int d = 0; d < j.dims; d++) {
        int axis = j.dims - 1 - d; /* the grid's first coordinate is the last axis */
        T place = grid_place(j, grid[d], j.in[axis], &slope[axis]);
        bool far = !(place > -2) || place > (T)j.in[axis] + 1;
        if (far) place = -2; /* all its pixels are outside */
        if (j.nearest) place = (T)round((double)place), slope[axis] = 0;
        low[axis] = (int64_t)floor((double)place);
        share[axis] = place - (T)low[axis];
    }
    for (int k = 0; k < 1 << j.dims; k++) {
        int64_t offset = 0;
        bool inside = true;
        weight[k] = 1;
        for (int d = 0; d < j.dims; d++) {
            int64_t i = low[d] + (k >> d & 1);
            inside = inside && i >= 0 && i < j.in[d];
            offset = offset * j.in[d] + i;
            weight[k] *= k >> d & 1 ? share[d] : 1 - share[d];
        }
        at[k] = inside ? offset : -1;
        for (int d = 0; slopes && d < j.dims; d++) {
            slopes[k][d] = k >> d & 1 ? slope[d] : -slope[d];
            for (int e = 0; e < j.dims; e++)
                if (e != d) slopes[k][d] *= k >> e & 1 ? share[e] : 1 - share[e];
        }
    }
}

template <class T> __global__ void grid_sample_kernel(grid_plan j, const T *x, const T *grid, T *out)
{
    int64_t at[GRID_CORNERS];
    T weight[GRID_CORNERS];
    for (CUDA_EACH(p, j.images * j.points)) {
        int64_t n = p / j.points, i = p % j.points;
        grid_corners<T>(j, grid + p * j.dims, at, weight, NULL);
        for (int64_t c = 0; c < j.channels; c++) {
            const T *plane = x + (n * j.channels + c) * j.pixels;
            T sum = 0;
            for (int k = 0; k < 1 << j.dims; k++)
                if (at[k] >= 0 && weight[k] != 0) sum += weight[k] * plane[at[k]];
            out[(n * j.channels + c) * j.points + i] = sum;
        }
    }
}

/* The grid's gradient, and every point's corners for the image's. */
template <class T>
__global__ void grid_back_kernel(grid_plan j, const T *x, const T *grid, const T *d_out, T *d_grid,
                                 int64_t *places, T *weights)
{
    int64_t at[GRID_CORNERS];
    T weight[GRID_CORNERS], slopes[GRID_CORNERS][3];
    const int corners = 1 << j.dims;
    for (CUDA_EACH(p, j.images * j.points)) {
        int64_t n = p / j.points, i = p % j.points;
        T d[3] = {0, 0, 0};
        grid_corners<T>(j, grid + p * j.dims, at, weight, slopes);
        for (int64_t c = 0; c < j.channels; c++) {
            const T *plane = x + (n * j.channels + c) * j.pixels;
            T g = d_out[(n * j.channels + c) * j.points + i];
            for (int k = 0; k < corners; k++)
                for (int e = 0; at[k] >= 0 && e < j.dims; e++) d[e] += g * plane[at[k]] * slopes[k][e];
        }
        for (int e = 0; e < j.dims; e++) d_grid[p * j.dims + e] = d[j.dims - 1 - e];
        for (int k = 0; k < corners; k++)
            places[p * corners + k] = at[k], weights[p * corners + k] = weight[k];
    }
}

/* One block per plane: each thread owns some pixels and adds the points that touch them in order. */
template <class T>
__global__ void grid_image_kernel(grid_plan j, const int64_t *places, const T *weights, const T *d_out,
                                  T *d_x)
{
    const int corners = 1 << j.dims;
    for (int64_t plane = blockIdx.x; plane < j.images * j.channels; plane += gridDim.x) {
        T *to = d_x + plane * j.pixels;
        const int64_t *at = places + plane / j.channels * j.points * corners;
        const T *weight = weights + plane / j.channels * j.points * corners;
        for (int64_t i = threadIdx.x; i < j.pixels; i += CUDA_BLOCK) to[i] = 0;
        for (int64_t p = 0; p < j.points * corners; p++)
            if (at[p] >= 0 && at[p] % CUDA_BLOCK == threadIdx.x)
                to[at[p]] += d_out[plane * j.points + p / corners] * weight[p];
    }
}

struct affine_plan {
    int dims;
    bool corners;
    int64_t points, size[3];
};

/* Rows of theta times evenly spaced points. */
template <class T> __global__ void affine_kernel(affine_plan j, const T *theta, T *out, int64_t n)
{
    for (CUDA_EACH(p, n)) {
        int64_t rest = p % j.points;
        const T *map = theta + p / j.points * j.dims * (j.dims + 1);
        T at[4] = {0, 0, 0, 0};
        for (int d = 0; d < j.dims; d++) {
            int64_t size = j.size[j.dims - 1 - d], i = rest % size;
            rest /= size;
            T step = j.corners ? (T)i * 2 / (T)(size > 1 ? size - 1 : 1) - 1 : ((T)i * 2 + 1) / (T)size - 1;
            at[d] = size == 1 && j.corners ? -1 : step;
        }
        at[j.dims] = 1;
        for (int r = 0; r < j.dims; r++) {
            T sum = 0;
            for (int k = 0; k <= j.dims; k++) sum += map[r * (j.dims + 1) + k] * at[k];
            out[p * j.dims + r] = sum;
        }
    }
}

/* ---- the ops --------------------------------------------------------------------------- */

static grid_plan plan_of(const cuda_tensor &x, const cuda_tensor &grid, proa_sample_mode mode,
                         proa_sample_padding padding, bool corners)
{
    grid_plan j = {};
    j.dims = x.ndim - 2;
    j.corners = corners;
    j.nearest = mode == PROA_SAMPLE_MODE_NEAREST;
    j.padding = padding;
    j.images = x.shape[0];
    j.channels = x.shape[1];
    j.pixels = j.points = 1;
    for (int i = 0; i < j.dims; i++) {
        j.in[i] = x.shape[i + 2];
        j.pixels *= x.shape[i + 2];
        j.points *= grid.shape[i + 1];
    }
    return j;
}

template <class T>
static proa_status backward(cuda_context *c, const grid_plan &j, const cuda_tensor &x,
                            const cuda_tensor &grid, const cuda_tensor &d_out, const cuda_tensor &d_x,
                            const cuda_tensor &d_grid)
{
    int64_t points = j.images * j.points, each = 1 << j.dims;
    int64_t *places = (int64_t *)cuda_scratch(c, (size_t)(points * each) * (sizeof *places + sizeof(T)));
    if (!places) return cuda_host->error();
    T *weights = (T *)(places + points * each);
    proa_status status = PROA_OK;
    if (points > 0)
        status = cuda_launch(c, cuda_blocks(points), CUDA_BLOCK, grid_back_kernel<T>, j, x.as<T>(),
                             grid.as<T>(), d_out.as<T>(), d_grid.as<T>(), places, weights);
    if (status == PROA_OK && d_x.numel > 0)
        status = cuda_launch(c, cuda_blocks(j.images * j.channels, 1), CUDA_BLOCK, grid_image_kernel<T>, j,
                             places, weights, d_out.as<T>(), d_x.as<T>());
    cuda_scratch_free(c, places);
    return status;
}

CUDA_KERNEL(grid_sample, true)
{
    cuda_tensor x = cuda_look(a->x), grid = cuda_look(a->grid), out = cuda_look(a->out);
    grid_plan j = plan_of(x, grid, a->mode, a->padding_mode, a->align_corners);
    if (out.numel == 0) return PROA_OK;
    CUDA_SWITCH_WIDE(x.dtype, T, {
        return cuda_launch(c, cuda_blocks(j.images * j.points), CUDA_BLOCK, grid_sample_kernel<T>, j,
                           x.as<T>(), grid.as<T>(), out.as<T>());
    });
}

CUDA_KERNEL(grid_sample_grad, true)
{
    cuda_tensor x = cuda_look(a->x), grid = cuda_look(a->grid), d_out = cuda_look(a->d_out);
    cuda_tensor d_x = cuda_look(a->d_x), d_grid = cuda_look(a->d_grid);
    grid_plan j = plan_of(x, grid, a->mode, a->padding_mode, a->align_corners);
    CUDA_SWITCH_WIDE(x.dtype, T, { return backward<T>(c, j, x, grid, d_out, d_x, d_grid); });
}

CUDA_KERNEL(affine_grid, true)
{
    cuda_tensor theta = cuda_look(a->theta), out = cuda_look(a->out);
    affine_plan j = {};
    j.dims = out.ndim - 2;
    j.corners = a->align_corners;
    j.points = 1;
    for (int i = 0; i < j.dims; i++) j.points *= j.size[i] = out.shape[i + 1];
    if (out.numel == 0) return PROA_OK;
    CUDA_SWITCH_WIDE(out.dtype, T, {
        return cuda_launch(c, cuda_blocks(out.numel / j.dims), CUDA_BLOCK, affine_kernel<T>, j, theta.as<T>(),
                           out.as<T>(), out.numel / j.dims);
    });
}
