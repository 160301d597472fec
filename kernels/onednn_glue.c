/* Implements kernels/onednn.h: chooses oneDNN's threads, builds primitives with post-ops and reorders, and
 * runs them on the caller's memory, with dnnl_memory objects and copies of constants reused between runs.
 * Empty without oneDNN. May use core only. */
#if PROA_HAVE_ONEDNN
#include "kernels/onednn.h"

#include "core/openmp.h"
#include "kernels/page_release.h"
#include "kernels/onednn_format.h"

#include <pthread.h>

static dnnl_engine_t engine;
static dnnl_stream_t stream; /* a CPU stream has no state: one stream serves all threads */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_engine(void)
{
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) {
        engine = NULL;
        return;
    }
    if (dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) != dnnl_success) {
        dnnl_engine_destroy(engine);
        engine = NULL;
    }
}

bool proa__dnnl_usable(void)
{
#if defined(__x86_64__)
    if (proa__cpu_level() == 0) return false;
#endif
    pthread_once(&once, make_engine);
    return engine != NULL;
}

dnnl_engine_t proa__dnnl_engine(void) { return engine; }

bool proa__dnnl_dtype(proa_dtype dtype, dnnl_data_type_t *to)
{
    switch (dtype) {
    case PROA_F32: *to = dnnl_f32; return true;
    case PROA_F16: *to = dnnl_f16; return true;
    case PROA_BF16: *to = dnnl_bf16; return true;
    case PROA_I32: *to = dnnl_s32; return true;
    case PROA_I8: *to = dnnl_s8; return true;
    case PROA_U8: *to = dnnl_u8; return true;
    default: return false;
    }
}

static dnnl_memory_desc_t make_md(int ndim, const int64_t *dims, const int64_t *strides, proa_dtype dtype,
                                  bool any)
{
    dnnl_data_type_t type;
    dnnl_memory_desc_t md = NULL;
    if (!proa__dnnl_dtype(dtype, &type)) return NULL;
    dnnl_dims_t row_major;
    if (any) return dnnl_memory_desc_create_with_tag(&md, ndim, dims, type, dnnl_format_tag_any) ? NULL : md;
    if (!strides) {
        int64_t step = 1;
        for (int i = ndim - 1; i >= 0; step *= dims[i], i--) row_major[i] = step;
        strides = row_major;
    }
    return dnnl_memory_desc_create_with_strides(&md, ndim, dims, type, strides) ? NULL : md;
}

dnnl_memory_desc_t proa__dnnl_md(int ndim, const int64_t *dims, const int64_t *strides, proa_dtype dtype)
{
    return make_md(ndim, dims, strides, dtype, false);
}

dnnl_memory_desc_t proa__dnnl_md_any(int ndim, const int64_t *dims, proa_dtype dtype)
{
    return make_md(ndim, dims, NULL, dtype, true);
}

dnnl_memory_desc_t proa__dnnl_md_of(const proa_tensor *t, int ndim, const int64_t *dims,
                                    const int64_t *strides)
{
    int format = proa__format(t);
    return format ? proa__dnnl_blocked_md(t, (proa_dtype)t->dtype, format)
                  : make_md(ndim, dims, strides, (proa_dtype)t->dtype, false);
}

/* ---- threads: oneDNN's OpenMP regions run on our teams ---- */

/* A oneDNN built with another OpenMP than GCC's keeps that runtime's threads; its thread count is set
 * here. */
extern void omp_set_num_threads(int n) __attribute__((weak));
extern int omp_get_max_threads(void) __attribute__((weak));
static bool served;

__attribute__((constructor)) static void serve(void)
{
    served = proa__openmp_serve((void (*)(void))dnnl_engine_create);
}

static int threads_set(int n)
{
    if (served) return proa__openmp_limit(n);
    if (!omp_set_num_threads || !omp_get_max_threads) return n;
    int before = omp_get_max_threads();
    if (before != n) omp_set_num_threads(n);
    return before;
}

/* ---- building ---- */

