/* Requantization: where all readers of a result want the same integers, an INT8 op rounds its result to them
 * itself, and reshapes, transposes, slices, concatenation and max pooling operate on integers; behind all
 * other ops a quantize_int8 is inserted. Rebuilds the block from its end. May use core and ops. */
#include "int8.h"

#include "core/internal.h"
#include "impl/elementwise.h"
#include "impl/int8.h"
#include "impl/matmul.h"
#include "impl/pool.h"
#include "impl/shape.h"

#include <math.h>

typedef struct writing {
    int8_pass *p;
    proa_instr *made; /* the ops so far, in reverse order */
    int32_t n, capacity;
    int32_t *reads; /* by variable: how many reads by ops that are written already */
} writing;

/* ---- products through one view ------------------------------------------------------------------- */

typedef struct product {
    proa_tensor **scale, **bias, **residual, **out; /* residual: NULL if the op has none */
    proa_fused_activation *activation;
    double *outer;
    int64_t *high;
    proa_dtype *dtype;
} product;

#define PRODUCT_OF(a)                                                                             \
    ((product){&(a)->scale, &(a)->bias, &(a)->residual, &(a)->out, &(a)->activation, &(a)->outer, \
               &(a)->high, &(a)->dtype})

static bool is_product(const proa_instr *instr, product *to)
{
    if (proa__is_op(instr, "conv2d_int8")) *to = PRODUCT_OF((proa_conv2d_int8_args *)instr->args);
    else if (proa__is_op(instr, "linear_int8")) *to = PRODUCT_OF((proa_linear_int8_args *)instr->args);
    else if (proa__is_op(instr, "affine_int8")) *to = PRODUCT_OF((proa_affine_int8_args *)instr->args);
    else if (proa__is_op(instr, "conv2d_transpose_int8")) {
        proa_conv2d_transpose_int8_args *a = instr->args;
        *to = (product){&a->scale, &a->bias, NULL, &a->out, &a->activation, &a->outer, &a->high, &a->dtype};
    } else return false;
    return true;
}

static proa_status scale_constant(const writing *w, proa_tensor **slot, double by)
{
    if (proa__absent(*slot)) return PROA_OK;
    proa_tensor *value = proa__slot_var(*slot)->value;
    proa_tensor *scaled =
        proa_cast(proa_scale(proa_cast(value, PROA_F64), .scale = PROA_SCALAR(by)), PROA_F32);
    proa_tensor *handle = scaled ? proa__new_constant(w->p->block, scaled) : NULL;
    if (!handle) return proa_error();
    proa__slot_set(slot, handle);
    return PROA_OK;
}

static proa_status scale_sums(const writing *w, const product *r, double by)
{
    PROA_TRY(scale_constant(w, r->scale, by));
    return scale_constant(w, r->bias, by);
}

/* True for f with f(c·x) = c·f(x) for every c > 0. */
static bool is_homogeneous(proa_fused_activation f)
{
    return f == PROA_FUSED_ACTIVATION_NONE || f == PROA_FUSED_ACTIVATION_RELU ||
           f == PROA_FUSED_ACTIVATION_LEAKY_RELU;
}

/* Makes the product's result the integers `to`. A clamp at zero on integers ≥ 0 makes a ReLU superfluous. */
static void round_result(const product *r, const wanted *to)
{
    double step = to->largest / INT8_RANGE;
    *r->dtype = (proa_dtype)to->handle->dtype;
    *r->outer /= step;
    if (*r->dtype == PROA_U8 && *r->activation == PROA_FUSED_ACTIVATION_RELU) {
        *r->activation = PROA_FUSED_ACTIVATION_NONE;
    } else if (*r->dtype == PROA_U8 && *r->activation == PROA_FUSED_ACTIVATION_RELU6) {
        double six = 6 * *r->outer;
        *r->activation = PROA_FUSED_ACTIVATION_NONE;
        if (six < INT8_RANGE) *r->high = (int64_t)(six + 0.5);
    }
    proa__slot_set(r->out, to->handle);
}

