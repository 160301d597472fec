/* Writes one op of the IR as ops in Paddle's format, by the slots and attributes of its first wire form. Also
 * implements proa/wire.h's writer, through which ops with irregular forms write themselves. May use ops, jit,
 * core and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/program_write.h"

#include "core/args_visit.h"
#include "core/op_device.h"
#include "ops/wire_util.h"

#include <math.h>

proa_status proa__list_add(proa__list *list, proa__arena *arena, void *item)
{
    if (!item) return proa_error();
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 4;
        void **grown = proa__arena_array(arena, capacity, sizeof *grown);
        if (!grown) return proa_error();
        if (list->count) memcpy(grown, list->at, list->count * sizeof *grown);
        list->at = grown;
        list->capacity = capacity;
    }
    list->at[list->count++] = item;
    return PROA_OK;
}

/* ---- the parts of a wire op ------------------------------------------------------------ */

void proa__close_op(proa_wire_writer *w)
{
    proa__open_op *op = w->op;
    if (!op) return;
    op->desc->inputs = (pb_slot **)(void *)op->inputs.at;
    op->desc->n_inputs = op->inputs.count;
    op->desc->outputs = (pb_slot **)(void *)op->outputs.at;
    op->desc->n_outputs = op->outputs.count;
    op->desc->attrs = (pb_attr **)(void *)op->attrs.at;
    op->desc->n_attrs = op->attrs.count;
    w->op = NULL;
}

static proa_status writer_op(proa_wire_writer *w, const char *type)
{
    proa__close_op(w);
    proa__open_op *op = proa__arena_alloc(w->arena, sizeof *op);
    pb_op *desc = proa__arena_alloc(w->arena, sizeof *desc);
    if (!op || !desc) return proa_error();
    paddle__framework__proto__op_desc__init(desc);
    desc->type = proa__arena_text(w->arena, type);
    if (!desc->type) return proa_error();
    op->desc = desc;
    w->op = op;
    PROA_TRY(proa__list_add(&w->ops, w->arena, desc));
    PROA_TRY(proa_wire_put_int(w, "op_role", PROA_WIRE_INT, w->role));
    return w->device ? proa_wire_put_string(w, "op_device", proa__op_device_name(w->device)) : PROA_OK;
}

static proa_status no_op(const char *what)
{
    return proa_fail(PROA_ERR_INTERNAL, "%s is written before any wire op was begun", what);
}

proa_status proa__put_slot(proa_wire_writer *w, bool input, const char *slot, const char *const *names,
                           size_t n)
{
    if (!w->op) return no_op(slot);
    pb_slot *s = proa__arena_alloc(w->arena, sizeof *s);
    char **list = proa__arena_array(w->arena, n, sizeof *list);
    if (!s || !list) return proa_error();
    paddle__framework__proto__op_desc__var__init(s);
    for (size_t i = 0; i < n; i++)
        if (!(list[i] = proa__arena_text(w->arena, names[i]))) return proa_error();
    if (!(s->parameter = proa__arena_text(w->arena, slot))) return proa_error();
    s->arguments = list;
    s->n_arguments = n;
    return proa__list_add(input ? &w->op->inputs : &w->op->outputs, w->arena, s);
}

const char *proa__wire_name(const proa_wire_writer *w, const proa_tensor *t)
{
    const char *outer = w->outer_names && t->var ? proa__hash_map_find(w->outer_names, t->var) : NULL;
    if (outer) return outer;
    if (!proa_is_symbolic(t)) return NULL;
    return t->var ? t->var->name : proa_name_of(t);
}

/* Writes a field's tensors to a slot; absent tensors write none. A second call for the same slot appends. */
static proa_status put_tensors(proa_wire_writer *w, bool input, const char *slot, proa_tensor *const *at,
                               int64_t n)
{
    proa__list names = {0};
    if (!w->op) return no_op(slot);
    proa__list *slots = input ? &w->op->inputs : &w->op->outputs;
    pb_slot *old = NULL;
    for (size_t i = 0; i < slots->count; i++)
        if (strcmp(((pb_slot *)slots->at[i])->parameter, slot) == 0) old = slots->at[i];
    for (size_t i = 0; old && i < old->n_arguments; i++)
        PROA_TRY(proa__list_add(&names, w->arena, old->arguments[i]));
    for (int64_t i = 0; i < n; i++) {
        if (!at[i] || proa__absent(at[i])) continue;
        const char *name = proa__wire_name(w, at[i]);
        if (!name)
            return proa_fail(PROA_ERR_INTERNAL, "a tensor in slot %s is no variable of the program", slot);
        PROA_TRY(proa__list_add(&names, w->arena, proa__arena_text(w->arena, name)));
    }
    if (names.count == 0) return PROA_OK;
    if (!old) return proa__put_slot(w, input, slot, (const char *const *)(void *)names.at, names.count);
    old->arguments = (char **)(void *)names.at;
    old->n_arguments = names.count;
    return PROA_OK;
}

