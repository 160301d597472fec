/* Reductions in Paddle's programs (attributes dim, keep_dim and reduce_all), argmax, argmin and cumsum, and
 * variance, which is written as a composition. May use core, public ops and proa/wire.h. */
#include "core/internal.h"
#include "core/tensor.h"
#include "ops/reduce/axes.h"
#include "ops/wire_util.h"
#include "impl/elementwise.h"
#include "impl/reduce.h"

/* Axes of a reduce_* op; none when it reduces all. Variables win over the attribute's numbers. */
static proa_ints read_axes(proa_wire_reader *r, const char *attr, int64_t *zero)
{
    if (proa_wire_int(r, "reduce_all", 0)) return (proa_ints){0};
    proa_ints axes = proa_wire_list(r, attr, "AxisTensor", "AxisTensorList");
    /* left out, the attribute is [0] */
    return axes.count || axes.tensor || proa_wire_has(r, attr) ? axes : (proa_ints){1, zero, NULL, NULL};
}

/* Axes that variables supply. Paddle's amax, amin, any, all and logsumexp have numbers only. */
static proa_status write_variables(proa_wire_writer *w, const char *who, const char *attr,
                                   proa_wire_type type, const proa_ints *axis)
{
    if (type == PROA_WIRE_LONGS || strcmp(attr, "dim") != 0)
        return OP_FAIL(who, UNSUPPORTED, "axis", "comes from a variable; Paddle's %s takes numbers only",
                       who);
    PROA_TRY(proa_wire_put_int(w, "reduce_all", PROA_WIRE_BOOLEAN, 0));
    return proa_wire_put_variables(w, attr, *axis);
}

/* dim has every axis by number, also when all are reduced. */
static proa_status write_axes(proa_wire_writer *w, const char *who, const char *attr, proa_wire_type type,
                              const proa_ints *axis, const proa_tensor *x)
{
    if (proa__ints_unknown(axis)) return write_variables(w, who, attr, type, axis);
    unsigned mask;
    int64_t axes[PROA_MAX_DIMS];
    int n = 0;
    PROA_TRY(proa__reduce_mask(who, axis, x->ndim, &mask));
    for (int i = 0; i < x->ndim; i++)
        if (mask >> i & 1) axes[n++] = i;
    bool all = n == x->ndim;
    PROA_TRY(proa_wire_put_ints(w, attr, type, (proa_ints){n, axes, NULL, NULL}));
    return proa_wire_put_int(w, "reduce_all", PROA_WIRE_BOOLEAN, all);
}

static proa_status write_reduce(proa_wire_writer *w, const char *who, const char *type, proa_wire_type list,
                                proa_tensor *x, const proa_ints *axis, bool keepdim, proa_dtype in,
                                proa_dtype dtype, proa_tensor *out)
{
    if (dtype != PROA_NODTYPE && strcmp(type, "reduce_prod") == 0) { /* which ignores out_dtype */
        proa_meta m = proa_meta_of(x);
        m.dtype = dtype;
        proa_tensor *converted = proa_wire_temporary(w, &m);
        if (!converted) return proa_error();
        PROA_TRY(proa__wire_put_cast(w, x, converted));
        x = converted;
        in = dtype = PROA_NODTYPE;
    }
    PROA_TRY(proa_wire_op(w, type));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(write_axes(w, who, "dim", list, axis, x));
    PROA_TRY(proa_wire_put_int(w, "keep_dim", PROA_WIRE_BOOLEAN, keepdim));
    PROA_TRY(proa__wire_put_dtype(w, "in_dtype", in));
    PROA_TRY(proa__wire_put_dtype(w, "out_dtype", dtype));
    return proa_wire_put_output(w, "Out", out);
}

/* Writes a reduction whose op has no result dtype. */
static proa_status write_plain(proa_wire_writer *w, const char *who, const char *type, proa_wire_type list,
                               proa_tensor *x, const proa_ints *axis, bool keepdim, proa_tensor *out)
{
    return write_reduce(w, who, type, list, x, axis, keepdim, PROA_NODTYPE, PROA_NODTYPE, out);
}

