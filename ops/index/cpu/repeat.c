/* Kernels of repeat_interleave, unique_consecutive, multiplex and shard_index. May use core and ops
 * headers. */
#include "core/copy.h"
#include "ops/index/indices.h"
#include "ops/shape/accumulate.h"
#include "ops/sort/keys.h"
#include "impl/index.h"

extern const proa_op proa__op_repeat_interleave, proa__op_unique_consecutive;

/* ---- repeat_interleave ------------------------------------------------------------------- */

/* Number of times that slice i is repeated. */
static int64_t times_of(const proa_tensor *each, int64_t repeats, int64_t i)
{
    return each == proa_none ? repeats : index_at(each, each->numel == 1 ? 0 : i);
}

static proa_status total_of(const char *who, const proa_tensor *each, int64_t repeats, int64_t length,
                            int64_t *total)
{
    *total = 0;
    for (int64_t i = 0; i < length; i++) {
        int64_t n = times_of(each, repeats, i);
        if (n < 0 || __builtin_add_overflow(*total, n, total))
            return OP_FAIL(who, INVALID_ARGUMENT, "repeats_tensor", "entry %lld is %lld; expected 0 or more",
                           (long long)i, (long long)n);
    }
    return PROA_OK;
}

/* x as [outer, length] slices of `inner` elements. Slice i becomes slices [at[i], at[i + 1]) of `total`. */
typedef struct repeating {
    around r;
    int64_t total, bytes;
    int64_t *at;
    const char *x;
    char *out;
    const accumulator *acc; /* backward: sums out's slices into x's */
} repeating;

/* Fills job->at, which the caller must free. */
static proa_status place_slices(repeating *job, const proa_tensor *each, int64_t repeats)
{
    size_t bytes;
    if (!proa__mul_size((size_t)job->r.length + 1, sizeof *job->at, &bytes)) return proa_error();
    job->at = proa_scratch(bytes);
    if (!job->at) return proa_error();
    job->at[0] = 0;
    for (int64_t i = 0; i < job->r.length; i++) job->at[i + 1] = job->at[i] + times_of(each, repeats, i);
    return PROA_OK;
}

#define REPEAT(T)                                                                              \
    for (int64_t i = first; i < last; i++) {                                                   \
        const T v = ((const T *)(const void *)from)[i - first];                                \
        for (int64_t n = at[i + 1] - at[i]; n > 0; n--, to += sizeof(T)) *(T *)(void *)to = v; \
    }                                                                                          \
    break

static void repeat_slices(int64_t begin, int64_t end, void *context)
{
    const repeating *job = context;
    const int64_t *at = job->at, bytes = job->bytes, length = job->r.length;
    for (int64_t s = begin; s < end;) { /* one outer slice, or this thread's part of it */
        int64_t first = s % length, last = length - first < end - s ? length : first + (end - s);
        const char *from = job->x + s * bytes;
        char *to = job->out + (s / length * job->total + at[first]) * bytes;
        switch (bytes) {
        case 1: REPEAT(uint8_t);
        case 2: REPEAT(uint16_t);
        case 4: REPEAT(uint32_t);
        case 8: REPEAT(uint64_t);
        default:
            for (int64_t i = first; i < last; i++, from += bytes)
                for (int64_t n = at[i + 1] - at[i]; n > 0; n--, to += bytes)
                    proa__copy_bytes(to, from, (size_t)bytes);
        }
        s += last - first;
    }
}

static void sum_slices(int64_t begin, int64_t end, void *context)
{
    const repeating *job = context;
    const accumulator *acc = job->acc;
    const int64_t inner = job->r.inner, item = job->bytes / inner;
    for (int64_t s = begin; s < end; s++) {
        int64_t i = s % job->r.length, n = job->at[i + 1] - job->at[i];
        const char *from = job->out + (s / job->r.length * job->total + job->at[i]) * job->bytes;
        char *to = acc->data + s * inner * acc->item;
        if (inner == 1) accumulate_row(acc, to, 0, from, item, n);
        else
            for (; n > 0; n--, from += job->bytes) accumulate_row(acc, to, acc->item, from, item, inner);
    }
}

PROA_KERNEL(repeat_interleave_cpu, repeat_interleave)
{
    static const char who[] = "repeat_interleave";
    int axis;
    repeating job = {.x = a->x->data};
    PROA_TRY(proa__axis(who, "axis", a->axis, a->x->ndim, &axis));
    job.r = around_axis(a->x, axis);
    PROA_TRY(total_of(who, a->repeats_tensor, a->repeats, job.r.length, &job.total));
    proa_meta meta = proa_meta_of(a->x);
    meta.shape[axis] = job.total;
    if (!proa_output_resize((void *)(uintptr_t)a, &proa__op_repeat_interleave, 0, &meta)) return proa_error();
    if (a->out->numel == 0) return PROA_OK;
    job.bytes = job.r.inner * (int64_t)proa_dtype_size((proa_dtype)a->x->dtype), job.out = a->out->data;
    PROA_TRY(place_slices(&job, a->repeats_tensor, a->repeats));
    proa__parallel(job.r.outer * job.r.length, grain_for(job.bytes * (job.total / job.r.length + 1)),
                   repeat_slices, &job);
    proa_scratch_free(job.at);
    return PROA_OK;
}

