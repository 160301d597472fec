/* proa_export: captures a layer in inference mode as a program and writes it as .pdmodel and .pdiparams. May
 * use core, nn, jit's programs and io. */
#include "core/internal.h"

#include <proa/autograd.h>
#include <proa/io.h>

/* ---- every layer's mode, so that exporting changes nothing ------------------------------ */

static int64_t count_layers(const proa_layer *layer)
{
    int64_t n = 1;
    for (int32_t i = 0; i < layer->n_children; i++) n += count_layers(layer->children[i]);
    return n;
}

/* Swaps the training flag of the layer and of each sublayer with an entry of `modes`; returns the entry
 * behind the last one used. */
static bool *swap_modes(proa_layer *layer, bool *modes)
{
    bool mode = layer->eval;
    layer->eval = *modes;
    *modes++ = mode;
    for (int32_t i = 0; i < layer->n_children; i++) modes = swap_modes(layer->children[i], modes);
    return modes;
}

static proa_tensors forward(proa_tensors inputs, void *context)
{
    proa_tensors out = {0, NULL};
    proa_tensor **at = proa_scope_alloc(sizeof *at);
    if (!at) return out;
    at[0] = proa_forward(context, inputs.at[0]);
    if (at[0]) out = (proa_tensors){1, at};
    return out;
}

proa_status proa_export(proa_layer *layer, const char *prefix, proa_input_spec input)
{
    PROA_TRY(proa_error());
    if (!layer || !prefix)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "export: layer and prefix must be given");
    PROA_SCOPED;
    PROA_NO_GRAD;
    int64_t n = count_layers(layer);
    bool *modes = proa_scope_alloc((size_t)n * sizeof *modes);
    if (!modes) return proa_error();
    for (int64_t i = 0; i < n; i++) modes[i] = true;
    swap_modes(layer, modes);
    proa_program *p = proa_capture(forward, &input, 1, layer);
    swap_modes(layer, modes);
    if (!p) return proa_error();
    proa_status status = proa_program_save(p, prefix);
    proa_program_free(p);
    return status;
}
