/* Descriptors of ops (fields of the args struct, shape inference, kernels, gradient rule, wire forms), and
 * the doors (dispatch layers) that an op call passes. For authors of ops, kernels and doors; needs
 * proa/core.h only. For the library's own ops tools/gen_ops.py writes the structs below from the op tables
 * (ops/<family>/<table>.yaml). */
#ifndef PROA_OP_H
#define PROA_OP_H

#include <proa/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- fields ---------------------------------------------------------------------------- */

typedef enum proa_field_kind {
    PROA_FIELD_TENSOR,  /* proa_tensor * */
    PROA_FIELD_TENSORS, /* proa_tensors */
    PROA_FIELD_BOOL,    /* bool */
    PROA_FIELD_INT,     /* int64_t */
    PROA_FIELD_FLOAT,   /* double */
    PROA_FIELD_DTYPE,   /* proa_dtype */
    PROA_FIELD_ENUM,    /* an enum of the table, stored as int */
    PROA_FIELD_INTS,    /* proa_ints */
    PROA_FIELD_FLOATS,  /* proa_floats */
    PROA_FIELD_STRING,  /* const char * */
    PROA_FIELD_SCALAR,  /* proa_scalar */
    PROA_FIELD_STEPS,   /* proa_steps */
    PROA_FIELD_BLOCK,   /* struct proa_block *: a sub-block of a program */
    PROA_FIELD_STRINGS  /* proa_strings */
} proa_field_kind;

typedef enum proa_role { PROA_IN, PROA_ATTR, PROA_OUT } proa_role;

enum {
    PROA_FIELD_OPTIONAL = 1,     /* PROA_NONE allowed (IN); may be absent (OUT) */
    PROA_FIELD_SAVED = 2,        /* the tape keeps the value */
    PROA_FIELD_SAVED_META = 4,   /* the tape keeps shape and dtype only */
    PROA_FIELD_PROMOTE = 8,      /* takes part in type promotion */
    PROA_FIELD_FROM_TENSOR = 16, /* attribute that tensors may supply */
    PROA_FIELD_NO_GRAD = 32,     /* never has a gradient (indices, masks, running statistics) */
    PROA_FIELD_MUTATED = 64,     /* OUT that is the memory of an input (`alias`), always */
    PROA_FIELD_VIEW = 128,       /* OUT that may be a view of input `alias` */
    PROA_FIELD_ROWS = 256        /* IN that may be of kind rows (SelectedRows); kernel and inference see the
                                  * stored rows */
};

typedef struct proa_field {
    const char *name;
    const char *enum_name;      /* for ENUM: the table's enum, e.g. "data_format" */
    const char *const *choices; /* for ENUM: its names, NULL-terminated */
    const char *fallback;       /* default as text, NULL if required */
    uint16_t offset;            /* in the args struct */
    uint16_t grad_offset;       /* of d_<name> (input or output) in the grads struct; 0xffff: no gradient */
    uint16_t want_offset;       /* of the want_<name> bool in the grads struct (inputs) */
    uint8_t kind, role;
    uint16_t flags;
    int8_t alias;     /* OUT: index among `fields` of the input it aliases or overwrites; an INT attribute's:
                       * of the list by which a tensor may supply it; −1: none */
    int8_t saved_for; /* SAVED: kept by value only if this input wants a gradient, else by meta; −1: always */
} proa_field;

/* ---- shape inference ------------------------------------------------------------------- */

/* Dtype and shape of an output. Dims may be −1 (unknown) only when an input is symbolic. */
typedef struct proa_meta {
    proa_dtype dtype;
    int8_t ndim; /* −1: output absent in this call */
    int64_t shape[PROA_MAX_DIMS];
} proa_meta;

typedef struct proa_metas {
    int64_t count;
    proa_meta *at;
} proa_metas;

/* Sizes a list output; the memory ends with the caller's scope. */
PROA_API proa_status proa_metas_resize(proa_metas *list, int64_t count) PROA_MUST_CHECK;
/* The meta of a tensor. */
PROA_API proa_meta proa_meta_of(const proa_tensor *t);

/* ---- kernels --------------------------------------------------------------------------- */

typedef struct proa_stream proa_stream;

/* Arguments of a kernel beside its args. */
typedef struct proa_run {
    void *state; /* the state that prepare returned; NULL without prepare */
    proa_stream *stream;
    void *device; /* context of the device's table; NULL on the CPU */
    bool fresh;   /* outputs are new in this call: output 0 takes the form that proa_kernel.format returns */
} proa_run;

/* Returned by prepare: this kernel cannot run the call, so the next one is asked. Not an error. */
#define PROA_DECLINED ((proa_status)-1)
/* Returns PROA_DECLINED and stores the reason that FLAGS_verbose prints: a static text such as "not
 * float32". */
PROA_API proa_status proa_decline(const char *why);

