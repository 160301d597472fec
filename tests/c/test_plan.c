/* The simulator of jobs against cases that can be computed by hand: bubbles of pipelines, rings, bytes of
 * ZeRO, a transformer's parameters and activations; schedules against their closed forms; arguments that do
 * not go with each other. */
#include "suite.h"

#include <math.h>
#include <proa.h>
#include <string.h>

/* A chain of equal layers: 1 s forward, 2 s backward, at 1 FLOP/s. */
enum { LAYERS = 16 };
static proa_plan_layer chain[LAYERS];

static proa_plan_model equal_layers(int64_t n)
{
    for (int i = 0; i < LAYERS; i++)
        chain[i] = (proa_plan_layer){
            .flops = 1, .parameters = 100, .activations = 40, .input = 8, .output = 8, .weight = 1};
    return (proa_plan_model){.chain = chain, .n_chain = n};
}

static const proa_plan_machine slow = {.flops = 1};

static proa_plan_result simulated(const proa_plan_model *model, proa_plan_job job,
                                  const proa_plan_machine *machine)
{
    proa_plan_result r;
    proa_status status = proa_plan_simulate(model, &job, machine, NULL, NULL, &r);
    ck_assert_msg(status == PROA_OK, "%s", proa_error_message());
    return r;
}

static void near(double got, double expected)
{
    ck_assert_msg(fabs(got - expected) <= 1e-9 * fmax(1, fabs(expected)), "got %.12g, expected %.12g", got,
                  expected);
}

/* ---- schedules ----------------------------------------------------------------------------- */

/* Every forward before its backward, each once; what waits is what the closed form says. */
static void check_schedule(proa_pipeline_kind kind, int64_t s, int64_t p, int64_t m, int64_t v)
{
    proa_pipeline_step steps[512];
    int64_t alive = 0, most = 0, done[256] = {0};
    ck_assert(2 * m * v <= 512);
    ck_assert_int_eq(proa_pipeline_schedule(kind, s, p, m, v, steps), PROA_OK);
    for (int64_t i = 0; i < 2 * m * v; i++) {
        int64_t at = steps[i].chunk * m + steps[i].micro_batch;
        ck_assert(steps[i].chunk >= 0 && steps[i].chunk < v && steps[i].micro_batch >= 0 &&
                  steps[i].micro_batch < m);
        ck_assert_int_eq(done[at]++, steps[i].backward);
        alive += steps[i].backward ? -1 : 1;
        most = alive > most ? alive : most;
    }
    ck_assert_int_eq(alive, 0);
    ck_assert_int_eq(proa_pipeline_alive(kind, s, p, m, v), most);
}

START_TEST(schedules)
{
    for (int64_t p = 1; p <= 5; p++)
        for (int64_t s = 0; s < p; s++)
            for (int64_t v = 1; v <= 3; v++)
                for (int64_t m = 1; m <= 3 * p; m++) {
                    check_schedule(PROA_PIPELINE_F_THEN_B, s, p, m, v);
                    if (v == 1 || m % p == 0) check_schedule(PROA_PIPELINE_1F1B, s, p, m, v);
                }
    ck_assert_int_eq(proa_pipeline_alive(PROA_PIPELINE_1F1B, 1, 4, 8, 1), 3);
    ck_assert_int_eq(proa_pipeline_alive(PROA_PIPELINE_1F1B, 0, 4, 8, 2), 11);
    ck_assert_int_eq(proa_pipeline_alive(PROA_PIPELINE_F_THEN_B, 0, 4, 8, 2), 16);
}
END_TEST

/* Stages idle for (p − 1) / (m + p − 1) of a pipeline, and for (p − 1) / (v · m + p − 1) of an interleaved
 * one. */
START_TEST(bubbles)
{
    for (int64_t p = 1; p <= 4; p *= 2)
        for (int64_t m = p; m <= 8; m *= 2)
            for (int64_t v = 1; v <= 4; v *= 2) {
                const proa_plan_model model = equal_layers(16);
                proa_plan_job job = {.pipe = p, .micro_batches = m, .chunks = v};
                proa_plan_result r = simulated(&model, job, &slow);
                near(r.bubble, (double)(p - 1) / (double)(v * m + p - 1));
                near(r.step, 3.0 * 16 / (double)(p * v) * (double)(v * m + p - 1));
                near(r.exposed, 0);
                near(r.model_flops, 3.0 * 16 * (double)m);
                job.schedule = PROA_PIPELINE_F_THEN_B;
                if (v == 1) near(simulated(&model, job, &slow).bubble, (double)(p - 1) / (double)(m + p - 1));
            }
}
END_TEST

