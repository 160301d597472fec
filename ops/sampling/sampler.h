/* Draws of classes for sampled losses. May use core, kernels and ops. */
#ifndef PROA_OPS_SAMPLER_H
#define PROA_OPS_SAMPLER_H

#include "kernels/rowwise.h"
#include "ops/random/formulas.h"

enum { SAMPLE_UNIFORM, SAMPLE_LOG_UNIFORM, SAMPLE_CUSTOM };

/* A distribution of classes 0 … classes − 1, and a stream of random numbers. */
typedef struct class_sampler {
    int64_t kind, classes;
    int64_t range;                                  /* of SAMPLE_LOG_UNIFORM: draws are below it */
    const proa_tensor *probs, *alias, *alias_probs; /* of SAMPLE_CUSTOM: [classes] each */
    proa_rng_state at;
    uint64_t drawn;
} class_sampler;

/* The stream of a seed, or numbers reserved from the thread's generator (seed 0). */
static inline __attribute__((unused)) void sampler_start(class_sampler *s, int64_t seed, uint64_t draws)
{
    s->at = seed ? (proa_rng_state){(uint64_t)seed, 0} : proa__rng_reserve(draws / 2 + 1);
    s->drawn = 0;
}

static inline double sampler_uniform(class_sampler *s) { return random_uniform_at(s->at, s->drawn++); }

/* An integer in [0, n). */
static inline int64_t sampler_below(class_sampler *s, int64_t n)
{
    int64_t v = (int64_t)(sampler_uniform(s) * (double)n);
    return v < n ? v : n - 1;
}

/* The probability of a class. */
static inline __attribute__((unused)) double sampler_chance(const class_sampler *s, int64_t class)
{
    if (s->kind == SAMPLE_UNIFORM) return 1 / (double)s->classes;
    if (s->kind == SAMPLE_LOG_UNIFORM)
        return log(((double)class + 2) / ((double)class + 1)) / log((double)s->range + 1);
    return rows_get((proa_dtype)s->probs->dtype, s->probs->data, class);
}

/* A class; −1 if the alias table names none. Two numbers of the stream. */
static inline __attribute__((unused)) int64_t sampler_draw(class_sampler *s)
{
    int64_t n = s->classes, at = sampler_below(s, n);
    double u = sampler_uniform(s);
    if (s->kind == SAMPLE_UNIFORM) return at;
    if (s->kind == SAMPLE_LOG_UNIFORM) {
        int64_t v = (int64_t)(exp(u * log((double)s->range + 1)) - 1);
        return v > 0 && s->range > 0 ? v % s->range : 0;
    }
    if (u <= rows_get((proa_dtype)s->alias_probs->dtype, s->alias_probs->data, at)) return at;
    int64_t other = rows_get_int((proa_dtype)s->alias->dtype, s->alias->data, at);
    return other >= 0 && other < n ? other : -1;
}

#endif
