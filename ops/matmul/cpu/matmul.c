/* CPU kernels of the matrix products, for every dtype of theirs and any strides; linear_fused is composed of
 * separate ops. Threads share the tiles of C; each element is summed in the same order whatever the number of
 * threads. May use core, kernels and helpers of ops/. */
#define GEMM_ALL_TYPES
#include "kernels/gemm.h"
#include "kernels/iterator.h"
#include "ops/epilogue.h"
#include "ops/matmul/cpu/dots.h"
#include "ops/matmul/product.h"

#include "core/copy.h"

/* Tiling and scratch of a product, for ranges of its tiles. */
typedef struct tile_job {
    const matmul_product *p;
    char *work;
    size_t work_each;
    int64_t slots, tiles, tile_m, tile_n, tiles_m, tiles_n;
} tile_job;

/* Of products with one row or column. THIN_ROWS: of the matrix, read at once. THIN_CHUNK: results of an item.
 * THIN_MOST: results that are computed together, so that rows are read in long pieces. */
enum { THIN_ROWS = 8, THIN_CHUNK = 64, THIN_MOST = 1024 };

static int64_t thin_length(const matmul_product *p) { return p->m == 1 ? p->n : p->m; }

static int64_t thin_chunks(const matmul_product *p) { return (thin_length(p) + THIN_CHUNK - 1) / THIN_CHUNK; }

#define NAME f32
#define T float
#define IN float
#define LOAD(v) (v)
#define STORE(v) (v)
#include "ops/matmul/cpu/body.inc"

#define NAME f64
#define T double
#define IN double
#define LOAD(v) (v)
#define STORE(v) (v)
#include "ops/matmul/cpu/body.inc"

#define NAME f16
#define T float
#define IN uint16_t
#define LOAD(v) proa__f16_to_f32(v)
#define STORE(v) proa__f32_to_f16(v)
#include "ops/matmul/cpu/body.inc"

#define NAME bf16
#define T float
#define IN uint16_t
#define LOAD(v) proa__bf16_to_f32(v)
#define STORE(v) proa__f32_to_bf16(v)
#include "ops/matmul/cpu/body.inc"

#define NAME i32
#define T uint32_t
#define IN uint32_t
#define LOAD(v) (v)
#define STORE(v) (v)
#include "ops/matmul/cpu/body.inc"

#define NAME i64
#define T uint64_t
#define IN uint64_t
#define LOAD(v) (v)
#define STORE(v) (v)
#include "ops/matmul/cpu/body.inc"

#define NAME c32
#define REAL f32
#define T float
#include "ops/matmul/cpu/complex.inc"
#define NAME c64
#define REAL f64
#define T double
#include "ops/matmul/cpu/complex.inc"

/* One sum a row of a matrix, or of each of a batch, in the same chains whatever the threads. */
typedef struct dots_job {
    const matmul_product *p;
    bool by_x; /* the matrix is x */
    int64_t length, stride;
} dots_job;

static void dots_range(int64_t begin, int64_t end, void *context)
{
    const dots_job *j = context;
    const matmul_product *p = j->p;
    for (int64_t n; begin < end; begin += n) {
        int64_t x, y, out, at = begin % j->length;
        n = gemm_min(end - begin, j->length - at);
        proa__product_batch(p, begin / j->length, &x, &y, &out);
        const float *rows = (const float *)(const void *)(j->by_x ? p->x : p->y) + (j->by_x ? x : y);
        const float *vector = (const float *)(const void *)(j->by_x ? p->y : p->x) + (j->by_x ? y : x);
        float *to = (float *)(void *)p->out + out + at;
        dots(rows + at * j->stride, j->stride, vector, p->k, n, to);
    }
}

static proa_status run_dots(const matmul_product *p)
{
    bool by_x = p->n == 1;
    dots_job j = {p, by_x, by_x ? p->m : p->n, by_x ? p->x_rs : p->y_cs};
    proa__parallel(p->batches * j.length, (1 << 15) / p->k + 1, dots_range, &j);
    return PROA_OK;
}

static proa_status product_run(const matmul_product *p)
{
    if (p->batches == 0 || p->m == 0 || p->n == 0) return PROA_OK;
    if (product_is_dots(p)) return run_dots(p);
    switch (p->dtype) {
    case PROA_F32: return run_f32(p);
    case PROA_F64: return run_f64(p);
    case PROA_F16: return run_f16(p);
    case PROA_BF16: return run_bf16(p);
    case PROA_I32: return run_i32(p);
    case PROA_I64: return run_i64(p);
    case PROA_C64: return run_c32(p);
    default: return run_c64(p);
    }
}

/* Runs op's product; operands whose strides no element pointer can follow are copied first. */
#define PRODUCT_KERNEL(op, first, second, make)                                                   \
    PROA_KERNEL(op##_cpu, op)                                                                     \
    {                                                                                             \
        matmul_product p = make(a);                                                               \
        if (!p.odd) return product_run(&p);                                                       \
        proa_##op##_args plain = *a;                                                              \
        proa_status status = PROA_OK;                                                             \
        PROA_SCOPE {                                                                              \
            plain.first = proa__contiguous(a->first), plain.second = proa__contiguous(a->second); \
            if (plain.first && plain.second) {                                                    \
                p = make(&plain);                                                                 \
                status = p.odd ? odd_addend(#op) : product_run(&p);                               \
            }                                                                                     \
        }                                                                                         \
        return status ? status : proa_error();                                                    \
    }

static proa_status odd_addend(const char *op)
{
    return proa__op_fail(PROA_ERR_UNSUPPORTED, proa_find_op(op), NULL,
                         "strides must be multiples of the element size: copy the addend first");
}

PRODUCT_KERNEL(matmul, x, y, PRODUCT_MATMUL)
PRODUCT_KERNEL(bmm, x, y, PRODUCT_BMM)
PRODUCT_KERNEL(mv, x, vec, PRODUCT_MV)
PRODUCT_KERNEL(linear, x, weight, product_linear)
PRODUCT_KERNEL(addmm, x, y, product_addmm)

/* A row of x against a row of y, for each row: a batch of 1×k by k×1 products. */
static matmul_product product_dot(const proa_dot_args *a)
{
    int last = a->x->ndim - 1;
    int64_t size = (int64_t)proa_dtype_size((proa_dtype)a->x->dtype);
    matmul_product p = {.dtype = (proa_dtype)a->x->dtype,
                        .alpha = 1,
                        .x = a->x->data,
                        .y = a->y->data,
                        .out = a->out->data,
                        .m = 1,
                        .n = 1,
                        .k = a->x->shape[last],
                        .batches = 1};
    p.x_cs = a->x->strides[last] / size, p.y_rs = a->y->strides[last] / size;
    p.odd = a->x->strides[last] % size || a->y->strides[last] % size;
    p.x_rs = p.k, p.y_cs = 1;
    if (last == 1) {
        p.batch_dims = 1;
        p.batch[0] = p.batches = a->x->shape[0];
        p.x_batch[0] = a->x->strides[0] / size, p.y_batch[0] = a->y->strides[0] / size, p.out_batch[0] = 1;
        p.odd = p.odd || a->x->strides[0] % size || a->y->strides[0] % size;
    }
    return p;
}

PRODUCT_KERNEL(dot, x, y, product_dot)

PROA_KERNEL_ANYWHERE(linear_fused_cpu, linear_fused)
{
    proa_linear_args linear = {.x = a->x, .weight = a->weight, .bias = a->bias, .out = a->out};
    return proa__epilogue_compose("linear", &linear, a->out, &PROA__EPILOGUE(a));
}
