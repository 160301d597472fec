/* Reads one op of a program file: chooses the wire form that fits, fills the op's args struct from slots and
 * attributes, and calls the op, which capture appends to the program or which runs at once. Also implements
 * proa/wire.h's reader, through which ops with irregular forms are read. May use jit, core and io's own
 * headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/program_read.h"

#include "core/args_visit.h"
#include "core/run.h"

#include <proa/ops.h>
#include <proa/program.h>

/* ---- slots and names ------------------------------------------------------------------- */

const pb_slot *proa__slot_find(pb_slot *const *slots, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(slots[i]->parameter, name) == 0) return slots[i];
    return NULL;
}

const pb_attr *proa__attr_find(const pb_op *desc, const char *name)
{
    for (size_t i = 0; i < desc->n_attrs; i++)
        if (strcmp(desc->attrs[i]->name, name) == 0) return desc->attrs[i];
    return NULL;
}

bool proa__no_name(const char *name) { return !name[0] || strcmp(name, "@EMPTY@") == 0; }

proa_tensor *proa__name_find(proa_wire_reader *r, const char *slot, const char *name)
{
    const proa__load *l = r->load;
    const proa__level *level = r->level;
    if (level->pending && proa__resolve_reads(r, name) != PROA_OK) return NULL;
    for (size_t steps = 0; level && steps <= l->pb->n_blocks; steps++) {
        proa_tensor *t = proa__hash_map_find(&level->names, name);
        if (t) return t;
        int32_t parent = level->pb->parent_idx;
        level = parent >= 0 && (size_t)parent < l->pb->n_blocks ? &l->levels[parent] : NULL;
    }
    proa_fail(PROA_ERR_CORRUPT, "input %s names '%s', which nothing before it makes", slot, name);
    return NULL;
}

bool proa__name_known(const proa_wire_reader *r, const char *name)
{
    const proa__level *level = r->level;
    for (size_t steps = 0; level && steps <= r->load->pb->n_blocks; steps++) {
        if (proa__hash_map_find(&level->names, name)) return true;
        int32_t parent = level->pb->parent_idx;
        level = parent >= 0 && (size_t)parent < r->load->pb->n_blocks ? &r->load->levels[parent] : NULL;
    }
    return false;
}

/* Notes that var, which this op made, is to be called `name` when the program is read. */
static proa_status plan_rename(proa_wire_reader *r, const char *name, proa_var *var)
{
    proa__load *l = r->load;
    if (l->n_renames == l->renames_capacity) {
        size_t capacity = l->renames_capacity ? l->renames_capacity * 2 : 256;
        proa__rename *grown = proa__arena_array(&l->arena, capacity, sizeof *grown);
        if (!grown) return proa_error();
        if (l->n_renames) memcpy(grown, l->renames, l->n_renames * sizeof *grown);
        l->renames = grown;
        l->renames_capacity = capacity;
    }
    l->renames[l->n_renames++] = (proa__rename){var, name};
    return PROA_OK;
}

/* If `name` is a persistable variable, the tensor that an op's result `made` is to be copied into; otherwise
 * NULL. */
static proa_tensor *written(const proa_wire_reader *r, const char *name, const proa_var *made)
{
    proa_tensor *now = proa__hash_map_find(&r->load->levels[0].names, name);
    return now && proa_is_symbolic(now) && now->var->persistable && now->var != made ? now : NULL;
}

proa_status proa__name_bind(proa_wire_reader *r, const char *name, proa_tensor *t)
{
    if (proa__no_name(name) || proa__absent(t)) return PROA_OK;
    if (!t) return proa_error() ? proa_error() : proa_fail(PROA_ERR_INTERNAL, "result '%s' is NULL", name);
    proa_var *var = proa_is_symbolic(t) ? t->var : NULL;
    proa_assign_args write = {.x = t, .out = written(r, name, var)};
    if (write.out) return proa_call_op(proa_find_op("assign"), &write);
    PROA_TRY(proa__hash_map_put(&r->level->names, name, t));
    const proa_block *block = r->level->block; /* NULL for a call of a single op, even under capture */
    if (var && block && var->index >= r->first_var && var->index < block->n_vars &&
        block->vars[var->index] == var && !var->persistable)
        return plan_rename(r, name, var);
    return PROA_OK;
}

