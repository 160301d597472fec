/* The program IR: program → blocks → ops (args structs) and variables. May use core and ops.
 * Tensors inside args are symbolic handles; a handle's `var` is its variable, so the args struct is the
 * op and nothing is stored twice. */
#ifndef PROA_JIT_IR_PROGRAM_H
#define PROA_JIT_IR_PROGRAM_H

#include "core/tensor.h"
#include "core/hash_map.h"

#include <proa/program.h>

enum { PROA__LOD_MAX = 4 };

typedef struct proa_var proa_var;
struct proa_var {
    uint64_t serial;       /* unique in the process: handles outlive variables, whose addresses come again */
    char *name;            /* unique in its block */
    proa_tensor *handle;   /* symbolic: dtype, shape (−1 unknown); owned. Args structs hold this one; what
                            capture hands to the user is another handle with the same `var` */
    proa_tensor *value;    /* persistable: its data, shared with the layer it came from; owned; else NULL */
    proa_var *root;        /* the variable whose memory it shows in eager execution; NULL: its own */
    struct proa_var **lod; /* the offsets of PROA__LOD_MAX levels, outermost first; NULL: not known; owned */
    int32_t index;         /* in its block's vars */
    int32_t block;         /* its block's index */
    bool persistable;      /* lives outside a run: parameter, buffer, constant */
    bool is_input;         /* fed */
    bool stop_gradient;    /* lets no gradient pass in append_backward */
    bool is_parameter;     /* persistable, and of the model itself rather than of its optimizer */
    bool unmade;           /* declared, and no op makes it yet: none may read it */
    bool stale;            /* its memory was changed through another variable: no op may use it any more */
    bool is_lod;           /* is offsets of sequences, which are no variable in Paddle's files */
    uint8_t lod_level;     /* how many levels of sequences its rows form */
};

typedef struct proa_instr {
    const proa_op *op;
    void *args;     /* one block, made by proa__args_copy; owned */
    int32_t role;   /* op_role: 0 forward, 1 backward, 2 optimize, 256 loss */
    uint32_t marks; /* bit 0: fp16_guard */
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
    int32_t n_blocks, blocks_room;
    uint64_t next_temporary; /* for names */
    uint64_t version;        /* grows with every change */
    int32_t role;            /* what appended ops get */
    bool differentiated;     /* a backward was made for it that lies elsewhere */
    int32_t current;         /* the block that was open last: where opening the program again goes on */
    uint32_t marks;
    proa__hash_map known;    /* every variable: what a handle's `var` is checked against */
    proa__hash_map concrete; /* concrete tensor (its address) → persistable variable */
};

proa_program *proa__program_new(void);
/* Is there a backward of its ops, in it or elsewhere? */
bool proa__is_differentiated(const proa_program *p);
proa_block *proa__block_new(proa_program *p, int32_t parent);
/* New variable; name NULL: a fresh "tmp_<n>". NULL on error (a taken name is one). */
proa_var *proa__var_new(proa_block *b, const char *name, const proa_meta *meta);
/* The variable of that name in b or its parents, NULL if none. */
proa_var *proa__var_find(const proa_block *b, const char *name);
/* The persistable variable that stands for a concrete tensor in this program (made at first use, in the
 * root block; named after the tensor, or "param_<n>"). */
proa_var *proa__var_of_concrete(proa_block *b, proa_tensor *value);
/* Makes `var` persistable with these data (shared, not copied): same dtype, shape that fits. */
proa_status proa__var_set_value(proa_block *b, proa_var *var, proa_tensor *value);
/* The variable that a handle stands for in b's program: its own, or that of a concrete tensor. `op` and
 * `argument` begin the message when it belongs to no or another program, or is stale. */
proa_var *proa__var_of(proa_block *b, proa_tensor *t, const proa_op *op, const char *argument);
/* The variable that a tensor is in p: a symbolic one's own, or the persistable that a concrete one is the
 * value of; NULL (no error) if it is none. */
proa_var *proa__var_behind(const proa_program *p, const proa_tensor *t);
proa_status proa__var_rename(proa_block *b, proa_var *v, const char *name);
/* Variables made from now on have a greater serial. */
uint64_t proa__last_serial(void);
/* `made` takes the name and the place of a declared variable of the same block, which is freed. */
void proa__var_define(proa_block *b, proa_var *declared, proa_var *made);
/* Makes a user's handle stand for another variable. */
void proa__var_show(proa_tensor *t, const proa_var *v);
/* The variable of a spec, whose number (for names and messages) is i; the caller makes it an input. */
proa_var *proa__input_new(proa_block *b, const proa_input_spec *spec, int64_t i);
/* A new handle for the user (in the scope) that stands for var. */
proa_tensor *proa__var_tensor(const proa_var *var);

