/* GPU kernels of nonzero, masked_select, repeat_interleave, unique and unique_consecutive, whose output
 * length depends on the data, and of gradients. Prefix sums over the counts of tiles (or over the repeats of
 * slices) give each its offset in the output; the host waits once, for the total. */
#include "ops/index/cuda/index.h"

enum { SELECT_EACH = 8, SELECT_TILE = CUDA_BLOCK * SELECT_EACH };

/* Counts selected elements per tile; H: hit(i), whether element i is selected. */
template <class H> __global__ void select_count_kernel(H h, int64_t n, int64_t *counts)
{
    for (int64_t first = (int64_t)blockIdx.x * SELECT_TILE; first < n;
         first += (int64_t)gridDim.x * SELECT_TILE) {
        int64_t hits = 0;
        for (int k = 0; k < SELECT_EACH; k++) {
            int64_t i = first + k * CUDA_BLOCK + threadIdx.x;
            hits += i < n && h.hit(i);
        }
        hits = cuda_block_reduce<cuda_sum>(hits);
        if (threadIdx.x == 0) counts[first / SELECT_TILE] = hits;
    }
}

/* P: put(i, before, hit) is called for every element; `before`: number of selected elements before it. */
template <class H, class P> __global__ void select_put_kernel(H h, P p, int64_t n, const int64_t *starts)
{
    for (int64_t first = (int64_t)blockIdx.x * SELECT_TILE; first < n;
         first += (int64_t)gridDim.x * SELECT_TILE) {
        int64_t before = starts[first / SELECT_TILE];
        for (int k = 0; k < SELECT_EACH; k++) {
            int64_t i = first + k * CUDA_BLOCK + threadIdx.x;
            int hit = i < n && h.hit(i), all, upto = cuda_block_scan<cuda_sum>(hit, &all);
            if (i < n) p.put(i, before + upto - hit, hit != 0);
            before += all;
        }
    }
}

/* Offset of each tile's hits, and in the last entry the number of all hits; scratch, NULL on failure. */
template <class H> static int64_t *select_count(cuda_context *c, H h, int64_t n, int64_t *tiles)
{
    *tiles = (n + SELECT_TILE - 1) / SELECT_TILE;
    int64_t zero = 0, *counts = (int64_t *)cuda_scratch(c, (size_t)(*tiles + 1) * sizeof *counts);
    if (!counts) return NULL;
    proa_status s = cuda_fill(c, counts + *tiles, &zero, sizeof zero, 1);
    if (s == PROA_OK && n)
        s = cuda_launch(c, cuda_blocks(*tiles, 1), CUDA_BLOCK, select_count_kernel<H>, h, n, counts);
    if (s == PROA_OK) s = cuda_scan(c, counts, *tiles + 1);
    if (s == PROA_OK) return counts;
    cuda_scratch_free(c, counts);
    return NULL;
}
template <class H, class P>
static proa_status select_put(cuda_context *c, H h, P p, int64_t n, int64_t tiles, const int64_t *starts)
{
    if (n == 0) return PROA_OK;
    return cuda_launch(c, cuda_blocks(tiles, 1), CUDA_BLOCK, (select_put_kernel<H, P>), h, p, n, starts);
}

/* Makes output number `index` of the op that runs, in that size. */
static proa_status select_output(cuda_context *c, const void *args, int index, const proa_meta &meta,
                                 char **data)
{
    proa_tensor *t = cuda_host->output_resize((void *)(uintptr_t)args, c->running, index, &meta);
    if (!t) return cuda_host->error();
    *data = cuda_look(t).data;
    return PROA_OK;
}
static proa_meta select_list(proa_dtype dtype, int64_t n)
{
    proa_meta m = {dtype, 1, {n}};
    return m;
}

/* ---- nonzero ---------------------------------------------------------------------------- */

