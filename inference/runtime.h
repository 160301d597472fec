/* Shared parts of config.c, model.c, bfloat16.c, predictor.c and handle.c. May use core, ops, jit and io. */
#ifndef PROA_INFERENCE_RUNTIME_H
#define PROA_INFERENCE_RUNTIME_H

#include "core/internal.h"
#include "core/tensor.h"

#include <proa/inference.h>
#include <stdatomic.h>

/* A growing list of names. */
typedef struct proa__names {
    char **at;
    int64_t count, capacity;
} proa__names;

struct proa_config {
    int64_t numbers[PROA_CONFIG_NUMBER_COUNT];
    char *texts[PROA_CONFIG_TEXT_COUNT]; /* NULL: "" */
    proa__names lists[PROA_CONFIG_LIST_COUNT];
    char *device;         /* NULL: "cpu" */
    char *model, *params; /* buffers; params may be NULL */
    size_t model_bytes, params_bytes;
    bool passes_set; /* the list of passes is no longer the default */
    bool used;       /* a predictor was made from it */
};

/* Source of the tensor of a program's input. */
typedef struct proa__feed {
    int32_t input; /* index among the handles */
    int32_t level; /* of its sequences; -1: the handle's own tensor */
} proa__feed;

/* The loaded model that a predictor and its clones share; read-only once it is made. */
typedef struct proa__model {
    atomic_int refs;
    proa_program *program;
    const proa_tensor **inputs, **outputs; /* symbolic, of the handles; borrowed from the program */
    char **output_names; /* as the file fetches them: passes may compute an output under another name */
    int32_t n_inputs, n_outputs;
    proa__feed *feeds; /* one an input of the program */
    int32_t n_feeds;
    int32_t *first_lod; /* of an output: the program's output that is its first level; -1: it has none */
    int32_t *n_lod;
    int threads;
    char *device; /* NULL: "cpu" */
    bool profile;
} proa__model;

/* Products of a program in bfloat16, if the config asks for it; says once on stderr where the CPU cannot. */
proa_status proa__model_to_bfloat16(proa_program *p, const proa_config *c);
/* Loads and optimizes the model of a config. NULL on error. */
proa__model *proa__model_new(const proa_config *c);
void proa__model_release(proa__model *m); /* accepts NULL */

/* The levels of the sequences of a handle's rows. */
typedef struct proa__lod {
    int64_t *offsets[4], counts[4];
    int64_t levels;
} proa__lod;

struct proa_handle {
    proa_predictor *owner; /* borrowed */
    const char *name;      /* of the file; borrowed from the model */
    const proa_tensor *variable;
    proa_tensor *tensor; /* kept; NULL: none yet */
    proa_meta wanted;    /* the shape that was set, if ndim is not -1 */
    bool is_input;
    bool shared; /* the tensor is the caller's memory */
    proa__lod lod;
};

struct proa_predictor {
    atomic_int refs;
    proa__model *model;
    proa_executor *executor;
    proa_handle *inputs, *outputs;
    proa_tensor **fed, **into; /* one a feed; one an output of the program */
    proa_predictor_hook hook;
    void *hook_context;
    bool profiles; /* it started the profiler */
};

/* Releases a handle's tensor, shape and sequences. */
void proa__handle_clear(proa_handle *h);
/* The tensor that a run is fed: of the shape that was set and of the program's dtype. Borrowed, or the
 * scope's. */
proa_tensor *proa__handle_feed(proa_handle *h);
/* The offsets of a level as a tensor of the scope. */
proa_tensor *proa__handle_feed_lod(const proa_handle *h, int32_t level);
/* Makes t, of this scope or the handle's own, the output. */
void proa__handle_yield(proa_handle *h, proa_tensor *t);
/* Makes the elements of an int64 tensor the offsets of a level. */
proa_status proa__handle_yield_lod(proa_handle *h, int64_t level, const proa_tensor *offsets);

#endif
