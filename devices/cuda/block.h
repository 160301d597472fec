/* Collectives of a warp and of a block: reductions, with or without the index of the winning element,
 * scans, the division of rows among them, and the reporting of errors that a kernel finds in element
 * values. Blocks are one-dimensional and consist of whole warps; values may be any trivially copyable
 * struct. Included by kernel.h. */
#ifndef PROA_CUDA_BLOCK_H
#define PROA_CUDA_BLOCK_H

#include "devices/cuda/kernel.h"

struct cuda_sum {
    template <class T> static __device__ __forceinline__ T join(T a, T b) { return a + b; }
};
struct cuda_max {
    template <class T> static __device__ __forceinline__ T join(T a, T b) { return a > b || a != a ? a : b; }
};
struct cuda_min {
    template <class T> static __device__ __forceinline__ T join(T a, T b) { return a < b || a != a ? a : b; }
};
struct cuda_prod {
    template <class T> static __device__ __forceinline__ T join(T a, T b) { return a * b; }
};

/* A value with its index, for reductions that return the index of the winner: cuda_first<Order> keeps the
 * value that comes first in that order (NaN before all others), and of equal values that of the lowest
 * index. */
template <class T> struct cuda_indexed {
    T value;
    int64_t index;
};
struct cuda_largest {
    template <class T> static __device__ __forceinline__ bool before(T a, T b) { return a > b; }
};
struct cuda_smallest {
    template <class T> static __device__ __forceinline__ bool before(T a, T b) { return a < b; }
};
template <class Order> struct cuda_first {
    template <class T>
    static __device__ __forceinline__ cuda_indexed<T> join(cuda_indexed<T> a, cuda_indexed<T> b)
    {
        bool a_nan = a.value != a.value, b_nan = b.value != b.value;
        if (a_nan != b_nan) return a_nan ? a : b;
        if (!a_nan && Order::before(a.value, b.value)) return a;
        if (!a_nan && Order::before(b.value, a.value)) return b;
        return a.index <= b.index ? a : b;
    }
};

/* Shuffles of any trivially copyable struct, word by word. */
template <bool WHOLE> struct cuda_words {
    typedef uint32_t word;
};
template <> struct cuda_words<true> {
    typedef uint64_t word;
};
template <class T, class F> CUDA_FN T cuda_shuffle(T v, F take)
{
    typedef typename cuda_words<sizeof(T) % 8 == 0>::word word;
    word w[(sizeof(T) + sizeof(word) - 1) / sizeof(word)] = {};
    memcpy(w, &v, sizeof v);
    for (unsigned i = 0; i < sizeof w / sizeof *w; i++) w[i] = take(w[i]);
    memcpy(&v, w, sizeof v);
    return v;
}
struct cuda_take_xor {
    int by;
    template <class W> __device__ __forceinline__ W operator()(W w) const
    {
        return __shfl_xor_sync(~0u, w, by);
    }
};
struct cuda_take_up {
    unsigned by;
    template <class W> __device__ __forceinline__ W operator()(W w) const
    {
        return __shfl_up_sync(~0u, w, by);
    }
};
template <class T> CUDA_FN T cuda_shuffle_xor(T v, int by) { return cuda_shuffle(v, cuda_take_xor{by}); }
template <class T> CUDA_FN T cuda_shuffle_up(T v, unsigned by) { return cuda_shuffle(v, cuda_take_up{by}); }

/* Reduces the values of a warp's 32 lanes, all of which must call; every lane gets the result. The tree is
 * fixed, so the bits are, too. */
template <class Op, class T> CUDA_FN T cuda_warp_reduce(T v)
{
    for (int by = warpSize / 2; by > 0; by /= 2) v = Op::join(v, cuda_shuffle_xor(v, by));
    return v;
}

/* Inclusive scan over a warp: lane i gets the reduction of lanes 0 to i. */
template <class Op, class T> CUDA_FN T cuda_warp_scan(T v)
{
    unsigned lane = threadIdx.x % warpSize;
    for (unsigned by = 1; by < warpSize; by *= 2) {
        T before = cuda_shuffle_up(v, by);
        if (lane >= by) v = Op::join(before, v);
    }
    return v;
}

