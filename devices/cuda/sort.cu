/* Prefix sums, and stable sorts of rows of integer keys: a short row within one block, a long one by
 * least-significant-digit radix sort, eight bits a pass. All arithmetic is on integers, so the result does
 * not depend on the order of execution. */
#include "sort.h"

/* ---- running sums ---------------------------------------------------------------------- */

enum { SCAN_EACH = 8, SCAN_TILE = CUDA_BLOCK * SCAN_EACH };

__global__ void scan_sum_kernel(const int64_t *v, int64_t n, int64_t *sums)
{
    for (int64_t first = (int64_t)blockIdx.x * SCAN_TILE; first < n;
         first += (int64_t)gridDim.x * SCAN_TILE) {
        int64_t sum = 0;
        for (int k = 0; k < SCAN_EACH; k++) {
            int64_t i = first + k * CUDA_BLOCK + threadIdx.x;
            if (i < n) sum += v[i];
        }
        sum = cuda_block_reduce<cuda_sum>(sum);
        if (threadIdx.x == 0) sums[first / SCAN_TILE] = sum;
    }
}

/* before: sum of all preceding tiles, by tile; NULL: there is only one tile. */
__global__ void scan_tile_kernel(int64_t *v, int64_t n, const int64_t *before)
{
    for (int64_t first = (int64_t)blockIdx.x * SCAN_TILE; first < n;
         first += (int64_t)gridDim.x * SCAN_TILE) {
        int64_t at = first + threadIdx.x * SCAN_EACH, mine[SCAN_EACH], sum = 0;
        for (int k = 0; k < SCAN_EACH; k++) sum += mine[k] = at + k < n ? v[at + k] : 0;
        int64_t all, run = cuda_block_scan<cuda_sum>(sum, &all) - sum;
        if (before) run += before[first / SCAN_TILE];
        for (int k = 0; k < SCAN_EACH; k++) {
            if (at + k < n) v[at + k] = run;
            run += mine[k];
        }
    }
}

proa_status cuda_scan(cuda_context *c, int64_t *v, int64_t n)
{
    int64_t tiles = (n + SCAN_TILE - 1) / SCAN_TILE;
    if (n <= 0) return PROA_OK;
    if (tiles == 1) return cuda_launch(c, 1, CUDA_BLOCK, scan_tile_kernel, v, n, NULL);
    int64_t *sums = (int64_t *)cuda_scratch(c, (size_t)tiles * sizeof *sums);
    if (!sums) return cuda_host->error();
    proa_status s = cuda_launch(c, cuda_blocks(tiles, 1), CUDA_BLOCK, scan_sum_kernel, v, n, sums);
    if (s == PROA_OK) s = cuda_scan(c, sums, tiles);
    if (s == PROA_OK) s = cuda_launch(c, cuda_blocks(tiles, 1), CUDA_BLOCK, scan_tile_kernel, v, n, sums);
    cuda_scratch_free(c, sums);
    return s;
}

/* ---- short lines ----------------------------------------------------------------------- */

enum { SORT_SHORT = 2048, SORT_GROUP = 512 };

template <class K> CUDA_FN bool sort_after(K a, uint32_t at_a, K b, uint32_t at_b)
{
    return a > b || (a == b && at_a > at_b);
}

/* Bitonic sort by (key, index): indices differ, so the result equals a stable sort's. Lines are padded to
 * `capacity`, a power of 2; a block sorts `each` lines. */
template <class K>
__global__ void sort_short_kernel(K *keys, uint32_t *places, int64_t lines, int length, int capacity,
                                  int each)
{
    __shared__ K key[SORT_SHORT];
    __shared__ uint32_t place[SORT_SHORT];
    int all = capacity * each;
    for (int64_t first = (int64_t)blockIdx.x * each; first < lines; first += (int64_t)gridDim.x * each) {
        __syncthreads();
        for (int i = threadIdx.x; i < all; i += CUDA_BLOCK) {
            int64_t line = first + i / capacity;
            bool real = line < lines && i % capacity < length;
            key[i] = real ? keys[line * length + i % capacity] : (K) ~(K)0;
            place[i] = real ? (uint32_t)(i % capacity) : UINT32_MAX;
        }
        for (int run = 2; run <= capacity; run *= 2)
            for (int step = run / 2; step > 0; step /= 2) {
                __syncthreads();
                for (int t = threadIdx.x; t < all / 2; t += CUDA_BLOCK) {
                    int low = 2 * t - (t & (step - 1)), high = low + step;
                    bool up = (low & (capacity - 1) & run) == 0;
                    if (sort_after(key[low], place[low], key[high], place[high]) != up) continue;
                    K k = key[low];
                    uint32_t p = place[low];
                    key[low] = key[high], place[low] = place[high];
                    key[high] = k, place[high] = p;
                }
            }
        __syncthreads();
        for (int i = threadIdx.x; i < all; i += CUDA_BLOCK) {
            int64_t line = first + i / capacity;
            if (line >= lines || i % capacity >= length) continue;
            keys[line * length + i % capacity] = key[i];
            places[line * length + i % capacity] = place[i];
        }
    }
}

