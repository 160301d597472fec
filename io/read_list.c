/* Reads list attributes that variables supply: through slots of the op, or because the attribute itself names
 * them (types VAR and VARS). May use core, ops and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/program_read.h"

#include "core/internal.h"
#include "ops/ints.h"

#include <stdlib.h>

/* Variables by name: those of a slot, or of an attribute. */
typedef struct names {
    const char *where;
    char *const *at;
    size_t count;
} names;

bool proa__attr_is_variables(const pb_attr *a)
{
    return (int)a->type == PROA_WIRE_VAR || (int)a->type == PROA_WIRE_VARS;
}

static names of_slot(const pb_op *op, const char *slot)
{
    const pb_slot *s = slot ? proa__slot_find(op->inputs, op->n_inputs, slot) : NULL;
    return s ? (names){slot, s->arguments, s->n_arguments} : (names){0};
}

/* The last op of the block before r's that writes `name`, or NULL. */
static const pb_op *maker_of(const proa_wire_reader *r, const char *name)
{
    for (size_t i = r->level->pb ? r->at : 0; i-- > 0;) {
        const pb_op *op = r->level->pb->ops[i];
        for (size_t s = 0; s < op->n_outputs; s++)
            for (size_t k = 0; k < op->outputs[s]->n_arguments; k++)
                if (strcmp(op->outputs[s]->arguments[k], name) == 0) return op;
    }
    return NULL;
}

/* Whether `name` is a constant of one element; *v is its value. Paddle writes the numbers of a list so, among
 * the variables of others. */
static bool constant_of(const proa_wire_reader *r, const char *name, int64_t *v)
{
    const pb_op *op = maker_of(r, name);
    if (!op || strcmp(op->type, "fill_constant") != 0) return false;
    for (size_t i = 0; i < op->n_inputs; i++)
        if (op->inputs[i]->n_arguments) return false;
    const pb_attr *shape = proa__attr_find(op, "shape"), *value = proa__attr_find(op, "value"),
                  *text = proa__attr_find(op, "str_value");
    bool one = shape && (shape->n_longs ? shape->n_longs == 1 && shape->longs[0] == 1 : !shape->n_ints);
    if (!one) return false;
    if (text && text->s && text->s[0]) {
        char *end = NULL;
        *v = strtoll(text->s, &end, 10);
        return *end == '\0';
    }
    return value && proa__attr_int(value, v);
}

/* Stores entries that variables supply, and beside constants among them what these hold. */
static proa_status supply_entries(proa_wire_reader *r, names from, proa_ints *v)
{
    int64_t *numbers = proa__arena_array(&r->load->arena, from.count, sizeof *numbers);
    proa_tensor **entries = proa__arena_array(&r->load->arena, from.count, sizeof(proa_tensor *));
    if (!numbers || !entries) return proa_error();
    for (size_t i = 0; i < from.count; i++) {
        const char *name = from.at[i];
        entries[i] = proa__no_name(name) ? PROA_NONE : proa__name_find(r, from.where, name);
        if (!entries[i]) return proa_error();
        int64_t held;
        if (proa__absent(entries[i])) numbers[i] = v->at && v->count == (int64_t)from.count ? v->at[i] : 0;
        else if (constant_of(r, name, &held) && held >= 0 && held <= INT32_MAX)
            numbers[i] = PROA_EXPECTED(held);
    }
    *v = (proa_ints){(int64_t)from.count, numbers, NULL, entries};
    return PROA_OK;
}

proa_status proa__list_supplied(proa_wire_reader *r, const char *attr, const char *tensor,
                                const char *tensors, proa_ints *v, bool *given)
{
    const pb_attr *a = proa__attr_find(r->desc, attr);
    names one = of_slot(r->desc, tensor), many = of_slot(r->desc, tensors);
    if (a && (int)a->type == PROA_WIRE_VAR) {
        if (!a->var_name) return proa_fail(PROA_ERR_CORRUPT, "attribute %s names no variable", attr);
        one = (names){attr, &a->var_name, 1};
    }
    if (a && (int)a->type == PROA_WIRE_VARS) many = (names){attr, a->vars_name, a->n_vars_name};
    /* A list of tensors takes precedence over one tensor, as in Paddle. */
    bool listed = many.count > 0, whole = !listed && one.count > 0 && !proa__no_name(one.at[0]);
    *given |= listed || whole;
    if (listed) return supply_entries(r, many, v);
    if (!whole) return PROA_OK;
    if (one.count > 1)
        return proa_fail(PROA_ERR_UNSUPPORTED, "attribute %s cannot be supplied by %zu tensors", attr,
                         one.count);
    *v = (proa_ints){0, NULL, proa__name_find(r, one.where, one.at[0]), NULL};
    return proa_error();
}

#else
typedef int proa__no_read_list; /* C wants a declaration in every file */
#endif
