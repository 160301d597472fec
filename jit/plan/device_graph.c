/* Device graphs (CUDA graphs) of a segment's steps: recorded when the steps meet the same memory addresses
 * for the second time, replayed from then on. A segment with a single step, or with one that sizes its
 * outputs by data or has no kernel on the device, runs step by step. May use core. */
#include "plan.h"

#include "core/blocked.h"
#include "core/device.h"
#include "core/run.h"

static _Thread_local bool recording_now; /* a nested segment is part of the recording under way */

bool proa__device_graph_recording(void) { return recording_now; }

static bool can_be_kept(const proa__segment *s)
{
    int n = 0;
    for (int32_t i = 0; i < s->n_steps; i++) {
        const proa__step *step = &s->steps[i];
        if (!step->op) continue;
        if (step->op->flags & PROA_OP_DATA_SHAPE || step->kernel == &proa__fallback_kernel) return false;
        n++;
    }
    return n > 1;
}

/* FNV-1a hash of the addresses of all bound handles. Anything else that the steps read belongs to the plan
 * and does not change. */
static uint64_t addresses_of(const proa__segment *s)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int32_t i = 0; i < s->n_bindings; i++) {
        const proa_tensor *t = s->bindings[i].handle;
        hash ^= (uint64_t)(uintptr_t)(t->flags & PROA_T_BLOCKED ? proa__memory(t) : t->data);
        hash *= 0x100000001b3u;
    }
    return hash;
}

static void drop(proa__recordings *r, int i)
{
    if (r->at[i].recording) r->device->record_free(r->device->context, r->at[i].recording);
    r->at[i].recording = NULL;
    r->at[i].addresses = 0;
}

void proa__recordings_free(proa__recordings *r)
{
    for (int i = 0; i < PROA__RECORDINGS; i++) drop(r, i);
}

/* Records the work that the steps queue, which does not run yet; NULL: the device could not record it, and
 * nothing has run. */
static void *record(const proa_device_table *d, proa__segment *s, proa__each_step each)
{
    if (d->record_begin(d->context) != PROA_OK) return NULL;
    recording_now = true;
    proa_status status = each(s, false);
    recording_now = false;
    void *made = d->record_end(d->context);
    if (status == PROA_OK || !made) return made;
    d->record_free(d->context, made);
    return NULL;
}

proa_status proa__run_device_graph(proa__segment *s, proa__each_step each)
{
    const proa_device_table *d = proa__device(proa__stream()->device);
    proa__recordings *r = &s->recordings;
    if (!r->device) {
        r->device = d;
        r->never = !d->record_begin || !can_be_kept(s);
    }
    if (r->never || r->device != d || recording_now) return each(s, false);
    uint64_t addresses = addresses_of(s);
    int i = 0;
    while (i < PROA__RECORDINGS && r->at[i].addresses != addresses) i++;
    if (i == PROA__RECORDINGS) { /* new addresses: not recorded, as kernels choose algorithms first */
        i = r->next++ % PROA__RECORDINGS;
        drop(r, i);
        r->at[i].addresses = addresses;
        return each(s, false);
    }
    if (!r->at[i].recording) {
        r->at[i].recording = record(d, s, each);
        if (!r->at[i].recording) {
            r->never = true;
            proa_clear_error(); /* an error that has another cause than the recording appears again */
            return each(s, false);
        }
    }
    return d->replay(d->context, r->at[i].recording);
}
