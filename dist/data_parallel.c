/* Data parallelism by explicit calls: proa_sync_layer broadcasts rank 0's parameters and buffers,
 * proa_sync_gradients averages gradients over the ranks, by an all-reduce for each bucket of gradients of one
 * dtype. May use core, ops, autograd, nn and optim. */
#include "core/device.h"
#include "core/internal.h"
#include "core/tensor.h"
#include "dist/task.h"

#include <proa/autograd.h>
#include <proa/dist.h>

/* Bytes of a bucket if its elements have 8 bytes: 4 MiB, which is large against the latency of a call and
 * small enough for the last-level cache. Buckets of float32 have half of it; a larger gradient has one of its
 * own. */
enum { BUCKET_BYTES = 4 << 20 };

/* Handles the error of a collective after `before` successful ones: the other ranks made those, too, so that
 * this rank is no longer in step with them. */
static proa_status left_out(int64_t before)
{
    const proa_group *world = proa__default_group();
    if (before > 0 && world->size > 1) proa__ring_part(world->context);
    return proa_error();
}

proa_status proa_sync_layer(proa_layer *layer)
{
    PROA_TRY(proa_error());
    if (!layer) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "sync_layer: layer is NULL");
    PROA_SCOPED;
    PROA_NO_GRAD;
    proa_named_list state = proa_layer_state(layer);
    PROA_TRY(proa_error());
    for (int64_t i = 0; i < state.count; i++)
        if (!proa_broadcast_(state.at[i].tensor)) return left_out(i);
    return PROA_OK;
}

/* Copies the gradients of params [first, last) of the bucket's dtype into the bucket (gather), or back. */
static proa_status exchange(proa_tensor *const *params, int64_t first, int64_t last, char *bucket,
                            bool gather)
{
    for (int64_t i = first; i < last; i++) {
        proa_tensor *g = proa_grad_of(params[i]);
        if (g == proa_none || g->dtype != params[first]->dtype) continue;
        size_t bytes = (size_t)g->numel * proa_dtype_size((proa_dtype)g->dtype);
        PROA_TRY(gather ? proa_copy_out(g, bucket, bytes) : proa_copy_in(g, bucket, bytes));
        bucket += bytes;
    }
    return PROA_OK;
}

/* Averages one bucket: the gradients of params [first, last) that have the dtype of params[first], of
 * `elements` elements in all. */
static proa_status reduce_bucket(proa_tensor *const *params, int64_t first, int64_t last, int64_t elements)
{
    PROA_SCOPED;
    PROA__ON_CPU; /* the groups move host memory */
    proa_tensor *bucket = proa_empty(PROA_SHAPE(elements), (proa_dtype)params[first]->dtype);
    if (!bucket) return proa_error();
    PROA_TRY(exchange(params, first, last, bucket->data, true));
    if (!proa_all_reduce_(bucket, .op = PROA_REDUCE_TYPE_AVG)) return proa_error();
    return exchange(params, first, last, bucket->data, false);
}

/* Sets missing gradients to zero and makes SelectedRows gradients dense: every rank must reduce the same
 * tensors. */
static proa_status fill_missing(proa_tensors params)
{
    for (int64_t i = 0; i < params.count; i++) {
        proa_tensor *p = params.at[i], *g = proa_grad_of(p);
        if (g != proa_none) {
            if (g->flags & PROA_T_STRIDED)
                return proa_fail(PROA_ERR_INTERNAL, "sync_gradients: a gradient is not contiguous");
            if (!proa_is_rows(g)) continue;
            PROA_SCOPED; /* a SelectedRows gradient: rows differ between ranks, so it becomes dense */
            proa_tensor *whole = proa_rows_to_dense(g);
            if (!whole) return proa_error();
            PROA_TRY(proa_set_grad(p, whole));
            continue;
        }
        PROA_SCOPED;
        proa_tensor *zero = proa_full_like(p, 0);
        if (!zero) return proa_error();
        PROA_TRY(proa_set_grad(p, zero));
    }
    return PROA_OK;
}

proa_status proa_sync_gradients(proa_optimizer *opt)
{
    PROA_TRY(proa_error());
    if (!opt) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "sync_gradients: opt is NULL");
    if (proa_dist_size() == 1) return PROA_OK;
    PROA_NO_GRAD;
    proa_tensors params = proa_optimizer_parameters(opt);
    PROA_TRY(fill_missing(params));
    int64_t first = 0;
    while (first < params.count) {
        int64_t last = first, elements = 0, limit = BUCKET_BYTES / 8;
        while (last < params.count && params.at[last]->dtype == params.at[first]->dtype &&
               (elements == 0 || elements + params.at[last]->numel <= limit))
            elements += params.at[last++]->numel;
        if (reduce_bucket(params.at, first, last, elements) != PROA_OK) return left_out(first);
        first = last;
    }
    return PROA_OK;
}
