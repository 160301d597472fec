/* Shape inference, views, rules and wire forms of complex, as_complex and as_real, and of isclose, allclose
 * and equal_all; also the views of real and imag, polygamma's inference, and the reading of increment. May
 * use core, ops and proa/wire.h. */
#include "ops/broadcast.h"
#include "ops/elementwise/rules.h"

#include <proa/wire.h>
#include <stdio.h>
#include <stdlib.h>

proa_status complex_vjp(const proa_complex_args *a, proa_complex_grads *g)
{
    (void)a;
    if (g->want_real) g->d_real = proa_real(g->d_out);
    if (g->want_imag) g->d_imag = proa_imag(g->d_out);
    return proa_error();
}

proa_status as_complex_infer(const proa_as_complex_args *a, proa_as_complex_metas *m)
{
    const proa_tensor *x = a->x;
    if (x->ndim < 1 || (x->shape[x->ndim - 1] >= 0 && x->shape[x->ndim - 1] != 2))
        return OP_FAIL("as_complex", INVALID_ARGUMENT, "x", "is %s; expected a last axis of length 2",
                       proa__tensor_text(x));
    m->out = proa_meta_of(x);
    m->out.ndim--;
    m->out.dtype = x->dtype == PROA_F64 ? PROA_C128 : PROA_C64;
    return PROA_OK;
}

/* Makes `out` a view of x if the two numbers of each pair are adjacent and strides are whole pairs; else the
 * kernel copies. */
proa_status as_complex_view(proa_as_complex_args *a, const proa_meta *m)
{
    const proa_tensor *x = a->x;
    int64_t item = (int64_t)proa_dtype_size((proa_dtype)x->dtype);
    bool pairs = x->strides[m->ndim] == item;
    for (int i = 0; i < m->ndim; i++) pairs &= x->strides[i] % (2 * item) == 0;
    if (!pairs) return PROA_OK;
    a->out = proa__tensor_view_as(a->x, m->dtype, m->ndim, m->shape, x->strides, 0);
    return a->out ? PROA_OK : proa_error();
}

proa_status as_complex_vjp(const proa_as_complex_args *a, proa_as_complex_grads *g)
{
    (void)a;
    g->d_x = proa_as_real(g->d_out);
    return proa_error();
}

proa_status as_real_infer(const proa_as_real_args *a, proa_as_real_metas *m)
{
    const proa_tensor *x = a->x;
    if (x->ndim == PROA_MAX_DIMS)
        return OP_FAIL("as_real", INVALID_ARGUMENT, "x", "has %d axes already, the most possible", x->ndim);
    m->out = proa_meta_of(x);
    m->out.shape[m->out.ndim++] = 2;
    m->out.dtype = x->dtype == PROA_C128 ? PROA_F64 : PROA_F32;
    return PROA_OK;
}

proa_status as_real_view(proa_as_real_args *a, const proa_meta *m)
{
    int64_t strides[PROA_MAX_DIMS];
    for (int i = 0; i < a->x->ndim; i++) strides[i] = a->x->strides[i];
    strides[m->ndim - 1] = (int64_t)proa_dtype_size(m->dtype);
    a->out = proa__tensor_view_as(a->x, m->dtype, m->ndim, m->shape, strides, 0);
    return a->out ? PROA_OK : proa_error();
}

/* Every other number of x: its real parts, or its imaginary ones. */
static proa_status component(proa_tensor *x, const proa_meta *m, int64_t offset, proa_tensor **out)
{
    *out = proa__tensor_view_as(x, m->dtype, m->ndim, m->shape, x->strides, offset);
    return *out ? PROA_OK : proa_error();
}

proa_status real_view(proa_real_args *a, const proa_meta *m) { return component(a->x, m, 0, &a->out); }
proa_status imag_view(proa_imag_args *a, const proa_meta *m)
{
    return component(a->x, m, (int64_t)proa_dtype_size(m->dtype), &a->out);
}

proa_status as_real_vjp(const proa_as_real_args *a, proa_as_real_grads *g)
{
    (void)a;
    g->d_x = proa_as_complex(g->d_out);
    return proa_error();
}

/* ---- comparisons ------------------------------------------------------------------------ */

