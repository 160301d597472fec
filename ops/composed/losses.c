/* Losses of Paddle 1.x, and cosine similarity, as compositions of ops. May use public ops and proa/wire.h. */
#include "ops/composed/composed.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/index.h"
#include "impl/loss.h"
#include "impl/shape.h"

/* Cross entropy of probabilities x: −log x[label], or with soft_label −Σ label · log x. */
proa_status cross_entropy_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *label = proa_wire_input(r, "Label");
    if (!x || !label) return proa_error();
    int64_t ignored = proa_wire_int(r, "ignore_index", -100);
    proa_softmax_with_cross_entropy_result out = proa_softmax_with_cross_entropy(
        x, label, .soft_label = proa_wire_int(r, "soft_label", 0) != 0, .no_use_softmax = true,
        .ignore_index = ignored ? ignored : PROA_ZERO);
    proa_tensor *loss = out.loss;
    if (loss && label->ndim == x->ndim - 1 && loss->ndim == x->ndim)
        loss = proa_squeeze(loss, .axis = PROA_INTS(-1));
    return proa_wire_result(r, "Y", loss);
}

proa_status cross_entropy2_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *label = proa_wire_input(r, "Label");
    PROA_TRY(cross_entropy_read(r));
    if (!x || !label) return proa_error();
    if (label->ndim < x->ndim) label = proa_unsqueeze(label, PROA_INTS(-1));
    if (!label) return proa_error();
    proa_tensor *ignored = proa_full_like(label, PROA_SCALAR(proa_wire_int(r, "ignore_index", -100)));
    proa_tensor *counts = proa_not_equal(label, ignored);
    proa_tensor *some =
        proa_multiply(label, proa__as_number(counts, label)); /* class 0 where none is asked for */
    return proa_wire_result(r, "MatchX",
                            proa_multiply(proa_take_along_axis(x, some, -1), proa__as_number(counts, x)));
}

/* max(0, margin − label · (x1 − x2)) */
proa_status margin_rank_loss_read(proa_wire_reader *r)
{
    proa_tensor *x1 = proa_wire_input(r, "X1"), *x2 = proa_wire_input(r, "X2"),
                *label = proa_wire_input(r, "Label");
    proa_tensor *out = proa_relu(
        proa__times(proa_multiply(label, proa_subtract(x1, x2)), -1, proa_wire_float(r, "margin", 0)));
    PROA_TRY(proa_wire_result(r, "Out", out));
    return proa_wire_result(r, "Activated",
                            proa__as_number(proa_greater_than(out, proa__constant(out, 0)), out));
}

/* Reshapes a vector to a column or back, to match the label. */
static proa_tensor *as_label(proa_tensor *x, const proa_tensor *label)
{
    if (!x || !label || x->ndim == label->ndim) return x;
    return x->ndim < label->ndim ? proa_unsqueeze(x, PROA_INTS(-1)) : proa_squeeze(x, .axis = PROA_INTS(-1));
}

/* log(1 + e^(left − right)) − label · (left − right) */
proa_status rank_loss_read(proa_wire_reader *r)
{
    proa_tensor *label = proa_wire_input(r, "Label");
    proa_tensor *left = as_label(proa_wire_input(r, "Left"), label),
                *right = as_label(proa_wire_input(r, "Right"), label);
    proa_tensor *away = proa_subtract(left, right);
    return proa_wire_result(r, "Out", proa_subtract(proa_softplus(away), proa_multiply(label, away)));
}

/* −label · log(p + ε) − (1 − label) · log(1 − p + ε) */
proa_status log_loss_read(proa_wire_reader *r)
{
    proa_tensor *p = proa_wire_input(r, "Predicted"), *label = proa_wire_input(r, "Labels");
    double epsilon = proa_wire_float(r, "epsilon", 1e-4);
    proa_tensor *yes = proa_multiply(label, proa_log(proa__times(p, 1, epsilon)));
    proa_tensor *no = proa_multiply(proa__times(label, -1, 1), proa_log(proa__times(p, -1, 1 + epsilon)));
    return proa_wire_result(r, "Loss", proa__times(proa_add(yes, no), -1, 0));
}

