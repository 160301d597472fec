/* Creation ops in Paddle's programs: values written as text, and numbers passed as one-element tensors. May
 * use core, public ops and proa/wire.h. */
#include "core/internal.h"
#include "core/tensor.h"
#include "ops/shape_meta.h"
#include "ops/wire_util.h"
#include "impl/create.h"
#include "impl/shape.h"

#include <proa/wire.h>

#include <math.h>
#include <stdlib.h>

/* The shape from ShapeTensor or, where there is none, ShapeTensorList or the attribute. */
static proa_ints read_shape(proa_wire_reader *r)
{
    proa_tensor *t = proa_wire_input(r, "ShapeTensor");
    if (t != PROA_NONE) return (proa_ints){0, NULL, t, NULL};
    return proa_wire_list(r, "shape", NULL, "ShapeTensorList");
}

/* The value of str_value, which takes precedence ("inf", "nan" and integers above 2^53 included), or of
 * value. */
static proa_scalar read_value(proa_wire_reader *r, proa_dtype d)
{
    const char *text = proa_wire_string(r, "str_value", "");
    double v = proa_wire_float(r, "value", 0);
    if (!text || !*text) return proa_scalar_float(v);
    char *end = NULL;
    long long whole = strtoll(text, &end, 10);
    if (d <= PROA_I64 && *end == '\0') return proa_scalar_int(whole);
    return proa_scalar_float(strtod(text, NULL));
}

proa_status full_read(proa_wire_reader *r)
{
    proa_dtype d = proa_wire_dtype(r, "dtype", PROA_F32);
    proa_tensor *given = proa_wire_input(r, "ValueTensor");
    proa_scalar v = given == PROA_NONE ? read_value(r, d) : proa_scalar_tensor(given);
    return proa_wire_result(r, "Out", proa_full(read_shape(r), v, .dtype = d));
}

/* The shape attribute with one dim as long as one of Input's. */
proa_status full_read_batch_size_like(proa_wire_reader *r)
{
    proa_tensor *like = proa_wire_input(r, "Input"), *supplied[PROA_MAX_DIMS] = {NULL};
    proa_dtype d = proa_wire_dtype(r, "dtype", PROA_F32);
    proa_ints given = proa_wire_ints(r, "shape");
    int64_t shape[PROA_MAX_DIMS], from = proa_wire_int(r, "input_dim_idx", 0);
    int64_t to = proa_wire_int(r, "output_dim_idx", 0);
    if (!like) return proa_error();
    if (given.count > PROA_MAX_DIMS || to < 0 || to >= given.count || from < 0 || from >= proa_ndim(like))
        return proa_fail(PROA_ERR_CORRUPT,
                         "fill_constant_batch_size_like: dim %lld of %s does not give dim %lld of %lld",
                         (long long)from, proa__tensor_text(like), (long long)to, (long long)given.count);
    for (int64_t i = 0; i < given.count; i++) shape[i] = given.at[i];
    shape[to] = like->shape[from];
    proa_ints all = {given.count, shape, NULL, NULL};
    if (shape[to] < 0) { /* a program's variable supplies it */
        shape[to] = 0;
        supplied[to] = proa_slice(proa_shape(like), PROA_INTS(0), PROA_INTS(from), PROA_INTS(from + 1));
        if (!supplied[to]) return proa_error();
        all.tensors = supplied;
    }
    return proa_wire_result(r, "Out", proa_full(all, read_value(r, d), .dtype = d));
}

static proa_status put_value(proa_wire_writer *w, const proa_scalar *s)
{
    char text[64] = "";
    double v = s->kind == PROA_SCALAR_FLOAT ? s->f : (double)s->i;
    if (s->kind == PROA_SCALAR_TENSOR) {
        PROA_TRY(proa_wire_put_input(w, "ValueTensor", s->tensor));
        v = 0;
    } else if (s->kind == PROA_SCALAR_FLOAT) {
        snprintf(text, sizeof text, isnan(v) ? "nan" : isinf(v) ? (v > 0 ? "inf" : "-inf") : "%.17g", v);
    } else {
        snprintf(text, sizeof text, "%lld", (long long)s->i);
    }
    PROA_TRY(proa_wire_put_float(w, "value", v));
    return proa_wire_put_string(w, "str_value", text);
}

