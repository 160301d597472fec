/* Linear-chain CRF on a GPU: Viterbi decoding and log-likelihood. One block per sequence, one thread per tag;
 * the transitions' gradient is summed by one warp per entry, over all steps in order. Lengths, offsets and
 * tags out of range are reported at the next synchronization. */
#include "ops/lod/cuda/lod.h"

/* Chains of steps: n padded chains with `length` each, or, if length is NULL, rows between offsets. */
struct crf_chains {
    lod_offsets of;        /* length is NULL: these */
    const int64_t *length; /* of padded chains of `steps` each */
    int64_t n, steps, tags;
    __device__ __forceinline__ void part(int64_t i, int64_t *from, int64_t *to) const
    {
        if (!length) return lod_part(of, i, from, to);
        *from = i * steps;
        *to = *from + lod_clamped(length[i], 0, steps);
    }
    __device__ __forceinline__ int64_t chain_of(int64_t row) const
    {
        return length ? row / steps : lod_sequence(of, row);
    }
    __host__ __device__ __forceinline__ int64_t rows() const { return length ? n * steps : of.rows; }
};

/* A checked label; one out of range counts as tag 0. */
CUDA_FN int64_t crf_tag(const crf_chains &w, const int64_t *label, int64_t row)
{
    return lod_clamped(label[row], 0, w.tags - 1);
}

/* label NULL: checks lengths only. */
__global__ void crf_check_kernel(crf_chains w, const int64_t *label, cuda_report bad_length,
                                 cuda_report bad_label)
{
    for (int64_t i = blockIdx.x; i < w.n; i += gridDim.x) {
        int64_t from, to;
        w.part(i, &from, &to);
        if (w.length && threadIdx.x == 0 && (w.length[i] < 0 || w.length[i] > w.steps))
            cuda_raise(bad_length, i, w.length[i], 0, w.steps);
        for (int64_t row = from + threadIdx.x; label && row < to; row += blockDim.x)
            if (label[row] < 0 || label[row] >= w.tags) cuda_raise(bad_label, row, label[row], 0, w.tags - 1);
    }
}

static proa_status crf_take(cuda_context *c, const char *op, const cuda_tensor &x, const proa_tensor *length,
                            const proa_tensor *offsets, const int64_t *label, crf_chains *to)
{
    *to = {};
    to->steps = x.shape[x.ndim - 2], to->tags = x.dim(-1), to->n = x.shape[0];
    if (cuda_given(length)) {
        to->length = cuda_look(length).as<int64_t>();
    } else {
        PROA_TRY(lod_take(c, op, "offsets", offsets, to->steps, &to->of));
        to->n = to->of.n;
    }
    if (to->tags < 1) return cuda_fail(PROA_ERR_INVALID_ARGUMENT, "%s: transition has no tags", op);
    if (to->n < 1) return PROA_OK;
    crf_chains w = *to;
    return cuda_launch(c, cuda_blocks(w.n, 1), CUDA_BLOCK, crf_check_kernel, w, label,
                       cuda_reports(c, "length"), cuda_reports(c, "label"));
}

static proa_status crf_clear(cuda_context *c, const cuda_tensor &t)
{
    static const double zero = 0;
    return t.numel ? cuda_fill(c, t.data, &zero, (size_t)cuda_item(t.dtype), t.numel) : PROA_OK;
}

/* ---- decoding -------------------------------------------------------------------------- */

/* Weights of beginning and of ending with each tag (NULL: zeros), and from tag to tag, [tags, tags]. */
template <class T> struct crf_weights {
    const T *begin, *end, *between;
    __device__ __forceinline__ T ending(int64_t tag) const { return end ? end[tag] : (T)0; }
};

/* Space for decoding: the best score of each step and tag, and the tag before on that way. */
template <class T> struct crf_ways {
    T *best;
    int64_t *before;
};

