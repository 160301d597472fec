/* GPU kernels that cut, join, pad and repeat sequences, and scatter into them. Prefix sums on the GPU give
 * each sequence's start in the result; the host waits only where that decides the result's size. One thread
 * per element written; backward adds copies in order; lengths out of range are reported at the next
 * synchronization. */
#include "ops/lod/cuda/lod.h"

#include "devices/cuda/sort.h"

/* Creates the op's output with `rows` rows and x's other dims; *to describes it. */
static proa_status parts_rows(cuda_context *c, const void *args, const cuda_tensor &x, int64_t rows,
                              cuda_tensor *to)
{
    proa_meta meta = {x.dtype, (int8_t)x.ndim, {rows}};
    for (int i = 1; i < x.ndim; i++) meta.shape[i] = x.shape[i];
    return lod_output(c, args, 0, meta, to);
}

/* ---- runs: sequence s of the result is `count` rows of x, from row `first` on, `times` over ----------- */

/* Source of each sequence of the result: which rows of x, and how many copies. */
struct parts_source {
    lod_offsets of; /* x's n sequences; `at` NULL: each has `each` rows */
    int64_t each;
    const char *offset, *length; /* per sequence: rows to skip, rows to take; NULL: 0, all */
    proa_dtype offset_dtype, length_dtype;
    const int64_t *times; /* offsets whose differences are the numbers of copies; NULL: 1 */
    cuda_report bad_offset, bad_length;
    /* Returns the number of rows of x's sequence s; *first: the index of its first row. */
    __device__ __forceinline__ int64_t has(int64_t s, int64_t *first) const
    {
        int64_t from = s * each, to = from + each;
        if (of.at) lod_part(of, s, &from, &to);
        *first = from;
        return to - from;
    }
    __device__ __forceinline__ int64_t part(int64_t s, int64_t *first) const
    {
        int64_t all = has(s, first), skip = offset ? cuda_index(offset, offset_dtype, s) : 0;
        int64_t n = length ? cuda_index(length, length_dtype, s) : all;
        if (skip < 0 || skip > all) {
            cuda_raise(bad_offset, s, skip, 0, all);
            skip = 0;
        }
        if (n < 0 || n > all - skip) {
            cuda_raise(bad_length, s, n, 0, all - skip);
            n = 0;
        }
        *first += skip;
        return n;
    }
    __device__ __forceinline__ int64_t repeats(int64_t s) const
    {
        return !times ? 1 : times[s + 1] > times[s] ? times[s + 1] - times[s] : 0;
    }
};

__global__ void parts_count_kernel(parts_source from, int64_t *begin)
{
    for (CUDA_EACH(s, from.of.n)) {
        int64_t first;
        begin[s] = from.part(s, &first) * from.repeats(s);
    }
}

/* Computes the offsets of the result's sequences: n + 1 numbers of scratch memory. */
static proa_status parts_begin(cuda_context *c, const parts_source &from, int64_t **begin)
{
    *begin = (int64_t *)cuda_scratch(c, (size_t)(from.of.n + 1) * sizeof **begin);
    if (!*begin) return cuda_host->error();
    proa_status s = PROA_OK;
    if (from.of.n) s = cuda_launch(c, cuda_blocks(from.of.n), CUDA_BLOCK, parts_count_kernel, from, *begin);
    return s == PROA_OK ? cuda_scan(c, *begin, from.of.n + 1) : s;
}

template <class S>
__global__ void parts_take_kernel(parts_source from, lod_offsets begin, const S *x, S *out, int64_t w)
{
    for (CUDA_EACH(i, begin.rows * w)) {
        int64_t row = i / w, s = lod_sequence(begin, row), first, n = from.part(s, &first);
        out[i] = x[(first + (n ? (row - begin.at[s]) % n : 0)) * w + i % w];
    }
}

