/* oneDNN for the kernels of ops/: engine, descriptors, and a prepared primitive that reorders its operands
 * where the primitive wants another layout. Only files built with oneDNN include this. May use core only. */
#ifndef PROA_KERNELS_ONEDNN_H
#define PROA_KERNELS_ONEDNN_H

#include "core/deferred.h"
#include "core/kernel_traits.h"
#include "kernels/epilogue.h"

#include <dnnl.h>

/* False on x86-64 at CPU level 0 (FLAGS_cpu_level included), and when oneDNN cannot make its engine: kernels
 * decline then. */
bool proa__dnnl_usable(void);
dnnl_engine_t proa__dnnl_engine(void);
/* oneDNN's number of a dtype; false for dtypes it does not compute. */
bool proa__dnnl_dtype(proa_dtype dtype, dnnl_data_type_t *to);

/* A descriptor from dims and element strides (NULL: row-major); NULL when oneDNN refuses. */
dnnl_memory_desc_t proa__dnnl_md(int ndim, const int64_t *dims, const int64_t *strides, proa_dtype dtype);
/* A descriptor whose layout the primitive chooses (format_tag::any); NULL when oneDNN refuses. */
dnnl_memory_desc_t proa__dnnl_md_any(int ndim, const int64_t *dims, proa_dtype dtype);

/* Layout of t: its blocked form if it has one, else dims and element strides (NULL: row-major). With a
 * blocked form dims must be t's own shape. */
dnnl_memory_desc_t proa__dnnl_md_of(const proa_tensor *t, int ndim, const int64_t *dims,
                                    const int64_t *strides);
/* The format (core/blocked.h) of a descriptor; 0: it has no tag. */
int proa__dnnl_format(const_dnnl_memory_desc_t md);
/* A tensor of t's shape and this dtype in a format; NULL when oneDNN refuses. */
dnnl_memory_desc_t proa__dnnl_blocked_md(const proa_tensor *t, proa_dtype dtype, int format);
/* The slice of `whole` with these dims that begins at element `from`, for memory that begins *offset bytes
 * after the whole's; NULL when oneDNN refuses, as it does where a block of channels would be cut. A slice of
 * whole rows of the first dim that is dense is described like a tensor of its own. */
dnnl_memory_desc_t proa__dnnl_slice(const_dnnl_memory_desc_t whole, const int64_t *dims, const int64_t *from,
                                    size_t *offset);
/* Bytes from the start of `whole` to element `from`, if its slice that begins there lies in memory as `part`
 * describes; −1 if not. */
int64_t proa__dnnl_offset(const_dnnl_memory_desc_t whole, const int64_t *from, const_dnnl_memory_desc_t part);

enum { PROA__DNNL_ARGS = 8 };

/* An operand: its index (DNNL_ARG_SRC, …), its layout in the caller's memory, and the layout that the
 * primitive chose. */
typedef struct proa__dnnl_arg {
    int index;
    bool output;
    dnnl_memory_desc_t user;  /* layout in the caller's memory; owned by the state afterwards */
    dnnl_memory_desc_t inner; /* layout that the primitive chose; NULL: `user` suits it */
    dnnl_primitive_t reorder;
    size_t bytes; /* of the layout `inner` */
    size_t limit; /* outputs: largest size of `inner`, in bytes, with which the output may stay in it; 0:
                   * never */
    int format;   /* outputs: format of `inner` if the output may stay in it; 0: the output must be
                   * row-major */
} proa__dnnl_arg;

/* A constant operand in the primitive's layout: reordered in the first run, and again when the tensor has
 * changed. Layouts that have a format tag are shared; for others `data` has a copy of this state's own. */
typedef struct proa__dnnl_packed {
    proa__packed_operand shared;
    char *data;
    proa_storage *storage; /* of the source; retained, so that no other storage gets its address */
    const char *from;
    uint32_t version;
} proa__dnnl_packed;

/* State that prepare hands to run. Immutable, except for `idle`, which a run takes for its duration, and
 * `packed`: a state with a packed operand may be used by one thread at a time. */
typedef struct proa__dnnl_state {
    proa__dnnl_packed packed;
    _Atomic(struct proa__dnnl_operands *) idle; /* dnnl_memory objects of the operands, reused from the last
                                                 * run */
    int threads;                                /* threads of the primitive */
    int made_for;                               /* proa_threads() when the state was made */
    dnnl_primitive_t primitive;
    dnnl_memory_desc_t scratchpad;
    size_t scratch_bytes; /* of one block: scratchpad, then the reordered operands */
    int n_args;
    proa__dnnl_arg args[PROA__DNNL_ARGS];
} proa__dnnl_state;

