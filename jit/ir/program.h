/* The program IR: a program has blocks, a block has variables and ops (args structs). The tensors inside an
 * args struct are symbolic handles whose `var` is the variable, so the args struct itself is the op's only
 * representation. May use core and ops. */
#ifndef PROA_JIT_IR_PROGRAM_H
#define PROA_JIT_IR_PROGRAM_H

#include "core/tensor.h"
#include "core/hash_map.h"

#include <proa/program.h>

enum { PROA__LOD_MAX = 4 };

typedef struct proa_var proa_var;
struct proa_var {
    uint64_t serial;       /* unique in the process: addresses are reused while old handles still name them */
    char *name;            /* unique in its block */
    proa_tensor *handle;   /* symbolic: dtype, shape (−1 unknown); owned. Args structs hold this one; what
                            capture hands to the user is another handle with the same `var` */
    proa_tensor *value;    /* persistable: its data, shared with the layer that owns it; retained; else
                            * NULL */
    proa_var *root;        /* the variable whose memory it shows in eager execution; NULL: its own */
    struct proa_var **lod; /* the offsets of PROA__LOD_MAX levels, outermost first; NULL: not known; owned */
    int32_t index;         /* in its block's vars */
    int32_t block;         /* its block's index */
    bool persistable;      /* outlives a run: parameter, buffer, constant */
    bool is_input;         /* an input of its block */
    bool stop_gradient;    /* lets no gradient pass in append_backward */
    bool is_parameter;     /* one of the model's parameters: no buffer, constant or optimizer state */
    bool unmade;           /* declared, but no op makes it yet: it may not be read */
    bool stale;            /* its memory was overwritten through another variable: no op may use it */
    bool is_lod;           /* holds sequence offsets, which are not variables in Paddle's files */
    uint8_t lod_level;     /* number of sequence levels of its rows */
};

typedef struct proa_instr {
    const proa_op *op;
    void *args;     /* one block, made by proa__args_copy; owned */
    int32_t role;   /* op_role: 0 forward, 1 backward, 2 optimize, 16 learning rate, 256 loss */
    uint32_t marks; /* bit 0: fp16_guard */
    int32_t device; /* op_device, a number of core/op_device.h; 0: none */
} proa_instr;

typedef struct proa_block {
    struct proa_program *program;
    int32_t index, parent; /* parent −1: the root block */
    proa_var **vars;
    int32_t n_vars, vars_capacity;
    proa_instr *ops;
    int32_t n_ops, ops_capacity;
    proa__hash_map names; /* name → variable */
    proa_var **inputs,
        **outputs; /* of the program (root), or of the function that a sub-block is, in order */
    int32_t n_inputs, n_outputs;
    proa__hash_map
        read_as; /* of a sub-block: outer variable → the tensor (retained) through which it was read, whose
                          history its op needs */
} proa_block;

struct proa_program {
    proa_block **blocks;
    int32_t n_blocks, blocks_capacity;
    uint64_t next_temporary; /* for names */
    uint64_t version;        /* grows with every change */
    int32_t role;            /* op_role that appended ops get */
    bool differentiated;     /* a backward was made for this program, in another program */
    bool overlaps;           /* the pass `overlap` has run: collectives may run beside later steps */
    int32_t current;         /* the block that was open last; opening the program again continues there */
    uint32_t marks;
    proa__hash_map known;    /* all its variables, to validate a handle's `var` */
    proa__hash_map concrete; /* concrete tensor (its address) → persistable variable */
};

proa_program *proa__program_new(void);
/* True if a backward of its ops was made, in this program or in another. */
bool proa__is_differentiated(const proa_program *p);
proa_block *proa__block_new(proa_program *p, int32_t parent);
/* New variable; name NULL: a fresh "tmp_<n>". NULL on error (a taken name is one). */
proa_var *proa__var_new(proa_block *b, const char *name, const proa_meta *meta);
/* The variable of that name in b or its parents, NULL if none. */
proa_var *proa__var_find(const proa_block *b, const char *name);
/* The persistable variable for a concrete tensor in this program, made at first use in the root block and
 * named after the tensor, or "param_<n>". */
proa_var *proa__var_of_concrete(proa_block *b, proa_tensor *value);
/* Makes `var` persistable with this tensor as its value (shared, not copied); dtypes must be equal and shapes
 * agree. */
proa_status proa__var_set_value(proa_block *b, proa_var *var, proa_tensor *value);
/* The variable for a tensor that an op of b's program names: a symbolic handle's own, or that of a concrete
 * tensor. `op` and `argument` begin the error message when the variable belongs to no program or another one,
 * or is stale. */
proa_var *proa__var_of(proa_block *b, proa_tensor *t, const proa_op *op, const char *argument);
/* The variable that a tensor stands for in p: a symbolic handle's own, or the persistable with this concrete
 * tensor as its value; NULL (no error) if there is none. */
proa_var *proa__var_behind(const proa_program *p, const proa_tensor *t);
proa_status proa__var_rename(proa_block *b, proa_var *v, const char *name);
/* The serial of the newest variable; later variables have greater ones. */
uint64_t proa__last_serial(void);
/* `made` takes over the name and index of `declared`, a declared variable of the same block, which is
 * freed. */
void proa__var_define(proa_block *b, proa_var *declared, proa_var *made);
/* Makes a user's handle denote another variable. */
void proa__var_show(proa_tensor *t, const proa_var *v);
/* Makes the variable of an input spec; i is its index, for names and messages. The caller adds it to the
 * block's inputs. */
proa_var *proa__input_new(proa_block *b, const proa_input_spec *spec, int64_t i);
/* A new handle on var for the user, in the current scope. */
proa_tensor *proa__var_tensor(const proa_var *var);

