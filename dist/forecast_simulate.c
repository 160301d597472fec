/* Discrete-event simulation of a training step: plays the schedule tables of a pipeline's stages with the
 * times of parts and links, then adds the exchange of gradients and the update. May use core. */
#include "dist/forecast.h"

#include <math.h>

typedef struct stage {
    proa_pipeline_step *steps;
    int64_t at;
    bool computing;
    double remaining, begin; /* s of work left of the step under way; when it began */
    double busy, end;        /* s of work done; when the last step ended */
    double link_free[2];     /* when the link to the next and to the previous stage has sent all before */
} stage;

typedef struct player {
    const proa__forecast *p;
    bool quiet; /* messages take no time */
    proa_plan_see see;
    void *context;
    int64_t n_steps;
    proa_pipeline_step *steps;
    stage *stages;
    double *arrived
        [2]; /* by part and micro-batch: when a forward's or a backward's input is there; −1: not yet */
    double now;
} player;

static int64_t part_of(const player *g, int64_t s, const proa_pipeline_step *step)
{
    return step->chunk * g->p->job.pipe + s;
}

static double *arrival(const player *g, bool backward, int64_t part, int64_t micro_batch)
{
    return &g->arrived[backward][part * g->p->job.micro_batches + micro_batch];
}

static double duration(const player *g, int64_t part, const proa_pipeline_step *step)
{
    const proa__forecast_part *a = &g->p->parts[part];
    if (!step->backward) return g->quiet ? a->forward_quiet : a->forward;
    return (g->quiet ? a->backward_quiet : a->backward) + (step->micro_batch > 0 ? a->added : 0);
}

/* Sends the result of a step to the part that takes it, behind what the link has yet to send. */
static void pass_on(player *g, int64_t s, const proa_pipeline_step *step)
{
    const proa__forecast *p = g->p;
    int64_t part = part_of(g, s, step), to = part + (step->backward ? -1 : 1), stages = p->job.pipe;
    if (to < 0) return;
    if (to == p->n_parts) { /* the loss: its backward may begin */
        *arrival(g, true, part, step->micro_batch) = g->now;
        return;
    }
    double *at = arrival(g, step->backward, to, step->micro_batch),
           *free = &g->stages[s].link_free[step->backward];
    *at = g->now;
    if (g->quiet || to % stages == s) return;
    double bytes = p->parts[step->backward ? to : part].output;
    *free = fmax(*free, g->now) + proa__forecast_message(p, s, to % stages, bytes);
    *at = *free;
}

/* Begins a stage's next step if its input is there. Returns when it will be: infinity if that is not
 * known. */
static double begin(player *g, int64_t s)
{
    stage *a = &g->stages[s];
    if (a->at == g->n_steps) return INFINITY;
    const proa_pipeline_step *step = &a->steps[a->at];
    int64_t part = part_of(g, s, step);
    double ready = part == 0 && !step->backward ? 0 : *arrival(g, step->backward, part, step->micro_batch);
    if (ready < 0) return INFINITY;
    if (ready > g->now) return ready;
    a->computing = true;
    a->begin = g->now;
    a->remaining = duration(g, part, step);
    return g->now;
}

static void end(player *g, int64_t s)
{
    stage *a = &g->stages[s];
    const proa_pipeline_step *step = &a->steps[a->at++];
    a->computing = false;
    a->busy += g->now - a->begin;
    a->end = g->now;
    pass_on(g, s, step);
    if (g->see)
        g->see(&(proa_plan_span){step->backward ? PROA_PLAN_BACKWARD : PROA_PLAN_FORWARD, s,
                                 step->micro_batch, step->chunk, a->begin, g->now},
               g->context);
}

/* The part of its full speed at which each of `active` computing stages runs: all ranks of the job that
 * compute are spread evenly over the hosts, and those of a host share its cores. */
static double speed(const player *g, int64_t active)
{
    const proa_plan_machine *m = &g->p->machine;
    const proa_plan_job *j = &g->p->job;
    if (!m->host_cores || !active) return 1;
    int64_t ranks = j->data * j->pipe * j->sharding * j->model, host = m->host_ranks > 0 ? m->host_ranks : 1;
    double on_host = (double)(host < ranks ? host : ranks) * (double)active / (double)j->pipe;
    return fmin(1, (double)m->host_cores / on_host);
}

/* Goes to the next event. False when there is none. */
static bool advance(player *g)
{
    int64_t active = 0, n = g->p->job.pipe;
    double next = INFINITY, least = INFINITY;
    for (int64_t s = 0; s < n; s++) {
        stage *a = &g->stages[s];
        double ready = a->computing ? INFINITY : begin(g, s);
        if (a->computing) active++, least = fmin(least, a->remaining);
        else next = fmin(next, ready);
    }
    double rate = speed(g, active), finished = g->now + least / rate;
    next = fmin(next, finished);
    if (isinf(next)) return false;
    double passed = (next - g->now) * rate;
    g->now = next;
    for (int64_t s = 0; s < n; s++) {
        stage *a = &g->stages[s];
        if (!a->computing) continue;
        bool ends = next == finished && a->remaining <= least * (1 + 1e-9);
        a->remaining = fmax(0, a->remaining - passed);
        if (ends) end(g, s);
    }
    return true;
}

static void free_player(player *g)
{
    proa__free(g->stages);
    proa__free(g->steps);
    proa__free(g->arrived[0]);
    proa__free(g->arrived[1]);
}

