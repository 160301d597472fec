/* Shapes of ctc_loss, hsigmoid_loss and of the decoding ops (gather_tree, sequence_mask), and rules, which
 * call the fused backward ops. May use core, kernels and public ops. */
#include "ops/ints.h"
#include "kernels/rowwise.h"
#include "impl/sequence.h"

static bool is_index(const proa_tensor *t) { return t->dtype == PROA_I32 || t->dtype == PROA_I64; }

/* ---- ctc ---- */

static proa_status check_logits(const char *op, const proa_tensor *logits)
{
    if (logits->ndim == 3) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, "logits", "is %s; expected [time, batch, classes]",
                   proa__tensor_text(logits));
}

/* Checks that t is a vector of integers with one length for each sequence in logits. */
static proa_status check_lengths(const char *op, const char *name, const proa_tensor *t,
                                 const proa_tensor *logits)
{
    if (t->ndim == 1 && is_index(t) && rows_dims_agree(t->shape[0], logits->shape[1])) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, name, "is %s; expected int64 or int32 [batch], and logits is %s",
                   proa__tensor_text(t), proa__tensor_text(logits));
}

proa_status ctc_loss_infer(const proa_ctc_loss_args *a, proa_ctc_loss_metas *m)
{
    const char *op = "ctc_loss";
    PROA_TRY(check_logits(op, a->logits));
    PROA_TRY(check_lengths(op, "logits_length", a->logits_length, a->logits));
    PROA_TRY(check_lengths(op, "label_length", a->label_length, a->logits));
    if (a->label->ndim != 2 || !is_index(a->label) ||
        !rows_dims_agree(a->label->shape[0], a->logits->shape[1]))
        return OP_FAIL(op, INVALID_ARGUMENT, "label",
                       "is %s; expected int32 or int64 [batch, length], and logits "
                       "is %s",
                       proa__tensor_text(a->label), proa__tensor_text(a->logits));
    if (a->blank < 0 || (a->logits->shape[2] >= 0 && a->blank >= a->logits->shape[2]))
        return OP_FAIL(op, OUT_OF_RANGE, "blank", "is %lld; expected one of the classes of logits %s",
                       (long long)a->blank, proa__tensor_text(a->logits));
    m->gradient = proa_meta_of(a->logits);
    m->loss =
        (proa_meta){.dtype = (proa_dtype)a->logits->dtype, .ndim = 2, .shape = {a->logits->shape[1], 1}};
    return PROA_OK;
}

proa_status ctc_loss_grad_infer(const proa_ctc_loss_grad_args *a, proa_ctc_loss_grad_metas *m)
{
    const char *op = "ctc_loss_grad";
    PROA_TRY(check_logits(op, a->logits));
    PROA_TRY(check_lengths(op, "logits_length", a->logits_length, a->logits));
    if (!rows_same_shape(a->gradient, a->logits) || a->gradient->dtype != a->logits->dtype)
        return OP_FAIL(op, INVALID_ARGUMENT, "gradient", "is %s; expected %s as logits",
                       proa__tensor_text(a->gradient), proa__tensor_text(a->logits));
    if (a->d_loss->dtype != a->logits->dtype || !rows_dims_agree(a->d_loss->numel, a->logits->shape[1]))
        return OP_FAIL(op, INVALID_ARGUMENT, "d_loss", "is %s; expected one number a sequence of %s",
                       proa__tensor_text(a->d_loss), proa__tensor_text(a->logits));
    m->d_logits = proa_meta_of(a->logits);
    return PROA_OK;
}

proa_status ctc_loss_vjp(const proa_ctc_loss_args *a, proa_ctc_loss_grads *g)
{
    if (g->want_logits)
        g->d_logits = proa_ctc_loss_grad(a->gradient, a->logits_length, a->gradient, g->d_loss,
                                         .blank = rows_option(a->blank), .norm_by_times = a->norm_by_times);
    return proa_error();
}

/* ---- hsigmoid ---- */

/* Depth of the complete binary tree with n leaves: bits of n − 1. */
static int64_t depth_of(int64_t n)
{
    int64_t depth = 0;
    for (int64_t v = n - 1; v > 0; v >>= 1) depth++;
    return depth;
}

static proa_status check_tree(const char *op, const proa_tensor *x, const proa_tensor *label,
                              const proa_tensor *table, const proa_tensor *code, int64_t num_classes,
                              int64_t *depth)
{
    bool custom = !proa__absent(table);
    if (custom != !proa__absent(code))
        return OP_FAIL(op, INVALID_ARGUMENT, custom ? "path_code" : "path_table",
                       "is missing; path_table and path_code go together");
    if (label->dtype != PROA_I64 || !rows_dims_agree(label->numel, x->shape[0]))
        return OP_FAIL(op, INVALID_ARGUMENT, "label", "is %s; expected int64, one a row of x %s",
                       proa__tensor_text(label), proa__tensor_text(x));
    if (!custom) {
        if (num_classes < 2)
            return OP_FAIL(op, INVALID_ARGUMENT, "num_classes", "is %lld; expected at least 2",
                           (long long)num_classes);
        *depth = depth_of(num_classes);
        return PROA_OK;
    }
    bool fits = table->dtype == PROA_I64 && code->dtype == PROA_I64 && table->ndim == 2 &&
                rows_same_shape(table, code) && rows_dims_agree(table->shape[0], x->shape[0]);
    if (!fits)
        return OP_FAIL(op, INVALID_ARGUMENT, "path_table",
                       "is %s and path_code %s; expected int64 [N, length], "
                       "and x is %s",
                       proa__tensor_text(table), proa__tensor_text(code), proa__tensor_text(x));
    *depth = table->shape[1];
    return PROA_OK;
}