typedef struct proa_kernel {
    const char *name;
    /* Optional. Looks at metas and attributes only (data pointers may change between prepare and run);
     * returns PROA_OK and a state, or PROA_DECLINED, or an error. */
    proa_status (*prepare)(const void *args, void **state);
    void (*release)(void *state);
    proa_status (*run)(const void *args, proa_run *run);
    bool anywhere; /* accesses elements through core's copies and fills only, so it runs on any device */
    /* NULL: the kernel takes row-major operands only; the run door converts blocked ones. Otherwise the
     * kernel takes operands in any blocked format, and this returns the format that it gives output 0 for
     * these inputs if it may choose (run->fresh); 0: row-major. */
    int (*format)(const void *args, const void *state);
} proa_kernel;

/* ---- ops ------------------------------------------------------------------------------- */

typedef enum proa_amp_class { PROA_AMP_ANY, PROA_AMP_LOW, PROA_AMP_F32, PROA_AMP_WIDEST } proa_amp_class;

enum {
    PROA_OP_STRIDED = 1,      /* kernels take any strides; otherwise inputs arrive contiguous */
    PROA_OP_VIEW = 2,         /* output 0 is a view of its alias when the strides allow */
    PROA_OP_DATA_SHAPE = 4,   /* outputs are sized in run, through proa_output_resize */
    PROA_OP_NO_GRAD = 8,      /* not differentiable (Paddle has no gradient either) */
    PROA_OP_PROMOTES = 16,    /* has fields marked PROMOTE */
    PROA_OP_INPLACE = 32,     /* has an in-place twin: output 0 may be its alias's memory */
    PROA_OP_LOD_SHARE = 64,   /* outputs take over input 0's LoD */
    PROA_OP_RANDOM = 128,     /* draws from the generator */
    PROA_OP_LAZY_GRADS = 256, /* the rule takes PROA_NONE for outputs that got no gradient */
    PROA_OP_MUTATES = 512,    /* has MUTATED outputs */
    PROA_OP_FLAT = 1024,      /* args are single tensors and plain values: no list, string or scalar */
    PROA_OP_ROWS = 2048, /* maps an input of kind rows to an output 0 of that kind, with the same index */
    PROA_OP_ELEMENTWISE = 4096, /* each output element depends on the input elements at its index only */
    PROA_OP_BROADCASTS = 8192,  /* inputs broadcast to output 0's shape; the tape sums their gradients */
    PROA_OP_BATCHES = 16384,    /* broadcasts all dims but the last two, as matmul does */
    PROA_OP_VIEW_FIRST = 32768  /* `view` checks its args and needs no meta; infer runs only where `view`
                                 * cannot make the view */
};

typedef struct proa_op proa_op;
struct proa_wire;

struct proa_op {
    const char *name;
    const proa_field *fields; /* inputs, then attributes, then outputs */
    uint8_t n_fields, n_in, n_attr, n_out;
    uint16_t args_size, grads_size, metas_size, flags;
    uint8_t amp;
    uint32_t id;
    uint32_t dtypes; /* bit (1 << dtype) of what the first tensor input (or output dtype) may be */
    proa_status (*infer)(const void *args, void *metas);
    /* Makes output 0 a view of its alias; NULL in the result field: the strides do not allow it, and the
     * kernel copies. */
    proa_status (*view)(void *args, const proa_meta *meta);
    proa_status (*vjp)(const void *args, void *grads);
    const proa_kernel *const *kernels; /* CPU kernels, best first, NULL-terminated */
    const struct proa_wire *wires;     /* first is written, all are read */
    uint8_t n_wires;
    const char *doc;
};

/* Every op of the library, by id. */
PROA_API extern const proa_op *const proa_op_table[];
PROA_API extern const uint32_t proa_op_count;
/* SHA-256 (hex) of the table's layout: plug-ins and custom ops carry it. */
PROA_API extern const char proa_table_hash[];
/* The op of that name (custom ops included), NULL if none; sets no error. */
PROA_API const proa_op *proa_find_op(const char *name);
/* Adds an op defined outside; BAD_STATE if table_hash is not this library's. */
PROA_API proa_status proa_register_op(const proa_op *op, const char *table_hash) PROA_MUST_CHECK;

/* ---- calling --------------------------------------------------------------------------- */

typedef enum proa_door {
    PROA_DOOR_CONVERT, /* AMP, type promotion; outside autocast, ops with PROA_OP_PROMOTES only */
    PROA_DOOR_RECORD,  /* the tape; calls with PROA_T_GRAD only */
    PROA_DOOR_CAPTURE, /* programs */
    PROA_DOOR_WATCH,   /* profiler, check for NaN */
    PROA_DOOR_RUN,     /* the kernel */
    PROA_DOOR_COUNT
} proa_door;

/* Flags of a tensor that doors ask about; a call carries the OR over its inputs. */
enum {
    PROA_T_GRAD = 1,      /* a gradient flows to or through it */
    PROA_T_SYMBOLIC = 2,  /* a program's variable */
    PROA_T_STRIDED = 4,   /* not contiguous */
    PROA_T_NOT_DENSE = 8, /* rows, array or record */
    PROA_T_HAS_LOD = 16,
    PROA_T_META = 32,           /* shape and dtype only: what the tape keeps of unsaved tensors */
    PROA_T_LEAF = 64,           /* made by the user with gradient wanted (a parameter) */
    PROA_T_STALE_BASE = 128,    /* a recorded view: its base's version is checked on use */
    PROA_T_DEVICE = 256,        /* its memory is not the CPU's */
    PROA_T_BLOCKED = 512,       /* the whole of a storage that may have a blocked form (core/blocked.h) */
    PROA_T_BLOCKED_BASE = 1024, /* a view of such a storage */
    PROA_T_MIXED = 2048         /* of a call, not a tensor: inputs of several dtypes, or absent ones */
};

