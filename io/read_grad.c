/* Reads gradient ops (T_grad) whose forward op T comes before them in the same block: records the ops that T
 * was read as on the tape, and captures the backward pass that their rules compute. May use jit, autograd,
 * core and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/program_read.h"

#include "autograd/record.h"
#include "core/args_visit.h"

#include <proa/autograd.h>
#include <proa/ops.h>

/* ---- one gradient ---------------------------------------------------------------------- */

typedef struct pairs {
    proa_tensors a, b; /* of equal length */
    int64_t capacity;
} pairs;

static proa_status add_pair(proa_wire_reader *r, pairs *p, proa_tensor *a, proa_tensor *b)
{
    if (p->a.count == p->capacity) {
        int64_t capacity = p->capacity ? p->capacity * 2 : 8;
        proa_tensor **x = proa__arena_array(&r->load->arena, (size_t)capacity, sizeof *x);
        proa_tensor **y = proa__arena_array(&r->load->arena, (size_t)capacity, sizeof *y);
        if (!x || !y) return proa_error();
        for (int64_t i = 0; i < p->a.count; i++) x[i] = p->a.at[i], y[i] = p->b.at[i];
        p->a.at = x;
        p->b.at = y;
        p->capacity = capacity;
    }
    p->a.at[p->a.count++] = a;
    p->b.at[p->b.count++] = b;
    return PROA_OK;
}

/* The handle of the variable bound to a name: the tensor that the args of the forward ops refer to. */
static proa_tensor *own_handle(proa_wire_reader *r, const char *slot, const char *name)
{
    proa_tensor *t = proa__name_find(r, slot, name);
    proa_var *v = t ? proa__var_of(r->level->block, t, NULL, slot) : NULL;
    return v ? v->handle : NULL;
}

/* The forward op's slot that a gradient slot "<S>@GRAD" belongs to. */
static const pb_slot *slot_behind(pb_slot *const *slots, size_t n, const char *grad)
{
    size_t k = strlen(grad);
    for (size_t i = 0; i < n; i++)
        if (strlen(slots[i]->parameter) + 5 == k && strncmp(slots[i]->parameter, grad, k - 5) == 0)
            return slots[i];
    return NULL;
}

/* Collects the forward op's outputs whose gradients are inputs of the gradient op, with those gradients. */
static proa_status collect_given(proa_wire_reader *r, const pb_op *of, pairs *to)
{
    for (size_t i = 0; i < r->desc->n_inputs; i++) {
        const pb_slot *g = r->desc->inputs[i];
        const pb_slot *s = proa__ends_with(g->parameter, "@GRAD")
                               ? slot_behind(of->outputs, of->n_outputs, g->parameter)
                               : NULL;
        for (size_t k = 0; s && k < g->n_arguments && k < s->n_arguments; k++) {
            if (proa__no_name(g->arguments[k])) continue;
            proa_tensor *out = own_handle(r, s->parameter, s->arguments[k]);
            proa_tensor *grad = out ? proa__name_find(r, g->parameter, g->arguments[k]) : NULL;
            if (!grad) return proa_error();
            PROA_TRY(add_pair(r, to, out, grad));
        }
    }
    return to->a.count ? PROA_OK : proa_fail(PROA_ERR_CORRUPT, "a gradient op without a gradient");
}

typedef struct wanted {
    pairs inputs; /* forward inputs (twice) */
    const char **names;
} wanted;

/* Collects the forward op's inputs whose gradients are outputs of the gradient op, with the gradients'
 * names. */
static proa_status collect_wanted(proa_wire_reader *r, const pb_op *of, wanted *to)
{
    size_t n = 0;
    for (size_t i = 0; i < r->desc->n_outputs; i++) n += r->desc->outputs[i]->n_arguments;
    to->names = proa__arena_array(&r->load->arena, n + 1, sizeof *to->names);
    if (!to->names) return proa_error();
    for (size_t i = 0; i < r->desc->n_outputs; i++) {
        const pb_slot *g = r->desc->outputs[i];
        const pb_slot *s = proa__ends_with(g->parameter, "@GRAD")
                               ? slot_behind(of->inputs, of->n_inputs, g->parameter)
                               : NULL;
        for (size_t k = 0; s && k < g->n_arguments && k < s->n_arguments; k++) {
            if (proa__no_name(g->arguments[k])) continue;
            proa_tensor *in = own_handle(r, s->parameter, s->arguments[k]);
            if (!in) return proa_error();
            to->names[to->inputs.a.count] = g->arguments[k];
            PROA_TRY(add_pair(r, &to->inputs, in, in));
        }
    }
    return PROA_OK;
}

static proa_status forget(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)f, (void)index, (void)context;
    proa_var *v = proa__slot_var(*slot);
    if (v) proa__forget_history(v->handle);
    return PROA_OK;
}

static void forget_span(const proa_block *b, int32_t from, int32_t to)
{
    for (int32_t i = from; i < to; i++) {
        proa__args_visit_reads(b->ops[i].op, b->ops[i].args, forget, NULL);
        proa__args_visit(b->ops[i].op, b->ops[i].args, PROA_OUT, forget, NULL);
    }
}

static proa_status differentiate(proa_wire_reader *r, int32_t from, int32_t to, const pairs *given,
                                 const wanted *w)
{
    const proa_block *b = r->level->block;
    const proa_tensors *in = &w->inputs.a;
    for (int64_t i = 0; i < in->count; i++) PROA_TRY(proa_set_stop_gradient(in->at[i], false));
    for (int32_t i = from; i < to; i++) PROA_TRY(proa__record_again(b->ops[i].op, b->ops[i].args));
    proa_tensors grads = proa_grad(given->a, *in, given->b, (proa_grad_opts){.allow_unused = true});
    PROA_TRY(proa_error());
    for (int64_t i = 0; i < grads.count; i++) {
        proa_tensor *g = grads.at[i];
        if (g == proa_none) g = proa_full_like(in->at[i], 0);
        if (!g) return proa_error();
        PROA_TRY(proa__name_bind(r, w->names[i], g));
    }
    return PROA_OK;
}

bool proa__has_forward(proa_wire_reader *r, size_t *at)
{
    return proa__forward_find(&r->level->forwards, r->desc, r->level->pb->ops, at);
}

proa_status proa__read_grad(proa_wire_reader *r, size_t at)
{
    pairs given = {0};
    wanted w = {0};
    const pb_op *of = r->level->pb->ops[at];
    PROA_TRY(collect_given(r, of, &given));
    PROA_TRY(collect_wanted(r, of, &w));
    if (w.inputs.a.count == 0) return PROA_OK;
    int32_t from = r->level->starts[at], to = r->level->starts[at + 1];
    proa_status status = differentiate(r, from, to, &given, &w);
    forget_span(r->level->block, from, to);
    return status;
}

#else
typedef int proa__no_read_grad; /* C wants a declaration in every file */
#endif
