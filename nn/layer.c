/* Base of all layers: parameters, buffers, children, training mode, state dict. Walks layer trees
 * recursively, which are as deep as a model's source code, not as its graph. May use core, ops and
 * autograd. */
#include "nn/layer.h"

#include "initializers.h"

#include <stdatomic.h>

/* ---- names ----------------------------------------------------------------------------- */

/* Paddle names parameters by type and a count over the process: linear_0.w_0, conv2d_3.b_0. */
enum { MAX_TYPES = 64 };
static struct {
    atomic_flag busy;
    const char *type[MAX_TYPES];
    int64_t count[MAX_TYPES];
} names = {.busy = ATOMIC_FLAG_INIT};

static int64_t next_number(const char *type)
{
    while (atomic_flag_test_and_set_explicit(&names.busy, memory_order_acquire)) {
    }
    int i = 0;
    while (i < MAX_TYPES - 1 && names.type[i] && strcmp(names.type[i], type) != 0) i++;
    names.type[i] = type;
    int64_t n = names.count[i]++;
    atomic_flag_clear_explicit(&names.busy, memory_order_release);
    return n;
}

/* ---- life ------------------------------------------------------------------------------ */

proa_layer *proa_layer_new(size_t bytes, const char *type,
                           proa_tensor *(*forward)(proa_layer *, proa_tensor *))
{
    if (proa_error()) return NULL;
    if (bytes < sizeof(proa_layer) || !type) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  "layer_new: a layer needs a type and at least %zu bytes, got %zu", sizeof(proa_layer),
                  bytes);
        return NULL;
    }
    proa_layer *layer = proa__calloc(bytes);
    if (!layer) return NULL;
    layer->type = type;
    layer->forward = forward;
    layer->number = -1;
    return layer;
}

static void free_tree(proa_layer *layer)
{
    if (layer->release) layer->release(layer);
    for (int32_t i = 0; i < layer->n_parameters; i++) {
        proa__free(layer->parameters[i].name);
        proa_release(layer->parameters[i].tensor);
    }
    for (int32_t i = 0; i < layer->n_children; i++) {
        proa__free(layer->child_names[i]);
        free_tree(layer->children[i]);
    }
    proa__free(layer->parameters);
    proa__free(layer->children);
    proa__free(layer->child_names);
    proa__free(layer);
}

void proa_layer_free(proa_layer *layer)
{
    if (layer && !layer->owned) free_tree(layer); /* a child goes with its parent */
}

/* True if `inside` is `layer` or contains it. */
static bool holds(const proa_layer *inside, const proa_layer *layer)
{
    if (inside == layer) return true;
    for (int32_t i = 0; i < inside->n_children; i++)
        if (holds(inside->children[i], layer)) return true;
    return false;
}

proa_layer *proa_layer_add(proa_layer *parent, const char *name, proa_layer *child)
{
    /* The child is not freed: it has an owner already, or it owns the parent. */
    if (parent && child && child->owned) {
        proa_fail(
            PROA_ERR_INVALID_ARGUMENT,
            "layer_add: child '%s', a %s, has a parent already; a layer has one owner: make another, or "
            "call this one from forward",
            name ? name : "", child->type);
        return NULL;
    }
    if (parent && child && holds(child, parent)) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "layer_add: child '%s', a %s, would contain itself",
                  name ? name : "", child->type);
        return NULL;
    }
    if (proa_error() || !parent || !child || !name) {
        if (!proa_error())
            proa_fail(PROA_ERR_INVALID_ARGUMENT, "layer_add: parent, name and child must be given");
        proa_layer_free(child);
        return NULL;
    }
    size_t n = (size_t)parent->n_children + 1;
    proa_layer **children = proa__realloc(parent->children, n * sizeof *children);
    if (children) parent->children = children;
    char **child_names = children ? proa__realloc(parent->child_names, n * sizeof *child_names) : NULL;
    if (child_names) parent->child_names = child_names;
    char *copy = child_names ? proa__strdup(name) : NULL;
    if (!copy) {
        proa_layer_free(child);
        return NULL;
    }
    child->owned = true;
    parent->children[parent->n_children] = child;
    parent->child_names[parent->n_children++] = copy;
    return child;
}

