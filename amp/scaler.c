/* The gradient scaler: one op unscales gradients and looks for infinities and NaN, which make the optimizer
 * skip the step; another, unless the scale is fixed, updates it by Paddle's rule. Its state is tensors, so
 * that checkpoints can save it. May use core, ops, autograd, optim. */
#include "core/device.h"
#include "core/internal.h"
#include "core/tensor.h"

#include <proa/amp.h>
#include <proa/autograd.h>

#include "impl/amp.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/shape.h"
#include "optim/optimizer.h"

extern const proa_op proa__op_multiply;

struct proa_scaler {
    proa_scaler_opts opts;           /* with defaults filled in */
    proa_tensor *scale, *good, *bad; /* kept: float32[1], int32[1], int32[1] */
    proa_tensor *found;              /* kept: bool[1], the last step's flag, not read yet; or NULL */
};

static proa_status check(const proa_scaler_opts *o)
{
    if (o->init_scale > 0 && o->growth > 1 && o->backoff > 0 && o->backoff < 1 && o->growth_interval > 0 &&
        o->backoff_interval > 0)
        return PROA_OK;
    return proa_fail(
        PROA_ERR_INVALID_ARGUMENT,
        "scaler: init_scale %g, growth %g, backoff %g, intervals %lld and %lld; expected a positive "
        "scale, growth > 1, 0 < backoff < 1, positive intervals",
        o->init_scale, o->growth, o->backoff, (long long)o->growth_interval, (long long)o->backoff_interval);
}

proa_scaler *proa_scaler_new_opt(proa_scaler_opts opts)
{
    opts.init_scale = opts.init_scale == 0 ? 65536 : opts.init_scale;
    opts.growth = opts.growth == 0 ? 2 : opts.growth;
    opts.backoff = opts.backoff == 0 ? 0.5 : opts.backoff;
    opts.growth_interval = opts.growth_interval == 0 ? 2000 : opts.growth_interval;
    opts.backoff_interval = opts.backoff_interval == 0 ? 1 : opts.backoff_interval;
    if (proa_error() || check(&opts) != PROA_OK) return NULL;
    proa_scaler *s = proa__calloc(sizeof *s);
    if (!s) return NULL;
    PROA_SCOPED;
    s->opts = opts;
    s->scale = proa_keep(proa_full(PROA_SHAPE(1), opts.init_scale, .dtype = PROA_F32));
    s->good = proa_keep(proa_full(PROA_SHAPE(1), 0, .dtype = PROA_I32));
    s->bad = proa_keep(proa_full(PROA_SHAPE(1), 0, .dtype = PROA_I32));
    if (!proa_error()) return s;
    proa_scaler_free(s);
    return NULL;
}

void proa_scaler_free(proa_scaler *s)
{
    if (!s) return;
    proa_release(s->scale);
    proa_release(s->good);
    proa_release(s->bad);
    proa_release(s->found);
    proa__free(s);
}

/* Moves the scaler's state to the device of the gradients. */
static proa_status follow(proa_scaler *s, const proa_tensor *grad)
{
    proa_tensor **state[] = {&s->scale, &s->good, &s->bad};
    for (size_t i = 0; i < sizeof state / sizeof *state; i++) {
        proa_tensor *there = proa_to_device(*state[i], proa_device_of(grad));
        if (!there) return proa_error();
        if (there == *state[i]) continue;
        proa_release(*state[i]);
        *state[i] = proa_keep(there);
    }
    return PROA_OK;
}

/* loss · scale, without reading the scale on the host; in float32 even under autocast, since the scale may
 * exceed a half's range. */
static proa_tensor *scale_there(proa_scaler *s, proa_tensor *loss)
{
    bool half = loss->dtype == PROA_F16 || loss->dtype == PROA_BF16;
    proa_multiply_args a = {.x = half ? proa_cast(loss, PROA_F32) : loss,
                            .y = proa_cast(s->scale, loss->dtype == PROA_F64 ? PROA_F64 : PROA_F32)};
    if (loss->ndim == 0) a.y = proa_reshape(a.y, (proa_ints){0});
    return proa_call_from(PROA_DOOR_RECORD, &proa__op_multiply, &a) == PROA_OK ? a.out : NULL;
}

proa_tensor *proa_scaler_scale(proa_scaler *s, proa_tensor *loss)
{
    if (proa_error()) return NULL;
    if (!s || !loss) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "scaler_scale: scaler and loss must be given");
        return NULL;
    }
    if (!proa__on_device(s->scale)) return proa_scale(loss, .scale = proa_scalar_float(proa_scaler_get(s)));
    return scale_there(s, loss);
}

/* Fills *list with the gradients of an optimizer's parameters; it is valid until the scope ends. */
static proa_status gradients(proa_optimizer *opt, proa_tensors *list)
{
    proa_tensors params = proa_optimizer_parameters(opt);
    list->count = 0;
    list->at = proa_scope_alloc((size_t)(params.count + 1) * sizeof *list->at);
    for (int64_t i = 0; list->at && i < params.count; i++) {
        proa_tensor *g = proa_grad_of(params.at[i]);
        if (g && g != proa_none) list->at[list->count++] = g;
    }
    return proa_error();
}

proa_status proa_scaler_step(proa_scaler *s, proa_optimizer *opt)
{
    PROA_TRY(proa_error());
    if (!s || !opt)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "scaler_step: scaler and optimizer must be given");
    PROA_SCOPED;
    PROA_NO_GRAD;
    proa_tensors grads;
    PROA_TRY(gradients(opt, &grads));
    proa_release(s->found);
    s->found = NULL;
    if (grads.count == 0) return PROA_OK;
    PROA_TRY(follow(s, grads.at[0]));
    proa_tensor *found = proa_check_finite_and_unscale(grads, s->scale);
    if (!found) return proa_error();
    s->found = proa_keep(found);
    if (!s->opts.fixed)
        PROA_TRY(proa_update_loss_scaling(grads, found, s->scale, s->good, s->bad, proa_none,
                                          s->opts.growth_interval, s->opts.backoff_interval, s->opts.growth,
                                          s->opts.backoff));
    return proa__step_unless(opt, found);
}

double proa_scaler_get(const proa_scaler *s) { return s ? proa_item(s->scale) : 0; }
bool proa_scaler_skipped(const proa_scaler *s) { return s && s->found && proa_item(s->found) != 0; }

proa_named_list proa_scaler_state(proa_scaler *s)
{
    proa_named_list list = {0, NULL};
    if (proa_error() || !s) return list;
    list.at = proa_scope_alloc(3 * sizeof *list.at);
    if (!list.at) return list;
    list.count = 3;
    list.at[0] = (proa_named){"scale", s->scale, true};
    list.at[1] = (proa_named){"good_steps", s->good, true};
    list.at[2] = (proa_named){"bad_steps", s->bad, true};
    return list;
}