static proa_status writer_put_input(proa_wire_writer *w, const char *slot, proa_tensor *t)
{
    if (t == PROA_NONE) return proa__put_slot(w, true, slot, NULL, 0); /* writes the slot without names */
    return put_tensors(w, true, slot, &t, 1);
}

static proa_status writer_put_output(proa_wire_writer *w, const char *slot, proa_tensor *t)
{
    return put_tensors(w, false, slot, &t, 1);
}

static pb_attr *new_attr(proa_wire_writer *w, const char *name, int type)
{
    if (!w->op) {
        no_op(name);
        return NULL;
    }
    pb_attr *a = proa__arena_alloc(w->arena, sizeof *a);
    if (!a) return NULL;
    paddle__framework__proto__op_desc__attr__init(a);
    a->type = (Paddle__Framework__Proto__AttrType)type;
    a->name = proa__arena_text(w->arena, name);
    return a->name && proa__list_add(&w->op->attrs, w->arena, a) == PROA_OK ? a : NULL;
}

static proa_status out_of_type(const char *attr, int64_t v)
{
    return proa_fail(PROA_ERR_OVERFLOW, "attribute %s = %lld does not fit Paddle's 32-bit integer", attr,
                     (long long)v);
}

static proa_status writer_put_int(proa_wire_writer *w, const char *attr, proa_wire_type type, int64_t v)
{
    pb_attr *a = new_attr(w, attr, type);
    if (!a) return proa_error();
    switch (type) {
    case PROA_WIRE_BOOLEAN:
        a->has_b = true;
        a->b = v != 0;
        return PROA_OK;
    case PROA_WIRE_LONG:
        a->has_l = true;
        a->l = v;
        return PROA_OK;
    case PROA_WIRE_INT:
    case PROA_WIRE_BLOCK:
        if (v < INT32_MIN || v > INT32_MAX) return out_of_type(attr, v);
        a->has_i = type == PROA_WIRE_INT;
        a->has_block_idx = type == PROA_WIRE_BLOCK;
        *(type == PROA_WIRE_INT ? &a->i : &a->block_idx) = (int32_t)v;
        return PROA_OK;
    default: return proa_fail(PROA_ERR_INTERNAL, "attribute %s: type %d is no integer", attr, (int)type);
    }
}

static proa_status writer_put_float(proa_wire_writer *w, const char *attr, double v)
{
    pb_attr *a = new_attr(w, attr, PROA_WIRE_FLOAT);
    if (!a) return proa_error();
    a->has_f = true;
    a->f = (float)v;
    return PROA_OK;
}

static proa_status writer_put_string(proa_wire_writer *w, const char *attr, const char *v)
{
    pb_attr *a = new_attr(w, attr, PROA_WIRE_STRING);
    if (!a) return proa_error();
    a->s = proa__arena_text(w->arena, v ? v : "");
    return a->s ? PROA_OK : proa_error();
}

static proa_status writer_put_strings(proa_wire_writer *w, const char *attr, const char *v)
{
    pb_attr *a = new_attr(w, attr, PROA_WIRE_STRINGS);
    size_t n = *v ? 1 : 0;
    for (const char *c = v; *c; c++) n += *c == ',';
    if (!a || !(a->strings = proa__arena_array(w->arena, n, sizeof *a->strings))) return proa_error();
    for (const char *from = v; a->n_strings < n; a->n_strings++) {
        int length = (int)strcspn(from, ",");
        char *one = proa__arena_format(w->arena, "%.*s", length, from);
        if (!one) return proa_error();
        a->strings[a->n_strings] = one;
        from += length + (from[length] == ',');
    }
    return PROA_OK;
}

static proa_status put_string_list(proa_wire_writer *w, const char *attr, const proa_strings *v)
{
    pb_attr *a = new_attr(w, attr, PROA_WIRE_STRINGS);
    if (!a || !(a->strings = proa__arena_array(w->arena, (size_t)v->count, sizeof *a->strings)))
        return proa_error();
    for (; (int64_t)a->n_strings < v->count; a->n_strings++) {
        a->strings[a->n_strings] = proa__arena_text(w->arena, v->at[a->n_strings]);
        if (!a->strings[a->n_strings]) return proa_error();
    }
    return PROA_OK;
}

