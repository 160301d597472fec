/* Search over degrees of parallelism. Estimates the jobs of all degrees, with micro-batches of powers of two
 * and 1 to 8 chunks a stage; simulates the two quickest that fit into memory of each class (a combination of
 * pipeline, sharding and model parallelism); and writes for each class why it was chosen or not. May use
 * core. */
#include "dist/forecast.h"

#include <math.h>

static const char *const class_names[PROA_PLAN_CLASSES] = {
    "data",         "data + pipe",         "data + sharding",         "data + pipe + sharding",
    "data + model", "data + pipe + model", "data + sharding + model", "data + pipe + sharding + model"};

static int64_t class_of(const proa_plan_job *j)
{
    return (j->pipe > 1) + 2 * (j->sharding > 1) + 4 * (j->model > 1);
}

enum { KEPT = 2 };
typedef struct candidate {
    proa_plan_job job;
    double estimate, memory;
} candidate;
typedef struct candidates {
    int64_t tried;
    int n; /* of the quickest that fit */
    candidate best[KEPT];
    candidate smallest; /* of all, by memory */
} candidates;

typedef struct searcher {
    const proa_plan_model *model;
    const proa_plan_search *search;
    const proa_plan_machine *machine;
    candidates classes[PROA_PLAN_CLASSES];
} searcher;

/* ---- candidates ---------------------------------------------------------------------------- */

/* Estimates the seconds of a step: the slowest part computes all the time except while the pipeline fills and
 * drains; exchange of gradients and update follow. */
static double estimate(const proa__forecast *p)
{
    double slowest = 0, after = 0;
    for (int64_t i = 0; i < p->n_parts; i++)
        slowest = fmax(slowest, p->parts[i].forward + p->parts[i].backward);
    for (int64_t s = 0; s < p->job.pipe; s++)
        after = fmax(after, proa__forecast_exchange(p, s) + proa__forecast_update(p, s));
    double hops = (double)(p->n_parts - 1) *
                  (p->job.pipe > 1 ? 2 * proa__forecast_message(p, 0, 1, p->parts[0].output) : 0);
    return slowest * (double)(p->job.micro_batches * p->job.chunks + p->job.pipe - 1) + hops + after;
}

static void keep(candidates *c, const candidate *one)
{
    int at = c->n < KEPT ? c->n : KEPT;
    while (at > 0 && c->best[at - 1].estimate > one->estimate) at--;
    if (at == KEPT) return;
    if (c->n < KEPT) c->n++;
    for (int i = c->n - 1; i > at; i--) c->best[i] = c->best[i - 1];
    c->best[at] = *one;
}

/* Whether a failed call only says that sizes do not go with each other. */
static bool refused(void)
{
    if (proa_error() != PROA_ERR_INVALID_ARGUMENT) return false;
    proa_clear_error();
    return true;
}

static proa_status try(searcher *x, const proa_plan_job *job)
{
    proa__forecast p;
    proa_status status = proa__forecast_new(&p, x->model, job, x->machine);
    if (status != PROA_OK) return refused() ? PROA_OK : status;
    proa_plan_result r = {0};
    proa__forecast_memory(&p, &r);
    candidate one = {.job = p.job, .estimate = estimate(&p), .memory = r.memory};
    proa__forecast_free(&p);
    candidates *c = &x->classes[class_of(&one.job)];
    if (c->tried++ == 0 || one.memory < c->smallest.memory) c->smallest = one;
    if (x->machine->memory == 0 || one.memory <= x->machine->memory) keep(c, &one);
    return PROA_OK;
}

static proa_status try_chunks(searcher *x, proa_plan_job job)
{
    for (int64_t chunks = 1; chunks <= (job.pipe > 1 ? 8 : 1); chunks *= 2)
        for (int again = 0; again <= !x->search->no_recompute; again++) {
            job.chunks = chunks;
            job.recompute = again;
            PROA_TRY(try(x, &job));
        }
    return PROA_OK;
}

/* All sizes of micro-batches, powers of two, that divide a rank's rows. */
static proa_status try_rows(searcher *x, proa_plan_job job)
{
    int64_t rows = x->search->batch / (job.data * job.sharding), most = x->search->max_micro_batch;
    for (int64_t b = 1; b <= rows && (!most || b <= most); b *= 2) {
        if (rows % b) break;
        job.micro_batch = b;
        job.micro_batches = rows / b;
        PROA_TRY(try_chunks(x, job));
    }
    return PROA_OK;
}

