/* Runs one communication on tensors (proa_message): checks it, and hands it to the devices' communicators, or
 * copies tensors that are strided or on a device to contiguous host memory, calls the group's engine, and
 * copies results back. While the profiler records, a call is an interval of its thread. May use core and
 * profile. */
#include "core/blocked.h"
#include "core/copy.h"
#include "core/device.h"
#include "core/internal.h"
#include "dist/devices.h"
#include "dist/task.h"

#include <proa/profile.h>

static const char *const names[PROA_MESSAGE_KINDS] = {"all_reduce", "reduce",  "reduce_scatter", "broadcast",
                                                      "all_gather", "scatter", "all_to_all",     "send",
                                                      "recv",       "barrier"};

static bool uses_in(proa_message_kind k)
{
    return k == PROA_MESSAGE_REDUCE_SCATTER || k == PROA_MESSAGE_ALL_GATHER || k == PROA_MESSAGE_SCATTER ||
           k == PROA_MESSAGE_ALL_TO_ALL || k == PROA_MESSAGE_SEND;
}

static bool uses_out(proa_message_kind k) { return k != PROA_MESSAGE_SEND && k != PROA_MESSAGE_BARRIER; }

static bool has_peer(proa_message_kind k)
{
    return k == PROA_MESSAGE_REDUCE || k == PROA_MESSAGE_BROADCAST || k == PROA_MESSAGE_SCATTER ||
           k == PROA_MESSAGE_SEND || k == PROA_MESSAGE_RECV;
}

/* ---- checking -------------------------------------------------------------------------- */

static proa_status check_tensor(const char *who, const char *which, const proa_tensor *t)
{
    if (!t || t == proa_none) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: %s is no tensor", who, which);
    if (t->flags & PROA_T_SYMBOLIC)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "%s: %s is a variable of a program; there, use the ops (proa_all_reduce, …)", who,
                         which);
    if (t->kind != PROA_DENSE)
        return proa_fail(PROA_ERR_UNSUPPORTED, "%s: %s is of kind rows; send its values and indices", who,
                         which);
    return PROA_OK;
}

static proa_status check_parts(const proa_message *m, const char *who)
{
    int64_t size = m->group->size, in = m->in ? m->in->numel : 0, out = m->out ? m->out->numel : 0;
    bool fits = true;
    switch (m->kind) {
    case PROA_MESSAGE_REDUCE_SCATTER: fits = in == out * size; break;
    case PROA_MESSAGE_SCATTER: fits = !m->in || in == out * size; break;
    case PROA_MESSAGE_ALL_GATHER: fits = out == in * size; break;
    case PROA_MESSAGE_ALL_TO_ALL:
        fits = (m->in_counts || in % size == 0) && (m->out_counts || out % size == 0);
        for (int64_t r = 0; r < size; r++) {
            if (m->in_counts) in -= m->in_counts[r];
            if (m->out_counts) out -= m->out_counts[r];
            fits = fits && !(m->in_counts && m->in_counts[r] < 0) && !(m->out_counts && m->out_counts[r] < 0);
        }
        fits = fits && (!m->in_counts || in == 0) && (!m->out_counts || out == 0);
        break;
    default: break;
    }
    if (fits && (!m->in || !m->out || m->in->dtype == m->out->dtype)) return PROA_OK;
    return proa_fail(
        PROA_ERR_INVALID_ARGUMENT,
        "%s: %s and %s do not fit a group of %lld ranks; parts are equal (or as counted), dtypes, too", who,
        m->in ? proa__tensor_text(m->in) : "nothing", m->out ? proa__tensor_text(m->out) : "nothing",
        (long long)size);
}

proa_status proa__message_check(proa_message *m)
{
    if ((unsigned)m->kind >= PROA_MESSAGE_KINDS)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "communicate: kind %d is unknown", (int)m->kind);
    const char *who = names[m->kind];
    if (!m->group) m->group = proa_world_group();
    if (!m->group) return proa_error();
    const proa__ring *ring = m->group->context;
    if (ring->rank < 0)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: this process is no member of group %d", who,
                         ring->id);
    int rank = has_peer(m->kind) ? proa__ring_rank_of(ring, m->peer) : 0;
    if (rank < 0)
        return proa_fail(PROA_ERR_OUT_OF_RANGE, "%s: rank %d is no member of group %d", who, m->peer,
                         ring->id);
    if ((m->kind == PROA_MESSAGE_SEND || m->kind == PROA_MESSAGE_RECV) && rank == ring->rank)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: rank %d is this process itself", who, m->peer);
    if (m->kind == PROA_MESSAGE_SCATTER && rank != ring->rank) m->in = NULL; /* only the root's counts */
    bool need_in = uses_in(m->kind) && !(m->kind == PROA_MESSAGE_SCATTER && rank != ring->rank);
    if (need_in) PROA_TRY(check_tensor(who, "in", m->in));
    else m->in = NULL;
    if (uses_out(m->kind)) PROA_TRY(check_tensor(who, "out", m->out));
    else m->out = NULL;
    return check_parts(m, who);
}

