/* The program IR: program → blocks → ops (args structs) and variables. May use core and ops.
 * Tensors inside args are symbolic handles; a handle's `var` is its variable, so the args struct is the
 * op and nothing is stored twice. */
#ifndef PROA_JIT_PROGRAM_H
#define PROA_JIT_PROGRAM_H

#include "core/tensor.h"

#include <proa/program.h>

typedef struct proa_var {
    char *name;          /* unique in its block */
    proa_tensor *handle; /* symbolic: dtype, shape (−1 unknown); owned */
    proa_tensor *value;  /* persistable: its data, shared with the layer it came from; owned; else NULL */
    int32_t index;       /* in its block's vars */
    bool persistable;    /* lives outside a run: parameter, buffer, constant */
    bool is_input;       /* fed */
    uint8_t wire_kind;   /* VarType container number when it is no dense tensor (arrays, scopes); 0 = dense */
    int32_t lod_level;
} proa_var;

typedef struct proa_instr {
    const proa_op *op;
    void *args;       /* one block, made by proa__args_copy; owned */
    int32_t role;     /* op_role: 0 forward, 1 backward, 2 optimize, 256 loss */
    uint32_t marks;   /* bit 0: fp16_guard */
} proa_instr;

typedef struct proa_block {
    struct proa_program *program;
    int32_t index, parent; /* parent −1: the root block */
    proa_var **vars;
    int32_t n_vars, vars_room;
    proa_instr *ops;
    int32_t n_ops, ops_room;
} proa_block;

struct proa_program {
    proa_block **blocks;
    int32_t n_blocks, blocks_room;
    proa_var **inputs, **outputs; /* of block 0, in order; borrowed from the block */
    int32_t n_inputs, n_outputs;
    uint64_t next_temporary; /* for names */
};

proa_program *proa__program_new(void);
proa_block *proa__block_new(proa_program *p, int32_t parent);
/* New variable; name NULL: a fresh "tmp_<n>". NULL on error (a taken name is one). */
proa_var *proa__var_new(proa_block *b, const char *name, const proa_meta *meta);
/* The variable of that name in b or its parents, NULL if none. */
proa_var *proa__var_find(const proa_block *b, const char *name);
/* The persistable variable that stands for a concrete tensor in this program (made at first use; named
 * after the tensor, or "param_<n>"). */
proa_var *proa__var_of_concrete(proa_block *b, proa_tensor *value);
/* Appends a copy of args. */
proa_status proa__block_append(proa_block *b, const proa_op *op, const void *args);
proa_status proa__program_set_inputs(proa_program *p, proa_var *const *vars, int32_t n);
proa_status proa__program_set_outputs(proa_program *p, proa_var *const *vars, int32_t n);

/* Capture: while a block is open on this thread, ops go to it through the capture door. Returns the block
 * that was open before (NULL: none); NULL closes. */
proa_block *proa__capture_into(proa_block *b);
proa_block *proa__capture_block(void);

#endif
