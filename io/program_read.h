/* State of loading one program, for the reader of files (program_read.c), the readers of their ops
 * (read_op.c, read_control.c, read_grad.c, read_attr.c, read_list.c), and single ops that are appended
 * (append.c) or called (call.c). Uses format.h. */
#ifndef PROA_IO_PROGRAM_READ_H
#define PROA_IO_PROGRAM_READ_H

#include "core/wire_table.h"
#include "io/format.h"

#include <proa/io.h>

typedef struct proa__deferred proa__deferred;
/* A block of the file while it is read: the tensors that its names are bound to so far, and the IR block that
 * receives its ops, set when reading enters the block. */
typedef struct proa__level {
    proa__deferred *pending; /* conditional_blocks that wait for their select_input */
    const pb_block *pb;
    proa_block *block;
    proa__hash_map names; /* name → tensor bound to it (a variable's handle or a constant) */
    proa__forwards forwards;
    int32_t *starts; /* number of IR ops before each op of the file, then of all */
} proa__level;

/* A variable and the name that it gets when the whole program is read. */
typedef struct proa__rename {
    proa_var *var;
    const char *name;
} proa__rename;

typedef struct proa__load {
    proa__arena arena;
    proa__forms forms;
    pb_program *pb;
    proa_program *program;
    proa__level *levels; /* one a block of the file */
    proa__rename *renames;
    size_t n_renames, renames_capacity;
    proa_var **outputs; /* fetched variables, by col */
    int32_t n_outputs, depth;
    int64_t looked;     /* ops searched so far for readers of loop variables */
    const char *source; /* name of the model, for messages */
    proa_door door;     /* the first door of every call: capture for programs, convert for calls at once */
} proa__load;

extern const proa__wire_reader_table proa__reader_table;

struct proa_wire_reader {
    const proa__wire_reader_table *table; /* proa__reader_table: first, as core/wire.c looks for it */
    proa__load *load;
    proa__level *level;
    const pb_op *desc;
    int32_t first_var; /* variables with a lower index were there before this op */
    size_t at;         /* index of the op in its block of the file */
};

const pb_attr *proa__attr_find(const pb_op *desc, const char *name);
/* Convert an attribute's value from any type that the file may give it; false if it does not convert. Lists
 * are in the arena. */
bool proa__attr_int(const pb_attr *a, int64_t *v);
bool proa__attr_float(const pb_attr *a, double *v);
bool proa__attr_ints(const pb_attr *a, proa__arena *arena, proa_ints *v);
bool proa__attr_floats(const pb_attr *a, proa__arena *arena, proa_floats *v);
/* The dtype for a number of Paddle's VarType.Type; −1 is PROA_NODTYPE. UNSUPPORTED for dtypes that Proa
 * lacks. */
proa_status proa__attr_dtype(const char *attr, int64_t number, proa_dtype *v);
/* Whether variables supply the attribute's value, which it names (types VAR and VARS). */
bool proa__attr_is_variables(const pb_attr *a);
/* Replaces *v by what variables supply for a list attribute: one in slot `tensor`, one an entry in slot
 * `tensors` (NULL: no such slot), or those that the attribute names. Sets *given where there are some. */
proa_status proa__list_supplied(proa_wire_reader *r, const char *attr, const char *tensor,
                                const char *tensors, proa_ints *v, bool *given);
/* Stores attribute a in field f of an op's args. CORRUPT where it does not fit. */
proa_status proa__attr_to_field(proa_wire_reader *r, const proa_field *f, void *args, const pb_attr *a);
/* True if the attribute equals the constant that `text` of a wire form gives. */
bool proa__attr_holds(const char *text, const pb_attr *a);
/* True for the names by which the format says "no variable" ("" and "@EMPTY@"). */
bool proa__no_name(const char *name);
/* The tensor that a name is bound to in the reader's block or its parents; NULL with an error if none is. */
proa_tensor *proa__name_find(proa_wire_reader *r, const char *slot, const char *name);
proa_status proa__name_bind(proa_wire_reader *r, const char *name, proa_tensor *t);
/* Reads r's op through the wire form that fits it and calls it from load->door on: captured into the level's
 * block, which must be open, or run at once. */
proa_status proa__read_op(proa_wire_reader *r);
/* Converts an op description into the protobuf message of a file. It points into the description and the
 * arena. */
proa_status proa__op_from_desc(proa__arena *a, const proa_op_desc *desc, pb_op *op);
/* Whether `type` is T_grad and the table has a form of T. */
bool proa__is_grad_of_form(const proa__forms *forms, const char *type);
/* Whether r's op is the gradient of an earlier op of its block; *at is that op's index. */
bool proa__has_forward(proa_wire_reader *r, size_t *at);
/* Reads r's op as the gradient of op `at`. */
proa_status proa__read_grad(proa_wire_reader *r, size_t at);
/* Reads a level's ops into its block, which must be open for capture. */
proa_status proa__read_ops(proa__load *l, proa__level *level);
/* Maximum nesting depth of sub-blocks. */
enum { PROA__DEPTH_MAX = 32 };
/* True for the types that proa__read_control reads: conditional_block, select_input and while. */
bool proa__reads_control(const char *type);
proa_status proa__read_control(proa_wire_reader *r);
/* Read the conditional_blocks that still wait for a select_input: the one whose result is `name`; all of a
 * level. */
proa_status proa__resolve_reads(proa_wire_reader *r, const char *name);
proa_status proa__resolve_all(proa__level *level);
bool proa__name_known(const proa_wire_reader *r, const char *name);
/* The shape and dtype that a block of the file declares for a dense variable; false where it declares none
 * that Proa has. */
bool proa__declared(const proa__load *l, const pb_block *b, const char *name, proa_meta *meta);

#endif