static proa_status writer_put_ints(proa_wire_writer *w, const char *attr, proa_wire_type type, proa_ints v)
{
    pb_attr *a = new_attr(w, attr, type);
    size_t n = v.at && v.count > 0 ? (size_t)v.count : 0;
    void *at = proa__arena_array(w->arena, n, 8);
    if (!a || !at) return proa_error();
    if (type == PROA_WIRE_LONGS) {
        a->longs = at;
        a->n_longs = n;
        if (n) memcpy(at, v.at, n * sizeof *v.at);
    } else if (type == PROA_WIRE_INTS) {
        a->ints = at;
        a->n_ints = n;
        for (size_t i = 0; i < n; i++) {
            /* INT64_MAX stands for "to the end" (slice): Paddle writes the largest 32-bit integer */
            if (v.at[i] < INT32_MIN || (v.at[i] > INT32_MAX && v.at[i] != INT64_MAX))
                return out_of_type(attr, v.at[i]);
            a->ints[i] = v.at[i] > INT32_MAX ? INT32_MAX : (int32_t)v.at[i];
        }
    } else if (type == PROA_WIRE_BOOLEANS) {
        a->bools = at;
        a->n_bools = n;
        for (size_t i = 0; i < n; i++) a->bools[i] = v.at[i] != 0;
    } else {
        return proa_fail(PROA_ERR_INTERNAL, "attribute %s: type %d is no list of integers", attr, (int)type);
    }
    return PROA_OK;
}

static proa_status put_doubles(proa_wire_writer *w, const char *attr, int type, proa_floats v)
{
    pb_attr *a = new_attr(w, attr, type);
    size_t n = v.at && v.count > 0 ? (size_t)v.count : 0;
    void *at = proa__arena_array(w->arena, n, 8);
    if (!a || !at) return proa_error();
    if (type == PROA_WIRE_FLOAT64S) {
        a->float64s = at;
        a->n_float64s = n;
    } else {
        a->floats = at;
        a->n_floats = n;
    }
    for (size_t i = 0; i < n; i++)
        if (type == PROA_WIRE_FLOAT64S) a->float64s[i] = v.at[i];
        else a->floats[i] = (float)v.at[i];
    return PROA_OK;
}

static proa_status writer_put_floats(proa_wire_writer *w, const char *attr, proa_floats v)
{
    return put_doubles(w, attr, PROA_WIRE_FLOATS, v);
}

static proa_status put_float64(proa_wire_writer *w, const char *attr, double v)
{
    pb_attr *a = new_attr(w, attr, PROA_WIRE_FLOAT64);
    if (!a) return proa_error();
    a->has_float64 = true;
    a->float64 = v;
    return PROA_OK;
}

static proa_status put_scalar(proa_wire_writer *w, const char *attr, const proa_scalar *v)
{
    pb_attr *a = new_attr(w, attr, PROA_WIRE_SCALAR);
    pb_scalar *s = proa__arena_alloc(w->arena, sizeof *s);
    if (!a || !s) return proa_error();
    paddle__framework__proto__scalar__init(s);
    a->scalar = s;
    if (v->kind == PROA_SCALAR_FLOAT) {
        s->type = PADDLE__FRAMEWORK__PROTO__SCALAR__TYPE__FLOAT64;
        s->has_r = true;
        s->r = v->f;
    } else {
        s->type = v->kind == PROA_SCALAR_BOOL ? PADDLE__FRAMEWORK__PROTO__SCALAR__TYPE__BOOLEAN
                                              : PADDLE__FRAMEWORK__PROTO__SCALAR__TYPE__LONG;
        s->has_b = v->kind == PROA_SCALAR_BOOL;
        s->b = v->i != 0;
        s->has_i = !s->has_b;
        s->i = v->i;
    }
    return PROA_OK;
}

/* ---- variables ------------------------------------------------------------------------- */

proa_status proa__put_var(proa_wire_writer *w, const char *name, const proa_meta *meta, int kind,
                          bool persistable, int32_t lod_level)
{
    pb_var *v = proa__arena_alloc(w->arena, sizeof *v);
    pb_var_type *type = proa__arena_alloc(w->arena, sizeof *type);
    Paddle__Framework__Proto__VarType__LoDTensorDesc *lod = proa__arena_alloc(w->arena, sizeof *lod);
    pb_tensor *tensor = proa__arena_alloc(w->arena, sizeof *tensor);
    if (!v || !type || !lod || !tensor) return proa_error();
    paddle__framework__proto__var_desc__init(v);
    paddle__framework__proto__var_type__init(type);
    paddle__framework__proto__var_type__lo_dtensor_desc__init(lod);
    paddle__framework__proto__var_type__tensor_desc__init(tensor);
    if (!(v->name = proa__arena_text(w->arena, name))) return proa_error();
    v->type = type;
    v->has_persistable = true;
    v->persistable = persistable;
    type->type = (Paddle__Framework__Proto__VarType__Type)kind;
    bool array = kind == PB_LOD_TENSOR_ARRAY; /* the VarDesc of an array has the shape of an item */
    if (kind == PB_LOD_TENSOR || array) {
        if (array) {
            type->tensor_array = proa__arena_alloc(w->arena, sizeof *type->tensor_array);
            if (!type->tensor_array) return proa_error();
            paddle__framework__proto__var_type__lo_dtensor_array_desc__init(type->tensor_array);
            type->tensor_array->tensor = tensor;
        } else {
            type->lod_tensor = lod;
            lod->tensor = tensor;
            lod->has_lod_level = true;
            lod->lod_level = lod_level;
        }
        tensor->data_type = (Paddle__Framework__Proto__VarType__Type)proa__dtype_to_wire(meta->dtype);
        int from = array && meta->ndim > 0;
        tensor->n_dims = (size_t)(meta->ndim - from);
        tensor->dims = proa__arena_array(w->arena, tensor->n_dims, sizeof *tensor->dims);
        if (!tensor->dims) return proa_error();
        for (int i = from; i < meta->ndim; i++) tensor->dims[i - from] = meta->shape[i];
    }
    return proa__list_add(&w->vars, w->arena, v);
}

