/* Communicators of a GPU through NCCL. Each has a stream of its own, which waits by events for the work that
 * computes a call's inputs; the calling thread polls an event behind the call, NCCL's asynchronous errors and
 * the caller's check, and aborts the communicator when one of them fails. C. */
#include "nccl.h"
#include "runtime.h"

#include <proa/communicator.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    GRACE = 100 /* calls of the caller's check, 10 ms apart, after NCCL lost a rank */
};

typedef struct communicator {
    cuda_context *c;
    const cuda_nccl *nccl;
    cuda_nccl_comm comm; /* NULL after an abort */
    int rank, size;
    void *stream;
    void *before, *done; /* events: a call's inputs are computed; the call is done */
    char why[256];       /* the error that made the communicator unusable */
} communicator;

static const int type_of[PROA_DTYPE_COUNT] = {
    [PROA_U8] = 1 + CUDA_NCCL_UINT8,  [PROA_I8] = 1 + CUDA_NCCL_INT8,   [PROA_I32] = 1 + CUDA_NCCL_INT32,
    [PROA_I64] = 1 + CUDA_NCCL_INT64, [PROA_F16] = 1 + CUDA_NCCL_HALF,  [PROA_BF16] = 1 + CUDA_NCCL_BFLOAT16,
    [PROA_F32] = 1 + CUDA_NCCL_FLOAT, [PROA_F64] = 1 + CUDA_NCCL_DOUBLE}; /* 0: NCCL has no such type */
static const int op_of[] = {CUDA_NCCL_SUM, CUDA_NCCL_MAX, CUDA_NCCL_MIN, CUDA_NCCL_PROD, CUDA_NCCL_AVG};

static bool reduces(proa_dtype dtype, int op)
{
    bool floating = dtype == PROA_F16 || dtype == PROA_BF16 || dtype == PROA_F32 || dtype == PROA_F64;
    return type_of[dtype] && (op_of[op] != CUDA_NCCL_AVG || floating);
}

static const char *identity(void *context, const char **why)
{
    const cuda_context *c = context;
    return cuda_nccl_default(why) ? c->description.identity : NULL;
}

/* ---- errors ---------------------------------------------------------------------------- */

static proa_status check(const communicator *m, int code, const char *what)
{
    if (code == CUDA_NCCL_OK || code == CUDA_NCCL_IN_PROGRESS) return PROA_OK;
    const char *last = m->comm ? m->nccl->GetLastError(m->comm) : "";
    return cuda_fail(PROA_ERR_UNAVAILABLE, "%s on %s: NCCL: %s%s%s%s", what, m->c->name,
                     m->nccl->GetErrorString(code), last && *last ? " (" : "", last ? last : "",
                     last && *last ? ")" : "");
}

static void nap(long nanoseconds) { nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL); }

/* Sets *code to NCCL's error of the running call. If NCCL lost a rank, waits for the caller's check to name
 * the rank, and returns the check's error. */
static proa_status poll_error(const communicator *m, const proa_device_wait *wait, int *code)
{
    int asked = m->nccl->CommGetAsyncError(m->comm, code);
    if (asked != CUDA_NCCL_OK) *code = asked;
    bool lost = *code == CUDA_NCCL_REMOTE_ERROR || *code == CUDA_NCCL_SYSTEM_ERROR;
    for (int i = 0; lost && i < GRACE; i++) {
        PROA_TRY(wait->check(wait->state));
        nap(10000000);
    }
    return check(m, *code, "communication");
}

/* Polls until a call that returned `code` is no longer in progress; the error of NCCL or of the caller's
 * check. */
static proa_status settle(const communicator *m, int code, const char *what, const proa_device_wait *wait)
{
    PROA_TRY(check(m, code, what));
    while (code == CUDA_NCCL_IN_PROGRESS) {
        PROA_TRY(wait->check(wait->state));
        nap(100000);
        PROA_TRY(poll_error(m, wait, &code));
    }
    return PROA_OK;
}

/* Aborts a communicator whose ranks may have made different calls; every later call fails with m->why. */
static void abandon(communicator *m)
{
    snprintf(m->why, sizeof m->why, "a call before this one failed");
    if (m->comm) m->nccl->CommAbort(m->comm);
    m->comm = NULL;
}

/* ---- calls ----------------------------------------------------------------------------- */

