/* Implements proa_config, a predictor's settings: numbers, texts and lists of names by enum, the model's
 * location, and the device. May use core, and jit's table of passes. */
#include "runtime.h"

#include "jit/passes/passes.h"

static const int64_t defaults[PROA_CONFIG_NUMBER_COUNT] = {
#define PROA_X(NAME, fallback, meaning) [PROA_CONFIG_##NAME] = (fallback),
    PROA_CONFIG_NUMBERS(PROA_X)
#undef PROA_X
};

/* ---- lists of names --------------------------------------------------------------------- */

static void clear_names(proa__names *list)
{
    for (int64_t i = 0; i < list->count; i++) proa__free(list->at[i]);
    proa__free(list->at);
    *list = (proa__names){0};
}

static proa_status insert_name(proa__names *list, int64_t at, const char *name)
{
    if (list->count == list->capacity) {
        int64_t capacity = list->capacity * 2 + 16;
        char **grown = proa__realloc(list->at, (size_t)capacity * sizeof *grown);
        if (!grown) return proa_error();
        list->at = grown;
        list->capacity = capacity;
    }
    char *copy = proa__strdup(name);
    if (!copy) return proa_error();
    if (at < 0) at = 0;
    if (at > list->count) at = list->count;
    memmove(list->at + at + 1, list->at + at, (size_t)(list->count - at) * sizeof *list->at);
    list->at[at] = copy;
    list->count++;
    return PROA_OK;
}

static proa_status copy_names(proa__names *to, const proa__names *from)
{
    for (int64_t i = 0; i < from->count; i++) PROA_TRY(insert_name(to, i, from->at[i]));
    return PROA_OK;
}

const char *proa_pass_name(int64_t i)
{
    for (int64_t k = 0; proa__pass_table[k].name; k++)
        if (!proa__pass_table[k].asked && i-- == 0) return proa__pass_table[k].name;
    return NULL;
}

/* ---- making and freeing ----------------------------------------------------------------- */

proa_config *proa_config_new(void)
{
    if (proa_error() != PROA_OK) return NULL;
    proa_config *c = proa__calloc(sizeof *c);
    if (!c) return NULL;
    memcpy(c->numbers, defaults, sizeof defaults);
    const char *name;
    for (int64_t i = 0; (name = proa_pass_name(i)); i++)
        if (insert_name(&c->lists[PROA_CONFIG_PASSES], i, name) != PROA_OK) {
            proa_config_free(c);
            return NULL;
        }
    return c;
}

static void clear_samples(proa_config *c)
{
    for (int64_t i = 0; i < c->n_samples; i++) {
        for (int64_t k = 0; k < c->samples[i].count; k++) proa_release(c->samples[i].at[k]);
        proa__free(c->samples[i].at);
    }
    proa__free(c->samples);
    c->samples = NULL;
    c->n_samples = 0;
}

void proa_config_free(proa_config *c)
{
    if (!c) return;
    clear_samples(c);
    for (int i = 0; i < PROA_CONFIG_TEXT_COUNT; i++) proa__free(c->texts[i]);
    for (int i = 0; i < PROA_CONFIG_LIST_COUNT; i++) clear_names(&c->lists[i]);
    proa__free(c->device);
    proa__free(c->model);
    proa__free(c->params);
    proa__free(c);
}

static proa_status copy_text(char **to, const char *from)
{
    char *copy = from ? proa__strdup(from) : NULL;
    if (from && !copy) return proa_error();
    proa__free(*to);
    *to = copy;
    return PROA_OK;
}

static proa_status copy_bytes(char **to, size_t *n, const void *from, size_t bytes)
{
    char *copy = from ? proa__alloc(bytes + 1) : NULL;
    if (from && !copy) return proa_error();
    if (from && bytes) memcpy(copy, from, bytes);
    proa__free(*to);
    *to = copy;
    *n = bytes;
    return PROA_OK;
}

static proa_status add_samples(proa_config *c, proa_tensors batch)
{
    proa__batch *grown = proa__realloc(c->samples, ((size_t)c->n_samples + 1) * sizeof *grown);
    if (!grown) return proa_error();
    c->samples = grown;
    proa__batch *to = &grown[c->n_samples];
    *to = (proa__batch){proa__alloc(((size_t)batch.count + 1) * sizeof *to->at), batch.count};
    if (!to->at) return proa_error();
    for (int64_t i = 0; i < batch.count; i++) to->at[i] = proa_retain(batch.at[i]);
    c->n_samples++;
    return PROA_OK;
}

