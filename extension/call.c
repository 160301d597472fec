/* Calls of custom ops: hands inputs and attributes to the library, takes its results, infers outputs, and
 * calls the gradient op. May use core. */
#include "extension/extension.h"

#include "core/copy.h"
#include "core/error.h"
#include "core/run.h"

static const proa_field *output_field(const proa_extension_handle *h, int32_t i)
{
    return &h->op.fields[h->op.n_in + h->op.n_attr + i];
}

/* ---- inputs and attributes ------------------------------------------------------------- */

proa_tensors proa__extension_input(const proa_extension_handle *h, const void *args, int32_t index)
{
    for (int32_t i = 0; i < h->op.n_out; i++) {
        if (h->description->outputs[i].in_place != index) continue;
        const proa_tensors out = proa__field_all(output_field(h, i), args);
        if (out.count && out.at[0]) return out; /* which begin has given the input's value */
    }
    return proa__field_all(&h->op.fields[index], args);
}

void proa__extension_attribute(const proa_extension_handle *h, const void *args, int32_t index,
                               proa_extension_value *value)
{
    const proa_field *f = &h->op.fields[h->op.n_in + index];
    const void *at = proa_field_at(f, args);
    *value = (proa_extension_value){0};
    switch ((proa_field_kind)f->kind) {
    case PROA_FIELD_BOOL: value->i = *(const bool *)at; break;
    case PROA_FIELD_INT: value->i = *(const int64_t *)at; break;
    case PROA_FIELD_FLOAT: value->f = *(const double *)at; break;
    case PROA_FIELD_STRING: value->s = *(const char *const *)at; break;
    case PROA_FIELD_INTS:
        value->count = ((const proa_ints *)at)->count;
        value->ints = ((const proa_ints *)at)->at;
        break;
    case PROA_FIELD_FLOATS:
        value->count = ((const proa_floats *)at)->count;
        value->floats = ((const proa_floats *)at)->at;
        break;
    case PROA_FIELD_STRINGS:
        value->count = ((const proa_strings *)at)->count;
        value->strings = ((const proa_strings *)at)->at;
        break;
    default: break;
    }
}

/* ---- running --------------------------------------------------------------------------- */

/* State that begin changes: ops that the library calls are neither recorded, captured nor converted. */
typedef struct frame {
    proa_scope scope;
    bool convert, record, capture;
} frame;
_Static_assert(sizeof(frame) <= sizeof(proa_extension_frame), "a frame fits into the library's memory");

proa_status proa__extension_begin(const proa_extension_handle *h, const void *args,
                                  proa_extension_frame *memory)
{
    const frame f = {proa_scope_enter(), proa_door_set(PROA_DOOR_CONVERT, false),
                     proa_door_set(PROA_DOOR_RECORD, false), proa_door_set(PROA_DOOR_CAPTURE, false)};
    memcpy(memory, &f, sizeof f);
    for (int32_t i = 0; i < h->op.n_out; i++) {
        int32_t from = h->description->outputs[i].in_place;
        if (from < 0) continue;
        const proa_tensors out = proa__field_all(output_field(h, i), args);
        const proa_tensors in = proa__field_all(&h->op.fields[from], args);
        for (int64_t k = 0; k < out.count && k < in.count; k++)
            if (!proa__slot_empty(in.at[k]) && !proa__slot_empty(out.at[k]) &&
                out.at[k]->data != in.at[k]->data)
                PROA_TRY(proa__copy(out.at[k], in.at[k]));
    }
    return PROA_OK;
}

/* True if somebody beside the library's list of results holds the tensor or its memory: an input that is
 * returned, a result that is returned twice, a tensor that the library keeps. */
static bool is_shared(proa_tensor *t)
{
    return atomic_load_explicit(&t->refs, memory_order_relaxed) > 1 ||
           atomic_load_explicit(&t->storage->refs, memory_order_relaxed) > 1;
}

/* Gives a new output the memory of a result, or of a copy if that is shared. */
static proa_status hand_over(proa_tensor *out, proa_tensor *result)
{
    proa_tensor *own = result;
    if (is_shared(result)) {
        proa_meta meta = proa_meta_of(result);
        own = proa__tensor_new(&meta);
        if (!own || proa__copy(own, result) != PROA_OK) return proa_error();
    }
    proa__tensor_assign(out, own);
    return PROA_OK;
}

/* Puts a result into an output: one that is new takes over its memory, one that a program gave gets a copy.
 * */
static proa_status store(const proa_extension_handle *h, const proa_field *f, proa_tensor *out,
                         proa_tensor *result, bool fresh)
{
    if (proa__slot_empty(out)) return PROA_OK; /* nothing in the program reads it */
    if (fresh) return hand_over(out, result);
    bool same = out->ndim == result->ndim && out->dtype == result->dtype;
    for (int d = 0; same && d < out->ndim; d++) same = out->shape[d] == result->shape[d];
    if (same) return proa__copy(out, result);
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, &h->op, f->name,
                         "was returned as %s, but the op infers %s; mend SetInferShapeFn or SetInferDtypeFn",
                         proa__tensor_text(result), proa__tensor_text(out));
}

