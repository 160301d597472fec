/* Layers of a model as one rank of a job computes and keeps them: floating-point operations, bytes,
 * collectives. Also checks the sizes of models, jobs and machines. May use core. */
#include "core/thread.h"
#include "dist/forecast.h"

double proa__forecast_element(const proa_plan_job *job)
{
    return job->precision == PROA_PLAN_FLOAT32 ? 4 : 2;
}

double proa__forecast_weight_bytes(const proa_plan_job *job)
{
    return job->precision == PROA_PLAN_AMP_O2 ? 2 : 4;
}

double proa__forecast_state_bytes(const proa_plan_job *job)
{
    return 4 * (double)job->moments + (job->precision == PROA_PLAN_AMP_O2 ? 4 : 0);
}

/* ---- checks ------------------------------------------------------------------------------ */

static proa_status divides(const char *what, int64_t n, const char *by, int64_t k)
{
    if (n % k == 0) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "plan: %s %lld does not divide by the %s degree %lld", what,
                     (long long)n, by, (long long)k);
}

static proa_status check_gpt(const proa_plan_model *m, const proa_plan_job *job)
{
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {{"layers", m->layers},
                 {"hidden", m->hidden},
                 {"heads", m->heads},
                 {"vocabulary", m->vocabulary},
                 {"sequence", m->sequence}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 1)
            return proa_fail(PROA_ERR_INVALID_ARGUMENT, "plan: the model's %s is %lld; expected 1 or more",
                             sizes[i].name, (long long)sizes[i].value);
    if (m->hidden % m->heads)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "plan: hidden %lld does not divide by %lld heads",
                         (long long)m->hidden, (long long)m->heads);
    PROA_TRY(divides("the number of heads,", m->heads, "model", job->model));
    PROA_TRY(divides("the vocabulary (pad it),", m->vocabulary, "model", job->model));
    if (job->pipe * job->chunks > m->layers)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "plan: pipe degree %lld · %lld chunks are more than the model's %lld layers",
                         (long long)job->pipe, (long long)job->chunks, (long long)m->layers);
    return PROA_OK;
}

static proa_status fill(const char *name, int64_t *value, int64_t most)
{
    if (*value == 0) *value = 1;
    if (*value >= 1 && *value <= most) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "plan: %s is %lld; expected 1 to %lld", name,
                     (long long)*value, (long long)most);
}

static proa_status check_machine(const proa_plan_machine *m)
{
    const double speeds[] = {m->memory_bandwidth, m->link,          m->latency,
                             m->local_link,       m->local_latency, m->memory};
    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++)
        if (!(speeds[i] >= 0))
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "plan: a speed or size of the machine is %g; expected 0 or more", speeds[i]);
    if (!(m->flops > 0))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "plan: the machine's flops is %g; expected FLOP/s above 0", m->flops);
    if (m->host_ranks < 0 || m->host_cores < 0)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "plan: host_ranks is %lld and host_cores %lld; expected 0 or more",
                         (long long)m->host_ranks, (long long)m->host_cores);
    return PROA_OK;
}

proa_status proa__forecast_check(const proa_plan_model *model, proa_plan_job *job,
                                 const proa_plan_machine *machine)
{
    enum { MANY = 1 << 20 };
    PROA_TRY(fill("the data degree", &job->data, MANY));
    PROA_TRY(fill("the pipe degree", &job->pipe, MANY));
    PROA_TRY(fill("the sharding degree", &job->sharding, MANY));
    PROA_TRY(fill("the model degree", &job->model, MANY));
    PROA_TRY(fill("the sharding stage", &job->stage, 3));
    PROA_TRY(fill("micro_batch", &job->micro_batch, MANY));
    PROA_TRY(fill("micro_batches", &job->micro_batches, MANY));
    PROA_TRY(fill("chunks", &job->chunks, MANY));
    job->moments = job->moments == 0 ? 2 : job->moments < 0 ? 0 : job->moments;
    if (job->precision > PROA_PLAN_AMP_O2)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "plan: unknown precision %d", (int)job->precision);
    PROA_TRY(check_machine(machine));
    PROA_TRY(proa__pipeline_check(job->schedule, 0, job->pipe, job->micro_batches, job->chunks));
    if (!model->chain) return check_gpt(model, job);
    if (job->model > 1)
        return proa_fail(
            PROA_ERR_INVALID_ARGUMENT,
            "plan: a saved program's layers are not tensor-parallel; the model degree is %lld, expected 1",
            (long long)job->model);
    if (model->n_chain < 1 || job->pipe * job->chunks > model->n_chain)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "plan: %lld layers do not fill pipe degree %lld · %lld chunks",
                         (long long)model->n_chain, (long long)job->pipe, (long long)job->chunks);
    return PROA_OK;
}

