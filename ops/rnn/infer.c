/* Shape inference and argument checks of rnn and rnn_grad, and the gradient rule of rnn. May use core and
 * public ops. */
#include "rnn.h"

static proa_status bad(const char *op, const char *argument, int64_t index, const proa_tensor *got,
                       int64_t d0, int64_t d1, int64_t d2)
{
    const int64_t want[3] = {d0, d1, d2};
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), argument,
                         "entry %lld is %s; expected the input's dtype and shape %s", (long long)index,
                         proa__tensor_text(got),
                         proa__shape_text(want, d1 == 0   ? 1
                                                : d2 == 0 ? 2
                                                          : 3));
}

/* True if t has this dtype and shape [d0, d1, d2]; d1 or d2 = 0: it has fewer dims; an expected −1 agrees
 * with any length. */
static bool is(const proa_tensor *t, int dtype, int64_t d0, int64_t d1, int64_t d2)
{
    const int64_t want[3] = {d0, d1, d2};
    int ndim = d1 == 0 ? 1 : d2 == 0 ? 2 : 3;
    if (t->dtype != dtype || t->ndim != ndim) return false;
    for (int i = 0; i < ndim; i++)
        if (!rows_dims_agree(t->shape[i], want[i])) return false;
    return true;
}

static proa_status check_weights(const char *op, const rnn_sizes *s, int dtype, proa_tensors w)
{
    int64_t each = 2 * s->layers * s->directions, rows = s->gates * s->hidden;
    if (w.count != 2 * each)
        return proa__op_fail(
            PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "weight_list",
            "has %lld tensors; expected %lld: w_ih and w_hh, then b_ih and b_hh, of %lld layers and "
            "%lld directions",
            (long long)w.count, (long long)(2 * each), (long long)s->layers, (long long)s->directions);
    for (int64_t i = 0; i < each; i++) {
        int64_t layer = i / 2 / s->directions;
        int64_t columns = i % 2 ? s->hidden : layer ? s->hidden * s->directions : s->input;
        if (!is(w.at[i], dtype, rows, columns, 0))
            return bad(op, "weight_list", i, w.at[i], rows, columns, 0);
        if (!is(w.at[each + i], dtype, rows, 0, 0))
            return bad(op, "weight_list", each + i, w.at[each + i], rows, 0, 0);
    }
    return PROA_OK;
}

static proa_status check(const char *op, const proa_tensor *input, proa_tensors state, proa_tensors weights,
                         const proa_tensor *lengths, proa_rnn_mode mode, int64_t layers, bool both, double p,
                         rnn_sizes *s)
{
    int64_t states = mode == PROA_RNN_MODE_LSTM ? 2 : 1;
    if (input->ndim != 3)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "input",
                             "is %s; expected [time, batch, features]", proa__tensor_text(input));
    if (layers < 1 || layers > 1024)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "num_layers",
                             "is %lld; expected 1 to 1024", (long long)layers);
    if (!(p >= 0 && p <= 1))
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "dropout_prob",
                             "is %g; expected 0 to 1", p);
    if (state.count != states || state.at[0]->ndim != 3 || state.at[0]->shape[2] == 0)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "pre_state",
                             "has %lld tensors; expected %lld of shape [layers * directions, batch, hidden]",
                             (long long)state.count, (long long)states);
    *s = rnn_measure(input, state.at[0], weights, mode, layers, both);
    for (int64_t i = 0; i < states; i++)
        if (!is(state.at[i], input->dtype, layers * s->directions, s->batch ? s->batch : -1, s->hidden) ||
            !rows_dims_agree(state.at[i]->shape[1], s->batch))
            return bad(op, "pre_state", i, state.at[i], layers * s->directions, s->batch, s->hidden);
    if (!proa__absent(lengths) && ((lengths->dtype != PROA_I32 && lengths->dtype != PROA_I64) ||
                                   lengths->ndim != 1 || !rows_dims_agree(lengths->shape[0], s->batch)))
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "sequence_length",
                             "is %s; expected one int32 or int64 a batch row", proa__tensor_text(lengths));
    return check_weights(op, s, input->dtype, weights);
}

static proa_status like(proa_metas *list, proa_tensors of)
{
    PROA_TRY(proa_metas_resize(list, of.count));
    for (int64_t i = 0; i < of.count; i++) list->at[i] = proa_meta_of(of.at[i]);
    return PROA_OK;
}

