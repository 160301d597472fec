/* State of the INT8 pass: the grid of each variable's values, and the integers that are wanted of it. May use
 * core and ops. */
#ifndef PROA_JIT_PASSES_INT8_H
#define PROA_JIT_PASSES_INT8_H

#include "epilogue.h"

enum { INT8_RANGE = 127 };

typedef enum grid_kind { GRID_NONE, GRID_ACTIVATION, GRID_WEIGHT } grid_kind;

/* Integers times a step, or, with `integers`, these integers themselves, as floats. */
typedef struct grid {
    grid_kind kind;
    bool integers;
    proa_var *from;              /* activation: what was quantized */
    double largest;              /* of an activation; the step is largest / INT8_RANGE */
    int64_t low;                 /* the least integer: −127 or −128 */
    proa_tensor *weight;         /* a weight's integers: I8 */
    proa_tensor *weight_largest; /* float32: one, or one an index along axis; NULL: the op behind knows */
    int axis;
} grid;

/* Integers of a variable on one grid. */
typedef struct wanted {
    proa_tensor *handle; /* I8 or U8 */
    double largest;
    int64_t low;
    int32_t next; /* of the same variable; −1: none */
    bool made;    /* by the op that makes the variable */
} wanted;

typedef struct int8_pass {
    proa_block *block;
    proa__uses uses;
    int32_t *harmless; /* by variable: writes that leave it as it is, those of quantizers that do not learn */
    grid *grids;       /* by variable */
    bool *positive;    /* by variable: holds no number below zero */
    int32_t *first_wanted; /* by variable; −1: none */
    wanted *wanted;
    int32_t n_wanted, wanted_capacity;
    int32_t n_products;
} int8_pass;

/* ---- int8.c ---- */
/* A variable's tensor, if nothing changes it; NULL otherwise. */
proa_tensor *proa__int8_constant(const int8_pass *p, const proa_tensor *slot);
/* The grid of what a slot holds; NULL for none. */
const grid *proa__int8_grid_of(const int8_pass *p, const proa_tensor *slot);
/* The integers of v on a grid, which the requantizing part will have made; NULL on error. */
wanted *proa__int8_want(int8_pass *p, const proa_var *v, double largest, int64_t low);
/* The first that is wanted of v; NULL. */
wanted *proa__int8_wanted_of(const int8_pass *p, const proa_var *v);

/* ---- int8_grids.c ---- */
/* Notes the grid of the op's result where the op is a quantizer or dequantizer of eight bits. */
proa_status proa__int8_note_grid(int8_pass *p, const proa_instr *instr);

/* ---- int8_products.c ---- */
/* Makes an INT8 op of the product at `at` and what follows it, if its operands lie on grids. */
proa_status proa__int8_product(int8_pass *p, int32_t at);

/* ---- int8_requantize.c ---- */
/* Writes the block anew: integers are made by the ops before, where these can, and by quantize_int8. */
proa_status proa__int8_requantize(int8_pass *p);

#endif