/* Makes the op round its result to the integers `to`, if it multiplies by attributes alone; false: it is
 * another op. */
static bool round_scaled(proa_instr *instr, const wanted *to)
{
    const double by = INT8_RANGE / to->largest;
    const proa_dtype dtype = (proa_dtype)to->handle->dtype;
    if (proa__is_op(instr, "matmul_int8")) {
        proa_matmul_int8_args *a = instr->args;
        a->scale *= by, a->dtype = dtype;
    } else if (proa__is_op(instr, "avg_pool2d_int8")) {
        proa_avg_pool2d_int8_args *a = instr->args;
        a->scale *= by, a->dtype = dtype;
    } else if (proa__is_op(instr, "add_int8")) {
        proa_add_int8_args *a = instr->args;
        a->scale_x *= by, a->scale_y *= by, a->dtype = dtype;
    } else {
        return false;
    }
    proa__slot_set(proa__out_slot(instr->op, instr->args, 0, NULL), to->handle);
    return true;
}

/* The residual's integers if it was rounded to these anyway, or if others want them and the result is
 * integers as well; otherwise NULL (perhaps with an error). */
static const wanted *integers_of(const writing *w, const product *r)
{
    const grid *g = proa__int8_grid_of(w->p, *r->residual);
    if (g && g->kind == GRID_ACTIVATION && !g->integers)
        return proa__int8_want(w->p, g->from, g->largest, g->low);
    return *r->dtype == PROA_F32 ? NULL : proa__int8_wanted_of(w->p, proa__slot_var(*r->residual));
}

/* Chooses the unit of the sums: the residual's step, if it has one, or the result's. */
static proa_status choose_unit(const writing *w, const product *r)
{
    if (!is_homogeneous(*r->activation)) return PROA_OK;
    if (!r->residual || proa__absent(*r->residual)) {
        if (*r->outer == 1) return PROA_OK;
        PROA_TRY(scale_sums(w, r, *r->outer));
        *r->outer = 1;
        return PROA_OK;
    }
    const wanted *from = integers_of(w, r);
    if (!from) return proa_error();
    double step = from->largest / INT8_RANGE;
    proa__slot_set(r->residual, from->handle);
    PROA_TRY(scale_sums(w, r, 1 / step));
    *r->outer *= step;
    return PROA_OK;
}

/* ---- ops that operate on integers unchanged ------------------------------------------------- */

