/* Kernels of tensor-parallel layers: slices along the last axis, embedding look-up in a vocabulary that is
 * split over ranks, and cross-entropy over classes that are. May use core. */
#include "impl/collective.h"

#include "ops/collective/group.h"

/* ---- the last axis --------------------------------------------------------------------- */

static int64_t last_dim(const proa_tensor *t) { return t->shape[t->ndim - 1]; }

/* Copies n columns of `item` bytes for each row, from and to column offsets of rows of different widths. */
static void copy_columns(char *to, int64_t to_width, const char *from, int64_t from_width, int64_t rows,
                         int64_t n, size_t item)
{
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + (size_t)(i * to_width) * item, from + (size_t)(i * from_width) * item, (size_t)n * item);
}

PROA_KERNEL_ANYWHERE(mp_identity_cpu, mp_identity) { return proa__copy(a->out, a->x); }

PROA_KERNEL_ANYWHERE(mp_split_cpu, mp_split)
{
    PROA_SCOPED;
    int64_t rank = rank_in("mp_split", a->group, a->rank), width = last_dim(a->x), n = last_dim(a->out);
    const proa_tensor *x = rank < 0 ? NULL : host_in(a->x);
    proa_tensor *out = x ? host_out(a->out) : NULL;
    if (!out) return proa_error();
    if ((rank + 1) * n > width)
        return ROWS_FAIL(mp_split, OUT_OF_RANGE, "rank", "is %lld; x %s has %lld parts", (long long)rank,
                         proa__tensor_text(x), (long long)(n ? width / n : 0));
    size_t item = proa_dtype_size((proa_dtype)x->dtype);
    copy_columns(out->data, n, x->data + (size_t)(rank * n) * item, width, n ? out->numel / n : 0, n, item);
    return host_back(a->out, out, PROA_OK);
}

PROA_KERNEL_ANYWHERE(mp_concat_cpu, mp_concat)
{
    PROA_SCOPED;
    proa_group *g = group_as("mp_concat", a->group, a->rank, a->nranks);
    const proa_tensor *x = g ? host_in(a->x) : NULL;
    proa_tensor *out = x ? host_out(a->out) : NULL;
    if (!out) return proa_error();
    int64_t n = last_dim(x), width = last_dim(out), rows = n ? x->numel / n : 0;
    size_t item = proa_dtype_size((proa_dtype)x->dtype), bytes = bytes_of(x);
    if (rows == 1) return host_back(a->out, out, g->all_gather(g, x->data, out->data, bytes));
    char *all = proa_scratch((size_t)g->size * bytes + 1);
    if (!all) return proa_error();
    proa_status status = g->all_gather(g, x->data, all, bytes);
    for (int r = 0; r < g->size && status == PROA_OK; r++)
        copy_columns(out->data + (size_t)(r * n) * item, width, all + (size_t)r * bytes, n, rows, n, item);
    proa_scratch_free(all);
    return host_back(a->out, out, status);
}

/* ---- look-up --------------------------------------------------------------------------- */

PROA_KERNEL_ANYWHERE(mp_embedding_cpu, mp_embedding)
{
    PROA_SCOPED;
    const proa_tensor *weight = host_in(a->weight), *x = host_in(a->x);
    proa_tensor *out = weight && x ? host_out(a->out) : NULL;
    if (!out) return proa_error();
    size_t row = (size_t)weight->shape[1] * proa_dtype_size((proa_dtype)weight->dtype);
    for (int64_t i = 0; i < x->numel; i++) {
        int64_t at = rows_get_int((proa_dtype)x->dtype, x->data, i) - a->start_index;
        char *to = out->data + (size_t)i * row;
        if (at >= 0 && at < weight->shape[0]) memcpy(to, weight->data + (size_t)at * row, row);
        else memset(to, 0, row);
    }
    return host_back(a->out, out, PROA_OK);
}

/* Half types are summed in float32 and rounded once. */
PROA_KERNEL_ANYWHERE(mp_embedding_grad_cpu, mp_embedding_grad)
{
    PROA_SCOPED;
    const proa_tensor *x = host_in(a->x), *d = host_in(a->d_out);
    proa_tensor *out = x && d ? host_out(a->d_weight) : NULL;
    if (!out) return proa_error();
    int64_t n = out->shape[1];
    proa_dtype dtype = (proa_dtype)out->dtype, sum = dtype == PROA_F64 ? PROA_F64 : PROA_F32;
    size_t bytes = (size_t)out->numel * proa_dtype_size(sum);
    char *sums = sum == dtype ? out->data : proa_scratch(bytes + 1);
    if (bytes == 0) return host_back(a->d_weight, out, PROA_OK);
    if (!sums) return proa_error();
    memset(sums, 0, bytes);
    for (int64_t i = 0; i < x->numel; i++) {
        int64_t at = rows_get_int((proa_dtype)x->dtype, x->data, i) - a->start_index;
        if (at < 0 || at >= out->shape[0]) continue;
        for (int64_t k = 0; k < n; k++)
            rows_set(sum, sums, at * n + k,
                     rows_get(sum, sums, at * n + k) + rows_get(dtype, d->data, i * n + k));
    }
    if (sums != out->data) {
        rows_store_float(dtype, out->data, 0, out->numel, (const float *)(const void *)sums);
        proa_scratch_free(sums);
    }
    return host_back(a->d_weight, out, PROA_OK);
}

/* ---- cross-entropy --------------------------------------------------------------------- */

