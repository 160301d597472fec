/* Optimiser steps on the wire: one op a parameter, states in slots named <Slot> and <Slot>Out; the learning
 * rate is a tensor. Reading makes a step of one parameter. May use core, proa/wire.h and public ops. */
#include "ops_impl.h"

#include <proa/wire.h>

#include "ops/rows.h"

/* A slot that a step updates: read as X, written as XOut. */
typedef struct slot {
    const char *in, *out;
    proa_tensors list;
} slot;

static proa_tensors one(proa_tensor *const *t)
{
    proa_tensors list = {t && *t && !proa__absent(*t) ? 1 : 0, (proa_tensor **)(uintptr_t)t};
    if (t && !*t)
        list = (proa_tensors){1, (proa_tensor **)(uintptr_t)t}; /* a failed input: the op passes it on */
    return list;
}

/* What was updated is also what the Out slots name. */
static proa_status results(proa_wire_reader *r, proa_status status, const slot *slots, int n)
{
    PROA_TRY(status);
    for (int i = 0; i < n; i++)
        if (slots[i].list.count) PROA_TRY(proa_wire_result(r, slots[i].out, slots[i].list.at[0]));
    return PROA_OK;
}

/* Starts the wire op of parameter i, with all its slots. */
static proa_status begin(proa_wire_writer *w, const char *type, const slot *slots, int n, int64_t i,
                         proa_tensors grads, proa_tensor *learning_rate)
{
    PROA_TRY(proa_wire_op(w, type));
    PROA_TRY(proa_wire_put_input(w, "Grad", grads.at[i]));
    PROA_TRY(proa_wire_put_input(w, "LearningRate", learning_rate));
    for (int k = 0; k < n; k++) {
        if (!slots[k].list.count) continue;
        PROA_TRY(proa_wire_put_input(w, slots[k].in, slots[k].list.at[i]));
        PROA_TRY(proa_wire_put_output(w, slots[k].out, slots[k].list.at[i]));
    }
    return PROA_OK;
}

#define COUNT(slots) ((int)(sizeof(slots) / sizeof *(slots)))

/* ---- sgd ---- */

proa_status sgd_read(proa_wire_reader *r);
proa_status sgd_write(const void *args, proa_wire_writer *w);

proa_status sgd_read(proa_wire_reader *r)
{
    proa_tensor *grad = proa_wire_input(r, "Grad"), *lr = proa_wire_input(r, "LearningRate");
    proa_tensor *params = proa_wire_input(r, "Param");
    proa_tensor *masters = proa_wire_input(r, "MasterParam");
    const slot slots[] = {{"Param", "ParamOut", one(&params)},
                          {"MasterParam", "MasterParamOut", one(&masters)}};
    proa_status status = proa_sgd_step(one(&params), one(&grad), lr, one(&masters));
    return results(r, status, slots, COUNT(slots));
}

proa_status sgd_write(const void *args, proa_wire_writer *w)
{
    const proa_sgd_step_args *a = args;
    const slot slots[] = {{"Param", "ParamOut", a->params}, {"MasterParam", "MasterParamOut", a->masters}};
    for (int64_t i = 0; i < a->params.count; i++) {
        PROA_TRY(begin(w, "sgd", slots, COUNT(slots), i, a->grads, a->learning_rate));
        PROA_TRY(proa_wire_put_int(w, "multi_precision", PROA_WIRE_BOOLEAN, a->masters.count > 0));
    }
    return PROA_OK;
}

/* ---- momentum ---- */

proa_status momentum_read(proa_wire_reader *r);
proa_status momentum_write(const void *args, proa_wire_writer *w);

