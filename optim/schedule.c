/* Learning-rate schedules: Paddle's classes, each a closed form of the epoch, so that a schedule can jump to
 * any epoch. May use core. */
#include "core/internal.h"

#include <proa/optim.h>

#include <math.h>

typedef double (*formula)(const proa_schedule *s, double e);

struct proa_schedule {
    formula formula;
    int64_t epoch;
    double lr, a, b, c; /* as each formula says */
    double steps;       /* step size, decay or warmup steps, period; 0: the formula has none */
    int64_t n_at;
    double *at, *values;  /* owned: where the rate changes, and what to (one more) */
    proa_schedule *after; /* owned; of a warmup */
};

/* The schedule, or NULL and an error; it takes over `with`'s lists and `after`. */
static proa_schedule *make(const char *who, bool counted, proa_schedule with)
{
    if (!proa_error() && (!(with.lr >= 0) || (counted && !(with.steps >= 1))))
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: lr is %g and steps %g; expected lr ≥ 0 and steps ≥ 1", who,
                  with.lr, with.steps);
    proa_schedule *s = proa_error() ? NULL : proa__calloc(sizeof *s);
    if (s) {
        *s = with;
        return s;
    }
    proa__free(with.at);
    proa__free(with.values);
    proa_schedule_free(with.after);
    return NULL;
}

void proa_schedule_free(proa_schedule *s)
{
    if (!s) return;
    proa_schedule_free(s->after);
    proa__free(s->at);
    proa__free(s->values);
    proa__free(s);
}

static double half_cosine(double from, double to, double part)
{
    return to + (from - to) * (1 + cos(acos(-1.0) * part)) / 2;
}

/* Number of boundaries that are ≤ e. */
static int64_t passed(const proa_schedule *s, double e)
{
    int64_t n = 0;
    while (n < s->n_at && e >= s->at[n]) n++;
    return n;
}

/* Epochs that ascend, as places in s. */
static proa_status take_epochs(const char *who, proa_ints epochs, proa_schedule *s)
{
    PROA_TRY(proa_error());
    for (int64_t i = 0; i < epochs.count; i++)
        if (!epochs.at || (i > 0 && epochs.at[i] <= epochs.at[i - 1]))
            return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: epochs must be numbers that ascend", who);
    s->at = proa__alloc((size_t)(epochs.count + 1) * sizeof *s->at);
    if (!s->at) return proa_error();
    for (int64_t i = 0; i < epochs.count; i++) s->at[i] = (double)epochs.at[i];
    s->n_at = epochs.count;
    return PROA_OK;
}

/* ---- decays ---------------------------------------------------------------------------- */

static double step_at(const proa_schedule *s, double e) { return s->lr * pow(s->a, floor(e / s->steps)); }

proa_schedule *proa_step_decay(double lr, int64_t step_size, double gamma)
{
    return make("step_decay", true,
                (proa_schedule){.formula = step_at, .lr = lr, .steps = (double)step_size, .a = gamma});
}

static double multi_step_at(const proa_schedule *s, double e)
{
    return s->lr * pow(s->a, (double)passed(s, e));
}

proa_schedule *proa_multi_step_decay(double lr, proa_ints milestones, double gamma)
{
    proa_schedule s = {.formula = multi_step_at, .lr = lr, .a = gamma};
    return take_epochs("multi_step_decay", milestones, &s) == PROA_OK ? make("multi_step_decay", false, s)
                                                                      : NULL;
}

static double piecewise_at(const proa_schedule *s, double e) { return s->values[passed(s, e)]; }

proa_schedule *proa_piecewise_decay(proa_ints boundaries, proa_floats values)
{
    proa_schedule s = {.formula = piecewise_at};
    if (!proa_error() && (!values.at || values.count != boundaries.count + 1))
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "piecewise_decay: %lld boundaries need %lld values, got %lld",
                  (long long)boundaries.count, (long long)boundaries.count + 1, (long long)values.count);
    if (take_epochs("piecewise_decay", boundaries, &s) != PROA_OK) return NULL;
    s.values = proa__alloc((size_t)values.count * sizeof *s.values);
    if (s.values) memcpy(s.values, values.at, (size_t)values.count * sizeof *s.values);
    return make("piecewise_decay", false, s);
}

static double exponential_at(const proa_schedule *s, double e) { return s->lr * pow(s->a, e); }

proa_schedule *proa_exponential_decay(double lr, double gamma)
{
    return make("exponential_decay", false, (proa_schedule){.formula = exponential_at, .lr = lr, .a = gamma});
}

static double natural_exp_at(const proa_schedule *s, double e) { return s->lr * exp(-s->a * e); }

proa_schedule *proa_natural_exp_decay(double lr, double gamma)
{
    return make("natural_exp_decay", false, (proa_schedule){.formula = natural_exp_at, .lr = lr, .a = gamma});
}

static double inverse_time_at(const proa_schedule *s, double e) { return s->lr / (1 + s->a * e); }

proa_schedule *proa_inverse_time_decay(double lr, double gamma)
{
    return make("inverse_time_decay", false,
                (proa_schedule){.formula = inverse_time_at, .lr = lr, .a = gamma});
}

static double polynomial_at(const proa_schedule *s, double e)
{
    return (s->lr - s->a) * pow(1 - fmin(e, s->steps) / s->steps, s->b) + s->a;
}

