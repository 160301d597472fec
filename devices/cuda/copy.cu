/* Kernels of copies: strided copies, fills, and writes of a few bytes that are passed as a kernel argument.
 * Contiguous copies are the driver's. */
#include "kernel.h"

#include "devices/cuda/divisor.h"

/* ---- strided copies -------------------------------------------------------------------- */

/* Units that a thread reads before it writes the first of them. */
enum { COPY_EACH = 4 };

struct alignas(16) copy_bytes16 {
    uint64_t lo, hi;
};
template <class T> struct copy_word {
    typedef T type;
};
template <> struct copy_word<cuda_bytes16> {
    typedef copy_bytes16 type;
};

/* A strided copy as the host normalizes it: the last dim is a contiguous run of bytes on both sides, the
 * others are in the destination's order, and neighbors are merged where both sides walk them as one. */
struct copy_plan {
    char *dst;
    const char *src;
    int ndim;
    int64_t shape[PROA_MAX_DIMS + 1], to[PROA_MAX_DIMS + 1], from[PROA_MAX_DIMS + 1];
    int64_t bytes() const { return shape[ndim - 1]; }
};

/* The walk of a kernel over n < 2^31 units, or tiles. Dim 0 takes what the others leave. */
struct copy_walk {
    char *dst;
    const char *src;
    int ndim;
    uint32_t n;
    cuda_divisor shape[PROA_MAX_DIMS + 1];
    int64_t to[PROA_MAX_DIMS + 1], from[PROA_MAX_DIMS + 1];
};

template <class T> __global__ void strided_kernel(copy_walk w)
{
    uint32_t first = blockIdx.x * (CUDA_BLOCK * COPY_EACH) + threadIdx.x, left[COPY_EACH];
    int64_t to[COPY_EACH], from[COPY_EACH];
    T unit[COPY_EACH];
#pragma unroll
    for (int k = 0; k < COPY_EACH; k++) left[k] = first + k * CUDA_BLOCK, to[k] = from[k] = 0;
    for (int d = w.ndim - 1; d >= 0; d--) {
#pragma unroll
        for (int k = 0; k < COPY_EACH; k++) {
            uint32_t at = left[k];
            if (d) left[k] = w.shape[d].split(at, &at);
            to[k] += at * w.to[d];
            from[k] += at * w.from[d];
        }
    }
#pragma unroll
    for (int k = 0; k < COPY_EACH; k++)
        if (first + k * CUDA_BLOCK < w.n) unit[k] = *(const T *)(const void *)(w.src + from[k]);
#pragma unroll
    for (int k = 0; k < COPY_EACH; k++)
        if (first + k * CUDA_BLOCK < w.n) *(T *)(void *)(w.dst + to[k]) = unit[k];
}

/* Transposes tiles through shared memory. Units of T are contiguous along `across` in the source and along
 * `along` in the destination. Blocks go over outer dims, then tiles of `across`, then of `along`. */
struct copy_turn {
    copy_walk walk;
    cuda_divisor tiles_across, tiles_along;
    uint32_t across, along;
    int64_t to, from; /* strides in bytes: the destination's along `across`, the source's along `along` */
};

template <class T> __global__ void turn_kernel(copy_turn t)
{
    enum {
        SIDE = sizeof(T) <= 2 ? 64 : 32,
        PITCH = SIDE + (sizeof(T) < 4 ? 4 / sizeof(T) : 1),
        STEP = CUDA_BLOCK / SIDE, /* rows that a block reads at once */
        EACH = SIDE / STEP
    };
    __shared__ T tile[SIDE][PITCH]; /* padded: columns are in different banks */
    uint32_t i, k, rest = blockIdx.x;
    rest = t.tiles_along.split(rest, &k);
    rest = t.tiles_across.split(rest, &i);
    int64_t to = 0, from = 0;
    for (int d = t.walk.ndim - 1; d >= 0; d--) {
        uint32_t at = rest;
        if (d) rest = t.walk.shape[d].split(at, &at);
        to += at * t.walk.to[d];
        from += at * t.walk.from[d];
    }
    uint32_t lane = threadIdx.x % SIDE, row = threadIdx.x / SIDE;
    uint32_t across = i * SIDE + lane, along = k * SIDE + row;
    const char *src = t.walk.src + from + across * (int64_t)sizeof(T);
    T unit[EACH];
#pragma unroll
    for (int r = 0; r < EACH; r++)
        if (across < t.across && along + r * STEP < t.along)
            unit[r] = *(const T *)(const void *)(src + (along + r * STEP) * t.from);
#pragma unroll
    for (int r = 0; r < EACH; r++) tile[row + r * STEP][lane] = unit[r];
    __syncthreads();
    across = i * SIDE + row, along = k * SIDE + lane;
    char *dst = t.walk.dst + to + along * (int64_t)sizeof(T);
#pragma unroll
    for (int r = 0; r < EACH; r++)
        if (along < t.along && across + r * STEP < t.across)
            *(T *)(void *)(dst + (across + r * STEP) * t.to) = tile[lane][row + r * STEP];
}

