/* Core's services beside tensors and ops: allocation, threads, CPU level, streams, scope internals, flags.
 * May use proa/core.h. */
#ifndef PROA_CORE_INTERNAL_H
#define PROA_CORE_INTERNAL_H

#include <proa/op.h>

#include <string.h>

/* ---- memory ---------------------------------------------------------------------------- */
/* All of Proa's own allocations go through these: they can be made to fail, and are counted.
 * 64-byte aligned, cached by size class per thread. NULL sets OUT_OF_MEMORY. */
void *proa__alloc(size_t bytes);
void *proa__calloc(size_t bytes);
void proa__free(void *p); /* accepts NULL */
/* Grows like realloc; the old block stays valid on failure. */
void *proa__realloc(void *p, size_t bytes);
char *proa__strdup(const char *s);
/* a·b and a+b without overflow; false (and OVERFLOW set) otherwise. */
bool proa__mul_size(size_t a, size_t b, size_t *out);

/* ---- threads --------------------------------------------------------------------------- */
/* Runs body on ranges that cover [0, n), on threads that have at least `grain` items each. Threads that are
 * done take parts of what others have left: where ranges end depends on timing, and no result may on that. */
typedef void (*proa_range_fn)(int64_t begin, int64_t end, void *context);
void proa__parallel(int64_t n, int64_t grain, proa_range_fn body, void *context);

/* ---- CPU levels ------------------------------------------------------------------------ */
/* 0 = baseline of the architecture, then x86-64-v3 = 1, x86-64-v4 = 2. FLAGS_cpu_level lowers it. */
int proa__cpu_level(void);
/* A quarter of the cache that cores share, but 2 to 8 MiB; 2 MiB where its size is unknown. */
int64_t proa__cache_quarter(void);

/* ---- random ---------------------------------------------------------------------------- */
/* Reserves `blocks` 128-bit Philox blocks of this thread's generator; returns where they start. */
proa_rng_state proa__rng_reserve(uint64_t blocks);

/* ---- streams (devices: core/device.h) --------------------------------------------------------------- */
struct proa_stream {
    int device;
};
proa_stream *proa__stream(void); /* the thread's current stream; borrowed */

/* ---- flags ----------------------------------------------------------------------------- */
/* The flags, once: X(name, default, meaning). Read through proa__flag_int / proa_get_flag. */
#define PROA_FLAGS(X)                                                                                      \
    X(check_nan_inf, "0", "1: the watch door fails on NaN or infinity in an op's outputs")                 \
    X(cpu_level, "9", "highest CPU level to use: 0 baseline, 1 x86-64-v3, 2 x86-64-v4")                    \
    X(num_threads, "0", "threads per calling thread; 0: all cores")                                        \
    X(deterministic, "0", "1: no result depends on the number of threads, libraries' included")            \
    X(backends, "onednn,openblas,cpu", "kernel families that may be used")                                 \
    X(device_plugins, "",                                                                                  \
      "files of device plug-ins, with colons between; loaded when a device is not there")                  \
    X(device_fallback, "0", "1: ops that a device has no kernel for run on the CPU, with copies")          \
    X(device_sync, "0", "1: every op on a device is waited for, so that errors name the right one")        \
    X(allow_tf32, "0", "1: a GPU may round operands of float32 products and convolutions to TF32")         \
    X(cuda_cache, "1", "0: kernels that a GPU's plug-in compiles are not kept on disk")                    \
    X(memory_cap, "0", "most bytes that may be live; 0: no cap")                                           \
    X(passes, "all", "passes that executors run on their copy of a program: names, or -name to leave out") \
    X(dump_passes, "0", "1: programs are printed to stderr before passes and after each")                  \
    X(blocked, "1", "0: tensors keep the plain layout between kernels that would block it")                \
    X(winograd, "1", "0: convolutions take no tiles (Winograd's), whose sums round differently")           \
    X(deferred_bytes, "65536", "bytes from which a loaded model's weight is read when it is first used")   \
    X(map_parameters, "0", "1: a loaded model's weights are pages of its file, which nobody may write to") \
    X(update_bytes, "262144", "bytes of parameters that wait for one another before a step follows")       \
    X(kept_plans, "64",                                                                                    \
      "plans that an executor keeps, one a set of input shapes; the least recently used goes")             \
    X(kept_programs, "32", "programs that a function under to_static keeps; the least recently used goes") \
    X(nontemporal_bytes, "0",                                                                              \
      "outputs from so many bytes on are written with non-temporal stores; 0: a quarter of the shared "    \
      "cache")                                                                                             \
    X(verbose, "0", "1: which kernel an op takes for new shapes, and why others declined, goes to stderr") \
    X(call_stack_level, "1", "2: errors show where in the library they were raised")
typedef enum proa_flag {
#define PROA_X(name, fallback, meaning) PROA_FLAG_##name,
    PROA_FLAGS(PROA_X)
#undef PROA_X
        PROA_FLAG_COUNT
} proa_flag;
int64_t proa__flag_int(proa_flag flag); /* an atomic load */
/* False when FLAGS_backends leaves this kernel's family out; the family is the last part of its name. */
bool proa__backend_allowed(const proa_kernel *kernel);

/* ---- scopes ---------------------------------------------------------------------------- */
/* Puts a fresh handle (one reference) into the innermost scope; false: no memory, t was released. */
bool proa__scope_push(proa_tensor *t);

/* ---- ops ------------------------------------------------------------------------------- */
/* Start of every op error: "matmul: ". */
proa_status proa__op_fail(proa_status code, const proa_op *op, const char *argument, const char *format, ...)
    PROA_PRINTF(4, 5);
/* One block with a copy of args: lists and strings inline, tensors retained. */
void *proa__args_copy(const proa_op *op, const void *args);
void proa__args_free(const proa_op *op, void *args);
/* Runs kernels on filled args (outputs allocated): what watch calls innermost. */
proa_status proa__dispatch(proa_call *call);
/* Picks the first kernel that does not decline; used by plans. state may be NULL afterwards. */
proa_status proa__pick_kernel(const proa_op *op, const void *args, const proa_kernel **kernel, void **state);

/* Autocast's: on this thread the convert door sees the calls of all ops, not only of those that promote. */
void proa__convert_all(bool all);

/* ---- watching -------------------------------------------------------------------------- */
/* Every call of every thread goes through `observer`, which sends it on with
 * proa_call_inner(PROA_DOOR_WATCH, call). NULL: none. */
typedef proa_status (*proa__observer)(proa_call *call);
void proa__observe(proa__observer observer);
/* True if the calls of all threads are watched: executors ask. */
bool proa__watching(void);

/* ---- process groups -------------------------------------------------------------------- */
typedef enum proa_reduce {
    PROA_REDUCE_SUM,
    PROA_REDUCE_MAX,
    PROA_REDUCE_MIN,
    PROA_REDUCE_PROD,
    PROA_REDUCE_AVG
} proa_reduce;
typedef struct proa_group proa_group;
struct proa_group {
    int rank, size;
    void *context;
    proa_status (*all_reduce)(proa_group *g, void *data, int64_t count, proa_dtype dtype, proa_reduce op);
    proa_status (*broadcast)(proa_group *g, void *data, size_t bytes, int root);
    proa_status (*all_gather)(proa_group *g, const void *in, void *out, size_t bytes_each);
    proa_status (*barrier)(proa_group *g);
    void (*close)(proa_group *g);
};
/* The group collectives use when none is named: one rank until dist installs another. */
proa_group *proa__default_group(void);
void proa__set_default_group(proa_group *g);

#endif
