/* Kernels of nce, sample_logits and of their gradients. Compiled once per CPU level; static functions and
 * kernels only. */
#include "core/copy.h"
#include "core/device.h"
#include "kernels/iterator.h"
#include "ops/ints.h"
#include "ops/sampling/sampler.h"
#include "impl/sampling.h"

#include <math.h>

typedef struct nce_job {
    const void *input, *weight, *bias, *of, *d_cost; /* bias, of (weights of rows): NULL without */
    void *cost, *sigmoid, *d_input, *d_weight, *d_bias;
    int64_t *classes;
    int64_t rows, features, drawn, true_classes; /* of `drawn` classes the first are true */
    double count;
    class_sampler sampler;
} nce_job;

#define T float
#define LOG logf
#include "ops/sampling/cpu.inc"
#undef T
#undef LOG
#define T double
#define LOG log
#include "ops/sampling/cpu.inc"

static const void *memory_of(const proa_tensor *t) { return proa__absent(t) ? NULL : t->data; }

/* Paddle's log-uniform draws leave out the last class. */
static class_sampler contrast_sampler(int64_t kind, int64_t classes, const proa_tensor *probs)
{
    return (class_sampler){.kind = kind, .classes = classes, .range = classes - 1, .probs = probs};
}

#define NCE_JOB(a, labels)                                                                                \
    {                                                                                                     \
        .input = (a)->input->data, .weight = (a)->weight->data, .bias = memory_of((a)->bias),             \
        .of = memory_of((a)->sample_weight), .classes = (int64_t *)(void *)(labels)->data,                \
        .rows = (a)->input->shape[0], .features = (a)->input->shape[1], .drawn = (labels)->shape[1],      \
        .true_classes = (labels)->shape[1] - (a)->num_neg_samples, .count = (double)(a)->num_neg_samples, \
        .sampler = contrast_sampler((a)->sampler, (a)->num_total_classes, (a)->probs)                     \
    }

static proa_status check_class(const char *op, const char *name, int64_t class, int64_t classes)
{
    if (class >= 0 && class < classes) return PROA_OK;
    return OP_FAIL(op, OUT_OF_RANGE, name, "has class %lld; expected one of %lld", (long long)class,
                   (long long)classes);
}

/* Fills the classes of all rows: the labels, then those that are drawn or given. */
static proa_status draw_classes(const proa_nce_args *a, nce_job *j)
{
    const int64_t *label = (const int64_t *)(const void *)a->label->data;
    int64_t *to = j->classes, given = a->custom_neg_classes.count;
    if (!given) sampler_start(&j->sampler, a->seed, 2 * (uint64_t)j->rows * (uint64_t)a->num_neg_samples);
    for (int64_t i = 0; i < j->rows; i++) {
        for (int64_t k = 0; k < j->true_classes; k++) {
            *to = *label++;
            PROA_TRY(check_class("nce", "label", *to++, j->sampler.classes));
        }
        for (int64_t k = 0; k < a->num_neg_samples; k++) {
            *to = given ? a->custom_neg_classes.at[k] : sampler_draw(&j->sampler);
            PROA_TRY(check_class("nce", "alias", *to++, j->sampler.classes));
        }
    }
    return PROA_OK;
}

PROA_KERNEL(nce_cpu, nce)
{
    nce_job job = NCE_JOB(a, a->sample_labels);
    job.cost = a->cost->data, job.sigmoid = a->sample_logits->data;
    job.sampler.alias = a->alias, job.sampler.alias_probs = a->alias_probs;
    PROA_TRY(draw_classes(a, &job));
    proa__parallel(job.rows, 1 + (1 << 14) / (job.drawn * job.features + 1),
                   a->input->dtype == PROA_F64 ? nce_rows_double : nce_rows_float, &job);
    return PROA_OK;
}