/* Paddle's wire name of the n-th weight or bias of a layer: weights w_0, w_1, …; biases b_0, …. */
static proa_status name_parameter(proa_layer *layer, const char *name, proa_tensor *t)
{
    if (layer->number < 0) layer->number = next_number(layer->type);
    bool is_bias = strstr(name, "bias") != NULL;
    int same = 0;
    for (int32_t i = 0; i < layer->n_parameters; i++)
        same += (strstr(layer->parameters[i].name, "bias") != NULL) == is_bias;
    char text[160];
    snprintf(text, sizeof text, "%s_%lld.%c_%d", layer->type, (long long)layer->number, is_bias ? 'b' : 'w',
             same);
    return proa_set_name(t, text);
}

static proa_tensor *add_tensor(proa_layer *layer, const char *name, proa_ints shape, proa_init init,
                               bool is_buffer)
{
    if (proa_error()) return NULL;
    if (!layer || !name) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "layer_parameter: layer and name must be given");
        return NULL;
    }
    PROA_SCOPED;
    if (init.kind == PROA_INIT_DEFAULT && (is_buffer || strstr(name, "bias")))
        init.kind = (proa_init_kind)PROA__INIT_OF_BIAS;
    proa_tensor *t = proa_initialized(shape, proa_default_dtype(), init);
    if (!t || name_parameter(layer, name, t) != PROA_OK) return NULL;
    if (!is_buffer && proa_set_stop_gradient(t, false) != PROA_OK) return NULL;
    size_t n = (size_t)layer->n_parameters + 1;
    proa_parameter *list = proa__realloc(layer->parameters, n * sizeof *list);
    if (!list) return NULL;
    layer->parameters = list;
    char *copy = proa__strdup(name);
    if (!copy) return NULL;
    list[layer->n_parameters++] = (proa_parameter){copy, proa_keep(t), is_buffer};
    return t;
}

proa_tensor *proa_layer_parameter(proa_layer *layer, const char *name, proa_ints shape, proa_init init)
{
    return add_tensor(layer, name, shape, init, false);
}

proa_tensor *proa_layer_buffer(proa_layer *layer, const char *name, proa_ints shape, proa_init init)
{
    return add_tensor(layer, name, shape, init, true);
}

/* ---- use ------------------------------------------------------------------------------- */

proa_tensor *proa_forward(proa_layer *layer, proa_tensor *x)
{
    if (proa_error()) return NULL;
    if (!layer || !layer->forward || !x) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  !layer ? "forward: layer is NULL: did making it fail?"
                  : !x   ? "forward: x is NULL"
                         : "forward: this layer has no forward function of one input");
        return NULL;
    }
    PROA_SCOPED;
    proa_tensor *y = layer->forward(layer, x);
    /* an input returned unchanged stays in its own scope */
    return y == x ? y : proa_return(y);
}

static void set_eval(proa_layer *layer, bool eval)
{
    if (!layer) return;
    layer->eval = eval;
    for (int32_t i = 0; i < layer->n_children; i++) set_eval(layer->children[i], eval);
}

void proa_train(proa_layer *layer) { set_eval(layer, false); }
void proa_eval(proa_layer *layer) { set_eval(layer, true); }

static int64_t count_tensors(const proa_layer *layer, bool buffers)
{
    int64_t n = 0;
    for (int32_t i = 0; i < layer->n_parameters; i++) n += buffers || !layer->parameters[i].is_buffer;
    for (int32_t i = 0; i < layer->n_children; i++) n += count_tensors(layer->children[i], buffers);
    return n;
}

static void gather_parameters(const proa_layer *layer, proa_tensors *list)
{
    for (int32_t i = 0; i < layer->n_parameters; i++)
        if (!layer->parameters[i].is_buffer) list->at[list->count++] = layer->parameters[i].tensor;
    for (int32_t i = 0; i < layer->n_children; i++) gather_parameters(layer->children[i], list);
}

