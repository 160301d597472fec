/* Functions of Paddle 1.x as compositions of ops: activations, normalization, padding and rearrangement,
 * products, recurrent cells, spectral norm. May use public ops and proa/wire.h. */
#include "ops/composed/composed.h"
#include "impl/elementwise.h"
#include "impl/matmul.h"
#include "impl/shape.h"

#include <string.h>

/* ---- activations and fused elementwise ops ---------------------------------------------------- */

/* log(1 + e^x), with x clamped to ± threshold. */
proa_status soft_relu_read(proa_wire_reader *r)
{
    double end = proa_wire_float(r, "threshold", 40);
    proa_tensor *x = proa_clip(proa_wire_input(r, "X"), .min = PROA_SCALAR(-end), .max = PROA_SCALAR(end));
    return proa_wire_result(r, "Out", proa_softplus(x, .threshold = 1e30));
}

static bool is_binary(const char *name) { return strncmp(name, "elementwise_", 12) == 0; }

static proa_tensor *unary(proa_wire_reader *r, const char *name, proa_tensor *x)
{
    if (strcmp(name, "scale") == 0) return proa__times(x, proa_wire_float(r, "scale", 0), 0);
    if (strcmp(name, "relu") == 0) return proa_relu(x);
    if (strcmp(name, "tanh") == 0) return proa_tanh(x);
    if (strcmp(name, "sigmoid") == 0) return proa_sigmoid(x);
    if (strcmp(name, "gelu") == 0) return proa_gelu(x);
    proa_fail(PROA_ERR_UNSUPPORTED,
              "functor '%s' is not supported; expected scale, relu, tanh, sigmoid or gelu", name);
    return NULL;
}

static proa_tensor *binary(proa_wire_reader *r, const char *name, proa_tensor *x, proa_tensor *y)
{
    if (!proa__wire_align(r, &x, &y)) return NULL;
    if (strcmp(name, "elementwise_add") == 0) return proa_add(x, y);
    if (strcmp(name, "elementwise_mul") == 0) return proa_multiply(x, y);
    proa_fail(PROA_ERR_UNSUPPORTED,
              "functor '%s' is not supported; expected elementwise_add or elementwise_mul", name);
    return NULL;
}

/* f(x ∘ y) if functor_list names the binary functor second, otherwise x ∘ f(y). */
proa_status fused_elemwise_activation_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *y = proa_wire_input(r, "Y");
    const char *first = proa_wire_string_at(r, "functor_list", 0),
               *second = proa_wire_string_at(r, "functor_list", 1);
    if (!first || !second) return proa_fail(PROA_ERR_CORRUPT, "functor_list must name two functions");
    bool outer = is_binary(second);
    proa_tensor *between = outer ? binary(r, second, x, y) : unary(r, second, y);
    proa_tensor *out = outer ? unary(r, first, between) : binary(r, first, x, between);
    if (proa_wire_int(r, "save_intermediate_out", 0))
        PROA_TRY(proa_wire_result(r, "IntermediateOut", between));
    return proa_wire_result(r, "Out", out);
}

/* ---- channels ----------------------------------------------------------------------------------- */

/* A [C] vector in the shape that broadcasts to x. */
static proa_tensor *by_channel(proa_tensor *v, const proa_tensor *x, bool last)
{
    int64_t axes[PROA_MAX_DIMS];
    int n = 0;
    if (last || !v || !x) return v;
    for (int i = 2; i < x->ndim; i++) axes[n++] = v->ndim + i - 2;
    return n ? proa_unsqueeze(v, ((proa_ints){n, axes, NULL, NULL})) : v;
}

proa_status affine_channel_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    bool last = strcmp(proa_wire_string(r, "data_layout", "NCHW"), "NHWC") == 0;
    proa_tensor *scale = by_channel(proa_wire_input(r, "Scale"), x, last);
    return proa_wire_result(
        r, "Out", proa_add(proa_multiply(x, scale), by_channel(proa_wire_input(r, "Bias"), x, last)));
}

