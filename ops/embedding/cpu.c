/* CPU kernels of embedding and its backward. Backward sums every row in the order of x, whatever the thread
 * count: each thread scans all indices for those of its part of the table, or the indices are sorted by
 * blocks of rows first. May use core, kernels and ops. */
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
    /* backward: order holds the positions in x, sorted by blocks of `block` rows; ends[b] ends those of b */
    int64_t block, *ends, *order;
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

/* Adds row i of d_out to row id of the table's gradient, which counts as zeros if it is the first. */
static void add_row(const lookup *w, int64_t id, int64_t i, bool first)
{
    const int64_t n = w->length;
    if (w->dtype == PROA_F64) {
        double *to = (double *)(void *)w->to + id * n;
        const double *from = (const double *)(const void *)w->from + i * n;
        if (first) memset(to, 0, w->bytes);
        for (int64_t k = 0; k < n; k++) to[k] += from[k];
        return;
    }
    float *to = (w->sums ? w->sums : (float *)(void *)w->to) + id * n, buffer[ROWS_PIECE];
    for (int64_t k = 0; k < n; k += ROWS_PIECE) {
        int64_t piece = n - k < ROWS_PIECE ? n - k : ROWS_PIECE;
        const float *from = rows_load_float(w->dtype, w->from, i * n + k, piece, buffer);
        if (first)
            for (int64_t j = 0; j < piece; j++) to[k + j] = 0 + from[j]; /* 0 + -0 is 0 */
        else
            for (int64_t j = 0; j < piece; j++) to[k + j] += from[j];
    }
}

/* Sums into table rows [begin, end). */
static void scan(int64_t begin, int64_t end, void *context)
{
    const lookup *w = context;
    const int64_t count = end - begin;
    if (w->sums) memset(w->sums + begin * w->length, 0, (size_t)(count * w->length) * sizeof *w->sums);
    else memset(w->to + (size_t)begin * w->bytes, 0, (size_t)count * w->bytes);
    for (int64_t i = 0; i < w->n; i++) {
        int64_t id = rows_get_int(w->id_dtype, w->ids, i);
        if (id >= begin && id < end && id != w->padding) add_row(w, id, i, false);
    }
    if (!w->sums) return;
    rows_store_float(w->dtype, w->to, begin * w->length, count * w->length, w->sums + begin * w->length);
}

/* ---- by blocks -------------------------------------------------------------------------- */

/* MAX_BLOCKS: most blocks of a table, unless they would have more than MAX_BLOCK_ROWS rows. */
enum { MAX_BLOCKS = 1024, MAX_BLOCK_ROWS = 4096, WORD = 64 };

static int64_t blocks_of(const lookup *w) { return (w->rows + w->block - 1) / w->block; }

/* Sorts the positions of x by blocks, without those of the padding. */
static bool sort_positions(lookup *w)
{
    w->block = w->rows / MAX_BLOCKS + 1;
    if (w->block > MAX_BLOCK_ROWS) w->block = MAX_BLOCK_ROWS;
    int64_t blocks = blocks_of(w), sum = 0;
    w->ends = proa_scratch((size_t)(blocks + w->n) * sizeof *w->ends);
    if (!w->ends) return false;
    w->order = w->ends + blocks;
    memset(w->ends, 0, (size_t)blocks * sizeof *w->ends);
    for (int64_t i = 0; i < w->n; i++) {
        int64_t id = rows_get_int(w->id_dtype, w->ids, i);
        if (id != w->padding) w->ends[id / w->block]++;
    }
    for (int64_t b = 0; b < blocks; b++) {
        int64_t count = w->ends[b];
        w->ends[b] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < w->n; i++) {
        int64_t id = rows_get_int(w->id_dtype, w->ids, i);
        if (id != w->padding) w->order[w->ends[id / w->block]++] = i;
    }
    return true;
}

/* Writes the gradient of a block's rows. */
static void scatter_block(const lookup *w, int64_t block, bool nontemporal)
{
    uint64_t seen[MAX_BLOCK_ROWS / WORD];
    int64_t begin = block * w->block, end = begin + w->block < w->rows ? begin + w->block : w->rows;
    memset(seen, 0, (size_t)(end - begin + WORD - 1) / WORD * sizeof *seen);
    for (int64_t k = block ? w->ends[block - 1] : 0; k < w->ends[block]; k++) {
        int64_t id = rows_get_int(w->id_dtype, w->ids, w->order[k]), at = id - begin;
        uint64_t bit = UINT64_C(1) << at % WORD;
        add_row(w, id, w->order[k], !(seen[at / WORD] & bit));
        seen[at / WORD] |= bit;
    }
    for (int64_t id = begin; id < end; id++) {
        char *to = w->to + (size_t)id * w->bytes;
        if (!(seen[(id - begin) / WORD] >> (id - begin) % WORD & 1)) {
            if (nontemporal) nontemporal_zero(to, (int64_t)w->bytes);
            else memset(to, 0, w->bytes);
        } else if (w->sums) {
            rows_store_float(w->dtype, w->to, id * w->length, w->length, w->sums + id * w->length);
        }
    }
}

static void scatter(int64_t begin, int64_t end, void *context)
{
    const lookup *w = context;
    bool nontemporal = nontemporal_pays(w->rows * (int64_t)w->bytes, (int64_t)w->bytes);
    for (int64_t block = begin; block < end; block++) scatter_block(w, block, nontemporal);
    if (nontemporal) proa__copy_nontemporal_end();
}

/* True if sorting pays: rows are long, and most of the table's are zeros or have one summand. */
static bool is_sparse(const lookup *w) { return w->bytes >= MIN_NONTEMPORAL && w->n <= w->rows; }

PROA_KERNEL(embedding_grad_cpu, embedding_grad)
{
    lookup w = rows_of(a->x, a->weight, a->padding_idx, a->d_out, a->d_weight);
    PROA_TRY(check_ids(&w, "embedding_grad"));
    if (a->weight->numel == 0) return PROA_OK;
    if (!rows_in_place(w.dtype)) {
        w.sums = proa_scratch((size_t)a->weight->numel * sizeof(float));
        if (!w.sums) return proa_error();
    }
    proa_status status = PROA_OK;
    int64_t grain = rows_grain(w.length * (w.n / w.rows + 1)); /* n ÷ rows: summands of a row, on average */
    if (!is_sparse(&w)) {
        proa__parallel_scans(w.rows, grain, scan, &w);
    } else if (sort_positions(&w)) {
        proa__parallel(blocks_of(&w), grain / w.block + 1, scatter, &w);
    } else {
        status = proa_error();
    }
    proa_scratch_free(w.ends);
    proa_scratch_free(w.sums);
    return status;
}