/* Viterbi's recursion over rows [from, to) by a block; ties take the lowest tag. */
template <class T>
__device__ void crf_advance(const crf_weights<T> &w, const crf_ways<T> &ways, const T *x, int64_t tags,
                            int64_t from, int64_t to)
{
    for (int64_t row = from; row < to; row++) {
        const T *last = ways.best + (row - 1) * tags;
        for (int64_t t = threadIdx.x; t < tags; t += blockDim.x) {
            const T *into = w.between + t;
            int64_t at = 0;
            for (int64_t j = 1; row > from && j < tags; j++)
                if (last[j] + into[j * tags] > last[at] + into[at * tags]) at = j;
            T way = row > from ? last[at] + into[at * tags] : w.begin ? w.begin[t] : (T)0;
            ways.best[row * tags + t] = way + x[row * tags + t];
            ways.before[row * tags + t] = at;
        }
        __syncthreads();
    }
}

/* The tag at the end of the best way to row `to` − 1; *score: of that way. */
template <class T>
__device__ int64_t crf_last(const crf_weights<T> &w, const crf_ways<T> &ways, int64_t tags, int64_t to,
                            T *score)
{
    const T *last = ways.best + (to - 1) * tags;
    int64_t at = 0;
    for (int64_t j = 1; j < tags; j++)
        if (last[j] + w.ending(j) > last[at] + w.ending(at)) at = j;
    *score = last[at] + w.ending(at);
    return at;
}

template <class T>
__global__ void crf_decode_kernel(crf_chains c, const T *x, crf_weights<T> w, const int64_t *label,
                                  crf_ways<T> ways, int64_t *path)
{
    for (int64_t i = blockIdx.x; i < c.n; i += gridDim.x) {
        int64_t from, to;
        T score;
        c.part(i, &from, &to);
        crf_advance(w, ways, x, c.tags, from, to);
        if (threadIdx.x || from == to) continue;
        int64_t at = crf_last(w, ways, c.tags, to, &score);
        for (int64_t row = to - 1; row >= from; row--) {
            path[row] = label ? at == label[row] : at;
            at = ways.before[row * c.tags + at];
        }
    }
}

/* Padded chains; path has `longest` columns. One without steps has the score of its first, not ended. */
template <class T>
__global__ void crf_paths_kernel(crf_chains c, const T *x, crf_weights<T> w, crf_ways<T> ways, T *scores,
                                 int64_t *path, int64_t longest)
{
    for (int64_t i = blockIdx.x; i < c.n; i += gridDim.x) {
        int64_t from, to;
        crf_weights<T> of = w;
        c.part(i, &from, &to);
        bool none = from == to;
        if (none) to++, of.end = NULL;
        crf_advance(of, ways, x, c.tags, from, to);
        if (threadIdx.x) continue;
        int64_t at = crf_last(of, ways, c.tags, to, &scores[i]);
        for (int64_t row = to - 1; !none && row >= from; row--) {
            path[i * longest + row - from] = at;
            at = ways.before[row * c.tags + at];
        }
    }
}

template <class T> static proa_status crf_space(cuda_context *c, const crf_chains &chains, crf_ways<T> *ways)
{
    size_t n = (size_t)(chains.rows() * chains.tags);
    ways->before = (int64_t *)cuda_scratch(c, n * (sizeof(int64_t) + sizeof(T)));
    ways->best = (T *)(void *)(ways->before + n);
    return ways->before ? PROA_OK : cuda_host->error();
}

template <class T>
static proa_status crf_decode(cuda_context *c, const crf_chains &chains, const cuda_tensor &x,
                              const cuda_tensor &weights, const int64_t *label, int64_t *path)
{
    const T *w = weights.as<T>();
    crf_ways<T> ways;
    PROA_TRY(crf_space(c, chains, &ways));
    crf_weights<T> all = {w, w + chains.tags, w + 2 * chains.tags};
    proa_status status = cuda_launch(c, cuda_blocks(chains.n, 1), CUDA_BLOCK, crf_decode_kernel<T>, chains,
                                     x.as<T>(), all, label, ways, path);
    cuda_scratch_free(c, ways.before);
    return status;
}

CUDA_KERNEL(crf_decoding, true)
{
    cuda_tensor x = cuda_look(a->emission), path = cuda_look(a->path);
    const int64_t *label = cuda_given(a->label) ? cuda_look(a->label).as<int64_t>() : NULL;
    crf_chains w;
    PROA_TRY(crf_take(c, "crf_decoding", x, a->length, a->offsets, NULL, &w));
    PROA_TRY(crf_clear(c, path));
    if (x.numel == 0 || w.n < 1) return PROA_OK;
    CUDA_SWITCH_WIDE(x.dtype, T,
                     { return crf_decode<T>(c, w, x, cuda_look(a->transition), label, path.as<int64_t>()); });
}

