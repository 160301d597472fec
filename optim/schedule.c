/* Learning-rate schedules: Paddle's classes, each in closed form, so that a schedule can be sought to any
 * epoch. May use core. */
#include "core/internal.h"

#include <proa/optim.h>

#include <math.h>

typedef enum kind { STEP, MULTI_STEP, EXPONENTIAL, POLYNOMIAL, COSINE, NOAM, WARMUP } kind;

struct proa_schedule {
    kind kind;
    int64_t epoch;
    double lr, a, b; /* gamma; end rate and power; … */
    int64_t steps;   /* step size, decay or warmup steps, T_max */
    int64_t n_milestones;
    int64_t *milestones;  /* owned, ascending */
    proa_schedule *after; /* owned; of a warmup */
};

static proa_schedule *make(const char *who, proa_schedule with)
{
    bool counted = with.kind != EXPONENTIAL && with.kind != MULTI_STEP;
    if (!proa_error() && (!(with.lr >= 0) || (counted && with.steps < 1)))
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: lr is %g and steps %lld; expected lr ≥ 0 and steps ≥ 1",
                  who, with.lr, (long long)with.steps);
    proa_schedule *s = proa_error() ? NULL : proa__calloc(sizeof *s);
    if (s) {
        *s = with;
        return s;
    }
    proa__free(with.milestones);
    proa_schedule_free(with.after);
    return NULL;
}

proa_schedule *proa_step_decay(double lr, int64_t step_size, double gamma)
{
    return make("step_decay", (proa_schedule){.kind = STEP, .lr = lr, .steps = step_size, .a = gamma});
}

proa_schedule *proa_multi_step_decay(double lr, proa_ints milestones, double gamma)
{
    if (proa_error()) return NULL;
    for (int64_t i = 0; i < milestones.count; i++)
        if (!milestones.at || (i > 0 && milestones.at[i] <= milestones.at[i - 1])) {
            proa_fail(PROA_ERR_INVALID_ARGUMENT, "multi_step_decay: milestones must be numbers that ascend");
            return NULL;
        }
    int64_t *copy = proa__alloc((size_t)(milestones.count + 1) * sizeof *copy);
    if (!copy) return NULL;
    if (milestones.count) memcpy(copy, milestones.at, (size_t)milestones.count * sizeof *copy);
    return make(
        "multi_step_decay",
        (proa_schedule){
            .kind = MULTI_STEP, .lr = lr, .a = gamma, .milestones = copy, .n_milestones = milestones.count});
}

proa_schedule *proa_exponential_decay(double lr, double gamma)
{
    return make("exponential_decay", (proa_schedule){.kind = EXPONENTIAL, .lr = lr, .a = gamma});
}

proa_schedule *proa_polynomial_decay(double lr, int64_t decay_steps, double end_lr, double power)
{
    return make("polynomial_decay",
                (proa_schedule){.kind = POLYNOMIAL, .lr = lr, .steps = decay_steps, .a = end_lr, .b = power});
}

proa_schedule *proa_cosine_decay(double lr, int64_t t_max, double eta_min)
{
    return make("cosine_decay", (proa_schedule){.kind = COSINE, .lr = lr, .steps = t_max, .a = eta_min});
}

proa_schedule *proa_noam_decay(int64_t d_model, int64_t warmup_steps, double lr)
{
    if (d_model < 1 && !proa_error())
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "noam_decay: d_model is %lld, expected at least 1",
                  (long long)d_model);
    return make("noam_decay",
                (proa_schedule){.kind = NOAM, .lr = lr, .steps = warmup_steps, .a = (double)d_model});
}

proa_schedule *proa_linear_warmup(proa_schedule *after, int64_t warmup_steps, double start_lr, double end_lr)
{
    return make(
        "linear_warmup",
        (proa_schedule){.kind = WARMUP, .lr = end_lr, .a = start_lr, .steps = warmup_steps, .after = after});
}

void proa_schedule_free(proa_schedule *s)
{
    if (!s) return;
    proa_schedule_free(s->after);
    proa__free(s->milestones);
    proa__free(s);
}

static double rate_at(const proa_schedule *s, int64_t epoch)
{
    double e = (double)epoch, n = (double)s->steps;
    switch (s->kind) {
    case STEP: {
        int64_t passed = epoch / s->steps;
        return s->lr * pow(s->a, (double)passed);
    }
    case EXPONENTIAL: return s->lr * pow(s->a, e);
    case POLYNOMIAL: return (s->lr - s->a) * pow(1 - fmin(e, n) / n, s->b) + s->a;
    case COSINE: return s->a + (s->lr - s->a) * (1 + cos(acos(-1.0) * e / n)) / 2;
    case NOAM: return s->lr * pow(s->a, -0.5) * fmin(epoch == 0 ? 1 : pow(e, -0.5), pow(n, -1.5) * e);
    case MULTI_STEP: {
        int64_t passed = 0;
        while (passed < s->n_milestones && epoch >= s->milestones[passed]) passed++;
        return s->lr * pow(s->a, (double)passed);
    }
    case WARMUP:
    default:
        if (epoch < s->steps) return (s->lr - s->a) * e / n + s->a;
        return s->after ? rate_at(s->after, epoch - s->steps) : s->lr;
    }
}

double proa_schedule_lr(const proa_schedule *s) { return s ? rate_at(s, s->epoch) : 0; }
int64_t proa_schedule_epoch(const proa_schedule *s) { return s ? s->epoch : 0; }

void proa_schedule_step(proa_schedule *s)
{
    if (s && !proa_error()) s->epoch++;
}

void proa_schedule_seek(proa_schedule *s, int64_t epoch)
{
    if (!s || proa_error()) return;
    if (epoch < 0)
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "schedule_seek: epoch is %lld, expected 0 or more",
                  (long long)epoch);
    else s->epoch = epoch;
}
