/* Saves programs as .pdmodel and .pdiparams in the form of Paddle's own inference models: all attributes
 * written, also defaults; feed and fetch ops; and a `scale` op in front of each fetch of real numbers that
 * has none. May use jit, core and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/program_write.h"

#include <errno.h>
#include <proa/io.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- feeds and fetches ----------------------------------------------------------------- */

static proa_status put_marker(proa_wire_writer *w, const char *type, const char *x, const char *out,
                              int64_t col)
{
    PROA_TRY(proa_wire_op(w, type));
    PROA_TRY(proa__put_slot(w, true, "X", &x, 1));
    PROA_TRY(proa__put_slot(w, false, "Out", &out, 1));
    return proa_wire_put_int(w, "col", PROA_WIRE_INT, col);
}

static bool can_scale(proa_dtype dtype)
{
    return dtype != PROA_BOOL && dtype != PROA_C64 && dtype != PROA_C128;
}

/* Sets *fetched to the variable that output i is fetched from: the output itself if a loaded program already
 * ends in a `scale` op, otherwise the result of a scale op that is written here. */
static proa_status put_output(proa_wire_writer *w, const proa_program *p, int32_t i, const char **fetched)
{
    const char *stem = "save_infer_model/scale_";
    proa_var *v = proa__root(p)->outputs[i];
    bool repeated = false;
    for (int32_t k = 0; k < i; k++) repeated |= proa__root(p)->outputs[k] == v;
    *fetched = v->name;
    if (!can_scale(proa_dtype_of(v->handle))) return PROA_OK;
    if (!repeated && !v->persistable && !v->is_input && strncmp(v->name, stem, strlen(stem)) == 0)
        return PROA_OK;
    int n = 0;
    char *name;
    do {
        name = proa__arena_format(w->arena, "%s%d.tmp_%d", stem, i, n++);
        if (!name) return proa_error();
    } while (proa__var_find(w->block, name));
    proa_meta meta = proa_meta_of(v->handle);
    PROA_TRY(proa__put_var(w, name, &meta, PB_LOD_TENSOR, false, v->lod_level));
    PROA_TRY(proa_wire_op(w, "scale"));
    PROA_TRY(proa_wire_put_input(w, "X", v->handle));
    PROA_TRY(proa__put_slot(w, false, "Out", (const char *const *)&name, 1));
    PROA_TRY(proa_wire_put_float(w, "scale", 1));
    PROA_TRY(proa_wire_put_float(w, "bias", 0));
    PROA_TRY(proa_wire_put_int(w, "bias_after_scale", PROA_WIRE_BOOLEAN, 1));
    *fetched = name;
    return PROA_OK;
}

/* ---- blocks ---------------------------------------------------------------------------- */

static int by_var_name(const void *a, const void *b)
{
    return strcmp((*(pb_var *const *)a)->name, (*(pb_var *const *)b)->name);
}

/* Writes the variable's flags that building on in Paddle needs: is_parameter, stop_gradient, need_check_feed
 * (an input). */
static void mark_var(pb_var *to, const proa_var *v)
{
    to->has_is_parameter = to->is_parameter = v->is_parameter;
    to->has_stop_gradient = to->stop_gradient = v->stop_gradient;
    to->has_need_check_feed = to->need_check_feed = v->is_input;
}

static proa_status put_vars(proa_wire_writer *w)
{
    for (int32_t i = 0; i < w->block->n_vars; i++) {
        const proa_var *v = w->block->vars[i];
        if (v->is_lod || (w->outer_names && proa__hash_map_find(w->outer_names, v))) continue;
        proa_meta meta = proa_meta_of(v->handle);
        if (strcmp(v->name, "feed") == 0 || strcmp(v->name, "fetch") == 0)
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "a variable is called '%s', a name that Paddle's format keeps "
                             "for itself: rename it",
                             v->name);
        int kind = proa__is_array(w, v) ? PB_LOD_TENSOR_ARRAY : PB_LOD_TENSOR;
        PROA_TRY(proa__put_var(w, v->name, &meta, kind, v->persistable, v->lod_level));
        mark_var(w->vars.at[w->vars.count - 1], v);
    }
    return PROA_OK;
}

static proa_status put_ops(proa_wire_writer *w)
{
    for (int32_t i = 0; i < w->block->n_ops; i++) {
        if (proa__write_op(w, &w->block->ops[i]) == PROA_OK) continue;
        char text[1500];
        proa_status code = proa_error();
        snprintf(text, sizeof text, "%s", proa_error_message());
        proa_clear_error();
        return proa_fail(code, "saving op %d of block %d, %s: %s", i, w->block->index,
                         w->block->ops[i].op->name, text);
    }
    return PROA_OK;
}

