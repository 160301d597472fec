/* Times and bytes of a job's parts: kernels by their rates, collectives as rings, sharding as ZeRO. May use
 * core. */
#include "dist/forecast.h"

#include <math.h>

/* ---- links ------------------------------------------------------------------------------- */

typedef struct link {
    double bandwidth, latency; /* bandwidth 0: free */
} link;

static int64_t host_ranks(const proa_plan_machine *m) { return m->host_ranks > 0 ? m->host_ranks : 1; }

static link local_link(const proa_plan_machine *m)
{
    if (m->local_link > 0) return (link){m->local_link, m->local_latency};
    return (link){m->link, m->local_latency > 0 ? m->local_latency : m->latency};
}

/* The link of a ring over n ranks that are `stride` apart. With k members on a host there are k rings, of
 * which each carries a part over its own link to the next host. */
static link ring_link(const proa_plan_machine *m, int64_t n, int64_t stride)
{
    int64_t members = host_ranks(m) / stride;
    link local = local_link(m);
    if (members >= n) return local;
    double between = m->link * (double)(members > 1 ? members : 1);
    if (members > 1 && local.bandwidth > 0 && (between == 0 || local.bandwidth < between))
        between = local.bandwidth;
    return (link){between, m->latency};
}

static double transfer(link l, double bytes) { return l.bandwidth > 0 ? l.latency + bytes / l.bandwidth : 0; }

double proa_plan_collective_time(const proa_plan_machine *machine, proa_plan_collective kind, int64_t n,
                                 int64_t stride, double bytes)
{
    if (n <= 1 || bytes <= 0) return 0;
    double rounds = (double)(n - 1) * (kind == PROA_PLAN_ALL_REDUCE ? 2 : 1);
    return rounds * transfer(ring_link(machine, n, stride), bytes / (double)n);
}

/* Bytes that a rank sends in it. */
static double collective_bytes(proa_plan_collective kind, int64_t n, double bytes)
{
    return (kind == PROA_PLAN_ALL_REDUCE ? 2 : 1) * bytes * (double)(n - 1) / (double)n;
}

double proa__forecast_message(const proa__forecast *p, int64_t from, int64_t to, double bytes)
{
    int64_t stride = p->job.sharding * p->job.model, host = host_ranks(&p->machine);
    bool local = from * stride / host == to * stride / host;
    return transfer(local ? local_link(&p->machine) : (link){p->machine.link, p->machine.latency}, bytes);
}

/* ---- parts --------------------------------------------------------------------------------- */

static double kernels(const proa__forecast *p, double flops, double traffic)
{
    double bandwidth = p->machine.memory_bandwidth;
    return flops / p->machine.flops + (bandwidth > 0 ? traffic / bandwidth : 0);
}

static double reduces(const proa__forecast *p, double count, double bytes)
{
    return count * proa_plan_collective_time(&p->machine, PROA_PLAN_ALL_REDUCE, p->job.model, 1, bytes);
}

static double over_sharding(const proa__forecast *p, proa_plan_collective kind, double bytes)
{
    return proa_plan_collective_time(&p->machine, kind, p->job.sharding, p->job.model, bytes);
}

/* Of stage 3: parameters are gathered before each use, and gradients scattered. */
static void add_gathers(const proa__forecast *p, proa__forecast_part *part, double bytes)
{
    if (p->job.stage < 3 || p->job.sharding == 1) return;
    double gather = over_sharding(p, PROA_PLAN_ALL_GATHER, bytes);
    part->forward += gather;
    part->backward += gather + over_sharding(p, PROA_PLAN_REDUCE_SCATTER, bytes);
    part->sent += 3 * collective_bytes(PROA_PLAN_ALL_GATHER, p->job.sharding, bytes);
}

static void add_layer(const proa__forecast *p, proa__forecast_part *part, const proa__forecast_layer *layer)
{
    const proa_plan_layer *l = &layer->l;
    double once = kernels(p, l->flops, l->traffic), again = p->job.recompute ? 1 : 0;
    double ahead = reduces(p, l->forward_reduces, l->output),
           back = reduces(p, l->backward_reduces, l->input);
    part->forward_quiet += once;
    part->backward_quiet += (2 + again) * once;
    part->forward += once + ahead;
    part->backward += (2 + again) * once + back + again * ahead;
    part->parameters += l->parameters;
    part->joined += layer->joined;
    double owned = l->parameters / (double)(p->job.stage == 3 ? p->job.sharding : 1);
    part->added += kernels(p, 0, 3 * owned * proa__forecast_weight_bytes(&p->job));
    proa__forecast_keep(p, part, layer);
    part->output = l->output / (p->job.sequence_parallel ? (double)p->job.model : 1);
    part->sent +=
        collective_bytes(PROA_PLAN_ALL_REDUCE, p->job.model,
                         (1 + again) * l->forward_reduces * l->output + l->backward_reduces * l->input);
    add_gathers(p, part, l->parameters * proa__forecast_weight_bytes(&p->job));
}

