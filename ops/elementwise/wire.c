/* Elementwise ops whose form in Paddle's programs differs from ours: operands aligned at an axis, neg, clip,
 * cast, assign, square and sum, and ops that broadcast where Paddle's kernels do not. May use core, public
 * ops and proa/wire.h. */
#include "core/internal.h"
#include "core/tensor.h"
#include "ops/broadcast.h"
#include "ops/wire_util.h"
#include "impl/elementwise.h"
#include "impl/shape.h"

#include <proa/wire.h>

/* y's dims stand at x's dims [axis, …): ones are appended so that they align on the right. axis −1 is that
 * already. Trailing ones of y that would stick out are dropped, as Paddle does. */
static proa_tensor *aligned(int64_t axis, const proa_tensor *x, proa_tensor *y)
{
    int kept = y->ndim;
    while (kept > 0 && axis + kept > x->ndim && y->shape[kept - 1] == 1) kept--;
    int64_t after = x->ndim - axis - kept;
    if (axis < 0 || after < 0) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  "elementwise op: axis %lld does not place y's shape %s in x's shape %s", (long long)axis,
                  proa__shape_text(y->shape, y->ndim), proa__shape_text(x->shape, x->ndim));
        return NULL;
    }
    int64_t shape[PROA_MAX_DIMS];
    int n = 0;
    for (; n < kept; n++) shape[n] = y->shape[n] < 0 ? 0 : y->shape[n]; /* reshape: 0 keeps the dim */
    for (int i = 0; i < after && n < PROA_MAX_DIMS; i++) shape[n++] = 1;
    return n == y->ndim ? y : proa_reshape(y, ((proa_ints){n, shape, NULL, NULL}));
}

bool proa__wire_align(proa_wire_reader *r, proa_tensor **x, proa_tensor **y)
{
    int64_t axis = proa_wire_int(r, "axis", -1);
    if (!*x || !*y) return false;
    if (axis == -1 || (*x)->ndim == (*y)->ndim) return true;
    if ((*x)->ndim > (*y)->ndim) *y = aligned(axis, *x, *y);
    else *x = aligned(axis, *y, *x);
    return *x && *y;
}

