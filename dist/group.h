/* Groups and their connections, for dist and its tests: ranks may be threads of one process. May use core. */
#ifndef PROA_DIST_GROUP_H
#define PROA_DIST_GROUP_H

#include "dist/engine.h"

#include <proa/dist.h>

/* Connects the members of a group, `ranks` of the world (kept as a copy; NULL: all `size`), over shared
 * memory or Gloo. Collective among members; for others (rank −1) nothing is connected. NULL with an error. */
proa__ring *proa__ring_connect(const proa__engine_setup *setup, int id, int rank, int size, const int *ranks);
void proa__ring_close(proa__ring *g);

#endif