proa_status momentum_read(proa_wire_reader *r)
{
    proa_tensor *grad = proa_wire_input(r, "Grad"), *lr = proa_wire_input(r, "LearningRate");
    proa_tensor *params = proa_wire_input(r, "Param");
    proa_tensor *velocities = proa_wire_input(r, "Velocity");
    proa_tensor *masters = proa_wire_input(r, "MasterParam");
    const char *method = proa_wire_string(r, "regularization_method", "");
    double decay =
        method && strcmp(method, "l2_decay") == 0 ? proa_wire_float(r, "regularization_coeff", 0) : 0;
    const slot slots[] = {{"Param", "ParamOut", one(&params)},
                          {"Velocity", "VelocityOut", one(&velocities)},
                          {"MasterParam", "MasterParamOut", one(&masters)}};
    proa_status status = proa_momentum_step(
        one(&params), one(&grad), lr, one(&velocities), one(&masters), proa_wire_float(r, "mu", 0.9),
        .use_nesterov = proa_wire_int(r, "use_nesterov", 0) != 0,
        .rescale_grad = rows_option_float(proa_wire_float(r, "rescale_grad", 1)), .weight_decay = decay);
    return results(r, status, slots, COUNT(slots));
}

proa_status momentum_write(const void *args, proa_wire_writer *w)
{
    const proa_momentum_step_args *a = args;
    const slot slots[] = {{"Param", "ParamOut", a->params},
                          {"Velocity", "VelocityOut", a->velocities},
                          {"MasterParam", "MasterParamOut", a->masters}};
    for (int64_t i = 0; i < a->params.count; i++) {
        PROA_TRY(begin(w, "momentum", slots, COUNT(slots), i, a->grads, a->learning_rate));
        PROA_TRY(proa_wire_put_float(w, "mu", a->mu));
        PROA_TRY(proa_wire_put_int(w, "use_nesterov", PROA_WIRE_BOOLEAN, a->use_nesterov));
        PROA_TRY(proa_wire_put_float(w, "rescale_grad", a->rescale_grad));
        PROA_TRY(proa_wire_put_string(w, "regularization_method", a->weight_decay != 0 ? "l2_decay" : ""));
        PROA_TRY(proa_wire_put_float(w, "regularization_coeff", a->weight_decay));
        PROA_TRY(proa_wire_put_int(w, "multi_precision", PROA_WIRE_BOOLEAN, a->masters.count > 0));
    }
    return PROA_OK;
}

/* ---- adam ---- */

proa_status adam_read(proa_wire_reader *r);
proa_status adam_write(const void *args, proa_wire_writer *w);

proa_status adam_read(proa_wire_reader *r)
{
    proa_tensor *grad = proa_wire_input(r, "Grad"), *lr = proa_wire_input(r, "LearningRate");
    proa_tensor *params = proa_wire_input(r, "Param");
    proa_tensor *moments1 = proa_wire_input(r, "Moment1");
    proa_tensor *moments2 = proa_wire_input(r, "Moment2");
    proa_tensor *beta1_pows = proa_wire_input(r, "Beta1Pow");
    proa_tensor *beta2_pows = proa_wire_input(r, "Beta2Pow");
    proa_tensor *masters = proa_wire_input(r, "MasterParam");
    const slot slots[] = {
        {"Param", "ParamOut", one(&params)},           {"Moment1", "Moment1Out", one(&moments1)},
        {"Moment2", "Moment2Out", one(&moments2)},     {"Beta1Pow", "Beta1PowOut", one(&beta1_pows)},
        {"Beta2Pow", "Beta2PowOut", one(&beta2_pows)}, {"MasterParam", "MasterParamOut", one(&masters)}};
    proa_status status =
        proa_adam_step(one(&params), one(&grad), lr, one(&moments1), one(&moments2), one(&beta1_pows),
                       one(&beta2_pows), one(&masters), proa_wire_input(r, "SkipUpdate"),
                       .beta1 = rows_option_float(proa_wire_float(r, "beta1", 0.9)),
                       .beta2 = rows_option_float(proa_wire_float(r, "beta2", 0.999)),
                       .epsilon = rows_option_float(proa_wire_float(r, "epsilon", 1e-8)));
    return results(r, status, slots, COUNT(slots));
}

