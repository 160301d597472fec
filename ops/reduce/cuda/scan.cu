/* GPU kernels of cumsum, cumprod, cummax, cummin, logcumsumexp, argmax and argmin. A scan combines states
 * with an associative operator: long lines are cut into chunks, and the chunks' states are scanned first. The
 * cuts depend on the shape alone, so results are bitwise reproducible. */
#include "devices/cuda/kernel.h"

/* x as [outer][length][inner]; lines run along the middle, from its end if `reverse`. */
struct scan_lines {
    int64_t outer, length, inner;
    bool reverse;
    CUDA_BOTH_MEMBER int64_t count() const { return outer * inner; }
    CUDA_MEMBER int64_t at(int64_t line, int64_t k) const
    {
        int64_t in = cuda_split(line, inner);
        return (line * length + (reverse ? length - 1 - k : k)) * inner + in;
    }
};

static scan_lines scan_lines_of(const proa_tensor *t, int64_t axis, bool flat, bool reverse)
{
    cuda_tensor x = cuda_look(t);
    scan_lines l = {1, flat ? x.numel : 1, 1, reverse};
    int at = (int)(axis < 0 ? axis + x.ndim : axis);
    for (int i = 0; i < x.ndim && !flat; i++)
        *(i < at ? &l.outer : i == at ? &l.length : &l.inner) *= x.shape[i];
    return l;
}

/* ---- scans ------------------------------------------------------------------------------- */

enum {
    SCAN_EACH = 4,
    SCAN_TILE = CUDA_BLOCK * SCAN_EACH,
    SCAN_CHUNK = 16 * SCAN_TILE,
    SCAN_SHORT = 64,
    SCAN_MANY = 4096
};

/* F: S, a state; start(), which joins to nothing; load(element, k), the state of entry k of a line alone;
 * F::join(earlier, later); put(element, before, after). */
template <class F> __global__ void scan_threads_kernel(F f, scan_lines l)
{
    for (CUDA_EACH(line, l.count())) {
        typename F::S run = f.start();
        for (int64_t k = 0; k < l.length; k++) {
            int64_t element = l.at(line, k);
            typename F::S after = F::join(run, f.load(element, k));
            f.put(element, run, after);
            run = after;
        }
    }
}

/* The state of each chunk of each line. */
template <class F> __global__ void scan_chunks_kernel(F f, scan_lines l, int64_t chunks, typename F::S *chunk)
{
    for (int64_t b = blockIdx.x; b < l.count() * chunks; b += gridDim.x) {
        int64_t line = b / chunks, first = b % chunks * SCAN_CHUNK;
        int64_t end = first + SCAN_CHUNK < l.length ? first + SCAN_CHUNK : l.length;
        typename F::S run = f.start();
        for (; first < end; first += SCAN_TILE) {
            typename F::S mine = f.start(), all;
            int64_t k = first + threadIdx.x * SCAN_EACH;
            for (int e = 0; e < SCAN_EACH && k + e < end; e++)
                mine = F::join(mine, f.load(l.at(line, k + e), k + e));
            cuda_block_scan<F>(mine, &all);
            run = F::join(run, all);
        }
        if (threadIdx.x == 0) chunk[b] = run;
    }
}

/* One block per line: replaces each chunk's state by the state of all chunks up to it. */
template <class F>
__global__ void scan_states_kernel(F f, int64_t lines, int64_t chunks, typename F::S *chunk)
{
    for (int64_t line = blockIdx.x; line < lines; line += gridDim.x) {
        typename F::S run = f.start(), all;
        for (int64_t first = 0; first < chunks; first += CUDA_BLOCK) {
            int64_t i = first + threadIdx.x;
            typename F::S upto = cuda_block_scan<F>(i < chunks ? chunk[line * chunks + i] : f.start(), &all);
            if (i < chunks) chunk[line * chunks + i] = F::join(run, upto);
            run = F::join(run, all);
        }
    }
}

