/* CPU kernels of softmax_with_cross_entropy and its backward. May use core, kernels and ops. */
#include "impl/loss.h"

#include "kernels/nontemporal.h"
#include "kernels/rowwise.h"
#include "kernels/simd_softmax.h"

enum { COLUMNS = 64, CE_BLOCK = 1024 };

typedef struct ce_work {
    proa_dtype dtype, label_dtype;
    bool soft, use_softmax;
    bool nontemporal; /* softmax or d_x is written by non-temporal stores */
    int64_t ignore;
    const void *x, *label;
    void *softmax, *loss, *d_x;
    rows_around r;
    int64_t blocks; /* of columns, per outer index */
} ce_work;

#define T float
#include "cross_entropy.inc"
#undef T
#define T double
#include "cross_entropy.inc"
#undef T

/* Buffer for the exponentials of a row: NULL where none is needed, or there is no memory. */
static void *exponentials_buffer(const ce_work *c)
{
    if (!c->nontemporal || c->d_x || c->soft || !c->use_softmax || c->r.inner != 1) return NULL;
    void *e = proa_scratch((size_t)(c->r.n + c->r.n / CE_BLOCK + 1) * proa_dtype_size(c->dtype));
    if (!e) proa_clear_error();
    return e;
}

static void range(int64_t begin, int64_t end, void *context)
{
    const ce_work *c = context;
    const int64_t n = c->r.n;
    bool wide = c->dtype == PROA_F64;
    void *e = exponentials_buffer(c);
    for (int64_t i = begin; i < end; i++) {
        int64_t outer = i / c->blocks, column = i % c->blocks * COLUMNS, left = c->r.inner - column;
        int64_t row = outer * c->r.inner + column, at = outer * n * c->r.inner + column;
        int64_t w = left < COLUMNS ? left : COLUMNS;
        if (c->r.inner == 1 && c->d_x) (wide ? backward_row_double : backward_row_float)(c, row, at);
        else if (e && wide) forward_row_nontemporal_double(c, row, at, e, (double *)e + n);
        else if (e) forward_row_nontemporal_float(c, row, at, e, (float *)e + n);
        else if (c->r.inner == 1) (wide ? forward_row_double : forward_row_float)(c, row, at);
        else if (c->d_x) (wide ? backward_double : backward_float)(c, row, at, w);
        else (wide ? forward_double : forward_float)(c, row, at, w);
    }
    proa_scratch_free(e);
    if (c->nontemporal) proa__copy_nontemporal_end();
}

static proa_status check_labels(const ce_work *c, const proa_op *op)
{
    if (c->soft) return PROA_OK;
    for (int64_t i = 0; i < c->r.outer * c->r.inner; i++) {
        int64_t label = rows_get_int(c->label_dtype, c->label, i);
        if ((label < 0 || label >= c->r.n) && label != c->ignore)
            return proa__op_fail(PROA_ERR_OUT_OF_RANGE, op, "label",
                                 "entry %lld is %lld; expected 0 to %lld, or ignore_index %lld", (long long)i,
                                 (long long)label, (long long)c->r.n - 1, (long long)c->ignore);
    }
    return PROA_OK;
}

static proa_status run_work(ce_work *c, const proa_tensor *like, const proa_tensor *label, int64_t axis,
                            const char *op)
{
    c->dtype = (proa_dtype)like->dtype;
    c->label_dtype = (proa_dtype)label->dtype;
    c->label = label->data;
    c->r = rows_split(like, axis);
    if (c->r.outer * c->r.inner == 0) return PROA_OK;
    if (c->r.n == 0)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), NULL,
                             "has no classes along axis %lld", (long long)axis);
    PROA_TRY(check_labels(c, proa_find_op(op)));
    int64_t item = (int64_t)proa_dtype_size(c->dtype);
    const void *out = c->d_x ? c->d_x : c->softmax;
    c->nontemporal =
        rows_in_place(c->dtype) && nontemporal_pays(like->numel * item, c->r.n * item) && out != like->data;
    c->blocks = (c->r.inner + COLUMNS - 1) / COLUMNS;
    int64_t columns = c->r.inner < COLUMNS ? c->r.inner : COLUMNS;
    proa__parallel(c->r.outer * c->blocks, rows_grain(ROWS_COSTLY * c->r.n * columns), range, c);
    return PROA_OK;
}

PROA_KERNEL(softmax_with_cross_entropy_cpu, softmax_with_cross_entropy)
{
    ce_work c = {.soft = a->soft_label,
                 .use_softmax = a->use_softmax,
                 .ignore = a->ignore_index,
                 .x = a->logits->data,
                 .softmax = a->softmax->data,
                 .loss = a->loss->data};
    return run_work(&c, a->logits, a->label, a->axis, "softmax_with_cross_entropy");
}

PROA_KERNEL(softmax_with_cross_entropy_grad_cpu, softmax_with_cross_entropy_grad)
{
    ce_work c = {.soft = a->soft_label,
                 .use_softmax = a->use_softmax,
                 .ignore = a->ignore_index,
                 .softmax = a->softmax->data,
                 .loss = a->d_loss->data,
                 .d_x = a->d_logits->data};
    return run_work(&c, a->softmax, a->label, a->axis, "softmax_with_cross_entropy_grad");
}
