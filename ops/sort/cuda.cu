/* sort, argsort, topk, kthvalue, mode and searchsorted on a GPU. Lines are converted to integer keys and
 * sorted (devices/cuda/sort.h); topk and kthvalue of few elements out of long lines are a radix select
 * instead. */
#include "devices/cuda/sort.h"

/* x as [outer][length][inner]; lines run along the middle. */
struct sort_lines {
    const char *x;
    proa_dtype dtype;
    int64_t item, outer, length, inner;
    uint64_t flip; /* XOR mask that reverses the order of keys */
    CUDA_MEMBER const char *line(int64_t i) const
    {
        int64_t in = cuda_split(i, inner);
        return x + (i * length * inner + in) * item;
    }
    CUDA_MEMBER uint64_t key(const char *line, int64_t k) const
    {
        return cuda_key(dtype, line + k * inner * item) ^ flip;
    }
};

static sort_lines sort_lines_of(const proa_tensor *t, int64_t axis, bool descending)
{
    cuda_tensor x = cuda_look(t);
    sort_lines s = {x.data, x.dtype, cuda_item(x.dtype), 1, 1, 1, 0};
    int at = (int)(axis < 0 ? axis + x.ndim : axis);
    for (int i = 0; i < x.ndim; i++) *(i < at ? &s.outer : i == at ? &s.length : &s.inner) *= x.shape[i];
    if (descending) s.flip = UINT64_MAX >> (64 - cuda_key_bits(x.dtype));
    return s;
}

__global__ void sort_keys_kernel(sort_lines s, cuda_order o)
{
    for (CUDA_EACH(i, o.lines * o.length)) {
        int64_t line = i, k = cuda_split(line, o.length);
        o.put_key(i, s.key(s.line(line), k));
    }
}

/* Sorts all lines of x by key; the caller frees the order. */
static proa_status sort_all(cuda_context *c, const sort_lines &s, cuda_order *o)
{
    int64_t lines = s.outer * s.inner;
    proa_status status = cuda_order_new(c, o, lines, s.length, cuda_key_bits(s.dtype));
    if (status == PROA_OK)
        status = cuda_launch(c, cuda_blocks(lines * s.length), CUDA_BLOCK, sort_keys_kernel, s, *o);
    return status == PROA_OK ? cuda_sort(c, o) : status;
}

/* Part of each sorted line that is written: `take` elements from `skip` on, as [outer][take][inner]. */
struct sort_result {
    char *values; /* NULL: not wanted */
    int64_t *places;
    int64_t take, skip;
};

CUDA_FN void sort_put(const sort_lines &s, const sort_result &r, int64_t line, int64_t k, int64_t place)
{
    int64_t outer = line, inner = cuda_split(outer, s.inner), to = (outer * r.take + k) * s.inner + inner;
    r.places[to] = place;
    if (!r.values) return;
    const char *from = s.line(line) + place * s.inner * s.item;
    CUDA_SWITCH_UNIT(s.item, T, ((T *)(void *)r.values)[to] = *(const T *)(const void *)from;)
}

__global__ void sort_take_kernel(sort_lines s, cuda_order o, sort_result r)
{
    for (CUDA_EACH(i, o.lines * r.take)) {
        int64_t line = i, k = cuda_split(line, r.take);
        sort_put(s, r, line, k, o.place(line * o.length + r.skip + k));
    }
}

/* ---- few of a long line ------------------------------------------------------------------ */

enum { SELECT_MAX = 1024, SELECT_FROM = 4096 };

/* Radix select: the key at position `rank` of a sorted line, and how many keys are less: determined byte by
 * byte from the highest, by counting the keys that agree so far. Integer sums, the same in any order. */
static __device__ uint64_t select_key(const sort_lines &s, const char *line, int64_t rank, int bits,
                                      int64_t *less)
{
    __shared__ unsigned long long count[256];
    __shared__ int64_t found_below;
    __shared__ unsigned found;
    uint64_t prefix = 0, mask = 0;
    int64_t below = 0;
    for (int shift = bits - 8; shift >= 0; shift -= 8) {
        __syncthreads();
        count[threadIdx.x] = 0;
        __syncthreads();
        for (int64_t k = threadIdx.x; k < s.length; k += CUDA_BLOCK) {
            uint64_t key = s.key(line, k);
            if ((key & mask) == prefix) atomicAdd(&count[key >> shift & 255], 1ull);
        }
        __syncthreads();
        int64_t mine = (int64_t)count[threadIdx.x], all;
        int64_t before = below + cuda_block_scan<cuda_sum>(mine, &all) - mine;
        if (rank >= before && rank < before + mine) found = threadIdx.x, found_below = before;
        __syncthreads();
        prefix |= (uint64_t)found << shift;
        mask |= (uint64_t)255 << shift;
        below = found_below;
    }
    *less = below;
    return prefix;
}

