/* Stand-in for cuBLASLt, which computes the matrix products of library.h: plain loops that take the same
 * arguments. */
#include "devices/cuda/library.h"

namespace
{

double get(proa_dtype d, const void *p, int64_t i)
{
    switch (d) {
    case PROA_F64: return ((const double *)p)[i];
    case PROA_F32: return ((const float *)p)[i];
    case PROA_F16: return proa__f16_to_f32(((const uint16_t *)p)[i]);
    default: return proa__bf16_to_f32(((const uint16_t *)p)[i]);
    }
}

void put(proa_dtype d, void *p, int64_t i, double v)
{
    switch (d) {
    case PROA_F64: ((double *)p)[i] = v; break;
    case PROA_F32: ((float *)p)[i] = (float)v; break;
    case PROA_F16: ((uint16_t *)p)[i] = proa__f32_to_f16((float)v); break;
    default: ((uint16_t *)p)[i] = proa__f32_to_bf16((float)v); break;
    }
}

} // namespace

/* A column of a matrix, y's or out's, summed. */
static double column_sum(const cuda_gemm *g, int64_t j)
{
    double sum = 0;
    bool of_y = g->epilogue == CUDA_SUM_Y;
    for (int64_t i = 0; i < (of_y ? g->k : g->m); i++)
        sum += of_y ? get(g->dtype, g->y, g->transpose_y ? j * g->ldy + i : i * g->ldy + j)
                    : get(g->dtype, g->out, i * g->n + j);
    return sum;
}

/* gelu's slope, from the same approximation. */
static double gelu_slope(double x)
{
    double k = 0.79788456080286535588, t = tanh(k * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x);
}

/* float64 has no epilogues here, so that callers do them, too; nor has what the library asks of `aux`. */
proa_status cuda_library_gemm(cuda_context *c, const cuda_gemm *g)
{
    if (g->dtype == PROA_F64 && (g->bias || g->epilogue != CUDA_KEEP)) return PROA_DECLINED;
    if (!cuda_epilogue_fits(g)) return PROA_DECLINED;
    cuda_gemm kept = *g;
    if (emulate_keep([=] { cuda_library_gemm(c, &kept); })) return PROA_OK;
    emulate_open();
    for (int64_t b = 0; b < g->batches; b++)
        for (int64_t i = 0; i < g->m; i++)
            for (int64_t j = 0; j < g->n; j++) {
                double sum = 0;
                for (int64_t k = 0; k < g->k; k++) {
                    int64_t x = g->transpose_x ? k * g->ldx + i : i * g->ldx + k;
                    int64_t y = g->transpose_y ? j * g->ldy + k : k * g->ldy + j;
                    sum += get(g->dtype, g->x, b * g->x_step + x) * get(g->dtype, g->y, b * g->y_step + y);
                }
                int64_t at = b * g->out_step + i * g->n + j;
                double old = g->beta != 0 ? g->beta * get(g->dtype, g->out, at) : 0;
                double v = g->alpha * sum + old + (g->bias ? get(g->dtype, g->bias, j) : 0);
                if (g->epilogue == CUDA_RELU && v < 0) v = 0;
                if (g->epilogue == CUDA_GELU_TANH_GRAD) v *= gelu_slope(get(g->dtype, g->aux, at));
                if (g->epilogue == CUDA_GELU_TANH && g->aux) put(g->dtype, g->aux, at, v);
                if (g->epilogue == CUDA_GELU_TANH)
                    v = 0.5 * v * (1 + tanh(0.79788456080286535588 * (v + 0.044715 * v * v * v)));
                put(g->dtype, g->out, at, v);
            }
    for (int64_t j = 0; g->sums && j < g->n; j++) put(g->dtype, g->sums, j, column_sum(g, j));
    emulate_close();
    return PROA_OK;
}
