/* Optimizers, learning-rate schedules, gradient clipping. Implemented by optim/; needs proa/nn.h.
 * A step is one multi-tensor op per parameter group and dtype; float16/bfloat16 parameters get float32
 * masters. Formulas and defaults are Paddle 2.6.2's. */
#ifndef PROA_OPTIM_H
#define PROA_OPTIM_H

#include <proa/nn.h>
#include <proa/ops/schedules.h> /* proa_step_decay(lr, step_size, gamma) and its like */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct proa_optimizer proa_optimizer;

typedef enum proa_clip_kind {
    PROA_CLIP_NONE = 0,
    PROA_CLIP_VALUE,      /* to [−max, max] */
    PROA_CLIP_NORM,       /* each gradient's norm to ≤ max */
    PROA_CLIP_GLOBAL_NORM /* the norm over all gradients to ≤ max */
} proa_clip_kind;
typedef struct proa_clip {
    proa_clip_kind kind;
    double max;
} proa_clip;

/* Options of all optimizers; each reads those that it has. Zero: the kind's default, listed at its macro in
 * proa/ops/optimizers.h. */
typedef struct proa_optimizer_opts {
    char _;
    double lr;           /* 0.001 */
    double weight_decay; /* L2 added to the gradient; AdamW, Lamb: decoupled */
    double momentum;
    bool nesterov;
    double beta1, beta2;
    double epsilon;
    double rho;
    bool centered;
    double initial_value; /* of Adagrad's accumulator: 0 */
    bool lazy_mode;       /* Adam, AdamW: update only the rows that a SelectedRows gradient has */
    proa_clip clip;
    proa_schedule *schedule; /* learning-rate schedule instead of lr; owned by the optimizer */
} proa_optimizer_opts;

/* kind: "sgd" or another name of the macros. params (contiguous floating tensors, none twice) is read
 * once: the optimizer keeps the tensors. NULL on error. */
PROA_API proa_optimizer *proa_optimizer_new(const char *kind, proa_tensors params, proa_optimizer_opts opts);
#define PROA_X_optimizer_(kind, params, ...) \
    proa_optimizer_new(kind, (params), PROA_LITERAL(proa_optimizer_opts){._ = 0, __VA_ARGS__})
#include <proa/ops/optimizers.h>                        /* proa_sgd(params, .lr = 0.1) and its like */
PROA_API void proa_optimizer_free(proa_optimizer *opt); /* accepts NULL */

typedef struct proa_group_opts {
    char _;
    double lr_scale;     /* factor on the optimizer's learning rate; 0: 1 */
    double weight_decay; /* of this group; 0: the optimizer's; PROA_ZERO: no decay */
} proa_group_opts;
/* Adds a parameter group. On error the optimizer is unchanged. */
PROA_API proa_status proa_add_group_opt(proa_optimizer *opt, proa_tensors params, proa_group_opts opts);
#define proa_add_group(...) PROA_X_add_group_(__VA_ARGS__, )
#define PROA_X_add_group_(opt, params, ...) \
    proa_add_group_opt((opt), (params), PROA_LITERAL(proa_group_opts){._ = 0, __VA_ARGS__})

/* Clips, updates the parameters that have gradients, and drops the gradients. */
PROA_API proa_status proa_step(proa_optimizer *opt);
/* Clips and updates like proa_step, but leaves the gradients in place. */
PROA_API proa_status proa_step_keep(proa_optimizer *opt);
/* Drops the gradients of all its parameters. */
PROA_API void proa_clear_grads(proa_optimizer *opt);
/* All parameters of all groups. Borrowed. */
PROA_API proa_tensors proa_optimizer_parameters(proa_optimizer *opt);
/* The learning rate of the next step: the schedule's, if there is one. */
PROA_API double proa_get_lr(const proa_optimizer *opt);
PROA_API proa_status proa_set_lr(proa_optimizer *opt, double lr); /* error with a schedule */
/* Accumulators and masters by Paddle's names ("linear_0.w_0_moment1_0"), for checkpoints. */
PROA_API proa_named_list proa_optimizer_state(proa_optimizer *opt);

/* ---- schedules ------------------------------------------------------------------------------
 * Paddle's classes of paddle.optimizer.lr, in closed form, each with its formula in proa/ops/schedules.h. e,
 * from 0, counts the calls of proa_schedule_step: one an epoch or one a step, as you like. NULL and
 * INVALID_ARGUMENT for a negative rate, or a length below 1. */
/* Increments e: the next epoch or step. */
PROA_API void proa_schedule_step(proa_schedule *s);
/* The learning rate at e. */
PROA_API double proa_schedule_lr(const proa_schedule *s);
/* The counter e. */
PROA_API int64_t proa_schedule_epoch(const proa_schedule *s);
/* Sets e, to resume; INVALID_ARGUMENT below 0. */
PROA_API void proa_schedule_seek(proa_schedule *s, int64_t epoch);
/* The schedule that was given as .schedule, so that the caller can step it. Borrowed; NULL if there is
 * none. */
PROA_API proa_schedule *proa_optimizer_schedule(const proa_optimizer *opt);
/* Frees a schedule that no optimizer owns. Accepts NULL. */
PROA_API void proa_schedule_free(proa_schedule *s);

#ifdef __cplusplus
}
#endif
#endif