bool proa__dnnl_begin(proa__dnnl_build *b, double work)
{
    bool alone = work < PROA__DNNL_ALONE || proa__flag_int(PROA_FLAG_deterministic) != 0;
    *b =
        (proa__dnnl_build){.threads = alone ? 1 : proa__openmp_reserve(proa_threads()), .threads_before = -1};
    if (!proa__dnnl_usable()) return false;
    b->threads_before = threads_set(b->threads);
    if (dnnl_primitive_attr_create(&b->attr) != dnnl_success) return false;
    return dnnl_primitive_attr_set_scratchpad_mode(b->attr, dnnl_scratchpad_mode_user) == dnnl_success;
}

bool proa__dnnl_add(proa__dnnl_build *b, int index, bool output, dnnl_memory_desc_t user)
{
    if (!user) return false;
    if (b->n_args == PROA__DNNL_ARGS) {
        dnnl_memory_desc_destroy(user);
        return false;
    }
    b->args[b->n_args++] = (proa__dnnl_arg){.index = index, .output = output, .user = user};
    return true;
}

static void release_arg(proa__dnnl_arg *arg)
{
    if (arg->user) dnnl_memory_desc_destroy(arg->user);
    if (arg->inner) dnnl_memory_desc_destroy(arg->inner);
    if (arg->reorder) dnnl_primitive_destroy(arg->reorder);
    *arg = (proa__dnnl_arg){0};
}

/* Queries the layout that the primitive chose for an operand, and creates a reorder if the caller's differs.
 * Scales need none. */
static bool resolve_arg(proa__dnnl_arg *arg, const_dnnl_primitive_desc_t desc)
{
    if (arg->index & DNNL_ARG_ATTR_SCALES) return true;
    const_dnnl_memory_desc_t want = dnnl_primitive_desc_query_md(desc, dnnl_query_exec_arg_md, arg->index);
    if (!want) return false;
    arg->bytes = dnnl_memory_desc_get_size(want);
    if (dnnl_memory_desc_equal(want, arg->user)) return true;
    if (dnnl_memory_desc_clone(&arg->inner, want) != dnnl_success) return false;
    if (arg->bytes <= arg->limit) arg->format = proa__dnnl_format(want);
    const_dnnl_memory_desc_t from = arg->output ? arg->inner : arg->user,
                             to = arg->output ? arg->user : arg->inner;
    dnnl_primitive_desc_t reorder = NULL;
    if (dnnl_reorder_primitive_desc_create(&reorder, from, engine, to, engine, NULL) != dnnl_success)
        return false;
    bool ok = dnnl_primitive_create(&arg->reorder, reorder) == dnnl_success;
    dnnl_primitive_desc_destroy(reorder);
    return ok;
}

/* ---- post-ops ---- */

static bool append_activation(dnnl_post_ops_t ops, const proa__epilogue *t)
{
    static const struct {
        dnnl_alg_kind_t kind;
        float alpha, beta;
        bool own_alpha, own_beta;
    } of[] = {
        [PROA_FUSED_ACTIVATION_RELU] = {dnnl_eltwise_relu, 0, 0, false, false},
        [PROA_FUSED_ACTIVATION_RELU6] = {dnnl_eltwise_clip, 0, 6, false, false},
        [PROA_FUSED_ACTIVATION_LEAKY_RELU] = {dnnl_eltwise_relu, 0, 0, true, false},
        [PROA_FUSED_ACTIVATION_ELU] = {dnnl_eltwise_elu, 0, 0, true, false},
        [PROA_FUSED_ACTIVATION_SIGMOID] = {dnnl_eltwise_logistic, 0, 0, false, false},
        [PROA_FUSED_ACTIVATION_TANH] = {dnnl_eltwise_tanh, 0, 0, false, false},
        [PROA_FUSED_ACTIVATION_GELU] = {dnnl_eltwise_gelu_erf, 0, 0, false, false},
        [PROA_FUSED_ACTIVATION_GELU_TANH] = {dnnl_eltwise_gelu_tanh, 0, 0, false, false},
        [PROA_FUSED_ACTIVATION_SILU] = {dnnl_eltwise_swish, 1, 0, false, false},
        [PROA_FUSED_ACTIVATION_HARDSWISH] = {dnnl_eltwise_hardswish, 1.0f / 6, 0.5f, false, false},
        [PROA_FUSED_ACTIVATION_HARDSIGMOID] = {dnnl_eltwise_hardsigmoid, 0, 0, true, true},
    };
    if (t->activation == PROA_FUSED_ACTIVATION_NONE) return true;
    float alpha = of[t->activation].own_alpha ? (float)t->alpha : of[t->activation].alpha;
    float beta = of[t->activation].own_beta ? (float)t->beta : of[t->activation].beta;
    return dnnl_post_ops_append_eltwise(ops, of[t->activation].kind, alpha, beta) == dnnl_success;
}

