/* Layers of a model as one rank of a job computes and keeps them: floating-point operations, bytes,
 * collectives. May use core. */
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

/* ---- a decoder-only transformer ------------------------------------------------------------
 * Tensor parallelism after Shoeybi et al. 2019; bytes kept for backward after Korthikanti et al. 2022,
 * table 2, with e bytes an element and 1 a dropout mask (e = 2 gives theirs). */

static proa_plan_layer embedding(const proa_plan_model *m, const proa_plan_job *job)
{
    double t = (double)job->model, rows = (double)(job->micro_batch * m->sequence), h = (double)m->hidden;
    double e = proa__forecast_element(job), masks = rows * h / (job->sequence_parallel ? t : 1);
    return (proa_plan_layer){.traffic = 2 * rows * h * e,
                             .parameters = (double)m->vocabulary * h / t + (double)m->sequence * h,
                             .activations = masks,
                             .input = 8 * rows,
                             .output = rows * h * e,
                             .forward_reduces = t > 1};
}

static proa_plan_layer block(const proa_plan_model *m, const proa_plan_job *job)
{
    double t = (double)job->model, s = (double)m->sequence, h = (double)m->hidden,
           e = proa__forecast_element(job);
    double rows = (double)job->micro_batch * s, size = rows * h, whole = job->sequence_parallel ? t : 1;
    double kept = size * ((4 * e + 2) / whole + 12 * e / t);
    double probabilities = (2 * e + 1) * (double)m->heads * rows * s / t;
    if (!m->fused_attention) kept += probabilities;
    return (proa_plan_layer){.flops = (24 * rows * h * h + 4 * rows * s * h) / t,
                             .traffic = 2 * kept,
                             .parameters = (12 * h * h + 7 * h) / t + 6 * h,
                             .activations = kept,
                             .input = size * e,
                             .output = size * e,
                             .forward_reduces = t > 1 ? 2 : 0,
                             .backward_reduces = t > 1 ? 2 : 0,
                             .weight = 1};
}

/* Final normalization, product with the embedding's weight, and cross entropy in float32. */
static proa_plan_layer head(const proa_plan_model *m, const proa_plan_job *job)
{
    double t = (double)job->model, rows = (double)(job->micro_batch * m->sequence), h = (double)m->hidden;
    double e = proa__forecast_element(job), v = (double)m->vocabulary, whole = job->sequence_parallel ? t : 1;
    double kept = rows * h * 2 * e / whole + 4 * rows * v / t;
    return (proa_plan_layer){.flops = 2 * rows * h * v / t,
                             .traffic = 2 * kept,
                             .parameters = 2 * h + (job->pipe > 1 ? v * h / t : 0),
                             .activations = kept,
                             .input = rows * h * e,
                             .output = 4 * rows,
                             .backward_reduces = t > 1};
}

/* ---- layers of any model ------------------------------------------------------------------- */

int64_t proa__forecast_layers(const proa_plan_model *model)
{
    return model->chain ? model->n_chain : model->layers + 2;
}

static proa_plan_layer link_at(const proa_plan_model *model, const proa_plan_job *job, int64_t i)
{
    proa_plan_layer l = model->chain[i];
    double rows = (double)job->micro_batch, bytes = rows * proa__forecast_element(job) / 4;
    l.flops *= rows;
    l.traffic *= bytes;
    l.activations *= bytes;
    l.input *= bytes;
    l.output *= bytes;
    l.forward_reduces = l.backward_reduces = 0;
    return l;
}

proa_plan_layer proa__forecast_layer_at(const proa_plan_model *model, const proa_plan_job *job, int64_t i)
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
        n += proa__forecast_layer_at(model, &one, i).parameters;
    return n;
}
