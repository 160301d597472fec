/* Linear layer with gelu, its backward, and the weight gradient of a linear layer on a GPU. Bias, gelu and
 * bias gradient are epilogues of cuBLASLt where it has them, otherwise separate kernels. */
#define PROA_FORMULAS_ACTIVATION 1
#define PROA_FORMULAS_TRIG 1
#include "ops/matmul/cuda/padded.h"

#include "devices/cuda/block.h"
#include "ops/elementwise/cuda/epilogue.h"
#include "ops/reduce/cuda/reduce.h"

/* A tensor as contiguous rows of its last dim. */
struct linear_rows {
    char *data;
    int64_t rows, columns;
    void *copy;
};

static proa_status rows_of(cuda_context *c, const proa_tensor *t, linear_rows *to)
{
    cuda_tensor f = cuda_look(t);
    to->copy = NULL;
    PROA_TRY(cuda_pack_tensor(c, &f, &to->copy));
    to->data = f.data;
    to->columns = f.dim(-1);
    to->rows = to->columns ? f.numel / to->columns : 0;
    return PROA_OK;
}

/* Multiplies the rows of x and y, neither empty, by one cuBLASLt call whose other fields `fill` sets. */
template <class F>
static proa_status rows_product(cuda_context *c, const proa_tensor *x, const proa_tensor *y, F fill)
{
    linear_rows u = {}, v = {};
    proa_status status = rows_of(c, x, &u);
    if (status == PROA_OK) status = rows_of(c, y, &v);
    cuda_gemm g = {};
    g.dtype = cuda_look(x).dtype;
    g.alpha = 1;
    g.batches = 1;
    g.x = u.data, g.ldx = u.columns;
    g.y = v.data, g.ldy = v.columns;
    if (status == PROA_OK) status = fill(g, u, v);
    if (u.copy) cuda_scratch_free(c, u.copy);
    if (v.copy) cuda_scratch_free(c, v.copy);
    return status;
}

struct row_sums {
    typedef double A;
    typedef double L;
    int64_t item;
    CUDA_CALL A start() const { return 0; }
    CUDA_CALL A term(L x) const { return x; }
    CUDA_CALL L end(A v, int64_t) const { return v; }
};

static proa_status sum_rows(cuda_context *c, const proa_tensor *x, const proa_tensor *to)
{
    return reduce<cuda_sum>(c, reduce_plan_of(to, x, (1u << (cuda_look(x).ndim - 1)) - 1), row_sums{0});
}

/* Runs g with its epilogue in cuBLASLt; if that declines, g without epilogue, then `after`, which applies
 * it. */
template <class After> static proa_status either(cuda_context *c, cuda_gemm g, After after)
{
    proa_status status = cuda_padded_gemm(c, &g);
    if (status != PROA_DECLINED) return status;
    g.epilogue = CUDA_KEEP;
    g.sums = g.aux = NULL;
    PROA_TRY(cuda_padded_gemm(c, &g));
    return after();
}

static bool some(const proa_tensor *x, const proa_tensor *y)
{
    return CUDA_IS(x, CUDA_FLOATS) && cuda_look(x).ndim > 1 && cuda_look(x).numel > 0 &&
           cuda_look(y).numel > 0;
}

template <class X> struct gelu_fn;
#define GELU(D, X)                                                                \
    template <> struct gelu_fn<X> {                                               \
        typedef X T;                                                              \
        typedef X R;                                                              \
        CUDA_CALL R operator()(T x) const { return gelu_on_##D(x); }              \
        CUDA_CALL R operator()(T x, T g) const { return gelu_grad_on_##D(x, g); } \
    };
GELU(F32, float)
GELU(F64, double)

CUDA_KERNEL(linear_gelu, some(a->x, a->weight))
{
    cuda_tensor out = cuda_look(a->out), pre = cuda_look(a->pre), bias = {};
    bool biased = cuda_given(a->bias), joins = false;
    if (biased) {
        bias = cuda_look(a->bias);
        joins = bias.shape[0] == out.dim(-1) && bias.strides[0] == cuda_item(bias.dtype);
    }
    auto fill = [&](cuda_gemm g, const linear_rows &x, const linear_rows &w) {
        g.m = x.rows, g.n = w.columns, g.k = x.columns;
        g.out = out.data;
        g.bias = joins ? bias.data : NULL;
        g.aux = pre.data;
        g.epilogue = CUDA_GELU_TANH;
        if (joins == biased) {
            proa_status status = cuda_padded_gemm(c, &g);
            if (status != PROA_DECLINED) return status;
        }
        g.out = pre.data;
        g.bias = g.aux = NULL;
        g.epilogue = CUDA_KEEP;
        PROA_TRY(cuda_padded_gemm(c, &g));
        if (biased) PROA_TRY(cuda_epilogue_run(c, a->pre, a->bias, PROA_FUSED_ACTIVATION_NONE, 0, 0));
        proa_tensor *t[] = {a->out, a->pre};
        return out.dtype == PROA_F64 ? cuda_map_run<1>(c, t, gelu_fn<double>{})
                                     : cuda_map_run<1>(c, t, gelu_fn<float>{});
    };
    return rows_product(c, a->x, a->weight, fill);
}

CUDA_KERNEL(linear_gelu_grad, some(a->d_out, a->weight))
{
    cuda_tensor to = cuda_look(a->d_pre), pre = cuda_look(a->pre);
    void *copy = NULL;
    PROA_TRY(cuda_pack_tensor(c, &pre, &copy));
    auto fill = [&](cuda_gemm g, const linear_rows &d, const linear_rows &w) {
        g.m = d.rows, g.n = w.rows, g.k = d.columns;
        g.transpose_y = true;
        g.out = to.data;
        g.aux = pre.data;
        g.sums = cuda_look(a->d_bias).data;
        g.epilogue = CUDA_GELU_TANH_GRAD;
        return either(c, g, [&]() {
            proa_tensor *t[] = {a->d_pre, a->pre, a->d_pre};
            PROA_TRY(to.dtype == PROA_F64 ? cuda_map_run<2>(c, t, gelu_fn<double>{})
                                          : cuda_map_run<2>(c, t, gelu_fn<float>{}));
            return sum_rows(c, a->d_pre, a->d_bias);
        });
    };
    proa_status status = rows_product(c, a->d_out, a->weight, fill);
    if (copy) cuda_scratch_free(c, copy);
    return status;
}

CUDA_KERNEL(linear_weight_grad, some(a->x, a->d_out))
{
    auto fill = [&](cuda_gemm g, const linear_rows &x, const linear_rows &d) {
        g.m = x.columns, g.n = d.columns, g.k = x.rows;
        g.transpose_x = true;
        g.out = cuda_look(a->d_weight).data;
        g.sums = cuda_look(a->d_bias).data;
        g.epilogue = CUDA_SUM_Y;
        return either(c, g, [&]() { return sum_rows(c, a->d_out, a->d_bias); });
    };
    return rows_product(c, a->x, a->d_out, fill);
}