/* ---- decoding of padded chains with tags that begin and end them ------------------------- */

__global__ void crf_longest_kernel(crf_chains c, int64_t *longest)
{
    int64_t most = 0;
    for (int64_t i = threadIdx.x; i < c.n; i += blockDim.x) {
        int64_t from, to;
        c.part(i, &from, &to);
        most = to - from > most ? to - from : most;
    }
    most = cuda_block_reduce<cuda_max>(most);
    if (threadIdx.x == 0) *longest = most;
}

static proa_status crf_longest(cuda_context *c, const crf_chains &chains, int64_t *longest)
{
    int64_t *found = (int64_t *)cuda_scratch(c, sizeof *found);
    if (!found) return cuda_host->error();
    proa_status status = cuda_launch(c, 1, CUDA_BLOCK, crf_longest_kernel, chains, found);
    if (status == PROA_OK) status = cuda_read(c, longest, found, sizeof *longest);
    cuda_scratch_free(c, found);
    if (status == PROA_OK && *longest == 0)
        return cuda_fail(PROA_ERR_INVALID_ARGUMENT,
                         "viterbi_decode: length has only zeros; expected a sequence with a step");
    return status;
}

template <class T>
static proa_status crf_paths(cuda_context *c, const crf_chains &chains, const cuda_tensor &x, const T *w,
                             bool ends, const cuda_tensor &scores, const cuda_tensor &path)
{
    crf_ways<T> ways;
    PROA_TRY(crf_space(c, chains, &ways));
    crf_weights<T> all = {ends ? w + (chains.tags - 1) * chains.tags : NULL,
                          ends ? w + (chains.tags - 2) * chains.tags : NULL, w};
    proa_status status = cuda_launch(c, cuda_blocks(chains.n, 1), CUDA_BLOCK, crf_paths_kernel<T>, chains,
                                     x.as<T>(), all, ways, scores.as<T>(), path.as<int64_t>(), path.shape[1]);
    cuda_scratch_free(c, ways.before);
    return status;
}

CUDA_KERNEL(viterbi_decode, true)
{
    cuda_tensor x = cuda_look(a->potentials), weights = cuda_look(a->transition), scores, path;
    crf_chains chains;
    int64_t longest = 0;
    PROA_TRY(crf_take(c, "viterbi_decode", x, a->length, NULL, NULL, &chains));
    if (chains.n > 0) PROA_TRY(crf_longest(c, chains, &longest));
    PROA_TRY(lod_output(c, a, 0, {x.dtype, 1, {chains.n}}, &scores));
    PROA_TRY(lod_output(c, a, 1, {PROA_I64, 2, {chains.n, longest}}, &path));
    PROA_TRY(crf_clear(c, path));
    if (chains.n < 1) return PROA_OK;
    CUDA_SWITCH_WIDE(x.dtype, T, {
        return crf_paths<T>(c, chains, x, weights.as<T>(), a->include_bos_eos_tag, scores, path);
    });
}

/* ---- likelihood ------------------------------------------------------------------------ */

template <class T> __global__ void crf_exp_kernel(const T *x, T *to, int64_t n)
{
    for (CUDA_EACH(i, n)) to[i] = exp(x[i]);
}

