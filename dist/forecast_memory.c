/* Memory of a job's ranks: divided parameters, activations as schedules hold them, gradients under way, and
 * the allocator's rounding. May use core. */
#include "dist/forecast.h"

#include <math.h>

/* Bytes of the largest parameter that is gathered beside what a layer keeps, in stage 3; otherwise 0. */
static double gathered(const proa__forecast *p, const proa__forecast_layer *layer)
{
    bool whole = p->job.stage < 3 || p->job.sharding == 1;
    return whole ? 0 : layer->largest * proa__forecast_weight_bytes(&p->job);
}

void proa__forecast_keep(const proa__forecast *p, proa__forecast_part *part,
                         const proa__forecast_layer *layer)
{
    bool again = p->job.recompute;
    const proa_plan_layer *l = &layer->l;
    double recomputed = again ? l->activations : 0;
    part->activations += again ? l->input : l->activations;
    part->working = fmax(part->working, recomputed);
    part->peak = fmax(part->peak, part->activations + recomputed + layer->gradients + gathered(p, layer));
    part->slack.activations += again ? 0 : layer->slack.activations;
    part->slack.weights += layer->slack.weights;
    part->slack.states += layer->slack.states;
}

/* Memory of a stage's chunks. */
typedef struct held {
    /* the schedule's count of waiting forwards, spread evenly over the chunks */
    double activations, temporaries;
    proa__forecast_slack slack;
} held;

static held held_by(const proa__forecast *p, int64_t stage)
{
    const proa_plan_job *j = &p->job;
    double alive = (double)proa_pipeline_alive(j->schedule, stage, j->pipe, j->micro_batches, j->chunks),
           each = alive / (double)j->chunks, sum = 0, working = 0, peak = 0, outputs = 0;
    held h = {0};
    for (int64_t c = 0; c < j->chunks; c++) {
        const int64_t at = c * j->pipe + stage;
        const proa__forecast_part *part = &p->parts[at];
        sum += part->activations;
        working = fmax(working, part->working);
        peak = fmax(peak, part->peak - part->activations);
        if (!p->model.chain && at < p->n_parts - 1) outputs += part->output; /* waits for its gradient */
        h.slack.activations += part->slack.activations * each;
        h.slack.weights += part->slack.weights;
        h.slack.states += part->slack.states;
    }
    h.activations = sum * each + working;
    h.temporaries = fmax(0, peak - working) + outputs * each;
    return h;
}

/* Whether gradients are dropped between steps, so that they come as activations go. */
static bool comes_late(const proa_plan_job *j)
{
    return j->stage >= 2 && j->sharding > 1 && j->micro_batches == 1;
}

/* Bytes of gradients that stage 2 has not sent to their owners: until the step, where micro-batches are
 * summed. */
static double not_yet_divided(const proa_plan_job *j, double whole)
{
    bool waits = j->stage == 2 && j->micro_batches > 1;
    return waits ? whole * (1 - 1 / (double)j->sharding) : 0;
}

/* Gradients of data parallelism alone are views of buckets, which have no rounding to speak of. */
static bool has_buckets(const proa_plan_job *j)
{
    return j->data > 1 && j->pipe * j->sharding * j->model == 1;
}

static double rounding_of(const proa_plan_job *j, const proa__forecast_slack *s)
{
    double n = (double)j->sharding, copies = proa__forecast_state_bytes(j) / 4;
    return s->activations + s->weights / (j->stage == 3 ? n : 1) +
           (has_buckets(j) ? 0 : s->weights / (j->stage >= 2 ? n : 1)) + s->states * copies / n;
}

void proa__forecast_memory(const proa__forecast *p, proa_plan_result *r)
{
    const proa_plan_job *j = &p->job;
    double w = proa__forecast_weight_bytes(j), n = (double)j->sharding;
    r->memory = -1;
    for (int64_t s = 0; s < j->pipe; s++) {
        const held h = held_by(p, s);
        double each = proa__forecast_stage_parameters(p, s), weights = each * w / (j->stage == 3 ? n : 1);
        double gradients = each * w / (j->stage >= 2 ? n : 1),
               states = each * proa__forecast_state_bytes(j) / n, rounding = rounding_of(j, &h.slack);
        double temporaries = h.temporaries + not_yet_divided(j, each * w);
        double moving = h.activations + temporaries, last = j->stage == 2 ? each * w : gradients;
        double memory =
            weights + states + rounding + (comes_late(j) ? fmax(moving, last) : moving + gradients);
        if (memory <= r->memory) continue;
        r->weights = weights, r->gradients = gradients, r->states = states;
        r->activations = h.activations, r->temporaries = temporaries, r->rounding = rounding;
        r->memory = memory, r->memory_stage = s;
    }
}
