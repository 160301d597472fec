/* Kernel of unique: slices along the axis become rows of order-preserving keys, which are sorted stably and
 * grouped. Without an axis, each element is a row of one key. */
#include "ops/index/indices.h"
#include "ops/sort/keys.h"
#include "impl/index.h"

extern const proa_op proa__op_unique;

typedef struct rows_of_keys {
    const uint64_t *keys; /* [n][width] */
    int64_t n, width;
    int64_t *order; /* row numbers, sorted */
} rows_of_keys;

static int compare_rows(const rows_of_keys *r, int64_t a, int64_t b)
{
    const uint64_t *p = r->keys + a * r->width, *q = r->keys + b * r->width;
    for (int64_t i = 0; i < r->width; i++)
        if (p[i] != q[i]) return p[i] < q[i] ? -1 : 1;
    return 0;
}

/* Stable merge sort of r->order; `other` has space for n. */
static void sort_rows(rows_of_keys *r, int64_t *other)
{
    int64_t *src = r->order, *dst = other;
    for (int64_t run = 1; run < r->n; run *= 2) {
        for (int64_t from = 0; from < r->n; from += 2 * run) {
            int64_t mid = from + run < r->n ? from + run : r->n, end = mid + run < r->n ? mid + run : r->n;
            for (int64_t i = from, j = mid, to = from; to < end; to++)
                dst[to] = j >= end || (i < mid && compare_rows(r, src[i], src[j]) <= 0) ? src[i++] : src[j++];
        }
        int64_t *t = src;
        src = dst, dst = t;
    }
    if (src != r->order) memcpy(r->order, src, (size_t)r->n * sizeof *src);
}

static void sort_flat(rows_of_keys *r, sort_pair *pairs, int bits)
{
    for (int64_t i = 0; i < r->n; i++) pairs[i] = (sort_pair){r->keys[i], i};
    sort_pairs(pairs, pairs + r->n, r->n, bits);
    for (int64_t i = 0; i < r->n; i++) r->order[i] = pairs[i].place;
}

/* NaN differs from NaN, so each NaN is a group of its own. */
static bool starts_group(const rows_of_keys *r, int64_t i, uint64_t nan)
{
    if (i == 0 || compare_rows(r, r->order[i - 1], r->order[i]) != 0) return true;
    const uint64_t *p = r->keys + r->order[i] * r->width;
    for (int64_t k = 0; k < r->width && nan; k++)
        if (p[k] == nan) return true;
    return false;
}

static void put_place(proa_tensor *t, int64_t i, int64_t v)
{
    if (t->dtype == PROA_I32) ((int32_t *)(void *)t->data)[i] = (int32_t)v;
    else ((int64_t *)(void *)t->data)[i] = v;
}

/* One optional list output of `n` entries; absent stays absent. */
static proa_status make_list(const proa_unique_args *a, proa_tensor *present, bool wanted, int index,
                             int64_t n)
{
    proa_meta meta = {.dtype = a->dtype, .ndim = 1, .shape = {n}};
    if (!wanted || present == proa_none) return PROA_OK;
    return proa_output_resize((void *)(uintptr_t)a, &proa__op_unique, index, &meta) ? PROA_OK : proa_error();
}

static proa_status write_groups(const proa_unique_args *a, const rows_of_keys *r, const around *x,
                                int64_t groups, uint64_t nan)
{
    int64_t item = (int64_t)proa_dtype_size((proa_dtype)a->x->dtype), g = -1, before = 0;
    proa_meta meta = {.dtype = (proa_dtype)a->x->dtype, .ndim = 1, .shape = {groups}};
    if (a->axis.count && a->x->ndim) {
        meta = proa_meta_of(a->x);
        meta.shape[a->axis.at[0] < 0 ? a->axis.at[0] + a->x->ndim : a->axis.at[0]] = groups;
    }
    if (!proa_output_resize((void *)(uintptr_t)a, &proa__op_unique, 0, &meta)) return proa_error();
    PROA_TRY(make_list(a, a->index, a->return_index, 1, groups));
    PROA_TRY(make_list(a, a->inverse, a->return_inverse, 2, r->n));
    PROA_TRY(make_list(a, a->counts, a->return_counts, 3, groups));
    for (int64_t i = 0; i < r->n; i++) {
        int64_t row = r->order[i];
        if (starts_group(r, i, nan)) {
            if (g >= 0 && a->return_counts) put_place(a->counts, g, i - before);
            before = i;
            g++;
            if (a->return_index) put_place(a->index, g, row);
            for (int64_t o = 0; o < x->outer; o++)
                memcpy(a->out->data + (o * groups + g) * x->inner * item,
                       a->x->data + (o * x->length + row) * x->inner * item, (size_t)(x->inner * item));
        }
        if (a->return_inverse) put_place(a->inverse, row, g);
    }
    if (g >= 0 && a->return_counts) put_place(a->counts, g, r->n - before);
    return PROA_OK;
}

PROA_KERNEL(unique_cpu, unique)
{
    proa_dtype dtype = (proa_dtype)a->x->dtype;
    around x = {1, a->x->numel, 1};
    int64_t item = (int64_t)proa_dtype_size(dtype), groups = 0;
    if (a->axis.count && a->x->ndim)
        x = around_axis(a->x, (int)(a->axis.at[0] < 0 ? a->axis.at[0] + a->x->ndim : a->axis.at[0]));
    rows_of_keys r = {.n = x.length, .width = x.outer * x.inner};
    bool floating = dtype >= PROA_F16 && dtype <= PROA_F64;
    uint64_t nan = !floating ? 0 : key_bits(dtype) == 64 ? UINT64_MAX : UINT32_MAX;
    size_t bytes, capacity, n = (size_t)r.n;
    if (!proa__mul_size(n, (size_t)r.width * 8, &bytes) || !proa__mul_size(n, 6 * sizeof(int64_t), &capacity))
        return proa_error();
    uint64_t *keys = proa_scratch(bytes);
    r.order = proa_scratch(capacity); /* the order, then space for sorting: n entries, or 2n pairs */
    proa_status status = proa_error();
    if (keys && r.order) {
        for (int64_t i = 0; i < r.n; i++)
            for (int64_t k = 0; k < r.width; k++)
                keys[i * r.width + k] =
                    key_of(dtype, a->x->data + ((k / x.inner * x.length + i) * x.inner + k % x.inner) * item);
        r.keys = keys;
        for (int64_t i = 0; i < r.n; i++) r.order[i] = i;
        if (r.width == 1) sort_flat(&r, (sort_pair *)(void *)(r.order + r.n), key_bits(dtype));
        else sort_rows(&r, r.order + r.n);
        for (int64_t i = 0; i < r.n; i++) groups += starts_group(&r, i, nan);
        status = write_groups(a, &r, &x, groups, nan);
    }
    proa_scratch_free(keys);
    proa_scratch_free(r.order);
    return status;
}
