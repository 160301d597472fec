/* Converts fused and INT8 convolutions to channels-last, which oneDNN reads and writes without a reorder,
 * where NCHW needs two per convolution; a block with only one stays as it is. Pooling, elementwise ops and
 * concatenation between them follow; transposes are inserted at the borders to other ops. May use core and
 * ops. */
#include "edit.h"

#include "core/internal.h"
#include "ops/elementwise/fused.h"
#include "impl/conv.h"
#include "impl/int8.h"
#include "impl/shape.h"

typedef struct laying {
    proa__uses uses;
    proa_block *block;
    proa_tensor **last; /* by variable: the handle of its channels-last form; NULL: none yet */
    bool *missing;      /* only the channels-last form exists so far */
    bool fits, worth;
    const proa_instr *like;
} laying;

static const int64_t to_last[] = {0, 2, 3, 1}, to_first[] = {0, 3, 1, 2};

/* ---- the two forms of a variable ------------------------------------------------------------- */

static proa_tensor *last_form(const laying *l, const proa_tensor *t)
{
    const proa_var *v = proa__slot_var(t);
    return proa__use_of(&l->uses, v) ? l->last[v->index] : NULL;
}

static proa_meta permuted(const proa_tensor *t, const int64_t *perm)
{
    proa_meta m = proa_meta_of(t);
    for (int i = 0; i < 4; i++) m.shape[i] = t->shape[perm[i]];
    return m;
}

static proa_tensor *new_last(laying *l, const proa_tensor *t)
{
    proa_meta m = permuted(t, to_last);
    proa_var *v = proa__var_new(l->block, NULL, &m);
    if (!v) return NULL;
    l->last[proa__slot_var(t)->index] = v->handle;
    return v->handle;
}

static proa_status transpose(laying *l, proa_tensor *from, proa_tensor *to, const int64_t *perm)
{
    proa_transpose_args a = {.x = from, .perm = {.count = 4, .at = perm}, .out = to};
    return proa__emit(l->block, "transpose", &a, l->like);
}

/* The channels-last form of t; inserts a transpose where it does not exist. */
static proa_tensor *need_last(laying *l, proa_tensor *t)
{
    proa_tensor *there = last_form(l, t);
    if (there) return there;
    proa_tensor *made = new_last(l, t);
    return made && transpose(l, t, made, to_last) == PROA_OK ? made : NULL;
}

static proa_status need_first(laying *l, proa_tensor *t)
{
    const proa_var *v = proa__slot_var(t);
    if (!proa__use_of(&l->uses, v) || !l->missing[v->index]) return PROA_OK;
    l->missing[v->index] = false;
    return transpose(l, l->last[v->index], v->handle, to_first);
}

/* Makes the op's output channels-last from now on. */
static proa_status turn_output(laying *l, proa_tensor **slot)
{
    const proa_var *v = proa__slot_var(*slot);
    proa_tensor *made = new_last(l, *slot);
    if (!made) return proa_error();
    l->missing[v->index] = true;
    proa__slot_set(slot, made);
    return PROA_OK;
}

static proa_status turn_input(laying *l, proa_tensor **slot)
{
    proa_tensor *made = need_last(l, *slot);
    if (!made) return proa_error();
    proa__slot_set(slot, made);
    return PROA_OK;
}

/* ---- which ops are turned ----------------------------------------------------------------------- */

static bool can_turn(const laying *l, const proa_tensor *t)
{
    const proa_var *v = proa__slot_var(t);
    return proa__use_of(&l->uses, v) && t->ndim == 4 && (proa__is_value(&l->uses, v));
}

static int *format_of(const proa_instr *instr)
{
    for (int i = 0; i < instr->op->n_attr; i++) {
        const proa_field *f = &instr->op->fields[instr->op->n_in + i];
        if (strcmp(f->name, "data_format") == 0) return proa_field_at(f, instr->args);
    }
    return NULL;
}

static bool is_fast(const proa_op *op)
{
    for (const proa_kernel *const *k = op->kernels; *k; k++) {
        const char *family = strrchr((*k)->name, '_');
        if (family && strcmp(family, "_onednn") == 0) return proa__backend_allowed(*k);
    }
    return false;
}