/* Appends a copy of args, whose tensors may be concrete or any handle of this program's variables. */
proa_status proa__block_append(proa_block *b, const proa_op *op, const void *args);
/* Appends args itself, already made of variables' handles; frees it on failure. */
proa_status proa__block_take(proa_block *b, const proa_op *op, void *args);
/* Sets the inputs or outputs of a block: its own variables, or, as outputs, persistables too. */
proa_status proa__block_set_inputs(proa_block *b, proa_var *const *vars, int32_t n);
proa_status proa__block_set_outputs(proa_block *b, proa_var *const *vars, int32_t n);
static inline proa_block *proa__root(const proa_program *p) { return p->blocks[0]; }

/* ---- sequences (lod.c) ---- */
/* Gives v the sequence levels of `like`, for an op that keeps sequences. */
proa_status proa__lod_share(proa_var *v, const proa_var *like);
/* The variable with the offsets of a level of v (negative: counted from the innermost), or NULL. */
proa_var *proa__lod_level(const proa_var *v, int64_t level);
/* Allocates v's array of levels. */
proa_status proa__lod_reserve(proa_var *v);
/* Makes the inputs "<name>@LOD_<level>" for the offsets of v, an input of the root block. */
proa_status proa__lod_declare(proa_block *b, proa_var *v, int32_t levels);

/* ---- for passes ---- */
/* The variable that an op's args slot names; NULL for an empty slot. */
static inline proa_var *proa__slot_var(const proa_tensor *t) { return t && !proa__absent(t) ? t->var : NULL; }
/* Frees an op's args, which the instr owns. */
void proa__instr_clear(proa_instr *instr);
/* Frees a variable that is in no block any more. */
void proa__var_free(proa_var *v);
/* Updates indices and maps after a pass has changed the arrays of variables. Cannot fail as long as the
 * number of variables does not exceed what the maps have held. */
proa_status proa__program_reindex(proa_program *p);
/* Makes space for one more entry of `size` bytes in a growing array. */
proa_status proa__reserve(void *array, int32_t count, int32_t *capacity, size_t size);
/* A deep copy whose persistables share their values; *map (may be NULL, else empty): old → new variable. */
proa_program *proa__program_copy(const proa_program *p, proa__hash_map *map);
/* Drops ops and variables that no output needs. Ops that write a persistable variable or communicate with
 * other ranks stay when keep_writes is set (a training step), and go when it is not (export of a
 * prediction). */
proa_status proa__program_prune(proa_program *p, bool keep_writes);
/* Runs ops on constants at once: ops without inputs, and, with `frozen` (no persistable will change any
 * more), ops on persistables alone. Results become persistable variables. */
proa_status proa__program_fold(proa_program *p, bool frozen);
/* Tells that a constant's elements were read, most likely for the last time: its pages leave memory if they
 * are those of a mapped file. */
void proa__constant_was_read(const proa_tensor *t);

/* A transform replays a program: every op is sent, in order and through the doors, into a fresh block that
 * replaces the old one; variables keep name and identity. The hook `op` (NULL: replay the op unchanged) gets
 * args whose inputs are mapped to the fresh block, and must fill the outputs, by proa_call_op or otherwise.
 * On failure the program is unchanged. */
typedef struct proa__replay_hook {
    proa_status (*op)(proa_block *block, const proa_instr *instr, void *args, void *context);
    void *context;
} proa__replay_hook;
proa_status proa__program_replay(proa_program *p, const proa__replay_hook *hook);

/* ---- sub-blocks as functions (lambda_lift.c) ---- */
/* The variables of outer blocks that the sub-blocks of one op read; they become inputs of the op and of its
 * sub-blocks. */
typedef struct proa__lambda_lift {
    proa__hash_map known; /* outer variable → itself */
    proa_var **outer;
    proa_tensor **tensors; /* the handle through which each was read; borrowed from the blocks */
    int32_t n, capacity, tensors_capacity;
} proa__lambda_lift;
/* Records that b reads the outer variable v through the tensor t, which lambda lifting passes to b's op. The
 * first tensor stays, unless only a later one has PROA_T_GRAD. */
proa_status proa__block_reads(proa_block *b, proa_var *v, proa_tensor *t);
void proa__block_forget_reads(proa_block *b);
/* Adds the outer variables that b reads, and the outer ones among its results (symbolic or concrete tensors),
 * to the lift. *vars: the variables of the results, allocated in the scope. A write to an outer variable is
 * an error. */
proa_status proa__lambda_lift_collect(proa__lambda_lift *lift, proa_block *b, proa_tensors results,
                                      proa_var ***vars);
/* Appends the lifted variables to b's inputs, and makes vars (n of them) its outputs. */
proa_status proa__lambda_lift_apply(const proa__lambda_lift *lift, proa_block *b, proa_var *const *vars,
                                    int64_t n);
/* Calls b's ops once more, on these inputs: recorded if capture is open, run otherwise. `instead` (may be
 * NULL): maps tensors of persistables to tensors that replace them. */
proa_status proa__block_inline(const proa_block *b, proa_tensors inputs, const proa__hash_map *instead,
                               proa_tensors *outputs);
/* Frees the blocks with index `from` and above, which no op names any more. */
void proa__program_drop_blocks(proa_program *p, int32_t from);

/* ---- capture ---- */
/* Installs the capture door; called once while the library loads. */
void proa__jit_init(void);
/* While a block is open on this thread, ops go to it through the capture door. Returns the block that was
 * open before (NULL: none); NULL closes. */
proa_block *proa__capture_into(proa_block *b);
proa_block *proa__capture_block(void);

#endif