template <class F>
__global__ void scan_blocks_kernel(F f, scan_lines l, int64_t chunks, const typename F::S *chunk)
{
    typedef typename F::S S;
    __shared__ char memory[CUDA_BLOCK * sizeof(S)] __attribute__((aligned(16)));
    S *left = (S *)(void *)memory;
    for (int64_t b = blockIdx.x; b < l.count() * chunks; b += gridDim.x) {
        int64_t line = b / chunks, first = b % chunks * SCAN_CHUNK;
        int64_t end = first + SCAN_CHUNK < l.length ? first + SCAN_CHUNK : l.length;
        S run = b % chunks ? chunk[b - 1] : f.start();
        for (; first < end; first += SCAN_TILE) {
            S mine = f.start(), all, state[SCAN_EACH];
            int64_t k = first + threadIdx.x * SCAN_EACH;
            for (int e = 0; e < SCAN_EACH && k + e < end; e++) {
                state[e] = f.load(l.at(line, k + e), k + e);
                mine = F::join(mine, state[e]);
            }
            mine = cuda_block_scan<F>(mine, &all);
            __syncthreads();
            left[threadIdx.x] = mine;
            __syncthreads();
            S before = threadIdx.x ? F::join(run, left[threadIdx.x - 1]) : run;
            for (int e = 0; e < SCAN_EACH && k + e < end; e++) {
                S after = F::join(before, state[e]);
                f.put(l.at(line, k + e), before, after);
                before = after;
            }
            run = F::join(run, all);
        }
    }
}

template <class F> static proa_status scan(cuda_context *c, F f, const scan_lines &l)
{
    typedef typename F::S S;
    int64_t chunks = (l.length + SCAN_CHUNK - 1) / SCAN_CHUNK, blocks = l.count() * chunks;
    if (l.count() * l.length == 0) return PROA_OK;
    if (l.length <= SCAN_SHORT || (l.inner > 1 && l.count() >= SCAN_MANY))
        return cuda_launch(c, cuda_blocks(l.count()), CUDA_BLOCK, scan_threads_kernel<F>, f, l);
    if (chunks == 1)
        return cuda_launch(c, cuda_blocks(blocks, 1), CUDA_BLOCK, scan_blocks_kernel<F>, f, l, chunks, NULL);
    S *chunk = (S *)cuda_scratch(c, (size_t)blocks * sizeof *chunk);
    if (!chunk) return cuda_host->error();
    proa_status s =
        cuda_launch(c, cuda_blocks(blocks, 1), CUDA_BLOCK, scan_chunks_kernel<F>, f, l, chunks, chunk);
    if (s == PROA_OK)
        s = cuda_launch(c, cuda_blocks(l.count(), 1), CUDA_BLOCK, scan_states_kernel<F>, f, l.count(), chunks,
                        chunk);
    if (s == PROA_OK)
        s = cuda_launch(c, cuda_blocks(blocks, 1), CUDA_BLOCK, scan_blocks_kernel<F>, f, l, chunks, chunk);
    cuda_scratch_free(c, chunk);
    return s;
}

/* ---- computing types and their arithmetic ------------------------------------------------- */

template <class A> struct scan_of {
    static CUDA_BOTH_MEMBER A number(double v) { return (A)v; }
    static CUDA_MEMBER A conj(A v) { return v; }
    static CUDA_MEMBER A divide(A a, A b) { return a / b; }
};
template <> struct scan_of<cuda_c_C128> {
    typedef cuda_c_C128 A;
    static CUDA_BOTH_MEMBER A number(double v) { return {v, 0}; }
    static CUDA_MEMBER A conj(A v) { return {v.re, -v.im}; }
    static CUDA_MEMBER A divide(A a, A b) /* scaled, so that no square overflows */
    {
        double size = fmax(fabs(b.re), fabs(b.im)), re = b.re / size, im = b.im / size,
               square = re * re + im * im;
        return {(a.re * re + a.im * im) / square / size, (a.im * re - a.re * im) / square / size};
    }
};

/* ---- sums and products ------------------------------------------------------------------- */

