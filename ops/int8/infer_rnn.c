/* Shape inference and argument checks of rnn_int8 (LSTM and GRU with INT8 weights). May use core only. */
#include "ops/rnn/rnn.h"
#include "impl/int8.h"

/* Sums of 65,536 products of an unsigned and a signed byte fit in 32 bits. */
enum { MAX_COLUMNS = 1 << 16 };

#define FAIL(argument, ...) ROWS_FAIL(rnn_int8, INVALID_ARGUMENT, argument, __VA_ARGS__)

/* True if t is a vector or, with columns, a matrix of that dtype; −1 is unknown. */
static bool is(const proa_tensor *t, proa_dtype dtype, int64_t rows, int64_t columns)
{
    return t->dtype == dtype && t->ndim == (columns ? 2 : 1) && rows_dims_agree(t->shape[0], rows) &&
           (!columns || rows_dims_agree(t->shape[1], columns));
}

static proa_status check_lists(const proa_rnn_int8_args *a, const rnn_sizes *s)
{
    const int64_t n = 2 * s->layers * s->directions, rows = s->gates * s->hidden;
    if (a->weight_list.count != n || a->scale_list.count != n || a->bias_list.count != n)
        return FAIL(
            "weight_list",
            "scale_list and bias_list have %lld, %lld and %lld tensors; expected %lld: w_ih and w_hh of "
            "%lld layers and %lld directions",
            (long long)a->weight_list.count, (long long)a->scale_list.count, (long long)a->bias_list.count,
            (long long)n, (long long)s->layers, (long long)s->directions);
    for (int64_t i = 0; i < n; i++) {
        int64_t columns = i % 2 ? s->hidden : i / 2 / s->directions ? s->hidden * s->directions : s->input;
        if (columns > MAX_COLUMNS)
            return FAIL("weight_list", "entry %lld has %lld columns; expected at most %d", (long long)i,
                        (long long)columns, MAX_COLUMNS);
        if (!is(a->weight_list.at[i], PROA_I8, rows, columns))
            return FAIL("weight_list", "entry %lld is %s; expected I8 [%lld, %lld]", (long long)i,
                        proa__tensor_text(a->weight_list.at[i]), (long long)rows, (long long)columns);
        if (!is(a->scale_list.at[i], PROA_F32, rows, 0))
            return FAIL("scale_list", "entry %lld is %s; expected float32 [%lld]", (long long)i,
                        proa__tensor_text(a->scale_list.at[i]), (long long)rows);
        if (!is(a->bias_list.at[i], PROA_F32, rows, 0))
            return FAIL("bias_list", "entry %lld is %s; expected float32 [%lld]", (long long)i,
                        proa__tensor_text(a->bias_list.at[i]), (long long)rows);
    }
    return PROA_OK;
}

static proa_status check_state(const proa_rnn_int8_args *a, const rnn_sizes *s)
{
    for (int64_t i = 0; i < a->pre_state.count; i++) {
        const proa_tensor *t = a->pre_state.at[i];
        if (t->dtype != PROA_F32 || t->ndim != 3 ||
            !rows_dims_agree(t->shape[0], s->layers * s->directions) ||
            !rows_dims_agree(t->shape[1], s->batch) || !rows_dims_agree(t->shape[2], s->hidden))
            return FAIL("pre_state", "entry %lld is %s; expected float32 [%lld, %lld, %lld]", (long long)i,
                        proa__tensor_text(t), (long long)(s->layers * s->directions), (long long)s->batch,
                        (long long)s->hidden);
    }
    const proa_tensor *lengths = a->sequence_length;
    if (proa__absent(lengths) || ((lengths->dtype == PROA_I32 || lengths->dtype == PROA_I64) &&
                                  lengths->ndim == 1 && rows_dims_agree(lengths->shape[0], s->batch)))
        return PROA_OK;
    return FAIL("sequence_length", "is %s; expected one int32 or int64 a batch row",
                proa__tensor_text(lengths));
}

proa_status rnn_int8_infer(const proa_rnn_int8_args *a, proa_rnn_int8_metas *m)
{
    int64_t states = a->mode == PROA_RNN_MODE_LSTM ? 2 : 1;
    if (a->mode != PROA_RNN_MODE_LSTM && a->mode != PROA_RNN_MODE_GRU)
        return FAIL("mode", "is a simple network's; expected LSTM or GRU");
    if (a->input->ndim != 3)
        return FAIL("input", "is %s; expected [time, batch, features]", proa__tensor_text(a->input));
    if (a->num_layers < 1 || a->num_layers > 1024)
        return FAIL("num_layers", "is %lld; expected 1 to 1024", (long long)a->num_layers);
    if (a->pre_state.count != states || a->pre_state.at[0]->ndim != 3 || a->pre_state.at[0]->shape[2] == 0)
        return FAIL("pre_state",
                    "has %lld tensors; expected %lld of shape [layers * directions, batch, hidden]",
                    (long long)a->pre_state.count, (long long)states);
    rnn_sizes s =
        rnn_measure(a->input, a->pre_state.at[0], a->weight_list, a->mode, a->num_layers, a->is_bidirec);
    PROA_TRY(check_lists(a, &s));
    PROA_TRY(check_state(a, &s));
    int64_t wide = s.hidden < 0 ? -1 : s.directions * s.hidden;
    m->out = (proa_meta){.dtype = PROA_F32, .ndim = 3, .shape = {s.steps, s.batch, wide}};
    PROA_TRY(proa_metas_resize(&m->state, states));
    for (int64_t i = 0; i < states; i++)
        m->state.at[i] =
            (proa_meta){.dtype = PROA_F32, .ndim = 3, .shape = {s.layers * s.directions, s.batch, s.hidden}};
    return PROA_OK;
}
