/* Dispatch through the doors (dispatch layers such as autocast, autograd, capture): checks a call's inputs
 * once, gives expanded tensors that the op overwrites a copy, then sends the call through the open doors,
 * outermost first. May use core only; the folders that own doors install them. */
#include "core/copy.h"
#include "core/steps.h"
#include "core/thread.h"

/* Process-wide: written once per door while the library loads, read-only afterwards. */
static proa_door_fn door_fns[PROA_DOOR_COUNT];
static unsigned installed;

/* A bit of open_doors above those of the doors: set while the convert door takes every op (autocast), not
 * only those that promote dtypes. */
#define CONVERTS_ALL (1u << PROA_DOOR_COUNT)

/* Bit mask of the doors that this thread has open. */
static _Thread_local unsigned open_doors __attribute__((tls_model("initial-exec"))) =
    1u << PROA_DOOR_CONVERT | 1u << PROA_DOOR_RECORD;

/* Bit mask of the doors that are open on all threads, in addition to each thread's own. */
static atomic_uint everywhere;

void proa_door_install(proa_door door, proa_door_fn fn)
{
    door_fns[door] = fn;
    installed |= 1u << door;
}

bool proa_door_set(proa_door door, bool open)
{
    bool was = open_doors >> door & 1;
    if (open) open_doors |= 1u << door;
    else open_doors &= ~(1u << door);
    return was;
}

bool proa_door_is_open(proa_door door) { return open_doors >> door & 1; }

void proa__door_everywhere(proa_door door, bool open)
{
    if (open) atomic_fetch_or_explicit(&everywhere, 1u << door, memory_order_relaxed);
    else atomic_fetch_and_explicit(&everywhere, ~(1u << door), memory_order_relaxed);
}

void proa__convert_all(bool all)
{
    if (all) open_doors |= CONVERTS_ALL;
    else open_doors &= ~CONVERTS_ALL;
}

/* Those of the doors `open` that concern this call: the record door if an input wants a gradient, the convert
 * door if dtypes differ and the op promotes, or in autocast. Most calls go straight to the kernel. */
static inline unsigned concerned(unsigned open, const proa_call *call)
{
    if (!(call->any & PROA_T_GRAD)) open &= ~(1u << PROA_DOOR_RECORD);
    bool promotes = call->any & PROA_T_MIXED && call->op->flags & PROA_OP_PROMOTES;
    if (!promotes && !(open & CONVERTS_ALL)) open &= ~(1u << PROA_DOOR_CONVERT);
    return open;
}

static inline proa_status enter(unsigned first, proa_call *call)
{
    unsigned open = open_doors | atomic_load_explicit(&everywhere, memory_order_relaxed);
    open = (concerned(open, call) & installed) >> first << first;
    if (!open) return proa__dispatch(call);
    return door_fns[__builtin_ctz(open)](call);
}

static proa_status bad_tensor(const proa_op *op, const proa_field *f, const proa_tensor *t, int64_t at)
{
    char where[64] = "";
    if (f->kind == PROA_FIELD_TENSORS) snprintf(where, sizeof where, " (entry %lld)", (long long)at);
    if (!t)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, f->name,
                             "is NULL%s; pass the tensor, or PROA_NONE where it is optional", where);
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, f->name, "is required%s, got PROA_NONE", where);
}

static proa_status check_ints(const proa_op *op, const proa_field *f, const proa_ints *v, uint32_t *any)
{
    if (v->count < 0 || (v->count > 0 && !v->at && !v->tensors))
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, f->name, "is a list of %lld numbers at %p",
                             (long long)v->count, (const void *)v->at);
    if (!v->tensor && !v->tensors) return PROA_OK;
    if (!(f->flags & PROA_FIELD_FROM_TENSOR))
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, f->name,
                             "cannot be given by a tensor; pass numbers");
    if (v->tensor) *any |= v->tensor->flags & (PROA_T_SYMBOLIC | PROA_T_DEVICE);
    for (int64_t i = 0; v->tensors && i < v->count; i++)
        if (v->tensors[i]) *any |= v->tensors[i]->flags & (PROA_T_SYMBOLIC | PROA_T_DEVICE);
    return PROA_OK;
}

