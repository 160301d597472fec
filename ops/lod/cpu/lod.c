/* CPU kernels that move rows of sequences. Most ops list the source row in x of each row of their result;
 * backward adds rows along the same list. May use core and the helpers of ops/. */
#include "ops/lod/offsets.h"
#include "impl/lod.h"

enum { PADDING = -1 };

/* For each row of the result, the index of its source row in x, or PADDING. `at` is scratch memory. */
typedef struct rows_map {
    int64_t *at;
    int64_t n;
} rows_map;

static proa_status map_new(int64_t n, rows_map *to)
{
    *to = (rows_map){proa_scratch((size_t)(n + 1) * sizeof(int64_t)), 0};
    return to->at ? PROA_OK : proa_error();
}

static void map_add(rows_map *m, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++) m->at[m->n++] = first + i;
}

static void gather(const rows_map *m, const proa_tensor *x, proa_tensor *out)
{
    size_t row = row_bytes(x);
    for (int64_t i = 0; row && i < m->n; i++)
        memcpy(out->data + (size_t)i * row, x->data + (size_t)m->at[i] * row, row);
}

/* d_x = sum of d_out's rows by their source row; frees the map. */
static proa_status scatter(const char *op, rows_map *m, const proa_tensor *d_out, proa_tensor *d_x)
{
    int64_t w = row_items(d_x);
    proa_status status = PROA_OK;
    if (d_out->numel != m->n * w)
        status = proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "d_out",
                               "is %s; expected %lld rows as those of %s", proa__tensor_text(d_out),
                               (long long)m->n, proa__tensor_text(d_x));
    memset(d_x->data, 0, (size_t)d_x->numel * proa_dtype_size((proa_dtype)d_x->dtype));
    for (int64_t i = 0; status == PROA_OK && i < m->n; i++) {
        if (m->at[i] == PADDING) continue;
        if (d_x->dtype == PROA_F64) {
            double *to = (double *)(void *)d_x->data + m->at[i] * w;
            const double *from = (const double *)(const void *)d_out->data + i * w;
            for (int64_t k = 0; k < w; k++) to[k] += from[k];
        } else {
            float *to = (float *)(void *)d_x->data + m->at[i] * w;
            const float *from = (const float *)(const void *)d_out->data + i * w;
            for (int64_t k = 0; k < w; k++) to[k] += from[k];
        }
    }
    proa_scratch_free(m->at);
    return status;
}

/* Creates out with the map's number of rows and the other dims of x. */
static proa_tensor *sized(void *args, const char *op, const proa_tensor *x, int64_t rows)
{
    proa_meta meta = proa_meta_of(x);
    meta.shape[0] = rows;
    return proa_output_resize(args, proa_find_op(op), 0, &meta);
}

static int64_t *sized_offsets(void *args, const char *op, int64_t n)
{
    proa_meta meta = {.dtype = PROA_I64, .ndim = 1, .shape = {n + 1}};
    proa_tensor *t = proa_output_resize(args, proa_find_op(op), 1, &meta);
    return t ? (int64_t *)(void *)t->data : NULL;
}

/* ---- expand ---- */

/* Sequence i of x (row i without offsets) as often as sequence i of y has rows. */
static proa_status expand_map(const char *op, const proa_tensor *x, const proa_tensor *x_offsets,
                              const proa_tensor *y_offsets, rows_map *m, offsets *own, offsets *times)
{
    PROA_TRY(offsets_of(op, "y_offsets", y_offsets, -1, times));
    *own = (offsets){NULL, x->shape[0]};
    if (!proa__absent(x_offsets)) PROA_TRY(offsets_of(op, "x_offsets", x_offsets, x->shape[0], own));
    if (own->n != times->n)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "y_offsets",
                             "has %lld sequences; expected one for each of x's %lld", (long long)times->n,
                             (long long)own->n);
    int64_t total = 0;
    for (int64_t i = 0; i < own->n; i++)
        total += (times->at[i + 1] - times->at[i]) * (own->at ? own->at[i + 1] - own->at[i] : 1);
    PROA_TRY(map_new(total, m));
    for (int64_t i = 0; i < own->n; i++)
        for (int64_t k = times->at[i]; k < times->at[i + 1]; k++)
            map_add(m, own->at ? own->at[i] : i, own->at ? own->at[i + 1] - own->at[i] : 1);
    return PROA_OK;
}