/* ---- the form that fits ---------------------------------------------------------------- */

static bool form_fits(const proa__form *form, const pb_op *desc, const char **why)
{
    const proa_wire *w = form->wire;
    for (int i = 0; i < w->n_attrs; i++) {
        const pb_attr *a = w->attrs[i].field < 0 ? proa__attr_find(desc, w->attrs[i].name) : NULL;
        if (!a || !w->attrs[i].constant || proa__attr_holds(w->attrs[i].constant, a)) continue;
        if (w->attrs[i].missing) continue; /* a constant that the file may give any value */
        if (w->read && strcmp(w->attrs[i].name, "axis") == 0) continue; /* its reader aligns y by axis */
        *why = w->attrs[i].name;
        return false;
    }
    return true;
}

static bool wire_knows(const proa_wire *w, const proa_op *op, const char *slot)
{
    for (int i = 0; i < w->n_slots; i++)
        if (op->fields[w->slots[i].field].role == PROA_IN && strcmp(w->slots[i].slot, slot) == 0) return true;
    for (int i = 0; i < w->n_attrs; i++) {
        const proa_wire_attr *a = &w->attrs[i];
        if ((a->tensor && strcmp(a->tensor, slot) == 0) || (a->tensors && strcmp(a->tensors, slot) == 0))
            return true;
    }
    return false;
}

static bool slot_empty(const pb_slot *s)
{
    for (size_t i = 0; s && i < s->n_arguments; i++)
        if (!proa__no_name(s->arguments[i])) return false;
    return true;
}

/* UNSUPPORTED if the op has an input that the form lacks: ignoring it would give wrong results. */
static proa_status check_slots(const proa__form *form, const pb_op *desc)
{
    for (size_t i = 0; i < desc->n_inputs; i++)
        if (!slot_empty(desc->inputs[i]) && !wire_knows(form->wire, form->op, desc->inputs[i]->parameter))
            return proa_fail(PROA_ERR_UNSUPPORTED, "input %s (%s) is not supported",
                             desc->inputs[i]->parameter, desc->inputs[i]->arguments[0]);
    return PROA_OK;
}

/* ---- offsets of sequences: slots "X@LOD" of a form, and no slots of a file ------------------- */

bool proa__is_lod_slot(const char *slot);

static const pb_slot *base_slot(pb_slot *const *slots, size_t n, const char *lod_slot)
{
    size_t length = strlen(lod_slot) - 4;
    for (size_t i = 0; i < n; i++)
        if (strncmp(slots[i]->parameter, lod_slot, length) == 0 && !slots[i]->parameter[length])
            return slots[i];
    return NULL;
}

enum { NAMED_LEVEL = 64 }; /* bytes: in an eager call a tensor's name is its address */

static void name_level(char *to, const char *name, int64_t level)
{
    snprintf(to, NAMED_LEVEL, "%.40s@LOD_%d", name, (int)level);
}

/* The LoD offsets of a tensor in an eager call, which are bound to names derived from the tensor's. */
static proa_tensors named_levels(const proa_wire_reader *r, const char *name)
{
    proa_tensors levels = {0, NULL};
    char key[NAMED_LEVEL];
    proa_tensor *found;
    levels.at = proa_scope_alloc(PROA__LOD_MAX * sizeof *levels.at);
    for (; levels.at && levels.count < PROA__LOD_MAX; levels.at[levels.count++] = found) {
        name_level(key, name, levels.count);
        if (!(found = proa__hash_map_find(&r->level->names, key))) break;
    }
    return levels;
}