static proa_status put_root(proa_wire_writer *w, const proa_program *p)
{
    proa_meta none = {0};
    const char **fetched = proa__arena_array(w->arena, (size_t)proa__root(p)->n_outputs, sizeof *fetched);
    if (!fetched) return proa_error();
    int32_t n_fed = 0; /* LoD offsets are fed with their tensor */
    for (int32_t i = 0; i < proa__root(p)->n_inputs; i++) n_fed += !proa__root(p)->inputs[i]->is_lod;
    for (int32_t i = proa__root(p)->n_inputs; i-- > 0;) {
        const proa_var *v = proa__root(p)->inputs[i];
        if (!v->is_lod) PROA_TRY(put_marker(w, "feed", "feed", v->name, --n_fed));
    }
    PROA_TRY(put_ops(w));
    w->role = w->device = 0;
    for (int32_t i = 0; i < proa__root(p)->n_outputs; i++) PROA_TRY(put_output(w, p, i, &fetched[i]));
    for (int32_t i = 0; i < proa__root(p)->n_outputs; i++)
        PROA_TRY(put_marker(w, "fetch", fetched[i], "fetch", i));
    proa__close_op(w);
    if (w->vars.count > 1) qsort(w->vars.at, w->vars.count, sizeof *w->vars.at, by_var_name);
    PROA_TRY(proa__put_var(w, "feed", &none, PB_FEED_MINIBATCH, true, 0));
    return proa__put_var(w, "fetch", &none, PB_FETCH_LIST, true, 0);
}

static bool has_gradients(const proa_block *b)
{
    for (int32_t i = 0; i < b->n_ops; i++)
        if (proa__ends_with(b->ops[i].op->name, "_grad")) return true;
    return false;
}

pb_block *proa__new_block(proa_wire_writer *w)
{
    pb_block *to = proa__arena_alloc(w->arena, sizeof *to);
    if (!to || proa__list_add(w->blocks, w->arena, to) != PROA_OK) return NULL;
    paddle__framework__proto__block_desc__init(to);
    to->idx = w->number = w->own_numbers ? w->block->index : (int32_t)w->blocks->count - 1;
    to->parent_idx = w->parent;
    to->has_forward_block_idx = true;
    to->forward_block_idx = -1;
    return to;
}

proa_status proa__write_block(proa_wire_writer *w)
{
    PROA_TRY(put_vars(w));
    return put_ops(w);
}

void proa__finish_block(proa_wire_writer *w, pb_block *to)
{
    proa__close_op(w);
    proa__hash_map_clear(&w->forwards.map);
    to->vars = (pb_var **)(void *)w->vars.at;
    to->n_vars = w->vars.count;
    to->ops = (pb_op **)(void *)w->ops.at;
    to->n_ops = w->ops.count;
}

static proa_status make_root(proa__arena *arena, const proa_program *p, bool plain, proa__list *blocks)
{
    const proa_block *b = proa__root(p);
    proa__hash_map arrays = {0};
    proa_wire_writer w = {.table = &proa__writer_table,
                          .arena = arena,
                          .block = b,
                          .blocks = blocks,
                          .parent = -1,
                          .arrays = &arrays,
                          .completes = has_gradients(b)};
    pb_block *to = proa__new_block(&w);
    proa_status status = to ? proa__arrays_find(p, &arrays) : proa_error();
    if (status == PROA_OK) status = plain ? proa__write_block(&w) : put_vars(&w);
    if (status == PROA_OK && !plain) status = put_root(&w, p);
    if (to) proa__finish_block(&w, to);
    proa__hash_map_clear(&arrays);
    return status;
}

/* ---- files ----------------------------------------------------------------------------- */

/* A protobuf-c buffer that passes each piece to the file writer. */
typedef struct sink {
    ProtobufCBuffer base;
    proa_status (*put)(const void *data, size_t bytes, void *context);
    void *context;
    proa_status status;
} sink;

static void append(ProtobufCBuffer *buffer, size_t n, const uint8_t *data)
{
    sink *to = (sink *)(void *)buffer;
    if (to->status == PROA_OK) to->status = to->put(data, n, to->context);
}

proa_status proa__message_put(const ProtobufCMessage *m,
                              proa_status (*put)(const void *data, size_t bytes, void *context),
                              void *context)
{
    sink to = {{append}, put, context, PROA_OK};
    protobuf_c_message_pack_to_buffer(m, &to.base);
    return to.status;
}

