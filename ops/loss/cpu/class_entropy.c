/* CPU kernels of class_cross_entropy (softmax cross-entropy with class indices) and its backward. Forward
 * reads each row of logits once and stores no probabilities; backward writes the gradient only. May use core,
 * kernels and ops. */
#include "impl/loss.h"

#include "kernels/nontemporal.h"
#include "kernels/rowwise.h"
#include "kernels/simd_softmax.h"

enum { BLOCK = 1024 };

typedef struct class_work {
    proa_dtype dtype, label_dtype;
    bool nontemporal; /* d_x is written by non-temporal stores */
    int64_t ignore, n;
    const void *x, *label;
    void *sums, *loss, *d_x; /* backward: loss is its gradient */
} class_work;

#define T float
#include "class_entropy.inc"
#undef T
#define T double
#include "class_entropy.inc"
#undef T

static void range(int64_t begin, int64_t end, void *context)
{
    const class_work *c = context;
    bool wide = c->dtype == PROA_F64;
    if (c->d_x) (wide ? backward_rows_double : backward_rows_float)(c, begin, end);
    else (wide ? forward_rows_double : forward_rows_float)(c, begin, end);
    if (c->nontemporal) proa__copy_nontemporal_end();
}

static proa_status run_work(class_work *c, const proa_tensor *x, const proa_tensor *label, const char *op)
{
    rows_around r = rows_split(x, -1);
    c->dtype = (proa_dtype)x->dtype;
    c->label_dtype = (proa_dtype)label->dtype;
    c->x = x->data, c->label = label->data, c->n = r.n;
    if (r.outer == 0) return PROA_OK;
    if (r.n == 0)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), NULL,
                             "has no classes along the last axis");
    for (int64_t i = 0; i < r.outer; i++) {
        int64_t at = rows_get_int(c->label_dtype, c->label, i);
        if ((at < 0 || at >= r.n) && at != c->ignore)
            return proa__op_fail(PROA_ERR_OUT_OF_RANGE, proa_find_op(op), "label",
                                 "entry %lld is %lld; expected 0 to %lld, or ignore_index %lld", (long long)i,
                                 (long long)at, (long long)r.n - 1, (long long)c->ignore);
    }
    int64_t item = (int64_t)proa_dtype_size(c->dtype);
    c->nontemporal =
        c->d_x && c->d_x != c->x && rows_in_place(c->dtype) && nontemporal_pays(x->numel * item, r.n * item);
    proa__parallel(r.outer, rows_grain(ROWS_COSTLY * r.n), range, c);
    return PROA_OK;
}

PROA_KERNEL(class_cross_entropy_cpu, class_cross_entropy)
{
    class_work c = {.ignore = a->ignore_index, .sums = a->sums->data, .loss = a->loss->data};
    return run_work(&c, a->logits, a->label, "class_cross_entropy");
}

PROA_KERNEL(class_cross_entropy_grad_cpu, class_cross_entropy_grad)
{
    class_work c = {
        .ignore = a->ignore_index, .sums = a->sums->data, .loss = a->d_loss->data, .d_x = a->d_logits->data};
    return run_work(&c, a->logits, a->label, "class_cross_entropy_grad");
}
