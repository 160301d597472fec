/* Makes max pooling of float32 images with few channels (NCHW) save its argmax indices for its gradient in
 * the same program. Applies the gradient of a ReLU before that of the pooling behind the ReLU, not after it,
 * because tensors are smaller there. May use core and ops. */
#include "edit.h"

#include "core/internal.h"
#include "ops/windows.h"
#include "impl/elementwise.h"
#include "impl/pool.h"

/* From this number of channels on, tensors are stored blocked, where pooling saves no indices: rounding up to
 * blocks of 16 channels wastes little then. */
enum { BLOCKED_CHANNELS = 12 };

static bool is_max(const proa_instr *instr)
{
    const proa_pool2d_grad_args *a = instr->args;
    return proa__is_op(instr, "pool2d_grad") && a->pooling_type == PROA_POOLING_TYPE_MAX;
}

/* Swaps the gradients of ReLU and max pooling. relu_grad is zero where ReLU's output r is zero, and a
 * window's gradient goes to its maximum, which is zero exactly where the pooled value p is. Hence
 * relu_grad(r, pool_grad(r, p, d)), the ops `second` and `first`, equals pool_grad(r, p, relu_grad(p, d)) bit
 * by bit. */
static proa_status turn(proa__uses *u, int32_t first, int32_t second)
{
    proa_instr *pool = &u->block->ops[first], *relu = &u->block->ops[second];
    proa_pool2d_grad_args after = *(const proa_pool2d_grad_args *)pool->args;
    proa_meta meta = proa_meta_of(after.d_out);
    const proa_var *masked = proa__var_new(u->block, NULL, &meta);
    if (!masked) return proa_error();
    proa_relu_grad_args before = {.out = after.out, .d_out = after.d_out, .d_x = masked->handle};
    after.d_out = masked->handle;
    after.d_x = ((const proa_relu_grad_args *)relu->args)->d_x;
    proa_instr made = {.role = relu->role, .marks = relu->marks};
    PROA_TRY(proa__instr_become(&made, pool->op, &after));
    proa_status status = proa__instr_become(pool, relu->op, &before);
    if (status != PROA_OK) {
        proa__instr_clear(&made);
        return status;
    }
    proa__instr_clear(relu);
    *relu = made;
    return PROA_OK;
}

/* The relu_grad that alone reads the result of the pooling gradient at `at`; NOBODY: there is none. */
static int32_t relu_behind(const proa__uses *u, int32_t at)
{
    const proa_pool2d_grad_args *a = u->block->ops[at].args;
    int32_t reader = proa__only_reader(u, proa__slot_var(a->d_x));
    if (reader == PROA__NOBODY || !proa__is_op(&u->block->ops[reader], "relu_grad")) return PROA__NOBODY;
    const proa_relu_grad_args *r = u->block->ops[reader].args;
    const proa_var *x = proa__slot_var(a->x), *out = proa__slot_var(a->out);
    bool same = x && out && proa__slot_var(r->out) == x && proa__is_value(u, x) && proa__is_value(u, out);
    return same && r->d_out->dtype == a->d_out->dtype ? reader : PROA__NOBODY;
}

/* True if `a` is the pooling that g is the gradient of, and an op with argmax indices can replace it. */
static bool has_places(const proa_max_pool2d_args *a, const proa_pool2d_grad_args *g)
{
    const proa_ints *stride = a->stride.count ? &a->stride : &a->kernel_size;
    return proa__slot_var(a->x) == proa__slot_var(g->x) && a->x->dtype == PROA_F32 && a->x->ndim == 4 &&
           a->x->shape[1] > 0 && a->x->shape[1] < BLOCKED_CHANNELS && !a->ceil_mode && !g->ceil_mode &&
           !g->adaptive && !proa__channels_last(a->data_format) && !proa__channels_last(g->data_format) &&
           a->padding_algorithm == PROA_PADDING_ALGORITHM_EXPLICIT && a->padding.count == 2 &&
           g->padding_algorithm == a->padding_algorithm &&
           proa__same_ints(&a->kernel_size, &g->kernel_size) && proa__same_ints(stride, &g->stride) &&
           proa__same_ints(&a->padding, &g->padding);
}

/* Makes the pooling at `forward` give argmax indices, and its gradient at `backward` read these instead of
 * x. */
static proa_status keep_places(const proa__uses *u, int32_t forward, int32_t backward)
{
    const proa_max_pool2d_args *a = u->block->ops[forward].args;
    const proa_pool2d_grad_args *g = u->block->ops[backward].args;
    proa_meta meta = proa_meta_of(a->out);
    meta.dtype = PROA_I32;
    const proa_var *mask = proa__var_new(u->block, NULL, &meta);
    if (!mask) return proa_error();
    proa_max_pool2d_with_index_grad_args grad = {.x = g->x,
                                                 .mask = mask->handle,
                                                 .d_out = g->d_out,
                                                 .kernel_size = g->kernel_size,
                                                 .stride = g->stride,
                                                 .padding = g->padding,
                                                 .d_x = g->d_x};
    PROA_TRY(proa__instr_become(&u->block->ops[backward], proa_find_op("max_pool2d_with_index_grad"), &grad));
    proa_max_pool2d_with_index_args pool = {.x = a->x,
                                            .kernel_size = a->kernel_size,
                                            .stride = a->stride,
                                            .padding = a->padding,
                                            .out = a->out,
                                            .mask = mask->handle};
    return proa__instr_become(&u->block->ops[forward], proa_find_op("max_pool2d_with_index"), &pool);
}

static proa_status rewrite(proa__uses *u, int32_t at, const proa__pass_context *context)
{
    const proa_instr *ops = u->block->ops;
    (void)context;
    if (!is_max(&ops[at])) return PROA_OK;
    int32_t relu = relu_behind(u, at);
    if (relu != PROA__NOBODY) return turn(u, at, relu); /* the moved gradient is visited again behind it */
    const proa_pool2d_grad_args *a = ops[at].args;
    const proa__use *out = proa__use_of(u, proa__slot_var(a->out));
    int32_t maker = out ? out->maker : PROA__NOBODY;
    bool fits =
        maker != PROA__NOBODY && proa__is_op(&ops[maker], "max_pool2d") && has_places(ops[maker].args, a);
    return fits ? keep_places(u, maker, at) : PROA_OK;
}

proa_status proa__pass_max_pool_indices(proa_block *b, const proa__pass_context *context)
{
    return proa__rewrite_ops(b, context, rewrite);
}
