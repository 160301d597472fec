/* Implements proa_dist_start and _stop, and process groups: connects to the job's store, and opens an engine
 * (shared memory or Gloo) for each group. May use core. */
#define _GNU_SOURCE
#include "dist/group.h"

#include "core/group.h"
#include "dist/devices.h"
#include "dist/job.h"
#include "dist/task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* This process's state in its job. One thread starts and stops it; any thread may use groups. */
static struct {
    proa__job job;
    proa__store *store;
    proa__store_server *server;       /* on rank 0, unless the launcher serves the store */
    proa__ring *world;                /* before dist_start and in a job of one rank: made at first use */
    proa__ring *groups[PROA__GROUPS]; /* by id; 0: the ring 0 of a program, if not the world */
    int next_id;
} here;

/* ---- one group ------------------------------------------------------------------------- */

/* A ring and its public handle, in one allocation. */
typedef struct member {
    proa__ring ring;
    proa__comm comm;
} member;

static proa__ring *ring_of(const proa_group *g) { return g->context; }

/* Calls the engine once earlier queued calls of the lane (collectives, sends or receives of a peer) are
 * done. */
#define IN_ORDER(g, lane, call)                              \
    proa__ring *r = ring_of(g);                              \
    PROA_TRY(proa__ring_check(r));                           \
    struct proa__queue *queue = proa__queues_enter(r, lane); \
    proa_status status = r->engine->call;                    \
    proa__queue_leave(queue);                                \
    return proa__ring_note(r, status)

static proa_status core_all_reduce(proa_group *g, void *data, int64_t count, proa_dtype dtype, proa_reduce op)
{
    IN_ORDER(g, PROA__COLLECTIVES, all_reduce(r, data, count, dtype, (proa_reduce_type)op));
}

static proa_status core_reduce(proa_group *g, void *data, int64_t count, proa_dtype dtype, proa_reduce op,
                               int root)
{
    IN_ORDER(g, PROA__COLLECTIVES, reduce(r, data, count, dtype, (proa_reduce_type)op, root));
}

static proa_status core_reduce_scatter(proa_group *g, const void *in, void *out, int64_t count_each,
                                       proa_dtype dtype, proa_reduce op)
{
    IN_ORDER(g, PROA__COLLECTIVES, reduce_scatter(r, in, out, count_each, dtype, (proa_reduce_type)op));
}

static proa_status core_broadcast(proa_group *g, void *data, size_t bytes, int root)
{
    IN_ORDER(g, PROA__COLLECTIVES, broadcast(r, data, bytes, root));
}

static proa_status core_all_gather(proa_group *g, const void *in, void *out, size_t bytes_each)
{
    IN_ORDER(g, PROA__COLLECTIVES, all_gather(r, in, out, bytes_each));
}

static proa_status core_scatter(proa_group *g, const void *in, void *out, size_t bytes_each, int root)
{
    IN_ORDER(g, PROA__COLLECTIVES, scatter(r, in, out, bytes_each, root));
}

static proa_status core_all_to_all(proa_group *g, const void *in, const size_t *in_bytes, void *out,
                                   const size_t *out_bytes)
{
    IN_ORDER(g, PROA__COLLECTIVES, all_to_all(r, in, in_bytes, out, out_bytes));
}

static proa_status core_send(proa_group *g, const void *data, size_t bytes, int peer)
{
    IN_ORDER(g, PROA__SENDS + peer, send(r, data, bytes, peer));
}

static proa_status core_recv(proa_group *g, void *data, size_t bytes, int peer)
{
    IN_ORDER(g, PROA__SENDS + r->size + peer, recv(r, data, bytes, peer));
}

static proa_status core_barrier(proa_group *g) { IN_ORDER(g, PROA__COLLECTIVES, barrier(r)); }

