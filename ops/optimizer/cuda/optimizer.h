/* Shared parts of the GPU's optimizer steps: the update formulas in float and in double, powers of β,
 * SelectedRows gradients. */
#ifndef PROA_OPS_OPTIMIZER_CUDA_OPTIMIZER_H
#define PROA_OPS_OPTIMIZER_CUDA_OPTIMIZER_H

#include "devices/cuda/lists.h"

#include <algorithm>

/* The formulas once for each type T that steps compute in, as in cpu/optimizer.c. */
#define STEP_FORMULA static __device__ __forceinline__ __attribute__((unused))
#define STEP_PASTE2(a, b) a##_##b
#define STEP_PASTE(a, b) STEP_PASTE2(a, b)
#define FN(name) STEP_PASTE(name, T)
#define T float
#define STEP_ROOT sqrtf
#include "ops/optimizer/formulas.h"
#undef T
#undef STEP_ROOT
#define T double
#define STEP_ROOT sqrt
#include "ops/optimizer/formulas.h"
#undef T
#undef STEP_ROOT
#undef FN

/* The step's numbers in the type that it computes in. */
template <class X> struct step_round_to;
template <> struct step_round_to<float> {
    static __device__ __forceinline__ step_numbers_float of(const double *k) { return step_round_float(k); }
};
template <> struct step_round_to<double> {
    static __device__ __forceinline__ step_numbers_double of(const double *k) { return step_round_double(k); }
};
template <class X> CUDA_FN auto step_rounded(const double *k) -> decltype(step_round_to<X>::of(k))
{
    return step_round_to<X>::of(k);
}

/* ---- powers of β ----------------------------------------------------------------------- */

/* β^t multiplied by β in its own precision, as Paddle does, so that the numbers agree step for step. */
CUDA_FN double step_moved_on(double v, double beta, proa_dtype d)
{
    return d == PROA_F64 ? v * beta : (double)((float)v * (float)beta);
}

template <int N> __global__ void step_advance_kernel(cuda_list<N> l, double beta, const uint8_t *skip)
{
    if ((int)threadIdx.x >= l.count || (skip && *skip)) return;
    proa_dtype d = (proa_dtype)l.dtype[0][threadIdx.x];
    char *at = l.at[0][threadIdx.x];
    cuda_store<double>(at, d, step_moved_on(cuda_load<double>(at, d), beta, d));
}

/* Advances powers of β after all uses; lists may be NULL. */
static proa_status step_advance(cuda_context *c, const proa_tensors *pows1, const proa_tensors *pows2,
                                double beta1, double beta2, const uint8_t *skip)
{
    const proa_tensors *each[2] = {pows1, pows2};
    const double beta[2] = {beta1, beta2};
    for (int k = 0; k < 2; k++) {
        if (!each[k]) continue;
        const proa_tensors *const lists[1] = {each[k]};
        double by = beta[k];
        PROA_TRY(cuda_each_list<1>(lists, cuda_leave_none, [&](const cuda_list<1> &l) {
            cuda_list<1> list = l;
            return cuda_launch(c, 1, CUDA_LIST, step_advance_kernel<1>, list, by, skip);
        }));
    }
    return PROA_OK;
}

/* ---- SelectedRows gradients ------------------------------------------------------------  */

/* Entries order[start[j]] … order[start[j + 1] − 1] of the gradient's values belong to row[j] of the table,
 * in ascending order; row ascends. All arrays are in one block of device memory. */
struct step_rows {
    int64_t *memory;
    const int64_t *row, *start, *order;
    int64_t count, length;
    const char *data;
    proa_dtype dtype;
};

static inline bool step_is_rows(const proa_tensor *t)
{
    proa_tensor_facts f;
    cuda_host->facts(t, &f);
    return f.rows != NULL;
}

/* Groups the entries of grad by row, on the host, which has the index; copies the result to the device. */
static proa_status step_rows_begin(cuda_context *c, const proa_tensor *grad, step_rows *r)
{
    proa_tensor_facts f;
    cuda_host->facts(grad, &f);
    int64_t n = f.ndim ? f.shape[0] : 0;
    *r = step_rows{};
    r->data = (const char *)f.data;
    r->dtype = f.dtype;
    r->length = n ? f.numel / n : 1;
    if (r->length == 0) r->length = 1;
    size_t bytes = (size_t)(3 * n + 1) * sizeof(int64_t);
    int64_t *here = (int64_t *)cuda_host->alloc(bytes);
    if (!here) return cuda_host->error();
    int64_t *row = here, *start = here + n, *order = start + n + 1;
    for (int64_t i = 0; i < n; i++) order[i] = i;
    std::stable_sort(order, order + n, [&](int64_t x, int64_t y) { return f.rows[x] < f.rows[y]; });
    for (int64_t i = 0; i < n; i++) {
        if (i && f.rows[order[i]] == f.rows[order[i - 1]]) continue;
        start[r->count] = i;
        row[r->count++] = f.rows[order[i]];
    }
    start[r->count] = n;
    r->memory = (int64_t *)cuda_scratch(c, bytes);
    proa_status status = r->memory ? cuda_write(c, r->memory, here, bytes) : cuda_host->error();
    cuda_host->free(here);
    r->row = r->memory;
    r->start = r->memory + n;
    r->order = r->start + n + 1;
    if (status != PROA_OK) cuda_scratch_free(c, r->memory);
    return status;
}
static void step_rows_end(cuda_context *c, step_rows *r) { cuda_scratch_free(c, r->memory); }

/* True if the gradient has `row`; *place: its index among the gradient's rows. */
CUDA_FN bool step_find(const step_rows &r, int64_t row, int64_t *place)
{
    int64_t low = 0, high = r.count;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (r.row[mid] < row) low = mid + 1;
        else high = mid;
    }
    *place = low;
    return low < r.count && r.row[low] == row;
}

template <class X> CUDA_FN X step_row_sum(const step_rows &r, int64_t place, int64_t column)
{
    X sum = 0;
    int64_t item = r.dtype == PROA_F64 ? 8 : r.dtype == PROA_F32 ? 4 : 2;
    for (int64_t i = r.start[place]; i < r.start[place + 1]; i++)
        sum += cuda_load<X>(r.data + (r.order[i] * r.length + column) * item, r.dtype);
    return sum;
}

#endif
