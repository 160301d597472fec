/* Float32 products with long sums and small results through oneDNN, by parts of the sum. Where a result has
 * fewer blocks than there are threads, those of oneDNN's AVX2 kernel share the sum, and each then spins until
 * the others have theirs: on a busy machine for as long as a core is another's. A part here is a primitive of
 * one thread; Proa's threads take parts in turns, and their sums are added afterwards. May use core and
 * kernels. */
#include "ops/matmul/onednn_product.h"

enum {
    SIDE = 64,           /* rows and columns of oneDNN's block of a result */
    PART = 257,          /* least terms of a thread's sum for which oneDNN shares sums */
    MAX_PARTS = 4,       /* of a sum, as oneDNN has them: a power of two, decided by its length alone */
    ADD_GRAIN = 1 << 14, /* elements of all parts that a thread adds, at least */
};

typedef struct deep_state {
    void *part, *last; /* primitives of `each` terms and of the rest; last: NULL without a rest */
    int64_t parts, each;
} deep_state;

typedef struct deep_job {
    const deep_state *s;
    const matmul_product *p;
    float *sums; /* of the parts, one after the other, row-major */
} deep_job;

bool proa__dnnl_shares_sums(const matmul_product *p)
{
    if (p->dtype != PROA_F32 || p->batches != 1 || p->m < 2 || p->n < 2 || p->k < 2 * PART) return false;
    if (proa__flag_int(PROA_FLAG_deterministic)) return false;
    if (proa__cpu_level() != 1 || p->m / SIDE + p->n / SIDE >= proa_threads()) return false;
    if (p->has_add && (p->add_rs != 0 || p->add_cs != 1)) return false;
    return product_work(p) >= PROA__DNNL_ALONE && proa__dnnl_product_suits(p);
}

/* The primitive of a part with k terms, whose result is row-major and dense. */
static proa_status make_part(const matmul_product *p, int64_t k, void **state)
{
    matmul_product of = *p;
    of.k = k, of.out_rs = p->n, of.has_add = false;
    proa__dnnl_product_form form = {{PROA_F32, PROA_F32, PROA_F32}, false, NULL};
    proa__dnnl_build b;
    bool ok = proa__dnnl_begin(&b, 0) && proa__dnnl_describe_product(&b, &of, &form);
    return proa__dnnl_finish(&b, ok, state);
}

static void deep_release(void *state)
{
    deep_state *s = state;
    if (!s) return;
    proa__dnnl_release(s->part);
    proa__dnnl_release(s->last);
    proa__free(s);
}

static proa_status deep_prepare(const matmul_product *p, void **state)
{
    *state = NULL;
    if (!proa__dnnl_shares_sums(p)) return proa_decline("threads need not share its sums");
    deep_state *s = proa__calloc(sizeof *s);
    if (!s) return proa_error();
    int64_t parts = 2;
    while (2 * parts <= MAX_PARTS && 2 * parts * PART <= p->k) parts *= 2;
    s->each = (p->k + parts - 1) / parts, s->parts = (p->k + s->each - 1) / s->each;
    const int64_t rest = p->k - (s->parts - 1) * s->each;
    proa_status status = make_part(p, s->each, &s->part);
    if (status == PROA_OK && rest < s->each) status = make_part(p, rest, &s->last);
    if (status == PROA_OK) *state = s;
    else deep_release(s);
    return status;
}

static proa_status run_part(const void *job, int64_t i)
{
    const deep_job *j = job;
    const matmul_product *p = j->p;
    const deep_state *s = j->s;
    const int64_t from = i * s->each, item = (int64_t)sizeof(float);
    void *data[] = {(void *)(uintptr_t)(p->x + from * p->x_cs * item),
                    (void *)(uintptr_t)(p->y + from * p->y_rs * item), j->sums + i * p->m * p->n};
    return proa__dnnl_run_alone(i == s->parts - 1 && s->last ? s->last : s->part, data, 0);
}

/* Adds the parts' rows, and the addend. */
static void add_range(int64_t begin, int64_t end, void *context)
{
    const deep_job *j = context;
    const matmul_product *p = j->p;
    const float *add = (const float *)(const void *)p->add;
    for (int64_t r = begin; r < end; r++) {
        float *out = (float *)(void *)p->out + r * p->out_rs;
        const float *sum = j->sums + r * p->n;
        memcpy(out, sum, (size_t)p->n * sizeof *out);
        for (int64_t i = 1; i < j->s->parts; i++) {
            sum += p->m * p->n;
            for (int64_t c = 0; c < p->n; c++) out[c] += sum[c];
        }
        for (int64_t c = 0; p->has_add && c < p->n; c++) out[c] += add[c];
    }
}

static proa_status deep_run(const deep_state *s, const matmul_product *p)
{
    deep_job j = {.s = s, .p = p, .sums = proa_scratch((size_t)(s->parts * p->m * p->n) * sizeof(float))};
    if (!j.sums) return proa_error();
    proa_status status = proa__dnnl_run_parts(s->parts, run_part, &j);
    if (status == PROA_OK) proa__parallel(p->m, 1 + ADD_GRAIN / (p->n * s->parts), add_range, &j);
    proa_scratch_free(j.sums);
    return status;
}

#define DEEP_PRODUCT(op, make)                                             \
    PRODUCT_PREPARE(op, make, deep_prepare)                                \
    PROA_KERNEL_PREPARED(op##_deep_onednn, op, op##_prepare, deep_release) \
    {                                                                      \
        const matmul_product p = make(a);                                  \
        return deep_run(run->state, &p);                                   \
    }
DEEP_PRODUCT(matmul, PRODUCT_MATMUL)
DEEP_PRODUCT(bmm, PRODUCT_BMM)
DEEP_PRODUCT(linear, product_linear)