/* max(0, 1 − (2 · label − 1) · logits) */
proa_status hinge_loss_read(proa_wire_reader *r)
{
    proa_tensor *side = proa__times(proa_wire_input(r, "Labels"), 2, -1);
    return proa_wire_result(r, "Loss",
                            proa_relu(proa__times(proa_multiply(side, proa_wire_input(r, "Logits")), -1, 1)));
}

/* With v = x · (2y − 1): −4v below −1, otherwise max(0, 1 − v)². */
proa_status modified_huber_loss_read(proa_wire_reader *r)
{
    proa_tensor *v = proa_multiply(proa_wire_input(r, "X"), proa__times(proa_wire_input(r, "Y"), 2, -1));
    proa_tensor *below = proa_less_than(v, proa__constant(v, -1));
    proa_tensor *out =
        proa_where(below, proa__times(v, -4, 0), proa_square(proa_relu(proa__times(v, -1, 1))));
    PROA_TRY(proa_wire_result(r, "IntermediateVal", v));
    return proa_wire_result(r, "Out", out);
}

/* The mean over the other classes of log(1 + e^(x − x of the label)). */
proa_status bpr_loss_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *label = proa_wire_input(r, "Label");
    if (!x || !label) return proa_error();
    int64_t classes = x->shape[x->ndim - 1];
    if (classes < 2)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "bpr_loss: X has shape %s; its last dim must be known and at least 2",
                         proa__shape_text(x->shape, x->ndim));
    if (label->ndim < x->ndim) label = proa_unsqueeze(label, PROA_INTS(-1));
    proa_tensor *away = proa_subtract(x, proa_take_along_axis(x, label, -1));
    proa_tensor *all = proa_sum(proa_softplus(away), .axis = PROA_INTS(-1), .keepdim = true);
    double others = (double)(classes - 1);
    return proa_wire_result(r, "Y", proa__times(all, 1 / others, -0.69314718055994531 / others));
}

proa_status squared_l2_distance_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *y = proa_wire_input(r, "Y");
    proa_tensor *away = proa_subtract(x, y);
    if (!away) return proa_error();
    if (away->ndim > 2) away = proa_flatten(away, .start_axis = 1);
    PROA_TRY(proa_wire_result(r, "sub_result", away));
    return proa_wire_result(r, "Out", proa__row_sums(proa_square(away)));
}

/* Huber's loss of d = inside · (x − y), quadratic below 1/σ², times the outside weight, by row. */
proa_status smooth_l1_loss_read(proa_wire_reader *r)
{
    proa_tensor *inside = proa_wire_input(r, "InsideWeight"), *outside = proa_wire_input(r, "OutsideWeight");
    proa_tensor *d = proa_subtract(proa_wire_input(r, "X"), proa_wire_input(r, "Y"));
    double sigma = proa_wire_float(r, "sigma", 1), squared = sigma * sigma;
    if (!d || !inside || !outside) return proa_error();
    if (proa__is_given(inside)) d = proa_multiply(d, inside);
    proa_tensor *size = proa_abs(d), *near = proa_less_than(size, proa__constant(d, 1 / squared));
    proa_tensor *loss =
        proa_where(near, proa__times(proa_square(d), squared / 2, 0), proa__times(size, 1, -0.5 / squared));
    if (proa__is_given(outside)) loss = proa_multiply(loss, outside);
    PROA_TRY(proa_wire_result(r, "Diff", d));
    return proa_wire_result(r, "Out", proa__row_sums(loss));
}

/* The cosine of the angle between rows. */
proa_status cos_sim_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *y = proa_wire_input(r, "Y");
    proa_tensor *x_norm = proa_sqrt(proa__row_sums(proa_square(x))),
                *y_norm = proa_sqrt(proa__row_sums(proa_square(y)));
    proa_tensor *dot = proa__row_sums(proa_multiply(x, y));
    PROA_TRY(proa_wire_result(r, "XNorm", x_norm));
    PROA_TRY(proa_wire_result(r, "YNorm", y_norm));
    return proa_wire_result(r, "Out", proa_divide(dot, proa_multiply(x_norm, y_norm)));
}