PROA_KERNEL(repeat_interleave_grad_cpu, repeat_interleave_grad)
{
    static const char who[] = "repeat_interleave_grad";
    int axis;
    repeating job = {.out = a->d_out->data};
    PROA_TRY(proa__axis(who, "axis", a->axis, a->d_x->ndim, &axis));
    job.r = around_axis(a->d_x, axis);
    PROA_TRY(total_of(who, a->repeats_tensor, a->repeats, job.r.length, &job.total));
    if (job.total != a->d_out->shape[axis])
        return OP_FAIL(who, INVALID_ARGUMENT, "d_out", "is %s; the counts make %lld slices along axis %d",
                       proa__tensor_text(a->d_out), (long long)job.total, axis);
    accumulator acc;
    PROA_TRY(accumulate_begin(&acc, a->d_x, NULL));
    proa_status status = PROA_OK;
    if (a->d_out->numel) {
        job.bytes = job.r.inner * (int64_t)proa_dtype_size((proa_dtype)a->d_x->dtype), job.acc = &acc;
        status = place_slices(&job, a->repeats_tensor, a->repeats);
        if (status == PROA_OK)
            proa__parallel(job.r.outer * job.r.length, grain_for(job.bytes * (job.total / job.r.length + 1)),
                           sum_slices, &job);
        proa_scratch_free(job.at);
    }
    proa_status end = accumulate_end(&acc);
    return status == PROA_OK ? end : status;
}

/* ---- unique_consecutive ------------------------------------------------------------------ */

/* Whether slice i of x differs from slice i − 1; NaN differs from NaN. */
static bool starts_run(const proa_tensor *x, const around *r, int64_t i)
{
    proa_dtype dtype = (proa_dtype)x->dtype;
    int64_t item = (int64_t)proa_dtype_size(dtype);
    bool floating = dtype >= PROA_F16 && dtype <= PROA_F64;
    uint64_t nan = !floating ? 0 : key_bits(dtype) == 64 ? UINT64_MAX : UINT32_MAX;
    if (i == 0) return true;
    for (int64_t k = 0; k < r->outer * r->inner; k++) {
        const char *p = x->data + ((k / r->inner * r->length + i) * r->inner + k % r->inner) * item;
        uint64_t key = key_of(dtype, p);
        if (key != key_of(dtype, p - r->inner * item) || (nan && key == nan)) return true;
    }
    return false;
}

static void put_number(proa_tensor *t, int64_t i, int64_t v)
{
    if (t->dtype == PROA_I32) ((int32_t *)(void *)t->data)[i] = (int32_t)v;
    else ((int64_t *)(void *)t->data)[i] = v;
}

PROA_KERNEL(unique_consecutive_cpu, unique_consecutive)
{
    const proa_op *op = &proa__op_unique_consecutive;
    void *args = (void *)(uintptr_t)a;
    const proa_tensor *x = a->x;
    bool along = a->axis.count && x->ndim;
    int axis = !along ? 0 : (int)(a->axis.at[0] < 0 ? a->axis.at[0] + x->ndim : a->axis.at[0]);
    around r = along ? around_axis(x, axis) : (around){1, x->numel, 1};
    int64_t groups = 0, group = -1, item = (int64_t)proa_dtype_size((proa_dtype)x->dtype);
    for (int64_t i = 0; i < r.length; i++) groups += starts_run(x, &r, i);
    proa_meta meta = {.dtype = (proa_dtype)x->dtype, .ndim = 1, .shape = {groups}};
    if (along) meta = proa_meta_of(x), meta.shape[axis] = groups;
    bool inverse = a->return_inverse && a->inverse != proa_none;
    bool counts = a->return_counts && a->counts != proa_none;
    if (!proa_output_resize(args, op, 0, &meta)) return proa_error();
    meta = (proa_meta){.dtype = a->dtype, .ndim = 1, .shape = {r.length}};
    if (inverse && !proa_output_resize(args, op, 1, &meta)) return proa_error();
    meta.shape[0] = groups;
    if (counts && !proa_output_resize(args, op, 2, &meta)) return proa_error();
    for (int64_t i = 0, from = 0; i < r.length; i++) {
        if (starts_run(x, &r, i)) {
            from = i;
            group++;
            for (int64_t o = 0; o < r.outer; o++)
                copy_item(a->out->data + (o * groups + group) * r.inner * item,
                          x->data + (o * r.length + i) * r.inner * item, r.inner * item);
        }
        if (inverse) put_number(a->inverse, i, group);
        if (counts) put_number(a->counts, group, i - from + 1);
    }
    return PROA_OK;
}

/* ---- multiplex, shard_index -------------------------------------------------------------- */

PROA_KERNEL(multiplex_cpu, multiplex)
{
    PROA_TRY(check_indices("multiplex", "index", a->index, a->inputs.count));
    int64_t rows = a->out->shape[0];
    if (a->out->numel == 0) return PROA_OK;
    int64_t bytes = a->out->numel / rows * (int64_t)proa_dtype_size((proa_dtype)a->out->dtype);
    for (int64_t i = 0; i < rows; i++)
        copy_item(a->out->data + i * bytes, a->inputs.at[index_at(a->index, i)]->data + i * bytes, bytes);
    return PROA_OK;
}

PROA_KERNEL(shard_index_cpu, shard_index)
{
    int64_t size = a->index_num / a->nshards + (a->index_num % a->nshards != 0);
    for (int64_t i = 0; i < a->input->numel; i++) {
        int64_t v = index_at(a->input, i);
        if (v < 0 || v >= a->index_num)
            return OP_FAIL("shard_index", OUT_OF_RANGE, "input", "entry %lld is %lld; expected 0 to %lld",
                           (long long)i, (long long)v, (long long)a->index_num - 1);
        put_number(a->out, i, v / size == a->shard_id ? v % size : a->ignore_value);
    }
    return PROA_OK;
}
