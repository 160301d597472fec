/* A process's rank in its job, the number of ranks, and where the job's store is. May use core. */
#ifndef PROA_DIST_JOB_H
#define PROA_DIST_JOB_H

#include <proa/dist.h>

#include <limits.h>

typedef struct proa__job {
    int rank, size;
    bool served;    /* a launcher serves the store, not rank 0 */
    char host[256]; /* where the store is; "" with a folder */
    int port;
    char folder[PATH_MAX]; /* in which rank 0 writes the store's address; "" with a host */
    char token[256];
    double timeout;
    const char *interface; /* borrowed; NULL: by the route to the store */
} proa__job;

/* Fills in what the options leave out from the environment of Proa's, Paddle's and other launchers. A job of
 * one rank has neither host nor folder. */
proa_status proa__job_read(proa__job *job, const proa_dist_opts *opts);

#endif