/* d_x: one thread per element of x, which adds the gradients of its copies in order. */
template <class T>
__global__ void parts_back_kernel(parts_source from, const int64_t *begin, int64_t rows, const T *d_out,
                                  T *d_x, int64_t x_rows, int64_t w)
{
    for (CUDA_EACH(i, x_rows * w)) {
        int64_t row = i / w, s = from.of.at ? lod_sequence(from.of, row) : row / from.each, first;
        int64_t n = from.part(s, &first), place = row - first;
        T sum = 0;
        for (int64_t k = 0; place >= 0 && place < n && k < from.repeats(s); k++) {
            int64_t at = begin[s] + k * n + place;
            if (at < rows) sum += d_out[at * w + i % w];
        }
        d_x[i] = sum;
    }
}

static proa_status parts_take(cuda_context *c, const parts_source &from, const int64_t *begin,
                              const cuda_tensor &x, const cuda_tensor &out, int64_t w)
{
    lod_offsets of = {begin, from.of.n, out.shape[0]};
    if (out.numel == 0) return PROA_OK;
    LOD_BY_SIZE(x.dtype, S,
                cuda_launch(c, cuda_blocks(out.numel), CUDA_BLOCK, parts_take_kernel<S>, from, of, x.as<S>(),
                            out.as<S>(), w));
}

/* Forward of an op that takes parts of sequences: sizes and fills output 0, and (tells_begins) output 1 with
 * its offsets. flat: x as [rows, …]. The host waits for the number of rows. */
static proa_status parts_forward(cuda_context *c, const void *args, const parts_source &from,
                                 const cuda_tensor &flat, bool tells_begins)
{
    int64_t *begin, rows = 0;
    cuda_tensor out, offsets;
    proa_status s = parts_begin(c, from, &begin);
    if (s == PROA_OK) s = cuda_read(c, &rows, begin + from.of.n, sizeof rows);
    if (s == PROA_OK) s = parts_rows(c, args, flat, rows, &out);
    if (s == PROA_OK) s = parts_take(c, from, begin, flat, out, lod_width(flat));
    if (s == PROA_OK && tells_begins) {
        s = lod_output(c, args, 1, {PROA_I64, 1, {from.of.n + 1}}, &offsets);
        if (s == PROA_OK) s = cuda_move(c, offsets.data, begin, (size_t)(from.of.n + 1) * sizeof *begin);
    }
    if (begin) cuda_scratch_free(c, begin);
    return s;
}

static proa_status parts_backward(cuda_context *c, const parts_source &from, const cuda_tensor &d_out,
                                  const cuda_tensor &d_x, int64_t x_rows, int64_t w)
{
    int64_t *begin, rows = w ? d_out.numel / w : 0;
    if (d_x.numel == 0) return PROA_OK;
    proa_status s = parts_begin(c, from, &begin);
    if (s == PROA_OK) {
        if (d_x.dtype == PROA_F64)
            s = cuda_launch(c, cuda_blocks(x_rows * w), CUDA_BLOCK, parts_back_kernel<double>, from, begin,
                            rows, d_out.as<double>(), d_x.as<double>(), x_rows, w);
        else
            s = cuda_launch(c, cuda_blocks(x_rows * w), CUDA_BLOCK, parts_back_kernel<float>, from, begin,
                            rows, d_out.as<float>(), d_x.as<float>(), x_rows, w);
    }
    if (begin) cuda_scratch_free(c, begin);
    return s;
}

/* ---- slice and unpad ------------------------------------------------------------------- */

static proa_status slice_source(cuda_context *c, const char *op, const proa_tensor *offsets,
                                const proa_tensor *offset, const proa_tensor *length, int64_t rows,
                                parts_source *to)
{
    cuda_tensor o = cuda_look(offset), l = cuda_look(length);
    *to = {};
    PROA_TRY(lod_take(c, op, "offsets", offsets, rows, &to->of));
    to->offset = o.data, to->offset_dtype = o.dtype;
    to->length = l.data, to->length_dtype = l.dtype;
    to->bad_offset = cuda_reports(c, "offset"), to->bad_length = cuda_reports(c, "length");
    return PROA_OK;
}

CUDA_KERNEL(sequence_slice, true)
{
    cuda_tensor x = cuda_look(a->x);
    parts_source from;
    PROA_TRY(slice_source(c, "sequence_slice", a->offsets, a->offset, a->length, x.shape[0], &from));
    return parts_forward(c, a, from, x, true);
}

