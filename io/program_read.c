/* Loads a .pdmodel: parses the ProgramDesc, attaches parameters, captures every op through its wire form, and
 * gives the variables the file's names. Shapes and dtypes are inferred anew; the file's are used for inputs,
 * the dtypes of tensor arrays, and parameters without data. May use jit, core and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/program_read.h"

#include "core/op_device.h"

#include <proa/io.h>
#include <proa/ops.h>
#include <stdlib.h>

enum { UNKNOWN_SHOWN = 20 };

/* ---- checks before anything is built --------------------------------------------------- */

static bool is_marker(const pb_op *op)
{
    return strcmp(op->type, "feed") == 0 || strcmp(op->type, "fetch") == 0;
}

static proa_status check_blocks(const proa__load *l)
{
    const pb_program *p = l->pb;
    if (p->n_blocks == 0) return proa_fail(PROA_ERR_CORRUPT, "'%s' holds no block of a program", l->source);
    for (size_t i = 0; i < p->n_blocks; i++) {
        int32_t at = p->blocks[i]->parent_idx;
        for (size_t steps = 0; at >= 0; steps++) {
            if ((size_t)at >= p->n_blocks || steps > PROA__DEPTH_MAX)
                return proa_fail(PROA_ERR_CORRUPT, "'%s': block %zu has no path of parents to block 0",
                                 l->source, i);
            at = p->blocks[at]->parent_idx;
        }
    }
    return PROA_OK;
}

/* Fails if the table lacks op types of the file, and lists all of them in one error. */
static proa_status check_types(proa__load *l)
{
    const char *unknown[UNKNOWN_SHOWN];
    size_t n = 0, more = 0;
    for (size_t b = 0; b < l->pb->n_blocks; b++)
        for (size_t i = 0; i < l->pb->blocks[b]->n_ops; i++) {
            const pb_op *op = l->pb->blocks[b]->ops[i];
            if (is_marker(op) || proa__reads_control(op->type) || proa__forms_next(&l->forms, NULL, op->type))
                continue;
            if (proa__is_grad_of_form(&l->forms, op->type)) continue;
            size_t k = 0;
            while (k < n && strcmp(unknown[k], op->type) != 0) k++;
            if (k < n) continue;
            if (n < UNKNOWN_SHOWN) unknown[n++] = op->type;
            else more++;
        }
    if (n == 0) return PROA_OK;
    char text[1024] = "";
    size_t used = 0;
    for (size_t k = 0; k < n && used < sizeof text - 80; k++)
        used += (size_t)snprintf(text + used, 64, "%s%.58s", k ? ", " : "", unknown[k]);
    if (more) snprintf(text + used, sizeof text - used, " and %zu others", more);
    return proa_fail(PROA_ERR_UNSUPPORTED, "'%s' uses op types that are not known: %s", l->source, text);
}

/* ---- variables ------------------------------------------------------------------------- */

static const pb_tensor *desc_of(const pb_var *v)
{
    return v->type->lod_tensor ? v->type->lod_tensor->tensor : NULL;
}

static proa_status meta_of(const proa__load *l, const pb_var *v, proa_meta *meta)
{
    const pb_tensor *d = desc_of(v);
    if (!d)
        return proa_fail(PROA_ERR_CORRUPT, "'%s': variable '%s' has no tensor description", l->source,
                         v->name);
    meta->dtype = proa__dtype_from_wire((int64_t)d->data_type);
    if (meta->dtype == PROA_NODTYPE || d->n_dims > PROA_MAX_DIMS)
        return proa_fail(PROA_ERR_UNSUPPORTED,
                         "'%s': variable '%s' has data type number %d and %zu dimensions", l->source, v->name,
                         (int)d->data_type, d->n_dims);
    meta->ndim = (int8_t)d->n_dims;
    for (size_t i = 0; i < d->n_dims; i++) {
        meta->shape[i] = d->dims[i];
        if (d->dims[i] < -1)
            return proa_fail(PROA_ERR_CORRUPT, "'%s': variable '%s' has dimension %lld", l->source, v->name,
                             (long long)d->dims[i]);
    }
    return PROA_OK;
}

/* Adds a variable to the root block and its name to the level's table. */
static proa_var *declare(proa__load *l, const char *name, const proa_meta *meta)
{
    proa__level *root = &l->levels[0];
    proa_var *var = proa__var_new(root->block, name, meta);
    proa_tensor *t = var ? proa__var_tensor(var) : NULL;
    return t && proa__hash_map_put(&root->names, name, t) == PROA_OK ? var : NULL;
}