/* x / (k + α · Σ x² over n neighboring channels)^β */
proa_status lrn_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    int64_t n = proa_wire_int(r, "n", 5), before = n / 2;
    if (!x) return proa_error();
    const char *format = proa_wire_string(r, "data_format", "NCHW");
    int axis = format[strlen(format) - 1] == 'C' ? x->ndim - 1 : 1;
    int64_t channels = x->shape[axis], pads[2 * PROA_MAX_DIMS] = {0};
    if (channels < 0)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "lrn: the number of channels of X must be known");
    pads[2 * axis] = before;
    pads[2 * axis + 1] = n - 1 - before;
    proa_tensor *wide = proa_pad(proa_square(x), ((proa_ints){2 * x->ndim, pads, NULL, NULL}));
    proa_tensor *sum = proa__part(wide, axis, 0, channels);
    for (int64_t i = 1; i < n; i++) sum = proa_add(sum, proa__part(wide, axis, i, i + channels));
    proa_tensor *middle = proa__times(sum, proa_wire_float(r, "alpha", 1e-4), proa_wire_float(r, "k", 1));
    PROA_TRY(proa_wire_result(r, "MidOut", middle));
    return proa_wire_result(
        r, "Out", proa_multiply(x, proa_pow(middle, PROA_SCALAR(-proa_wire_float(r, "beta", 0.75)))));
}

/* The dims of the result of [B, bs, bs, C, H, W] → [B, C, H, bs, W, bs], read as [B, C·bs², H/bs, W/bs]. */
proa_status space_to_depth_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    int64_t b = proa_wire_int(r, "blocksize", 2);
    if (!x) return proa_error();
    int64_t c = x->ndim == 4 ? x->shape[1] : -1, h = x->ndim == 4 ? x->shape[2] : -1,
            w = x->ndim == 4 ? x->shape[3] : -1;
    if (b < 2 || c <= 0 || h <= 0 || w <= 0 || c % (b * b) || h % b || w % b)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "space_to_depth: X has shape %s; expected [N, C, H, W] with C a multiple of "
                         "blocksize² and H, W of "
                         "blocksize, which is %lld and must be at least 2",
                         proa__shape_text(x->shape, x->ndim), (long long)b);
    proa_tensor *cut = proa_reshape(x, PROA_INTS(0, b, b, c / (b * b), h, w));
    proa_tensor *turned = proa_transpose(cut, PROA_INTS(0, 3, 4, 1, 5, 2));
    return proa_wire_result(r, "Out", proa_reshape(turned, PROA_INTS(-1, c * b * b, h / b, w / b)));
}

/* Y padded with pad_value at the end of each dim, to X's shape. */
proa_status pad_constant_like_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *y = proa_wire_input(r, "Y");
    int64_t pads[2 * PROA_MAX_DIMS] = {0};
    if (!x || !y) return proa_error();
    bool fits = x->ndim == y->ndim;
    for (int i = 0; fits && i < x->ndim; i++) {
        fits = y->shape[i] < 0 || x->shape[i] >= y->shape[i];
        pads[2 * i + 1] = y->shape[i] < 0 ? 0 : x->shape[i] - y->shape[i];
    }
    if (!fits)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "pad_constant_like: Y %s must be no larger than X %s in each dim",
                         proa__shape_text(y->shape, y->ndim), proa__shape_text(x->shape, x->ndim));
    return proa_wire_result(r, "Out",
                            proa_pad(y, ((proa_ints){2 * x->ndim, pads, NULL, NULL}),
                                     .pad_value = proa_wire_float(r, "pad_value", 0)));
}

