/* Loads the model that a config names, quantizes it or converts it to bfloat16 if the config says so,
 * optimizes it by the config's passes, and copies the weights to its device. A predictor and its clones share
 * the result. May use core, jit and io. */
#include "runtime.h"

#include "core/device.h"
#include "jit/ir/program.h"
#include "jit/passes/passes.h"

#include <proa/extension.h>
#include <proa/io.h>

/* ---- reading ---------------------------------------------------------------------------- */

static bool is_file(const char *path)
{
    FILE *f = *path ? fopen(path, "rb") : NULL;
    if (f) fclose(f);
    return f != NULL;
}

static proa_program *read_files(const proa_config *c)
{
    const char *model = proa_config_get_text(c, PROA_CONFIG_MODEL_FILE);
    const char *params = proa_config_get_text(c, PROA_CONFIG_PARAMS_FILE);
    if (!is_file(model)) {
        proa_fail(PROA_ERR_NO_FILE, "create_predictor: cannot open the model file '%s'", model);
        return NULL;
    }
    bool there = is_file(params);
    proa_program *p = proa_program_load_files(model, there ? params : NULL);
    if (p || there || proa_error() != PROA_ERR_NOT_FOUND) return p;
    proa_clear_error();
    proa_fail(PROA_ERR_NO_FILE, "create_predictor: cannot open the parameter file '%s' of the model '%s'",
              params, model);
    return NULL;
}

static proa_program *read_model(const proa_config *c)
{
    if (proa_load_linked_extensions() != PROA_OK) return NULL;
    const char *folder = proa_config_get_text(c, PROA_CONFIG_MODEL_DIR);
    if (c->model) return proa_program_load_memory(c->model, c->model_bytes, c->params, c->params_bytes);
    if (*folder) return proa_program_load(folder);
    if (*proa_config_get_text(c, PROA_CONFIG_MODEL_FILE)) return read_files(c);
    proa_fail(PROA_ERR_INVALID_ARGUMENT,
              "create_predictor: the config names no model: set model and parameter files, a folder, or "
              "buffers");
    return NULL;
}

/* ---- inputs and outputs ----------------------------------------------------------------- */

/* Appends the LoD offsets of the outputs to the program's outputs. */
static proa_status yield_sequences(proa__model *m)
{
    proa_program *p = m->program;
    int64_t n = proa_program_output_count(p), total = n;
    m->n_outputs = (int32_t)n;
    m->first_lod = proa__calloc(((size_t)n + 1) * sizeof *m->first_lod);
    m->n_lod = proa__calloc(((size_t)n + 1) * sizeof *m->n_lod);
    proa_tensor **all = proa_scope_alloc(((size_t)n * (1 + PROA__LOD_MAX) + 1) * sizeof *all);
    if (!m->first_lod || !m->n_lod || !all) return proa_error();
    for (int64_t i = 0; i < n; i++) all[i] = (proa_tensor *)(uintptr_t)proa_program_output(p, i);
    for (int64_t i = 0; i < n; i++) {
        const proa_var *v = proa__root(p)->outputs[i];
        m->first_lod[i] = -1;
        if (v->persistable) continue;
        proa_tensors levels = proa_variable_lod(p, all[i]);
        PROA_TRY(proa_error());
        m->n_lod[i] = (int32_t)levels.count;
        if (levels.count) m->first_lod[i] = (int32_t)total;
        for (int64_t k = 0; k < levels.count; k++) all[total++] = levels.at[k];
    }
    return total == n ? PROA_OK : proa_program_set_outputs(p, (proa_tensors){total, all});
}

/* Copies the outputs' names before passes may replace the variables. */
static proa_status name_outputs(proa__model *m)
{
    m->output_names = proa__calloc(((size_t)m->n_outputs + 1) * sizeof *m->output_names);
    if (!m->output_names) return proa_error();
    for (int32_t i = 0; i < m->n_outputs; i++) {
        m->output_names[i] = proa__strdup(proa__root(m->program)->outputs[i]->name);
        if (!m->output_names[i]) return proa_error();
    }
    return PROA_OK;
}

/* Lists the model's inputs and outputs, and maps each program input to a handle's tensor or to one of its LoD
 * levels. */
