/* The C face of the Gloo shim. Only dist/gloo.cc includes Gloo's own headers. Uses proa/core.h. */
#ifndef PROA_DIST_GLOO_H
#define PROA_DIST_GLOO_H

#include <proa/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* out[i] = a[i] ⊕ b[i], n elements; out may be a. */
typedef void (*proa__reduce_fn)(void *out, const void *a, const void *b, size_t n);

typedef struct proa__gloo proa__gloo;

/* Connects rank of size through a file store in `folder`; keys are under `job`. Every function below
 * returns NULL or a status with the error set when a peer is gone or the time is over. */
proa__gloo *proa__gloo_connect(const char *folder, const char *job, const char *interface, int rank, int size,
                               double timeout);
void proa__gloo_close(proa__gloo *g);
proa_status proa__gloo_all_reduce(proa__gloo *g, void *data, size_t count, size_t item, proa__reduce_fn fn);
proa_status proa__gloo_broadcast(proa__gloo *g, void *data, size_t bytes, int root);
proa_status proa__gloo_all_gather(proa__gloo *g, const void *in, void *out, size_t bytes_each);
proa_status proa__gloo_barrier(proa__gloo *g);

#ifdef __cplusplus
}
#endif
#endif