template <class A, class Op> struct scan_fold : Op {
    typedef A S;
    const char *x;
    char *out;
    proa_dtype in, to;
    int64_t item, out_item;
    A first;
    bool exclusive;
    CUDA_MEMBER A start() const { return first; }
    CUDA_MEMBER A load(int64_t element, int64_t) const { return cuda_load<A>(x + element * item, in); }
    CUDA_MEMBER void put(int64_t element, A before, A after) const
    {
        cuda_store<A>(out + element * out_item, to, exclusive ? before : after);
    }
};

/* first: the neutral element, 0 or 1. Integers are combined in int64, floats in double, complex
 * numbers in complex128. */
template <class Op>
static proa_status scan_numbers(cuda_context *c, const proa_tensor *x, const proa_tensor *out, double first,
                                bool exclusive, const scan_lines &l)
{
    cuda_tensor from = cuda_look(x), to = cuda_look(out);
    proa_dtype widest = from.dtype > to.dtype ? from.dtype : to.dtype;
    CUDA_SWITCH_SUM(widest, A, {
        scan_fold<A, Op> f;
        f.x = from.data, f.out = to.data, f.in = from.dtype, f.to = to.dtype;
        f.item = cuda_item(from.dtype), f.out_item = cuda_item(to.dtype);
        f.first = scan_of<A>::number(first), f.exclusive = exclusive;
        return scan(c, f, l);
    });
}

/* The axis of cumsum, argmax, …; *flat: it is absent, and x is read as 1-D. */
static int64_t scan_axis(const proa_scalar *axis, bool *flat)
{
    *flat = axis->kind == PROA_SCALAR_NONE;
    return *flat ? 0 : cuda_integer(axis, 0);
}

CUDA_KERNEL(cumsum, true)
{
    bool flat;
    int64_t axis = scan_axis(&a->axis, &flat);
    return scan_numbers<cuda_sum>(c, a->x, a->out, 0, a->exclusive,
                                  scan_lines_of(a->x, axis, flat || a->flatten, a->reverse));
}
CUDA_KERNEL(cumprod, true)
{
    return scan_numbers<cuda_prod>(c, a->x, a->out, 1, false, scan_lines_of(a->x, a->dim, false, false));
}

/* With the first zero of a line at z: left of it dx_i = Σ_{i≤j<z} out_j d_j / x_i; at it, Σ_{j≥z} d_j times
 * the product of all x up to j except x_z; right of it dx_i = 0. One thread per line. */
struct product_back {
    const char *x, *out, *d_out;
    char *d_x;
    proa_dtype dtype;
    int64_t item;
};
template <class A> __global__ void cumprod_grad_kernel(product_back p, scan_lines l)
{
    for (CUDA_EACH(line, l.count())) {
        int64_t z = 0;
        A sum = {}, zero = {};
        while (z < l.length && cuda_load<A>(p.x + l.at(line, z) * p.item, p.dtype) != zero) z++;
        for (int64_t k = z - 1; k >= 0; k--) {
            int64_t at = l.at(line, k) * p.item;
            sum = sum +
                  scan_of<A>::conj(cuda_load<A>(p.out + at, p.dtype)) * cuda_load<A>(p.d_out + at, p.dtype);
            cuda_store<A>(p.d_x + at, p.dtype,
                          scan_of<A>::divide(sum, scan_of<A>::conj(cuda_load<A>(p.x + at, p.dtype))));
        }
        if (z == l.length) continue;
        A product = z ? scan_of<A>::conj(cuda_load<A>(p.out + l.at(line, z - 1) * p.item, p.dtype))
                      : scan_of<A>::number(1);
        sum = product * cuda_load<A>(p.d_out + l.at(line, z) * p.item, p.dtype);
        for (int64_t k = z + 1; k < l.length; k++) {
            int64_t at = l.at(line, k) * p.item;
            product = product * scan_of<A>::conj(cuda_load<A>(p.x + at, p.dtype));
            sum = sum + product * cuda_load<A>(p.d_out + at, p.dtype);
            cuda_store<A>(p.d_x + at, p.dtype, zero);
        }
        cuda_store<A>(p.d_x + l.at(line, z) * p.item, p.dtype, sum);
    }
}