static bool has_data(const pb_var *v)
{
    int type = (int)v->type->type;
    return v->persistable && type != PB_FEED_MINIBATCH && type != PB_FETCH_LIST && type != PB_RAW &&
           type != PB_READER;
}

/* Lists the persistable variables of all blocks, sorted by name: the order of the parameter file. */
static proa_status list_params(proa__load *l, proa__named **items, size_t *count)
{
    size_t n = 0, unique = 0;
    for (size_t b = 0; b < l->pb->n_blocks; b++) n += l->pb->blocks[b]->n_vars;
    proa__named *list = proa__arena_array(&l->arena, n, sizeof *list);
    if (!list) return proa_error();
    n = 0;
    for (size_t b = 0; b < l->pb->n_blocks; b++)
        for (size_t i = 0; i < l->pb->blocks[b]->n_vars; i++) {
            const pb_var *v = l->pb->blocks[b]->vars[i];
            if (!has_data(v)) continue;
            if ((int)v->type->type != PB_LOD_TENSOR)
                return proa_fail(PROA_ERR_UNSUPPORTED,
                                 "'%s': parameter '%s' is no dense tensor (variable type %d)", l->source,
                                 v->name, (int)v->type->type);
            list[n++].name = v->name;
        }
    if (n > 1) qsort(list, n, sizeof *list, proa__by_name);
    for (size_t i = 0; i < n; i++)
        if (unique == 0 || strcmp(list[unique - 1].name, list[i].name) != 0) list[unique++] = list[i];
    *items = list;
    *count = unique;
    return PROA_OK;
}

/* The VarDesc of a persistable variable in any of the file's blocks. */
static const pb_var *param_desc(const proa__load *l, const char *name)
{
    for (size_t b = 0; b < l->pb->n_blocks; b++)
        for (size_t i = 0; i < l->pb->blocks[b]->n_vars; i++) {
            const pb_var *v = l->pb->blocks[b]->vars[i];
            if (has_data(v) && strcmp(v->name, name) == 0) return v;
        }
    return NULL;
}

/* Declares the parameters without values, with the shapes and dtypes of the program file. */
static proa_status declare_bare(proa__load *l, const proa__named *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const pb_var *desc = param_desc(l, items[i].name);
        proa_meta meta = {0};
        PROA_TRY(meta_of(l, desc, &meta));
        proa_var *var = declare(l, items[i].name, &meta);
        if (!var) return proa_error();
        var->persistable = true;
        var->is_parameter = desc->is_parameter;
        var->stop_gradient = desc->stop_gradient;
    }
    return PROA_OK;
}

static proa_status declare_params(proa__load *l, const proa__named *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        proa_meta meta = proa_meta_of(items[i].tensor);
        PROA_TRY(proa_set_name(items[i].tensor, items[i].name));
        proa_var *var = declare(l, items[i].name, &meta);
        if (!var) return proa_error();
        PROA_TRY(proa__var_set_value(l->levels[0].block, var, items[i].tensor));
    }
    return PROA_OK;
}

/* ---- feeds and fetches ----------------------------------------------------------------- */

typedef struct column {
    int64_t col;
    proa_var *var;
} column;

static int by_col(const void *a, const void *b)
{
    int64_t x = ((const column *)a)->col, y = ((const column *)b)->col;
    return (x > y) - (x < y);
}

static proa_status column_of(const pb_op *op, bool feed, int64_t *col, const char **name)
{
    const pb_slot *s = feed ? proa__slot_find(op->outputs, op->n_outputs, "Out")
                            : proa__slot_find(op->inputs, op->n_inputs, "X");
    const pb_attr *a = proa__attr_find(op, "col");
    if (!s || s->n_arguments != 1 || !a || !proa__attr_int(a, col) || *col < 0)
        return proa_fail(PROA_ERR_CORRUPT, "a %s op without its variable and column", op->type);
    *name = s->arguments[0];
    return PROA_OK;
}

/* Sorts feeds or fetches by their attribute `col`; CORRUPT unless these are 0, 1, 2, …. */
static proa_status order(const char *what, column *list, size_t n, proa_var **vars)
{
    if (n > 1) qsort(list, n, sizeof *list, by_col);
    for (size_t i = 0; i < n; i++) {
        if (list[i].col != (int64_t)i)
            return proa_fail(PROA_ERR_CORRUPT, "%s columns are not 0 to %zu", what, n - 1);
        vars[i] = list[i].var;
    }
    return PROA_OK;
}

