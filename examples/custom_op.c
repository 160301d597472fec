/* An op of one's own: its table is custom_op.yaml, its kernel and its gradient rule are here. The build runs
 * Proa's generator on the table, which declares proa_softcap() and custom_op_register(). From then on the op
 * is like any other: recorded, captured, differentiated (twice, too, as the rule is made of ops). */
#include "custom_op_ops_impl.h"

#include <proa.h>

#include <math.h>

proa_status custom_op_register(void);
extern const proa_kernel softcap_cpu;

/* The kernel: x arrives contiguous, out has x's shape and dtype. */
PROA_KERNEL(softcap_cpu, softcap)
{
    const float *x = proa_data(a->x);
    float *out = proa_data(a->out), cap = (float)a->cap;
    for (int64_t i = 0; i < proa_numel(a->x); i++) out[i] = cap * tanhf(x[i] / cap);
    return PROA_OK;
}

/* d_x = d_out · (1 − (out / cap)²) */
proa_status softcap_vjp(const proa_softcap_args *a, proa_softcap_grads *g)
{
    proa_tensor *ratio = proa_scale(a->out, .scale = PROA_SCALAR(1 / a->cap));
    proa_tensor *slope = proa_scale(proa_square(ratio), .scale = PROA_SCALAR(-1.0), .bias = 1);
    g->d_x = proa_multiply(g->d_out, slope);
    return proa_error();
}

static proa_tensors function(proa_tensors in, void *context)
{
    (void)context;
    proa_tensors out = {1, proa_scope_alloc(sizeof(proa_tensor *))};
    if (out.at) out.at[0] = proa_softcap(in.at[0], .cap = 2);
    return out;
}

int main(void)
{
    if (custom_op_register() != PROA_OK) return proa_finish(stderr);
    proa_tensor *x = proa_from_data((float[]){-9, -1, 0, 0.5F, 9}, PROA_SHAPE(5), PROA_F32);
    proa_set_stop_gradient(x, false);
    proa_tensor *y = proa_softcap(x, .cap = 2);
    proa_backward(proa_sum(y));
    printf("softcap: ");
    proa_print(y, stdout);
    printf("gradient: ");
    proa_print(proa_grad_of(x), stdout);

    /* the same, recorded as a program and run by the executor */
    proa_input_spec spec = {.shape = PROA_SHAPE(-1)};
    proa_program *p = proa_capture(function, &spec, 1, NULL);
    proa_executor *e = p ? proa_executor_new(p) : NULL;
    proa_tensors out = e ? proa_executor_run(e, PROA_LIST(x)) : (proa_tensors){0, NULL};
    if (out.count == 1) {
        double apart = proa_item(proa_max(proa_abs(proa_subtract(out.at[0], y))));
        printf("captured and eager differ by %g\n", apart);
    }
    proa_executor_free(e);
    proa_program_free(p);
    return proa_finish(stderr);
}
