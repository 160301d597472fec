/* Folds, on the CPU, the transpose that merges attention heads into the product before it: a matmul whose
 * result is transposed (rows before heads) and reshaped becomes matmul_swapped, which writes that order. A
 * scalar factor between them, as in attention's gradient, is moved behind. May use core and ops. */
#include "edit.h"

#include "core/internal.h"
#include "impl/elementwise.h"
#include "impl/matmul.h"
#include "impl/shape.h"

/* True if perm swaps the two dims before the last. */
static bool swaps_rows(const proa_ints *perm, int n)
{
    if (perm->tensor || perm->tensors || perm->count != n || n < 3) return false;
    for (int i = 0; i < n; i++) {
        int64_t from = perm->at[i] < 0 ? perm->at[i] + n : perm->at[i];
        if (from != (i == n - 3 ? n - 2 : i == n - 2 ? n - 3 : i)) return false;
    }
    return true;
}

/* The op of that name that makes t, if only `reader` reads t; NULL otherwise. */
static proa_instr *made_for(const proa__uses *u, const proa_tensor *t, int32_t reader, const char *name)
{
    const proa_var *v = proa__slot_var(t);
    const proa__use *use = proa__use_of(u, v);
    if (!use || use->overwritten || use->maker == PROA__NOBODY || proa__only_reader(u, v) != reader)
        return NULL;
    proa_instr *maker = &u->block->ops[use->maker];
    return proa__is_op(maker, name) && maker->role == u->block->ops[reader].role ? maker : NULL;
}

/* True for products in float32 or half precision whose operands have as many dims as the result, and the same
 * number of heads, at least two. */
static bool has_heads(const proa_matmul_args *a)
{
    int n = a->x->ndim;
    return n == a->y->ndim && n == a->out->ndim && a->x->shape[n - 3] == a->y->shape[n - 3] &&
           a->x->shape[n - 3] > 1 &&
           (a->x->dtype == PROA_F32 || a->x->dtype == PROA_BF16 || a->x->dtype == PROA_F16);
}

static bool is_merged(const proa__uses *u, const proa_tensor *t)
{
    int32_t reader = proa__only_reader(u, proa__slot_var(t));
    return reader != PROA__NOBODY && proa__is_op(&u->block->ops[reader], "reshape");
}

static proa_status rewrite(proa__uses *u, int32_t at, const proa__pass_context *context)
{
    proa_instr *instr = &u->block->ops[at];
    (void)context;
    if (!proa__is_op(instr, "transpose")) return PROA_OK;
    const proa_transpose_args *a = instr->args;
    if (!swaps_rows(&a->perm, a->x->ndim) || !is_merged(u, a->out)) return PROA_OK;
    proa_instr *scale = made_for(u, a->x, at, "scale"), *product = NULL;
    const proa_scale_args *factor = scale ? scale->args : NULL;
    int32_t before = scale ? (int32_t)(scale - u->block->ops) : at;
    product = made_for(u, scale ? factor->x : a->x, before, "matmul");
    if (!product || (factor && factor->scale.tensor) || !has_heads(product->args)) return PROA_OK;
    const proa_matmul_args *m = product->args;
    proa_matmul_swapped_args swapped = {
        .x = m->x, .y = m->y, .transpose_x = m->transpose_x, .transpose_y = m->transpose_y, .out = a->out};
    if (scale) {
        const proa_meta meta = proa_meta_of(a->out);
        proa_var *v = proa__var_new(u->block, NULL, &meta);
        if (!v) return proa_error();
        swapped.out = v->handle;
        proa_scale_args behind = *factor;
        behind.x = v->handle, behind.out = a->out;
        PROA_TRY(proa__instr_become(scale, scale->op, &behind));
    }
    PROA_TRY(proa__instr_become(product, proa_find_op("matmul_swapped"), &swapped));
    proa__instr_clear(instr);
    return PROA_OK;
}

proa_status proa__pass_transpose_folding(proa_block *b, const proa__pass_context *context)
{
    return context->on_device ? PROA_OK : proa__rewrite_ops(b, context, rewrite);
}
