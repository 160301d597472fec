/* Readers of Paddle 1.x ops that create constants or a seed, or test a whole tensor for infinities and NaN.
 * May use public ops. */
#include "ops/composed/composed.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/random.h"
#include "impl/reduce.h"
#include "impl/shape.h"

proa_status empty_read(proa_wire_reader *r)
{
    proa_ints dims = proa_wire_list(r, "shape", "ShapeTensor", "ShapeTensorList");
    return proa_wire_result(r, "Out",
                            proa_full(dims, PROA_SCALAR(0), .dtype = proa_wire_dtype(r, "dtype", PROA_F32)));
}

proa_status fill_read(proa_wire_reader *r)
{
    proa_dtype dtype = proa_wire_dtype(r, "dtype", PROA_F32);
    proa_tensor *made =
        proa_assign_value(proa_wire_ints(r, "shape"), PROA_F64, .values = proa_wire_floats(r, "value"));
    return proa_wire_result(r, "Out", dtype == PROA_F64 ? made : proa_cast(made, dtype));
}

proa_status fill_zeros_like2_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    if (!x) return proa_error();
    return proa_wire_result(
        r, "Out",
        proa_full_like(x, PROA_SCALAR(0), .dtype = proa_wire_dtype(r, "dtype", (proa_dtype)x->dtype)));
}

/* Reads `seed`: the attribute, or a random number if it is 0. */
proa_status seed_read(proa_wire_reader *r)
{
    int64_t seed = proa_wire_int(r, "seed", 0);
    return proa_wire_result(r, "Out",
                            seed ? proa_full(PROA_INTS(1), PROA_SCALAR(seed), .dtype = PROA_I32)
                                 : proa_randint(1, INT32_MAX, PROA_INTS(1), .dtype = PROA_I32));
}

proa_status isfinite_all_read(proa_wire_reader *r)
{
    proa_tensor *all = proa_all(proa_isfinite(proa_wire_input(r, "X")));
    return proa_wire_result(r, "Out", proa_reshape(all, PROA_INTS(1)));
}

proa_status isinf_any_read(proa_wire_reader *r)
{
    proa_tensor *any = proa_any(proa_isinf(proa_wire_input(r, "X")));
    return proa_wire_result(r, "Out", proa_reshape(any, PROA_INTS(1)));
}

proa_status isnan_any_read(proa_wire_reader *r)
{
    proa_tensor *any = proa_any(proa_isnan(proa_wire_input(r, "X")));
    return proa_wire_result(r, "Out", proa_reshape(any, PROA_INTS(1)));
}
