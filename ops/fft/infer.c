/* Shapes and gradients of Fourier transforms and frames. May use core, kernels and public ops. */
#include "ops/fft/fft.h"
#include "kernels/rowwise.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/shape.h"

/* ---- transforms ------------------------------------------------------------------------ */

static proa_status check_axes(const char *op, const proa_tensor *x, proa_ints axes)
{
    bool seen[PROA_MAX_DIMS] = {0};
    if (axes.count == 0)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "axes",
                             "is empty; expected one axis or more");
    for (int64_t i = 0; i < axes.count; i++) {
        int64_t axis = axes.at[i];
        if (axis < -x->ndim || axis >= x->ndim)
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "axes",
                                 "holds %lld; expected -%d to %d for x %s", (long long)axis, x->ndim,
                                 x->ndim - 1, proa__tensor_text(x));
        int at = fft_axis(x, axis);
        if (seen[at])
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "axes", "names axis %d twice",
                                 at);
        if (x->shape[at] == 0)
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "x",
                                 "is %s; expected at least one element along axis %d", proa__tensor_text(x),
                                 at);
        seen[at] = true;
    }
    return PROA_OK;
}

static int last_axis(const proa_tensor *x, proa_ints axes) { return fft_axis(x, axes.at[axes.count - 1]); }

proa_status fft_c2c_infer(const proa_fft_c2c_args *a, proa_fft_c2c_metas *m)
{
    PROA_TRY(check_axes("fft_c2c", a->x, a->axes));
    m->out = proa_meta_of(a->x);
    return PROA_OK;
}

proa_status fft_r2c_infer(const proa_fft_r2c_args *a, proa_fft_r2c_metas *m)
{
    PROA_TRY(check_axes("fft_r2c", a->x, a->axes));
    m->out = proa_meta_of(a->x);
    m->out.dtype = a->x->dtype == PROA_F64 ? PROA_C128 : PROA_C64;
    int64_t *last = &m->out.shape[last_axis(a->x, a->axes)];
    if (a->onesided && *last >= 0) *last = *last / 2 + 1;
    return PROA_OK;
}

proa_status fft_c2r_infer(const proa_fft_c2r_args *a, proa_fft_c2r_metas *m)
{
    PROA_TRY(check_axes("fft_c2r", a->x, a->axes));
    m->out = proa_meta_of(a->x);
    m->out.dtype = a->x->dtype == PROA_C128 ? PROA_F64 : PROA_F32;
    int64_t *last = &m->out.shape[last_axis(a->x, a->axes)];
    int64_t n = a->last_dim_size > 0 ? a->last_dim_size : *last < 0 ? -1 : 2 * (*last - 1);
    if (n == 0)
        return ROWS_FAIL(
            fft_c2r, INVALID_ARGUMENT, "x",
            "is %s: the result would be empty; expected 2 elements or more along the last of axes, or "
            "last_dim_size",
            proa__tensor_text(a->x));
    if (*last >= 0 && n >= 0 && *last < n / 2 + 1)
        return ROWS_FAIL(fft_c2r, INVALID_ARGUMENT, "last_dim_size",
                         "is %lld, which needs %lld elements along the last of axes; x is %s", (long long)n,
                         (long long)(n / 2 + 1), proa__tensor_text(a->x));
    *last = n;
    return PROA_OK;
}

/* The norm that divides in the opposite direction what `norm` divides in this one. */
static int swapped(int norm)
{
    return norm == PROA_FFT_NORM_BACKWARD  ? PROA_FFT_NORM_FORWARD
           : norm == PROA_FFT_NORM_FORWARD ? PROA_FFT_NORM_BACKWARD
                                           : norm;
}

proa_status fft_c2c_vjp(const proa_fft_c2c_args *a, proa_fft_c2c_grads *g)
{
    g->d_x = proa_fft_c2c(g->d_out, a->axes, .norm = swapped(a->norm), .no_forward = a->forward);
    return proa_error();
}

/* x with the elements along `axis` that stand for themselves and their conjugates, all but the first and,
 * of an even n, the last, multiplied by `factor`. */
static proa_tensor *weigh_pairs(proa_tensor *x, int axis, int64_t n, double factor)
{
    int64_t pairs = (n - 1) / 2, one = 1, shape[PROA_MAX_DIMS];
    if (n < 0) {
        (void)proa_fail(PROA_ERR_UNSUPPORTED,
                        "fft: the gradient of a real transform needs the length of its last axis; "
                        "give the program's input a fixed size there");
        return NULL;
    }
    proa_ints single = {1, &one, NULL, NULL}, many = {1, &pairs, NULL, NULL};
    proa_tensor *ends = proa_full(single, PROA_SCALAR(1.0), .dtype = PROA_F32);
    proa_tensor *middle = proa_full(many, PROA_SCALAR(factor), .dtype = PROA_F32);
    proa_tensor *w =
        n % 2 ? proa_concat(PROA_LIST(ends, middle)) : proa_concat(PROA_LIST(ends, middle, ends));
    for (int i = 0; i < x->ndim; i++) shape[i] = i == axis ? n / 2 + 1 : 1;
    w = proa_cast(w, (proa_dtype)x->dtype);
    return proa_multiply(x, proa_reshape(w, ((proa_ints){x->ndim, shape, NULL, NULL})));
}