/* Each dim of X as often as target_tensor's holds it. */
proa_status expand_as_v1_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *target = proa_wire_input(r, "target_tensor");
    int64_t times[PROA_MAX_DIMS];
    if (!x || !target) return proa_error();
    bool known = proa__is_given(target) && x->ndim == target->ndim;
    if (!known)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "expand_as: X %s and target_tensor %s must have as many axes as each other",
                         proa__tensor_text(x), proa__tensor_text(target));
    for (int i = 0; i < x->ndim; i++) {
        known &= x->shape[i] > 0 && target->shape[i] > 0;
        times[i] = x->shape[i] > 0 ? target->shape[i] / x->shape[i] : 1;
        if (x->shape[i] > 0 && target->shape[i] > 0 && target->shape[i] % x->shape[i])
            return proa_fail(
                PROA_ERR_INVALID_ARGUMENT, "expand_as: axis %d of target_tensor %s is no multiple of X's, %s",
                i, proa__shape_text(target->shape, target->ndim), proa__shape_text(x->shape, x->ndim));
    }
    proa_ints list = {x->ndim, times, NULL, NULL};
    if (!known) list = (proa_ints){0, NULL, proa_floor_divide(proa_shape(target), proa_shape(x)), NULL};
    return proa_wire_result(r, "Out", proa_tile(x, list));
}

/* ---- columns of several inputs ---------------------------------------------------------------------- */

static proa_status columns(proa_wire_reader *r, bool add)
{
    proa_tensors xs = proa_wire_inputs(r, "X");
    int64_t from = proa_wire_int(r, "start_index", 0), length = proa_wire_int(r, "length", -1);
    if (xs.count == 0)
        return proa_error() ? proa_error() : proa_fail(PROA_ERR_CORRUPT, "there is no input X");
    int64_t width = xs.at[0]->shape[1];
    if (from < 0) from += width;
    int64_t to = length < 0 ? width : from + length;
    for (int64_t i = 0; i < xs.count; i++) {
        xs.at[i] = proa__part(xs.at[i], 1, from, to);
        if (add && i) xs.at[0] = proa_add(xs.at[0], xs.at[i]);
    }
    return proa_wire_result(r, "Out", add ? xs.at[0] : proa_concat(xs, .axis = 1));
}

proa_status partial_concat_read(proa_wire_reader *r) { return columns(r, false); }
proa_status partial_sum_read(proa_wire_reader *r) { return columns(r, true); }

/* ---- products -------------------------------------------------------------------------------------- */

/* out[n, o] = x[n] · weight[o] · y[n] + bias[o] */
proa_status bilinear_tensor_product_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *y = proa_wire_input(r, "Y"),
                *weight = proa_wire_input(r, "Weight");
    proa_tensor *bias = proa_wire_input(r, "Bias");
    if (!x || !y || !weight || !bias) return proa_error();
    proa_tensor *along = proa_matmul(proa_unsqueeze(x, PROA_INTS(0)), weight); /* [o, n, b] */
    proa_tensor *out =
        proa_transpose(proa_sum(proa_multiply(along, y), .axis = PROA_INTS(-1)), PROA_INTS(1, 0));
    return proa_wire_result(r, "Out", proa__is_given(bias) ? proa_add(out, bias) : out);
}

/* The mean over all pixels of the products of two feature maps' channels. */
proa_status fsp_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *y = proa_wire_input(r, "Y");
    if (!x || !y) return proa_error();
    if (x->ndim != 4 || x->shape[2] <= 0 || x->shape[3] <= 0)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "fsp: X has shape %s; expected [N, C, H, W] with H and W known",
                         proa__shape_text(x->shape, x->ndim));
    double pixels = (double)(x->shape[2] * x->shape[3]);
    proa_tensor *product =
        proa_matmul(proa_flatten(x, .start_axis = 2), proa_flatten(y, .start_axis = 2), .transpose_y = true);
    return proa_wire_result(r, "Out", proa__times(product, 1 / pixels, 0));
}

