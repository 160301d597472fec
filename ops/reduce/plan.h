/* View of a contiguous tensor for a reduction: neighboring axes merged into alternating kept and reduced
 * groups. For kernels of ops/reduce. May use core only. */
#ifndef PROA_OPS_REDUCE_PLAN_H
#define PROA_OPS_REDUCE_PLAN_H

#include "core/internal.h"
#include "core/tensor.h"

/* Groups of axes, outermost first; strides in elements. */
typedef struct proa_groups {
    int n;
    int64_t shape[PROA_MAX_DIMS], stride[PROA_MAX_DIMS];
} proa_groups;

typedef struct proa_reduce_plan {
    proa_groups kept, reduced; /* without the innermost group, which is `inner` */
    bool rows;                 /* the innermost group is reduced: contiguous runs give one value each */
    int64_t inner;             /* its length */
    int64_t outputs, terms;    /* elements of the result; elements that each of them is made of */
} proa_reduce_plan;

/* Fills p for a contiguous x; bit i of mask: axis i is reduced. */
static inline void proa__reduce_plan(proa_reduce_plan *p, const proa_tensor *x, unsigned mask)
{
    int64_t shape[PROA_MAX_DIMS];
    bool reduced[PROA_MAX_DIMS];
    int n = 0;
    for (int i = 0; i < x->ndim; i++) {
        bool r = mask >> i & 1;
        if (x->shape[i] == 1) continue;
        if (n && reduced[n - 1] == r) shape[n - 1] *= x->shape[i];
        else reduced[n] = r, shape[n++] = x->shape[i];
    }
    if (n == 0) reduced[n] = true, shape[n++] = 1;
    p->kept.n = p->reduced.n = 0;
    p->rows = reduced[n - 1];
    p->inner = shape[n - 1];
    p->outputs = p->rows ? 1 : p->inner;
    p->terms = p->rows ? p->inner : 1;
    int64_t stride = p->inner;
    for (int i = n - 2; i >= 0; i--) stride *= shape[i];
    for (int i = 0; i < n - 1; i++) {
        proa_groups *g = reduced[i] ? &p->reduced : &p->kept;
        stride /= shape[i] ? shape[i] : 1;
        g->shape[g->n] = shape[i];
        g->stride[g->n++] = stride;
        if (reduced[i]) p->terms *= shape[i];
        else p->outputs *= shape[i];
    }
}

/* Offset, in elements, of index number `at` in row-major order over the groups. */
static inline int64_t proa__group_offset(const proa_groups *g, int64_t at)
{
    int64_t offset = 0;
    for (int i = g->n - 1; i >= 0; i--) {
        offset += at % g->shape[i] * g->stride[i];
        at /= g->shape[i];
    }
    return offset;
}

#endif