static proa_status take_results(const proa_extension_handle *h, const void *args, const proa_tensors *results,
                                bool fresh)
{
    int64_t next = 0, wanted = 0;
    for (int32_t i = 0; i < h->op.n_out; i++)
        if (h->description->outputs[i].in_place < 0)
            wanted += proa__field_all(output_field(h, i), args).count;
    if (results->count != wanted)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, &h->op, NULL,
                             "returned %lld tensors, but has %lld outputs (in-place ones not counted)",
                             (long long)results->count, (long long)wanted);
    for (int32_t i = 0; i < h->op.n_out; i++) {
        const proa_field *f = output_field(h, i);
        if (h->description->outputs[i].in_place >= 0) continue;
        const proa_tensors out = proa__field_all(f, args);
        for (int64_t k = 0; k < out.count; k++) PROA_TRY(store(h, f, out.at[k], results->at[next++], fresh));
    }
    return PROA_OK;
}

proa_status proa__extension_end(const proa_extension_handle *h, const void *args, const proa_run *run,
                                const proa_tensors *results, proa_extension_frame *memory)
{
    frame f;
    memcpy(&f, memory, sizeof f);
    if (results && proa_error() == PROA_OK) take_results(h, args, results, run->fresh);
    proa_door_set(PROA_DOOR_CONVERT, f.convert);
    proa_door_set(PROA_DOOR_RECORD, f.record);
    proa_door_set(PROA_DOOR_CAPTURE, f.capture);
    proa_scope_leave(&f.scope);
    return proa_error();
}

/* ---- inference ------------------------------------------------------------------------- */

/* The input whose meta an output has where the library infers none: the one that it shares memory with, the
 * only one of an op with one output, or the variable whose gradient it is. Where the gradient op does not
 * read that variable, the gradient of a result that has the variable's meta. NULL: none of these. */
static const proa_field *model_of(const proa_extension_handle *h, int32_t output)
{
    const proa_extension_op *d = h->description, *forward = h->forward;
    const proa_extension_slot *out = &d->outputs[output];
    if (out->in_place >= 0) return &h->op.fields[out->in_place];
    if (d->n_inputs == 1 && d->n_outputs == 1) return h->op.fields;
    int32_t of = proa__extension_input_of(d, out->name);
    if (of >= 0) return &h->op.fields[of];
    if (!forward || forward->infers || forward->n_inputs != 1 || forward->n_outputs != 1) return NULL;
    for (int32_t i = 0; i < d->n_inputs; i++)
        if (proa__extension_is_gradient_of(d->inputs[i].name, forward->outputs[0].name))
            return &h->op.fields[i];
    return NULL;
}

static proa_status no_model(const proa_extension_handle *h, int32_t output, const char *what,
                            const char *setter)
{
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, &h->op, output_field(h, output)->name,
                         "has no %s: only an op with one input and one output needs no %s", what, setter);
}

static proa_status set_meta(const proa_extension_handle *h, const proa_field *f, proa_meta *meta,
                            const proa_tensor *model, const proa_ints *shape, const proa_dtype *dtype)
{
    if (model == proa_none) { /* of an absent input */
        meta->ndim = -1;
        return PROA_OK;
    }
    if (shape && (shape->count > PROA_MAX_DIMS || shape->count < 0))
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, &h->op, f->name, "has %lld dims, more than %d",
                             (long long)shape->count, PROA_MAX_DIMS);
    meta->ndim = (int8_t)(shape ? shape->count : model->ndim);
    for (int d = 0; d < meta->ndim; d++) meta->shape[d] = shape ? shape->at[d] : model->shape[d];
    meta->dtype = dtype ? *dtype : (proa_dtype)model->dtype;
    if (meta->dtype > PROA_NODTYPE && meta->dtype < PROA_DTYPE_COUNT) return PROA_OK;
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, &h->op, f->name, "has the unknown dtype %d",
                         (int)meta->dtype);
}

/* The number of entries that an output has. */
static proa_status count_entries(const proa_extension_handle *h, int32_t output, const proa_tensors *models,
                                 const proa_extension_metas *inferred, int64_t *count)
{
    *count = 1;
    if (!proa__makes_list(output_field(h, output))) return PROA_OK;
    bool own = h->op.n_out == 1 && (inferred->shapes || inferred->dtypes);
    *count = own ? inferred->count : models->count;
    return *count >= 0 ? PROA_OK : no_model(h, output, "length", "SetInferShapeFn");
}