static proa_status writer_put_output_raw(proa_wire_writer *w, const char *slot, proa_tensor *t)
{
    const char *name = proa__wire_name(w, t);
    for (size_t i = 0; name && i < w->vars.count; i++) {
        pb_var *v = w->vars.at[i];
        if (strcmp(v->name, name) != 0) continue;
        v->type->type = (Paddle__Framework__Proto__VarType__Type)PB_RAW;
        v->type->lod_tensor = NULL;
    }
    return writer_put_output(w, slot, t);
}

static proa_tensor *writer_temporary(proa_wire_writer *w, const proa_meta *meta)
{
    char name[64];
    do snprintf(name, sizeof name, "wire_tmp_%u_%d", w->temporaries++, w->block->index);
    while (proa__var_find(w->block, name));
    proa_tensor *t = proa__tensor_bare(meta, PROA_T_SYMBOLIC);
    if (!t || proa_set_name(t, name) != PROA_OK) return NULL;
    return proa__put_var(w, name, meta, PB_LOD_TENSOR, false, 0) == PROA_OK ? t : NULL;
}

bool proa__is_lod_slot(const char *slot)
{
    size_t n = strlen(slot);
    return n > 4 && strcmp(slot + n - 4, "@LOD") == 0;
}

/* ---- the regular walk ------------------------------------------------------------------ */

static proa_status put_text(proa_wire_writer *w, const proa_wire_attr *a, const char *text)
{
    proa_field list = {.name = a->name, .kind = PROA_FIELD_INTS};
    proa_ints ints;
    proa_floats floats;
    switch ((proa_wire_type)a->type) {
    case PROA_WIRE_INT:
    case PROA_WIRE_LONG:
    case PROA_WIRE_BLOCK: return proa_wire_put_int(w, a->name, (proa_wire_type)a->type, proa__text_int(text));
    case PROA_WIRE_BOOLEAN: return proa_wire_put_int(w, a->name, PROA_WIRE_BOOLEAN, proa__text_bool(text));
    case PROA_WIRE_FLOAT: return proa_wire_put_float(w, a->name, proa__text_float(text));
    case PROA_WIRE_FLOAT64: return put_float64(w, a->name, proa__text_float(text));
    case PROA_WIRE_STRING: return proa_wire_put_string(w, a->name, text);
    case PROA_WIRE_INTS:
    case PROA_WIRE_LONGS:
    case PROA_WIRE_BOOLEANS:
        PROA_TRY(proa__field_from_text(&list, &ints, text, w->arena));
        return proa_wire_put_ints(w, a->name, (proa_wire_type)a->type, ints);
    case PROA_WIRE_FLOATS:
    case PROA_WIRE_FLOAT64S:
        list.kind = PROA_FIELD_FLOATS;
        PROA_TRY(proa__field_from_text(&list, &floats, text, w->arena));
        return put_doubles(w, a->name, a->type, floats);
    case PROA_WIRE_STRINGS:
        return new_attr(w, a->name, a->type) ? PROA_OK : proa_error(); /* such constants are empty lists */
    default: return proa_fail(PROA_ERR_INTERNAL, "attribute %s: a constant of type %d", a->name, a->type);
    }
}