proa_status adam_write(const void *args, proa_wire_writer *w)
{
    const proa_adam_step_args *a = args;
    const slot slots[] = {
        {"Param", "ParamOut", a->params},           {"Moment1", "Moment1Out", a->moments1},
        {"Moment2", "Moment2Out", a->moments2},     {"Beta1Pow", "Beta1PowOut", a->beta1_pows},
        {"Beta2Pow", "Beta2PowOut", a->beta2_pows}, {"MasterParam", "MasterParamOut", a->masters}};
    for (int64_t i = 0; i < a->params.count; i++) {
        PROA_TRY(begin(w, "adam", slots, COUNT(slots), i, a->grads, a->learning_rate));
        if (!proa__absent(a->skip_update)) PROA_TRY(proa_wire_put_input(w, "SkipUpdate", a->skip_update));
        PROA_TRY(proa_wire_put_float(w, "beta1", a->beta1));
        PROA_TRY(proa_wire_put_float(w, "beta2", a->beta2));
        PROA_TRY(proa_wire_put_float(w, "epsilon", a->epsilon));
        PROA_TRY(proa_wire_put_int(w, "lazy_mode", PROA_WIRE_BOOLEAN, 0));
        PROA_TRY(proa_wire_put_int(w, "min_row_size_to_use_multithread", PROA_WIRE_LONG, 1000));
        PROA_TRY(proa_wire_put_int(w, "use_global_beta_pow", PROA_WIRE_BOOLEAN, 0));
        PROA_TRY(proa_wire_put_int(w, "multi_precision", PROA_WIRE_BOOLEAN, a->masters.count > 0));
    }
    return PROA_OK;
}

/* ---- adamw ---- */

proa_status adamw_read(proa_wire_reader *r);
proa_status adamw_write(const void *args, proa_wire_writer *w);

proa_status adamw_read(proa_wire_reader *r)
{
    proa_tensor *grad = proa_wire_input(r, "Grad"), *lr = proa_wire_input(r, "LearningRate");
    proa_tensor *params = proa_wire_input(r, "Param");
    proa_tensor *moments1 = proa_wire_input(r, "Moment1");
    proa_tensor *moments2 = proa_wire_input(r, "Moment2");
    proa_tensor *beta1_pows = proa_wire_input(r, "Beta1Pow");
    proa_tensor *beta2_pows = proa_wire_input(r, "Beta2Pow");
    proa_tensor *masters = proa_wire_input(r, "MasterParam");
    const slot slots[] = {
        {"Param", "ParamOut", one(&params)},           {"Moment1", "Moment1Out", one(&moments1)},
        {"Moment2", "Moment2Out", one(&moments2)},     {"Beta1Pow", "Beta1PowOut", one(&beta1_pows)},
        {"Beta2Pow", "Beta2PowOut", one(&beta2_pows)}, {"MasterParam", "MasterParamOut", one(&masters)}};
    proa_status status =
        proa_adamw_step(one(&params), one(&grad), lr, one(&moments1), one(&moments2), one(&beta1_pows),
                        one(&beta2_pows), one(&masters), proa_wire_input(r, "SkipUpdate"),
                        .beta1 = rows_option_float(proa_wire_float(r, "beta1", 0.9)),
                        .beta2 = rows_option_float(proa_wire_float(r, "beta2", 0.999)),
                        .epsilon = rows_option_float(proa_wire_float(r, "epsilon", 1e-8)),
                        .lr_ratio = rows_option_float(proa_wire_float(r, "lr_ratio", 1)),
                        .coeff = rows_option_float(proa_wire_float(r, "coeff", 0.01)),
                        .no_with_decay = proa_wire_int(r, "with_decay", 0) == 0);
    return results(r, status, slots, COUNT(slots));
}

