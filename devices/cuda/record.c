/* Records the work that a thread queues as a CUDA graph, and replays it as one launch. Scratch memory of
 * kernels comes out of a pool of the recording's own meanwhile, because a replay uses the same addresses.
 * C. */
#include "runtime.h"

#include <stdlib.h>

bool cuda_unrecordable(cuda_context *c)
{
    if (!c->recording) return false;
    c->recording->broken = true;
    cuda_fail(PROA_ERR_UNSUPPORTED, "%s: a wait and a copy from or to the host cannot be recorded",
              c->running ? c->running->name : c->name);
    return true;
}

proa_status cuda_draw(cuda_context *c, uint64_t blocks, cuda_draws *from)
{
    cuda_recording *r = c->recording;
    if (!r) {
        *from = (cuda_draws){cuda_host->rng_reserve(blocks), NULL};
        return PROA_OK;
    }
    if (!r->draws) r->draws = cuda_scratch(c, sizeof *r->draws);
    if (!r->draws) return cuda_host->error();
    *from = (cuda_draws){{0, r->blocks}, r->draws};
    r->blocks += blocks;
    return PROA_OK;
}

static void free_recording(cuda_context *c, cuda_recording *r)
{
    if (r->graph) c->driver->graph_free(r->graph);
    cuda_pool_free(r->pool);
    free(r);
}

proa_status cuda_record_begin(void *context)
{
    cuda_context *c = context;
    cuda_recording *r = calloc(1, sizeof *r);
    if (r) r->pool = cuda_pool_new(c->driver, c->index);
    if (!r || !r->pool) {
        free(r);
        return cuda_fail(PROA_ERR_OUT_OF_MEMORY, "%s: no memory for a recording", c->name);
    }
    pthread_mutex_lock(&c->lock); /* held until the recording ends, so that other threads queue nothing */
    int code = c->driver->use(c->index);
    if (code == 0) code = c->driver->graph_begin(c->stream);
    if (code == 0) {
        c->recording = r;
        return PROA_OK;
    }
    pthread_mutex_unlock(&c->lock);
    free_recording(c, r);
    return cuda_check(c, code, "a recording", false);
}

void *cuda_record_end(void *context)
{
    cuda_context *c = context;
    cuda_recording *r = c->recording;
    c->recording = NULL;
    int code = c->driver->graph_end(c->stream, &r->graph);
    pthread_mutex_unlock(&c->lock);
    if (code == 0 && !r->broken) return r;
    if (code != 0) (void)c->driver->last_error(); /* clears CUDA's last error, which this function handles */
    free_recording(c, r);
    return NULL;
}

proa_status cuda_record_replay(void *context, void *recording)
{
    cuda_context *c = context;
    const cuda_recording *r = recording;
    pthread_mutex_lock(&c->lock);
    c->replays++;
    int code = c->driver->use(c->index);
    proa_status status = PROA_OK;
    if (r->draws && code == 0) { /* queued between the previous replay and this one */
        proa_rng_state from = cuda_host->rng_reserve(r->blocks);
        status = cuda_write_small(c, r->draws, &from, sizeof from);
    }
    if (code == 0 && status == PROA_OK) code = c->driver->graph_launch(r->graph, c->stream);
    pthread_mutex_unlock(&c->lock);
    return status == PROA_OK ? cuda_check(c, code, "a replay", false) : status;
}

void cuda_record_free(void *context, void *recording)
{
    cuda_context *c = context;
    pthread_mutex_lock(&c->lock); /* a stream that another thread records cannot be waited for */
    c->driver->use(c->index);
    c->driver->stream_sync(c->stream); /* a replay of the recording may be running */
    free_recording(c, recording);
    pthread_mutex_unlock(&c->lock);
}
