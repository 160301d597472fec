/* Fusions for training linear layers on a device: linear + tanh-approximated gelu (linear_gelu), the product
 * before that gelu's gradient with the gradient (linear_gelu_grad), and a bias's gradient, a sum of rows,
 * with the weight's (linear_weight_grad). The CPU gains nothing by them. May use core and ops. */
#include "edit.h"

#include "core/internal.h"
#include "impl/elementwise.h"
#include "impl/matmul.h"
#include "impl/reduce.h"
#include "impl/shape.h"

typedef struct linears {
    proa__uses uses;
    int32_t *sum_of; /* by variable: the first op that sums its rows; NOBODY: none */
} linears;

static bool is_floating(const proa_tensor *t) { return t->dtype >= PROA_F16 && t->dtype <= PROA_F64; }

static proa_instr *op_at(const linears *l, int32_t at) { return &l->uses.block->ops[at]; }

/* The index of the op of this name that makes t; NOBODY otherwise. */
static int32_t made_by(const linears *l, const proa_tensor *t, const char *op)
{
    const proa_var *v = proa__slot_var(t);
    const proa__use *use = proa__use_of(&l->uses, v);
    if (!use || v->persistable || v->is_input || use->overwritten || use->maker == PROA__NOBODY)
        return PROA__NOBODY;
    return proa__is_op(op_at(l, use->maker), op) ? use->maker : PROA__NOBODY;
}

/* t itself, or, if a reshape made t, that reshape's input. */
static proa_tensor *unfolded(const linears *l, proa_tensor *t)
{
    int32_t at = made_by(l, t, "reshape");
    return at == PROA__NOBODY ? t : ((const proa_reshape_args *)op_at(l, at)->args)->x;
}

/* ---- sums of rows ---------------------------------------------------------------------------------- */

/* True if the op sums over all dims of x but the last and keeps its dtype. */
static bool sums_rows(const proa_sum_args *a)
{
    int n = a->x->ndim;
    bool summed[PROA_MAX_DIMS] = {false};
    if (n < 2 || a->axis.tensor || a->axis.tensors || a->axis.count != n - 1 || a->out->dtype != a->x->dtype)
        return false;
    for (int64_t i = 0; i < a->axis.count; i++)
        summed[a->axis.at[i] < 0 ? a->axis.at[i] + n : a->axis.at[i]] = true;
    for (int i = 0; i < n - 1; i++)
        if (!summed[i]) return false;
    return !summed[n - 1];
}

static proa_status find_sums(linears *l)
{
    const proa_block *b = l->uses.block;
    l->sum_of = proa__alloc(((size_t)l->uses.n_vars + 1) * sizeof *l->sum_of);
    if (!l->sum_of) return proa_error();
    for (int32_t i = 0; i < l->uses.n_vars; i++) l->sum_of[i] = PROA__NOBODY;
    for (int32_t i = b->n_ops - 1; i >= 0; i--) {
        if (!proa__is_op(&b->ops[i], "sum")) continue;
        const proa_sum_args *a = b->ops[i].args;
        const proa_var *v = proa__slot_var(a->x);
        const proa__use *use = proa__use_of(&l->uses, v);
        if (use && !v->persistable && !use->overwritten && sums_rows(a)) l->sum_of[v->index] = i;
    }
    return PROA_OK;
}

/* The op that sums t's rows, if it is behind op `at` and has the same op_role. */
static int32_t sum_behind(const linears *l, const proa_tensor *t, int32_t at)
{
    const proa_var *v = proa__slot_var(t);
    int32_t sum = proa__use_of(&l->uses, v) ? l->sum_of[v->index] : PROA__NOBODY;
    bool fits = sum > at && proa__is_op(op_at(l, sum), "sum") && op_at(l, sum)->role == op_at(l, at)->role;
    return fits ? sum : PROA__NOBODY;
}

/* Turns the sum into a reshape of `row`, which an earlier op now makes. */
static proa_status reshape_sum(proa_instr *sum, proa_tensor *row)
{
    const proa_sum_args *a = sum->args;
    proa_reshape_args reshape = {
        .x = row, .shape = {.count = a->out->ndim, .at = a->out->shape}, .out = a->out};
    return proa__instr_become(sum, proa_find_op("reshape"), &reshape);
}

static proa_tensor *new_row(proa_block *b, const proa_tensor *like)
{
    proa_meta m = {.dtype = (proa_dtype)like->dtype, .ndim = 1};
    m.shape[0] = like->shape[like->ndim - 1];
    proa_var *v = proa__var_new(b, NULL, &m);
    return v ? v->handle : NULL;
}

/* ---- the three fusions ----------------------------------------------------------------------- */