/* Sends and receives of all pairs of ranks, as one operation. */
static int exchange(const communicator *m, const proa_device_call *call)
{
    const char *in = call->in;
    char *out = call->out;
    int code = m->nccl->GroupStart();
    for (int r = 0; r < m->size && code == 0; r++) {
        if (call->in_bytes[r])
            code = m->nccl->Send(in, call->in_bytes[r], CUDA_NCCL_INT8, r, m->comm, m->stream);
        if (call->out_bytes[r] && code == 0)
            code = m->nccl->Recv(out, call->out_bytes[r], CUDA_NCCL_INT8, r, m->comm, m->stream);
        in += call->in_bytes[r];
        out += call->out_bytes[r];
    }
    int ended = m->nccl->GroupEnd();
    return code ? code : ended;
}

static int scatter(const communicator *m, const proa_device_call *call)
{
    size_t n = (size_t)call->count;
    int code = m->nccl->GroupStart();
    for (int r = 0; r < m->size && m->rank == call->peer && code == 0; r++)
        code =
            m->nccl->Send((const char *)call->in + (size_t)r * n, n, CUDA_NCCL_INT8, r, m->comm, m->stream);
    if (code == 0) code = m->nccl->Recv(call->out, n, CUDA_NCCL_INT8, call->peer, m->comm, m->stream);
    int ended = m->nccl->GroupEnd();
    return code ? code : ended;
}

static int post(const communicator *m, const proa_device_call *call)
{
    const cuda_nccl *n = m->nccl;
    size_t count = (size_t)call->count;
    int type = type_of[call->dtype] - 1, op = op_of[call->op], bytes = CUDA_NCCL_INT8, peer = call->peer;
    void *out = call->out;
    switch (call->kind) {
    case PROA_DEVICE_ALL_REDUCE: return n->AllReduce(out, out, count, type, op, m->comm, m->stream);
    case PROA_DEVICE_REDUCE:
        return n->Reduce(out, m->rank == peer ? out : NULL, count, type, op, peer, m->comm, m->stream);
    case PROA_DEVICE_REDUCE_SCATTER:
        return n->ReduceScatter(call->in, out, count, type, op, m->comm, m->stream);
    case PROA_DEVICE_BROADCAST: return n->Broadcast(out, out, count, bytes, peer, m->comm, m->stream);
    case PROA_DEVICE_ALL_GATHER: return n->AllGather(call->in, out, count, bytes, m->comm, m->stream);
    case PROA_DEVICE_SCATTER: return scatter(m, call);
    case PROA_DEVICE_ALL_TO_ALL: return exchange(m, call);
    case PROA_DEVICE_SEND: return n->Send(call->in, count, bytes, peer, m->comm, m->stream);
    default: return n->Recv(out, count, bytes, peer, m->comm, m->stream);
    }
}

static void unmark(void *context, void *mark)
{
    cuda_context *c = context;
    c->driver->event_free(mark);
}

static void *mark(void *context)
{
    cuda_context *c = context;
    void *event = NULL;
    pthread_mutex_lock(&c->lock);
    bool good = !c->recording && c->driver->use(c->index) == 0 && c->driver->event_create(&event) == 0;
    if (good && c->driver->event_record(event, c->stream) != 0) {
        c->driver->event_free(event);
        good = false;
    }
    pthread_mutex_unlock(&c->lock);
    return good ? event : NULL;
}

/* Queues the call on the communicator's stream, behind the work that it waits for. Holds the GPU's lock. */
static proa_status queue(communicator *m, const proa_device_call *call, int *nccl)
{
    cuda_context *c = m->c;
    int code = c->driver->use(c->index);
    if (cuda_unrecordable(c)) return cuda_host->error();
    if (code == 0 && !call->ready) code = c->driver->event_record(m->before, c->stream);
    if (code == 0) code = c->driver->stream_wait(m->stream, call->ready ? call->ready : m->before);
    PROA_TRY(cuda_check(c, code, "communication", false));
    *nccl = post(m, call);
    c->communications++;
    return PROA_OK;
}

/* Waits until what is queued on the communicator's stream is done: without sleep at first, as most calls are
 * short. */
static proa_status await(const communicator *m, const proa_device_wait *wait)
{
    const cuda_driver *d = m->c->driver;
    int code = d->event_record(m->done, m->stream), nccl;
    for (int i = 0; code == 0; i++) {
        code = d->event_query(m->done);
        if (code != CUDA_NOT_READY) break;
        code = 0;
        if (i < 200) continue;
        PROA_TRY(poll_error(m, wait, &nccl));
        PROA_TRY(wait->check(wait->state));
        nap(i < 2000 ? 20000 : 500000);
    }
    return cuda_check(m->c, code, "communication", true);
}

