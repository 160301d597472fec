/* The run door, the innermost dispatch layer: infers and allocates outputs, makes strided and blocked inputs
 * row-major where the op requires it, calls the first kernel that does not decline, and copies results that
 * could not be written in place. May use core only. */
#include "core/args.h"
#include "core/args_visit.h"
#include "core/blocked.h"
#include "core/copy.h"
#include "core/device.h"
#include "core/error.h"
#include "core/kernel_cache.h"
#include "core/output_list.h"
#include "core/run.h"
#include "core/thread.h"

/* ---- inference ------------------------------------------------------------------------- */

static proa_status refuse_dtype(const proa_op *op, const char *argument, proa_dtype dtype)
{
    char list[PROA_DTYPES_TEXT];
    return proa__op_fail(PROA_ERR_WRONG_TYPE, op, argument, "is %s; expected one of %s (convert with cast)",
                         proa_dtype_name(dtype), proa_dtypes_text(op->dtypes, list));
}

static __attribute__((noinline)) proa_status mixed_dtypes(const proa_op *op, const char *argument,
                                                          const proa_tensor *t, const proa_tensor *first)
{
    if (!(op->dtypes >> t->dtype & 1)) return refuse_dtype(op, argument, (proa_dtype)t->dtype);
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, argument,
                         "is %s, but the first operand is %s; convert one with cast", proa__tensor_text(t),
                         proa__tensor_text(first));
}

proa_status proa__same_dtype(const proa_op *op, const char *argument, const proa_tensor *t,
                             const proa_tensor *first)
{
    return PROA__LIKELY(t->dtype == first->dtype) ? PROA_OK : mixed_dtypes(op, argument, t, first);
}

/* Refuses the first operand's dtype. The last one selects the kernel of an elementwise op and of a product:
 * where the op has that kernel, the first operand is what does not fit. */
static __attribute__((noinline)) proa_status refuse_first(const proa_op *op, const proa_field *f,
                                                          const void *args, proa_dtype dtype)
{
    const proa_tensor *last = NULL;
    const proa_field *at = f;
    bool by_last = op->flags & (PROA_OP_ELEMENTWISE | PROA_OP_PROMOTES);
    for (const proa_field *g = op->fields + op->n_in - 1; by_last && g > f && !last; g--) {
        proa_tensor **one = proa__field_one(g, args);
        if (one && *one && *one != proa_none) last = *one, at = g;
    }
    if (!last || !(op->dtypes >> last->dtype & 1)) return refuse_dtype(op, f->name, dtype);
    return proa__operand_dtype_fail(op, f->name, "is %s, but %s is %s; convert one with cast",
                                    proa_dtype_name(dtype), at->name, proa__tensor_text(last));
}

__attribute__((noinline)) const proa_tensor *proa__first_tensor(const proa_op *op, const void *args,
                                                                const proa_field **field)
{
    for (const proa_field *f = op->fields, *end = f + op->n_in; f < end; f++) {
        const proa_tensors all = proa__field_all(f, args);
        const proa_tensor *t = all.count ? all.at[0] : NULL;
        if (!t || t == proa_none) continue;
        *field = f;
        return t;
    }
    return NULL;
}

/* Checks that the op accepts the dtype of the first input; *first is NULL where there is no input. */
static inline proa_status check_first(const proa_op *op, const void *args, const proa_tensor **first)
{
    const proa_field *f = op->fields;
    proa_tensor **one = op->n_in ? proa__field_one(f, args) : NULL;
    const proa_tensor *t = one ? *one : NULL;
    if (!t || t == proa_none) t = proa__first_tensor(op, args, &f);
    *first = t;
    if (PROA__LIKELY(!t || op->dtypes >> t->dtype & 1)) return PROA_OK;
    return refuse_first(op, f, args, (proa_dtype)t->dtype);
}

/* Ops without an infer function require inputs of one shape, since their kernels use the first one's shape
 * for all. */
