/* Functors of scale, clip and pow by a number, compiled by nvcc and by NVRTC. May use
 * devices/cuda/device.h. */
#ifndef PROA_OPS_ELEMENTWISE_CUDA_NUMBERS_H
#define PROA_OPS_ELEMENTWISE_CUDA_NUMBERS_H

#include "devices/cuda/device.h"

#include <math.h>

template <class X> struct scale_fn {
    typedef X T;
    typedef X R;
    T by, plus;
    bool after; /* the bias is added after scaling */
    CUDA_MEMBER R operator()(T x) const { return after ? (T)(x * by + plus) : (T)((x + plus) * by); }
};

/* NaN passes; where the limits cross, the upper one wins: min(max(x, low), high). */
template <class X> struct clip_fn {
    typedef X T;
    typedef X R;
    T low, high;
    CUDA_MEMBER R operator()(T x) const
    {
        T r = x < low ? low : x;
        return r > high ? high : r;
    }
};

/* Frequent exponents by products, as on the CPU. */
template <class X> struct power_fn {
    typedef X T;
    typedef X R;
    T y;
    CUDA_MEMBER R operator()(T x) const
    {
        if (y == 2) return x * x;
        if (y == 3) return x * x * x;
        if (y == (T)0.5) return sizeof(T) == 8 ? (T)sqrt((double)x) : (T)sqrtf((float)x);
        if (y == -1) return 1 / x;
        return sizeof(T) == 8 ? (T)pow((double)x, (double)y) : (T)powf((float)x, (float)y);
    }
};

#endif
