/* Predicts a training step of a job of many ranks: schedule, communication and memory, without running it;
 * and the schedule tables that pipelines execute. Implemented by dist/; needs proa/core.h. Sources of all
 * formulas are in docs/plan.md. */
#ifndef PROA_PLAN_H
#define PROA_PLAN_H

#include <proa/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- pipeline schedules ---------------------------------------------------------------- */

typedef enum proa_pipeline_kind {
    PROA_PIPELINE_1F1B = 0, /* one forward, one backward; interleaved where a stage has several chunks */
    PROA_PIPELINE_F_THEN_B
} proa_pipeline_kind;

/* A forward or backward of one micro-batch through one chunk of a stage's layers. */
typedef struct proa_pipeline_step {
    bool backward;
    int64_t micro_batch, chunk;
} proa_pipeline_step;

/* Writes the 2 · micro_batches · chunks steps of a stage, in order. Chunk c of stage s is part c · stages +
 * s of the model. An interleaved 1F1B needs micro_batches divisible by stages. */
PROA_API proa_status proa_pipeline_schedule(proa_pipeline_kind kind, int64_t stage, int64_t stages,
                                            int64_t micro_batches, int64_t chunks, proa_pipeline_step *steps);
/* The largest number of forwards that wait for their backward on a stage, in closed form. */
PROA_API int64_t proa_pipeline_alive(proa_pipeline_kind kind, int64_t stage, int64_t stages,
                                     int64_t micro_batches, int64_t chunks);

/* ---- what is predicted ------------------------------------------------------------------ */

/* A part of a model that is not divided among pipeline stages, for one row of the batch (GPT: one
 * sequence). */
typedef struct proa_plan_layer {
    double flops;            /* of a forward; a backward takes twice as many */
    double traffic;          /* bytes that memory-bound ops of a forward move */
    double parameters;       /* elements */
    double activations;      /* bytes kept for backward */
    double input, output;    /* bytes */
    double forward_reduces;  /* all-reduces of `output` over the model group, in a forward … */
    double backward_reduces; /* … and in a backward */
    double weight;           /* its share when layers are dealt to stages */
} proa_plan_layer;

/* A decoder-only transformer by its sizes, or any chain of layers. */
typedef struct proa_plan_model {
    char _;
    int64_t layers, hidden, heads, vocabulary, sequence;
    bool fused_attention; /* attention keeps no probabilities for backward */
    /* a chain instead: activations and traffic in float32; no tensor parallelism */
    const proa_plan_layer *chain;
    int64_t n_chain;
} proa_plan_model;

typedef enum proa_plan_precision {
    PROA_PLAN_FLOAT32 = 0,
    PROA_PLAN_AMP_O1, /* activations of 2 bytes, all else of 4 */
    PROA_PLAN_AMP_O2  /* parameters, gradients and activations of 2 bytes, and a master copy of 4 */
} proa_plan_precision;

/* Spreads a model over ranks. Degrees and counts of 0 mean 1. Ranks are numbered as fleet does it: data
 * slowest, then pipe, sharding, model. */
typedef struct proa_plan_job {
    char _;
    int64_t data, pipe, sharding, model;
    int64_t stage;                      /* of sharding, 1 to 3; 0 means 1 */
    int64_t micro_batch, micro_batches; /* rows of a micro-batch on one rank; micro-batches of a step */
    int64_t chunks;                     /* of a pipeline stage */
    proa_pipeline_kind schedule;
    proa_plan_precision precision;
    bool recompute;         /* a layer keeps its input alone, and runs again in backward */
    bool sequence_parallel; /* activations between tensor-parallel layers are divided over the model group */
    int64_t moments;        /* of the optimizer, float32 values a parameter; 0: two (Adam); −1: none */
} proa_plan_job;

/* Speeds. A bandwidth of 0 means that what it carries takes no time. */
typedef struct proa_plan_machine {
    char _;
    double flops;                     /* FLOP/s that a rank's products reach */
    double memory_bandwidth;          /* bytes/s */
    double link, latency;             /* one rank's link to other hosts: bytes/s, s a message */
    double local_link, local_latency; /* between ranks of a host; a bandwidth of 0: as `link`, `latency` */
    int64_t host_ranks;               /* ranks a host; 0: 1 */
    int64_t host_cores;               /* ranks of a host that compute at full speed at once; 0: all */
    double memory;                    /* bytes that a rank has; 0: no limit */
} proa_plan_machine;

