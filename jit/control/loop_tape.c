/* Writes and reads the tape of a loop's iterations, which its backward needs; see control.h. May use core. */
#include "control.h"

#include "core/device.h"

typedef struct head {
    int64_t dtype, ndim, shape[PROA_MAX_DIMS];
} head;

enum { ALIGN = 64 };

static size_t aligned(size_t n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }

static size_t bytes_of(const proa_tensor *t)
{
    return (size_t)t->numel * proa_dtype_size((proa_dtype)t->dtype);
}

static proa_status reserve(proa__loop_tape *s, size_t more)
{
    if (s->capacity - s->used >= more && s->bytes) return PROA_OK;
    size_t capacity = (s->used + more) * 2;
    char *grown = proa__realloc(s->bytes, capacity);
    if (!grown) return proa_error();
    s->bytes = grown;
    s->capacity = capacity;
    return PROA_OK;
}

static proa_status put(proa__loop_tape *s, const void *data, size_t n)
{
    PROA_TRY(reserve(s, aligned(n)));
    if (n) memcpy(s->bytes + s->used, data, n);
    memset(s->bytes + s->used + n, 0, aligned(n) - n);
    s->used += aligned(n);
    return PROA_OK;
}

proa_status proa__loop_tape_add(proa__loop_tape *s, proa_tensors vars)
{
    PROA_TRY(proa__reserve(&s->offsets, s->n, &s->offsets_capacity, sizeof *s->offsets));
    s->offsets[s->n++] = (int64_t)s->used;
    proa_rng_state rng = proa_rng_get();
    PROA_TRY(put(s, &rng, sizeof rng));
    for (int64_t i = 0; i < vars.count; i++) {
        const proa_tensor *t = vars.at[i];
        head h = {.dtype = t->dtype, .ndim = t->ndim};
        for (int d = 0; d < t->ndim; d++) h.shape[d] = t->shape[d];
        PROA_TRY(put(s, &h, sizeof h));
        PROA_TRY(reserve(s, aligned(bytes_of(t))));
        PROA_TRY(proa_copy_out(t, s->bytes + s->used, bytes_of(t)));
        s->used += aligned(bytes_of(t));
    }
    return PROA_OK;
}

proa_tensor *proa__loop_tape_finish(const proa__loop_tape *s)
{
    size_t table = (size_t)(s->n + 1) * sizeof(int64_t);
    proa_meta meta = {.dtype = PROA_U8, .ndim = 1, .shape = {(int64_t)(s->used + table)}};
    proa_tensor *t = proa__tensor_new(&meta);
    if (!t) return NULL;
    int64_t n = s->n;
    proa_tensor part = proa__shallow_copy(t); /* advances along the tape */
    proa_status status = proa__put(&part, s->bytes, s->used);
    part.data += s->used;
    if (status == PROA_OK) status = proa__put(&part, s->offsets, (size_t)n * sizeof n);
    part.data += (size_t)n * sizeof n;
    if (status == PROA_OK) status = proa__put(&part, &n, sizeof n);
    return status == PROA_OK ? t : NULL;
}

void proa__loop_tape_free(proa__loop_tape *s)
{
    proa__free(s->bytes);
    proa__free(s->offsets);
}

int64_t proa__loop_tape_count(const proa_tensor *record)
{
    int64_t n;
    memcpy(&n, record->data + record->numel - (int64_t)sizeof n, sizeof n);
    return n;
}

proa_status proa__loop_tape_get(const proa_tensor *record, int64_t i, int64_t n_vars, proa_tensors *vars,
                                proa_rng_state *rng)
{
    int64_t n = proa__loop_tape_count(record), at;
    memcpy(&at, record->data + record->numel - (n + 1 - i) * (int64_t)sizeof n, sizeof at);
    const char *from = record->data + at;
    memcpy(rng, from, sizeof *rng);
    from += aligned(sizeof *rng);
    *vars = (proa_tensors){0, proa_scope_alloc(((size_t)n_vars + 1) * sizeof *vars->at)};
    if (!vars->at) return proa_error();
    for (; vars->count < n_vars; vars->count++) {
        head h;
        memcpy(&h, from, sizeof h);
        from += aligned(sizeof h);
        proa_meta meta = {.dtype = (proa_dtype)h.dtype, .ndim = (int8_t)h.ndim};
        for (int d = 0; d < meta.ndim; d++) meta.shape[d] = h.shape[d];
        proa_tensor *t = proa__tensor_new(&meta);
        if (!t) return proa_error();
        PROA_TRY(proa__put(t, from, bytes_of(t)));
        from += aligned(bytes_of(t));
        vars->at[vars->count] = t;
    }
    return PROA_OK;
}
