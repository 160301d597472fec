/* Runs an op on a device: finds the device of the call, copies one-element CPU tensors to it and attribute
 * tensors to the host, and with FLAGS_device_fallback=1 runs ops for which the device has no kernel on the
 * CPU, with copies. Uses run.c and the device table. */
#include "core/args_visit.h"
#include "core/blocked.h"
#include "core/copy.h"
#include "core/device.h"
#include "core/kernel_cache.h"
#include "core/run.h"
#include "core/thread.h"

/* Tensors made for one call: dropped when the call ends, so that they do not pile up in a long-lived
 * scope. */
typedef struct temporaries {
    proa_tensor *at[32];
    int n;
} temporaries;

static proa_tensor *remember(temporaries *made, proa_tensor *t)
{
    if (t && made->n < (int)(sizeof made->at / sizeof *made->at)) made->at[made->n++] = t;
    return t;
}

static void drop_all(temporaries *made)
{
    while (made->n) proa_drop(made->at[--made->n]);
}

/* ---- finding the device ----------------------------------------------------------------- */

/* A one-element CPU tensor may join a call on any device: it is copied there. */
static bool is_number(const proa_tensor *t) { return t->numel == 1 && !proa__on_device(t); }

static proa_status mixed(const proa_op *op, const proa_field *f, const proa_tensor *t, int device)
{
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, f->name,
                         "is %s on %s, another input is on %s; an op's inputs must be on one device "
                         "(proa_to_device, Tensor.to)",
                         proa__tensor_text(t), proa_device_of(t), proa_device_name(device));
}

/* The tensors of an input field: *at points to them, the result is their number. */
static int64_t tensors_of(const proa_field *f, const void *args, proa_tensor *const **at)
{
    const proa_tensors all = proa__field_all(f, args);
    *at = all.at;
    return all.count;
}

/* Finds the device that the call's inputs are on; `chosen` when there are none. */
static proa_status find_device(const proa_op *op, const void *args, int chosen, int *device)
{
    proa_tensor *const *at;
    bool any = false;
    *device = PROA_CPU;
    for (const proa_field *f = op->fields, *end = f + op->n_in; f < end; f++)
        for (int64_t i = 0, n = tensors_of(f, args, &at); i < n; i++) {
            if (at[i] == proa_none) continue;
            any = true;
            if (*device == PROA_CPU) *device = proa__device_id(at[i]);
        }
    if (!any) *device = chosen;
    if (*device == PROA_CPU) return PROA_OK;
    for (const proa_field *f = op->fields, *end = f + op->n_in; f < end; f++)
        for (int64_t i = 0, n = tensors_of(f, args, &at); i < n; i++)
            if (at[i] != proa_none && proa__device_id(at[i]) != *device && !is_number(at[i]))
                return mixed(op, f, at[i], *device);
    return PROA_OK;
}

/* Preset outputs, and inputs that the op writes to, must already be on the call's device. */
static proa_status check_written(const proa_op *op, const void *args, int device)
{
    for (const proa_field *f = op->fields + op->n_in + op->n_attr, *end = op->fields + op->n_fields; f < end;
         f++) {
        bool mutated = f->flags & PROA_FIELD_MUTATED;
        proa_tensor *const *at;
        for (int64_t i = 0, n = tensors_of(mutated ? &op->fields[f->alias] : f, args, &at); i < n; i++)
            if (at && at[i] && at[i] != proa_none && at[i]->storage && proa__device_id(at[i]) != device)
                return mixed(op, mutated ? &op->fields[f->alias] : f, at[i], device);
    }
    return PROA_OK;
}

/* A copy of a list of tensors, so that an entry can be replaced without changing the caller's list. */
static proa_tensor **own_list(proa_tensor *const *at, int64_t n)
{
    proa_tensor **own = proa_scope_alloc((size_t)n * sizeof *own);
    if (own) memcpy(own, at, (size_t)n * sizeof *own);
    return own;
}

/* The slots of the n tensors `at` of a field, in a list of the args' own, so that they can be replaced. */
static proa_tensor **own_slots(const proa_field *f, void *args, proa_tensor *const *at, int64_t n)
{
    proa_tensors *list = proa__field_list(f, args);
    return !list ? proa_field_tensor(f, args) : (list->at = own_list(at, n));
}

static proa_status numbers_to(const proa_op *op, void *args, int device, temporaries *made)
{
    proa_tensor *const *at;
    for (const proa_field *f = op->fields, *end = f + op->n_in; f < end; f++) {
        proa_tensor **own = NULL;
        for (int64_t i = 0, n = tensors_of(f, args, &at); i < n; i++) {
            if (at[i] == proa_none || proa__device_id(at[i]) == device) continue;
            proa_tensor *there = remember(made, proa__copy_to(at[i], device));
            if (!there) return proa_error();
            if (!own && !(own = own_slots(f, args, at, n))) return proa_error();
            own[i] = there;
        }
    }
    return PROA_OK;
}

/* ---- attributes ------------------------------------------------------------------------ */