CUDA_KERNEL(sequence_slice_grad, true)
{
    cuda_tensor d_x = cuda_look(a->d_x);
    parts_source from;
    PROA_TRY(slice_source(c, "sequence_slice_grad", a->offsets, a->offset, a->length, d_x.shape[0], &from));
    return parts_backward(c, from, cuda_look(a->d_out), d_x, d_x.shape[0], lod_width(d_x));
}

/* x [n, longest, …] as rows of its flattened first two dims. */
static parts_source unpad_source(cuda_context *c, const cuda_tensor &x, const proa_tensor *length)
{
    cuda_tensor l = cuda_look(length);
    parts_source from = {};
    from.of.n = x.shape[0];
    from.each = x.shape[1];
    from.length = l.data, from.length_dtype = l.dtype;
    from.bad_length = cuda_reports(c, "length");
    return from;
}

CUDA_KERNEL(sequence_unpad, true)
{
    cuda_tensor x = cuda_look(a->x), flat = x;
    parts_source from = unpad_source(c, x, a->length);
    flat.ndim = x.ndim > 2 ? x.ndim - 1 : 2;
    flat.shape[0] = x.shape[0] * x.shape[1];
    for (int i = 2; i < x.ndim; i++) flat.shape[i - 1] = x.shape[i];
    if (x.ndim == 2) flat.shape[1] = 1;
    return parts_forward(c, a, from, flat, true);
}

CUDA_KERNEL(sequence_unpad_grad, true)
{
    cuda_tensor d_x = cuda_look(a->d_x);
    parts_source from = unpad_source(c, d_x, a->length);
    int64_t rows = d_x.shape[0] * d_x.shape[1];
    return parts_backward(c, from, cuda_look(a->d_out), d_x, rows, rows ? d_x.numel / rows : 0);
}

/* ---- expand ---------------------------------------------------------------------------- */

static proa_status expand_source(cuda_context *c, const char *op, const cuda_tensor &x,
                                 const proa_tensor *x_offsets, const proa_tensor *y_offsets, parts_source *to)
{
    cuda_tensor times = cuda_look(y_offsets);
    *to = {};
    to->of.n = x.shape[0], to->of.rows = x.shape[0], to->each = 1;
    to->times = times.as<int64_t>();
    if (cuda_given(x_offsets)) PROA_TRY(lod_take(c, op, "x_offsets", x_offsets, x.shape[0], &to->of));
    if (to->of.n == times.shape[0] - 1) return PROA_OK;
    return cuda_fail(PROA_ERR_INVALID_ARGUMENT,
                     "%s: y_offsets has %lld sequences; expected one for each of x's %lld", op,
                     (long long)times.shape[0] - 1, (long long)to->of.n);
}

/* Offsets of the copies, `copies` + 1 numbers. */
__global__ void expand_offsets_kernel(parts_source from, const int64_t *begin, int64_t copies, int64_t *to)
{
    lod_offsets times = {from.times, from.of.n, copies};
    for (CUDA_EACH(j, copies)) {
        int64_t s = lod_sequence(times, j), first, n = from.part(s, &first);
        to[j + 1] = begin[s] + (j - from.times[s] + 1) * n;
        if (j == 0) to[0] = 0;
    }
}

CUDA_KERNEL(sequence_expand, true)
{
    cuda_tensor x = cuda_look(a->x), offsets;
    parts_source from;
    int64_t copies = 0, *begin;
    PROA_TRY(expand_source(c, "sequence_expand", x, a->x_offsets, a->y_offsets, &from));
    PROA_TRY(parts_forward(c, a, from, x, false));
    if (!from.of.at) return PROA_OK;
    PROA_TRY(cuda_read(c, &copies, from.times + from.of.n, sizeof copies));
    if (copies < 0) copies = 0;
    PROA_TRY(lod_output(c, a, 1, {PROA_I64, 1, {copies + 1}}, &offsets));
    if (copies == 0) {
        static const int64_t zero = 0;
        return cuda_fill(c, offsets.data, &zero, sizeof zero, 1);
    }
    proa_status s = parts_begin(c, from, &begin);
    if (s == PROA_OK)
        s = cuda_launch(c, cuda_blocks(copies), CUDA_BLOCK, expand_offsets_kernel, from, begin, copies,
                        offsets.as<int64_t>());
    if (begin) cuda_scratch_free(c, begin);
    return s;
}

