/* The thread's generator: a seed and a count of Philox blocks handed out. The first thread starts from
 * seed 0, the n-th that uses Proa from seed n, so that threads do not repeat each other. */
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