static proa_status check_equal(const proa_op *op, const void *args, const proa_tensor *first)
{
    for (int i = 0; i < op->n_in; i++) {
        const proa_field *f = &op->fields[i];
        proa_tensor **one = proa__field_one(f, args);
        const proa_tensor *t = one ? *one : NULL;
        if (!t || t == first || t == proa_none) continue;
        bool same = t->ndim == first->ndim;
        for (int d = 0; same && d < t->ndim; d++)
            same = t->shape[d] == first->shape[d] || t->shape[d] < 0 || first->shape[d] < 0;
        if (!same)
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, f->name,
                                 "must have the shape %s of the first input, got %s",
                                 proa__shape_text(first->shape, first->ndim), proa__tensor_text(t));
    }
    return PROA_OK;
}

/* Infers the outputs of an op that has several, a list, or no infer function. */
static __attribute__((noinline)) proa_status infer_several(const proa_call *call, const proa_tensor *first,
                                                           void *metas)
{
    const proa_op *op = call->op;
    char *m = metas;
    for (int i = 0; i < op->n_out; i++) {
        const proa_field *out = &op->fields[op->n_in + op->n_attr + i];
        if (proa__makes_list(out)) {
            *(proa_metas *)(void *)m = (proa_metas){0, NULL};
            m += sizeof(proa_metas);
            continue;
        }
        proa_meta *meta = (proa_meta *)(void *)m;
        meta->ndim = -1;
        m += sizeof(proa_meta);
        if (op->infer || !first) continue;
        meta->dtype = (proa_dtype)first->dtype;
        meta->ndim = first->ndim;
        for (int d = 0; d < first->ndim; d++) meta->shape[d] = first->shape[d];
    }
    if (op->infer) return op->infer(call->args, metas);
    return first && op->n_in > 1 ? check_equal(op, call->args, first) : PROA_OK;
}

proa_status proa__infer_call(proa_call *call, void *metas)
{
    const proa_op *op = call->op;
    const proa_tensor *first;
    PROA_TRY(check_first(op, call->args, &first));
    bool one = op->infer && op->n_out == 1 && !proa__makes_list(&op->fields[op->n_in + op->n_attr]);
    if (!one) return infer_several(call, first, metas);
    ((proa_meta *)metas)->ndim = -1;
    return op->infer(call->args, metas);
}

/* ---- outputs --------------------------------------------------------------------------- */

static bool same_shape(const proa_meta *m, const proa_tensor *t)
{
    if (m->ndim != t->ndim || m->dtype != (proa_dtype)t->dtype) return false;
    for (int i = 0; i < t->ndim; i++)
        if (m->shape[i] != t->shape[i]) return false;
    return true;
}

/* Checks that an output given by the caller has the shape and dtype of the meta. */
static proa_status check_preset(const proa_op *op, const proa_field *f, const proa_meta *m,
                                const proa_tensor *t)
{
    if (same_shape(m, t)) return PROA_OK;
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, f->name,
                         "in place must be %s%s, but its memory is %s", proa_dtype_name(m->dtype),
                         proa__shape_text(m->shape, m->ndim), proa__tensor_text(t));
}

static bool overlaps(const proa_tensor *a, const proa_tensor *b)
{
    if (!a || !b || a == proa_none || b == proa_none || a->storage != b->storage) return false;
    return a->data != b->data || a->ndim != b->ndim ||
           memcmp(a->strides, b->strides, (size_t)a->ndim * sizeof(int64_t)) != 0;
}

/* True if the kernel must not write to `out` directly: that could destroy an input before it is read, or
 * out's strides do not suit. */
static bool needs_staging(const proa_call *call, const proa_tensor *out)
{
    const proa_op *op = call->op;
    if (out->flags & PROA_T_STRIDED) return true;
    for (int i = 0; i < op->n_in; i++) {
        const proa_field *f = &op->fields[i];
        const proa_tensors all = proa__field_all(f, call->args);
        for (int64_t k = 0; k < all.count; k++)
            if (overlaps(out, all.at[k])) return true;
    }
    return false;
}

