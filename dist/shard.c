/* Fully sharded parameters (stage 3, as ZeRO-3): each rank of a group keeps one slice; the whole is
 * all-gathered when an op reads it, and its gradient is reduce-scattered. May use core, autograd and ops. */
#include "autograd/backward.h"
#include "core/blocked.h"
#include "core/deferred.h"
#include "core/copy.h"
#include "core/device.h"
#include "core/group.h"
#include "dist/task.h"

#include <proa/dist.h>

struct proa_shard {
    atomic_int refs;    /* held by the caller and by the parameter's deferred storage */
    int64_t group;      /* its number, as the group may end before the parameter is read */
    proa_tensor *param; /* kept, until proa_shard_free */
    proa_tensor *slice; /* kept: 1-D; the last ranks' may end with zeros, so that all have one length */
    int64_t numel;
    int rank, size;
};

static void let_go(proa_shard *s)
{
    if (atomic_fetch_sub(&s->refs, 1) != 1) return;
    proa_release(s->slice);
    proa__free(s);
}

static size_t item_of(const proa_shard *s) { return proa_dtype_size((proa_dtype)s->slice->dtype); }

/* ---- the whole --------------------------------------------------------------------------- */

/* Makes the group unusable for this rank after an error that left out a collective: the others would match
 * its next call with the one left out. Returns the error. */
static proa_status part(proa_group *g)
{
    if (g->size > 1) proa__ring_part(g->context);
    return proa_error();
}

/* All-gathers the slices into `to`. Collective: all ranks of the group must read the parameter at the same
 * point of their calls. */
static proa_status read_whole(void *context, void *to, size_t bytes)
{
    (void)bytes;
    const proa_shard *s = context;
    proa_group *g = proa__group("a divided parameter", s->group);
    if (!g) return proa_error();
    if (!to || proa__plain(s->slice) != PROA_OK) return part(g);
    return g->all_gather(g, s->slice->data, to, (size_t)s->slice->numel * item_of(s));
}

/* Copies this rank's slice out of a whole parameter that was written to, in the same way on all ranks. */
static proa_status write_whole(void *context, const void *from, size_t bytes)
{
    const proa_shard *s = context;
    size_t each = (size_t)s->slice->numel * item_of(s), at = each * (size_t)s->rank;
    size_t there = at >= bytes ? 0 : bytes - at < each ? bytes - at : each;
    PROA_TRY(proa__plain_to_write(s->slice));
    if (there) memcpy(s->slice->data, (const char *)from + at, there);
    memset(s->slice->data + there, 0, each - there);
    proa__bump_version(s->slice);
    return PROA_OK;
}

static void release_whole(void *context) { let_go(context); }

/* Copies this rank's slice from the parameter, and replaces the parameter's storage by a deferred one that
 * gathers. */
static proa_status divide(proa_shard *s)
{
    PROA_SCOPED;
    PROA__ON_CPU;
    if (s->param->dtype != s->slice->dtype || s->param->numel != s->numel)
        return proa_fail(
            PROA_ERR_BAD_STATE,
            "shard: a parameter became %s after it was divided as %s of %lld elements; change it before",
            proa__tensor_text(s->param), proa_dtype_name((proa_dtype)s->slice->dtype), (long long)s->numel);
    proa_tensor *now = proa__contiguous(s->param);
    if (!now) return proa_error();
    PROA_TRY(proa__plain(now));
    PROA_TRY(write_whole(s, now->data, (size_t)s->numel * item_of(s)));
    proa__deferred source = {.read = read_whole,
                             .release = release_whole,
                             .context = s,
                             .write = write_whole,
                             .spare = (size_t)(s->slice->numel * s->size - s->numel) * item_of(s)};
    proa_ints shape = {s->param->ndim, s->param->shape, NULL, NULL};
    proa_tensor *whole = proa__deferred_new(shape, (proa_dtype)s->param->dtype, source);
    if (!whole) return proa_error();
    atomic_fetch_add(&s->refs, 1);
    proa__tensor_assign(s->param, whole);
    return PROA_OK;
}

proa_status proa_shard_release(proa_shard *s, bool *gone)
{
    PROA_TRY(proa_error());
    bool done = false;
    if (!proa__deferred_is(s->param, s)) PROA_TRY(divide(s)); /* it was given other storage */
    proa_status status = proa__deferred_evict(s->param, &done);
    if (gone) *gone = done;
    return status;
}

