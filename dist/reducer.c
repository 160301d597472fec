/* Overlaps gradient averaging with backward (as DDP does): copies each gradient into its bucket when it is
 * ready, and all-reduces a complete bucket asynchronously while backward continues. The first backward, which
 * finds the order of the buckets, sends them at its end, as all send SelectedRows gradients. May use core,
 * autograd and ops. */
#include "autograd/backward.h"
#include "core/blocked.h"
#include "core/copy.h"
#include "core/device.h"
#include "dist/devices.h"
#include "dist/task.h"

#include <proa/dist.h>

enum {
    ALIGNMENT = 64, /* bytes: views begin at cache lines */
    PARTS = 16      /* of all gradients: what the last part's exchange takes is not hidden by backward */
};

typedef struct entry {
    proa_reducer *reducer;
    proa_tensor *param; /* kept */
    proa_tensor *view;  /* kept: its part of a bucket; NULL if sparse */
    int64_t bucket;
    bool sparse, ready;
} entry;

typedef struct bucket {
    proa_tensor *memory; /* kept: 1-D */
    int64_t bytes, waiting, params;
    proa_task *task;
} bucket;

struct proa_reducer {
    proa_group *group;
    int64_t most, last; /* bytes at which a bucket is closed at the latest; and the one that is sent last */
    entry *entries;
    int64_t count;
    bucket *buckets; /* in the order in which they are sent */
    int64_t n_buckets, next;
    int32_t handles[PROA_DTYPE_COUNT]; /* buckets and views that share the memory of a dtype */
    int64_t *arrival; /* parameters in the order in which rank 0's first backward brought gradients */
    int64_t arrived;
    bool sync, in_pass, ordered;
    proa__backward_end end;
};

/* ---- buckets --------------------------------------------------------------------------- */

static void drop_buckets(proa_reducer *r)
{
    for (int64_t i = 0; i < r->n_buckets; i++) {
        if (r->buckets[i].memory) proa_release(r->buckets[i].memory);
        proa_task_free(r->buckets[i].task);
    }
    for (int64_t i = 0; i < r->count; i++) {
        if (r->entries[i].view) proa_release(r->entries[i].view);
        r->entries[i].view = NULL;
    }
    proa__free(r->buckets);
    r->buckets = NULL;
    r->n_buckets = 0;
    memset(r->handles, 0, sizeof r->handles);
}

