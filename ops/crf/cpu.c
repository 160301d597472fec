/* Linear-chain CRF on the CPU: Viterbi decoding and log-likelihood. May use core and the helpers of ops/. */
#include "ops/lod/offsets.h"
#include "impl/crf.h"

#include <math.h>

static float exp_of_float(float v) { return expf(v); }
static float log_of_float(float v) { return logf(v); }
static double exp_of_double(double v) { return exp(v); }
static double log_of_double(double v) { return log(v); }

#define T float
#include "chain.inc"
#include "viterbi.inc"
#undef T
#define T double
#include "chain.inc"
#include "viterbi.inc"
#undef T

/* Sequences of steps, as lengths or offsets give them. */
typedef struct chains {
    offsets of;
    const int64_t *length; /* of padded ones; NULL: offsets */
    int64_t rows, n;       /* rows: of all, or of each padded one; n: chains */
} chains;

static proa_status chains_of(const char *op, const proa_tensor *x, const proa_tensor *length,
                             const proa_tensor *bounds, chains *to)
{
    *to = (chains){.rows = x->shape[x->ndim - 2], .n = x->shape[0]};
    if (proa__absent(length)) {
        PROA_TRY(offsets_of(op, "offsets", bounds, to->rows, &to->of));
        to->n = to->of.n;
    } else {
        to->length = (const int64_t *)(const void *)length->data;
    }
    for (int64_t i = 0; to->length && i < to->n; i++)
        if (to->length[i] < 0 || to->length[i] > to->rows)
            return proa__op_fail(PROA_ERR_OUT_OF_RANGE, proa_find_op(op), "length",
                                 "entry %lld is %lld; expected 0 to %lld", (long long)i,
                                 (long long)to->length[i], (long long)to->rows);
    if (x->shape[x->ndim - 1] > 0) return PROA_OK;
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "transition", "has no tags");
}

/* Offset of chain i's first step; *n: the number of its steps. */
static int64_t chain_at(const chains *c, int64_t i, int64_t *n)
{
    *n = c->length ? c->length[i] : c->of.at[i + 1] - c->of.at[i];
    return c->length ? i * c->rows : c->of.at[i];
}

static void decode_one(const proa_crf_decoding_args *a, int64_t first, int64_t n, char *scratch)
{
    int64_t tags = a->transition->shape[1], *path = (int64_t *)(void *)a->path->data + first;
    int64_t *from = (int64_t *)(void *)scratch;
    void *best = from + n * tags, *x = a->emission->data;
    if (n == 0) return;
    if (a->emission->dtype == PROA_F64) {
        const double *w = (const double *)(const void *)a->transition->data;
        weights_double all = {w, w + tags, w + 2 * tags};
        decode_double((const double *)x + first * tags, &all, n, tags, best, from, path);
    } else {
        const float *w = (const float *)(const void *)a->transition->data;
        weights_float all = {w, w + tags, w + 2 * tags};
        decode_float((const float *)x + first * tags, &all, n, tags, best, from, path);
    }
    if (proa__absent(a->label)) return;
    const int64_t *label = (const int64_t *)(const void *)a->label->data + first;
    for (int64_t k = 0; k < n; k++) path[k] = path[k] == label[k];
}

PROA_KERNEL(crf_decoding_cpu, crf_decoding)
{
    chains c;
    PROA_TRY(chains_of("crf_decoding", a->emission, a->length, a->offsets, &c));
    size_t bytes;
    if (!proa__mul_size((size_t)c.rows * 16, (size_t)a->transition->shape[1], &bytes)) return proa_error();
    char *scratch = proa_scratch(bytes + 16);
    if (!scratch) return proa_error();
    memset(a->path->data, 0, (size_t)a->path->numel * sizeof(int64_t));
    for (int64_t i = 0; i < c.n; i++) {
        int64_t n, first = chain_at(&c, i, &n);
        decode_one(a, first, n, scratch);
    }
    proa_scratch_free(scratch);
    return PROA_OK;
}

/* ---- padded sequences with tags that begin and end them ---------------------------------- */

#define T float
#include "paths.inc"
#undef T
#define T double
#include "paths.inc"
#undef T

