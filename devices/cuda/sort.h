/* Exclusive prefix sums and stable sorts for op kernels: cuda_scan and cuda_sort (sort.cu), and keys that
 * order the elements of every real dtype. For .cu files, after kernel.h. */
#ifndef PROA_CUDA_SORT_H
#define PROA_CUDA_SORT_H

#include "devices/cuda/kernel.h"

/* v[i] becomes the sum of the entries before it. With n + 1 entries of which the last is anything, the last
 * becomes the sum of all n. */
proa_status cuda_scan(cuda_context *c, int64_t *v, int64_t n);

/* Lines of keys in device memory, and after cuda_sort where in its line each key came from. */
struct cuda_order {
    int64_t lines, length;
    int bits;                    /* keys are below 2^bits */
    bool wide_keys, wide_places; /* uint64, otherwise uint32 */
    void *keys, *places;
    CUDA_MEMBER uint64_t key(int64_t i) const
    {
        return wide_keys ? ((const uint64_t *)keys)[i] : ((const uint32_t *)keys)[i];
    }
    CUDA_MEMBER int64_t place(int64_t i) const
    {
        return wide_places ? (int64_t)((const uint64_t *)places)[i] : (int64_t)((const uint32_t *)places)[i];
    }
    CUDA_MEMBER void put_key(int64_t i, uint64_t key) const
    {
        if (wide_keys) ((uint64_t *)keys)[i] = key;
        else ((uint32_t *)keys)[i] = (uint32_t)key;
    }
};

/* Allocates scratch for keys (below 2^bits) and places; cuda_order_free frees it, after an error, too. */
proa_status cuda_order_new(cuda_context *c, cuda_order *o, int64_t lines, int64_t length, int bits);
void cuda_order_free(cuda_context *c, cuda_order *o);
/* Sorts every line by its keys, which put_key has filled in; equal keys keep their order. */
proa_status cuda_sort(cuda_context *c, cuda_order *o);

/* Bits of the keys of a dtype. */
static inline int cuda_key_bits(proa_dtype d) { return (int)cuda_item(d) * 8; }

/* From the bits of a floating number, `bits` wide: negative ones below positive ones, −0 as 0, NaN last. */
CUDA_FN uint64_t cuda_float_key(uint64_t u, int bits, uint64_t infinity)
{
    uint64_t sign = (uint64_t)1 << (bits - 1), all = sign | (sign - 1), magnitude = u & (sign - 1);
    if (magnitude > infinity) return all;
    if (magnitude == 0) return sign;
    return u & sign ? ~u & all : u | sign;
}

/* Orders elements of dtype d as `<` does; NaN is the greatest of all. */
CUDA_FN uint64_t cuda_key(proa_dtype d, const char *p)
{
    const void *v = p;
    switch (d) {
    case PROA_I8: return (uint8_t)(*(const uint8_t *)v ^ 0x80u);
    case PROA_I16: return (uint16_t)(*(const uint16_t *)v ^ 0x8000u);
    case PROA_I32: return *(const uint32_t *)v ^ 0x80000000u;
    case PROA_I64: return *(const uint64_t *)v ^ (uint64_t)1 << 63;
    case PROA_F16: return cuda_float_key(*(const uint16_t *)v, 16, 0x7c00);
    case PROA_BF16: return cuda_float_key(*(const uint16_t *)v, 16, 0x7f80);
    case PROA_F32: return cuda_float_key(*(const uint32_t *)v, 32, 0x7f800000);
    case PROA_F64: return cuda_float_key(*(const uint64_t *)v, 64, (uint64_t)0x7ff << 52);
    default: return *(const uint8_t *)v;
    }
}
/* The key of NaN, which no other element has; 0 where there is none. */
static inline uint64_t cuda_nan_key(proa_dtype d)
{
    return d < PROA_F16 || d > PROA_F64 ? 0 : UINT64_MAX >> (64 - cuda_key_bits(d));
}

#endif