static bool append_residual(proa__dnnl_build *b, dnnl_post_ops_t ops, const proa_tensor *residual, int ndim,
                            const int64_t *dims, const int64_t *strides)
{
    /* in the layout of the result */
    dnnl_memory_desc_t any = proa__dnnl_md_any(ndim, dims, (proa_dtype)residual->dtype);
    if (!any) return false;
    bool ok = dnnl_post_ops_append_binary(ops, dnnl_binary_add, any) == dnnl_success;
    dnnl_memory_desc_destroy(any);
    return ok && proa__dnnl_add(b, DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, false,
                                proa__dnnl_md_of(residual, ndim, dims, strides));
}

/* Appends the scaling and clamping of a requantization; nothing if `after` is NULL or would change
 * nothing. */
static bool append_requantize(dnnl_post_ops_t ops, const proa__dnnl_requantize *after)
{
    if (after && after->outer != 1 &&
        dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_linear, (float)after->outer, 0) != dnnl_success)
        return false;
    return !after || !after->bounded ||
           dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_clip, (float)after->low, (float)after->high) ==
               dnnl_success;
}

bool proa__dnnl_post_ops(proa__dnnl_build *b, const proa__epilogue *t, int ndim, const int64_t *dims,
                         const int64_t *strides, const proa__dnnl_requantize *after)
{
    dnnl_post_ops_t ops = NULL;
    if (dnnl_post_ops_create(&ops) != dnnl_success) return false;
    bool ok = proa__absent(t->residual) || append_residual(b, ops, t->residual, ndim, dims, strides);
    ok = ok && append_activation(ops, t) && append_requantize(ops, after) &&
         dnnl_primitive_attr_set_post_ops(b->attr, ops) == dnnl_success;
    dnnl_post_ops_destroy(ops);
    return ok;
}

bool proa__dnnl_is_reference(const proa__dnnl_build *b)
{
    const char *name = NULL;
    return dnnl_primitive_desc_query(b->desc, dnnl_query_impl_info_str, 0, (void *)&name) == dnnl_success &&
           name && strstr(name, "ref");
}

bool proa__dnnl_sums_bytes(void)
{
    /* ISA bits of VNNI beyond AVX2 and AVX-512. */
    const unsigned isa = proa__dnnl_usable() ? (unsigned)dnnl_get_effective_cpu_isa() : 0;
    const unsigned vnni[] = {dnnl_cpu_isa_avx2_vnni, dnnl_cpu_isa_avx512_core_vnni};
    return (isa & vnni[0]) == vnni[0] || (isa & vnni[1]) == vnni[1];
}

static size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

static proa__dnnl_state *make_state(proa__dnnl_build *b)
{
    proa__dnnl_state *s = proa__calloc(sizeof *s);
    if (!s) return NULL;
    s->threads = b->threads, s->made_for = proa_threads();
    bool ok = dnnl_primitive_create(&s->primitive, b->desc) == dnnl_success;
    const_dnnl_memory_desc_t pad = dnnl_primitive_desc_query_md(b->desc, dnnl_query_scratchpad_md, 0);
    ok = ok && pad && dnnl_memory_desc_clone(&s->scratchpad, pad) == dnnl_success;
    if (ok) s->scratch_bytes = aligned(dnnl_memory_desc_get_size(s->scratchpad));
    for (int i = 0; i < b->n_args; i++) {
        s->args[i] = b->args[i];
        b->args[i] = (proa__dnnl_arg){0};
        s->n_args = i + 1;
        ok = ok && resolve_arg(&s->args[i], b->desc);
        if (ok && s->args[i].reorder) s->scratch_bytes += aligned(s->args[i].bytes);
    }
    if (ok) return s;
    proa__dnnl_release(s);
    return NULL;
}

