/* Recurrent networks on a GPU: the input products of all steps are one matrix product; each step is then one
 * matrix product and one kernel of cells. The output `reserve` (state saved for backward) has the layout of
 * the CPU's kernel. */
#include "devices/cuda/library.h"

#include "core/philox.h"
#include "ops/rnn/cuda/rnn.h"
#include "ops/rnn/sizes.h"

struct rnn {
    cuda_context *c;
    rnn_sizes s;
    proa_rnn_mode mode;
    proa_dtype dtype;
    const char *lengths; /* NULL: all sequences have all steps */
    proa_dtype lengths_type;
    char *input, *out, *reserve, *d_input, *d_out;
    proa_tensors pre_state, weights, state, d_state, d_pre_state, d_weights;
    const uint8_t *mask; /* dropout between layers, or NULL */
    double kept_scale;
    int64_t rows() const { return s.steps * s.batch; }
    int64_t wide() const { return s.gates * s.hidden; }
    int64_t width(int64_t l) const { return l ? s.hidden * s.directions : s.input; }
};

/* ---- offsets in buffers (as in cpu/rnn.inc) ------------------------------------------ */

template <class T> struct rnn_place {
    T *gates, *states, *extra;
};
template <class T> static rnn_place<T> kept_of(const rnn *r, int64_t l, int64_t d)
{
    T *at = (T *)r->reserve + (l * r->s.directions + d) * r->rows() * rnn_kept(&r->s, r->mode);
    T *states = at + r->rows() * r->wide();
    return {at, states, states + r->rows() * r->s.hidden};
}
template <class T> static T *layer_input(const rnn *r, int64_t l)
{
    if (l == 0) return (T *)r->input;
    return (T *)r->reserve +
           r->rows() * r->s.directions * (r->s.layers * rnn_kept(&r->s, r->mode) + (l - 1) * r->s.hidden);
}
template <class T> static T *layer_output(const rnn *r, int64_t l)
{
    return l == r->s.layers - 1 ? (T *)r->out : layer_input<T>(r, l + 1);
}
template <class T>
static T *weight(const rnn *r, proa_tensors list, int64_t l, int64_t d, bool bias, bool hidden)
{
    int64_t pair = l * r->s.directions + d, base = bias ? 2 * r->s.layers * r->s.directions : 0;
    return cuda_look(list.at[base + 2 * pair + hidden]).as<T>();
}
/* Address of layer l, direction d in state tensor i of the list, [layers · directions, batch, hidden]. */
template <class T> static T *state_of(const rnn *r, proa_tensors list, int i, int64_t l, int64_t d)
{
    return cuda_look(list.at[i]).as<T>() + (l * r->s.directions + d) * r->s.batch * r->s.hidden;
}

static proa_status move(cuda_context *c, void *to, const void *from, int64_t bytes)
{
    if (bytes == 0) return PROA_OK;
    return cuda_check(c, c->driver->copy(to, from, (size_t)bytes, CUDA_ON_DEVICE, c->stream), "a copy",
                      false);
}

static proa_status clear(cuda_context *c, void *p, int64_t bytes)
{
    static const uint8_t zero = 0;
    return cuda_fill(c, p, &zero, 1, bytes);
}

/* out[m, n] (+)= x[m, k] · y[k, n], row-major; a transposed operand is stored transposed. */
static proa_status multiply(const rnn *r, int64_t m, int64_t n, int64_t k, const void *x, bool transpose_x,
                            const void *y, bool transpose_y, void *out, bool add)
{
    cuda_gemm g = {};
    if (k == 0) return add ? PROA_OK : clear(r->c, out, m * n * cuda_item(r->dtype));
    g.dtype = r->dtype;
    g.m = m, g.n = n, g.k = k;
    g.x = x, g.y = y, g.out = out;
    g.transpose_x = transpose_x, g.transpose_y = transpose_y;
    g.ldx = transpose_x ? m : k;
    g.ldy = transpose_y ? k : n;
    g.batches = 1;
    g.alpha = 1, g.beta = add ? 1 : 0;
    return cuda_library_gemm(r->c, &g);
}