/* The real part of a one-sided sum is the sum over both sides with every pair halved. */
proa_status fft_r2c_vjp(const proa_fft_r2c_args *a, proa_fft_r2c_grads *g)
{
    int axis = last_axis(a->x, a->axes);
    if (!a->onesided) {
        g->d_x =
            proa_real(proa_fft_c2c(g->d_out, a->axes, .norm = swapped(a->norm), .no_forward = a->forward));
        return proa_error();
    }
    proa_tensor *halved = weigh_pairs(g->d_out, axis, a->x->shape[axis], 0.5);
    if (!halved) return proa_error();
    g->d_x = proa_fft_c2r(halved, a->axes, .norm = swapped(a->norm), .forward = !a->forward,
                          .last_dim_size = a->x->shape[axis]);
    return proa_error();
}

proa_status fft_c2r_vjp(const proa_fft_c2r_args *a, proa_fft_c2r_grads *g)
{
    int axis = last_axis(g->d_out, a->axes);
    int64_t n = g->d_out->shape[axis];
    proa_tensor *half = proa_fft_r2c(g->d_out, a->axes, .norm = swapped(a->norm), .no_forward = a->forward);
    g->d_x = half ? weigh_pairs(half, axis, n, 2.0) : NULL;
    return proa_error();
}

/* ---- frames ---------------------------------------------------------------------------- */

static proa_status check_frame(const char *op, const proa_tensor *x, int64_t axis, int64_t hop, int dims)
{
    if (axis != 0 && axis != -1)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "axis", "is %lld; expected 0 or -1",
                             (long long)axis);
    if (hop <= 0)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "hop_length",
                             "is %lld; expected 1 or more", (long long)hop);
    if (x->ndim < dims)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "x",
                             "is %s; expected %d dims or more", proa__tensor_text(x), dims);
    return PROA_OK;
}

proa_status frame_infer(const proa_frame_args *a, proa_frame_metas *m)
{
    PROA_TRY(check_frame("frame", a->x, a->axis, a->hop_length, 1));
    int64_t length = a->x->shape[a->axis ? a->x->ndim - 1 : 0], size = a->frame_length;
    if (size <= 0 || (length >= 0 && size > length))
        return ROWS_FAIL(frame, INVALID_ARGUMENT, "frame_length", "is %lld; expected 1 to %lld, x's length",
                         (long long)size, (long long)length);
    if (a->x->ndim >= PROA_MAX_DIMS)
        return ROWS_FAIL(frame, INVALID_ARGUMENT, "x", "is %s; the result would have too many dims",
                         proa__tensor_text(a->x));
    int64_t frames = length < 0 ? -1 : (length - size) / a->hop_length + 1;
    m->out = proa_meta_of(a->x);
    m->out.ndim++;
    if (a->axis) {
        m->out.shape[a->x->ndim - 1] = size, m->out.shape[a->x->ndim] = frames;
        return PROA_OK;
    }
    m->out.shape[0] = frames, m->out.shape[1] = size;
    for (int i = 1; i < a->x->ndim; i++) m->out.shape[i + 1] = a->x->shape[i];
    return PROA_OK;
}

proa_status frame_vjp(const proa_frame_args *a, proa_frame_grads *g)
{
    int64_t padding[2 * PROA_MAX_DIMS] = {0};
    int at = a->axis ? a->x->ndim - 1 : 0;
    proa_tensor *d = proa_overlap_add(g->d_out, a->hop_length, .axis = a->axis ? -1 : PROA_ZERO);
    if (!d) return proa_error();
    g->d_x = d;
    if (a->x->shape[at] < 0)
        return ROWS_FAIL(frame, UNSUPPORTED, "x", "is %s; the gradient needs the length of the framed axis",
                         proa__tensor_text(a->x));
    padding[2 * at + 1] = a->x->shape[at] - d->shape[at];
    if (padding[2 * at + 1]) g->d_x = proa_pad(d, ((proa_ints){2 * a->x->ndim, padding, NULL, NULL}));
    return proa_error();
}

proa_status overlap_add_infer(const proa_overlap_add_args *a, proa_overlap_add_metas *m)
{
    PROA_TRY(check_frame("overlap_add", a->x, a->axis, a->hop_length, 2));
    int d = a->x->ndim;
    int64_t size = a->x->shape[a->axis ? d - 2 : 1], frames = a->x->shape[a->axis ? d - 1 : 0];
    int64_t length = size < 0 || frames < 0 ? -1 : frames == 0 ? 0 : (frames - 1) * a->hop_length + size;
    m->out = proa_meta_of(a->x);
    m->out.ndim--;
    if (a->axis) {
        m->out.shape[d - 2] = length;
        return PROA_OK;
    }
    m->out.shape[0] = length;
    for (int i = 2; i < d; i++) m->out.shape[i - 1] = a->x->shape[i];
    return PROA_OK;
}

proa_status overlap_add_vjp(const proa_overlap_add_args *a, proa_overlap_add_grads *g)
{
    int64_t size = a->x->shape[a->axis ? a->x->ndim - 2 : 1];
    if (size < 0)
        return ROWS_FAIL(overlap_add, UNSUPPORTED, "x", "is %s; the gradient needs the length of a window",
                         proa__tensor_text(a->x));
    g->d_x = proa_frame(g->d_out, size, a->hop_length, .axis = a->axis ? -1 : PROA_ZERO);
    return proa_error();
}
