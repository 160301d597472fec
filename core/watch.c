/* The watch door: passes calls to an observer (the profiler), and with FLAGS_check_nan_inf=1 makes NaN or
 * infinity in an op's outputs an error that names the op. Open on all threads while there is an observer or
 * that flag is set. May use core only. */
#include "core/args_visit.h"
#include "core/blocked.h"
#include "core/device.h"
#include "core/half.h"
#include "core/thread.h"

static _Atomic(proa__observer) observer;
static atomic_bool values;

bool proa__watching(void)
{
    return atomic_load_explicit(&observer, memory_order_relaxed) ||
           atomic_load_explicit(&values, memory_order_relaxed);
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

typedef struct tally {
    int64_t nan, inf, first;
} tally;

static void look(tally *n, double v, int64_t at)
{
    if (v - v == 0) return;
    if (n->first < 0) n->first = at;
    if (v != v) n->nan++;
    else n->inf++;
}

static tally count_bad(const proa_tensor *t)
{
    tally n = {0, 0, -1};
    for (int64_t i = 0; i < t->numel; i++) switch ((proa_dtype)t->dtype) {
        case PROA_F16: look(&n, proa__f16_to_f32(((const uint16_t *)(const void *)t->data)[i]), i); break;
        case PROA_BF16: look(&n, proa__bf16_to_f32(((const uint16_t *)(const void *)t->data)[i]), i); break;
        case PROA_F32: look(&n, ((const float *)(const void *)t->data)[i], i); break;
        case PROA_F64: look(&n, ((const double *)(const void *)t->data)[i], i); break;
        case PROA_C64:
            for (int k = 0; k < 2; k++) look(&n, ((const float *)(const void *)t->data)[2 * i + k], i);
            break;
        case PROA_C128:
            for (int k = 0; k < 2; k++) look(&n, ((const double *)(const void *)t->data)[2 * i + k], i);
            break;
        default: return n;
        }
    return n;
}

static proa_status check_output(const proa_op *op, const proa_field *f, const proa_tensor *t)
{
    if (!t || t == proa_none || t->kind != PROA_DENSE || t->flags & (PROA_T_SYMBOLIC | PROA_T_STRIDED))
        return PROA_OK; /* strided outputs are views of tensors that were checked already */
    proa_tensor *here =
        proa__copy_to((proa_tensor *)(uintptr_t)t, PROA_CPU); /* on a device: a copy in host memory */
    if (!here || proa__plain(here) != PROA_OK) return proa_error();
    tally n = count_bad(here);
    if (here != t) proa_drop(here);
    if (n.first < 0) return PROA_OK;
    return proa__op_fail(PROA_ERR_NUMERIC, op, f->name,
                         "%s holds %lld NaN and %lld infinite values, the first at element %lld",
                         proa__tensor_text(t), (long long)n.nan, (long long)n.inf, (long long)n.first);
}

static proa_status watch(proa_call *call)
{
    proa__observer through = atomic_load_explicit(&observer, memory_order_relaxed);
    PROA_TRY(through ? through(call) : proa_call_inner(PROA_DOOR_WATCH, call));
    if (!proa__flag_int(PROA_FLAG_check_nan_inf)) return PROA_OK;
    const proa_op *op = call->op;
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) {
        const proa_field *f = &op->fields[i];
        const proa_tensors all = proa__field_all(f, call->args);
        for (int64_t k = 0; k < all.count; k++) PROA_TRY(check_output(op, f, all.at[k]));
    }
    return PROA_OK;
}

__attribute__((constructor)) static void install(void) { proa_door_install(PROA_DOOR_WATCH, watch); }
