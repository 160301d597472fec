/* Shared by the readers and writers of Paddle's format: short names of the protobuf messages, the lookup of
 * wire forms by type, and tensor streams. No protobuf type leaves io/. */
#ifndef PROA_IO_FORMAT_H
#define PROA_IO_FORMAT_H

#include "framework.pb-c.h"
#include "io/file.h"
#include "jit/ir/program.h"

#include <proa/wire.h>

typedef Paddle__Framework__Proto__ProgramDesc pb_program;
typedef Paddle__Framework__Proto__BlockDesc pb_block;
typedef Paddle__Framework__Proto__OpDesc pb_op;
typedef Paddle__Framework__Proto__OpDesc__Attr pb_attr;
typedef Paddle__Framework__Proto__OpDesc__Var pb_slot;
typedef Paddle__Framework__Proto__Scalar pb_scalar;
typedef Paddle__Framework__Proto__VarDesc pb_var;
typedef Paddle__Framework__Proto__VarType pb_var_type;
typedef Paddle__Framework__Proto__VarType__TensorDesc pb_tensor;

/* protobuf-c's memory comes from proa__alloc. */
extern ProtobufCAllocator proa__pb_allocator;

/* Passes the bytes of a message to `put` in pieces; the first error ends it. */
proa_status proa__message_put(const ProtobufCMessage *m,
                              proa_status (*put)(const void *data, size_t bytes, void *context),
                              void *context);

/* Container numbers of VarType.Type that io meets. */
enum {
    PB_LOD_TENSOR = 7,
    PB_SELECTED_ROWS = 8,
    PB_FEED_MINIBATCH = 9,
    PB_FETCH_LIST = 10,
    PB_STEP_SCOPES = 11,
    PB_LOD_TENSOR_ARRAY = 13,
    PB_READER = 15,
    PB_RAW = 17
};

/* 2.6.2: the version that io's program files carry. */
#define PROA__WIRE_VERSION 2006002

/* A wire form (an op's type, slots and attributes in Paddle's format) and the op table's entry that has it;
 * op NULL: the type is read as several ops. */
typedef struct proa__form {
    const proa_op *op;
    const proa_wire *wire;
    struct proa__form *next; /* in its bucket */
} proa__form;

/* Hash table of all wire forms by type, in the arena of one load. */
typedef struct proa__forms {
    uint32_t mask;
    proa__form **buckets;
    size_t added; /* how many ops that were registered at run time are in it */
} proa__forms;

proa_status proa__forms_build(proa__forms *forms, proa__arena *arena);
/* The hash table that is built once for the process, for calls of single ops. */
proa_status proa__forms_shared(proa__forms *forms);
/* The next form spelled `type` after `after` (NULL: the first), in the table's order; NULL if no more. */
const proa__form *proa__forms_next(const proa__forms *forms, const proa__form *after, const char *type);
/* FNV-1a hash of a name, for the buckets of forms. */
uint32_t proa__hash(const char *name);

bool proa__ends_with(const char *text, const char *end);
const pb_slot *proa__slot_find(pb_slot *const *slots, size_t n, const char *name);

/* Index of one block's ops by type and variable name, in which a gradient op finds its forward op. Zeroed at
 * first, except for the arena. */
typedef struct proa__forwards {
    proa__arena *arena;
    proa__hash_map map; /* "type variable" → index + 1 */
} proa__forwards;
/* Adds op `index` of the block, whose slots are complete. */
proa_status proa__forward_add(proa__forwards *f, const pb_op *op, size_t index);
/* Finds the op in `ops` whose gradient `grad` computes; *index is its index. False: there is none. */
bool proa__forward_find(const proa__forwards *f, const pb_op *grad, pb_op *const *ops, size_t *index);

/* Parse defaults and constants of the op table, which are text. Lists are "[1, 2]" or "1,2". */
bool proa__text_bool(const char *text);
int64_t proa__text_int(const char *text);
double proa__text_float(const char *text);
int64_t proa__text_count(const char *text);
/* Fills args field f from text; memory comes from the arena. */
proa_status proa__field_from_text(const proa_field *f, void *args, const char *text, proa__arena *arena);
int proa__choice_of(const proa_field *f, const char *name); /* −1 if there is no such choice */

/* ---- tensors in files ------------------------------------------------------------------ */
typedef struct proa__named {
    const char *name;
    proa_tensor *tensor;
} proa__named;

/* Writes one LoDTensor stream, with its data at a multiple of 64 bytes from the file's beginning. */
proa_status proa__stream_write(proa_writer *w, const proa_tensor *t);
/* A file that stays open for tensors read at first use, or mapped (FLAGS_map_parameters). Reference
 * counted. */
typedef struct proa__backing proa__backing;
/* NULL without an error: deferred reading is impossible or unsafe; the tensors are to be read now. */
proa__backing *proa__backing_open(const proa__source *s);
void proa__backing_release(proa__backing *b); /* accepts NULL */
/* Reads one LoDTensor stream into a new tensor. With `file` its elements may be read later or mapped; with
 * NULL they are read now. */
proa_tensor *proa__stream_read(proa__source *s, proa__backing *file);

/* Writes tensors, which it sorts by name, as one .pdiparams. */
proa_status proa__params_write(proa_writer *w, proa__named *items, size_t count);
/* Reads the count streams of names (sorted) into items' tensors, new in the current scope. */
proa_status proa__params_read(proa__source *s, proa__named *items, size_t count);
int proa__by_name(const void *a, const void *b);

#endif
