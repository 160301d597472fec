/* Composed kernels, for any device, of the ops that passes make of linear layers with gelu, of their
 * backward, and of matrix products with a folded transpose of heads: each runs the plain ops one after the
 * other. May use core only. */
#include "impl/elementwise.h"
#include "impl/matmul.h"
#include "impl/reduce.h"
#include "impl/shape.h"

#include "core/copy.h"
#include "core/run.h"
#include "core/tensor.h"

static proa_status call(const char *op, void *args)
{
    return proa_call_from(PROA_DOOR_RUN, proa_find_op(op), args);
}

/* t as a matrix of its last dim's rows. */
static proa_tensor *rows_of(proa_tensor *t)
{
    int64_t last = t->shape[t->ndim - 1];
    return proa_reshape(t, PROA_INTS(last ? t->numel / last : 0, last));
}

/* to = Σ x over all dims but the last. */
static proa_status sum_rows(proa_tensor *x, proa_tensor *to)
{
    int64_t axis[PROA_MAX_DIMS];
    for (int i = 0; i < x->ndim - 1; i++) axis[i] = i;
    proa_sum_args sum = {.x = x, .axis = {.count = x->ndim - 1, .at = axis}, .out = to};
    return call("sum", &sum);
}

PROA_KERNEL_ANYWHERE(linear_gelu_cpu, linear_gelu)
{
    proa_linear_args linear = {.x = a->x, .weight = a->weight, .bias = a->bias, .out = a->pre};
    PROA_TRY(call("linear", &linear));
    proa_gelu_args gelu = {.x = a->pre, .approximate = true, .out = a->out};
    return call("gelu", &gelu);
}

PROA_KERNEL_ANYWHERE(linear_gelu_grad_cpu, linear_gelu_grad)
{
    proa_status status = PROA_OK;
    PROA_SCOPE {
        proa_matmul_args product = {.x = a->d_out, .y = a->weight, .transpose_y = true};
        status = call("matmul", &product);
        proa_gelu_grad_args gelu = {.x = a->pre, .d_out = product.out, .approximate = true, .d_x = a->d_pre};
        if (status == PROA_OK) status = call("gelu_grad", &gelu);
        if (status == PROA_OK) status = sum_rows(a->d_pre, a->d_bias);
    }
    return status;
}

PROA_KERNEL_ANYWHERE(linear_weight_grad_cpu, linear_weight_grad)
{
    proa_status status = PROA_OK;
    PROA_SCOPE {
        proa_matmul_args product = {
            .x = rows_of(a->x), .y = rows_of(a->d_out), .transpose_x = true, .out = a->d_weight};
        status = product.x && product.y ? call("matmul", &product) : proa_error();
        if (status == PROA_OK) status = sum_rows(a->d_out, a->d_bias);
    }
    return status;
}

PROA_KERNEL_ANYWHERE(matmul_swapped_cpu, matmul_swapped)
{
    int64_t perm[PROA_MAX_DIMS];
    const int n = a->out->ndim;
    for (int i = 0; i < n; i++) perm[i] = i;
    perm[n - 3] = n - 2, perm[n - 2] = n - 3;
    proa_status status = PROA_OK;
    PROA_SCOPE {
        proa_matmul_args product = {
            .x = a->x, .y = a->y, .transpose_x = a->transpose_x, .transpose_y = a->transpose_y};
        status = call("matmul", &product);
        proa_transpose_args swap = {.x = product.out, .perm = {.count = n, .at = perm}};
        if (status == PROA_OK) status = call("transpose", &swap);
        if (status == PROA_OK) status = proa__copy(a->out, swap.out);
    }
    return status;
}
