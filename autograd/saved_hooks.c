/* Hooks of saved tensors (proa_set_saved_hooks): packing when a call is recorded, unpacking when its rule
 * runs. May use core. */
#include "autograd/saved_hooks.h"

#include "core/args.h"

_Thread_local proa_saved_hooks proa__saved_hooks __attribute__((tls_model("initial-exec")));

proa_saved_hooks proa_set_saved_hooks(proa_saved_hooks hooks)
{
    proa_saved_hooks before = proa__saved_hooks;
    proa__saved_hooks = hooks;
    return before;
}

bool proa__pack_saved(proa_node *node, proa_tensor *t, proa_tensor **kept)
{
    *kept = NULL;
    struct proa_packed *p = proa__calloc(sizeof *p);
    if (!p) return false;
    p->hooks = proa__saved_hooks;
    proa__saved_hooks = (proa_saved_hooks){0}; /* the hook's own ops save as usual */
    bool recording = proa_set_recording(false);
    p->value = p->hooks.pack(t, p->hooks.context);
    proa_set_recording(recording);
    proa__saved_hooks = p->hooks;
    if (!p->value || !proa__args_keep_meta(t, kept)) {
        if (p->value) p->hooks.release(p->value);
        proa__free(p);
        if (!proa_error()) proa_fail(PROA_ERR_BAD_STATE, "a pack hook returned NULL");
        return false;
    }
    p->slot = kept;
    p->next = node->packed;
    node->packed = p;
    return true;
}

static proa_status check_unpacked(const proa_tensor *made, const proa_tensor *saved)
{
    if (!made)
        return proa_error() ? proa_error() : proa_fail(PROA_ERR_BAD_STATE, "an unpack hook returned NULL");
    bool same = made->dtype == saved->dtype && made->ndim == saved->ndim &&
                !memcmp(made->shape, saved->shape, (size_t)made->ndim * sizeof *made->shape);
    if (same) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                     "an unpack hook returned %s for a saved %s; expected the same shape and dtype",
                     proa__tensor_text(made), proa__tensor_text(saved));
}

proa_status proa__unpack_saved(proa_node *node)
{
    for (struct proa_packed *p = node->packed; p; p = p->next) {
        proa_tensor *made = p->hooks.unpack(p->value);
        PROA_TRY(check_unpacked(made, *p->slot));
        proa_keep(made);
        proa_release(*p->slot);
        *p->slot = made;
    }
    return PROA_OK;
}

void proa__repack_saved(proa_node *node)
{
    for (struct proa_packed *p = node->packed; p; p = p->next) {
        if ((*p->slot)->flags & PROA_T_META) continue;
        proa_tensor *bare = NULL;
        if (!proa__args_keep_meta(*p->slot, &bare)) return; /* keeps the tensor: right, but not packed */
        proa_release(*p->slot);
        *p->slot = bare;
    }
}

void proa__release_packed(proa_node *node)
{
    while (node->packed) {
        struct proa_packed *p = node->packed;
        node->packed = p->next;
        p->hooks.release(p->value);
        proa__free(p);
    }
}