proa_status proa_shard_update(proa_shard *s)
{
    bool gone = false;
    proa_tensor *whole = s->param;
    PROA_TRY(proa_error());
    if (!proa__deferred_is(whole, s)) return proa_shard_release(s, NULL);
    if (whole->storage->data && atomic_load(&whole->storage->refs) > 1)
        PROA_TRY(read_whole(s, whole->storage->data, whole->storage->bytes));
    proa__deferred_changed(whole);
    return proa__deferred_evict(whole, &gone);
}

/* ---- gradients --------------------------------------------------------------------------- */

/* g as a contiguous vector, padded by zeros to a multiple of the number of ranks. */
static proa_tensor *padded(const proa_shard *s, proa_tensor *g)
{
    if (proa_is_rows(g)) g = proa_rows_to_dense(g);
    g = g ? proa__contiguous(g) : NULL;
    if (!g || proa__plain(g) != PROA_OK || s->slice->numel * s->size == s->numel) return g;
    size_t bytes = (size_t)s->numel * proa_dtype_size((proa_dtype)g->dtype);
    proa_tensor *all = proa_zeros(PROA_SHAPE(s->slice->numel * s->size), (proa_dtype)g->dtype);
    if (all) memcpy(all->data, g->data, bytes);
    return all;
}

/* Reduce-scatters a gradient; returns this rank's slice of the average. */
static proa_tensor *averaged(const proa_shard *s, proa_group *g, proa_tensor *grad)
{
    proa_tensor *whole = padded(s, grad);
    proa_tensor *mine = whole ? proa_empty(PROA_SHAPE(s->slice->numel), (proa_dtype)whole->dtype) : NULL;
    if (!mine) {
        part(g);
        return NULL;
    }
    proa_status status = proa__calls_of(g)->reduce_scatter(g, whole->data, mine->data, mine->numel,
                                                           (proa_dtype)whole->dtype, PROA_REDUCE_AVG);
    return status == PROA_OK ? mine : NULL;
}

/* Runs when backward stored the parameter's gradient: adds this rank's slice of the average to the slice's
 * gradient, and frees the whole parameter and gradient. */
static proa_status gradient_stored(void *context)
{
    PROA_SCOPED;
    PROA__ON_CPU;
    proa_shard *s = context;
    proa_group *g = proa__group("a divided parameter", s->group);
    proa_tensor *mine = g ? averaged(s, g, proa_grad_of(s->param)) : NULL;
    if (!mine) return proa_error();
    proa_tensor *had = proa_grad_of(s->slice);
    if (had && had != proa_none) mine = proa_add(had, mine);
    PROA_TRY(proa_set_grad(s->slice, mine));
    proa_clear_grad(s->param);
    bool gone = false;
    return proa__deferred_evict(s->param, &gone);
}

/* ---- life -------------------------------------------------------------------------------- */

proa_tensor *proa_shard_slice(proa_shard *s) { return s->slice; }

proa_shard *proa_shard_new(proa_tensor *param, proa_group *group)
{
    if (proa_error()) return NULL;
    if (!group) group = proa_world_group();
    if (!group) return NULL;
    if (!param || !proa_is_leaf(param) || param->kind != PROA_DENSE || param->numel < 1 ||
        param->flags & (PROA_T_DEVICE | PROA_T_SYMBOLIC | PROA_T_META)) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  "shard: expected a dense leaf in the host's memory with elements, got %s",
                  param ? proa__tensor_text(param) : "NULL");
        return NULL;
    }
    proa_shard *s = proa__calloc(sizeof *s);
    if (!s) return NULL;
    int size = proa_group_size(group);
    *s = (proa_shard){
        .group = proa_group_id(group), .numel = param->numel, .rank = proa_group_rank(group), .size = size};
    atomic_init(&s->refs, 1);
    PROA_SCOPED;
    PROA__ON_CPU;
    s->slice = proa_zeros(PROA_SHAPE((param->numel + size - 1) / size), (proa_dtype)param->dtype);
    if (!s->slice) {
        proa__free(s);
        return NULL;
    }
    proa_keep(s->slice);
    s->param = proa_keep(param);
    proa_set_stop_gradient(s->slice, proa_stop_gradient(param));
    proa_status status = divide(s);
    if (status == PROA_OK && !proa_stop_gradient(param))
        status = proa__watch_gradient(param, gradient_stored, s, false);
    if (status == PROA_OK) return s;
    proa_shard_free(s);
    return NULL;
}

void proa_shard_free(proa_shard *s)
{
    if (!s) return;
    if (!proa_stop_gradient(s->param)) proa__watch_gradient(s->param, NULL, NULL, false);
    proa_release(s->param);
    let_go(s);
}
