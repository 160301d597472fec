/* Elementwise ops on blocked tensors: where an input is blocked and the others have its shape or one element,
 * the kernel runs over the blocked memory as if it were a vector, and the result gets that format. Inputs of
 * that shape in another layout are converted first. run.c calls this for ops with PROA_OP_ELEMENTWISE. Uses
 * blocked.c. */
#include "core/args_visit.h"
#include "core/blocked.h"
#include "core/device.h"
#include "core/run.h"
#include "core/thread.h"

enum { FLAT_MAX = 6 };

typedef struct flat_call {
    const proa_op *op;
    int format;
    const proa_tensor *like;         /* an input that is stored in the call's format */
    proa_tensor at[FLAT_MAX + 1];    /* the handles that the kernel sees; they own nothing */
    proa_storage *scratch[FLAT_MAX]; /* operands brought into the format for this call */
} flat_call;

static bool same_shape(const proa_tensor *a, const proa_tensor *b)
{
    return a->ndim == b->ndim && !memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape);
}

/* Sets c->like to the first blocked input and c->format to its format; false: the call is not eligible. */
static bool look(flat_call *c, const void *args)
{
    const proa_op *op = c->op;
    if (op->n_out != 1 || op->n_in > FLAT_MAX || op->flags & PROA_OP_MUTATES) return false;
    for (const proa_field *f = op->fields; f < op->fields + op->n_in; f++) {
        proa_tensor **one = proa__field_one(f, args);
        if (!one) return false;
        const proa_tensor *t = *one;
        if (!c->like && t != proa_none && proa__format(t)) c->like = t, c->format = proa__format(t);
    }
    if (!c->like) return false;
    for (const proa_field *f = op->fields; f < op->fields + op->n_in; f++) {
        const proa_tensor *t = *proa_field_tensor(f, args);
        if (t == proa_none) continue;
        bool number = t->numel == 1 && t->ndim <= c->like->ndim;
        bool alike = same_shape(t, c->like) && !(t->flags & PROA_T_STRIDED);
        if (!number && !alike) return false;
    }
    return true;
}

/* A rank-1 handle of n elements at `data`, which is memory of the storage; it owns nothing. */
static proa_tensor row(proa_dtype dtype, char *data, int64_t n, proa_storage *storage)
{
    int64_t item = (int64_t)proa__dtype_bytes((unsigned)dtype);
    return (proa_tensor){.refs = 1,
                         .kind = PROA_DENSE,
                         .dtype = (uint8_t)dtype,
                         .ndim = 1,
                         .numel = n,
                         .shape = {n},
                         .strides = {item},
                         .flags = storage->device == PROA_CPU ? 0 : PROA_T_DEVICE,
                         .storage = storage,
                         .data = data};
}

/* Makes c->at[i] the operand in the call's format, as a vector; an operand of another format is converted
 * into scratch. */
static proa_status flatten(flat_call *c, int i, const proa_tensor *t, int64_t n)
{
    proa_dtype dtype = (proa_dtype)t->dtype;
    if (t->numel == 1 && c->like->numel != 1) {
        PROA_TRY(proa__plain(t));
        c->at[i] = row(dtype, t->data, 1, t->storage);
        return PROA_OK;
    }
    if (proa__format(t) == c->format) {
        c->at[i] = row(dtype, proa__blocked_data(t), n, t->storage);
        return PROA_OK;
    }
    proa_storage *to = proa__storage_new((size_t)n * proa__dtype_bytes(t->dtype), t->storage->device);
    if (!to) return proa_error();
    c->scratch[i] = to;
    c->at[i] = row(dtype, to->data, n, to);
    return proa__convert_blocked(t, proa__format(t), proa__memory(t), c->format, to->data);
}

/* True if the output can be stored in the call's format: `out` is NULL, so that this call makes it, or it is
 * the caller's and stored in that format only. */
static bool output_suits(const flat_call *c, const proa_tensor *out, const proa_meta *meta)
{
    proa_tensor like = proa__shallow_copy(c->like);
    like.dtype = (uint8_t)meta->dtype;
    if (meta->ndim != like.ndim ||
        memcmp(meta->shape, like.shape, (size_t)like.ndim * sizeof *like.shape) != 0)
        return false;
    if (out)
        return proa__format(out) == c->format && !out->storage->data && same_shape(out, c->like) &&
               out->dtype == meta->dtype;
    return proa__format_bytes(&like, c->format) > 0;
}

static proa_status run(flat_call *c, void *args, const proa_meta *meta)
{
    const proa_op *op = c->op;
    const proa_field *f_out = &op->fields[op->n_in + op->n_attr];
    proa_tensor **out = proa_field_tensor(f_out, args), *made = NULL;
    int64_t n = (int64_t)(proa__blocked_bytes(c->like) / proa__dtype_bytes(c->like->dtype));
    _Alignas(16) char shadow[PROA_ARGS_MAX];
    memcpy(shadow, args, op->args_size);
    for (int i = 0; i < op->n_in; i++) {
        proa_tensor **t = proa_field_tensor(&op->fields[i], shadow);
        if (*t == proa_none) continue;
        PROA_TRY(flatten(c, i, *t, n));
        *t = &c->at[i];
    }
    if (!*out) {
        made = proa__tensor_new(meta);
        if (!made) return proa_error();
        proa_status status = proa__block_output(made, c->format);
        if (status != PROA_OK) return status;
        *out = made;
    } else {
        proa__bump_version(*out);
    }
    c->at[op->n_in] = row(meta->dtype, proa__blocked_data(*out), n, (*out)->storage);
    *proa_field_tensor(f_out, shadow) = &c->at[op->n_in];
    proa_status status = proa__run_kernel(op, shadow, 0, false);
    if (status == PROA_OK) {
        if ((*out)->storage->padded) (void)proa__zero_padding(*out);
        return PROA_OK;
    }
    if (made) {
        proa_drop(made);
        *out = NULL;
    }
    return status;
}

proa_status proa__run_flat(proa_call *call, const proa_meta *meta, bool *done)
{
    flat_call c = {.op = call->op};
    *done = false;
    proa_tensor *out = *proa_field_tensor(&call->op->fields[call->op->n_in + call->op->n_attr], call->args);
    if (!look(&c, call->args) || !output_suits(&c, out, meta)) return PROA_OK;
    if (c.like->storage->padded && !proa__channel_block(c.like)) return PROA_OK;
    *done = true;
    proa_status status = run(&c, call->args, meta);
    for (int i = 0; i < FLAT_MAX; i++)
        if (c.scratch[i]) proa__storage_release(c.scratch[i]);
    return status;
}
