/* The form that every matrix product op takes for its kernels: batches of C = alpha·A·B + beta·D over element
 * strides. May use core only. */
#ifndef PROA_OPS_MATMUL_PRODUCT_H
#define PROA_OPS_MATMUL_PRODUCT_H

#include "impl/matmul.h"

#include "core/internal.h"
#include "core/tensor.h"

typedef struct matmul_product {
    proa_dtype dtype;
    /* Batch dims, adjacent ones merged where the strides allow; strides in elements, 0 = broadcast. */
    int batch_dims;
    int64_t batch[PROA_MAX_DIMS], x_batch[PROA_MAX_DIMS], y_batch[PROA_MAX_DIMS], out_batch[PROA_MAX_DIMS];
    int64_t batches; /* their product */
    int64_t m, n, k;
    int64_t x_rs, x_cs, y_rs, y_cs;
    int64_t out_rs; /* row stride of out; its columns are contiguous */
    const char *x, *y;
    char *out;
    /* D, broadcast over the batches; NULL without one. */
    const char *add;
    bool has_add; /* true with an addend, also in prepare, where add is not set */
    int64_t add_rs, add_cs;
    double alpha, beta;
    bool odd; /* a byte stride is no multiple of the element: the operands must be copied first */
} matmul_product;

/* The product of x and y into out; a 1-D x is a row, a 1-D y a column, and batch dims broadcast. */
matmul_product proa__product(const proa_tensor *x, const proa_tensor *y, bool transpose_x, bool transpose_y,
                             const proa_tensor *out);
/* Meta of proa__product's out: its shape, and x's dtype. */
proa_status proa__product_meta(const char *op, const proa_tensor *x, const proa_tensor *y, bool transpose_x,
                               bool transpose_y, proa_meta *m);
/* Like proa__product, but out is [..., m, heads, n], with the rows before the last batch dim, for kernels
 * that use out_rs; sets `odd` where strides cannot express that. */
matmul_product proa__product_swapped(const proa_tensor *x, const proa_tensor *y, bool transpose_x,
                                     bool transpose_y, const proa_tensor *out);
/* Adds beta·d to the product; d is 1-D or 2-D and broadcasts over [m, n]. Does nothing if d is absent or beta
 * is 0. */
void proa__product_add(matmul_product *p, const proa_tensor *d, double alpha, double beta);
/* Element offsets of batch `index` in x, y and out. */
void proa__product_batch(const matmul_product *p, int64_t index, int64_t *x, int64_t *y, int64_t *out);

/* The product of each op, from its args. */
#define PRODUCT_MATMUL(a) proa__product((a)->x, (a)->y, (a)->transpose_x, (a)->transpose_y, (a)->out)
#define PRODUCT_SWAPPED(a) proa__product_swapped((a)->x, (a)->y, (a)->transpose_x, (a)->transpose_y, (a)->out)
#define PRODUCT_BMM(a) proa__product((a)->x, (a)->y, false, false, (a)->out)
#define PRODUCT_MV(a) proa__product((a)->x, (a)->vec, false, false, (a)->out)

static inline matmul_product product_linear(const proa_linear_args *a)
{
    matmul_product p = proa__product(a->x, a->weight, false, false, a->out);
    proa__product_add(&p, a->bias, 1, 1);
    return p;
}

static inline matmul_product product_addmm(const proa_addmm_args *a)
{
    matmul_product p = proa__product(a->x, a->y, false, false, a->out);
    proa__product_add(&p, a->input, a->alpha, a->beta);
    return p;
}

/* Defines op##_prepare, which passes the product that `make` builds from the args to `prepare`. */
#define PRODUCT_PREPARE(op, make, prepare)                          \
    static proa_status op##_prepare(const void *args, void **state) \
    {                                                               \
        matmul_product p = make((const proa_##op##_args *)args);    \
        return prepare(&p, state);                                  \
    }

/* Multiply-adds of a product, as a double: only compared with thresholds. */
static inline double product_work(const matmul_product *p)
{
    return (double)p->batches * (double)p->m * (double)p->n * (double)p->k;
}

/* True for products of matrices and vectors that are contiguous along the summed dim, as of a query by the
 * keys of a cache. They are bound by memory bandwidth and have a kernel of their own in cpu/matmul.c. */
static inline bool product_is_dots(const matmul_product *p)
{
    bool vector = p->m == 1 || (p->n == 1 && p->out_rs == 1);
    return vector && p->dtype == PROA_F32 && !p->odd && !p->has_add && p->alpha == 1 && p->x_cs == 1 &&
           p->y_rs == 1 && p->k >= 16;
}

/* True for a real product that is bound by the memory of its largest operand, a sum of a matrix's contiguous
 * rows, each times a number, or an outer product: the kernel in cpu/matmul.c goes through that once, in
 * place. */
static inline bool product_is_streamed(const matmul_product *p)
{
    bool rows = (p->m == 1 && p->y_cs == 1) || (p->n == 1 && p->x_rs == 1);
    return (rows || p->k == 1) && p->out_rs == p->n && p->dtype != PROA_C64 && p->dtype != PROA_C128;
}

/* PRODUCT_CROWDED: floats; rows that many apart, or a multiple, share sets of the first-level cache. */
enum { PRODUCT_CROWDED = 1024 };

/* FEW_ROWS: of a product that reads a large matrix once. FEW_SIDE: of the matrix. FEW_MATRIX: elements of one
 * that does not stay in a second-level cache (1.5 MiB); cached ones are faster in register tiles. */
enum { FEW_ROWS = 8, FEW_SIDE = 64, FEW_MATRIX = 3 << 17 };

/* True for a few rows by a large matrix in either order, as decoding has them: bound by the memory of the
 * matrix, which cpu/few_rows.c reads once and in place. */
static inline bool product_is_few_rows(const matmul_product *p)
{
    if (p->dtype != PROA_F32 || p->odd || p->alpha != 1 || p->m < 2 || p->m > FEW_ROWS) return false;
    if (p->n < FEW_SIDE || p->k < FEW_SIDE || p->n * p->k < FEW_MATRIX || p->x_cs != 1) return false;
    if (p->has_add && (p->beta != 1 || p->add_rs != 0 || p->add_cs != 1)) return false;
    return p->y_cs == 1 || p->y_rs == 1;
}

#endif