static proa_status call_on_gpu(void *communicator_, const proa_device_call *call,
                               const proa_device_wait *wait)
{
    communicator *m = communicator_;
    int nccl = CUDA_NCCL_OK;
    if (!m->comm)
        return cuda_fail(PROA_ERR_BAD_STATE, "communication on %s: the communicator has ended: %s",
                         m->c->name, m->why);
    pthread_mutex_lock(&m->c->lock);
    proa_status status = queue(m, call, &nccl);
    pthread_mutex_unlock(&m->c->lock);
    if (status != PROA_OK) return status; /* nothing was queued */
    m->c->driver->use(m->c->index);
    status = settle(m, nccl, "communication", wait);
    if (status == PROA_OK) status = await(m, wait);
    if (status != PROA_OK) abandon(m);
    return status;
}

/* ---- life ------------------------------------------------------------------------------ */

static proa_status new_id(void *context, void *id)
{
    cuda_context *c = context;
    const char *why;
    const cuda_nccl *nccl = cuda_nccl_default(&why);
    if (!nccl) return cuda_fail(PROA_ERR_UNAVAILABLE, "%s: %s", c->name, why);
    c->driver->use(c->index);
    int code = nccl->GetUniqueId(id);
    if (code == CUDA_NCCL_OK) return PROA_OK;
    return cuda_fail(PROA_ERR_UNAVAILABLE, "%s: NCCL makes no id: %s", c->name, nccl->GetErrorString(code));
}

static void free_communicator(communicator *m)
{
    const cuda_driver *d = m->c->driver;
    if (m->before) d->event_free(m->before);
    if (m->done) d->event_free(m->done);
    if (m->stream) d->stream_free(m->stream);
    free(m);
}

static void close_communicator(void *at)
{
    communicator *m = at;
    m->c->driver->use(m->c->index);
    int code = m->comm ? m->nccl->CommFinalize(m->comm) : CUDA_NCCL_OK;
    for (int i = 0; code == CUDA_NCCL_IN_PROGRESS && i < GRACE; i++) {
        nap(10000000);
        if (m->nccl->CommGetAsyncError(m->comm, &code) != CUDA_NCCL_OK) break;
    }
    if (m->comm && code == CUDA_NCCL_OK) m->nccl->CommDestroy(m->comm);
    else if (m->comm) m->nccl->CommAbort(m->comm);
    free_communicator(m);
}

static int open_stream(communicator *m)
{
    const cuda_driver *d = m->c->driver;
    pthread_mutex_lock(&m->c->lock); /* not while another thread records */
    int code = d->use(m->c->index);
    if (code == 0) code = d->stream_create(&m->stream);
    if (code == 0) code = d->event_create(&m->before);
    if (code == 0) code = d->event_create(&m->done);
    pthread_mutex_unlock(&m->c->lock);
    return code;
}

static void *open_communicator(void *context, const void *id, int rank, int size,
                               const proa_device_wait *wait)
{
    cuda_context *c = context;
    cuda_nccl_config config = {sizeof config, (unsigned)CUDA_NCCL_CONFIG_MAGIC, CUDA_NCCL_CONFIG_VERSION, 0};
    const char *why = "";
    communicator *m = calloc(1, sizeof *m);
    if (!m) return cuda_fail(PROA_ERR_OUT_OF_MEMORY, "%s: no memory for a communicator", c->name), NULL;
    *m = (communicator){.c = c, .nccl = cuda_nccl_default(&why), .rank = rank, .size = size};
    proa_status status = m->nccl ? cuda_check(c, open_stream(m), "a communicator", false)
                                 : cuda_fail(PROA_ERR_UNAVAILABLE, "%s: %s", c->name, why);
    if (status == PROA_OK) {
        cuda_nccl_id by_value;
        memcpy(&by_value, id, sizeof by_value);
        int code = m->nccl->CommInitRankConfig(&m->comm, size, by_value, rank, &config);
        status = settle(m, code, "the start of a communicator", wait);
    }
    if (status == PROA_OK) return m;
    abandon(m);
    free_communicator(m);
    return NULL;
}

static const proa_communicators communicators = {.name = "nccl",
                                                 .identity = identity,
                                                 .reduces = reduces,
                                                 .id_bytes = sizeof(cuda_nccl_id),
                                                 .new_id = new_id,
                                                 .open = open_communicator,
                                                 .close = close_communicator,
                                                 .mark = mark,
                                                 .unmark = unmark,
                                                 .call = call_on_gpu};

PROA_API const proa_communicators *proa_communicators_entry(const proa_device_table *device);

const proa_communicators *proa_communicators_entry(const proa_device_table *device)
{
    (void)device; /* one table serves all GPUs */
    return &communicators;
}
