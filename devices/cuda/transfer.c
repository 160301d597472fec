/* Host-to-device copies that are made ahead of use, on a stream of their own. A pair of one pinned host block
 * and one GPU block is reused: the next copy into it waits, by an event, for the work that its last owner had
 * queued, and the compute stream waits, by an event, for the copy; the host waits for neither. C. */
#include "transfer.h"
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

enum { MAX = 64 };
static const size_t unit = (size_t)1 << 12;

typedef struct piece {
    size_t size;
    void *at, *pinned; /* at: GPU memory of the pool; pinned: host memory of `size` bytes */
    void *copied;      /* event of c->copies: the copy into it */
    void *used;        /* event of c->stream: the last owner's work on `at` */
    bool live;         /* owned by a caller */
    bool left;         /* freed during a recording: `used` is still to be recorded */
} piece;

struct cuda_transfers {
    piece of[MAX];
    int n, live;
    int64_t sent;
};

static void drop(cuda_context *c, piece *p)
{
    const cuda_driver *d = c->driver;
    if (p->copied) d->event_sync(p->copied);
    if (p->at && p->copied)
        d->stream_wait(c->stream, p->copied); /* the pool's next owner queues behind the copy */
    cuda_pool_give(c->pool, p->at);
    if (p->pinned) d->host_free(p->pinned);
    if (p->copied) d->event_free(p->copied);
    if (p->used) d->event_free(p->used);
    *p = (piece){0};
}

void cuda_transfers_trim(cuda_context *c)
{
    cuda_transfers *t = c->transfers;
    if (!t || c->recording) return;
    int kept = 0;
    for (int i = 0; i < t->n; i++) {
        if (t->of[i].live) t->of[kept++] = t->of[i];
        else drop(c, &t->of[i]);
    }
    t->n = kept;
}

/* A new piece. The pool may hand out memory that work queued on c->stream still uses, so the event `used` is
 * recorded there. */
static piece *new_piece(cuda_context *c, size_t bytes)
{
    cuda_transfers *t = c->transfers;
    const cuda_driver *d = c->driver;
    if (t->n == MAX) cuda_transfers_trim(c);
    if (t->n == MAX || bytes > SIZE_MAX - unit) return NULL;
    piece *p = &t->of[t->n];
    *p = (piece){.size = (bytes + unit - 1) / unit * unit};
    p->at = cuda_pool_take(c->pool, p->size, "batches made ahead");
    bool good = p->at && d->host_malloc(&p->pinned, p->size) == 0 && d->event_create(&p->copied) == 0 &&
                d->event_create(&p->used) == 0 && d->event_record(p->used, c->stream) == 0;
    if (good) return t->n++, p;
    (void)d->last_error(); /* clears CUDA's last error: NULL means an ordinary copy */
    drop(c, p);
    return NULL;
}

/* The smallest free piece of at least `bytes`, and not much more than twice as many, whose last copy has
 * ended, so that the host may write its pinned memory. */
static piece *find(cuda_context *c, size_t bytes)
{
    cuda_transfers *t = c->transfers;
    piece *best = NULL;
    for (int i = 0; i < t->n; i++) {
        piece *p = &t->of[i];
        if (p->live || p->size < bytes || p->size / 2 > bytes + unit || (best && best->size <= p->size))
            continue;
        if (c->driver->event_query(p->copied) == 0) best = p;
    }
    return best;
}

static int copy(cuda_context *c, piece *p, const void *from, size_t bytes)
{
    const cuda_driver *d = c->driver;
    int code = 0;
    memcpy(p->pinned, from, bytes);
    if (p->left) code = d->event_record(p->used, c->stream);
    p->left = false;
    if (code == 0) code = d->stream_wait(c->copies, p->used);
    if (code == 0) code = d->copy(p->at, p->pinned, bytes, CUDA_TO_DEVICE, c->copies);
    return code ? code : d->event_record(p->copied, c->copies);
}

void *cuda_transfer_send(cuda_context *c, const void *from, size_t bytes)
{
    if (!c->transfers) c->transfers = calloc(1, sizeof *c->transfers);
    if (!c->transfers || c->recording || c->driver->use(c->index) != 0) return NULL;
    piece *p = find(c, bytes);
    if (!p) p = new_piece(c, bytes);
    if (!p || copy(c, p, from, bytes) != 0) return NULL;
    p->live = true;
    c->transfers->live++;
    c->transfers->sent++;
    return p->at;
}

static piece *owned(cuda_context *c, const void *at)
{
    cuda_transfers *t = c->transfers;
    for (int i = 0; t && t->live && i < t->n; i++)
        if (t->of[i].live && t->of[i].at == at) return &t->of[i];
    return NULL;
}

int cuda_transfer_arrive(cuda_context *c, const void *at)
{
    piece *p = owned(c, at);
    return p ? c->driver->stream_wait(c->stream, p->copied) : 0;
}

bool cuda_transfer_give(cuda_context *c, const void *at)
{
    piece *p = owned(c, at);
    if (!p) return false;
    p->live = false;
    c->transfers->live--;
    p->left = c->recording || c->driver->event_record(p->used, c->stream) != 0;
    return true;
}

int64_t cuda_transfer_count(const cuda_context *c) { return c->transfers ? c->transfers->sent : 0; }