/* The offsets of t's level (−1: the innermost), or PROA_NONE. */
static proa_tensor *level_of(const proa_wire_reader *r, const proa_tensor *t, const char *name, int64_t level)
{
    proa_tensors levels = proa_is_symbolic(t) ? proa_variable_lod(NULL, t) : named_levels(r, name);
    if (level < 0) level += levels.count;
    return level >= 0 && level < levels.count ? levels.at[level] : PROA_NONE;
}

static proa_status slot_tensors(proa_wire_reader *r, const pb_slot *s, proa_tensors *list);

static proa_status fill_lod(proa_wire_reader *r, const proa_field *f, void *args, const char *slot)
{
    proa_tensors of;
    const pb_attr *ref = slot[0] == 'Y' ? proa__attr_find(r->desc, "ref_level") : NULL;
    int64_t level = -1;
    if (ref && !proa__attr_int(ref, &level)) level = -1;
    const pb_slot *base = base_slot(r->desc->inputs, r->desc->n_inputs, slot);
    PROA_TRY(slot_tensors(r, base, &of));
    for (int64_t i = 0; i < of.count; i++) {
        proa_tensor *offsets = level_of(r, of.at[i], base->arguments[i], level);
        if (!offsets) return proa_error();
        if (proa__absent(offsets) && !(f->flags & PROA_FIELD_OPTIONAL))
            return proa_fail(
                PROA_ERR_UNSUPPORTED,
                "input %.*s carries no sequences (LoD) that are known here: nothing before it makes or "
                "keeps them",
                (int)strlen(slot) - 4, slot);
        of.at[i] = offsets;
    }
    proa_tensors *list = proa__field_list(f, args);
    if (list) *list = of;
    else if (of.count) *proa_field_tensor(f, args) = of.at[0];
    return PROA_OK;
}

/* The name of the first variable in a field's slot; NULL if the slot has none. */
static const char *argument_of(const proa__form *form, pb_slot *const *slots, size_t n, int field)
{
    for (int i = 0; i < form->wire->n_slots; i++) {
        const proa_wire_slot *s = &form->wire->slots[i];
        const pb_slot *found = s->field == field ? proa__slot_find(slots, n, s->slot) : NULL;
        if (found && found->n_arguments) return found->arguments[0];
    }
    return NULL;
}

/* Binds offsets to names derived from that of an eager call's tensor. */
static proa_status name_levels(const proa_wire_reader *r, const char *name, proa_tensors levels)
{
    for (int64_t i = 0; name && i < levels.count; i++) {
        char *key = proa__arena_array(&r->load->arena, NAMED_LEVEL, 1);
        if (!key) return proa_error();
        name_level(key, name, i);
        PROA_TRY(proa__hash_map_put(&r->level->names, key, levels.at[i]));
    }
    return PROA_OK;
}

static proa_status give_levels(const proa_wire_reader *r, const proa__form *form, proa_tensor *result,
                               proa_tensors levels)
{
    const proa_op *op = form->op;
    if (proa_is_symbolic(result)) return proa_set_variable_lod(NULL, result, levels);
    return name_levels(r, argument_of(form, r->desc->outputs, r->desc->n_outputs, op->n_in + op->n_attr),
                       levels);
}

/* The name of an op's first input. */
static const char *first_argument(const proa_wire_reader *r, const proa__form *form)
{
    if (!form->wire->read) return argument_of(form, r->desc->inputs, r->desc->n_inputs, 0);
    const pb_slot *s = proa__slot_find(r->desc->inputs, r->desc->n_inputs, "X");
    if (!s) s = proa__slot_find(r->desc->inputs, r->desc->n_inputs, "Input");
    return s && s->n_arguments ? s->arguments[0] : NULL;
}

/* Eager calls of ops that keep levels: outputs with as many rows as the first input form its sequences. In
 * programs the capture door gives them. */