template <class K> static proa_status sort_short(cuda_context *c, cuda_order *o)
{
    int capacity = 1;
    while (capacity < o->length) capacity *= 2;
    int each = capacity < SORT_GROUP ? SORT_GROUP / capacity : 1;
    return cuda_launch(c, cuda_blocks(o->lines, each), CUDA_BLOCK, sort_short_kernel<K>, (K *)o->keys,
                       (uint32_t *)o->places, o->lines, (int)o->length, capacity, each);
}

/* ---- long lines ------------------------------------------------------------------------ */

enum {
    RADIX_BITS = 8,
    RADIX_DIGITS = 1 << RADIX_BITS, /* one digit a thread of a block */
    RADIX_EACH = 8,
    RADIX_TILE = CUDA_BLOCK * RADIX_EACH,
    RADIX_WARPS = CUDA_BLOCK / 32
};

struct radix_pass {
    int64_t lines, length, tiles; /* tiles: tiles of a line */
    int shift;
};

/* counts[line][digit][tile] */
template <class K> __global__ void radix_count_kernel(radix_pass r, const K *keys, int64_t *counts)
{
    __shared__ unsigned count[RADIX_DIGITS];
    for (int64_t block = blockIdx.x; block < r.lines * r.tiles; block += gridDim.x) {
        int64_t line = block / r.tiles, tile = block % r.tiles, first = tile * RADIX_TILE;
        __syncthreads();
        count[threadIdx.x] = 0;
        __syncthreads();
        for (int k = 0; k < RADIX_EACH; k++) {
            int64_t i = first + k * CUDA_BLOCK + threadIdx.x;
            if (i < r.length)
                atomicAdd(&count[keys[line * r.length + i] >> r.shift & (RADIX_DIGITS - 1)], 1u);
        }
        __syncthreads();
        counts[(line * RADIX_DIGITS + threadIdx.x) * r.tiles + tile] = count[threadIdx.x];
    }
}

/* Rank of a lane's item among equal digits: after those of lower lanes, of earlier rounds of its warp, and of
 * lower warps, that is, in their original order. */
template <class K>
CUDA_FN void radix_rank(const K *key, const bool *real, int shift, unsigned (*count)[RADIX_DIGITS],
                        unsigned *rank)
{
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int k = 0; k < RADIX_EACH; k++) {
        unsigned digit = (unsigned)(key[k] >> shift) & (RADIX_DIGITS - 1);
        unsigned same = __match_any_sync(~0u, real[k] ? digit : (unsigned)RADIX_DIGITS);
        unsigned before = __popc(same & ((1u << lane) - 1)), old = real[k] ? count[warp][digit] : 0;
        __syncwarp();
        if (real[k] && before == 0) count[warp][digit] = old + __popc(same);
        __syncwarp();
        rank[k] = old + before;
    }
}

/* Moves items to their ranks in the order of the pass's digit. starts: the scanned counts. Keys are brought
 * into order within the tile first, so that neighbors are written to neighboring places. from_place NULL: an
 * item's place is its index. */