PROA_KERNEL(sequence_expand_cpu, sequence_expand)
{
    rows_map m;
    offsets own, times;
    PROA_TRY(expand_map("sequence_expand", a->x, a->x_offsets, a->y_offsets, &m, &own, &times));
    proa_sequence_expand_args *args = (proa_sequence_expand_args *)(uintptr_t)a;
    proa_tensor *out = sized(args, "sequence_expand", a->x, m.n);
    if (out) gather(&m, a->x, out);
    proa_scratch_free(m.at);
    if (!out || !own.at) return proa_error();
    int64_t *to = sized_offsets(args, "sequence_expand", times.at[times.n]);
    if (!to) return proa_error();
    for (int64_t i = *to = 0; i < own.n; i++)
        for (int64_t k = times.at[i]; k < times.at[i + 1]; k++, to++)
            to[1] = to[0] + own.at[i + 1] - own.at[i];
    return PROA_OK;
}

PROA_KERNEL(sequence_expand_grad_cpu, sequence_expand_grad)
{
    rows_map m;
    offsets own, times;
    PROA_TRY(expand_map("sequence_expand_grad", a->x, a->x_offsets, a->y_offsets, &m, &own, &times));
    return scatter("sequence_expand_grad", &m, a->d_out, a->d_x);
}

PROA_KERNEL(sequence_expand_as_cpu, sequence_expand_as)
{
    rows_map m;
    offsets own, times;
    PROA_TRY(expand_map("sequence_expand_as", a->x, proa_none, a->y_offsets, &m, &own, &times));
    proa_status status = PROA_OK;
    if (m.n != a->out->shape[0])
        status = ROWS_FAIL(sequence_expand_as, INVALID_ARGUMENT, "y_offsets",
                           "end at %lld; expected the rows of y, %lld", (long long)m.n,
                           (long long)a->out->shape[0]);
    else gather(&m, a->x, a->out);
    proa_scratch_free(m.at);
    return status;
}

PROA_KERNEL(sequence_expand_as_grad_cpu, sequence_expand_as_grad)
{
    rows_map m;
    offsets own, times;
    PROA_TRY(expand_map("sequence_expand_as_grad", a->x, proa_none, a->y_offsets, &m, &own, &times));
    return scatter("sequence_expand_as_grad", &m, a->d_out, a->d_x);
}

/* ---- concat ---- */

typedef struct joining {
    const proa_tensors *x;
    offsets *parts; /* of each x */
} joining;

static proa_status joining_new(const char *op, const proa_tensors *x, const proa_tensors *of, joining *to)
{
    *to = (joining){x, proa_scratch((size_t)x->count * sizeof *to->parts)};
    proa_status status = to->parts ? PROA_OK : proa_error();
    for (int64_t i = 0; i < x->count && status == PROA_OK; i++) {
        status = offsets_of(op, "offsets", of->at[i], x->at[i]->shape[0], &to->parts[i]);
        if (status == PROA_OK && to->parts[i].n != to->parts[0].n)
            status = proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "offsets",
                                   "(entry %lld) has %lld sequences, the first %lld", (long long)i,
                                   (long long)to->parts[i].n, (long long)to->parts[0].n);
    }
    if (status != PROA_OK) proa_scratch_free(to->parts);
    return status;
}

/* Copies between the parts and the concatenation: into it, or (`apart`) out of it. */
static void join(const joining *j, char *whole, proa_tensor *const *to, bool apart)
{
    size_t row = row_bytes(j->x->at[0]);
    for (int64_t s = 0; s < j->parts[0].n; s++)
        for (int64_t i = 0; i < j->x->count; i++) {
            const int64_t *at = j->parts[i].at;
            size_t bytes = (size_t)(at[s + 1] - at[s]) * row;
            char *part = to[i]->data + (size_t)at[s] * row;
            if (bytes) memcpy(apart ? part : whole, apart ? whole : part, bytes);
            whole += bytes;
        }
}