/* Focal loss of sigmoid(x) with classes numbered from 1; 0 is background, and −1 is ignored. */
proa_status sigmoid_focal_loss_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *label = proa_wire_input(r, "Label"),
                *count = proa_wire_input(r, "FgNum");
    double gamma = proa_wire_float(r, "gamma", 2), alpha = proa_wire_float(r, "alpha", 0.25);
    if (!x || !label || !count) return proa_error();
    proa_tensor *classes = proa_arange(PROA_SCALAR(1), PROA_SCALAR(x->shape[1] + 1), PROA_SCALAR(1),
                                       .dtype = (proa_dtype)label->dtype);
    proa_tensor *is = proa_equal(label, classes);
    proa_tensor *counts = proa_not_equal(label, proa_full_like(label, PROA_SCALAR(-1)));
    proa_tensor *positive = proa__as_number(is, x);
    proa_tensor *negative = proa__as_number(proa_logical_and(counts, proa_logical_not(is)), x);
    proa_tensor *p = proa_sigmoid(x);
    proa_tensor *near =
        proa_multiply(proa_pow(proa__times(p, -1, 1), PROA_SCALAR(gamma)), proa_logsigmoid(x));
    proa_tensor *far = proa_multiply(proa_pow(p, PROA_SCALAR(gamma)), proa_logsigmoid(proa__times(x, -1, 0)));
    proa_tensor *sum = proa_add(proa__times(proa_multiply(positive, near), -alpha, 0),
                                proa__times(proa_multiply(negative, far), alpha - 1, 0));
    proa_tensor *n = proa_clip(proa__as_number(count, x), .min = PROA_SCALAR(1.0));
    return proa_wire_result(r, "Out", proa_divide(sum, n));
}

/* log(1 + e^x) − x · z, once with z for a click, once with the teacher's score. */
proa_status teacher_student_sigmoid_loss_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *label = proa_wire_input(r, "Label");
    proa_tensor *plain = proa_softplus(x, .threshold = 1e30);
    proa_tensor *clicked = proa_subtract(plain, x);
    proa_tensor *scored = proa_add(plain, proa_subtract(plain, proa_multiply(x, label)));
    proa_tensor *both = proa_add(clicked, proa_subtract(plain, proa_multiply(x, proa__times(label, 1, -1))));
    proa_tensor *out = proa_where(proa_less_than(label, proa__constant(label, 1)), scored, both);
    out = proa_where(proa_less_than(label, proa__constant(label, 0)), clicked, out);
    return proa_wire_result(r, "Y", proa_where(proa_less_than(label, proa__constant(label, -1)), plain, out));
}

/* ½ |x − center of its class|²; the centers move towards the means of their members. */
proa_status center_loss_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *label = proa_wire_input(r, "Label");
    proa_tensor *centers = proa_wire_input(r, "Centers"), *rate = proa_wire_input(r, "CenterUpdateRate");
    if (!x || !label || !centers || !rate) return proa_error();
    if (label->ndim > 1) label = proa_flatten(label);
    proa_tensor *away = proa_subtract(x, proa_gather(centers, label));
    PROA_TRY(proa_wire_result(r, "SampleCenterDiff", away));
    PROA_TRY(proa_wire_result(r, "Loss", proa__times(proa__row_sums(proa_square(away)), 0.5, 0)));
    if (!proa_wire_int(r, "need_update", 0)) return proa_wire_result(r, "CentersOut", proa_assign(centers));
    proa_tensor *column = proa__part(centers, 1, 0, 1), *ones = proa__part(away, 1, 0, 1);
    proa_tensor *counts = proa_index_add(proa_full_like(column, PROA_SCALAR(1.0)), label, 0,
                                         proa_full_like(ones, PROA_SCALAR(1.0)));
    proa_tensor *sums =
        proa_index_add(proa_full_like(centers, PROA_SCALAR(0.0)), label, 0, proa_share_data(away));
    return proa_wire_result(r, "CentersOut",
                            proa_add(centers, proa_multiply(proa_divide(sums, counts), rate)));
}
