/* Lets one thread wait for another: spins as long as that pays, then sleeps in the kernel. Private to
 * core. */
#ifndef PROA_CORE_WAIT_H
#define PROA_CORE_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A 32-bit word that threads wait on, and the number of threads that sleep until it changes. */
typedef struct proa__signal {
    atomic_uint word;
    atomic_uint sleepers;
} proa__signal;

/* Waits until the word differs from `from` and returns it; increments *sleeps if this thread slept. */
unsigned proa__wait_while(proa__signal *s, unsigned from, atomic_llong *sleeps);
/* Wakes the threads that sleep on the word. Call this after changing the word by a sequentially consistent
 * operation. */
void proa__wake_sleepers(proa__signal *s);
/* True while cores are contended: a thread of this process was lately ready but had to wait for a core, or
 * proa__cores_scarce has been set. */
bool proa__cores_contended(void);
/* Part of its last window of measurement for which the calling thread was ready but waited for a core; 0 if
 * that is not known, or a quota may be the cause. */
float proa__waited_part(void);
/* Time that never goes back, in ns. */
int64_t proa__wait_clock(void);
/* Sets whether affinity mask and CPU quota leave fewer cores than the default number of threads; waits then
 * hardly spin. */
void proa__cores_scarce(bool scarce);

#endif