proa_status proa__dnnl_finish(proa__dnnl_build *b, bool ok, void **state)
{
    *state = ok && b->desc ? make_state(b) : NULL;
    if (b->desc) dnnl_primitive_desc_destroy(b->desc);
    if (b->attr) dnnl_primitive_attr_destroy(b->attr);
    for (int i = 0; i < b->n_args; i++) release_arg(&b->args[i]);
    if (b->threads_before >= 0) threads_set(b->threads_before);
    return *state ? PROA_OK : proa_error() ? proa_error() : proa_decline("oneDNN has no such primitive");
}

bool proa__dnnl_may_block(proa__dnnl_build *b, const proa_tensor *t, double growth)
{
    if (!proa__blocking() || t->ndim < 3) return true;
    size_t bytes = (size_t)t->numel * proa_dtype_size((proa_dtype)t->dtype);
    b->args[b->n_args - 1].limit = (size_t)((double)bytes * growth);
    return true;
}

typedef struct proa__dnnl_operands {
    int packed;
    unsigned asis; /* outputs in the primitive's layout (bits); packed: as in execute */
    dnnl_memory_t user[PROA__DNNL_ARGS], inner[PROA__DNNL_ARGS], pad;
} operands;

static void free_operands(operands *o)
{
    for (int i = 0; o && i < PROA__DNNL_ARGS; i++) {
        if (o->user[i]) dnnl_memory_destroy(o->user[i]);
        if (o->inner[i]) dnnl_memory_destroy(o->inner[i]);
    }
    if (o && o->pad) dnnl_memory_destroy(o->pad);
    proa__free(o);
}

void proa__dnnl_release(void *state)
{
    proa__dnnl_state *s = state;
    if (!s) return;
    free_operands(atomic_load(&s->idle));
    for (int i = 0; i < s->n_args; i++) release_arg(&s->args[i]);
    if (s->scratchpad) dnnl_memory_desc_destroy(s->scratchpad);
    if (s->primitive) dnnl_primitive_destroy(s->primitive);
    proa__packed_clear(&s->packed.shared);
    if (s->packed.storage) proa__storage_release(s->packed.storage);
    proa__free(s->packed.data);
    proa__free(s);
}

/* ---- running ---- */

static bool make_memory(dnnl_memory_t *m, const_dnnl_memory_desc_t md, void *data)
{
    return dnnl_memory_create(m, md, engine, data) == dnnl_success;
}

/* Creates the memory object, or sets the data address of an existing one. */
static bool point_memory(dnnl_memory_t *m, const_dnnl_memory_desc_t md, void *data)
{
    return *m ? dnnl_memory_set_data_handle(*m, data) == dnnl_success : make_memory(m, md, data);
}