/* ---- running --------------------------------------------------------------------------- */

static bool direct(const proa_tensor *t)
{
    return !(t->flags & (PROA_T_STRIDED | PROA_T_DEVICE | PROA_T_BLOCKED)) && t->data;
}

/* t itself, or a new contiguous copy on the host. */
static proa_tensor *on_host(proa_tensor *t)
{
    if (t && proa__plain(t) != PROA_OK) return NULL;
    if (!t || direct(t)) return t;
    PROA__ON_CPU;
    t = proa__copy_to(t, PROA_CPU);
    return t ? proa__contiguous(t) : NULL;
}

/* The bytes of an all_to_all to each rank, then from each, for proa_scratch_free. */
static size_t *part_bytes(const proa_message *m, const proa_tensor *in, const proa_tensor *out)
{
    size_t n = (size_t)m->group->size, item = proa_dtype_size((proa_dtype)out->dtype);
    size_t *bytes = proa_scratch(2 * n * sizeof *bytes);
    for (size_t r = 0; r < n && bytes; r++) {
        bytes[r] = item * (size_t)(m->in_counts ? m->in_counts[r] : in->numel / (int64_t)n);
        bytes[n + r] = item * (size_t)(m->out_counts ? m->out_counts[r] : out->numel / (int64_t)n);
    }
    return bytes;
}

static proa_status all_to_all(const proa_message *m, proa__ring *g, const proa_tensor *in, proa_tensor *out)
{
    size_t *bytes = part_bytes(m, in, out);
    if (!bytes) return proa_error();
    proa_status status = g->engine->all_to_all(g, in->data, bytes, out->data, bytes + g->size);
    proa_scratch_free(bytes);
    return status;
}

static proa_status call_engine(const proa_message *m, const proa_tensor *in, proa_tensor *out)
{
    proa__ring *g = m->group->context;
    const proa__engine *e = g->engine;
    const proa_tensor *any = out ? out : in;
    proa_dtype dtype = any ? (proa_dtype)any->dtype : PROA_F32;
    size_t item = proa_dtype_size(dtype);
    int peer = has_peer(m->kind) ? proa__ring_rank_of(g, m->peer) : 0;
    proa_reduce_type op = m->op;
    switch (m->kind) {
    case PROA_MESSAGE_ALL_REDUCE: return e->all_reduce(g, out->data, out->numel, dtype, op);
    case PROA_MESSAGE_REDUCE: return e->reduce(g, out->data, out->numel, dtype, op, peer);
    case PROA_MESSAGE_REDUCE_SCATTER: return e->reduce_scatter(g, in->data, out->data, out->numel, dtype, op);
    case PROA_MESSAGE_BROADCAST: return e->broadcast(g, out->data, item * (size_t)out->numel, peer);
    case PROA_MESSAGE_ALL_GATHER: return e->all_gather(g, in->data, out->data, item * (size_t)in->numel);
    case PROA_MESSAGE_SCATTER:
        return e->scatter(g, in ? in->data : NULL, out->data, item * (size_t)out->numel, peer);
    case PROA_MESSAGE_ALL_TO_ALL: return all_to_all(m, g, in, out);
    case PROA_MESSAGE_SEND: return e->send(g, in->data, item * (size_t)in->numel, peer);
    case PROA_MESSAGE_RECV: return e->recv(g, out->data, item * (size_t)out->numel, peer);
    default: return e->barrier(g);
    }
}

/* ---- between devices ------------------------------------------------------------------- */

/* The device that the message's tensors are on, if the group may connect the ranks'; PROA_CPU: none. */
static int device_of(const proa_message *m)
{
    const proa_tensor *any = m->out ? m->out : m->in;
    int device = any ? proa__device_id(any) : PROA_CPU;
    if (m->in && proa__device_id(m->in) != device) return PROA_CPU;
    return proa__communicators(m->group->context, device) ? device : PROA_CPU;
}