/* Writes a reduction to out's dtype as in_dtype (x's) and out_dtype; both are left open if they are equal. */
static proa_status write_typed(proa_wire_writer *w, const char *who, const char *type, proa_wire_type list,
                               proa_tensor *x, const proa_ints *axis, bool keepdim, proa_tensor *out)
{
    proa_dtype in = (proa_dtype)x->dtype, d = (proa_dtype)out->dtype;
    if (in == d) in = d = PROA_NODTYPE;
    return write_reduce(w, who, type, list, x, axis, keepdim, in, d, out);
}

/* Reader of a reduce_* op; `...`: a further option, followed by a comma. */
#define REDUCE_READ(op, ...)                                                                       \
    proa_status op##_read(proa_wire_reader *r)                                                     \
    {                                                                                              \
        int64_t zeros[PROA_MAX_DIMS] = {0};                                                        \
        proa_tensor *x = proa_wire_input(r, "X");                                                  \
        proa_ints axis = read_axes(r, "dim", zeros);                                               \
        bool keep = proa_wire_int(r, "keep_dim", 0) != 0;                                          \
        return proa_wire_result(r, "Out", proa_##op(x, __VA_ARGS__.axis = axis, .keepdim = keep)); \
    }
#define REDUCE_WRITE(op, type, list, write)                                   \
    proa_status op##_write(const void *args, proa_wire_writer *w)             \
    {                                                                         \
        const proa_##op##_args *a = args;                                     \
        return write(w, #op, type, list, a->x, &a->axis, a->keepdim, a->out); \
    }
#define REDUCE_WIRE(op, type, list) REDUCE_READ(op, ) REDUCE_WRITE(op, type, list, write_plain)
#define TYPED_REDUCE_WIRE(op, type, list)                                     \
    REDUCE_READ(op, .dtype = proa_wire_dtype(r, "out_dtype", PROA_NODTYPE), ) \
    REDUCE_WRITE(op, type, list, write_typed)

TYPED_REDUCE_WIRE(sum, "reduce_sum", PROA_WIRE_INTS)
TYPED_REDUCE_WIRE(prod, "reduce_prod", PROA_WIRE_INTS)
REDUCE_WIRE(mean, "reduce_mean", PROA_WIRE_INTS)
REDUCE_WIRE(max, "reduce_max", PROA_WIRE_INTS)
REDUCE_WIRE(min, "reduce_min", PROA_WIRE_INTS)
REDUCE_WIRE(amax, "reduce_amax", PROA_WIRE_LONGS)
REDUCE_WIRE(amin, "reduce_amin", PROA_WIRE_LONGS)
REDUCE_WIRE(any, "reduce_any", PROA_WIRE_LONGS)
REDUCE_WIRE(all, "reduce_all", PROA_WIRE_LONGS)

proa_status mean_read_all(proa_wire_reader *r)
{
    return proa_wire_result(r, "Out", proa_mean(proa_wire_input(r, "X")));
}

proa_status logsumexp_read(proa_wire_reader *r)
{
    int64_t zeros[PROA_MAX_DIMS] = {0};
    proa_ints axis = read_axes(r, "axis", zeros);
    bool keep = proa_wire_int(r, "keepdim", 0) != 0;
    return proa_wire_result(r, "Out", proa_logsumexp(proa_wire_input(r, "X"), .axis = axis, .keepdim = keep));
}

proa_status logsumexp_write(const void *args, proa_wire_writer *w)
{
    const proa_logsumexp_args *a = args;
    PROA_TRY(proa_wire_op(w, "logsumexp"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(write_axes(w, "logsumexp", "axis", PROA_WIRE_INTS, &a->axis, a->x));
    PROA_TRY(proa_wire_put_int(w, "keepdim", PROA_WIRE_BOOLEAN, a->keepdim));
    return proa_wire_put_output(w, "Out", a->out);
}

/* ---- variance: its composition ---- */

/* An op `type` of x, and of y where there is one, into `out` or else a variable like x. NULL: an error. */
static proa_tensor *step(proa_wire_writer *w, const char *type, proa_tensor *x, proa_tensor *y,
                         proa_tensor *out)
{
    if (!x) return NULL;
    proa_meta meta = proa_meta_of(x);
    if (!out) out = proa_wire_temporary(w, &meta);
    if (!out || proa_wire_op(w, type) || proa_wire_put_input(w, "X", x) ||
        proa_wire_put_output(w, "Out", out))
        return NULL;
    if (y && (proa_wire_put_input(w, "Y", y) || proa_wire_put_int(w, "axis", PROA_WIRE_INT, -1))) return NULL;
    return out;
}

static proa_status write_scale(proa_wire_writer *w, double scale, double bias)
{
    PROA_TRY(proa_wire_put_float(w, "scale", scale));
    PROA_TRY(proa_wire_put_float(w, "bias", bias));
    return proa_wire_put_int(w, "bias_after_scale", PROA_WIRE_BOOLEAN, 1);
}

static proa_status write_over(proa_wire_writer *w, const char *type, const proa_variance_args *a,
                              proa_tensor *x, bool keepdim, proa_tensor *out)
{
    return write_reduce(w, "variance", type, PROA_WIRE_INTS, x, &a->axis, keepdim, PROA_NODTYPE, PROA_NODTYPE,
                        out);
}

/* sum / max(n − 1, 1), or sum / n, where n is a sum of ones, since the count is known only when the program
 * runs. */
static proa_status write_unknown_count(proa_wire_writer *w, const proa_variance_args *a, proa_tensor *sum)
{
    proa_meta meta = proa_meta_of(a->out);
    proa_tensor *ones = proa__wire_filled_like(w, a->x, (proa_dtype)a->x->dtype, 1);
    proa_tensor *count = ones ? proa_wire_temporary(w, &meta) : NULL;
    if (!count) return proa_error();
    PROA_TRY(write_over(w, "reduce_sum", a, ones, a->keepdim, count));
    if (a->unbiased) {
        proa_tensor *less = step(w, "scale", count, NULL, NULL);
        if (!less) return proa_error();
        PROA_TRY(write_scale(w, 1, -1));
        proa_tensor *one = proa__wire_filled_like(w, count, meta.dtype, 1);
        count = one ? step(w, "elementwise_max", less, one, NULL) : NULL;
        if (!count) return proa_error();
    }
    return step(w, "elementwise_div", sum, count, a->out) ? PROA_OK : proa_error();
}

proa_status variance_write(const void *args, proa_wire_writer *w)
{
    const proa_variance_args *a = args;
    unsigned mask = 0;
    int64_t n = 1, less = a->unbiased ? 1 : 0;
    bool unknown = proa__ints_unknown(&a->axis);
    if (!unknown) PROA_TRY(proa__reduce_mask("variance", &a->axis, a->x->ndim, &mask));
    proa_meta meta = proa_meta_of(a->x), result = proa_meta_of(a->out);
    for (int i = 0; i < a->x->ndim; i++) {
        if (unknown) meta.shape[i] = n = -1;
        if (unknown || !(mask >> i & 1)) continue;
        n = meta.shape[i] < 0 || n < 0 ? -1 : n * meta.shape[i];
        meta.shape[i] = 1;
    }
    proa_tensor *mean = proa_wire_temporary(w, &meta);
    if (!mean) return proa_error();
    PROA_TRY(write_over(w, "reduce_mean", a, a->x, true, mean));
    proa_tensor *square = step(w, "square", step(w, "elementwise_sub", a->x, mean, NULL), NULL, NULL);
    proa_tensor *sum = square ? proa_wire_temporary(w, &result) : NULL;
    if (!sum) return proa_error();
    PROA_TRY(write_over(w, "reduce_sum", a, square, a->keepdim, sum));
    if (n < 0) return write_unknown_count(w, a, sum);
    if (!step(w, "scale", sum, NULL, a->out)) return proa_error();
    return write_scale(w, 1.0 / (double)(n > less ? n - less : 1), 0);
}

/* ---- arg-reductions and running sums: the axis is absent when flatten says so ---- */

static proa_scalar read_axis(proa_wire_reader *r, int64_t missing)
{
    if (proa_wire_int(r, "flatten", 0)) return (proa_scalar){0};
    const proa_ints from = proa_wire_variables(r, "axis");
    if (from.tensor) return proa_scalar_tensor(from.tensor);
    if (from.count == 1) return proa_scalar_tensor(from.tensors[0]);
    return proa_scalar_int(proa_wire_int(r, "axis", missing));
}

static proa_status write_axis(proa_wire_writer *w, const char *who, const proa_scalar *axis,
                              const proa_tensor *x, proa_wire_type type, bool flatten)
{
    int at;
    bool flat;
    PROA_TRY(proa__scan_axis(who, axis, x->ndim, &at, &flat));
    if (at == PROA_AXIS_UNKNOWN && !flatten)
        PROA_TRY(proa_wire_put_variables(w, "axis", (proa_ints){.tensor = axis->tensor}));
    else /* of one axis, once flattened */
        PROA_TRY(proa_wire_put_int(w, "axis", type, flat || flatten ? -1 : at));
    return proa_wire_put_int(w, "flatten", PROA_WIRE_BOOLEAN, flat || flatten);
}

static proa_status write_arg(proa_wire_writer *w, const char *who, const char *type,
                             const proa_argmax_args *a)
{
    PROA_TRY(proa_wire_op(w, type));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(write_axis(w, who, &a->axis, a->x, PROA_WIRE_LONG, false));
    PROA_TRY(proa_wire_put_int(w, "keepdims", PROA_WIRE_BOOLEAN, a->keepdim));
    PROA_TRY(proa__wire_put_dtype(w, "dtype", (proa_dtype)a->out->dtype));
    return proa_wire_put_output(w, "Out", a->out);
}

static proa_argmax_opts read_arg(proa_wire_reader *r)
{
    return (proa_argmax_opts){.axis = read_axis(r, -1),
                              .keepdim = proa_wire_int(r, "keepdims", 0) != 0,
                              .dtype = proa_wire_dtype(r, "dtype", PROA_I64)};
}

proa_status argmax_read(proa_wire_reader *r)
{
    return proa_wire_result(r, "Out", proa_argmax_opt(proa_wire_input(r, "X"), read_arg(r)));
}

proa_status argmax_write(const void *args, proa_wire_writer *w)
{
    return write_arg(w, "argmax", "arg_max", args);
}

proa_status argmin_read(proa_wire_reader *r)
{
    const proa_argmax_opts o = read_arg(r);
    return proa_wire_result(
        r, "Out",
        proa_argmin(proa_wire_input(r, "X"), .axis = o.axis, .keepdim = o.keepdim, .dtype = o.dtype));
}

proa_status argmin_write(const void *args, proa_wire_writer *w)
{
    const proa_argmin_args *a = args;
    return write_arg(w, "argmin", "arg_min",
                     &(proa_argmax_args){.x = a->x, .axis = a->axis, .keepdim = a->keepdim, .out = a->out});
}

proa_status cumsum_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    bool exclusive = proa_wire_int(r, "exclusive", 0) != 0, reverse = proa_wire_int(r, "reverse", 0) != 0;
    return proa_wire_result(
        r, "Out", proa_cumsum(x, .axis = read_axis(r, -1), .exclusive = exclusive, .reverse = reverse));
}

/* A result dtype is a cast before, as Paddle's own Python writes it. */
proa_status cumsum_write(const void *args, proa_wire_writer *w)
{
    const proa_cumsum_args *a = args;
    proa_tensor *x = proa__wire_cast(w, a->x, (proa_dtype)a->out->dtype);
    if (!x) return proa_error();
    PROA_TRY(proa_wire_op(w, "cumsum"));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(write_axis(w, "cumsum", &a->axis, a->x, PROA_WIRE_INT, a->flatten));
    PROA_TRY(proa_wire_put_int(w, "exclusive", PROA_WIRE_BOOLEAN, a->exclusive));
    PROA_TRY(proa_wire_put_int(w, "reverse", PROA_WIRE_BOOLEAN, a->reverse));
    return proa_wire_put_output(w, "Out", a->out);
}

/* ---- older spellings, as compositions ---- */

proa_status sum_read_l1_norm(proa_wire_reader *r)
{
    return proa_wire_result(r, "Out", proa_sum(proa_abs(proa_wire_input(r, "X"))));
}