/* One block per line: writes the keys below the last one wanted and, in order, as many equal to it as are
 * missing, with their indices, to `o`, whose lines have `want` entries. */
__global__ void select_kernel(sort_lines s, cuda_order o, int64_t *places)
{
    for (int64_t line = blockIdx.x; line < o.lines; line += gridDim.x) {
        const char *from = s.line(line);
        int64_t less, want = o.length, taken = 0;
        uint64_t last = select_key(s, from, want - 1, o.bits, &less);
        int64_t capacity = want - less, equal = 0; /* equal ones to take; seen */
        for (int64_t first = 0; first < s.length && taken < want; first += CUDA_BLOCK) {
            int64_t k = first + threadIdx.x;
            uint64_t key = k < s.length ? s.key(from, k) : UINT64_MAX;
            int64_t tie = k < s.length && key == last, ties, all;
            int64_t nth = equal + cuda_block_scan<cuda_sum>(tie, &ties) - tie;
            int64_t yes = k < s.length && (key < last || (tie && nth < capacity));
            int64_t at = taken + cuda_block_scan<cuda_sum>(yes, &all) - yes;
            if (yes) {
                o.put_key(line * want + at, key);
                places[line * want + at] = k;
            }
            equal += ties;
            taken += all;
        }
    }
}

/* Writes the sorted candidates: values, and their indices in the line that they were selected from. */
__global__ void select_take_kernel(sort_lines s, cuda_order o, const int64_t *places, sort_result r)
{
    for (CUDA_EACH(i, o.lines * r.take)) {
        int64_t line = i, k = cuda_split(line, r.take);
        sort_put(s, r, line, k, places[line * o.length + o.place(line * o.length + r.skip + k)]);
    }
}

static proa_status select_few(cuda_context *c, const sort_lines &s, const sort_result &r)
{
    cuda_order o;
    int64_t lines = s.outer * s.inner, want = r.skip + r.take;
    proa_status status = cuda_order_new(c, &o, lines, want, cuda_key_bits(s.dtype));
    int64_t *places = (int64_t *)cuda_scratch(c, (size_t)(lines * want) * sizeof *places);
    if (!places) status = cuda_host->error();
    if (status == PROA_OK)
        status = cuda_launch(c, cuda_blocks(lines, 1), CUDA_BLOCK, select_kernel, s, o, places);
    if (status == PROA_OK) status = cuda_sort(c, &o);
    if (status == PROA_OK)
        status = cuda_launch(c, cuda_blocks(lines * r.take), CUDA_BLOCK, select_take_kernel, s, o, places, r);
    if (places) cuda_scratch_free(c, places);
    cuda_order_free(c, &o);
    return status;
}

/* ---- the ops ----------------------------------------------------------------------------- */

static proa_status take_sorted(cuda_context *c, const sort_lines &s, sort_result r)
{
    cuda_order o;
    int64_t lines = s.outer * s.inner, want = r.skip + r.take;
    if (lines * s.length == 0 || r.take == 0) return PROA_OK;
    if (want <= SELECT_MAX && s.length >= SELECT_FROM) return select_few(c, s, r);
    proa_status status = sort_all(c, s, &o);
    if (status == PROA_OK)
        status = cuda_launch(c, cuda_blocks(lines * r.take), CUDA_BLOCK, sort_take_kernel, s, o, r);
    cuda_order_free(c, &o);
    return status;
}

static char *values_of(const proa_tensor *t) { return cuda_look(t).data; }
static int64_t *places_of(const proa_tensor *t) { return cuda_look(t).as<int64_t>(); }

