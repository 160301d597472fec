/* CPU kernels of loss scaling: unscaling gradients with a check for infinities, and the update of the scale.
 * May use core, kernels and ops. */
#include "impl/amp.h"

#include "kernels/rowwise.h"

#include <stdatomic.h>

typedef struct unscale {
    const proa_tensor *t;
    double factor;
    atomic_bool bad;
} unscale;

#define T float
#include "unscale.inc"
#undef T
#define T double
#include "unscale.inc"
#undef T

static void range(int64_t begin, int64_t end, void *context)
{
    unscale *u = context;
    bool fine = u->t->dtype == PROA_F64 ? unscale_double(u->t, begin, end, u->factor)
                                        : unscale_float(u->t, begin, end, (float)u->factor);
    if (!fine) atomic_store_explicit(&u->bad, true, memory_order_relaxed);
}

PROA_KERNEL(check_finite_and_unscale_cpu, check_finite_and_unscale)
{
    bool bad = false;
    double factor = 1 / rows_get((proa_dtype)a->scale->dtype, a->scale->data, 0);
    for (int64_t i = 0; i < a->xs.count; i++) {
        unscale u = {.t = a->xs.at[i], .factor = factor};
        proa__parallel(u.t->numel, rows_grain(1), range, &u);
        bad |= atomic_load_explicit(&u.bad, memory_order_relaxed);
    }
    *(uint8_t *)a->found_infinite->data = bad;
    return PROA_OK;
}

PROA_KERNEL(update_loss_scaling_cpu, update_loss_scaling)
{
    bool found = *(const uint8_t *)a->found_infinite->data != 0;
    for (int64_t i = 0; found && i < a->xs.count; i++) {
        const proa_tensor *t = a->xs.at[i];
        if (t->numel) memset(t->data, 0, (size_t)t->numel * proa_dtype_size((proa_dtype)t->dtype));
    }
    if (a->stop_update || (!proa__absent(a->stop) && *(const uint8_t *)a->stop->data)) return PROA_OK;
    proa_dtype dtype = (proa_dtype)a->loss_scaling->dtype;
    double scale = rows_get(dtype, a->loss_scaling->data, 0);
    int32_t *good = (int32_t *)(void *)a->good_steps->data, *bad = (int32_t *)(void *)a->bad_steps->data;
    if (found) {
        *good = 0;
        if (++*bad >= a->decr_every_n_nan_or_inf) {
            *bad = 0;
            scale *= a->decr_ratio;
            rows_set(dtype, a->loss_scaling->data, 0, scale < 1 ? 1 : scale);
        }
    } else {
        *bad = 0;
        if (++*good >= a->incr_every_n_steps) {
            *good = 0;
            double larger = scale * a->incr_ratio;
            if (isfinite(dtype == PROA_F64 ? larger : (double)(float)larger))
                rows_set(dtype, a->loss_scaling->data, 0, larger);
        }
    }
    return PROA_OK;
}