template <class K, class P>
__global__ void radix_move_kernel(radix_pass r, const int64_t *starts, const K *from_key, K *to_key,
                                  const P *from_place, P *to_place)
{
    __shared__ unsigned count[RADIX_WARPS][RADIX_DIGITS], start[RADIX_DIGITS];
    __shared__ int64_t shift_to[RADIX_DIGITS];
    __shared__ uint64_t item[RADIX_TILE];
    for (int64_t block = blockIdx.x; block < r.lines * r.tiles; block += gridDim.x) {
        int64_t line = block / r.tiles, tile = block % r.tiles, to[RADIX_EACH];
        int64_t first = tile * RADIX_TILE + threadIdx.x / 32 * (32 * RADIX_EACH) + threadIdx.x % 32;
        K key[RADIX_EACH];
        unsigned rank[RADIX_EACH], here, all;
        bool real[RADIX_EACH];
        __syncthreads();
        for (int w = 0; w < RADIX_WARPS; w++) count[w][threadIdx.x] = 0;
        for (int k = 0; k < RADIX_EACH; k++) {
            real[k] = first + k * 32 < r.length;
            key[k] = real[k] ? from_key[line * r.length + first + k * 32] : 0;
        }
        __syncthreads();
        radix_rank(key, real, r.shift, count, rank);
        __syncthreads();
        here = 0; /* from here on, a thread also represents a digit */
        for (int w = 0; w < RADIX_WARPS; w++) {
            unsigned n = count[w][threadIdx.x];
            count[w][threadIdx.x] = here;
            here += n;
        }
        start[threadIdx.x] = cuda_block_scan<cuda_sum>(here, &all) - here;
        shift_to[threadIdx.x] =
            starts[(line * RADIX_DIGITS + threadIdx.x) * r.tiles + tile] - start[threadIdx.x];
        __syncthreads();
        for (int k = 0; k < RADIX_EACH; k++) {
            unsigned digit = (unsigned)(key[k] >> r.shift) & (RADIX_DIGITS - 1);
            rank[k] += start[digit] + count[threadIdx.x / 32][digit];
            if (real[k]) item[rank[k]] = key[k];
        }
        __syncthreads();
        int64_t left = r.length - tile * RADIX_TILE;
        for (int k = 0; k < RADIX_EACH; k++) {
            int i = k * CUDA_BLOCK + threadIdx.x;
            if (i >= left) continue;
            K mine = (K)item[i];
            to[k] = shift_to[(unsigned)(mine >> r.shift) & (RADIX_DIGITS - 1)] + i;
            to_key[to[k]] = mine;
        }
        __syncthreads();
        for (int k = 0; k < RADIX_EACH; k++)
            if (real[k])
                item[rank[k]] = from_place ? (uint64_t)from_place[line * r.length + first + k * 32]
                                           : (uint64_t)(first + k * 32);
        __syncthreads();
        for (int k = 0; k < RADIX_EACH; k++) {
            int i = k * CUDA_BLOCK + threadIdx.x;
            if (i < left) to_place[to[k]] = (P)item[i];
        }
    }
}

template <class K, class P> static proa_status radix_sort(cuda_context *c, cuda_order *o)
{
    radix_pass r = {o->lines, o->length, (o->length + RADIX_TILE - 1) / RADIX_TILE, 0};
    int64_t n = o->lines * o->length, n_counts = o->lines * RADIX_DIGITS * r.tiles;
    K *keys = (K *)cuda_scratch(c, (size_t)n * sizeof(K));
    P *places = (P *)cuda_scratch(c, (size_t)n * sizeof(P));
    int64_t *counts = (int64_t *)cuda_scratch(c, (size_t)n_counts * sizeof *counts);
    proa_status s = keys && places && counts ? PROA_OK : cuda_host->error();
    unsigned blocks = cuda_blocks(o->lines * r.tiles, 1);
    for (; r.shift < o->bits && s == PROA_OK; r.shift += RADIX_BITS) {
        s = cuda_launch(c, blocks, CUDA_BLOCK, radix_count_kernel<K>, r, (K *)o->keys, counts);
        if (s == PROA_OK) s = cuda_scan(c, counts, n_counts);
        if (s == PROA_OK)
            s = cuda_launch(c, blocks, CUDA_BLOCK, (radix_move_kernel<K, P>), r, counts, (K *)o->keys, keys,
                            r.shift ? (P *)o->places : (P *)NULL, places);
        void *k = o->keys, *p = o->places;
        o->keys = keys, o->places = places;
        keys = (K *)k, places = (P *)p;
    }
    if (keys) cuda_scratch_free(c, keys);
    if (places) cuda_scratch_free(c, places);
    if (counts) cuda_scratch_free(c, counts);
    return s;
}

/* ---- orders ---------------------------------------------------------------------------- */

proa_status cuda_order_new(cuda_context *c, cuda_order *o, int64_t lines, int64_t length, int bits)
{
    size_t n = (size_t)lines * (size_t)length;
    *o = {lines, length, bits, bits > 32, length > (int64_t)UINT32_MAX, NULL, NULL};
    o->keys = cuda_scratch(c, n * (o->wide_keys ? 8 : 4));
    o->places = o->keys ? cuda_scratch(c, n * (o->wide_places ? 8 : 4)) : NULL;
    return o->places ? PROA_OK : cuda_host->error();
}

void cuda_order_free(cuda_context *c, cuda_order *o)
{
    if (o->keys) cuda_scratch_free(c, o->keys);
    if (o->places) cuda_scratch_free(c, o->places);
    o->keys = o->places = NULL;
}

proa_status cuda_sort(cuda_context *c, cuda_order *o)
{
    if (o->lines == 0 || o->length == 0) return PROA_OK;
    if (o->length <= SORT_SHORT)
        return o->wide_keys ? sort_short<uint64_t>(c, o) : sort_short<uint32_t>(c, o);
    if (o->wide_places)
        return o->wide_keys ? radix_sort<uint64_t, uint64_t>(c, o) : radix_sort<uint32_t, uint64_t>(c, o);
    return o->wide_keys ? radix_sort<uint64_t, uint32_t>(c, o) : radix_sort<uint32_t, uint32_t>(c, o);
}
