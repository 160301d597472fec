/* `proa plan`: predicts step time, bubble, exposed communication and memory of a job of many ranks, and
 * chooses degrees of parallelism that were not given. Uses plan.h. */
#include "plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- options ------------------------------------------------------------------------------- */

static proa_status wrong(const char *what, const char *expected, const char *got)
{
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: expected %s, got '%s'", what, expected, got);
}

static proa_status number(const char *what, const char *text, char **end, double *value)
{
    errno = 0;
    *value = strtod(text, end);
    return errno || *end == text || !(*value >= 0) ? wrong(what, "a number of at least 0", text) : PROA_OK;
}

static proa_status real(cli_args *a, double *value)
{
    const char *text = NULL, *what = a->option;
    char *end;
    PROA_TRY(cli_value(a, &text));
    PROA_TRY(number(what, text, &end, value));
    return *end ? wrong(what, "a number", text) : PROA_OK;
}

/* "BYTES/S" or "BYTES/S,SECONDS". */
static proa_status link_speed(cli_args *a, double *bandwidth, double *latency)
{
    const char *text = NULL, *what = a->option;
    char *end;
    PROA_TRY(cli_value(a, &text));
    PROA_TRY(number(what, text, &end, bandwidth));
    if (*end == ',') PROA_TRY(number(what, end + 1, &end, latency));
    return *end ? wrong(what, "bytes/s, or bytes/s,seconds of latency", text) : PROA_OK;
}

/* A list "name=1,other=2" of positive integers. */
typedef struct setting {
    const char *name;
    int64_t *value;
} setting;

static proa_status settings(const char *what, const char *text, const setting *known)
{
    char *copy = cli_text(text), *at = copy;
    while (at && *at) {
        char *next = strchr(at, ','), *equal, *end;
        if (next) *next++ = 0;
        equal = strchr(at, '=');
        if (equal) *equal++ = 0;
        const setting *s = known;
        while (s->name && strcmp(s->name, at) != 0) s++;
        if (!s->name || !equal)
            return wrong(what, "names with '=' and a number (proa --help lists them)", text);
        errno = 0;
        *s->value = strtoll(equal, &end, 10);
        if (errno || end == equal || *end || *s->value < 1) return wrong(what, "positive integers", text);
        at = next;
    }
    return proa_error();
}

static proa_status gpt(plan_request *q, const char *sizes)
{
    proa_plan_model *m = &q->model;
    const setting known[] = {{"layers", &m->layers},         {"hidden", &m->hidden},     {"heads", &m->heads},
                             {"vocabulary", &m->vocabulary}, {"sequence", &m->sequence}, {NULL, NULL}};
    return settings("--model gpt:", sizes, known);
}

static proa_status degrees(cli_args *a, plan_request *q)
{
    proa_plan_job *j = &q->job;
    const setting known[] = {{"data", &j->data},     {"pipe", &j->pipe},   {"sharding", &j->sharding},
                             {"model", &j->model},   {"stage", &j->stage}, {"micro_batch", &j->micro_batch},
                             {"chunks", &j->chunks}, {NULL, NULL}};
    const char *text = NULL;
    q->given_degrees = true;
    PROA_TRY(cli_value(a, &text));
    return settings("--degrees", text, known);
}

/* One of the words, by index. */
static proa_status word(cli_args *a, const char *const *words, int n, int *index)
{
    const char *text = NULL;
    PROA_TRY(cli_value(a, &text));
    for (int i = 0; i < n; i++)
        if (strcmp(words[i], text) == 0) return *index = i, PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: expected %s, %s%s%s, got '%s'", a->option, words[0],
                     words[1], n > 2 ? " or " : "", n > 2 ? words[2] : "", text);
}

static proa_status rank_list(cli_args *a, plan_request *q)
{
    const char *text = NULL, *what = a->option;
    PROA_TRY(cli_value(a, &text));
    q->ranks = cli_array(strlen(text) / 2 + 1, sizeof *q->ranks);
    if (!q->ranks) return proa_error();
    q->n_ranks = 0;
    for (const char *at = text;;) {
        char *end;
        errno = 0;
        long long n = strtoll(at, &end, 10);
        if (errno || end == at || n < 1 || (*end && *end != ','))
            return wrong(what, "numbers of ranks: 8,64,512", text);
        q->ranks[q->n_ranks++] = n;
        if (!*end) return PROA_OK;
        at = end + 1;
    }
}