static proa_status share_lod(const proa_wire_reader *r, const proa__form *form)
{
    const char *name = form->op && form->op->flags & PROA_OP_LOD_SHARE ? first_argument(r, form) : NULL;
    const proa_tensor *x = name ? proa__hash_map_find(&r->level->names, name) : NULL;
    if (!x || proa_is_symbolic(x) || x->ndim < 1) return proa_error();
    proa_tensors levels = named_levels(r, name);
    for (size_t i = 0; levels.count && i < r->desc->n_outputs; i++) {
        const pb_slot *s = r->desc->outputs[i];
        for (size_t k = 0; k < s->n_arguments; k++) {
            const proa_tensor *t = proa__hash_map_find(&r->level->names, s->arguments[k]);
            if (t && !proa__absent(t) && t->ndim > 0 && t->shape[0] == x->shape[0])
                PROA_TRY(name_levels(r, s->arguments[k], levels));
        }
    }
    return proa_error();
}

/* Sets the LoD of an op's results after the call. An op that removes the innermost level keeps the others. */
static proa_status result_lod(const proa_wire_reader *r, const proa__form *form, const void *args)
{
    const proa_op *op = form->op;
    proa_tensor **out = proa__field_one(&op->fields[op->n_in + op->n_attr], args);
    proa_tensor **in = proa__field_one(&op->fields[0], args);
    proa_tensor *result = out ? *out : NULL;
    const proa_tensor *x = in ? *in : NULL;
    bool takes = false;
    if (!result || proa__absent(result)) return PROA_OK;
    for (int i = 0; i < form->wire->n_slots; i++) {
        const proa_wire_slot *s = &form->wire->slots[i];
        proa_tensor **offsets =
            proa__is_lod_slot(s->slot) ? proa__field_one(&op->fields[s->field], args) : NULL;
        if (!offsets) continue;
        takes |= strcmp(s->slot, "X@LOD") == 0;
        if (!base_slot(r->desc->outputs, r->desc->n_outputs, s->slot)) continue;
        return proa__absent(*offsets) ? PROA_OK : give_levels(r, form, result, PROA_LIST(*offsets));
    }
    if (!x || proa__absent(x) || !takes || op->flags & PROA_OP_LOD_SHARE) return PROA_OK;
    const char *name = argument_of(form, r->desc->inputs, r->desc->n_inputs, 0);
    proa_tensors levels =
        proa_is_symbolic(x) ? proa_variable_lod(NULL, x) : named_levels(r, name ? name : "");
    if (levels.count > 0) levels.count--;
    return proa_error() == PROA_OK ? give_levels(r, form, result, levels) : proa_error();
}

/* Gives the result of mul and fc the LoD of its first operand, as Paddle does; the matmul that they are read
 * as does not. */
static proa_status keep_lod(proa_wire_reader *r)
{
    bool mul = strcmp(r->desc->type, "mul") == 0;
    if (!mul && strcmp(r->desc->type, "fc") != 0) return PROA_OK;
    const proa_tensor *x = proa_wire_input(r, mul ? "X" : "Input");
    proa_tensor *out = proa_wire_output_now(r, "Out");
    if (!x || !out || !proa_is_symbolic(x) || !proa_is_symbolic(out) || x == out) return proa_error();
    proa_tensors levels = proa_variable_lod(NULL, x);
    return proa_error() == PROA_OK && levels.count ? proa_set_variable_lod(NULL, out, levels) : proa_error();
}

/* ---- the regular walk ------------------------------------------------------------------ */

static proa_status slot_tensors(proa_wire_reader *r, const pb_slot *s, proa_tensors *list)
{
    *list = (proa_tensors){0, NULL};
    if (!s || s->n_arguments == 0) return PROA_OK;
    list->at = proa__arena_array(&r->load->arena, s->n_arguments, sizeof *list->at);
    if (!list->at) return proa_error();
    for (size_t i = 0; i < s->n_arguments; i++) {
        const char *name = s->arguments[i];
        proa_tensor *t = proa__no_name(name) ? PROA_NONE : proa__name_find(r, s->parameter, name);
        if (!t) return proa_error();
        list->at[list->count++] = t;
    }
    return PROA_OK;
}

