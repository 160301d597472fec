/* Clocks, medians and an optimization barrier for the benchmarks. C library only. */
#ifndef PROA_BENCHMARKS_TIMING_H
#define PROA_BENCHMARKS_TIMING_H

#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* CPU seconds of this thread: time in which it waits for a core does not count. */
static inline double now_here(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The compiler must assume that what p points to is read and written here. */
static inline void opaque(const void *p) { __asm__ volatile("" : : "r"(p) : "memory"); }

static inline int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of n values, which it sorts in place. */
static inline double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare_doubles);
    return values[n / 2];
}

/* The least of n times: that of the round that other work on the machine disturbed least. */
static inline double fastest(const double *values, size_t n)
{
    double best = values[0];
    for (size_t i = 1; i < n; i++)
        if (values[i] < best) best = values[i];
    return best;
}

/* Clock frequency in GHz under the present load, from a chain of dependent additions, one a cycle. */
static inline double clock_ghz(void)
{
    enum { STEPS = 1 << 16, TRIES = 31 };
    double best = 1e9;
    for (int try = 0; try < TRIES; try++) {
        uint64_t x = (uint64_t)try;
        double start = now_here();
        for (int i = 0; i < STEPS; i++) {
            x += 3;
            __asm__ volatile("" : "+r"(x));
            x += 5;
            __asm__ volatile("" : "+r"(x));
            x += 7;
            __asm__ volatile("" : "+r"(x));
            x += 9;
            __asm__ volatile("" : "+r"(x));
        }
        double each = (now_here() - start) / (4.0 * STEPS);
        if (each < best) best = each;
    }
    return 1e-9 / best;
}

static inline const char *verdict(int met) { return met ? "met" : "missed"; }

#endif
