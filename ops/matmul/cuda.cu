/* Matrix products through the library; strides that it does not take are copied away first, and a bias
 * or addend is laid into the output before. */
#include "devices/cuda/library.h"

#include "ops/elementwise/cuda.h"

/* One operand as matrices: how the library reads it. */
struct matmul_side {
    const char *data;
    int64_t rows, columns, ld;
    bool transpose;
    int dims; /* of the batch; strides in bytes, 0 where repeated */
    int64_t strides[PROA_MAX_DIMS];
    void *copy;
};

/* t's last two dims (a vector is a row, or a column) as rows × columns, with `dims` batch dims on the
 * right. */
static proa_status take_side(cuda_context *c, matmul_side *s, const proa_tensor *t, bool transpose,
                             bool column, const int64_t *batch, int dims)
{
    cuda_tensor f = cuda_look(t);
    int64_t item = cuda_item(f.dtype);
    bool vector = f.ndim == 1;
    int64_t rows = vector ? (column ? f.shape[0] : 1) : f.shape[f.ndim - 2];
    int64_t columns = vector ? (column ? 1 : f.shape[0]) : f.shape[f.ndim - 1];
    int64_t rs = vector ? (column ? f.strides[0] : f.shape[0] * item) : f.strides[f.ndim - 2];
    int64_t cs = vector ? (column ? item : f.strides[0]) : f.strides[f.ndim - 1];
    int core = vector ? 1 : 2;
    if (rows == 1) rs = columns * item;
    if (columns == 1) cs = item;
    bool by_rows = cs == item && rs % item == 0 && rs >= columns * item;
    bool by_columns = rs == item && cs % item == 0 && cs >= rows * item;
    s->copy = NULL;
    s->data = f.data;
    s->dims = dims;
    for (int d = 0; d < dims; d++) {
        int at = f.ndim - core - (dims - d);
        s->strides[d] = at < 0 || f.shape[at] == 1 ? 0 : f.strides[at];
        if (s->strides[d] % item) by_rows = by_columns = false;
    }
    if (!by_rows && !by_columns) {
        proa_strided_copy copy = {};
        s->copy = cuda_scratch(c, (size_t)(f.numel * item));
        if (!s->copy) return cuda_host->error();
        copy.dst = (char *)s->copy;
        copy.src = f.data;
        copy.item = (size_t)item;
        copy.ndim = f.ndim;
        int64_t step = item;
        for (int d = f.ndim - 1; d >= 0; d--) {
            copy.shape[d] = f.shape[d];
            copy.from[d] = f.strides[d];
            copy.to[d] = step;
            step *= f.shape[d];
        }
        PROA_TRY(cuda_copy_strided(c, &copy));
        s->data = (const char *)s->copy;
        rs = columns * item;
        by_rows = true;
        for (int d = 0; d < dims; d++) {
            int at = f.ndim - core - (dims - d);
            s->strides[d] = at < 0 || f.shape[at] == 1 ? 0 : copy.to[at];
        }
    }
    s->ld = (by_rows ? rs : cs) / item;
    s->transpose = by_rows ? transpose : !transpose;
    s->rows = transpose ? columns : rows;
    s->columns = transpose ? rows : columns;
    (void)batch;
    return PROA_OK;
}

/* One call of the library a batch of the outer dims; the innermost batch dim goes along with it. */
static proa_status run_batches(cuda_context *c, cuda_gemm g, const matmul_side *x, const matmul_side *y,
                               const cuda_tensor &out, int dims)
{
    int64_t item = cuda_item(g.dtype), outer = 1;
    g.batches = dims ? out.shape[dims - 1] : 1;
    g.x_step = dims ? x->strides[dims - 1] / item : 0;
    g.y_step = dims ? y->strides[dims - 1] / item : 0;
    g.out_step = g.m * g.n;
    for (int d = 0; d < dims - 1; d++) outer *= out.shape[d];
    for (int64_t b = 0; b < outer; b++) {
        int64_t rest = b, xs = 0, ys = 0;
        for (int d = dims - 2; d >= 0; d--) {
            int64_t k = rest % out.shape[d];
            rest /= out.shape[d];
            xs += k * x->strides[d];
            ys += k * y->strides[d];
        }
        g.x = x->data + xs;
        g.y = y->data + ys;
        g.out = out.data + b * g.batches * g.out_step * item;
        PROA_TRY(cuda_library_gemm(c, &g));
    }
    return PROA_OK;
}