static const pb_var *var_desc(const pb_block *b, const char *name)
{
    for (size_t i = 0; i < b->n_vars; i++)
        if (strcmp(b->vars[i]->name, name) == 0) return b->vars[i];
    return NULL;
}

bool proa__declared(const proa__load *l, const pb_block *b, const char *name, proa_meta *meta)
{
    const pb_var *v = var_desc(b, name);
    if (!v || (int)v->type->type != PB_LOD_TENSOR || !desc_of(v)) return false;
    if (meta_of(l, v, meta) == PROA_OK) return true;
    proa_clear_error();
    return false;
}

/* Makes vars the program's inputs; inputs for their LoD offsets follow behind the last. */
static proa_status set_inputs(proa__load *l, proa_var **vars, int32_t n)
{
    proa_block *root = proa__root(l->program);
    PROA_TRY(proa__block_set_inputs(root, vars, n));
    for (int32_t i = 0; i < n; i++) {
        const pb_var *v = var_desc(l->pb->blocks[0], vars[i]->name);
        int32_t levels = v && v->type->lod_tensor ? v->type->lod_tensor->lod_level : 0;
        if (levels > 0) PROA_TRY(proa__lod_declare(root, vars[i], levels));
    }
    return PROA_OK;
}

/* Sets the program's inputs: the outputs of feed ops or, where the file has none, the variables marked as
 * data. */
static proa_status read_data(proa__load *l)
{
    const pb_block *b = l->pb->blocks[0];
    int32_t n = 0;
    proa_var **vars = proa__arena_array(&l->arena, b->n_vars + 1, sizeof(proa_var *));
    if (!vars) return proa_error();
    for (size_t i = 0; i < b->n_vars; i++) {
        const pb_var *v = b->vars[i];
        proa_meta meta = {0};
        if (!v->need_check_feed || v->persistable || (int)v->type->type != PB_LOD_TENSOR) continue;
        PROA_TRY(meta_of(l, v, &meta));
        vars[n] = declare(l, v->name, &meta);
        if (!vars[n++]) return proa_error();
    }
    return set_inputs(l, vars, n);
}

static proa_status read_feeds(proa__load *l)
{
    const pb_block *b = l->pb->blocks[0];
    size_t n = 0;
    column *list = proa__arena_array(&l->arena, b->n_ops, sizeof *list);
    proa_var **vars = proa__arena_array(&l->arena, b->n_ops, sizeof(proa_var *));
    if (!list || !vars) return proa_error();
    for (size_t i = 0; i < b->n_ops; i++) {
        const char *name;
        proa_meta meta = {0};
        if (strcmp(b->ops[i]->type, "feed") != 0) continue;
        PROA_TRY(column_of(b->ops[i], true, &list[n].col, &name));
        const pb_var *v = var_desc(b, name);
        if (!v) return proa_fail(PROA_ERR_CORRUPT, "'%s': input '%s' has no description", l->source, name);
        PROA_TRY(meta_of(l, v, &meta));
        list[n].var = declare(l, name, &meta);
        if (!list[n++].var) return proa_error();
    }
    if (n == 0) return read_data(l);
    PROA_TRY(order("feed", list, n, vars));
    return set_inputs(l, vars, (int32_t)n);
}

static proa_status read_fetch(proa_wire_reader *r, column *to)
{
    const char *name;
    PROA_TRY(column_of(r->desc, false, &to->col, &name));
    proa_tensor *t = proa__name_find(r, "X", name);
    if (!t) return proa_error();
    to->var = proa__var_of(r->level->block, t, NULL, "fetch");
    return to->var ? PROA_OK : proa_error();
}

/* ---- ops ------------------------------------------------------------------------------- */

/* Adds the op's number and type to the text of the current error. */
static proa_status place_error(const proa__load *l, const proa__level *level, size_t at)
{
    char text[1500];
    proa_status code = proa_error();
    snprintf(text, sizeof text, "%s", proa_error_message());
    proa_clear_error();
    return proa_fail(code, "'%s': op %zu of block %zu, %s: %s", l->source, at, (size_t)(level - l->levels),
                     level->pb->ops[at]->type, text);
}