/* Writes fill_constant's attributes, all but its shape, and its output. */
static proa_status put_fill(proa_wire_writer *w, proa_dtype d, const proa_scalar *value, proa_tensor *out)
{
    PROA_TRY(proa__wire_put_dtype(w, "dtype", d));
    PROA_TRY(put_value(w, value));
    PROA_TRY(proa_wire_put_int(w, "force_cpu", PROA_WIRE_BOOLEAN, 0));
    PROA_TRY(proa_wire_put_int(w, "place_type", PROA_WIRE_INT, -1));
    return proa_wire_put_output(w, "Out", out);
}

/* The entries of a shape that are numbers, among tensors, as constants of the program. */
static proa_status put_entries(proa_wire_writer *w, const proa_ints *shape, proa_tensor **entries)
{
    const proa_meta one = {.dtype = PROA_I64, .ndim = 1, .shape = {1}};
    for (int64_t i = 0; i < shape->count; i++) {
        proa_scalar value = proa_scalar_int(shape->at ? shape->at[i] : 0);
        entries[i] = shape->tensors[i];
        if (entries[i]) continue;
        entries[i] = proa_wire_temporary(w, &one);
        if (!entries[i]) return proa_error();
        PROA_TRY(proa_wire_op(w, "fill_constant"));
        PROA_TRY(proa_wire_put_ints(w, "shape", PROA_WIRE_LONGS, PROA_INTS(1)));
        PROA_TRY(put_fill(w, PROA_I64, &value, entries[i]));
    }
    return PROA_OK;
}

proa_status full_write(const void *args, proa_wire_writer *w)
{
    const proa_full_args *a = args;
    proa_tensor *entries[PROA_MAX_DIMS] = {NULL};
    int64_t listed = a->shape.tensors ? a->shape.count : 0;
    if (listed > PROA_MAX_DIMS)
        return proa_fail(PROA_ERR_UNSUPPORTED, "full: shape has %lld entries; expected %d at most",
                         (long long)listed, PROA_MAX_DIMS);
    if (listed) PROA_TRY(put_entries(w, &a->shape, entries));
    PROA_TRY(proa_wire_op(w, "fill_constant"));
    if (a->shape.tensor) PROA_TRY(proa_wire_put_input(w, "ShapeTensor", a->shape.tensor));
    for (int64_t i = 0; i < listed; i++) PROA_TRY(proa_wire_put_input(w, "ShapeTensorList", entries[i]));
    int64_t numbers[PROA_MAX_DIMS]; /* −1: a variable's */
    int n = 0;
    if (!a->shape.tensor) PROA_TRY(proa__ints_list("full", "shape", &a->shape, PROA_MAX_DIMS, numbers, &n));
    for (int i = 0; i < n; i++)
        if (numbers[i] == PROA_UNKNOWN) numbers[i] = -1;
    PROA_TRY(proa_wire_put_ints(w, "shape", PROA_WIRE_LONGS, (proa_ints){n, numbers, NULL, NULL}));
    return put_fill(w, proa__dtype_or_default(a->dtype), &a->fill_value, a->out);
}

proa_status full_like_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    proa_dtype d = proa_wire_dtype(r, "dtype", PROA_NODTYPE);
    return proa_wire_result(r, "Out", proa_full_like(x, proa_wire_float(r, "value", 0), .dtype = d));
}

proa_status zeros_like_read(proa_wire_reader *r)
{
    return proa_wire_result(r, "Out", proa_full_like(proa_wire_input(r, "X"), 0));
}

proa_status tril_triu_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    int64_t diagonal = proa_wire_int(r, "diagonal", 0);
    int64_t given = diagonal == 0 ? PROA_ZERO : diagonal;
    proa_tensor *out =
        proa_wire_int(r, "lower", 0) ? proa_tril(x, .diagonal = given) : proa_triu(x, .diagonal = given);
    return proa_wire_result(r, "Out", out);
}

/* ---- ranges: their numbers are tensors on the wire ---- */

static proa_dtype common_dtype(const proa_tensor *t)
{
    return t && t != PROA_NONE ? (proa_dtype)t->dtype : PROA_NODTYPE;
}

proa_status arange_read(proa_wire_reader *r)
{
    proa_tensor *start = proa_wire_input(r, "Start"), *end = proa_wire_input(r, "End"),
                *step = proa_wire_input(r, "Step");
    return proa_wire_result(r, "Out", proa_arange(start, end, step, .dtype = common_dtype(start)));
}