static bool reorder(const proa__dnnl_arg *arg, dnnl_memory_t from, dnnl_memory_t to)
{
    dnnl_exec_arg_t list[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    return dnnl_primitive_execute(arg->reorder, stream, 2, list) == dnnl_success;
}

static void *packed_data(const proa__dnnl_packed *p)
{
    return p->shared.form ? p->shared.form->data : p->data;
}

/* packed: index of the operand that s->packed holds in the primitive's layout; −1: none. asis: bit mask of
 * outputs that stay in that layout. */
static bool execute(const proa__dnnl_state *s, operands *e, void *const *data, char *scratch, int packed,
                    unsigned asis)
{
    dnnl_exec_arg_t list[PROA__DNNL_ARGS + 1];
    char *at = scratch + aligned(dnnl_memory_desc_get_size(s->scratchpad));
    if (!point_memory(&e->pad, s->scratchpad, scratch)) return false;
    for (int i = 0; i < s->n_args; i++) {
        const proa__dnnl_arg *arg = &s->args[i];
        if (!point_memory(&e->user[i], asis >> i & 1 ? arg->inner : arg->user, data[i])) return false;
        list[i] = (dnnl_exec_arg_t){arg->index, e->user[i]};
        if (!arg->reorder || asis >> i & 1) continue;
        if (i == packed) {
            if (!point_memory(&e->inner[i], arg->inner, packed_data(&s->packed))) return false;
            list[i].memory = e->inner[i];
            continue;
        }
        if (!point_memory(&e->inner[i], arg->inner, at)) return false;
        at += aligned(arg->bytes);
        list[i].memory = e->inner[i];
        if (!arg->output && !reorder(arg, e->user[i], e->inner[i])) return false;
    }
    list[s->n_args] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, e->pad};
    if (dnnl_primitive_execute(s->primitive, stream, s->n_args + 1, list) != dnnl_success) return false;
    for (int i = 0; i < s->n_args; i++)
        if (s->args[i].reorder && s->args[i].output && !(asis >> i & 1) &&
            !reorder(&s->args[i], e->inner[i], e->user[i]))
            return false;
    return true;
}

/* The memory objects of the last run, unless another thread is using them or they were made for other
 * arguments; then new ones. */
static operands *take_operands(proa__dnnl_state *s, int packed, unsigned asis)
{
    operands *o = atomic_exchange(&s->idle, NULL);
    if (o && o->packed == packed && o->asis == asis) return o;
    free_operands(o);
    o = proa__calloc(sizeof *o);
    if (o) o->packed = packed, o->asis = asis;
    return o;
}

static proa_status run_state(const proa__dnnl_state *state, void *const *data, int packed, unsigned asis)
{
    proa__dnnl_state *s = (proa__dnnl_state *)(uintptr_t)state; /* cast for `idle` */
    if (served && proa__openmp_reserve(s->threads) < s->threads)
        return proa_fail(PROA_ERR_OUT_OF_MEMORY,
                         "oneDNN: the system refused the %d threads that this convolution or "
                         "product was planned for; raise the limit of threads, or call set_threads(1)",
                         s->threads);
    operands *o = take_operands(s, packed, asis);
    void *scratch = o ? proa_scratch(s->scratch_bytes) : NULL;
    if (!scratch) {
        free_operands(o);
        return proa_error();
    }
    int before = threads_set(s->threads);
    bool ok = execute(s, o, data, scratch, packed, asis);
    threads_set(before);
    proa_scratch_free(scratch);
    free_operands(ok ? atomic_exchange(&s->idle, o) : o);
    if (ok) return PROA_OK;
    return proa_fail(PROA_ERR_OUT_OF_MEMORY,
                     "oneDNN could not run a prepared primitive: most likely out of memory");
}

proa_status proa__dnnl_run(const void *state, const void *args, proa_status (*prepare)(const void *, void **),
                           void *const *data)
{
    const proa__dnnl_state *s = state;
    if (s->made_for == proa_threads()) return run_state(s, data, -1, 0);
    void *fresh = NULL;
    proa_status status = prepare(args, &fresh);
    if (status == PROA_DECLINED) status = run_state(s, data, -1, 0);
    else if (status == PROA_OK) status = run_state(fresh, data, -1, 0);
    proa__dnnl_release(fresh);
    return status;
}

proa_status proa__dnnl_run_alone(const void *state, void *const *data, unsigned keeps)
{
    return run_state(state, data, -1, keeps);
}

typedef struct parts_job {
    proa_status (*part)(const void *job, int64_t i);
    const void *job;
    atomic_bool failed;
} parts_job;

static void parts_range(int64_t begin, int64_t end, void *context)
{
    parts_job *j = context;
    for (int64_t i = begin; i < end; i++)
        if (j->part(j->job, i) != PROA_OK) atomic_store(&j->failed, true);
}

proa_status proa__dnnl_run_parts(int64_t n, proa_status (*part)(const void *job, int64_t i), const void *job)
{
    parts_job j = {.part = part, .job = job};
    proa__parallel(n, 1, parts_range, &j);
    for (int64_t i = 0; atomic_load(&j.failed) && i < n; i++) PROA_TRY(part(job, i));
    return PROA_OK;
}

