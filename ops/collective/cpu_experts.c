/* Kernels that exchange rows between the experts of a mixture-of-experts layer: rows arrive grouped by
 * sending rank and are regrouped by expert. May use core. */
#include "impl/collective.h"

#include "ops/collective/group.h"

typedef struct exchange {
    proa_group *group;
    int64_t experts; /* of each rank */
    int64_t n_in, n_out;
    size_t row;
    const int64_t *local, *global;
    size_t *in_bytes, *out_bytes; /* by rank */
} exchange;

static proa_status count(exchange *e, const char *op, const proa_tensor *x, const proa_tensor *local,
                         const proa_tensor *global)
{
    int64_t size = e->group->size;
    if (local->dtype != PROA_I64 || global->dtype != PROA_I64 || local->numel != global->numel ||
        local->numel == 0 || local->numel % size)
        return proa__op_fail(
            PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "local_count",
            "and global_count are %s and %s; expected int64 vectors of equal length, a multiple of "
            "the %lld ranks",
            proa__tensor_text(local), proa__tensor_text(global), (long long)size);
    e->local = (const int64_t *)(const void *)local->data;
    e->global = (const int64_t *)(const void *)global->data;
    e->experts = local->numel / size;
    e->row = x->shape[0] ? bytes_of(x) / (size_t)x->shape[0] : proa_dtype_size((proa_dtype)x->dtype);
    e->in_bytes = proa_scope_alloc(2 * (size_t)size * sizeof *e->in_bytes);
    if (!e->in_bytes) return proa_error();
    e->out_bytes = e->in_bytes + size;
    memset(e->in_bytes, 0, 2 * (size_t)size * sizeof *e->in_bytes);
    for (int64_t i = 0; i < local->numel; i++) {
        if (e->local[i] < 0 || e->global[i] < 0)
            return proa__op_fail(PROA_ERR_OUT_OF_RANGE, proa_find_op(op), "local_count",
                                 "and global_count hold a negative number of rows");
        e->in_bytes[i / e->experts] += (size_t)e->local[i] * e->row;
        e->out_bytes[i / e->experts] += (size_t)e->global[i] * e->row;
        e->n_in += e->local[i];
        e->n_out += e->global[i];
    }
    return PROA_OK;
}

static proa_status check_rows(const char *op, const proa_tensor *x, int64_t want, const char *by)
{
    if (x->ndim && x->shape[0] == want) return PROA_OK;
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "x",
                         "is %s; expected the %lld rows of %s", proa__tensor_text(x), (long long)want, by);
}

/* Moves the rows of this rank's experts between the order by rank and the order by expert. */
static void regroup(const exchange *e, char *by_rank, char *by_expert, bool to_expert)
{
    for (int64_t i = 0; i < e->experts; i++) {
        const char *start = by_rank;
        for (int64_t r = 0; r < e->group->size; r++) {
            size_t before = 0, n = (size_t)e->global[r * e->experts + i] * e->row;
            for (int64_t k = 0; k < i; k++) before += (size_t)e->global[r * e->experts + k] * e->row;
            char *there = by_rank + (size_t)(start - by_rank) + before;
            memcpy(to_expert ? by_expert : there, to_expert ? there : by_expert, n);
            by_expert += n;
            start += e->out_bytes[r];
        }
    }
}

static proa_tensor *host_like(const proa_tensor *x, int64_t rows)
{
    PROA__ON_CPU;
    proa_meta meta = proa_meta_of(x);
    meta.shape[0] = rows;
    return proa__tensor_new(&meta);
}

/* The rows for this rank's experts; new, in the caller's scope. */
static proa_tensor *scattered(const proa_global_scatter_args *a)
{
    PROA_SCOPED;
    exchange e = {.group = proa__group("global_scatter", a->group)};
    const proa_tensor *local = host_in(a->local_count), *global = host_in(a->global_count),
                      *x = host_in(a->x);
    if (!e.group || !local || !global || !x || count(&e, "global_scatter", x, local, global) ||
        check_rows("global_scatter", x, e.n_in, "local_count"))
        return NULL;
    proa_tensor *came = host_like(x, e.n_out), *out = host_like(x, e.n_out);
    if (!came || !out ||
        proa__calls_of(e.group)->all_to_all(e.group, x->data, e.in_bytes, came->data, e.out_bytes))
        return NULL;
    regroup(&e, came->data, out->data, true);
    return proa_return(out);
}

/* The rows that came back from the experts; new, in the caller's scope. */
static proa_tensor *gathered(const proa_global_gather_args *a)
{
    PROA_SCOPED;
    exchange e = {.group = proa__group("global_gather", a->group)};
    const proa_tensor *local = host_in(a->local_count), *global = host_in(a->global_count),
                      *x = host_in(a->x);
    if (!e.group || !local || !global || !x || count(&e, "global_gather", x, local, global) ||
        check_rows("global_gather", x, e.n_out, "global_count"))
        return NULL;
    proa_tensor *leaving = host_like(x, e.n_out), *out = host_like(x, e.n_in);
    if (!leaving || !out) return NULL;
    regroup(&e, leaving->data, x->data, false);
    if (proa__calls_of(e.group)->all_to_all(e.group, leaving->data, e.out_bytes, out->data, e.in_bytes))
        return NULL;
    return proa_return(out);
}

/* Creates the op's output with the size that the counts give, and fills it. */
static proa_status hand_out(const void *args, const char *op, const proa_tensor *result)
{
    if (!result) return proa_error();
    proa_meta meta = proa_meta_of(result);
    proa_tensor *out = proa_output_resize((void *)(uintptr_t)args, proa_find_op(op), 0, &meta);
    return out ? proa__copy(out, result) : proa_error();
}

PROA_KERNEL_ANYWHERE(global_scatter_cpu, global_scatter)
{
    return hand_out(a, "global_scatter", scattered(a));
}

PROA_KERNEL_ANYWHERE(global_gather_cpu, global_gather) { return hand_out(a, "global_gather", gathered(a)); }
