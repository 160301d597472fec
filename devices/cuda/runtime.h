/* Internal interface of the plug-in: the host's functions under their usual names, the context of a GPU,
 * scratch memory, and errors that name the op. C; may use proa/device.h. */
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

/* An invalid element that a kernel found (an index out of range): the first thread that finds one writes it
 * into pinned memory (cuda_raise), and it becomes an error where the host next waits. */
typedef struct cuda_fault {
    int raised; /* 0: nothing is wrong */
    const char *op, *argument;
    int64_t entry, value, first, last; /* element `entry` is `value`; expected first to last */
} cuda_fault;

/* Work that a thread queued between record_begin and record_end (record.c). */
typedef struct cuda_recording {
    void *graph;
    cuda_pool *pool; /* what kernels took for themselves meanwhile: nobody else's until the recording goes */
    bool broken;     /* something could not be kept */
    proa_rng_state
        *draws;      /* on the GPU: where its random numbers start, written before each replay; or NULL */
    uint64_t blocks; /* of them a replay takes */
} cuda_recording;

/* Start of a kernel's random numbers: `at`; or, in a recording, that many blocks behind the value of `base`,
 * on the GPU, when it is replayed (cuda_drawn, kernel.h). */
typedef struct cuda_draws {
    proa_rng_state at;
    const proa_rng_state *base; /* NULL: none */
} cuda_draws;

/* One GPU. All work goes to one stream: what is queued later sees what was queued before. Copies from and to
 * the host that need not stand in that row have one of their own, which meets it by events. */
typedef struct cuda_context {
    int index;
    const cuda_driver *driver;
    void *stream, *copies;
    cuda_pool *pool;
    struct cuda_transfers *transfers;   /* transfer.h; NULL: none so far */
    void *computed;                     /* event of `stream`, for copies to the host */
    const proa_op *running;             /* NULL: none */
    const proa_op *last[CUDA_LAST_OPS]; /* a ring: what has been queued lately */
    unsigned n_last;
    struct cuda_staging *staging; /* pinned memory that copies pass through */
    cuda_fault *fault;            /* pinned; kernels write it */
    void *libraries;              /* library.h's handles */
    void *convolutions;           /* convolution.cu's handle and algorithms */
    cuda_description description;
    pthread_mutex_t lock;      /* recursive: who queues work or waits holds it, a recording all the while */
    cuda_recording *recording; /* NULL: what is queued runs */
    /* Numbers of host waits, kernels launched, recordings replayed, copies with strides (layouts' too). */
    int64_t waits, launches, replays, strided_copies;
    char name[16], text[256];
} cuda_context;

extern const proa_host_api *cuda_host;

/* The GPUs, by number; NULL: there are no more. */
const cuda_context *cuda_gpu(int i);

/* Errors, as the library's kernels report them. */
proa_status cuda_fail(proa_status code, const char *format, ...) PROA_PRINTF(2, 3);
/* 0: PROA_OK; otherwise an error that names what was done and the op. `late`: the code came from a
 * function that waits, so that any op queued before may be meant. */
proa_status cuda_check(cuda_context *c, int code, const char *what, bool late);
/* Memory for the length of a kernel: freed in stream order, as soon as the work that uses it is queued. */
void *cuda_scratch(cuda_context *c, size_t bytes);
void cuda_scratch_free(cuda_context *c, void *p);
/* The same for as long as the GPU's context lives, also where a recording is under way. */
void *cuda_keep(cuda_context *c, size_t bytes);

/* convolution.cu: "", or why there is no convolution. */
const char *cuda_convolution_why_not(void);

/* Host to device, for a kernel's own tables; on return `from` may be overwritten. */
proa_status cuda_write(cuda_context *c, void *to, const void *from, size_t bytes);
/* Copies from the device and waits: for ops whose outputs' shapes depend on values. */
proa_status cuda_read(cuda_context *c, void *to, const void *from, size_t bytes);
/* Queues a copy on the device; 0 bytes are none. */
proa_status cuda_move(cuda_context *c, void *to, const void *from, size_t bytes);

/* record.c: the table's functions. What cannot be kept calls cuda_unrecordable, which while a recording is
 * under way is true and an error. */
proa_status cuda_record_begin(void *context);
void *cuda_record_end(void *context);
proa_status cuda_record_replay(void *context, void *recording);
void cuda_record_free(void *context, void *recording);
bool cuda_unrecordable(cuda_context *c);
/* Blocks of the thread's generator, as the CPU's kernel takes them; while a recording is under way nothing is
 * taken: each replay takes them for itself. */
proa_status cuda_draw(cuda_context *c, uint64_t blocks, cuda_draws *from);

/* copy.cu. A few bytes of the host travel as an argument of the launch. */
typedef struct cuda_small {
    char at[64];
} cuda_small;
proa_status cuda_write_small(cuda_context *c, void *to, const void *from, size_t bytes);
proa_status cuda_copy_strided(cuda_context *c, const proa_strided_copy *copy);
proa_status cuda_fill(cuda_context *c, void *to, const void *value, size_t item, int64_t count);

/* Kernels register themselves when the library is loaded, each under its op's name. */
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