proa_tensors proa_parameters(proa_layer *layer)
{
    proa_tensors list = {0, NULL};
    if (proa_error()) return list;
    if (!layer) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "parameters: layer is NULL: did making it fail?");
        return list;
    }
    list.at = proa_scope_alloc((size_t)(count_tensors(layer, false) + 1) * sizeof *list.at);
    if (list.at) gather_parameters(layer, &list);
    return list;
}

int64_t proa_parameter_count(proa_layer *layer)
{
    int64_t n = 0;
    for (int32_t i = 0; layer && i < layer->n_parameters; i++)
        if (!layer->parameters[i].is_buffer) n += proa_numel(layer->parameters[i].tensor);
    for (int32_t i = 0; layer && i < layer->n_children; i++) n += proa_parameter_count(layer->children[i]);
    return n;
}

/* "prefix.name", with memory of the scope. */
static const char *join(const char *prefix, const char *name)
{
    size_t a = strlen(prefix), b = strlen(name);
    char *text = proa_scope_alloc(a + b + 2);
    if (!text) return NULL;
    memcpy(text, prefix, a);
    if (a) text[a++] = '.';
    memcpy(text + a, name, b + 1);
    return text;
}

static proa_status gather_state(const proa_layer *layer, const char *prefix, proa_named_list *list)
{
    for (int32_t i = 0; i < layer->n_parameters; i++) {
        const proa_parameter *p = &layer->parameters[i];
        const char *name = join(prefix, p->name);
        if (!name) return proa_error();
        list->at[list->count++] = (proa_named){name, p->tensor, p->is_buffer};
    }
    for (int32_t i = 0; i < layer->n_children; i++) {
        const char *name = join(prefix, layer->child_names[i]);
        if (!name) return proa_error();
        PROA_TRY(gather_state(layer->children[i], name, list));
    }
    return PROA_OK;
}

proa_named_list proa_layer_state(proa_layer *layer)
{
    proa_named_list none = {0, NULL}, list = none;
    if (proa_error()) return none;
    if (!layer) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "layer_state: layer is NULL: did making it fail?");
        return none;
    }
    list.at = proa_scope_alloc((size_t)(count_tensors(layer, true) + 1) * sizeof *list.at);
    return list.at && gather_state(layer, "", &list) == PROA_OK ? list : none;
}

/* ---- sequential ------------------------------------------------------------------------ */

static proa_tensor *sequential_forward(proa_layer *self, proa_tensor *x)
{
    for (int32_t i = 0; i < self->n_children && x; i++) {
        proa_tensor *y = proa_forward(self->children[i], x);
        if (i > 0 && y != x && x->scope_slot) proa_drop(x); /* the tape retains what backward needs */
        x = y;
    }
    return x;
}

/* Whether the list names its layer i before i. */
static bool named_before(proa_layer *const *layers, int64_t i)
{
    for (int64_t k = 0; k < i; k++)
        if (layers[k] == layers[i]) return true;
    return false;
}

proa_layer *proa__layer_of(proa_layer *self, const char *who, int64_t n, proa_layer *const *layers)
{
    if (!proa_error() && (n < 0 || (n && !layers)))
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: `layers` is NULL, expected an array of %lld layers", who,
                  (long long)n);
    bool made = self && proa_error() == PROA_OK;
    for (int64_t i = 0; i < n && layers; i++) {
        char name[24];
        snprintf(name, sizeof name, "%lld", (long long)i);
        if (made && layers[i] && proa_layer_add(self, name, layers[i])) continue;
        if (!layers[i] && !proa_error())
            proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: layer %lld is NULL", who, (long long)i);
        /* a rejected layer belongs to its parent, or layer_add has freed it */
        if (!made && !named_before(layers, i)) proa_layer_free(layers[i]);
        made = false;
    }
    if (made) return self;
    proa_layer_free(self);
    return NULL;
}

proa_layer *proa_sequential_of(int64_t n, proa_layer *const *layers)
{
    proa_layer *self = proa_layer_new(sizeof *self, "sequential", sequential_forward);
    return proa__layer_of(self, "sequential", n, layers);
}
