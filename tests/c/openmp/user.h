/* Functions for test_threads.c: OpenMP regions of user.c, a library like oneDNN, and an OpenMP call of
 * other.c that Proa does not serve. */
#ifndef PROA_TESTS_OPENMP_USER_H
#define PROA_TESTS_OPENMP_USER_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct user_loop {
    long start, end, step, chunk;
    atomic_int *hits;
} user_loop;

void user_region(int threads, int *members, int *in_parallel, atomic_int *hits);
int user_barriers(int threads, int rounds);
int user_nested(int threads);
int user_threads(void);
void user_old_loop(int threads, user_loop *l);
double other_clock(void);

#endif
