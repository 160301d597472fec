/* oneDNN for the kernels of ops/: engine, descriptors, and a prepared primitive that reorders its operands
 * where the primitive wants another layout. Only files built with oneDNN include this. May use core only. */
#ifndef PROA_OPS_ONEDNN_H
#define PROA_OPS_ONEDNN_H

#include "core/internal.h"
#include "core/tensor.h"

#include <dnnl.h>

/* False when this CPU or build cannot use oneDNN (it needs SSE4.1): kernels decline then. */
bool proa__dnnl_usable(void);
dnnl_engine_t proa__dnnl_engine(void);
/* oneDNN's number of a dtype; false for dtypes it does not compute. */
bool proa__dnnl_dtype(proa_dtype dtype, dnnl_data_type_t *to);

/* A descriptor from dims and element strides (NULL: row-major); NULL when oneDNN refuses. */
dnnl_memory_desc_t proa__dnnl_md(int ndim, const int64_t *dims, const int64_t *strides, proa_dtype dtype);
/* The same with the layout left to the primitive. */
dnnl_memory_desc_t proa__dnnl_md_any(int ndim, const int64_t *dims, proa_dtype dtype);

enum { PROA__DNNL_ARGS = 8 };

/* An operand: its index (DNNL_ARG_SRC, …), how it lies in the caller's memory, and where its data goes. */
typedef struct proa__dnnl_arg {
    int index;
    bool output;
    dnnl_memory_desc_t user;  /* owned by the state afterwards */
    dnnl_memory_desc_t inner; /* what the primitive wants; NULL: the same */
    dnnl_primitive_t reorder;
    size_t bytes; /* of inner */
} proa__dnnl_arg;

/* What prepare hands to run: immutable, so that plans may share it between threads. */
typedef struct proa__dnnl_state {
    int threads;
    dnnl_primitive_t primitive;
    dnnl_memory_desc_t scratchpad;
    size_t scratch_bytes; /* scratchpad and inner operands */
    int n_args;
    proa__dnnl_arg args[PROA__DNNL_ARGS];
} proa__dnnl_state;

/* Collects what a prepare makes; everything in it is released by finish. */
typedef struct proa__dnnl_build {
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t desc;
    int n_args;
    proa__dnnl_arg args[PROA__DNNL_ARGS];
    int threads_before;
} proa__dnnl_build;

/* Sets the thread count and makes attr (scratchpad supplied by the caller); false: decline. */
bool proa__dnnl_begin(proa__dnnl_build *b);
/* Adds an operand; takes `user` over. false when user is NULL. */
bool proa__dnnl_add(proa__dnnl_build *b, int index, bool output, dnnl_memory_desc_t user);
/* With `ok` and a desc: makes the state. Otherwise PROA_DECLINED. Releases the build either way. */
proa_status proa__dnnl_finish(proa__dnnl_build *b, bool ok, void **state);
void proa__dnnl_release(void *state);

/* Runs the primitive; data[i] is the memory of args[i]. `prepare` makes a state anew when the thread count
 * is not the one that `state` was made for. */
proa_status proa__dnnl_run(const void *state, const void *args, proa_status (*prepare)(const void *, void **),
                           void *const *data);

#endif
