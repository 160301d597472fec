/* Element-wise reductions of several host buffers, by which the engines reduce the ranks' data. May use
 * core. */
#ifndef PROA_DIST_REDUCE_H
#define PROA_DIST_REDUCE_H

#include <proa/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* UNSUPPORTED or another error, naming call `what`, if a dtype has no such reduction: complex numbers have
 * sums and averages alone, integers no averages. */
proa_status proa__reduce_check(const char *what, proa_dtype dtype, proa_reduce_type op);
/* out[i] = in[0][i] ⊕ in[1][i] ⊕ … for n ≥ 1 buffers, in this order; out may be in[0]. Half types are summed
 * in float32 and rounded once. An average is divided by `ranks`. */
void proa__reduce_buffers(void *out, const void *const *in, int n, size_t count, proa_dtype dtype,
                          proa_reduce_type op, int ranks);
/* Convert n elements between a half type (float16 or bfloat16) and float32. */
void proa__half_to_float(float *out, const void *in, size_t n, proa_dtype half);
void proa__float_to_half(void *out, const float *in, size_t n, proa_dtype half);

#ifdef __cplusplus
}
#endif
#endif
