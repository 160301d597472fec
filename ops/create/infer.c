/* Shape and dtype inference of creation ops. May use core and the op headers. */
#include "ops/shape_meta.h"

#include "core/error.h"
#include "core/internal.h"
#include "core/tensor.h"
#include "ops/create/range.h"
#include "ops/ints.h"
#include "impl/create.h"

#include <math.h>

proa_status proa__shape_meta(const char *who, const proa_ints *shape, proa_dtype dtype, proa_meta *m)
{
    int n = 0;
    PROA_TRY(proa__shape_list(who, "shape", shape, m->shape, &n));
    bool unknown[PROA_MAX_DIMS];
    for (int i = 0; i < n; i++) {
        unknown[i] = m->shape[i] == PROA_UNKNOWN;
        if (unknown[i]) m->shape[i] = 1;
    }
    PROA_TRY(proa__meta_from_shape(who, (proa_ints){n, m->shape, NULL, NULL}, dtype, m));
    for (int i = 0; i < n; i++)
        if (unknown[i]) m->shape[i] = -1;
    return PROA_OK;
}

proa_status proa__check_dtype(const char *who, proa_dtype dtype, uint32_t allowed)
{
    if (dtype > PROA_NODTYPE && dtype < PROA_DTYPE_COUNT && allowed >> dtype & 1) return PROA_OK;
    char list[PROA_DTYPES_TEXT];
    return OP_FAIL(who, WRONG_TYPE, "dtype", "is %s; expected one of %s", proa_dtype_name(dtype),
                   proa_dtypes_text(allowed, list));
}

proa_status proa__check_scalar(const char *who, const char *name, const proa_scalar *s)
{
    if (s->kind != PROA_SCALAR_TENSOR) return PROA_OK;
    if (!s->tensor) return proa_error();
    if (s->tensor->numel == 1 || s->tensor->numel < 0) return PROA_OK;
    return OP_FAIL(who, INVALID_ARGUMENT, name, "is supplied by a tensor of shape %s; expected one element",
                   proa__shape_text(s->tensor->shape, s->tensor->ndim));
}

proa_status proa__number(const char *who, const char *name, const proa_scalar *s, proa_number *to)
{
    *to = (proa_number){.known = true};
    switch (s->kind) {
    case PROA_SCALAR_BOOL:
    case PROA_SCALAR_INT: to->integer = true, to->i = s->i, to->f = (double)s->i; return PROA_OK;
    case PROA_SCALAR_FLOAT: to->f = s->f; break;
    case PROA_SCALAR_TENSOR:
        PROA_TRY(proa__check_scalar(who, name, s));
        to->integer = s->tensor->dtype <= PROA_I64;
        if (!s->tensor->data || s->tensor->numel < 0) {
            to->known = false;
            return PROA_OK;
        }
        to->f = proa_item(s->tensor);
        if (to->integer) to->i = proa_item_int(s->tensor);
        if (proa_error() != PROA_OK) return proa_error();
        break;
    default: return OP_FAIL(who, INVALID_ARGUMENT, name, "is not given; expected a number");
    }
    if (!to->integer) to->i = to->f >= -0x1p63 && to->f < 0x1p63 ? (int64_t)to->f : 0;
    return PROA_OK;
}

proa_status full_infer(const proa_full_args *a, proa_full_metas *m)
{
    PROA_TRY(proa__check_scalar("full", "fill_value", &a->fill_value));
    return proa__shape_meta("full", &a->shape, proa__dtype_or_default(a->dtype), &m->out);
}

proa_status full_like_infer(const proa_full_like_args *a, proa_full_like_metas *m)
{
    PROA_TRY(proa__check_scalar("full_like", "fill_value", &a->fill_value));
    m->out = proa_meta_of(a->x);
    if (a->dtype != PROA_NODTYPE) m->out.dtype = a->dtype;
    return proa__check_dtype("full_like", m->out.dtype, (1u << PROA_DTYPE_COUNT) - 2);
}

static const uint32_t RANGE_DTYPES =
    1u << PROA_I32 | 1u << PROA_I64 | 1u << PROA_F16 | 1u << PROA_BF16 | 1u << PROA_F32 | 1u << PROA_F64;

/* ⌈(end − start) / step⌉, exact for integers. */
static proa_status range_length(const proa_number *start, const proa_number *end, const proa_number *step,
                                int64_t *n)
{
    bool whole = start->integer && end->integer && step->integer;
    if (whole ? step->i == 0 : !(step->f != 0))
        return OP_FAIL("arange", INVALID_ARGUMENT, "step", "is 0; expected another number");
    *n = 0;
    if (whole) {
        int64_t span;
        if (__builtin_sub_overflow(end->i, start->i, &span))
            return OP_FAIL("arange", OVERFLOW, "end", "is too far from start");
        if (span == 0 || (span > 0) != (step->i > 0)) return PROA_OK;
        int64_t q = step->i == -1 ? -span : span / step->i;
        *n = q + (q * step->i != span);
        return PROA_OK;
    }
    double count = ceil((end->f - start->f) / step->f);
    if (!(count < 0x1p62)) return OP_FAIL("arange", OVERFLOW, "end", "gives %g elements", count);
    *n = count > 0 ? (int64_t)count : 0;
    return PROA_OK;
}

