/* The kinds of optimizers: their accumulators by Paddle's names, their defaults, and the multi-tensor op that
 * is their step. Formulas stand with the ops. Uses optim/optimizer.h. */
#include "optim/optimizer.h"

/* Options of ops say zero as PROA_ZERO. */
static double given(double v) { return v == 0 ? (double)PROA_ZERO : v; }

static proa_status sgd(const proa_optimizer_opts *o, const proa__step_batch *b)
{
    (void)o;
    return proa_sgd_step(b->params, b->grads, b->lr, b->masters, b->skip);
}

static proa_status momentum(const proa_optimizer_opts *o, const proa__step_batch *b)
{
    return proa_momentum_step(b->params, b->grads, b->lr, b->slots[0], b->masters, b->skip, o->momentum,
                              .use_nesterov = o->nesterov, .weight_decay = b->weight_decay);
}

static proa_status adam(const proa_optimizer_opts *o, const proa__step_batch *b)
{
    return proa_adam_step(b->params, b->grads, b->lr, b->slots[0], b->slots[1], b->slots[2], b->slots[3],
                          b->masters, b->skip, .beta1 = given(o->beta1), .beta2 = given(o->beta2),
                          .epsilon = given(o->epsilon), .lazy_mode = o->lazy_mode);
}

static proa_status adamw(const proa_optimizer_opts *o, const proa__step_batch *b)
{
    return proa_adamw_step(b->params, b->grads, b->lr, b->slots[0], b->slots[1], b->slots[2], b->slots[3],
                           b->masters, b->skip, .beta1 = given(o->beta1), .beta2 = given(o->beta2),
                           .epsilon = given(o->epsilon), .coeff = given(b->weight_decay),
                           .lazy_mode = o->lazy_mode);
}

static proa_status lamb(const proa_optimizer_opts *o, const proa__step_batch *b)
{
    return proa_lamb_step(b->params, b->grads, b->lr, b->slots[0], b->slots[1], b->slots[2], b->slots[3],
                          b->masters, b->skip, .weight_decay = given(b->weight_decay),
                          .beta1 = given(o->beta1), .beta2 = given(o->beta2), .epsilon = given(o->epsilon));
}

static proa_status adagrad(const proa_optimizer_opts *o, const proa__step_batch *b)
{
    return proa_adagrad_step(b->params, b->grads, b->lr, b->slots[0], b->masters, b->skip,
                             .epsilon = given(o->epsilon));
}

static proa_status rmsprop(const proa_optimizer_opts *o, const proa__step_batch *b)
{
    return proa_rmsprop_step(b->params, b->grads, b->lr, b->slots[1], b->slots[2], b->slots[0], b->masters,
                             b->skip, .rho = given(o->rho), .epsilon = given(o->epsilon),
                             .momentum = o->momentum, .centered = o->centered);
}

static proa_status adadelta(const proa_optimizer_opts *o, const proa__step_batch *b)
{
    return proa_adadelta_step(b->params, b->grads, b->lr, b->slots[0], b->slots[1], b->masters, b->skip,
                              .rho = given(o->rho), .epsilon = given(o->epsilon));
}

static proa_status adamax(const proa_optimizer_opts *o, const proa__step_batch *b)
{
    return proa_adamax_step(b->params, b->grads, b->lr, b->slots[0], b->slots[1], b->slots[2], b->masters,
                            b->skip, .beta1 = given(o->beta1), .beta2 = given(o->beta2),
                            .epsilon = given(o->epsilon));
}

#define MOMENTS                                                                             \
    {                                                                                       \
        {"moment1", PROA__ZEROS}, {"moment2", PROA__ZEROS}, {"beta1_pow_acc", PROA__BETA1}, \
            {"beta2_pow_acc", PROA__BETA2},                                                 \
    }

static const proa__rule rules[] = {
    {"sgd", {{NULL}}, 0, 0, false, sgd},
    {"momentum", {{"velocity", PROA__ZEROS}}, 0, 0, true, momentum},
    {"adam", MOMENTS, 1e-8, 0, false, adam},
    {"adamw", MOMENTS, 1e-8, 0.01, true, adamw},
    {"lamb", MOMENTS, 1e-6, 0.01, true, lamb},
    {"adagrad", {{"moment", PROA__INITIAL_VALUE}}, 1e-6, 0, false, adagrad},
    {"rmsprop",
     {{"momentum", PROA__ZEROS}, {"mean_square", PROA__ZEROS}, {"mean_grad", PROA__ZEROS}},
     1e-6,
     0,
     false,
     rmsprop},
    {"adadelta",
     {{"_avg_squared_grad", PROA__ZEROS}, {"_avg_squared_update", PROA__ZEROS}},
     1e-6,
     0,
     false,
     adadelta},
    {"adamax",
     {{"moment", PROA__ZEROS}, {"inf_norm", PROA__ZEROS}, {"beta1_pow_acc", PROA__BETA1}},
     1e-8,
     0,
     false,
     adamax},
};

const proa__rule *proa__find_rule(const char *kind)
{
    for (size_t i = 0; kind && i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].kind, kind) == 0) return &rules[i];
    proa_fail(PROA_ERR_NOT_FOUND,
              "optimizer: there is no \"%s\"; there are sgd, momentum, adam, adamw, lamb, adagrad, rmsprop, "
              "adadelta and adamax",
              kind ? kind : "NULL");
    return NULL;
}
