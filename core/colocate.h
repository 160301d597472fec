/* Co-location: a worker moves to the core of the thread it helps where each of the two would otherwise share
 * a core with strangers. Private to core. */
#ifndef PROA_CORE_COLOCATE_H
#define PROA_CORE_COLOCATE_H

/* Returns the core that the calling thread is on, if it lately had to wait for one about half of the time;
 * else −1. */
int proa__crowded_core(void);
/* Moves the calling thread to `core` (−1: nowhere) if it, too, lately had to wait. The scheduler is free to
 * move it on afterwards. Called often: it acts at most ten times a second. */
void proa__join_core(int core);

#endif
