/* A library with OpenMP regions, as oneDNN and OpenBLAS have them, of today's and of GCC 4.8's form.
 * Uses libgomp's interface; test_threads.c moves it to our threads. */
#include "openmp/user.h"

#include <omp.h>

void user_region(int threads, int *members, int *in_parallel, atomic_int *hits)
{
#pragma omp parallel num_threads(threads)
    {
        atomic_fetch_add(&hits[omp_get_thread_num()], 1);
        if (omp_get_thread_num() == 0) *members = omp_get_num_threads(), *in_parallel = omp_in_parallel();
    }
}

/* Every member adds to its slot; after each barrier all slots must be equal. Returns how many were not. */
int user_barriers(int threads, int rounds)
{
    int slots[64] = {0};
    atomic_int wrong = 0;
#pragma omp parallel num_threads(threads) shared(slots, wrong)
    {
        for (int round = 1; round <= rounds; round++) {
            slots[omp_get_thread_num()]++;
#pragma omp barrier
            for (int i = 0; i < omp_get_num_threads(); i++) wrong += slots[i] != round;
#pragma omp barrier
        }
    }
    return wrong;
}

int user_nested(int threads)
{
    atomic_int wrong = 0;
#pragma omp parallel num_threads(threads) shared(wrong)
    {
        int outer = omp_get_thread_num(), outer_team = omp_get_num_threads();
#pragma omp parallel num_threads(threads) shared(wrong)
        wrong += omp_get_num_threads() != 1 || omp_get_thread_num() != 0;
        wrong += omp_get_thread_num() != outer || omp_get_num_threads() != outer_team;
    }
    return wrong;
}

int user_threads(void) { return omp_get_max_threads(); }

/* ---- as GCC before 4.9 compiled it ------------------------------------------------------ */

extern void GOMP_parallel_start(void (*function)(void *), void *data, unsigned threads);
extern void GOMP_parallel_end(void);
extern bool GOMP_loop_static_start(long start, long end, long step, long chunk, long *from, long *until);
extern bool GOMP_loop_static_next(long *from, long *until);
extern void GOMP_loop_end_nowait(void);

static void loop(void *data)
{
    const user_loop *l = data;
    long from, until;
    if (GOMP_loop_static_start(l->start, l->end, l->step, l->chunk, &from, &until)) do
            for (long i = from; l->step > 0 ? i < until : i > until; i += l->step)
                atomic_fetch_add(&l->hits[i], 1);
        while (GOMP_loop_static_next(&from, &until));
    GOMP_loop_end_nowait();
}

void user_old_loop(int threads, user_loop *l)
{
    GOMP_parallel_start(loop, l, (unsigned)threads);
    loop(l);
    GOMP_parallel_end();
}