proa_status adamw_write(const void *args, proa_wire_writer *w)
{
    const proa_adamw_step_args *a = args;
    const slot slots[] = {
        {"Param", "ParamOut", a->params},           {"Moment1", "Moment1Out", a->moments1},
        {"Moment2", "Moment2Out", a->moments2},     {"Beta1Pow", "Beta1PowOut", a->beta1_pows},
        {"Beta2Pow", "Beta2PowOut", a->beta2_pows}, {"MasterParam", "MasterParamOut", a->masters}};
    for (int64_t i = 0; i < a->params.count; i++) {
        PROA_TRY(begin(w, "adamw", slots, COUNT(slots), i, a->grads, a->learning_rate));
        if (!proa__absent(a->skip_update)) PROA_TRY(proa_wire_put_input(w, "SkipUpdate", a->skip_update));
        PROA_TRY(proa_wire_put_float(w, "beta1", a->beta1));
        PROA_TRY(proa_wire_put_float(w, "beta2", a->beta2));
        PROA_TRY(proa_wire_put_float(w, "epsilon", a->epsilon));
        PROA_TRY(proa_wire_put_float(w, "lr_ratio", a->lr_ratio));
        PROA_TRY(proa_wire_put_float(w, "coeff", a->coeff));
        PROA_TRY(proa_wire_put_int(w, "with_decay", PROA_WIRE_BOOLEAN, a->with_decay));
        PROA_TRY(proa_wire_put_int(w, "lazy_mode", PROA_WIRE_BOOLEAN, 0));
        PROA_TRY(proa_wire_put_int(w, "min_row_size_to_use_multithread", PROA_WIRE_LONG, 1000));
        PROA_TRY(proa_wire_put_int(w, "use_global_beta_pow", PROA_WIRE_BOOLEAN, 0));
        PROA_TRY(proa_wire_put_int(w, "multi_precision", PROA_WIRE_BOOLEAN, a->masters.count > 0));
    }
    return PROA_OK;
}

/* ---- adagrad ---- */

proa_status adagrad_read(proa_wire_reader *r);
proa_status adagrad_write(const void *args, proa_wire_writer *w);

proa_status adagrad_read(proa_wire_reader *r)
{
    proa_tensor *grad = proa_wire_input(r, "Grad"), *lr = proa_wire_input(r, "LearningRate");
    proa_tensor *params = proa_wire_input(r, "Param");
    proa_tensor *moments = proa_wire_input(r, "Moment");
    proa_tensor *masters = proa_wire_input(r, "MasterParam");
    const slot slots[] = {{"Param", "ParamOut", one(&params)},
                          {"Moment", "MomentOut", one(&moments)},
                          {"MasterParam", "MasterParamOut", one(&masters)}};
    proa_status status = proa_adagrad_step(one(&params), one(&grad), lr, one(&moments), one(&masters),
                                           .epsilon = rows_option_float(proa_wire_float(r, "epsilon", 1e-6)));
    return results(r, status, slots, COUNT(slots));
}

proa_status adagrad_write(const void *args, proa_wire_writer *w)
{
    const proa_adagrad_step_args *a = args;
    const slot slots[] = {{"Param", "ParamOut", a->params},
                          {"Moment", "MomentOut", a->moments},
                          {"MasterParam", "MasterParamOut", a->masters}};
    for (int64_t i = 0; i < a->params.count; i++) {
        PROA_TRY(begin(w, "adagrad", slots, COUNT(slots), i, a->grads, a->learning_rate));
        PROA_TRY(proa_wire_put_float(w, "epsilon", a->epsilon));
        PROA_TRY(proa_wire_put_int(w, "multi_precision", PROA_WIRE_BOOLEAN, a->masters.count > 0));
    }
    return PROA_OK;
}

/* ---- rmsprop ---- */

proa_status rmsprop_read(proa_wire_reader *r);
proa_status rmsprop_write(const void *args, proa_wire_writer *w);

