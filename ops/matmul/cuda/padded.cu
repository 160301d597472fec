/* Padded copies of the operands of a large product, and the result's copy back (padded.h). */
#include "ops/matmul/cuda/padded.h"

/* ---- rows at any address ----------------------------------------------------------------- */

/* A matrix of `rows` rows of `bytes` bytes, `pitch` bytes apart. */
struct padded_rows {
    const char *data;
    int64_t rows, bytes, pitch;
};

typedef cuda_pack<uint32_t, 4> padded_word;

/* 16 bytes from an address that is a multiple of 2, by aligned loads. Every granule of 16 bytes that is read
 * holds some of them. */
CUDA_FN padded_word padded_read(const char *at)
{
    unsigned skip = (unsigned)((uintptr_t)at & 15);
    const padded_word *p = (const padded_word *)(const void *)(at - skip);
    padded_word low = p[0], high = p[skip != 0];
    uint32_t w[8];
#pragma unroll
    for (int i = 0; i < 4; i++) w[i] = low.at[i], w[4 + i] = high.at[i];
    if (skip & 8) {
#pragma unroll
        for (int i = 0; i < 6; i++) w[i] = w[i + 2];
    }
    if (skip & 4) {
#pragma unroll
        for (int i = 0; i < 5; i++) w[i] = w[i + 1];
    }
    padded_word out;
#pragma unroll
    for (int i = 0; i < 4; i++)
        out.at[i] = skip & 2 ? (uint32_t)(((uint64_t)w[i + 1] << 32 | w[i]) >> 16) : w[i];
    return out;
}

/* One block per row of `to`: `from`'s row, zeros behind it and in rows that `from` does not have. Pitches and
 * addresses are multiples of 2 bytes. */
__global__ void padded_copy_kernel(padded_rows from, char *__restrict__ to, int64_t to_bytes,
                                   int64_t to_pitch)
{
    char *row = to + blockIdx.x * to_pitch;
    const char *at = from.data + blockIdx.x * from.pitch;
    int64_t has = blockIdx.x < from.rows ? (from.bytes < to_bytes ? from.bytes : to_bytes) : 0;
    int64_t head = (int64_t)(-(uintptr_t)row & 15);
    head = head < has ? head : has;
    int64_t words = (has - head) / 16, tail = head + words * 16;
    for (int64_t i = 2 * threadIdx.x; i < head; i += 2 * blockDim.x)
        *(uint16_t *)(void *)(row + i) = *(const uint16_t *)(const void *)(at + i);
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < words; i += blockDim.x)
        *(padded_word *)(void *)(row + head + 16 * i) = padded_read(at + head + 16 * i);
    for (int64_t i = tail + 2 * threadIdx.x; i < to_bytes; i += 2 * blockDim.x)
        *(uint16_t *)(void *)(row + i) = i < has ? *(const uint16_t *)(const void *)(at + i) : (uint16_t)0;
}

static proa_status padded_copy(cuda_context *c, padded_rows from, void *to, int64_t rows, int64_t bytes,
                               int64_t pitch)
{
    if (rows == 0 || bytes == 0) return PROA_OK;
    return cuda_launch(c, (unsigned)rows, CUDA_BLOCK, padded_copy_kernel, from, (char *)to, bytes, pitch);
}

/* ---- the product ------------------------------------------------------------------------- */