/* The operands of a fused convolution that are images. */
typedef struct images {
    proa_tensor **x, **residual, **out; /* residual: NULL if the op has none */
} images;

#define IMAGES_OF(a) ((images){&(a)->x, &(a)->residual, &(a)->out})

static bool images_of(const proa_instr *instr, images *to)
{
    if (proa__is_op(instr, "conv2d_fused")) {
        *to = IMAGES_OF((proa_conv2d_fused_args *)instr->args);
        return (*to->x)->dtype == PROA_F32 || (*to->x)->dtype == PROA_BF16;
    }
    if (proa__is_op(instr, "conv2d_int8")) {
        *to = IMAGES_OF((proa_conv2d_int8_args *)instr->args);
        return true;
    }
    if (!proa__is_op(instr, "conv2d_transpose_int8")) return false;
    proa_conv2d_transpose_int8_args *a = instr->args;
    *to = (images){&a->x, NULL, &a->out};
    return true;
}

static bool is_conv(const laying *l, const proa_instr *instr)
{
    images i;
    if (!images_of(instr, &i) || !is_fast(instr->op)) return false;
    bool residual = !i.residual || proa__absent(*i.residual) || can_turn(l, *i.residual);
    return *format_of(instr) == PROA_DATA_FORMAT_NCHW && can_turn(l, *i.x) && can_turn(l, *i.out) && residual;
}

/* True for an affine_int8 op in NCHW that is to be converted: its input is channels last already, and its
 * output and residual can be. */
static bool is_affine(const laying *l, const proa_instr *instr)
{
    if (!proa__is_op(instr, "affine_int8")) return false;
    const proa_affine_int8_args *a = instr->args;
    bool residual = proa__absent(a->residual) || can_turn(l, a->residual);
    return a->data_format == PROA_DATA_FORMAT_NCHW && last_form(l, a->x) && can_turn(l, a->out) && residual;
}

static bool is_pool(const laying *l, const proa_instr *instr)
{
    static const char *const names[] = {"max_pool2d",          "avg_pool2d",      "adaptive_avg_pool2d",
                                        "adaptive_max_pool2d", "max_pool2d_int8", "avg_pool2d_int8"};
    bool named = false;
    for (int i = 0; i < 6; i++) named |= proa__is_op(instr, names[i]);
    if (!named || instr->op->n_in != 1 || instr->op->n_out != 1) return false;
    const int *format = format_of(instr);
    const proa_tensor *x = *proa_field_tensor(&instr->op->fields[0], instr->args);
    return format && *format == PROA_DATA_FORMAT_NCHW && last_form(l, x) &&
           can_turn(l, *proa__out_slot(instr->op, instr->args, 0, NULL));
}

static proa_status look_operand(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    laying *l = context;
    (void)f, (void)index;
    const proa_tensor *t = *slot;
    if (proa__slot_empty(t)) return PROA_OK;
    if (t->ndim == 4 ? !can_turn(l, t) : t->numel != 1) l->fits = false;
    if (last_form(l, t)) l->worth = true;
    return PROA_OK;
}

static proa_status turn_operand(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)f, (void)index;
    return !proa__slot_empty(*slot) && (*slot)->ndim == 4 ? turn_input(context, slot) : PROA_OK;
}

static proa_status turn_result(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)f, (void)index;
    return !proa__slot_empty(*slot) ? turn_output(context, slot) : PROA_OK;
}

/* True if an elementwise op can run channels-last: operands have four dims or one element, and results four
 * dims. */
static bool follows(laying *l, const proa_instr *instr)
{
    l->fits = true;
    l->worth = false;
    proa__args_visit_reads(instr->op, instr->args, look_operand, l);
    bool worth = l->worth;
    proa_tensor **slot;
    for (int64_t k = 0; (slot = proa__out_slot(instr->op, instr->args, k, NULL)); k++)
        if (!can_turn(l, *slot) || proa__slot_var(*slot)->persistable) l->fits = false;
    return l->fits && worth;
}

