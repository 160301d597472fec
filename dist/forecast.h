/* Cost model of a training step: a job's degrees filled in, the layers of one rank, and the parts that
 * pipeline stages execute. May use core. */
#ifndef PROA_DIST_FORECAST_H
#define PROA_DIST_FORECAST_H

#include "core/internal.h"

#include <proa/plan.h>

/* Bytes by which the allocator's blocks exceed their tensors: activations; a copy of the parameters in their
 * own dtype, and in float32. */
typedef struct proa__forecast_slack {
    double activations, weights, states;
} proa__forecast_slack;

/* A layer as one rank has it for one micro-batch. */
typedef struct proa__forecast_layer {
    proa_plan_layer l;
    double
        gradients;  /* the most bytes by which tensors of its backward exceed activations that it has freed */
    double largest; /* elements of its largest parameter */
    double joined;  /* elements of parameters whose gradients are sent in one message */
    proa__forecast_slack slack;
} proa__forecast_layer;

/* A chunk of layers on one stage, for one micro-batch on one rank. */
typedef struct proa__forecast_part {
    double forward, backward; /* s, with collectives of the model group and of divided parameters */
    double forward_quiet, backward_quiet; /* s without */
    double parameters, joined;            /* elements on this rank, before sharding; of small parameters */
    double added; /* s that a backward takes to add its gradients to an earlier micro-batch's */
    double activations, working; /* bytes from forward to backward; and of the layer that is recomputed */
    double peak;                 /* the most bytes of those and of gradients under way during its backward */
    double output;               /* bytes sent to the next part */
    double sent;                 /* bytes of collectives */
    proa__forecast_slack slack;
} proa__forecast_part;

typedef struct proa__forecast {
    proa_plan_model model;
    proa_plan_job job; /* no zeros */
    proa_plan_machine machine;
    int64_t n_parts; /* pipe · chunks */
    proa__forecast_part *parts;
} proa__forecast;

/* Bytes of an element of activations, parameters, gradients; and of a parameter's optimizer states. */
double proa__forecast_element(const proa_plan_job *job);
double proa__forecast_weight_bytes(const proa_plan_job *job);
double proa__forecast_state_bytes(const proa_plan_job *job);

/* Checks of sizes that are 0 or do not go with each other; fills zeros of the job in (forecast_model.c). */
proa_status proa__forecast_check(const proa_plan_model *model, proa_plan_job *job,
                                 const proa_plan_machine *machine);
proa_status proa__pipeline_check(proa_pipeline_kind kind, int64_t stage, int64_t stages,
                                 int64_t micro_batches, int64_t chunks);
/* Number of layers, and layer i. */
int64_t proa__forecast_layers(const proa_plan_model *model);
proa__forecast_layer proa__forecast_layer_at(const proa_plan_model *model, const proa_plan_job *job,
                                             int64_t i);
/* Bytes of a weight that the first and the last pipeline stage share, on one rank; 0 if none. */
double proa__forecast_tied(const proa_plan_model *model, const proa_plan_job *job);

/* Makes the parts; they are freed by proa__forecast_free (forecast_cost.c). */
proa_status proa__forecast_new(proa__forecast *p, const proa_plan_model *model, const proa_plan_job *job,
                               const proa_plan_machine *machine);
void proa__forecast_free(proa__forecast *p);
/* Seconds of a message between neighboring stages, and of what a stage does after its last backward:
 * exchange of gradients, update, and divided parameters sent out. */
double proa__forecast_message(const proa__forecast *p, int64_t from, int64_t to, double bytes);
double proa__forecast_exchange(const proa__forecast *p, int64_t stage);
double proa__forecast_update(const proa__forecast *p, int64_t stage);
/* Bytes that a rank of a stage sends in a step. */
double proa__forecast_sent(const proa__forecast *p, int64_t stage);
/* Parameters of a stage's chunks, in elements on one rank. */
double proa__forecast_stage_parameters(const proa__forecast *p, int64_t stage);
/* Adds what a layer holds to its part; parts are filled in the order of layers (forecast_memory.c). */
void proa__forecast_keep(const proa__forecast *p, proa__forecast_part *part,
                         const proa__forecast_layer *layer);
/* Memory of the rank that needs most; activations of a stage as its schedule holds them. */
void proa__forecast_memory(const proa__forecast *p, proa_plan_result *r);

#endif
