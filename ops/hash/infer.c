/* Shape inference of hash. May use core and ops. */
#include "ops/ints.h"
#include "impl/hash.h"

proa_status hash_infer(const proa_hash_args *a, proa_hash_metas *m)
{
    if (a->x->ndim != 2)
        return OP_FAIL("hash", INVALID_ARGUMENT, "x", "is %s; expected rows of ids, [N, width]",
                       proa__tensor_text(a->x));
    if (a->num_hash < 1 || a->mod_by < 1)
        return OP_FAIL("hash", INVALID_ARGUMENT, "num_hash", "is %lld and mod_by %lld; expected 1 or more",
                       (long long)a->num_hash, (long long)a->mod_by);
    m->out =
        (proa_meta){.dtype = (proa_dtype)a->x->dtype, .ndim = 3, .shape = {a->x->shape[0], a->num_hash, 1}};
    return PROA_OK;
}
