/* The thread's random generator: a seed and the number of Philox blocks handed out. Threads are numbered from
 * 0 in the order in which they first use Proa, and start with their number as seed, so that they do not
 * repeat one another. */
#include "core/thread.h"

void proa_seed(uint64_t seed) { proa_rng_set((proa_rng_state){.seed = seed, .offset = 0}); }

proa_rng_state proa_rng_get(void)
{
    const proa__thread *me = proa__me();
    return me ? me->rng : (proa_rng_state){0, 0};
}

void proa_rng_set(proa_rng_state state)
{
    proa__thread *me = proa__me();
    if (me) me->rng = state;
    else proa_fail(PROA_ERR_OUT_OF_MEMORY, "rng: no memory for this thread's generator");
}

proa_rng_state proa__rng_reserve(uint64_t blocks)
{
    proa_rng_state start = proa_rng_get();
    proa_rng_set((proa_rng_state){.seed = start.seed, .offset = start.offset + blocks});
    return start;
}
