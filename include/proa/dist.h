/* Distributed training: process groups, collectives and messages between ranks, data parallelism, and
 * parameters sharded over a group. Implemented by dist/; collectives that have gradients are ops
 * (proa_all_reduce, …). Needs proa/optim.h and proa/program.h. */
#ifndef PROA_DIST_H
#define PROA_DIST_H

#include <proa/optim.h>
#include <proa/program.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- joining a job --------------------------------------------------------------------- */

typedef struct proa_dist_opts {
    char _;
    /* where ranks meet: a folder that all see, or tcp://host:port, which rank 0 serves. NULL: PROA_STORE,
     * MASTER_ADDR and MASTER_PORT, PADDLE_MASTER, the first of PADDLE_TRAINER_ENDPOINTS, or an address
     * derived from Slurm's variables or, where MPI put all ranks on one host, from their parent process */
    const char *store;
    const char *job; /* name of this run, which the ranks must agree on; NULL: the launcher's, else "job" */
    /* size 0: from the environment, as the launchers of docs/distributed.md set it, else one rank */
    int rank, size;
    double
        timeout; /* seconds that a call waits for its peers; 0: PROA_TIMEOUT, PADDLE_PG_TIMEOUT, else 300 */
    /* network interface; NULL: PROA_INTERFACE, GLOO_SOCKET_IFNAME, else by the route to the store */
    const char *interface;
} proa_dist_opts;

/* Makes this process a rank of the world, group 0, the default of the collectives. Every rank must call it.
 * With one rank it does nothing. Fails with TIMEOUT if not all ranks come. */
PROA_API proa_status proa_dist_start_opt(proa_dist_opts opts);
#define proa_dist_start(...) proa_dist_start_opt(PROA_LITERAL(proa_dist_opts){._ = 0, __VA_ARGS__})
/* Leaves the job; groups end, and collectives are one-rank again. */
PROA_API void proa_dist_stop(void);
/* This process's rank in the world, and its size: 0 and 1 without one. */
PROA_API int proa_dist_rank(void);
PROA_API int proa_dist_size(void);
/* Waits until every rank is here. */
PROA_API proa_status proa_dist_barrier(void);

/* Serves a store for other processes: what a launcher does. port 0: a free one; returns the port, or −1 with
 * an error. Clients pass `token` ("job/incarnation/secret"). One a process. */
PROA_API int proa_store_serve(const char *host, int port, const char *token);
PROA_API void proa_store_stop(void);

/* ---- groups ---------------------------------------------------------------------------- */

typedef struct proa_group proa_group;

/* A group of these ranks of the world, in ascending order. All ranks of the world call it, in the same
 * order, members or not. Ends with proa_dist_stop or proa_group_end; NULL after an error. */
PROA_API proa_group *proa_new_group(proa_ints ranks);
/* The world's group: one rank before proa_dist_start. */
PROA_API proa_group *proa_world_group(void);
PROA_API void proa_group_end(proa_group *g);
/* This process's rank within the group; −1: it is no member. */
PROA_API int proa_group_rank(const proa_group *g);
PROA_API int proa_group_size(const proa_group *g);
/* The number that ops take as `group` and programs hold as ring_id. */
PROA_API int proa_group_id(const proa_group *g);
/* The rank in the world of the member that has this rank in the group. */
PROA_API int proa_group_global_rank(const proa_group *g, int rank);
/* "shm", "gloo" or "one rank". */
PROA_API const char *proa_group_backend(const proa_group *g);

/* ---- messages -------------------------------------------------------------------------- */

typedef enum proa_message_kind {
    PROA_MESSAGE_ALL_REDUCE,     /* out on every rank becomes the result */
    PROA_MESSAGE_REDUCE,         /* out on rank `peer` becomes the result */
    PROA_MESSAGE_REDUCE_SCATTER, /* out: this rank's part of the reduced in */
    PROA_MESSAGE_BROADCAST,      /* out on every rank becomes rank `peer`'s */
    PROA_MESSAGE_ALL_GATHER,     /* out: the ranks' in, one after the other */
    PROA_MESSAGE_SCATTER,        /* out: this rank's part of rank `peer`'s in */
    PROA_MESSAGE_ALL_TO_ALL,     /* part r of in to rank r; out: what came from each */
    PROA_MESSAGE_SEND,           /* in to rank `peer` */
    PROA_MESSAGE_RECV,           /* out from rank `peer` */
    PROA_MESSAGE_BARRIER,
    PROA_MESSAGE_KINDS
} proa_message_kind;

/* One call of a group. Ranks are the world's. Tensors are read and written in place, whatever their strides
 * and device; they are kept until the call is done, and must not change meanwhile. Parts are equal cuts of
 * the elements in row-major order. */
typedef struct proa_message {
    proa_message_kind kind;
    proa_group *group; /* NULL: the world */
    proa_tensor *in, *out;
    proa_reduce_type op;
    int peer;
    /* all_to_all: elements to and from each rank; NULL: equal parts */
    const int64_t *in_counts, *out_counts;
} proa_message;