static proa_status check_attr(const proa_op *op, const proa_field *f, const void *at, uint32_t *any)
{
    switch ((proa_field_kind)f->kind) {
    case PROA_FIELD_INTS: return check_ints(op, f, at, any);
    case PROA_FIELD_ENUM: {
        int v = *(const int *)at, n = 0;
        while (f->choices[n]) n++;
        if (v >= 0 && v < n) return PROA_OK;
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, f->name, "is %d; %s has the values 0 … %d", v,
                             f->enum_name, n - 1);
    }
    case PROA_FIELD_DTYPE: {
        int v = (int)*(const proa_dtype *)at;
        if (v >= 0 && v < PROA_DTYPE_COUNT) return PROA_OK;
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, f->name, "is %d, which is no dtype", v);
    }
    case PROA_FIELD_FLOATS: {
        const proa_floats *v = at;
        if (v->count == 0 || (v->count > 0 && v->at)) return PROA_OK;
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, f->name, "is a list without values");
    }
    case PROA_FIELD_STRINGS: {
        const proa_strings *v = at;
        bool whole = v->count == 0 || (v->count > 0 && v->at);
        for (int64_t i = 0; whole && i < v->count; i++) whole = v->at[i] != NULL;
        return whole ? PROA_OK
                     : proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, f->name, "is a list without strings");
    }
    case PROA_FIELD_STEPS: return proa__check_steps(op, f, at);
    case PROA_FIELD_STRING:
        if (*(const char *const *)at) return PROA_OK;
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, f->name, "is NULL");
    case PROA_FIELD_SCALAR: {
        const proa_scalar *v = at;
        if (v->kind != PROA_SCALAR_TENSOR) return PROA_OK;
        if (!v->tensor || v->tensor == proa_none) return bad_tensor(op, f, v->tensor, 0);
        *any |= v->tensor->flags & (PROA_T_SYMBOLIC | PROA_T_DEVICE);
        return PROA_OK;
    }
    default: return PROA_OK;
    }
}

/* Before an in-place write to an expanded tensor, in which several indices share one element: gives the
 * tensor a copy with distinct elements. The tensor that it was expanded from stays unchanged, as in Paddle,
 * where expand copies. */
static proa_status part_repeated(const proa_op *op, const void *args)
{
    for (const proa_field *f = &op->fields[op->n_in + op->n_attr]; f < op->fields + op->n_fields; f++) {
        proa_tensor *t = f->kind == PROA_FIELD_TENSOR ? *proa_field_tensor(f, args) : NULL;
        if (!t || !(t->flags & PROA_T_STRIDED)) continue;
        bool repeats = false;
        for (int d = 0; d < t->ndim; d++) repeats |= t->strides[d] == 0 && t->shape[d] > 1;
        if (!repeats) continue;
        proa_tensor *own = proa__contiguous(t);
        if (!own) return proa_error();
        proa__tensor_assign(t, own);
        proa_release(t->base);
        t->base = NULL;
    }
    return PROA_OK;
}

/* True for a list of integers of which no entry is a tensor's. */
static inline bool is_plain(const proa_ints *v)
{
    return v->count >= 0 && !v->tensor && !v->tensors && (v->at || v->count == 0);
}

/* Checks that inputs are present and lists and enums valid; gathers the inputs' flags. */
static proa_status check_call(proa_call *call)
{
    const proa_op *op = call->op;
    uint32_t any = 0, dtypes = 0;
    const proa_field *f = op->fields;
    for (const proa_field *end = f + op->n_in; f < end; f++) {
        if (f->kind == PROA_FIELD_TENSOR) {
            proa_tensor *t = *proa_field_tensor(f, call->args);
            if (!t || (t == proa_none && !(f->flags & PROA_FIELD_OPTIONAL))) return bad_tensor(op, f, t, 0);
            any |= t->flags;
            dtypes |= 1u << t->dtype;
            continue;
        }
        const proa_tensors *list = proa_field_tensors(f, call->args);
        if (list->count < 0 || (list->count > 0 && !list->at)) return bad_tensor(op, f, NULL, 0);
        for (int64_t i = 0; i < list->count; i++) {
            proa_tensor *t = list->at[i];
            if (!t || (t == proa_none && !(f->flags & PROA_FIELD_OPTIONAL))) return bad_tensor(op, f, t, i);
            any |= t->flags;
        }
    }
    for (const proa_field *end = f + op->n_attr; f < end; f++) {
        const void *at = proa_field_at(f, call->args);
        if (f->kind == PROA_FIELD_INTS && is_plain(at)) continue;
        PROA_TRY(check_attr(op, f, at, &any));
    }
    if (dtypes & (dtypes - 1)) any |= PROA_T_MIXED;
    call->any = any;
    return any & PROA_T_STRIDED ? part_repeated(op, call->args) : PROA_OK;
}

static inline proa_status call_from(proa_door door, const proa_op *op, void *args)
{
    PROA_TRY((proa_status)proa__thread_error);
    proa_call call = {op, args, 0};
    PROA_TRY(check_call(&call));
    return enter((unsigned)door, &call);
}

proa_status proa_call_from(proa_door door, const proa_op *op, void *args)
{
    return call_from(door, op, args);
}

proa_status proa_call_op(const proa_op *op, void *args) { return call_from(PROA_DOOR_CONVERT, op, args); }

proa_status proa_call_inner(proa_door door, proa_call *call) { return enter((unsigned)door + 1, call); }
