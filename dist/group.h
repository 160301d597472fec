/* Connects and closes process groups (rings) over shared memory or Gloo. Used by dist/ and by its tests,
 * whose ranks may be threads of one process. May use core. */
#ifndef PROA_DIST_GROUP_H
#define PROA_DIST_GROUP_H

#include "dist/engine.h"

#include <proa/dist.h>

/* Connects the members of a group, whose global ranks are `ranks` (copied; NULL: 0 to size − 1), over shared
 * memory or Gloo. Collective among members; a non-member (rank −1) gets a ring without a connection. NULL
 * with an error. */
proa__ring *proa__ring_connect(const proa__engine_setup *setup, int id, int rank, int size, const int *ranks);
void proa__ring_close(proa__ring *g);

#endif