static proa_tensor *resize(proa_tensor **out, const proa_meta *meta)
{
    if (*out && (*out)->data && same_shape(meta, *out)) return *out;
    proa_tensor *t = proa__tensor_new(meta);
    if (!t) return NULL;
    if (*out) {
        proa__tensor_assign(*out, t);
        proa_drop(t);
    } else {
        *out = t;
    }
    return *out;
}

proa_tensor *proa_output_resize(void *args, const proa_op *op, int index, const proa_meta *meta)
{
    return resize(proa_field_tensor(&op->fields[op->n_in + op->n_attr + index], args), meta);
}

proa_tensor *proa__output_resize_at(void *args, const proa_op *op, int index, int64_t k,
                                    const proa_meta *meta)
{
    return resize(&proa_field_tensors(&op->fields[op->n_in + op->n_attr + index], args)->at[k], meta);
}

proa_status proa_metas_resize(proa_metas *list, int64_t count)
{
    list->count = 0;
    list->at = NULL;
    if (count == 0) return PROA_OK;
    list->at = proa_scope_alloc((size_t)count * sizeof(proa_meta));
    if (!list->at) return proa_error();
    list->count = count;
    for (int64_t i = 0; i < count; i++) list->at[i].ndim = -1;
    return PROA_OK;
}

proa_meta proa_meta_of(const proa_tensor *t)
{
    proa_meta m = {.dtype = (proa_dtype)t->dtype, .ndim = t->ndim};
    for (int i = 0; i < t->ndim; i++) m.shape[i] = t->shape[i];
    return m;
}

/* ---- one call -------------------------------------------------------------------------- */

/* State around a kernel call that must be undone or completed afterwards. */
typedef struct staging {
    void *args;              /* the args struct that the kernel gets */
    proa_tensor *copied[16]; /* contiguous copies of inputs, dropped afterwards */
    int n_copied;
} staging;

static proa_status stage_inputs(const proa_op *op, staging *s)
{
    for (int i = 0; i < op->n_in; i++) {
        const proa_field *f = &op->fields[i];
        proa_tensors *list = proa__field_list(f, s->args);
        int64_t count = list ? list->count : 1;
        proa_tensor **at = list ? list->at : proa_field_tensor(f, s->args);
        proa_tensor **fresh = NULL;
        for (int64_t k = 0; k < count; k++) {
            if (at[k] == proa_none || !(at[k]->flags & PROA_T_STRIDED)) continue;
            proa_tensor *c = proa__contiguous(at[k]);
            if (!c) return proa_error();
            if (list && !fresh) { /* the caller's list must not change */
                fresh = proa_scope_alloc((size_t)count * sizeof *fresh);
                if (!fresh) return proa_error();
                memcpy(fresh, at, (size_t)count * sizeof *fresh);
                list->at = at = fresh;
            }
            at[k] = c;
            if (s->n_copied < (int)(sizeof s->copied / sizeof *s->copied)) s->copied[s->n_copied++] = c;
        }
    }
    return PROA_OK;
}

static bool has_unknown(const proa_meta *m)
{
    for (int i = 0; i < m->ndim; i++)
        if (m->shape[i] < 0) return true;
    return false;
}

static proa_status make_list(const proa_call *call, const proa_field *f, const proa_metas *metas)
{
    proa_tensors *list = proa_field_tensors(f, call->args);
    if (list->at) { /* the caller gave the outputs: an in-place call, or the executor */
        if (list->count == metas->count) return PROA_OK;
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, call->op, f->name, "has %lld entries, expected %lld",
                             (long long)list->count, (long long)metas->count);
    }
    if (metas->count == 0) return PROA_OK;
    list->at = proa_scope_alloc((size_t)metas->count * sizeof *list->at);
    if (!list->at) return proa_error();
    for (; list->count < metas->count; list->count++) {
        const proa_meta *m = &metas->at[list->count];
        if (has_unknown(m)) { /* the kernel will size this list's entries */
            list->at[list->count] = NULL;
            continue;
        }
        list->at[list->count] = m->ndim < 0 ? proa_none : proa__tensor_new(m);
        if (!list->at[list->count]) return proa_error();
    }
    return PROA_OK;
}

