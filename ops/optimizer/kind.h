/* Kinds of optimizers as the op table describes them: state tensors per parameter, numbers of a step, and
 * their names in Paddle. May use core and proa/wire.h. */
#ifndef PROA_OPS_OPTIMIZER_KIND_H
#define PROA_OPS_OPTIMIZER_KIND_H

#include "core/internal.h"
#include "core/tensor.h"

#include <proa/wire.h>

enum { PROA__STEP_ARGS_MAX = 512, PROA__SLOTS_MAX = 5, PROA__NUMBERS_MAX = 8 };

/* Initial value of a state tensor; powers of β have one element. */
typedef enum proa__slot_start {
    PROA__START_ZERO,
    PROA__START_INITIAL_VALUE,
    PROA__START_BETA1,
    PROA__START_BETA2
} proa__slot_start;

typedef struct proa__optimizer_slot {
    const char *field, *state, *wire; /* the op's argument, Paddle's accumulator, its slot in files */
    uint16_t at, out_at, meta;        /* offsets in args and metas */
    proa__slot_start start;
    uint16_t when; /* offset of the attribute that enables this state; 0: always kept */
    bool wide;     /* float32 even for half parameters without a master */
    bool by_scale; /* in files a `scale` op beside the step moves it on, not the step */
} proa__optimizer_slot;

typedef enum proa__number_kind {
    PROA__NUMBER,
    PROA__SWITCH,
    PROA__L2,     /* in files it applies only with the regularization method "l2_decay" */
    PROA__RESCALE /* a `scale` of the gradient in files: Paddle's kernels for CPUs ignore it */
} proa__number_kind;

typedef struct proa__optimizer_number {
    const char *option, *wire; /* option: of proa_optimizer_opts; NULL: none */
    uint16_t at;
    proa__number_kind kind;
    double fallback, missing; /* value if the option is 0; value if a file leaves it out */
} proa__optimizer_number;

/* An attribute that files always contain. */
typedef struct proa__optimizer_constant {
    const char *wire;
    proa_wire_type type;
    int64_t value;
} proa__optimizer_constant;

typedef struct proa__optimizer_kind {
    const char *name; /* also Paddle's type */
    const proa_op *op;
    uint16_t params_at, grads_at, learning_rate_at, masters_at, skip_update_at, params_out_at, masters_out_at;
    uint16_t params_meta, masters_meta;
    const proa__optimizer_slot *slots;
    const proa__optimizer_number *numbers;
    const proa__optimizer_constant *constants;
    uint8_t n_slots, n_numbers, n_constants;
    const char *skip;   /* slot of skip_update in files; NULL: it has none */
    uint16_t groups_at; /* the process groups among whose ranks parameters are divided; 0: none */
} proa__optimizer_kind;

/* All kinds, NULL-terminated; and their names as text for messages. */
extern const proa__optimizer_kind *const proa__optimizer_kinds[];
extern const char proa__optimizer_names[];

static inline proa_tensors *proa__list_at(const void *args, size_t at)
{
    return (proa_tensors *)(void *)((char *)(uintptr_t)args + at);
}

static inline proa_tensor **proa__tensor_at(const void *args, size_t at)
{
    return (proa_tensor **)(void *)((char *)(uintptr_t)args + at);
}

static inline double proa__number_at(const void *args, const proa__optimizer_number *n)
{
    const void *at = (const char *)args + n->at;
    return n->kind == PROA__SWITCH ? *(const bool *)at : *(const double *)at;
}

static inline void proa__set_number(void *args, const proa__optimizer_number *n, double value)
{
    void *at = (char *)args + n->at;
    if (n->kind == PROA__SWITCH) *(bool *)at = value != 0;
    else *(double *)at = value;
}

/* Reads Paddle's op of `kind` as a step of one parameter; writes a step as one op per parameter. */
proa_status proa__optimizer_read(const proa__optimizer_kind *kind, proa_wire_reader *r);
proa_status proa__optimizer_write(const proa__optimizer_kind *kind, const void *args, proa_wire_writer *w);

#endif