CUDA_KERNEL(cumprod_grad, true)
{
    cuda_tensor x = cuda_look(a->x);
    scan_lines l = scan_lines_of(a->x, a->dim, false, false);
    product_back p = {x.data,  cuda_look(a->out).data, cuda_look(a->d_out).data, cuda_look(a->d_x).data,
                      x.dtype, cuda_item(x.dtype)};
    if (x.numel == 0) return PROA_OK;
    if (x.dtype == PROA_C64 || x.dtype == PROA_C128)
        return cuda_launch(c, cuda_blocks(l.count()), CUDA_BLOCK, cumprod_grad_kernel<cuda_c_C128>, p, l);
    return cuda_launch(c, cuda_blocks(l.count()), CUDA_BLOCK, cumprod_grad_kernel<double>, p, l);
}

/* ---- extremes ---------------------------------------------------------------------------- */

/* The last of equals wins; NaN stays from its position on. */
template <class A, bool LARGEST> struct scan_extreme {
    typedef cuda_indexed<A> S; /* index −1: nothing yet */
    const char *x;
    char *out, *indices;
    proa_dtype dtype, places;
    int64_t item;
    CUDA_MEMBER S start() const { return {0, -1}; }
    CUDA_MEMBER S load(int64_t element, int64_t k) const
    {
        return {cuda_load<A>(x + element * item, dtype), k};
    }
    static CUDA_MEMBER S join(S a, S b)
    {
        if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
        bool better = (LARGEST ? b.value >= a.value : b.value <= a.value) || b.value != b.value;
        return a.value == a.value && better ? b : a;
    }
    CUDA_MEMBER void put(int64_t element, S, S after) const
    {
        cuda_store<A>(out + element * item, dtype, after.value);
        if (places == PROA_I32) ((int32_t *)(void *)indices)[element] = (int32_t)after.index;
        else ((int64_t *)(void *)indices)[element] = after.index;
    }
};

template <bool LARGEST>
static proa_status running_extreme(cuda_context *c, const proa_tensor *x, const proa_tensor *out,
                                   const proa_tensor *indices, int64_t axis)
{
    cuda_tensor t = cuda_look(x), places = cuda_look(indices);
    scan_lines l = scan_lines_of(x, axis, false, false);
    char *to = cuda_look(out).data;
    if (places.dtype == PROA_I32 && l.length > INT32_MAX)
        return cuda_fail(PROA_ERR_OVERFLOW, "%s: dtype: is int32, too small for the %lld places along axis",
                         c->running->name, (long long)l.length);
    int64_t item = cuda_item(t.dtype);
    if (t.dtype <= PROA_I64)
        return scan(c, scan_extreme<int64_t, LARGEST>{t.data, to, places.data, t.dtype, places.dtype, item},
                    l);
    return scan(c, scan_extreme<double, LARGEST>{t.data, to, places.data, t.dtype, places.dtype, item}, l);
}

CUDA_KERNEL(cummax, true) { return running_extreme<true>(c, a->x, a->out, a->indices, a->axis); }
CUDA_KERNEL(cummin, true) { return running_extreme<false>(c, a->x, a->out, a->indices, a->axis); }

/* ---- log-sum-exp ------------------------------------------------------------------------- */

/* sum · e^top, with top the greatest x so far, so that nothing overflows. */
struct scan_log {
    struct S {
        double top, sum;
    };
    const char *x;
    char *out;
    proa_dtype dtype;
    int64_t item;
    bool exclusive;
    CUDA_MEMBER S start() const { return {-INFINITY, 0}; }
    CUDA_MEMBER S load(int64_t element, int64_t) const
    {
        double v = cuda_load<double>(x + element * item, dtype);
        return v != v ? S{-INFINITY, v} : S{v, v > -INFINITY ? 1. : 0.};
    }
    static CUDA_MEMBER S join(S a, S b)
    {
        if (a.top == b.top) return {a.top, a.sum + b.sum};
        return a.top > b.top ? S{a.top, a.sum + b.sum * exp(b.top - a.top)}
                             : S{b.top, a.sum * exp(a.top - b.top) + b.sum};
    }
    CUDA_MEMBER void put(int64_t element, S before, S after) const
    {
        S s = exclusive ? before : after;
        cuda_store<double>(out + element * item, dtype,
                           s.sum > 0 || s.sum != s.sum ? s.top + log(s.sum) : -INFINITY);
    }
};