proa_status rmsprop_read(proa_wire_reader *r)
{
    proa_tensor *grad = proa_wire_input(r, "Grad"), *lr = proa_wire_input(r, "LearningRate");
    proa_tensor *params = proa_wire_input(r, "Param");
    proa_tensor *mean_squares = proa_wire_input(r, "MeanSquare");
    proa_tensor *mean_grads = proa_wire_input(r, "MeanGrad");
    proa_tensor *moments = proa_wire_input(r, "Moment");
    proa_tensor *masters = proa_wire_input(r, "MasterParam");
    const slot slots[] = {{"Param", "ParamOut", one(&params)},
                          {"MeanSquare", "MeanSquareOut", one(&mean_squares)},
                          {"MeanGrad", "MeanGradOut", one(&mean_grads)},
                          {"Moment", "MomentOut", one(&moments)},
                          {"MasterParam", "MasterParamOut", one(&masters)}};
    proa_status status =
        proa_rmsprop_step(one(&params), one(&grad), lr, one(&mean_squares), one(&mean_grads), one(&moments),
                          one(&masters), .rho = rows_option_float(proa_wire_float(r, "decay", 0.9)),
                          .epsilon = rows_option_float(proa_wire_float(r, "epsilon", 1e-10)),
                          .momentum = rows_option_float(proa_wire_float(r, "momentum", 0)),
                          .centered = proa_wire_int(r, "centered", 0) != 0);
    return results(r, status, slots, COUNT(slots));
}

proa_status rmsprop_write(const void *args, proa_wire_writer *w)
{
    const proa_rmsprop_step_args *a = args;
    const slot slots[] = {{"Param", "ParamOut", a->params},
                          {"MeanSquare", "MeanSquareOut", a->mean_squares},
                          {"MeanGrad", "MeanGradOut", a->mean_grads},
                          {"Moment", "MomentOut", a->moments},
                          {"MasterParam", "MasterParamOut", a->masters}};
    for (int64_t i = 0; i < a->params.count; i++) {
        PROA_TRY(begin(w, "rmsprop", slots, COUNT(slots), i, a->grads, a->learning_rate));
        PROA_TRY(proa_wire_put_float(w, "decay", a->rho));
        PROA_TRY(proa_wire_put_float(w, "epsilon", a->epsilon));
        PROA_TRY(proa_wire_put_float(w, "momentum", a->momentum));
        PROA_TRY(proa_wire_put_int(w, "centered", PROA_WIRE_BOOLEAN, a->centered));
        PROA_TRY(proa_wire_put_int(w, "multi_precision", PROA_WIRE_BOOLEAN, a->masters.count > 0));
    }
    return PROA_OK;
}

/* ---- adadelta ---- */

proa_status adadelta_read(proa_wire_reader *r);
proa_status adadelta_write(const void *args, proa_wire_writer *w);

proa_status adadelta_read(proa_wire_reader *r)
{
    proa_tensor *grad = proa_wire_input(r, "Grad"), *lr = proa_wire_input(r, "LearningRate");
    proa_tensor *params = proa_wire_input(r, "Param");
    proa_tensor *avg_squared_grads = proa_wire_input(r, "AvgSquaredGrad");
    proa_tensor *avg_squared_updates = proa_wire_input(r, "AvgSquaredUpdate");
    proa_tensor *masters = proa_wire_input(r, "MasterParam");
    const slot slots[] = {{"Param", "ParamOut", one(&params)},
                          {"AvgSquaredGrad", "AvgSquaredGradOut", one(&avg_squared_grads)},
                          {"AvgSquaredUpdate", "AvgSquaredUpdateOut", one(&avg_squared_updates)},
                          {"MasterParam", "MasterParamOut", one(&masters)}};
    proa_status status =
        proa_adadelta_step(one(&params), one(&grad), lr, one(&avg_squared_grads), one(&avg_squared_updates),
                           one(&masters), .rho = rows_option_float(proa_wire_float(r, "rho", 0.95)),
                           .epsilon = rows_option_float(proa_wire_float(r, "epsilon", 1e-6)));
    return results(r, status, slots, COUNT(slots));
}