CUDA_KERNEL(sequence_expand_grad, true)
{
    cuda_tensor d_x = cuda_look(a->d_x);
    parts_source from;
    PROA_TRY(expand_source(c, "sequence_expand_grad", d_x, a->x_offsets, a->y_offsets, &from));
    return parts_backward(c, from, cuda_look(a->d_out), d_x, d_x.shape[0], lod_width(d_x));
}

/* ---- pad ------------------------------------------------------------------------------- */

__global__ void pad_longest_kernel(lod_offsets of, int64_t *longest)
{
    int64_t most = 0;
    for (int64_t s = threadIdx.x; s < of.n; s += blockDim.x) {
        int64_t from, to;
        lod_part(of, s, &from, &to);
        most = to - from > most ? to - from : most;
    }
    most = cuda_block_reduce<cuda_max>(most);
    if (threadIdx.x == 0) *longest = most;
}

__global__ void pad_length_kernel(lod_offsets of, int64_t *to, int64_t length, cuda_report report)
{
    for (CUDA_EACH(s, of.n)) {
        to[s] = of.at[s + 1] - of.at[s];
        if (to[s] > length) cuda_raise(report, s + 1, to[s], 0, length);
    }
}

/* pad: one element (`step` 0), or a row. */
template <class S>
__global__ void pad_kernel(lod_offsets of, const S *x, const S *pad, int step, S *out, int64_t length,
                           int64_t w)
{
    for (CUDA_EACH(i, of.n * length * w)) {
        int64_t place = i / w % length, from, to;
        lod_part(of, i / w / length, &from, &to);
        out[i] = place < to - from ? x[(from + place) * w + i % w] : pad[i % w * step];
    }
}

static proa_status pad_length(cuda_context *c, const lod_offsets &of, int64_t *length)
{
    int64_t *found = (int64_t *)cuda_scratch(c, sizeof *found);
    if (!found) return cuda_host->error();
    proa_status s = cuda_launch(c, 1, CUDA_BLOCK, pad_longest_kernel, of, found);
    if (s == PROA_OK) s = cuda_read(c, length, found, sizeof *length);
    cuda_scratch_free(c, found);
    return s;
}

CUDA_KERNEL(sequence_pad, true)
{
    cuda_tensor x = cuda_look(a->x), pad = cuda_look(a->pad_value), out, lengths;
    lod_offsets of;
    int64_t length = a->padded_length, w = lod_width(x);
    PROA_TRY(lod_take(c, "sequence_pad", "offsets", a->offsets, x.shape[0], &of));
    if (pad.numel != 1 && pad.numel != w)
        return cuda_fail(PROA_ERR_INVALID_ARGUMENT,
                         "sequence_pad: pad_value is %s; expected one element or a row of x %s",
                         cuda_host->text(a->pad_value), cuda_host->text(a->x));
    if (length < 0) PROA_TRY(pad_length(c, of, &length));
    proa_meta meta = {x.dtype, (int8_t)(x.ndim + 1), {of.n, length}};
    for (int i = 1; i < x.ndim; i++) meta.shape[i + 1] = x.shape[i];
    PROA_TRY(lod_output(c, a, 0, meta, &out));
    PROA_TRY(lod_output(c, a, 1, {PROA_I64, 1, {of.n}}, &lengths));
    if (of.n < 1) return PROA_OK;
    PROA_TRY(cuda_launch(c, cuda_blocks(of.n), CUDA_BLOCK, pad_length_kernel, of, lengths.as<int64_t>(),
                         length, cuda_reports(c, "offsets")));
    if (out.numel == 0) return PROA_OK;
    LOD_BY_SIZE(x.dtype, S,
                cuda_launch(c, cuda_blocks(out.numel), CUDA_BLOCK, pad_kernel<S>, of, x.as<S>(), pad.as<S>(),
                            (int)(pad.numel == w), out.as<S>(), length, w));
}