static proa_status copy_into(proa_config *to, const proa_config *c)
{
    for (int64_t i = 0; i < c->n_samples; i++)
        PROA_TRY(add_samples(to, (proa_tensors){c->samples[i].count, c->samples[i].at}));
    memcpy(to->numbers, c->numbers, sizeof to->numbers);
    to->numbers[PROA_CONFIG_VALID] =
        true; /* as in Paddle: the copy of a config that a predictor took serves another */
    to->passes_set = c->passes_set;
    for (int i = 0; i < PROA_CONFIG_TEXT_COUNT; i++) PROA_TRY(copy_text(&to->texts[i], c->texts[i]));
    for (int i = 0; i < PROA_CONFIG_LIST_COUNT; i++) {
        clear_names(&to->lists[i]);
        PROA_TRY(copy_names(&to->lists[i], &c->lists[i]));
    }
    PROA_TRY(copy_text(&to->device, c->device));
    PROA_TRY(copy_bytes(&to->model, &to->model_bytes, c->model, c->model_bytes));
    return copy_bytes(&to->params, &to->params_bytes, c->params, c->params_bytes);
}

static proa_status check(const proa_config *c, const char *who)
{
    PROA_TRY(proa_error());
    return c ? PROA_OK : proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: the config is NULL", who);
}

proa_config *proa_config_copy(const proa_config *c)
{
    if (check(c, "config_copy") != PROA_OK) return NULL;
    proa_config *copy = proa_config_new();
    if (copy && copy_into(copy, c) == PROA_OK) return copy;
    proa_config_free(copy);
    return NULL;
}

/* ---- numbers and texts ------------------------------------------------------------------ */

static proa_status check_index(const char *who, int which, int count)
{
    if (which >= 0 && which < count) return PROA_OK;
    return proa_fail(PROA_ERR_OUT_OF_RANGE, "%s: setting %d; expected 0 to %d", who, which, count - 1);
}

proa_status proa_config_set(proa_config *c, proa_config_number which, int64_t value)
{
    PROA_TRY(check(c, "config_set"));
    PROA_TRY(check_index("config_set", (int)which, PROA_CONFIG_NUMBER_COUNT));
    c->numbers[which] = value;
    return PROA_OK;
}

int64_t proa_config_get(const proa_config *c, proa_config_number which)
{
    if (check(c, "config_get") != PROA_OK) return 0;
    if (check_index("config_get", (int)which, PROA_CONFIG_NUMBER_COUNT) != PROA_OK) return 0;
    return c->numbers[which];
}

proa_status proa_config_set_text(proa_config *c, proa_config_text which, const char *text)
{
    PROA_TRY(check(c, "config_set_text"));
    PROA_TRY(check_index("config_set_text", (int)which, PROA_CONFIG_TEXT_COUNT));
    if (!text) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "config_set_text: the text is NULL");
    return copy_text(&c->texts[which], text);
}

const char *proa_config_get_text(const proa_config *c, proa_config_text which)
{
    if (check(c, "config_get_text") != PROA_OK) return "";
    if (check_index("config_get_text", (int)which, PROA_CONFIG_TEXT_COUNT) != PROA_OK) return "";
    return c->texts[which] ? c->texts[which] : "";
}

proa_status proa_config_set_buffers(proa_config *c, const void *model, size_t model_bytes, const void *params,
                                    size_t params_bytes)
{
    PROA_TRY(check(c, "config_set_buffers"));
    if (!model || (!params && params_bytes))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "config_set_buffers: %s is NULL",
                         model ? "params" : "model");
    PROA_TRY(copy_bytes(&c->model, &c->model_bytes, model, model_bytes));
    return copy_bytes(&c->params, &c->params_bytes, params, params_bytes);
}

bool proa_config_has_buffers(const proa_config *c) { return c && c->model; }

/* ---- samples ---------------------------------------------------------------------------- */

proa_status proa_config_add_samples(proa_config *c, proa_tensors batch)
{
    PROA_TRY(check(c, "config_add_samples"));
    bool holes = batch.count < 1;
    for (int64_t i = 0; i < batch.count; i++) holes |= !batch.at[i] || proa__absent(batch.at[i]);
    if (holes)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "config_add_samples: expected a tensor for each input of the model, got %s",
                         batch.count < 1 ? "none" : "NULL");
    return add_samples(c, batch);
}

int64_t proa_config_sample_count(const proa_config *c) { return c ? c->n_samples : 0; }

proa_status proa_config_clear_samples(proa_config *c)
{
    PROA_TRY(check(c, "config_clear_samples"));
    clear_samples(c);
    return PROA_OK;
}

/* ---- lists ------------------------------------------------------------------------------ */

int64_t proa_config_count(const proa_config *c, proa_config_list which)
{
    if (check(c, "config_count") != PROA_OK) return 0;
    if (check_index("config_count", (int)which, PROA_CONFIG_LIST_COUNT) != PROA_OK) return 0;
    return c->lists[which].count;
}

const char *proa_config_name(const proa_config *c, proa_config_list which, int64_t i)
{
    return i >= 0 && i < proa_config_count(c, which) ? c->lists[which].at[i] : NULL;
}

proa_status proa_config_insert(proa_config *c, proa_config_list which, int64_t at, const char *name)
{
    PROA_TRY(check(c, "config_insert"));
    PROA_TRY(check_index("config_insert", (int)which, PROA_CONFIG_LIST_COUNT));
    if (!name) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "config_insert: the name is NULL");
    c->passes_set |= which == PROA_CONFIG_PASSES;
    return insert_name(&c->lists[which], at, name);
}

