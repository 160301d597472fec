/* Turns the tensors of a matrix product into batch counts, sizes and element strides, and merges batch dims
 * so that kernels see few large products. May use core only. */
#include "ops/matmul/product.h"

static int64_t element_stride(matmul_product *p, int64_t bytes)
{
    int64_t size = (int64_t)proa_dtype_size(p->dtype);
    if (bytes % size) p->odd = true;
    return bytes / size;
}

/* Element stride of batch dim `dim` (of `dims`, right-aligned) of a tensor whose last `core` dims are
 * the matrix. */
static int64_t batch_stride(matmul_product *p, const proa_tensor *t, int core, int dim, int dims)
{
    int at = t->ndim - core - (dims - dim);
    return at < 0 || t->shape[at] == 1 ? 0 : element_stride(p, t->strides[at]);
}

static void put_batches(matmul_product *p, const proa_tensor *x, const proa_tensor *y, const proa_tensor *out,
                        int core_x, int core_y, int dims)
{
    int64_t step = p->m * p->n;
    int kept = 0;
    p->batches = 1;
    /* Innermost first while merging; out is row-major, so its strides follow from the sizes. */
    for (int dim = dims - 1; dim >= 0; dim--) {
        int64_t size = out->shape[dim];
        p->batches *= size;
        if (size == 1) continue;
        int64_t xs = batch_stride(p, x, core_x, dim, dims), ys = batch_stride(p, y, core_y, dim, dims);
        int last = kept - 1;
        if (kept && xs == p->x_batch[last] * p->batch[last] && ys == p->y_batch[last] * p->batch[last]) {
            p->batch[last] *= size;
        } else if (!kept && ys == 0 && (p->m == 1 || xs == p->m * p->x_rs)) {
            /* One matrix y for all: the batch is just more rows. */
            if (p->m == 1) p->x_rs = xs;
            p->m *= size;
        } else {
            p->batch[kept] = size, p->x_batch[kept] = xs, p->y_batch[kept] = ys, p->out_batch[kept] = step;
            kept++;
        }
        step *= size;
    }
    p->batch_dims = kept;
    p->batches = 1;
    for (int i = 0; i < kept; i++) p->batches *= p->batch[i];
    for (int i = 0; i < kept / 2; i++) { /* outermost first */
        int j = kept - 1 - i;
        int64_t *const lists[] = {p->batch, p->x_batch, p->y_batch, p->out_batch};
        for (int l = 0; l < 4; l++) {
            int64_t t = lists[l][i];
            lists[l][i] = lists[l][j], lists[l][j] = t;
        }
    }
}

matmul_product proa__product(const proa_tensor *x, const proa_tensor *y, bool transpose_x, bool transpose_y,
                             const proa_tensor *out)
{
    matmul_product p = {
        .dtype = (proa_dtype)x->dtype, .alpha = 1, .x = x->data, .y = y->data, .out = out->data};
    bool row = x->ndim == 1, column = y->ndim == 1;
    int xr = x->ndim - (transpose_x ? 1 : 2), xc = x->ndim - (transpose_x ? 2 : 1);
    int yr = y->ndim - (transpose_y ? 1 : 2), yc = y->ndim - (transpose_y ? 2 : 1);
    p.m = row ? 1 : x->shape[xr];
    p.k = row ? x->shape[0] : x->shape[xc];
    p.n = column ? 1 : y->shape[yc];
    p.x_rs = row ? 0 : element_stride(&p, x->strides[xr]);
    p.x_cs = element_stride(&p, x->strides[row ? 0 : xc]);
    p.y_rs = element_stride(&p, y->strides[column ? 0 : yr]);
    p.y_cs = column ? 0 : element_stride(&p, y->strides[yc]);
    /* Strides along a dim of 1 are never followed; row-major ones suit every backend. */
    if (p.k == 1) p.x_cs = 1, p.y_rs = p.n;
    if (p.n == 1) p.y_cs = p.y_rs == 1 ? p.k : 1;
    if (p.m == 1) p.x_rs = p.x_cs == 1 ? p.k : 1;
    int dims = out->ndim - !row - !column;
    put_batches(&p, x, y, out, row ? 1 : 2, column ? 1 : 2, dims);
    p.out_rs = p.n;
    return p;
}

matmul_product proa__product_swapped(const proa_tensor *x, const proa_tensor *y, bool transpose_x,
                                     bool transpose_y, const proa_tensor *out)
{
    proa_tensor plain = proa__shallow_copy(out);
    const int rows = out->ndim - 3;
    const int64_t m = out->shape[rows], heads = out->shape[rows + 1];
    plain.shape[rows] = heads, plain.shape[rows + 1] = m;
    matmul_product p = proa__product(x, y, transpose_x, transpose_y, &plain);
    int last = p.batch_dims - 1;
    if (last < 0 || p.m != m || heads == 0 || p.batch[last] % heads || p.out_batch[last] != m * p.n) {
        p.odd = true;
        return p;
    }
    if (p.batch[last] > heads) { /* heads were merged with what is around them */
        int64_t *const lists[] = {p.x_batch, p.y_batch, p.out_batch};
        for (int l = 0; l < 3; l++) lists[l][last + 1] = lists[l][last], lists[l][last] *= heads;
        p.batch[last] /= heads, p.batch[last + 1] = heads;
        p.batch_dims = ++last + 1;
    }
    p.out_batch[last] = p.n;
    p.out_rs = heads * p.n;
    return p;
}

void proa__product_add(matmul_product *p, const proa_tensor *d, double alpha, double beta)
{
    p->alpha = alpha;
    p->beta = beta;
    if (proa__absent(d) || beta == 0) return;
    p->add = d->data;
    p->has_add = true;
    int last = d->ndim - 1;
    if (d->ndim > 0 && d->shape[last] > 1) p->add_cs = element_stride(p, d->strides[last]);
    if (d->ndim > 1 && d->shape[0] > 1) p->add_rs = element_stride(p, d->strides[0]);
}

void proa__product_batch(const matmul_product *p, int64_t index, int64_t *x, int64_t *y, int64_t *out)
{
    *x = *y = *out = 0;
    for (int i = p->batch_dims - 1; i >= 0; i--) {
        int64_t at = index % p->batch[i];
        index /= p->batch[i];
        *x += at * p->x_batch[i], *y += at * p->y_batch[i], *out += at * p->out_batch[i];
    }
}
