/* Packed constants of kernels: right operands of prepacked GEMM (kernels/prepacked_gemm.h), and forms that a
 * kernel fills by itself. Both are packed again if the tensor or its version changes. float32, for kernel
 * files; may use core, everything is static. */
#ifndef PROA_KERNELS_PREPACKED_OPERAND_H
#define PROA_KERNELS_PREPACKED_OPERAND_H

#include "core/deferred.h"
#include "core/kernel_traits.h"
#include "kernels/page_release.h"
#include "kernels/prepacked_gemm.h"

/* A kernel's state: what was packed and from where. It belongs to one thread at a time. */
typedef struct packed_state {
    proa__packed_operand shared; /* packed_operand's */
    float *data;                 /* packed_renew's, and what it was packed from */
    proa_storage *storage;       /* retained, so that its address is not reused */
    const char *from;
    uint32_t version;
} packed_state;

static inline void packed_clear(packed_state *s)
{
    proa__packed_clear(&s->shared);
    if (s->storage) proa__storage_release(s->storage);
    proa__free(s->data);
}

static inline void packed_release(void *state)
{
    if (!state) return;
    packed_clear(state);
    proa__free(state);
}

static inline proa_status packed_prepare(void **state)
{
    *state = proa__calloc(sizeof(packed_state));
    return *state ? PROA_OK : proa_error();
}

static inline bool packed_is_of(const packed_state *s, const proa_tensor *t)
{
    return s->data && s->storage == t->storage && s->from == t->data && s->version == proa__version(t);
}

/* Called after t was packed: if t is in a mapped file, releases its pages until they are read again. */
static inline void packed_forget(const proa_tensor *t)
{
    proa__release_pages(t->data, (size_t)t->numel * sizeof(float));
}

/* Allocates memory for an operand packed from t; NULL: no memory. */
static inline float *packed_renew(packed_state *s, const proa_tensor *t, int64_t floats)
{
    packed_clear(s);
    s->storage = NULL;
    s->data = proa__alloc((size_t)floats * sizeof(float));
    if (!s->data) return NULL;
    s->storage = t->storage;
    if (t->storage) atomic_fetch_add_explicit(&t->storage->refs, 1, memory_order_relaxed);
    s->from = t->data;
    s->version = proa__version(t);
    return s->data;
}

/* The geometry of a packed right operand, k × n elements at these strides. */
typedef struct packed_how {
    int64_t k, n;
    gemm_strides strides;
} packed_how;

typedef struct packed_move {
    const packed_how *how;
    float *elements, *packed;
} packed_move;

static inline void packed_pack_range(int64_t begin, int64_t end, void *context)
{
    const packed_move *m = context;
    for (int64_t j = begin; j < end; j++)
        packed_pack_panel(m->elements, m->how->strides, m->how->k, m->how->n, j, m->packed);
}

static inline void packed_unpack_range(int64_t begin, int64_t end, void *context)
{
    const packed_move *m = context;
    for (int64_t j = begin; j < end; j++)
        packed_unpack_panel(m->packed, m->how->strides, m->how->k, m->how->n, j, m->elements);
}

static inline void packed_each_panel(packed_move *m, void (*range)(int64_t, int64_t, void *))
{
    proa__parallel(packed_panels(m->how->n), 1 + 65536 / (m->how->k * PACKED_NR + 1), range, m);
}

static inline proa_status packed_pack(void *context, const void *how, const void *elements, void *packed)
{
    (void)context;
    packed_move m = {how, (float *)(uintptr_t)elements, packed};
    packed_each_panel(&m, packed_pack_range);
    return PROA_OK;
}

static inline proa_status packed_unpack(const void *how, const void *packed, void *elements)
{
    packed_move m = {how, elements, (float *)(uintptr_t)packed};
    packed_each_panel(&m, packed_unpack_range);
    return PROA_OK;
}

/* The k × n operand t in packed form, which plans and predictors share; t may be unread. Packs it unless the
 * state's form is up to date. NULL: an error, most likely no memory. */
static inline const float *packed_operand(packed_state *s, const proa_tensor *t, gemm_strides strides,
                                          int64_t k, int64_t n)
{
    if (proa__packed_is_of(&s->shared, t)) return s->shared.form->data;
    const packed_how how = {k, n, strides};
    const proa__packing packing = {.bytes = (size_t)packed_floats(k, n) * sizeof(float),
                                   .how = &how,
                                   .how_bytes = sizeof how,
                                   .pack = packed_pack,
                                   .unpack = packed_unpack};
    const float *data = proa__packed_renew(&s->shared, t, &packing);
    if (data && !(t->flags & PROA_T_BLOCKED)) packed_forget(t);
    return data;
}

#endif