/* True if some kernel of the op takes blocked tensors; such a kernel itself updates the forms of tensors that
 * it changes. */
bool proa__takes_blocked(const proa_op *op)
{
    const proa_kernel *const *list = op->kernels;
    int device = proa__stream()->device;
    if (PROA__UNLIKELY(device != PROA_CPU)) {
        const proa_device_table *d = proa__device(device);
        list = op->id < d->kernel_ops ? d->kernels[op->id] : NULL;
    }
    for (const proa_kernel *const *k = list; k && *k; k++)
        if ((*k)->format) return true;
    return false;
}

static proa_status will_change(const proa_op *op, proa_tensor *t)
{
    if (t == proa_none) return PROA_OK;
    if (!proa__takes_blocked(op)) PROA_TRY(proa__plain_to_write(t));
    proa__bump_unguarded(t);
    return PROA_OK;
}

static proa_status mutate(const proa_call *call, const proa_field *f)
{
    const proa_tensors all = proa__field_all(&call->op->fields[f->alias], call->args);
    proa_tensors *list = proa__field_list(f, call->args);
    if (list) *list = all;
    else *proa_field_tensor(f, call->args) = all.at[0];
    for (int64_t i = 0; i < all.count; i++) PROA_TRY(will_change(call->op, all.at[i]));
    return PROA_OK;
}

/* Makes the outputs of call->args. *staged gets the output that the kernel must write elsewhere, to be copied
 * to its memory afterwards. */
static proa_status make_outputs(proa_call *call, void *metas, proa_tensor **staged)
{
    const proa_op *op = call->op;
    char *m = metas;
    for (int i = 0; i < op->n_out; i++) {
        const proa_field *f = &op->fields[op->n_in + op->n_attr + i];
        if (proa__field_list(f, call->args)) {
            PROA_TRY(f->flags & PROA_FIELD_MUTATED ? mutate(call, f)
                                                   : make_list(call, f, (proa_metas *)(void *)m));
            m += sizeof(proa_metas);
            continue;
        }
        const proa_meta *meta = (const proa_meta *)(void *)m;
        m += sizeof(proa_meta);
        proa_tensor **out = proa_field_tensor(f, call->args);
        if (f->flags & PROA_FIELD_MUTATED) {
            PROA_TRY(mutate(call, f));
        } else if (meta->ndim < 0) {
            if (!*out) *out = proa_none;
        } else if (*out && *out != proa_none) {
            if (op->flags & PROA_OP_DATA_SHAPE) continue;
            PROA_TRY(check_preset(op, f, meta, *out));
            PROA_TRY(proa__plain_to_write(*out));
            proa__bump_version(*out);
            if (needs_staging(call, *out)) {
                *staged = *out;
                *out = proa__tensor_new(meta);
                if (!*out) return proa_error();
            }
        } else if (!(op->flags & PROA_OP_DATA_SHAPE)) {
            *out = proa__tensor_new(meta);
            if (!*out) return proa_error();
        }
    }
    return PROA_OK;
}

/* Converts the call's blocked tensors for a kernel that takes row-major ones only. Tensors that it changes
 * lose their blocked form. */
static __attribute__((noinline)) proa_status unblock(const proa_op *op, void *args)
{
    PROA_TRY(proa__plain_inputs(op, args, false));
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) {
        const proa_field *f = &op->fields[i];
        if (!(f->flags & PROA_FIELD_MUTATED)) continue;
        const proa_tensors all = proa__field_all(f, args);
        for (int64_t k = 0; k < all.count; k++)
            if (all.at[k] != proa_none) PROA_TRY(proa__plain_to_write(all.at[k]));
    }
    return PROA_OK;
}

