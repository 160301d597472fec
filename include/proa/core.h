/* Proa core: dtypes, shapes, tensors, scopes, errors, devices, memory, random numbers, flags.
 * Everything else is built on this header, which includes no other header of Proa.
 * Ownership words used in every comment: "new" results belong to the current scope;
 * "borrowed" results belong to somebody else; "kept" results are yours to release. */
#ifndef PROA_CORE_H
#define PROA_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if defined(_WIN32)
#define PROA_API
#else
#define PROA_API __attribute__((visibility("default")))
#endif
#define PROA_MUST_CHECK __attribute__((warn_unused_result))
#define PROA_PRINTF(f, a) __attribute__((format(printf, f, a)))

#ifdef __cplusplus
#define PROA_NORETURN [[noreturn]]
#define PROA_LITERAL(T) T
extern "C" {
#else
#define PROA_NORETURN _Noreturn
#define PROA_LITERAL(T) (T)
#endif

#define PROA_MAX_DIMS 9

/* ---- dtypes ---------------------------------------------------------------------------- */

/* X(NAME, name, bytes, wire): wire is Paddle's VarType.Type number. The order is the promotion order
 * within a kind and never changes; this list is the only one. */
#define PROA_DTYPES(X)       \
    X(BOOL, bool, 1, 0)      \
    X(U8, uint8, 1, 20)      \
    X(I8, int8, 1, 21)       \
    X(I16, int16, 2, 1)      \
    X(I32, int32, 4, 2)      \
    X(I64, int64, 8, 3)      \
    X(F16, float16, 2, 4)    \
    X(BF16, bfloat16, 2, 22) \
    X(F32, float32, 4, 5)    \
    X(F64, float64, 8, 6)    \
    X(C64, complex64, 8, 23) \
    X(C128, complex128, 16, 24)

/* PROA_NODTYPE (zero) means "not given": the default of every dtype option. */
typedef enum proa_dtype {
    PROA_NODTYPE = 0,
#define PROA_X(NAME, name, bytes, wire) PROA_##NAME,
    PROA_DTYPES(PROA_X)
#undef PROA_X
        PROA_DTYPE_COUNT
} proa_dtype;

/* "float32", … ; "none" for PROA_NODTYPE. Borrowed, static. */
PROA_API const char *proa_dtype_name(proa_dtype dtype);
/* Bytes of one element; 0 for PROA_NODTYPE. */
PROA_API size_t proa_dtype_size(proa_dtype dtype);
/* The dtype of this name ("float32"), or PROA_NODTYPE; sets no error. */
PROA_API proa_dtype proa_dtype_from_name(const char *name);
/* dtype used where none is given for floating results (float32 at start; per thread). WRONG_TYPE when set to
 * one that is not floating. */
PROA_API proa_dtype proa_default_dtype(void);
PROA_API void proa_set_default_dtype(proa_dtype dtype);

/* ---- errors ---------------------------------------------------------------------------- */

/* X(CODE, exception, category, text): exception and category as in Paddle 2.6.2. A thread has one error at
 * a time: the first stays until proa_finish, proa_take_error or proa_clear_error. While it is set every op
 * returns NULL, and every function that changes state returns it and does nothing. */
#define PROA_ERRORS(X)                                                          \
    X(OK, None, none, "no error")                                               \
    X(INVALID_ARGUMENT, ValueError, InvalidArgument, "invalid argument")        \
    X(WRONG_TYPE, RuntimeError, NotFound, "wrong type")                         \
    X(OUT_OF_RANGE, IndexError, OutOfRange, "out of range")                     \
    X(NOT_FOUND, RuntimeError, NotFound, "not found")                           \
    X(NO_FILE, FileNotFoundError, NotFound, "no such file")                     \
    X(OUT_OF_MEMORY, MemoryError, ResourceExhausted, "out of memory")           \
    X(OVERFLOW, MemoryError, ResourceExhausted, "size too large")               \
    X(IO, OSError, External, "input/output failed")                             \
    X(CORRUPT, ValueError, InvalidArgument, "corrupt data")                     \
    X(UNSUPPORTED, NotImplementedError, Unimplemented, "not supported")         \
    X(BAD_STATE, RuntimeError, PreconditionNotMet, "called in the wrong state") \
    X(UNAVAILABLE, RuntimeError, Unavailable, "not available")                  \
    X(TIMEOUT, TimeoutError, ExecutionTimeout, "timed out")                     \
    X(NUMERIC, RuntimeError, PreconditionNotMet, "NaN or infinity")             \
    X(INTERNAL, SystemError, Fatal, "internal error")

typedef enum proa_status {
#define PROA_X(CODE, exception, category, text) PROA_ERR_##CODE,
    PROA_ERRORS(PROA_X)
#undef PROA_X
        PROA_ERR_COUNT
} proa_status;
#define PROA_OK PROA_ERR_OK

/* Sets this thread's error unless one is set already; returns the code that is set afterwards. */
PROA_API proa_status proa_fail(proa_status code, const char *format, ...) PROA_PRINTF(2, 3);
/* This thread's error code: PROA_OK if none. */
PROA_API proa_status proa_error(void);
/* The message of this thread's error; "" if none. Borrowed until the error is cleared. */
PROA_API const char *proa_error_message(void);
/* "ValueError", … : the Python exception that the code maps to. */
PROA_API const char *proa_error_exception(proa_status code);
/* "invalid argument", … : the code in words. Borrowed, static. */
PROA_API const char *proa_error_text(proa_status code);
/* Forgets this thread's error: ops run again. */
PROA_API void proa_clear_error(void);
/* The end of a program: prints the error, if any, to `to` (NULL: prints nothing), releases what the
 * thread's root scope holds, clears the error; returns 0, or 1 after an error. */
PROA_API int proa_finish(FILE *to) PROA_MUST_CHECK;

#define PROA_TRY(expression)                        \
    do {                                            \
        proa_status proa_try_ = (expression);       \
        if (proa_try_ != PROA_OK) return proa_try_; \
    } while (0)

/* ---- small values ---------------------------------------------------------------------- */

typedef struct proa_tensor proa_tensor;

/* A list of integers: the values `at`; or, for an attribute that tensors may supply, one 1-D integer
 * `tensor`, or `tensors`, one of one element per entry, where `at` has the entries that are NULL. */
typedef struct proa_ints {
    int64_t count;
    const int64_t *at;
    proa_tensor *tensor;
    proa_tensor *const *tensors;
} proa_ints;

typedef struct proa_floats {
    int64_t count;
    const double *at;
} proa_floats;

typedef struct proa_strings {
    int64_t count;
    const char *const *at;
} proa_strings;

typedef struct proa_tensors {
    int64_t count;
    proa_tensor **at;
} proa_tensors;

typedef enum proa_scalar_kind {
    PROA_SCALAR_NONE = 0, /* not given */
    PROA_SCALAR_BOOL,
    PROA_SCALAR_INT,
    PROA_SCALAR_FLOAT,
    PROA_SCALAR_COMPLEX,
    PROA_SCALAR_TENSOR /* a one-element tensor supplies it */
} proa_scalar_kind;

typedef struct proa_scalar {
    proa_scalar_kind kind;
    int64_t i;    /* BOOL and INT */
    double f, im; /* FLOAT: f; COMPLEX: f + im·i */
    proa_tensor *tensor;
} proa_scalar;

typedef union proa_chain_value {
    int64_t i; /* BOOL and INT; a dtype is an INT */
    double f;  /* FLOAT */
} proa_chain_value;

/* A step of an elementwise chain (fused_elementwise): an op of the table, its operands and its attributes.
 * Steps are compared and hashed by their bytes, so that whatever an op does not use is 0. */
typedef struct proa_chain_step {
    const struct proa_op *op;
    int8_t in[3];     /* number of an input, or ~number of the earlier step whose result is read */
    bool out;         /* the result is an output of the chain */
    uint8_t kinds[4]; /* proa_scalar_kind of each attribute, in the order of the op's fields */
    proa_chain_value values[4];
} proa_chain_step;

enum { PROA_STEPS_MAX = 32 }; /* steps of a chain: their intermediate results stay in the L1 cache */

typedef struct proa_steps {
    int64_t count;
    const proa_chain_step *at;
} proa_steps;

/* The steps of a text such as "t0 = add x0 x1; out leaky_relu t0 negative_slope=0.3": each names an op, its
 * operands (x<i>: an input, t<i>: the result of step i) and its attributes; "out" marks outputs. Their memory
 * ends with the scope. INVALID_ARGUMENT and no steps for any other text. */
PROA_API proa_steps proa_steps_read(const char *text);

/* A proa_scalar of each kind; PROA_SCALAR(v) chooses by v's type. A tensor is borrowed: it must have one
 * element and live as long as the scalar is used. */
PROA_API proa_scalar proa_scalar_bool(bool v);
PROA_API proa_scalar proa_scalar_int(int64_t v);
PROA_API proa_scalar proa_scalar_float(double v);
PROA_API proa_scalar proa_scalar_complex(double re, double im);
PROA_API proa_scalar proa_scalar_tensor(proa_tensor *t);

/* PROA_INTS(1, 2): a proa_ints that lives as long as the enclosing block. */
#define PROA_INTS(...)                                                                      \
    (PROA_LITERAL(proa_ints){(int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                             (const int64_t[]){__VA_ARGS__}, NULL, NULL})
#define PROA_SHAPE(...) PROA_INTS(__VA_ARGS__)
/* The shape of a tensor of rank 0: one element. */
#define PROA_SCALAR_SHAPE (PROA_LITERAL(proa_ints){0, NULL, NULL, NULL})
/* PROA_FLOATS(0.5, 2): a proa_floats; PROA_LIST(x, y): a proa_tensors. They live as long as PROA_INTS. */
#define PROA_FLOATS(...)                                                                    \
    (PROA_LITERAL(proa_floats){(int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), \
                               (const double[]){__VA_ARGS__}})
#define PROA_LIST(...)                                                                                     \
    (PROA_LITERAL(proa_tensors){(int64_t)(sizeof((proa_tensor *[]){__VA_ARGS__}) / sizeof(proa_tensor *)), \
                                (proa_tensor *[]){__VA_ARGS__}})

/* In options zero means "default". Where the default is not zero and zero is wanted: PROA_ZERO.
 * The value is exact both as int64_t and as double. */
#define PROA_ZERO (INT64_MIN + 2048)

/* The absent optional tensor. NULL never means absent: it is what a failed call returned. */
PROA_API extern proa_tensor *const proa_none;
#define PROA_NONE proa_none

/* ---- devices --------------------------------------------------------------------------- */

/* Index of a device among those that are loaded: 0 is the CPU. */
typedef int proa_device_id;
#define PROA_CPU 0

/* The device that this thread makes new tensors on: "cpu", "gpu:0", …. A typed error says how to get one that
 * is not there. An op runs where its inputs are; one without inputs here. Inputs must be on one device,
 * except that a CPU tensor of one element counts as a number. */
PROA_API proa_status proa_set_device(const char *name);
PROA_API const char *proa_get_device(void);
/* Names of devices there are: index 0 is "cpu"; NULL behind the last. */
PROA_API const char *proa_device_name(int index);
/* The name of the device that t's memory is on; "cpu" for a variable of a program. Borrowed, static. */
PROA_API const char *proa_device_of(const proa_tensor *t);
/* Waits for all work queued on this thread's device and returns the error of that work, if any. */
PROA_API proa_status proa_synchronize(void);

/* ---- tensors --------------------------------------------------------------------------- */

/* New tensor with a copy of `data` (row-major, prod(shape) elements of dtype). */
PROA_API proa_tensor *proa_from_data(const void *data, proa_ints shape, proa_dtype dtype);
/* t itself if it is on that device, otherwise a new copy there. Recorded: a gradient comes back. */
PROA_API proa_tensor *proa_to_device(proa_tensor *t, const char *device);
/* New uninitialized tensor. */
PROA_API proa_tensor *proa_empty(proa_ints shape, proa_dtype dtype);
/* New tensor over foreign memory, not copied; `release(context)` runs when the last view is gone
 * (NULL: never). strides are in bytes, NULL means row-major. */
PROA_API proa_tensor *proa_from_foreign(void *data, proa_ints shape, const int64_t *strides, proa_dtype dtype,
                                        void (*release)(void *), void *context);
/* Adds or removes one owner; without owners t is freed. retain returns t; both accept NULL. */
PROA_API proa_tensor *proa_retain(proa_tensor *t);
PROA_API void proa_release(proa_tensor *t);

/* Rank: 0 to PROA_MAX_DIMS. */
PROA_API int proa_ndim(const proa_tensor *t);
/* Length of axis (negative counts from the end); -1 when unknown in a program; error when out of range. */
PROA_API int64_t proa_dim(const proa_tensor *t, int axis);
/* The tensor's dims: proa_ndim entries. Borrowed. */
PROA_API const int64_t *proa_shape_of(const proa_tensor *t);
/* The tensor's strides in bytes: proa_ndim entries. Borrowed. */
PROA_API const int64_t *proa_strides_of(const proa_tensor *t);
/* The dtype of t's elements; never PROA_NODTYPE. */
PROA_API proa_dtype proa_dtype_of(const proa_tensor *t);
/* Number of elements; -1 when a dim is unknown. */
PROA_API int64_t proa_numel(const proa_tensor *t);
/* True if the elements are stored row-major, one after the other. */
PROA_API bool proa_is_contiguous(const proa_tensor *t);
/* True for a variable of a program: it has a shape but no data. */
PROA_API bool proa_is_symbolic(const proa_tensor *t);
/* Address of element 0. Borrowed; NULL for symbolic tensors; on a device it is no address of the
 * host's. Writing through it is the caller's affair: call proa_touch afterwards so that a recorded use
 * of the old value is noticed. */
PROA_API void *proa_data(const proa_tensor *t);
PROA_API void proa_touch(proa_tensor *t);
/* The one element as a number (of a complex one the real part). INVALID_ARGUMENT unless numel is 1, BAD_STATE
 * for a symbolic tensor: NaN, or 0. proa_item_int is exact for integers, cuts fractions off, and is OVERFLOW
 * beyond 64 bits. */
PROA_API double proa_item(const proa_tensor *t);
PROA_API int64_t proa_item_int(const proa_tensor *t);
/* Makes t a tensor on the memory of `from`, with its dtype; t keeps its address and its shape. What t held is
 * released. INVALID_ARGUMENT unless both are dense and contiguous, with as many elements, and leaves. */
PROA_API proa_status proa_share_memory(proa_tensor *t, proa_tensor *from);
/* True if both are in one block of memory, as slices of a buffer are. */
PROA_API bool proa_shares_memory(const proa_tensor *a, const proa_tensor *b);
/* Copies the elements, row-major, to `to` (bytes must equal numel × element size). */
PROA_API proa_status proa_copy_out(const proa_tensor *t, void *to, size_t bytes);
/* Overwrites the elements from row-major memory. Bumps the version. */
PROA_API proa_status proa_copy_in(proa_tensor *t, const void *from, size_t bytes);
/* Name of a parameter or variable; NULL if it has none. */
PROA_API const char *proa_name_of(const proa_tensor *t);
/* Sets the name, which is copied; NULL removes it. */
PROA_API proa_status proa_set_name(proa_tensor *t, const char *name);
/* Prints shape, dtype and (abridged) values. */
PROA_API void proa_print(const proa_tensor *t, FILE *to);

/* ---- rows ------------------------------------------------------------------------------ */

/* SelectedRows (tensors of kind rows): a table [height, …] of which only some rows are stored and the others
 * are zero, as the gradient of a large embedding. The tensor's own shape and elements are those of the stored
 * rows, [n, …]; entry i of its index is the row number of stored row i, and duplicate rows add up. Such a
 * tensor has no gradient itself. Ops accept it only where their table entry says so (such as scale, multiply,
 * divide, cast, assign, the optimizers' steps); the others fail with an error that names the op and the
 * argument. */

/* New, on the memory of values (floating, [n, …]) and with a copy of index (int32 or int64, [n], each at
 * least 0 and below height). */
PROA_API proa_tensor *proa_rows_new(proa_tensor *index, proa_tensor *values, int64_t height);
/* True for a tensor of kind rows. */
PROA_API bool proa_is_rows(const proa_tensor *t);
/* The row numbers, int64 [n]. Borrowed; do not write to it. This and the functions below return NULL with an
 * error if t is not of kind rows. */
PROA_API proa_tensor *proa_rows_index(const proa_tensor *t);
/* Number of rows of the table; -1 with the error. */
PROA_API int64_t proa_rows_height(const proa_tensor *t);
/* New dense tensor [n, …] on the same memory. */
PROA_API proa_tensor *proa_rows_values(proa_tensor *t);
/* Sums duplicate rows and sorts the rows by number: a new tensor, or t itself if it is so already. */
PROA_API proa_tensor *proa_rows_merge(proa_tensor *t);
/* New dense tensor [height, …]. */
PROA_API proa_tensor *proa_rows_to_dense(proa_tensor *t);
/* a + b, at least one of kind rows: merged rows if both are, dense otherwise. New. */
PROA_API proa_tensor *proa_rows_add(proa_tensor *a, proa_tensor *b);

/* ---- scopes ---------------------------------------------------------------------------- */

/* Every function that makes a tensor hands it to the thread's innermost scope, and leaving a scope
 * releases what was not kept. A thread has a root scope from the start. */
typedef struct proa_scope {
    uint32_t mark, depth;
} proa_scope;

/* Opens a scope of this thread; leaving one leaves those that were opened in it and still are. In C the
 * macros PROA_SCOPE and PROA_SCOPED below do both; these two are for other languages' bindings. */
PROA_API proa_scope proa_scope_enter(void);
PROA_API void proa_scope_leave(const proa_scope *scope);
/* Adds one owner, so that t outlives its scope; balance it by proa_release. Returns t. */
PROA_API proa_tensor *proa_keep(proa_tensor *t);
/* proa_keep, where nothing else in this scope needs t: the scope's own share becomes the caller's if t was
 * made in it. Returns t. */
PROA_API proa_tensor *proa_take(proa_tensor *t);
/* Moves t, made in this scope, to the enclosing one when this one is left. Returns t. */
PROA_API proa_tensor *proa_return(proa_tensor *t);
/* Hands one owner's share of t, which proa_keep or proa_retain gave, to the current scope. Returns t, or NULL
 * after an error. */
PROA_API proa_tensor *proa_adopt(proa_tensor *t);
/* One more owner of somebody else's t until the current scope ends: for bindings, whose objects may vanish in
 * the middle of a call. False with an error. */
PROA_API bool proa_scope_hold(proa_tensor *t);
/* Releases t before its scope ends; t must have been made in a scope of this thread. */
PROA_API void proa_drop(proa_tensor *t);
/* Memory that ends with the scope; NULL and an error when there is none. */
PROA_API void *proa_scope_alloc(size_t bytes);

/* PROA_SCOPE { … }: a scope that break, return and goto leave, too. */
#define PROA_SCOPE PROA_SCOPE_1_(__COUNTER__)
#define PROA_SCOPE_1_(n) PROA_SCOPE_2_(n)
#define PROA_SCOPE_2_(n)                                                                            \
    for (proa_scope proa_scope_##n __attribute__((cleanup(proa_scope_leave))) = proa_scope_enter(), \
                                   *proa_once_##n = &proa_scope_##n;                                \
         proa_once_##n; proa_once_##n = NULL)
/* PROA_SCOPED, used as a declaration, makes the rest of the enclosing block a scope. */
#define PROA_SCOPED PROA_SCOPED_1_(__COUNTER__)
#define PROA_SCOPED_1_(n) PROA_SCOPED_2_(n)
#define PROA_SCOPED_2_(n) \
    proa_scope proa_scoped_##n __attribute__((cleanup(proa_scope_leave), unused)) = proa_scope_enter()

/* ---- memory ---------------------------------------------------------------------------- */

typedef struct proa_memory_stats {
    int64_t live_bytes, live_blocks; /* allocated and not freed */
    int64_t cached_bytes;            /* kept for reuse */
    int64_t peak_bytes;              /* highest live_bytes since the last reset */
    int64_t allocations, cache_hits; /* counts since the start */
} proa_memory_stats;

/* Statistics of the host allocator, summed over all threads. */
PROA_API proa_memory_stats proa_memory_get_stats(void);
/* Sets peak_bytes to live_bytes. */
PROA_API void proa_memory_reset_peak(void);
/* Gives cached memory back to the system. */
PROA_API void proa_memory_trim(void);
/* Cap on live bytes; 0 = none. Over it allocations fail with OUT_OF_MEMORY. */
PROA_API void proa_memory_set_cap(int64_t bytes);
/* Testing: the n-th allocation from now (0 = next) fails once; -1 switches off. Returns how many
 * allocations happened since the last call. */
PROA_API int64_t proa_memory_fail_after(int64_t n);

/* ---- random numbers -------------------------------------------------------------------- */

/* Philox4x32-10. The state is the seed and the number of 128-bit blocks handed out so far. */
typedef struct proa_rng_state {
    uint64_t seed, offset;
} proa_rng_state;

/* Seeds this thread's random generator (offset 0), reads its state, sets its state. Unseeded, the first
 * thread that uses Proa has seed 0, the next one 1, and so on. */
PROA_API void proa_seed(uint64_t seed);
PROA_API proa_rng_state proa_rng_get(void);
PROA_API void proa_rng_set(proa_rng_state state);

/* ---- threads, numerics, flags ---------------------------------------------------------- */

/* Number of threads that kernels called from this thread use, ≥ 1; proa/threads.h says why. Results do not
 * depend on it, except for convolutions and products that oneDNN splits by thread and linear algebra on
 * matrices of more than 128·128 elements; FLAGS_deterministic removes these exceptions. */
PROA_API void proa_set_threads(int n);
PROA_API int proa_threads(void);
/* Treats denormal floats as zero on this thread and its workers. */
PROA_API void proa_flush_denormals(bool on);
/* FLAGS_<name>: from the environment at start, or set here, for all threads; docs/c-api.md lists them.
 * NOT_FOUND for an unknown name, INVALID_ARGUMENT for a value that does not fit. The text that proa_get_flag
 * returns is valid for this thread's next few calls only: copy it. */
PROA_API proa_status proa_set_flag(const char *name, const char *value);
PROA_API const char *proa_get_flag(const char *name);
/* "0.2.0". Borrowed, static. */
PROA_API const char *proa_version(void);
/* One line: CPU level, threads, libraries found. Borrowed, static. */
PROA_API const char *proa_build_info(void);

#ifdef __cplusplus
}
inline proa_scalar proa_scalar_of(bool v) { return proa_scalar_bool(v); }
inline proa_scalar proa_scalar_of(int v) { return proa_scalar_int(v); }
inline proa_scalar proa_scalar_of(long v) { return proa_scalar_int(v); }
inline proa_scalar proa_scalar_of(long long v) { return proa_scalar_int(v); }
inline proa_scalar proa_scalar_of(double v) { return proa_scalar_float(v); }
inline proa_scalar proa_scalar_of(proa_tensor *v) { return proa_scalar_tensor(v); }
inline proa_scalar proa_scalar_of(proa_scalar v) { return v; }
#define PROA_SCALAR(v) proa_scalar_of(v)
#else
static inline proa_scalar proa_scalar_same_(proa_scalar v) { return v; }
/* A proa_scalar from a bool, integer, floating number, one-element tensor, or proa_scalar. */
#define PROA_SCALAR(v) \
    _Generic((v),                                                                                  \
        bool: proa_scalar_bool,                                                                    \
        float: proa_scalar_float,                                                                  \
        double: proa_scalar_float,                                                                 \
        proa_tensor *: proa_scalar_tensor,                                                         \
        proa_scalar: proa_scalar_same_,                                                            \
        default: proa_scalar_int)(v)
#endif
#endif
