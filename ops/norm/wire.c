/* batch_norm in Paddle's programs, which in training has the extra output ReserveSpace. May use core and the
 * ops. */
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