CUDA_KERNEL(logcumsumexp, true)
{
    cuda_tensor x = cuda_look(a->x);
    return scan(c, scan_log{x.data, cuda_look(a->out).data, x.dtype, cuda_item(x.dtype), a->exclusive},
                scan_lines_of(a->x, a->axis, a->flatten, a->reverse));
}

CUDA_FN double log_ratio(double a, double b) { return a == b ? 1 : exp(a - b); }

/* dx_i = e^x_i Σ d_k e^−out_k over the k that x_i is summed in: from the last one back, sum = Σ d_m e^(out −
 * out_m) with the out of the entry that was added last. No exponent is above 0, for out never falls. */
struct scan_log_back {
    struct S {
        double out, sum;
        int64_t any;
    };
    const char *x, *out, *d_out;
    char *d_x;
    proa_dtype dtype;
    int64_t item;
    bool exclusive;
    CUDA_MEMBER S start() const { return {0, 0, 0}; }
    CUDA_MEMBER S load(int64_t element, int64_t) const
    {
        return {cuda_load<double>(out + element * item, dtype),
                cuda_load<double>(d_out + element * item, dtype), 1};
    }
    static CUDA_MEMBER S join(S a, S b)
    {
        if (!a.any || !b.any) return a.any ? a : b;
        return {b.out, b.sum + a.sum * log_ratio(b.out, a.out), 1};
    }
    CUDA_MEMBER void put(int64_t element, S before, S after) const
    {
        S s = exclusive ? before : after;
        double v = cuda_load<double>(x + element * item, dtype);
        cuda_store<double>(d_x + element * item, dtype, s.any ? s.sum * log_ratio(v, s.out) : 0.);
    }
};

CUDA_KERNEL(logcumsumexp_grad, true)
{
    cuda_tensor x = cuda_look(a->x);
    scan_log_back f = {x.data,
                       cuda_look(a->out).data,
                       cuda_look(a->d_out).data,
                       cuda_look(a->d_x).data,
                       x.dtype,
                       cuda_item(x.dtype),
                       a->exclusive};
    return scan(c, f, scan_lines_of(a->x, a->axis, a->flatten, !a->reverse));
}

/* ---- argmax, argmin ---------------------------------------------------------------------- */

struct arg_plan {
    const char *x;
    char *out;
    proa_dtype dtype, to;
    int64_t item, parts, part; /* a line is cut into parts of so many entries */
    scan_lines l;
};

template <class A> struct arg_limit {
    static CUDA_MEMBER A low() { return INT64_MIN; }
    static CUDA_MEMBER A high() { return INT64_MAX; }
};
template <> struct arg_limit<double> {
    static CUDA_MEMBER double low() { return -INFINITY; }
    static CUDA_MEMBER double high() { return INFINITY; }
};
template <class A> CUDA_FN void arg_put(const arg_plan &p, int64_t line, cuda_indexed<A> best)
{
    if (p.to == PROA_I32) ((int32_t *)(void *)p.out)[line] = (int32_t)best.index;
    else ((int64_t *)(void *)p.out)[line] = best.index;
}
/* Neutral element of a search: it follows every other in the order. */
template <class A, class Order> CUDA_FN cuda_indexed<A> arg_last()
{
    A low = arg_limit<A>::low(), high = arg_limit<A>::high();
    return {Order::before(high, low) ? low : high, INT64_MAX};
}