static int queue_number(const proa__ring *r, const proa_device_call *call)
{
    if (call->kind == PROA_DEVICE_SEND) return PROA__SENDS + call->peer;
    return call->kind == PROA_DEVICE_RECV ? PROA__SENDS + r->size + call->peer : PROA__COLLECTIVES;
}

static proa_status core_on_device(proa_group *g, int device, const proa_device_call *call, bool *done)
{
    static const char *const names[] = {"all_reduce", "reduce",     "reduce_scatter",
                                        "broadcast",  "all_gather", "scatter",
                                        "all_to_all", "send",       "recv"};
    proa__ring *r = ring_of(g);
    *done = false;
    if (!proa__communicators(r, device)) return PROA_OK;
    PROA_TRY(proa__ring_check(r));
    struct proa__queue *queue = proa__queues_enter(r, queue_number(r, call));
    proa_status status = proa__device_call(r, device, names[call->kind], call, done);
    proa__queue_leave(queue);
    return proa__ring_note(r, status);
}

static void *core_start(proa_group *g, const proa__async_call *call)
{
    static const proa_message_kind kinds[] = {[PROA__ASYNC_ALL_REDUCE] = PROA_MESSAGE_ALL_REDUCE,
                                              [PROA__ASYNC_REDUCE] = PROA_MESSAGE_REDUCE,
                                              [PROA__ASYNC_BROADCAST] = PROA_MESSAGE_BROADCAST};
    return proa_communicate_later(&(proa_message){.kind = kinds[call->kind],
                                                  .group = g,
                                                  .out = call->data,
                                                  .op = (proa_reduce_type)call->op,
                                                  .peer = proa__global_rank(ring_of(g), call->root)});
}

static proa_status core_finish(void *task) { return proa__task_finish(task); }

static void core_close(proa_group *g) { proa__ring_close(ring_of(g)); }

static const proa__group_calls calls = {
    .reduce = core_reduce,
    .reduce_scatter = core_reduce_scatter,
    .scatter = core_scatter,
    .all_to_all = core_all_to_all,
    .send = core_send,
    .recv = core_recv,
    .on_device = core_on_device,
    .start = core_start,
    .finish = core_finish,
};

void proa__ring_close(proa__ring *g)
{
    if (!g) return;
    proa__queues_free(g->queues);
    proa__devices_free(g->devices);
    if (g->engine) g->engine->close(g);
    proa__free((void *)(uintptr_t)g->ranks);
    proa__free(g); /* the first field of its `member` */
}

static proa_status connect_engine(proa__ring *g, const proa__engine_setup *setup)
{
    bool done = g->size == 1 || g->rank < 0;
    if (done) {
        g->engine = &proa__engine_alone;
        return PROA_OK;
    }
    g->devices = proa__devices_new(setup);
    if (!g->devices) return proa_error();
    PROA_TRY(proa__shm_open(g, setup, &done));
    if (done) return PROA_OK;
#ifdef PROA_HAVE_GLOO
    return proa__gloo_open(g, setup);
#else
    return proa_fail(
        PROA_ERR_UNAVAILABLE,
        "group %d: its %d ranks do not share memory (other hosts, other users, or PROA_SHM=0), and this "
        "Proa was built without Gloo; install libgloo-dev and build again",
        g->id, g->size);
#endif
}

proa__ring *proa__ring_connect(const proa__engine_setup *setup, int id, int rank, int size, const int *ranks)
{
    member *m = proa__calloc(sizeof *m);
    if (!m) return NULL;
    proa__ring *g = &m->ring;
    *g = (proa__ring){.rank = rank, .size = size, .id = id, .group = &m->comm.group};
    m->comm = (proa__comm){
        {rank, size, g, core_all_reduce, core_broadcast, core_all_gather, core_barrier, core_close}, &calls};
    g->queues = proa__queues_new(size);
    int *members = ranks ? proa__alloc((size_t)size * sizeof *members) : NULL;
    if (members) g->ranks = memcpy(members, ranks, (size_t)size * sizeof *members);
    if (g->queues && (members || !ranks) && connect_engine(g, setup) == PROA_OK) return g;
    proa__ring_close(g);
    return NULL;
}

