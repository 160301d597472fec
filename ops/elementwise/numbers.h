/* Inner loops of scale, clip and pow by a number, and the one or two numbers that they read, which come from
 * attributes or one-element tensors. For kernel files (compiled once per CPU level). May use core and kernels
 * only. */
#ifndef PROA_OPS_ELEMENTWISE_NUMBERS_H
#define PROA_OPS_ELEMENTWISE_NUMBERS_H

#include "kernels/iterator.h"
#include "impl/elementwise.h"

/* The numbers, in the type that the inner loop computes in. */
typedef struct proa_numbers {
    _Alignas(16) char a[16], b[16];
    bool flag;
} proa_numbers;

#define proa__scale_rows PROA_LEVELED(proa__scale_rows_at)
#define proa__clip_rows PROA_LEVELED(proa__clip_rows_at)
#define proa__power_rows PROA_LEVELED(proa__power_rows_at)
#define proa__scale_numbers PROA_LEVELED(proa__scale_numbers_at)
#define proa__clip_numbers PROA_LEVELED(proa__clip_numbers_at)
#define proa__power_numbers PROA_LEVELED(proa__power_numbers_at)

extern const proa_rows proa__scale_rows, proa__clip_rows, proa__power_rows;
/* Fill the numbers that the inner loops read; d is the dtype of x. */
void proa__scale_numbers(const proa_scale_args *a, proa_dtype d, proa_numbers *to);
void proa__clip_numbers(const proa_clip_args *a, proa_dtype d, proa_numbers *to);
void proa__power_numbers(const proa_pow_args *a, proa_dtype d, proa_numbers *to);

#endif
