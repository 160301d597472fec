/* Linear and embedding layers. Uses nn/layer.h. */
#include "core/device.h"
#include "nn/layer.h"

typedef struct linear {
    proa_layer base;
    proa_tensor *weight, *bias; /* borrowed from the base's list; bias PROA_NONE without */
} linear;

static proa_tensor *linear_forward(proa_layer *self, proa_tensor *x)
{
    const linear *l = (const linear *)self;
    return proa_linear(x, l->weight, l->bias);
}

proa_layer *proa_linear_layer_opt(int64_t in, int64_t out, proa_linear_layer_opts opts)
{
    linear *l = (linear *)proa_layer_new(sizeof *l, "linear", linear_forward);
    if (!l) return NULL;
    l->weight = proa_layer_parameter(&l->base, "weight", PROA_SHAPE(in, out), opts.weight);
    l->bias = opts.no_bias ? proa_none : proa_layer_parameter(&l->base, "bias", PROA_SHAPE(out), opts.bias);
    return proa__layer_done(&l->base);
}

typedef struct embedding {
    proa_layer base;
    proa_tensor *weight;
    int64_t padding_idx;
} embedding;

static proa_tensor *embedding_forward(proa_layer *self, proa_tensor *x)
{
    const embedding *e = (const embedding *)self;
    return proa_embedding(x, e->weight, .padding_idx = e->padding_idx == 0 ? PROA_ZERO : e->padding_idx);
}

proa_layer *proa_embedding_layer(int64_t count, int64_t features, int64_t padding_idx)
{
    embedding *e = (embedding *)proa_layer_new(sizeof *e, "embedding", embedding_forward);
    if (!e) return NULL;
    e->padding_idx = padding_idx;
    /* Paddle's Embedding draws from N(0, 1) */
    e->weight = proa_layer_parameter(&e->base, "weight", PROA_SHAPE(count, features),
                                     (proa_init){.kind = PROA_INIT_NORMAL});
    if (e->weight && padding_idx >= 0 && padding_idx < count) {
        proa_tensor row = proa__shallow_copy(e->weight); /* the padding row, to fill it */
        row.data += padding_idx * row.strides[0];
        row.ndim = 1, row.numel = row.shape[0] = features, row.strides[0] = row.strides[1];
        (void)proa__fill(&row, NULL);
    }
    return proa__layer_done(&e->base);
}
