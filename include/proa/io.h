/* Files: programs in Paddle's format, named state, checkpoints. Implemented by io/; needs
 * proa/program.h, and for training states proa/amp.h and proa/data.h. Every file is written whole or not at
 * all, and nothing in a file is believed unchecked: a damaged one is PROA_ERR_CORRUPT with what and where. */
#ifndef PROA_IO_H
#define PROA_IO_H

#include <proa/amp.h>
#include <proa/core.h>
#include <proa/data.h>
#include <proa/program.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- writing a file --------------------------------------------------------------------- */

/* A file that is being written, the way Proa writes all of its own: into a temporary in the same folder,
 * which is synced and then renamed. Until then path keeps its old content. A file that is replaced keeps its
 * permissions, and a symbolic link stays one; a pipe or device is written as it is. Several threads and
 * processes may write one path: each has a temporary of its own, and the last to commit leaves a whole file.
 * A killed process leaves its temporary (path + ".proa-part"), which the next save to that path removes. */
typedef struct proa_writer proa_writer;
/* Begins to write `path`. NULL and IO: the file or its temporary cannot be created. */
PROA_API proa_writer *proa_writer_open(const char *path);
/* Appends bytes to the temporary. After an error all later calls return that error, too. */
PROA_API proa_status proa_writer_put(proa_writer *w, const void *data, size_t bytes) PROA_MUST_CHECK;
/* Ends the writer: commit renames the temporary to path, abort removes it. Also after an error. */
PROA_API proa_status proa_writer_commit(proa_writer *w) PROA_MUST_CHECK;
PROA_API void proa_writer_abort(proa_writer *w); /* accepts NULL */

/* ---- programs -------------------------------------------------------------------------- */

/* Writes <prefix>.pdmodel and, if the program has persistable variables, <prefix>.pdiparams (otherwise an
 * old one is removed). Paddle 2.x loads the pair. UNSUPPORTED: an op that Paddle has no spelling for. */
PROA_API proa_status proa_program_save(const proa_program *p, const char *prefix) PROA_MUST_CHECK;

/* Loads a Paddle model: <prefix>.pdmodel + .pdiparams by prefix or .pdmodel path; a folder with __model__ and
 * __params__ (or model and params, or one file per variable); or one file with a program alone. Free the
 * result with proa_program_free. Large weights are read at first use, which fails with IO if the file has
 * changed; FLAGS_map_parameters maps them (mmap) instead. UNSUPPORTED names every unknown op type. */
PROA_API proa_program *proa_program_load(const char *path);
/* The program in one file and its parameters in another, of any names; params NULL: it has none. */
PROA_API proa_program *proa_program_load_files(const char *model, const char *params);
/* A program and its parameters from memory; params NULL: it has none. The buffers are copied. */
PROA_API proa_program *proa_program_load_memory(const void *model, size_t model_bytes, const void *params,
                                                size_t params_bytes);

/* The program alone, in Paddle's format, handed to `put` in pieces. plain: as it is built and trained,
 * without the feed, fetch and scale ops that a model for inference has. */
PROA_API proa_status proa_program_encode(const proa_program *p, bool plain,
                                         proa_status (*put)(const void *data, size_t bytes, void *context),
                                         void *context) PROA_MUST_CHECK;
/* Makes a program from the bytes of proa_program_encode; its persistable variables have no values yet.
 * Without feed ops, the variables that Paddle calls data are its inputs. */
PROA_API proa_program *proa_program_decode(const void *model, size_t bytes);

/* An op in Paddle's format: slots of variable names, attributes, type. Borrowed for one call. */
typedef struct proa_op_slot {
    const char *name; /* slot name, as "X" */
    int64_t count;
    const char *const *vars;
} proa_op_slot;
typedef struct proa_op_attr {
    const char *name;
    int type;      /* proa_wire_type (proa/wire.h): selects the member that holds the value */
    int64_t i;     /* INT, LONG, BOOLEAN, BLOCK */
    double f;      /* FLOAT, FLOAT64 */
    const char *s; /* STRING */
    int64_t count;
    const int64_t *ints;        /* INTS, LONGS, BOOLEANS, BLOCKS */
    const double *floats;       /* FLOATS, FLOAT64S */
    const char *const *strings; /* STRINGS; names of VAR (one) and VARS */
} proa_op_attr;
typedef struct proa_op_desc {
    const char *type; /* "matmul_v2"; the table's name if Paddle has none */
    int32_t role;
    int64_t n_inputs, n_outputs, n_attrs;
    const proa_op_slot *inputs, *outputs;
    const proa_op_attr *attrs;
} proa_op_desc;
/* Calls `see` with every op of Paddle's format that op i of a block is written as. */
PROA_API proa_status proa_program_describe(const proa_program *p, int64_t block, int64_t i,
                                           proa_status (*see)(const proa_op_desc *op, void *context),
                                           void *context);

