/* Lists of tensors that one launch works on. The tensors' addresses travel as kernel arguments, so that a
 * step over hundreds of parameters neither allocates nor copies; each tensor is cut into chunks by its size
 * alone. C++; uses kernel.h. */
#ifndef PROA_CUDA_LISTS_H
#define PROA_CUDA_LISTS_H

#include "devices/cuda/kernel.h"

/* Tensors per launch: with six addresses each, the list stays below the 4 KiB of kernel arguments that every
 * GPU takes. */
constexpr int CUDA_LIST = 32, CUDA_CHUNK = 4096, CUDA_FOUR = 4;

/* Entry i of list k is at[k][i] (NULL: the list is empty). All entries with index i have numel[i] elements,
 * contiguous in one order: channels-last if every entry with that many elements is. */
template <int N> struct cuda_list {
    int count, first; /* `first`: index of entry 0 in the op's lists */
    int64_t numel[CUDA_LIST], chunk_of[CUDA_LIST + 1];
    char *at[N][CUDA_LIST];
    uint8_t dtype[N][CUDA_LIST];
    bool aligned[CUDA_LIST]; /* four elements may be read and written at once */
    __host__ __device__ int64_t chunks() const { return chunk_of[count]; }
};

/* Tensor of a chunk, and the chunk's range of elements. */
template <int N> struct cuda_piece {
    int i;
    int64_t begin, end;
    static __device__ __forceinline__ cuda_piece of(const cuda_list<N> &l, int64_t chunk)
    {
        int low = 0, high = l.count;
        while (high - low > 1) {
            int mid = (low + high) / 2;
            if (l.chunk_of[mid] <= chunk) low = mid;
            else high = mid;
        }
        int64_t begin = (chunk - l.chunk_of[low]) * CUDA_CHUNK, end = begin + CUDA_CHUNK;
        return {low, begin, end < l.numel[low] ? end : l.numel[low]};
    }
};

/* Appends entry `index` of the lists. */
template <int N> static void cuda_list_add(cuda_list<N> *l, const proa_tensors *const *lists, int64_t index)
{
    int i = l->count++;
    cuda_tensor t[N] = {};
    bool last = true;
    for (int k = 0; k < N; k++) {
        if (!lists[k] || lists[k]->count == 0) continue;
        t[k] = cuda_look(lists[k]->at[index]);
        if (t[k].ndim == t[0].ndim && t[k].numel == t[0].numel) last = last && t[k].channels_last;
    }
    l->aligned[i] = true;
    for (int k = 0; k < N; k++) {
        l->at[k][i] = NULL;
        l->dtype[k][i] = 0;
        if (!lists[k] || lists[k]->count == 0) continue;
        l->at[k][i] = last && t[k].channels_last ? t[k].last : t[k].data;
        l->dtype[k][i] = (uint8_t)t[k].dtype;
        l->aligned[i] &= (uintptr_t)l->at[k][i] % (uintptr_t)(CUDA_FOUR * cuda_item(t[k].dtype)) == 0;
    }
    l->numel[i] = t[0].numel;
    l->chunk_of[0] = 0;
    l->chunk_of[i + 1] = l->chunk_of[i] + (l->numel[i] + CUDA_CHUNK - 1) / CUDA_CHUNK;
}

/* Before the entries of all lists but number `like` are updated: brings entries of the same index into the
 * layout of list `like`, or makes them contiguous. A gradient thus takes its parameter's layout once, not in
 * every step. */
template <int N>
static proa_status cuda_lists_alike(cuda_context *c, const proa_tensors *const (&lists)[N], int like)
{
    for (int64_t i = 0; i < lists[0]->count; i++) {
        proa_tensor *changed[N];
        cuda_tensor model = cuda_look(lists[like]->at[i]);
        bool any = model.channels_last;
        int n = 0;
        for (int k = 0; k < N; k++) {
            if (!lists[k] || lists[k]->count == 0 || (k == like && N > 1)) continue;
            cuda_tensor t = cuda_look(lists[k]->at[i]);
            if (t.ndim != model.ndim || t.numel != model.numel) continue;
            any = any || t.channels_last;
            changed[n++] = lists[k]->at[i];
        }
        if (any) PROA_TRY(cuda_host->match_layout(changed, n, lists[like]->at[i], !c->recording));
    }
    return PROA_OK;
}

/* launch(list) for all entries of the lists, the first of which is never empty, a launch's worth at a time;
 * entries that `leave` (index) picks are left out. */
template <int N, class Leave, class Launch>
static proa_status cuda_each_list(const proa_tensors *const (&lists)[N], Leave leave, Launch launch)
{
    cuda_list<N> l;
    l.count = 0;
    for (int64_t i = 0; i < lists[0]->count; i++) {
        if (!leave(i) && cuda_look(lists[0]->at[i]).numel > 0) {
            if (l.count == 0) l.first = (int)i;
            cuda_list_add<N>(&l, lists, i);
        }
        if (l.count == 0 || (l.count < CUDA_LIST && i + 1 < lists[0]->count)) continue;
        PROA_TRY(launch(l));
        l.count = 0;
    }
    return PROA_OK;
}
static inline bool cuda_leave_none(int64_t) { return false; }