/* linear → gelu, where the backward also reads the value between: the linear op becomes linear_gelu. */
static proa_status take_gelu(linears *l, int32_t at)
{
    const proa_gelu_args *g = op_at(l, at)->args;
    int32_t before = made_by(l, g->x, "linear");
    proa__use *out = proa__use_of(&l->uses, proa__slot_var(g->out));
    if (!g->approximate || before == PROA__NOBODY || !is_floating(g->x) || !out ||
        proa__slot_var(g->out)->persistable || op_at(l, before)->role != op_at(l, at)->role ||
        proa__only_reader(&l->uses, proa__slot_var(g->x)) != PROA__NOBODY)
        return PROA_OK;
    const proa_linear_args *a = op_at(l, before)->args;
    proa_linear_gelu_args both = {
        .x = a->x, .weight = a->weight, .bias = a->bias, .out = g->out, .pre = g->x};
    PROA_TRY(proa__instr_become(op_at(l, before), proa_find_op("linear_gelu"), &both));
    out->maker = before;
    proa__instr_clear(op_at(l, at));
    return PROA_OK;
}

/* d · weightᵀ → gelu_grad: the latter becomes linear_gelu_grad, which also gives the sum of rows. */
static proa_status take_gelu_grad(linears *l, int32_t at)
{
    const proa_gelu_grad_args *g = op_at(l, at)->args;
    int32_t from = made_by(l, g->d_out, "matmul"), sum = sum_behind(l, g->d_x, at);
    if (!g->approximate || from == PROA__NOBODY || sum == PROA__NOBODY ||
        proa__only_reader(&l->uses, proa__slot_var(g->d_out)) != at)
        return PROA_OK;
    const proa_matmul_args *m = op_at(l, from)->args;
    if (m->transpose_x || !m->transpose_y || m->y->ndim != 2 || m->x->ndim < 2 || !is_floating(m->x) ||
        !proa__same_shape(g->x, m->out) || op_at(l, from)->role != op_at(l, at)->role ||
        !proa__may_move(&l->uses, proa__slot_var(m->x), from, at) ||
        !proa__may_move(&l->uses, proa__slot_var(m->y), from, at))
        return PROA_OK;
    proa_tensor *row = new_row(l->uses.block, g->d_x);
    if (!row) return proa_error();
    proa_linear_gelu_grad_args both = {
        .d_out = m->x, .weight = m->y, .pre = g->x, .d_pre = g->d_x, .d_bias = row};
    PROA_TRY(proa__instr_become(op_at(l, at), proa_find_op("linear_gelu_grad"), &both));
    PROA_TRY(reshape_sum(op_at(l, sum), row));
    proa__instr_clear(op_at(l, from));
    return PROA_OK;
}

/* xᵀ · d and a later sum of d's rows: the product becomes linear_weight_grad. */
static proa_status take_weight_grad(linears *l, int32_t at)
{
    const proa_matmul_args *m = op_at(l, at)->args;
    if (!m->transpose_x || m->transpose_y || m->x->ndim != 2 || m->y->ndim != 2 || !is_floating(m->x))
        return PROA_OK;
    proa_tensor *d = unfolded(l, m->y);
    int32_t sum = sum_behind(l, d, at);
    if (sum == PROA__NOBODY || d->shape[d->ndim - 1] != m->y->shape[1]) return PROA_OK;
    proa_tensor *row = new_row(l->uses.block, d);
    if (!row) return proa_error();
    proa_linear_weight_grad_args both = {.x = m->x, .d_out = m->y, .d_weight = m->out, .d_bias = row};
    PROA_TRY(proa__instr_become(op_at(l, at), proa_find_op("linear_weight_grad"), &both));
    return reshape_sum(op_at(l, sum), row);
}

proa_status proa__pass_linear(proa_block *b, const proa__pass_context *context)
{
    static const struct {
        const char *op;
        proa_status (*take)(linears *l, int32_t at);
    } kinds[] = {{"gelu", take_gelu}, {"gelu_grad", take_gelu_grad}, {"matmul", take_weight_grad}};
    if (!context->on_device) return PROA_OK;
    linears l = {.sum_of = NULL};
    PROA_TRY(proa__uses_find(&l.uses, b));
    proa_status status = find_sums(&l);
    for (int k = 0; k < 3 && status == PROA_OK; k++)
        for (int32_t i = 0; i < b->n_ops && status == PROA_OK; i++)
            if (proa__is_op(&b->ops[i], kinds[k].op)) status = kinds[k].take(&l, i);
    proa__uses_apply(&l.uses);
    proa__uses_free(&l.uses);
    proa__free(l.sum_of);
    return status;
}
