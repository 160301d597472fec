/* CUDA kernels of arithmetic: generated from the scalar formulas, and cast, where, scale, clip and pow. */
#define PROA_FORMULAS_ARITH 1
#include "ops/elementwise/cuda/elementwise.h"
#include "ops/elementwise/cuda/numbers.h"

#include "formulas_cuda.inc"

/* ---- cast ------------------------------------------------------------------------------ */

template <class X> struct cast_fn {
    typedef X T;
    typedef X R;
    CUDA_CALL R operator()(T x) const { return x; }
};

/* Computed in int64 from integers to integers or float64, in float64 where x or the result is float64 or x is
 * int32 or int64, else in float32. */
CUDA_KERNEL(cast, CUDA_IS(a->x, CUDA_REALS) && CUDA_IS(a->out, CUDA_REALS))
{
    proa_tensor *t[] = {a->out, a->x};
    proa_dtype from = cuda_look(a->x).dtype, to = cuda_look(a->out).dtype;
    if (from <= PROA_I64 && to != PROA_F32 && to != PROA_F16 && to != PROA_BF16)
        return cuda_map_run<1>(c, t, cast_fn<int64_t>{});
    if (from == PROA_F64 || from == PROA_I64 || from == PROA_I32 || to == PROA_F64)
        return cuda_map_run<1>(c, t, cast_fn<double>{});
    return cuda_map_run<1>(c, t, cast_fn<float>{});
}

/* ---- where ----------------------------------------------------------------------------- */

template <class T> __global__ void where_kernel(cuda_map<3> m)
{
    for (CUDA_EACH(i, m.numel)) {
        int64_t at[4];
        cuda_map_walk(m, i, at);
        bool yes = *(const uint8_t *)(m.at[1].data + at[1]);
        *(T *)(void *)(m.at[0].data + at[0]) =
            *(const T *)(const void *)(yes ? m.at[2].data + at[2] : m.at[3].data + at[3]);
    }
}

CUDA_KERNEL(where, true)
{
    cuda_map<3> m;
    proa_tensor *t[] = {a->out, a->condition, a->x, a->y};
    if (!cuda_map_fill(&m, t)) return PROA_OK;
    CUDA_SWITCH_UNIT(cuda_item(m.at[0].dtype), T,
                     return cuda_launch(c, cuda_blocks(m.numel), CUDA_BLOCK, where_kernel<T>, m);)
}

/* ---- numbers --------------------------------------------------------------------------- */

CUDA_KERNEL(scale, CUDA_IS(a->x, CUDA_REALS))
{
    proa_tensor *t[] = {a->out, a->x};
    proa_dtype d = cuda_look(a->x).dtype;
    double by = cuda_number(&a->scale, 1), plus = a->bias;
    bool after = a->bias_after_scale;
    if (d == PROA_F64) return cuda_map_run<1>(c, t, scale_fn<double>{by, plus, after});
    if (d <= PROA_I64) /* the numbers are cut to integers */
        return cuda_map_run<1>(c, t, scale_fn<int64_t>{cuda_integer(&a->scale, 1), (int64_t)plus, after});
    return cuda_map_run<1>(c, t, scale_fn<float>{(float)by, (float)plus, after});
}

/* A limit that is not given, or lies outside int64, is the range's end. */
static int64_t clip_limit(const proa_scalar *s, bool upper)
{
    double v = cuda_number(s, upper ? INFINITY : -INFINITY);
    return v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : cuda_integer(s, 0);
}

CUDA_KERNEL(clip, CUDA_IS(a->x, CUDA_REALS))
{
    proa_tensor *t[] = {a->out, a->x};
    proa_dtype d = cuda_look(a->x).dtype;
    if (d <= PROA_I64)
        return cuda_map_run<1>(c, t, clip_fn<int64_t>{clip_limit(&a->min, false), clip_limit(&a->max, true)});
    double low = cuda_number(&a->min, -INFINITY), high = cuda_number(&a->max, INFINITY);
    if (d == PROA_F64) return cuda_map_run<1>(c, t, clip_fn<double>{low, high});
    return cuda_map_run<1>(c, t, clip_fn<float>{(float)low, (float)high});
}

struct power_I64_fn {
    typedef int64_t T;
    typedef int64_t R;
    T y;
    CUDA_CALL R operator()(T x) const { return elementwise_pow_I64(x, y); }
};

CUDA_KERNEL(pow, CUDA_IS(a->x, CUDA_REALS))
{
    proa_tensor *t[] = {a->out, a->x};
    proa_dtype d = cuda_look(a->x).dtype;
    if (d <= PROA_I64) return cuda_map_run<1>(c, t, power_I64_fn{cuda_integer(&a->y, 1)});
    double y = cuda_number(&a->y, 1);
    if (d == PROA_F64) return cuda_map_run<1>(c, t, power_fn<double>{y});
    return cuda_map_run<1>(c, t, power_fn<float>{(float)y});
}