/* Circular convolution: Σ_j x[i + j − N/2] · y[j], with x indexed modulo its length. */
proa_status conv_shift_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *y = proa_wire_input(r, "Y"), *sum = NULL;
    if (!x || !y) return proa_error();
    int64_t n = y->shape[1];
    if (n < 1)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "conv_shift: the number of Y's columns must be known");
    for (int64_t j = 0; j < n; j++) {
        proa_tensor *moved = proa_roll(x, PROA_INTS((n - 1) / 2 - j), .axis = PROA_INTS(1));
        proa_tensor *term = proa_multiply(moved, proa__part(y, 1, j, j + 1));
        sum = sum ? proa_add(sum, term) : term;
    }
    return proa_wire_result(r, "Out", sum);
}

/* ((x·y)² − x²·y²) · scalar */
proa_status fusion_squared_mat_sub_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *y = proa_wire_input(r, "Y");
    proa_tensor *x2 = proa_square(x), *y2 = proa_square(y), *xy2 = proa_square(proa_matmul(x, y));
    PROA_TRY(proa_wire_result(r, "SquaredX", x2));
    PROA_TRY(proa_wire_result(r, "SquaredY", y2));
    PROA_TRY(proa_wire_result(r, "SquaredXY", xy2));
    return proa_wire_result(
        r, "Out", proa__times(proa_subtract(xy2, proa_matmul(x2, y2)), proa_wire_float(r, "scalar", 1), 0));
}

/* relu(x · W + b), layer after layer. */
proa_status fusion_repeated_fc_relu_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    proa_tensors weights = proa_wire_inputs(r, "W"), biases = proa_wire_inputs(r, "Bias");
    proa_tensors between = {0, biases.at};
    if (!x || weights.count == 0 || weights.count != biases.count)
        return proa_error()
                   ? proa_error()
                   : proa_fail(PROA_ERR_CORRUPT, "W and Bias must have as many variables, at least one");
    for (int64_t i = 0; i < weights.count; i++) {
        x = proa_relu(proa_add(proa_matmul(x, weights.at[i]), biases.at[i]));
        if (!x) return proa_error();
        between.at[between.count++] = x;
    }
    between.count--;
    PROA_TRY(proa_wire_results(r, "ReluOut", between));
    return proa_wire_result(r, "Out", x);
}

/* The inputs' common shape is that of a condition that all of them broadcast to. */
proa_status broadcast_tensors_read(proa_wire_reader *r)
{
    proa_tensors x = proa_wire_inputs(r, "X");
    proa_tensor *common = NULL;
    if (!x.count) return proa_error() ? proa_error() : proa_fail(PROA_ERR_CORRUPT, "X has no variables");
    for (int64_t i = 0; i < x.count; i++) {
        proa_tensor *one = proa_full_like(x.at[i], PROA_SCALAR(0), .dtype = PROA_BOOL);
        common = common ? proa_logical_or(common, one) : one;
    }
    for (int64_t i = 0; i < x.count; i++)
        if (!(x.at[i] = proa_expand_as(x.at[i], common))) return proa_error();
    return proa_wire_results(r, "Out", x);
}

/* ---- cells ------------------------------------------------------------------------------------------- */

/* One step of an LSTM on x [N, 4D], whose gates are i, f, o and the candidate. */
proa_status lstm_unit_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *c = proa_wire_input(r, "C_prev");
    if (!x || !c) return proa_error();
    int64_t d = c->shape[1];
    proa_tensor *i = proa_sigmoid(proa__part(x, 1, 0, d));
    proa_tensor *f =
        proa_sigmoid(proa__times(proa__part(x, 1, d, 2 * d), 1, proa_wire_float(r, "forget_bias", 0)));
    proa_tensor *o = proa_sigmoid(proa__part(x, 1, 2 * d, 3 * d)),
                *j = proa_tanh(proa__part(x, 1, 3 * d, 4 * d));
    proa_tensor *now = proa_add(proa_multiply(c, f), proa_multiply(i, j));
    PROA_TRY(proa_wire_result(r, "C", now));
    return proa_wire_result(r, "H", proa_multiply(proa_tanh(now), o));
}