PROA_KERNEL(viterbi_decode_cpu, viterbi_decode)
{
    const proa_op *op = proa_find_op("viterbi_decode");
    chains c;
    PROA_TRY(chains_of("viterbi_decode", a->potentials, a->length, NULL, &c));
    int64_t longest = 0, tags = a->transition->shape[1];
    for (int64_t i = 0; i < c.n; i++) longest = c.length[i] > longest ? c.length[i] : longest;
    if (longest == 0 && c.n > 0)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, "length",
                             "has only zeros; expected a sequence with a step");
    proa_viterbi_decode_args *args = (proa_viterbi_decode_args *)(uintptr_t)a;
    proa_meta of_scores = {.dtype = (proa_dtype)a->potentials->dtype, .ndim = 1, .shape = {c.n}};
    proa_meta of_path = {.dtype = PROA_I64, .ndim = 2, .shape = {c.n, longest}};
    proa_tensor *scores = proa_output_resize(args, op, 0, &of_scores);
    proa_tensor *path = scores ? proa_output_resize(args, op, 1, &of_path) : NULL;
    size_t bytes;
    if (!path || !proa__mul_size((size_t)longest * 16 + 8, (size_t)tags, &bytes)) return proa_error();
    char *scratch = proa_scratch(bytes);
    if (!scratch) return proa_error();
    memset(path->data, 0, (size_t)path->numel * sizeof(int64_t));
    (a->potentials->dtype == PROA_F64 ? paths_double : paths_float)(a, &c, scores, path, scratch);
    proa_scratch_free(scratch);
    return PROA_OK;
}

/* Checks that all labels within the sequences are in [0, tags). */
static proa_status check_tags(const char *op, const chains *c, const proa_tensor *label, int64_t tags)
{
    const int64_t *at = (const int64_t *)(const void *)label->data;
    for (int64_t i = 0; i < c->n; i++) {
        int64_t n, first = chain_at(c, i, &n);
        for (int64_t k = first; k < first + n; k++)
            if (at[k] < 0 || at[k] >= tags)
                return proa__op_fail(PROA_ERR_OUT_OF_RANGE, proa_find_op(op), "label",
                                     "entry %lld is %lld; expected a tag from 0 to %lld", (long long)k,
                                     (long long)at[k], (long long)tags - 1);
    }
    return PROA_OK;
}

static void clear(proa_tensor *t)
{
    memset(t->data, 0, (size_t)t->numel * proa_dtype_size((proa_dtype)t->dtype));
}

#define T float
#include "likelihoods.inc"
#undef T
#define T double
#include "likelihoods.inc"
#undef T

PROA_KERNEL(linear_chain_crf_cpu, linear_chain_crf)
{
    chains c;
    int64_t tags = a->transition->shape[1];
    const int64_t *label = (const int64_t *)(const void *)a->label->data;
    PROA_TRY(chains_of("linear_chain_crf", a->emission, a->length, a->offsets, &c));
    PROA_TRY(check_tags("linear_chain_crf", &c, a->label, tags));
    clear(a->alpha);
    clear(a->emission_exps);
    (a->emission->dtype == PROA_F64 ? likelihoods_double : likelihoods_float)(a, &c, label, tags);
    return PROA_OK;
}

PROA_KERNEL(linear_chain_crf_grad_cpu, linear_chain_crf_grad)
{
    chains c;
    int64_t tags = a->transition_exps->shape[1];
    const int64_t *label = (const int64_t *)(const void *)a->label->data;
    PROA_TRY(chains_of("linear_chain_crf_grad", a->emission_exps, a->length, a->offsets, &c));
    PROA_TRY(check_tags("linear_chain_crf_grad", &c, a->label, tags));
    char *scratch = proa_scratch((size_t)tags * 3 * sizeof(double)); /* tags² is a size already */
    if (!scratch) return proa_error();
    clear(a->d_emission);
    clear(a->d_transition);
    (a->emission_exps->dtype == PROA_F64 ? likelihoods_back_double : likelihoods_back_float)(a, &c, label,
                                                                                             tags, scratch);
    proa_scratch_free(scratch);
    return PROA_OK;
}