PROA_KERNEL(sequence_concat_cpu, sequence_concat)
{
    joining j;
    PROA_TRY(joining_new("sequence_concat", &a->x, &a->offsets, &j));
    join(&j, a->out->data, a->x.at, false);
    int64_t *to = (int64_t *)(void *)a->out_offsets->data;
    to[0] = 0;
    for (int64_t s = 0; s < j.parts[0].n; s++) {
        to[s + 1] = to[s];
        for (int64_t i = 0; i < a->x.count; i++) to[s + 1] += j.parts[i].at[s + 1] - j.parts[i].at[s];
    }
    proa_scratch_free(j.parts);
    return PROA_OK;
}

PROA_KERNEL(sequence_concat_grad_cpu, sequence_concat_grad)
{
    joining j;
    int64_t rows = 0;
    for (int64_t i = 0; i < a->x.count; i++) rows += a->x.at[i]->shape[0];
    if (a->d_out->numel != rows * row_items(a->x.at[0]))
        return ROWS_FAIL(sequence_concat_grad, INVALID_ARGUMENT, "d_out", "is %s; expected %lld rows",
                         proa__tensor_text(a->d_out), (long long)rows);
    PROA_TRY(joining_new("sequence_concat_grad", &a->x, &a->offsets, &j));
    join(&j, a->d_out->data, a->d_x.at, true);
    proa_scratch_free(j.parts);
    return PROA_OK;
}

/* ---- pad and unpad ---- */

static proa_status pad_map(const char *op, const offsets *of, int64_t length, rows_map *m)
{
    PROA_TRY(map_new(of->n * length, m));
    for (int64_t i = 0; i < of->n; i++) {
        int64_t n = of->at[i + 1] - of->at[i];
        if (n > length) {
            proa_scratch_free(m->at);
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "padded_length",
                                 "is %lld, and sequence %lld has %lld rows", (long long)length, (long long)i,
                                 (long long)n);
        }
        map_add(m, of->at[i], n);
        for (; n < length; n++) m->at[m->n++] = PADDING;
    }
    return PROA_OK;
}

PROA_KERNEL(sequence_pad_cpu, sequence_pad)
{
    offsets of;
    rows_map m;
    PROA_TRY(offsets_of("sequence_pad", "offsets", a->offsets, a->x->shape[0], &of));
    int64_t length = a->padded_length, items = row_items(a->x);
    for (int64_t i = 0; a->padded_length < 0 && i < of.n; i++)
        length = of.at[i + 1] - of.at[i] > length ? of.at[i + 1] - of.at[i] : length;
    length = length < 0 ? 0 : length;
    if (a->pad_value->numel != 1 && a->pad_value->numel != items)
        return ROWS_FAIL(sequence_pad, INVALID_ARGUMENT, "pad_value",
                         "is %s; expected one element or a row of x %s", proa__tensor_text(a->pad_value),
                         proa__tensor_text(a->x));
    proa_meta meta = {
        .dtype = (proa_dtype)a->x->dtype, .ndim = (int8_t)(a->x->ndim + 1), .shape = {of.n, length}};
    for (int i = 1; i < a->x->ndim; i++) meta.shape[i + 1] = a->x->shape[i];
    proa_sequence_pad_args *args = (proa_sequence_pad_args *)(uintptr_t)a;
    const proa_op *op = proa_find_op("sequence_pad");
    proa_tensor *out = proa_output_resize(args, op, 0, &meta);
    proa_meta counts = {.dtype = PROA_I64, .ndim = 1, .shape = {of.n}};
    proa_tensor *lengths = out ? proa_output_resize(args, op, 1, &counts) : NULL;
    if (!lengths) return proa_error();
    PROA_TRY(pad_map("sequence_pad", &of, length, &m));
    size_t item = proa_dtype_size(meta.dtype), row = row_bytes(a->x);
    for (int64_t i = 0; row && i < m.n; i++) {
        char *to = out->data + (size_t)i * row;
        if (m.at[i] != PADDING) memcpy(to, a->x->data + (size_t)m.at[i] * row, row);
        else if (a->pad_value->numel == items) memcpy(to, a->pad_value->data, row);
        else
            for (int64_t k = 0; k < items; k++) memcpy(to + (size_t)k * item, a->pad_value->data, item);
    }
    for (int64_t i = 0; i < of.n; i++) ((int64_t *)(void *)lengths->data)[i] = of.at[i + 1] - of.at[i];
    proa_scratch_free(m.at);
    return PROA_OK;
}

