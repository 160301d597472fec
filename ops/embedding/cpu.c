/* CPU kernels of embedding and its backward. Backward divides the table's rows among threads; each thread
 * scans all indices in order, so that every row is summed in the order of x, whatever the thread count. May
 * use core, kernels and ops. */
#include "kernels/nontemporal.h"
#include "kernels/rowwise.h"
#include "impl/embedding.h"

typedef struct lookup {
    proa_dtype dtype, id_dtype;
    const void *ids;
    int64_t n, rows, length, padding;
    size_t bytes; /* of a row */
    const char *from;
    char *to;
    float *sums; /* float32 accumulator of half tables */
} lookup;

static lookup rows_of(const proa_tensor *ids, const proa_tensor *weight, int64_t padding,
                      const proa_tensor *from, proa_tensor *to)
{
    return (lookup){.dtype = (proa_dtype)weight->dtype,
                    .id_dtype = (proa_dtype)ids->dtype,
                    .ids = ids->data,
                    .n = ids->numel,
                    .rows = weight->shape[0],
                    .length = weight->shape[1],
                    .bytes = (size_t)weight->shape[1] * proa_dtype_size((proa_dtype)weight->dtype),
                    .padding = padding,
                    .from = from->data,
                    .to = to->data};
}

static proa_status check_ids(const lookup *w, const char *op)
{
    for (int64_t i = 0; i < w->n; i++) {
        int64_t id = rows_get_int(w->id_dtype, w->ids, i);
        if (id < 0 || id >= w->rows)
            return proa__op_fail(PROA_ERR_OUT_OF_RANGE, proa_find_op(op), "x",
                                 "entry %lld is %lld; expected 0 to %lld (rows of weight)", (long long)i,
                                 (long long)id, (long long)w->rows - 1);
    }
    return PROA_OK;
}

/* AHEAD: rows at random addresses of the table are prefetched this many copies before they are read. */
enum { AHEAD = 2, FETCH = 2048, MIN_NONTEMPORAL = 512 };

static void gather(int64_t begin, int64_t end, void *context)
{
    const lookup *w = context;
    bool nontemporal = w->bytes >= MIN_NONTEMPORAL && w->n * (int64_t)w->bytes >= proa__nontemporal_bytes();
    for (int64_t i = begin; i < end; i++) {
        int64_t id = rows_get_int(w->id_dtype, w->ids, i);
        char *to = w->to + (size_t)i * w->bytes;
        const char *next = NULL;
        if (i + AHEAD < end) next = w->from + (size_t)rows_get_int(w->id_dtype, w->ids, i + AHEAD) * w->bytes;
        if (next && !nontemporal)
            nontemporal_prefetch(next, 0, (int64_t)w->bytes < FETCH ? (int64_t)w->bytes : FETCH);
        if (id == w->padding) memset(to, 0, w->bytes);
        else if (nontemporal)
            nontemporal_copy_prefetching(to, w->from + (size_t)id * w->bytes, (int64_t)w->bytes, next);
        else memcpy(to, w->from + (size_t)id * w->bytes, w->bytes);
    }
    if (nontemporal) proa__copy_nontemporal_end();
}

PROA_KERNEL(embedding_cpu, embedding)
{
    lookup w = rows_of(a->x, a->weight, a->padding_idx, a->weight, a->out);
    PROA_TRY(check_ids(&w, "embedding"));
    if (w.bytes) proa__parallel(w.n, rows_grain(w.length), gather, &w);
    return PROA_OK;
}

/* Sums into table rows [begin, end). */
static void scatter(int64_t begin, int64_t end, void *context)
{
    const lookup *w = context;
    const int64_t n = w->length;
    bool wide = w->dtype == PROA_F64, half = !rows_in_place(w->dtype);
    memset(half ? (char *)(w->sums + begin * n) : w->to + (size_t)begin * w->bytes, 0,
           half ? (size_t)(end - begin) * (size_t)n * sizeof(float) : (size_t)(end - begin) * w->bytes);
    for (int64_t i = 0; i < w->n; i++) {
        int64_t id = rows_get_int(w->id_dtype, w->ids, i);
        if (id < begin || id >= end || id == w->padding) continue;
        if (wide) {
            double *to = (double *)(void *)w->to + id * n;
            const double *from = (const double *)(const void *)w->from + i * n;
            for (int64_t k = 0; k < n; k++) to[k] += from[k];
            continue;
        }
        float *to = half ? w->sums + id * n : (float *)(void *)w->to + id * n, buffer[ROWS_PIECE];
        for (int64_t k = 0; k < n; k += ROWS_PIECE) {
            int64_t piece = n - k < ROWS_PIECE ? n - k : ROWS_PIECE;
            const float *from = rows_load_float(w->dtype, w->from, i * n + k, piece, buffer);
            for (int64_t j = 0; j < piece; j++) to[k + j] += from[j];
        }
    }
    if (half) rows_store_float(w->dtype, w->to, begin * n, (end - begin) * n, w->sums + begin * n);
}

PROA_KERNEL(embedding_grad_cpu, embedding_grad)
{
    lookup w = rows_of(a->x, a->weight, a->padding_idx, a->d_out, a->d_weight);
    PROA_TRY(check_ids(&w, "embedding_grad"));
    if (a->weight->numel == 0) return PROA_OK;
    if (!rows_in_place(w.dtype)) {
        w.sums = proa_scratch((size_t)a->weight->numel * sizeof(float));
        if (!w.sums) return proa_error();
    }
    int64_t work = w.n / w.rows + 1; /* rows of d_out for each row of the table, on average */
    proa__parallel(w.rows, rows_grain(w.length * work), scatter, &w);
    proa_scratch_free(w.sums);
    return PROA_OK;
}