typedef struct proa_plan_result {
    double step;        /* s, from the first forward to the updated parameters */
    double pipeline;    /* s to the end of the last backward */
    double exchange;    /* s from there to averaged gradients, and for divided parameters to be sent out */
    double update;      /* s of the optimizer */
    double bubble;      /* share of `pipeline` in which stages idle, if messages took no time */
    double exposed;     /* s that the step would be shorter if messages took no time */
    double sent;        /* bytes that a rank of the busiest stage sends in a step */
    double model_flops; /* of a step over all ranks, without those of recomputation */
    double weights, gradients, states, activations; /* bytes of the rank that needs most: … */
    double temporaries;   /* … of gradients under way and of outputs that wait for theirs … */
    double rounding;      /* … by which the allocator's blocks exceed their tensors … */
    double memory;        /* … and the most at once: their sum, but of stages 2 and 3, which drop gradients
                             between steps */
    int64_t memory_stage; /* that rank's pipeline stage */
} proa_plan_result;

typedef enum proa_plan_span_kind {
    PROA_PLAN_FORWARD,
    PROA_PLAN_BACKWARD,
    PROA_PLAN_EXCHANGE,
    PROA_PLAN_UPDATE
} proa_plan_span_kind;
/* A stretch of a stage's time. */
typedef struct proa_plan_span {
    proa_plan_span_kind kind;
    int64_t stage, micro_batch, chunk;
    double begin, end; /* s */
} proa_plan_span;
typedef void (*proa_plan_see)(const proa_plan_span *span, void *context);

/* Plays one model replica's schedule; the other replicas do the same at the same time. `see` may be NULL; it
 * gets each stage's stretches. INVALID_ARGUMENT for sizes that do not go with each other. */
PROA_API proa_status proa_plan_simulate(const proa_plan_model *model, const proa_plan_job *job,
                                        const proa_plan_machine *machine, proa_plan_see see, void *context,
                                        proa_plan_result *result);
/* Number of the model's parameters, over all ranks. */
PROA_API double proa_plan_parameters(const proa_plan_model *model);

typedef enum proa_plan_collective {
    PROA_PLAN_ALL_REDUCE,
    PROA_PLAN_ALL_GATHER,
    PROA_PLAN_REDUCE_SCATTER
} proa_plan_collective;
/* Seconds of a ring collective on a whole of `bytes` over n ranks whose numbers are `stride` apart. */
PROA_API double proa_plan_collective_time(const proa_plan_machine *machine, proa_plan_collective kind,
                                          int64_t n, int64_t stride, double bytes);

/* ---- choosing degrees -------------------------------------------------------------------- */

typedef struct proa_plan_search {
    char _;
    int64_t ranks, batch;                      /* rows of a step over all ranks */
    int64_t max_pipe, max_sharding, max_model; /* 0: any */
    int64_t max_micro_batch;                   /* 0: any */
    proa_plan_precision precision;
    int64_t moments;
    bool no_recompute; /* layers are not recomputed to save memory */
} proa_plan_search;

enum { PROA_PLAN_CLASSES = 8 };
/* The best of the jobs that use the same kinds of parallelism. */
typedef struct proa_plan_class {
    const char *name; /* static: "data + pipe + model" */
    int64_t tried;    /* jobs whose degrees go with the model; 0: none */
    bool fits;        /* into the machine's memory */
    proa_plan_job job;
    proa_plan_result result;
    char why[200]; /* one line: why it was chosen, or not */
} proa_plan_class;

typedef struct proa_plan_choice {
    int64_t chosen; /* index of a class */
    proa_plan_class classes[PROA_PLAN_CLASSES];
} proa_plan_choice;

/* The job of the shortest step whose memory suffices, over all degrees, micro-batches of powers of two and 1,
 * 2, 4 or 8 chunks, with 1F1B and sharding of stage 1. All are estimated; the two quickest of a class are
 * simulated. UNAVAILABLE if none fits; *choice then says why. */
PROA_API proa_status proa_plan_choose(const proa_plan_model *model, const proa_plan_search *search,
                                      const proa_plan_machine *machine, proa_plan_choice *choice);

#ifdef __cplusplus
}
#endif
#endif