static proa_device_call call_of(const proa_message *m)
{
    static const proa_device_call_kind kinds[] = {[PROA_MESSAGE_ALL_REDUCE] = PROA_DEVICE_ALL_REDUCE,
                                                  [PROA_MESSAGE_REDUCE] = PROA_DEVICE_REDUCE,
                                                  [PROA_MESSAGE_REDUCE_SCATTER] = PROA_DEVICE_REDUCE_SCATTER,
                                                  [PROA_MESSAGE_BROADCAST] = PROA_DEVICE_BROADCAST,
                                                  [PROA_MESSAGE_ALL_GATHER] = PROA_DEVICE_ALL_GATHER,
                                                  [PROA_MESSAGE_SCATTER] = PROA_DEVICE_SCATTER,
                                                  [PROA_MESSAGE_ALL_TO_ALL] = PROA_DEVICE_ALL_TO_ALL,
                                                  [PROA_MESSAGE_SEND] = PROA_DEVICE_SEND,
                                                  [PROA_MESSAGE_RECV] = PROA_DEVICE_RECV};
    bool by_input = m->kind == PROA_MESSAGE_ALL_GATHER || m->kind == PROA_MESSAGE_SEND;
    const proa_tensor *part = by_input ? m->in : m->out;
    proa_dtype dtype = (proa_dtype)part->dtype;
    bool reduces = m->kind <= PROA_MESSAGE_REDUCE_SCATTER;
    return (proa_device_call){.kind = kinds[m->kind],
                              .count = part->numel * (reduces ? 1 : (int64_t)proa_dtype_size(dtype)),
                              .dtype = dtype,
                              .op = reduces ? (int)m->op : 0,
                              .peer = has_peer(m->kind) ? proa__ring_rank_of(m->group->context, m->peer) : 0};
}

static proa_status call_device(const proa_message *m, int device, proa_device_call *call, bool *done)
{
    size_t *bytes = NULL;
    if (m->kind == PROA_MESSAGE_ALL_TO_ALL && !(bytes = part_bytes(m, m->in, m->out))) return proa_error();
    call->in_bytes = bytes;
    call->out_bytes = bytes ? bytes + m->group->size : NULL;
    proa_status status = proa__device_call(m->group->context, device, names[m->kind], call, done);
    proa_scratch_free(bytes);
    return status;
}

/* Runs the message between the ranks' devices; *done: false if they are not connected. */
static proa_status run_on_device(const proa_message *m, int device, void *ready, bool *done)
{
    int was = proa_device_use(device);
    proa_device_call call = call_of(m);
    proa_tensor *in = m->in, *out = m->out;
    proa_status status = in ? proa__plain(in) : PROA_OK;
    if (status == PROA_OK && out) status = proa__plain_to_write(out);
    if (status == PROA_OK && in) in = proa__contiguous(in);
    if (status == PROA_OK && out && out->flags & (PROA_T_STRIDED | PROA_T_BLOCKED)) {
        proa_meta meta = proa_meta_of(out);
        out = proa__tensor_new(&meta);
        if (out) status = proa__copy(out, m->out);
    }
    if (status == PROA_OK && ((m->in && !in) || (m->out && !out))) status = proa_error();
    call.in = in ? in->data : NULL;
    call.out = out ? out->data : NULL;
    call.ready = in == m->in && out == m->out ? ready : NULL; /* otherwise a copy is queued behind the mark */
    if (status == PROA_OK) status = call_device(m, device, &call, done);
    if (status == PROA_OK && *done && out != m->out) status = proa__copy(m->out, out);
    proa_device_use(was);
    return status;
}

static proa_status run(const proa_message *m, void *ready)
{
    PROA_SCOPED;
    bool done = false;
    int device = device_of(m);
    if (device != PROA_CPU) {
        if (m->out) proa__bump_version(m->out);
        PROA_TRY(run_on_device(m, device, ready, &done));
        if (done) return PROA_OK;
    }
    if (m->out) PROA_TRY(proa__plain_to_write(m->out)); /* a blocked form would keep the old values */
    proa_tensor *in = on_host(m->in), *out = on_host(m->out);
    if ((m->in && !in) || (m->out && !out)) return proa_error();
    if (m->out) proa__bump_version(m->out);
    PROA_TRY(call_engine(m, in, out));
    return out == m->out ? PROA_OK : proa__copy(m->out, out);
}

void *proa__message_mark(const proa_message *m)
{
    int device = device_of(m);
    if (device == PROA_CPU) return NULL;
    const proa_device_table *d = proa__device(device);
    return proa__communicators(m->group->context, device)->mark(d->context);
}

void proa__message_unmark(const proa_message *m, void *mark)
{
    if (!mark) return;
    int device = device_of(m);
    proa__communicators(m->group->context, device)->unmark(proa__device(device)->context, mark);
}

proa_status proa__message_run(const proa_message *m, void *ready)
{
    const proa__ring *ring = m->group->context;
    PROA_TRY(proa__ring_check(ring));
    int64_t began = proa_profile_begin();
    PROA_TRY(proa__ring_note(ring, run(m, ready)));
    return proa_profile_end(names[m->kind], began);
}