static inline proa_status launch_cached(const proa_op *op, void *args, uint32_t any, proa_run *run)
{
    const proa_kernel *kernel = NULL;
    bool cached = false;
    PROA_TRY(proa__kernel_cache_get(op, args, &kernel, &run->state, &cached));
    bool here = run->stream->device == PROA_CPU;
    proa_status status = PROA_OK;
    if (PROA__UNLIKELY(any & PROA_T_BLOCKED) && !kernel->format) status = unblock(op, args);
    if (status == PROA_OK)
        status = here ? kernel->run(args, run) : proa__run_picked(op, args, kernel, run->state, run->fresh);
    if (!cached && kernel->release && run->state) kernel->release(run->state);
    proa__thread_self->ran = kernel;
    return status;
}

static inline proa_status launch_kernel(const proa_op *op, void *args, uint32_t any, bool fresh)
{
    const proa_kernel *first = op->kernels[0];
    proa__thread *me = proa__thread_self;
    if (PROA__UNLIKELY(!me) && !(me = proa__thread_make()))
        return proa_fail(PROA_ERR_OUT_OF_MEMORY, "%s: no memory for what a thread owns", op->name);
    proa_run run = {NULL, &me->stream, NULL, fresh};
    me->running = op;
    bool direct = first && !first->prepare && me->stream.device == PROA_CPU && !proa__choice_is_special();
    if (PROA__UNLIKELY(any & PROA_T_BLOCKED)) direct = direct && first->format;
    proa_status status = direct ? first->run(args, &run) : launch_cached(op, args, any, &run);
    me->running = NULL;
    if (direct) me->ran = first; /* set after the run, as the kernel may itself call ops, which set it, too */
    return status;
}

proa_status proa__run_kernel(const proa_op *op, void *args, uint32_t any, bool fresh)
{
    return launch_kernel(op, args, any, fresh);
}

const proa_op *const volatile *proa_running_op(void)
{
    proa__thread *me = proa__thread_self;
    return me ? (const proa_op *const volatile *)&me->running : NULL;
}

/* Drops the outputs that a failed call made, but for entries of lists, so that they do not pile up in a
 * long-lived scope. */
static void undo_outputs(const proa_op *op, void *args, const void *given)
{
    for (int i = 0; i < op->n_out; i++) {
        const proa_field *f = &op->fields[op->n_in + op->n_attr + i];
        proa_tensor **out = proa__field_one(f, args);
        if (!out || f->flags & PROA_FIELD_MUTATED) continue;
        proa_tensor *before = *proa_field_tensor(f, given);
        if (*out && *out != before && *out != proa_none) proa_drop(*out);
        *out = before;
    }
}

/* True if the caller gave no output: this call makes all of them. */
static bool is_fresh(const proa_op *op, const void *given)
{
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) {
        const proa_field *f = &op->fields[i];
        if (f->flags & PROA_FIELD_MUTATED) continue;
        const proa_tensors *list = proa__field_list(f, given);
        if (list ? list->at != NULL : *proa_field_tensor(f, given) != NULL) return false;
    }
    return true;
}

/* Runs a call that needs more than is_plain's case: strided inputs to copy, outputs that are several, a list,
 * given by the caller or sized by the kernel, or a list of views. */
static __attribute__((noinline)) proa_status stage_operands(proa_call *call, void *metas)
{
    const proa_op *op = call->op;
    _Alignas(16) char given[PROA_ARGS_MAX], shadow[PROA_ARGS_MAX];
    const proa_field *first = &op->fields[op->n_in + op->n_attr];
    const proa_tensors *parts = proa__field_list(first, call->args);
    if (parts && first->flags & PROA_FIELD_VIEW && !parts->at) return op->view(call->args, metas);
    memcpy(given, call->args, op->args_size);
    proa_tensor *target = NULL;
    proa_status status = make_outputs(call, metas, &target);
    staging s;
    s.args = call->args;
    s.n_copied = 0;
    if (status == PROA_OK && call->any & PROA_T_STRIDED && !(op->flags & PROA_OP_STRIDED)) {
        memcpy(shadow, call->args, op->args_size);
        s.args = shadow;
        status = stage_inputs(op, &s);
    }
    if (status == PROA_OK) status = launch_kernel(op, s.args, call->any, is_fresh(op, given));
    if (s.args == shadow && op->flags & PROA_OP_DATA_SHAPE)
        for (int i = op->n_in + op->n_attr; i < op->n_fields; i++)
            *proa_field_tensor(&op->fields[i], call->args) = *proa_field_tensor(&op->fields[i], shadow);
    for (int i = 0; i < s.n_copied; i++) proa_drop(s.copied[i]);
    if (status != PROA_OK) {
        undo_outputs(op, call->args, given);
        return status;
    }
    if (target) {
        const proa_field *f = &op->fields[op->n_in + op->n_attr];
        for (int i = 0; i < op->n_out; i++, f++) {
            proa_tensor **out = proa__field_one(f, call->args);
            if (!out || *proa_field_tensor(f, given) != target) continue;
            status = proa__copy(target, *out);
            proa_drop(*out);
            *out = target;
            break;
        }
    }
    return status;
}