proa_status adadelta_write(const void *args, proa_wire_writer *w)
{
    const proa_adadelta_step_args *a = args;
    const slot slots[] = {{"Param", "ParamOut", a->params},
                          {"AvgSquaredGrad", "AvgSquaredGradOut", a->avg_squared_grads},
                          {"AvgSquaredUpdate", "AvgSquaredUpdateOut", a->avg_squared_updates},
                          {"MasterParam", "MasterParamOut", a->masters}};
    for (int64_t i = 0; i < a->params.count; i++) {
        PROA_TRY(begin(w, "adadelta", slots, COUNT(slots), i, a->grads, a->learning_rate));
        PROA_TRY(proa_wire_put_float(w, "rho", a->rho));
        PROA_TRY(proa_wire_put_float(w, "epsilon", a->epsilon));
        PROA_TRY(proa_wire_put_int(w, "multi_precision", PROA_WIRE_BOOLEAN, a->masters.count > 0));
    }
    return PROA_OK;
}

/* ---- adamax ---- */

proa_status adamax_read(proa_wire_reader *r);
proa_status adamax_write(const void *args, proa_wire_writer *w);

proa_status adamax_read(proa_wire_reader *r)
{
    proa_tensor *grad = proa_wire_input(r, "Grad"), *lr = proa_wire_input(r, "LearningRate");
    proa_tensor *params = proa_wire_input(r, "Param");
    proa_tensor *moments = proa_wire_input(r, "Moment");
    proa_tensor *inf_norms = proa_wire_input(r, "InfNorm");
    proa_tensor *masters = proa_wire_input(r, "MasterParam");
    proa_tensor *beta1_pows = proa_wire_input(r, "Beta1Pow");
    /* Beside this op Paddle has a `scale` that moves Beta1Pow on: ours works on a copy. */
    proa_tensor *pow = proa_assign(beta1_pows);
    const slot slots[] = {{"Param", "ParamOut", one(&params)},
                          {"Moment", "MomentOut", one(&moments)},
                          {"InfNorm", "InfNormOut", one(&inf_norms)},
                          {"MasterParam", "MasterParamOut", one(&masters)}};
    proa_status status =
        proa_adamax_step(one(&params), one(&grad), lr, one(&moments), one(&inf_norms), one(&pow),
                         one(&masters), .beta1 = rows_option_float(proa_wire_float(r, "beta1", 0.9)),
                         .beta2 = rows_option_float(proa_wire_float(r, "beta2", 0.999)),
                         .epsilon = rows_option_float(proa_wire_float(r, "epsilon", 1e-8)));
    return results(r, status, slots, COUNT(slots));
}

proa_status adamax_write(const void *args, proa_wire_writer *w)
{
    const proa_adamax_step_args *a = args;
    const slot slots[] = {{"Param", "ParamOut", a->params},
                          {"Moment", "MomentOut", a->moments},
                          {"InfNorm", "InfNormOut", a->inf_norms},
                          {"MasterParam", "MasterParamOut", a->masters}};
    for (int64_t i = 0; i < a->params.count; i++) {
        PROA_TRY(begin(w, "adamax", slots, COUNT(slots), i, a->grads, a->learning_rate));
        PROA_TRY(proa_wire_put_input(w, "Beta1Pow", a->beta1_pows.at[i]));
        PROA_TRY(proa_wire_put_float(w, "beta1", a->beta1));
        PROA_TRY(proa_wire_put_float(w, "beta2", a->beta2));
        PROA_TRY(proa_wire_put_float(w, "epsilon", a->epsilon));
        PROA_TRY(proa_wire_put_int(w, "multi_precision", PROA_WIRE_BOOLEAN, a->masters.count > 0));
        PROA_TRY(proa_wire_op(w, "scale"));
        PROA_TRY(proa_wire_put_input(w, "X", a->beta1_pows.at[i]));
        PROA_TRY(proa_wire_put_output(w, "Out", a->beta1_pows.at[i]));
        PROA_TRY(proa_wire_put_float(w, "scale", a->beta1));
        PROA_TRY(proa_wire_put_float(w, "bias", 0));
        PROA_TRY(proa_wire_put_int(w, "bias_after_scale", PROA_WIRE_BOOLEAN, 1));
    }
    return PROA_OK;
}

