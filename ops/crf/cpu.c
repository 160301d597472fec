/* Decoding over chains of tags, on the CPU. May use core and the helpers of ops/. */
#include "ops/lod/offsets.h"
#include "ops_impl.h"

#define T float
#include "viterbi.inc"
#undef T
#define T double
#include "viterbi.inc"
#undef T

static proa_status decode_one(const proa_crf_decoding_args *a, int64_t first, int64_t n, char *room)
{
    int64_t tags = a->transition->shape[1], *path = (int64_t *)(void *)a->path->data + first;
    int64_t *from = (int64_t *)(void *)room;
    void *best = from + n * tags, *x = a->emission->data, *w = a->transition->data;
    if (a->emission->dtype == PROA_F64)
        decode_double((const double *)x + first * tags, w, n, tags, best, from, path);
    else decode_float((const float *)x + first * tags, w, n, tags, best, from, path);
    if (proa__absent(a->label)) return PROA_OK;
    const int64_t *label = (const int64_t *)(const void *)a->label->data + first;
    for (int64_t k = 0; k < n; k++) path[k] = path[k] == label[k];
    return PROA_OK;
}

PROA_KERNEL(crf_decoding_cpu, crf_decoding)
{
    bool padded = !proa__absent(a->length);
    int64_t rows = padded ? a->emission->shape[1] : a->emission->shape[0], tags = a->transition->shape[1];
    offsets of = {NULL, a->emission->shape[0]};
    if (!padded) PROA_TRY(offsets_of("crf_decoding", "offsets", a->offsets, rows, &of));
    size_t bytes;
    if (!proa__mul_size((size_t)rows * 16, (size_t)tags, &bytes)) return proa_error();
    char *room = proa_scratch(bytes + 16);
    if (!room) return proa_error();
    memset(a->path->data, 0, (size_t)a->path->numel * sizeof(int64_t));
    proa_status status =
        tags > 0 ? PROA_OK : ROWS_FAIL(crf_decoding, INVALID_ARGUMENT, "transition", "has no tags");
    for (int64_t i = 0; i < of.n && status == PROA_OK; i++) {
        int64_t first = padded ? i * rows : of.at[i];
        int64_t n = padded ? ((const int64_t *)(const void *)a->length->data)[i] : of.at[i + 1] - of.at[i];
        if (n < 0 || n > rows)
            status = ROWS_FAIL(crf_decoding, OUT_OF_RANGE, "length", "entry %lld is %lld; expected 0 to %lld",
                               (long long)i, (long long)n, (long long)rows);
        else status = decode_one(a, first, n, room);
    }
    proa_scratch_free(room);
    return status;
}
