/* Update rules of a parameter server's values, and initial values of new rows. May use core. */
#include "dist/ps/table.h"

#include "core/internal.h"

#include <math.h>

int64_t proa__ps_floats(proa_ps_rule rule, int64_t n)
{
    switch (rule) {
    case PROA_PS_ADAM: return 3 * n + 2;
    case PROA_PS_ADAGRAD: return 2 * n;
    case PROA_PS_SGD:
    case PROA_PS_SUM: break;
    }
    return n;
}

const char *proa__ps_part_names(proa_ps_rule rule)
{
    switch (rule) {
    case PROA_PS_ADAM: return "Param,Moment1,Moment2,Beta1Pow,Beta2Pow";
    case PROA_PS_ADAGRAD: return "Param,Moment";
    case PROA_PS_SGD:
    case PROA_PS_SUM: break;
    }
    return "Param";
}

void proa__ps_new_states(const proa_ps_table_opts *opts, float *values, int64_t n)
{
    int64_t all = proa__ps_floats(opts->rule, n);
    for (int64_t i = n; i < all; i++) values[i] = 0;
    if (opts->rule == PROA_PS_ADAM) {
        values[3 * n] = (float)opts->beta1;
        values[3 * n + 1] = (float)opts->beta2;
    }
}

/* ---- updates --------------------------------------------------------------------------- */

static void adam(const proa_ps_table_opts *o, float *p, int64_t n, const float *g, float scale, double lr)
{
    float *m = p + n, *v = m + n, *pow1 = v + n, *pow2 = pow1 + 1;
    float beta1 = (float)o->beta1, beta2 = (float)o->beta2;
    double root = sqrt(1 - (double)*pow2);
    float rate = (float)(lr * root / (1 - (double)*pow1)), epsilon = (float)(o->epsilon * root);
    for (int64_t i = 0; i < n; i++) {
        float x = g[i] * scale;
        m[i] = beta1 * m[i] + (1 - beta1) * x;
        v[i] = beta2 * v[i] + (1 - beta2) * x * x;
        p[i] -= rate * m[i] / (sqrtf(v[i]) + epsilon);
    }
    *pow1 *= beta1;
    *pow2 *= beta2;
}

static void adagrad(const proa_ps_table_opts *o, float *p, int64_t n, const float *g, float scale, double lr)
{
    float *moment = p + n, epsilon = (float)o->epsilon;
    for (int64_t i = 0; i < n; i++) {
        float x = g[i] * scale;
        moment[i] += x * x;
        p[i] -= (float)lr * x / (sqrtf(moment[i]) + epsilon);
    }
}

void proa__ps_update(const proa_ps_table_opts *opts, float *values, int64_t n, const float *g, double scale,
                     double lr)
{
    float by = (float)scale;
    switch (opts->rule) {
    case PROA_PS_SGD:
        for (int64_t i = 0; i < n; i++) values[i] -= (float)lr * (g[i] * by);
        break;
    case PROA_PS_SUM:
        for (int64_t i = 0; i < n; i++) values[i] += g[i] * by;
        break;
    case PROA_PS_ADAM: adam(opts, values, n, g, by, lr); break;
    case PROA_PS_ADAGRAD: adagrad(opts, values, n, g, by, lr); break;
    }
}

/* ---- new rows -------------------------------------------------------------------------- */

/* A step of SplitMix64 (Steele, Lea and Flood 2014). */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double uniform(uint64_t *state) { return (double)(next(state) >> 11) * 0x1p-53; }

static uint64_t state_of(uint64_t seed, int64_t id)
{
    uint64_t state = seed;
    state = next(&state) ^ (uint64_t)id;
    return next(&state);
}

/* Box and Muller's transform. */
static double normal(uint64_t *state)
{
    double u = 1 - uniform(state), angle = 2 * 3.14159265358979323846 * uniform(state);
    return sqrt(-2 * log(u)) * cos(angle);
}

double proa__ps_chance(uint64_t seed, int64_t id)
{
    uint64_t state = state_of(~seed, id);
    return uniform(&state);
}

void proa__ps_draw(const proa_ps_table_opts *opts, int64_t id, float *values)
{
    uint64_t state = state_of(opts->seed, id);
    double a = opts->start_a, b = opts->start_b;
    for (int64_t i = 0; i < opts->width; i++) {
        double x = a;
        if (opts->start == PROA_PS_UNIFORM) x = a + (b - a) * uniform(&state);
        else if (opts->start == PROA_PS_GAUSSIAN) x = a + b * normal(&state);
        else if (opts->start == PROA_PS_TRUNCATED_GAUSSIAN) {
            do x = normal(&state);
            while (fabs(x) > 2);
            x = a + b * x;
        }
        values[i] = (float)x;
    }
    proa__ps_new_states(opts, values, opts->width);
}