static proa_status put_number(proa_wire_writer *w, const proa_wire_attr *a, bool whole, int64_t i, double f)
{
    char text[64];
    switch ((proa_wire_type)a->type) {
    case PROA_WIRE_INT:
    case PROA_WIRE_LONG:
    case PROA_WIRE_BOOLEAN:
        return proa_wire_put_int(w, a->name, (proa_wire_type)a->type, whole ? i : (int64_t)f);
    case PROA_WIRE_INTS:
    case PROA_WIRE_LONGS:
        return proa_wire_put_ints(w, a->name, (proa_wire_type)a->type, (proa_ints){1, &i, NULL, NULL});
    case PROA_WIRE_FLOAT: return proa_wire_put_float(w, a->name, f);
    case PROA_WIRE_FLOAT64: return put_float64(w, a->name, f);
    case PROA_WIRE_FLOATS: return proa_wire_put_floats(w, a->name, (proa_floats){1, &f});
    case PROA_WIRE_STRING:
        if (whole) snprintf(text, sizeof text, "%lld", (long long)i);
        else snprintf(text, sizeof text, "%.17g", f);
        return proa_wire_put_string(w, a->name, text);
    default: return proa_fail(PROA_ERR_INTERNAL, "attribute %s: a number as type %d", a->name, a->type);
    }
}

static proa_status put_field_scalar(proa_wire_writer *w, const proa_wire_attr *a, const proa_scalar *v)
{
    if (a->type == PROA_WIRE_STRING && (v->kind == PROA_SCALAR_NONE || v->kind == PROA_SCALAR_TENSOR))
        return proa_wire_put_string(w, a->name, "");
    if (v->kind == PROA_SCALAR_COMPLEX)
        return proa_fail(PROA_ERR_UNSUPPORTED, "attribute %s: Paddle has no spelling for a complex number",
                         a->name);
    if (a->type == PROA_WIRE_SCALAR) return put_scalar(w, a->name, v);
    bool whole = v->kind != PROA_SCALAR_FLOAT;
    bool given = v->kind != PROA_SCALAR_NONE && v->kind != PROA_SCALAR_TENSOR;
    return put_number(w, a, whole, given ? v->i : 0, !given ? 0 : whole ? (double)v->i : v->f);
}

static proa_status put_enum(proa_wire_writer *w, const proa_wire_attr *a, const proa_field *f, int v)
{
    if (a->type == PROA_WIRE_STRING) return proa_wire_put_string(w, a->name, f->choices[v]);
    return proa_wire_put_int(w, a->name, (proa_wire_type)a->type, v);
}

/* Writes a list attribute some of whose entries come from tensors: these are −1, as Paddle writes them (0
 * would mean "copy the input's dim"). */
static proa_status put_partly_known(proa_wire_writer *w, const proa_wire_attr *a, const proa_ints *v)
{
    int64_t *known = proa__arena_array(w->arena, (size_t)v->count, sizeof *known);
    if (!known) return proa_error();
    for (int64_t i = 0; i < v->count; i++) {
        bool given = v->tensors[i] && !proa__absent(v->tensors[i]);
        known[i] = given || !v->at ? -1 : v->at[i];
    }
    return proa_wire_put_ints(w, a->name, (proa_wire_type)a->type, (proa_ints){v->count, known, NULL, NULL});
}

static proa_status put_field(proa_wire_writer *w, const proa_wire_attr *a, const proa_op *op,
                             const void *args)
{
    const proa_field *f = &op->fields[a->field];
    const void *at = proa_field_at(f, args);
    switch ((proa_field_kind)f->kind) {
    case PROA_FIELD_BOOL: return put_number(w, a, true, *(const bool *)at, *(const bool *)at);
    case PROA_FIELD_INT: {
        int64_t v = *(const int64_t *)at;
        if (a->of && v < 0) v += (*proa_field_tensor(&op->fields[a->of - 1], args))->ndim;
        return put_number(w, a, true, v, (double)v);
    }
    case PROA_FIELD_FLOAT: return put_number(w, a, false, 0, *(const double *)at);
    case PROA_FIELD_DTYPE: {
        int number = proa__dtype_to_wire(*(const proa_dtype *)at);
        return put_number(w, a, true, number, number);
    }
    case PROA_FIELD_ENUM: return put_enum(w, a, f, *(const int *)at);
    case PROA_FIELD_INTS: {
        const proa_ints *v = at;
        if (a->type == PROA_WIRE_INT && v->count == 1 && v->at) return put_number(w, a, true, v->at[0], 0);
        if (v->tensors) return put_partly_known(w, a, v);
        if (a->of)
            return proa__wire_put_axes(w, a->name, (proa_wire_type)a->type, v,
                                       (*proa_field_tensor(&op->fields[a->of - 1], args))->ndim);
        return proa_wire_put_ints(w, a->name, (proa_wire_type)a->type, *v);
    }
    case PROA_FIELD_FLOATS: return put_doubles(w, a->name, a->type, *(const proa_floats *)at);
    case PROA_FIELD_STRING: return proa_wire_put_string(w, a->name, *(const char *const *)at);
    case PROA_FIELD_STRINGS: return put_string_list(w, a->name, at);
    case PROA_FIELD_SCALAR: return put_field_scalar(w, a, at);
    default: return proa_fail(PROA_ERR_INTERNAL, "attribute %s is a tensor", a->name);
    }
}