static proa_status one_bool(const char *who, const proa_tensor *x, const proa_tensor *y, proa_meta *m)
{
    *m = (proa_meta){.dtype = PROA_BOOL};
    if (x->dtype == y->dtype) return PROA_OK;
    return OP_FAIL(who, INVALID_ARGUMENT, "y", "is %s; expected x's dtype, %s", proa__tensor_text(y),
                   proa_dtype_name((proa_dtype)x->dtype));
}

proa_status allclose_infer(const proa_allclose_args *a, proa_allclose_metas *m)
{
    proa_meta both = proa_meta_of(a->x);
    PROA_TRY(one_bool("allclose", a->x, a->y, &m->out));
    if (proa__broadcast_into(&both, a->y)) return PROA_OK;
    return OP_FAIL("allclose", INVALID_ARGUMENT, "y", "is %s, which does not broadcast with x, %s",
                   proa__tensor_text(a->y), proa__tensor_text(a->x));
}

proa_status equal_all_infer(const proa_equal_all_args *a, proa_equal_all_metas *m)
{
    if (a->y->ndim > a->x->ndim)
        return OP_FAIL("equal_all", INVALID_ARGUMENT, "y", "has more dims than x: x is %s, y %s",
                       proa__tensor_text(a->x), proa__tensor_text(a->y));
    return one_bool("equal_all", a->x, a->y, &m->out);
}

/* Paddle keeps the tolerances as text, unless tensors give them. */
static double read_tolerance(proa_wire_reader *r, const char *slot, const char *attr, const char *missing)
{
    proa_tensor *given = proa_wire_input(r, slot);
    if (given && given != proa_none) return proa_item(given);
    double v = strtod(proa_wire_string(r, attr, missing), NULL);
    return v != 0 ? v : (double)PROA_ZERO;
}

static proa_status put_tolerance(proa_wire_writer *w, const char *attr, double v)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", v);
    return proa_wire_put_string(w, attr, text);
}

static proa_status write_close(proa_wire_writer *w, const char *type, const proa_isclose_args *a)
{
    PROA_TRY(proa_wire_op(w, type));
    PROA_TRY(proa_wire_put_input(w, "Input", a->x));
    PROA_TRY(proa_wire_put_input(w, "Other", a->y));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    PROA_TRY(put_tolerance(w, "rtol", a->rtol));
    PROA_TRY(put_tolerance(w, "atol", a->atol));
    return proa_wire_put_int(w, "equal_nan", PROA_WIRE_BOOLEAN, a->equal_nan);
}

#define CLOSE_READ(op)                                                                                    \
    proa_status op##_read(proa_wire_reader *r)                                                            \
    {                                                                                                     \
        double rtol = read_tolerance(r, "Rtol", "rtol", "1e-5");                                          \
        double atol = read_tolerance(r, "Atol", "atol", "1e-8");                                          \
        bool nan = proa_wire_int(r, "equal_nan", 0) != 0;                                                 \
        proa_tensor *x = proa_wire_input(r, "Input"), *y = proa_wire_input(r, "Other");                   \
        return proa_wire_result(r, "Out", proa_##op(x, y, .rtol = rtol, .atol = atol, .equal_nan = nan)); \
    }
CLOSE_READ(isclose)
CLOSE_READ(allclose)

proa_status isclose_write(const void *args, proa_wire_writer *w) { return write_close(w, "isclose", args); }

proa_status allclose_write(const void *args, proa_wire_writer *w)
{
    const proa_allclose_args *a = args;
    return write_close(w, "allclose",
                       &(proa_isclose_args){.x = a->x,
                                            .y = a->y,
                                            .out = a->out,
                                            .rtol = a->rtol,
                                            .atol = a->atol,
                                            .equal_nan = a->equal_nan});
}

proa_status polygamma_infer(const proa_polygamma_args *a, proa_polygamma_metas *m)
{
    if (a->order < 0 || a->order > 100)
        return OP_FAIL("polygamma", INVALID_ARGUMENT, "order", "is %lld; expected 0 to 100",
                       (long long)a->order);
    m->out = proa_meta_of(a->x);
    return PROA_OK;
}

/* increment's out is a new value of x's variable. */
proa_status scale_read_increment(proa_wire_reader *r)
{
    return proa_wire_result(r, "Out",
                            proa_scale(proa_wire_input(r, "X"), .bias = proa_wire_float(r, "step", 1)));
}