static proa_tensor *activated(int64_t number, proa_tensor *x)
{
    switch (number) {
    case 0: return x;
    case 1: return proa_sigmoid(x);
    case 2: return proa_tanh(x);
    case 3: return proa_relu(x);
    default: proa_fail(PROA_ERR_UNSUPPORTED, "activation %lld is not known", (long long)number); return NULL;
    }
}

/* One step of a GRU on input [N, 3D]; the weight holds [D, 2D] for the gates, and behind it [D, D]. */
proa_status gru_unit_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "Input"), *before = proa_wire_input(r, "HiddenPrev");
    proa_tensor *weight = proa_wire_input(r, "Weight"), *bias = proa_wire_input(r, "Bias");
    if (!x || !before || !weight || !bias) return proa_error();
    int64_t d = before->shape[1], gate = proa_wire_int(r, "gate_activation", 1);
    if (proa__is_given(bias)) x = proa_add(x, bias);
    proa_tensor *flat = proa_reshape(weight, PROA_INTS(3 * d * d));
    proa_tensor *w_gates = proa_reshape(proa__part(flat, 0, 0, 2 * d * d), PROA_INTS(d, 2 * d));
    proa_tensor *w_state = proa_reshape(proa__part(flat, 0, 2 * d * d, 3 * d * d), PROA_INTS(d, d));
    proa_tensor *gates = activated(gate, proa_add(proa__part(x, 1, 0, 2 * d), proa_matmul(before, w_gates)));
    proa_tensor *u = proa__part(gates, 1, 0, d),
                *reset = proa_multiply(proa__part(gates, 1, d, 2 * d), before);
    proa_tensor *c = activated(proa_wire_int(r, "activation", 2),
                               proa_add(proa__part(x, 1, 2 * d, 3 * d), proa_matmul(reset, w_state)));
    proa_tensor *kept = proa_wire_int(r, "origin_mode", 0)
                            ? proa_add(c, proa_multiply(u, proa_subtract(before, c)))
                            : proa_add(before, proa_multiply(u, proa_subtract(c, before)));
    PROA_TRY(proa_wire_result(r, "Gate", proa_concat(PROA_LIST(gates, c), .axis = 1)));
    PROA_TRY(proa_wire_result(r, "ResetHiddenPrev", reset));
    return proa_wire_result(r, "Hidden", kept);
}

/* ---- spectral norm ------------------------------------------------------------------------------------ */

static proa_tensor *normalized(proa_tensor *v, double eps)
{
    return proa_divide(v, proa__times(proa_sqrt(proa_sum(proa_square(v))), 1, eps));
}

/* Weight / σ, with σ its largest singular value by power iterations on u and v, which count as constants. */
proa_status spectral_norm_read(proa_wire_reader *r)
{
    proa_tensor *weight = proa_wire_input(r, "Weight"), *u = proa_wire_input(r, "U"),
                *v = proa_wire_input(r, "V");
    int64_t dim = proa_wire_int(r, "dim", 0), perm[PROA_MAX_DIMS];
    double eps = proa_wire_float(r, "eps", 1e-12);
    if (!weight || !u || !v) return proa_error();
    for (int i = 0, n = 1; i < weight->ndim; i++)
        if (i != dim) perm[n++] = i;
    perm[0] = dim;
    proa_tensor *front = dim ? proa_transpose(weight, ((proa_ints){weight->ndim, perm, NULL, NULL})) : weight;
    proa_tensor *matrix = proa_flatten(front, .start_axis = 1),
                *constant = matrix ? proa_share_data(matrix) : NULL;
    for (int64_t i = proa_wire_int(r, "power_iters", 1); i > 0; i--) {
        v = normalized(proa_matmul(constant, u, .transpose_x = true), eps);
        u = normalized(proa_matmul(constant, v), eps);
    }
    proa_tensor *sigma = proa_sum(proa_multiply(u, proa_matmul(matrix, v)));
    return proa_wire_result(r, "Out", proa_divide(weight, sigma));
}