static proa_status list_ends(proa__model *m)
{
    const proa_block *root = proa__root(m->program);
    size_t n = (size_t)root->n_inputs;
    m->n_feeds = root->n_inputs;
    m->feeds = proa__calloc((n + 1) * sizeof *m->feeds);
    m->inputs = proa__calloc((n + 1) * sizeof *m->inputs);
    m->outputs = proa__calloc(((size_t)m->n_outputs + 1) * sizeof *m->outputs);
    if (!m->feeds || !m->inputs || !m->outputs) return proa_error();
    for (int32_t i = 0; i < root->n_inputs; i++) {
        const proa_var *v = root->inputs[i];
        if (v->is_lod) continue;
        for (int32_t k = 0; k < root->n_inputs; k++)
            for (int32_t level = 0; v->lod && level < v->lod_level; level++)
                if (v->lod[level] == root->inputs[k]) m->feeds[k] = (proa__feed){m->n_inputs, level};
        m->feeds[i] = (proa__feed){m->n_inputs, -1};
        m->inputs[m->n_inputs++] = v->handle;
    }
    for (int32_t i = 0; i < m->n_outputs; i++) m->outputs[i] = root->outputs[i]->handle;
    return PROA_OK;
}

/* ---- passes ----------------------------------------------------------------------------- */

/* Adds the pass int8 to *chosen. */
static proa_status add_int8(const char **chosen)
{
    const char *names = *chosen ? *chosen : proa_get_flag("passes");
    size_t bytes = names ? strlen(names) + sizeof ",int8" : 0;
    char *text = names ? proa_scope_alloc(bytes) : NULL;
    if (!text) return proa_error();
    snprintf(text, bytes, "%s,int8", *names ? names : "none");
    *chosen = text;
    return PROA_OK;
}

/* Sets *chosen to the comma-separated passes of the config; NULL: those of FLAGS_passes. */
static proa_status choose_passes(const proa_config *c, const char **chosen)
{
    *chosen = NULL;
    if (!c->numbers[PROA_CONFIG_IR_OPTIM]) { /* constant folding alone, so that clones share constants */
        *chosen = "fold";
        return PROA_OK;
    }
    if (!c->passes_set) return PROA_OK;
    const proa__names *list = &c->lists[PROA_CONFIG_PASSES];
    size_t bytes = 16;
    for (int64_t i = 0; i < list->count; i++) bytes += strlen(list->at[i]) + 1;
    char *text = proa_scope_alloc(bytes);
    if (!text) return proa_error();
    strcpy(text, "none");
    for (int64_t i = 0; i < list->count; i++) {
        const char *name;
        for (int64_t k = 0; (name = proa_pass_name(k)) && strcmp(name, list->at[i]) != 0;) k++;
        if (name) strcat(strcat(text, ","), name); /* Paddle's other names have no effect */
    }
    *chosen = text;
    return PROA_OK;
}

static proa_status optimize(proa__model *m, const proa_config *c, bool quantized)
{
    const char *passes;
    PROA_TRY(choose_passes(c, &passes));
    PROA_TRY(proa__model_to_bfloat16(m->program, c, passes));
    if ((c->numbers[PROA_CONFIG_ONEDNN_INT8] || quantized) && c->numbers[PROA_CONFIG_IR_OPTIM])
        PROA_TRY(add_int8(&passes));
    proa__op_types int8 = proa__config_types(c, quantized ? PROA_CONFIG_QUANTIZER_OPS : PROA_CONFIG_INT8_OPS);
    if (!c->numbers[PROA_CONFIG_IR_DEBUG]) return proa__passes_run_int8(m->program, passes, int8);
    const char *was = proa_get_flag("dump_passes");
    bool dumped = was && strcmp(was, "0") != 0;
    PROA_TRY(proa_set_flag("dump_passes", "1"));
    proa_status status = proa__passes_run_int8(m->program, passes, int8);
    if (!dumped && status == PROA_OK) status = proa_set_flag("dump_passes", "0");
    return status;
}

/* ---- a model ---------------------------------------------------------------------------- */