/* ---- concat ---------------------------------------------------------------------------- */

enum { CONCAT_PARTS = 32 };
struct concat_plan {
    int64_t parts, n; /* n: sequences per part */
    lod_offsets of[CONCAT_PARTS];
};

__global__ void concat_offsets_kernel(concat_plan p, int64_t *to)
{
    for (CUDA_EACH(s, p.n + 1)) {
        int64_t sum = 0;
        for (int64_t i = 0; i < p.parts; i++) sum += p.of[i].at[s];
        to[s] = sum;
    }
}

/* Copies between part k and the concatenation: into it, or (`apart`) out of it. */
template <class S>
__global__ void concat_kernel(concat_plan p, int64_t k, S *part, S *whole, int64_t rows, int64_t w,
                              bool apart)
{
    for (CUDA_EACH(i, p.of[k].rows * w)) {
        int64_t row = i / w, s = lod_sequence(p.of[k], row), at = row - p.of[k].at[s];
        for (int64_t j = 0; j < p.parts; j++) at += p.of[j].at[j < k ? s + 1 : s];
        if (at < 0 || at >= rows) continue;
        if (apart) part[i] = whole[at * w + i % w];
        else whole[at * w + i % w] = part[i];
    }
}

static proa_status concat_take(cuda_context *c, const char *op, const proa_tensors *x, const proa_tensors *of,
                               concat_plan *p)
{
    *p = {};
    p->parts = x->count;
    for (int64_t i = 0; i < x->count; i++) {
        PROA_TRY(lod_take(c, op, "offsets", of->at[i], cuda_look(x->at[i]).shape[0], &p->of[i]));
        if (p->of[i].n != p->of[0].n)
            return cuda_fail(PROA_ERR_INVALID_ARGUMENT,
                             "%s: offsets (entry %lld) has %lld sequences, the first %lld", op, (long long)i,
                             (long long)p->of[i].n, (long long)p->of[0].n);
    }
    p->n = p->of[0].n;
    return PROA_OK;
}

template <class S>
static proa_status concat_move(cuda_context *c, const concat_plan &p, proa_tensor *const *parts,
                               const cuda_tensor &whole, bool apart)
{
    for (int64_t k = 0; k < p.parts; k++) {
        cuda_tensor t = cuda_look(parts[k]);
        int64_t w = lod_width(t);
        if (t.numel == 0 || p.n < 1) continue;
        PROA_TRY(cuda_launch(c, cuda_blocks(t.numel), CUDA_BLOCK, concat_kernel<S>, p, k, t.as<S>(),
                             whole.as<S>(), whole.numel / w, w, apart));
    }
    return PROA_OK;
}

CUDA_KERNEL(sequence_concat, a->x.count <= CONCAT_PARTS)
{
    cuda_tensor out = cuda_look(a->out);
    concat_plan p;
    PROA_TRY(concat_take(c, "sequence_concat", &a->x, &a->offsets, &p));
    PROA_TRY(cuda_launch(c, cuda_blocks(p.n + 1), CUDA_BLOCK, concat_offsets_kernel, p,
                         cuda_look(a->out_offsets).as<int64_t>()));
    LOD_BY_SIZE(out.dtype, S, concat_move<S>(c, p, a->x.at, out, false));
}

CUDA_KERNEL(sequence_concat_grad, a->x.count <= CONCAT_PARTS)
{
    cuda_tensor d = cuda_look(a->d_out);
    concat_plan p;
    PROA_TRY(concat_take(c, "sequence_concat_grad", &a->x, &a->offsets, &p));
    int64_t rows = 0, w = lod_width(cuda_look(a->x.at[0]));
    for (int64_t i = 0; i < p.parts; i++) rows += p.of[i].rows;
    if (d.numel != rows * w)
        return cuda_fail(PROA_ERR_INVALID_ARGUMENT, "sequence_concat_grad: d_out is %s; expected %lld rows",
                         cuda_host->text(a->d_out), (long long)rows);
    LOD_BY_SIZE(d.dtype, S, concat_move<S>(c, p, a->d_x.at, d, true));
}

