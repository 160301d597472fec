/* AMP level O2: casts a model's float32 parameters to low precision in place, so that layers, optimizers and
 * users keep the same tensor handles; clears their gradients. May use core, ops, autograd. */
#include "core/internal.h"
#include "core/tensor.h"

#include <proa/amp.h>
#include <proa/autograd.h>

proa_status proa_amp_decorate(proa_tensors parameters, proa_dtype dtype)
{
    PROA_TRY(proa_error());
    if (dtype != PROA_BF16 && dtype != PROA_F16)
        return proa_fail(PROA_ERR_WRONG_TYPE, "amp_decorate: dtype is %s; expected bfloat16 or float16",
                         proa_dtype_name(dtype));
    PROA_NO_GRAD;
    for (int64_t i = 0; i < parameters.count; i++) {
        proa_tensor *p = parameters.at[i];
        if (!p || p == proa_none || proa_is_symbolic(p) || !proa_is_leaf(p))
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "amp_decorate: parameter %lld is %s; expected a leaf with data", (long long)i,
                             p ? proa__tensor_text(p) : "NULL");
        if (p->dtype != PROA_F32) continue;
        PROA_SCOPED;
        proa_tensor *low = proa_cast(p, dtype);
        if (!low) return proa_error();
        proa_clear_grad(p);
        proa__tensor_assign(p, low);
    }
    return PROA_OK;
}