PROA_KERNEL(sequence_pad_grad_cpu, sequence_pad_grad)
{
    offsets of;
    rows_map m;
    PROA_TRY(offsets_of("sequence_pad_grad", "offsets", a->offsets, a->x->shape[0], &of));
    PROA_TRY(pad_map("sequence_pad_grad", &of, a->d_out->shape[1], &m));
    return scatter("sequence_pad_grad", &m, a->d_out, a->d_x);
}

/* x [n, longest, …] as rows of its flattened first two dims. */
static proa_status unpad_map(const char *op, const proa_tensor *x, const proa_tensor *length, rows_map *m)
{
    const int64_t *n = (const int64_t *)(const void *)length->data;
    int64_t longest = x->shape[1], total = 0;
    for (int64_t i = 0; i < length->numel; i++) {
        if (n[i] < 0 || n[i] > longest)
            return proa__op_fail(PROA_ERR_OUT_OF_RANGE, proa_find_op(op), "length",
                                 "entry %lld is %lld; expected 0 to %lld", (long long)i, (long long)n[i],
                                 (long long)longest);
        total += n[i];
    }
    PROA_TRY(map_new(total, m));
    for (int64_t i = 0; i < length->numel; i++) map_add(m, i * longest, n[i]);
    return PROA_OK;
}

/* A handle on t's memory that shows [n, longest, …] as [n · longest, …]. */
static proa_tensor flat_rows(const proa_tensor *t)
{
    proa_tensor flat = {.dtype = t->dtype, .ndim = (int8_t)(t->ndim - 1), .numel = t->numel, .data = t->data};
    flat.shape[0] = t->shape[0] * t->shape[1];
    for (int i = 2; i < t->ndim; i++) flat.shape[i - 1] = t->shape[i];
    return flat;
}

PROA_KERNEL(sequence_unpad_cpu, sequence_unpad)
{
    rows_map m;
    PROA_TRY(unpad_map("sequence_unpad", a->x, a->length, &m));
    proa_tensor flat = flat_rows(a->x);
    if (a->x->ndim == 2) flat.shape[flat.ndim++] = 1;
    proa_sequence_unpad_args *args = (proa_sequence_unpad_args *)(uintptr_t)a;
    proa_tensor *out = sized(args, "sequence_unpad", &flat, m.n);
    int64_t *to = out ? sized_offsets(args, "sequence_unpad", a->length->numel) : NULL;
    if (to) {
        gather(&m, &flat, out);
        to[0] = 0;
        for (int64_t i = 0; i < a->length->numel; i++)
            to[i + 1] = to[i] + ((const int64_t *)(const void *)a->length->data)[i];
    }
    proa_scratch_free(m.at);
    return proa_error();
}

PROA_KERNEL(sequence_unpad_grad_cpu, sequence_unpad_grad)
{
    rows_map m;
    PROA_TRY(unpad_map("sequence_unpad_grad", a->x, a->length, &m));
    proa_tensor flat = flat_rows(a->d_x);
    return scatter("sequence_unpad_grad", &m, a->d_out, &flat);
}

/* ---- reverse, slice, reshape ---- */

PROA_KERNEL(sequence_reverse_cpu, sequence_reverse)
{
    offsets of;
    PROA_TRY(offsets_of("sequence_reverse", "offsets", a->offsets, a->x->shape[0], &of));
    size_t row = row_bytes(a->x);
    for (int64_t s = 0; row && s < of.n; s++)
        for (int64_t i = of.at[s], k = of.at[s + 1] - 1; i < of.at[s + 1]; i++, k--)
            memcpy(a->out->data + (size_t)k * row, a->x->data + (size_t)i * row, row);
    return PROA_OK;
}