proa_status proa_config_remove(proa_config *c, proa_config_list which, const char *name)
{
    PROA_TRY(check(c, "config_remove"));
    PROA_TRY(check_index("config_remove", (int)which, PROA_CONFIG_LIST_COUNT));
    if (!name) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "config_remove: the name is NULL");
    proa__names *list = &c->lists[which];
    int64_t kept = 0;
    for (int64_t i = 0; i < list->count; i++) {
        if (strcmp(list->at[i], name) != 0) list->at[kept++] = list->at[i];
        else proa__free(list->at[i]);
    }
    c->passes_set |= which == PROA_CONFIG_PASSES && kept != list->count;
    list->count = kept;
    return PROA_OK;
}

proa_status proa_config_clear(proa_config *c, proa_config_list which)
{
    PROA_TRY(check(c, "config_clear"));
    PROA_TRY(check_index("config_clear", (int)which, PROA_CONFIG_LIST_COUNT));
    c->passes_set |= which == PROA_CONFIG_PASSES;
    clear_names(&c->lists[which]);
    return PROA_OK;
}

/* ---- device ----------------------------------------------------------------------------- */

proa_status proa_config_set_device(proa_config *c, const char *device)
{
    PROA_TRY(check(c, "config_set_device"));
    if (!device) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "config_set_device: the name is NULL");
    PROA_SCOPED;
    const char *now = proa_get_device();
    char *was = proa_scope_alloc(strlen(now) + 1);
    if (!was) return proa_error();
    strcpy(was, now);
    PROA_TRY(proa_set_device(device)); /* fails if the device does not exist */
    PROA_TRY(proa_set_device(was));
    return copy_text(&c->device, strcmp(device, "cpu") == 0 ? NULL : device);
}

const char *proa_config_device(const proa_config *c) { return c && c->device ? c->device : "cpu"; }

/* ---- the table -------------------------------------------------------------------------- */

typedef struct row {
    const char *option, *value; /* option NULL: a separator line; value NULL: empty */
} row;

static void put_line(FILE *to, const size_t *wide)
{
    for (int k = 0; k < 2; k++) {
        fputc('+', to);
        for (size_t i = 0; i < wide[k] + 2; i++) fputc('-', to);
    }
    fputs("+\n", to);
}

proa_status proa_config_print(const proa_config *c, FILE *to)
{
    PROA_TRY(check(c, "config_print"));
    if (!to) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "config_print: the file is NULL");
    char threads[32];
    snprintf(threads, sizeof threads, "%lld", (long long)c->numbers[PROA_CONFIG_CPU_THREADS]);
#define SAID(NAME) (c->numbers[PROA_CONFIG_##NAME] ? "true" : "false")
    const char *folder = proa_config_get_text(c, PROA_CONFIG_MODEL_DIR);
    bool files = !c->model && !*folder;
    const char *model = proa_config_get_text(c, PROA_CONFIG_MODEL_FILE);
    const char *gpu = strncmp(proa_config_device(c), "gpu", 3) == 0 ? "true" : "false";
    const row rows[] = {
        {"Option", "Value"},
        {0},
        {c->model  ? "model_from_memory"
         : *folder ? "model_dir"
                   : "model_file",
         c->model  ? "true"
         : *folder ? folder
                   : model},
        {"params_file", files ? proa_config_get_text(c, PROA_CONFIG_PARAMS_FILE) : NULL},
        {0},
        {"cpu_math_thread", threads},
        {"enable_mkldnn", SAID(ONEDNN)},
        {"mkldnn_int8", SAID(ONEDNN_INT8)},
        {"mkldnn_bfloat16", SAID(ONEDNN_BFLOAT16)},
        {"mkldnn_quantizer", SAID(ONEDNN_QUANTIZER)},
        {0},
        {"use_gpu", gpu},
        {"device", proa_config_device(c)},
        {0},
        {"use_xpu", "false"},
        {0},
        {"ir_optim", SAID(IR_OPTIM)},
        {"ir_debug", SAID(IR_DEBUG)},
        {"memory_optim", SAID(MEMORY_OPTIM)},
        {"enable_profile", SAID(PROFILE)},
        {"enable_log", SAID(LOG)},
        {0},
    };
#undef SAID
    size_t n = sizeof rows / sizeof *rows, wide[2] = {0, 0};
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].option || !rows[i].value) continue;
        if (strlen(rows[i].option) > wide[0]) wide[0] = strlen(rows[i].option);
        if (strlen(rows[i].value) > wide[1]) wide[1] = strlen(rows[i].value);
    }
    put_line(to, wide);
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].option) put_line(to, wide);
        else if (rows[i].value)
            fprintf(to, "| %-*s | %-*s |\n", (int)wide[0], rows[i].option, (int)wide[1], rows[i].value);
    }
    return ferror(to) ? proa_fail(PROA_ERR_IO, "config_print: the file cannot be written") : PROA_OK;
}