/* All threads of the block sum over the tags together. */
template <class T>
__global__ void crf_forward_kernel(crf_chains w, const T *x, const T *weights, const T *exps,
                                   const int64_t *label, T *alpha, T *x_exps, T *cost)
{
    int64_t tags = w.tags;
    for (int64_t i = blockIdx.x; i < w.n; i += gridDim.x) {
        int64_t from, to;
        T all = 0, mine = 0, end = 0;
        w.part(i, &from, &to);
        for (int64_t row = from; row < to; row++) {
            const T *of = x + row * tags, *last = alpha + (row - 1) * tags;
            T most = (T)-INFINITY, sum = 0;
            for (int64_t t = threadIdx.x; t < tags; t += blockDim.x) most = of[t] > most ? of[t] : most;
            most = cuda_block_reduce<cuda_max>(most);
            for (int64_t t = threadIdx.x; t < tags; t += blockDim.x) {
                T e = exp(of[t] - most), ways = row > from ? 0 : exps[t];
                for (int64_t j = 0; row > from && j < tags; j++) ways += last[j] * exps[(j + 2) * tags + t];
                x_exps[row * tags + t] = e;
                alpha[row * tags + t] = ways * e;
                sum += ways * e;
            }
            sum = cuda_block_reduce<cuda_sum>(sum);
            for (int64_t t = threadIdx.x; t < tags; t += blockDim.x) alpha[row * tags + t] /= sum;
            all += most + log(sum);
            int64_t tag = crf_tag(w, label, row);
            mine += of[tag] +
                    (row > from ? weights[(crf_tag(w, label, row - 1) + 2) * tags + tag] : weights[tag]);
            __syncthreads();
        }
        for (int64_t t = threadIdx.x; from < to && t < tags; t += blockDim.x)
            end += alpha[(to - 1) * tags + t] * exps[tags + t];
        end = cuda_block_reduce<cuda_sum>(end);
        if (threadIdx.x) continue;
        cost[i] = from < to ? all + log(end) - mine - weights[tags + crf_tag(w, label, to - 1)] : 0;
    }
}

CUDA_KERNEL(linear_chain_crf, true)
{
    cuda_tensor x = cuda_look(a->emission), weights = cuda_look(a->transition),
                exps = cuda_look(a->transition_exps), x_exps = cuda_look(a->emission_exps),
                alpha = cuda_look(a->alpha), cost = cuda_look(a->log_likelihood);
    const int64_t *label = cuda_look(a->label).as<int64_t>();
    crf_chains w;
    PROA_TRY(crf_take(c, "linear_chain_crf", x, a->length, a->offsets, label, &w));
    PROA_TRY(crf_clear(c, alpha));
    PROA_TRY(crf_clear(c, x_exps));
    CUDA_SWITCH_WIDE(x.dtype, T, {
        PROA_TRY(cuda_launch(c, cuda_blocks(exps.numel), CUDA_BLOCK, crf_exp_kernel<T>, weights.as<T>(),
                             exps.as<T>(), exps.numel));
        if (w.n < 1) return PROA_OK;
        return cuda_launch(c, cuda_blocks(w.n, 1), CUDA_BLOCK, crf_forward_kernel<T>, w, x.as<T>(),
                           weights.as<T>(), exps.as<T>(), label, alpha.as<T>(), x_exps.as<T>(), cost.as<T>());
    });
}

/* ---- its gradient ---------------------------------------------------------------------- */

/* Backward variables beta, scaled to a sum of 1 in each step; d_x; and pairs[row]: the sum over all pairs of
 * tags of how likely they are at row − 1 and row. */
template <class T>
__global__ void crf_backward_kernel(crf_chains w, const T *alpha, const T *x_exps, const T *exps,
                                    const int64_t *label, const T *d, T *beta, T *d_x, T *pairs)
{
    int64_t tags = w.tags;
    for (int64_t i = blockIdx.x; i < w.n; i += gridDim.x) {
        int64_t from, to;
        w.part(i, &from, &to);
        for (int64_t row = to - 1; row >= from; row--) {
            const T *next = beta + (row + 1) * tags, *e = x_exps + (row + 1) * tags,
                    *now = alpha + row * tags;
            T sum = 0, both = 0, pair = 0;
            for (int64_t t = threadIdx.x; t < tags; t += blockDim.x) {
                T ways = row == to - 1 ? exps[tags + t] : 0;
                for (int64_t j = 0; row < to - 1 && j < tags; j++)
                    ways += exps[(t + 2) * tags + j] * e[j] * next[j];
                beta[row * tags + t] = ways;
                sum += ways;
                both += now[t] * ways;
            }
            sum = cuda_block_reduce<cuda_sum>(sum);
            both = cuda_block_reduce<cuda_sum>(both);
            for (int64_t t = threadIdx.x; t < tags; t += blockDim.x) {
                T ways = beta[row * tags + t], mine = t == crf_tag(w, label, row);
                beta[row * tags + t] = ways / sum;
                d_x[row * tags + t] = d[i] * (now[t] * ways / both - mine);
                if (row == from) continue;
                T before = 0; /* of all tags at the step before */
                for (int64_t j = 0; j < tags; j++) before += now[j - tags] * exps[(j + 2) * tags + t];
                pair += before * x_exps[row * tags + t] * (ways / sum);
            }
            pair = cuda_block_reduce<cuda_sum>(pair);
            if (threadIdx.x == 0) pairs[row] = pair;
            __syncthreads();
        }
    }
}