static int64_t rounded(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/* Below this the copies cost more than the library's slower kernels. */
enum { PADDED_LEAST = 256 };

/* Scratch memory of one padded product; freed whatever happens. */
enum { PADDED_PARTS = 5 };
struct padded_parts {
    cuda_context *c;
    int64_t item;
    void *made[PADDED_PARTS];
    int n;
};

static proa_status part(padded_parts *p, int64_t rows, int64_t columns, void **to)
{
    *to = cuda_scratch(p->c, (size_t)(rows * columns * p->item));
    if (!*to) return cuda_host->error();
    p->made[p->n++] = *to;
    return PROA_OK;
}

/* Replaces an operand of rows × columns by its copy of to_rows × to_columns, unless it is aligned as is. */
static proa_status pad(padded_parts *p, const void **data, int64_t *ld, int64_t rows, int64_t columns,
                       int64_t to_rows, int64_t to_columns, int64_t unit)
{
    if (rows == to_rows && columns == to_columns && *ld % unit == 0 && (uintptr_t)*data % 16 == 0)
        return PROA_OK;
    void *to;
    padded_rows from = {(const char *)*data, rows, columns * p->item, *ld * p->item};
    *ld = rounded(to_columns, unit);
    PROA_TRY(part(p, to_rows, *ld, &to));
    *data = to;
    return padded_copy(p->c, from, to, to_rows, to_columns * p->item, *ld * p->item);
}

/* g with n, and k where it runs along rows, rounded up to the unit, and the copies that this takes. */
static proa_status pad_all(padded_parts *p, cuda_gemm *g, int64_t unit)
{
    bool across = g->transpose_x && !g->transpose_y;
    int64_t n = rounded(g->n, unit), k = across ? g->k : rounded(g->k, unit), one = g->n;
    if (g->transpose_x) PROA_TRY(pad(p, &g->x, &g->ldx, g->k, g->m, k, g->m, unit));
    else PROA_TRY(pad(p, &g->x, &g->ldx, g->m, g->k, g->m, k, unit));
    if (g->transpose_y) PROA_TRY(pad(p, &g->y, &g->ldy, g->n, g->k, n, k, unit));
    else PROA_TRY(pad(p, &g->y, &g->ldy, g->k, g->n, k, n, unit));
    if (n != g->n) {
        if (g->bias) PROA_TRY(pad(p, &g->bias, &one, 1, g->n, 1, n, unit));
        if (g->sums) PROA_TRY(part(p, 1, n, &g->sums));
        PROA_TRY(part(p, g->m, n, &g->out));
    }
    g->n = n, g->k = k;
    return PROA_OK;
}

/* Runs `padded`, and brings its results to where g has them. */
static proa_status run_padded(padded_parts *p, const cuda_gemm *g, const cuda_gemm *padded)
{
    int64_t bytes = g->n * p->item, pitch = padded->n * p->item;
    bool copied = padded->out != g->out;
    if (copied && g->beta != 0)
        PROA_TRY(
            padded_copy(p->c, {(const char *)g->out, g->m, bytes, bytes}, padded->out, g->m, pitch, pitch));
    PROA_TRY(cuda_library_gemm(p->c, padded));
    if (copied)
        PROA_TRY(
            padded_copy(p->c, {(const char *)padded->out, g->m, bytes, pitch}, g->out, g->m, bytes, bytes));
    if (padded->sums == g->sums) return PROA_OK;
    return padded_copy(p->c, {(const char *)padded->sums, 1, bytes, pitch}, g->sums, 1, bytes, bytes);
}

/* True if padding makes rows aligned that are not, and pays. aux has the result's form, which padding would
 * change. */
static bool pays(const cuda_gemm *g, int64_t unit)
{
    if (!cuda_rounded_products(g->dtype) || g->batches != 1 || g->aux) return false;
    if (g->m < PADDED_LEAST || g->n < PADDED_LEAST || g->k < PADDED_LEAST || g->m > INT32_MAX) return false;
    uintptr_t at = (uintptr_t)g->x | (uintptr_t)g->y;
    return g->n % unit || g->ldx % unit || g->ldy % unit || at % 16;
}

proa_status cuda_padded_gemm(cuda_context *c, const cuda_gemm *g)
{
    int64_t unit = 16 / cuda_item(g->dtype);
    if (!pays(g, unit)) return cuda_library_gemm(c, g);
    padded_parts p = {c, cuda_item(g->dtype)};
    cuda_gemm padded = *g;
    proa_status status = pad_all(&p, &padded, unit);
    if (status == PROA_OK) status = run_padded(&p, g, &padded);
    for (int i = 0; i < p.n; i++) cuda_scratch_free(c, p.made[i]);
    return status;
}