static proa_status encode(proa__arena *arena, const proa_program *p, bool plain,
                          proa_status (*put)(const void *data, size_t bytes, void *context), void *context)
{
    pb_program program = PADDLE__FRAMEWORK__PROTO__PROGRAM_DESC__INIT;
    Paddle__Framework__Proto__Version version = PADDLE__FRAMEWORK__PROTO__VERSION__INIT;
    proa__list blocks = {0};
    PROA_TRY(make_root(arena, p, plain, &blocks));
    version.has_version = true;
    version.version = PROA__WIRE_VERSION;
    program.version = &version;
    program.blocks = (pb_block **)(void *)blocks.at;
    program.n_blocks = blocks.count;
    return proa__message_put(&program.base, put, context);
}

static proa_status put_file(const void *data, size_t bytes, void *writer)
{
    return proa_writer_put(writer, data, bytes);
}

static proa_status write_model(proa__arena *arena, const proa_program *p, proa_writer *w)
{
    PROA_TRY(encode(arena, p, false, put_file, w));
    return proa__writer_sync(w);
}

proa_status proa_program_encode(const proa_program *p, bool plain,
                                proa_status (*put)(const void *data, size_t bytes, void *context),
                                void *context)
{
    PROA_TRY(proa_error());
    if (!p || !put)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "program_encode: needs a program and a function");
    PROA_SCOPED;
    proa__arena arena = {NULL};
    proa_status status = encode(&arena, p, plain, put, context);
    proa__arena_free(&arena);
    return status;
}

static proa_status list_params(proa__arena *arena, const proa_program *p, proa__named **items, size_t *count)
{
    size_t n = 0;
    for (int32_t k = 0; k < p->n_blocks; k++) n += (size_t)p->blocks[k]->n_vars;
    *items = proa__arena_array(arena, n, sizeof **items);
    *count = 0;
    if (!*items) return proa_error();
    for (int32_t k = 0; k < p->n_blocks; k++)
        for (int32_t i = 0; i < p->blocks[k]->n_vars; i++) {
            const proa_var *v = p->blocks[k]->vars[i];
            if (!v->persistable) continue;
            if (!v->value)
                return proa_fail(PROA_ERR_BAD_STATE, "persistable variable '%s' has no value", v->name);
            (*items)[(*count)++] = (proa__named){v->name, v->value};
        }
    return PROA_OK;
}

/* Writes both files completely to disk before it renames either. The parameters are renamed first: only
 * between the two renames does an old model have new parameters. */
static proa_status write_pair(proa__arena *arena, const proa_program *p, const char *model,
                              const char *params)
{
    proa__named *items = NULL;
    size_t count = 0;
    proa_writer *m = NULL, *d = NULL;
    proa_status status = list_params(arena, p, &items, &count);
    if (status == PROA_OK && !(m = proa_writer_open(model))) status = proa_error();
    if (status == PROA_OK) status = write_model(arena, p, m);
    if (status == PROA_OK && count && !(d = proa_writer_open(params))) status = proa_error();
    if (status == PROA_OK && count) status = proa__params_write(d, items, count);
    if (status == PROA_OK && count) status = proa__writer_sync(d);
    if (status == PROA_OK && count) {
        status = proa_writer_commit(d);
        d = NULL;
    }
    if (status == PROA_OK) {
        status = proa_writer_commit(m);
        m = NULL;
    }
    proa_writer_abort(m);
    proa_writer_abort(d);
    if (status == PROA_OK && !count && unlink(params) != 0 && errno != ENOENT)
        status = proa_fail(PROA_ERR_IO, "cannot remove the old '%s': %s", params, strerror(errno));
    return status;
}

proa_status proa_program_save(const proa_program *p, const char *prefix)
{
    if (proa_error() != PROA_OK) return proa_error();
    if (!p || !prefix || !prefix[0])
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "proa_program_save: program and prefix must be given");
    PROA_SCOPED;
    proa__arena arena = {NULL};
    size_t n = strlen(prefix);
    char *stem = proa__arena_text(&arena, prefix), *model = NULL, *params = NULL;
    if (stem && n > 8 && strcmp(prefix + n - 8, ".pdmodel") == 0) stem[n - 8] = 0;
    if (stem) model = proa__arena_format(&arena, "%s.pdmodel", stem);
    if (model) params = proa__arena_format(&arena, "%s.pdiparams", stem);
    proa_status status = params ? write_pair(&arena, p, model, params) : proa_error();
    proa__arena_free(&arena);
    return status;
}

#else
typedef int proa__no_program_write; /* C wants a declaration in every file */
#endif
