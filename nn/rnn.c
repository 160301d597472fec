/* LSTM, GRU and simple recurrent layers over whole sequences, with Paddle's parameters (weight_ih_l0,
 * weight_ih_l0_reverse, …) and initializer: uniform within 1 / √hidden. Uses nn/layer.h. */
#include "nn/layer.h"

#include "initializers.h"

typedef struct rnn {
    proa_layer base;
    proa_rnn_mode mode;
    int64_t in, hidden, layers, directions;
    double dropout;
    bool time_major;
    proa_tensor *
        *weights; /* owned list of borrowed tensors, in the op's order: all w_ih, w_hh, then biases */
} rnn;

static void rnn_release(proa_layer *self) { proa__free(((rnn *)self)->weights); }

static int64_t gates(proa_rnn_mode mode)
{
    return mode == PROA_RNN_MODE_LSTM ? 4 : mode == PROA_RNN_MODE_GRU ? 3 : 1;
}

/* The given state, or zeros [layers·directions, N, hidden] made from a slice of x, since N may be unknown. */
static proa_tensor *initial_state(const rnn *r, proa_tensor *given, proa_tensor *x)
{
    if (given != proa_none) return given;
    int64_t n = proa_dim(x, 1), first = r->layers * r->directions;
    if (n >= 0) return proa_full(PROA_SHAPE(first, n, r->hidden), 0, .dtype = proa_dtype_of(x));
    proa_tensor *row = proa_slice(x, PROA_INTS(0, 2), PROA_INTS(0, 0), PROA_INTS(1, 1)); /* [1, N, 1] */
    proa_tensor *zero = proa_full_like(row, 0);
    return proa_tile(zero, PROA_INTS(first, 1, r->hidden));
}

proa_rnn_output proa_rnn_forward(proa_layer *layer, proa_tensor *x, proa_tensor *h, proa_tensor *c,
                                 proa_tensor *lengths)
{
    const proa_rnn_output failed = {NULL, NULL, NULL};
    if (proa_error()) return failed;
    if (!layer || layer->release != rnn_release || !x || !h || !c || !lengths) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  "rnn_forward: needs a recurrent layer and an input; PROA_NONE for what is not given");
        return failed;
    }
    const rnn *r = (const rnn *)layer;
    if (proa_ndim(x) != 3) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "rnn_forward: x is %s; expected [%s, %lld]",
                  proa__tensor_text(x), r->time_major ? "T, N" : "N, T", (long long)r->in);
        return failed;
    }
    PROA_SCOPED;
    bool lstm = r->mode == PROA_RNN_MODE_LSTM;
    proa_tensor *in = r->time_major ? x : proa_transpose(x, PROA_INTS(1, 0, 2));
    if (!in) return failed;
    h = initial_state(r, h, in);
    c = lstm ? initial_state(r, c, in) : proa_none;
    proa_tensors states = {lstm ? 2 : 1, (proa_tensor *[]){h, c}};
    proa_tensors weights = {4 * r->layers * r->directions, r->weights};
    proa_rnn_result y =
        proa_rnn(in, states, weights, lengths, .mode = r->mode, .num_layers = r->layers,
                 .is_bidirec = r->directions == 2, .dropout_prob = r->dropout, .no_training = layer->eval);
    if (proa_error() || !y.out) return failed;
    proa_tensor *out = r->time_major ? y.out : proa_transpose(y.out, PROA_INTS(1, 0, 2));
    return (proa_rnn_output){proa_return(out), proa_return(y.state.at[0]),
                             lstm ? proa_return(y.state.at[1]) : proa_none};
}

static proa_tensor *rnn_layer_forward(proa_layer *self, proa_tensor *x)
{
    return proa_rnn_forward(self, x, proa_none, proa_none, proa_none).out;
}

/* The four tensors of one layer and direction. Parameters are named and stored a cell at a time; the op wants
 * all weights before all biases. */
static void add_cell(rnn *r, int64_t layer, int64_t direction)
{
    int64_t in = layer == 0 ? r->in : r->hidden * r->directions, rows = gates(r->mode) * r->hidden;
    int64_t cell = layer * r->directions + direction, cells = r->layers * r->directions;
    proa_init init = proa__init_recurrent((double)r->hidden);
    static const char *const names[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s_l%lld%s", names[i], (long long)layer, direction ? "_reverse" : "");
        int64_t shape[2] = {rows, i == 0 ? in : r->hidden};
        proa_ints dims = {i < 2 ? 2 : 1, shape, NULL, NULL};
        r->weights[(i < 2 ? 0 : 2 * cells) + 2 * cell + i % 2] =
            proa_layer_parameter(&r->base, name, dims, init);
    }
}

proa_layer *proa_rnn_layer_opt(proa_rnn_mode mode, int64_t in, int64_t hidden, proa_rnn_layer_opts opts)
{
    if (proa_error()) return NULL;
    int64_t layers = opts.layers ? opts.layers : 1;
    const int64_t most = INT64_MAX / 8; /* capacity for the gates of both directions */
    if (in < 1 || hidden < 1 || hidden > most || layers < 1 || layers > 4096 ||
        mode > PROA_RNN_MODE_RNN_RELU) {
        proa_fail(
            PROA_ERR_INVALID_ARGUMENT,
            "rnn_layer: mode %d, in %lld, hidden %lld, layers %lld: sizes must be at least 1, hidden below "
            "2^60, layers at most 4096",
            (int)mode, (long long)in, (long long)hidden, (long long)layers);
        return NULL;
    }
    if (!proa__is_probability("rnn_layer", "dropout", opts.dropout)) return NULL;
    static const char *const types[] = {"lstm", "gru", "simple_rnn", "simple_rnn"};
    rnn *r = (rnn *)proa_layer_new(sizeof *r, types[mode], rnn_layer_forward);
    if (!r) return NULL;
    r->base.release = rnn_release;
    r->mode = mode;
    r->in = in;
    r->hidden = hidden;
    r->layers = layers;
    r->directions = opts.bidirectional ? 2 : 1;
    r->dropout = opts.dropout;
    r->time_major = opts.time_major;
    r->weights = proa__calloc((size_t)(4 * layers * r->directions) * sizeof *r->weights);
    for (int64_t i = 0; r->weights && i < layers * r->directions; i++)
        add_cell(r, i / r->directions, i % r->directions);
    return proa__layer_done(&r->base);
}
