/* Division of a tensor's elements among the threads of batch norm's kernels. A thread visits vectors of V
 * elements with N channels (V of them where channels are last, else one), which stay the same all along. */
#ifndef PROA_OPS_NORM_CUDA_SHARE_H
#define PROA_OPS_NORM_CUDA_SHARE_H

#include "devices/cuda/rows.h"
#include "ops/norm/cuda/norm.h"

/* A thread loads SHARE_FLIGHT vectors before it uses one: four blocks on a multiprocessor have 64 KiB in
 * flight. It sums at most SHARE_MOST vectors, few enough for float32. */
enum { SHARE_WIDTH = 32, SHARE_FLIGHT = 4, SHARE_MOST = 64 };

/* A block has `width` threads (a power of two) for neighboring vectors, on `lines` lines of a slice. */
struct norm_share {
    norm_channels s;
    int width, lines;
    int64_t tiles;               /* of width · N channels */
    int64_t vectors, per;        /* vectors that a channel is in, and how many of its elements each holds */
    int64_t slices, each, items; /* a slice is `each` vectors; an item is a slice of a tile */
    /* elements of a channel in slice i */
    CUDA_BOTH_MEMBER int64_t elements(int64_t i) const
    {
        int64_t left = vectors - i * each;
        return (left < each ? left : each) * per;
    }
};

/* For about `blocks` blocks whose threads visit at least `least` vectors. It depends on the shape alone. */
static inline norm_share norm_share_of(const norm_channels &s, int v, int64_t blocks, int64_t least)
{
    int64_t n = s.last ? v : 1, per = v / n, across = (s.channels + n - 1) / n;
    norm_share h = {s, 1, 0, 0, s.images * s.pixels / per, per, 0, 0, 0};
    while (s.last && h.width < SHARE_WIDTH && h.width < across) h.width *= 2;
    h.lines = CUDA_BLOCK / h.width;
    h.tiles = (across + h.width - 1) / h.width;
    int64_t rows = (h.vectors + h.lines - 1) / h.lines, a_thread = rows * h.tiles / blocks + 1;
    if (a_thread < least) a_thread = least;
    if (a_thread > SHARE_MOST) a_thread = SHARE_MOST;
    h.each = a_thread * h.lines;
    h.slices = h.vectors ? (h.vectors + h.each - 1) / h.each : 1;
    h.items = h.tiles * h.slices;
    return h;
}

/* This thread's part of an item: `count` vectors, the next at element `at`; its first channel. */
template <int V, int N> struct norm_share_walk {
    int64_t channel, slice, at;
    int count;
    __device__ __forceinline__ norm_share_walk(const norm_share &h, int64_t item)
    {
        int line = (int)threadIdx.x / h.width, column = (int)threadIdx.x % h.width;
        slice = item;
        int64_t tile = cuda_split(slice, h.tiles), first = slice * h.each + line;
        int64_t end = (slice + 1) * h.each < h.vectors ? (slice + 1) * h.each : h.vectors;
        channel = (tile * h.width + column) * N;
        live = channel < h.s.channels;
        leads = live && line == 0;
        count = live && first < end ? (int)cuda_div(end - first + h.lines - 1, h.lines) : 0;
        position = rest = wrap = 0;
        plane = 1;
        if ((V > 1 && N == V) || h.s.last) {
            at = first * h.s.channels + channel;
            step = h.lines * h.s.channels;
            return;
        }
        int64_t image = first, hop = h.lines;
        plane = h.s.pixels >= V ? h.s.pixels / V : 1;
        position = cuda_split(image, plane);
        rest = cuda_split(hop, plane);
        at = (image * h.s.channels + channel) * h.s.pixels + position * V;
        step = hop * h.s.channels * h.s.pixels + rest * V;
        wrap = (h.s.channels - 1) * h.s.pixels;
    }
    /* Offset of the next vector. */
    __device__ __forceinline__ int64_t next()
    {
        int64_t now = at;
        at += step;
        if (V > 1 && N == V) return now; /* channels last */
        position += rest;
        if (position >= plane) position -= plane, at += wrap;
        return now;
    }
    bool live, leads; /* of the thread that writes an item's result */

  private:
    int64_t step, position, rest, plane, wrap;
};

/* Two sums of a slice of a channel: a mean and the squares about it, or Σ g and Σ g · (x − mean). */
struct norm_pair {
    double a, b;
    CUDA_MEMBER norm_pair operator+(norm_pair o) const { return {a + o.a, b + o.b}; }
};

/* The pairs of a block's threads, by channel, and their sums over the lines. The order is fixed. */
template <int N> struct norm_share_sums {
    double *a, *b;
    CUDA_MEMBER norm_share_sums()
    {
        __shared__ double all[2 * N * CUDA_BLOCK];
        a = all + threadIdx.x;
        b = a + N * CUDA_BLOCK;
        __syncthreads(); /* a thread may still read the sums of the item before */
    }
    CUDA_MEMBER void set(int k, norm_pair mine) { a[k * CUDA_BLOCK] = mine.a, b[k * CUDA_BLOCK] = mine.b; }
    /* in threads of line 0, behind sum() */
    CUDA_MEMBER norm_pair get(int k) const { return {a[k * CUDA_BLOCK], b[k * CUDA_BLOCK]}; }
    CUDA_MEMBER void sum(int width)
    {
        for (int half = CUDA_BLOCK / 2; half >= width; half /= 2) {
            __syncthreads();
            for (int k = 0; k < N && (int)threadIdx.x < half; k++) {
                a[k * CUDA_BLOCK] += a[k * CUDA_BLOCK + half];
                b[k * CUDA_BLOCK] += b[k * CUDA_BLOCK + half];
            }
        }
    }
};

/* Calls load(u, offset) for up to U vectors of a walk, then use(u, offset) for each of them, and so on to its
 * end. */
template <int U, class Walk, class Load, class Use> CUDA_FN void norm_share_visit(Walk &w, Load load, Use use)
{
    for (int left = w.count; left > 0; left -= U) {
        int64_t at[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            at[u] = w.next();
            if (u < left) load(u, at[u]);
        }
#pragma unroll
        for (int u = 0; u < U; u++)
            if (u < left) use(u, at[u]);
    }
}

#endif
