/* Max pooling of integers on the CPU. Compiled once per CPU level; static functions and the kernel only. */
#include "ops/pool/geometry.h"
#include "impl/int8.h"

/* Bytes that are worth a thread. */
enum { GRAIN = 1 << 17 };

typedef struct pooling {
    pool_geometry g;
    const char *x;
    char *out;
} pooling;

#define T int8_t
#define FN(name) name##_signed
#include "pool.inc"
#undef T
#undef FN
#define T uint8_t
#define FN(name) name##_unsigned
#include "pool.inc"

PROA_KERNEL(max_pool2d_int8_cpu, max_pool2d_int8)
{
    pooling p = {.x = a->x->data, .out = a->out->data};
    PROA_TRY(proa__pool_geometry(&MAX_INT8_PARAMS(a), &p.g));
    if (a->out->numel == 0) return PROA_OK;
    bool is_signed = a->x->dtype == PROA_I8;
    int64_t parts = p.g.channels_last ? p.g.batch * p.g.out[1] : p.g.batch * p.g.channels;
    int64_t work = a->out->numel / parts * p.g.kernel[1] * p.g.kernel[2];
    proa__parallel(parts, 1 + GRAIN / (work + 1),
                   p.g.channels_last ? (is_signed ? lines_signed : lines_unsigned)
                                     : (is_signed ? planes_signed : planes_unsigned),
                   &p);
    return PROA_OK;
}
