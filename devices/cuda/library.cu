/* Matrix products of library.h through cuBLASLt. The algorithm is the first that cuBLASLt's heuristic
 * proposes, which is always the same for one problem on one GPU; the GPU's context owns the handle, the
 * workspace and a cache of the last problems' descriptors and algorithms. */
#include "devices/cuda/library.h"

#include <cublasLt.h>

namespace
{

constexpr size_t workspace_bytes = size_t(32) << 20;

/* Key of descriptors and algorithm; compared as bytes. */
struct gemm_key {
    int64_t m, n, k, ldx, ldy, batches, x_step, y_step, out_step;
    int dtype, transpose_x, transpose_y, epilogue, biased, has_aux, tf32, adds, align_x, align_y, align_out;
};

/* cuBLASLt's descriptors of one product: operation, matrices, preferences for the algorithm. */
struct problem {
    cublasLtMatmulDesc_t what = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, out = nullptr;
    cublasLtMatmulPreference_t preference = nullptr;
};
void destroy(problem *p)
{
    if (p->preference) cublasLtMatmulPreferenceDestroy(p->preference);
    if (p->a) cublasLtMatrixLayoutDestroy(p->a);
    if (p->b) cublasLtMatrixLayoutDestroy(p->b);
    if (p->out) cublasLtMatrixLayoutDestroy(p->out);
    if (p->what) cublasLtMatmulDescDestroy(p->what);
    *p = problem{};
}

struct kept_problem {
    gemm_key key;
    problem p;
    cublasLtMatmulAlgo_t algorithm;
    bool declined; /* the library has no algorithm for this bias or epilogue */
};

enum { PROBLEMS = 128 };
struct libraries {
    cublasLtHandle_t blas;
    void *workspace;
    unsigned used; /* entries made so far: a new one replaces the one made longest ago */
    kept_problem problems[PROBLEMS];
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
        memset(static_cast<void *>(made), 0, sizeof *made);
        PROA_TRY(check(c, cublasLtCreate(&made->blas), "start"));
        made->workspace = cuda_keep(c, workspace_bytes);
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

/* Matrix layout of rows × columns, column-major, with `step` elements between batches. */
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

/* The bias runs along the rows of the column-major result, which are our columns; y is the library's A. */
cublasLtEpilogue_t epilogue_of(const cuda_gemm *g)
{
    switch (g->epilogue) {
    case CUDA_RELU: return g->bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case CUDA_GELU_TANH:
        if (g->aux) return g->bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
        return g->bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case CUDA_GELU_TANH_GRAD: return CUBLASLT_EPILOGUE_DGELU_BGRAD;
    case CUDA_SUM_Y: return CUBLASLT_EPILOGUE_BGRADA;
    default: return g->bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    }
}

cublasStatus_t describe_epilogue(problem *p, const cuda_gemm *g)
{
    cublasLtEpilogue_t e = epilogue_of(g);
    cublasStatus_t s = cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_EPILOGUE, &e, sizeof e);
    int64_t ld = g->n;
    if (s == CUBLAS_STATUS_SUCCESS && g->aux)
        s = cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld);
    return s;
}

/* Stores a call's addresses in the descriptors; sums are written to the bias address. */
cublasStatus_t set_pointers(problem *p, const cuda_gemm *g)
{
    const void *bias = g->sums ? g->sums : g->bias;
    cublasStatus_t s = CUBLAS_STATUS_SUCCESS;
    if (bias)
        s = cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    if (s == CUBLAS_STATUS_SUCCESS && g->aux)
        s = cublasLtMatmulDescSetAttribute(p->what, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &g->aux,
                                           sizeof g->aux);
    return s;
}

/* Alignment of an address in bytes, at most 256, which the library assumes by default; 256 for NULL. */
int alignment(const void *p)
{
    uintptr_t at = (uintptr_t)p, low = at & (~at + 1);
    return at == 0 || low > 256 ? 256 : (int)low;
}