/* Writes a constant entry of such a list as a fill_constant op, since Paddle wants a tensor for each
 * entry. */
static proa_tensor *constant_entry(proa_wire_writer *w, int64_t v)
{
    char text[32];
    proa_meta meta = {.dtype = PROA_I64, .ndim = 1, .shape = {1}};
    proa_tensor *t = proa_wire_temporary(w, &meta);
    snprintf(text, sizeof text, "%lld", (long long)v);
    if (!t || proa_wire_op(w, "fill_constant") != PROA_OK || proa_wire_put_output(w, "Out", t) != PROA_OK ||
        proa_wire_put_int(w, "dtype", PROA_WIRE_INT, proa__dtype_to_wire(PROA_I64)) != PROA_OK ||
        proa_wire_put_ints(w, "shape", PROA_WIRE_LONGS, PROA_INTS(1)) != PROA_OK ||
        proa_wire_put_float(w, "value", (double)v) != PROA_OK ||
        proa_wire_put_string(w, "str_value", text) != PROA_OK ||
        proa_wire_put_int(w, "force_cpu", PROA_WIRE_BOOLEAN, 0) != PROA_OK ||
        proa_wire_put_int(w, "place_type", PROA_WIRE_INT, -1) != PROA_OK)
        return NULL;
    return t;
}

/* The same, before the op that is begun. */
static proa_tensor *constant_before(proa_wire_writer *w, int64_t v)
{
    proa__open_op *op = w->op;
    w->op = NULL;
    proa_tensor *t = constant_entry(w, v);
    if (!t) return NULL;
    proa__close_op(w);
    void **last = (void **)&w->ops.at[w->ops.count - 1], *made = last[0];
    last[0] = last[-1];
    last[-1] = made;
    w->op = op;
    return t;
}

static proa_status writer_put_number(proa_wire_writer *w, const char *slot, int64_t v)
{
    if (!w->op) return no_op(slot);
    proa_tensor *t = constant_before(w, v);
    return t ? proa_wire_put_input(w, slot, t) : proa_error();
}

static char *name_of(proa_wire_writer *w, const char *attr, const proa_tensor *t)
{
    const char *name = t ? proa__wire_name(w, t) : NULL;
    if (t && !name)
        proa_fail(PROA_ERR_INTERNAL, "attribute %s: a tensor is no variable of the program", attr);
    return name ? proa__arena_text(w->arena, name) : NULL;
}

static proa_status writer_put_variables(proa_wire_writer *w, const char *attr, proa_ints v)
{
    bool one = proa__is_given(v.tensor);
    pb_attr *a = new_attr(w, attr, one ? PROA_WIRE_VAR : PROA_WIRE_VARS);
    if (!a) return proa_error();
    if (one) return (a->var_name = name_of(w, attr, v.tensor)) ? PROA_OK : proa_error();
    a->vars_name = proa__arena_array(w->arena, (size_t)v.count, sizeof *a->vars_name);
    if (!a->vars_name) return proa_error();
    for (; (int64_t)a->n_vars_name < v.count; a->n_vars_name++) {
        size_t i = a->n_vars_name;
        proa_tensor *t = v.tensors[i];
        char *name = name_of(w, attr, proa__is_given(t) ? t : constant_before(w, v.at ? v.at[i] : 0));
        if (!name) return proa_error();
        a->vars_name[i] = name;
    }
    return PROA_OK;
}

/* The tensors from which an op takes an attribute's value. Their own ops are written before the op is
 * begun. */
typedef struct supply {
    proa_tensor *one;
    proa_tensors many;
    bool named; /* the attribute names them */
} supply;

/* The tensors that supply a field, as a list's. */
static proa_ints suppliers(const proa_op *op, const proa_field *f, const void *args)
{
    const void *at = proa_field_at(f, args);
    if (f->kind == PROA_FIELD_INT && f->alias >= 0) at = proa_field_at(&op->fields[f->alias], args);
    else if (f->kind == PROA_FIELD_SCALAR)
        return (proa_ints){.tensor = *(const proa_scalar_kind *)at == PROA_SCALAR_TENSOR
                                         ? ((const proa_scalar *)at)->tensor
                                         : NULL};
    else if (f->kind != PROA_FIELD_INTS) return (proa_ints){0};
    return *(const proa_ints *)at;
}

static bool names_variables(const proa_wire_attr *a) { return a->tensor && !strcmp(a->tensor, a->name); }

