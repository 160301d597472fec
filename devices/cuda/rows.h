/* Rows of any length and alignment for kernels with a group of threads a row: held in registers, or read in
 * vectors of 16 bytes with single elements before the first and behind the last. Uses kernel.h. */
#ifndef PROA_CUDA_ROWS_H
#define PROA_CUDA_ROWS_H

#include "devices/cuda/approximate.h"
#include "devices/cuda/kernel.h"

/* e^x. For results in halves the instruction alone, whose relative error is below 2^−20. */
template <class X> struct cuda_exp {
    template <class A> static CUDA_MEMBER A of(A x) { return exp(x); }
};
struct cuda_exp_short {
    static CUDA_MEMBER float of(float x) { return cuda_approximate_exp2(x * 1.4426950408889634f); }
};
template <> struct cuda_exp<cuda_f16> : cuda_exp_short {
};
template <> struct cuda_exp<cuda_bf16> : cuda_exp_short {
};

/* cuda_put as one store where that is of 16 bytes: the compiler may split the store of a struct. */
template <int V, class A, class X> CUDA_FN void cuda_put_whole(X *p, const A *from)
{
#if !defined(CUDA_EMULATED)
    if constexpr (V * sizeof(X) == 16) {
        cuda_pack<X, V> out;
        uint32_t w[4];
        for (int k = 0; k < V; k++) out.at[k] = cuda_cast<X>(from[k]);
        memcpy(w, &out, sizeof w);
        asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(w[0]), "r"(w[1]), "r"(w[2]),
                     "r"(w[3])
                     : "memory");
        return;
    }
#endif
    cuda_put<V>(p, from);
}

/* A group of G threads with K vectors of V elements each; blocks have THREADS. RESIDENT of them fit a
 * multiprocessor at a time where a group holds a row in float32. */
template <int THREADS_A_ROW, int WIDTH, int COUNT> struct cuda_group {
    enum {
        G = THREADS_A_ROW,
        V = WIDTH,
        K = COUNT,
        THREADS = G < CUDA_BLOCK ? (int)CUDA_BLOCK : G,
        RESIDENT = G > CUDA_BLOCK ? 1
                   : K *V <= 16   ? 4
                   : V > 1        ? 3
                                  : 2
    };
    static unsigned blocks(int64_t rows) { return cuda_blocks(rows, THREADS / G); }
    /* cuda_group_reduce with loops of known lengths */
    template <class Op, class T> static CUDA_MEMBER T reduce(T v)
    {
#pragma unroll
        for (int by = 16; by > 0; by /= 2) v = Op::join(v, cuda_shuffle_xor(v, by));
        if constexpr (G > 32) {
            __shared__ char memory[G / 32 * sizeof(T)] __attribute__((aligned(16)));
            T *part = (T *)(void *)memory;
            __syncthreads(); /* a thread may still read the result of the previous call */
            if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
            __syncthreads();
            v = part[0];
#pragma unroll
            for (int w = 1; w < G / 32; w++) v = Op::join(v, part[w]);
        }
        return v;
    }
    static CUDA_MEMBER int thread() { return (int)threadIdx.x % G; }
};
/* for (CUDA_GROUPS(T, row, rows)): the rows of this thread's group. */
#define CUDA_GROUPS(T, row, rows)                                                 \
    int64_t row = (int64_t)blockIdx.x * (T::THREADS / T::G) + threadIdx.x / T::G; \
    row < (rows);                                                                 \
    row += (int64_t)gridDim.x * (T::THREADS / T::G)

/* launch(group) with a group that visits rows of n elements of X; alike: cuda_alike says so of every tensor.
 * SMALL: warps for short rows. TWICE: rows are read again, so there are few long ones at a time, which caches
 * hold. */
template <class X, bool SMALL, bool TWICE, class F>
static proa_status cuda_visit(int64_t n, bool alike, F launch)
{
    enum { V = 16 / sizeof(X) };
    if constexpr (SMALL)
        if (n <= 1024) return alike ? launch(cuda_group<32, V, 4>()) : launch(cuda_group<32, 1, 4>());
    if (!alike) return launch(cuda_group<256, 1, 4>());
    if constexpr (TWICE)
        if (n > 32768) return launch(cuda_group<1024, V, 4>());
    return launch(cuda_group<256, V, 4>());
}
/* held(group) with the group that holds a row, up to E elements a thread and MOST threads; visit(group) where
 * none does. packs: cuda_packs says so of every tensor. */
template <class X, int MOST, class Held, class Visit>
static proa_status cuda_hold(int64_t n, bool packs, bool alike, Held held, Visit visit)
{
    enum { V = 16 / sizeof(X), E = sizeof(X) == 8 ? 16 : 32 };
    if (!packs && n <= 32 * 4) return held(cuda_group<32, 1, 4>());
    if (!packs && n <= 32 * E) return held(cuda_group<32, 1, E>());
    if (packs && n <= 32 * 8) return held(cuda_group<32, V, 8 / V>());
    if (packs && n <= 32 * 16) return held(cuda_group<32, V, 16 / V>());
    if (packs && n <= 32 * E) return held(cuda_group<32, V, E / V>());
    if (packs && n <= 256 * E) return held(cuda_group<256, V, E / V>());
    if constexpr (MOST > 256)
        if (packs && n <= MOST * E) return held(cuda_group<MOST, V, E / V>());
    return cuda_visit<X, false, true>(n, alike, visit);
}
/* Whether elements of the same index are at the same offset from a multiple of 16 bytes. */
static inline bool cuda_alike(const void *a, const void *b, const void *d)
{
    return (((uintptr_t)a ^ (uintptr_t)b) | ((uintptr_t)a ^ (uintptr_t)d)) % 16 == 0;
}

