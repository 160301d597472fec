/* CPU kernel of logsumexp: two passes over the terms of a row, or of a block of neighboring columns, the
 * second one in cache. May use core, kernels and ops. */
#include "kernels/rowwise.h"
#include "ops/reduce/axes.h"
#include "ops/reduce/plan.h"
#include "impl/reduce.h"

#include <math.h>

typedef struct lse_job {
    proa_reduce_plan plan;
    proa_dtype dtype;
    const void *x;
    void *out;
} lse_job;

/* COLUMNS: 1024 rows of them in float32 are 512 KiB, half of a typical L2 cache. FLUSH: terms that are added
 * in float32 before their sum goes on in double. */
enum { CHUNK = 512, COLUMNS = 128, FLUSH = 64, WORTH = 1 << 13 };

#define T float
#include "logsumexp.inc"
#undef T
#define T double
#include "logsumexp.inc"
#undef T

static void lse_range(int64_t begin, int64_t end, void *context)
{
    const lse_job *j = context;
    bool wide = j->dtype == PROA_F64;
    for (int64_t unit = begin; unit < end; unit++)
        if (j->plan.rows) (wide ? lse_row_double : lse_row_float)(j, unit);
        else (wide ? lse_columns_double : lse_columns_float)(j, unit);
}

PROA_KERNEL(logsumexp_cpu, logsumexp)
{
    unsigned mask;
    PROA_TRY(proa__reduce_mask("logsumexp", &a->axis, a->x->ndim, &mask));
    if (a->out->numel <= 0) return PROA_OK;
    lse_job j = {.dtype = (proa_dtype)a->x->dtype, .x = a->x->data, .out = a->out->data};
    const proa_reduce_plan *p = &j.plan;
    proa__reduce_plan(&j.plan, a->x, mask);
    int64_t width = p->rows ? 1 : p->inner < COLUMNS ? p->inner : COLUMNS;
    int64_t units = p->rows ? p->outputs : p->outputs / p->inner * ((p->inner + COLUMNS - 1) / COLUMNS);
    proa__parallel(units, WORTH / (p->terms * width + 1) + 1, lse_range, &j);
    return PROA_OK;
}