/* −0 is zero, NaN is not. */
CUDA_FN bool select_truth(proa_dtype d, const char *p)
{
    const void *v = p;
    switch (d) {
    case PROA_I16: return *(const int16_t *)v != 0;
    case PROA_I32: return *(const int32_t *)v != 0;
    case PROA_I64: return *(const int64_t *)v != 0;
    case PROA_F16:
    case PROA_BF16: return (*(const uint16_t *)v & 0x7fff) != 0;
    case PROA_F32: return *(const float *)v != 0;
    case PROA_F64: return *(const double *)v != 0;
    case PROA_C64: return ((const float *)v)[0] != 0 || ((const float *)v)[1] != 0;
    case PROA_C128: return ((const double *)v)[0] != 0 || ((const double *)v)[1] != 0;
    default: return *(const uint8_t *)v != 0;
    }
}

struct nonzero_hit {
    const char *x;
    proa_dtype dtype;
    int64_t item;
    CUDA_MEMBER bool hit(int64_t i) const { return select_truth(dtype, x + i * item); }
};
struct nonzero_put {
    int64_t *out, shape[PROA_MAX_DIMS];
    int ndim;
    CUDA_MEMBER void put(int64_t i, int64_t at, bool hit) const
    {
        for (int d = ndim - 1; hit && d >= 0; d--) out[at * ndim + d] = cuda_split(i, shape[d]);
    }
};

CUDA_KERNEL(nonzero, true)
{
    cuda_tensor x = cuda_look(a->x);
    nonzero_hit h = {x.data, x.dtype, cuda_item(x.dtype)};
    nonzero_put p = {NULL, {0}, x.ndim};
    int64_t tiles, count = 0, *starts = select_count(c, h, x.numel, &tiles);
    if (!starts) return cuda_host->error();
    proa_status s = cuda_read(c, &count, starts + tiles, sizeof count);
    proa_meta meta = {PROA_I64, 2, {count, x.ndim}};
    for (int i = 0; i < x.ndim; i++) p.shape[i] = x.shape[i];
    if (s == PROA_OK) s = select_output(c, a, 0, meta, (char **)&p.out);
    if (s == PROA_OK) s = select_put(c, h, p, x.numel, tiles, starts);
    cuda_scratch_free(c, starts);
    return s;
}

/* ---- masked_select ---------------------------------------------------------------------- */

/* The mask, and the tensor that elements come from or go to, over one shape; steps in elements. */
struct masked_hit {
    const uint8_t *mask;
    int ndim;
    int64_t numel, shape[PROA_MAX_DIMS], step[PROA_MAX_DIMS], x_step[PROA_MAX_DIMS];
    CUDA_MEMBER bool hit(int64_t i) const { return mask[cuda_offset(ndim, shape, step, i)] != 0; }
    CUDA_MEMBER int64_t x_at(int64_t i) const { return cuda_offset(ndim, shape, x_step, i); }
};

static masked_hit masked_hit_of(const proa_tensor *x, const proa_tensor *mask)
{
    cuda_tensor t = cuda_look(x), m = cuda_look(mask);
    masked_hit h = {m.as<uint8_t>(), t.ndim > m.ndim ? t.ndim : m.ndim, 1};
    for (int i = 1; i <= h.ndim; i++) {
        int64_t p = i <= t.ndim ? t.shape[t.ndim - i] : 1, q = i <= m.ndim ? m.shape[m.ndim - i] : 1;
        h.numel *= h.shape[h.ndim - i] = p == 1 ? q : p;
    }
    index_steps(mask, h.ndim, h.shape, h.step);
    index_steps(x, h.ndim, h.shape, h.x_step);
    return h;
}

template <class T> struct masked_pack {
    masked_hit h;
    const T *x;
    T *out;
    CUDA_MEMBER void put(int64_t i, int64_t at, bool hit) const
    {
        if (hit) out[at] = x[h.x_at(i)];
    }
};

CUDA_KERNEL(masked_select, true)
{
    cuda_tensor x = cuda_look(a->x);
    masked_hit h = masked_hit_of(a->x, a->mask);
    int64_t tiles, count = 0, *starts = select_count(c, h, h.numel, &tiles);
    if (!starts) return cuda_host->error();
    proa_status s = cuda_read(c, &count, starts + tiles, sizeof count);
    char *out = NULL;
    if (s == PROA_OK) s = select_output(c, a, 0, select_list(x.dtype, count), &out);
    if (s == PROA_OK)
        CUDA_SWITCH_UNIT(cuda_item(x.dtype), T, masked_pack<T> p = {h, x.as<T>(), (T *)(void *)out};
                         s = select_put(c, h, p, h.numel, tiles, starts);)
    cuda_scratch_free(c, starts);
    return s;
}

