/* The watch door: passes calls to an observer (the profiler) and an inspector (amp.debugging), and with
 * FLAGS_check_nan_inf=1 makes NaN or infinity in an op's outputs an error that names the op. Open on all
 * threads while there is an observer or inspector, or that flag is set. May use core only. */
#include "core/args_visit.h"
#include "core/blocked.h"
#include "core/device.h"
#include "core/half.h"
#include "core/numerics.h"
#include "core/thread.h"

static _Atomic(proa__observer) observer;
static _Atomic(proa_inspector) inspector;
static atomic_bool values, judged; /* judged: the inspector's verdict replaces check_output's */
static PROA__TLS bool held;

bool proa__watching(void)
{
    return atomic_load_explicit(&observer, memory_order_relaxed) || proa__inspecting() ||
           atomic_load_explicit(&values, memory_order_relaxed);
}

bool proa__inspecting(void) { return atomic_load_explicit(&inspector, memory_order_relaxed) != NULL; }

bool proa__hold_inspection(bool hold)
{
    bool was = held;
    held = hold;
    return was;
}

void proa_inspect(proa_inspector to, bool judges)
{
    atomic_store_explicit(&judged, to && judges, memory_order_relaxed);
    atomic_store_explicit(&inspector, to, memory_order_relaxed);
    proa__door_everywhere(PROA_DOOR_WATCH, proa__watching());
}

proa_status proa__inspect_gradient(const proa_op *op, const void *args, const proa_tensor *gradient)
{
    proa_inspector look = atomic_load_explicit(&inspector, memory_order_relaxed);
    return look && !held && !proa__slot_empty(gradient) ? look(op, args, gradient) : PROA_OK;
}

void proa__watch_values(bool on)
{
    atomic_store_explicit(&values, on, memory_order_relaxed);
    proa__door_everywhere(PROA_DOOR_WATCH, proa__watching());
}

void proa__observe(proa__observer to)
{
    atomic_store_explicit(&observer, to, memory_order_relaxed);
    proa__door_everywhere(PROA_DOOR_WATCH, proa__watching());
}

static void look(proa_numerics *n, double v, int64_t at)
{
    if (at == 0) n->max = n->min = v;
    if (v > n->max) n->max = v;
    if (v < n->min) n->min = v;
    n->mean += v;
    if (v == 0) n->zero++;
    if (v - v == 0) return;
    if (n->first < 0) n->first = at;
    if (v != v) n->nan++;
    else n->inf++;
}

/* False: the dtype has no NaN. */
static bool count_elements(proa_numerics *n, const proa_tensor *t, const void *data)
{
    int64_t count = t->numel;
    switch ((proa_dtype)t->dtype) {
    case PROA_F16:
        for (int64_t i = 0; i < count; i++) look(n, proa__f16_to_f32(((const uint16_t *)data)[i]), i);
        return true;
    case PROA_BF16:
        for (int64_t i = 0; i < count; i++) look(n, proa__bf16_to_f32(((const uint16_t *)data)[i]), i);
        return true;
    case PROA_C64: count *= 2; /* fall through */
    case PROA_F32:
        for (int64_t i = 0; i < count; i++) look(n, ((const float *)data)[i], i);
        return true;
    case PROA_C128: count *= 2; /* fall through */
    case PROA_F64:
        for (int64_t i = 0; i < count; i++) look(n, ((const double *)data)[i], i);
        return true;
    default: return false;
    }
}

static bool is_countable(const proa_tensor *t)
{
    const unsigned kinds =
        1u << PROA_F16 | 1u << PROA_BF16 | 1u << PROA_F32 | 1u << PROA_F64 | 1u << PROA_C64 | 1u << PROA_C128;
    return !proa__slot_empty(t) && t->kind == PROA_DENSE && !(t->flags & PROA_T_SYMBOLIC) &&
           kinds >> t->dtype & 1;
}

proa_status proa_numerics_of(const proa_tensor *t, proa_numerics *n)
{
    *n = (proa_numerics){.first = -1};
    if (!is_countable(t)) return PROA_OK;
    /* On a device or strided: a contiguous copy in host memory. */
    proa_tensor *here = proa__copy_to((proa_tensor *)(uintptr_t)t, PROA_CPU);
    if (!here || proa__plain(here) != PROA_OK) return proa_error();
    n->counted = count_elements(n, here, here->data);
    bool pairs = t->dtype == PROA_C64 || t->dtype == PROA_C128;
    if (t->numel) n->mean /= (double)t->numel * (pairs ? 2 : 1);
    if (pairs && n->first > 0) n->first /= 2;
    if (here != t) proa_drop(here);
    return PROA_OK;
}

static proa_status check_output(const proa_op *op, const proa_field *f, const proa_tensor *t)
{
    if (!t || t == proa_none || t->kind != PROA_DENSE || t->flags & (PROA_T_SYMBOLIC | PROA_T_STRIDED))
        return PROA_OK; /* strided outputs are views of tensors that were checked already */
    proa_numerics n;
    PROA_TRY(proa_numerics_of(t, &n));
    if (n.first < 0) return PROA_OK;
    return proa__op_fail(PROA_ERR_NUMERIC, op, f->name,
                         "%s holds %lld NaN and %lld infinite values, the first at element %lld",
                         proa__tensor_text(t), (long long)n.nan, (long long)n.inf, (long long)n.first);
}

static proa_status watch(proa_call *call)
{
    proa__observer through = atomic_load_explicit(&observer, memory_order_relaxed);
    PROA_TRY(through ? through(call) : proa_call_inner(PROA_DOOR_WATCH, call));
    proa_inspector inspect = atomic_load_explicit(&inspector, memory_order_relaxed);
    if (inspect && !held) PROA_TRY(inspect(call->op, call->args, NULL));
    if (!proa__flag_int(PROA_FLAG_check_nan_inf) || atomic_load_explicit(&judged, memory_order_relaxed))
        return PROA_OK;
    const proa_op *op = call->op;
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) {
        const proa_field *f = &op->fields[i];
        const proa_tensors all = proa__field_all(f, call->args);
        for (int64_t k = 0; k < all.count; k++) PROA_TRY(check_output(op, f, all.at[k]));
    }
    return PROA_OK;
}

__attribute__((constructor)) static void install(void) { proa_door_install(PROA_DOOR_WATCH, watch); }
