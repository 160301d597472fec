/* pad and pad3d in Paddle's programs. A negative padding of pad is written as a slice; Paddle's pad3d takes
 * five axes, so that a tensor of fewer gets axes of length 1 before and loses them after; pad2d of older
 * programs is read. May use core and ops. */
#include "ops/wire_like.h"
#include "impl/shape.h"

enum { AXES = 5, SIDES = 6 };

static const char *const mode_names[] = {"constant", "reflect", "replicate", "circular"};

/* A list that a tensor may supply. */
static proa_ints paddings_of(proa_wire_reader *r)
{
    proa_tensor *given = proa_wire_input(r, "Paddings");
    return proa__is_given(given) ? (proa_ints){.tensor = given} : proa_wire_ints(r, "paddings");
}

/* A variable's paddings top, bottom, left, right as left, right, top, bottom. */
static proa_ints sides_first(proa_tensor *t)
{
    proa_tensor *rows = proa_slice(t, PROA_INTS(0), PROA_INTS(0), PROA_INTS(2));
    proa_tensor *columns = proa_slice(t, PROA_INTS(0), PROA_INTS(2), PROA_INTS(4));
    return (proa_ints){.tensor = proa_concat(PROA_LIST(columns, rows))};
}

/* pad2d: an image, paddings top, bottom, left, right; its mode "edge" is replicate. */
proa_status pad3d_read_2d(proa_wire_reader *r)
{
    proa_ints in = paddings_of(r);
    const char *mode = proa_wire_string(r, "mode", "constant"),
               *format = proa_wire_string(r, "data_format", "NCHW");
    int64_t v[4];
    int n = 0;
    if (!mode || !format) return proa_error();
    PROA_TRY(proa__ints_list("pad3d", "paddings", &in, 4, v, &n));
    if (n != 4)
        return OP_FAIL("pad3d", INVALID_ARGUMENT, "paddings", "of pad2d are %d numbers; expected 4", n);
    proa_pad_mode m = !strcmp(mode, "reflect") ? PROA_PAD_MODE_REFLECT
                      : !strcmp(mode, "edge")  ? PROA_PAD_MODE_REPLICATE
                                               : PROA_PAD_MODE_CONSTANT;
    proa_ints turned = PROA_INTS(v[2], v[3], v[0], v[1]);
    proa_tensor *out =
        proa_pad3d(proa_wire_input(r, "X"), in.tensor ? sides_first(in.tensor) : turned, .mode = m,
                   .value = proa_wire_float(r, "pad_value", 0),
                   .data_format = strcmp(format, "NHWC") ? PROA_DATA_FORMAT_NCHW : PROA_DATA_FORMAT_NHWC);
    return proa_wire_result(r, "Out", out);
}

proa_status pad3d_grad_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *d_out = proa_wire_input(r, "Out@GRAD");
    const char *mode = proa_wire_string(r, "mode", "constant"),
               *format = proa_wire_string(r, "data_format", "NCDHW");
    if (!x || !d_out || !mode || !format) return proa_error();
    int at = 0;
    while (at < 4 && strcmp(mode, mode_names[at]) != 0) at++;
    if (at == 4)
        return OP_FAIL("pad3d_grad", CORRUPT, "mode",
                       "is \"%s\"; expected constant, reflect, replicate or circular", mode);
    proa_tensor *d_x = proa_pad3d_grad(d_out, proa__shape_like(x), paddings_of(r), .mode = (proa_pad_mode)at,
                                       .data_format = strcmp(format, "NDHWC") ? PROA_DATA_FORMAT_NCDHW
                                                                              : PROA_DATA_FORMAT_NDHWC);
    return proa_wire_result(r, "X@GRAD", d_x);
}

/* ---- writing pad ------------------------------------------------------------------------ */

static proa_status put_pad(proa_wire_writer *w, proa_tensor *x, proa_tensor *out, int n, const int64_t *sides,
                           double value)
{
    PROA_TRY(proa_wire_op(w, "pad"));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(proa_wire_put_output(w, "Out", out));
    PROA_TRY(proa_wire_put_ints(w, "paddings", PROA_WIRE_INTS, (proa_ints){n, sides, NULL, NULL}));
    return proa_wire_put_float(w, "pad_value", value);
}