/* A row in the registers of group T: v[k][j] is element index(k) + j. */
template <class A, class T> struct cuda_held {
    A v[T::K][T::V];
    static CUDA_MEMBER int index(int k) { return (k * T::G + T::thread()) * T::V; }
    template <class X> CUDA_MEMBER void load(const X *row, int n, A absent)
    {
        cuda_pack<X, T::V> in[T::K];
#pragma unroll
        for (int k = 0; k < T::K; k++)
            if (index(k) < n) in[k] = *(const cuda_pack<X, T::V> *)(const void *)(row + index(k));
#pragma unroll
        for (int k = 0; k < T::K; k++)
#pragma unroll
            for (int j = 0; j < T::V; j++) v[k][j] = index(k) < n ? cuda_cast<A>(in[k].at[j]) : absent;
    }
    template <class X> CUDA_MEMBER void store(X *row, int n) const
    {
#pragma unroll
        for (int k = 0; k < T::K; k++)
            if (index(k) < n) cuda_put_whole<T::V>(row + index(k), v[k]);
    }
    /* use(v) for every element */
    template <class F> CUDA_MEMBER void each(F use)
    {
#pragma unroll
        for (int k = 0; k < T::K; k++)
#pragma unroll
            for (int j = 0; j < T::V; j++) use(v[k][j]);
    }
};

template <int W> struct cuda_width {
    enum { value = W };
};
/* use(cuda_width<W>(), v, i) for the elements i to i + W − 1 of a row of n, as v[0] ... v[W − 1]; STORE: the
 * values are then stored to `to`. T::K vectors are loaded before one is used; backward: from its end. */
template <bool STORE, class T, class A, class X, class F>
CUDA_FN void cuda_row(const X *from, X *to, int64_t n, bool backward, F use)
{
    enum { G = T::G, V = T::V, K = T::K };
    int64_t head = V > 1 ? (int64_t)((16 - (uintptr_t)from % 16) % 16 / sizeof(X)) : 0;
    if (head > n) head = n;
    int64_t vectors = (n - head) / V, edges = n - vectors * V;
    for (int64_t first = T::thread(); first < vectors; first += K * G) {
        cuda_pack<X, V> in[K];
#pragma unroll
        for (int k = 0; k < K; k++) {
            int64_t j = backward ? vectors - 1 - first - k * G : first + k * G;
            if (first + k * G < vectors)
                in[k] = *(const cuda_pack<X, V> *)(const void *)(from + head + j * V);
        }
#pragma unroll
        for (int k = 0; k < K; k++) {
            int64_t j = backward ? vectors - 1 - first - k * G : first + k * G, i = head + j * V;
            if (first + k * G >= vectors) continue;
            A v[V];
            for (int e = 0; e < V; e++) v[e] = cuda_cast<A>(in[k].at[e]);
            use(cuda_width<V>(), v, i);
            if (STORE) cuda_put_whole<V>(to + i, v);
        }
    }
    for (int64_t e = T::thread(); e < edges; e += G) {
        int64_t i = e < head ? e : e + vectors * V;
        A v = cuda_cast<A>(from[i]);
        use(cuda_width<1>(), &v, i);
        if (STORE) to[i] = cuda_cast<X>(v);
    }
}

/* A row's largest element and Σ e^(x − it), in one pass (Milakov and Gimelshein, 2018). */
template <class T, class A, class X> CUDA_FN void cuda_row_sum(const X *row, int64_t n, A *largest, A *total)
{
    A top = (A)-INFINITY, sum = 0;
    cuda_row<false, T, A>(row, (X *)NULL, n, false, [&](auto width, A *v, int64_t) {
        A higher = top;
        for (int k = 0; k < decltype(width)::value; k++) higher = cuda_max::join(higher, v[k]);
        if (higher == (A)-INFINITY) return;
        if (higher != top) sum *= cuda_exp<X>::of(top - higher);
        top = higher;
        for (int k = 0; k < decltype(width)::value; k++) sum += cuda_exp<X>::of(v[k] - top);
    });
    *largest = T::template reduce<cuda_max>(top);
    *total = T::template reduce<cuda_sum>(top == *largest ? sum : sum * cuda_exp<X>::of(top - *largest));
}
/* The same of a held row; REPLACE: its elements become e^(x − largest). */
template <bool REPLACE, class X, class T, class A>
CUDA_FN void cuda_held_sum(cuda_held<A, T> &held, A *largest, A *total)
{
    A top = (A)-INFINITY, sum = 0;
    held.each([&](A &v) { top = fmax(top, v); });
    *largest = top = T::template reduce<cuda_max>(top);
    held.each([&](A &v) {
        A e = cuda_exp<X>::of(v - top);
        sum += e;
        if (REPLACE) v = e;
    });
    *total = T::template reduce<cuda_sum>(sum);
}

#endif
