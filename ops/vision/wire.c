/* Interpolation in Paddle's programs: one op type per mode; sizes are separate attributes, a tensor or a list
 * of tensors. Also fold with paddings that differ. May use core and ops. */
#include "ops/wire_like.h"
#include "ops/vision/vision.h"
#include "impl/elementwise.h"
#include "impl/shape.h"

static const char *const forward_types[] = {"nearest_interp_v2", "bilinear_interp_v2", "bicubic_interp_v2",
                                            "trilinear_interp_v2", "linear_interp_v2"};
static const char *const backward_types[] = {"nearest_interp_v2_grad", "bilinear_interp_v2_grad",
                                             "bicubic_interp_v2_grad", "trilinear_interp_v2_grad",
                                             "linear_interp_v2_grad"};
static const char *const method_names[] = {"nearest", "bilinear", "bicubic", "trilinear", "linear"};
static const char *const size_names[] = {"out_d", "out_h", "out_w"};

/* A program's resize, gathered from whichever slots and attributes it uses. */
typedef struct resize_read {
    int64_t at[3];
    double factors[3];
    proa_ints size;
    proa_floats scale;
    bool align_corners;
    int64_t align_mode;
    proa_data_format format;
} resize_read;

/* The output size that a tensor of scale factors gives, computed by ops when the program runs. */
static proa_tensor *size_from_scale(proa_tensor *x, proa_tensor *scale, bool last)
{
    int64_t first = last ? 1 : 2, n = x->ndim - 2;
    proa_tensor *dims = proa_slice(proa_shape(x), PROA_INTS(0), PROA_INTS(first), PROA_INTS(first + n));
    proa_tensor *scaled = proa_multiply(proa_cast(dims, PROA_F32), proa_cast(scale, PROA_F32));
    return proa_cast(proa_floor(scaled), PROA_I32);
}

/* `old`: the forms without _v2, whose scale is one number. */
static proa_status read_resize(proa_wire_reader *r, const proa_tensor *like, bool old, resize_read *f)
{
    int n = like->ndim - 2;
    const char *layout = proa_wire_string(r, "data_layout", "NCHW");
    proa_tensor *size = proa_wire_input(r, "OutSize"), *factors = proa_wire_input(r, "Scale");
    proa_tensors sizes = proa_wire_inputs(r, "SizeTensor");
    proa_floats scale = old ? (proa_floats){0} : proa_wire_floats(r, "scale");
    double one = old ? proa_wire_float(r, "scale", 0) : 0;
    bool last = layout[0] && layout[strlen(layout) - 1] == 'C', known = n >= 1 && n <= 3;
    f->format = last ? PROA_DATA_FORMAT_NHWC : PROA_DATA_FORMAT_NCHW;
    f->align_corners = proa_wire_int(r, "align_corners", 1) != 0;
    f->align_mode = proa_wire_int(r, "align_mode", 1);
    for (int i = 0; known && i < n; i++) {
        f->at[i] = proa_wire_int(r, size_names[3 - n + i], 0);
        known = f->at[i] > 0;
    }
    if (sizes.count) f->size = (proa_ints){sizes.count, NULL, NULL, sizes.at};
    else if (proa__is_given(size)) f->size = (proa_ints){.tensor = size};
    else if (proa__is_given(factors))
        f->size = (proa_ints){.tensor = size_from_scale((proa_tensor *)(uintptr_t)like, factors, last)};
    else if (scale.count && scale.at[0] > 0) f->scale = scale;
    else if (one > 0) f->factors[0] = one, f->scale = (proa_floats){1, f->factors};
    else if (known) f->size = (proa_ints){n, f->at, NULL, NULL};
    return proa_error();
}

static proa_status read_forward(proa_wire_reader *r, proa_interp_method mode, bool old)
{
    proa_tensor *x = proa_wire_input(r, "X");
    resize_read f = {0};
    if (!x) return proa_error();
    PROA_TRY(read_resize(r, x, old, &f));
    return proa_wire_result(r, "Out",
                            proa_interpolate(x, .size = f.size, .scale = f.scale, .mode = mode,
                                             .align_corners = f.align_corners, .align_mode = f.align_mode,
                                             .data_format = f.format));
}