static proa_status infer_output(const proa_extension_handle *h, const void *args, int32_t i,
                                proa__meta_ref to, const proa_extension_metas *inferred, int64_t *next)
{
    const proa_field *f = output_field(h, i), *model = model_of(h, i);
    const bool list = proa__makes_list(f), in_place = h->description->outputs[i].in_place >= 0;
    const proa_tensors models = model ? proa__field_all(model, args) : (proa_tensors){-1, NULL};
    const proa_ints *shapes = in_place ? NULL : inferred->shapes;
    const proa_dtype *dtypes = in_place ? NULL : inferred->dtypes;
    if (!shapes && !model) return no_model(h, i, "shape", "SetInferShapeFn");
    if (!dtypes && !model) return no_model(h, i, "dtype", "SetInferDtypeFn");
    int64_t n;
    PROA_TRY(count_entries(h, i, &models, inferred, &n));
    if (list) PROA_TRY(proa_metas_resize(to.list, n));
    for (int64_t k = 0; k < n; k++) {
        int64_t at = in_place ? 0 : (*next)++;
        if ((shapes || dtypes) && at >= inferred->count)
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, &h->op, f->name,
                                 "is output %lld, but the inference gave %lld", (long long)at,
                                 (long long)inferred->count);
        const proa_tensor *like = shapes && dtypes   ? NULL
                                  : models.count > 0 ? models.at[k < models.count ? k : 0]
                                                     : NULL;
        if (!like && !(shapes && dtypes)) return no_model(h, i, "shape", "SetInferShapeFn");
        PROA_TRY(set_meta(h, f, list ? &to.list->at[k] : to.one, like, shapes ? &shapes[at] : NULL,
                          dtypes ? &dtypes[at] : NULL));
    }
    return PROA_OK;
}

proa_status proa__extension_infer(const proa_extension_handle *h, const void *args, void *metas,
                                  const proa_extension_metas *inferred)
{
    proa__meta_ref to = proa__meta_first(metas);
    int64_t next = 0;
    for (int32_t i = 0; i < h->op.n_out; i++) {
        PROA_TRY(infer_output(h, args, i, to, inferred, &next));
        to = proa__meta_next(to, output_field(h, i));
    }
    if ((inferred->shapes || inferred->dtypes) && next != inferred->count)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, &h->op, NULL,
                             "has %lld outputs that are not in place, but its inference gave %lld",
                             (long long)next, (long long)inferred->count);
    return PROA_OK;
}

/* ---- gradients ------------------------------------------------------------------------- */

static void fill_gradient_call(const proa_extension_handle *h, const void *args, const void *grads,
                               void *call)
{
    const proa_extension_handle *g = h->gradient;
    for (int32_t i = 0; i < g->op.n_in; i++) {
        const proa__origin *from = &h->origins[i];
        const proa_field *f =
            from->source == PROA__FROM_INPUT ? &h->op.fields[from->index] : output_field(h, from->index);
        const void *at = from->source == PROA__FROM_GRADIENT ? (const char *)grads + f->grad_offset
                                                             : proa_field_at(f, args);
        bool list = proa__makes_list(f);
        memcpy(proa_field_at(&g->op.fields[i], call), at,
               list ? sizeof(proa_tensors) : sizeof(proa_tensor *));
    }
    for (int32_t i = 0; i < g->op.n_attr; i++) {
        const proa_field *to = &g->op.fields[g->op.n_in + i], *next = to + 1; /* an output follows the last */
        memcpy(proa_field_at(to, call), proa_field_at(&h->op.fields[h->op.n_in + h->attr_origins[i]], args),
               (size_t)(next->offset - to->offset));
    }
}

proa_status proa__extension_differentiate(const proa_extension_handle *h, const void *args, void *grads)
{
    const proa_extension_handle *g = h->gradient;
    if (g->op.args_size > PROA_ARGS_MAX)
        return proa__op_fail(PROA_ERR_INTERNAL, &g->op, NULL, "has too large an args struct");
    _Alignas(16) char call[PROA_ARGS_MAX] = {0};
    fill_gradient_call(h, args, grads, call);
    PROA_TRY(proa_call_op(&g->op, call));
    for (int32_t i = 0; i < g->op.n_out; i++) {
        const proa_field *f = &h->op.fields[h->gradient_of[i]], *out = output_field(g, i);
        if (!*(const bool *)((const char *)grads + f->want_offset)) continue;
        proa_tensors made = proa__field_all(out, call);
        void *at = (char *)grads + f->grad_offset;
        proa_tensors *list = proa__makes_list(f) ? at : NULL;
        if (list && made.count != list->count)
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, &g->op, out->name,
                                 "has %lld entries, but there are %lld inputs", (long long)made.count,
                                 (long long)list->count);
        if (list && made.count) memcpy(list->at, made.at, (size_t)made.count * sizeof *made.at);
        if (!list) *(proa_tensor **)at = made.count ? made.at[0] : NULL;
    }
    return PROA_OK;
}