static int64_t copy_size(int64_t stride) { return stride < 0 ? -stride : stride; }

/* False: there is nothing to copy. */
static bool copy_normalize(const proa_strided_copy *s, copy_plan *p)
{
    *p = copy_plan{s->dst, s->src};
    for (int d = 0; d < s->ndim; d++) {
        if (s->shape[d] == 0) return false;
        if (s->shape[d] == 1) continue;
        int at = p->ndim++;
        for (; at > 0 && copy_size(p->to[at - 1]) < copy_size(s->to[d]); at--)
            p->shape[at] = p->shape[at - 1], p->to[at] = p->to[at - 1], p->from[at] = p->from[at - 1];
        p->shape[at] = s->shape[d], p->to[at] = s->to[d], p->from[at] = s->from[d];
    }
    p->shape[p->ndim] = (int64_t)s->item, p->to[p->ndim] = p->from[p->ndim] = 1;
    int n = 0;
    for (int d = 1; d <= p->ndim; d++) {
        bool joins = p->to[n] == p->to[d] * p->shape[d] && p->from[n] == p->from[d] * p->shape[d];
        int64_t before = joins ? p->shape[n] : 1;
        if (!joins) n++;
        p->shape[n] = before * p->shape[d], p->to[n] = p->to[d], p->from[n] = p->from[d];
    }
    p->ndim = n + 1;
    return true;
}

/* The largest unit, up to 16 bytes, in which every run can be moved. */
static int64_t copy_unit(const copy_plan *p)
{
    int64_t unit = cuda_unit(p->bytes(), p->dst, p->src);
    for (int d = 0; d < p->ndim - 1; d++)
        while (p->to[d] % unit || p->from[d] % unit) unit /= 2;
    return unit;
}

static copy_walk copy_walk_of(const copy_plan *p)
{
    copy_walk w = {p->dst, p->src, p->ndim};
    for (int d = 0; d < p->ndim; d++) {
        if (d) w.shape[d] = cuda_divisor_of(p->shape[d]);
        w.to[d] = p->to[d], w.from[d] = p->from[d];
    }
    return w;
}

/* Runs of one unit whose neighbors in the source are those of another dim, `across`: the copy is a transpose
 * of tiles. False: none, or a dim is too short for it. */
static bool copy_turns(const copy_plan *p, int64_t unit, int *across)
{
    const int64_t least = 16;
    int along = p->ndim - 2;
    if (along < 1 || p->bytes() != unit || p->to[along] != unit || p->shape[along] < least) return false;
    for (int d = 0; d < along; d++) {
        *across = d;
        if (p->from[d] == unit && p->shape[d] >= least) return true;
    }
    return false;
}

template <class T> static proa_status turn(cuda_context *c, const copy_plan *p, int across)
{
    const int64_t side = sizeof(T) <= 2 ? 64 : 32;
    int along = p->ndim - 2;
    copy_plan outer = *p;
    outer.ndim = 0;
    int64_t i = (p->shape[across] + side - 1) / side, k = (p->shape[along] + side - 1) / side, n = i * k;
    for (int d = 0; d < along; d++) {
        if (d == across) continue;
        n *= outer.shape[outer.ndim] = p->shape[d];
        outer.to[outer.ndim] = p->to[d], outer.from[outer.ndim++] = p->from[d];
    }
    copy_turn t = {copy_walk_of(&outer), cuda_divisor_of(i), cuda_divisor_of(k)};
    t.across = (uint32_t)p->shape[across], t.along = (uint32_t)p->shape[along];
    t.to = p->to[across], t.from = p->from[along];
    return cuda_launch(c, (unsigned)n, CUDA_BLOCK, turn_kernel<T>, t);
}