static proa_status product(cuda_context *c, const proa_tensor *x, const proa_tensor *y, bool transpose_x,
                           bool transpose_y, proa_tensor *to, double alpha, double beta)
{
    cuda_tensor out = cuda_look(to), fx = cuda_look(x), fy = cuda_look(y);
    if (out.numel == 0) return PROA_OK;
    int dims = out.ndim - (fx.ndim > 1) - (fy.ndim > 1);
    bool straight_x = transpose_x && fx.ndim > 1, straight_y = transpose_y && fy.ndim > 1;
    matmul_side a = {}, b = {};
    proa_status status = take_side(c, &a, x, straight_x, false, out.shape, dims);
    if (status == PROA_OK) status = take_side(c, &b, y, straight_y, true, out.shape, dims);
    cuda_gemm g = {};
    g.dtype = fx.dtype;
    g.m = a.rows, g.n = b.columns, g.k = a.columns;
    g.ldx = a.ld, g.ldy = b.ld;
    g.transpose_x = a.transpose, g.transpose_y = b.transpose;
    g.alpha = alpha, g.beta = beta;
    if (status == PROA_OK && g.k == 0) { /* an empty sum; the library refuses it */
        static const double zero = 0;
        if (beta == 0) status = cuda_fill(c, out.data, &zero, (size_t)cuda_item(out.dtype), out.numel);
    } else if (status == PROA_OK) {
        status = run_batches(c, g, &a, &b, out, dims);
    }
    if (a.copy) cuda_scratch_free(c, a.copy);
    if (b.copy) cuda_scratch_free(c, b.copy);
    return status;
}

CUDA_KERNEL(matmul, CUDA_IS(a->x, CUDA_FLOATS))
{
    return product(c, a->x, a->y, a->transpose_x, a->transpose_y, a->out, 1, 0);
}
CUDA_KERNEL(bmm, CUDA_IS(a->x, CUDA_FLOATS)) { return product(c, a->x, a->y, false, false, a->out, 1, 0); }
CUDA_KERNEL(mv, CUDA_IS(a->x, CUDA_FLOATS)) { return product(c, a->x, a->vec, false, false, a->out, 1, 0); }

template <class X> struct addend_fn {
    typedef X T;
    typedef X R;
    T by;
    CUDA_CALL R operator()(T x) const { return x * by; }
};

/* out starts as beta · d, broadcast. */
static proa_status lay(cuda_context *c, proa_tensor *out, proa_tensor *d, double beta)
{
    proa_tensor *t[] = {out, d};
    if (cuda_look(out).dtype == PROA_F64) return cuda_map_run<1>(c, t, addend_fn<double>{beta});
    return cuda_map_run<1>(c, t, addend_fn<float>{(float)beta});
}

CUDA_KERNEL(linear, CUDA_IS(a->x, CUDA_FLOATS))
{
    bool biased = cuda_given(a->bias);
    if (biased) PROA_TRY(lay(c, a->out, a->bias, 1));
    return product(c, a->x, a->weight, false, false, a->out, 1, biased);
}

CUDA_KERNEL(addmm, CUDA_IS(a->x, CUDA_FLOATS))
{
    bool adds = cuda_given(a->input) && a->beta != 0;
    if (adds) PROA_TRY(lay(c, a->out, a->input, a->beta));
    return product(c, a->x, a->y, false, false, a->out, a->alpha, adds);
}
