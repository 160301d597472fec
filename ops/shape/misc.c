/* Shape inference of shape, size, tile, flip, roll, one_hot and meshgrid, and gradient rules (vjp) of the
 * differentiable ones. May use core and ops. */
#include "ops/shape/slice.h"
#include "impl/elementwise.h"
#include "impl/shape.h"

#include "ops/shape/tile.h"

/* ---- shape, size ------------------------------------------------------------------------ */

proa_status shape_infer(const proa_shape_args *a, proa_shape_metas *m)
{
    m->out = (proa_meta){.dtype = PROA_I32, .ndim = 1, .shape = {a->input->ndim}};
    return PROA_OK;
}

proa_status size_infer(__attribute__((unused)) const proa_size_args *a, proa_size_metas *m)
{
    m->out = (proa_meta){.dtype = PROA_I64, .ndim = 0};
    return PROA_OK;
}

/* ---- tile ------------------------------------------------------------------------------- */

proa_status proa__tile_plan(const char *who, int ndim, const int64_t *shape, const proa_ints *repeats,
                            proa_tile *t)
{
    int64_t given[PROA_MAX_DIMS];
    int n = 0;
    PROA_TRY(proa__ints_list(who, "repeat_times", repeats, PROA_MAX_DIMS, given, &n));
    t->ndim = n > ndim ? n : ndim;
    for (int i = 0; i < t->ndim; i++) {
        int from = i - (t->ndim - ndim), rep = i - (t->ndim - n);
        t->size[i] = from < 0 ? 1 : shape[from];
        t->times[i] = rep < 0 ? 1 : given[rep];
        if (t->times[i] != PROA_UNKNOWN && t->times[i] < 1)
            return OP_FAIL(who, INVALID_ARGUMENT, "repeat_times", "has %lld at place %d; expected ≥ 1",
                           (long long)t->times[i], rep);
    }
    return PROA_OK;
}

static proa_status tiled_shape(const char *who, const proa_tile *t, int64_t *shape)
{
    for (int i = 0; i < t->ndim; i++) {
        bool unknown = t->times[i] == PROA_UNKNOWN || t->size[i] < 0;
        shape[i] = -1;
        if (!unknown && __builtin_mul_overflow(t->times[i], t->size[i], &shape[i]))
            return OP_FAIL(who, OVERFLOW, "repeat_times", "makes axis %d longer than 2^63", i);
    }
    return PROA_OK;
}

proa_status tile_infer(const proa_tile_args *a, proa_tile_metas *m)
{
    proa_tile t;
    PROA_TRY(proa__tile_plan("tile", a->x->ndim, a->x->shape, &a->repeat_times, &t));
    m->out.dtype = (proa_dtype)a->x->dtype;
    m->out.ndim = (int8_t)t.ndim;
    return tiled_shape("tile", &t, m->out.shape);
}

proa_status tile_vjp(const proa_tile_args *a, proa_tile_grads *g)
{
    g->d_x = proa_tile_grad(g->d_out, proa__shape_like(a->x), a->repeat_times);
    return proa_error();
}

proa_status tile_grad_infer(const proa_tile_grad_args *a, proa_tile_grad_metas *m)
{
    proa_tile t;
    int64_t shape[PROA_MAX_DIMS];
    PROA_TRY(proa__dims_meta("tile_grad", "shape", &a->shape, a->d_out->dtype, &m->d_x));
    PROA_TRY(proa__tile_plan("tile_grad", m->d_x.ndim, m->d_x.shape, &a->repeat_times, &t));
    PROA_TRY(tiled_shape("tile_grad", &t, shape));
    bool fits = t.ndim == a->d_out->ndim && proa__shapes_agree(shape, a->d_out->shape, t.ndim);
    if (fits) return PROA_OK;
    return OP_FAIL("tile_grad", INVALID_ARGUMENT, "d_out", "is %s; expected shape %s",
                   proa__tensor_text(a->d_out), proa__shape_text(shape, t.ndim));
}

proa_status tile_grad_vjp(const proa_tile_grad_args *a, proa_tile_grad_grads *g)
{
    g->d_d_out = proa_tile(g->d_d_x, a->repeat_times);
    return proa_error();
}

/* ---- flip, roll ------------------------------------------------------------------------- */

proa_status flip_infer(const proa_flip_args *a, proa_flip_metas *m)
{
    int axes[PROA_MAX_DIMS], n;
    m->out = proa_meta_of(a->x);
    return proa__axes("flip", "axis", &a->axis, a->x->ndim, axes, &n);
}

proa_status flip_vjp(const proa_flip_args *a, proa_flip_grads *g)
{
    g->d_x = proa_flip(g->d_out, a->axis);
    return proa_error();
}

