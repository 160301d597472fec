/* The INT8 pass runs quantized models on integers. It finds the values that are on a quantization grid
 * (integers times a step), turns products, lookups, sums and mean pooling of such values into INT8
 * ops with epilogues (int8_products.c, int8_matmul.c, int8_rnn.c, int8_embedding.c, int8_sums.c), and lets
 * the ops before these make integers (int8_requantize.c). May use core and ops. */
#include "int8.h"

#include "core/internal.h"
#include "impl/quantize.h"
#include "impl/shape.h"

/* ---- constants ------------------------------------------------------------------------------------ */

proa_tensor *proa__int8_constant(const int8_pass *p, const proa_tensor *slot)
{
    const proa_var *v = proa__slot_var(slot);
    const proa__use *use = proa__use_of(&p->uses, v);
    if (!use) return NULL;
    if (v->persistable) return v->value && use->n_writes == p->harmless[v->index] ? v->value : NULL;
    const proa_instr *maker = use->maker == PROA__NOBODY ? NULL : &p->block->ops[use->maker];
    if (!maker || (!proa__is_op(maker, "reshape") && !proa__is_op(maker, "unsqueeze"))) return NULL;
    proa_tensor *value = proa__int8_constant(p, *proa_field_tensor(&maker->op->fields[0], maker->args));
    for (int i = 0; value && i < slot->ndim; i++)
        if (slot->shape[i] < 0) return NULL;
    return value ? proa_reshape(value, ((proa_ints){.count = slot->ndim, .at = slot->shape})) : NULL;
}

static proa_status note_harmless(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const int8_pass *p = context;
    (void)f, (void)index;
    const proa_var *v = proa__slot_var(*slot);
    if (proa__use_of(&p->uses, v)) p->harmless[v->index]++;
    return PROA_OK;
}

/* True for quantizers that, with is_test, write back the statistics that they have read. */
static bool writes_back(const proa_instr *instr)
{
    if (proa__is_op(instr, "fake_quantize_range_abs_max"))
        return ((const proa_fake_quantize_range_abs_max_args *)instr->args)->is_test;
    if (proa__is_op(instr, "fake_quantize_moving_average_abs_max"))
        return ((const proa_fake_quantize_moving_average_abs_max_args *)instr->args)->is_test;
    if (proa__is_op(instr, "fake_quantize_dequantize_moving_average_abs_max"))
        return ((const proa_fake_quantize_dequantize_moving_average_abs_max_args *)instr->args)->is_test;
    if (proa__is_op(instr, "quantize_linear"))
        return ((const proa_quantize_linear_args *)instr->args)->is_test;
    return false;
}

/* ---- grids, and integers wanted of a variable ---------------------------------------------------- */

const grid *proa__int8_grid_of(const int8_pass *p, const proa_tensor *slot)
{
    const proa_var *v = proa__slot_var(slot);
    if (!proa__use_of(&p->uses, v) || p->grids[v->index].kind == GRID_NONE) return NULL;
    return &p->grids[v->index];
}

wanted *proa__int8_wanted_of(const int8_pass *p, const proa_var *v)
{
    bool known = proa__use_of(&p->uses, v) != NULL;
    return known && p->first_wanted[v->index] >= 0 ? &p->wanted[p->first_wanted[v->index]] : NULL;
}

wanted *proa__int8_want(int8_pass *p, const proa_var *v, double largest, int64_t low)
{
    int32_t *link = &p->first_wanted[v->index];
    for (; *link >= 0; link = &p->wanted[*link].next)
        if (p->wanted[*link].largest == largest && p->wanted[*link].low == low) return &p->wanted[*link];
    proa_meta meta = proa_meta_of(v->handle);
    meta.dtype = p->positive[v->index] ? PROA_U8 : PROA_I8;
    proa_var *made = proa__var_new(p->block, NULL, &meta);
    int32_t at = p->n_wanted;
    int32_t *first = &p->first_wanted[v->index];
    if (!made || proa__reserve(&p->wanted, at, &p->wanted_capacity, sizeof *p->wanted) != PROA_OK)
        return NULL;
    p->wanted[at] = (wanted){.handle = made->handle, .largest = largest, .low = low, .next = *first};
    *first = p->n_wanted++;
    return &p->wanted[at];
}

proa_tensor *proa__int8_operand(int8_pass *p, const grid *g)
{
    const wanted *of = proa__int8_want(p, g->from, g->largest, g->low);
    return of ? of->handle : NULL;
}

const grid *proa__int8_activation(const int8_pass *p, const proa_tensor *slot)
{
    const grid *g = proa__int8_grid_of(p, slot);
    return g && g->kind == GRID_ACTIVATION && !g->integers ? g : NULL;
}