static proa_status of_machine(cli_args *a, plan_request *q, bool *known)
{
    proa_plan_machine *m = &q->machine;
    *known = true;
    if (cli_is(a, "flops")) return real(a, &m->flops);
    if (cli_is(a, "memory-bandwidth")) return real(a, &m->memory_bandwidth);
    if (cli_is(a, "memory")) return real(a, &m->memory);
    if (cli_is(a, "link")) return link_speed(a, &m->link, &m->latency);
    if (cli_is(a, "local-link")) return link_speed(a, &m->local_link, &m->local_latency);
    if (cli_is(a, "host-ranks")) return cli_int(a, 1, &m->host_ranks);
    if (cli_is(a, "host-cores")) return cli_int(a, 1, &m->host_cores);
    *known = false;
    return PROA_OK;
}

static proa_status of_job(cli_args *a, plan_request *q)
{
    static const char *const precisions[] = {"float32", "O1", "O2"}, *const schedules[] = {"1F1B",
                                                                                           "F-then-B"};
    int index = 0;
    if (cli_is(a, "model")) return cli_value(a, &q->description);
    if (cli_is(a, "ranks")) return rank_list(a, q);
    if (cli_is(a, "batch")) return cli_int(a, 1, &q->batch);
    if (cli_is(a, "max-micro-batch")) return cli_int(a, 1, &q->max_micro_batch);
    if (cli_is(a, "degrees")) return degrees(a, q);
    if (cli_is(a, "timeline")) return cli_value(a, &q->timeline);
    if (cli_is(a, "moments")) {
        PROA_TRY(cli_int(a, 0, &q->job.moments));
        if (q->job.moments == 0) q->job.moments = -1;
    } else if (cli_is(a, "precision")) {
        PROA_TRY(word(a, precisions, 3, &index));
        q->job.precision = (proa_plan_precision)index;
    } else if (cli_is(a, "schedule")) {
        PROA_TRY(word(a, schedules, 2, &index));
        q->job.schedule = (proa_pipeline_kind)index;
    } else if (cli_is(a, "recompute")) q->job.recompute = true;
    else if (cli_is(a, "no-recompute")) q->no_recompute = true;
    else if (cli_is(a, "sequence-parallel")) q->job.sequence_parallel = true;
    else if (cli_is(a, "fused-attention")) q->model.fused_attention = true;
    else if (cli_is(a, "weak")) q->weak = true;
    else if (cli_is(a, "measure")) q->measure = true;
    else if (cli_is(a, "json")) q->json = true;
    else return cli_model_option(a);
    return PROA_OK;
}

static proa_status read_request(cli_args *a, plan_request *q)
{
    while (cli_next(a) != CLI_END) {
        bool known = false;
        PROA_TRY(of_machine(a, q, &known));
        if (!known) PROA_TRY(of_job(a, q));
    }
    if (!q->description)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "no model: --model "
                         "gpt:layers=24,hidden=2304,heads=24,vocabulary=51200,sequence=2048 or a .pdmodel");
    if (!q->n_ranks) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "no ranks: --ranks 8,64,512");
    if (!q->batch)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "no batch: --batch says how many rows a step takes over all ranks");
    if (!q->measure && !(q->machine.flops > 0))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "no speed of products: --flops says FLOP/s, --measure measures them here");
    if (q->given_degrees && (q->no_recompute || q->max_micro_batch))
        return proa_fail(
            PROA_ERR_INVALID_ARGUMENT,
            "--no-recompute and --max-micro-batch bound the search; --degrees leaves nothing to search");
    if (!q->given_degrees && (q->job.recompute || q->job.sequence_parallel || q->job.schedule))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "--recompute, --sequence-parallel and --schedule go with "
                                                    "--degrees; without it degrees are searched");
    if (strncmp(q->description, "gpt:", 4) == 0) return gpt(q, q->description + 4);
    return cli_model_load(&q->program, q->description);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Data degree and micro-batches from what is left of ranks and rows. */