static void sum_spans(const proa_plan_span *span, void *context)
{
    double *busy = context;
    ck_assert(span->end >= span->begin);
    busy[span->stage] += span->end - span->begin;
}

START_TEST(timeline)
{
    const proa_plan_model model = equal_layers(8);
    double busy[2] = {0};
    proa_plan_result r;
    const proa_plan_job job = {.pipe = 2, .micro_batches = 4};
    ck_assert_int_eq(proa_plan_simulate(&model, &job, &slow, sum_spans, busy, &r), PROA_OK);
    near(busy[0], 48);
    near(busy[1], 48);
    /* Two stages on a host of one core: while both compute, each is half as fast. */
    const proa_plan_machine shared = {.flops = 1, .host_ranks = 2, .host_cores = 1};
    near(simulated(&model, job, &shared).step, 96);
}
END_TEST

/* A long pipeline is played in part: what follows is what playing all of it gives. */
START_TEST(long_pipelines)
{
    proa_plan_model model = equal_layers(16);
    for (int i = 0; i < LAYERS; i++) chain[i].flops = 1 + i % 3;
    const proa_plan_machine m = {.flops = 1, .link = 16, .latency = 0.25, .host_ranks = 2};
    for (int64_t p = 1; p <= 8; p *= 2)
        for (int v = 0; v < 3; v++) {
            proa_plan_job job = {.data = 2, .pipe = p, .micro_batches = 37 * p, .chunks = v == 1 ? 2 : 1};
            if (v == 2) job.schedule = PROA_PIPELINE_F_THEN_B;
            double busy[8] = {0};
            proa_plan_result all, part = simulated(&model, job, &m);
            ck_assert_int_eq(proa_plan_simulate(&model, &job, &m, sum_spans, busy, &all), PROA_OK);
            near(part.step, all.step);
            near(part.exposed / all.step, all.exposed / all.step);
            near(part.bubble, all.bubble);
        }
}
END_TEST

/* ---- communication --------------------------------------------------------------------------- */

START_TEST(rings)
{
    const proa_plan_machine m = {
        .flops = 1, .link = 100, .latency = 0.5, .local_link = 1000, .host_ranks = 4};
    near(proa_plan_collective_time(&m, PROA_PLAN_ALL_REDUCE, 4, 4, 800), 2 * 3 * (0.5 + 200 / 100.0));
    near(proa_plan_collective_time(&m, PROA_PLAN_ALL_GATHER, 4, 4, 800), 3 * (0.5 + 200 / 100.0));
    near(proa_plan_collective_time(&m, PROA_PLAN_REDUCE_SCATTER, 4, 4, 800), 3 * (0.5 + 200 / 100.0));
    near(proa_plan_collective_time(&m, PROA_PLAN_ALL_REDUCE, 4, 1, 800),
         2 * 3 * (200 / 1000.0)); /* one host */
    near(proa_plan_collective_time(&m, PROA_PLAN_ALL_REDUCE, 8, 1, 800),
         2 * 7 * (0.5 + 100 / 400.0)); /* 4 rings */
    near(proa_plan_collective_time(&m, PROA_PLAN_ALL_REDUCE, 1, 1, 800), 0);
    const proa_plan_machine free = {.flops = 1, .latency = 3};
    near(proa_plan_collective_time(&free, PROA_PLAN_ALL_REDUCE, 4, 1, 800), 0);
}
END_TEST

/* One layer a rank and one micro-batch: nothing of the exchange can be hidden. */
START_TEST(exchange_of_gradients)
{
    const proa_plan_machine m = {.flops = 1, .link = 100};
    const proa_plan_model model = equal_layers(1);
    proa_plan_result r = simulated(&model, (proa_plan_job){.data = 4}, &m);
    near(r.exchange, 2 * 3.0 / 4 * 400 / 100);
    near(r.exposed, r.exchange);
    near(r.step, 3 + r.exchange);
    near(r.sent, 2 * 3.0 / 4 * 400);
    /* Of ten equal layers' gradients all but the last bucket are sent beside backward of 2 s a layer. */
    const proa_plan_machine quick = {.flops = 1, .link = 1000};
    const proa_plan_model ten = equal_layers(10);
    near(simulated(&ten, (proa_plan_job){.data = 2}, &quick).exchange, 400 / 1000.0);
    /* Stages 1 to 3 of sharding; stage 3 exchanges in forward and backward. */
    near(simulated(&model, (proa_plan_job){.sharding = 4}, &m).exchange, (2 + 1) * 3.0 / 4 * 400 / 100);
    near(simulated(&model, (proa_plan_job){.sharding = 4, .stage = 2}, &m).exchange,
         (1 + 1) * 3.0 / 4 * 400 / 100);
    proa_plan_result divided = simulated(&model, (proa_plan_job){.sharding = 4, .stage = 3}, &m);
    near(divided.exchange, 0);
    near(divided.exposed, 3 * 3.0 / 4 * 400 / 100);
    near(divided.sent, 3 * 3.0 / 4 * 400);
}
END_TEST