static proa_status fill_input(proa_wire_reader *r, const proa_field *f, void *args, const pb_slot *s)
{
    proa_tensors list;
    PROA_TRY(slot_tensors(r, s, &list));
    proa_tensors *many = proa__field_list(f, args);
    if (many) {
        *many = list;
        return PROA_OK;
    }
    if (list.count > 1)
        return proa_fail(PROA_ERR_CORRUPT, "input %s has %lld variables, expected one", s->parameter,
                         (long long)list.count);
    if (list.count == 1) *proa_field_tensor(f, args) = list.at[0];
    return PROA_OK;
}

/* Sets all tensors to absent and all attributes to their defaults before the file's are read. */
static proa_status fill_defaults(proa_wire_reader *r, const proa_op *op, void *args)
{
    for (int i = 0; i < op->n_in + op->n_attr; i++) {
        const proa_field *f = &op->fields[i];
        proa_tensor **one = proa__field_one(f, args);
        if (one) *one = PROA_NONE;
        else if (f->role == PROA_ATTR && f->fallback)
            PROA_TRY(proa__field_from_text(f, args, f->fallback, &r->load->arena));
    }
    return PROA_OK;
}

/* Fills an attribute whose value the op takes from variables; *given becomes true if the file names some. */
static proa_status fill_from_tensors(proa_wire_reader *r, const proa_wire_attr *wa, const proa_op *op,
                                     const proa_field *f, void *args, bool *given)
{
    bool supplied = false;
    if (f->kind == PROA_FIELD_INT && f->alias >= 0) f = &op->fields[f->alias];
    void *at = proa_field_at(f, args);
    proa_ints v = f->kind == PROA_FIELD_INTS ? *(proa_ints *)at : (proa_ints){0};
    PROA_TRY(proa__list_supplied(r, wa->name, wa->tensor, wa->tensors, &v, &supplied));
    *given |= supplied;
    if (!supplied) return PROA_OK;
    if (f->kind == PROA_FIELD_INTS) *(proa_ints *)at = v;
    else if (f->kind == PROA_FIELD_SCALAR && v.tensor) *(proa_scalar *)at = proa_scalar_tensor(v.tensor);
    else return proa_fail(PROA_ERR_UNSUPPORTED, "attribute %s cannot be supplied by variables", wa->name);
    return PROA_OK;
}

static proa_status fill_attr(proa_wire_reader *r, const proa__form *form, const proa_wire_attr *wa,
                             void *args)
{
    if (wa->field < 0) return PROA_OK;
    const proa_field *f = &form->op->fields[wa->field];
    const pb_attr *a = proa__attr_find(r->desc, wa->name);
    bool given = true;
    if (a && !proa__attr_is_variables(a)) PROA_TRY(proa__attr_to_field(r, f, args, a));
    else if (wa->missing) PROA_TRY(proa__field_from_text(f, args, wa->missing, &r->load->arena));
    else given = f->fallback != NULL;
    PROA_TRY(fill_from_tensors(r, wa, form->op, f, args, &given));
    if (given) return PROA_OK;
    return proa_fail(PROA_ERR_CORRUPT, "attribute %s is missing", wa->name);
}

static proa_status bind_output(proa_wire_reader *r, const proa_field *f, const void *args, const pb_slot *s)
{
    if (!s || s->n_arguments == 0) return PROA_OK;
    const proa_tensors *list = proa__field_list(f, args);
    if (!list) {
        proa_tensor *t = *proa_field_tensor(f, args);
        return t ? proa__name_bind(r, s->arguments[0], t) : PROA_OK;
    }
    if ((int64_t)s->n_arguments > list->count)
        return proa_fail(PROA_ERR_CORRUPT, "output %s names %zu variables, the op makes %lld", s->parameter,
                         s->n_arguments, (long long)list->count);
    for (size_t i = 0; i < s->n_arguments; i++) PROA_TRY(proa__name_bind(r, s->arguments[i], list->at[i]));
    return PROA_OK;
}