template <class A, class Order> __global__ void arg_threads_kernel(arg_plan p)
{
    for (CUDA_EACH(line, p.l.count())) {
        cuda_indexed<A> best = arg_last<A, Order>();
        for (int64_t k = 0; k < p.l.length; k++)
            best = cuda_first<Order>::join(best, {cuda_load<A>(p.x + p.l.at(line, k) * p.item, p.dtype), k});
        arg_put(p, line, best);
    }
}
/* The argmax or argmin of each part of a line; with one part, the op's result. */
template <class A, class Order> __global__ void arg_parts_kernel(arg_plan p, cuda_indexed<A> *partial)
{
    for (int64_t b = blockIdx.x; b < p.l.count() * p.parts; b += gridDim.x) {
        int64_t line = b / p.parts, first = b % p.parts * p.part;
        int64_t end = first + p.part < p.l.length ? first + p.part : p.l.length;
        cuda_indexed<A> best = arg_last<A, Order>();
        for (int64_t k = first + threadIdx.x; k < end; k += CUDA_BLOCK)
            best = cuda_first<Order>::join(best, {cuda_load<A>(p.x + p.l.at(line, k) * p.item, p.dtype), k});
        best = cuda_block_reduce<cuda_first<Order>>(best);
        if (threadIdx.x == 0 && partial) partial[b] = best;
        else if (threadIdx.x == 0) arg_put(p, line, best);
    }
}
template <class A, class Order> __global__ void arg_join_kernel(arg_plan p, const cuda_indexed<A> *partial)
{
    for (int64_t line = blockIdx.x; line < p.l.count(); line += gridDim.x) {
        cuda_indexed<A> best = arg_last<A, Order>();
        for (int64_t k = threadIdx.x; k < p.parts; k += CUDA_BLOCK)
            best = cuda_first<Order>::join(best, partial[line * p.parts + k]);
        best = cuda_block_reduce<cuda_first<Order>>(best);
        if (threadIdx.x == 0) arg_put(p, line, best);
    }
}

enum { ARG_PART = 16384, ARG_LINES = 256 };

template <class A, class Order> static proa_status arg_run(cuda_context *c, arg_plan p)
{
    int64_t lines = p.l.count();
    if (lines == 0) return PROA_OK;
    if (p.l.length <= SCAN_SHORT || (p.l.inner > 1 && lines >= SCAN_MANY))
        return cuda_launch(c, cuda_blocks(lines), CUDA_BLOCK, (arg_threads_kernel<A, Order>), p);
    p.part = lines < ARG_LINES ? (int64_t)ARG_PART : p.l.length;
    p.parts = (p.l.length + p.part - 1) / p.part;
    unsigned blocks = cuda_blocks(lines * p.parts, 1);
    if (p.parts == 1) return cuda_launch(c, blocks, CUDA_BLOCK, (arg_parts_kernel<A, Order>), p, NULL);
    cuda_indexed<A> *partial =
        (cuda_indexed<A> *)cuda_scratch(c, (size_t)(lines * p.parts) * sizeof *partial);
    if (!partial) return cuda_host->error();
    proa_status s = cuda_launch(c, blocks, CUDA_BLOCK, (arg_parts_kernel<A, Order>), p, partial);
    if (s == PROA_OK)
        s = cuda_launch(c, cuda_blocks(lines, 1), CUDA_BLOCK, (arg_join_kernel<A, Order>), p, partial);
    cuda_scratch_free(c, partial);
    return s;
}

template <class Order>
static proa_status arg(cuda_context *c, const proa_tensor *x, const proa_tensor *out, const proa_scalar *axis)
{
    bool flat;
    int64_t at = scan_axis(axis, &flat);
    cuda_tensor from = cuda_look(x), to = cuda_look(out);
    arg_plan p = {from.data,
                  to.data,
                  from.dtype,
                  to.dtype,
                  cuda_item(from.dtype),
                  1,
                  0,
                  scan_lines_of(x, at, flat, false)};
    if (from.dtype <= PROA_I64) return arg_run<int64_t, Order>(c, p);
    return arg_run<double, Order>(c, p);
}

CUDA_KERNEL(argmax, true) { return arg<cuda_largest>(c, a->x, a->out, &a->axis); }
CUDA_KERNEL(argmin, true) { return arg<cuda_smallest>(c, a->x, a->out, &a->axis); }
