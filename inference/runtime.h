/* Internal structs of configs, models, handles and predictors, shared by config.c, model.c, warmup.c,
 * bfloat16.c, predictor.c and handle.c. May use core, ops, jit and io. */
#ifndef PROA_INFERENCE_RUNTIME_H
#define PROA_INFERENCE_RUNTIME_H

#include "core/internal.h"
#include "core/tensor.h"
#include "jit/passes/op_types.h"

#include <proa/inference.h>
#include <stdatomic.h>

/* A growing list of names. */
typedef struct proa__names {
    char **at;
    int64_t count, capacity;
} proa__names;

/* Tensors for the inputs of one warm-up run. */
typedef struct proa__batch {
    proa_tensor **at; /* kept */
    int64_t count;
} proa__batch;

struct proa_config {
    int64_t numbers[PROA_CONFIG_NUMBER_COUNT];
    char *texts[PROA_CONFIG_TEXT_COUNT]; /* NULL: "" */
    proa__names lists[PROA_CONFIG_LIST_COUNT];
    char *device;         /* NULL: "cpu" */
    char *model, *params; /* buffers; params may be NULL */
    size_t model_bytes, params_bytes;
    proa__batch *samples; /* for the quantizer */
    int64_t n_samples;
    bool passes_set; /* the user changed the list of passes: it replaces FLAGS_passes */
    bool used;       /* a predictor was made from this config */
};

/* The op types in a list of a config; borrowed. */
static inline proa__op_types proa__config_types(const proa_config *c, proa_config_list which)
{
    return (proa__op_types){c->lists[which].count, (const char *const *)c->lists[which].at};
}

/* The source of a program input: the tensor of an input handle, or one level of its sequence offsets. */
typedef struct proa__feed {
    int32_t input; /* index among the handles */
    int32_t level; /* LoD level; -1: the handle's tensor */
} proa__feed;

/* The loaded model that a predictor and its clones share; read-only once it is made. */
typedef struct proa__model {
    atomic_int refs;
    proa_program *program;
    const proa_tensor **inputs, **outputs; /* symbolic, one a handle; borrowed from the program */
    char **output_names;                   /* from the file: passes may rename outputs */
    int32_t n_inputs, n_outputs;
    proa__feed *feeds; /* one an input of the program */
    int32_t n_feeds;
    int32_t *first_lod; /* by output: index of the program's output with its first LoD level; -1: none */
    int32_t *n_lod;
    int threads;
    char *device; /* NULL: "cpu" */
    bool profile;
    proa_config *config; /* to read the files once more; NULL: they may be gone */
} proa__model;

/* Converts convolutions and products of p to bfloat16 if the config asks for it, after batch norm is folded
 * if `passes` choose that. Warns once on stderr if the CPU has no bfloat16 instructions. */
proa_status proa__model_to_bfloat16(proa_program *p, const proa_config *c, const char *passes);
struct proa_instr;
/* The number of matrices of an LSTM or GRU whose weights may be quantized; 0 for all other ops, those with
 * the weight `skip`, and types that are not listed. */
int64_t proa__quantizable_matrices(const struct proa_instr *instr, const proa__op_types *types,
                                   const char *skip);
/* If the config's quantizer is on, and it has samples or the model has LSTMs or GRUs, inserts quantizers into
 * p; *done: it did. */
proa_status proa__model_quantize(proa_program *p, const proa_config *c, bool *done);
/* Loads and optimizes the model of a config. NULL on error. */
proa__model *proa__model_new(const proa_config *c);
/* The model with inputs of unknown lengths where `fed`, a tensor an input of its program, differs from them:
 * Paddle's programs take others than they were saved with. NULL without an error if none differs; NULL if
 * some op does not take them. */
proa__model *proa__model_widened(const proa__model *m, proa_tensor *const *fed);
void proa__model_release(proa__model *m); /* accepts NULL */

/* Paddle's LoD of a handle's rows: level i, outermost first, has counts[i] offsets. */
typedef struct proa__lod {
    int64_t *offsets[4], counts[4];
    int64_t levels;
} proa__lod;

struct proa_handle {
    proa_predictor *owner; /* borrowed */
    const char *name;      /* in the file; borrowed from the model */
    const proa_tensor *variable;
    proa_tensor *tensor; /* kept; NULL: none yet */
    proa_meta wanted;    /* shape that was set; ndim -1: none */
    bool is_input;
    bool shared; /* the tensor is the caller's memory */
    proa__lod lod;
};

struct proa_predictor {
    atomic_int refs;
    proa__model *model;
    proa_executor *executor;
    proa_handle *inputs, *outputs;
    proa_tensor **fed, **into; /* fed: one a program input; into: one a program output */
    proa_predictor_hook hook;
    void *hook_context;
    bool profiles; /* this predictor started the profiler */
};

/* Releases a handle's tensor and LoD, and forgets its shape. */
void proa__handle_clear(proa_handle *h);
/* The tensor to feed to a run: reshaped to the shape that was set, integers cast to the program's dtype, on
 * the model's device. Borrowed, or the scope's. */
proa_tensor *proa__handle_feed(proa_handle *h);
/* A LoD level's offsets as an int64 tensor, new in the scope. */
proa_tensor *proa__handle_feed_lod(const proa_handle *h, int32_t level);
/* Makes t, a tensor of the scope or already the handle's, the output's tensor. */
void proa__handle_yield(proa_handle *h, proa_tensor *t);
/* Copies the elements of an int64 tensor to a LoD level's offsets. */
proa_status proa__handle_yield_lod(proa_handle *h, int64_t level, const proa_tensor *offsets);

#endif