static rnn_step step_of(const rnn *r, int64_t d, int64_t t)
{
    return {r->mode, t, r->s.batch, r->s.hidden, r->s.gates, r->s.directions, d, r->lengths, r->lengths_type};
}

template <class T> static proa_status mask_rows(const rnn *r, int64_t l, T *x)
{
    int64_t n = r->rows() * r->s.directions * r->s.hidden;
    return cuda_launch(r->c, cuda_blocks(n), CUDA_BLOCK, rnn_mask_kernel<T>, x, r->mask + l * n,
                       (T)r->kept_scale, n);
}

/* keep[i] = 1 or 0: dropped where element i's 16 bits of the stream are below the threshold. */
__global__ void rnn_draw_kernel(cuda_draws draws, uint32_t threshold, uint8_t *keep, int64_t n)
{
    proa_rng_state stream = cuda_drawn(draws);
    for (CUDA_EACH(i, n)) {
        proa__philox_block b = proa__philox(stream.seed, stream.offset + (uint64_t)i / 8);
        uint32_t word = b.v[i % 8 / 2];
        keep[i] = (i % 2 ? word >> 16 : word & 0xffffu) >= threshold;
    }
}

/* Sixteen bits an element, as the CPU's kernel draws them (kernels/philox16.h). */
static proa_status draw_mask(cuda_context *c, uint8_t *keep, int64_t n, double p)
{
    uint32_t threshold = (uint32_t)(p * 65536.0 + 0.5);
    cuda_draws stream;
    PROA_TRY(cuda_draw(c, (uint64_t)(n + 7) / 8, &stream));
    if (n == 0) return PROA_OK;
    return cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, rnn_draw_kernel, stream, threshold, keep, n);
}

/* ---- forward --------------------------------------------------------------------------- */

template <class T> static proa_status forward_one(const rnn *r, int64_t l, int64_t d, T *u)
{
    cuda_context *c = r->c;
    int64_t n = r->s.hidden, wide = r->wide(), rows = r->rows(), each = r->s.batch * n;
    rnn_place<T> kept = kept_of<T>(r, l, d);
    bool lstm = r->mode == PROA_RNN_MODE_LSTM;
    const T *bias = weight<T>(r, r->weights, l, d, true, false);
    const T *hidden = weight<T>(r, r->weights, l, d, false, true);
    PROA_TRY(cuda_launch(c, cuda_blocks(rows * wide), CUDA_BLOCK, rnn_rows_kernel<T>, kept.gates, bias, rows,
                         wide));
    PROA_TRY(multiply(r, rows, wide, r->width(l), layer_input<T>(r, l), false,
                      weight<T>(r, r->weights, l, d, false, false), true, kept.gates, true));
    rnn_forward_step<T> w = {};
    w.u = u;
    w.bias = weight<T>(r, r->weights, l, d, true, true);
    w.h = state_of<T>(r, r->pre_state, 0, l, d);
    w.c = lstm ? state_of<T>(r, r->pre_state, 1, l, d) : NULL;
    for (int64_t i = 0; i < r->s.steps; i++) {
        int64_t t = d ? r->s.steps - 1 - i : i;
        w.gates = kept.gates + t * r->s.batch * wide;
        w.states = kept.states + t * each;
        w.extra = kept.extra + t * each;
        w.y = layer_output<T>(r, l) + t * each * r->s.directions;
        PROA_TRY(multiply(r, r->s.batch, wide, n, w.h, false, hidden, true, u, false));
        PROA_TRY(cuda_launch(c, cuda_blocks(each), CUDA_BLOCK, rnn_cell_kernel<T>, step_of(r, d, t), w));
        w.h = w.states;
        if (lstm) w.c = w.extra;
    }
    int64_t bytes = each * (int64_t)sizeof(T);
    PROA_TRY(move(c, state_of<T>(r, r->state, 0, l, d), w.h, bytes));
    return lstm ? move(c, state_of<T>(r, r->state, 1, l, d), w.c, bytes) : PROA_OK;
}