/* True for the common case: the kernel takes the inputs as they are, and there is one output, to be
 * allocated. */
static inline bool is_plain(const proa_call *call)
{
    const proa_op *op = call->op;
    if (op->n_out != 1 || op->flags & (PROA_OP_DATA_SHAPE | PROA_OP_MUTATES)) return false;
    if (call->any & PROA_T_STRIDED && !(op->flags & PROA_OP_STRIDED)) return false;
    const proa_field *out = &op->fields[op->n_in + op->n_attr];
    return !proa__makes_list(out) && !*proa_field_tensor(out, call->args);
}

static inline proa_status launch_plain(proa_call *call, const proa_meta *meta)
{
    const proa_op *op = call->op;
    proa_tensor **out = proa_field_tensor(&op->fields[op->n_in + op->n_attr], call->args);
    *out = meta->ndim < 0 ? proa_none : proa__tensor_new(meta);
    if (PROA__UNLIKELY(!*out)) return proa_error();
    proa_status status = launch_kernel(op, call->args, call->any, true);
    if (PROA__LIKELY(status == PROA_OK)) return PROA_OK;
    proa_drop(*out);
    *out = NULL;
    return status;
}

/* Checks an input of kind SelectedRows: the field must allow it. In an op that maps SelectedRows to
 * SelectedRows there is one such input, and all others have one element, so that the result for each stored
 * row depends on that row only. */
static proa_status check_rows(const proa_op *op, const proa_field *f, const proa_tensor *t,
                              const proa_tensor **rows)
{
    if (t->kind == PROA_DENSE) {
        bool one = !(op->flags & PROA_OP_ROWS) || t == proa_none || t->numel == 1;
        if (one) return PROA_OK;
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, f->name,
                             "is %s; beside a tensor of kind rows it must be one number",
                             proa__tensor_text(t));
    }
    if (t->kind != PROA_ROWS || !(f->flags & PROA_FIELD_ROWS) || (*rows && op->flags & PROA_OP_ROWS))
        return proa__op_fail(
            PROA_ERR_UNSUPPORTED, op, f->name,
            "is %s, of which only some rows are given (SelectedRows), and %s does not take "
            "that%s; use its values (proa_rows_values) or the whole table (proa_rows_to_dense)",
            proa__tensor_text(t), op->name, *rows ? " twice" : "");
    *rows = t;
    return PROA_OK;
}

proa_status proa__dispatch_blocked(proa_call *call)
{
    const proa_op *op = call->op;
    PROA_TRY(proa__plain_inputs(op, call->args, true));
    if (proa__takes_blocked(op)) return proa__dispatch_host(call);
    if (op->flags & PROA_OP_ELEMENTWISE) {
        _Alignas(16) char metas[PROA_METAS_MAX];
        PROA_TRY(proa__infer_call(call, metas));
        bool done = false;
        PROA_TRY(proa__run_flat(call, (const proa_meta *)(void *)metas, &done));
        if (done) return PROA_OK;
    }
    PROA_TRY(proa__plain_inputs(op, call->args, false));
    call->any &= ~(uint32_t)PROA_T_BLOCKED;
    return proa__dispatch_host(call);
}

/* Dispatches calls with symbolic variables (an error here), with tensors that are not dense, or with blocked
 * tensors. */