int proa__dnnl_result_format(const void *args, const void *state)
{
    const proa__dnnl_state *s = state;
    (void)args;
    for (int i = 0; i < s->n_args; i++)
        if (s->args[i].format) return s->args[i].format;
    return 0;
}

static proa_status run_tensors(const proa__dnnl_state *s, bool fresh, proa_tensor *const *tensors, int packed)
{
    void *data[PROA__DNNL_ARGS];
    unsigned asis = 0;
    for (int i = 0; i < s->n_args; i++) {
        if (fresh && s->args[i].format) {
            PROA_TRY(proa__block_output(tensors[i], s->args[i].format));
            asis |= 1u << i;
        }
        data[i] = proa__absent(tensors[i]) ? NULL : proa__memory(tensors[i]);
    }
    return run_state(s, data, packed, asis);
}

proa_status proa__dnnl_run_tensors(const proa_run *run, const void *args,
                                   proa_status (*prepare)(const void *, void **), proa_tensor *const *tensors)
{
    const proa__dnnl_state *s = run->state;
    if (s->made_for == proa_threads()) return run_tensors(s, run->fresh, tensors, -1);
    void *fresh = NULL;
    proa_status status = prepare(args, &fresh);
    if (status == PROA_DECLINED) status = run_tensors(s, run->fresh, tensors, -1);
    else if (status == PROA_OK) status = run_tensors(fresh, run->fresh, tensors, -1);
    proa__dnnl_release(fresh);
    return status;
}

/* ---- constants ---- */

static bool is_packed(const proa__dnnl_packed *p, const proa_tensor *t)
{
    if (p->shared.form) return proa__packed_is_of(&p->shared, t);
    return p->data && p->storage == t->storage && p->from == t->data && p->version == proa__version(t);
}

/* REORDER_ALONE: bytes below which a reorder uses one thread, since it ends before a second one has woken
 * (some 20 µs). LAYOUT_DIMS: most dims of a weight: groups, channels twice, and the kernel's. */
enum { REORDER_ALONE = 1 << 18, LAYOUT_DIMS = 6 };

bool proa__dnnl_reorder(dnnl_primitive_t primitive, const_dnnl_memory_desc_t a, void *from,
                        const_dnnl_memory_desc_t b, void *to)
{
    dnnl_memory_t source = NULL, target = NULL;
    int before = threads_set(dnnl_memory_desc_get_size(a) < REORDER_ALONE ? 1 : proa_threads());
    bool ok = make_memory(&source, a, from) && make_memory(&target, b, to);
    dnnl_exec_arg_t list[] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}};
    ok = ok && dnnl_primitive_execute(primitive, stream, 2, list) == dnnl_success;
    threads_set(before);
    if (source) dnnl_memory_destroy(source);
    if (target) dnnl_memory_destroy(target);
    return ok;
}

/* A constant's layout in the caller's memory (dims, strides), and the format that gives the elements of the
 * primitive's layout the same offsets. */
typedef struct constant_layout {
    int ndim, dtype, format;
    int64_t dims[LAYOUT_DIMS], strides[LAYOUT_DIMS];
} constant_layout;

/* False if the elements cannot be found by a format tag. */
static bool describe(const proa__dnnl_arg *arg, proa_dtype dtype, constant_layout *to)
{
    dnnl_dims_t *dims, *strides;
    memset(to, 0, sizeof *to); /* layouts are compared byte by byte */
    to->dtype = (int)dtype;
    to->format = proa__dnnl_format_of_elements(arg->inner);
    if (!to->format || dnnl_memory_desc_query(arg->user, dnnl_query_ndims_s32, &to->ndim) != dnnl_success ||
        dnnl_memory_desc_query(arg->user, dnnl_query_dims, &dims) != dnnl_success ||
        dnnl_memory_desc_query(arg->user, dnnl_query_strides, &strides) != dnnl_success ||
        to->ndim > LAYOUT_DIMS)
        return false;
    for (int k = 0; k < to->ndim; k++) to->dims[k] = (*dims)[k], to->strides[k] = (*strides)[k];
    return true;
}

