/* CPU kernel of embedding_int8: rows of a table of 8-bit integers, dequantized where they are looked up, with
 * the bits of a dequantized table's rows. Compiled once per CPU level; static functions and the kernel
 * only. */
#include "kernels/rowwise.h"
#include "impl/int8.h"

static int64_t index_at(const proa_embedding_int8_args *a, int64_t i)
{
    return rows_get_int((proa_dtype)a->x->dtype, a->x->data, i);
}

static void gather(int64_t begin, int64_t end, void *context)
{
    const proa_embedding_int8_args *a = context;
    const int64_t n = a->weight->shape[1];
    const float *scale = (const float *)(const void *)a->scale->data;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = index_at(a, i);
        const int8_t *from = (const int8_t *)a->weight->data + row * n;
        const float s = row == a->padding_idx ? 0 : scale[a->scale->numel > 1 ? row : 0];
        float *to = (float *)(void *)a->out->data + i * n;
        for (int64_t k = 0; k < n; k++) to[k] = (float)from[k] * s / 127;
    }
}

PROA_KERNEL(embedding_int8_cpu, embedding_int8)
{
    for (int64_t i = 0; i < a->x->numel; i++) {
        int64_t row = index_at(a, i);
        if (row < 0 || row >= a->weight->shape[0])
            return ROWS_FAIL(embedding_int8, OUT_OF_RANGE, "x",
                             "entry %lld is %lld; expected 0 to %lld (rows of weight)", (long long)i,
                             (long long)row, (long long)a->weight->shape[0] - 1);
    }
    proa__parallel(a->x->numel, rows_grain(a->weight->shape[1]), gather, (void *)(uintptr_t)a);
    return PROA_OK;
}