template <class T> struct masked_spread {
    const T *d_out;
    T *d_x;
    int64_t count;
    cuda_report report;
    CUDA_MEMBER void put(int64_t i, int64_t at, bool hit) const
    {
        T item = {};
        if (hit && at < count) item = d_out[at];
        else if (hit) cuda_raise(report, i, at, 0, count - 1);
        d_x[i] = item;
    }
};

CUDA_KERNEL(masked_select_grad, true)
{
    cuda_tensor d_x = cuda_look(a->d_x), d_out = cuda_look(a->d_out);
    masked_hit h = masked_hit_of(a->d_x, a->mask);
    int64_t tiles, *starts = select_count(c, h, h.numel, &tiles);
    if (!starts) return cuda_host->error();
    proa_status s = PROA_OK;
    CUDA_SWITCH_UNIT(cuda_item(d_x.dtype), T,
                     masked_spread<T> p = {d_out.as<T>(), d_x.as<T>(), d_out.numel,
                                           cuda_reports(c, "d_out, for the mask,")};
                     s = select_put(c, h, p, h.numel, tiles, starts);)
    cuda_scratch_free(c, starts);
    return s;
}

/* ---- repeat_interleave ------------------------------------------------------------------ */

/* Repeat count of each slice. After a scan slice i is at starts[i] to starts[i + 1]. */
__global__ void repeat_counts_kernel(cuda_indices times, bool one, int64_t repeats, int64_t length,
                                     int64_t *counts)
{
    for (CUDA_EACH(i, length + 1)) {
        int64_t n = i == length ? 0 : times.data ? times.at(one ? 0 : i) : repeats;
        counts[i] = n < 0 ? 0 : n;
    }
}

static int64_t *repeat_starts(cuda_context *c, const proa_tensor *each, int64_t repeats, int64_t length)
{
    cuda_indices times = {};
    bool given = cuda_given(each);
    if (given) times = cuda_indices_of(c, "repeats_tensor", each, INT64_MAX);
    int64_t *starts = (int64_t *)cuda_scratch(c, (size_t)(length + 1) * sizeof *starts);
    if (!starts) return NULL;
    proa_status s = cuda_launch(c, cuda_blocks(length + 1), CUDA_BLOCK, repeat_counts_kernel, times,
                                given && cuda_look(each).numel == 1, repeats, length, starts);
    if (s == PROA_OK) s = cuda_scan(c, starts, length + 1);
    if (s == PROA_OK) return starts;
    cuda_scratch_free(c, starts);
    return NULL;
}

template <class T>
__global__ void repeat_kernel(const int64_t *starts, int64_t length, const T *x, T *out, int64_t units,
                              int64_t total, int64_t count)
{
    for (CUDA_EACH(i, count)) {
        int64_t outer = i, unit = cuda_split(outer, units), at = cuda_split(outer, total), low = 0,
                high = length;
        while (low + 1 < high) { /* the last slice that starts at or before it */
            int64_t mid = low + (high - low) / 2;
            if (starts[mid] <= at) low = mid;
            else high = mid;
        }
        out[i] = x[(outer * length + low) * units + unit];
    }
}

CUDA_KERNEL(repeat_interleave, true)
{
    cuda_tensor x = cuda_look(a->x);
    int axis = (int)(a->axis < 0 ? a->axis + x.ndim : a->axis);
    index_around r = index_around_of(a->x, axis);
    int64_t total = a->repeats * r.length,
            *starts = repeat_starts(c, a->repeats_tensor, a->repeats, r.length);
    if (!starts) return cuda_host->error();
    proa_status s = PROA_OK;
    if (cuda_given(a->repeats_tensor)) s = cuda_read(c, &total, starts + r.length, sizeof total);
    proa_meta meta = {x.dtype, (int8_t)x.ndim};
    for (int i = 0; i < x.ndim; i++) meta.shape[i] = i == axis ? total : x.shape[i];
    int64_t bytes = r.inner * cuda_item(x.dtype), rows = r.outer * total;
    char *out = NULL;
    if (s == PROA_OK) s = select_output(c, a, 0, meta, &out);
    int64_t unit = cuda_unit(bytes, x.data, out), units = bytes / unit;
    if (s == PROA_OK && rows > 0 && units > 0)
        CUDA_SWITCH_UNIT(unit, T,
                         s = cuda_launch(c, cuda_blocks(rows * units), CUDA_BLOCK, repeat_kernel<T>, starts,
                                         r.length, x.as<T>(), (T *)(void *)out, units, total, rows * units);)
    cuda_scratch_free(c, starts);
    return s;
}

