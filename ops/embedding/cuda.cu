/* Embedding on a GPU: rows are copied in units of up to 16 bytes. Backward sorts the indices stably and adds
 * each row's terms in the order of x. */
#include "ops/index/cuda/index.h"

/* Row indices, checked as they are read. */
struct embedding_ids {
    const char *data;
    proa_dtype dtype;
    int64_t rows, padding;
    cuda_report report;
    /* row index, or −1: padding_idx, or out of range, which is reported */
    __device__ __forceinline__ int64_t operator()(int64_t i) const
    {
        int64_t id = cuda_index(data, dtype, i);
        if (id >= 0 && id < rows) return id == padding ? -1 : id;
        cuda_raise(report, i, id, 0, rows - 1);
        return -1;
    }
};

static embedding_ids ids_of(cuda_context *c, const proa_tensor *x, const proa_tensor *weight, int64_t padding)
{
    cuda_tensor t = cuda_look(x);
    return {t.data, t.dtype, cuda_look(weight).shape[0], padding, cuda_reports(c, "x")};
}

/* Copies the table's row of each id to out, `pieces` elements of T a row; zeros for ids without a row. */
template <class T>
__global__ void embedding_kernel(embedding_ids ids, int64_t n, const T *table, T *out, int64_t pieces)
{
    for (CUDA_EACH(i, n * pieces)) {
        int64_t id = ids(i / pieces);
        T none = {};
        out[i] = id < 0 ? none : table[id * pieces + i % pieces];
    }
}

struct alignas(16) embedding_bytes16 {
    uint64_t lo, hi;
};

template <class T>
static proa_status look_up(cuda_context *c, const embedding_ids &ids, int64_t n, const char *table, char *out,
                           int64_t bytes)
{
    int64_t pieces = bytes / (int64_t)sizeof(T);
    if (n * pieces == 0) return PROA_OK;
    return cuda_launch(c, cuda_blocks(n * pieces), CUDA_BLOCK, embedding_kernel<T>, ids, n,
                       (const T *)(const void *)table, (T *)(void *)out, pieces);
}

CUDA_KERNEL(embedding, true)
{
    cuda_tensor w = cuda_look(a->weight), out = cuda_look(a->out);
    embedding_ids ids = ids_of(c, a->x, a->weight, a->padding_idx);
    int64_t n = cuda_look(a->x).numel, bytes = w.shape[1] * cuda_item(w.dtype);
    uintptr_t at = (uintptr_t)w.data | (uintptr_t)out.data | (uintptr_t)bytes;
    if (at % 16 == 0) return look_up<embedding_bytes16>(c, ids, n, w.data, out.data, bytes);
    if (at % 8 == 0) return look_up<uint64_t>(c, ids, n, w.data, out.data, bytes);
    if (at % 4 == 0) return look_up<uint32_t>(c, ids, n, w.data, out.data, bytes);
    if (at % 2 == 0) return look_up<uint16_t>(c, ids, n, w.data, out.data, bytes);
    return look_up<uint8_t>(c, ids, n, w.data, out.data, bytes);
}

/* Sort keys of backward: the row of each entry; entries without a row get a key above all rows. */
__global__ void embedding_keys_kernel(cuda_order o, embedding_ids ids)
{
    for (CUDA_EACH(i, o.length)) {
        int64_t id = ids(i);
        o.put_key(i, (uint64_t)(id < 0 ? ids.rows : id));
    }
}

CUDA_KERNEL(embedding_grad, CUDA_IS(a->d_out, CUDA_FLOATS))
{
    cuda_tensor d = cuda_look(a->d_out), to = cuda_look(a->d_weight);
    int64_t n = cuda_look(a->x).numel;
    embedding_ids ids = ids_of(c, a->x, a->weight, a->padding_idx);
    cuda_order o;
    PROA_TRY(index_clear(c, a->d_weight));
    if (n == 0 || to.numel == 0) return PROA_OK;
    proa_status s = index_order(c, &o, n, ids.rows);
    if (s == PROA_OK) s = cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, embedding_keys_kernel, o, ids);
    index_sum sum = {d.data, to.data, d.dtype, to.dtype, 1, to.shape[1], ids.rows, true, NULL};
    if (s == PROA_OK) s = index_sum_rows(c, &o, &sum);
    cuda_order_free(c, &o);
    return s;
}