static proa_status no_reorder(void)
{
    return proa_fail(PROA_ERR_OUT_OF_MEMORY,
                     "oneDNN could not copy a weight to another layout: most likely out of memory");
}

static proa_status pack_constant(void *context, const void *how, const void *elements, void *packed)
{
    const proa__dnnl_arg *arg = context;
    (void)how;
    bool ok = proa__dnnl_reorder(arg->reorder, arg->user, (void *)(uintptr_t)elements, arg->inner, packed);
    return ok ? PROA_OK : no_reorder();
}

static proa_status unpack_constant(const void *how, const void *packed, void *elements)
{
    const constant_layout *c = how;
    dnnl_dims_t dims = {0}, strides = {0};
    memcpy(dims, c->dims, sizeof c->dims);
    memcpy(strides, c->strides, sizeof c->strides);
    dnnl_memory_desc_t to = proa__dnnl_md(c->ndim, dims, strides, (proa_dtype)c->dtype), from = NULL;
    dnnl_data_type_t type;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t reorder = NULL;
    bool ok = to && proa__dnnl_dtype((proa_dtype)c->dtype, &type) &&
              dnnl_memory_desc_create_with_tag(&from, c->ndim, dims, type, (dnnl_format_tag_t)c->format) ==
                  dnnl_success &&
              dnnl_reorder_primitive_desc_create(&desc, from, engine, to, engine, NULL) == dnnl_success &&
              dnnl_primitive_create(&reorder, desc) == dnnl_success &&
              proa__dnnl_reorder(reorder, from, (void *)(uintptr_t)packed, to, elements);
    if (reorder) dnnl_primitive_destroy(reorder);
    if (desc) dnnl_primitive_desc_destroy(desc);
    if (from) dnnl_memory_desc_destroy(from);
    if (to) dnnl_memory_desc_destroy(to);
    return ok ? PROA_OK : no_reorder();
}

static bool pack(proa__dnnl_state *s, int i, const proa_tensor *t)
{
    proa__dnnl_arg *arg = &s->args[i];
    proa__dnnl_packed *p = &s->packed;
    constant_layout how;
    if (t->flags & PROA_T_BLOCKED && describe(arg, (proa_dtype)t->dtype, &how)) {
        const proa__packing packing = {arg->bytes, &how, sizeof how, arg, pack_constant, unpack_constant};
        return proa__packed_renew(&p->shared, t, &packing) != NULL;
    }
    proa__packed_clear(&p->shared);
    if (proa__plain(t) != PROA_OK) return false;
    if (!p->data) p->data = proa__alloc(arg->bytes);
    if (!p->data) return false;
    bool ok = proa__dnnl_reorder(arg->reorder, arg->user, t->data, arg->inner, p->data);
    if (p->storage) proa__storage_release(p->storage);
    p->storage = ok ? t->storage : NULL;
    if (!ok) return false;
    atomic_fetch_add_explicit(&t->storage->refs, 1, memory_order_relaxed);
    p->from = t->data;
    p->version = proa__version(t);
    proa__release_pages(t->data, (size_t)t->numel * proa_dtype_size((proa_dtype)t->dtype));
    return true;
}

proa_status proa__dnnl_run_constant(const proa_run *run, const void *args,
                                    proa_status (*prepare)(const void *, void **),
                                    proa_tensor *const *tensors, int arg)
{
    proa__dnnl_state *s = run->state;
    const proa_tensor *constant = tensors[arg];
    bool fits = s->made_for == proa_threads() && s->args[arg].reorder && constant->storage;
    if (fits && (is_packed(&s->packed, constant) || pack(s, arg, constant)))
        return run_tensors(s, run->fresh, tensors, arg);
    PROA_TRY(proa_error());
    if (!proa__format(constant)) PROA_TRY(proa__plain(constant));
    return proa__dnnl_run_tensors(run, args, prepare, tensors);
}
#endif
