/* Normalizations whose wire form is more than slots: batch_norm in training needs a ReserveSpace, and
 * group_norm_grad the forward output, which is made again. May use core and the ops. */
#include "ops/norm/norm.h"

#include <proa/wire.h>

static const char *layout_name(proa_data_format f) { return proa__channels_last(f) ? "NHWC" : "NCHW"; }

static proa_status put_optional(proa_wire_writer *w, const char *slot, proa_tensor *t)
{
    return proa__absent(t) ? PROA_OK : proa_wire_put_input(w, slot, t);
}

proa_status batch_norm_write(const void *args, proa_wire_writer *w)
{
    const proa_batch_norm_args *a = args;
    proa_tensor *reserve = NULL;
    if (!a->is_test) {
        proa_meta m = proa_meta_of(a->running_mean);
        reserve = proa_wire_temporary(w, &m);
        if (!reserve) return proa_error();
    }
    PROA_TRY(proa_wire_op(w, "batch_norm"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(put_optional(w, "Scale", a->weight));
    PROA_TRY(put_optional(w, "Bias", a->bias));
    PROA_TRY(proa_wire_put_input(w, "Mean", a->running_mean));
    PROA_TRY(proa_wire_put_input(w, "Variance", a->running_var));
    PROA_TRY(proa_wire_put_output(w, "Y", a->out));
    PROA_TRY(proa_wire_put_output(w, "MeanOut", a->mean_out));
    PROA_TRY(proa_wire_put_output(w, "VarianceOut", a->variance_out));
    PROA_TRY(proa_wire_put_output(w, "SavedMean", a->saved_mean));
    PROA_TRY(proa_wire_put_output(w, "SavedVariance", a->saved_variance));
    if (reserve) PROA_TRY(proa_wire_put_output(w, "ReserveSpace", reserve));
    PROA_TRY(proa_wire_put_int(w, "is_test", PROA_WIRE_BOOLEAN, a->is_test));
    PROA_TRY(proa_wire_put_float(w, "momentum", a->momentum));
    PROA_TRY(proa_wire_put_float(w, "epsilon", a->epsilon));
    PROA_TRY(proa_wire_put_string(w, "data_layout", layout_name(a->data_format)));
    PROA_TRY(proa_wire_put_int(w, "use_global_stats", PROA_WIRE_BOOLEAN, a->use_global_stats));
    return proa_wire_put_int(w, "trainable_statistics", PROA_WIRE_BOOLEAN, a->trainable_statistics);
}

static proa_status put_group_attrs(const proa_group_norm_grad_args *a, proa_wire_writer *w)
{
    PROA_TRY(proa_wire_put_float(w, "epsilon", a->epsilon));
    PROA_TRY(proa_wire_put_int(w, "groups", PROA_WIRE_INT, a->num_groups));
    return proa_wire_put_string(w, "data_layout", layout_name(a->data_format));
}

/* Paddle's kernel finds x̂ from Y, so Y is made once more, without a shift: that cancels out. */
proa_status group_norm_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_group_norm_grad_args *a = args;
    proa_meta x = proa_meta_of(a->x), statistics = proa_meta_of(a->mean);
    proa_tensor *y = proa_wire_temporary(w, &x);
    proa_tensor *mean = proa_wire_temporary(w, &statistics), *variance = proa_wire_temporary(w, &statistics);
    if (!y || !mean || !variance) return proa_error();
    PROA_TRY(proa_wire_op(w, "group_norm"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(put_optional(w, "Scale", a->weight));
    PROA_TRY(proa_wire_put_output(w, "Y", y));
    PROA_TRY(proa_wire_put_output(w, "Mean", mean));
    PROA_TRY(proa_wire_put_output(w, "Variance", variance));
    PROA_TRY(put_group_attrs(a, w));
    PROA_TRY(proa_wire_op(w, "group_norm_grad"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa_wire_put_input(w, "Y", y));
    PROA_TRY(put_optional(w, "Scale", a->weight));
    PROA_TRY(proa_wire_put_input(w, "Mean", a->mean));
    PROA_TRY(proa_wire_put_input(w, "Variance", a->variance));
    PROA_TRY(proa_wire_put_input(w, "Y@GRAD", a->d_out));
    PROA_TRY(proa_wire_put_output(w, "X@GRAD", a->d_x));
    PROA_TRY(proa_wire_put_output(w, "Scale@GRAD", a->d_weight));
    PROA_TRY(proa_wire_put_output(w, "Bias@GRAD", a->d_bias));
    return put_group_attrs(a, w);
}

proa_status group_norm_read_grad(proa_wire_reader *r)
{
    const char *layout = proa_wire_string(r, "data_layout", "NCHW");
    bool last = layout && layout[0] == 'N' && layout[1] != 'C';
    double epsilon = proa_wire_float(r, "epsilon", 1e-5);
    proa_group_norm_grad_result d = proa_group_norm_grad(
        proa_wire_input(r, "X"), proa_wire_int(r, "groups", 1), proa_wire_input(r, "Scale"),
        proa_wire_input(r, "Mean"), proa_wire_input(r, "Variance"), proa_wire_input(r, "Y@GRAD"),
        .epsilon = epsilon == 0 ? (double)PROA_ZERO : epsilon,
        .data_format = last ? PROA_DATA_FORMAT_NHWC : PROA_DATA_FORMAT_NCHW);
    PROA_TRY(proa_wire_result(r, "X@GRAD", d.d_x));
    PROA_TRY(proa_wire_result(r, "Scale@GRAD", d.d_weight));
    return proa_wire_result(r, "Bias@GRAD", d.d_bias);
}