static proa_status find_supply(proa_wire_writer *w, const proa_wire_attr *a, const proa_op *op,
                               const proa_field *f, const void *args, supply *to)
{
    const proa_ints all = suppliers(op, f, args), *v = &all;
    if (names_variables(a)) {
        to->named = proa__ints_from_tensor(v);
        return PROA_OK;
    }
    if (all.tensor || all.tensors) {
        to->one = v->tensors ? NULL : v->tensor;
        if (v->tensors) {
            to->many.at = proa__arena_array(w->arena, (size_t)v->count, sizeof(proa_tensor *));
            if (!to->many.at) return proa_error();
            for (; to->many.count < v->count; to->many.count++) {
                int64_t i = to->many.count;
                bool given = v->tensors[i] && !proa__absent(v->tensors[i]);
                to->many.at[i] = given ? v->tensors[i] : constant_entry(w, v->at ? v->at[i] : 0);
                if (!to->many.at[i]) return proa_error();
            }
        }
    }
    if ((to->one && !a->tensor) || (to->many.count && !a->tensors))
        return proa_fail(PROA_ERR_UNSUPPORTED,
                         "attribute %s: Paddle has no slot for a tensor that supplies it", a->name);
    return PROA_OK;
}

static const proa_tensor *in_slot(const proa_op *op, const proa_wire *wire, const void *args,
                                  const char *slot, size_t length, int64_t i)
{
    for (int k = 0; k < wire->n_slots; k++) {
        const proa_wire_slot *s = &wire->slots[k];
        if (strncmp(s->slot, slot, length) != 0 || s->slot[length]) continue;
        const proa_field *f = &op->fields[s->field];
        const proa_tensors all = proa__field_all(f, args);
        return f->role == PROA_IN && i < all.count ? all.at[i] : NULL;
    }
    return NULL;
}

static bool is_level(const proa_tensor *of, const proa_tensor *offsets, int64_t level)
{
    const proa_var *v = proa__slot_var(of);
    if (!v) return false;
    const proa_var *own = proa__lod_level(v, level);
    return proa__absent(offsets) ? !own : own && own == offsets->var;
}

/* UNSUPPORTED if an op's LoD offsets are not those of the tensor in the slot: files cannot name offsets. */
static proa_status check_lod(const proa_op *op, const proa_wire *wire, const void *args,
                             const proa_wire_slot *s)
{
    const proa_field *f = &op->fields[s->field];
    size_t length = strlen(s->slot) - 4;
    int64_t level = -1;
    const proa_tensors all = proa__field_all(f, args);
    for (int i = 0; i < wire->n_attrs && s->slot[0] == 'Y'; i++)
        if (strcmp(wire->attrs[i].name, "ref_level") == 0)
            level = *(const int64_t *)proa_field_at(&op->fields[wire->attrs[i].field], args);
    for (int64_t i = 0; i < all.count; i++) {
        const proa_tensor *of = in_slot(op, wire, args, s->slot, length, i);
        if (of && !is_level(of, all.at[i], level))
            return proa_fail(
                PROA_ERR_UNSUPPORTED,
                "the sequences of %.*s are not those that its variable carries, and Paddle's format "
                "has no other",
                (int)length, s->slot);
    }
    return PROA_OK;
}

static proa_status write_regular(proa_wire_writer *w, const proa_op *op, const void *args,
                                 const proa_wire *wire)
{
    supply *supplies = proa__arena_array(w->arena, (size_t)wire->n_attrs, sizeof *supplies);
    if (!supplies) return proa_error();
    for (int i = 0; i < wire->n_attrs; i++)
        if (wire->attrs[i].field >= 0)
            PROA_TRY(
                find_supply(w, &wire->attrs[i], op, &op->fields[wire->attrs[i].field], args, &supplies[i]));
    PROA_TRY(proa_wire_op(w, wire->type));
    for (int i = 0; i < wire->n_slots; i++) {
        const proa_field *f = &op->fields[wire->slots[i].field];
        if (proa__is_lod_slot(wire->slots[i].slot)) {
            if (f->role == PROA_IN) PROA_TRY(check_lod(op, wire, args, &wire->slots[i]));
            continue;
        }
        const proa_tensors all = proa__field_all(f, args);
        PROA_TRY(put_tensors(w, f->role == PROA_IN, wire->slots[i].slot, all.at, all.count));
    }
    for (int i = 0; i < wire->n_attrs; i++) {
        const proa_wire_attr *a = &wire->attrs[i];
        if (supplies[i].one) PROA_TRY(proa_wire_put_input(w, a->tensor, supplies[i].one));
        if (supplies[i].many.count)
            PROA_TRY(put_tensors(w, true, a->tensors, supplies[i].many.at, supplies[i].many.count));
        if (a->field < 0) PROA_TRY(put_text(w, a, a->constant ? a->constant : ""));
        else if (!supplies[i].named) PROA_TRY(put_field(w, a, op, args));
        else PROA_TRY(proa_wire_put_variables(w, a->name, suppliers(op, &op->fields[a->field], args)));
    }
    return PROA_OK;
}

