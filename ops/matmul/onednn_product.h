/* Matrix products as oneDNN's matmul primitive describes them, for kernels of several ops. May use core and
 * kernels only. */
#ifndef PROA_OPS_MATMUL_ONEDNN_PRODUCT_H
#define PROA_OPS_MATMUL_ONEDNN_PRODUCT_H

#include "kernels/onednn.h"
#include "ops/matmul/product.h"

/* True if rows or columns of both operands are contiguous, and there are not too many batch dims. */
bool proa__dnnl_product_suits(const matmul_product *p);

/* True if oneDNN's threads would share the sums of a product: onednn_deep.c has these. */
bool proa__dnnl_shares_sums(const matmul_product *p);

/* Dtypes, layout of y and epilogue of a product. */
typedef struct proa__dnnl_product_form {
    proa_dtype dtypes[3];       /* of x, y and out */
    bool packs;                 /* y may take the layout that the primitive prefers */
    const proa__epilogue *tail; /* NULL: none */
} proa__dnnl_product_form;

/* Adds the operands x, y, out and, if p has one, the addend; makes the primitive descriptor. */
bool proa__dnnl_describe_product(proa__dnnl_build *b, const matmul_product *p,
                                 const proa__dnnl_product_form *form);

#endif
