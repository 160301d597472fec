/* Matrix products of floating-point tensors through cuBLASLt; operands with strides that it does not take are
 * copied first. Bias and activation are its epilogues where it has them, otherwise separate kernels before or
 * after the product; an addend is always written into the output before. */
#define PROA_FORMULAS_ACTIVATION 1
#define PROA_FORMULAS_TRIG 1
#include "ops/matmul/cuda/padded.h"

#include "ops/elementwise/cuda/epilogue.h"

#include <utility>

/* One operand as matrices: how the library reads it. */
struct matmul_side {
    const char *data;
    int64_t rows, columns, ld;
    bool transpose;
    int dims; /* of the batch; strides in bytes, 0 where repeated */
    int64_t strides[PROA_MAX_DIMS];
    void *copy;
};

/* f's last two dims (a vector is a row, or a column) as rows × columns, with `dims` batch dims on the
 * right. */
static proa_status take_side(cuda_context *c, matmul_side *s, cuda_tensor f, bool transpose, bool column,
                             int dims)
{
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
        PROA_TRY(cuda_pack_tensor(c, &f, &s->copy));
        s->data = f.data;
        rs = columns * item;
        by_rows = true;
        for (int d = 0; d < dims; d++) {
            int at = f.ndim - core - (dims - d);
            s->strides[d] = at < 0 || f.shape[at] == 1 ? 0 : f.strides[at];
        }
    }
    s->ld = (by_rows ? rs : cs) / item;
    s->transpose = by_rows ? transpose : !transpose;
    s->rows = transpose ? columns : rows;
    s->columns = transpose ? rows : columns;
    return PROA_OK;
}

/* Batch dims of a product: sizes, and strides in bytes of x, y and the contiguous result. */
struct matmul_batches {
    int dims;
    int64_t size[PROA_MAX_DIMS], x[PROA_MAX_DIMS], y[PROA_MAX_DIMS], out[PROA_MAX_DIMS];
};

/* Most batches of a call that joining makes: a grid's third dim has no more. */
enum { MATMUL_BATCHES = 65535 };

/* The batch dims, neighbors joined where one stride covers both, and the largest of them last. */
static matmul_batches batches_of(const matmul_side *x, const matmul_side *y, const cuda_tensor &out, int dims,
                                 int64_t matrix)
{
    matmul_batches b = {};
    for (int d = dims - 1; d >= 0; matrix *= out.shape[d--]) {
        int last = b.dims - 1; /* from the innermost dim outwards */
        bool joins = last >= 0 && b.size[last] * out.shape[d] <= MATMUL_BATCHES &&
                     x->strides[d] == b.x[last] * b.size[last] && y->strides[d] == b.y[last] * b.size[last];
        if (out.shape[d] == 1) continue;
        if (joins) {
            b.size[last] *= out.shape[d];
            continue;
        }
        b.size[b.dims] = out.shape[d];
        b.x[b.dims] = x->strides[d], b.y[b.dims] = y->strides[d], b.out[b.dims] = matrix;
        b.dims++;
    }
    int most = 0, last = b.dims - 1;
    for (int d = 1; d < b.dims; d++)
        if (b.size[d] > b.size[most]) most = d;
    if (last > 0) {
        std::swap(b.size[most], b.size[last]);
        std::swap(b.x[most], b.x[last]);
        std::swap(b.y[most], b.y[last]);
        std::swap(b.out[most], b.out[last]);
    }
    return b;
}

/* One cuBLASLt call per entry of the outer batch dims; the last one is batched within the call. */
static proa_status run_batches(cuda_context *c, cuda_gemm g, const matmul_side *x, const matmul_side *y,
                               const cuda_tensor &out, int dims)
{
    int64_t item = cuda_item(g.dtype), outer = 1;
    matmul_batches of = batches_of(x, y, out, dims, g.m * g.n * item);
    int last = of.dims - 1;
    g.batches = last >= 0 ? of.size[last] : 1;
    g.x_step = last >= 0 ? of.x[last] / item : 0;
    g.y_step = last >= 0 ? of.y[last] / item : 0;
    g.out_step = last >= 0 ? of.out[last] / item : g.m * g.n;
    for (int d = 0; d < last; d++) outer *= of.size[d];
    for (int64_t b = 0; b < outer; b++) {
        int64_t rest = b, xs = 0, ys = 0, os = 0;
        for (int d = 0; d < last; d++) {
            int64_t k = rest % of.size[d];
            rest /= of.size[d];
            xs += k * of.x[d];
            ys += k * of.y[d];
            os += k * of.out[d];
        }
        g.x = x->data + xs;
        g.y = y->data + ys;
        g.out = out.data + os;
        PROA_TRY(cuda_padded_gemm(c, &g));
    }
    return PROA_OK;
}

/* Merges batches that multiply the same y into one matrix with more rows, if x's layout allows. */
static void flatten(cuda_tensor *x, cuda_tensor *out)
{
    int64_t step = cuda_item(x->dtype);
    for (int d = x->ndim - 1; d >= 0; step *= x->shape[d--])
        if (x->shape[d] != 1 && x->strides[d] != step) return;
    int64_t columns = x->shape[x->ndim - 1], to = out->shape[out->ndim - 1];
    if (columns == 0 || to == 0) return;
    x->shape[0] = out->shape[0] = x->numel / columns;
    x->shape[1] = columns, out->shape[1] = to;
    x->strides[1] = cuda_item(x->dtype), x->strides[0] = columns * x->strides[1];
    x->ndim = out->ndim = 2;
}

/* to = g.alpha · x·y + g.beta · to, and g's bias and epilogue: DECLINED as the library does, before
 * anything is written. */