/* Paddle's pad only adds: what negative paddings take away is sliced off first. */
proa_status pad_write(const void *args, proa_wire_writer *w)
{
    const proa_pad_args *a = args;
    int64_t sides[2 * PROA_MAX_DIMS], axes[PROA_MAX_DIMS], starts[PROA_MAX_DIMS], ends[PROA_MAX_DIMS];
    int n = 0, cut = 0;
    bool adds = false;
    PROA_TRY(proa__ints_list("pad", "paddings", &a->paddings, 2 * PROA_MAX_DIMS, sides, &n));
    proa_meta m = proa_meta_of(a->x);
    for (int i = 0; i < n / 2; i++) {
        int64_t *side = sides + (ptrdiff_t)2 * i, cuts[2] = {0};
        for (int k = 0; k < 2; k++) {
            if (side[k] == PROA_UNKNOWN)
                return OP_FAIL("pad", UNSUPPORTED, "paddings",
                               "come from a variable; a program needs numbers");
            adds |= side[k] > 0;
            if (side[k] < 0) cuts[k] = -side[k], side[k] = 0;
        }
        if (!cuts[0] && !cuts[1]) continue;
        axes[cut] = i, starts[cut] = cuts[0], ends[cut++] = cuts[1] ? -cuts[1] : INT32_MAX;
        if (m.shape[i] >= 0) m.shape[i] -= cuts[0] + cuts[1];
    }
    if (cut == 0) return put_pad(w, a->x, a->out, n, sides, a->pad_value);
    proa_tensor *rest = adds ? proa_wire_temporary(w, &m) : a->out;
    if (!rest) return proa_error();
    PROA_TRY(proa__wire_put_slice(w, a->x, rest, (proa_ints){cut, axes, NULL, NULL},
                                  (proa_ints){cut, starts, NULL, NULL}, (proa_ints){cut, ends, NULL, NULL}));
    return adds ? put_pad(w, rest, a->out, n, sides, a->pad_value) : PROA_OK;
}

/* ---- writing pad3d ---------------------------------------------------------------------------- */

/* Attributes that both ops write, and the unit axes that x lacks: `units` of them at axis `first`. */
typedef struct padding {
    const char *op;
    int64_t sides[SIDES];
    proa_tensor *given; /* tensor that supplies the paddings, or NULL */
    bool last;          /* channels are the last axis */
    int units, first;
    const char *mode;
    double value;
} padding;

static proa_status padding_of(padding *p, const char *op, const proa_tensor *image, const proa_ints *paddings,
                              proa_data_format format, proa_pad_mode mode, double value)
{
    bool last =
        format == PROA_DATA_FORMAT_NHWC || format == PROA_DATA_FORMAT_NLC || format == PROA_DATA_FORMAT_NDHWC;
    int n = 0;
    *p = (padding){.op = op,
                   .given = paddings->tensor,
                   .last = last,
                   .units = AXES - image->ndim,
                   .first = last ? 1 : 2,
                   .mode = mode_names[mode],
                   .value = value};
    PROA_TRY(proa__ints_list(op, "paddings", paddings, SIDES, p->sides, &n));
    for (int i = 0; i < n; i++) {
        if (p->sides[i] != PROA_UNKNOWN) continue;
        if (paddings->tensors)
            return OP_FAIL(op, UNSUPPORTED, "paddings",
                           "come from several variables; Paddle's format takes one");
        p->sides[i] = 0;
    }
    return PROA_OK;
}

/* Paddings that a variable supplies with zeros behind them, for the unit axes. */
static proa_status put_given(proa_wire_writer *w, padding *p)
{
    if (!proa__is_given(p->given) || !p->units) return PROA_OK;
    proa_dtype dtype = (proa_dtype)p->given->dtype;
    const proa_meta rest = {.dtype = dtype, .ndim = 1, .shape = {(int64_t)2 * p->units}};
    const proa_meta all = {.dtype = dtype, .ndim = 1, .shape = {SIDES}};
    proa_tensor *zeros = proa_wire_temporary(w, &rest), *joined = proa_wire_temporary(w, &all);
    if (!zeros || !joined) return proa_error();
    PROA_TRY(proa_wire_op(w, "fill_constant"));
    PROA_TRY(proa_wire_put_output(w, "Out", zeros));
    PROA_TRY(proa__wire_put_dtype(w, "dtype", dtype));
    PROA_TRY(proa_wire_put_ints(w, "shape", PROA_WIRE_LONGS, (proa_ints){1, rest.shape, NULL, NULL}));
    PROA_TRY(proa_wire_put_float(w, "value", 0));
    PROA_TRY(proa_wire_op(w, "concat"));
    PROA_TRY(proa_wire_put_input(w, "X", p->given));
    PROA_TRY(proa_wire_put_input(w, "X", zeros));
    PROA_TRY(proa_wire_put_output(w, "Out", joined));
    p->given = joined;
    return proa_wire_put_int(w, "axis", PROA_WIRE_INT, 0);
}