static proa_status check_required(const proa__form *form, const void *args)
{
    for (int i = 0; i < form->op->n_in; i++) {
        const proa_field *f = &form->op->fields[i];
        proa_tensor **one = proa__field_one(f, args);
        if (!one || f->flags & PROA_FIELD_OPTIONAL || !proa__absent(*one)) continue;
        for (int k = 0; k < form->wire->n_slots; k++)
            if (form->wire->slots[k].field == i)
                return proa_fail(PROA_ERR_CORRUPT, "input %s is missing", form->wire->slots[k].slot);
        return proa_fail(PROA_ERR_UNSUPPORTED, "input '%s' is not in the file", f->name);
    }
    return PROA_OK;
}

static proa_status read_regular(proa_wire_reader *r, const proa__form *form)
{
    const proa_op *op = form->op;
    const proa_wire *w = form->wire;
    const pb_op *d = r->desc;
    void *args = proa__arena_alloc(&r->load->arena, op->args_size);
    if (!args) return proa_error();
    PROA_TRY(check_slots(form, d));
    PROA_TRY(fill_defaults(r, op, args));
    for (int i = 0; i < w->n_slots; i++) {
        const proa_field *f = &op->fields[w->slots[i].field];
        if (f->role != PROA_IN) continue;
        if (!proa__is_lod_slot(w->slots[i].slot))
            PROA_TRY(fill_input(r, f, args, proa__slot_find(d->inputs, d->n_inputs, w->slots[i].slot)));
        else if (base_slot(d->inputs, d->n_inputs, w->slots[i].slot))
            PROA_TRY(fill_lod(r, f, args, w->slots[i].slot));
    }
    PROA_TRY(check_required(form, args));
    for (int i = 0; i < w->n_attrs; i++) PROA_TRY(fill_attr(r, form, &w->attrs[i], args));
    PROA_TRY(proa_call_from(r->load->door, op, args));
    for (int i = 0; i < w->n_slots; i++) {
        const proa_field *f = &op->fields[w->slots[i].field];
        if (f->role == PROA_OUT)
            PROA_TRY(bind_output(r, f, args, proa__slot_find(d->outputs, d->n_outputs, w->slots[i].slot)));
    }
    return result_lod(r, form, args);
}

proa_status proa__read_op(proa_wire_reader *r)
{
    const char *why = NULL;
    const proa__form *form = NULL;
    size_t at = 0;
    if (proa__reads_control(r->desc->type)) return proa__read_control(r);
    if (proa__has_forward(r, &at)) return proa__read_grad(r, at);
    if (!proa__forms_next(&r->load->forms, NULL, r->desc->type))
        return proa_fail(PROA_ERR_UNSUPPORTED, "the op whose gradient this is does not come before it");
    while ((form = proa__forms_next(&r->load->forms, form, r->desc->type)) != NULL) {
        if (form->wire->write && !form->wire->read && form->wire->n_slots == 0) continue; /* only written */
        if (!form_fits(form, r->desc, &why)) continue;
        proa_status status = form->wire->read ? form->wire->read(r) : read_regular(r, form);
        if (status == PROA_OK && form->wire->read) status = keep_lod(r);
        if (status == PROA_OK) status = share_lod(r, form);
        return status == PROA_OK ? proa_error() : status;
    }
    const pb_attr *a = why ? proa__attr_find(r->desc, why) : NULL;
    double v;
    if (a && (int)a->type == PROA_WIRE_STRING)
        return proa_fail(PROA_ERR_UNSUPPORTED, "attribute %s = '%s' is not supported", why, a->s ? a->s : "");
    if (a && proa__attr_float(a, &v))
        return proa_fail(PROA_ERR_UNSUPPORTED, "attribute %s = %g is not supported", why, v);
    return proa_fail(PROA_ERR_UNSUPPORTED, "attribute %s has a value that is not supported", why ? why : "?");
}

