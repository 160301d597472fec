/* Layers for C programs: parameters with names, initializers, and the usual layers. Implemented by nn/;
 * needs proa/core.h and proa/ops.h.
 * A layer is a plain struct with a forward function; a user's own layer starts with a proa_layer member.
 * Layers own their parameters and children: proa_layer_free frees all of them. */
#ifndef PROA_NN_H
#define PROA_NN_H

#include <proa/core.h>
#include <proa/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct proa_layer proa_layer;

/* A trainable parameter of a layer, or a buffer (running statistics), with its name. */
typedef struct proa_parameter {
    char *name;          /* within its layer: "weight" */
    proa_tensor *tensor; /* kept */
    bool is_buffer;
} proa_parameter;

struct proa_layer {
    const char
        *type; /* "linear": also the stem of parameter names; a string literal, since the pointer is stored
                * for good */
    proa_tensor *(*forward)(proa_layer *self, proa_tensor *x); /* new tensor */
    void (*release)(proa_layer *self); /* what the struct owns beyond the base; may be NULL */
    proa_parameter *parameters;
    int32_t n_parameters;
    proa_layer **children;
    char **child_names;
    int32_t n_children;
    int64_t number; /* which layer of its type in this process, for parameter names; −1 until one is named */
    bool eval;      /* inference mode: dropout off, batch norm by running statistics */
    bool owned;     /* has a parent, which frees it */
};

/* Makes a layer struct of `bytes` (≥ sizeof(proa_layer)), zeroed but for the base. NULL on error. */
PROA_API proa_layer *proa_layer_new(size_t bytes, const char *type,
                                    proa_tensor *(*forward)(proa_layer *, proa_tensor *));
/* Frees a layer with its parameters and children. Accepts NULL; does nothing to a layer that has a parent,
 * which frees it. */
PROA_API void proa_layer_free(proa_layer *layer);
/* Makes `child` a child of parent, which then owns it. Returns child, NULL after an error (child is freed). A
 * child has one parent and does not contain it: otherwise INVALID_ARGUMENT, and both stay as they are. */
PROA_API proa_layer *proa_layer_add(proa_layer *parent, const char *name, proa_layer *child);

/* ---- initializers: Paddle's, with its defaults ---- */
typedef enum proa_init_kind {
    PROA_INIT_DEFAULT = 0, /* Xavier uniform for weights, 0 for biases: Paddle's rule */
    PROA_INIT_CONSTANT,
    PROA_INIT_UNIFORM,          /* [a, b) */
    PROA_INIT_NORMAL,           /* mean a, std b */
    PROA_INIT_TRUNCATED_NORMAL, /* within two std of the mean */
    PROA_INIT_XAVIER_UNIFORM,
    PROA_INIT_XAVIER_NORMAL,
    PROA_INIT_KAIMING_UNIFORM,
    PROA_INIT_KAIMING_NORMAL,
    PROA_INIT_ASSIGN /* values of `value` */
} proa_init_kind;
typedef struct proa_init {
    proa_init_kind kind;
    double a, b;
    proa_tensor *value;
} proa_init;
/* New tensor; fan-in and fan-out as Paddle derives them from the shape. */
PROA_API proa_tensor *proa_initialized(proa_ints shape, proa_dtype dtype, proa_init init);

/* Adds a parameter (a leaf that wants a gradient) or a buffer (state without one) of the default dtype to a
 * layer; returns it, borrowed. */
PROA_API proa_tensor *proa_layer_parameter(proa_layer *layer, const char *name, proa_ints shape,
                                           proa_init init);
PROA_API proa_tensor *proa_layer_buffer(proa_layer *layer, const char *name, proa_ints shape, proa_init init);

/* ---- using layers ---- */
/* Runs the layer; opens a scope of its own, so that only the result stays. New. */
PROA_API proa_tensor *proa_forward(proa_layer *layer, proa_tensor *x);
/* All trainable parameters, children's included, in order. The list ends with the scope. */
PROA_API proa_tensors proa_parameters(proa_layer *layer);
/* Training mode (the default) or inference mode, for the layer and its children. */
PROA_API void proa_train(proa_layer *layer);
PROA_API void proa_eval(proa_layer *layer);
PROA_API int64_t proa_parameter_count(proa_layer *layer); /* elements of trainable parameters */

/* A layer's state: every parameter and buffer with its path ("0.weight"). */
typedef struct proa_named {
    const char *name;
    proa_tensor *tensor;
    bool is_buffer;
} proa_named;
typedef struct proa_named_list {
    int64_t count;
    proa_named *at;
} proa_named_list;
/* The list and names end with the scope; tensors are borrowed. */
PROA_API proa_named_list proa_layer_state(proa_layer *layer);

/* ---- layers ---- */
/* proa_sequential(a, b, c): runs its children one after the other; takes them over. */
PROA_API proa_layer *proa_sequential_of(int64_t n, proa_layer *const *layers);
#define proa_sequential(...)                                                                    \
    proa_sequential_of((int64_t)(sizeof((proa_layer *[]){__VA_ARGS__}) / sizeof(proa_layer *)), \
                       (proa_layer *[]){__VA_ARGS__})

