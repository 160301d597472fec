/* Register-tile kernels of prepacked GEMM (kernels/prepacked_gemm.h) for every tile height and width,
 * compiled once for all its users. May use kernels. */
#include "kernels/prepacked_gemm.h"

#define PACKED_TILE(mr, width)                                                                               \
    static void packed_tile_##mr##_##width(int64_t k, const float *a, int64_t lda, const float *b, float *c, \
                                           int64_t ldc, const packed_ends *e, const float *ahead,            \
                                           int64_t ahead_step)                                               \
    {                                                                                                        \
        packed_tile(mr, width, false, k, a, lda, b, PACKED_NR, c, ldc, e, ahead, ahead_step);                \
    }
#define PACKED_ALL(mr) \
    PACKED_TILE(mr, PACKED_ONE) PACKED_TILE(mr, PACKED_ONE_AND_HALF) PACKED_TILE(mr, PACKED_TWO)
PACKED_TILES(PACKED_ALL)
#define PACKED_ENTRY(mr) \
    {packed_tile_##mr##_PACKED_ONE, packed_tile_##mr##_PACKED_ONE_AND_HALF, packed_tile_##mr##_PACKED_TWO},
const packed_tile_fn packed_tiles[PACKED_MR][PACKED_WIDTHS] = {PACKED_TILES(PACKED_ENTRY)};