template <class T> static proa_status forward(const rnn *r)
{
    T *u = (T *)cuda_scratch(r->c, (size_t)(r->s.batch * r->wide()) * sizeof(T));
    if (!u) return cuda_host->error();
    proa_status status = PROA_OK;
    for (int64_t l = 0; l < r->s.layers && status == PROA_OK; l++) {
        for (int64_t d = 0; d < r->s.directions && status == PROA_OK; d++)
            status = forward_one<T>(r, l, d, u);
        if (status == PROA_OK && r->mask && l < r->s.layers - 1)
            status = mask_rows<T>(r, l, layer_output<T>(r, l));
    }
    cuda_scratch_free(r->c, u);
    return status;
}

/* ---- backward -------------------------------------------------------------------------- */

/* Memory of one layer and direction: gradients by h and c, h before each step, gradients by the products. */
template <class T> struct rnn_scratch {
    T *dh, *dc, *before, *dx, *du;
};

template <class T> static int64_t scratch_elements(const rnn *r)
{
    return 2 * r->s.batch * r->s.hidden + r->rows() * r->s.hidden + 2 * r->rows() * r->wide();
}

template <class T> static rnn_scratch<T> divide(const rnn *r, T *at)
{
    rnn_scratch<T> s;
    s.dh = at;
    s.dc = s.dh + r->s.batch * r->s.hidden;
    s.before = s.dc + r->s.batch * r->s.hidden;
    s.dx = s.before + r->rows() * r->s.hidden;
    s.du = r->mode == PROA_RNN_MODE_GRU ? s.dx + r->rows() * r->wide() : s.dx;
    return s;
}

static const proa_tensor *given_state(const rnn *r, int64_t i)
{
    return i < r->d_state.count && cuda_given(r->d_state.at[i]) ? r->d_state.at[i] : NULL;
}

/* Writes the state before each step to `to`: that of the previous step, or the initial state. */
template <class T> static proa_status shift(const rnn *r, int64_t d, const T *values, const T *first, T *to)
{
    int64_t step = r->s.batch * r->s.hidden, rest = (r->s.steps - 1) * step, item = (int64_t)sizeof(T);
    PROA_TRY(move(r->c, d ? to + rest : to, first, step * item));
    return move(r->c, d ? to : to + step, d ? values + step : values, rest * item);
}

template <class T>
static proa_status backward_steps(const rnn *r, int64_t l, int64_t d, const T *dy, const rnn_scratch<T> &s)
{
    cuda_context *c = r->c;
    int64_t n = r->s.hidden, wide = r->wide(), each = r->s.batch * n, bytes = each * (int64_t)sizeof(T);
    rnn_place<T> kept = kept_of<T>(r, l, d);
    int states = r->mode == PROA_RNN_MODE_LSTM ? 2 : 1;
    const T *hidden = weight<T>(r, r->weights, l, d, false, true);
    for (int i = 0; i < states; i++) {
        T *to = i ? s.dc : s.dh;
        if (given_state(r, i)) PROA_TRY(move(c, to, state_of<T>(r, r->d_state, i, l, d), bytes));
        else PROA_TRY(clear(c, to, bytes));
    }
    for (int64_t i = 0; i <= r->s.steps; i++) {
        int64_t t = d ? i : r->s.steps - 1 - i, after = d ? t - 1 : t + 1;
        if (i > 0)
            PROA_TRY(multiply(r, r->s.batch, n, wide, s.du + after * r->s.batch * wide, false, hidden, false,
                              s.dh, true));
        if (i == r->s.steps) break;
        bool first = i == r->s.steps - 1; /* the first step in time reads the initial cell */
        rnn_backward_step<T> w = {};
        w.gates = kept.gates + t * r->s.batch * wide;
        w.extra = kept.extra + t * each;
        w.h = s.before + t * each;
        if (states == 2)
            w.c = first ? state_of<T>(r, r->pre_state, 1, l, d) : kept.extra + (d ? t + 1 : t - 1) * each;
        w.dy = dy ? dy + t * each * r->s.directions : NULL;
        w.dh = s.dh;
        w.dc = s.dc;
        w.dx = s.dx + t * r->s.batch * wide;
        w.du = s.du + t * r->s.batch * wide;
        PROA_TRY(cuda_launch(c, cuda_blocks(each), CUDA_BLOCK, rnn_cell_back_kernel<T>, step_of(r, d, t), w));
    }
    for (int i = 0; i < states; i++)
        PROA_TRY(move(c, state_of<T>(r, r->d_pre_state, i, l, d), i ? s.dc : s.dh, bytes));
    return PROA_OK;
}