CUDA_KERNEL(sort, true)
{
    sort_lines s = sort_lines_of(a->x, a->axis, a->descending);
    return take_sorted(c, s, {values_of(a->out), places_of(a->indices), s.length, 0});
}
CUDA_KERNEL(argsort, true)
{
    sort_lines s = sort_lines_of(a->x, a->axis, a->descending);
    return take_sorted(c, s, {NULL, places_of(a->out), s.length, 0});
}
CUDA_KERNEL(topk, true)
{
    int64_t k = a->k;
    cuda_ints(&a->k_tensor, 1, &k);
    return take_sorted(c, sort_lines_of(a->x, a->axis, a->largest),
                       {values_of(a->out), places_of(a->indices), k, 0});
}
CUDA_KERNEL(kthvalue, true)
{
    return take_sorted(c, sort_lines_of(a->x, a->axis, false),
                       {values_of(a->out), places_of(a->indices), 1, a->k - 1});
}

/* ---- mode -------------------------------------------------------------------------------- */

/* One block per line: the thread at each end of a run of equal keys searches the run's start. */
__global__ void mode_kernel(sort_lines s, cuda_order o, sort_result r)
{
    for (int64_t line = blockIdx.x; line < o.lines; line += gridDim.x) {
        int64_t first = line * o.length;
        cuda_indexed<int64_t> best = {0, 0}; /* the first of equally long runs has the least value */
        for (int64_t k = threadIdx.x; k < o.length; k += CUDA_BLOCK) {
            uint64_t key = o.key(first + k);
            if (k + 1 < o.length && o.key(first + k + 1) == key) continue;
            int64_t low = 0, high = k;
            while (low < high) {
                int64_t mid = low + (high - low) / 2;
                if (o.key(first + mid) < key) low = mid + 1;
                else high = mid;
            }
            best = cuda_first<cuda_largest>::join(best, {k - low + 1, k});
        }
        best = cuda_block_reduce<cuda_first<cuda_largest>>(best);
        if (threadIdx.x == 0) sort_put(s, r, line, 0, o.place(first + best.index));
    }
}

CUDA_KERNEL(mode, true)
{
    cuda_order o;
    sort_lines s = sort_lines_of(a->x, a->axis, false);
    sort_result r = {values_of(a->out), places_of(a->indices), 1, 0};
    if (s.outer * s.length * s.inner == 0) return PROA_OK;
    proa_status status = sort_all(c, s, &o);
    if (status == PROA_OK) status = cuda_launch(c, cuda_blocks(o.lines, 1), CUDA_BLOCK, mode_kernel, s, o, r);
    cuda_order_free(c, &o);
    return status;
}

/* ---- searchsorted ------------------------------------------------------------------------ */

struct search {
    const char *sequence, *values;
    char *out;
    proa_dtype dtype, to;
    int64_t item, n, row, count; /* row: values a line of the sequence; 0: there is one line */
    bool right;
};

__global__ void search_kernel(search s)
{
    for (CUDA_EACH(i, s.count)) {
        const char *line = s.sequence + (s.row ? cuda_div(i, s.row) * s.n * s.item : 0);
        uint64_t key = cuda_key(s.dtype, s.values + i * s.item);
        int64_t low = 0, high = s.n;
        while (low < high) {
            int64_t mid = low + (high - low) / 2;
            uint64_t there = cuda_key(s.dtype, line + mid * s.item);
            if (s.right ? there <= key : there < key) low = mid + 1;
            else high = mid;
        }
        if (s.to == PROA_I32) ((int32_t *)(void *)s.out)[i] = (int32_t)low;
        else ((int64_t *)(void *)s.out)[i] = low;
    }
}

CUDA_KERNEL(searchsorted, true)
{
    cuda_tensor sequence = cuda_look(a->sorted_sequence), values = cuda_look(a->values),
                out = cuda_look(a->out);
    int64_t n = sequence.dim(-1);
    if (a->out_int32 && n > INT32_MAX)
        return cuda_fail(PROA_ERR_OVERFLOW,
                         "searchsorted: sorted_sequence: is %s, too long for int32 results",
                         cuda_host->text(a->sorted_sequence));
    if (values.numel == 0) return PROA_OK;
    search s = {sequence.data,
                values.data,
                out.data,
                values.dtype,
                out.dtype,
                cuda_item(values.dtype),
                n,
                sequence.ndim > 1 ? values.dim(-1) : 0,
                values.numel,
                a->right};
    return cuda_launch(c, cuda_blocks(values.numel), CUDA_BLOCK, search_kernel, s);
}
