/* Internal interface of the plug-in: the host's function table (cuda_host), the state of a GPU, scratch
 * memory, recordings, copies, and errors that name the op. C, for CUDA C++ files, too; may use
 * proa/device.h and proa/ops.h. */
#ifndef PROA_CUDA_RUNTIME_H
#define PROA_CUDA_RUNTIME_H

#include "driver.h"
#include "memory.h"

#include <proa/device.h>
#include <proa/ops.h>

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CUDA_LAST_OPS = 8 };

/* An invalid element that a kernel found (for example an index out of range). The first thread that finds one
 * writes it into pinned memory (cuda_raise); the host reports it at its next synchronization. */
typedef struct cuda_fault {
    int raised; /* 0: no error */
    const char *op, *argument;
    int64_t entry, value, first, last; /* element `entry` has `value`; expected first to last */
} cuda_fault;

/* A recording: the work that a thread queues between record_begin and record_end (record.c). */
typedef struct cuda_recording {
    void *graph;
    cuda_pool *pool; /* scratch of the recorded kernels; owned by the recording until it is destroyed */
    bool broken;     /* some work could not be recorded */
    proa_rng_state
        *draws;      /* on the GPU: where its random numbers start, written before each replay; or NULL */
    uint64_t blocks; /* Philox blocks that a replay consumes */
} cuda_recording;

/* Start of a kernel's random numbers in the Philox stream, in blocks: `at`; in a recording, `at` blocks after
 * the value that `base` points to on the GPU at replay (cuda_drawn, kernel.h). */
typedef struct cuda_draws {
    proa_rng_state at;
    const proa_rng_state *base; /* NULL: none */
} cuda_draws;

/* State of one GPU. Kernels, and ordinary copies from the host, go to one stream, in order. Copies to the
 * host, and copies from it that are made ahead of use, go to a second stream, which events synchronize with
 * the first. */
typedef struct cuda_context {
    int index;
    const cuda_driver *driver;
    void *stream, *copies;
    cuda_pool *pool;
    struct cuda_transfers *transfers;   /* transfer.h; NULL before the first transfer */
    void *computed;                     /* event of `stream`, awaited by copies to the host */
    const proa_op *running;             /* NULL: none */
    const proa_op *last[CUDA_LAST_OPS]; /* ring buffer of the ops queued last, for error messages */
    unsigned n_last;
    struct cuda_staging *staging; /* pinned host memory for copies */
    cuda_fault *fault;            /* pinned host memory, written by kernels */
    void *libraries;              /* library.h's handles */
    void *convolutions;           /* convolution.cu's handle and algorithms */
    cuda_description description;
    pthread_mutex_t lock; /* recursive; held while work is queued or awaited, and during a whole recording */
    cuda_recording *recording; /* NULL: work is executed, not recorded */
    /* Counters: host waits, kernels launched, recordings replayed, strided copies (changes of layout
     * included), calls of communicators. */
    int64_t waits, launches, replays, strided_copies, communications;
    char name[16], text[256];
} cuda_context;

extern const proa_host_api *cuda_host;

/* GPU number i; NULL if there are no more. */
const cuda_context *cuda_gpu(int i);

/* Errors, as the library's kernels report them. */
proa_status cuda_fail(proa_status code, const char *format, ...) PROA_PRINTF(2, 3);
/* PROA_OK for code 0, otherwise an error that names the op and what failed. `late`: the code came from a
 * function that waits, so that any op queued before may be the cause. */
proa_status cuda_check(cuda_context *c, int code, const char *what, bool late);
/* Memory for the duration of one kernel: freed in stream order, by cuda_scratch_free, as soon as the work
 * that uses it is queued. */
void *cuda_scratch(cuda_context *c, size_t bytes);
void cuda_scratch_free(cuda_context *c, void *p);
/* Like cuda_scratch, but kept until the GPU's context ends, even if it is called during a recording. */
void *cuda_keep(cuda_context *c, size_t bytes);

/* convolution.cu: "", or why convolutions are unavailable. */
const char *cuda_convolution_why_not(void);

/* Copies a kernel's table from host to device; on return `from` may be overwritten. */
proa_status cuda_write(cuda_context *c, void *to, const void *from, size_t bytes);
/* Copies from the device and waits: for ops whose outputs' shapes depend on values. */
proa_status cuda_read(cuda_context *c, void *to, const void *from, size_t bytes);
/* Queues a copy on the device; with 0 bytes does nothing. */
proa_status cuda_move(cuda_context *c, void *to, const void *from, size_t bytes);

/* record.c: the recording functions of the device table. Work that cannot be recorded calls
 * cuda_unrecordable, which during a recording sets an error and returns true. */
proa_status cuda_record_begin(void *context);
void *cuda_record_end(void *context);
proa_status cuda_record_replay(void *context, void *recording);
void cuda_record_free(void *context, void *recording);
bool cuda_unrecordable(cuda_context *c);
/* Reserves `blocks` Philox blocks of the thread's generator, as the CPU's kernels do. During a recording it
 * reserves none: each replay reserves them. */
proa_status cuda_draw(cuda_context *c, uint64_t blocks, cuda_draws *from);

/* copy.cu. A few bytes of the host travel as an argument of the launch. */
typedef struct cuda_small {
    char at[64];
} cuda_small;
proa_status cuda_write_small(cuda_context *c, void *to, const void *from, size_t bytes);
proa_status cuda_copy_strided(cuda_context *c, const proa_strided_copy *copy);
proa_status cuda_fill(cuda_context *c, void *to, const void *value, size_t item, int64_t count);

/* Kernels register themselves when the plug-in is loaded, each under its op's name. */
typedef struct cuda_registered {
    const char *op;
    const proa_kernel *kernel;
    struct cuda_registered *next;
} cuda_registered;
extern cuda_registered *cuda_kernels;

#ifdef __cplusplus
}
#endif
#endif