template <class T> static proa_status sum_columns(const rnn *r, const T *x, T *to)
{
    return cuda_launch(r->c, cuda_blocks(r->wide(), RNN_COLUMNS), dim3(RNN_COLUMNS, RNN_LANES),
                       rnn_columns_kernel<T>, x, r->rows(), r->wide(), to);
}

template <class T>
static proa_status backward_one(const rnn *r, int64_t l, int64_t d, const T *dy, T *d_input, T *memory)
{
    int64_t n = r->s.hidden, wide = r->wide(), rows = r->rows(), width = r->width(l);
    rnn_scratch<T> s = divide(r, memory);
    PROA_TRY(shift(r, d, kept_of<T>(r, l, d).states, state_of<T>(r, r->pre_state, 0, l, d), s.before));
    PROA_TRY(backward_steps(r, l, d, dy, s));
    PROA_TRY(multiply(r, rows, width, wide, s.dx, false, weight<T>(r, r->weights, l, d, false, false), false,
                      d_input, d > 0));
    PROA_TRY(multiply(r, wide, width, rows, s.dx, true, layer_input<T>(r, l), false,
                      weight<T>(r, r->d_weights, l, d, false, false), false));
    PROA_TRY(multiply(r, wide, n, rows, s.du, true, s.before, false,
                      weight<T>(r, r->d_weights, l, d, false, true), false));
    PROA_TRY(sum_columns(r, s.dx, weight<T>(r, r->d_weights, l, d, true, false)));
    return sum_columns(r, s.du, weight<T>(r, r->d_weights, l, d, true, true));
}

template <class T> static proa_status backward(const rnn *r)
{
    int64_t between = r->rows() * r->s.directions * r->s.hidden, own = scratch_elements<T>(r);
    T *scratch = (T *)cuda_scratch(r->c, (size_t)(own + (r->s.layers > 1 ? 2 * between : 0)) * sizeof(T));
    if (!scratch) return cuda_host->error();
    T *flow[2] = {scratch + own, scratch + own + between};
    const T *dy = (const T *)r->d_out;
    proa_status status = PROA_OK;
    for (int64_t l = r->s.layers - 1; l >= 0 && status == PROA_OK; l--) {
        T *d_input = l ? flow[l % 2] : (T *)r->d_input;
        for (int64_t d = 0; d < r->s.directions && status == PROA_OK; d++)
            status = backward_one<T>(r, l, d, dy, d_input, scratch);
        if (status == PROA_OK && l && r->mask) status = mask_rows<T>(r, l - 1, d_input);
        dy = d_input;
    }
    cuda_scratch_free(r->c, scratch);
    return status;
}

/* ---- the ops --------------------------------------------------------------------------- */