static proa_tensor *widened(proa_wire_writer *w, const padding *p, const proa_tensor *t)
{
    proa_meta m = proa_meta_of(t);
    for (int i = m.ndim - 1; i >= p->first; i--) m.shape[i + p->units] = m.shape[i];
    for (int i = 0; i < p->units; i++) m.shape[p->first + i] = 1;
    m.ndim = (int8_t)(m.ndim + p->units);
    return proa_wire_temporary(w, &m);
}

static proa_status put_units(proa_wire_writer *w, const padding *p, const char *type, proa_tensor *x,
                             proa_tensor *out)
{
    int64_t axes[2] = {p->first, p->first + 1};
    PROA_TRY(proa_wire_op(w, type));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(proa_wire_put_output(w, "Out", out));
    return proa_wire_put_ints(w, "axes", PROA_WIRE_INTS, (proa_ints){p->units, axes, NULL, NULL});
}

/* *t with its unit axes, in a new variable; itself where it lacks none. */
static proa_status put_wide(proa_wire_writer *w, const padding *p, proa_tensor **t)
{
    if (!p->units) return PROA_OK;
    proa_tensor *wide = widened(w, p, *t);
    if (!wide) return proa_error();
    PROA_TRY(put_units(w, p, "unsqueeze2", *t, wide));
    *t = wide;
    return PROA_OK;
}

/* The op's result, its attributes, and the result without unit axes. */
static proa_status put_result(proa_wire_writer *w, padding *p, const char *slot, proa_tensor *out)
{
    proa_tensor *wide = p->units ? widened(w, p, out) : out;
    if (!wide) return proa_error();
    if (proa__is_given(p->given)) PROA_TRY(proa_wire_put_input(w, "Paddings", p->given));
    PROA_TRY(proa_wire_put_output(w, slot, wide));
    PROA_TRY(proa_wire_put_ints(w, "paddings", PROA_WIRE_INTS, (proa_ints){SIDES, p->sides, NULL, NULL}));
    PROA_TRY(proa_wire_put_string(w, "mode", p->mode));
    PROA_TRY(proa_wire_put_float(w, "value", p->value));
    PROA_TRY(proa_wire_put_string(w, "data_format", p->last ? "NDHWC" : "NCDHW"));
    return p->units ? put_units(w, p, "squeeze2", wide, out) : PROA_OK;
}

proa_status pad3d_write(const void *args, proa_wire_writer *w)
{
    const proa_pad3d_args *a = args;
    padding p;
    proa_tensor *x = a->x;
    PROA_TRY(padding_of(&p, "pad3d", x, &a->paddings, a->data_format, a->mode, a->value));
    PROA_TRY(put_given(w, &p));
    PROA_TRY(put_wide(w, &p, &x));
    PROA_TRY(proa_wire_op(w, "pad3d"));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    return put_result(w, &p, "Out", a->out);
}

proa_status pad3d_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_pad3d_grad_args *a = args;
    padding p;
    proa_tensor *x = proa__wire_put_like(w, &a->shape, a->d_x), *d_out = a->d_out;
    if (!x) return proa_error();
    PROA_TRY(padding_of(&p, "pad3d_grad", d_out, &a->paddings, a->data_format, a->mode, 0));
    PROA_TRY(put_given(w, &p));
    PROA_TRY(put_wide(w, &p, &x));
    PROA_TRY(put_wide(w, &p, &d_out));
    PROA_TRY(proa_wire_op(w, "pad3d_grad"));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(proa_wire_put_input(w, "Out@GRAD", d_out));
    return put_result(w, &p, "X@GRAD", a->d_x);
}
