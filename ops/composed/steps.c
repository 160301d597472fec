/* Optimizer steps of Paddle 1.x on one parameter, as compositions of ops. May use public ops. */
#include "ops/composed/composed.h"
#include "impl/elementwise.h"
#include "impl/random.h"

/* sign(p) · max(0, |p| − lr · l1) / (1 + lr · l2) */
static proa_tensor *proximal(proa_wire_reader *r, proa_tensor *p, proa_tensor *rate)
{
    double l1 = proa_wire_float(r, "l1", 0), l2 = proa_wire_float(r, "l2", 0);
    if (l1 > 0)
        p = proa_multiply(proa_sign(p), proa_relu(proa_subtract(proa_abs(p), proa__times(rate, l1, 0))));
    return proa_divide(p, proa__times(rate, l2, 1));
}

proa_status proximal_gd_read(proa_wire_reader *r)
{
    proa_tensor *rate = proa_wire_input(r, "LearningRate");
    proa_tensor *p =
        proa_subtract(proa_wire_input(r, "Param"), proa_multiply(proa_wire_input(r, "Grad"), rate));
    return proa_wire_result(r, "ParamOut", proximal(r, p, rate));
}

proa_status proximal_adagrad_read(proa_wire_reader *r)
{
    proa_tensor *rate = proa_wire_input(r, "LearningRate"), *grad = proa_wire_input(r, "Grad");
    proa_tensor *moment = proa_add(proa_wire_input(r, "Moment"), proa_square(grad));
    proa_tensor *step = proa_divide(proa_multiply(grad, rate), proa_sqrt(moment));
    proa_tensor *p = proximal(r, proa_subtract(proa_wire_input(r, "Param"), step), rate);
    PROA_TRY(proa_wire_result(r, "MomentOut", moment));
    return proa_wire_result(r, "ParamOut", p);
}

proa_status decayed_adagrad_read(proa_wire_reader *r)
{
    proa_tensor *grad = proa_wire_input(r, "Grad"), *param = proa_wire_input(r, "Param");
    double decay = proa_wire_float(r, "decay", 0.95);
    proa_tensor *moment = proa_add(proa__times(proa_wire_input(r, "Moment"), decay, 0),
                                   proa__times(proa_square(grad), 1 - decay, 0));
    proa_tensor *step = proa_divide(proa_multiply(grad, proa_wire_input(r, "LearningRate")),
                                    proa__times(proa_sqrt(moment), 1, proa_wire_float(r, "epsilon", 1e-6)));
    PROA_TRY(proa_wire_result(r, "MomentOut", moment));
    return proa_wire_result(r, "ParamOut", proa_subtract(param, step));
}

/* McMahan et al., "Ad click prediction: a view from the trenches", 2013: FTRL-proximal. */
proa_status ftrl_read(proa_wire_reader *r)
{
    proa_tensor *param = proa_wire_input(r, "Param"), *grad = proa_wire_input(r, "Grad");
    proa_tensor *squared = proa_wire_input(r, "SquaredAccumulator"),
                *linear = proa_wire_input(r, "LinearAccumulator");
    proa_tensor *rate = proa_wire_input(r, "LearningRate");
    double l1 = proa_wire_float(r, "l1", 0) + 1e-10, l2 = proa_wire_float(r, "l2", 0) + 1e-10;
    double power = -proa_wire_float(r, "lr_power", -0.5);
    proa_tensor *now = proa_add(squared, proa_square(grad));
    proa_tensor *root = proa_pow(now, PROA_SCALAR(power)), *before = proa_pow(squared, PROA_SCALAR(power));
    proa_tensor *sigma = proa_divide(proa_subtract(root, before), rate);
    proa_tensor *sum = proa_subtract(proa_add(linear, grad), proa_multiply(sigma, param));
    proa_tensor *x = proa_subtract(proa__times(proa_sign(sum), l1, 0), sum);
    proa_tensor *y = proa__times(proa_divide(root, rate), 1, 2 * l2);
    proa_tensor *beyond = proa__as_number(proa_greater_than(proa_abs(sum), proa__constant(sum, l1)), param);
    PROA_TRY(proa_wire_result(r, "ParamOut", proa_multiply(proa_divide(x, y), beyond)));
    PROA_TRY(proa_wire_result(r, "SquaredAccumOut", now));
    return proa_wire_result(r, "LinearAccumOut", sum);
}

static proa_tensor *norm(proa_tensor *x) { return proa_sqrt(proa_sum(proa_square(x))); }

/* You et al., "Large batch training of convolutional networks", 2017: LARS. As in Paddle, a parameter without
 * decay, and one of zeros or without a gradient, has the plain rate. */
proa_status lars_momentum_read(proa_wire_reader *r)
{
    proa_tensor *param = proa_wire_input(r, "Param"), *grad = proa_wire_input(r, "Grad");
    proa_tensor *velocity = proa_wire_input(r, "Velocity"), *rate = proa_wire_input(r, "LearningRate");
    proa_floats decays = proa_wire_floats(r, "lars_weight_decay");
    double decay = decays.count ? decays.at[0] : 0.0005, eps = proa_wire_float(r, "epsilon", 0);
    proa_tensor *p = norm(param), *g = norm(grad);
    proa_tensor *local = proa_divide(proa__times(p, proa_wire_float(r, "lars_coeff", 0.001), 0),
                                     proa__times(proa_add(g, proa__times(p, decay, 0)), 1, eps));
    proa_tensor *zero = proa__constant(p, 0);
    proa_tensor *both = proa_logical_and(proa_greater_than(p, zero), proa_greater_than(g, zero));
    local = decay > 0 ? proa_where(both, proa_multiply(rate, local), rate) : rate;
    proa_tensor *direction = proa_add(grad, proa__times(param, decay, 0));
    proa_tensor *next =
        proa_add(proa__times(velocity, proa_wire_float(r, "mu", 0), 0), proa_multiply(local, direction));
    PROA_TRY(proa_wire_result(r, "VelocityOut", next));
    return proa_wire_result(r, "ParamOut", proa_subtract(param, next));
}

/* Abadi et al., "Deep learning with differential privacy", 2016: the gradient cut to a norm, with noise. */
proa_status dpsgd_read(proa_wire_reader *r)
{
    proa_tensor *param = proa_wire_input(r, "Param"), *grad = proa_wire_input(r, "Grad");
    double clip = proa_wire_float(r, "clip", 10), batch = proa_wire_float(r, "batch_size", 16);
    if (!param || !grad) return proa_error();
    proa_tensor *scale = proa_clip(proa__times(norm(grad), 1 / clip, 0), .min = PROA_SCALAR(1.0));
    double deviation = clip * proa_wire_float(r, "sigma", 1);
    proa_tensor *noise =
        proa_gaussian(PROA_INTS(1), .std = deviation == 0 ? (double)PROA_ZERO : deviation,
                      .seed = proa_wire_int(r, "seed", 0), .dtype = (proa_dtype)param->dtype);
    proa_tensor *step = proa_add(proa_divide(grad, scale), proa__times(noise, 1 / batch, 0));
    return proa_wire_result(r, "ParamOut",
                            proa_subtract(param, proa_multiply(step, proa_wire_input(r, "LearningRate"))));
}