/* ---- scatter --------------------------------------------------------------------------- */

/* Columns of the ids, −1 and a fault where there is none. */
CUDA_FN int64_t scatter_column(const char *ids, proa_dtype dtype, int64_t i, int64_t w,
                               const cuda_report &report)
{
    int64_t column = cuda_index(ids, dtype, i);
    if (column >= 0 && column < w) return column;
    cuda_raise(report, i, column, 0, w - 1);
    return -1;
}

/* One thread per element, which adds its updates in order. Integers wrap. */
template <class T>
__global__ void scatter_kernel(lod_offsets of, const char *ids, proa_dtype dtype, const T *x,
                               const T *updates, T *out, int64_t rows, int64_t w, cuda_report report)
{
    for (CUDA_EACH(k, rows * w)) {
        int64_t s = k / w, from = 0, to = 0;
        T sum = x[k];
        if (s < of.n) lod_part(of, s, &from, &to);
        for (int64_t i = from; i < to; i++)
            if (scatter_column(ids, dtype, i, w, report) == k % w) sum += updates[i];
        out[k] = sum;
    }
}

template <class T>
static proa_status scatter(cuda_context *c, const lod_offsets &of, const cuda_tensor &ids,
                           const cuda_tensor &x, const proa_tensor *updates, const proa_tensor *out)
{
    if (x.numel == 0) return PROA_OK;
    return cuda_launch(c, cuda_blocks(x.numel), CUDA_BLOCK, scatter_kernel<T>, of, ids.data, ids.dtype,
                       x.as<T>(), cuda_look(updates).as<T>(), cuda_look(out).as<T>(), x.shape[0], x.shape[1],
                       cuda_reports(c, "ids"));
}

CUDA_KERNEL(sequence_scatter, true)
{
    cuda_tensor x = cuda_look(a->x), ids = cuda_look(a->ids);
    lod_offsets of;
    PROA_TRY(lod_take(c, "sequence_scatter", "offsets", a->offsets, ids.numel, &of));
    switch (x.dtype) {
    case PROA_F64: return scatter<double>(c, of, ids, x, a->updates, a->out);
    case PROA_F32: return scatter<float>(c, of, ids, x, a->updates, a->out);
    case PROA_I64: return scatter<uint64_t>(c, of, ids, x, a->updates, a->out);
    default: return scatter<uint32_t>(c, of, ids, x, a->updates, a->out);
    }
}

template <class S>
__global__ void scatter_back_kernel(lod_offsets of, const char *ids, proa_dtype dtype, const S *d,
                                    S *d_updates, int64_t rows, int64_t w, cuda_report report)
{
    for (CUDA_EACH(i, of.rows)) {
        int64_t s = lod_sequence(of, i), column = scatter_column(ids, dtype, i, w, report);
        d_updates[i] = s < rows && column >= 0 ? d[s * w + column] : 0;
    }
}

CUDA_KERNEL(sequence_scatter_grad, true)
{
    cuda_tensor d = cuda_look(a->d_out), ids = cuda_look(a->ids), d_x = cuda_look(a->d_x);
    lod_offsets of;
    PROA_TRY(lod_take(c, "sequence_scatter_grad", "offsets", a->offsets, ids.numel, &of));
    PROA_TRY(cuda_move(c, d_x.data, d.data, (size_t)(d.numel * cuda_item(d.dtype))));
    if (of.rows == 0 || of.n < 1) return PROA_OK;
    LOD_BY_SIZE(d.dtype, S,
                cuda_launch(c, cuda_blocks(of.rows), CUDA_BLOCK, scatter_back_kernel<S>, of, ids.data,
                            ids.dtype, d.as<S>(), cuda_look(a->d_updates).as<S>(), d.shape[0], d.shape[1],
                            cuda_reports(c, "ids")));
}