/* ---- meeting --------------------------------------------------------------------------- */

static void address_file(const proa__job *job, char *path, size_t n)
{
    size_t used = (size_t)snprintf(path, n, "%s/", job->folder);
    for (const char *c = job->token; *c && *c != '/' && used + 8 < n; c++) path[used++] = *c;
    snprintf(path + used, n - used, ".store");
}

/* Starts rank 0's store server at a free port of 127.0.0.1 and writes the address to a file in
 * job->folder. */
static proa_status serve_by_folder(proa__job *job)
{
    char path[PATH_MAX + 300], part[PATH_MAX + 310];
    snprintf(job->host, sizeof job->host, "127.0.0.1");
    here.server = proa__store_serve(job->host, 0, job->token);
    if (!here.server) return proa_error();
    job->port = proa__store_server_port(here.server);
    address_file(job, path, sizeof path);
    snprintf(part, sizeof part, "%s.part", path);
    FILE *f = fopen(part, "we");
    bool written = f && fprintf(f, "%s:%d\n", job->host, job->port) > 0;
    if (f && fclose(f) != 0) written = false;
    if (written && rename(part, path) == 0) return PROA_OK;
    return proa_fail(PROA_ERR_IO, "dist_start: cannot write %s: %s", path, strerror(errno));
}

/* Connects to the address in the folder's file. Rereads the file until the time is over, as it may be missing
 * or left by an earlier run. */