/* The reverse: appends the op of Paddle's format that op describes to p, or to the block of p that is open.
 * Its inputs name variables of p. Outputs name persistables, which are written; declared variables, which
 * it makes; others, whose new version takes the name (tensors of the old one follow by
 * proa_program_follow); or none yet. Shapes and dtypes are inferred. before: the op of the root block (by
 * number) that it is put in front of; -1: none. Gradient ops without a form of their own, and ops with
 * blocks, cannot be appended. Errors name the op, and the slot or attribute. */
PROA_API proa_status proa_program_append(proa_program *p, const proa_op_desc *op, int64_t before);

/* Calls the op of Paddle's format that op describes on tensors, at once and with its gradient recorded. The
 * names in op's slots stand for the tensors of `named` (borrowed); where an output slot has such a name too,
 * the op may read it (the running mean of a normalization). On success each name of an output slot that the
 * op makes is in `named` as the result, new in the current scope; a name that it does not make keeps its
 * tensor. UNSUPPORTED for types that no form reads and for ops with blocks. */
typedef struct proa_named_tensor {
    const char *name;
    proa_tensor *tensor; /* NULL: only made */
} proa_named_tensor;
PROA_API proa_status proa_op_call(const proa_op_desc *op, proa_named_tensor *named, int64_t n_named);

/* Whether an op of Paddle's format of this type is known. */
PROA_API bool proa_op_type_is_known(const char *type);
/* Whether it is known and has a gradient. */
PROA_API bool proa_op_type_has_gradient(const char *type);

/* An input of a layer that is exported: PROA_INPUT(-1, 1, 8, 8) is float32, dim −1 any length. */
#define PROA_INPUT(...) PROA_INPUT_OF(PROA_F32, __VA_ARGS__)
#define PROA_INPUT_OF(type, ...) (PROA_LITERAL(proa_input_spec){NULL, PROA_SHAPE(__VA_ARGS__), (type)})
/* Captures proa_forward(layer, x) in inference mode and writes <prefix>.pdmodel and .pdiparams. The layer's
 * mode stays as it is. Errors: those of proa_capture and proa_program_save. */
PROA_API proa_status proa_export(proa_layer *layer, const char *prefix, proa_input_spec input);

/* Writes a program as an ONNX model of operator set `opset` (7 to 20) to the file `path`: in evaluation mode,
 * without ops that no output needs, and with constants folded. Inputs and outputs keep the variables' names,
 * and unknown dims of inputs are symbolic. UNSUPPORTED names every op that has no mapping to ONNX, or the op
 * and the least opset that it needs; a model above 2 GiB is UNSUPPORTED, too. */
PROA_API proa_status proa_onnx_export(const proa_program *p, const char *path, int64_t opset) PROA_MUST_CHECK;

/* ---- tensor files ---------------------------------------------------------------------- */

/* One tensor as Paddle's binary stream (paddle.save(…, use_binary_format=True)). */
PROA_API proa_status proa_tensor_save(const proa_tensor *t, const char *path) PROA_MUST_CHECK;
/* Reads such a file into a new tensor. NO_FILE, CORRUPT or IO when it cannot be read. */
PROA_API proa_tensor *proa_tensor_load(const char *path);
PROA_API proa_tensor *proa_tensor_load_memory(const void *data, size_t bytes);

/* ---- state: named tensors and named bytes ---------------------------------------------- */

typedef struct proa_state_item {
    char *name;
    proa_tensor *tensor; /* kept; NULL: bytes */
    void *bytes;
    size_t n_bytes;
} proa_state_item;