/* Two stages, one micro-batch: an activation and a gradient of 8 bytes go over the link. */
START_TEST(messages)
{
    const proa_plan_machine m = {.flops = 1, .link = 4, .latency = 0.25};
    const proa_plan_model model = equal_layers(2);
    proa_plan_result r = simulated(&model, (proa_plan_job){.pipe = 2}, &m);
    near(r.step, 6 + 2 * (0.25 + 8 / 4.0));
    near(r.exposed, 2 * (0.25 + 8 / 4.0));
    near(r.sent, 8);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

static double state_of(const proa_plan_result *r) { return r->weights + r->gradients + r->states; }

/* Bytes of docs/distributed.md's table, and of ZeRO with 16-bit parameters: 16 a parameter, divided by
 * stage. */
START_TEST(bytes_of_sharding)
{
    const proa_plan_model model = equal_layers(4);
    const double n = 400, p = 4 * n, ranks = 8;
    proa_plan_result r = simulated(&model, (proa_plan_job){.data = 8}, &slow);
    near(state_of(&r), 4 * p);
    near(r.activations, 4 * 40);
    r = simulated(&model, (proa_plan_job){.sharding = 8}, &slow);
    near(state_of(&r), 2 * p + 2 * p / ranks);
    r = simulated(&model, (proa_plan_job){.sharding = 8, .stage = 2}, &slow);
    near(state_of(&r), p + 3 * p / ranks);
    r = simulated(&model, (proa_plan_job){.sharding = 8, .stage = 3}, &slow);
    near(state_of(&r), 4 * p / ranks);
    const double of_stage[] = {4 * n + 12 * n / ranks, 2 * n + 14 * n / ranks, 16 * n / ranks};
    for (int stage = 1; stage <= 3; stage++) {
        proa_plan_job job = {.sharding = 8, .stage = stage, .precision = PROA_PLAN_AMP_O2};
        r = simulated(&model, job, &slow);
        near(state_of(&r), of_stage[stage - 1]);
    }
    r = simulated(&model, (proa_plan_job){.data = 8, .moments = -1}, &slow);
    near(state_of(&r), 2 * p);
}
END_TEST

START_TEST(bytes_of_activations)
{
    const proa_plan_model model = equal_layers(4);
    proa_plan_result r = simulated(&model, (proa_plan_job){.pipe = 4, .micro_batches = 8}, &slow);
    near(r.activations, 4 * 40); /* the first stage holds four micro-batches of its layer */
    ck_assert_int_eq(r.memory_stage, 0);
    r = simulated(&model, (proa_plan_job){.pipe = 4, .micro_batches = 8, .schedule = PROA_PIPELINE_F_THEN_B},
                  &slow);
    near(r.activations, 8 * 40);
    r = simulated(&model, (proa_plan_job){.pipe = 4, .micro_batches = 8, .recompute = true}, &slow);
    near(r.activations, 4 * 8 + 40);
    near(simulated(&model, (proa_plan_job){.recompute = true}, &slow).step, 4 * 4);
}
END_TEST

/* Beside what is kept: gradients of the last layer's input and output; whole gradients that stage 2 has not
 * sent to their owners; a layer's gathered parameters in stage 3; blocks that exceed their tensors. */
START_TEST(bytes_of_temporaries)
{
    const proa_plan_model model = equal_layers(4);
    proa_plan_result r = simulated(&model, (proa_plan_job){0}, &slow);
    near(r.temporaries, 8 + 8);
    near(r.rounding, 0);
    near(r.memory, state_of(&r) + 4 * 40 + 16);
    r = simulated(&model, (proa_plan_job){.sharding = 8, .stage = 2}, &slow);
    near(r.temporaries, 16);
    near(r.memory, 1600 + 2 * 1600 / 8.0 + 1600); /* gradients come, whole, as activations go */
    r = simulated(&model, (proa_plan_job){.sharding = 8, .stage = 2, .micro_batches = 2}, &slow);
    near(r.temporaries, 16 + 7 / 8.0 * 1600);
    r = simulated(&model, (proa_plan_job){.sharding = 8, .stage = 3}, &slow);
    near(r.temporaries, 16 + 400);
    proa_plan_model gpt = {.layers = 2, .hidden = 256, .heads = 4, .vocabulary = 1024, .sequence = 128};
    const proa_plan_job job = {.micro_batch = 4};
    r = simulated(&gpt, job, &slow);
    near(r.memory, state_of(&r) + r.activations + r.temporaries + r.rounding);
    near(r.temporaries, 4 * 4 * 128 * 1024);          /* of the logits, whose softmax is kept */
    ck_assert_double_le(r.rounding, 0.02 * r.memory); /* powers of two fill their blocks */
    gpt.vocabulary = 1000, gpt.hidden = 264;
    r = simulated(&gpt, job, &slow);
    ck_assert_double_ge(r.rounding, 0.05 * r.memory);
    proa_plan_result piped =
        simulated(&gpt, (proa_plan_job){.micro_batch = 4, .pipe = 2, .micro_batches = 4}, &slow);
    ck_assert_double_ge(piped.temporaries, 2 * 4.0 * 128 * 264 * 4); /* outputs wait for their gradients */
}
END_TEST

/* The transformer's closed forms: 12 L h² (1 + 13/12h + (V + s)/12Lh) parameters (the head's normalization
 * beside them), 96 B s L h² (1 + s/6h + V/16Lh) operations with recomputation, 34 + 5as/h bytes a value
 * kept. */
START_TEST(transformer)
{
    const double L = 24, h = 2304, a = 24, V = 51200, s = 2048, B = 4;
    const proa_plan_model gpt = {
        .layers = 24, .hidden = 2304, .heads = 24, .vocabulary = 51200, .sequence = 2048};
    near(proa_plan_parameters(&gpt), 12 * L * h * h * (1 + 13 / (12 * h) + (V + s) / (12 * L * h)) + 2 * h);
    const proa_plan_job job = {.micro_batch = 4, .precision = PROA_PLAN_AMP_O2};
    const proa_plan_machine m = {.flops = 1e12};
    proa_plan_result r = simulated(&gpt, job, &m);
    near(r.model_flops, 0.75 * 96 * B * s * L * h * h * (1 + s / (6 * h) + V / (12 * L * h)));
    near(r.activations / 1e6, (L * B * s * h * (34 + 5 * a * s / h) + B * s * (h + 4 * h + 4 * V)) / 1e6);
    near(r.step, r.model_flops / 1e12);
    proa_plan_model fused = gpt;
    fused.fused_attention = true;
    near(simulated(&fused, job, &m).activations / 1e6, (L * B * s * h * 34 + B * s * (5 * h + 4 * V)) / 1e6);
    /* Tensor parallelism over 8: 10 + 24/8 bytes, the probabilities by head; four all-reduces a layer. */
    proa_plan_job divided = {.micro_batch = 1, .model = 8, .precision = PROA_PLAN_AMP_O2};
    const proa_plan_machine linked = {.flops = 1e12, .link = 1e9};
    r = simulated(&gpt, divided, &linked);
    near(r.activations / 1e6,
         (L * s * h * (10 + 24 / 8.0 + 5 * a * s / h / 8) + s * (5 * h + 4 * V / 8)) / 1e6);
    near(r.exposed, (4 * L + 2) * 2 * 7 / 8.0 * s * h * 2 / 1e9);
    divided.sequence_parallel = true;
    r = simulated(&gpt, divided, &linked);
    near(r.activations / 1e6, (L * s * h * (34 + 5 * a * s / h) / 8 + s * (5 * h + 4 * V) / 8) / 1e6);
}
END_TEST

/* ---- choosing -------------------------------------------------------------------------------- */

START_TEST(choices)
{
    const proa_plan_model gpt = {.layers = 8, .hidden = 512, .heads = 8, .vocabulary = 1024, .sequence = 128};
    const proa_plan_machine quick = {.flops = 1e12, .link = 1e12};
    proa_plan_search search = {.ranks = 8, .batch = 64};
    proa_plan_choice c;
    ck_assert_int_eq(proa_plan_choose(&gpt, &search, &quick, &c), PROA_OK);
    for (int i = 0; i < PROA_PLAN_CLASSES; i++) {
        ck_assert(c.classes[i].tried > 0 && c.classes[i].fits && c.classes[i].why[0]);
        const proa_plan_job *j = &c.classes[i].job;
        ck_assert_int_eq(j->data * j->pipe * j->sharding * j->model, 8);
        ck_assert_int_eq(j->data * j->sharding * j->micro_batch * j->micro_batches, 64);
        ck_assert(c.classes[c.chosen].result.step <= c.classes[i].result.step);
    }
    ck_assert_str_eq(c.classes[0].name, "data"); /* the whole model on each rank is quickest where it fits */
    ck_assert_int_eq(c.chosen, 0);
    /* With memory for a third of the states they must be divided. */
    proa_plan_machine small = quick;
    small.memory = 16 * proa_plan_parameters(&gpt) / 3;
    ck_assert_int_eq(proa_plan_choose(&gpt, &search, &small, &c), PROA_OK);
    ck_assert(c.chosen > 0 && !c.classes[0].fits);
    ck_assert_ptr_nonnull(strstr(c.classes[0].why, "GB a rank at least"));
    ck_assert_double_le(c.classes[c.chosen].result.memory, small.memory);
    small.memory = 1;
    ck_assert_int_eq(proa_plan_choose(&gpt, &search, &small, &c), PROA_ERR_UNAVAILABLE);
    ck_assert_int_eq(c.chosen, -1);
    proa_clear_error();
    search.ranks = 7; /* no factor of the heads or of the batch */
    ck_assert_int_eq(proa_plan_choose(&gpt, &search, &quick, &c), PROA_OK);
    ck_assert_ptr_nonnull(strstr(c.classes[0].why, "no degrees"));
    ck_assert_str_eq(c.classes[c.chosen].name, "data + pipe");
}
END_TEST

/* ---- bad arguments ----------------------------------------------------------------------------- */

static void refuses(const proa_plan_model *model, proa_plan_job job, const proa_plan_machine *machine,
                    const char *text)
{
    proa_plan_result r;
    ck_assert_int_eq(proa_plan_simulate(model, &job, machine, NULL, NULL, &r), PROA_ERR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(proa_error_message(), text) != NULL, "'%s' is not in: %s", text,
                  proa_error_message());
    proa_clear_error();
}

START_TEST(bad_arguments)
{
    const proa_plan_model four = equal_layers(4);
    proa_plan_model gpt = {.layers = 4, .hidden = 64, .heads = 4, .vocabulary = 130, .sequence = 8};
    refuses(&four, (proa_plan_job){.pipe = 5}, &slow, "4 layers do not fill pipe degree 5");
    refuses(&four, (proa_plan_job){.model = 2}, &slow, "not tensor-parallel");
    refuses(&four, (proa_plan_job){.data = -1}, &slow, "the data degree is -1");
    refuses(&four, (proa_plan_job){.stage = 4}, &slow, "the sharding stage is 4");
    refuses(&four, (proa_plan_job){.pipe = 2, .chunks = 2, .micro_batches = 3}, &slow,
            "divisible by the 2 stages");
    refuses(&four, (proa_plan_job){.micro_batches = 1}, &(proa_plan_machine){0}, "FLOP/s above 0");
    refuses(&four, (proa_plan_job){0}, &(proa_plan_machine){.flops = 1, .link = -1}, "expected 0 or more");
    refuses(&gpt, (proa_plan_job){.model = 8}, &slow, "number of heads, 4");
    refuses(&gpt, (proa_plan_job){.model = 4}, &slow, "vocabulary (pad it), 130");
    refuses(&gpt, (proa_plan_job){.pipe = 5}, &slow, "more than the model's 4 layers");
    gpt.heads = 3;
    refuses(&gpt, (proa_plan_job){0}, &slow, "does not divide by 3 heads");
    gpt.layers = 0;
    refuses(&gpt, (proa_plan_job){0}, &slow, "layers is 0");
    chain[0].weight = 100;
    refuses(&four, (proa_plan_job){.pipe = 4}, &slow, "too large a part");
    proa_pipeline_step steps[2];
    ck_assert_int_eq(proa_pipeline_schedule(PROA_PIPELINE_1F1B, 2, 2, 1, 1, steps),
                     PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
    ck_assert_int_eq(proa_pipeline_schedule(PROA_PIPELINE_1F1B, 0, 1, 0, 1, steps),
                     PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
}
END_TEST

SUITE("plan", schedules, bubbles, timeline, long_pipelines, rings, exchange_of_gradients, messages,
      bytes_of_sharding, bytes_of_activations, bytes_of_temporaries, transformer, choices, bad_arguments)