/* Makes the call and waits until it is done. Calls of one group happen in the order in which they were made,
 * sends and receives in the order of their pair of ranks. */
PROA_API proa_status proa_communicate(const proa_message *m);

typedef struct proa_task proa_task;
/* Starts the call on the group's own thread; returns a task to wait for, NULL after an error. */
PROA_API proa_task *proa_communicate_later(const proa_message *m);
/* Waits until the task is done; returns the call's error, as often as asked. */
PROA_API proa_status proa_task_wait(proa_task *t);
PROA_API bool proa_task_done(proa_task *t);
/* Frees the task; a call that is not done goes on. */
PROA_API void proa_task_free(proa_task *t);

/* ---- data parallelism ------------------------------------------------------------------ */

/* Averages gradients over a group while backward still runs: parameters' gradients are stored in buckets, and
 * a bucket is sent when the last of its gradients is there. The order of buckets is that in which rank 0's
 * first backward brought gradients. When proa_backward returns, all gradients are there; a parameter that
 * some ranks did not use has the average with their zeros, one that no rank used is left as it was. What was
 * accumulated (without synchronization, or by earlier backwards) is averaged, too. */
typedef struct proa_reducer proa_reducer;
typedef struct proa_reducer_opts {
    char _;
    proa_group *group; /* NULL: the world */
    /* Gradients travel together until they are a sixteenth of all, within last_bucket_bytes (0: 1 MiB; the
     * bucket that is sent last has no more) and bucket_bytes (0: 25 MiB); a gradient is never divided. */
    int64_t bucket_bytes, last_bucket_bytes;
    proa_ints sparse; /* 1 for parameters whose gradients are of kind rows; empty: none */
} proa_reducer_opts;
/* Watches these parameters (distinct leaves) from now on; they must be the same on all ranks. NULL after an
 * error. */
PROA_API proa_reducer *proa_reducer_new_opt(proa_tensors params, proa_reducer_opts opts);
#define proa_reducer_new(...) PROA_X_reducer_new_(__VA_ARGS__, )
#define PROA_X_reducer_new_(params, ...) \
    proa_reducer_new_opt((params), PROA_LITERAL(proa_reducer_opts){._ = 0, __VA_ARGS__})
/* Sets whether backward exchanges gradients; off: it only accumulates them. */
PROA_API void proa_reducer_set_sync(proa_reducer *r, bool on);
/* Ends the watching of the parameters; their gradients keep their values. */
PROA_API void proa_reducer_free(proa_reducer *r);

/* ---- parameters that are divided ------------------------------------------------------- */

/* A parameter of which each rank of a group keeps one slice. The first op that reads it gathers the whole,
 * which stays until proa_shard_release, or until backward has stored its gradient: that is averaged, and each
 * rank has its part of it as the slice's gradient; the parameter has none. All ranks read divided parameters
 * in the same order. A view of the parameter that somebody holds keeps the whole alive. */
typedef struct proa_shard proa_shard;
/* param: a dense leaf in the host's memory, with the same values on all ranks. group NULL: the world. NULL
 * after an error. */
PROA_API proa_shard *proa_shard_new(proa_tensor *param, proa_group *group);
/* This rank's slice, for an optimizer: 1-D, a leaf, ⌈elements / ranks⌉ long on all ranks, filled up with
 * zeros. Borrowed. */
PROA_API proa_tensor *proa_shard_slice(proa_shard *s);
/* Frees the whole; slices take over what was written to it, which must be the same on all ranks. *gone
 * (may be NULL): whether it is freed. */
PROA_API proa_status proa_shard_release(proa_shard *s, bool *gone);
/* Gives the parameter the values of all ranks' slices after these have changed. All ranks call it. */
PROA_API proa_status proa_shard_update(proa_shard *s);
/* The parameter stays divided, but its gradients are its own again. */
PROA_API void proa_shard_free(proa_shard *s);

/* Gives every rank the parameters and buffers of rank 0. */
PROA_API proa_status proa_sync_layer(proa_layer *layer);
/* Lets a program average these variables (gradients that its root block makes) over the group, NULL: the
 * world, where they are made: collectives in buckets, each behind the last of its gradients. A bucket is
 * closed at a sixteenth of all gradients (at least 1 MiB), within bucket_bytes (0: 32 MiB; 1: one a
 * gradient). The averages take over the gradients' names. What no op makes stays as it is. */
PROA_API proa_status proa_program_average_gradients(proa_program *p, proa_tensors grads,
                                                    const proa_group *group, int64_t bucket_bytes);
/* proa_program_average_gradients where the average of gradient i is made on rank owners.at[i] of the group
 * alone; on the others the variable that takes over its name has undefined values. */
PROA_API proa_status proa_program_reduce_gradients(proa_program *p, proa_tensors grads, proa_ints owners,
                                                   const proa_group *group, int64_t bucket_bytes);
/* Averages the optimizer's gradients over all ranks, in buckets of one dtype; between backward and step. */
PROA_API proa_status proa_sync_gradients(proa_optimizer *opt);

#ifdef __cplusplus
}
#endif
#endif