/* Reports an entry of sequence_length outside [0, steps] at the next synchronization. */
__global__ void rnn_lengths_kernel(rnn_step s, int64_t steps, cuda_report report)
{
    for (CUDA_EACH(b, s.batch)) {
        int64_t n = cuda_load<int64_t>(s.lengths + b * (s.lengths_type == PROA_I32 ? 4 : 8), s.lengths_type);
        if (n < 0 || n > steps) cuda_raise(report, b, n, 0, steps);
    }
}

template <class A> static rnn rnn_of(cuda_context *c, const A *a)
{
    rnn r = {};
    cuda_tensor x = cuda_look(a->input), h = cuda_look(a->pre_state.at[0]);
    r.c = c;
    r.s.steps = x.shape[0], r.s.batch = x.shape[1], r.s.input = x.shape[2];
    r.s.hidden = h.shape[2], r.s.layers = a->num_layers, r.s.directions = a->is_bidirec ? 2 : 1;
    r.s.gates = rnn_gates(a->mode);
    r.mode = a->mode;
    r.dtype = x.dtype;
    if (cuda_given(a->sequence_length)) {
        cuda_tensor lengths = cuda_look(a->sequence_length);
        r.lengths = lengths.data;
        r.lengths_type = lengths.dtype;
    }
    r.input = x.data;
    r.reserve = cuda_look(a->reserve).data;
    r.pre_state = a->pre_state;
    r.weights = a->weight_list;
    r.kept_scale = a->dropout_prob < 1 ? 1 / (1 - a->dropout_prob) : 0;
    return r;
}

static proa_status check_lengths(const rnn *r)
{
    if (!r->lengths || r->s.batch == 0) return PROA_OK;
    return cuda_launch(r->c, cuda_blocks(r->s.batch), CUDA_BLOCK, rnn_lengths_kernel, step_of(r, 0, 0),
                       r->s.steps, cuda_reports(r->c, "sequence_length"));
}

/* Zero steps: states pass through unchanged; absent ones are zeros. */
static proa_status pass_states(cuda_context *c, proa_tensors to, proa_tensors from)
{
    for (int64_t i = 0; i < to.count; i++) {
        cuda_tensor t = cuda_look(to.at[i]);
        bool given = i < from.count && cuda_given(from.at[i]);
        int64_t bytes = t.numel * cuda_item(t.dtype);
        if (given) PROA_TRY(move(c, t.data, cuda_look(from.at[i]).data, bytes));
        else PROA_TRY(clear(c, t.data, bytes));
    }
    return PROA_OK;
}

CUDA_KERNEL(rnn, true)
{
    rnn r = rnn_of(c, a);
    r.out = cuda_look(a->out).data;
    r.state = a->state;
    PROA_TRY(check_lengths(&r));
    if (cuda_given(a->dropout_state)) {
        cuda_tensor mask = cuda_look(a->dropout_state);
        PROA_TRY(draw_mask(c, mask.as<uint8_t>(), mask.numel, a->dropout_prob));
        r.mask = mask.as<uint8_t>();
    }
    if (r.rows() == 0) return pass_states(c, a->state, a->pre_state);
    return r.dtype == PROA_F64 ? forward<double>(&r) : forward<float>(&r);
}

CUDA_KERNEL(rnn_grad, true)
{
    rnn r = rnn_of(c, a);
    r.d_out = cuda_given(a->d_out) ? cuda_look(a->d_out).data : NULL;
    r.d_input = cuda_look(a->d_input).data;
    r.d_state = a->d_state, r.d_pre_state = a->d_pre_state, r.d_weights = a->d_weight_list;
    PROA_TRY(check_lengths(&r));
    if (cuda_given(a->dropout_state) && a->dropout_prob > 0 && a->num_layers > 1)
        r.mask = cuda_look(a->dropout_state).as<uint8_t>();
    if (r.rows() == 0) {
        PROA_TRY(pass_states(c, a->d_weight_list, proa_tensors{}));
        return pass_states(c, a->d_pre_state, a->d_state);
    }
    return r.dtype == PROA_F64 ? backward<double>(&r) : backward<float>(&r);
}