gemm_key key_of(const cuda_gemm *g)
{
    gemm_key k;
    memset(&k, 0, sizeof k);
    k.m = g->m, k.n = g->n, k.k = g->k, k.ldx = g->ldx, k.ldy = g->ldy;
    k.batches = g->batches, k.x_step = g->x_step, k.y_step = g->y_step, k.out_step = g->out_step;
    k.dtype = g->dtype, k.transpose_x = g->transpose_x, k.transpose_y = g->transpose_y;
    k.epilogue = g->epilogue, k.biased = g->bias != NULL, k.has_aux = g->aux != NULL, k.adds = g->beta != 0;
    k.tf32 = g->dtype == PROA_F32 && cuda_rounded_products(g->dtype);
    k.align_x = alignment(g->x), k.align_y = alignment(g->y), k.align_out = alignment(g->out);
    return k;
}

/* Row-major out = x·y is column-major outᵀ = yᵀ·xᵀ, and row-major memory read column-major is the
 * transpose: so y comes first, as it is stored. */
cublasStatus_t describe(problem *p, const cuda_gemm *g, const gemm_key &key)
{
    bool wide = g->dtype == PROA_F64;
    cublasOperation_t op_y = g->transpose_y ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t op_x = g->transpose_x ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasComputeType_t type = wide       ? CUBLAS_COMPUTE_64F
                               : key.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
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
    const struct {
        cublasLtMatmulPreferenceAttributes_t what;
        int bytes;
    } aligned[] = {{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.align_y},
                   {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.align_x},
                   {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.align_out},
                   {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.align_out}};
    for (const auto &a : aligned) {
        uint32_t least = (uint32_t)a.bytes;
        if (s == CUBLAS_STATUS_SUCCESS)
            s = cublasLtMatmulPreferenceSetAttribute(p->preference, a.what, &least, sizeof least);
    }
    return s;
}

/* Makes descriptors and algorithm of a new problem, in place of the oldest entry. */
proa_status choose(cuda_context *c, libraries *with, const cuda_gemm *g, const gemm_key &key,
                   kept_problem **to)
{
    kept_problem *k = &with->problems[with->used % PROBLEMS];
    cublasLtMatmulHeuristicResult_t found;
    int n = 0;
    destroy(&k->p);
    memset(&k->key, 0, sizeof k->key); /* m = 0 marks the entry as unused until it is complete */
    PROA_TRY(check(c, describe(&k->p, g, key), "description"));
    PROA_TRY(check(c, set_pointers(&k->p, g), "description"));
    cublasStatus_t code = cublasLtMatmulAlgoGetHeuristic(with->blas, k->p.what, k->p.a, k->p.b, k->p.out,
                                                         k->p.out, k->p.preference, 1, &found, &n);
    k->declined = (g->bias || g->epilogue != CUDA_KEEP) && (code != CUBLAS_STATUS_SUCCESS || n == 0);
    if (!k->declined) PROA_TRY(check(c, code, "choice of an algorithm"));
    k->algorithm = found.algo;
    k->key = key;
    with->used++;
    *to = k;
    return PROA_OK;
}

} // namespace

proa_status cuda_library_gemm(cuda_context *c, const cuda_gemm *g)
{
    libraries *with;
    kept_problem *k = nullptr;
    if (!cuda_epilogue_fits(g)) return PROA_DECLINED;
    gemm_key key = key_of(g);
    PROA_TRY(handles(c, &with));
    for (unsigned i = 0; i < PROBLEMS && i < with->used && !k; i++)
        if (!memcmp(&with->problems[i].key, &key, sizeof key)) k = &with->problems[i];
    if (!k) PROA_TRY(choose(c, with, g, key, &k));
    if (k->declined) return PROA_DECLINED;
    PROA_TRY(check(c, set_pointers(&k->p, g), "description"));
    float alpha = (float)g->alpha, beta = (float)g->beta;
    bool wide = g->dtype == PROA_F64;
    return check(c,
                 cublasLtMatmul(with->blas, k->p.what, wide ? (const void *)&g->alpha : &alpha, g->y, k->p.a,
                                g->x, k->p.b, wide ? (const void *)&g->beta : &beta, g->out, k->p.out, g->out,
                                k->p.out, &k->algorithm, with->workspace, workspace_bytes,
                                (cudaStream_t)c->stream),
                 "product");
}