/* Declares each of the block's tensor arrays as empty. */
static proa_status begin_arrays(proa__level *level)
{
    for (size_t i = 0; i < level->pb->n_vars; i++) {
        const pb_var *v = level->pb->vars[i];
        if ((int)v->type->type != PB_LOD_TENSOR_ARRAY || proa__hash_map_find(&level->names, v->name))
            continue;
        const pb_tensor *d = v->type->tensor_array ? v->type->tensor_array->tensor : NULL;
        proa_dtype dtype = d ? proa__dtype_from_wire((int64_t)d->data_type) : PROA_NODTYPE;
        proa_tensor *t = proa_array_create(.dtype = dtype);
        if (!t) return proa_error();
        PROA_TRY(proa__hash_map_put(&level->names, v->name, t));
    }
    return PROA_OK;
}

/* The number of an op's op_device; 0 without one. */
static int32_t device_of(const pb_op *op)
{
    const pb_attr *a = proa__attr_find(op, "op_device");
    int32_t device = a && (int)a->type == PROA_WIRE_STRING ? proa__op_device_number(a->s) : 0;
    return device > 0 ? device : 0;
}

proa_status proa__read_ops(proa__load *l, proa__level *level)
{
    const pb_block *b = level->pb;
    PROA_TRY(begin_arrays(level));
    size_t n = 0;
    column *list = proa__arena_array(&l->arena, b->n_ops, sizeof *list);
    proa_var **vars = proa__arena_array(&l->arena, b->n_ops, sizeof(proa_var *));
    if (!list || !vars) return proa_error();
    level->starts = proa__arena_array(&l->arena, b->n_ops + 1, sizeof *level->starts);
    if (!level->starts) return proa_error();
    level->forwards.arena = &l->arena;
    for (size_t i = 0; i < b->n_ops; i++) {
        level->starts[i] = level->block->n_ops;
        level->starts[i + 1] = level->starts[i];
        proa_wire_reader r = {&proa__reader_table, l, level, b->ops[i], level->block->n_vars, i};
        const pb_attr *role = proa__attr_find(r.desc, "op_role");
        int64_t number = 0;
        proa_status status = PROA_OK;
        l->program->role = role && proa__attr_int(role, &number) ? (int32_t)(number & 0xfff) : 0;
        proa__op_device = device_of(r.desc);
        if (!is_marker(r.desc)) status = proa__read_op(&r);
        else if (level == l->levels && r.desc->type[2] == 't') status = read_fetch(&r, &list[n++]);
        if (status != PROA_OK) return place_error(l, level, i);
        level->starts[i + 1] = level->block->n_ops;
        PROA_TRY(proa__forward_add(&level->forwards, r.desc, i));
    }
    l->program->role = 0;
    PROA_TRY(proa__resolve_all(level));
    if (level != l->levels) return PROA_OK;
    PROA_TRY(order("fetch", list, n, vars));
    l->outputs = vars;
    l->n_outputs = (int32_t)n;
    return PROA_OK;
}

static proa_status read_level(proa__load *l, proa__level *level)
{
    proa_block *was = proa__capture_into(level->block);
    bool record = proa_door_set(PROA_DOOR_RECORD, false), convert = proa_door_set(PROA_DOOR_CONVERT, false);
    int32_t device = proa__op_device;
    proa_status status = proa__read_ops(l, level);
    proa__op_device = device;
    proa_door_set(PROA_DOOR_CONVERT, convert);
    proa_door_set(PROA_DOOR_RECORD, record);
    proa__capture_into(was);
    return status;
}

/* ---- names ----------------------------------------------------------------------------- */

static proa_status set_name(proa_var *v, const char *name)
{
    char *copy = proa__strdup(name);
    if (!copy) return proa_error();
    proa__free(v->name);
    v->name = copy;
    return proa_set_name(v->handle, copy);
}

/* Gives each name of the file to the first variable bound to it. Later versions of it, and variables that the
 * file does not name, get names that are free. */
