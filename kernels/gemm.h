/* Matrix products for portable kernel files (compiled once per CPU level): packed panels and a register tile
 * in GCC's vector types, instantiated for float32 and float64 and, where GEMM_ALL_TYPES is defined, for half
 * types and integers. Used by matmul, convolution, attention and recurrent layers. May use core only;
 * everything is static. */
#ifndef PROA_KERNELS_GEMM_H
#define PROA_KERNELS_GEMM_H

#include "core/half.h"
#include "core/internal.h"
#include "kernels/vector.h"

/* Rows of the register tile: rows × 2 vectors + 3 must fit the register file. */
#if defined(__AVX512F__)
#define GEMM_MR 12
#elif defined(__AVX2__)
#define GEMM_MR 6
#elif defined(__aarch64__)
#define GEMM_MR 12
#else
#define GEMM_MR 6
#endif
#define GEMM_NV 2

/* Cache blocking: a packed block of A has MC rows and KC columns, one of B KC rows and NC columns. NC is in
 * bytes of the accumulator, so that a block of B is as large for every type. */
enum { GEMM_MC = 96, GEMM_KC = 256, GEMM_NC_BYTES = 1536 };
/* Rows that packing prefetches ahead: they are more than a page apart, so the hardware prefetcher does not
 * help. */
enum { GEMM_AHEAD = 8 };

/* Element strides of an operand: from row to row, from column to column. */
typedef struct gemm_strides {
    int64_t rs, cs;
} gemm_strides;

static inline int64_t gemm_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t gemm_round_up(int64_t a, int64_t to) { return (a + to - 1) / to * to; }

#define GEMM_SAME(v) (v)

typedef float gemm_four __attribute__((vector_size(16), aligned(4), may_alias));

/* Transposes a 4 × 4 block. */
static inline void gemm_transpose_four(const float *from, int64_t rs, float *to, int64_t to_rs)
{
    gemm_four a = *(const gemm_four *)from, b = *(const gemm_four *)(from + rs);
    gemm_four c = *(const gemm_four *)(from + 2 * rs), d = *(const gemm_four *)(from + 3 * rs);
    gemm_four ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5),
              ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    gemm_four cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5),
              cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(gemm_four *)to = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5);
    *(gemm_four *)(to + to_rs) = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
    *(gemm_four *)(to + 2 * to_rs) = __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5);
    *(gemm_four *)(to + 3 * to_rs) = __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7);
}

#define GEMM_NAME f32
#define GEMM_T float
#define GEMM_IN float
#define GEMM_TRANSPOSE gemm_transpose_four
#define GEMM_LOAD GEMM_SAME
#define GEMM_SPLAT vector_splat_float
#include "kernels/gemm_body.h"

#define GEMM_NAME f64
#define GEMM_T double
#define GEMM_IN double
#define GEMM_LOAD GEMM_SAME
#define GEMM_SPLAT vector_splat_double
#include "kernels/gemm_body.h"

#ifdef GEMM_ALL_TYPES
#define GEMM_NAME f16
#define GEMM_T float
#define GEMM_IN uint16_t
#define GEMM_LOAD proa__f16_to_f32
#define GEMM_SPLAT vector_splat_float
#include "kernels/gemm_body.h"

#define GEMM_NAME bf16
#define GEMM_T float
#define GEMM_IN uint16_t
#define GEMM_LOAD proa__bf16_to_f32
#define GEMM_SPLAT vector_splat_float
#include "kernels/gemm_body.h"

/* Integers wrap around, as in NumPy: unsigned arithmetic is what C defines for that. */
typedef uint32_t gemm_lanes_i32 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint64_t gemm_lanes_i64 __attribute__((vector_size(VECTOR_BYTES)));
static inline gemm_lanes_i32 gemm_splat_i32(const uint32_t *at) { return (gemm_lanes_i32){0} + *at; }
static inline gemm_lanes_i64 gemm_splat_i64(const uint64_t *at) { return (gemm_lanes_i64){0} + *at; }

#define GEMM_NAME i32
#define GEMM_T uint32_t
#define GEMM_IN uint32_t
#define GEMM_LOAD GEMM_SAME
#define GEMM_SPLAT gemm_splat_i32
#include "kernels/gemm_body.h"

#define GEMM_NAME i64
#define GEMM_T uint64_t
#define GEMM_IN uint64_t
#define GEMM_LOAD GEMM_SAME
#define GEMM_SPLAT gemm_splat_i64
#include "kernels/gemm_body.h"
#endif

#endif