static proa_status to_host(proa_tensor **t, temporaries *made)
{
    if (!*t || *t == proa_none || !proa__on_device(*t)) return PROA_OK;
    PROA_TRY(proa__plain(*t));
    if (!(*t)->data) return PROA_OK;
    proa_tensor *here = proa__copy_to(*t, PROA_CPU);
    if (!here) return proa_error();
    *t = made ? remember(made, here) : here;
    return PROA_OK;
}

static proa_status attributes_to_host(const proa_op *op, void *args, temporaries *made)
{
    for (const proa_field *f = op->fields + op->n_in, *end = f + op->n_attr; f < end; f++) {
        if (f->kind == PROA_FIELD_SCALAR) {
            PROA_TRY(to_host(&((proa_scalar *)proa_field_at(f, args))->tensor, made));
        } else if (f->kind == PROA_FIELD_INTS) {
            proa_ints *v = proa_field_at(f, args);
            PROA_TRY(to_host(&v->tensor, made));
            if (!v->tensors || v->count == 0) continue;
            proa_tensor **own = own_list(v->tensors, v->count);
            if (!own) return proa_error();
            v->tensors = own;
            for (int64_t i = 0; i < v->count; i++) PROA_TRY(to_host(&own[i], made));
        }
    }
    return PROA_OK;
}

proa_status proa__attributes_to_host(const proa_op *op, void *shadow)
{
    return attributes_to_host(op, shadow, NULL);
}

/* ---- CPU fallback, without a device kernel ------------------------------------------------ */

static proa_status fallback_is_no_kernel(const void *args, proa_run *run)
{
    (void)args, (void)run;
    return proa_fail(PROA_ERR_INTERNAL, "the fallback is run by name only");
}

const proa_kernel proa__fallback_kernel = {.name = "fallback", .run = fallback_is_no_kernel};

/* A CPU copy of a SelectedRows; NULL after an error. */
static proa_tensor *rows_here(const proa_tensor *t, temporaries *made)
{
    proa_tensor dense = proa__shallow_copy(t); /* a SelectedRows handle's elements are its stored rows */
    dense.kind = PROA_DENSE;
    proa_meta meta = proa_meta_of(t);
    proa_tensor *own = remember(made, proa__tensor_new(&meta));
    if (!own || proa__copy(own, &dense) != PROA_OK) return NULL;
    proa__rows_attach(own, t);
    return own;
}

/* Puts CPU copies of a field's tensors into `shadow`. An output that shares an input's memory becomes that
 * input's copy. */
static proa_status copies_here(const proa_op *op, const proa_field *f, const void *args, void *shadow,
                               temporaries *made)
{
    proa_tensor *const *at;
    int64_t n = tensors_of(f, args, &at);
    if (n == 0 || !at) return PROA_OK;
    proa_tensor **own = own_slots(f, shadow, at, n);
    if (!own) return proa_error();
    for (int64_t i = 0; i < n; i++) {
        if (!at[i] || at[i] == proa_none) continue;
        if (f->role == PROA_OUT) {
            proa_tensor *const *in, *const *in_here;
            own[i] = NULL;
            for (const proa_field *g = op->fields, *end = g + op->n_in; g < end && !own[i]; g++)
                for (int64_t k = 0, m = tensors_of(g, args, &in); k < m; k++)
                    if (in[k] != proa_none && in[k]->data == at[i]->data && in[k]->numel == at[i]->numel &&
                        in[k]->dtype == at[i]->dtype && tensors_of(g, shadow, &in_here) == m)
                        own[i] = in_here[k];
            if (own[i]) continue;
            if (op->flags & PROA_OP_DATA_SHAPE) continue; /* the kernel sizes this output */
            proa_meta meta = proa_meta_of(at[i]);
            own[i] = remember(made, proa__tensor_new(&meta));
        } else {
            own[i] = at[i]->kind == PROA_DENSE ? remember(made, proa__copy_to(at[i], PROA_CPU))
                                               : rows_here(at[i], made);
        }
        if (!own[i]) return proa_error();
    }
    return PROA_OK;
}

/* Copies the CPU's results to the outputs on the device; outputs that the kernel sized are made there. */
static proa_status results_there(const proa_field *f, void *args, const void *shadow, int device)
{
    proa_tensor *const *here, *const *there;
    int64_t n = tensors_of(f, shadow, &here);
    tensors_of(f, args, &there);
    for (int64_t i = 0; i < n; i++) {
        if (!here || !here[i] || here[i] == proa_none) continue;
        if (there[i] && there[i] != proa_none && there[i]->ndim == here[i]->ndim && there[i]->data &&
            !memcmp(there[i]->shape, here[i]->shape, sizeof(int64_t) * (size_t)here[i]->ndim)) {
            PROA_TRY(proa__copy(there[i], here[i]));
            continue;
        }
        proa_tensor *made = proa__copy_to(here[i], device);
        if (!made) return proa_error();
        if (there[i] && there[i] != proa_none) {
            proa__tensor_assign(there[i], made);
            proa_drop(made);
        } else {
            proa__field_all(f, args).at[i] = made;
        }
    }
    return PROA_OK;
}

