/* A fake process group of two ranks with equal data, of which one exists: an asynchronous call is executed
 * when it is waited for. Until then its memory is filled with NaN, which a step that reads it too early
 * passes on; if a step has written to it, the process aborts. */
#ifndef PROA_TESTS_ASYNC_GROUP_H
#define PROA_TESTS_ASYNC_GROUP_H

#include "core/group.h"
#include "core/tensor.h"

#include <stdio.h>
#include <stdlib.h>

enum { ASYNC_LOG = 512 };

typedef struct async_group {
    proa__comm comm;
    char log[ASYNC_LOG]; /* s: started, f: waited for, R: made at once, b: barrier */
    int n_log, under_way, most;
    proa_status fails; /* the error of the next call that is waited for */
} async_group;

typedef struct async_task {
    async_group *group;
    proa__async_call call;
    char *memory, *kept;
    size_t bytes;
} async_task;

static inline void async_note(async_group *g, char event)
{
    if (g->n_log < ASYNC_LOG - 1) g->log[g->n_log++] = event;
    g->log[g->n_log] = 0;
}

static inline void async_forget(async_group *g)
{
    g->n_log = g->most = 0;
    g->log[0] = 0;
}

/* The sum of two equal ranks; other reductions of equal values are that value. */
static inline void async_reduce(void *data, int64_t n, proa_dtype dtype, proa_reduce op)
{
    float *x = data;
    for (int64_t i = 0; dtype == PROA_F32 && op == PROA_REDUCE_SUM && i < n; i++) x[i] *= 2;
}

static inline proa_status async_all_reduce(proa_group *g, void *data, int64_t count, proa_dtype dtype,
                                           proa_reduce op)
{
    async_note((async_group *)(void *)g, 'R');
    async_reduce(data, count, dtype, op);
    return PROA_OK;
}

static inline proa_status async_reduce_to(proa_group *g, void *data, int64_t count, proa_dtype dtype,
                                          proa_reduce op, int root)
{
    (void)root;
    return async_all_reduce(g, data, count, dtype, op);
}

static inline proa_status async_broadcast(proa_group *g, void *data, size_t bytes, int root)
{
    (void)data, (void)bytes, (void)root;
    async_note((async_group *)(void *)g, 'R');
    return PROA_OK;
}

static inline proa_status async_barrier(proa_group *g)
{
    async_note((async_group *)(void *)g, 'b');
    return PROA_OK;
}

static inline void *async_start(proa_group *g, const proa__async_call *call)
{
    async_task *t = malloc(sizeof *t);
    if (!t) abort();
    size_t bytes = (size_t)call->data->numel * proa_dtype_size((proa_dtype)call->data->dtype);
    *t = (async_task){(async_group *)(void *)g, *call, call->data->data, malloc(bytes + 1), bytes};
    if (!t->kept) abort();
    if (bytes) memcpy(t->kept, t->memory, bytes);
    if (bytes) memset(t->memory, 0xff, bytes);
    async_note(t->group, 's');
    if (++t->group->under_way > t->group->most) t->group->most = t->group->under_way;
    return t;
}

static inline proa_status async_finish(void *task)
{
    async_task *t = task;
    async_group *g = t->group;
    for (size_t i = 0; i < t->bytes; i++)
        if ((unsigned char)t->memory[i] != 0xff) {
            (void)fprintf(stderr, "async_group: a step wrote to the memory of a call under way\n");
            abort();
        }
    if (t->bytes) memcpy(t->memory, t->kept, t->bytes);
    if (t->call.kind != PROA__ASYNC_BROADCAST)
        async_reduce(t->memory, t->call.data->numel, (proa_dtype)t->call.data->dtype, t->call.op);
    free(t->kept);
    free(t);
    g->under_way--;
    async_note(g, 'f');
    proa_status status = g->fails;
    g->fails = PROA_OK;
    return status ? proa_fail(status, "all_reduce: a rank has ended") : PROA_OK;
}

static inline void async_close(proa_group *g) { (void)g; }

static const proa__group_calls async_calls = {
    .reduce = async_reduce_to, .start = async_start, .finish = async_finish};

/* Makes g the group `id`. */
static inline void async_enter(async_group *g, int id)
{
    *g = (async_group){
        .comm = {{0, 2, NULL, async_all_reduce, async_broadcast, NULL, async_barrier, async_close},
                 &async_calls}};
    proa__set_group(id, &g->comm.group);
}

#endif