/* Deals layers to parts by weight: a layer goes where its middle is. */
static proa_status deal(proa__forecast *p)
{
    int64_t n = proa__forecast_layers(&p->model), last = -1;
    double total = 0, before = 0;
    for (int64_t i = 0; i < n; i++) total += proa__forecast_layer_at(&p->model, &p->job, i).l.weight;
    for (int64_t i = 0; i < n; i++) {
        const proa__forecast_layer l = proa__forecast_layer_at(&p->model, &p->job, i);
        int64_t at = total > 0 ? (int64_t)((double)p->n_parts * (before + l.l.weight / 2) / total) : 0;
        if (at >= p->n_parts) at = p->n_parts - 1;
        if (at > last + 1)
            return proa_fail(
                PROA_ERR_INVALID_ARGUMENT,
                "plan: layer %lld is too large a part of the model for %lld pipeline parts; lower the pipe "
                "degree or the chunks",
                (long long)i, (long long)p->n_parts);
        last = at;
        before += l.l.weight;
        add_layer(p, &p->parts[at], &l);
    }
    if (last == p->n_parts - 1) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                     "plan: the layers fill %lld of %lld pipeline parts; lower the pipe degree",
                     (long long)(last + 1), (long long)p->n_parts);
}

proa_status proa__forecast_new(proa__forecast *p, const proa_plan_model *model, const proa_plan_job *job,
                               const proa_plan_machine *machine)
{
    *p = (proa__forecast){.model = *model, .job = *job, .machine = *machine};
    PROA_TRY(proa__forecast_check(model, &p->job, machine));
    p->n_parts = p->job.pipe * p->job.chunks;
    p->parts = proa__calloc((size_t)p->n_parts * sizeof *p->parts);
    if (!p->parts) return proa_error();
    proa_status status = deal(p);
    if (status != PROA_OK) proa__forecast_free(p);
    return status;
}

void proa__forecast_free(proa__forecast *p)
{
    proa__free(p->parts);
    p->parts = NULL;
}

double proa__forecast_stage_parameters(const proa__forecast *p, int64_t stage)
{
    double n = 0;
    for (int64_t c = 0; c < p->job.chunks; c++) n += p->parts[c * p->job.pipe + stage].parameters;
    return n;
}

/* ---- after the last backward --------------------------------------------------------------- */

static int64_t data_stride(const proa_plan_job *j) { return j->pipe * j->sharding * j->model; }

static double over_data(const proa__forecast *p, double bytes)
{
    return proa_plan_collective_time(&p->machine, PROA_PLAN_ALL_REDUCE, p->job.data, data_stride(&p->job),
                                     bytes);
}

/* Cores of a rank while all ranks of a host are at work: one computes, another one copies messages. A machine
 * without host_cores has devices that do both at once. */
static double cores_of_rank(const proa__forecast *p)
{
    const proa_plan_job *j = &p->job;
    int64_t ranks = j->data * j->pipe * j->sharding * j->model, host = host_ranks(&p->machine);
    if (!p->machine.host_cores) return 2;
    return (double)p->machine.host_cores / (double)(host < ranks ? host : ranks);
}

/* Exchange of a job that divides data alone: gradients are copied to buckets of a sixteenth of all, which are
 * averaged while backward goes on. Ranks of one host average by copies: they hide behind backward only where
 * a core is free. Returns the seconds by which the backward becomes longer. */