static proa_status slice_map(const char *op, const offsets *of, const proa_tensor *offset,
                             const proa_tensor *length, rows_map *m)
{
    int64_t total = 0;
    for (int64_t i = 0; i < of->n; i++) {
        int64_t from = rows_get_int((proa_dtype)offset->dtype, offset->data, i);
        int64_t n = rows_get_int((proa_dtype)length->dtype, length->data, i), has = of->at[i + 1] - of->at[i];
        if (from < 0 || n < 0 || from > has || n > has - from)
            return proa__op_fail(PROA_ERR_OUT_OF_RANGE, proa_find_op(op), "length",
                                 "asks for %lld rows from row %lld of sequence %lld, which has %lld",
                                 (long long)n, (long long)from, (long long)i, (long long)has);
        total += n;
    }
    PROA_TRY(map_new(total, m));
    for (int64_t i = 0; i < of->n; i++)
        map_add(m, of->at[i] + rows_get_int((proa_dtype)offset->dtype, offset->data, i),
                rows_get_int((proa_dtype)length->dtype, length->data, i));
    return PROA_OK;
}

PROA_KERNEL(sequence_slice_cpu, sequence_slice)
{
    offsets of;
    rows_map m;
    PROA_TRY(offsets_of("sequence_slice", "offsets", a->offsets, a->x->shape[0], &of));
    PROA_TRY(slice_map("sequence_slice", &of, a->offset, a->length, &m));
    proa_sequence_slice_args *args = (proa_sequence_slice_args *)(uintptr_t)a;
    proa_tensor *out = sized(args, "sequence_slice", a->x, m.n);
    int64_t *to = out ? sized_offsets(args, "sequence_slice", of.n) : NULL;
    if (to) {
        gather(&m, a->x, out);
        to[0] = 0;
        for (int64_t i = 0; i < of.n; i++)
            to[i + 1] = to[i] + rows_get_int((proa_dtype)a->length->dtype, a->length->data, i);
    }
    proa_scratch_free(m.at);
    return proa_error();
}

PROA_KERNEL(sequence_slice_grad_cpu, sequence_slice_grad)
{
    offsets of;
    rows_map m;
    PROA_TRY(offsets_of("sequence_slice_grad", "offsets", a->offsets, a->x->shape[0], &of));
    PROA_TRY(slice_map("sequence_slice_grad", &of, a->offset, a->length, &m));
    return scatter("sequence_slice_grad", &m, a->d_out, a->d_x);
}

PROA_KERNEL(sequence_reshape_cpu, sequence_reshape)
{
    offsets of;
    PROA_TRY(offsets_of("sequence_reshape", "offsets", a->offsets, a->x->shape[0], &of));
    int64_t *to = (int64_t *)(void *)a->out_offsets->data;
    for (int64_t i = 0; i <= of.n; i++) {
        int64_t items = of.at[i] * a->x->shape[1];
        if (items % a->new_dim)
            return ROWS_FAIL(sequence_reshape, INVALID_ARGUMENT, "new_dim",
                             "is %lld, which does not divide the elements of sequence %lld",
                             (long long)a->new_dim, (long long)i - 1);
        to[i] = items / a->new_dim;
    }
    memcpy(a->out->data, a->x->data, (size_t)a->x->numel * proa_dtype_size((proa_dtype)a->x->dtype));
    return PROA_OK;
}

PROA_KERNEL(sequence_reshape_grad_cpu, sequence_reshape_grad)
{
    memcpy(a->d_x->data, a->d_out->data, (size_t)a->d_x->numel * proa_dtype_size((proa_dtype)a->d_x->dtype));
    return PROA_OK;
}

PROA_KERNEL(lod_reset_cpu, lod_reset)
{
    int64_t *to = (int64_t *)(void *)a->out_offsets->data, n = a->out_offsets->shape[0];
    const proa_tensor *from = proa__absent(a->y_offsets) ? a->y : a->y_offsets;
    bool given = !proa__absent(from);
    for (int64_t i = 0; i < n; i++)
        to[i] = given ? rows_get_int((proa_dtype)from->dtype, from->data, i) : a->target_lod.at[i];
    offsets of;
    const char *name = !given ? "target_lod" : from == a->y ? "y" : "y_offsets";
    PROA_TRY(offsets_of("lod_reset", name, a->out_offsets, a->x->shape[0], &of));
    memcpy(a->out->data, a->x->data, (size_t)a->x->numel * proa_dtype_size((proa_dtype)a->x->dtype));
    return PROA_OK;
}