proa_status rnn_infer(const proa_rnn_args *a, proa_rnn_metas *m)
{
    rnn_sizes s;
    PROA_TRY(check("rnn", a->input, a->pre_state, a->weight_list, a->sequence_length, a->mode, a->num_layers,
                   a->is_bidirec, a->dropout_prob, &s));
    proa_dtype dtype = (proa_dtype)a->input->dtype;
    int64_t wide = s.hidden < 0 ? -1 : s.directions * s.hidden;
    m->out = (proa_meta){.dtype = dtype, .ndim = 3, .shape = {s.steps, s.batch, wide}};
    PROA_TRY(like(&m->state, a->pre_state));
    for (int64_t i = 0; i < m->state.count; i++)
        m->state.at[i] =
            (proa_meta){.dtype = dtype, .ndim = 3, .shape = {s.layers * s.directions, s.batch, s.hidden}};
    bool known = s.steps >= 0 && s.batch >= 0 && s.hidden >= 0;
    m->reserve = (proa_meta){.dtype = dtype, .ndim = 1, .shape = {known ? rnn_reserve(&s, a->mode) : -1}};
    if (a->training && a->dropout_prob > 0 && a->num_layers > 1)
        m->dropout_state =
            (proa_meta){.dtype = PROA_U8, .ndim = 4, .shape = {s.layers - 1, s.steps, s.batch, wide}};
    return PROA_OK;
}

proa_status rnn_grad_infer(const proa_rnn_grad_args *a, proa_rnn_grad_metas *m)
{
    rnn_sizes s;
    PROA_TRY(check("rnn_grad", a->input, a->pre_state, a->weight_list, a->sequence_length, a->mode,
                   a->num_layers, a->is_bidirec, a->dropout_prob, &s));
    bool known = s.steps >= 0 && s.batch >= 0 && s.hidden >= 0;
    if (a->reserve->dtype != a->input->dtype ||
        (known && !rows_dims_agree(a->reserve->numel, rnn_reserve(&s, a->mode))))
        return ROWS_FAIL(rnn_grad, INVALID_ARGUMENT, "reserve",
                         "is %s; expected what the forward op returned", proa__tensor_text(a->reserve));
    if (!proa__absent(a->d_out) &&
        !is(a->d_out, a->input->dtype, s.steps, s.batch ? s.batch : -1, s.directions * s.hidden))
        return ROWS_FAIL(rnn_grad, INVALID_ARGUMENT, "d_out", "is %s; expected the shape of out",
                         proa__tensor_text(a->d_out));
    if (!proa__absent(a->dropout_state) && a->dropout_state->numel >= 0 && known && a->num_layers > 1 &&
        (a->dropout_state->dtype != PROA_U8 ||
         a->dropout_state->numel != (s.layers - 1) * s.steps * s.batch * s.directions * s.hidden))
        return ROWS_FAIL(rnn_grad, INVALID_ARGUMENT, "dropout_state",
                         "is %s; expected what the forward op returned", proa__tensor_text(a->dropout_state));
    for (int64_t i = 0; i < a->d_state.count && i < a->pre_state.count; i++)
        if (!proa__absent(a->d_state.at[i]) &&
            (a->d_state.at[i]->dtype != a->input->dtype ||
             !rows_dims_agree(a->d_state.at[i]->numel, a->pre_state.at[i]->numel)))
            return ROWS_FAIL(rnn_grad, INVALID_ARGUMENT, "d_state",
                             "entry %lld is %s; expected the state's shape", (long long)i,
                             proa__tensor_text(a->d_state.at[i]));
    m->d_input = proa_meta_of(a->input);
    PROA_TRY(like(&m->d_pre_state, a->pre_state));
    return like(&m->d_weight_list, a->weight_list);
}

proa_status rnn_vjp(const proa_rnn_args *a, proa_rnn_grads *g)
{
    proa_rnn_grad_result d =
        proa_rnn_grad(a->input, a->pre_state, a->weight_list, a->sequence_length,
                      a->dropout_state ? a->dropout_state : PROA_NONE, a->out, a->reserve, g->d_out,
                      g->d_state, .mode = a->mode, .num_layers = a->num_layers, .is_bidirec = a->is_bidirec,
                      .dropout_prob = rows_option_float(a->training ? a->dropout_prob : 0));
    if (proa_error()) return proa_error();
    if (g->want_input) g->d_input = d.d_input;
    if (g->want_pre_state) g->d_pre_state = d.d_pre_state;
    if (g->want_weight_list) g->d_weight_list = d.d_weight_list;
    return PROA_OK;
}