static proa_status read_backward(proa_wire_reader *r, proa_interp_method mode)
{
    proa_tensor *x = proa_wire_input(r, "X"), *d_out = proa_wire_input(r, "Out@GRAD");
    resize_read f = {0};
    if (!x || !d_out) return proa_error();
    PROA_TRY(read_resize(r, x, false, &f));
    return proa_wire_result(r, "X@GRAD",
                            proa_interpolate_grad(d_out, proa__shape_like(x), .size = f.size,
                                                  .scale = f.scale, .mode = mode,
                                                  .align_corners = f.align_corners,
                                                  .align_mode = f.align_mode, .data_format = f.format));
}

/* Readers of a form of each method: Paddle's, its older one, and its gradient. */
#define READER(name, read) \
    proa_status interpolate_##name(proa_wire_reader *r) { return read; }
READER(read_nearest, read_forward(r, PROA_INTERP_METHOD_NEAREST, false))
READER(read_old_nearest, read_forward(r, PROA_INTERP_METHOD_NEAREST, true))
READER(grad_read_nearest, read_backward(r, PROA_INTERP_METHOD_NEAREST))
READER(read_bilinear, read_forward(r, PROA_INTERP_METHOD_BILINEAR, false))
READER(read_old_bilinear, read_forward(r, PROA_INTERP_METHOD_BILINEAR, true))
READER(grad_read_bilinear, read_backward(r, PROA_INTERP_METHOD_BILINEAR))
READER(read_bicubic, read_forward(r, PROA_INTERP_METHOD_BICUBIC, false))
READER(read_old_bicubic, read_forward(r, PROA_INTERP_METHOD_BICUBIC, true))
READER(grad_read_bicubic, read_backward(r, PROA_INTERP_METHOD_BICUBIC))
READER(read_trilinear, read_forward(r, PROA_INTERP_METHOD_TRILINEAR, false))
READER(read_old_trilinear, read_forward(r, PROA_INTERP_METHOD_TRILINEAR, true))
READER(grad_read_trilinear, read_backward(r, PROA_INTERP_METHOD_TRILINEAR))
READER(read_linear, read_forward(r, PROA_INTERP_METHOD_LINEAR, false))
READER(read_old_linear, read_forward(r, PROA_INTERP_METHOD_LINEAR, true))
READER(grad_read_linear, read_backward(r, PROA_INTERP_METHOD_LINEAR))

/* Sizes as Paddle's kernels read them, without asking: int32. `to` refers to `each`, which has memory for
 * three. */
static proa_status narrow_sizes(proa_wire_writer *w, const proa_ints *from, proa_tensor **each, proa_ints *to)
{
    *to = *from;
    if (proa__is_given(from->tensor)) {
        to->tensor = proa__wire_cast(w, from->tensor, PROA_I32);
        if (!to->tensor) return proa_error();
    }
    if (!from->tensors) return PROA_OK;
    to->tensors = each;
    for (int64_t i = 0; i < from->count && i < 3; i++) {
        each[i] = from->tensors[i];
        if (!proa__is_given(each[i])) continue;
        each[i] = proa__wire_cast(w, each[i], PROA_I32);
        if (!each[i]) return proa_error();
    }
    return PROA_OK;
}

static proa_status put_resize(proa_wire_writer *w, const vision_resize *r, int ndim)
{
    int n = ndim - 2;
    double factors[3] = {1, 1, 1};
    bool given = r->size->count > 0 || r->size->tensor;
    if (r->size->tensor && r->size->tensor != proa_none)
        PROA_TRY(proa_wire_put_input(w, "OutSize", r->size->tensor));
    for (int i = 0; i < 3; i++) {
        bool named = given && !proa__ints_from_tensor(r->size) && i >= 3 - n;
        int64_t size = named ? r->size->at[i - (3 - n)] : -1;
        PROA_TRY(proa_wire_put_int(w, size_names[i], PROA_WIRE_INT, size));
    }
    for (int i = 0; i < n && r->size->tensors; i++) {
        if (!proa__is_given(r->size->tensors[i]))
            return proa_fail(PROA_ERR_UNSUPPORTED,
                             "interpolate: Paddle's format takes sizes that are all numbers or all tensors; "
                             "size %d is a number: make it a tensor",
                             i);
        PROA_TRY(proa_wire_put_input(w, "SizeTensor", r->size->tensors[i]));
    }
    for (int i = 0; i < n && !given; i++) factors[i] = r->scale->at[r->scale->count == 1 ? 0 : i];
    PROA_TRY(proa_wire_put_floats(w, "scale", (proa_floats){given ? 0 : n, factors}));
    PROA_TRY(proa_wire_put_string(w, "data_layout", proa__channels_last(r->format) ? "NHWC" : "NCHW"));
    PROA_TRY(proa_wire_put_string(w, "interp_method", method_names[r->mode]));
    PROA_TRY(proa_wire_put_int(w, "align_corners", PROA_WIRE_BOOLEAN, r->align_corners));
    return proa_wire_put_int(w, "align_mode", PROA_WIRE_INT, r->align_mode);
}