/* Residual connection: body(x) + shortcut(x), or body(x) + x if shortcut is NULL. Owns both layers. */
PROA_API proa_layer *proa_residual_layer(proa_layer *body, proa_layer *shortcut);
/* proa_branches_layer(1, a, b): applies each child to x and concatenates the results along an axis; owns the
 * children. */
PROA_API proa_layer *proa_branches_layer_of(int64_t axis, int64_t n, proa_layer *const *layers);
#define proa_branches_layer(axis, ...)                                                                      \
    proa_branches_layer_of((axis), (int64_t)(sizeof((proa_layer *[]){__VA_ARGS__}) / sizeof(proa_layer *)), \
                           (proa_layer *[]){__VA_ARGS__})

typedef struct proa_linear_layer_opts {
    char _;
    bool no_bias;
    proa_init weight, bias;
} proa_linear_layer_opts;
/* y = x·W + b, W [in, out] as in Paddle. */
PROA_API proa_layer *proa_linear_layer_opt(int64_t in, int64_t out, proa_linear_layer_opts opts);
#define proa_linear_layer(...) PROA_X_linear_layer_(__VA_ARGS__, )
#define PROA_X_linear_layer_(in, out, ...) \
    proa_linear_layer_opt((in), (out), PROA_LITERAL(proa_linear_layer_opts){._ = 0, __VA_ARGS__})

typedef struct proa_conv_layer_opts {
    char _;
    int64_t stride, padding, dilation, groups; /* 0: 1, 0, 1, 1; the same for every spatial dim */
    int64_t output_padding;                    /* transposed only */
    bool no_bias;
    proa_padding_algorithm padding_algorithm;
    proa_data_format data_format;
    proa_init weight, bias;
} proa_conv_layer_opts;
/* Cross-correlation over the 1 to 3 last dims of [N, in, …] (data_format: or with channels last), or its
 * transpose. weight [out, in / groups, kernel, …], transposed [in, out / groups, kernel, …]; bias [out]. */
PROA_API proa_layer *proa_conv_layer_opt(int spatial, bool transposed, int64_t in, int64_t out,
                                         int64_t kernel, proa_conv_layer_opts opts);
#define proa_conv1d_layer(...) PROA_X_conv_layer_(1, false, __VA_ARGS__, )
#define proa_conv2d_layer(...) PROA_X_conv_layer_(2, false, __VA_ARGS__, )
#define proa_conv3d_layer(...) PROA_X_conv_layer_(3, false, __VA_ARGS__, )
#define proa_conv1d_transpose_layer(...) PROA_X_conv_layer_(1, true, __VA_ARGS__, )
#define proa_conv2d_transpose_layer(...) PROA_X_conv_layer_(2, true, __VA_ARGS__, )
#define proa_conv3d_transpose_layer(...) PROA_X_conv_layer_(3, true, __VA_ARGS__, )
#define PROA_X_conv_layer_(spatial, transposed, in, out, kernel, ...)   \
    proa_conv_layer_opt((spatial), (transposed), (in), (out), (kernel), \
                        PROA_LITERAL(proa_conv_layer_opts){._ = 0, __VA_ARGS__})

typedef struct proa_norm_layer_opts {
    char _;
    double momentum, epsilon; /* 0.9, 1e-5 */
    bool no_affine;
    proa_data_format data_format;
} proa_norm_layer_opts;
/* (x − mean) / √(variance + epsilon) · weight + bias. Batch norm: over N and … of [N, C, …]; in inference
 * mode by its buffers, which move as r ← momentum · r + (1 − momentum) · of the batch. */
PROA_API proa_layer *proa_batch_norm_layer_opt(int64_t channels, proa_norm_layer_opts opts);
/* Layer norm: mean and variance over the last dim of [..., features]. */
PROA_API proa_layer *proa_layer_norm_layer_opt(int64_t features, proa_norm_layer_opts opts);
/* Group norm: over each group of channels of one sample of [N, C, …]; groups divides channels. */
PROA_API proa_layer *proa_group_norm_layer_opt(int64_t groups, int64_t channels, proa_norm_layer_opts opts);
/* Instance norm: over each channel of one sample of [N, C, …]. */
PROA_API proa_layer *proa_instance_norm_layer_opt(int64_t channels, proa_norm_layer_opts opts);
#define PROA_X_norm_layer_(fn, n, ...) fn((n), PROA_LITERAL(proa_norm_layer_opts){._ = 0, __VA_ARGS__})
#define proa_batch_norm_layer(...) PROA_X_norm_layer_(proa_batch_norm_layer_opt, __VA_ARGS__, )
#define proa_layer_norm_layer(...) PROA_X_norm_layer_(proa_layer_norm_layer_opt, __VA_ARGS__, )
#define proa_instance_norm_layer(...) PROA_X_norm_layer_(proa_instance_norm_layer_opt, __VA_ARGS__, )
#define proa_group_norm_layer(...) PROA_X_group_norm_layer_(__VA_ARGS__, )
#define PROA_X_group_norm_layer_(groups, channels, ...) \
    proa_group_norm_layer_opt((groups), (channels), PROA_LITERAL(proa_norm_layer_opts){._ = 0, __VA_ARGS__})

