/* Ranges and axes of quantization, shared by inference and kernels. May use core only. */
#ifndef PROA_OPS_QUANTIZE_H
#define PROA_OPS_QUANTIZE_H

#include "core/tensor.h"

/* The largest integer of so many bits with a sign: n. */
static inline double quantize_range(int64_t bits) { return (double)(((int64_t)1 << (bits - 1)) - 1); }

/* The bits of scale i of a dequantizer; 8 where the list ends before. */
static inline int64_t bits_of_scale(const proa_ints *bits, int64_t i)
{
    return i < bits->count ? bits->at[i] : 8;
}

/* The axis of channels that fake_channel_wise_dequantize_max_abs scales. */
static inline int64_t dequantize_axis(int64_t n_scales, int64_t quant_axis, int64_t x_num_col_dims)
{
    return n_scales == 2 ? x_num_col_dims : quant_axis;
}

#endif
