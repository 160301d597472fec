/* Matrix products of integers and complex numbers, which cuBLASLt lacks: tiles in shared memory, sums in
 * int64 (which wraps) or complex double, in the order of the terms. Also dot for all dtypes: one block per
 * row, sums in int64, double or complex double, in an order that the block size fixes. */
#include "devices/cuda/kernel.h"

enum { PLAIN_TILE = 16 };
static_assert(PLAIN_TILE * PLAIN_TILE == CUDA_BLOCK, "a thread an element of a tile");

/* out[batch][m][n] = alpha · x y + beta · d; strides in bytes, 0 where repeated. */
struct plain_product {
    const char *x, *y, *add; /* add NULL: none */
    char *out;
    proa_dtype dtype;
    int dims;
    int64_t item, m, n, k, batches, x_row, x_column, y_row, y_column, add_row, add_column;
    int64_t batch[PROA_MAX_DIMS], x_batch[PROA_MAX_DIMS], y_batch[PROA_MAX_DIMS];
};

template <class A> __global__ void plain_kernel(plain_product p, A alpha, A beta)
{
    __shared__ char memory[2 * CUDA_BLOCK * sizeof(A)] __attribute__((aligned(16)));
    A *xs = (A *)(void *)memory, *ys = xs + CUDA_BLOCK;
    int row = threadIdx.x / PLAIN_TILE, column = threadIdx.x % PLAIN_TILE;
    int64_t across = (p.n + PLAIN_TILE - 1) / PLAIN_TILE, down = (p.m + PLAIN_TILE - 1) / PLAIN_TILE;
    for (int64_t block = blockIdx.x; block < p.batches * down * across; block += gridDim.x) {
        int64_t b = block / across, i = b % down * PLAIN_TILE + row, j = block % across * PLAIN_TILE + column;
        b /= down;
        const char *x = p.x + cuda_offset(p.dims, p.batch, p.x_batch, b) + i * p.x_row;
        const char *y = p.y + cuda_offset(p.dims, p.batch, p.y_batch, b) + j * p.y_column;
        A sum = {}, zero = {};
        for (int64_t k = 0; k < p.k; k += PLAIN_TILE) {
            __syncthreads();
            xs[threadIdx.x] =
                i < p.m && k + column < p.k ? cuda_load<A>(x + (k + column) * p.x_column, p.dtype) : zero;
            ys[threadIdx.x] =
                j < p.n && k + row < p.k ? cuda_load<A>(y + (k + row) * p.y_row, p.dtype) : zero;
            __syncthreads();
            for (int t = 0; t < PLAIN_TILE; t++)
                sum = sum + xs[row * PLAIN_TILE + t] * ys[t * PLAIN_TILE + column];
        }
        if (i >= p.m || j >= p.n) continue;
        sum = sum * alpha;
        if (p.add) sum = sum + beta * cuda_load<A>(p.add + i * p.add_row + j * p.add_column, p.dtype);
        cuda_store<A>(p.out + ((b * p.m + i) * p.n + j) * p.item, p.dtype, sum);
    }
}

/* Rows and columns of a side: its last two dims, or a vector as a row or a column. */
struct plain_side {
    int64_t rows, columns, row, column;
    int core;
};
static plain_side plain_side_of(const cuda_tensor &t, bool transpose, bool upright)
{
    if (t.ndim == 1 && upright) return {t.shape[0], 1, t.strides[0], 0, 1};
    if (t.ndim == 1) return {1, t.shape[0], 0, t.strides[0], 1};
    plain_side s = {t.dim(-2), t.dim(-1), t.strides[t.ndim - 2], t.strides[t.ndim - 1], 2};
    return transpose ? plain_side{s.columns, s.rows, s.column, s.row, 2} : s;
}
static void plain_batch(const cuda_tensor &t, const plain_side &s, int dims, int64_t *steps)
{
    for (int d = 0; d < dims; d++) {
        int at = t.ndim - s.core - (dims - d);
        steps[d] = at < 0 || t.shape[at] == 1 ? 0 : t.strides[at];
    }
}

