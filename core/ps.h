/* The process's connection to parameter servers, which ops use; dist/ installs it. May use proa/core.h. */
#ifndef PROA_CORE_PS_H
#define PROA_CORE_PS_H

#include <proa/core.h>

#include <stdatomic.h>

typedef struct proa__ps_calls {
    /* n rows of `width` values; test: a read that changes nothing */
    proa_status (*pull)(int64_t table, const int64_t *ids, int64_t n, int64_t width, bool test, float *out);
    proa_status (*push)(int64_t table, const int64_t *ids, const float *grads, int64_t n, int64_t width,
                        double lr);
    proa_status (*pull_dense)(int64_t table, float *out, int64_t n);
    proa_status (*push_dense)(int64_t table, const float *grads, int64_t n, double lr);
    proa_status (*step)(void); /* this worker has pushed all gradients of a step */
} proa__ps_calls;

/* NULL: the process is not connected. */
extern _Atomic(const proa__ps_calls *) proa__ps;

#endif