/* Layers of one op each, relu to softmax: proa/ops.h has the formulas. */
PROA_API proa_layer *proa_relu_layer(void);
PROA_API proa_layer *proa_gelu_layer(void);
PROA_API proa_layer *proa_sigmoid_layer(void);
PROA_API proa_layer *proa_tanh_layer(void);
PROA_API proa_layer *proa_silu_layer(void);
PROA_API proa_layer *proa_softmax_layer(void); /* over the last dim */
/* [N, …] → [N, prod(…)]. */
PROA_API proa_layer *proa_flatten_layer(void);
/* In training each element is zero with probability p, and the others are divided by 1 − p. */
PROA_API proa_layer *proa_dropout_layer(double p);
/* [N, C, H, W] → [N, C, H / kernel, W / kernel], rounded down: windows do not overlap. */
PROA_API proa_layer *proa_max_pool2d_layer(int64_t kernel);
PROA_API proa_layer *proa_avg_pool2d_layer(int64_t kernel);
/* [N, C, H, W] → [N, C, size, size]. */
PROA_API proa_layer *proa_adaptive_avg_pool2d_layer(int64_t size);
/* [..] integer ids → [.., features]; padding_idx −1: none. */
PROA_API proa_layer *proa_embedding_layer(int64_t count, int64_t features, int64_t padding_idx);

typedef struct proa_rnn_layer_opts {
    char _;
    int64_t layers; /* 1 */
    bool bidirectional;
    double dropout;
    bool time_major; /* [T, N, C] instead of [N, T, C] */
} proa_rnn_layer_opts;
/* [N, T, in] → [N, T, hidden · directions]: proa_forward returns the output sequence, proa_rnn_forward the
 * states, too. Gates in Paddle's order. */
PROA_API proa_layer *proa_rnn_layer_opt(proa_rnn_mode mode, int64_t in, int64_t hidden,
                                        proa_rnn_layer_opts opts);
#define PROA_X_rnn_layer_(mode, in, hidden, ...) \
    proa_rnn_layer_opt((mode), (in), (hidden), PROA_LITERAL(proa_rnn_layer_opts){._ = 0, __VA_ARGS__})
#define proa_lstm_layer(...) PROA_X_rnn_layer_(PROA_RNN_MODE_LSTM, __VA_ARGS__, )
#define proa_gru_layer(...) PROA_X_rnn_layer_(PROA_RNN_MODE_GRU, __VA_ARGS__, )
typedef struct proa_rnn_output {
    proa_tensor *out, *h, *c; /* c: PROA_NONE unless LSTM */
} proa_rnn_output;
/* h, c: initial states [layers·directions, N, hidden] or PROA_NONE; lengths: [N] integers or PROA_NONE. */
PROA_API proa_rnn_output proa_rnn_forward(proa_layer *rnn, proa_tensor *x, proa_tensor *h, proa_tensor *c,
                                          proa_tensor *lengths);

typedef struct proa_attention_layer_opts {
    char _;
    bool causal;
    double dropout;
    bool no_bias;
} proa_attention_layer_opts;
/* Multi-head self-attention on [N, T, features]; parameters q_proj, k_proj, v_proj, out_proj as Paddle's. */
PROA_API proa_layer *proa_attention_layer_opt(int64_t features, int64_t heads,
                                              proa_attention_layer_opts opts);
#define proa_attention_layer(...) PROA_X_attention_layer_(__VA_ARGS__, )
#define PROA_X_attention_layer_(features, heads, ...) \
    proa_attention_layer_opt((features), (heads),     \
                             PROA_LITERAL(proa_attention_layer_opts){._ = 0, __VA_ARGS__})

typedef struct proa_transformer_layer_opts {
    char _;
    bool causal;
    double dropout;
    bool norm_first; /* pre-norm */
    bool relu;       /* instead of GELU */
} proa_transformer_layer_opts;
/* One encoder block: self-attention and feed-forward, each with residual and layer norm. */
PROA_API proa_layer *proa_transformer_layer_opt(int64_t features, int64_t heads, int64_t feed_forward,
                                                proa_transformer_layer_opts opts);
#define proa_transformer_layer(...) PROA_X_transformer_layer_(__VA_ARGS__, )
#define PROA_X_transformer_layer_(features, heads, feed_forward, ...) \
    proa_transformer_layer_opt((features), (heads), (feed_forward),   \
                               PROA_LITERAL(proa_transformer_layer_opts){._ = 0, __VA_ARGS__})

#ifdef __cplusplus
}
#endif
#endif