template <class T> static proa_status strided(cuda_context *c, const copy_plan *p, int64_t n)
{
    typedef typename copy_word<T>::type word;
    copy_plan units = *p;
    int last = p->ndim - 1, across;
    if (copy_turns(p, (int64_t)sizeof(T), &across)) return turn<word>(c, p, across);
    units.shape[last] /= (int64_t)sizeof(T);
    units.to[last] = units.from[last] = (int64_t)sizeof(T);
    if (units.shape[last] == 1) units.ndim--;
    copy_walk w = copy_walk_of(&units);
    w.n = (uint32_t)n;
    const int64_t each = CUDA_BLOCK * COPY_EACH;
    return cuda_launch(c, (unsigned)((n + each - 1) / each), CUDA_BLOCK, strided_kernel<word>, w);
}

static proa_status copy_run(cuda_context *c, const copy_plan *p)
{
    int64_t unit = copy_unit(p), n = p->bytes() / unit;
    for (int d = 0; d < p->ndim - 1; d++) n *= p->shape[d];
    if (n >> 31) { /* kernels count in 32 bits: two halves of the outermost dim */
        copy_plan half = *p, rest = *p;
        int64_t first = half.shape[0] = p->ndim > 1 ? p->shape[0] / 2 : p->shape[0] / 2 / unit * unit;
        rest.shape[0] -= first;
        rest.dst += first * p->to[0];
        rest.src += first * p->from[0];
        PROA_TRY(copy_run(c, &half));
        return copy_run(c, &rest);
    }
    CUDA_SWITCH_UNIT(unit, T, return strided<T>(c, p, n);)
}

proa_status cuda_copy_strided(cuda_context *c, const proa_strided_copy *s)
{
    copy_plan p;
    if (!copy_normalize(s, &p)) return PROA_OK;
    c->strided_copies++;
    return copy_run(c, &p);
}

/* ---- fills and small writes ------------------------------------------------------------ */

/* Sixteen bytes at once, then what is left of n elements. */
template <class T> struct fill_pattern {
    copy_bytes16 all;
    T one;
};
template <class T> __global__ void fill_kernel(char *to, fill_pattern<T> value, int64_t n, int64_t packs)
{
    int64_t done = packs * (int64_t)(16 / sizeof(T));
#pragma unroll 1
    for (CUDA_EACH(i, packs)) ((copy_bytes16 *)(void *)to)[i] = value.all;
#pragma unroll 1
    for (CUDA_EACH(i, n - done)) ((T *)(void *)to)[done + i] = value.one;
}

template <class T> static proa_status fill(cuda_context *c, char *to, const void *value, int64_t n)
{
    fill_pattern<T> pattern;
    memcpy(&pattern.one, value, sizeof(T));
    for (size_t i = 0; i < 16; i += sizeof(T)) memcpy((char *)&pattern.all + i, value, sizeof(T));
    if (n == 0) return PROA_OK;
    int64_t packs = (uintptr_t)to % 16 ? 0 : n / (int64_t)(16 / sizeof(T));
    return cuda_launch(c, cuda_blocks(packs ? packs : n), CUDA_BLOCK, fill_kernel<T>, to, pattern, n, packs);
}

proa_status cuda_fill(cuda_context *c, void *to, const void *value, size_t item, int64_t n)
{
    CUDA_SWITCH_UNIT(item, T, return fill<T>(c, (char *)to, value, n);)
}

__global__ void write_small_kernel(char *to, cuda_small from, unsigned bytes)
{
    if (threadIdx.x < bytes) to[threadIdx.x] = from.at[threadIdx.x];
}

proa_status cuda_write_small(cuda_context *c, void *to, const void *from, size_t bytes)
{
    cuda_small small = {};
    char *at = (char *)to;
    unsigned n = (unsigned)bytes;
    if (n == 0) return PROA_OK;
    memcpy(&small, from, bytes);
    return cuda_launch(c, 1, (unsigned)sizeof small, write_small_kernel, at, small, n);
}