struct repeat_back {
    const int64_t *starts;
    const char *d_out;
    char *d_x;
    proa_dtype dtype;
    int64_t item, total; /* total: slices of d_out */
    index_around r;
    cuda_report report;
};
template <class A> __global__ void repeat_grad_kernel(repeat_back b)
{
    for (CUDA_EACH(i, b.r.outer * b.r.length * b.r.inner)) {
        int64_t outer = i, inner = cuda_split(outer, b.r.inner), k = cuda_split(outer, b.r.length);
        int64_t from = b.starts[k], end = b.starts[k + 1];
        if (k + 1 == b.r.length && end != b.total) cuda_raise(b.report, 0, b.total, end, end);
        A sum = {};
        for (; from < end && from < b.total; from++)
            sum = sum +
                  cuda_load<A>(b.d_out + ((outer * b.total + from) * b.r.inner + inner) * b.item, b.dtype);
        cuda_store<A>(b.d_x + i * b.item, b.dtype, sum);
    }
}

CUDA_KERNEL(repeat_interleave_grad, true)
{
    cuda_tensor d_out = cuda_look(a->d_out), d_x = cuda_look(a->d_x);
    int axis = (int)(a->axis < 0 ? a->axis + d_x.ndim : a->axis);
    index_around r = index_around_of(a->d_x, axis);
    if (d_x.numel == 0) return PROA_OK;
    repeat_back b = {repeat_starts(c, a->repeats_tensor, a->repeats, r.length),
                     d_out.data,
                     d_x.data,
                     d_x.dtype,
                     cuda_item(d_x.dtype),
                     d_out.shape[axis],
                     r,
                     cuda_reports(c, "d_out's length")};
    if (!b.starts) return cuda_host->error();
    proa_status s = PROA_OK;
    CUDA_SWITCH_SUM(d_x.dtype, A,
                    s = cuda_launch(c, cuda_blocks(d_x.numel), CUDA_BLOCK, repeat_grad_kernel<A>, b););
    cuda_scratch_free(c, (void *)(uintptr_t)b.starts);
    return s;
}

/* ---- unique ------------------------------------------------------------------------------ */

/* Slices of x along an axis, in an order; equal neighbors are a group. */
struct unique_rows {
    const char *x;
    proa_dtype dtype;
    int64_t item;
    index_around r;
    uint64_t nan;         /* the key of NaN, which differs from itself */
    const int64_t *order; /* NULL: in x's order */
    CUDA_MEMBER int64_t row(int64_t i) const { return order ? order[i] : i; }
    CUDA_MEMBER uint64_t key(int64_t row, int64_t k) const
    {
        int64_t inner = cuda_split(k, r.inner);
        return cuda_key(dtype, x + ((k * r.length + row) * r.inner + inner) * item);
    }
    /* Compares rows p and q: negative, 0 or positive. */
    CUDA_MEMBER int compare(int64_t p, int64_t q) const
    {
        for (int64_t k = 0; k < r.outer * r.inner; k++) {
            uint64_t a = key(p, k), b = key(q, k);
            if (a != b) return a < b ? -1 : 1;
        }
        return 0;
    }
    /* Slice i begins a group. */
    CUDA_MEMBER bool hit(int64_t i) const
    {
        if (i == 0 || compare(row(i - 1), row(i)) != 0) return true;
        for (int64_t k = 0; nan && k < r.outer * r.inner; k++)
            if (key(row(i), k) == nan) return true;
        return false;
    }
};

static unique_rows unique_rows_of(const proa_tensor *tensor, const proa_ints *axis)
{
    cuda_tensor x = cuda_look(tensor);
    unique_rows u = {x.data, x.dtype, cuda_item(x.dtype), {1, x.numel, 1}, cuda_nan_key(x.dtype), NULL};
    if (axis->count && x.ndim) u.r = index_around_of(tensor, axis->at[0]);
    return u;
}