/* Reduces the values of a block's threads (at most 1024), all of which must call; every thread gets the
 * result. */
template <class Op, class T> static __device__ T cuda_block_reduce(T v)
{
    __shared__ char memory[32 * sizeof(T)] __attribute__((aligned(16)));
    T *part = (T *)(void *)memory;
    unsigned warps = blockDim.x / warpSize;
    v = cuda_warp_reduce<Op>(v);
    if (warps == 1) return v;
    __syncthreads(); /* a thread may still read the result of the previous call */
    if (threadIdx.x % warpSize == 0) part[threadIdx.x / warpSize] = v;
    __syncthreads();
    v = part[0];
    for (unsigned w = 1; w < warps; w++) v = Op::join(v, part[w]);
    return v;
}

/* ---- rows: each is the work of a group of G threads, a warp or (G = CUDA_BLOCK) the whole block -------- */

/* for (CUDA_ROWS(G, row, rows)): the rows of this thread's group, in which it has index threadIdx.x % G. */
#define CUDA_ROWS(G, row, rows)                                           \
    int64_t row = ((int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x) / (G); \
    row < (rows);                                                         \
    row += (int64_t)gridDim.x * (CUDA_BLOCK / (G))

template <int G, class Op, class T> CUDA_FN T cuda_group_reduce(T v)
{
    return G == 32 ? cuda_warp_reduce<Op>(v) : cuda_block_reduce<Op>(v);
}

/* CUDA_SWITCH_ROWS(X, n, packs, G, V, body): body with the group for rows of n elements, and with how many of
 * them a thread takes at once: 1, or (packs: cuda_packs says so) 16 bytes. */
#define CUDA_SWITCH_ROWS(X, n, packs, G, V, ...)         \
    do {                                                 \
        if ((n) <= 1024 && !(packs)) {                   \
            enum { G = 32, V = 1 };                      \
            __VA_ARGS__                                  \
        } else if ((n) <= 1024) {                        \
            enum { G = 32, V = 16 / sizeof(X) };         \
            __VA_ARGS__                                  \
        } else if (!(packs)) {                           \
            enum { G = CUDA_BLOCK, V = 1 };              \
            __VA_ARGS__                                  \
        } else {                                         \
            enum { G = CUDA_BLOCK, V = 16 / sizeof(X) }; \
            __VA_ARGS__                                  \
        }                                                \
    } while (0)
#define CUDA_ROW_BLOCKS(G, rows) cuda_blocks((rows), CUDA_BLOCK / (G))

/* Inclusive scan over a block: thread i gets the reduction of threads 0 to i, and *total that of all. */
template <class Op, class T> static __device__ T cuda_block_scan(T v, T *total)
{
    __shared__ char memory[32 * sizeof(T)] __attribute__((aligned(16)));
    T *part = (T *)(void *)memory;
    unsigned warps = blockDim.x / warpSize, mine = threadIdx.x / warpSize;
    v = cuda_warp_scan<Op>(v);
    __syncthreads();
    if (threadIdx.x % warpSize == warpSize - 1) part[mine] = v;
    __syncthreads();
    T before = part[0];
    for (unsigned w = 1; w < mine; w++) before = Op::join(before, part[w]);
    if (mine) v = Op::join(before, v);
    T all = part[0];
    for (unsigned w = 1; w < warps; w++) all = Op::join(all, part[w]);
    *total = all;
    return v;
}

/* ---- errors that only the elements tell ------------------------------------------------ */

/* Place for a report about one argument of an op. The host makes it (cuda_reports) and owns the texts: a
 * literal of a kernel is in the memory of the GPU. */
struct cuda_report {
    cuda_fault *fault;
    const char *op, *argument;
};

/* Reports that entry `entry` is `value`, outside [first, last]; the host gets the error at its next
 * synchronization (the first report wins). The kernel continues and skips that entry. */
static __device__ void cuda_raise(const cuda_report &to, int64_t entry, int64_t value, int64_t first,
                                  int64_t last)
{
    cuda_fault *fault = to.fault;
    if (atomicCAS(&fault->raised, 0, 1) != 0) return;
    fault->op = to.op;
    fault->argument = to.argument;
    fault->entry = entry;
    fault->value = value;
    fault->first = first;
    fault->last = last;
}

#endif
