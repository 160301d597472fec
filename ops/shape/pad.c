/* Shape inference and gradient rules of pad and pad3d. The padding modes have the limits of Paddle 2.6.2. May
 * use core and ops. */
#include "ops/shape/pad.h"
#include "ops/shape/slice.h"
#include "impl/elementwise.h"
#include "impl/shape.h"

static proa_status read_paddings(const char *who, const proa_ints *paddings, int want, int64_t *to)
{
    int n = 0;
    PROA_TRY(proa__ints_list(who, "paddings", paddings, 2 * PROA_MAX_DIMS, to, &n));
    if (n != want) return OP_FAIL(who, INVALID_ARGUMENT, "paddings", "has %d entries; expected %d", n, want);
    return PROA_OK;
}

proa_status proa__pad_plan(const char *who, int ndim, const proa_ints *paddings, proa_pad_plan *p)
{
    int64_t v[2 * PROA_MAX_DIMS];
    PROA_TRY(read_paddings(who, paddings, 2 * ndim, v));
    p->ndim = ndim;
    for (int i = 0; i < ndim; i++) p->before[i] = v[2 * i], p->after[i] = v[2 * i + 1];
    return PROA_OK;
}

proa_status proa__pad_spatial_plan(const char *who, int ndim, const proa_ints *paddings,
                                   proa_data_format format, proa_pad_plan *p)
{
    int64_t v[2 * PROA_MAX_DIMS];
    if (ndim < 3 || ndim > 5)
        return OP_FAIL(who, INVALID_ARGUMENT, "x", "has %d axes; expected 3, 4 or 5 (proa_pad takes any)",
                       ndim);
    PROA_TRY(read_paddings(who, paddings, 2 * (ndim - 2), v));
    p->ndim = ndim;
    for (int i = 0; i < ndim; i++) p->before[i] = p->after[i] = 0;
    int last = proa__channels_last(format) ? ndim - 2 : ndim - 1;
    for (int i = 0; i < ndim - 2; i++) p->before[last - i] = v[2 * i], p->after[last - i] = v[2 * i + 1];
    return PROA_OK;
}

static proa_status padded(const char *who, const proa_pad_plan *p, const int64_t *shape, proa_meta *m)
{
    m->ndim = (int8_t)p->ndim;
    for (int i = 0; i < p->ndim; i++) {
        m->shape[i] = -1;
        if (shape[i] < 0 || p->before[i] == PROA_UNKNOWN || p->after[i] == PROA_UNKNOWN) continue;
        int64_t sum;
        if (__builtin_add_overflow(p->before[i], p->after[i], &sum) ||
            __builtin_add_overflow(sum, shape[i], &m->shape[i]))
            return OP_FAIL(who, OVERFLOW, "paddings", "make axis %d longer than 2^63", i);
        if (m->shape[i] < 0 || p->before[i] < -shape[i] || p->after[i] < -shape[i])
            return OP_FAIL(who, INVALID_ARGUMENT, "paddings", "%lld and %lld cut more than axis %d has: %lld",
                           (long long)p->before[i], (long long)p->after[i], i, (long long)shape[i]);
    }
    return PROA_OK;
}

static proa_status check_mode(const char *who, proa_pad_mode mode, const proa_pad_plan *p,
                              const int64_t *shape, const proa_meta *out)
{
    for (int i = 0; i < p->ndim && mode != PROA_PAD_MODE_CONSTANT; i++) {
        int64_t n = shape[i], most = p->before[i] > p->after[i] ? p->before[i] : p->after[i];
        if (out->shape[i] < 0) continue;
        if (mode == PROA_PAD_MODE_REFLECT && most >= n && most > 0)
            return OP_FAIL(who, INVALID_ARGUMENT, "paddings",
                           "reflect takes less than axis %d has, %lld; got %lld", i, (long long)n,
                           (long long)most);
        if (n == 0 && out->shape[i] > 0)
            return OP_FAIL(who, INVALID_ARGUMENT, "x", "is empty on axis %d and has nothing to repeat", i);
    }
    return PROA_OK;
}

proa_status pad_infer(const proa_pad_args *a, proa_pad_metas *m)
{
    proa_pad_plan p;
    PROA_TRY(proa__pad_plan("pad", a->x->ndim, &a->paddings, &p));
    m->out.dtype = (proa_dtype)a->x->dtype;
    return padded("pad", &p, a->x->shape, &m->out);
}

/* Removes the padding from d_out. */
proa_status pad_vjp(const proa_pad_args *a, proa_pad_grads *g)
{
    int64_t back[2 * PROA_MAX_DIMS];
    int n = 0;
    if (a->paddings.tensor && proa__ints_unknown(&a->paddings)) {
        proa_tensor *given = a->paddings.tensor;
        g->d_x = proa_pad(g->d_out, ((proa_ints){.tensor = proa_subtract(proa__zero_of(given), given)}));
        return proa_error();
    }
    PROA_TRY(proa__ints_list("pad", "paddings", &a->paddings, 2 * PROA_MAX_DIMS, back, &n));
    for (int i = 0; i < n; i++) {
        if (back[i] == PROA_UNKNOWN)
            return OP_FAIL("pad", UNSUPPORTED, "paddings",
                           "come from several variables; for a gradient in a program join them in one");
        back[i] = -back[i];
    }
    g->d_x = proa_pad(g->d_out, ((proa_ints){n, back, NULL, NULL}));
    return proa_error();
}

proa_status pad3d_infer(const proa_pad3d_args *a, proa_pad3d_metas *m)
{
    proa_pad_plan p;
    PROA_TRY(proa__pad_spatial_plan("pad3d", a->x->ndim, &a->paddings, a->data_format, &p));
    m->out.dtype = (proa_dtype)a->x->dtype;
    PROA_TRY(padded("pad3d", &p, a->x->shape, &m->out));
    return check_mode("pad3d", a->mode, &p, a->x->shape, &m->out);
}

proa_status pad3d_vjp(const proa_pad3d_args *a, proa_pad3d_grads *g)
{
    g->d_x = proa_pad3d_grad(g->d_out, proa__shape_like(a->x), a->paddings, .mode = a->mode,
                             .data_format = a->data_format);
    return proa_error();
}

proa_status pad3d_grad_infer(const proa_pad3d_grad_args *a, proa_pad3d_grad_metas *m)
{
    proa_pad_plan p;
    proa_meta out;
    PROA_TRY(proa__dims_meta("pad3d_grad", "shape", &a->shape, a->d_out->dtype, &m->d_x));
    PROA_TRY(proa__pad_spatial_plan("pad3d_grad", m->d_x.ndim, &a->paddings, a->data_format, &p));
    PROA_TRY(padded("pad3d_grad", &p, m->d_x.shape, &out));
    PROA_TRY(check_mode("pad3d_grad", a->mode, &p, m->d_x.shape, &out));
    bool fits = out.ndim == a->d_out->ndim && proa__shapes_agree(out.shape, a->d_out->shape, out.ndim);
    if (fits) return PROA_OK;
    return OP_FAIL("pad3d_grad", INVALID_ARGUMENT, "d_out", "is %s; expected shape %s",
                   proa__tensor_text(a->d_out), proa__shape_text(out.shape, out.ndim));
}

proa_status pad3d_grad_vjp(const proa_pad3d_grad_args *a, proa_pad3d_grad_grads *g)
{
    g->d_d_out = proa_pad3d(g->d_d_x, a->paddings, .mode = a->mode, .data_format = a->data_format);
    return proa_error();
}