static proa_status apply_names(proa__load *l)
{
    proa__hash_map taken = {.by_text = true}, named = {.by_text = false};
    proa_status status = PROA_OK;
    for (size_t i = 0; i < l->n_renames && status == PROA_OK; i++) {
        proa__rename *r = &l->renames[i];
        if (proa__hash_map_find(&named, r->var) || proa__hash_map_find(&taken, r->name)) continue;
        proa_var *other = proa__var_find(l->program->blocks[0], r->name);
        if (other && (other->persistable || other->is_input)) continue;
        status = proa__hash_map_put(&named, r->var, r);
        if (status == PROA_OK) status = proa__hash_map_put(&taken, r->name, r);
    }
    for (int32_t k = 0; k < l->program->n_blocks && status == PROA_OK; k++) {
        proa_block *b = l->program->blocks[k];
        for (int32_t i = 0; i < b->n_vars && status == PROA_OK; i++) {
            proa_var *v = b->vars[i];
            const proa__rename *r = proa__hash_map_find(&named, v);
            if (r) status = set_name(v, r->name);
            for (int n = 0; !r && status == PROA_OK && proa__hash_map_find(&taken, v->name); n++) {
                char *free_name = proa__arena_format(&l->arena, "%s_%d", v->name, n);
                status = free_name ? set_name(v, free_name) : proa_error();
            }
        }
    }
    proa__hash_map_clear(&taken);
    proa__hash_map_clear(&named);
    return status == PROA_OK ? proa__program_reindex(l->program) : status;
}

/* ---- a whole program ------------------------------------------------------------------- */

/* Location of the parameters: one file or buffer for all, or a folder with a file for each. */
typedef struct params {
    proa__source *source;
    const char *folder;
    bool none; /* no parameters are read: persistable variables have no values */
} params;

/* True if the file that a variable's name says is below the folder of parameters: no absolute path, no
 * "..". */
static bool safe_path(const char *name)
{
    if (name[0] == '/' || !name[0]) return false;
    for (const char *p = name; p; p = strchr(p, '/')) {
        if (*p == '/') p++;
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || !p[2])) return false;
    }
    return true;
}

static proa_status read_params(proa__load *l, const params *from, proa__named *items, size_t count)
{
    if (from->source) return proa__params_read(from->source, items, count);
    if (count && !from->folder)
        return proa_fail(PROA_ERR_NOT_FOUND,
                         "'%s' has %zu parameters ('%s', …), but no parameter file was given or "
                         "found",
                         l->source, count, items[0].name);
    for (size_t i = 0; i < count; i++) {
        if (!safe_path(items[i].name))
            return proa_fail(PROA_ERR_CORRUPT, "'%s': parameter '%s' would be read from outside its folder",
                             l->source, items[i].name);
        char *path = proa__arena_format(&l->arena, "%s/%s", from->folder, items[i].name);
        if (path && !proa__is_file(path))
            return proa_fail(PROA_ERR_NO_FILE, "'%s': cannot open the parameter file '%s'", l->source, path);
        items[i].tensor = path ? proa_tensor_load(path) : NULL;
        if (!items[i].tensor) return proa_error();
    }
    return PROA_OK;
}

static proa_status build(proa__load *l, const params *from)
{
    proa__named *items = NULL;
    size_t count = 0;
    PROA_TRY(check_blocks(l));
    PROA_TRY(proa__forms_build(&l->forms, &l->arena));
    PROA_TRY(check_types(l));
    l->levels = proa__arena_array(&l->arena, l->pb->n_blocks, sizeof *l->levels);
    l->program = proa__program_new();
    if (!l->levels || !l->program) return proa_error();
    for (size_t i = 0; i < l->pb->n_blocks; i++) {
        l->levels[i].pb = l->pb->blocks[i];
        l->levels[i].names.by_text = true;
    }
    l->levels[0].block = l->program->blocks[0];
    PROA_TRY(list_params(l, &items, &count));
    if (!from->none) PROA_TRY(read_params(l, from, items, count));
    PROA_TRY(from->none ? declare_bare(l, items, count) : declare_params(l, items, count));
    PROA_TRY(read_feeds(l));
    PROA_TRY(read_level(l, &l->levels[0]));
    PROA_TRY(apply_names(l));
    return proa__block_set_outputs(proa__root(l->program), l->outputs, l->n_outputs);
}

static void *arena_alloc(void *arena, size_t bytes) { return proa__arena_alloc(arena, bytes); }
static void arena_free(void *arena, void *p) { (void)arena, (void)p; }