/* Makes the dims of the program's inputs unknown that are so in another program's. */
static proa_status widen(proa_program *p, const proa_meta *inputs)
{
    const proa_block *root = proa__root(p);
    for (int32_t i = 0; i < root->n_inputs; i++) {
        const proa_tensor *h = root->inputs[i]->handle;
        bool same = h->ndim == inputs[i].ndim &&
                    !memcmp(h->shape, inputs[i].shape, sizeof *h->shape * (size_t)h->ndim);
        proa_ints shape = {inputs[i].ndim, inputs[i].shape, NULL, NULL};
        if (!same) PROA_TRY(proa_program_reshape_input(p, h, shape, PROA_NODTYPE));
    }
    return PROA_OK;
}

/* inputs: the dims of the program's inputs, or NULL for those of the file. */
static proa_status load(proa__model *m, const proa_config *c, const proa_meta *inputs)
{
    PROA_SCOPED;
    m->program = read_model(c);
    if (!m->program) return proa_error();
    if (inputs) PROA_TRY(widen(m->program, inputs));
    if (proa_program_output_count(m->program) == 0)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "create_predictor: the program has no outputs: save it for inference "
                         "(paddle.jit.save, paddle.static.save_inference_model)");
    PROA_TRY(yield_sequences(m));
    PROA_TRY(name_outputs(m));
    bool quantized;
    PROA_TRY(proa__model_quantize(m->program, c, &quantized));
    PROA_TRY(optimize(m, c, quantized));
    PROA_TRY(list_ends(m));
    m->threads = (int)c->numbers[PROA_CONFIG_CPU_THREADS];
    m->profile = c->numbers[PROA_CONFIG_PROFILE] != 0;
    if (!c->device) return PROA_OK;
    m->device = proa__strdup(c->device);
    return m->device ? proa_program_to_device(m->program, m->device) : proa_error();
}

/* Whether the model can be read from files once more. A quantizer's samples are given once. */
static bool is_in_files(const proa_config *c) { return !c->model && !c->n_samples; }

static proa__model *model_of(const proa_config *c, const proa_meta *inputs)
{
    proa__model *m = proa__calloc(sizeof *m);
    if (!m) return NULL;
    atomic_init(&m->refs, 1);
    proa_program *open = proa_program_open(NULL); /* passes run ops eagerly, also inside a capture */
    int chosen = proa_device_use(PROA_CPU);
    proa_status status = load(m, c, inputs);
    if (status == PROA_OK && is_in_files(c)) {
        m->config = proa_config_copy(c);
        status = proa_error();
    }
    proa_device_use(chosen);
    proa_program_open(open);
    if (status == PROA_OK) return m;
    proa__model_release(m);
    return NULL;
}

proa__model *proa__model_new(const proa_config *c) { return model_of(c, NULL); }

proa__model *proa__model_widened(const proa__model *m, proa_tensor *const *fed)
{
    const proa_block *root = proa__root(m->program);
    proa_meta *inputs = proa_scope_alloc(((size_t)m->n_feeds + 1) * sizeof *inputs);
    bool differ = false, may = inputs && m->config;
    for (int32_t i = 0; may && i < m->n_feeds; i++) {
        inputs[i] = proa_meta_of(root->inputs[i]->handle);
        may = fed[i]->ndim == inputs[i].ndim;
        for (int d = 0; may && d < inputs[i].ndim; d++) {
            if (inputs[i].shape[d] < 0 || inputs[i].shape[d] == fed[i]->shape[d]) continue;
            inputs[i].shape[d] = -1;
            differ = true;
        }
    }
    return may && differ ? model_of(m->config, inputs) : NULL;
}

void proa__model_release(proa__model *m)
{
    if (!m || atomic_fetch_sub(&m->refs, 1) != 1) return;
    proa_program_free(m->program);
    for (int32_t i = 0; m->output_names && i < m->n_outputs; i++) proa__free(m->output_names[i]);
    proa__free(m->output_names);
    proa__free(m->inputs);
    proa__free(m->outputs);
    proa__free(m->feeds);
    proa__free(m->first_lod);
    proa__free(m->n_lod);
    proa__free(m->device);
    proa_config_free(m->config);
    proa__free(m);
}