static proa_status fill_job(const plan_request *q, plan_row *r)
{
    proa_plan_job *j = &r->job;
    int64_t *const all[] = {&j->pipe, &j->sharding, &j->model, &j->micro_batch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!*all[i]) *all[i] = 1;
    int64_t rest = j->pipe * j->sharding * j->model;
    if (!q->job.data) j->data = r->ranks / rest;
    if (j->data * rest != r->ranks)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "--degrees: %lld ranks are not data · pipe %lld · sharding %lld · model %lld",
                         (long long)r->ranks, (long long)j->pipe, (long long)j->sharding,
                         (long long)j->model);
    int64_t each = j->data * j->sharding * j->micro_batch;
    if (r->batch % each)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "--batch: %lld rows do not divide by data %lld · sharding %lld · micro_batch %lld",
                         (long long)r->batch, (long long)j->data, (long long)j->sharding,
                         (long long)j->micro_batch);
    j->micro_batches = r->batch / each;
    return PROA_OK;
}

static proa_status predict(const plan_request *q, plan_row *r)
{
    r->job = q->job;
    if (q->given_degrees) {
        PROA_TRY(fill_job(q, r));
        return proa_plan_simulate(&q->model, &r->job, &q->machine, NULL, NULL, &r->result);
    }
    const proa_plan_search search = {.ranks = r->ranks,
                                     .batch = r->batch,
                                     .max_micro_batch = q->max_micro_batch,
                                     .max_model = q->model.chain ? 1 : 0,
                                     .precision = q->job.precision,
                                     .moments = q->job.moments,
                                     .no_recompute = q->no_recompute};
    PROA_TRY(proa_plan_choose(&q->model, &search, &q->machine, &r->choice));
    r->chosen = true;
    r->job = r->choice.classes[r->choice.chosen].job;
    r->result = r->choice.classes[r->choice.chosen].result;
    return PROA_OK;
}

static double rate(const plan_row *r) { return r->result.model_flops / r->result.step / (double)r->ranks; }

static void print_rows(const plan_request *q, const plan_row *rows)
{
    const proa_plan_machine *m = &q->machine;
    printf("%s: %.4g parameters; products %.4g FLOP/s, memory %.4g bytes/s, link %.4g bytes/s\n",
           q->description, proa_plan_parameters(&q->model), m->flops, m->memory_bandwidth, m->link);
    printf("%7s %7s %5s %5s %5s %5s %6s %6s %6s %9s %8s %9s %9s %10s\n", "ranks", "batch", "data", "pipe",
           "shard", "model", "chunks", "rows", "micro", "step s", "bubble", "exposed s", "memory GB",
           "TFLOP/s");
    for (int64_t i = 0; i < q->n_ranks; i++) {
        const plan_row *r = &rows[i];
        const proa_plan_job *j = &r->job;
        printf("%7lld %7lld %5lld %5lld %5lld %5lld %6lld %6lld %6lld %9.4g %6.1f %% %9.4g %9.4g %10.4g%s\n",
               (long long)r->ranks, (long long)r->batch, (long long)j->data, (long long)j->pipe,
               (long long)j->sharding, (long long)j->model, (long long)(j->chunks ? j->chunks : 1),
               (long long)j->micro_batch, (long long)j->micro_batches, r->result.step, 100 * r->result.bubble,
               r->result.exposed, r->result.memory / 1e9, rate(r) / 1e12, j->recompute ? "  recompute" : "");
    }
    for (int64_t i = 0; i < q->n_ranks; i++) {
        if (!rows[i].chosen) continue;
        printf("\n%lld ranks\n", (long long)rows[i].ranks);
        for (int k = 0; k < PROA_PLAN_CLASSES; k++)
            printf("  %-30s %s\n", rows[i].choice.classes[k].name, rows[i].choice.classes[k].why);
    }
    printf("\nshard: sharding degree; rows: of a micro-batch on one rank; micro: micro-batches of a step; "
           "TFLOP/s: of one rank,\n"
           "without recomputation; memory: of the rank that needs most\n");
}