static proa_status product(cuda_context *c, const proa_tensor *x, const proa_tensor *y, bool transpose_x,
                           bool transpose_y, proa_tensor *to, cuda_gemm g)
{
    cuda_tensor out = cuda_look(to), fx = cuda_look(x), fy = cuda_look(y);
    if (out.numel == 0) return PROA_OK;
    if (fy.ndim == 2 && fx.ndim > 2 && !transpose_x) flatten(&fx, &out);
    int dims = out.ndim - (fx.ndim > 1) - (fy.ndim > 1);
    bool straight_x = transpose_x && fx.ndim > 1, straight_y = transpose_y && fy.ndim > 1;
    matmul_side a = {}, b = {};
    proa_status status = take_side(c, &a, fx, straight_x, false, dims);
    if (status == PROA_OK) status = take_side(c, &b, fy, straight_y, true, dims);
    g.dtype = fx.dtype;
    g.m = a.rows, g.n = b.columns, g.k = a.columns;
    g.ldx = a.ld, g.ldy = b.ld;
    g.transpose_x = a.transpose, g.transpose_y = b.transpose;
    if (status == PROA_OK && g.k == 0) { /* an empty sum; the library refuses it */
        static const double zero = 0;
        if (g.bias || g.epilogue != CUDA_KEEP) status = PROA_DECLINED;
        else if (g.beta == 0) status = cuda_fill(c, out.data, &zero, (size_t)cuda_item(out.dtype), out.numel);
    } else if (status == PROA_OK) {
        status = run_batches(c, g, &a, &b, out, dims);
    }
    if (a.copy) cuda_scratch_free(c, a.copy);
    if (b.copy) cuda_scratch_free(c, b.copy);
    return status;
}

static cuda_gemm scaled(double alpha, double beta)
{
    cuda_gemm g = {};
    g.alpha = alpha, g.beta = beta;
    return g;
}

CUDA_KERNEL(matmul, CUDA_IS(a->x, CUDA_FLOATS))
{
    return product(c, a->x, a->y, a->transpose_x, a->transpose_y, a->out, scaled(1, 0));
}
CUDA_KERNEL(bmm, CUDA_IS(a->x, CUDA_FLOATS))
{
    return product(c, a->x, a->y, false, false, a->out, scaled(1, 0));
}
CUDA_KERNEL(mv, CUDA_IS(a->x, CUDA_FLOATS))
{
    return product(c, a->x, a->vec, false, false, a->out, scaled(1, 0));
}

template <class X> struct addend_fn {
    typedef X T;
    typedef X R;
    T by;
    CUDA_CALL R operator()(T x) const { return x * by; }
};

/* Writes beta · d, broadcast, to out, before a product is added. */
static proa_status fill_with(cuda_context *c, proa_tensor *out, proa_tensor *d, double beta)
{
    proa_tensor *t[] = {out, d};
    if (cuda_look(out).dtype == PROA_F64) return cuda_map_run<1>(c, t, addend_fn<double>{beta});
    return cuda_map_run<1>(c, t, addend_fn<float>{(float)beta});
}

/* out = activation(x·w + bias), the bias of one row in the product where it can be; *done: the activation
 * is applied. */
static proa_status affine(cuda_context *c, const proa_tensor *x, const proa_tensor *w, proa_tensor *bias,
                          proa_tensor *out, cuda_epilogue epilogue, bool *done)
{
    bool biased = cuda_given(bias);
    cuda_gemm g = scaled(1, 0);
    g.epilogue = epilogue;
    *done = true;
    if (biased) {
        cuda_tensor b = cuda_look(bias);
        bool row = b.ndim == 1 && b.shape[0] == cuda_look(out).dim(-1) && b.strides[0] == cuda_item(b.dtype);
        if (row) g.bias = b.data;
    }
    if (!biased || g.bias) {
        proa_status status = product(c, x, w, false, false, out, g);
        if (status != PROA_DECLINED) return status;
    }
    *done = epilogue == CUDA_KEEP;
    if (biased) PROA_TRY(fill_with(c, out, bias, 1));
    return product(c, x, w, false, false, out, scaled(1, biased));
}

CUDA_KERNEL(linear, CUDA_IS(a->x, CUDA_FLOATS))
{
    bool done;
    return affine(c, a->x, a->weight, a->bias, a->out, CUDA_KEEP, &done);
}

/* True unless the residual makes the result larger than the product. */
static bool fused_fits(const proa_tensor *x, const proa_tensor *w, const proa_tensor *out)
{
    cuda_tensor f = cuda_look(x), g = cuda_look(w);
    return CUDA_FLOATS >> f.dtype & 1 && cuda_look(out).numel * f.dim(-1) == f.numel * g.dim(-1);
}

CUDA_KERNEL(linear_fused, fused_fits(a->x, a->weight, a->out))
{
    bool done, adds = cuda_given(a->residual);
    cuda_epilogue epilogue = adds                                               ? CUDA_KEEP
                             : a->activation == PROA_FUSED_ACTIVATION_RELU      ? CUDA_RELU
                             : a->activation == PROA_FUSED_ACTIVATION_GELU_TANH ? CUDA_GELU_TANH
                                                                                : CUDA_KEEP;
    PROA_TRY(affine(c, a->x, a->weight, a->bias, a->out, epilogue, &done));
    if (done && epilogue != CUDA_KEEP) return PROA_OK;
    return cuda_epilogue_run(c, a->out, a->residual, a->activation, a->alpha, a->beta);
}

CUDA_KERNEL(addmm, CUDA_IS(a->x, CUDA_FLOATS))
{
    bool adds = cuda_given(a->input) && a->beta != 0;
    if (adds) PROA_TRY(fill_with(c, a->out, a->input, a->beta));
    return product(c, a->x, a->y, false, false, a->out, scaled(a->alpha, adds));
}