static int64_t bytes_of(const entry *e)
{
    int64_t bytes = e->param->numel * (int64_t)proa_dtype_size((proa_dtype)e->param->dtype);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Bytes at which a bucket is closed: a part of all gradients, so that most of them are sent before backward
 * ends, within the limits that the user set. */
static int64_t closing_bytes(const proa_reducer *r)
{
    int64_t total = 0;
    for (int64_t i = 0; i < r->count; i++) total += r->entries[i].sparse ? 0 : bytes_of(&r->entries[i]);
    int64_t part = total / PARTS > r->last ? total / PARTS : r->last;
    return part < r->most ? part : r->most;
}

/* Assigns the parameters to buckets of one dtype each, from the end of `order`: the bucket that is sent last,
 * which no computation hides, is closed at r->last bytes. A full bucket still takes small parameters, up to
 * an eighth more: a bias whose gradient comes before its layer's weight does not delay the next bucket. */
static void deal(proa_reducer *r, const int64_t *order)
{
    int64_t open[PROA_DTYPE_COUNT], spare[PROA_DTYPE_COUNT], most = closing_bytes(r);
    for (int i = 0; i < PROA_DTYPE_COUNT; i++) open[i] = -1;
    for (int64_t k = r->count - 1; k >= 0; k--) {
        entry *e = &r->entries[order[k]];
        if (e->sparse) continue;
        int64_t at = open[e->param->dtype], *extra = &spare[e->param->dtype], bytes = bytes_of(e);
        bool full = at >= 0 && r->buckets[at].bytes >= (at == 0 ? r->last : most);
        if (full) *extra -= bytes;
        if (at < 0 || (full && *extra < 0)) {
            at = open[e->param->dtype] = r->n_buckets++;
            *extra = (at == 0 ? r->last : most) / 8;
        }
        e->bucket = at;
        r->buckets[at].bytes += bytes;
        r->buckets[at].params++;
    }
    for (int64_t i = 0; i < r->count; i++) r->entries[i].bucket = r->n_buckets - 1 - r->entries[i].bucket;
    for (int64_t i = 0, j = r->n_buckets - 1; i < j; i++, j--) {
        bucket kept = r->buckets[i];
        r->buckets[i] = r->buckets[j];
        r->buckets[j] = kept;
    }
}

/* The device of the buckets: the parameters', if they are on one that can be connected to other ranks'. */
static int bucket_device(const proa_reducer *r)
{
    int device = proa__device_id(r->entries[0].param);
    for (int64_t i = 1; i < r->count; i++)
        if (proa__device_id(r->entries[i].param) != device) return PROA_CPU;
    return proa__communicators(r->group->context, device) ? device : PROA_CPU;
}

/* Makes the buckets parts of one tensor of each dtype: the allocator rounds small blocks up by a quarter. */
static proa_status make_views(proa_reducer *r, const int64_t *order)
{
    PROA_SCOPED;
    PROA__ON_CPU; /* again afterwards */
    proa_device_use(bucket_device(r));
    int64_t total[PROA_DTYPE_COUNT] = {0}, used[PROA_DTYPE_COUNT] = {0};
    proa_tensor *whole[PROA_DTYPE_COUNT] = {0};
    for (int64_t i = 0; i < r->n_buckets; i++) r->buckets[i].bytes = 0;
    for (int64_t k = 0; k < r->count; k++) { /* first all sizes, then memory and views */
        entry *e = &r->entries[order[k]];
        if (e->sparse) continue;
        r->buckets[e->bucket].bytes += bytes_of(e);
        total[e->param->dtype] += bytes_of(e);
    }
    for (int64_t k = 0; k < r->count; k++) {
        entry *e = &r->entries[order[k]];
        if (e->sparse) continue;
        bucket *b = &r->buckets[e->bucket];
        proa_dtype dtype = (proa_dtype)e->param->dtype;
        int64_t item = (int64_t)proa_dtype_size(dtype);
        if (!whole[dtype]) whole[dtype] = proa_zeros(PROA_SHAPE(total[dtype] / item), dtype);
        if (!whole[dtype]) return proa_error();
        if (!b->memory) {
            int64_t size[1] = {b->bytes / item};
            proa_tensor *memory = proa__tensor_view(whole[dtype], 1, size, NULL, used[dtype]);
            if (!memory) return proa_error();
            b->memory = proa_keep(memory);
            r->handles[dtype]++;
            used[dtype] += b->bytes;
            b->bytes = 0; /* from here on: where the next view begins */
        }
        proa_tensor *view = proa__tensor_view(b->memory, e->param->ndim, e->param->shape, NULL, b->bytes);
        if (!view) return proa_error();
        e->view = proa_keep(view);
        r->handles[dtype]++;
        b->bytes += bytes_of(e);
    }
    return PROA_OK;
}

static proa_status make_buckets(proa_reducer *r, const int64_t *order)
{
    drop_buckets(r);
    r->buckets = proa__calloc((size_t)(r->count ? r->count : 1) * sizeof *r->buckets);
    if (!r->buckets) return proa_error();
    deal(r, order);
    if (make_views(r, order) != PROA_OK) drop_buckets(r);
    return proa_error();
}

/* True for a view of a bucket that only the parameter and this reducer know. Then a gradient
 * that counts as zeros is not cleared, and the next one is not added to it. */
static bool is_unseen(const void *context, const proa_tensor *grad)
{
    const entry *e = context;
    return grad == e->view && atomic_load(&grad->refs) == 2 &&
           atomic_load(&grad->storage->refs) == e->reducer->handles[grad->dtype];
}

/* Makes the buckets in the order in which gradients arrived in rank 0's first backward. */
static proa_status put_in_order(proa_reducer *r)
{
    PROA_SCOPED;
    PROA__ON_CPU;
    proa_tensor *order = proa_empty(PROA_SHAPE(r->count), PROA_I64);
    if (!order) return proa_error();
    for (int64_t i = 0; i < r->count && r->arrived < r->count; i++)
        if (r->entries[i].sparse || !r->entries[i].ready) r->arrival[r->arrived++] = i;
    memcpy(order->data, r->arrival, (size_t)r->count * sizeof *r->arrival);
    PROA_TRY(proa_communicate(&(proa_message){.kind = PROA_MESSAGE_BROADCAST,
                                              .group = r->group,
                                              .out = order,
                                              .peer = proa_group_global_rank(r->group, 0)}));
    r->ordered = true;
    memcpy(r->arrival, order->data, (size_t)r->count * sizeof *r->arrival);
    return make_buckets(r, r->arrival);
}

/* ---- one backward ---------------------------------------------------------------------- */

static proa_status launch(proa_reducer *r)
{
    for (; r->next < r->n_buckets && r->buckets[r->next].waiting == 0; r->next++) {
        bucket *b = &r->buckets[r->next];
        b->task = proa_communicate_later(&(proa_message){.kind = PROA_MESSAGE_ALL_REDUCE,
                                                         .group = r->group,
                                                         .out = b->memory,
                                                         .op = PROA_REDUCE_TYPE_AVG});
        if (!b->task) return proa_error();
    }
    return PROA_OK;
}

/* Copies a gradient into its view of the bucket, which becomes the parameter's gradient, unless they are on
 * two devices. */
static proa_status settle(const entry *e)
{
    PROA_SCOPED;
    proa_tensor *g = proa_grad_of(e->param);
    if (g == proa_none) return PROA_OK;
    if (proa_is_rows(g)) g = proa_rows_to_dense(g);
    if (!g) return proa_error();
    PROA_TRY(proa__plain(g));
    if (g->data == e->view->data) return PROA_OK;
    PROA_TRY(proa__copy(e->view, g));
    bool together = proa__device_id(g) == proa__device_id(e->view);
    return together ? proa_set_grad(e->param, e->view) : PROA_OK;
}

static proa_status finish_pass(void *context, proa_status status);

/* No bucket has its gradients yet. */
static void await_all(proa_reducer *r)
{
    r->next = 0;
    for (int64_t i = 0; i < r->n_buckets; i++) r->buckets[i].waiting = r->buckets[i].params;
}

static proa_status begin_pass(proa_reducer *r)
{
    if (r->ordered && !r->buckets) PROA_TRY(make_buckets(r, r->arrival)); /* memory had run out */
    r->in_pass = true;
    await_all(r);
    if (!r->ordered) r->arrived = 0;
    for (int64_t i = 0; i < r->count; i++) r->entries[i].ready = false;
    r->end = (proa__backward_end){.fn = finish_pass, .context = r};
    proa__at_backward_end(&r->end);
    return PROA_OK;
}

static proa_status gradient_stored(void *context)
{
    entry *e = context;
    proa_reducer *r = e->reducer;
    if (!r->sync) return PROA_OK;
    if (!r->in_pass) PROA_TRY(begin_pass(r));
    if (e->ready && !e->sparse && r->ordered && e->bucket < r->next)
        return proa_fail(
            PROA_ERR_BAD_STATE,
            "reducer: a parameter of shape %s got a second gradient in one backward, after its first was "
            "sent; parameters inside proa_recompute must be used in one segment only",
            proa__shape_text(e->param->shape, e->param->ndim));
    if (e->sparse) {
        e->ready = true;
        return PROA_OK;
    }
    if (r->ordered) PROA_TRY(settle(e));
    if (e->ready) return PROA_OK;
    e->ready = true;
    if (!r->ordered) {
        r->arrival[r->arrived++] = e - r->entries;
        return PROA_OK;
    }
    r->buckets[e->bucket].waiting--;
    return launch(r);
}

/* At the end of the first backward: only now is the order of the buckets known. A sum's rounding may depend
 * on its place in a bucket, so that a job that resumes must have the buckets of one that went on. */
static proa_status fill_first(proa_reducer *r)
{
    PROA_TRY(put_in_order(r));
    await_all(r);
    for (int64_t i = 0; i < r->count; i++) {
        const entry *e = &r->entries[i];
        if (!e->ready || e->sparse) continue;
        PROA_TRY(settle(e));
        r->buckets[e->bucket].waiting--;
    }
    return PROA_OK;
}

/* One byte a parameter: nonzero if backward reached it on any rank. Collective. */
static proa_tensor *used_anywhere(proa_reducer *r)
{
    proa_tensor *used = proa_empty(PROA_SHAPE(r->count), PROA_U8);
    if (!used) return NULL;
    for (int64_t i = 0; i < r->count; i++) used->data[i] = r->entries[i].ready;
    proa_message m = {
        .kind = PROA_MESSAGE_ALL_REDUCE, .group = r->group, .out = used, .op = PROA_REDUCE_TYPE_MAX};
    return proa_communicate(&m) == PROA_OK ? used : NULL;
}

/* Fills the bucket views of parameters that this backward did not reach: by the gradient accumulated before,
 * or zero. */
static proa_status fill_missing(proa_reducer *r)
{
    for (int64_t i = 0; i < r->count; i++) {
        entry *e = &r->entries[i];
        if (e->ready || e->sparse) continue;
        bool had = proa_grad_of(e->param) != proa_none;
        if (had) PROA_TRY(settle(e));
        else PROA_TRY(proa__fill(e->view, NULL));
        r->buckets[e->bucket].waiting--;
    }
    return launch(r);
}

/* The number of each rank's gradient rows (SelectedRows); −1: the rank's gradient is dense, as in captured
 * programs. The array is the scope's. Collective. */
static const int64_t *counts_of_rows(proa_reducer *r, const proa_tensor *g)
{
    int64_t have = g == proa_none ? 0 : proa_is_rows(g) ? proa_rows_index(g)->numel : -1;
    proa_tensor *counts = proa_empty(PROA_SHAPE(proa_group_size(r->group)), PROA_I64);
    proa_tensor *mine = proa_full(PROA_SHAPE(1), (double)have, .dtype = PROA_I64);
    proa_message m = {PROA_MESSAGE_ALL_GATHER, r->group, .in = mine, .out = counts};
    if (!counts || !mine || proa_communicate(&m) != PROA_OK) return NULL;
    return (const int64_t *)(const void *)counts->data;
}

/* Averages a sparse parameter's gradient as a dense table, since some rank's gradient is dense. */
static proa_status exchange_dense(proa_reducer *r, const entry *e, proa_tensor *g)
{
    proa_tensor *whole = g == proa_none    ? proa_full_like(e->param, 0)
                         : proa_is_rows(g) ? proa_rows_to_dense(g)
                                           : proa_assign(g);
    if (!whole) return proa_error();
    PROA_TRY(proa_communicate(
        &(proa_message){PROA_MESSAGE_ALL_REDUCE, r->group, .out = whole, .op = PROA_REDUCE_TYPE_AVG}));
    return proa_set_grad(e->param, whole);
}

/* Averages a SelectedRows gradient: concatenates all ranks' rows and divides the values by the number of
 * ranks. */
static proa_status exchange_rows(proa_reducer *r, const entry *e)
{
    PROA_SCOPED;
    PROA__ON_CPU;
    int size = proa_group_size(r->group), rank = proa_group_rank(r->group);
    int64_t width = e->param->shape[0] ? e->param->numel / e->param->shape[0] : 0, total = 0;
    proa_tensor *g = proa_grad_of(e->param);
    const int64_t *n = counts_of_rows(r, g);
    if (!n) return proa_error();
    for (int k = 0; k < size; k++) {
        if (n[k] < 0) return exchange_dense(r, e, g);
        total += n[k];
    }
    proa_tensor *index = proa_empty(PROA_SHAPE(total), PROA_I64);
    proa_tensor *values = proa_empty(PROA_SHAPE(total, width), (proa_dtype)e->param->dtype);
    if (!index || !values) return proa_error();
    int64_t at = 0, item = (int64_t)proa_dtype_size((proa_dtype)values->dtype) * width;
    for (int k = 0; k < size; at += n[k++]) {
        int64_t zero[1] = {n[k]}, both[2] = {n[k], width};
        proa_tensor *i = proa__tensor_view(index, 1, zero, NULL, at * 8);
        proa_tensor *v = proa__tensor_view(values, 2, both, NULL, at * item);
        if (!i || !v) return proa_error();
        if (k == rank && n[k]) {
            proa_tensor *given = proa__contiguous((proa_tensor *)(uintptr_t)proa_rows_values(g));
            if (!given) return proa_error();
            memcpy(i->data, proa_rows_index(g)->data, (size_t)n[k] * 8);
            memcpy(v->data, given->data, (size_t)(n[k] * item));
        }
        int peer = proa_group_global_rank(r->group, k);
        PROA_TRY(proa_communicate(&(proa_message){PROA_MESSAGE_BROADCAST, r->group, .out = i, .peer = peer}));
        PROA_TRY(proa_communicate(&(proa_message){PROA_MESSAGE_BROADCAST, r->group, .out = v, .peer = peer}));
    }
    int64_t shape[PROA_MAX_DIMS];
    memcpy(shape, e->param->shape, sizeof shape);
    shape[0] = total;
    values = proa_scale(values, .scale = PROA_SCALAR(1.0 / size));
    if (values) values = proa_reshape(values, ((proa_ints){e->param->ndim, shape, NULL, NULL}));
    proa_tensor *rows = proa_rows_new(index, values, e->param->shape[0]);
    return rows ? proa_set_grad(e->param, rows) : proa_error();
}

static proa_status take_results(proa_reducer *r, const proa_tensor *used)
{
    for (int64_t i = 0; i < r->n_buckets; i++) PROA_TRY(proa_task_wait(r->buckets[i].task));
    for (int64_t i = 0; i < r->count; i++) {
        const entry *e = &r->entries[i];
        if (!used->data[i]) continue;
        if (e->sparse) {
            PROA_TRY(exchange_rows(r, e));
            continue;
        }
        proa_tensor *g = proa_grad_of(e->param);
        if (g == proa_none || proa__device_id(g) == proa__device_id(e->view)) {
            if (g != e->view) PROA_TRY(proa_set_grad(e->param, e->view));
        } else {
            PROA_TRY(proa__copy(g, e->view));
        }
    }
    return PROA_OK;
}

static proa_status exchange(proa_reducer *r)
{
    PROA_SCOPED;
    PROA__ON_CPU;
    if (!r->ordered) PROA_TRY(fill_first(r));
    PROA_TRY(fill_missing(r));
    proa_tensor *used = used_anywhere(r);
    return used ? take_results(r, used) : proa_error();
}

static proa_status finish_pass(void *context, proa_status status)
{
    proa_reducer *r = context;
    bool sent = r->next > 0 || status == PROA_OK;
    if (status == PROA_OK) status = exchange(r);
    if (status != PROA_OK && sent) proa__ring_part(r->group->context);
    for (int64_t i = 0; i < r->n_buckets; i++) {
        proa_task *task = r->buckets[i].task;
        if (status != PROA_OK && task) proa__task_end(task); /* the next pass fills its bucket */
        proa_task_free(task);
        r->buckets[i].task = NULL;
    }
    r->in_pass = false;
    return status;
}

/* ---- life ------------------------------------------------------------------------------ */

static proa_status watch_all(proa_reducer *r, proa_tensors params, proa_ints sparse)
{
    for (int64_t i = 0; i < params.count; i++) {
        proa_tensor *p = params.at[i];
        if (!proa_is_leaf(p) || proa_stop_gradient(p))
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "reducer: parameter %lld is no leaf that wants a gradient", (long long)i);
        r->entries[i] = (entry){.reducer = r, .param = proa_keep(p), .sparse = sparse.count && sparse.at[i]};
        r->count = i + 1;
        PROA_TRY(proa__watch_gradient(p, gradient_stored, &r->entries[i], true));
        proa__watcher_shares(p, is_unseen);
    }
    return PROA_OK;
}

