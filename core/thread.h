/* Per-thread state: allocation cache, scope stack, error message, random generator, settings. It is one
 * struct behind one thread-local pointer, so that the library needs little static TLS. Also what the files of
 * core share about memory, doors, flags and kernel selection; a few files of other folders use it, too. */
#ifndef PROA_CORE_THREAD_H
#define PROA_CORE_THREAD_H

#include "core/internal.h"
#include "core/tensor.h"

#include <stdatomic.h>

#if defined(__ELF__)
#define PROA__TLS _Thread_local __attribute__((tls_model("initial-exec")))
#else
#define PROA__TLS _Thread_local
#endif
#define PROA__LIKELY(x) __builtin_expect(!!(x), 1)
#define PROA__UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Allocator size classes of payloads: steps of 64 bytes up to 1 KiB, then four per doubling up to 2 MiB. */
enum {
    PROA__CLASSES = 61,
    PROA__SCOPE_INLINE = 512,
    PROA__MESSAGE = 2048,
    PROA__TEXTS = 8,
    PROA__TEXT = 256
};

typedef struct proa__bin {
    void *head;
    atomic_uint count; /* written by the owner only; statistics read it */
    uint32_t limit;
} proa__bin;

typedef struct proa__thread {
    /* memory */
    atomic_llong pending, pending_peak; /* live bytes not yet in the global count, and their peak */
    atomic_llong allocations, misses, frees;
    uint32_t trim_epoch;
    proa__bin bins[PROA__CLASSES];
    struct proa__thread *next, **link; /* the list of threads; under the memory lock */
    /* scopes */
    uintptr_t *stack;
    uint32_t top, capacity, mark, depth, returns;
    bool root_reported;
    const proa_op *running; /* the op whose kernel is running; for crash reports */
    const proa_kernel *ran; /* the last kernel that returned on this thread; for the profiler */
    /* freeing */
    bool destroying;
    proa_tensor *dying;
    /* settings */
    proa_rng_state rng;
    proa_dtype default_dtype;
    proa_stream stream;
    int threads; /* 0: the process's default */
    struct proa__team *team;
    struct proa__region *region; /* of gomp_parallel_start: made at first use, reused */
    bool flush_denormals;
    /* texts */
    unsigned next_text;
    char texts[PROA__TEXTS][PROA__TEXT];
    char message[PROA__MESSAGE];
    uintptr_t inline_stack[PROA__SCOPE_INLINE];
} proa__thread;

extern PROA__TLS proa__thread *proa__thread_self;
extern PROA__TLS int proa__thread_error;

/* Makes this thread's struct; NULL when the system has no memory (no error is set). */
proa__thread *proa__thread_make(void);
static inline proa__thread *proa__me(void)
{
    proa__thread *me = proa__thread_self;
    return PROA__LIKELY(me != NULL) ? me : proa__thread_make();
}
/* Sets this thread's number of threads (0: the process's default); returns the one before. */
int proa__threads_own(int n);
/* True in a child made by fork: it runs one thread by default. */
bool proa__forked(void);

/* A block is a head of 64 bytes and then the payload. The first PROA__HEAD_FREE bytes of the head belong to
 * the block's user: a storage struct is there, before its data. */
enum { PROA__HEAD = 64, PROA__HEAD_FREE = 48 };
/* memory.c's handlers of a thread's start and end, and of fork. */
void proa__memory_adopt(proa__thread *me);  /* enters the list of threads */
void proa__memory_retire(proa__thread *me); /* gives the cache back, keeps the counts */
void proa__memory_lock(void);
void proa__memory_unlock(void);
/* Bytes that an allocation of this size takes, with head and rounding; where blocks are cached. */
size_t proa__block_bytes(size_t bytes);
/* Blocks over 2 MiB. Sizes include the head. */
size_t proa__large_round(size_t size); /* size of the block that is taken for at least that many bytes */
void *proa__large_reuse(size_t *size); /* from the cache; *size becomes the block's size; NULL: none fits */
void *proa__large_map(size_t size);    /* from the system; NULL: no memory */
void proa__large_give(void *base, size_t size);
void proa__large_trim(void);
int64_t proa__large_cached(void);

/* Opens or closes a door on every thread. */
void proa__door_everywhere(proa_door door, bool open);
/* Turns the watch door's check for NaN and infinity on or off (FLAGS_check_nan_inf). */
void proa__watch_values(bool on);
/* True if FLAGS_backends excludes a kernel family; proa__may_use (below) then asks proa__backend_allowed. */
extern atomic_bool proa__backends_narrowed;
/* True if FLAGS_backends or FLAGS_verbose require that every kernel selection is looked at. */
extern atomic_bool proa__choices_watched;
static inline bool proa__choice_is_special(void)
{
    return PROA__UNLIKELY(atomic_load_explicit(&proa__choices_watched, memory_order_acquire));
}
static inline bool proa__may_use(const proa_kernel *kernel)
{
    return PROA__LIKELY(!atomic_load_explicit(&proa__backends_narrowed, memory_order_acquire)) ||
           proa__backend_allowed(kernel);
}
/* proa_dtype_size, inline. */
static inline size_t proa__dtype_bytes(unsigned dtype)
{
#define PROA_X(NAME, name, bytes, wire) bytes,
    static const uint8_t sizes[PROA_DTYPE_COUNT] = { 0, PROA_DTYPES(PROA_X) };
#undef PROA_X
    return dtype < PROA_DTYPE_COUNT ? sizes[dtype] : 0;
}
/* Releases everything that this thread's scopes hold. */
void proa__scope_leave_all(proa__thread *me);
/* The next message buffer of the thread's ring. Never NULL. */
char *proa__text_next(void);
/* A storage on foreign memory; the caller sets `release` and `context`. */
proa_storage *proa__storage_foreign(void *data, size_t bytes);
/* proa__tensor_refresh; false if the number of elements does not fit (OVERFLOW is set, numel is 0). */
bool proa__tensor_measure(proa_tensor *t);
/* The real part, or the `imaginary` one, of the element of that dtype at address `at`, as a double. */
double proa__element(proa_dtype dtype, const void *at, bool imaginary);
/* Sets or clears flush-to-zero on the running thread. */
void proa__denormals_apply(bool flush);
/* Reads the environment's flags if that has not happened yet. */
void proa__flags_ready(void);

#endif