/* ---- lamb ---- */

proa_status lamb_read(proa_wire_reader *r);
proa_status lamb_write(const void *args, proa_wire_writer *w);

proa_status lamb_read(proa_wire_reader *r)
{
    proa_tensor *grad = proa_wire_input(r, "Grad"), *lr = proa_wire_input(r, "LearningRate");
    proa_tensor *params = proa_wire_input(r, "Param");
    proa_tensor *moments1 = proa_wire_input(r, "Moment1");
    proa_tensor *moments2 = proa_wire_input(r, "Moment2");
    proa_tensor *beta1_pows = proa_wire_input(r, "Beta1Pow");
    proa_tensor *beta2_pows = proa_wire_input(r, "Beta2Pow");
    proa_tensor *masters = proa_wire_input(r, "MasterParam");
    const slot slots[] = {
        {"Param", "ParamOut", one(&params)},           {"Moment1", "Moment1Out", one(&moments1)},
        {"Moment2", "Moment2Out", one(&moments2)},     {"Beta1Pow", "Beta1PowOut", one(&beta1_pows)},
        {"Beta2Pow", "Beta2PowOut", one(&beta2_pows)}, {"MasterParam", "MasterParamOut", one(&masters)}};
    proa_status status =
        proa_lamb_step(one(&params), one(&grad), lr, one(&moments1), one(&moments2), one(&beta1_pows),
                       one(&beta2_pows), one(&masters), proa_wire_input(r, "SkipUpdate"),
                       .weight_decay = rows_option_float(proa_wire_float(r, "weight_decay", 0.01)),
                       .beta1 = rows_option_float(proa_wire_float(r, "beta1", 0.9)),
                       .beta2 = rows_option_float(proa_wire_float(r, "beta2", 0.999)),
                       .epsilon = rows_option_float(proa_wire_float(r, "epsilon", 1e-6)),
                       .always_adapt = proa_wire_int(r, "always_adapt", 0) != 0);
    return results(r, status, slots, COUNT(slots));
}

proa_status lamb_write(const void *args, proa_wire_writer *w)
{
    const proa_lamb_step_args *a = args;
    const slot slots[] = {
        {"Param", "ParamOut", a->params},           {"Moment1", "Moment1Out", a->moments1},
        {"Moment2", "Moment2Out", a->moments2},     {"Beta1Pow", "Beta1PowOut", a->beta1_pows},
        {"Beta2Pow", "Beta2PowOut", a->beta2_pows}, {"MasterParam", "MasterParamOut", a->masters}};
    for (int64_t i = 0; i < a->params.count; i++) {
        PROA_TRY(begin(w, "lamb", slots, COUNT(slots), i, a->grads, a->learning_rate));
        if (!proa__absent(a->skip_update)) PROA_TRY(proa_wire_put_input(w, "SkipUpdate", a->skip_update));
        PROA_TRY(proa_wire_put_float(w, "weight_decay", a->weight_decay));
        PROA_TRY(proa_wire_put_float(w, "beta1", a->beta1));
        PROA_TRY(proa_wire_put_float(w, "beta2", a->beta2));
        PROA_TRY(proa_wire_put_float(w, "epsilon", a->epsilon));
        PROA_TRY(proa_wire_put_int(w, "always_adapt", PROA_WIRE_BOOLEAN, a->always_adapt));
        PROA_TRY(proa_wire_put_int(w, "multi_precision", PROA_WIRE_BOOLEAN, a->masters.count > 0));
    }
    return PROA_OK;
}