typedef struct proa_call {
    const proa_op *op;
    void *args;   /* struct proa_<op>_args; outputs are filled on return. An output that is not NULL on
                     entry is where the result must go (in-place, executor). */
    uint32_t any; /* OR of the inputs' PROA_T_ flags, and PROA_T_MIXED */
} proa_call;

typedef proa_status (*proa_door_fn)(proa_call *call);

/* Installs the function of a door; once, by the folder that owns it. */
PROA_API void proa_door_install(proa_door door, proa_door_fn fn);
/* Opens or closes a door for this thread; returns whether it was open. */
PROA_API bool proa_door_set(proa_door door, bool open);
/* Whether the door is open for this thread. */
PROA_API bool proa_door_is_open(proa_door door);
/* Sends a call through the doors, outermost first. */
PROA_API proa_status proa_call_op(const proa_op *op, void *args);
/* Continues with the first open door after `door`: what a door's function calls. */
PROA_API proa_status proa_call_inner(proa_door door, proa_call *call);
/* Sends a call through the doors from `door` on. Ops that a door inserts enter at PROA_DOOR_RECORD. */
PROA_API proa_status proa_call_from(proa_door door, const proa_op *op, void *args);

/* For kernels of `shape: data` ops: creates the output number `index`, whose shape is known only now. */
PROA_API proa_tensor *proa_output_resize(void *args, const proa_op *op, int index, const proa_meta *meta);
/* Memory for the length of one kernel call: pairs with proa_scratch_free (accepts NULL). */
PROA_API void *proa_scratch(size_t bytes);
PROA_API void proa_scratch_free(void *p);

/* Field access by descriptor. */
static inline void *proa_field_at(const proa_field *f, const void *args)
{
    return (char *)(uintptr_t)args + f->offset;
}
static inline proa_tensor **proa_field_tensor(const proa_field *f, const void *args)
{
    return (proa_tensor **)proa_field_at(f, args);
}
static inline proa_tensors *proa_field_tensors(const proa_field *f, const void *args)
{
    return (proa_tensors *)proa_field_at(f, args);
}

/* ---- defining kernels ------------------------------------------------------------------ */

/* The CPU level a kernel file is being compiled for: set by the build (empty for files built once). */
#ifndef PROA_LEVEL
#define PROA_LEVEL
#endif
#define PROA_PASTE_(a, b) a##b
#define PROA_PASTE(a, b) PROA_PASTE_(a, b)
#define PROA_LEVELED(name) PROA_PASTE(name, PROA_LEVEL)

/* PROA_KERNEL(relu_cpu, relu) { body }: defines kernel relu_cpu of op relu; the body sees
 * `const proa_relu_args *a` and `proa_run *run`, and returns a status. */
#define PROA_KERNEL(kernel, op) PROA_KERNEL_OF(kernel, op, NULL, NULL, false, NULL)
/* PROA_KERNEL for a kernel that reads and writes elements only through core's copies and fills (proa__copy,
 * proa__copy_window, proa__fill_window, proa_copy_in): every device has those, so it runs on all. */
#define PROA_KERNEL_ANYWHERE(kernel, op) PROA_KERNEL_OF(kernel, op, NULL, NULL, true, NULL)
/* PROA_KERNEL with prepare(const void *args, void **state) and release(void *state). */
#define PROA_KERNEL_PREPARED(kernel, op, prepare_fn, release_fn) \
    PROA_KERNEL_OF(kernel, op, prepare_fn, release_fn, false, NULL)
/* PROA_KERNEL_PREPARED for a kernel that takes blocked operands; format_fn: proa_kernel.format. */
#define PROA_KERNEL_BLOCKED(kernel, op, prepare_fn, release_fn, format_fn) \
    PROA_KERNEL_OF(kernel, op, prepare_fn, release_fn, false, format_fn)
#define PROA_KERNEL_OF(kernel, op, prepare_fn, release_fn, anywhere, format_fn)     \
    static proa_status kernel##_body(const proa_##op##_args *a, proa_run *run);     \
    static proa_status kernel##_run(const void *args, proa_run *run)                \
    {                                                                               \
        return kernel##_body((const proa_##op##_args *)args, run);                  \
    }                                                                               \
    const proa_kernel PROA_LEVELED(kernel) = {#kernel,      prepare_fn, release_fn, \
                                              kernel##_run, anywhere,   format_fn}; \
    static proa_status kernel##_body(const proa_##op##_args *a, __attribute__((unused)) proa_run *run)

#ifdef __cplusplus
}
#endif
#endif