proa_status roll_infer(const proa_roll_args *a, proa_roll_metas *m)
{
    int64_t n, want = a->axis.count ? a->axis.count : 1;
    int axis;
    m->out = proa_meta_of(a->x);
    PROA_TRY(proa__ints_count("roll", "shifts", &a->shifts, &n));
    if (n != want)
        return OP_FAIL("roll", INVALID_ARGUMENT, "shifts", "has %lld entries; expected %lld, one an axis",
                       (long long)n, (long long)want);
    for (int64_t i = 0; i < a->axis.count; i++)
        PROA_TRY(proa__axis("roll", "axis", a->axis.at[i], a->x->ndim, &axis));
    return PROA_OK;
}

/* Shifts that a tensor supplies are turned by arithmetic on it, so that a program keeps them as inputs. */
proa_status roll_vjp(const proa_roll_args *a, proa_roll_grads *g)
{
    int64_t n, back[2 * PROA_MAX_DIMS];
    PROA_TRY(proa__ints_count("roll", "shifts", &a->shifts, &n));
    if (a->shifts.tensor && !a->shifts.tensor->data) {
        proa_tensor *zero = proa__zero_of(a->shifts.tensor);
        proa_ints turned = {.tensor = proa_subtract(zero, a->shifts.tensor)};
        g->d_x = proa_roll(g->d_out, turned, .axis = a->axis);
        return proa_error();
    }
    if (n > 2 * PROA_MAX_DIMS) return OP_FAIL("roll", INVALID_ARGUMENT, "shifts", "has more than 18 entries");
    for (int64_t i = 0; i < n; i++) back[i] = -proa__ints_at(&a->shifts, i);
    g->d_x = proa_roll(g->d_out, ((proa_ints){n, back, NULL, NULL}), .axis = a->axis);
    return proa_error();
}

/* ---- one_hot ---------------------------------------------------------------------------- */

proa_status one_hot_infer(const proa_one_hot_args *a, proa_one_hot_metas *m)
{
    int64_t depth;
    PROA_TRY(proa__int_or("one_hot", "num_classes", a->num_classes, &a->depth_tensor, &depth));
    if (depth != PROA_UNKNOWN && depth < 1)
        return OP_FAIL("one_hot", INVALID_ARGUMENT, "num_classes", "is %lld; expected ≥ 1", (long long)depth);
    if (a->x->ndim == PROA_MAX_DIMS)
        return OP_FAIL("one_hot", INVALID_ARGUMENT, "x", "has %d axes already, the most possible",
                       a->x->ndim);
    m->out = proa_meta_of(a->x);
    m->out.dtype = a->dtype;
    m->out.shape[m->out.ndim++] = depth == PROA_UNKNOWN ? -1 : depth;
    return PROA_OK;
}

/* ---- meshgrid --------------------------------------------------------------------------- */

proa_status meshgrid_infer(const proa_meshgrid_args *a, proa_meshgrid_metas *m)
{
    int64_t n = a->inputs.count;
    if (n < 1 || n > PROA_MAX_DIMS)
        return OP_FAIL("meshgrid", INVALID_ARGUMENT, "inputs", "has %lld tensors; expected 1 to %d",
                       (long long)n, PROA_MAX_DIMS);
    PROA_TRY(proa_metas_resize(&m->out, n));
    for (int64_t k = 0; k < n; k++) {
        const proa_tensor *x = a->inputs.at[k];
        if (x->ndim > 1 || x->dtype != a->inputs.at[0]->dtype)
            return OP_FAIL("meshgrid", INVALID_ARGUMENT, "inputs",
                           "entry %lld is %s; expected one axis and dtype %s", (long long)k,
                           proa__tensor_text(x), proa_dtype_name((proa_dtype)a->inputs.at[0]->dtype));
        for (int64_t j = 0; j < n; j++) m->out.at[j].shape[k] = x->ndim ? x->shape[0] : 1;
        m->out.at[k].ndim = (int8_t)n;
        m->out.at[k].dtype = (proa_dtype)x->dtype;
    }
    return PROA_OK;
}

/* Entry k varies along axis k only: with that axis last, the engine sums the others away. */
proa_status meshgrid_vjp(const proa_meshgrid_args *a, proa_meshgrid_grads *g)
{
    int64_t n = a->inputs.count, perm[PROA_MAX_DIMS];
    g->d_inputs.at = proa_scope_alloc((size_t)n * sizeof *g->d_inputs.at);
    if (!g->d_inputs.at) return proa_error();
    g->d_inputs.count = n;
    for (int64_t k = 0; k < n; k++) {
        for (int64_t i = 0; i < n; i++) perm[i] = i < k ? i : i + 1;
        perm[n - 1] = k;
        g->d_inputs.at[k] = proa_transpose(g->d_out.at[k], ((proa_ints){n, perm, NULL, NULL}));
    }
    return proa_error();
}