proa_reducer *proa_reducer_new_opt(proa_tensors params, proa_reducer_opts opts)
{
    if (proa_error()) return NULL;
    if (params.count < 1 || (opts.sparse.count && opts.sparse.count != params.count)) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  "reducer: expected parameters, and as many marks in `sparse`; got %lld and %lld",
                  (long long)params.count, (long long)opts.sparse.count);
        return NULL;
    }
    proa_reducer *r = proa__calloc(sizeof *r);
    if (!r) return NULL;
    r->group = opts.group ? opts.group : proa_world_group();
    r->most = opts.bucket_bytes > 0 ? opts.bucket_bytes : 25 << 20;
    r->last = opts.last_bucket_bytes > 0 ? opts.last_bucket_bytes : 1 << 20;
    r->sync = true;
    r->entries = proa__calloc((size_t)params.count * sizeof *r->entries);
    r->arrival = proa__calloc((size_t)params.count * sizeof *r->arrival);
    if (r->group && r->entries && r->arrival && watch_all(r, params, opts.sparse) == PROA_OK) return r;
    proa_reducer_free(r);
    return NULL;
}

void proa_reducer_set_sync(proa_reducer *r, bool on) { r->sync = on; }

void proa_reducer_free(proa_reducer *r)
{
    if (!r) return;
    for (int64_t i = 0; i < r->count; i++) proa__watch_gradient(r->entries[i].param, NULL, NULL, false);
    drop_buckets(r);
    for (int64_t i = 0; i < r->count; i++) proa_release(r->entries[i].param);
    proa__free(r->entries);
    proa__free(r->arrival);
    proa__free(r);
}