__global__ void unique_keys_kernel(unique_rows u, cuda_order o)
{
    for (CUDA_EACH(i, o.length)) o.put_key(i, u.key(i, 0));
}
__global__ void unique_places_kernel(cuda_order o, int64_t *order)
{
    for (CUDA_EACH(i, o.length)) order[i] = o.place(i);
}
__global__ void unique_count_up_kernel(int64_t *order, int64_t n)
{
    for (CUDA_EACH(i, n)) order[i] = i;
}

/* One step of a stable merge sort: every row finds its position in the merged run of length 2 · run by
 * counting the preceding rows of the other half. */
__global__ void unique_merge_kernel(unique_rows u, int64_t run, int64_t n, const int64_t *from, int64_t *to)
{
    for (CUDA_EACH(i, n)) {
        int64_t mine = cuda_div(i, run) * run, pair = cuda_div(i, 2 * run) * 2 * run;
        bool first = mine == pair;
        int64_t other = first ? pair + run : pair, low = other < n ? other : n;
        int64_t end = other + run < n ? other + run : n, high = end, start = low;
        while (low < high) {
            int64_t mid = low + (high - low) / 2;
            int way = u.compare(from[mid], from[i]);
            if (first ? way < 0 : way <= 0) low = mid + 1;
            else high = mid;
        }
        to[pair + (i - mine) + (low - start)] = from[i];
    }
}

/* The order of the slices into `order`, which has space for twice as many. */
static proa_status unique_sort(cuda_context *c, unique_rows *u, int64_t *order)
{
    int64_t n = u->r.length;
    u->order = order;
    if (u->r.outer * u->r.inner == 1) {
        cuda_order o;
        proa_status s = cuda_order_new(c, &o, 1, n, cuda_key_bits(u->dtype));
        if (s == PROA_OK) s = cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, unique_keys_kernel, *u, o);
        if (s == PROA_OK) s = cuda_sort(c, &o);
        if (s == PROA_OK) s = cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, unique_places_kernel, o, order);
        cuda_order_free(c, &o);
        return s;
    }
    int64_t *other = order + n;
    proa_status s = cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, unique_count_up_kernel, order, n);
    for (int64_t run = 1; run < n && s == PROA_OK; run *= 2) {
        s = cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, unique_merge_kernel, *u, run, n, u->order, other);
        other = (int64_t *)(uintptr_t)u->order;
        u->order = other == order ? order + n : order;
    }
    return s;
}

/* A list of int32 or int64; data NULL: it is not wanted. */
struct unique_list {
    char *data;
    bool narrow;
    CUDA_MEMBER void put(int64_t i, int64_t v) const
    {
        if (data && narrow) ((int32_t *)(void *)data)[i] = (int32_t)v;
        else if (data) ((int64_t *)(void *)data)[i] = v;
    }
};
struct unique_put {
    unique_rows u;
    int64_t *heads; /* index of each group's first slice, in the sorted order */
    unique_list index, inverse;
    CUDA_MEMBER void put(int64_t i, int64_t before, bool hit) const
    {
        int64_t group = hit ? before : before - 1;
        inverse.put(u.row(i), group);
        if (!hit) return;
        heads[group] = i;
        index.put(group, u.row(i));
    }
};
__global__ void unique_counts_kernel(const int64_t *heads, int64_t groups, int64_t n, unique_list counts)
{
    for (CUDA_EACH(g, groups)) counts.put(g, (g + 1 < groups ? heads[g + 1] : n) - heads[g]);
}
template <class T>
__global__ void unique_move_kernel(unique_rows u, const int64_t *heads, int64_t groups, T *out, int64_t total)
{
    for (CUDA_EACH(i, total)) {
        int64_t outer = i, inner = cuda_split(outer, u.r.inner),
                row = u.row(heads[cuda_split(outer, groups)]);
        out[i] = ((const T *)(const void *)u.x)[(outer * u.r.length + row) * u.r.inner + inner];
    }
}

/* Arguments of unique, and the output index of each list; −1: the op has none such, or it is not wanted. */
struct unique_wanted {
    const void *args;
    const proa_tensor *x;
    bool along;
    int axis, index, inverse, counts;
    proa_dtype dtype;
};