static bool is_elementwise(laying *l, const proa_instr *instr)
{
    if (!proa__fused_takes(instr->op) && !proa__is_op(instr, "fused_elementwise") &&
        !proa__is_op(instr, "quantize_int8") && !proa__is_op(instr, "add_int8"))
        return false;
    return follows(l, instr);
}

static bool is_concat(laying *l, const proa_instr *instr)
{
    if (!proa__is_op(instr, "concat")) return false;
    const proa_concat_args *a = instr->args;
    return !a->axis_tensor.count && !a->axis_tensor.tensor && (a->axis == 1 || a->axis == -3) &&
           follows(l, instr);
}

/* ---- the pass ---------------------------------------------------------------------------------------- */

static proa_status restore_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)f, (void)index;
    return proa__slot_empty(*slot) ? PROA_OK : need_first(context, *slot);
}

static proa_status turn(laying *l, proa_instr *instr)
{
    const proa_op *op = instr->op;
    l->like = instr;
    images i;
    if (is_conv(l, instr) && images_of(instr, &i)) {
        *format_of(instr) = PROA_DATA_FORMAT_NHWC;
        PROA_TRY(turn_input(l, i.x));
        if (i.residual && !proa__absent(*i.residual)) PROA_TRY(turn_input(l, i.residual));
        return turn_output(l, i.out);
    }
    if (is_affine(l, instr)) {
        proa_affine_int8_args *a = instr->args;
        a->data_format = PROA_DATA_FORMAT_NHWC;
        PROA_TRY(turn_input(l, &a->x));
        if (!proa__absent(a->residual)) PROA_TRY(turn_input(l, &a->residual));
        return turn_output(l, &a->out);
    }
    if (is_pool(l, instr)) {
        *format_of(instr) = PROA_DATA_FORMAT_NHWC;
        PROA_TRY(turn_input(l, proa_field_tensor(&op->fields[0], instr->args)));
        return turn_output(l, proa__out_slot(op, instr->args, 0, NULL));
    }
    if (is_elementwise(l, instr) || is_concat(l, instr)) {
        if (proa__is_op(instr, "concat")) ((proa_concat_args *)instr->args)->axis = 3;
        PROA_TRY(proa__args_visit(op, instr->args, PROA_IN, turn_operand, l));
        return proa__args_visit(op, instr->args, PROA_OUT, turn_result, l);
    }
    return proa__args_visit_reads(op, instr->args, restore_read, l);
}

static proa_status turn_all(laying *l)
{
    proa_block *b = l->block;
    int32_t n = 0;
    proa_instr *old = proa__take_ops(b, &n);
    proa_status status = PROA_OK;
    for (int32_t i = 0; i < n && status == PROA_OK; i++) {
        status = turn(l, &old[i]);
        if (status == PROA_OK) status = proa__emit_old(b, &old[i]);
    }
    proa_instr end = {.role = 0};
    l->like = &end;
    for (int32_t i = 0; i < l->uses.n_vars && status == PROA_OK; i++)
        if (l->uses.of[i].kept && l->missing[i]) status = need_first(l, b->vars[i]->handle);
    proa__drop_ops(old, 0, n);
    return status;
}

/* True if there are at least two convolutions: one alone does not repay the transposes. */
static bool has_convs(laying *l)
{
    int n = 0;
    for (int32_t i = 0; i < l->block->n_ops; i++) n += is_conv(l, &l->block->ops[i]);
    return n > 1;
}

proa_status proa__pass_layout(proa_block *b, const proa__pass_context *context)
{
    (void)context;
    laying l = {.block = b};
    PROA_TRY(proa__uses_find(&l.uses, b));
    l.last = proa__calloc(((size_t)b->n_vars + 1) * sizeof *l.last);
    l.missing = proa__calloc((size_t)b->n_vars + 1);
    proa_status status = l.last && l.missing ? PROA_OK : proa_error();
    if (status == PROA_OK && has_convs(&l)) status = turn_all(&l);
    proa__uses_apply(&l.uses);
    proa__uses_free(&l.uses);
    proa__free(l.last);
    proa__free(l.missing);
    return status;
}