static proa_status check_nodes(const char *op, const proa_tensor *x, const proa_tensor *w,
                               const proa_tensor *bias)
{
    if (x->ndim != 2)
        return OP_FAIL(op, INVALID_ARGUMENT, "x", "is %s; expected [N, features]", proa__tensor_text(x));
    if (w->ndim != 2 || w->dtype != x->dtype || !rows_dims_agree(w->shape[1], x->shape[1]))
        return OP_FAIL(op, INVALID_ARGUMENT, "w", "is %s; expected [nodes, features] as x %s",
                       proa__tensor_text(w), proa__tensor_text(x));
    if (!proa__absent(bias) && (bias->dtype != x->dtype || !rows_dims_agree(bias->numel, w->shape[0])))
        return OP_FAIL(op, INVALID_ARGUMENT, "bias", "is %s; expected one number a row of w %s",
                       proa__tensor_text(bias), proa__tensor_text(w));
    return PROA_OK;
}

proa_status hsigmoid_loss_infer(const proa_hsigmoid_loss_args *a, proa_hsigmoid_loss_metas *m)
{
    const char *op = "hsigmoid_loss";
    int64_t depth = 0;
    PROA_TRY(check_nodes(op, a->x, a->w, a->bias));
    PROA_TRY(check_tree(op, a->x, a->label, a->path_table, a->path_code, a->num_classes, &depth));
    m->out = (proa_meta){.dtype = (proa_dtype)a->x->dtype, .ndim = 2, .shape = {a->x->shape[0], 1}};
    m->pre_out = m->out;
    m->pre_out.shape[1] = depth;
    return PROA_OK;
}

proa_status hsigmoid_loss_grad_infer(const proa_hsigmoid_loss_grad_args *a, proa_hsigmoid_loss_grad_metas *m)
{
    const char *op = "hsigmoid_loss_grad";
    int64_t depth = 0;
    PROA_TRY(check_nodes(op, a->x, a->w, a->bias));
    PROA_TRY(check_tree(op, a->x, a->label, a->path_table, a->path_code, a->num_classes, &depth));
    bool fits = a->pre_out->dtype == a->x->dtype && a->pre_out->ndim == 2 &&
                rows_dims_agree(a->pre_out->shape[0], a->x->shape[0]) &&
                rows_dims_agree(a->pre_out->shape[1], depth);
    if (!fits || a->d_out->dtype != a->x->dtype || !rows_dims_agree(a->d_out->numel, a->x->shape[0]))
        return OP_FAIL(op, INVALID_ARGUMENT, fits ? "d_out" : "pre_out",
                       "is %s; expected what hsigmoid_loss of "
                       "x %s makes",
                       proa__tensor_text(fits ? a->d_out : a->pre_out), proa__tensor_text(a->x));
    m->d_x = proa_meta_of(a->x);
    m->d_w = proa_meta_of(a->w);
    if (!proa__absent(a->bias)) m->d_bias = proa_meta_of(a->bias);
    return PROA_OK;
}

proa_status hsigmoid_loss_vjp(const proa_hsigmoid_loss_args *a, proa_hsigmoid_loss_grads *g)
{
    proa_hsigmoid_loss_grad_result r =
        proa_hsigmoid_loss_grad(a->x, a->label, a->w, a->bias, a->path_table, a->path_code, a->pre_out,
                                g->d_out, .num_classes = a->num_classes);
    g->d_x = r.d_x;
    g->d_w = r.d_w;
    if (!proa__absent(a->bias)) g->d_bias = r.d_bias;
    return proa_error();
}

/* ---- decoding ---- */

proa_status gather_tree_infer(const proa_gather_tree_args *a, proa_gather_tree_metas *m)
{
    if (a->ids->ndim != 3 || a->parents->dtype != a->ids->dtype || !rows_same_shape(a->ids, a->parents))
        return OP_FAIL("gather_tree", INVALID_ARGUMENT, "ids",
                       "is %s and parents %s; expected [time, batch, beam]"
                       " of one dtype",
                       proa__tensor_text(a->ids), proa__tensor_text(a->parents));
    m->out = proa_meta_of(a->ids);
    return PROA_OK;
}

proa_status sequence_mask_infer(const proa_sequence_mask_args *a, proa_sequence_mask_metas *m)
{
    if (a->x->ndim >= PROA_MAX_DIMS)
        return OP_FAIL("sequence_mask", INVALID_ARGUMENT, "x", "is %s; expected at most %d dims",
                       proa__tensor_text(a->x), PROA_MAX_DIMS - 1);
    bool given = a->maxlen.kind == PROA_SCALAR_INT && a->maxlen.i >= 0;
    m->out = proa_meta_of(a->x);
    m->out.shape[m->out.ndim++] = given ? a->maxlen.i : -1;
    m->out.dtype = a->dtype;
    return PROA_OK;
}
