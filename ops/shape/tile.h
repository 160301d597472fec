/* Repeats of tile, for inference and kernels. May use ops/ints.h. */
#ifndef PROA_OPS_TILE_H
#define PROA_OPS_TILE_H

#include "ops/ints.h"

typedef struct proa_tile {
    int ndim; /* of the result */
    int64_t size[PROA_MAX_DIMS],
        times[PROA_MAX_DIMS]; /* of x, with leading ones; −1 / PROA_UNKNOWN possible */
} proa_tile;

proa_status proa__tile_plan(const char *who, int ndim, const int64_t *shape, const proa_ints *repeats,
                            proa_tile *t);

#endif