proa_status arange_infer(const proa_arange_args *a, proa_arange_metas *m)
{
    proa_number start, end, step;
    PROA_TRY(proa__number("arange", "start", &a->start, &start));
    PROA_TRY(proa__number("arange", "end", &a->end, &end));
    PROA_TRY(proa__number("arange", "step", &a->step, &step));
    bool whole = start.integer && end.integer && step.integer;
    proa_dtype d = a->dtype != PROA_NODTYPE ? a->dtype
                   : a->start.kind == PROA_SCALAR_TENSOR && a->start.tensor
                       ? (proa_dtype)a->start.tensor->dtype
                   : whole ? PROA_I64
                           : proa_default_dtype();
    PROA_TRY(proa__check_dtype("arange", d, RANGE_DTYPES));
    m->out = (proa_meta){.dtype = d, .ndim = 1, .shape = {-1}};
    if (!start.known || !end.known || !step.known) return PROA_OK;
    int64_t n;
    PROA_TRY(range_length(&start, &end, &step, &n));
    return proa__meta_from_shape("arange", PROA_INTS(n), d, &m->out);
}

proa_status linspace_infer(const proa_linspace_args *a, proa_linspace_metas *m)
{
    proa_number start, stop, num;
    PROA_TRY(proa__number("linspace", "start", &a->start, &start));
    PROA_TRY(proa__number("linspace", "stop", &a->stop, &stop));
    PROA_TRY(proa__number("linspace", "num", &a->num, &num));
    proa_dtype d = proa__dtype_or_default(a->dtype);
    PROA_TRY(proa__check_dtype("linspace", d, RANGE_DTYPES));
    m->out = (proa_meta){.dtype = d, .ndim = 1, .shape = {-1}};
    if (!num.known) return PROA_OK;
    if (num.i < 1)
        return OP_FAIL("linspace", INVALID_ARGUMENT, "num", "is %lld; expected 1 or more", (long long)num.i);
    return proa__meta_from_shape("linspace", PROA_INTS(num.i), d, &m->out);
}

proa_status eye_infer(const proa_eye_args *a, proa_eye_metas *m)
{
    int64_t columns = a->num_columns == -1 ? a->num_rows : a->num_columns;
    return proa__meta_from_shape("eye", PROA_INTS(a->num_rows, columns), proa__dtype_or_default(a->dtype),
                                 &m->out);
}

static proa_status triangle_infer(const char *who, const proa_tensor *x, proa_meta *m)
{
    *m = proa_meta_of(x);
    if (x->ndim >= 2) return PROA_OK;
    return OP_FAIL(who, INVALID_ARGUMENT, "x", "has %d dims; expected 2 or more", x->ndim);
}
proa_status tril_infer(const proa_tril_args *a, proa_tril_metas *m)
{
    return triangle_infer("tril", a->x, &m->out);
}
proa_status triu_infer(const proa_triu_args *a, proa_triu_metas *m)
{
    return triangle_infer("triu", a->x, &m->out);
}

proa_status assign_value_infer(const proa_assign_value_args *a, proa_assign_value_metas *m)
{
    PROA_TRY(proa__meta_from_shape("assign_value", a->shape, a->dtype, &m->out));
    int64_t given = a->values.count ? a->values.count : a->int_values.count, n = proa__meta_numel(&m->out);
    if (given == n) return PROA_OK;
    return OP_FAIL("assign_value", INVALID_ARGUMENT, "values", "has %lld entries, but shape %s needs %lld",
                   (long long)given, proa__shape_text(m->out.shape, m->out.ndim), (long long)n);
}

/* Number of elements on or below the diagonal that is `offset` above the main one. */
static int64_t below_diagonal(int64_t rows, int64_t columns, int64_t offset)
{
    if (offset >= columns) return rows * columns;
    /* rows before `first` have none, those from `whole` on all; row i between them has i + offset + 1 */
    int64_t first = offset < 0 ? -offset : 0,
            whole = columns - 1 - rows < offset ? columns - 1 - offset : rows;
    if (first >= rows) return 0;
    if (whole < first) whole = first;
    int64_t n = whole - first;
    return n * (first + offset + 1) + n * (n - 1) / 2 + (rows - whole) * columns;
}

static proa_status indices_infer(const char *who, int64_t rows, int64_t columns, int64_t offset,
                                 proa_dtype dtype, bool lower, proa_meta *m)
{
    int64_t whole;
    if (rows < 0 || columns < 0 || __builtin_mul_overflow(rows, columns, &whole))
        return OP_FAIL(who, INVALID_ARGUMENT, rows < 0 ? "rows" : "cols",
                       "is %lld; expected 0 or more, and no overflow",
                       (long long)(rows < 0 ? rows : columns));
    PROA_TRY(proa__check_dtype(who, dtype, 1u << PROA_I32 | 1u << PROA_I64));
    if (offset < -rows) offset = -rows;
    if (offset > columns) offset = columns;
    int64_t n =
        lower ? below_diagonal(rows, columns, offset) : whole - below_diagonal(rows, columns, offset - 1);
    *m = (proa_meta){.dtype = dtype, .ndim = 2, .shape = {2, n}};
    return PROA_OK;
}

proa_status tril_indices_infer(const proa_tril_indices_args *a, proa_tril_indices_metas *m)
{
    return indices_infer("tril_indices", a->rows, a->cols, a->offset, a->dtype, true, &m->out);
}

proa_status triu_indices_infer(const proa_triu_indices_args *a, proa_triu_indices_metas *m)
{
    return indices_infer("triu_indices", a->rows, a->cols, a->offset, a->dtype, false, &m->out);
}