/* ---- what irregular forms read through ------------------------------------------------- */

static proa_tensor *reader_input(proa_wire_reader *r, const char *slot)
{
    bool offsets = proa__is_lod_slot(slot); /* files have no slots for offsets */
    const pb_slot *base = offsets ? base_slot(r->desc->inputs, r->desc->n_inputs, slot) : NULL;
    proa_tensors list = {0, NULL};
    if (!offsets) list = proa_wire_inputs(r, slot);
    else if (slot_tensors(r, base, &list) != PROA_OK) return NULL;
    if (proa_error() != PROA_OK) return NULL;
    if (offsets) return list.count ? level_of(r, list.at[0], base->arguments[0], -1) : PROA_NONE;
    if (list.count > 1) {
        proa_fail(PROA_ERR_CORRUPT, "input %s has %lld variables, expected one", slot, (long long)list.count);
        return NULL;
    }
    return list.count ? list.at[0] : PROA_NONE;
}

static proa_tensors reader_inputs(proa_wire_reader *r, const char *slot)
{
    bool offsets = proa__is_lod_slot(slot);
    const pb_slot *s = offsets ? base_slot(r->desc->inputs, r->desc->n_inputs, slot)
                               : proa__slot_find(r->desc->inputs, r->desc->n_inputs, slot);
    proa_tensors list;
    if (slot_tensors(r, s, &list) != PROA_OK) return (proa_tensors){0, NULL};
    for (int64_t i = 0; offsets && i < list.count; i++)
        if (!(list.at[i] = level_of(r, list.at[i], s->arguments[i], -1))) return (proa_tensors){0, NULL};
    return list;
}

static bool reader_has(proa_wire_reader *r, const char *attr)
{
    return proa__attr_find(r->desc, attr) != NULL;
}

static void misfit(const pb_attr *a, const char *expected)
{
    proa_fail(PROA_ERR_CORRUPT, "attribute %s of type number %d is no %s", a->name, (int)a->type, expected);
}

static int64_t reader_int(proa_wire_reader *r, const char *attr, int64_t missing)
{
    const pb_attr *a = proa__attr_find(r->desc, attr);
    int64_t v = missing;
    if (a && !proa__attr_int(a, &v)) misfit(a, "integer");
    return v;
}

static double reader_float(proa_wire_reader *r, const char *attr, double missing)
{
    const pb_attr *a = proa__attr_find(r->desc, attr);
    double v = missing;
    if (a && !proa__attr_float(a, &v)) misfit(a, "number");
    return v;
}

static const char *reader_string(proa_wire_reader *r, const char *attr, const char *missing)
{
    const pb_attr *a = proa__attr_find(r->desc, attr);
    if (!a) return missing;
    if ((int)a->type == PROA_WIRE_STRING) return a->s ? a->s : "";
    misfit(a, "string");
    return missing;
}

static const char *reader_string_at(proa_wire_reader *r, const char *attr, int64_t index)
{
    const pb_attr *a = proa__attr_find(r->desc, attr);
    return a && index >= 0 && index < (int64_t)a->n_strings ? a->strings[index] : NULL;
}

static proa_ints reader_ints(proa_wire_reader *r, const char *attr)
{
    proa_ints v = {0, NULL, NULL, NULL};
    const pb_attr *a = proa__attr_find(r->desc, attr);
    if (a && !proa__attr_ints(a, &r->load->arena, &v)) misfit(a, "list of integers");
    return v;
}

static proa_ints reader_list(proa_wire_reader *r, const char *attr, const char *tensor, const char *tensors)
{
    const pb_attr *a = proa__attr_find(r->desc, attr);
    proa_ints v = a && !proa__attr_is_variables(a) ? reader_ints(r, attr) : (proa_ints){0};
    bool given = false;
    return proa__list_supplied(r, attr, tensor, tensors, &v, &given) == PROA_OK ? v : (proa_ints){0};
}

