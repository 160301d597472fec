/* Readers of fused operators: softmax with masks, and dropout with what lies around it. May use public ops
 * and proa/wire.h. */
#include "ops/composed/composed.h"
#include "impl/create.h"
#include "impl/dropout.h"
#include "impl/elementwise.h"
#include "impl/norm.h"
#include "impl/softmax.h"

#include <math.h>
#include <string.h>

/* ---- softmax ----------------------------------------------------------------------------------------- */

proa_status fused_softmax_mask_read(proa_wire_reader *r)
{
    return proa_wire_result(
        r, "Out", proa_softmax(proa_add(proa_wire_input(r, "X"), proa_wire_input(r, "Mask")), .axis = -1));
}

/* The softmax of [batch, heads, n, n] over what is not above the diagonal. */
proa_status fused_softmax_mask_upper_triangle_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    if (!x) return proa_error();
    proa_tensor *above = proa_triu(proa_full_like(x, PROA_SCALAR(1), .dtype = PROA_BOOL), .diagonal = 1);
    return proa_wire_result(r, "Out",
                            proa_softmax(proa_where(above, proa__constant(x, -INFINITY), x), .axis = -1));
}

/* ---- dropout ----------------------------------------------------------------------------------------- */

static proa_tensor *dropped(proa_wire_reader *r, proa_tensor *x, double p, const char *mode)
{
    bool upscale = mode && strcmp(mode, "upscale_in_train") == 0;
    return proa_dropout(
               x, .p = p > 0 ? p : (double)PROA_ZERO, .no_training = proa_wire_int(r, "is_test", 0) != 0,
               .mode = upscale ? PROA_DROPOUT_MODE_UPSCALE_IN_TRAIN : PROA_DROPOUT_MODE_DOWNSCALE_IN_INFER)
        .out;
}

proa_status fused_dropout_add_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "x"), *p = proa_wire_input(r, "PTensor");
    if (!p) return proa_error();
    if (!proa__absent(p)) return proa_fail(PROA_ERR_UNSUPPORTED, "p must be an attribute");
    const char *mode = proa_wire_string(r, "mode", "upscale_in_train");
    return proa_wire_result(
        r, "out", proa_add(dropped(r, x, proa_wire_float(r, "p", 0.5), mode), proa_wire_input(r, "y")));
}

/* x normalized over the dims from `axis` on; its mean and variance go to the named slots (NULL: nowhere). */
static proa_status normalized(proa_wire_reader *r, proa_tensor *x, const char *const *slots, double epsilon,
                              int64_t axis)
{
    proa_layer_norm_result made =
        proa_layer_norm(x, proa_wire_input(r, slots[0]), proa_wire_input(r, slots[1]), .epsilon = epsilon,
                        .begin_norm_axis = axis);
    if (slots[3]) PROA_TRY(proa_wire_result(r, slots[3], made.mean));
    if (slots[4]) PROA_TRY(proa_wire_result(r, slots[4], made.variance));
    return proa_wire_result(r, slots[2], made.out);
}

/* The layer norm of residual + dropout(x + bias). */
proa_status fused_bias_dropout_residual_layer_norm_read(proa_wire_reader *r)
{
    static const char *const slots[] = {"LnScale", "LnBias", "Y", "LnMean", "LnVariance"};
    proa_tensor *x = proa_wire_input(r, "X"), *bias = proa_wire_input(r, "Bias");
    if (!x || !bias) return proa_error();
    if (!proa__absent(bias)) x = proa_add(x, bias);
    const char *mode = proa_wire_string(r, "dropout_implementation", "downgrade_in_infer");
    x = dropped(r, x, proa_wire_float(r, "dropout_rate", 0.5), mode);
    x = proa_add(proa_wire_input(r, "Residual"), x);
    if (!x) return proa_error();
    PROA_TRY(proa_wire_result(r, "BiasDropoutResidualOut", x));
    return normalized(r, x, slots, proa_wire_float(r, "ln_epsilon", 1e-5), x->ndim - 1);
}

/* The layer norm of x + y. */
proa_status skip_layernorm_read(proa_wire_reader *r)
{
    static const char *const slots[] = {"Scale", "Bias", "Out", NULL, NULL};
    proa_tensor *x = proa_add(proa_wire_input(r, "X"), proa_wire_input(r, "Y"));
    return normalized(r, x, slots, proa_wire_float(r, "epsilon", 1e-5),
                      proa_wire_int(r, "begin_norm_axis", 2));
}