proa_status interpolate_write(const void *args, proa_wire_writer *w)
{
    const proa_interpolate_args *a = args;
    vision_resize resize = VISION_RESIZE("interpolate", a);
    proa_tensor *each[3];
    proa_ints size;
    PROA_TRY(narrow_sizes(w, resize.size, each, &size));
    resize.size = &size;
    PROA_TRY(proa_wire_op(w, forward_types[a->mode]));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(put_resize(w, &resize, a->x->ndim));
    return proa_wire_put_output(w, "Out", a->out);
}

proa_status interpolate_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_interpolate_grad_args *a = args;
    proa_tensor *x = proa__wire_put_like(w, &a->shape, a->d_x);
    if (!x) return proa_error();
    vision_resize resize = VISION_RESIZE("interpolate_grad", a);
    proa_tensor *each[3];
    proa_ints size;
    PROA_TRY(narrow_sizes(w, resize.size, each, &size));
    resize.size = &size;
    PROA_TRY(proa_wire_op(w, backward_types[a->mode]));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(proa_wire_put_input(w, "Out@GRAD", a->d_out));
    PROA_TRY(put_resize(w, &resize, a->d_x->ndim));
    return proa_wire_put_output(w, "X@GRAD", a->d_x);
}

/* ---- fold ------------------------------------------------------------------------------- */

static proa_status put_fold(const proa_fold_args *a, proa_tensor *out, proa_ints sizes, proa_ints paddings,
                            proa_wire_writer *w)
{
    PROA_TRY(proa_wire_op(w, "fold"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa_wire_put_output(w, "Y", out));
    PROA_TRY(proa_wire_put_ints(w, "output_sizes", PROA_WIRE_INTS, sizes));
    PROA_TRY(proa_wire_put_ints(w, "kernel_sizes", PROA_WIRE_INTS, a->kernel_sizes));
    PROA_TRY(proa_wire_put_ints(w, "strides", PROA_WIRE_INTS, a->strides));
    PROA_TRY(proa_wire_put_ints(w, "paddings", PROA_WIRE_INTS, paddings));
    return proa_wire_put_ints(w, "dilations", PROA_WIRE_INTS, a->dilations);
}

/* Paddle's fold takes the paddings behind for those before: where they differ the padded image is folded, and
 * its margin sliced off. */
proa_status fold_write(const void *args, proa_wire_writer *w)
{
    const proa_fold_args *a = args;
    const int64_t *p = a->paddings.at, *size = a->output_sizes.at;
    if (p[0] == p[2] && p[1] == p[3]) return put_fold(a, a->out, a->output_sizes, a->paddings, w);
    proa_meta m = proa_meta_of(a->out);
    m.shape[2] = size[0] + p[0] + p[2], m.shape[3] = size[1] + p[1] + p[3];
    proa_tensor *whole = proa_wire_temporary(w, &m);
    if (!whole) return proa_error();
    PROA_TRY(put_fold(a, whole, PROA_INTS(m.shape[2], m.shape[3]), PROA_INTS(0, 0, 0, 0), w));
    return proa__wire_put_slice(w, whole, a->out, PROA_INTS(2, 3), PROA_INTS(p[0], p[1]),
                                PROA_INTS(p[0] + size[0], p[1] + size[1]));
}