static bool passes_on(const int8_pass *p, const proa_instr *instr)
{
    static const char *const names[] = {"reshape",   "transpose", "flatten", "squeeze",
                                        "unsqueeze", "concat",    "slice",   "max_pool2d"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (proa__is_op(instr, names[i])) return proa__op_types_include(&p->types, names[i]);
    return false;
}

typedef struct passing {
    writing *w;
    const wanted *to;
    bool fits;
} passing;

static proa_status look_input(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    passing *s = context;
    (void)f, (void)index;
    const proa_var *v = proa__slot_var(*slot);
    bool known = proa__use_of(&s->w->p->uses, v) && !v->persistable && v->handle->dtype == PROA_F32;
    bool unsigned_too = known && s->w->p->positive[v->index] == (s->to->handle->dtype == PROA_U8);
    s->fits = s->fits && unsigned_too && proa__is_value(&s->w->p->uses, v);
    return PROA_OK;
}

static proa_status turn_input(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    passing *s = context;
    (void)f, (void)index;
    const wanted *of = proa__int8_want(s->w->p, proa__slot_var(*slot), s->to->largest, s->to->low);
    if (!of) return proa_error();
    proa__slot_set(slot, of->handle);
    return PROA_OK;
}

static proa_status pool_integers(proa_instr *instr)
{
    const proa_max_pool2d_args *a = instr->args;
    proa_max_pool2d_int8_args pool = {.x = a->x,
                                      .kernel_size = a->kernel_size,
                                      .stride = a->stride,
                                      .padding = a->padding,
                                      .ceil_mode = a->ceil_mode,
                                      .data_format = a->data_format,
                                      .padding_algorithm = a->padding_algorithm,
                                      .out = a->out};
    return proa__instr_become(instr, proa_find_op("max_pool2d_int8"), &pool);
}

/* Makes the op read and write integers, if it can; *done: it does. */
static proa_status pass_on(writing *w, proa_instr *instr, const wanted *want, bool *done)
{
    wanted to = *want; /* a copy, since the array may be reallocated */
    passing s = {w, &to, true};
    *done = false;
    if (!passes_on(w->p, instr)) return PROA_OK;
    proa__args_visit(instr->op, instr->args, PROA_IN, look_input, &s);
    if (!s.fits) return PROA_OK;
    PROA_TRY(proa__args_visit(instr->op, instr->args, PROA_IN, turn_input, &s));
    proa__slot_set(proa__out_slot(instr->op, instr->args, 0, NULL), to.handle);
    *done = true;
    return proa__is_op(instr, "max_pool2d") ? pool_integers(instr) : PROA_OK;
}

/* ---- integers of one grid from those of another ---------------------------------------------------- */

/* The op as a bound on values of a grid: those of x, from 0 to `top` if it is a ReLU. */
typedef struct bounding {
    const grid *from;
    bool is_relu;
    double top;
} bounding;

/* False if the op is neither a dequantizer nor a ReLU of values on a grid. */
static bool bounds(const writing *w, const proa_instr *instr, bounding *to)
{
    bool six = proa__is_op(instr, "relu6");
    const proa_tensor *on = *proa__out_slot(instr->op, instr->args, 0, NULL);
    to->is_relu = six || proa__is_op(instr, "relu");
    to->top = six ? 6 : HUGE_VAL;
    if (to->is_relu) on = *proa_field_tensor(&instr->op->fields[0], instr->args);
    to->from = proa__int8_grid_of(w->p, on);
    return to->from && to->from->kind == GRID_ACTIVATION && !to->from->integers;
}

/* Values that are rounded behind one op and before the next, perhaps with a ReLU between: makes the second
 * integers of the first. */
static proa_status round_again(writing *w, proa_instr *instr, const wanted *want, bool *done)
{
    const wanted to = *want; /* a copy, since the array may be reallocated */
    bounding b;
    *done = bounds(w, instr, &b);
    if (!*done) return PROA_OK;
    const wanted *from = proa__int8_want(w->p, b.from->from, b.from->largest, b.from->low);
    if (!from) return proa_error();
    double high = fmin(b.top * INT8_RANGE / to.largest, INT8_RANGE);
    proa_quantize_int8_args a = {.x = from->handle,
                                 .scale = b.from->largest / to.largest,
                                 .low = b.is_relu || to.handle->dtype == PROA_U8 ? 0 : to.low,
                                 .high = (int64_t)(high + 0.5),
                                 .dtype = (proa_dtype)to.handle->dtype,
                                 .out = to.handle};
    return proa__instr_become(instr, proa_find_op("quantize_int8"), &a);
}

/* ---- writing ------------------------------------------------------------------------------- */

static proa_status count_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    writing *w = context;
    (void)f, (void)index;
    const proa_var *v = proa__slot_var(*slot);
    if (proa__use_of(&w->p->uses, v)) w->reads[v->index]++;
    return PROA_OK;
}

static proa_status put(writing *w, proa_instr *instr)
{
    proa_status status = proa__reserve(&w->made, w->n, &w->capacity, sizeof *w->made);
    if (status != PROA_OK) return status;
    proa__args_visit_reads(instr->op, instr->args, count_read, w);
    w->made[w->n++] = *instr;
    instr->args = NULL;
    return PROA_OK;
}