/* ---- tensors of a layer -------------------------------------------------------------------- */

enum { JOINED = 1 << 18 };

static double slack_of(double bytes) { return (double)proa__block_bytes((size_t)bytes) - bytes; }

/* Adds tensors that are kept for backward. */
static void keep(proa__forecast_layer *f, double count, double bytes)
{
    f->l.activations += count * bytes;
    f->slack.activations += count * slack_of(bytes);
}

/* Adds parameters of a size. Gradients below JOINED elements are joined for an average
 * (proa/distributed/sharding/exchange.py). */
static void own(proa__forecast_layer *f, const proa_plan_job *job, double count, double elements)
{
    f->l.parameters += count * elements;
    f->largest = elements > f->largest ? elements : f->largest;
    f->joined += elements < JOINED ? count * elements : 0;
    f->slack.weights += count * slack_of(elements * proa__forecast_weight_bytes(job));
    f->slack.states += count * slack_of(elements * 4);
}

/* ---- a decoder-only transformer ------------------------------------------------------------
 * Tensor parallelism after Shoeybi et al. 2019; bytes kept for backward after Korthikanti et al. 2022,
 * table 2, with e bytes an element and 1 a dropout mask (e = 2 gives theirs). */

typedef struct sizes {
    double t, whole;      /* the model degree; by what it divides the activations between divided layers */
    double rows, h, e, w; /* rows · sequence; hidden size; bytes of an activation, of a weight */
    double stream, vocabulary; /* bytes of a residual stream; the part of the vocabulary on this rank */
} sizes;

static sizes sizes_of(const proa_plan_model *m, const proa_plan_job *job)
{
    double t = (double)job->model, rows = (double)(job->micro_batch * m->sequence), h = (double)m->hidden,
           e = proa__forecast_element(job);
    return (sizes){.t = t,
                   .whole = job->sequence_parallel ? t : 1,
                   .rows = rows,
                   .h = h,
                   .e = e,
                   .w = proa__forecast_weight_bytes(job),
                   .stream = rows * h * e,
                   .vocabulary = (double)m->vocabulary / t};
}

static proa__forecast_layer embedding(const proa_plan_model *m, const proa_plan_job *job)
{
    const sizes z = sizes_of(m, job);
    double table = z.vocabulary * z.h, positions = (double)m->sequence * z.h;
    proa__forecast_layer f = {
        .l = {.traffic = 2 * z.stream, .input = 8 * z.rows, .output = z.stream, .forward_reduces = z.t > 1},
        .gradients = 2 * z.stream + (table + positions) * z.w};
    own(&f, job, 1, table);
    own(&f, job, 1, positions);
    keep(&f, 1, z.rows * z.h / z.whole);
    return f;
}

/* The most bytes by which gradients under way exceed what a block's backward has freed. At the second linear
 * layer: the residual stream's, the dropped one's, the activation's and the weight's. At the softmax: two of
 * the probabilities, behind all that follows the attention. */
static double gradients_of_block(const proa_plan_model *m, const sizes *z, double probabilities, double mask)
{
    double stream = z->stream / z->whole, part = z->stream / z->t;
    double linear = 2 * stream + 4 * part + 4 * z->h * z->h / z->t * z->w - mask;
    double freed = 2 * mask + 2 * stream + 9 * part + (1 + 1 / z->e) * probabilities;
    double softmax = stream + part + 2 * probabilities - freed;
    return m->fused_attention || linear > softmax ? linear : softmax;
}

