/* Dropout on the wire: is_test is the opposite of training, downscale_in_infer is called downgrade_in_infer,
 * and with axis the op is dropout_nd. May use core, kernels, proa/wire.h and public ops. */
#include "impl/dropout.h"

#include "core/tensor.h"
#include "kernels/rowwise.h"
#include "ops/wire_util.h"

static proa_dropout_mode read_mode(proa_wire_reader *r)
{
    const char *mode = proa_wire_string(r, "dropout_implementation", "downgrade_in_infer");
    return mode && strcmp(mode, "upscale_in_train") == 0 ? PROA_DROPOUT_MODE_UPSCALE_IN_TRAIN
                                                         : PROA_DROPOUT_MODE_DOWNSCALE_IN_INFER;
}

proa_status dropout_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    if (!x) return proa_error();
    proa_dropout_result y = proa_dropout(
        x, .p = rows_option_float(proa_wire_float(r, "dropout_prob", 0.5)), .axis = proa_wire_ints(r, "axis"),
        .no_training = proa_wire_int(r, "is_test", 0) != 0, .mode = read_mode(r),
        .seed = proa_wire_int(r, "seed", 0), .fix_seed = proa_wire_int(r, "fix_seed", 0) != 0);
    PROA_TRY(proa_wire_result(r, "Out", y.out));
    return y.mask && !proa__absent(y.mask) ? proa_wire_result(r, "Mask", y.mask) : proa_error();
}

proa_status dropout_grad_read(proa_wire_reader *r)
{
    proa_tensor *mask = proa_wire_input(r, "Mask"), *d_out = proa_wire_input(r, "Out@GRAD");
    if (!mask || !d_out) return proa_error();
    return proa_wire_result(r, "X@GRAD",
                            proa_dropout_grad(mask, d_out,
                                              .p = rows_option_float(proa_wire_float(r, "dropout_prob", 0.5)),
                                              .axis = proa_wire_ints(r, "axis"), .mode = read_mode(r)));
}

static proa_status write_attributes(proa_wire_writer *w, double p, proa_ints axis, bool training,
                                    proa_dropout_mode mode, int64_t seed, bool fix_seed)
{
    PROA_TRY(proa_wire_put_float(w, "dropout_prob", p));
    PROA_TRY(proa_wire_put_int(w, "is_test", PROA_WIRE_BOOLEAN, !training));
    PROA_TRY(proa_wire_put_string(w, "dropout_implementation",
                                  mode == PROA_DROPOUT_MODE_UPSCALE_IN_TRAIN ? "upscale_in_train"
                                                                             : "downgrade_in_infer"));
    PROA_TRY(proa_wire_put_int(w, "fix_seed", PROA_WIRE_BOOLEAN, fix_seed));
    PROA_TRY(proa_wire_put_int(w, "seed", PROA_WIRE_INT, seed));
    return axis.count ? proa_wire_put_ints(w, "axis", PROA_WIRE_INTS, axis) : PROA_OK;
}

proa_status dropout_write(const void *args, proa_wire_writer *w)
{
    const proa_dropout_args *a = args;
    PROA_TRY(proa_wire_op(w, a->axis.count ? "dropout_nd" : "dropout"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    if (a->mask && !proa__absent(a->mask)) PROA_TRY(proa_wire_put_output(w, "Mask", a->mask));
    return write_attributes(w, a->p, a->axis, a->training, a->mode, a->seed, a->fix_seed);
}

/* Paddle's CPU gradient takes the mask to be as long as d_out, which a mask over some axes is not: written as
 * a product and a scale. */
static proa_status write_axis_grad(const proa_dropout_grad_args *a, proa_wire_writer *w)
{
    bool upscale = a->mode == PROA_DROPOUT_MODE_UPSCALE_IN_TRAIN;
    proa_meta m = proa_meta_of(a->mask), d = proa_meta_of(a->d_x);
    m.dtype = d.dtype;
    proa_tensor *factors = proa_wire_temporary(w, &m), *kept = proa_wire_temporary(w, &d);
    if (!factors || !kept) return proa_error();
    PROA_TRY(proa__wire_put_cast(w, a->mask, factors));
    PROA_TRY(proa_wire_op(w, "elementwise_mul"));
    PROA_TRY(proa_wire_put_input(w, "X", a->d_out));
    PROA_TRY(proa_wire_put_input(w, "Y", factors));
    PROA_TRY(proa_wire_put_output(w, "Out", kept));
    PROA_TRY(proa_wire_put_int(w, "axis", PROA_WIRE_INT, -1));
    PROA_TRY(proa_wire_op(w, "scale"));
    PROA_TRY(proa_wire_put_input(w, "X", kept));
    PROA_TRY(proa_wire_put_output(w, "Out", a->d_x));
    PROA_TRY(proa_wire_put_float(w, "scale", !upscale ? 1 : a->p == 1 ? 0 : 1 / (1 - a->p)));
    PROA_TRY(proa_wire_put_float(w, "bias", 0));
    return proa_wire_put_int(w, "bias_after_scale", PROA_WIRE_BOOLEAN, 1);
}

proa_status dropout_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_dropout_grad_args *a = args;
    if (a->axis.count && a->training) return write_axis_grad(a, w);
    PROA_TRY(proa_wire_op(w, a->axis.count ? "dropout_nd_grad" : "dropout_grad"));
    PROA_TRY(proa_wire_put_input(w, "Mask", a->mask));
    PROA_TRY(proa_wire_put_input(w, "Out@GRAD", a->d_out));
    PROA_TRY(proa_wire_put_output(w, "X@GRAD", a->d_x));
    return write_attributes(w, a->p, a->axis, a->training, a->mode, 0, false);
}