proa_status linspace_read(proa_wire_reader *r)
{
    proa_tensor *start = proa_wire_input(r, "Start"), *stop = proa_wire_input(r, "Stop"),
                *num = proa_wire_input(r, "Num");
    proa_dtype d = proa_wire_dtype(r, "dtype", common_dtype(start));
    return proa_wire_result(r, "Out", proa_linspace(start, stop, num, .dtype = d));
}

/* A number as a variable of a dtype, which Paddle's kernels read without asking: its own tensor, or a
 * constant made by an op before. */
static proa_tensor *number_variable(proa_wire_writer *w, const proa_scalar *s, proa_dtype d)
{
    if (s->kind == PROA_SCALAR_TENSOR) return proa__wire_cast(w, s->tensor, d);
    proa_meta m = {.dtype = d, .ndim = 1, .shape = {1}};
    proa_tensor *t = proa_wire_temporary(w, &m);
    if (!t) return NULL;
    proa_full_args full = {.shape = PROA_INTS(1), .fill_value = *s, .dtype = d, .out = t};
    return full_write(&full, w) == PROA_OK ? t : NULL;
}

proa_status arange_write(const void *args, proa_wire_writer *w)
{
    const proa_arange_args *a = args;
    proa_dtype d = (proa_dtype)a->out->dtype;
    proa_tensor *start = number_variable(w, &a->start, d), *end = number_variable(w, &a->end, d);
    proa_tensor *step = number_variable(w, &a->step, d);
    if (!start || !end || !step) return proa_error();
    PROA_TRY(proa_wire_op(w, "range"));
    PROA_TRY(proa_wire_put_input(w, "Start", start));
    PROA_TRY(proa_wire_put_input(w, "End", end));
    PROA_TRY(proa_wire_put_input(w, "Step", step));
    return proa_wire_put_output(w, "Out", a->out);
}

proa_status linspace_write(const void *args, proa_wire_writer *w)
{
    const proa_linspace_args *a = args;
    proa_dtype d = (proa_dtype)a->out->dtype;
    proa_tensor *start = number_variable(w, &a->start, d), *stop = number_variable(w, &a->stop, d);
    proa_tensor *num = number_variable(w, &a->num, PROA_I32);
    if (!start || !stop || !num) return proa_error();
    PROA_TRY(proa_wire_op(w, "linspace"));
    PROA_TRY(proa_wire_put_input(w, "Start", start));
    PROA_TRY(proa_wire_put_input(w, "Stop", stop));
    PROA_TRY(proa_wire_put_input(w, "Num", num));
    PROA_TRY(proa__wire_put_dtype(w, "dtype", d));
    return proa_wire_put_output(w, "Out", a->out);
}

/* ---- listed values: one attribute a dtype ---- */

proa_status assign_value_read(proa_wire_reader *r)
{
    proa_ints shape = proa_wire_ints(r, "shape"), whole = {0};
    proa_dtype d = proa_wire_dtype(r, "dtype", PROA_F32);
    proa_floats values = {0};
    if (d == PROA_BOOL) whole = proa_wire_ints(r, "bool_values");
    else if (d == PROA_I32) whole = proa_wire_ints(r, "int32_values");
    else if (d == PROA_I64) whole = proa_wire_ints(r, "int64_values");
    else if (d == PROA_F64) values = proa_wire_floats(r, "fp64_values");
    else values = proa_wire_floats(r, "fp32_values");
    return proa_wire_result(r, "Out", proa_assign_value(shape, d, .values = values, .int_values = whole));
}

proa_status assign_value_write(const void *args, proa_wire_writer *w)
{
    const proa_assign_value_args *a = args;
    static const struct {
        const char *name;
        proa_wire_type type;
        proa_dtype dtype;
    } lists[] = {{"bool_values", PROA_WIRE_INTS, PROA_BOOL},
                 {"int32_values", PROA_WIRE_INTS, PROA_I32},
                 {"int64_values", PROA_WIRE_LONGS, PROA_I64}};
    PROA_TRY(proa_wire_op(w, "assign_value"));
    PROA_TRY(proa_wire_put_ints(w, "shape", PROA_WIRE_INTS, a->shape));
    PROA_TRY(proa__wire_put_dtype(w, "dtype", a->dtype));
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        PROA_TRY(proa_wire_put_ints(w, lists[i].name, lists[i].type,
                                    lists[i].dtype == a->dtype ? a->int_values : (proa_ints){0}));
    PROA_TRY(proa_wire_put_floats(w, "fp32_values", a->dtype == PROA_F32 ? a->values : (proa_floats){0}));
    return proa_wire_put_output(w, "Out", a->out);
}