static __attribute__((noinline)) proa_status dispatch_unusual(proa_call *call)
{
    const proa_op *op = call->op;
    if (call->any & PROA_T_SYMBOLIC)
        return proa__op_fail(PROA_ERR_BAD_STATE, op, NULL,
                             "a program's variable has no data outside its program; open its capture first");
    if (call->any & PROA_T_META)
        return proa__op_fail(PROA_ERR_BAD_STATE, op, NULL,
                             "does not take a tensor that is divided among processes here; reshard it to "
                             "Replicate and pass its _local_value()");
    if (!(call->any & PROA_T_NOT_DENSE)) {
        bool placed = proa__is_placed(call, proa__stream()->device);
        return placed ? proa__run_placed(call) : proa__dispatch_blocked(call);
    }
    const proa_tensor *rows = NULL;
    for (const proa_field *f = op->fields; f < op->fields + op->n_in; f++) {
        const proa_tensors all = proa__field_all(f, call->args);
        for (int64_t i = 0; i < all.count; i++) PROA_TRY(check_rows(op, f, all.at[i], &rows));
    }
    if (call->any & PROA_T_GRAD && op->flags & PROA_OP_ROWS && proa_door_is_open(PROA_DOOR_RECORD))
        return proa__op_fail(PROA_ERR_UNSUPPORTED, op, NULL, "is not differentiable in tensors of kind rows");
    proa_call plain = {op, call->args, call->any & ~(uint32_t)PROA_T_NOT_DENSE};
    PROA_TRY(proa__dispatch(&plain));
    if (!rows || !(op->flags & PROA_OP_ROWS)) return PROA_OK;
    proa_tensor *out = *proa_field_tensor(&op->fields[op->n_in + op->n_attr], call->args);
    if (out->kind == PROA_ROWS) return PROA_OK; /* the op updated a SelectedRows in place */
    if (out->ndim != rows->ndim)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, NULL, "a number beside %s has more axes than it",
                             proa__tensor_text(rows));
    proa__rows_attach(out, rows);
    return PROA_OK;
}

proa_status proa__dispatch_host(proa_call *call)
{
    const proa_op *op = call->op;
    if (op->args_size > PROA_ARGS_MAX || op->metas_size > PROA_METAS_MAX)
        return proa__op_fail(PROA_ERR_INTERNAL, op, NULL, "has too large an args struct");
    _Alignas(16) char metas[PROA_METAS_MAX];
    if (op->flags & PROA_OP_VIEW) {
        proa_tensor **out = proa_field_tensor(&op->fields[op->n_in + op->n_attr], call->args);
        const proa_tensor *x = *proa_field_tensor(op->fields, call->args), *first;
        bool at_once = op->flags & PROA_OP_VIEW_FIRST && !*out;
        PROA_TRY(at_once ? check_first(op, call->args, &first) : proa__infer_call(call, metas));
        if (!*out) PROA_TRY(op->view(call->args, (const proa_meta *)(void *)metas));
        if (*out && (*out)->storage == x->storage) return PROA_OK;
        if (at_once) PROA_TRY(proa__infer_call(call, metas));
    } else {
        PROA_TRY(proa__infer_call(call, metas));
    }
    if (PROA__LIKELY(is_plain(call))) return launch_plain(call, (const proa_meta *)(void *)metas);
    return stage_operands(call, metas);
}

proa_status proa__dispatch(proa_call *call)
{
    const proa__thread *me = proa__thread_self;
    if (PROA__UNLIKELY(call->any & (PROA_T_SYMBOLIC | PROA_T_META | PROA_T_NOT_DENSE | PROA_T_BLOCKED)))
        return dispatch_unusual(call);
    if (PROA__UNLIKELY(proa__is_placed(call, me ? me->stream.device : PROA_CPU)))
        return proa__run_placed(call);
    return proa__dispatch_host(call);
}

void *proa_scratch(size_t bytes) { return proa__alloc(bytes ? bytes : 1); }
void proa_scratch_free(void *p) { proa__free(p); }
