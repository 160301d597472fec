/* State of writing one program, for the writer of files (program_write.c) and the writer of their ops
 * (write_op.c). Uses format.h. */
#ifndef PROA_IO_PROGRAM_WRITE_H
#define PROA_IO_PROGRAM_WRITE_H

#include "core/wire_table.h"
#include "io/format.h"

/* A growing list of pointers in an arena. */
typedef struct proa__list {
    void **at;
    size_t count, capacity;
} proa__list;

proa_status proa__list_add(proa__list *list, proa__arena *arena, void *item);

/* The wire op under construction. */
typedef struct proa__open_op {
    pb_op *desc;
    proa__list inputs, outputs, attrs;
} proa__open_op;

extern const proa__wire_writer_table proa__writer_table;

struct proa_wire_writer {
    const proa__wire_writer_table *table; /* proa__writer_table: first, as core/wire.c looks for it */
    proa__arena *arena;
    const proa_block *block;
    proa__list *blocks;     /* of the file: pb_block, by number; sub-blocks are added as ops name them */
    int32_t number, parent; /* this block's, and its parent's, in the file */
    const proa__hash_map *arrays; /* variables that are tensor arrays; NULL: none is looked for */
    const proa__hash_map
        *outer_names;     /* of a sub-block: variable → the outer variable's name it is written as */
    proa__list ops, vars; /* of the block: pb_op, pb_var */
    proa__open_op *op;    /* the op under construction */
    int32_t role, device; /* op_role, op_device of the op being written */
    unsigned temporaries;
    proa__forwards forwards; /* index of the first `indexed` of `ops` */
    size_t indexed;
    bool own_numbers; /* attributes name sub-blocks by the program's numbers, as for proa_program_describe */
    bool completes;   /* gradient ops get all slots and attributes of their forward op */
};

/* Finds the variables of p that are tensor arrays: operands and results of array ops, followed through loops
 * and branches. */
proa_status proa__arrays_find(const proa_program *p, proa__hash_map *arrays);
static inline bool proa__is_array(const proa_wire_writer *w, const proa_var *v)
{
    return w->arrays && proa__hash_map_find(w->arrays, v);
}
/* Whether a wire form's slot stands for the LoD offsets of another slot ("X@LOD"). Files have no such
 * slots. */
bool proa__is_lod_slot(const char *slot);
/* Writes one op of the IR as one or more wire ops. */
proa_status proa__write_op(proa_wire_writer *w, const proa_instr *instr);
/* The name of t's variable in the block being written; NULL (no error): t is not symbolic. */
const char *proa__wire_name(const proa_wire_writer *w, const proa_tensor *t);
/* proa__is_control: whether an op is a branch or a loop, which proa__write_control writes. Paddle's
 * sub-blocks are no functions: they write variables of outer blocks by name. */
bool proa__is_control(const proa_op *op);
proa_status proa__write_control(proa_wire_writer *w, const proa_instr *instr);
/* Writes the variables and ops of w's block. */
proa_status proa__write_block(proa_wire_writer *w);
/* Appends the message of w's block, without ops, to the file's blocks and numbers it. */
pb_block *proa__new_block(proa_wire_writer *w);
void proa__finish_block(proa_wire_writer *w, pb_block *to);
/* Stores the lists of slots and attributes that were collected for the current op in its message. */
void proa__close_op(proa_wire_writer *w);
proa_status proa__put_slot(proa_wire_writer *w, bool input, const char *slot, const char *const *names,
                           size_t n);
/* Adds a VarDesc to the block. */
proa_status proa__put_var(proa_wire_writer *w, const char *name, const proa_meta *meta, int kind,
                          bool persistable, int32_t lod_level);

#endif
