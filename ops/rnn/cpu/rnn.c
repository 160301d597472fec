/* CPU kernels of recurrent networks (LSTM, GRU and simple), forward and backward. The input products of all
 * steps (in inference, of as many as fit GATES_BYTES) are one matrix product; then each step multiplies the
 * state by weights that were packed once, and the same thread computes the cells of its part of the result.
 * May use core, kernels and ops/. */
#include "ops/rnn/rnn.h"

#include "core/deferred.h"
#include "core/kernel_traits.h"
#include "kernels/gemm.h"
#include "kernels/philox16.h"
#include "ops/rnn/simd_lstm.h"

/* Rows of a block of a product, and how much of k is packed at a time: there, and in a step's product. */
enum { TILE_ROWS = 8 * GEMM_MR, PIECE = 512, STEP_PIECE = 128 };
/* A step of one or two sequences: rows and panels that share their loads, and rows of the weights that are
 * prefetched. */
enum { FEW_ROWS = 2, FEW_PANELS = 4, ROW_AHEAD = 16 };

/* Bytes of gates that are computed at a time where they are not saved: a few hundred rows, so that packing
 * the weights is a small part of their product. */
enum { GATES_BYTES = 4 << 20 };

typedef struct rnn {
    rnn_sizes s;
    proa_rnn_mode mode;
    const proa_tensor *lengths; /* NULL: all sequences have all steps */
    const void *input, *d_out;
    void *out, *d_input;
    void *reserve; /* NULL: nothing is saved for backward */
    void *between; /* without reserve: output of every other layer below the last */
    proa_tensors pre_state, weights, state, d_state, d_pre_state, d_weights;
    const proa__packed_operand *packed; /* all weight matrices; NULL: they are packed for this call alone */
    const uint8_t *mask;                /* dropout between layers, or NULL */
    double kept_scale;
} rnn;

/* Whether the sequence in row b of the batch has a step t. */
static inline bool rnn_active(const rnn *r, int64_t t, int64_t b)
{
    return !r->lengths || t < rows_get_int((proa_dtype)r->lengths->dtype, r->lengths->data, b);
}

/* d_state[i], the gradient of a final state, or NULL. */
static const proa_tensor *rnn_given(const rnn *r, int64_t i)
{
    if (i >= r->d_state.count || !r->d_state.at[i] || proa__absent(r->d_state.at[i])) return NULL;
    return r->d_state.at[i];
}

/* A weight matrix, of gates · hidden rows. */
typedef struct rnn_matrix {
    int64_t gates, hidden, columns, recurrent;
} rnn_matrix;

/* The input's or the recurrent matrices of layer l. */
static rnn_matrix rnn_matrix_of(const rnn_sizes *s, int64_t l, bool recurrent)
{
    int64_t columns = recurrent ? s->hidden : l ? s->hidden * s->directions : s->input;
    return (rnn_matrix){s->gates, s->hidden, columns, recurrent};
}

/* Columns of a register tile. */
#define WIDTH (GEMM_NV * VECTOR_BYTES / (int64_t)sizeof(T))

#define T float
#define GEMM(name) gemm_##name##_f32
#include "product.inc"
#include "packed.inc"
#include "rnn.inc"
#undef T
#undef GEMM
#undef RNN_LANES
#define T double
#define GEMM(name) gemm_##name##_f64
#include "product.inc"
#include "packed.inc"
#include "rnn.inc"
#undef T
#undef GEMM

static size_t bytes_of(const proa_tensor *t)
{
    return (size_t)t->numel * proa_dtype_size((proa_dtype)t->dtype);
}

static proa_status check_lengths(const rnn *r, const char *op)
{
    for (int64_t b = 0; r->lengths && b < r->s.batch; b++) {
        int64_t n = rows_get_int((proa_dtype)r->lengths->dtype, r->lengths->data, b);
        if (n < 0 || n > r->s.steps)
            return proa__op_fail(PROA_ERR_OUT_OF_RANGE, proa_find_op(op), "sequence_length",
                                 "entry %lld is %lld; expected 0 to %lld steps", (long long)b, (long long)n,
                                 (long long)r->s.steps);
    }
    return PROA_OK;
}

/* ---- the forward kernel ------------------------------------------------------------------- */

/* Packed forms of the weight matrices, in the list's order. */
typedef struct rnn_state {
    int64_t n;
    proa__packed_operand forms[];
} rnn_state;

static void rnn_release(void *state)
{
    rnn_state *s = state;
    for (int64_t i = 0; s && i < s->n; i++) proa__packed_clear(&s->forms[i]);
    proa__free(s);
}

/* Packed weights are kept in inference alone, where nothing is saved for a gradient and weights stay. */
static proa_status rnn_prepare(const void *args, void **state)
{
    const proa_rnn_args *a = args;
    *state = NULL;
    if (!proa__absent(a->reserve) || a->input->shape[2] == 0) return PROA_OK;
    int64_t n = a->weight_list.count / 2;
    rnn_state *s = *state = proa__calloc(sizeof *s + (size_t)n * sizeof s->forms[0]);
    if (!s) return proa_error();
    s->n = n;
    return PROA_OK;
}

