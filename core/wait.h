/* Waiting of one thread for another: it spins while that pays, then sleeps in the kernel. Private to core. */
#ifndef PROA_CORE_WAIT_H
#define PROA_CORE_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A word that threads wait on. */
typedef struct proa__signal {
    atomic_uint word;
    atomic_uint sleepers;
    atomic_llong woken_at; /* ns; when somebody was last woken */
} proa__signal;

/* Returns the word once it differs from `from`; adds to *sleeps if this thread slept. */
unsigned proa__wait_while(proa__signal *s, unsigned from, atomic_llong *sleeps);
/* Wakes those who sleep on the word: after it was changed by a sequentially consistent operation. */
void proa__wake_sleepers(proa__signal *s);
/* Cores are contended: other threads of this machine took them while ours wanted to run, or a quota will. */
bool proa__cores_contended(void);
/* There are fewer cores than threads from the start. */
void proa__cores_scarce(bool scarce);

#endif