/* Contents of a checkpoint. Names are unique; order is kept. */
typedef struct proa_state {
    int64_t count, capacity;
    proa_state_item *items;
    struct proa__hash_map *index; /* hash map from name to 1 + index in items */
} proa_state;

/* A new state without items; free it with proa_state_free. */
PROA_API proa_state *proa_state_new(void);
PROA_API void proa_state_free(proa_state *s); /* accepts NULL */
/* Adds an item, or replaces the one of that name. The tensor is kept, not copied; the bytes are copied. */
PROA_API proa_status proa_state_put(proa_state *s, const char *name, proa_tensor *t);
PROA_API proa_status proa_state_put_bytes(proa_state *s, const char *name, const void *data, size_t bytes);
PROA_API proa_status proa_state_put_int(proa_state *s, const char *name, int64_t v);
PROA_API proa_status proa_state_put_float(proa_state *s, const char *name, double v);
/* The item of that name, NULL if none; sets no error. Borrowed. */
PROA_API const proa_state_item *proa_state_find(const proa_state *s, const char *name);
/* The tensor of that name; NOT_FOUND if none. Borrowed. */
PROA_API proa_tensor *proa_state_get(const proa_state *s, const char *name);
/* Copies the bytes of that name; NOT_FOUND if none, CORRUPT unless they are exactly `bytes` long. */
PROA_API proa_status proa_state_get_bytes(const proa_state *s, const char *name, void *to, size_t bytes);
PROA_API proa_status proa_state_get_int(const proa_state *s, const char *name, int64_t *to);
PROA_API proa_status proa_state_get_float(const proa_state *s, const char *name, double *to);
/* Copies the tensor of that name into `to`, which must have its shape and dtype. */
PROA_API proa_status proa_state_copy_to(const proa_state *s, const char *name, proa_tensor *to);

/* ---- checkpoint files ------------------------------------------------------------------ */

/* The container is described in docs/checkpoint-format.md: every byte is covered by a checksum. */
PROA_API proa_status proa_state_save(const proa_state *s, const char *path) PROA_MUST_CHECK;
PROA_API proa_state *proa_state_load(const char *path); /* NO_FILE if there is none */
PROA_API proa_state *proa_state_load_memory(const void *data, size_t bytes);

/* ---- training states ------------------------------------------------------------------- */

/* Optional parts of a checkpoint. */
typedef struct proa_checkpoint_opts {
    char _;
    proa_scaler *scaler;
    proa_loader *loader; /* saves and restores its position; inside proa_each: the batch after the current
                          * one */
    int64_t *numbers;    /* n_numbers values of the caller's own: epoch, step, … */
    int n_numbers;
} proa_checkpoint_opts;
/* Writes parameters, buffers, accumulators, masters, learning rate or schedule, the thread's random state and
 * what the options name, so that a run that loads it goes on bit for bit. opt may be NULL. */
PROA_API proa_status proa_checkpoint_save_opt(const char *path, proa_layer *layer, proa_optimizer *opt,
                                              proa_checkpoint_opts opts);
#define proa_checkpoint_save(...) PROA_X_checkpoint_save_(__VA_ARGS__, )
#define PROA_X_checkpoint_save_(path, layer, opt, ...) \
    proa_checkpoint_save_opt((path), (layer), (opt), PROA_LITERAL(proa_checkpoint_opts){._ = 0, __VA_ARGS__})
/* Restores a checkpoint into objects of the same structure. INVALID_ARGUMENT or NOT_FOUND, and nothing is
 * changed, when the file belongs to another model; NO_FILE, CORRUPT or IO when it cannot be read. */
PROA_API proa_status proa_checkpoint_load_opt(const char *path, proa_layer *layer, proa_optimizer *opt,
                                              proa_checkpoint_opts opts);
#define proa_checkpoint_load(...) PROA_X_checkpoint_load_(__VA_ARGS__, )
#define PROA_X_checkpoint_load_(path, layer, opt, ...) \
    proa_checkpoint_load_opt((path), (layer), (opt), PROA_LITERAL(proa_checkpoint_opts){._ = 0, __VA_ARGS__})

#ifdef __cplusplus
}
#endif
#endif
