/* Core's services apart from tensors: allocation, parallel loops, CPU level, random numbers, streams, flags,
 * scopes, dispatch and errors of ops, observers, process groups. May use proa/op.h. */
#ifndef PROA_CORE_INTERNAL_H
#define PROA_CORE_INTERNAL_H

#include <proa/op.h>

#include <string.h>

/* ---- memory ---------------------------------------------------------------------------- */
/* Allocation for all of Proa: counted, and made to fail on request by tests. 64-byte aligned, cached by size
 * class per thread. NULL sets OUT_OF_MEMORY. */
void *proa__alloc(size_t bytes);
void *proa__calloc(size_t bytes);
void proa__free(void *p); /* accepts NULL */
/* Grows like realloc; the old block stays valid on failure. */
void *proa__realloc(void *p, size_t bytes);
char *proa__strdup(const char *s);
/* *out = a · b; false, with OVERFLOW set, when the product does not fit. */
bool proa__mul_size(size_t a, size_t b, size_t *out);

/* ---- threads --------------------------------------------------------------------------- */
/* Parallel for with work stealing: calls body on disjoint ranges that cover [0, n), on at most as many
 * threads as get `grain` items each. Bounds of ranges depend on timing; results must not depend on them. */
typedef void (*proa_range_fn)(int64_t begin, int64_t end, void *context);
void proa__parallel(int64_t n, int64_t grain, proa_range_fn body, void *context);
/* proa__parallel for a body that reads more of its input than its range, such as all indices for those of its
 * rows: makes one range a thread, not several. */
void proa__parallel_scans(int64_t n, int64_t grain, proa_range_fn body, void *context);

/* ---- CPU levels ------------------------------------------------------------------------ */
/* The microarchitecture level: 0 = baseline of the architecture, 1 = x86-64-v3, 2 = x86-64-v4.
 * FLAGS_cpu_level lowers it. */
int proa__cpu_level(void);
/* A quarter of the third-level cache, clamped to 2 to 8 MiB; 2 MiB where the size is unknown. In bytes. */
int64_t proa__cache_quarter(void);

/* ---- random ---------------------------------------------------------------------------- */
/* Reserves `blocks` 128-bit Philox blocks of this thread's generator; returns the state at which they
 * start. */
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
    X(allow_tf32, "0",                                                                                     \
      "1: a GPU may round operands of float32 products, convolutions and attention to TF32")               \
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
int64_t proa__flag_int(proa_flag flag); /* an atomic load; of a text: how often it was set */
/* False when FLAGS_backends excludes this kernel's family, the last part of the kernel's name ("_cpu",
 * "_onednn"). */
bool proa__backend_allowed(const proa_kernel *kernel);

/* ---- scopes ---------------------------------------------------------------------------- */
/* Puts a fresh handle (one reference) into the innermost scope; false: no memory, and t was released. */
bool proa__scope_push(proa_tensor *t);

/* ---- ops ------------------------------------------------------------------------------- */
/* Fails with a message that begins with the op's name and, if given, the argument: "matmul: ". */
proa_status proa__op_fail(proa_status code, const proa_op *op, const char *argument, const char *format, ...)
    PROA_PRINTF(4, 5);
/* Copies args into one block: lists and strings inline, tensors retained. */
void *proa__args_copy(const proa_op *op, const void *args);
void proa__args_free(const proa_op *op, void *args);
/* The run door, the innermost stage of a call: infers and allocates outputs, then runs a kernel. Called when
 * no open door that concerns the call is left. */
proa_status proa__dispatch(proa_call *call);
/* Selects the first kernel of the op that does not decline, for a plan. *state may be NULL afterwards. */
proa_status proa__pick_kernel(const proa_op *op, const void *args, const proa_kernel **kernel, void **state);

/* For autocast: opens the convert door on this thread for all ops, not only for those that promote dtypes. */
void proa__convert_all(bool all);

/* ---- watching -------------------------------------------------------------------------- */
/* Sends every call of every thread through `observer`, which must pass it on with
 * proa_call_inner(PROA_DOOR_WATCH, call). NULL: no observer. */
typedef proa_status (*proa__observer)(proa_call *call);
void proa__observe(proa__observer observer);
/* True if the watch door is open on all threads; executors then send each step through it. */
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
/* The group that collectives use when none is named: the one-rank group until dist installs another. */
proa_group *proa__default_group(void);
void proa__set_default_group(proa_group *g);

#endif