bool proa__int8_is_result(const int8_pass *p, const proa_tensor *slot)
{
    const proa_var *v = proa__slot_var(slot);
    return proa__use_of(&p->uses, v) && !v->persistable && slot->dtype == PROA_F32;
}

/* ---- signs -------------------------------------------------------------------------------------------- */

static bool is_one_of(const proa_instr *instr, const char *const *names)
{
    for (; *names; names++)
        if (proa__is_op(instr, *names)) return true;
    return false;
}

static proa_status look_for_negative(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const int8_pass *p = context;
    (void)f, (void)index;
    const proa_var *v = proa__slot_var(*slot);
    return proa__use_of(&p->uses, v) && p->positive[v->index] ? PROA_OK : PROA_DECLINED;
}

static void note_sign(int8_pass *p, const proa_instr *instr)
{
    static const char *const positive[] = {"relu",        "relu6", "sigmoid", "softmax",
                                           "hardsigmoid", "abs",   "exp",     NULL};
    static const char *const keeping[] = {"max_pool2d",
                                          "avg_pool2d",
                                          "adaptive_avg_pool2d",
                                          "adaptive_max_pool2d",
                                          "reshape",
                                          "transpose",
                                          "flatten",
                                          "squeeze",
                                          "unsqueeze",
                                          "concat",
                                          "slice",
                                          "add",
                                          "multiply",
                                          "assign",
                                          "nearest_interp",
                                          NULL};
    bool is = is_one_of(instr, positive) ||
              (is_one_of(instr, keeping) &&
               proa__args_visit(instr->op, instr->args, PROA_IN, look_for_negative, p) == PROA_OK);
    proa_tensor **out = is ? proa__out_slot(instr->op, instr->args, 0, NULL) : NULL;
    const proa_var *v = out ? proa__slot_var(*out) : NULL;
    if (proa__use_of(&p->uses, v)) p->positive[v->index] = true;
}

/* ---- the pass ------------------------------------------------------------------------------ */

static bool has_quantizers(const proa_block *b)
{
    for (int32_t i = 0; i < b->n_ops; i++)
        if (strstr(b->ops[i].op->name, "quantize")) return true;
    return false;
}

static proa_status begin(int8_pass *p)
{
    size_t n = (size_t)p->uses.n_vars + 1;
    p->harmless = proa__calloc(n * sizeof *p->harmless);
    p->grids = proa__calloc(n * sizeof *p->grids);
    p->positive = proa__calloc(n * sizeof *p->positive);
    p->first_wanted = proa__alloc(n * sizeof *p->first_wanted);
    if (!p->harmless || !p->grids || !p->positive || !p->first_wanted) return proa_error();
    memset(p->first_wanted, 0xff, n * sizeof *p->first_wanted);
    for (int32_t i = 0; i < p->block->n_ops; i++)
        if (writes_back(&p->block->ops[i]))
            proa__args_visit(p->block->ops[i].op, p->block->ops[i].args, PROA_OUT, note_harmless, p);
    return PROA_OK;
}

static proa_status rewrite(int8_pass *p)
{
    PROA_TRY(begin(p));
    for (int32_t i = 0; i < p->block->n_ops; i++) {
        if (!p->block->ops[i].args) continue;
        note_sign(p, &p->block->ops[i]);
        PROA_TRY(proa__int8_note_grid(p, &p->block->ops[i]));
    }
    for (int32_t i = 0; i < p->block->n_ops; i++)
        if (p->block->ops[i].args) {
            PROA_TRY(proa__int8_product(p, i));
            PROA_TRY(proa__int8_matmul(p, i));
            PROA_TRY(proa__int8_rnn(p, i));
            PROA_TRY(proa__int8_embedding(p, i));
            PROA_TRY(proa__int8_sum(p, i));
        }
    return p->n_products ? proa__int8_requantize(p) : PROA_OK;
}

proa_status proa__pass_int8(proa_block *b, const proa__pass_context *context)
{
    if (!has_quantizers(b) || context->on_device) return PROA_OK;
    PROA_TRY(proa__pass_identity(b, context));
    PROA_TRY(proa__pass_batch_norm(b, context)); /* to products and sums, which epilogues absorb */
    int8_pass p = {.block = b, .types = context->int8};
    PROA_TRY(proa__uses_find(&p.uses, b));
    proa_status status = rewrite(&p);
    proa__uses_apply(&p.uses);
    proa__uses_free(&p.uses);
    proa__free(p.harmless);
    proa__free(p.grids);
    proa__free(p.positive);
    proa__free(p.first_wanted);
    proa__free(p.wanted);
    /* without the quantizers of weights, which `fold` would run */
    return status == PROA_OK && b->parent < 0 ? proa__program_prune(b->program, true) : status;
}
