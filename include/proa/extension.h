/* Libraries of custom ops written in C++ for Paddle's paddle/extension.h, and the table of C functions that
 * such a library calls Proa through. A library links nothing of Proa and depends on this table's version
 * alone, not on the layout of the op table. */
#ifndef PROA_EXTENSION_H
#define PROA_EXTENSION_H

#include <proa/io.h>
#include <proa/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Loads a library of custom ops, once per file, and registers its ops. Returns the names of those that are
 * no gradients, NULL-terminated and borrowed; NULL with an error: NO_FILE, UNSUPPORTED for a library that
 * was built against real Paddle, BAD_STATE for another version of the interface or a name that is taken. */
PROA_API const char *const *proa_load_extension(const char *path);
/* Registers the ops of all libraries of custom ops that the process has linked or opened by itself; those
 * that cannot be registered are passed over. Predictors call it before they load a program. */
PROA_API proa_status proa_load_linked_extensions(void);

/* ---- the interface of the libraries ---------------------------------------------------- */

#define PROA_EXTENSION_ABI 1
#define PROA_EXTENSION_ENTRY "proa_extension_entry"

/* A registered op. */
typedef struct proa_extension_handle proa_extension_handle;

enum { PROA_SLOT_LIST = 1, PROA_SLOT_OPTIONAL = 2 };

typedef struct proa_extension_slot {
    const char *name; /* in programs: "X", "X@VECTOR", "Out@GRAD" */
    int32_t flags;    /* PROA_SLOT_… */
    int32_t in_place; /* of an output: the index of the input whose memory it is; −1: none */
} proa_extension_slot;

typedef struct proa_extension_attr {
    const char *name;
    const char
        *type; /* as declared: "bool", "int", "float", "int64_t", "std::string", or std::vector of these */
} proa_extension_attr;

/* The value of an attribute; the member of its type is set, and `count` for lists. */
typedef struct proa_extension_value {
    int64_t i; /* bool, int, int64_t */
    double f;
    const char *s;
    int64_t count;
    const int64_t *ints;
    const double *floats;
    const char *const *strings;
} proa_extension_value;

/* Shapes and dtypes that a library inferred, one for each output, or one for each entry of the only output if
 * that is a list. NULL: Proa infers them. */
typedef struct proa_extension_metas {
    int64_t count;
    const proa_ints *shapes;
    const proa_dtype *dtypes;
} proa_extension_metas;

/* Description of an op. The strings and arrays, and the functions, live as long as the process. */
typedef struct proa_extension_op {
    const char *name;
    const proa_extension_slot *inputs, *outputs;
    const proa_extension_attr *attrs;
    int32_t n_inputs, n_outputs, n_attrs;
    bool infers;                              /* the library infers shapes or dtypes */
    const struct proa_extension_op *gradient; /* the op `name`_grad; NULL: not differentiable */
    proa_extension_handle **handle;           /* set when the op is registered; NULL before */
    /* These three call back into the table below with the op's handle. */
    proa_status (*run)(const void *args, proa_run *run);
    proa_status (*infer)(const void *args, void *metas);
    proa_status (*differentiate)(const void *args, void *grads);
} proa_extension_op;

/* State of a run between begin and end; the library only hands it on. */
typedef struct proa_extension_frame {
    uint64_t words[4];
} proa_extension_frame;

/* Functions of Proa. Tensors that are returned are the caller's to release. Failures return NULL or a status,
 * and the error is in `error` and `error_text`. */
typedef struct proa_extension_api {
    uint32_t abi; /* PROA_EXTENSION_ABI */
    proa_status (*fail)(proa_status code, const char *text);
    proa_status (*error)(void);      /* of this thread; PROA_OK if none */
    const char *(*error_text)(void); /* "" if none */
    void (*clear_error)(void);
    /* Tensors. */
    proa_tensor *none; /* an absent input */
    proa_tensor *(*empty)(proa_ints shape, proa_dtype dtype);
    proa_tensor *(*view)(proa_tensor *t, proa_ints shape); /* the same elements in another shape */
    proa_tensor *(*copy)(proa_tensor *t);
    proa_tensor *(*retain)(proa_tensor *t);
    void (*release)(proa_tensor *t);
    proa_dtype (*dtype)(const proa_tensor *t);
    proa_ints (*shape)(const proa_tensor *t);
    void *(*data)(const proa_tensor *t);
    bool (*is_on_cpu)(const proa_tensor *t);
    /* Calls an op of Paddle's format (proa_op_call). The results in `named` are the caller's to release. */
    proa_status (*call)(const proa_op_desc *op, proa_named_tensor *named, int64_t n_named);
    /* Ops: registration, and the parts of a call. */
    proa_status (*register_op)(const proa_extension_op *op);
    proa_tensors (*input)(const proa_extension_handle *op, const void *args, int32_t index); /* borrowed */
    void (*attribute)(const proa_extension_handle *op, const void *args, int32_t index,
                      proa_extension_value *value);
    /* Around the library's function. begin gives in-place outputs the values of their inputs. end takes the
     * results, one for each output that is not in place or for each entry of the list; NULL after a
     * failure. */
    proa_status (*begin)(const proa_extension_handle *op, const void *args, proa_extension_frame *frame);
    proa_status (*end)(const proa_extension_handle *op, const void *args, const proa_run *run,
                       const proa_tensors *results, proa_extension_frame *frame);
    proa_status (*infer)(const proa_extension_handle *op, const void *args, void *metas,
                         const proa_extension_metas *inferred);
    proa_status (*differentiate)(const proa_extension_handle *op, const void *args, void *grads);
} proa_extension_api;

/* Exported by a library as PROA_EXTENSION_ENTRY: registers its ops through the table. Calls `see` with the
 * name of each op. A second call registers nothing. */
typedef proa_status (*proa_extension_entry_fn)(const proa_extension_api *api,
                                               void (*see)(const char *name, void *context), void *context);

#ifdef __cplusplus
}
#endif
#endif
