/* Layers with parallel branches: a residual connection, and branches whose results are concatenated. Uses
 * nn/layer.h. */
#include "nn/layer.h"

typedef struct residual {
    proa_layer base;
    proa_layer *body, *shortcut; /* children "0" and "1"; shortcut NULL: x itself */
} residual;

static proa_tensor *residual_forward(proa_layer *self, proa_tensor *x)
{
    const residual *r = (const residual *)self;
    return proa_add(proa_forward(r->body, x), r->shortcut ? proa_forward(r->shortcut, x) : x);
}

proa_layer *proa_residual_layer(proa_layer *body, proa_layer *shortcut)
{
    residual *r = (residual *)proa_layer_new(sizeof *r, "residual", residual_forward);
    if (r) r->body = body, r->shortcut = shortcut;
    return proa__layer_of(r ? &r->base : NULL, "residual_layer", shortcut ? 2 : 1,
                          (proa_layer *[]){body, shortcut});
}

typedef struct branches {
    proa_layer base;
    int64_t axis;
} branches;

static proa_tensor *branches_forward(proa_layer *self, proa_tensor *x)
{
    const branches *b = (const branches *)self;
    proa_tensors ways = {self->n_children,
                         proa_scope_alloc((size_t)self->n_children * sizeof(proa_tensor *))};
    if (!ways.at) return NULL;
    for (int32_t i = 0; i < self->n_children; i++) {
        ways.at[i] = proa_forward(self->children[i], x);
        if (!ways.at[i]) return NULL;
    }
    return proa_concat(ways, .axis = b->axis == 0 ? PROA_ZERO : b->axis);
}

proa_layer *proa_branches_layer_of(int64_t axis, int64_t n, proa_layer *const *layers)
{
    branches *b = (branches *)proa_layer_new(sizeof *b, "branches", branches_forward);
    if (b) b->axis = axis;
    return proa__layer_of(b ? &b->base : NULL, "branches_layer", n, layers);
}