static proa_ints reader_variables(proa_wire_reader *r, const char *attr)
{
    const pb_attr *a = proa__attr_find(r->desc, attr);
    return a && proa__attr_is_variables(a) ? reader_list(r, attr, NULL, NULL) : (proa_ints){0};
}

static proa_floats reader_floats(proa_wire_reader *r, const char *attr)
{
    proa_floats v = {0, NULL};
    const pb_attr *a = proa__attr_find(r->desc, attr);
    if (a && !proa__attr_floats(a, &r->load->arena, &v)) misfit(a, "list of numbers");
    return v;
}

static proa_dtype reader_dtype(proa_wire_reader *r, const char *attr, proa_dtype missing)
{
    int64_t number = proa_wire_int(r, attr, -1);
    proa_dtype v = missing;
    if (number != -1 && proa__attr_dtype(attr, number, &v) != PROA_OK) return missing;
    return v;
}

static proa_tensor *reader_output_now(proa_wire_reader *r, const char *slot)
{
    const pb_slot *s = proa__slot_find(r->desc->outputs, r->desc->n_outputs, slot);
    if (s && s->n_arguments == 1) return proa__name_find(r, slot, s->arguments[0]);
    proa_fail(PROA_ERR_CORRUPT, "output %s must name one variable", slot);
    return NULL;
}

static bool reader_stops_gradient(proa_wire_reader *r, const char *slot)
{
    const pb_slot *s = proa__slot_find(r->desc->outputs, r->desc->n_outputs, slot);
    const pb_block *b = r->level->pb;
    for (size_t i = 0; s && s->n_arguments == 1 && b && i < b->n_vars; i++)
        if (strcmp(b->vars[i]->name, s->arguments[0]) == 0) return b->vars[i]->stop_gradient;
    return false;
}

/* Gives the result that slot X is bound to the sequences that "X@LOD" got. */
static proa_status reader_offsets(proa_wire_reader *r, const char *slot, proa_tensor *offsets)
{
    const pb_slot *s = base_slot(r->desc->outputs, r->desc->n_outputs, slot);
    if (!s || !s->n_arguments) return PROA_OK;
    proa_tensor *result = proa__name_find(r, s->parameter, s->arguments[0]);
    if (!result) return proa_error();
    if (proa_is_symbolic(result)) return proa_set_variable_lod(NULL, result, PROA_LIST(offsets));
    return name_levels(r, s->arguments[0], PROA_LIST(offsets));
}

static proa_status reader_result(proa_wire_reader *r, const char *slot, proa_tensor *t)
{
    const pb_slot *s = proa__slot_find(r->desc->outputs, r->desc->n_outputs, slot);
    PROA_TRY(proa_error());
    if (!t) return proa_fail(PROA_ERR_INTERNAL, "output %s: NULL without an error", slot);
    if (proa__is_lod_slot(slot)) return reader_offsets(r, slot, t);
    return s && s->n_arguments ? proa__name_bind(r, s->arguments[0], t) : PROA_OK;
}

static proa_status reader_results(proa_wire_reader *r, const char *slot, proa_tensors ts)
{
    const pb_slot *s = proa__slot_find(r->desc->outputs, r->desc->n_outputs, slot);
    PROA_TRY(proa_error());
    if (!s) return PROA_OK;
    if ((int64_t)s->n_arguments > ts.count)
        return proa_fail(PROA_ERR_CORRUPT, "output %s names %zu variables, the op makes %lld", slot,
                         s->n_arguments, (long long)ts.count);
    for (size_t i = 0; i < s->n_arguments; i++) PROA_TRY(proa__name_bind(r, s->arguments[i], ts.at[i]));
    return PROA_OK;
}

#define READER(result, name, parameters, arguments) .name##_ = reader_##name,
const proa__wire_reader_table proa__reader_table = {PROA__WIRE_READER(READER)};

#else
typedef int proa__no_read_op; /* C wants a declaration in every file */
#endif