static proa_status writer_put_form(proa_wire_writer *w, const proa_op *op, int form, const void *args)
{
    return write_regular(w, op, args, &op->wires[form]);
}

/* ---- gradient ops carry what their forward op has ------------------------------------------ */

static proa_status add_missing(proa_wire_writer *w, proa__list *to, pb_slot *const *slots, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool there = false;
        for (size_t k = 0; k < to->count; k++)
            there |= strcmp(((pb_slot *)to->at[k])->parameter, slots[i]->parameter) == 0;
        if (!there) PROA_TRY(proa__list_add(to, w->arena, slots[i]));
    }
    return PROA_OK;
}

/* Removes gradient outputs for inputs that the forward op lacks (a norm without bias): Paddle's kernels would
 * assume that the input exists. */
static void drop_absent(pb_op *grad, const pb_op *of)
{
    size_t kept = 0;
    for (size_t i = 0; i < grad->n_outputs; i++) {
        const char *name = grad->outputs[i]->parameter;
        bool absent = proa__ends_with(name, "@GRAD");
        for (size_t k = 0; k < of->n_inputs; k++) {
            const char *input = of->inputs[k]->parameter;
            size_t n = strlen(input);
            if (of->inputs[k]->n_arguments && !strncmp(name, input, n) && !strcmp(name + n, "@GRAD"))
                absent = false;
        }
        if (!absent) grad->outputs[kept++] = grad->outputs[i];
    }
    grad->n_outputs = kept;
}

/* Adds the forward op's slots and attributes to its gradient op: Paddle's gradient kernels need them, Proa's
 * rules do not. */
static proa_status complete(proa_wire_writer *w, pb_op *grad, const pb_op *of)
{
    proa__list in = {0}, attrs = {0};
    for (size_t i = 0; i < grad->n_inputs; i++) PROA_TRY(proa__list_add(&in, w->arena, grad->inputs[i]));
    for (size_t i = 0; i < grad->n_attrs; i++) PROA_TRY(proa__list_add(&attrs, w->arena, grad->attrs[i]));
    PROA_TRY(add_missing(w, &in, of->inputs, of->n_inputs));
    PROA_TRY(add_missing(w, &in, of->outputs, of->n_outputs));
    for (size_t i = 0; i < of->n_attrs; i++) {
        bool there = false;
        for (size_t k = 0; k < grad->n_attrs; k++)
            there |= strcmp(grad->attrs[k]->name, of->attrs[i]->name) == 0;
        if (!there) PROA_TRY(proa__list_add(&attrs, w->arena, of->attrs[i]));
    }
    grad->inputs = (pb_slot **)(void *)in.at;
    grad->n_inputs = in.count;
    grad->attrs = (pb_attr **)(void *)attrs.at;
    grad->n_attrs = attrs.count;
    drop_absent(grad, of);
    return PROA_OK;
}

static proa_status complete_gradients(proa_wire_writer *w)
{
    w->forwards.arena = w->arena;
    for (; w->indexed < w->ops.count; w->indexed++) {
        pb_op *op = w->ops.at[w->indexed];
        pb_op *const *ops = (pb_op *const *)(void *)w->ops.at;
        size_t of;
        if (proa__forward_find(&w->forwards, op, ops, &of)) PROA_TRY(complete(w, op, ops[of]));
        PROA_TRY(proa__forward_add(&w->forwards, op, w->indexed));
    }
    return PROA_OK;
}

/* Writes an op by its first wire form: by the form's function, or by its slots and attributes. */
proa_status proa__write_op(proa_wire_writer *w, const proa_instr *instr)
{
    const proa_op *op = instr->op;
    w->role = instr->role;
    w->device = instr->device;
    if (proa__is_control(op)) return proa__write_control(w, instr);
    for (int i = 0; i < op->n_wires; i++) {
        const proa_wire *wire = &op->wires[i];
        if (!wire->write && wire->read && wire->n_slots == 0) continue; /* an old spelling, only read */
        proa_status status =
            wire->write ? wire->write(instr->args, w) : write_regular(w, op, instr->args, wire);
        proa__close_op(w);
        if (status == PROA_OK) status = proa_error();
        return status == PROA_OK && w->completes ? complete_gradients(w) : status;
    }
    return proa_fail(PROA_ERR_UNSUPPORTED, "op '%s' has no spelling in Paddle's program format", op->name);
}

#define WRITER(result, name, parameters, arguments) .name##_ = writer_##name,
const proa__wire_writer_table proa__writer_table = {PROA__WIRE_WRITER(WRITER)};

#else
typedef int proa__no_write_op; /* C wants a declaration in every file */
#endif