static bool within(int64_t degree, int64_t most) { return most == 0 || degree <= most; }

static proa_status try_all(searcher *x)
{
    const proa_plan_search *s = x->search;
    for (int64_t model = 1; model <= s->ranks && within(model, s->max_model); model++) {
        if (s->ranks % model) continue;
        int64_t rest = s->ranks / model;
        for (int64_t pipe = 1; pipe <= rest && within(pipe, s->max_pipe); pipe++) {
            if (rest % pipe) continue;
            int64_t copies = rest / pipe;
            if (s->batch % copies) continue;
            for (int64_t sharding = 1; sharding <= copies && within(sharding, s->max_sharding); sharding++)
                if (copies % sharding == 0)
                    PROA_TRY(try_rows(x, (proa_plan_job){.data = copies / sharding,
                                                         .pipe = pipe,
                                                         .sharding = sharding,
                                                         .model = model,
                                                         .precision = s->precision,
                                                         .moments = s->moments}));
        }
    }
    return PROA_OK;
}

/* ---- the choice ---------------------------------------------------------------------------- */

/* Simulates a class's candidates; the quickest stays. */
static proa_status settle(searcher *x, int64_t i, proa_plan_class *to)
{
    candidates *c = &x->classes[i];
    to->name = class_names[i];
    to->tried = c->tried;
    to->fits = c->n > 0;
    for (int k = 0; k < c->n; k++) {
        proa_plan_result r;
        PROA_TRY(proa_plan_simulate(x->model, &c->best[k].job, x->machine, NULL, NULL, &r));
        if (k > 0 && r.step >= to->result.step) continue;
        to->job = c->best[k].job;
        to->result = r;
    }
    if (c->n > 0 || c->tried == 0) return PROA_OK;
    to->job = c->smallest.job;
    return proa_plan_simulate(x->model, &to->job, x->machine, NULL, NULL, &to->result);
}

static void explain(proa_plan_class *c, const proa_plan_class *best, const searcher *x)
{
    const double giga = 1e9;
    if (c->tried == 0)
        snprintf(c->why, sizeof c->why,
                 "no degrees go with %lld ranks, a batch of %lld and the model's sizes",
                 (long long)x->search->ranks, (long long)x->search->batch);
    else if (!c->fits)
        snprintf(c->why, sizeof c->why, "needs %.3g GB a rank at least, there are %.3g GB",
                 c->result.memory / giga, x->machine->memory / giga);
    else if (c == best)
        snprintf(c->why, sizeof c->why,
                 "chosen: %.4g s a step, %.1f %% bubble, %.4g s of exposed communication, %.3g GB",
                 c->result.step, 100 * c->result.bubble, c->result.exposed, c->result.memory / giga);
    else
        snprintf(c->why, sizeof c->why,
                 "%.4g s a step, %.2f times the chosen: %.1f %% bubble, %.4g s of exposed communication",
                 c->result.step, c->result.step / best->result.step, 100 * c->result.bubble,
                 c->result.exposed);
}

proa_status proa_plan_choose(const proa_plan_model *model, const proa_plan_search *search,
                             const proa_plan_machine *machine, proa_plan_choice *choice)
{
    *choice = (proa_plan_choice){.chosen = -1};
    if (search->ranks < 1 || search->batch < 1)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "plan: ranks is %lld and batch %lld; expected 1 or more",
                         (long long)search->ranks, (long long)search->batch);
    proa_plan_job one = {.precision = search->precision}; /* what no degrees mend is the caller's error */
    PROA_TRY(proa__forecast_check(model, &one, machine));
    searcher x = {.model = model, .search = search, .machine = machine};
    PROA_TRY(try_all(&x));
    for (int64_t i = 0; i < PROA_PLAN_CLASSES; i++) {
        proa_plan_class *c = &choice->classes[i];
        PROA_TRY(settle(&x, i, c));
        if (c->fits && (choice->chosen < 0 || c->result.step < choice->classes[choice->chosen].result.step))
            choice->chosen = i;
    }
    const proa_plan_class *best = choice->chosen < 0 ? NULL : &choice->classes[choice->chosen];
    for (int64_t i = 0; i < PROA_PLAN_CLASSES; i++) explain(&choice->classes[i], best, &x);
    if (best) return PROA_OK;
    return proa_fail(PROA_ERR_UNAVAILABLE, "plan: no degrees of %lld ranks fit the model into %.3g GB a rank",
                     (long long)search->ranks, machine->memory / 1e9);
}