/* Inserts quantize_int8 ops for the integers that are wanted of v and that v's op does not make. */
static proa_status put_quantizers(writing *w, const proa_var *v, const proa_instr *like)
{
    if (!proa__use_of(&w->p->uses, v)) return PROA_OK;
    for (int32_t i = w->p->first_wanted[v->index]; i >= 0; i = w->p->wanted[i].next) {
        const wanted *to = &w->p->wanted[i];
        if (to->made) continue;
        proa_quantize_int8_args a = {.x = v->handle,
                                     .scale = INT8_RANGE / to->largest,
                                     .low = to->handle->dtype == PROA_U8 ? 0 : to->low,
                                     .high = INT8_RANGE,
                                     .dtype = (proa_dtype)to->handle->dtype,
                                     .out = to->handle};
        proa_instr made = {.role = like ? like->role : 0, .marks = like ? like->marks : 0};
        PROA_TRY(proa__instr_become(&made, proa_find_op("quantize_int8"), &a));
        PROA_TRY(put(w, &made));
        w->p->wanted[i].made = true;
    }
    return PROA_OK;
}

/* Makes the op itself give integers, if these alone are wanted of its result, and notes in `made` whether it
 * does. */
static proa_status make_integers(writing *w, proa_instr *instr, const proa_var *out)
{
    int8_pass *p = w->p;
    wanted *want = proa__int8_wanted_of(p, out);
    const proa__use *use = proa__use_of(&p->uses, out);
    product r;
    if (!want || want->next >= 0 || use->kept || w->reads[out->index] || instr->op->n_out != 1)
        return PROA_OK;
    int32_t at = p->first_wanted[out->index];
    bool done = true;
    if (is_product(instr, &r)) {
        round_result(&r, want);
    } else if (!round_scaled(instr, want)) {
        PROA_TRY(round_again(w, instr, want, &done));
        if (!done) PROA_TRY(pass_on(w, instr, want, &done));
    }
    p->wanted[at].made = done;
    return PROA_OK;
}

/* True for a quantizer or dequantizer whose result nobody reads any more. Persistables that it writes keep
 * their values. */
static bool is_done_with(const writing *w, const proa_instr *instr)
{
    proa_tensor **slot = proa__out_slot(instr->op, instr->args, 0, NULL);
    if (!slot || !proa__int8_grid_of(w->p, *slot)) return false;
    for (int64_t k = 0; (slot = proa__out_slot(instr->op, instr->args, k, NULL)); k++) {
        const proa_var *v = proa__slot_var(*slot);
        const proa__use *use = proa__use_of(&w->p->uses, v);
        if (use && !v->persistable && (w->reads[v->index] || use->kept)) return false;
    }
    return true;
}

static proa_status write_op(writing *w, proa_instr *instr)
{
    if (is_done_with(w, instr)) {
        proa__instr_clear(instr);
        return PROA_OK;
    }
    product r;
    proa_tensor **slot;
    for (int64_t k = 0; (slot = proa__out_slot(instr->op, instr->args, k, NULL)); k++) {
        const proa_var *v = proa__slot_var(*slot);
        if (!v) continue;
        if (k == 0) PROA_TRY(make_integers(w, instr, v));
        PROA_TRY(put_quantizers(w, v, instr));
    }
    if (is_product(instr, &r)) PROA_TRY(choose_unit(w, &r));
    return put(w, instr);
}

/* Inputs and persistables are quantized before the first op. */
static proa_status write_inputs(writing *w)
{
    for (int32_t i = 0; i < w->p->uses.n_vars; i++) PROA_TRY(put_quantizers(w, w->p->block->vars[i], NULL));
    return PROA_OK;
}

proa_status proa__int8_requantize(int8_pass *p)
{
    writing w = {.p = p, .reads = proa__calloc(((size_t)p->uses.n_vars + 1) * sizeof *w.reads)};
    int32_t n = 0, i;
    proa_instr *old = proa__take_ops(p->block, &n);
    proa_status status = w.reads ? PROA_OK : proa_error();
    for (i = n - 1; i >= 0 && status == PROA_OK; i--)
        if (old[i].args) status = write_op(&w, &old[i]);
    if (status == PROA_OK) status = write_inputs(&w);
    for (i = w.n - 1; i >= 0 && status == PROA_OK; i--) status = proa__emit_old(p->block, &w.made[i]);
    proa__drop_ops(w.made, 0, w.n);
    proa__drop_ops(old, 0, n);
    proa__free(w.reads);
    return status;
}