/* Entry (t, j) of the transitions' gradient: t = 0: beginning with j, 1: ending with it, else from t − 2 to
 * j. */
template <class T>
__global__ void crf_transition_kernel(crf_chains w, const T *alpha, const T *x_exps, const T *exps,
                                      const int64_t *label, const T *d, const T *beta, const T *d_x,
                                      const T *pairs, T *to_weights)
{
    int64_t tags = w.tags;
    for (CUDA_ROWS(32, item, (tags + 2) * tags)) {
        int64_t t = item / tags - 2, j = item % tags, rows = w.rows();
        T sum = 0;
        for (int64_t row = threadIdx.x % 32; row < rows; row += 32) {
            int64_t i = w.chain_of(row), from, to;
            w.part(i, &from, &to);
            if (row < from || row >= to) continue;
            if (t < 0) {
                if (row == (t == -2 ? from : to - 1)) sum += d_x[row * tags + j];
                continue;
            }
            if (row == from) continue;
            T likely =
                alpha[(row - 1) * tags + t] * exps[item] * x_exps[row * tags + j] * beta[row * tags + j];
            bool mine = t == crf_tag(w, label, row - 1) && j == crf_tag(w, label, row);
            sum += d[i] * (likely / pairs[row] - (T)mine);
        }
        sum = cuda_warp_reduce<cuda_sum>(sum);
        if (threadIdx.x % 32 == 0) to_weights[item] = sum;
    }
}

template <class T>
static proa_status crf_backward(cuda_context *c, const crf_chains &w, const T *alpha, const T *x_exps,
                                const T *exps, const int64_t *label, const T *d, T *d_x, T *d_weights)
{
    T *beta = (T *)cuda_scratch(c, (size_t)(w.rows() * (w.tags + 1)) * sizeof *beta);
    if (!beta) return cuda_host->error();
    T *pairs = beta + w.rows() * w.tags;
    proa_status status = cuda_launch(c, cuda_blocks(w.n, 1), CUDA_BLOCK, crf_backward_kernel<T>, w, alpha,
                                     x_exps, exps, label, d, beta, d_x, pairs);
    if (status == PROA_OK)
        status = cuda_launch(c, CUDA_ROW_BLOCKS(32, (w.tags + 2) * w.tags), CUDA_BLOCK,
                             crf_transition_kernel<T>, w, alpha, x_exps, exps, label, d, (const T *)beta,
                             (const T *)d_x, (const T *)pairs, d_weights);
    cuda_scratch_free(c, beta);
    return status;
}

CUDA_KERNEL(linear_chain_crf_grad, true)
{
    cuda_tensor alpha = cuda_look(a->alpha), x_exps = cuda_look(a->emission_exps),
                exps = cuda_look(a->transition_exps), d = cuda_look(a->d_log_likelihood),
                d_x = cuda_look(a->d_emission), d_weights = cuda_look(a->d_transition);
    const int64_t *label = cuda_look(a->label).as<int64_t>();
    crf_chains w;
    PROA_TRY(crf_take(c, "linear_chain_crf_grad", x_exps, a->length, a->offsets, label, &w));
    PROA_TRY(crf_clear(c, d_x));
    if (x_exps.numel == 0 || w.n < 1) return crf_clear(c, d_weights);
    CUDA_SWITCH_WIDE(x_exps.dtype, T, {
        return crf_backward<T>(c, w, alpha.as<T>(), x_exps.as<T>(), exps.as<T>(), label, d.as<T>(),
                               d_x.as<T>(), d_weights.as<T>());
    });
}