static proa_status connect_by_folder(proa__job *job)
{
    char path[PATH_MAX + 300], line[512];
    address_file(job, path, sizeof path);
    for (double until = proa__monotonic() + job->timeout; proa__monotonic() < until;) {
        FILE *f = fopen(path, "re");
        char *colon = f && fgets(line, sizeof line, f) ? strrchr(line, ':') : NULL;
        if (f) fclose(f);
        if (colon) {
            *colon = 0;
            int fd = proa__tcp_connect(line, atoi(colon + 1), until);
            bool again = fd < 0;
            if (fd >= 0) close(fd);
            if (fd >= 0)
                here.store = proa__store_try(line, atoi(colon + 1), job->token, job->rank, job->size,
                                             job->timeout, &again);
            if (!again) return here.store ? PROA_OK : proa_error();
        }
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return proa_fail(PROA_ERR_TIMEOUT,
                     "dist_start: rank 0 has not said within %.3g s in %s where it is; is it running?",
                     job->timeout, path);
}

static proa_status meet(proa__job *job)
{
    if (job->rank > 0 && job->folder[0]) return connect_by_folder(job);
    if (job->rank == 0 && job->folder[0]) {
        PROA_TRY(serve_by_folder(job));
    } else if (job->rank == 0 && !job->served) {
        here.server = proa__store_serve(job->host, job->port, job->token);
        if (!here.server) return proa_error();
    }
    here.store = proa__store_connect(job->host, job->port, job->token, job->rank, job->size, job->timeout);
    return here.store ? PROA_OK : proa_error();
}

static proa__ring *open_at(const char *prefix, int id, int rank, int size, const int *ranks)
{
    proa__engine_setup setup = {here.store, prefix, here.job.interface, here.job.timeout};
    return proa__ring_connect(&setup, id, rank, size, ranks);
}

static proa__ring *open_ring(int id, int rank, int size, const int *ranks)
{
    char prefix[32];
    snprintf(prefix, sizeof prefix, "group/%d", id);
    return open_at(prefix, id, rank, size, ranks);
}

proa_status proa_dist_start_opt(proa_dist_opts opts)
{
    PROA_TRY(proa_error());
    if (here.store) return proa_fail(PROA_ERR_BAD_STATE, "dist_start: this process is in a job already");
    proa__ring_close(here.world); /* the ring of one rank */
    here.world = NULL;
    PROA_TRY(proa__job_read(&here.job, &opts));
    if (here.job.size == 1) return PROA_OK;
    if (meet(&here.job) == PROA_OK) here.world = open_ring(0, here.job.rank, here.job.size, NULL);
    if (!here.world) {
        proa_dist_stop();
        return proa_error();
    }
    here.next_id = 1;
    proa__set_default_group(here.world->group);
    return PROA_OK;
}

static void forget_address(const proa__job *job)
{
    char path[PATH_MAX + 300];
    if (!here.server || !job->folder[0]) return;
    address_file(job, path, sizeof path);
    unlink(path);
}

void proa_dist_stop(void)
{
    for (int i = 0; i < PROA__GROUPS; i++)
        if (here.groups[i]) proa_group_end(here.groups[i]->group);
    proa__set_default_group(NULL);
    proa__ring_close(here.world);
    here.world = NULL;
    proa__store_close(here.store);
    here.store = NULL;
    forget_address(&here.job);
    /* other ranks may still run, and need the store for new groups: wait 10 s at most */
    proa__store_server_close(here.server, here.job.timeout < 10 ? here.job.timeout : 10);
    here.server = NULL;
}

int proa_dist_rank(void) { return proa__default_group()->rank; }
int proa_dist_size(void) { return proa__default_group()->size; }

proa_status proa_dist_barrier(void)
{
    return proa_communicate(&(proa_message){.kind = PROA_MESSAGE_BARRIER});
}

/* ---- serving for others ---------------------------------------------------------------- */

static proa__store_server *served;

int proa_store_serve(const char *host, int port, const char *token)
{
    if (proa_error()) return -1;
    if (served || !host || !token) {
        proa_fail(served ? PROA_ERR_BAD_STATE : PROA_ERR_INVALID_ARGUMENT,
                  served ? "store_serve: a store is served already"
                         : "store_serve: host and token must be given");
        return -1;
    }
    served = proa__store_serve(host, port, token);
    return served ? proa__store_server_port(served) : -1;
}

void proa_store_stop(void)
{
    proa__store_server_close(served, 0);
    served = NULL;
}

/* ---- groups ---------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static proa_status check_ranks(const int *ranks, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (ranks[i] < 0 || ranks[i] >= proa_dist_size() || (i && ranks[i] == ranks[i - 1]))
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "new_group: rank %d comes twice or is none of the %d ranks", ranks[i],
                             proa_dist_size());
    return PROA_OK;
}

static proa_group *enlist(int id, proa__ring *ring)
{
    here.groups[id] = ring;
    proa__set_group(id, ring ? ring->group : NULL);
    return ring ? ring->group : NULL;
}

proa_group *proa_new_group(proa_ints ranks)
{
    if (proa_error()) return NULL;
    int members[PROA__GROUPS], mine = -1, world = proa_dist_size(), id = here.next_id ? here.next_id : 1;
    if (ranks.count < 1 || ranks.count > world || world > PROA__GROUPS || id >= PROA__GROUPS) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "new_group: %lld ranks of %d make no group (of at most %d)",
                  (long long)ranks.count, world, PROA__GROUPS);
        return NULL;
    }
    for (int64_t i = 0; i < ranks.count; i++) members[i] = (int)ranks.at[i];
    qsort(members, (size_t)ranks.count, sizeof *members, ascending);
    if (check_ranks(members, ranks.count) != PROA_OK) return NULL;
    for (int i = 0; i < (int)ranks.count; i++)
        if (members[i] == proa_dist_rank()) mine = i;
    here.next_id = id + 1;
    return enlist(id, open_ring(id, mine, (int)ranks.count, members));
}

proa_group *proa_world_group(void)
{
    if (!here.world) here.world = open_ring(0, 0, 1, NULL);
    return here.world ? here.world->group : NULL;
}

void proa_group_end(proa_group *g)
{
    proa__ring *r = g ? ring_of(g) : NULL;
    if (!r || r == here.world) return;
    enlist(r->id, NULL);
    proa__ring_close(r);
}

/* ---- rings of programs ----------------------------------------------------------------- */

/* The global rank of the n bytes "host:port" at `text`; −1: no rank has this endpoint. */
static int rank_at(const char *text, size_t n)
{
    const char *all = getenv("PADDLE_TRAINER_ENDPOINTS");
    for (int rank = 0; all && *all; rank++) {
        size_t length = strcspn(all, ",");
        if (length == n && memcmp(all, text, n) == 0) return rank;
        all += length + (all[length] == ',');
    }
    return -1;
}

/* Sets members to the global ranks of a ring's members: all ranks, or those at the comma-separated
 * endpoints. */
static proa_status find_members(int64_t size, const char *endpoints, int *members)
{
    int world = proa_dist_size();
    if (size == world)
        for (int i = 0; i < world; i++) members[i] = i;
    for (int64_t i = 0; size != world && i < size; i++) {
        size_t n = strcspn(endpoints, ",");
        members[i] = rank_at(endpoints, n);
        if (members[i] < 0)
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "init_ring: \"%.*s\", the endpoint of rank %lld of the ring, is none of "
                             "PADDLE_TRAINER_ENDPOINTS",
                             (int)n, endpoints, (long long)i);
        endpoints += n + (endpoints[n] == ',');
    }
    return PROA_OK;
}