proa_schedule *proa_polynomial_decay(double lr, int64_t decay_steps, double end_lr, double power)
{
    return make(
        "polynomial_decay", true,
        (proa_schedule){
            .formula = polynomial_at, .lr = lr, .steps = (double)decay_steps, .a = end_lr, .b = power});
}

static double noam_at(const proa_schedule *s, double e)
{
    return s->lr * pow(s->a, -0.5) * fmin(e == 0 ? 1 : pow(e, -0.5), pow(s->steps, -1.5) * e);
}

proa_schedule *proa_noam_decay(int64_t d_model, int64_t warmup_steps, double lr)
{
    if (d_model < 1 && !proa_error())
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "noam_decay: d_model is %lld, expected at least 1",
                  (long long)d_model);
    return make(
        "noam_decay", true,
        (proa_schedule){.formula = noam_at, .lr = lr, .steps = (double)warmup_steps, .a = (double)d_model});
}

/* ---- cosines --------------------------------------------------------------------------- */

static double cosine_at(const proa_schedule *s, double e) { return half_cosine(s->lr, s->a, e / s->steps); }

proa_schedule *proa_cosine_decay(double lr, int64_t t_max, double eta_min)
{
    return make("cosine_decay", true,
                (proa_schedule){.formula = cosine_at, .lr = lr, .steps = (double)t_max, .a = eta_min});
}

/* b: how many times longer each period is than the one before. */
static double restarts_at(const proa_schedule *s, double e)
{
    double period = s->steps, start = 0;
    if (s->b == 1) start = period * floor(e / period);
    else
        for (; e >= start + period; period *= s->b) start += period;
    return half_cosine(s->lr, s->a, (e - start) / period);
}

proa_schedule *proa_cosine_restarts(double lr, int64_t t_0, int64_t t_mult, double eta_min)
{
    if (t_mult < 1 && !proa_error())
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "cosine_restarts: t_mult is %lld, expected at least 1",
                  (long long)t_mult);
    return make(
        "cosine_restarts", true,
        (proa_schedule){
            .formula = restarts_at, .lr = lr, .steps = (double)t_0, .a = eta_min, .b = (double)t_mult});
}

/* lr: the largest rate; a, b: the first and the last; c: the share of steps that rises. */
static double one_cycle_at(const proa_schedule *s, double e)
{
    double top = s->c * s->steps - 1, end = s->steps - 1;
    if (e <= top) return half_cosine(s->a, s->lr, top > 0 ? e / top : 1);
    return e >= end ? s->b : half_cosine(s->lr, s->b, (e - top) / (end - top));
}

proa_schedule *proa_one_cycle(double max_lr, int64_t total_steps, double divide_factor, double end_lr,
                              double phase_pct)
{
    if (!proa_error() && (!(divide_factor > 0) || !(phase_pct >= 0 && phase_pct <= 1)))
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  "one_cycle: divide_factor is %g and phase_pct %g; expected a positive number, and one from "
                  "0 to 1",
                  divide_factor, phase_pct);
    return make("one_cycle", true,
                (proa_schedule){.formula = one_cycle_at,
                                .lr = max_lr,
                                .steps = (double)total_steps,
                                .a = max_lr / divide_factor,
                                .b = end_lr,
                                .c = phase_pct});
}

/* ---- lines ----------------------------------------------------------------------------- */

/* a: the other rate; steps up, b steps down. */
static double cyclic_at(const proa_schedule *s, double e)
{
    double in = fmod(e, s->steps + s->b);
    return s->lr + (s->a - s->lr) * (in <= s->steps ? in / s->steps : 1 - (in - s->steps) / s->b);
}

proa_schedule *proa_cyclic(double base_lr, double max_lr, int64_t steps_up, int64_t steps_down)
{
    if (steps_down < 1 && !proa_error())
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "cyclic: steps_down is %lld, expected at least 1",
                  (long long)steps_down);
    return make("cyclic", true,
                (proa_schedule){.formula = cyclic_at,
                                .lr = base_lr,
                                .steps = (double)steps_up,
                                .a = max_lr,
                                .b = (double)steps_down});
}

static double linear_at(const proa_schedule *s, double e)
{
    return s->lr * (s->a + (s->b - s->a) * fmin(e, s->steps) / s->steps);
}

proa_schedule *proa_linear_decay(double lr, int64_t total_steps, double start_factor, double end_factor)
{
    return make("linear_decay", true,
                (proa_schedule){.formula = linear_at,
                                .lr = lr,
                                .steps = (double)total_steps,
                                .a = start_factor,
                                .b = end_factor});
}

static double warmup_at(const proa_schedule *s, double e)
{
    if (e < s->steps) return (s->lr - s->a) * e / s->steps + s->a;
    return s->after ? s->after->formula(s->after, e - s->steps) : s->lr;
}

proa_schedule *proa_linear_warmup(proa_schedule *after, int64_t warmup_steps, double start_lr, double end_lr)
{
    return make("linear_warmup", true,
                (proa_schedule){.formula = warmup_at,
                                .lr = end_lr,
                                .a = start_lr,
                                .steps = (double)warmup_steps,
                                .after = after});
}

/* ---- where it is ----------------------------------------------------------------------- */

double proa_schedule_lr(const proa_schedule *s) { return s ? s->formula(s, (double)s->epoch) : 0; }
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