static proa_program *load(const void *model, size_t bytes, const char *name, const params *from)
{
    PROA_SCOPED;
    proa__load l = {.source = name, .door = PROA_DOOR_CAPTURE};
    ProtobufCAllocator allocator = {arena_alloc, arena_free, &l.arena};
    l.pb = paddle__framework__proto__program_desc__unpack(&allocator, bytes, model);
    if (!l.pb)
        proa_fail(PROA_ERR_CORRUPT, "'%s' (%zu bytes) is no program: it cannot be parsed", name, bytes);
    else build(&l, from);
    for (size_t i = 0; l.levels && i < l.pb->n_blocks; i++) {
        proa__hash_map_clear(&l.levels[i].names);
        proa__hash_map_clear(&l.levels[i].forwards.map);
    }
    if (proa_error() != PROA_OK) {
        proa_program_free(l.program);
        l.program = NULL;
    }
    proa__arena_free(&l.arena);
    return l.program;
}

proa_program *proa_program_load_memory(const void *model, size_t model_bytes, const void *data,
                                       size_t data_bytes)
{
    proa__source source;
    if (proa_error() != PROA_OK) return NULL;
    if (!model || (!data && data_bytes)) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "proa_program_load_memory: model must not be NULL");
        return NULL;
    }
    if (data) proa__source_memory(&source, data, data_bytes, "parameters in memory");
    return load(model, model_bytes, "program in memory", &(params){data ? &source : NULL, NULL, false});
}

proa_program *proa_program_decode(const void *model, size_t bytes)
{
    if (proa_error() != PROA_OK) return NULL;
    if (model) return load(model, bytes, "program in memory", &(params){NULL, NULL, true});
    proa_fail(PROA_ERR_INVALID_ARGUMENT, "proa_program_decode: model must not be NULL");
    return NULL;
}

/* ---- files ----------------------------------------------------------------------------- */

static proa_program *load_files(const char *model, const char *data, const char *folder)
{
    size_t bytes;
    proa__source source;
    char *text = proa__read_whole(model, &bytes);
    if (!text) return NULL;
    bool opened = data && proa__source_open(&source, data) == PROA_OK;
    proa_program *p =
        data && !opened ? NULL : load(text, bytes, model, &(params){opened ? &source : NULL, folder, false});
    if (opened) proa__source_close(&source);
    proa__free(text);
    return p;
}

proa_program *proa_program_load_files(const char *model, const char *data)
{
    if (proa_error() != PROA_OK) return NULL;
    if (model) return load_files(model, data, NULL);
    proa_fail(PROA_ERR_INVALID_ARGUMENT, "proa_program_load_files: model must not be NULL");
    return NULL;
}

/* The path of `one` or else `other` in the folder, whichever is a file; NULL if neither is. */
static const char *first_file(proa__arena *a, const char *folder, const char *one, const char *other)
{
    const char *names[] = {one, other};
    for (int i = 0; i < 2; i++) {
        const char *path = proa__arena_format(a, "%s/%s", folder, names[i]);
        if (path && proa__is_file(path)) return path;
    }
    return NULL;
}

static proa_program *load_path(proa__arena *a, const char *path)
{
    size_t n = strlen(path);
    char *stem = proa__arena_text(a, path);
    if (!stem) return NULL;
    if (n > 8 && strcmp(path + n - 8, ".pdmodel") == 0) stem[n - 8] = 0;
    char *model = proa__arena_format(a, "%s.pdmodel", stem),
         *data = proa__arena_format(a, "%s.pdiparams", stem);
    if (!model || !data) return NULL;
    if (proa__is_file(model)) return load_files(model, proa__is_file(data) ? data : NULL, NULL);
    if (proa__is_folder(path)) {
        const char *inside = first_file(a, path, "__model__", "model");
        const char *params_inside = first_file(a, path, "__params__", "params");
        if (inside) return load_files(inside, params_inside, params_inside ? NULL : path);
        if (proa_error() == PROA_OK)
            proa_fail(PROA_ERR_NO_FILE, "folder '%s' has neither __model__ nor model", path);
        return NULL;
    }
    if (proa__is_file(path)) return load_files(path, NULL, NULL);
    proa_fail(PROA_ERR_NO_FILE, "no program at '%s': neither '%s' nor a folder or file of that name", path,
              model);
    return NULL;
}

proa_program *proa_program_load(const char *path)
{
    if (proa_error() != PROA_OK) return NULL;
    if (!path) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "proa_program_load: path must not be NULL");
        return NULL;
    }
    proa__arena arena = {NULL};
    proa_program *p = load_path(&arena, path);
    proa__arena_free(&arena);
    return p;
}

#else
typedef int proa__no_program_read; /* C wants a declaration in every file */
#endif