/* Descriptors collected by a kernel's prepare; proa__dnnl_finish releases them. */
typedef struct proa__dnnl_build {
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t desc;
    int n_args;
    proa__dnnl_arg args[PROA__DNNL_ARGS];
    int threads, threads_before;
} proa__dnnl_build;

/* Multiply-adds below which starting and joining threads takes longer than they save. */
#define PROA__DNNL_ALONE 400000.0
/* Sets the thread count and creates attr (user-supplied scratchpad); false: decline. Uses one thread if
 * `work`, in multiply-adds, is below that, and with FLAGS_deterministic, since primitives split their
 * work, and may sum, by thread. */
bool proa__dnnl_begin(proa__dnnl_build *b, double work);
/* Adds an operand; takes over `user` in any case. False when user is NULL or there are PROA__DNNL_ARGS
 * operands already. */
bool proa__dnnl_add(proa__dnnl_build *b, int index, bool output, dnnl_memory_desc_t user);
/* Declares the last operand added an output of t's shape, which may stay in the primitive's layout if that
 * takes at most `growth` times the memory. Returns true. */
bool proa__dnnl_may_block(proa__dnnl_build *b, const proa_tensor *t, double growth);
/* With `ok` and a desc: makes the state. Otherwise, or if oneDNN fails, the thread's error or, without one,
 * PROA_DECLINED. Releases the build either way. */
proa_status proa__dnnl_finish(proa__dnnl_build *b, bool ok, void **state);
void proa__dnnl_release(void *state);

/* Requantization of an integer result, after bias and epilogue: multiplied by `outer`, then clamped to [low,
 * high]. */
typedef struct proa__dnnl_requantize {
    double outer;
    int64_t low, high;
    bool bounded; /* low or high differs from the limits of the dtype */
} proa__dnnl_requantize;

/* True if oneDNN has only its reference implementation, correct but slow, for the primitive b->desc. */
bool proa__dnnl_is_reference(const proa__dnnl_build *b);
/* True if this CPU accumulates products of signed bytes in 32 bits; other CPUs saturate at 16 bits or need
 * halved weights. */
bool proa__dnnl_sums_bytes(void);

/* Appends an epilogue as post-ops; call it before the primitive descriptor is created. A residual becomes the
 * last operand: in its blocked form if it has one, else with these dims and strides (NULL: row-major). after:
 * NULL for floating results. */
bool proa__dnnl_post_ops(proa__dnnl_build *b, const proa__epilogue *t, int ndim, const int64_t *dims,
                         const int64_t *strides, const proa__dnnl_requantize *after);

/* Runs the primitive; data[i] is the memory of args[i]. If the thread count has changed since `state` was
 * made, `prepare` makes a new state. */
proa_status proa__dnnl_run(const void *state, const void *args, proa_status (*prepare)(const void *, void **),
                           void *const *data);
/* Runs a primitive of one thread, whatever the thread count is now: in parallel regions, too. keeps: bits of
 * the outputs that stay in the layout that the primitive chose. */
proa_status proa__dnnl_run_alone(const void *state, void *const *data, unsigned keeps);
/* Runs parts 0 to n − 1 of a job on Proa's threads, in any order. A part that fails runs once more in this
 * thread, whose error is the call's. */
proa_status proa__dnnl_run_parts(int64_t n, proa_status (*part)(const void *job, int64_t i), const void *job);
/* The format in which a kernel with that state leaves its output if it may choose the layout. */
int proa__dnnl_result_format(const void *args, const void *state);
/* proa__dnnl_run on tensors: outputs made for this call may stay in the layout that the primitive chose. */
proa_status proa__dnnl_run_tensors(const proa_run *run, const void *args,
                                   proa_status (*prepare)(const void *, void **),
                                   proa_tensor *const *tensors);
/* proa__dnnl_run_tensors where tensors[arg] is a constant that was row-major or unread when prepared: the
 * state keeps its packed form, in the primitive's layout. */
proa_status proa__dnnl_run_constant(const proa_run *run, const void *args,
                                    proa_status (*prepare)(const void *, void **),
                                    proa_tensor *const *tensors, int arg);

#endif
