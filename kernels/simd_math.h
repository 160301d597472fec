/* exp, log, log1p, sigmoid and tanh for kernel bodies that are compiled for float and for double, where
 * FN(vexp) is vexp_float or vexp_double. All but float64's log1p are branch-free, so that loops vectorize.
 * May use kernels/scalar_math.h; for kernel files. */
#ifndef PROA_KERNELS_SIMD_MATH_H
#define PROA_KERNELS_SIMD_MATH_H

#include "kernels/scalar_math.h"

static inline float vexp_float(float x) { return m_exp_F32(x); }

static inline double vexp_double(double x) { return m_exp_F64(x); }

static inline float vsigmoid_float(float x) { return 1.0f / (1.0f + vexp_float(-x)); }
static inline double vsigmoid_double(double x) { return 1.0 / (1.0 + vexp_double(-x)); }

static inline float vtanh_float(float x) { return m_tanh_F32(x); }
static inline double vtanh_double(double x) { return m_tanh_F64(x); }

static inline float vlog_float(float x) { return m_log_F32(x); }
static inline double vlog_double(double x) { return m_log_F64(x); }
static inline float vlog1p_float(float x) { return m_log1p_F32(x); }
static inline double vlog1p_double(double x) { return log1p(x); }

#endif