#define ALIGNED_READ(op)                                                        \
    proa_status op##_read(proa_wire_reader *r)                                  \
    {                                                                           \
        proa_tensor *x = proa_wire_input(r, "X"), *y = proa_wire_input(r, "Y"); \
        if (!proa__wire_align(r, &x, &y)) return proa_error();                  \
        return proa_wire_result(r, "Out", proa_##op(x, y));                     \
    }
ALIGNED_READ(add)
ALIGNED_READ(subtract)
ALIGNED_READ(multiply)
ALIGNED_READ(divide)
ALIGNED_READ(floor_divide)
ALIGNED_READ(remainder)
ALIGNED_READ(elementwise_pow)
ALIGNED_READ(maximum)
ALIGNED_READ(minimum)
ALIGNED_READ(heaviside)
ALIGNED_READ(equal)
ALIGNED_READ(not_equal)
ALIGNED_READ(less_than)
ALIGNED_READ(less_equal)
ALIGNED_READ(greater_than)
ALIGNED_READ(greater_equal)

/* −x is written as Paddle writes it: scale by −1. */
proa_status neg_write(const void *args, proa_wire_writer *w)
{
    const proa_neg_args *a = args;
    PROA_TRY(proa_wire_op(w, "scale"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa_wire_put_float(w, "scale", -1));
    PROA_TRY(proa_wire_put_float(w, "bias", 0));
    PROA_TRY(proa_wire_put_int(w, "bias_after_scale", PROA_WIRE_BOOLEAN, 1));
    return proa_wire_put_output(w, "Out", a->out);
}

/* A limit of clip: a tensor as input `slot`; one that is not given as `end`. */
static proa_status put_limit(proa_wire_writer *w, const char *attr, const char *slot, const proa_scalar *s,
                             double end)
{
    if (s->kind == PROA_SCALAR_TENSOR) {
        PROA_TRY(proa_wire_put_input(w, slot, s->tensor));
        return proa_wire_put_float(w, attr, 0);
    }
    double v = s->kind == PROA_SCALAR_NONE ? end : s->kind == PROA_SCALAR_FLOAT ? s->f : (double)s->i;
    return proa_wire_put_float(w, attr, v);
}

proa_status clip_write(const void *args, proa_wire_writer *w)
{
    const proa_clip_args *a = args;
    /* The attributes are float32, and Paddle converts them to x's dtype: the outermost that it can. */
    double low = -3.4028234663852886e38, high = 3.4028234663852886e38;
    if (a->x->dtype == PROA_I64) low = -0x1p63, high = 0x1.fffffep62;
    if (a->x->dtype == PROA_I32) low = -0x1p31, high = 0x1.fffffep30;
    PROA_TRY(proa_wire_op(w, "clip"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(put_limit(w, "min", "Min", &a->min, low));
    PROA_TRY(put_limit(w, "max", "Max", &a->max, high));
    return proa_wire_put_output(w, "Out", a->out);
}

/* cast says both dtypes. */
proa_status cast_write(const void *args, proa_wire_writer *w)
{
    const proa_cast_args *a = args;
    PROA_TRY(proa_wire_op(w, "cast"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa__wire_put_dtype(w, "in_dtype", (proa_dtype)a->x->dtype));
    PROA_TRY(proa__wire_put_dtype(w, "out_dtype", a->dtype));
    /* Paddle's jit.load appends a backward, and cast's asks for this one. */
    PROA_TRY(proa_wire_put_int(w, "use_mkldnn", PROA_WIRE_BOOLEAN, 0));
    return proa_wire_put_output(w, "Out", a->out);
}

/* t broadcast with another tensor's shape: zeros of that shape are added, or or'ed. NULL on error. */
static proa_tensor *widened(proa_wire_writer *w, proa_tensor *t, proa_tensor *with)
{
    if (!t || !with) return NULL;
    proa_meta m = proa_meta_of(t);
    bool fits = proa__broadcast_into(&m, with), logical = m.dtype == PROA_BOOL;
    if (!fits || (m.ndim == t->ndim && !memcmp(m.shape, t->shape, (size_t)t->ndim * sizeof *t->shape)))
        return t;
    proa_tensor *nothing = proa__wire_filled_like(w, with, m.dtype, 0);
    proa_tensor *wide = nothing ? proa_wire_temporary(w, &m) : NULL;
    if (!wide || proa_wire_op(w, logical ? "logical_or" : "elementwise_add") != PROA_OK ||
        proa_wire_put_input(w, "X", t) != PROA_OK || proa_wire_put_input(w, "Y", nothing) != PROA_OK ||
        (!logical && proa_wire_put_int(w, "axis", PROA_WIRE_INT, -1) != PROA_OK) ||
        proa_wire_put_output(w, "Out", wide) != PROA_OK)
        return NULL;
    return wide;
}

/* Paddle's where does not broadcast. */
proa_status where_write(const void *args, proa_wire_writer *w)
{
    const proa_where_args *a = args;
    proa_tensor *condition = widened(w, widened(w, a->condition, a->x), a->y);
    proa_tensor *x = widened(w, a->x, condition), *y = widened(w, a->y, condition);
    if (!x || !y) return proa_error();
    PROA_TRY(proa_wire_op(w, "where"));
    PROA_TRY(proa_wire_put_input(w, "Condition", condition));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(proa_wire_put_input(w, "Y", y));
    return proa_wire_put_output(w, "Out", a->out);
}

/* Paddle's `sum` adds a list of tensors. */
proa_status add_read_sum(proa_wire_reader *r)
{
    proa_tensors xs = proa_wire_inputs(r, "X");
    if (!xs.count && !proa_error())
        return proa_fail(PROA_ERR_CORRUPT, "add: op sum of the program has no input X");
    proa_tensor *total = xs.count == 1 ? proa_assign(xs.at[0]) : xs.count ? xs.at[0] : NULL;
    for (int64_t i = 1; i < xs.count; i++) total = proa_add(total, xs.at[i]);
    return proa_wire_result(r, "Out", total);
}

/* ---- assign ----------------------------------------------------------------------------- */

/* Detached where the file says that its result stops gradients: so detach is written, too. */
proa_status assign_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *out = x ? proa_assign(x) : NULL;
    bool has_gradients = out && out->dtype > PROA_I64; /* floating, complex */
    if (has_gradients && proa_wire_stops_gradient(r, "Out")) out = proa_share_data(out);
    return proa_wire_result(r, "Out", out);
}

/* x · x for complex numbers, of which Paddle's kernel knows no squares. */
proa_status square_write(const void *args, proa_wire_writer *w)
{
    const proa_square_args *a = args;
    bool product = a->x->dtype == PROA_C64 || a->x->dtype == PROA_C128;
    PROA_TRY(proa_wire_op(w, product ? "elementwise_mul" : "square"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    if (product) PROA_TRY(proa_wire_put_input(w, "Y", a->x));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    return product ? proa_wire_put_int(w, "axis", PROA_WIRE_INT, -1) : PROA_OK;
}

/* ---- ops that Paddle's kernels do not broadcast ------------------------------------------- */

/* x brought to out's shape; where dims are unknown, by `other`, as out has the shape of both. */
static proa_status put_operand(proa_wire_writer *w, proa_tensor *x, proa_tensor *other, proa_tensor *out,
                               proa_tensor **made)
{
    proa_meta m = proa_meta_of(out);
    for (int i = 0; i < m.ndim; i++)
        if (m.shape[i] < 0) return proa__wire_put_grown(w, x, other, &m, made);
    return proa__wire_put_expanded(w, x, &m, made);
}

static proa_status put_pair(proa_wire_writer *w, const char *type, const char *const slots[3], proa_tensor *x,
                            proa_tensor *y, proa_tensor *out)
{
    proa_tensor *left, *right;
    PROA_TRY(put_operand(w, x, y, out, &left));
    PROA_TRY(put_operand(w, y, x, out, &right));
    PROA_TRY(proa_wire_op(w, type));
    PROA_TRY(proa_wire_put_input(w, slots[0], left));
    PROA_TRY(proa_wire_put_input(w, slots[1], right));
    return proa_wire_put_output(w, slots[2], out);
}

proa_status heaviside_write(const void *args, proa_wire_writer *w)
{
    const proa_heaviside_args *a = args;
    PROA_TRY(
        put_pair(w, "elementwise_heaviside", (const char *const[3]){"X", "Y", "Out"}, a->x, a->y, a->out));
    return proa_wire_put_int(w, "axis", PROA_WIRE_INT, -1);
}

proa_status atan2_write(const void *args, proa_wire_writer *w)
{
    const proa_atan2_args *a = args;
    return put_pair(w, "atan2", (const char *const[3]){"X1", "X2", "Out"}, a->x, a->y, a->out);
}

proa_status nextafter_write(const void *args, proa_wire_writer *w)
{
    const proa_nextafter_args *a = args;
    return put_pair(w, "nextafter", (const char *const[3]){"x", "y", "out"}, a->x, a->y, a->out);
}
