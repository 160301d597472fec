/* Multi-head self-attention and the transformer block (Vaswani et al., 2017), with the parameters and the
 * order of operations of Paddle's MultiHeadAttention and TransformerEncoderLayer. Uses nn/layer.h. */
#include "nn/layer.h"

typedef struct attention {
    proa_layer base;
    int64_t features, heads;
    double dropout;
    bool causal;
} attention;

/* [N, T, features] → [N, T, heads, features / heads] */
static proa_tensor *project(const attention *a, proa_layer *layer, proa_tensor *x)
{
    return proa_reshape(proa_forward(layer, x), PROA_SHAPE(0, 0, a->heads, a->features / a->heads));
}

static proa_tensor *attention_forward(proa_layer *self, proa_tensor *x)
{
    const attention *a = (const attention *)self;
    if (proa_ndim(x) != 3 || proa_dim(x, 2) != a->features) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "attention_layer: x is %s; expected [N, T, %lld]",
                  proa__tensor_text(x), (long long)a->features);
        return NULL;
    }
    proa_tensor *q = project(a, self->children[0], x), *k = project(a, self->children[1], x);
    proa_tensor *v = project(a, self->children[2], x);
    proa_tensor *mixed = proa_scaled_dot_product_attention(q, k, v, proa_none, .dropout_p = a->dropout,
                                                           .is_causal = a->causal, .no_training = self->eval)
                             .out;
    return proa_forward(self->children[3], proa_reshape(mixed, PROA_SHAPE(0, 0, a->features)));
}

proa_layer *proa_attention_layer_opt(int64_t features, int64_t heads, proa_attention_layer_opts opts)
{
    static const char *const names[] = {"q_proj", "k_proj", "v_proj", "out_proj"};
    if (proa_error()) return NULL;
    if (features < 1 || heads < 1 || features % heads) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  "attention_layer: heads is %lld, which must divide features (%lld)", (long long)heads,
                  (long long)features);
        return NULL;
    }
    if (!proa__is_probability("attention_layer", "dropout", opts.dropout)) return NULL;
    attention *a = (attention *)proa_layer_new(sizeof *a, "multi_head_attention", attention_forward);
    if (!a) return NULL;
    a->features = features;
    a->heads = heads;
    a->dropout = opts.dropout;
    a->causal = opts.causal;
    for (int i = 0; i < 4; i++)
        proa_layer_add(&a->base, names[i], proa_linear_layer(features, features, .no_bias = opts.no_bias));
    return proa__layer_done(&a->base);
}

/* ---- the block ------------------------------------------------------------------------- */

typedef struct transformer {
    proa_layer base;
    proa_layer *attention, *linear1, *linear2, *norm1, *norm2; /* borrowed: children */
    double dropout;
    bool norm_first, relu;
} transformer;

static proa_tensor *feed_forward(transformer *t, proa_tensor *x)
{
    proa_tensor *h = proa_forward(t->linear1, x);
    h = t->relu ? proa_relu(h) : proa_gelu(h);
    return proa_forward(t->linear2, proa__layer_dropout(&t->base, h, t->dropout));
}

static proa_tensor *transformer_forward(proa_layer *self, proa_tensor *x)
{
    transformer *t = (transformer *)self;
    proa_tensor *y = proa_forward(t->attention, t->norm_first ? proa_forward(t->norm1, x) : x);
    x = proa_add(x, proa__layer_dropout(self, y, t->dropout));
    if (!t->norm_first) x = proa_forward(t->norm1, x);
    y = feed_forward(t, t->norm_first ? proa_forward(t->norm2, x) : x);
    x = proa_add(x, proa__layer_dropout(self, y, t->dropout));
    return t->norm_first ? x : proa_forward(t->norm2, x);
}

proa_layer *proa_transformer_layer_opt(int64_t features, int64_t heads, int64_t feed_forward_size,
                                       proa_transformer_layer_opts opts)
{
    if (proa_error() || !proa__is_probability("transformer_layer", "dropout", opts.dropout)) return NULL;
    transformer *t = (transformer *)proa_layer_new(sizeof *t, "transformer", transformer_forward);
    if (!t) return NULL;
    t->dropout = opts.dropout;
    t->norm_first = opts.norm_first;
    t->relu = opts.relu;
    t->attention =
        proa_layer_add(&t->base, "self_attn",
                       proa_attention_layer(features, heads, .causal = opts.causal, .dropout = opts.dropout));
    t->linear1 = proa_layer_add(&t->base, "linear1", proa_linear_layer(features, feed_forward_size));
    t->linear2 = proa_layer_add(&t->base, "linear2", proa_linear_layer(feed_forward_size, features));
    t->norm1 = proa_layer_add(&t->base, "norm1", proa_layer_norm_layer(features));
    t->norm2 = proa_layer_add(&t->base, "norm2", proa_layer_norm_layer(features));
    return proa__layer_done(&t->base);
}