static proa_status run_on_cpu(const proa_op *op, void *args, int device, temporaries *made)
{
    _Alignas(16) char shadow[PROA_ARGS_MAX];
    memcpy(shadow, args, op->args_size);
    for (const proa_field *f = op->fields, *end = f + op->n_fields; f < end; f++)
        if (f->role != PROA_ATTR) PROA_TRY(copies_here(op, f, args, shadow, made));
    const proa_kernel *kernel = NULL;
    proa_run run = {.stream = proa__stream()};
    PROA_TRY(proa__pick_kernel(op, shadow, &kernel, &run.state));
    proa_status status = kernel->run(shadow, &run);
    if (kernel->release && run.state) kernel->release(run.state);
    for (const proa_field *f = op->fields, *end = f + op->n_fields; f < end && status == PROA_OK; f++)
        if (f->role == PROA_OUT) status = results_there(f, args, shadow, device);
    return status;
}

static proa_status run_fallback(const proa_op *op, void *args)
{
    temporaries made = {.n = 0};
    int device = proa_device_use(PROA_CPU);
    proa_status status = run_on_cpu(op, args, device, &made);
    drop_all(&made);
    proa_device_use(device);
    return status;
}

/* ---- running --------------------------------------------------------------------------- */

static bool has_device_attributes(const proa_op *op, const void *args)
{
    for (const proa_field *f = op->fields + op->n_in, *end = f + op->n_attr; f < end; f++) {
        const void *at = proa_field_at(f, args);
        if (f->kind == PROA_FIELD_SCALAR) {
            const proa_scalar *v = at;
            if (v->tensor && proa__on_device(v->tensor)) return true;
        } else if (f->kind == PROA_FIELD_INTS) {
            const proa_ints *v = at;
            if (v->tensor && proa__on_device(v->tensor)) return true;
            for (int64_t i = 0; v->tensors && i < v->count; i++)
                if (v->tensors[i] && proa__on_device(v->tensors[i])) return true;
        }
    }
    return false;
}

static proa_status launch_kernel(const proa_op *op, void *args, const proa_kernel *kernel, void *state,
                                 bool fresh)
{
    if (kernel == &proa__fallback_kernel) return run_fallback(op, args);
    proa_stream *stream = proa__stream();
    const proa_device_table *d = proa__device(stream->device);
    if (d->begin) d->begin(d->context, op);
    proa_run run = {.state = state, .stream = stream, .device = d->context, .fresh = fresh};
    proa_status status = kernel->run(args, &run);
    if (status == PROA_OK && proa__flag_int(PROA_FLAG_device_sync)) status = d->synchronize(d->context);
    if (d->begin) d->begin(d->context, NULL);
    return status;
}

/* Copies the pointers of the output fields from `from`, another args struct of the op, to `args`. */
static void outputs_of(const proa_op *op, void *args, const void *from)
{
    for (const proa_field *f = op->fields + op->n_in + op->n_attr; f < op->fields + op->n_fields; f++) {
        proa_tensors *list = proa__field_list(f, args);
        if (list) *list = *proa_field_tensors(f, from);
        else *proa_field_tensor(f, args) = *proa_field_tensor(f, from);
    }
}

proa_status proa__run_picked(const proa_op *op, void *args, const proa_kernel *kernel, void *state,
                             bool fresh)
{
    if (PROA__LIKELY(op->flags & PROA_OP_FLAT || !has_device_attributes(op, args)))
        return launch_kernel(op, args, kernel, state, fresh);
    _Alignas(16) char shadow[PROA_ARGS_MAX];
    temporaries made = {.n = 0};
    memcpy(shadow, args, op->args_size);
    proa_status status = attributes_to_host(op, shadow, &made);
    if (status == PROA_OK) status = launch_kernel(op, shadow, kernel, state, fresh);
    outputs_of(op, args, shadow);
    drop_all(&made);
    return status;
}

static proa_status run_there(proa_call *call, int device)
{
    const proa_op *op = call->op;
    _Alignas(16) char shadow[PROA_ARGS_MAX];
    temporaries made = {.n = 0};
    if (op->args_size > PROA_ARGS_MAX)
        return proa__op_fail(PROA_ERR_INTERNAL, op, NULL, "has too large an args struct");
    if (device != PROA_CPU) PROA_TRY(check_written(op, call->args, device));
    memcpy(shadow, call->args, op->args_size);
    proa_call inner = {op, shadow, call->any};
    proa_status status = device == PROA_CPU ? PROA_OK : numbers_to(op, shadow, device, &made);
    if (status == PROA_OK) status = attributes_to_host(op, shadow, &made);
    if (status == PROA_OK)
        status = inner.any & PROA_T_BLOCKED ? proa__dispatch_blocked(&inner) : proa__dispatch_host(&inner);
    if (status == PROA_OK) outputs_of(op, call->args, shadow);
    drop_all(&made);
    return status;
}

proa_status proa__run_placed(proa_call *call)
{
    int device, chosen = proa__stream()->device;
    PROA_TRY(find_device(call->op, call->args, chosen, &device));
    proa_device_use(device);
    proa_status status = run_there(call, device);
    proa_device_use(chosen);
    return status;
}