static bool has_members(const proa__ring *r, const int *members, int size)
{
    bool same = r->size == size;
    for (int i = 0; same && i < size; i++) same = proa__global_rank(r, i) == members[i];
    return same;
}

/* Opens the ring of ring_id `id`. Programs of different ranks use one ring_id for different members, so that
 * the keys in the store contain a hash of the members. */
static proa__ring *open_members(int id, int mine, int size, const int *members)
{
    char prefix[64];
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (int i = 0; i < size; i++) hash = (hash ^ (uint64_t)members[i]) * 1099511628211u;
    snprintf(prefix, sizeof prefix, "ring/%d/%d/%016llx", id, size, (unsigned long long)hash);
    return open_at(prefix, id, mine, size, members);
}

static proa_status make_ring(int64_t id, int64_t rank, int64_t size, const char *endpoints)
{
    int members[PROA__GROUPS], world = proa_dist_size();
    if (size == 0) {
        size = world;
        rank = proa_dist_rank();
    }
    if (id < 0 || id >= PROA__GROUPS || size > world)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "init_ring: ring %lld of %lld ranks in a job of %d; ids are below %d", (long long)id,
                         (long long)size, world, PROA__GROUPS);
    if (world == 1) return PROA_OK;
    PROA_TRY(find_members(size, endpoints, members));
    if (rank < 0 || rank >= size || members[rank] != proa_dist_rank())
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "init_ring: rank %lld of ring %lld is not this process, rank %d of the job",
                         (long long)rank, (long long)id, proa_dist_rank());
    const proa__ring *known = here.groups[id];
    if ((!known && id == 0 && size == world) || (known && has_members(known, members, (int)size)))
        return PROA_OK;
    if (known)
        return proa_fail(PROA_ERR_BAD_STATE, "init_ring: group %lld exists with other members",
                         (long long)id);
    return enlist((int)id, open_members((int)id, (int)rank, (int)size, members)) ? PROA_OK : proa_error();
}

__attribute__((constructor)) static void install(void) { proa__make_ring = make_ring; }

int proa_group_rank(const proa_group *g) { return g->rank; }
int proa_group_size(const proa_group *g) { return g->size; }
int proa_group_id(const proa_group *g) { return ring_of(g)->id; }
const char *proa_group_backend(const proa_group *g) { return ring_of(g)->engine->name; }

int proa_group_global_rank(const proa_group *g, int rank)
{
    return rank >= 0 && rank < g->size ? proa__global_rank(ring_of(g), rank) : -1;
}
