/* Cache of the packed right operand of a kernel (kernels/prepacked_gemm.h): it is repacked if the tensor or
 * its version changes. float32, for kernel files; may use core, everything is static. */
#ifndef PROA_KERNELS_PREPACKED_OPERAND_H
#define PROA_KERNELS_PREPACKED_OPERAND_H

#include "kernels/page_release.h"
#include "kernels/prepacked_gemm.h"

/* A kernel's state: what was packed and from where. It belongs to one thread at a time. */
typedef struct packed_state {
    float *data;
    proa_storage *storage; /* retained, so that its address is not reused */
    const char *from;
    uint32_t version;
} packed_state;

static inline void packed_clear(packed_state *s)
{
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

typedef struct packed_packing {
    const float *from;
    gemm_strides strides;
    int64_t k, n;
    float *to;
} packed_packing;

static inline void packed_pack_range(int64_t begin, int64_t end, void *context)
{
    const packed_packing *p = context;
    for (int64_t j = begin; j < end; j++) packed_pack_panel(p->from, p->strides, p->k, p->n, j, p->to);
}

/* The k × n operand t in packed form; packs it unless the state's copy is up to date. NULL: no memory. */
static inline const float *packed_operand(packed_state *s, const proa_tensor *t, gemm_strides strides,
                                          int64_t k, int64_t n)
{
    if (packed_is_of(s, t)) return s->data;
    packed_packing p = {(const float *)(void *)t->data, strides, k, n,
                        packed_renew(s, t, packed_floats(k, n))};
    if (!p.to) return NULL;
    proa__parallel(packed_panels(n), 1 + 65536 / (k * PACKED_NR + 1), packed_pack_range, &p);
    packed_forget(t);
    return p.to;
}

#endif
