/* Readers of ops that create constants or a seed, copy, or test a whole tensor for infinities and NaN. May
 * use public ops. */
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

/* base to the power of num numbers from start to stop. */
proa_status logspace_read(proa_wire_reader *r)
{
    proa_tensor *start = proa_wire_input(r, "Start"), *stop = proa_wire_input(r, "Stop"),
                *num = proa_wire_input(r, "Num"), *base = proa_wire_input(r, "Base");
    proa_dtype dtype = proa_wire_dtype(r, "dtype", PROA_F32);
    proa_tensor *powers = proa_linspace(start, stop, num, .dtype = PROA_F64);
    return proa_wire_result(r, "Out",
                            proa_cast(proa_elementwise_pow(proa_cast(base, PROA_F64), powers), dtype));
}

/* Copies between the memories of devices: here all of a program's tensors are where it runs. */
proa_status memcpy_read(proa_wire_reader *r) { return proa_wire_result(r, "Out", proa_wire_input(r, "X")); }

proa_status view_shape_read(proa_wire_reader *r)
{
    return proa_wire_result(r, "out", proa_reshape(proa_wire_input(r, "input"), proa_wire_ints(r, "dims")));
}

/* x as a loss: its sum, its mean or itself. */
proa_status identity_loss_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    int64_t kind = proa_wire_int(r, "reduction", 1);
    return proa_wire_result(r, "Out", kind == 0 ? proa_sum(x) : kind == 1 ? proa_mean(x) : x);
}