/* Packs the weight matrices unless they are; reads whatever else is needed and was not read. */
static proa_status rnn_weights(rnn *r, rnn_state *s)
{
    for (int64_t i = s ? s->n : 0; i < r->weights.count; i++) PROA_TRY(proa__plain(r->weights.at[i]));
    for (int64_t i = 0; s && i < s->n; i++) {
        const proa_tensor *t = r->weights.at[i];
        const rnn_matrix m = rnn_matrix_of(&r->s, i / 2 / r->s.directions, i % 2);
        const proa__packing how = t->dtype == PROA_F64 ? packing_of_double(&m) : packing_of_float(&m);
        if (!proa__packed_renew(&s->forms[i], t, &how)) return proa_error();
    }
    r->packed = s ? s->forms : NULL;
    return PROA_OK;
}

PROA__KERNEL_TRAITS(rnn_cpu, .packs = 1u << 2 /* weight_list */, .drops = 1u << 12 /* reserve */)
PROA_KERNEL_PREPARED(rnn_cpu, rnn, rnn_prepare, rnn_release)
{
    rnn r = {
        .s = rnn_measure(a->input, a->pre_state.at[0], a->weight_list, a->mode, a->num_layers, a->is_bidirec),
        .mode = a->mode,
        .lengths = proa__absent(a->sequence_length) ? NULL : a->sequence_length,
        .input = a->input->data,
        .out = a->out->data,
        .reserve = proa__absent(a->reserve) ? NULL : a->reserve->data,
        .pre_state = a->pre_state,
        .weights = a->weight_list,
        .state = a->state};
    PROA_TRY(check_lengths(&r, "rnn"));
    if (a->dropout_state && !proa__absent(a->dropout_state)) {
        uint8_t *mask = (uint8_t *)a->dropout_state->data;
        int64_t n = a->dropout_state->numel;
        philox16_keep(proa__rng_reserve(philox16_blocks(n)), 0, n, philox16_threshold(a->dropout_prob), mask);
        r.mask = mask;
        r.kept_scale = a->dropout_prob < 1 ? 1 / (1 - a->dropout_prob) : 0;
    }
    if (r.s.steps == 0 || r.s.batch == 0) {
        for (int64_t i = 0; i < a->state.count; i++)
            if (a->state.at[i]->numel)
                memcpy(a->state.at[i]->data, a->pre_state.at[i]->data, bytes_of(a->state.at[i]));
        return PROA_OK;
    }
    PROA_TRY(rnn_weights(&r, run->state));
    return a->input->dtype == PROA_F64 ? forward_double(&r) : forward_float(&r);
}

/* ---- the gradient's kernel ----------------------------------------------------------------- */

/* Zero steps: nothing depends on the weights, and states pass through unchanged. */
static proa_status no_steps(const proa_rnn_grad_args *a, const rnn *r)
{
    for (int64_t i = 0; i < a->d_weight_list.count; i++)
        memset(a->d_weight_list.at[i]->data, 0, bytes_of(a->d_weight_list.at[i]));
    for (int64_t i = 0; i < a->d_pre_state.count; i++) {
        const proa_tensor *to = a->d_pre_state.at[i], *from = rnn_given(r, i);
        if (to->numel == 0) continue;
        if (from) memcpy(to->data, from->data, bytes_of(to));
        else memset(to->data, 0, bytes_of(to));
    }
    return PROA_OK;
}

PROA_KERNEL(rnn_grad_cpu, rnn_grad)
{
    rnn r = {
        .s = rnn_measure(a->input, a->pre_state.at[0], a->weight_list, a->mode, a->num_layers, a->is_bidirec),
        .mode = a->mode,
        .lengths = proa__absent(a->sequence_length) ? NULL : a->sequence_length,
        .input = a->input->data,
        .d_out = proa__absent(a->d_out) ? NULL : a->d_out->data,
        .reserve = a->reserve->data,
        .d_input = a->d_input->data,
        .pre_state = a->pre_state,
        .weights = a->weight_list,
        .d_state = a->d_state,
        .d_pre_state = a->d_pre_state,
        .d_weights = a->d_weight_list};
    PROA_TRY(check_lengths(&r, "rnn_grad"));
    if (!proa__absent(a->dropout_state) && a->dropout_prob > 0 && a->num_layers > 1) {
        r.mask = (const uint8_t *)a->dropout_state->data;
        r.kept_scale = a->dropout_prob < 1 ? 1 / (1 - a->dropout_prob) : 0;
    }
    if (r.s.steps == 0 || r.s.batch == 0) return no_steps(a, &r);
    return a->input->dtype == PROA_F64 ? backward_double(&r) : backward_float(&r);
}
