/* Several processes: joining a group, and training one model on shares of the data. Implemented by dist/;
 * the collectives themselves are ops (proa_all_reduce, …). Needs proa/nn.h and proa/optim.h. */
#ifndef PROA_DIST_H
#define PROA_DIST_H

#include <proa/optim.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct proa_dist_opts {
    char _;
    const char *store; /* folder that all ranks see; NULL: PROA_STORE from the environment */
    const char *job;   /* name of this run, so that a folder can be used again; NULL: PROA_JOB, else "job" */
    int rank, size;    /* size 0: PROA_RANK and PROA_SIZE from the environment (else one rank) */
    double timeout;    /* seconds that a collective waits for its peers; 0: 300 */
    const char *interface; /* network interface; NULL: the loopback's */
} proa_dist_opts;

/* Makes this process one rank of a group (over Gloo) and the default group of the collectives. Every rank
 * must call it. With one rank it does nothing. */
PROA_API proa_status proa_dist_start_opt(proa_dist_opts opts);
#define proa_dist_start(...) proa_dist_start_opt(PROA_LITERAL(proa_dist_opts){._ = 0, __VA_ARGS__})
/* Leaves the group; collectives are one-rank again. */
PROA_API void proa_dist_stop(void);
/* This process's place in the group, and how many there are: 0 and 1 without one. */
PROA_API int proa_dist_rank(void);
PROA_API int proa_dist_size(void);
/* Waits until every rank is here. */
PROA_API proa_status proa_dist_barrier(void);

/* Gives every rank the parameters and buffers of rank 0. */
PROA_API proa_status proa_sync_layer(proa_layer *layer);
/* Averages the optimiser's gradients over all ranks, in buckets of one dtype; between backward and step. */
PROA_API proa_status proa_sync_gradients(proa_optimizer *opt);

#ifdef __cplusplus
}
#endif
#endif
