/* class_cross_entropy in Paddle's programs: written as softmax_with_cross_entropy, whose probabilities stay
 * unused, and its gradient as that op's gradient over a recomputed softmax. May use core and proa/wire.h and
 * the op headers. */
#include "impl/loss.h"

#include "core/tensor.h"
#include "ops/wire_util.h"

static proa_status write_numbers(proa_wire_writer *w, int64_t ignore_index)
{
    PROA_TRY(proa_wire_put_int(w, "soft_label", PROA_WIRE_BOOLEAN, 0));
    PROA_TRY(proa_wire_put_int(w, "use_softmax", PROA_WIRE_BOOLEAN, 1));
    PROA_TRY(proa_wire_put_int(w, "numeric_stable_mode", PROA_WIRE_BOOLEAN, 1));
    PROA_TRY(proa_wire_put_int(w, "ignore_index", PROA_WIRE_INT, ignore_index));
    return proa_wire_put_int(w, "axis", PROA_WIRE_INT, -1);
}

static proa_status write_last_axis(proa_wire_writer *w, const char *type, proa_tensor *x, proa_tensor *out)
{
    PROA_TRY(proa_wire_op(w, type));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(proa_wire_put_output(w, "Out", out));
    PROA_TRY(proa_wire_put_ints(w, "dim", PROA_WIRE_INTS, PROA_INTS(-1)));
    PROA_TRY(proa_wire_put_int(w, "keep_dim", PROA_WIRE_BOOLEAN, 1));
    return proa_wire_put_int(w, "reduce_all", PROA_WIRE_BOOLEAN, 0);
}

/* Writes the ops of `sums`: each row's largest logit m, and Σ e^(logits − m). */
static proa_status write_sums(const proa_class_cross_entropy_args *a, proa_wire_writer *w)
{
    proa_meta whole = proa_meta_of(a->logits), one = proa_meta_of(a->loss);
    proa_tensor *most = proa_wire_temporary(w, &one), *sum = proa_wire_temporary(w, &one);
    proa_tensor *away = proa_wire_temporary(w, &whole), *e = proa_wire_temporary(w, &whole);
    if (!most || !sum || !away || !e) return proa_error();
    PROA_TRY(write_last_axis(w, "reduce_max", a->logits, most));
    PROA_TRY(proa_wire_op(w, "elementwise_sub"));
    PROA_TRY(proa_wire_put_input(w, "X", a->logits));
    PROA_TRY(proa_wire_put_input(w, "Y", most));
    PROA_TRY(proa_wire_put_output(w, "Out", away));
    PROA_TRY(proa_wire_put_int(w, "axis", PROA_WIRE_INT, -1));
    PROA_TRY(proa_wire_op(w, "exp"));
    PROA_TRY(proa_wire_put_input(w, "X", away));
    PROA_TRY(proa_wire_put_output(w, "Out", e));
    PROA_TRY(write_last_axis(w, "reduce_sum", e, sum));
    PROA_TRY(proa_wire_op(w, "concat"));
    PROA_TRY(proa_wire_put_input(w, "X", most));
    PROA_TRY(proa_wire_put_input(w, "X", sum));
    PROA_TRY(proa_wire_put_output(w, "Out", a->sums));
    return proa_wire_put_int(w, "axis", PROA_WIRE_INT, -1);
}

/* The label with an axis of length 1 in place of the classes, which Paddle's op requires; reshaped if it has
 * none. */
static proa_tensor *put_label(proa_wire_writer *w, proa_tensor *label, const proa_tensor *logits)
{
    if (label->ndim == logits->ndim) return label;
    proa_tensor *t = proa__wire_with_axis(w, label, -1);
    return t && proa__wire_put_axis(w, "unsqueeze2", label, t, -1) == PROA_OK ? t : NULL;
}

proa_status class_cross_entropy_write(const void *args, proa_wire_writer *w)
{
    const proa_class_cross_entropy_args *a = args;
    proa_meta meta = proa_meta_of(a->logits);
    proa_tensor *softmax = proa_wire_temporary(w, &meta);
    proa_tensor *label = put_label(w, a->label, a->logits);
    if (!softmax || !label) return proa_error();
    PROA_TRY(proa_wire_op(w, "softmax_with_cross_entropy"));
    PROA_TRY(proa_wire_put_input(w, "Logits", a->logits));
    PROA_TRY(proa_wire_put_input(w, "Label", label));
    PROA_TRY(proa_wire_put_output(w, "Softmax", softmax));
    PROA_TRY(proa_wire_put_output(w, "Loss", a->loss));
    PROA_TRY(write_numbers(w, a->ignore_index));
    return write_sums(a, w);
}

proa_status class_cross_entropy_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_class_cross_entropy_grad_args *a = args;
    proa_meta meta = proa_meta_of(a->logits);
    proa_tensor *softmax = proa_wire_temporary(w, &meta);
    proa_tensor *label = put_label(w, a->label, a->logits);
    if (!softmax || !label) return proa_error();
    PROA_TRY(proa_wire_op(w, "softmax"));
    PROA_TRY(proa_wire_put_input(w, "X", a->logits));
    PROA_TRY(proa_wire_put_int(w, "axis", PROA_WIRE_INT, -1));
    PROA_TRY(proa_wire_put_output(w, "Out", softmax));
    PROA_TRY(proa_wire_op(w, "softmax_with_cross_entropy_grad"));
    PROA_TRY(proa_wire_put_input(w, "Label", label));
    PROA_TRY(proa_wire_put_input(w, "Softmax", softmax));
    PROA_TRY(proa_wire_put_input(w, "Loss@GRAD", a->d_loss));
    PROA_TRY(proa_wire_put_output(w, "Logits@GRAD", a->d_logits));
    return write_numbers(w, a->ignore_index);
}