static double overlapped(const proa__forecast *p)
{
    double each = proa__forecast_weight_bytes(&p->job), all = proa__forecast_stage_parameters(p, 0) * each;
    double cores = cores_of_rank(p), speed = fmin(1, cores), now = 0, done = 0, bucket = 0, sent = 0;
    double backward = 0;
    for (int64_t i = proa__forecast_layers(&p->model) - 1; i >= 0; i--) {
        const proa__forecast_layer l = proa__forecast_layer_at(&p->model, &p->job, i);
        proa__forecast_part part = {0};
        add_layer(p, &part, &l);
        backward += part.backward / speed;
        now += (part.backward + kernels(p, 0, 2 * l.l.parameters * each)) / speed;
        bucket += l.l.parameters * each;
        if (bucket < all / 16 && i > 0) continue;
        double time = over_data(p, bucket);
        done = fmax(done, now) + time;
        sent += time;
        bucket = 0;
    }
    bool by_copies = host_ranks(&p->machine) / data_stride(&p->job) >= p->job.data;
    if (by_copies) done = fmax(done, (now + sent) / fmax(1, fmin(2, cores)));
    return fmax(now, done) - backward;
}

/* Copies of small gradients into one message and back, for each group that averages them. */
static double joins(const proa__forecast *p, int64_t stage)
{
    const proa_plan_job *j = &p->job;
    double elements = 0, groups = (j->data > 1) + (j->sharding > 1 && j->stage == 1);
    for (int64_t c = 0; c < j->chunks; c++) elements += p->parts[c * j->pipe + stage].joined;
    if (j->stage > 1) elements /= (double)j->sharding;
    return kernels(p, 0, 4 * groups * elements * proa__forecast_weight_bytes(j)) / fmin(1, cores_of_rank(p));
}

double proa__forecast_exchange(const proa__forecast *p, int64_t stage)
{
    const proa_plan_job *j = &p->job;
    double bytes = proa__forecast_stage_parameters(p, stage) * proa__forecast_weight_bytes(j),
           n = (double)j->sharding;
    if (data_stride(j) == 1) return overlapped(p);
    double time = joins(p, stage), tied = proa__forecast_tied(&p->model, j);
    if (stage == 0 || stage == j->pipe - 1)
        time += proa_plan_collective_time(&p->machine, PROA_PLAN_ALL_REDUCE, tied > 0 ? 2 : 1,
                                          (j->pipe - 1) * j->sharding * j->model, tied);
    if (j->sharding == 1) return time + over_data(p, bytes);
    if (j->stage == 1) time += over_sharding(p, PROA_PLAN_ALL_REDUCE, bytes) + over_data(p, bytes);
    else time += over_data(p, bytes / n);
    if (j->stage == 2) time += over_sharding(p, PROA_PLAN_REDUCE_SCATTER, bytes);
    return time + (j->stage < 3 ? over_sharding(p, PROA_PLAN_ALL_GATHER, bytes) : 0);
}

/* The optimizer reads states, gradient and parameter and writes states and parameter: memory-bound. */
double proa__forecast_update(const proa__forecast *p, int64_t stage)
{
    const proa_plan_job *j = &p->job;
    double owned = proa__forecast_stage_parameters(p, stage) / (double)j->sharding,
           w = proa__forecast_weight_bytes(j);
    double bytes = 2 * proa__forecast_state_bytes(j) + w + (j->precision == PROA_PLAN_AMP_O2 ? w : 2 * w);
    return kernels(p, 0, owned * bytes);
}

double proa__forecast_sent(const proa__forecast *p, int64_t stage)
{
    const proa_plan_job *j = &p->job;
    double bytes = proa__forecast_stage_parameters(p, stage) * proa__forecast_weight_bytes(j), each = 0;
    for (int64_t c = 0; c < j->chunks; c++) {
        int64_t part = c * j->pipe + stage;
        each += p->parts[part].sent;
        if (j->pipe > 1 && part < p->n_parts - 1) each += p->parts[part].output;
        if (j->pipe > 1 && part > 0) each += p->parts[part - 1].output;
    }
    double shard = bytes / (double)j->sharding, sent = each * (double)j->micro_batches;
    if (stage == 0 || stage == j->pipe - 1) sent += proa__forecast_tied(&p->model, j);
    sent += collective_bytes(PROA_PLAN_ALL_REDUCE, j->data, j->stage == 1 ? bytes : shard);
    if (j->stage == 1) sent += collective_bytes(PROA_PLAN_ALL_REDUCE, j->sharding, bytes);
    if (j->stage == 2) sent += collective_bytes(PROA_PLAN_REDUCE_SCATTER, j->sharding, bytes);
    return sent + (j->stage < 3 ? collective_bytes(PROA_PLAN_ALL_GATHER, j->sharding, bytes) : 0);
}