/* Appends a copy of args, whose tensors may be concrete or any handle of this program's variables. */
proa_status proa__block_append(proa_block *b, const proa_op *op, const void *args);
/* Appends args itself, already made of variables' handles; frees it on failure. */
proa_status proa__block_take(proa_block *b, const proa_op *op, void *args);
/* Inputs and outputs of a block: variables of it, or (outputs) persistables. */
proa_status proa__block_set_inputs(proa_block *b, proa_var *const *vars, int32_t n);
proa_status proa__block_set_outputs(proa_block *b, proa_var *const *vars, int32_t n);
static inline proa_block *proa__root(const proa_program *p) { return p->blocks[0]; }

/* ---- sequences (lod.c) ---- */
/* Makes v's levels those of `like`: what an op that keeps sequences hands on. */
proa_status proa__lod_share(proa_var *v, const proa_var *like);
/* The variable of v's level (negative: from the innermost), or NULL. */
proa_var *proa__lod_level(const proa_var *v, int64_t level);
/* Room for v's levels. */
proa_status proa__lod_reserve(proa_var *v);
/* Inputs "<name>@LOD_<level>" for the offsets of an input of the root block. */
proa_status proa__lod_declare(proa_block *b, proa_var *v, int32_t levels);

/* ---- for passes ---- */
/* The variable an op's args slot names; NULL for an empty slot. */
static inline proa_var *proa__slot_var(const proa_tensor *t) { return t && !proa__absent(t) ? t->var : NULL; }
/* Frees an op's args. */
void proa__instr_clear(proa_instr *instr);
/* Frees one variable that is in no block. */
void proa__var_free(proa_var *v);
/* After a pass changed the arrays of variables: indices and maps follow them. Cannot fail when no more
 * variables are there than the maps have held. */
proa_status proa__program_reindex(proa_program *p);
/* Room for one more entry of `size` bytes in a growing array. */
proa_status proa__reserve(void *array, int32_t count, int32_t *room, size_t size);
/* A deep copy whose persistables share their values; *map (may be NULL, else empty): old → new variable. */
proa_program *proa__program_copy(const proa_program *p, proa__hash_map *map);
/* Drops ops and variables that no output needs. Ops that write a persistable variable stay when
 * keep_writes is set (a training step), and go when it is not (export of a prediction). */
proa_status proa__program_prune(proa_program *p, bool keep_writes);
/* Runs at once what depends on constants only: ops without inputs, and, when `frozen` says that no
 * persistable will change any more, ops on persistables alone. Results become persistable variables. */
proa_status proa__program_fold(proa_program *p, bool frozen);

/* A transform: sends every op, in order and through the doors, into a fresh block that replaces the old
 * one; variables keep name and identity. `op` (may be NULL: send it on as it is) sees a call whose inputs
 * are mapped and whose outputs are to be filled: by calling proa_call_op on it, or by other means. On
 * failure the program is as it was. */
typedef struct proa__replay_hook {
    proa_status (*op)(proa_block *block, const proa_instr *instr, void *args, void *context);
    void *context;
} proa__replay_hook;
proa_status proa__program_replay(proa_program *p, const proa__replay_hook *hook);

/* ---- sub-blocks: functions of what their op hands to them ---- */
/* Variables of outer blocks that sub-blocks of one op read; they become inputs of the op and of its
 * blocks. */
typedef struct proa__lambda_lift {
    proa__hash_map known; /* outer variable → itself */
    proa_var **outer;
    proa_tensor **tensors; /* through which each was read; borrowed from the blocks */
    int32_t n, room, tensors_capacity;
} proa__lambda_lift;
/* Notes the tensor through which b reads an outer variable. */
proa_status proa__block_reads(proa_block *b, proa_var *v, proa_tensor *t);
void proa__block_forget_reads(proa_block *b);
/* Adds what b reads from outside, and its results (symbolic or concrete tensors), to the lift. *vars: the
 * variables behind the results, in the scope. A write to an outer variable is an error. */
proa_status proa__lambda_lift_collect(proa__lambda_lift *lift, proa_block *b, proa_tensors results,
                                      proa_var ***vars);
/* Makes what was lifted b's last inputs, and vars (n of them) its outputs. */
proa_status proa__lambda_lift_apply(const proa__lambda_lift *lift, proa_block *b, proa_var *const *vars,
                                    int64_t n);
/* Calls b's ops once more, on these inputs: where capture is open they are recorded there, otherwise they
 * run. `instead` (may be NULL): persistables' tensors → tensors that take their place. */
proa_status proa__block_inline(const proa_block *b, proa_tensors inputs, const proa__hash_map *instead,
                               proa_tensors *outputs);
/* Frees the blocks from number `from` on, which no op names any more. */
void proa__program_drop_blocks(proa_program *p, int32_t from);

/* ---- capture ---- */
/* Installs the capture door; called once while the library loads. */
void proa__jit_init(void);
/* While a block is open on this thread, ops go to it through the capture door. Returns the block that was
 * open before (NULL: none); NULL closes. */
proa_block *proa__capture_into(proa_block *b);
proa_block *proa__capture_block(void);

#endif
