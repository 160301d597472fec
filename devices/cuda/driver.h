/* Table of the CUDA functions that the runtime calls: CUDA's own (driver.cu), the emulator's, or a test's
 * fake. Every function returns 0 or a code that error_text explains. C; uses nothing of Proa. */
#ifndef PROA_CUDA_DRIVER_H
#define PROA_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_description {
    char name[128], identity[48]; /* identity: tells the GPU from all others of all hosts */
    int major, minor, multiprocessors;
    size_t memory;
} cuda_description;

typedef enum cuda_direction { CUDA_TO_DEVICE, CUDA_TO_HOST, CUDA_ON_DEVICE } cuda_direction;

enum { CUDA_NOT_READY = -1 }; /* event_query: the work before the event is not done yet */

typedef struct cuda_driver {
    int (*count)(int *n); /* nonzero: no driver, or one too old */
    /* Fills *to. The GPU must be current; fails, too, if the kernels were not compiled for it. */
    int (*describe)(int device, cuda_description *to);
    int (*use)(int device); /* makes the GPU current for the calling thread and the calls below */
    int (*malloc)(void **p, size_t bytes);
    int (*free)(void *p);
    int (*host_malloc)(void **p, size_t bytes); /* pinned */
    int (*host_free)(void *p);
    int (*stream_create)(void **stream);
    int (*stream_free)(void *stream);
    int (*stream_sync)(void *stream);
    int (*stream_wait)(void *stream, void *event); /* work queued from now on waits for the event */
    int (*event_create)(void **event);
    int (*event_free)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_query)(void *event);
    int (*event_sync)(void *event);
    int (*copy)(void *to, const void *from, size_t bytes, cuda_direction direction, void *stream);
    /* Work queued on the stream between graph_begin and graph_end is recorded instead of run. An error of
     * either call, or of the work, ends the recording and discards it. */
    int (*graph_begin)(void *stream);
    int (*graph_end)(void *stream, void **graph);
    int (*graph_launch)(void *graph, void *stream);
    int (*graph_free)(void *graph);
    /* Loads code compiled at run time (compiler.h) on any GPU that it was compiled for; its kernels take one
     * struct. */
    int (*module_load)(void **module, const void *image, size_t bytes);
    int (*module_kernel)(void *module, const char *name, void **kernel);
    int (*module_unload)(void *module);
    int (*launch)(void *kernel, unsigned blocks, unsigned threads, const void *argument, size_t bytes,
                  void *stream);
    int (*last_error)(void); /* error of the launches since the last call */
    const char *(*error_text)(int code);
    const char *made_for; /* the GPUs that the kernels were compiled for, as text for messages */
} cuda_driver;

/* The driver that this plug-in was built with. */
const cuda_driver *cuda_driver_default(void);

#ifdef __cplusplus
}
#endif
#endif