static proa_status make_player(player *g)
{
    const proa_plan_job *j = &g->p->job;
    enum { MOST = 1 << 27 };
    if ((double)g->p->n_parts * (double)j->micro_batches > MOST)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "plan: a step of %lld micro-batches through %lld parts is too long",
                         (long long)j->micro_batches, (long long)g->p->n_parts);
    size_t n = (size_t)(g->p->n_parts * j->micro_batches);
    g->n_steps = 2 * j->micro_batches * j->chunks;
    g->stages = proa__calloc((size_t)j->pipe * sizeof *g->stages);
    g->steps = proa__calloc(2 * n * sizeof *g->steps);
    for (int i = 0; i < 2; i++) g->arrived[i] = proa__calloc(n * sizeof(double));
    if (!g->stages || !g->steps || !g->arrived[0] || !g->arrived[1]) return proa_error();
    for (size_t i = 0; i < n; i++) g->arrived[0][i] = g->arrived[1][i] = -1;
    for (int64_t s = 0; s < j->pipe; s++) {
        g->stages[s].steps = g->steps + s * g->n_steps;
        PROA_TRY(
            proa_pipeline_schedule(j->schedule, s, j->pipe, j->micro_batches, j->chunks, g->stages[s].steps));
    }
    return PROA_OK;
}

static void show(const player *g, proa_plan_span_kind kind, int64_t s, double from, double to)
{
    if (g->see && to > from) g->see(&(proa_plan_span){kind, s, 0, 0, from, to}, g->context);
}

/* The step after the last backwards: seconds at which the last stage is done. */
static double finish(const player *g, proa_plan_result *r)
{
    double step = 0;
    for (int64_t s = 0; s < g->p->job.pipe; s++) {
        double from = g->stages[s].end, rate = speed(g, g->p->job.pipe),
               update = proa__forecast_update(g->p, s) / rate;
        double exchange = g->quiet ? 0 : proa__forecast_exchange(g->p, s), done = from + exchange + update;
        show(g, PROA_PLAN_EXCHANGE, s, from, from + exchange);
        show(g, PROA_PLAN_UPDATE, s, from + exchange, done);
        r->pipeline = fmax(r->pipeline, from);
        if (done <= step) continue;
        step = done;
        r->update = update;
    }
    r->exchange = fmax(0, step - r->pipeline - r->update);
    return step;
}

/* Plays all steps into a new player. */
static proa_status run(player *g)
{
    PROA_TRY(make_player(g));
    while (advance(g)) {
    }
    for (int64_t s = 0; s < g->p->job.pipe; s++)
        if (g->stages[s].at < g->n_steps)
            return proa_fail(PROA_ERR_INTERNAL, "plan: stage %lld waits forever at step %lld", (long long)s,
                             (long long)g->stages[s].at);
    return PROA_OK;
}

/* Adds to the end and the busy time of each stage of `later` `times` its difference from `sooner`. */
static void extrapolate(player *later, const player *sooner, double times)
{
    for (int64_t s = 0; s < later->p->job.pipe; s++) {
        stage *to = &later->stages[s];
        to->end += times * (to->end - sooner->stages[s].end);
        to->busy += times * (to->busy - sooner->stages[s].busy);
    }
}

/* Plays p. A filled pipeline is periodic: where no callback wants the spans, a long one is played with
 * `enough` micro-batches and with a round (as many micro-batches as stages) more, and the difference stands
 * for each further round. Not where stages share cores, as their speeds need not repeat. */
static proa_status play(const proa__forecast *p, bool quiet, proa_plan_see see, void *context,
                        proa_plan_result *r)
{
    const int64_t stages = p->job.pipe, rounds = stages < 8 ? 32 / stages + 8 : 8, enough = rounds * stages;
    bool shortens = !see && !p->machine.host_cores && p->job.micro_batches > enough + stages;
    proa__forecast first = *p, second = *p;
    if (shortens) first.job.micro_batches = enough, second.job.micro_batches = enough + stages;
    player sooner = {.p = &first, .quiet = quiet},
           g = {.p = &second, .quiet = quiet, .see = see, .context = context};
    proa_status status = shortens ? run(&sooner) : PROA_OK;
    if (status == PROA_OK) status = run(&g);
    if (status == PROA_OK) {
        double busy = 0;
        if (shortens)
            extrapolate(&g, &sooner, (double)(p->job.micro_batches - enough - stages) / (double)stages);
        for (int64_t s = 0; s < stages; s++) busy += g.stages[s].busy;
        r->step = finish(&g, r);
        r->bubble = r->pipeline > 0 ? 1 - busy / (r->pipeline * (double)stages) : 0;
    }
    free_player(&sooner);
    free_player(&g);
    return status;
}

proa_status proa_plan_simulate(const proa_plan_model *model, const proa_plan_job *job,
                               const proa_plan_machine *machine, proa_plan_see see, void *context,
                               proa_plan_result *result)
{
    proa__forecast p;
    proa_plan_result quiet = {0};
    *result = (proa_plan_result){0};
    PROA_TRY(proa__forecast_new(&p, model, job, machine));
    proa_status status = play(&p, true, NULL, NULL, &quiet);
    if (status == PROA_OK) status = play(&p, false, see, context, result);
    result->bubble = quiet.bubble < 1e-12 ? 0 : quiet.bubble; /* rounding of sums */
    result->exposed = fmax(0, result->step - quiet.step);
    for (int64_t s = 0; s < p.job.pipe; s++) result->sent = fmax(result->sent, proa__forecast_sent(&p, s));
    const double copies = (double)p.job.model * (double)p.job.data * (double)p.job.sharding;
    for (int64_t i = 0; i < proa__forecast_layers(model); i++)
        result->model_flops += proa__forecast_layer_at(&p.model, &p.job, i).l.flops;
    result->model_flops *= 3 * copies * (double)p.job.micro_batches;
    proa__forecast_memory(&p, result);
    proa__forecast_free(&p);
    return status;
}
