/* CUDA's libraries behind library.h: cuBLASLt. Its algorithm is the heuristic's first, which for one
 * problem on one GPU is always the same; the handle and a workspace belong to the GPU's context. */
#include "devices/cuda/library.h"

#include <cublasLt.h>

namespace
{

constexpr size_t workspace_bytes = size_t(32) << 20;

struct libraries {
    cublasLtHandle_t blas;
    void *workspace;
};

proa_status check(cuda_context *c, cublasStatus_t code, const char *what)
{
    if (code == CUBLAS_STATUS_SUCCESS) return PROA_OK;
    return cuda_fail(PROA_ERR_INTERNAL, "%s on %s: cuBLASLt's %s failed: %s",
                     c->running ? c->running->name : "gemm", c->name, what, cublasLtGetStatusString(code));
}

proa_status handles(cuda_context *c, libraries **to)
{
    if (!c->libraries) {
        libraries *made = static_cast<libraries *>(cuda_host->alloc(sizeof *made));
        if (!made) return cuda_host->error();
        *made = libraries{nullptr, nullptr};
        PROA_TRY(check(c, cublasLtCreate(&made->blas), "start"));
        made->workspace = cuda_scratch(c, workspace_bytes);
        if (!made->workspace) return cuda_host->error();
        c->libraries = made;
    }
    *to = static_cast<libraries *>(c->libraries);
    return PROA_OK;
}

cudaDataType_t type_of(proa_dtype d)
{
    return d == PROA_F64 ? CUDA_R_64F : d == PROA_F32 ? CUDA_R_32F : d == PROA_F16 ? CUDA_R_16F : CUDA_R_16BF;
}

/* What a call makes and must destroy. */
struct problem {
    cublasLtMatmulDesc_t what = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, out = nullptr;
    cublasLtMatmulPreference_t preference = nullptr;
    ~problem()
    {
        if (preference) cublasLtMatmulPreferenceDestroy(preference);
        if (a) cublasLtMatrixLayoutDestroy(a);
        if (b) cublasLtMatrixLayoutDestroy(b);
        if (out) cublasLtMatrixLayoutDestroy(out);
        if (what) cublasLtMatmulDescDestroy(what);
    }
};

/* Memory of rows × columns, column-major, `step` elements from one batch to the next. */
cublasStatus_t layout(cublasLtMatrixLayout_t *to, proa_dtype d, int64_t rows, int64_t columns, int64_t ld,
                      int64_t batches, int64_t step)
{
    int32_t count = (int32_t)batches;
    cublasStatus_t s = cublasLtMatrixLayoutCreate(to, type_of(d), (uint64_t)rows, (uint64_t)columns, ld);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatrixLayoutSetAttribute(*to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatrixLayoutSetAttribute(*to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                             sizeof step);
    return s;
}

/* The bias runs along the rows of the column-major result, which are our columns. */
cublasStatus_t describe_epilogue(problem *p, const cuda_gemm *g)
{
    static const cublasLtEpilogue_t plain[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU,
                                               CUBLASLT_EPILOGUE_GELU};
    static const cublasLtEpilogue_t biased[] = {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS,
                                                CUBLASLT_EPILOGUE_GELU_BIAS};
    if (!g->bias && g->epilogue == CUDA_KEEP) return CUBLAS_STATUS_SUCCESS;
    cublasLtEpilogue_t e = (g->bias ? biased : plain)[g->epilogue];
    cublasStatus_t s = cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_EPILOGUE, &e, sizeof e);
    if (s == CUBLAS_STATUS_SUCCESS && g->bias)
        s = cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &g->bias,
                                           sizeof g->bias);
    return s;
}

/* Row-major out = x·y is column-major outᵀ = yᵀ·xᵀ, and row-major memory read column-major is the
 * transpose: so y comes first, as it lies. */
cublasStatus_t describe(problem *p, const cuda_gemm *g)
{
    bool wide = g->dtype == PROA_F64;
    cublasOperation_t op_y = g->transpose_y ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t op_x = g->transpose_x ? CUBLAS_OP_T : CUBLAS_OP_N;
    bool tf32 = g->dtype == PROA_F32 && cuda_flag("allow_tf32");
    cublasComputeType_t type = wide   ? CUBLAS_COMPUTE_64F
                               : tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                      : CUBLAS_COMPUTE_32F;
    cublasStatus_t s = cublasLtMatmulDescCreate(&p->what, type, wide ? CUDA_R_64F : CUDA_R_32F);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_TRANSA, &op_y, sizeof op_y);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_TRANSB, &op_x, sizeof op_x);
    if (s == CUBLAS_STATUS_SUCCESS) s = describe_epilogue(p, g);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = layout(&p->a, g->dtype, g->transpose_y ? g->k : g->n, g->transpose_y ? g->n : g->k, g->ldy,
                   g->batches, g->y_step);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = layout(&p->b, g->dtype, g->transpose_x ? g->m : g->k, g->transpose_x ? g->k : g->m, g->ldx,
                   g->batches, g->x_step);
    if (s == CUBLAS_STATUS_SUCCESS) s = layout(&p->out, g->dtype, g->n, g->m, g->n, g->batches, g->out_step);
    if (s == CUBLAS_STATUS_SUCCESS) s = cublasLtMatmulPreferenceCreate(&p->preference);
    size_t bytes = workspace_bytes;
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatmulPreferenceSetAttribute(p->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                 &bytes, sizeof bytes);
    return s;
}

} // namespace

proa_status cuda_library_gemm(cuda_context *c, const cuda_gemm *g)
{
    libraries *with;
    problem p;
    cublasLtMatmulHeuristicResult_t found;
    int n = 0;
    PROA_TRY(handles(c, &with));
    PROA_TRY(check(c, describe(&p, g), "description"));
    cublasStatus_t chosen = cublasLtMatmulAlgoGetHeuristic(with->blas, p.what, p.a, p.b, p.out, p.out,
                                                           p.preference, 1, &found, &n);
    if ((g->bias || g->epilogue != CUDA_KEEP) && (chosen == CUBLAS_STATUS_NOT_SUPPORTED || n == 0))
        return PROA_DECLINED;
    PROA_TRY(check(c, chosen, "choice of an algorithm"));
    float alpha = (float)g->alpha, beta = (float)g->beta;
    bool wide = g->dtype == PROA_F64;
    return check(c,
                 cublasLtMatmul(with->blas, p.what, wide ? (const void *)&g->alpha : &alpha, g->y, p.a, g->x,
                                p.b, wide ? (const void *)&g->beta : &beta, g->out, p.out, g->out, p.out,
                                &found.algo, with->workspace, workspace_bytes, (cudaStream_t)c->stream),
                 "product");
}
