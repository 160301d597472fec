/* Binds tensor handles to arena memory before a run and unbinds them afterwards. One arena per segment
 * depth; grows on demand. May use core and ops. */
#include "executor.h"

#include "core/blocked.h"
#include "core/device.h"
#include "core/args_visit.h"

/* Binds a handle to `data` inside a storage; (NULL, NULL) unbinds it. */
static void point(const proa__binding *b, proa_storage *storage, char *data)
{
    if (!(b->handle->flags & PROA_T_BLOCKED)) {
        proa__point(b->handle, storage, data);
        return;
    }
    proa__window_point(b->handle->storage, NULL, data);
    b->handle->data = NULL;
}

void proa__binding_clear(const proa__binding *b) { point(b, NULL, NULL); }

/* Unbinds a segment's handles from the arena of one depth. */
static void leave_arena(proa__segment *s, int32_t depth)
{
    if (!s->generation) return;
    for (int32_t i = 0; i < s->n_bindings; i++) {
        const proa__buffer *b = s->bindings[i].buffer;
        if (b->place == PROA__IN_ARENA && b->depth == depth) proa__binding_clear(&s->bindings[i]);
    }
    s->generation = 0;
}

/* Unbinds from the arena of segments at `depth`, which is to be freed, the handles of all plans' segments of
 * that depth or deeper. */
static void leave_all(proa_executor *e, int32_t depth)
{
    for (int32_t i = 0; i < e->n_plans; i++) {
        proa__segment *root = e->plans[i].root;
        for (proa__segment *s = root; s;) { /* in depth-first order, without recursion */
            if (s->cursor < s->n_next) {
                s = s->next[s->cursor++];
                continue;
            }
            if (s->depth >= depth) leave_arena(s, depth);
            s->cursor = 0;
            s = s == root ? NULL : s->parent;
        }
    }
}

static proa_status grow_arena(proa_executor *e, int32_t depth, int64_t bytes)
{
    while (e->n_arenas <= depth) {
        PROA_TRY(proa__reserve(&e->arenas, e->n_arenas, &e->arenas_capacity, sizeof *e->arenas));
        e->arenas[e->n_arenas++] = (proa__arena){NULL, 0, 0};
    }
    proa__arena *a = &e->arenas[depth];
    if (depth == 0 && bytes < e->least) bytes = e->least;
    if (depth == 0 && e->inside) return PROA_OK;
    if (bytes <= a->bytes && a->storage && a->storage->device == proa__stream()->device) return PROA_OK;
    leave_all(e, depth);
    if (a->storage) proa__storage_release(a->storage);
    a->bytes = 0;
    a->storage = proa__storage_new((size_t)bytes, proa__stream()->device);
    if (!a->storage) return proa_error();
    a->bytes = bytes;
    a->generation++;
    return PROA_OK;
}

proa_storage *proa__executor_arena(const proa_executor *e, int32_t depth)
{
    return depth == 0 && e->inside ? e->inside : e->arenas[depth].storage;
}

/* True if t has memory for an output with this meta, in this format only. */
static bool takes_output(const proa_tensor *t, const proa_meta *meta, int format)
{
    bool fits = t->dtype == meta->dtype && t->ndim == meta->ndim &&
                proa__device_id(t) == proa__stream()->device &&
                !memcmp(t->shape, meta->shape, (size_t)t->ndim * sizeof *t->shape);
    if (!format) return fits && !(t->flags & PROA_T_BLOCKED);
    return fits && proa__format(t) == format && !t->storage->data;
}

proa_status proa__executor_hand_out(proa_executor *e, int32_t i, const proa_meta *meta, int format)
{
    if (e->outputs[i]) return PROA_OK;
    proa_tensor *t = e->into ? e->into[i] : NULL;
    e->outputs[i] = t && takes_output(t, meta, format) ? t : proa__tensor_new(meta);
    if (!e->outputs[i]) return proa_error();
    return format ? proa__block_output(e->outputs[i], format) : PROA_OK;
}

/* The tensor that the op before the cut has made for its output slot `index`. */
static proa_tensor *dynamic(const proa__segment *s, int32_t index)
{
    const proa__step *step = &s->parent->steps[s->parent->n_steps - 1];
    return *proa__out_slot(step->op, step->args, index, NULL);
}

proa_status proa__executor_point(proa_executor *e, proa__segment *s)
{
    PROA_TRY(grow_arena(e, s->depth, s->arena_bytes));
    uint64_t generation = 0; /* generations only grow, so their sum tells whether any has changed */
    for (int32_t d = 0; d <= s->depth; d++) generation += e->arenas[d].generation;
    bool same_arena = s->generation && s->generation == generation; /* 0: they point nowhere */
    for (int32_t i = 0; i < s->n_bindings; i++) {
        const proa__binding *b = &s->bindings[i];
        const proa_tensor *from = NULL;
        proa_storage *from_storage;
        switch (b->buffer->place) {
        case PROA__IN_FIXED: continue;
        case PROA__IN_ARENA:
            if (same_arena && !(b->handle->flags & PROA_T_BLOCKED)) continue;
            from_storage = proa__executor_arena(e, b->buffer->depth);
            point(b, from_storage, from_storage->data + b->buffer->offset + b->offset);
            continue;
        case PROA__IN_INPUT: from = e->inputs[b->buffer->index]; break;
        case PROA__IN_OUTPUT:
            PROA_TRY(proa__executor_hand_out(e, b->buffer->index, &b->buffer->meta, b->buffer->format));
            from = e->outputs[b->buffer->index];
            break;
        case PROA__IN_DYNAMIC: {
            const proa__segment *owner = s;
            while (owner->parent && (owner->first_op > b->buffer->first || !owner->parent->sized_by_data))
                owner = owner->parent;
            from = dynamic(owner, b->buffer->index);
            PROA_TRY(proa__plain(from));
            break;
        }
        }
        char *memory = b->buffer->format ? proa__memory(from) : from->data;
        point(b, from->storage, memory + b->offset);
    }
    s->generation = generation;
    return PROA_OK;
}

void proa__executor_let_go(proa_executor *e)
{
    bool passing = e->lends || e->inside;
    for (int32_t k = 0; k < e->n_path; k++) {
        proa__segment *s = e->path[k];
        if (passing) s->generation = 0;
        for (int32_t i = 0; i < s->n_bindings; i++) {
            proa__assign_buffers place = s->bindings[i].buffer->place;
            if (place != PROA__IN_FIXED && (place != PROA__IN_ARENA || passing))
                proa__binding_clear(&s->bindings[i]);
        }
        if (!s->sized_by_data) continue;
        proa__step *step = &s->steps[s->n_steps - 1];
        const proa_field *f = NULL;
        proa_tensor **slot;
        for (int64_t n = 0; (slot = proa__out_slot(step->op, step->args, n, &f)); n++)
            if (!(f->flags & PROA_FIELD_MUTATED) && !proa__slot_empty(*slot))
                *slot = NULL; /* NULL: the tensor belonged to the run's scope */
    }
    e->n_path = 0;
    for (int32_t d = 0; e->lends && d < e->n_arenas; d++) {
        if (e->arenas[d].storage) proa__storage_release(e->arenas[d].storage);
        e->arenas[d].storage = NULL;
        e->arenas[d].bytes = 0;
    }
}