/* n ≤ 4 neighboring elements of a floating dtype as they are in memory, the rest 0. A thread reads all its
 * operands before it asks for values: a conversion waits for what it converts. */
template <class T> struct cuda_some {
    enum { WORDS = sizeof(T) }; /* of four numbers */
    uint32_t w[WORDS];
    proa_dtype as;

    static CUDA_MEMBER cuda_some of(const T *values)
    {
        cuda_some s;
        memcpy(s.w, values, sizeof s.w);
        s.as = (proa_dtype)cuda_dtype_of<T>::value;
        return s;
    }
    template <int K> CUDA_MEMBER void take(const char *p)
    {
        cuda_pack<uint32_t, K> all = *(const cuda_pack<uint32_t, K> *)(const void *)p;
        for (int k = 0; k < K; k++) w[k] = all.at[k];
    }
    /* Elements i to i + n − 1 at p; with n = 4, i and p are aligned to four elements. */
    static CUDA_MEMBER cuda_some read(const char *p, proa_dtype d, int64_t i, int n)
    {
        cuda_some s = {};
        s.as = d;
        if (n < CUDA_FOUR || (d == PROA_F64 && sizeof(T) < sizeof(double))) {
            T each[CUDA_FOUR];
            for (int k = 0; k < CUDA_FOUR; k++)
                each[k] = k < n ? cuda_load<T>(p + (i + k) * (d == PROA_F64   ? 8
                                                              : d == PROA_F32 ? 4
                                                                              : 2),
                                               d)
                                : (T)0;
            return of(each);
        }
        if (d == PROA_F32) s.template take<4>(p + i * 4);
        else if (d == PROA_F64) s.template take<WORDS>(p + i * 8);
        else s.template take<2>(p + i * 2);
        return s;
    }
    template <class X> CUDA_MEMBER T half(int k) const
    {
        return (T)cuda_float(X{(uint16_t)(w[k / 2] >> 16 * (k % 2))});
    }
    CUDA_MEMBER double whole(int k) const
    {
        uint64_t bits = w[2 * k % WORDS] | (uint64_t)w[(2 * k + 1) % WORDS] << 32;
        double v;
        memcpy(&v, &bits, sizeof v);
        return v;
    }
    CUDA_MEMBER void values(T *to) const
    {
        for (int k = 0; k < CUDA_FOUR; k++) {
            if (as == PROA_F32) to[k] = (T)cuda_bits_f32(w[k]);
            else if (as == PROA_F16) to[k] = half<cuda_f16>(k);
            else if (as == PROA_BF16) to[k] = half<cuda_bf16>(k);
            else if (sizeof(T) == sizeof(double)) to[k] = (T)whole(k);
        }
    }
};

/* Reads and writes n ≤ 4 elements. Loops over them go to CUDA_FOUR and skip what is behind n, so that they
 * stay in registers. */
template <class T> CUDA_FN void cuda_some_read(const char *p, proa_dtype d, int64_t i, int n, T *to)
{
    cuda_some<T>::read(p, d, i, n).values(to);
}
template <class T, class S> CUDA_FN void cuda_four_write(char *p, int64_t i, const T *from)
{
    cuda_put<CUDA_FOUR>((S *)(void *)p + i, from);
}
template <class T> CUDA_FN void cuda_some_write(char *p, proa_dtype d, int64_t i, int n, const T *from)
{
    if (n < CUDA_FOUR) {
        for (int k = 0; k < CUDA_FOUR; k++)
            if (k < n) cuda_store<T>(p + (i + k) * (d == PROA_F64 ? 8 : d == PROA_F32 ? 4 : 2), d, from[k]);
        return;
    }
    switch (d) {
    case PROA_F16: return cuda_four_write<T, cuda_f16>(p, i, from);
    case PROA_BF16: return cuda_four_write<T, cuda_bf16>(p, i, from);
    case PROA_F32: return cuda_four_write<T, float>(p, i, from);
    default: return cuda_four_write<T, double>(p, i, from);
    }
}

/* for (CUDA_PIECES(i, n, piece, aligned)): the thread's share of a piece, n elements from i on: four at once
 * where the tensor is aligned, else one. */
#define CUDA_PIECES(i, n, piece, aligned)                                                            \
    int64_t i = (piece).begin + threadIdx.x * ((aligned) ? (int64_t)CUDA_FOUR : 1), n = 0;           \
    n = !(aligned) ? 1 : (piece).end - i < CUDA_FOUR ? (piece).end - i : CUDA_FOUR, i < (piece).end; \
    i += blockDim.x * ((aligned) ? (int64_t)CUDA_FOUR : 1)

#endif