PROA_KERNEL(nce_grad_cpu, nce_grad)
{
    nce_job job = NCE_JOB(a, a->sample_labels);
    job.sigmoid = a->sample_logits->data, job.d_cost = a->d_cost->data;
    job.d_input = a->d_input->data, job.d_weight = a->d_weight->data;
    job.d_bias = a->d_bias && !proa__absent(a->d_bias) ? a->d_bias->data : NULL;
    for (int64_t i = 0; i < a->sample_labels->numel; i++)
        PROA_TRY(check_class("nce_grad", "sample_labels", job.classes[i], job.sampler.classes));
    PROA_TRY(proa__fill(a->d_input, NULL));
    PROA_TRY(proa__fill(a->d_weight, NULL));
    if (job.d_bias) PROA_TRY(proa__fill(a->d_bias, NULL));
    if (a->input->dtype == PROA_F64) nce_back_double(&job);
    else nce_back_float(&job);
    return PROA_OK;
}

/* ---- sample_logits ---- */

/* The probability of a class among num_samples draws, which took `tries` until there were so many different
 * ones. */
static double chance_among(double chance, int64_t samples, int64_t tries)
{
    return tries == samples ? chance * (double)samples : -expm1((double)tries * log1p(-chance));
}

/* Draws classes into to[samples]; returns the number of tries. */
static int64_t draw_distinct(class_sampler *s, int64_t samples, bool uniq, int64_t *to)
{
    int64_t tries = 0;
    for (int64_t k = 0; k < samples;) {
        int64_t class = sampler_draw(s), same = 0;
        tries++;
        for (int64_t i = 0; uniq && i < k && !same; i++) same = to[i] == class;
        if (!same) to[k++] = class;
    }
    return tries;
}

/* Fills samples, and probabilities unless they are given. */
static proa_status draw_logits(const proa_sample_logits_args *a)
{
    int64_t rows = a->logits->shape[0], labels = a->labels->shape[1], width = labels + a->num_samples;
    int64_t *to = (int64_t *)(void *)a->samples->data, classes = a->logits->shape[1];
    const int64_t *label = (const int64_t *)(const void *)a->labels->data;
    for (int64_t i = 0; i < rows * labels; i++)
        PROA_TRY(check_class("sample_logits", "labels", label[i], classes));
    if (a->use_customized_samples) {
        const int64_t *given = (const int64_t *)(const void *)a->customized_samples->data;
        for (int64_t i = 0; i < rows * width; i++) {
            PROA_TRY(check_class("sample_logits", "customized_samples", given[i], classes));
            to[i] = given[i];
        }
        return proa__copy(a->probabilities, a->customized_probabilities);
    }
    class_sampler s = {.kind = SAMPLE_LOG_UNIFORM, .classes = classes, .range = classes};
    sampler_start(&s, a->seed, 4096 + 64 * (uint64_t)a->num_samples); /* tries have no bound */
    int64_t tries = rows ? draw_distinct(&s, a->num_samples, a->uniq, to + labels) : 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < width; k++) {
            int64_t class = to[i * width + k] = k < labels ? label[i * labels + k] : to[k];
            rows_set((proa_dtype)a->probabilities->dtype, a->probabilities->data, i * width + k,
                     chance_among(sampler_chance(&s, class), a->num_samples, tries));
        }
    return PROA_OK;
}

PROA_KERNEL(sample_logits_cpu, sample_logits)
{
    PROA_TRY(draw_logits(a));
    if (a->logits->dtype == PROA_F64) gather_logits_double(a);
    else gather_logits_float(a);
    int64_t *label = (int64_t *)(void *)a->sampled_labels->data;
    for (int64_t i = 0; i < a->sampled_labels->numel; i++) label[i] = i % a->labels->shape[1];
    return PROA_OK;
}

PROA_KERNEL(sample_logits_grad_cpu, sample_logits_grad)
{
    const int64_t *at = (const int64_t *)(const void *)a->samples->data;
    for (int64_t i = 0; i < a->samples->numel; i++)
        PROA_TRY(check_class("sample_logits_grad", "samples", at[i], a->logits->shape[1]));
    PROA_TRY(proa__fill(a->d_logits, NULL));
    if (a->logits->dtype == PROA_F64) scatter_logits_double(a);
    else scatter_logits_float(a);
    return PROA_OK;
}