static proa_status plain(cuda_context *c, const proa_tensor *x_, const proa_tensor *y_, bool transpose_x,
                         bool transpose_y, const proa_tensor *out_, const proa_tensor *add, double alpha,
                         double beta)
{
    cuda_tensor x = cuda_look(x_), y = cuda_look(y_), out = cuda_look(out_);
    plain_side a = plain_side_of(x, transpose_x, false), b = plain_side_of(y, transpose_y, true);
    plain_product p = {x.data,
                       y.data,
                       NULL,
                       out.data,
                       x.dtype,
                       out.ndim - (x.ndim > 1) - (y.ndim > 1),
                       cuda_item(x.dtype),
                       a.rows,
                       b.columns,
                       a.columns,
                       1,
                       a.row,
                       a.column,
                       b.row,
                       b.column};
    if (out.numel == 0) return PROA_OK;
    for (int d = 0; d < p.dims; d++) p.batches *= p.batch[d] = out.shape[d];
    plain_batch(x, a, p.dims, p.x_batch);
    plain_batch(y, b, p.dims, p.y_batch);
    if (cuda_given(add) && beta != 0) {
        cuda_tensor d = cuda_look(add);
        p.add = d.data;
        if (d.ndim > 0 && d.dim(-1) > 1) p.add_column = d.strides[d.ndim - 1];
        if (d.ndim > 1 && d.dim(-2) > 1) p.add_row = d.strides[d.ndim - 2];
    }
    int64_t tiles = p.batches * ((p.m + PLAIN_TILE - 1) / PLAIN_TILE) * ((p.n + PLAIN_TILE - 1) / PLAIN_TILE);
    if (x.dtype > PROA_F64)
        return cuda_launch(c, cuda_blocks(tiles, 1), CUDA_BLOCK, plain_kernel<cuda_c_C128>, p,
                           (cuda_c_C128{alpha, 0}), (cuda_c_C128{beta, 0}));
    return cuda_launch(c, cuda_blocks(tiles, 1), CUDA_BLOCK, plain_kernel<int64_t>, p, (int64_t)alpha,
                       (int64_t)beta);
}

#define PLAIN_DTYPES (CUDA_INTEGERS | CUDA_BIT(C64) | CUDA_BIT(C128))

CUDA_KERNEL(matmul, CUDA_IS(a->x, PLAIN_DTYPES))
{
    return plain(c, a->x, a->y, a->transpose_x, a->transpose_y, a->out, NULL, 1, 0);
}
CUDA_KERNEL(bmm, CUDA_IS(a->x, PLAIN_DTYPES))
{
    return plain(c, a->x, a->y, false, false, a->out, NULL, 1, 0);
}
CUDA_KERNEL(mv, CUDA_IS(a->x, PLAIN_DTYPES))
{
    return plain(c, a->x, a->vec, false, false, a->out, NULL, 1, 0);
}
CUDA_KERNEL(linear, CUDA_IS(a->x, PLAIN_DTYPES))
{
    return plain(c, a->x, a->weight, false, false, a->out, a->bias, 1, 1);
}

/* ---- dot --------------------------------------------------------------------------------- */

struct dot_plan {
    const char *x, *y;
    char *out;
    proa_dtype dtype;
    int64_t item, rows, n, x_row, x_step, y_row, y_step;
};
/* One block per row: the dot product of that row of x and of y. */
template <class A> __global__ void dot_kernel(dot_plan p)
{
    for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
        A sum = {};
        for (int64_t k = threadIdx.x; k < p.n; k += CUDA_BLOCK)
            sum = sum + cuda_load<A>(p.x + row * p.x_row + k * p.x_step, p.dtype) *
                            cuda_load<A>(p.y + row * p.y_row + k * p.y_step, p.dtype);
        sum = cuda_block_reduce<cuda_sum>(sum);
        if (threadIdx.x == 0) cuda_store<A>(p.out + row * p.item, p.dtype, sum);
    }
}

CUDA_KERNEL(dot, true)
{
    cuda_tensor x = cuda_look(a->x), y = cuda_look(a->y), out = cuda_look(a->out);
    dot_plan p = {x.data,   y.data, out.data, x.dtype, cuda_item(x.dtype), x.ndim > 1 ? x.shape[0] : 1,
                  x.dim(-1)};
    p.x_step = x.strides[x.ndim - 1], p.y_step = y.strides[y.ndim - 1];
    if (x.ndim > 1) p.x_row = x.strides[0], p.y_row = y.strides[0];
    if (p.rows == 0) return PROA_OK;
    CUDA_SWITCH_SUM(x.dtype, A, return cuda_launch(c, cuda_blocks(p.rows, 1), CUDA_BLOCK, dot_kernel<A>, p););
}