static proa_status unique_write(cuda_context *c, const unique_rows &u, const unique_wanted &w, int64_t groups,
                                int64_t tiles, const int64_t *starts, int64_t *heads)
{
    cuda_tensor x = cuda_look(w.x);
    proa_meta meta = select_list(x.dtype, groups);
    if (w.along) {
        meta.ndim = (int8_t)x.ndim;
        for (int i = 0; i < x.ndim; i++) meta.shape[i] = i == w.axis ? groups : x.shape[i];
    }
    bool narrow = w.dtype == PROA_I32;
    unique_put p = {u, heads, {NULL, narrow}, {NULL, narrow}};
    unique_list counts = {NULL, narrow};
    char *out = NULL;
    int64_t n = u.r.length, total = u.r.outer * groups * u.r.inner;
    PROA_TRY(select_output(c, w.args, 0, meta, &out));
    if (w.index >= 0)
        PROA_TRY(select_output(c, w.args, w.index, select_list(w.dtype, groups), &p.index.data));
    if (w.inverse >= 0)
        PROA_TRY(select_output(c, w.args, w.inverse, select_list(w.dtype, n), &p.inverse.data));
    if (w.counts >= 0)
        PROA_TRY(select_output(c, w.args, w.counts, select_list(w.dtype, groups), &counts.data));
    if (groups == 0) return PROA_OK;
    PROA_TRY(select_put(c, u, p, n, tiles, starts));
    if (counts.data)
        PROA_TRY(
            cuda_launch(c, cuda_blocks(groups), CUDA_BLOCK, unique_counts_kernel, heads, groups, n, counts));
    if (total == 0) return PROA_OK;
    CUDA_SWITCH_UNIT(u.item, T,
                     return cuda_launch(c, cuda_blocks(total), CUDA_BLOCK, unique_move_kernel<T>, u, heads,
                                        groups, (T *)(void *)out, total);)
}

static proa_status unique(cuda_context *c, unique_rows u, const unique_wanted &w, bool sorted)
{
    int64_t n = u.r.length, groups = 0, tiles, *starts = NULL;
    int64_t *scratch =
        (int64_t *)cuda_scratch(c, (size_t)(3 * n + 1) * sizeof *scratch); /* heads; the order twice */
    if (!scratch) return cuda_host->error();
    proa_status s = sorted && n ? unique_sort(c, &u, scratch + n) : PROA_OK;
    if (s == PROA_OK && !(starts = select_count(c, u, n, &tiles))) s = cuda_host->error();
    if (s == PROA_OK) s = cuda_read(c, &groups, starts + tiles, sizeof groups);
    if (s == PROA_OK) s = unique_write(c, u, w, groups, tiles, starts, scratch);
    if (starts) cuda_scratch_free(c, starts);
    cuda_scratch_free(c, scratch);
    return s;
}

static int unique_axis(const proa_tensor *x, const proa_ints *axis)
{
    return !axis->count ? 0 : (int)(axis->at[0] < 0 ? axis->at[0] + cuda_look(x).ndim : axis->at[0]);
}

CUDA_KERNEL(unique, true)
{
    unique_wanted w = {a,
                       a->x,
                       a->axis.count && cuda_look(a->x).ndim,
                       unique_axis(a->x, &a->axis),
                       a->return_index && a->index != cuda_host->none ? 1 : -1,
                       a->return_inverse && a->inverse != cuda_host->none ? 2 : -1,
                       a->return_counts && a->counts != cuda_host->none ? 3 : -1,
                       a->dtype};
    return unique(c, unique_rows_of(a->x, &a->axis), w, true);
}

CUDA_KERNEL(unique_consecutive, true)
{
    unique_wanted w = {a,
                       a->x,
                       a->axis.count && cuda_look(a->x).ndim,
                       unique_axis(a->x, &a->axis),
                       -1,
                       a->return_inverse && a->inverse != cuda_host->none ? 1 : -1,
                       a->return_counts && a->counts != cuda_host->none ? 2 : -1,
                       a->dtype};
    return unique(c, unique_rows_of(a->x, &a->axis), w, false);
}
