/* Joining and leaving a group: settings from options or the environment, the Gloo group behind core's
 * process-group interface, and the element-wise reductions. May use core. */
#include "core/half.h"
#include "core/internal.h"
#include "dist/gloo.h"

#include <proa/dist.h>

#include <stdlib.h>

#ifdef PROA_HAVE_GLOO

/* ---- reductions ------------------------------------------------------------------------ */

#define KEEP(x) (x)
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))

/* T: storage; LOAD/STORE: to and from the type that is computed in. */
#define REDUCE(name, T, LOAD, STORE, OP)                                            \
    static void name(void *out, const void *a, const void *b, size_t n)             \
    {                                                                               \
        T *o = out;                                                                 \
        const T *x = a, *y = b;                                                     \
        for (size_t i = 0; i < n; i++) o[i] = (T)STORE(OP(LOAD(x[i]), LOAD(y[i]))); \
    }
#define REDUCE_ALL(suffix, T, LOAD, STORE)       \
    REDUCE(sum_##suffix, T, LOAD, STORE, ADD)    \
    REDUCE(prod_##suffix, T, LOAD, STORE, MUL)   \
    REDUCE(max_##suffix, T, LOAD, STORE, LARGER) \
    REDUCE(min_##suffix, T, LOAD, STORE, SMALLER)

REDUCE_ALL(u8, uint8_t, KEEP, KEEP)
REDUCE_ALL(i8, int8_t, KEEP, KEEP)
REDUCE_ALL(i16, int16_t, KEEP, KEEP)
REDUCE_ALL(i32, uint32_t, (int32_t)KEEP, KEEP)
REDUCE_ALL(i64, uint64_t, (int64_t)KEEP, KEEP)
REDUCE_ALL(f16, uint16_t, proa__f16_to_f32, proa__f32_to_f16)
REDUCE_ALL(bf16, uint16_t, proa__bf16_to_f32, proa__f32_to_bf16)
REDUCE_ALL(f32, float, KEEP, KEEP)
REDUCE_ALL(f64, double, KEEP, KEEP)

/* By dtype and proa_reduce (sum, max, min, prod, average = sum). */
#define ROW(suffix)                                                           \
    {                                                                         \
        sum_##suffix, max_##suffix, min_##suffix, prod_##suffix, sum_##suffix \
    }
static const proa__reduce_fn reduce_fns[PROA_DTYPE_COUNT][5] = {
    [PROA_BOOL] = {max_u8, max_u8, min_u8, min_u8, NULL},
    [PROA_U8] = ROW(u8),
    [PROA_I8] = ROW(i8),
    [PROA_I16] = ROW(i16),
    [PROA_I32] = ROW(i32),
    [PROA_I64] = ROW(i64),
    [PROA_F16] = ROW(f16),
    [PROA_BF16] = ROW(bf16),
    [PROA_F32] = ROW(f32),
    [PROA_F64] = ROW(f64),
};

/* Divides by the group's size, after a sum. */
static void average(void *data, int64_t n, proa_dtype dtype, int size)
{
    for (int64_t i = 0; i < n; i++) switch (dtype) {
        case PROA_F16: {
            uint16_t *v = (uint16_t *)data + i;
            *v = proa__f32_to_f16(proa__f16_to_f32(*v) / (float)size);
            break;
        }
        case PROA_BF16: {
            uint16_t *v = (uint16_t *)data + i;
            *v = proa__f32_to_bf16(proa__bf16_to_f32(*v) / (float)size);
            break;
        }
        case PROA_F32: ((float *)data)[i] /= (float)size; break;
        default: ((double *)data)[i] /= (double)size; break;
        }
}

/* ---- the group ------------------------------------------------------------------------- */

static proa_status group_all_reduce(proa_group *g, void *data, int64_t count, proa_dtype dtype,
                                    proa_reduce op)
{
    /* complex sums are sums of their parts; nothing else is defined for them */
    if (dtype == PROA_C64 || dtype == PROA_C128) {
        if (op != PROA_REDUCE_SUM && op != PROA_REDUCE_AVG)
            return proa_fail(PROA_ERR_UNSUPPORTED,
                             "all_reduce: complex tensors can be summed or averaged only");
        count *= 2;
        dtype = dtype == PROA_C64 ? PROA_F32 : PROA_F64;
    }
    proa__reduce_fn fn = reduce_fns[dtype][op];
    if (!fn || (op == PROA_REDUCE_AVG && dtype < PROA_F16))
        return proa_fail(PROA_ERR_UNSUPPORTED, "all_reduce: %s tensors cannot be averaged; use a sum",
                         proa_dtype_name(dtype));
    if (count == 0) return PROA_OK;
    PROA_TRY(proa__gloo_all_reduce(g->context, data, (size_t)count, proa_dtype_size(dtype), fn));
    if (op == PROA_REDUCE_AVG) average(data, count, dtype, g->size);
    return PROA_OK;
}

static proa_status group_broadcast(proa_group *g, void *data, size_t bytes, int root)
{
    return bytes ? proa__gloo_broadcast(g->context, data, bytes, root) : PROA_OK;
}

static proa_status group_all_gather(proa_group *g, const void *in, void *out, size_t bytes_each)
{
    return bytes_each ? proa__gloo_all_gather(g->context, in, out, bytes_each) : PROA_OK;
}

static proa_status group_barrier(proa_group *g) { return proa__gloo_barrier(g->context); }

static void group_close(proa_group *g)
{
    proa__gloo_close(g->context);
    proa__free(g);
}

static proa_status connect(const proa_dist_opts *opts)
{
    proa_group *g = proa__calloc(sizeof *g);
    if (!g) return proa_error();
    *g = (proa_group){.rank = opts->rank,
                      .size = opts->size,
                      .all_reduce = group_all_reduce,
                      .broadcast = group_broadcast,
                      .all_gather = group_all_gather,
                      .barrier = group_barrier,
                      .close = group_close};
    g->context =
        proa__gloo_connect(opts->store, opts->job, opts->interface, opts->rank, opts->size, opts->timeout);
    if (!g->context) {
        proa__free(g);
        return proa_error();
    }
    proa__set_default_group(g);
    return PROA_OK;
}

#else

static proa_status connect(const proa_dist_opts *opts)
{
    return proa_fail(
        PROA_ERR_UNAVAILABLE,
        "dist_start: this Proa was built without Gloo, so it has one rank, not %d; install libgloo-dev "
        "and build again",
        opts->size);
}

#endif

static int from_environment(const char *name, int fallback)
{
    const char *text = getenv(name);
    char *end = NULL;
    long v = text ? strtol(text, &end, 10) : fallback;
    return text && (end == text || *end) ? -1 : (int)v;
}

/* The group this library made; one a process, as ranks are processes. */
static proa_group *started;

proa_status proa_dist_start_opt(proa_dist_opts opts)
{
    PROA_TRY(proa_error());
    if (started) return proa_fail(PROA_ERR_BAD_STATE, "dist_start: this process is in a group already");
    if (opts.size == 0) {
        opts.size = from_environment("PROA_SIZE", 1);
        opts.rank = from_environment("PROA_RANK", 0);
    }
    if (opts.size < 1 || opts.rank < 0 || opts.rank >= opts.size)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "dist_start: rank %d of %d makes no group", opts.rank,
                         opts.size);
    if (opts.size == 1) return PROA_OK;
    if (!opts.store) opts.store = getenv("PROA_STORE");
    if (!opts.job) opts.job = getenv("PROA_JOB");
    if (!opts.job) opts.job = "job";
    if (!opts.store)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "dist_start: %d ranks need a folder to meet in: pass .store or set PROA_STORE",
                         opts.size);
    if (opts.timeout <= 0) opts.timeout = 300;
    PROA_TRY(connect(&opts));
    started = proa__default_group();
    return PROA_OK;
}

void proa_dist_stop(void)
{
    if (!started) return;
    proa__set_default_group(NULL);
    started->close(started);
    started = NULL;
}

int proa_dist_rank(void) { return proa__default_group()->rank; }
int proa_dist_size(void) { return proa__default_group()->size; }

proa_status proa_dist_barrier(void)
{
    PROA_TRY(proa_error());
    proa_group *g = proa__default_group();
    return g->barrier(g);
}