/* ---- enumerate and scatter ---- */

PROA_KERNEL(sequence_enumerate_cpu, sequence_enumerate)
{
    offsets of;
    PROA_TRY(offsets_of("sequence_enumerate", "offsets", a->offsets, a->x->shape[0], &of));
    size_t item = proa_dtype_size((proa_dtype)a->x->dtype);
    int32_t pad32 = (int32_t)a->pad_value;
    const void *pad = item == 8 ? (const void *)&a->pad_value : (const void *)&pad32;
    for (int64_t s = 0; s < of.n; s++)
        for (int64_t i = of.at[s]; i < of.at[s + 1]; i++)
            for (int64_t k = 0; k < a->win_size; k++) {
                bool inside = k < of.at[s + 1] - i;
                memcpy(a->out->data + (size_t)(i * a->win_size + k) * item,
                       inside ? a->x->data + (size_t)(i + k) * item : pad, item);
            }
    return PROA_OK;
}

/* The column that id i names; −1 and an error if there is none. */
static int64_t column_of(const char *op, const proa_tensor *ids, int64_t i, int64_t width)
{
    int64_t c = rows_get_int((proa_dtype)ids->dtype, ids->data, i);
    if (c >= 0 && c < width) return c;
    proa__op_fail(PROA_ERR_OUT_OF_RANGE, proa_find_op(op), "ids", "entry %lld is %lld; expected 0 to %lld",
                  (long long)i, (long long)c, (long long)width - 1);
    return -1;
}

static void add_one(proa_dtype dtype, char *to, const char *from)
{
    switch (dtype) {
    case PROA_F64: *(double *)(void *)to += *(const double *)(const void *)from; break;
    case PROA_F32: *(float *)(void *)to += *(const float *)(const void *)from; break;
    case PROA_I64:
        *(int64_t *)(void *)to =
            (int64_t)((uint64_t) * (int64_t *)(void *)to + (uint64_t) * (const int64_t *)(const void *)from);
        break;
    default:
        *(int32_t *)(void *)to =
            (int32_t)((uint32_t) * (int32_t *)(void *)to + (uint32_t) * (const int32_t *)(const void *)from);
        break;
    }
}

PROA_KERNEL(sequence_scatter_cpu, sequence_scatter)
{
    offsets of;
    PROA_TRY(offsets_of("sequence_scatter", "offsets", a->offsets, a->ids->numel, &of));
    proa_dtype dtype = (proa_dtype)a->x->dtype;
    size_t item = proa_dtype_size(dtype);
    int64_t w = a->x->shape[1];
    memcpy(a->out->data, a->x->data, (size_t)a->x->numel * item);
    for (int64_t s = 0; s < of.n; s++)
        for (int64_t i = of.at[s]; i < of.at[s + 1]; i++) {
            int64_t c = column_of("sequence_scatter", a->ids, i, w);
            if (c < 0) return proa_error();
            add_one(dtype, a->out->data + (size_t)(s * w + c) * item, a->updates->data + (size_t)i * item);
        }
    return PROA_OK;
}

PROA_KERNEL(sequence_scatter_grad_cpu, sequence_scatter_grad)
{
    offsets of;
    PROA_TRY(offsets_of("sequence_scatter_grad", "offsets", a->offsets, a->ids->numel, &of));
    size_t item = proa_dtype_size((proa_dtype)a->d_out->dtype);
    int64_t w = a->d_out->shape[1];
    memcpy(a->d_x->data, a->d_out->data, (size_t)a->d_out->numel * item);
    for (int64_t s = 0; s < of.n; s++)
        for (int64_t i = of.at[s]; i < of.at[s + 1]; i++) {
            int64_t c = column_of("sequence_scatter_grad", a->ids, i, w);
            if (c < 0) return proa_error();
            memcpy(a->d_updates->data + (size_t)i * item, a->d_out->data + (size_t)(s * w + c) * item, item);
        }
    return PROA_OK;
}