/* Rows of classes [first, first + n) on this rank. */
typedef struct classes {
    proa_group *group;
    const proa_tensor *x, *label;
    int64_t rows, n, first, ignored;
} classes;

static int64_t label_of(const classes *c, int64_t row)
{
    return rows_get_int((proa_dtype)c->label->dtype, c->label->data, row);
}

static bool owns(const classes *c, int64_t label) { return label >= c->first && label < c->first + c->n; }

/* Largest logit of each row, over all ranks. */
static proa_status find_largest(const classes *c, double *largest)
{
    for (int64_t i = 0; i < c->rows; i++) {
        largest[i] = -INFINITY;
        for (int64_t k = 0; k < c->n; k++) {
            double v = rows_get((proa_dtype)c->x->dtype, c->x->data, i * c->n + k);
            if (v > largest[i] || v != v) largest[i] = v;
        }
    }
    return c->group->all_reduce(c->group, largest, c->rows, PROA_F64, PROA_REDUCE_MAX);
}

/* sums: of each row Σ exp(x − largest), then the label's x − largest; over all ranks. */
static proa_status find_sums(const classes *c, const double *largest, double *sums)
{
    for (int64_t i = 0; i < c->rows; i++) {
        int64_t label = label_of(c, i);
        sums[2 * i] = sums[2 * i + 1] = 0;
        for (int64_t k = 0; k < c->n; k++) {
            double v = rows_get((proa_dtype)c->x->dtype, c->x->data, i * c->n + k) - largest[i];
            sums[2 * i] += exp(v);
            if (c->first + k == label) sums[2 * i + 1] = v;
        }
    }
    return c->group->all_reduce(c->group, sums, 2 * c->rows, PROA_F64, PROA_REDUCE_SUM);
}

static void write_softmax(const classes *c, const double *largest, const double *sums, proa_tensor *softmax)
{
    proa_dtype dtype = (proa_dtype)softmax->dtype;
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t k = 0; k < c->n; k++) {
            double v = rows_get(dtype, c->x->data, i * c->n + k) - largest[i];
            rows_set(dtype, softmax->data, i * c->n + k, exp(v) / sums[2 * i]);
        }
}

static proa_status check_labels(const classes *c, int64_t all)
{
    for (int64_t i = 0; i < c->rows; i++) {
        int64_t label = label_of(c, i);
        if (label != c->ignored && (label < 0 || label >= all))
            return ROWS_FAIL(mp_cross_entropy, OUT_OF_RANGE, "label",
                             "entry %lld is %lld; expected 0 to %lld, or ignore_index %lld", (long long)i,
                             (long long)label, (long long)all - 1, (long long)c->ignored);
    }
    return PROA_OK;
}

PROA_KERNEL_ANYWHERE(mp_cross_entropy_cpu, mp_cross_entropy)
{
    PROA_SCOPED;
    classes c = {.group = group_as("mp_cross_entropy", a->group, a->nranks > 0 ? a->rank : -1, a->nranks)};
    if (!c.group || !(c.x = host_in(a->logits)) || !(c.label = host_in(a->label))) return proa_error();
    proa_tensor *softmax = host_out(a->softmax), *loss = host_out(a->loss);
    if (!softmax || !loss) return proa_error();
    c.n = last_dim(c.x);
    c.rows = loss->numel;
    c.first = c.group->rank * c.n;
    c.ignored = a->ignore_index;
    PROA_TRY(check_labels(&c, c.group->size * c.n));
    double *largest = proa_scope_alloc(3 * (size_t)c.rows * sizeof *largest + 1);
    if (!largest) return proa_error();
    double *sums = largest + c.rows;
    PROA_TRY(find_largest(&c, largest));
    PROA_TRY(find_sums(&c, largest, sums));
    write_softmax(&c, largest, sums, softmax);
    for (int64_t i = 0; i < c.rows; i++) {
        double v = label_of(&c, i) == c.ignored ? 0 : log(sums[2 * i]) - sums[2 * i + 1];
        rows_set((proa_dtype)loss->dtype, loss->data, i, v);
    }
    return host_back(a->loss, loss, host_back(a->softmax, softmax, PROA_OK));
}

PROA_KERNEL_ANYWHERE(mp_cross_entropy_grad_cpu, mp_cross_entropy_grad)
{
    PROA_SCOPED;
    int64_t rank = rank_in("mp_cross_entropy_grad", a->group, a->nranks > 0 ? a->rank : -1);
    classes c = {.x = host_in(a->softmax), .label = host_in(a->label), .ignored = a->ignore_index};
    const proa_tensor *d = host_in(a->d_loss);
    proa_tensor *out = rank >= 0 && c.x && c.label && d ? host_out(a->d_logits) : NULL;
    if (!out) return proa_error();
    c.n = last_dim(c.x);
    c.rows = d->numel;
    c.first = rank * c.n;
    proa_dtype dtype = (proa_dtype)out->dtype;
    for (int64_t i = 0; i < c.rows; i++) {
        int64_t label = label_of(&c, i);
        double by = label == c.ignored ? 0 : rows_get(dtype, d->data, i);
        for (int64_t k = 0; k < c.n; k++) {
            double v = rows_get(dtype, c.x->data, i * c.n + k) - (owns(&c, label) && c.first + k == label);
            rows_set(dtype, out->data, i * c.n + k, v * by);
        }
    }
    return host_back(a->d_logits, out, PROA_OK);
}
