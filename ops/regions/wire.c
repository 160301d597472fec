/* Forms of deformable_conv and generate_proposals in Paddle's programs: the op type depends on whether a mask
 * is given, and on whether im_shape has a scale. Uses proa/wire.h. */
#include "ops/regions/regions.h"
#include "ops/wire_util.h"

extern const proa_op proa__op_deformable_conv, proa__op_deformable_conv_grad, proa__op_generate_proposals;

proa_status deformable_conv_write(const void *args, proa_wire_writer *w)
{
    const proa_deformable_conv_args *a = args;
    return proa_wire_put_form(w, &proa__op_deformable_conv, proa__is_given(a->mask) ? 0 : 1, args);
}

proa_status deformable_conv_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_deformable_conv_grad_args *a = args;
    return proa_wire_put_form(w, &proa__op_deformable_conv_grad, proa__is_given(a->mask) ? 0 : 1, args);
}

proa_status generate_proposals_write(const void *args, proa_wire_writer *w)
{
    const proa_generate_proposals_args *a = args;
    return proa_wire_put_form(w, &proa__op_generate_proposals, a->im_shape->shape[1] == 3 ? 1 : 0, args);
}