static proa__forecast_layer block(const proa_plan_model *m, const proa_plan_job *job)
{
    const sizes z = sizes_of(m, job);
    double h = z.h, t = z.t, s = (double)m->sequence, mask = z.rows * h / z.whole,
           probabilities = (double)m->heads * z.rows * s / t;
    proa__forecast_layer f = {.l = {.flops = (24 * z.rows * h * h + 4 * z.rows * s * h) / t,
                                    .input = z.stream,
                                    .output = z.stream,
                                    .forward_reduces = t > 1 ? 2 : 0,
                                    .backward_reduces = t > 1 ? 2 : 0,
                                    .weight = 1},
                              .gradients = gradients_of_block(m, &z, probabilities * z.e, mask)};
    own(&f, job, 1, 3 * h * h / t); /* queries, keys, values; their biases */
    own(&f, job, 1, 3 * h / t);
    own(&f, job, 1, h * h / t);
    own(&f, job, 2, 4 * h * h / t);
    own(&f, job, 1, 4 * h / t);
    own(&f, job, 6, h);              /* biases behind sums over ranks; normalizations */
    keep(&f, 4, z.stream / z.whole); /* of normalizations and of what they feed */
    keep(&f, 2, mask);
    keep(&f, 4, z.stream / t); /* queries, keys, values; the mixture */
    keep(&f, 2, 4 * z.stream / t);
    if (!m->fused_attention) {
        keep(&f, 2, probabilities * z.e); /* before and behind dropout */
        keep(&f, 1, probabilities);
    }
    f.l.traffic = 2 * f.l.activations;
    return f;
}

/* Final normalization, product with the embedding's weight, and cross entropy in float32. */
static proa__forecast_layer head(const proa_plan_model *m, const proa_plan_job *job)
{
    const sizes z = sizes_of(m, job);
    double logits = 4 * z.rows * z.vocabulary, weight = z.vocabulary * z.h,
           product = z.stream + weight * z.w; /* gradients of the product's operands; the logits are freed */
    proa__forecast_layer f = {.l = {.flops = 2 * z.rows * z.h * z.vocabulary,
                                    .input = z.stream,
                                    .output = 4 * z.rows,
                                    .backward_reduces = z.t > 1},
                              .gradients = logits > product ? logits : product};
    own(&f, job, 2, z.h);
    if (job->pipe > 1) own(&f, job, 1, weight);
    keep(&f, 2, z.stream / z.whole);
    keep(&f, 1, logits);
    f.l.traffic = 2 * f.l.activations;
    return f;
}

/* ---- layers of any model ------------------------------------------------------------------- */

int64_t proa__forecast_layers(const proa_plan_model *model)
{
    return model->chain ? model->n_chain : model->layers + 2;
}

/* A layer of a chain: gradients of its output and of its input are there at the same time. */
static proa__forecast_layer link_at(const proa_plan_model *model, const proa_plan_job *job, int64_t i)
{
    proa_plan_layer l = model->chain[i];
    double rows = (double)job->micro_batch, bytes = rows * proa__forecast_element(job) / 4;
    l.flops *= rows;
    l.traffic *= bytes;
    l.activations *= bytes;
    l.input *= bytes;
    l.output *= bytes;
    l.forward_reduces = l.backward_reduces = 0;
    return (proa__forecast_layer){.l = l, .gradients = l.input + l.output, .largest = l.parameters};
}

proa__forecast_layer proa__forecast_layer_at(const proa_plan_model *model, const proa_plan_job *job,
                                             int64_t i)
{
    if (model->chain) return link_at(model, job, i);
    return i == 0 ? embedding(model, job) : i <= model->layers ? block(model, job) : head(model, job);
}

double proa__forecast_tied(const proa_plan_model *model, const proa_plan_job *job)
{
    if (model->chain || job->pipe == 1) return 0;
    return (double)model->vocabulary * (double)model->hidden / (double)job->model *
           proa__forecast_weight_bytes(job);
}

double proa_plan_parameters(const proa_plan_model *model)
{
    const proa_plan_job one = {.data = 1, .pipe = 1, .sharding = 1, .model = 1, .micro_batch = 1};
    double n = 0;
    for (int64_t i = 0; i < proa__forecast_layers(model); i++)
        n += proa__forecast_layer_at(model, &one, i).l.parameters;
    return n;
}
