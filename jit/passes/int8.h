/* State of the INT8 pass: each variable's quantization grid (its values are integers times a step), and the
 * integers that ops want to read of it. May use core and ops. */
#ifndef PROA_JIT_PASSES_INT8_H
#define PROA_JIT_PASSES_INT8_H

#include "epilogue.h"
#include "op_types.h"

enum { INT8_RANGE = 127 };

typedef enum grid_kind { GRID_NONE, GRID_ACTIVATION, GRID_WEIGHT } grid_kind;

/* A quantization grid: values are integers times a step. With `integers`, values are the integers themselves,
 * stored as floats. */
typedef struct grid {
    grid_kind kind;
    bool integers;
    proa_var *from;              /* activation: the variable before quantization */
    double largest;              /* largest |value| of an activation; the step is largest / INT8_RANGE */
    int64_t low;                 /* the least integer: −127 or −128 */
    proa_tensor *weight;         /* a weight's integers: I8 */
    proa_tensor *weight_largest; /* float32: scale of a weight, one number or one an index along axis; NULL:
                                  * the dequantizer behind the op has it */
    int axis;
} grid;

/* A variable's values as integers on one grid, which some op reads. */
typedef struct wanted {
    proa_tensor *handle; /* I8 or U8 */
    double largest;
    int64_t low;
    int32_t next; /* the next of the same variable; −1: none */
    bool made;    /* the op that makes the variable makes it */
} wanted;

typedef struct int8_pass {
    proa_block *block;
    proa__op_types types; /* that may become INT8 ops */
    proa__uses uses;
    int32_t *harmless; /* by variable: writes that leave it as it is, those of quantizers that do not learn */
    grid *grids;       /* by variable */
    bool *positive;    /* by variable: has no negative values */
    int32_t *first_wanted; /* by variable; −1: none */
    wanted *wanted;
    int32_t n_wanted, wanted_capacity;
    int32_t n_products;
} int8_pass;

/* ---- int8.c ---- */
/* The value of a slot that nothing changes, perhaps reshaped from a constant; NULL if it is not constant. */
proa_tensor *proa__int8_constant(const int8_pass *p, const proa_tensor *slot);
/* The grid of the values in a slot; NULL if they have none. */
const grid *proa__int8_grid_of(const int8_pass *p, const proa_tensor *slot);
/* Asks for the integers of v on a grid; the requantizing part makes them. NULL on error. */
wanted *proa__int8_want(int8_pass *p, const proa_var *v, double largest, int64_t low);
/* proa__int8_want for all of a grid: the operand of an INT8 op. NULL on error. */
proa_tensor *proa__int8_operand(int8_pass *p, const grid *g);
/* The grid of an activation in a slot; NULL if it has none, or is of integers as floats. */
const grid *proa__int8_activation(const int8_pass *p, const proa_tensor *slot);
/* True if the slot is the block's own float32 variable, which an INT8 op may make instead. */
bool proa__int8_is_result(const int8_pass *p, const proa_tensor *slot);
/* The first entry of v's list of wanted integers; NULL if it is empty. */
wanted *proa__int8_wanted_of(const int8_pass *p, const proa_var *v);

/* ---- int8_grids.c ---- */
/* Converts floats that are all 8-bit integers to an I8 tensor; NULL (or an error) if they are not. */
proa_tensor *proa__int8_integers(proa_tensor *t);
/* If the op is an 8-bit quantizer or dequantizer, notes the grid of its result. */
proa_status proa__int8_note_grid(int8_pass *p, const proa_instr *instr);

/* ---- int8_products.c ---- */
/* Replaces the product at `at` and the ops that follow it by an INT8 op, if its operands are on grids;
 * likewise additions and multiplications by constants per channel behind a value on a grid. */
proa_status proa__int8_product(int8_pass *p, int32_t at);
/* Whether the user's list of op types includes the product. Of convolutions "depthwise_conv2d" alone includes
 * depthwise ones only. */
bool proa__int8_is_asked(const int8_pass *p, const proa_instr *instr);

/* ---- int8_matmul.c ---- */
/* Replaces the matmul at `at`, and a factor that follows it, by an INT8 op, if both operands are activations
 * on grids. */
proa_status proa__int8_matmul(int8_pass *p, int32_t at);

/* ---- int8_sums.c ---- */
/* Replaces the addition or mean pooling at `at` by an INT8 op, if its operands are on grids. */
proa_status proa__int8_sum(int8_pass *p, int32_t at);

/* ---- int8_rnn.c ---- */
/* Replaces the recurrent op at `at` by an INT8 op, if all its matrices are on grids. */
proa_status proa__int8_rnn(int8_pass *p, int32_t at);

/* ---- int8_embedding.c ---- */
/* Replaces the embedding at `at` by an INT8 op, if its table is on a grid. */
proa_status proa__int8_embedding(int8_pass *p, int32_t at);

/* ---- int8_requantize.c ---- */
/* Rebuilds the block with INT8 values: the ops before make the integers where they can, and quantize_int8 ops
 * do otherwise. */
proa_status proa__int8_requantize(int8_pass *p);

#endif