static void json_pairs(const char *const *names, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        printf("%s\"%s\": ", i ? ", " : "", names[i]);
        cli_json_number(stdout, values[i]);
    }
}

static void json_row(const plan_row *r)
{
    static const char *const names[] = {
        "ranks",     "batch",       "data",          "pipe",        "sharding",    "model",
        "chunks",    "micro_batch", "micro_batches", "step",        "pipeline",    "exchange",
        "update",    "bubble",      "exposed",       "sent",        "model_flops", "weights",
        "gradients", "states",      "activations",   "temporaries", "rounding",    "memory"};
    const proa_plan_job *j = &r->job;
    const proa_plan_result *p = &r->result;
    const double values[] = {(double)r->ranks,
                             (double)r->batch,
                             (double)j->data,
                             (double)j->pipe,
                             (double)j->sharding,
                             (double)j->model,
                             (double)(j->chunks ? j->chunks : 1),
                             (double)j->micro_batch,
                             (double)j->micro_batches,
                             p->step,
                             p->pipeline,
                             p->exchange,
                             p->update,
                             p->bubble,
                             p->exposed,
                             p->sent,
                             p->model_flops,
                             p->weights,
                             p->gradients,
                             p->states,
                             p->activations,
                             p->temporaries,
                             p->rounding,
                             p->memory};
    printf("{");
    json_pairs(names, values, sizeof values / sizeof *values);
    printf(", \"recompute\": %s, \"why\": [", j->recompute ? "true" : "false");
    for (int k = 0; r->chosen && k < PROA_PLAN_CLASSES; k++) {
        printf(k ? ", [" : "[");
        cli_json_text(stdout, r->choice.classes[k].name);
        printf(", ");
        cli_json_text(stdout, r->choice.classes[k].why);
        printf("]");
    }
    printf("]}");
}

static void print_json(const plan_request *q, const plan_row *rows)
{
    static const char *const names[] = {"flops",   "memory_bandwidth", "link",
                                        "latency", "local_link",       "local_latency"};
    const proa_plan_machine *m = &q->machine;
    const double values[] = {m->flops,   m->memory_bandwidth, m->link,
                             m->latency, m->local_link,       m->local_latency};
    printf("{\"model\": ");
    cli_json_text(stdout, q->description);
    printf(", \"parameters\": %.0f, \"machine\": {", proa_plan_parameters(&q->model));
    json_pairs(names, values, sizeof values / sizeof *values);
    printf("}, \"rows\": [");
    for (int64_t i = 0; i < q->n_ranks; i++) {
        printf(i ? ",\n " : "\n ");
        json_row(&rows[i]);
    }
    printf("]}\n");
}

/* The classes of a search that found nothing: the reasons for the error. */
static void print_refusals(const plan_row *r)
{
    for (int k = 0; k < PROA_PLAN_CLASSES && r->choice.classes[k].name; k++)
        fprintf(stderr, "  %-30s %s\n", r->choice.classes[k].name, r->choice.classes[k].why);
}

static proa_status answer(plan_request *q)
{
    bool prints = true;
    if (q->measure) PROA_TRY(plan_measure(q, &prints));
    if (!prints) return PROA_OK;
    if (q->program.program) PROA_TRY(plan_program(q));
    plan_row *rows = cli_array((size_t)q->n_ranks, sizeof *rows);
    if (!rows) return proa_error();
    for (int64_t i = 0; i < q->n_ranks; i++) {
        rows[i].ranks = q->ranks[i];
        rows[i].batch = q->weak ? q->batch * q->ranks[i] / q->ranks[0] : q->batch;
        proa_status status = predict(q, &rows[i]);
        if (status == PROA_ERR_UNAVAILABLE) print_refusals(&rows[i]);
        PROA_TRY(status);
    }
    if (q->json) print_json(q, rows);
    else print_rows(q, rows);
    return q->timeline ? plan_page(q, &rows[q->n_ranks - 1], q->timeline) : PROA_OK;
}

int cli_plan(cli_args *a)
{
    plan_request q = {0};
    proa_status status = read_request(a, &q);
    if (status == PROA_OK) status = answer(&q);
    cli_model_free(&q.program);
    return status == PROA_OK ? CLI_OK : CLI_FAILED;
}
