/* Registration of custom ops: lays out the args and grads structs of a description, and makes its field
 * descriptors, wire form, kernel and gradient rule. May use core, ops and proa/io.h. */
#include "extension/extension.h"

#include "core/arena.h"
#include "core/error.h"

#include <ctype.h>
#include <strings.h>

/* Types of attributes: as a library declares them, the field's kind, and Paddle's number of the type. */
static const struct attr_type {
    const char *name;
    proa_field_kind kind;
    proa_wire_type wire;
} attr_types[] = {
    {"bool", PROA_FIELD_BOOL, PROA_WIRE_BOOLEAN},
    {"int", PROA_FIELD_INT, PROA_WIRE_INT},
    {"float", PROA_FIELD_FLOAT, PROA_WIRE_FLOAT},
    {"int64_t", PROA_FIELD_INT, PROA_WIRE_LONG},
    {"std::string", PROA_FIELD_STRING, PROA_WIRE_STRING},
    {"std::vector<int>", PROA_FIELD_INTS, PROA_WIRE_INTS},
    {"std::vector<float>", PROA_FIELD_FLOATS, PROA_WIRE_FLOATS},
    {"std::vector<int64_t>", PROA_FIELD_INTS, PROA_WIRE_LONGS},
    {"std::vector<std::string>", PROA_FIELD_STRINGS, PROA_WIRE_STRINGS},
};

static const struct attr_type *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof attr_types / sizeof *attr_types; i++)
        if (strcmp(attr_types[i].name, name) == 0) return &attr_types[i];
    return NULL;
}

/* ---- names ------------------------------------------------------------------ */

/* The name of a parameter, as Paddle's Python functions have it: "X@VECTOR" is x. */
static const char *parameter_name(proa__arena *arena, const char *slot)
{
    size_t n = strcspn(slot, "@");
    char *name = proa__arena_alloc(arena, n + 1);
    for (size_t i = 0; name && i < n; i++) name[i] = (char)tolower((unsigned char)slot[i]);
    return name;
}

static int32_t find_slot(const proa_extension_slot *slots, int32_t n, const char *name, size_t length)
{
    for (int32_t i = 0; i < n; i++)
        if (strlen(slots[i].name) == length && strncmp(slots[i].name, name, length) == 0) return i;
    return -1;
}

/* The length of a name without a suffix; 0 if it does not end so. */
static size_t length_without(const char *name, const char *suffix)
{
    size_t n = strlen(name), k = strlen(suffix);
    return n > k && strcmp(name + n - k, suffix) == 0 ? n - k : 0;
}

/* ---- layout ---------------------------------------------------------------------------- */

static size_t size_of_attr(proa_field_kind kind)
{
    switch (kind) {
    case PROA_FIELD_INTS: return sizeof(proa_ints);
    case PROA_FIELD_FLOATS: return sizeof(proa_floats);
    case PROA_FIELD_STRINGS: return sizeof(proa_strings);
    default: return 8; /* a 64-bit number, a string, or a bool with its padding */
    }
}

static size_t size_of_slot(bool list) { return list ? sizeof(proa_tensors) : sizeof(proa_tensor *); }

static uint16_t take(uint16_t *size, size_t bytes)
{
    uint16_t offset = *size;
    *size = (uint16_t)(offset + bytes);
    return offset;
}

/* Whether the gradient op reads the value of this input or output. */
static bool gradient_reads(const proa_extension_op *d, const char *slot)
{
    return d->gradient && find_slot(d->gradient->inputs, d->gradient->n_inputs, slot, strlen(slot)) >= 0;
}

bool proa__extension_is_gradient_of(const char *gradient, const char *slot)
{
    size_t n = length_without(gradient, "@GRAD");
    return n && n == strlen(slot) && strncmp(gradient, slot, n) == 0;
}

int32_t proa__extension_input_of(const proa_extension_op *d, const char *gradient)
{
    size_t n = length_without(gradient, "@GRAD");
    if (!n) n = length_without(gradient, "@GRAD@NEW");
    return n ? find_slot(d->inputs, d->n_inputs, gradient, n) : -1;
}

static void add_slot(const proa_extension_op *d, const proa_extension_slot *slot, proa_role role, proa_op *op,
                     proa_field *f)
{
    bool list = slot->flags & PROA_SLOT_LIST, has_gradient = role == PROA_OUT;
    f->kind = list ? PROA_FIELD_TENSORS : PROA_FIELD_TENSOR;
    f->role = (uint8_t)role;
    f->alias = role == PROA_OUT ? (int8_t)slot->in_place : -1;
    f->saved_for = -1;
    if (f->alias >= 0) op->flags |= PROA_OP_INPLACE;
    if (slot->flags & PROA_SLOT_OPTIONAL) f->flags |= PROA_FIELD_OPTIONAL;
    if (gradient_reads(d, slot->name)) f->flags |= PROA_FIELD_SAVED;
    f->offset = take(&op->args_size, size_of_slot(list));
    f->grad_offset = f->want_offset = 0xffff;
    if (role == PROA_OUT) take(&op->metas_size, list ? sizeof(proa_metas) : sizeof(proa_meta));
    if (!d->gradient) return;
    for (int32_t i = 0; i < d->gradient->n_outputs && !has_gradient; i++) {
        int32_t of = proa__extension_input_of(d, d->gradient->outputs[i].name);
        has_gradient = of >= 0 && &d->inputs[of] == slot;
    }
    if (!has_gradient) return;
    f->grad_offset = take(&op->grads_size, size_of_slot(list));
    if (role == PROA_IN) f->want_offset = take(&op->grads_size, 8);
}

static proa_status add_fields(proa__arena *arena, const proa_extension_op *d, proa_op *op)
{
    int32_t n = d->n_inputs + d->n_attrs + d->n_outputs;
    proa_field *f = proa__arena_array(arena, (size_t)n, sizeof *f);
    if (!f) return proa_error();
    op->fields = f;
    op->n_in = (uint8_t)d->n_inputs;
    op->n_attr = (uint8_t)d->n_attrs;
    op->n_out = (uint8_t)d->n_outputs;
    op->n_fields = (uint8_t)n;
    for (int32_t i = 0; i < d->n_inputs; i++) add_slot(d, &d->inputs[i], PROA_IN, op, &f[i]);
    for (int32_t i = 0; i < d->n_attrs; i++) {
        proa_field *at = &f[d->n_inputs + i];
        *at = (proa_field){.role = PROA_ATTR, .alias = -1, .saved_for = -1};
        at->kind = (uint8_t)find_type(d->attrs[i].type)->kind;
        at->grad_offset = at->want_offset = 0xffff;
        at->offset = take(&op->args_size, size_of_attr((proa_field_kind)at->kind));
    }
    for (int32_t i = 0; i < d->n_outputs; i++)
        add_slot(d, &d->outputs[i], PROA_OUT, op, &f[d->n_inputs + d->n_attrs + i]);
    for (int32_t i = 0; i < n; i++) {
        const char *from = i < d->n_inputs                ? d->inputs[i].name
                           : i < d->n_inputs + d->n_attrs ? d->attrs[i - d->n_inputs].name
                                                          : d->outputs[i - d->n_inputs - d->n_attrs].name;
        if (!(f[i].name = parameter_name(arena, from))) return proa_error();
    }
    return PROA_OK;
}

/* ---- checks ---------------------------------------------------------------------------- */

static proa_status refuse(const proa_extension_op *d, const char *what, const char *name)
{
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "load_extension: op %s: %s %s", d->name, what, name);
}

/* Proa keeps a list output for no gradient, and numbers fields and offsets by small integers. */
enum { MAX_SLOTS = 60, MAX_ATTRS = 60 };

static proa_status check_outputs(const proa_extension_op *d)
{
    if (d->n_outputs < 1) return refuse(d, "has no outputs:", "call .Outputs({\"Out\"})");
    for (int32_t i = 0; i < d->n_outputs; i++) {
        const proa_extension_slot *out = &d->outputs[i];
        bool list = out->flags & PROA_SLOT_LIST;
        if (list && d->n_outputs > 1)
            return refuse(d, "has several outputs, so that none can be a list:", out->name);
        if (list && gradient_reads(d, out->name))
            return proa_fail(PROA_ERR_UNSUPPORTED,
                             "load_extension: op %s_grad reads the list %s of outputs, which is not kept; "
                             "read the inputs, or return single tensors",
                             d->name, out->name);
        if (out->in_place >= d->n_inputs)
            return refuse(d, "has no such input for the in-place output", out->name);
        if (out->in_place >= 0 && (list || d->inputs[out->in_place].flags & PROA_SLOT_LIST))
            return proa_fail(
                PROA_ERR_UNSUPPORTED,
                "load_extension: op %s: SetInplaceMap names the list %s; single tensors alone can be "
                "changed in place",
                d->name, out->name);
    }
    return PROA_OK;
}

/* The name of parameter i of a call: inputs come first, then attributes. */
static const char *parameter(const proa_extension_op *d, int32_t i)
{
    return i < d->n_inputs ? d->inputs[i].name : d->attrs[i - d->n_inputs].name;
}

/* Refuses parameters of one name: Python's functions tell no case, and have nothing behind '@'. */
static proa_status check_parameters(const proa_extension_op *d)
{
    for (int32_t i = 0; i < d->n_inputs + d->n_attrs; i++)
        for (int32_t k = 0; k < i; k++) {
            size_t n = strcspn(parameter(d, i), "@");
            if (n == strcspn(parameter(d, k), "@") && strncasecmp(parameter(d, i), parameter(d, k), n) == 0)
                return refuse(d, "has two parameters of one name (case tells none apart):", parameter(d, i));
        }
    return PROA_OK;
}

static proa_status check(const proa_extension_op *d)
{
    if (!d->name || !d->name[0] || !d->run || !d->infer || !d->differentiate || !d->handle)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "load_extension: an op has no name or no function");
    if (*d->handle) return PROA_OK; /* registered before a failure */
    if (proa_find_op(d->name) || proa_op_type_is_known(d->name))
        return proa_fail(PROA_ERR_BAD_STATE, "load_extension: an op called %s exists already; rename it",
                         d->name);
    PROA_TRY(proa_error());
    if (d->n_inputs > MAX_SLOTS || d->n_outputs > MAX_SLOTS || d->n_attrs > MAX_ATTRS)
        return refuse(d, "has over 60 inputs, outputs or attributes:", "pass lists");
    for (int32_t i = 0; i < d->n_attrs; i++)
        if (!find_type(d->attrs[i].type))
            return refuse(d,
                          "has an attribute of an unknown type (bool, int, float, int64_t, std::string, and "
                          "std::vector of all but bool are known):",
                          d->attrs[i].type);
    PROA_TRY(check_outputs(d));
    return d->gradient ? check(d->gradient) : PROA_OK;
}

/* ---- gradients ------------------------------------------------------------------------- */

static bool find_origin(const proa_extension_op *d, const char *slot, proa__origin *to)
{
    size_t n = strlen(slot), without = length_without(slot, "@GRAD");
    to->source = PROA__FROM_INPUT;
    to->index = find_slot(d->inputs, d->n_inputs, slot, n);
    if (to->index >= 0) return true;
    to->source = PROA__FROM_OUTPUT;
    to->index = find_slot(d->outputs, d->n_outputs, slot, n);
    if (to->index >= 0) return true;
    to->source = PROA__FROM_GRADIENT;
    to->index = without ? find_slot(d->outputs, d->n_outputs, slot, without) : -1;
    return to->index >= 0;
}

static proa_status link_gradient(proa__arena *arena, proa_extension_handle *h, const proa_extension_op *d)
{
    const proa_extension_op *g = d->gradient;
    proa__origin *origins = proa__arena_array(arena, (size_t)g->n_inputs, sizeof *origins);
    int32_t *attrs = proa__arena_array(arena, (size_t)g->n_attrs, sizeof *attrs),
            *of = proa__arena_array(arena, (size_t)g->n_outputs, sizeof *of);
    h->origins = origins;
    h->attr_origins = attrs;
    h->gradient_of = of;
    h->gradient = *g->handle;
    (*g->handle)->forward = d;
    if (!origins || !attrs || !of) return proa_error();
    for (int32_t i = 0; i < g->n_inputs; i++)
        if (!find_origin(d, g->inputs[i].name, &origins[i]))
            return refuse(g, "its forward op has no such input, output or gradient:", g->inputs[i].name);
    for (int32_t i = 0; i < g->n_attrs; i++) {
        for (attrs[i] = d->n_attrs - 1; attrs[i] >= 0; attrs[i]--)
            if (strcmp(d->attrs[attrs[i]].name, g->attrs[i].name) == 0) break;
        if (attrs[i] < 0 || strcmp(d->attrs[attrs[i]].type, g->attrs[i].type) != 0)
            return refuse(g, "its forward op has no attribute of this name and type:", g->attrs[i].name);
    }
    for (int32_t i = 0; i < g->n_outputs; i++)
        if ((of[i] = proa__extension_input_of(d, g->outputs[i].name)) < 0)
            return refuse(g,
                          "its forward op has no input of which this is the gradient:", g->outputs[i].name);
    return PROA_OK;
}

/* ---- the op ---------------------------------------------------------------------------- */

static proa_status spell(proa__arena *arena, proa_extension_handle *h, const proa_extension_op *d)
{
    proa_wire_slot *slots = proa__arena_array(arena, (size_t)(d->n_inputs + d->n_outputs), sizeof *slots);
    proa_wire_attr *attrs = proa__arena_array(arena, (size_t)d->n_attrs, sizeof *attrs);
    if (!slots || !attrs) return proa_error();
    for (int32_t i = 0; i < d->n_inputs; i++) slots[i] = (proa_wire_slot){d->inputs[i].name, i};
    for (int32_t i = 0; i < d->n_outputs; i++)
        slots[d->n_inputs + i] = (proa_wire_slot){d->outputs[i].name, d->n_inputs + d->n_attrs + i};
    for (int32_t i = 0; i < d->n_attrs; i++)
        attrs[i] = (proa_wire_attr){.name = d->attrs[i].name,
                                    .field = d->n_inputs + i,
                                    .type = (int)find_type(d->attrs[i].type)->wire};
    h->wire = (proa_wire){.type = d->name,
                          .slots = slots,
                          .attrs = attrs,
                          .n_slots = d->n_inputs + d->n_outputs,
                          .n_attrs = d->n_attrs};
    h->op.wires = &h->wire;
    h->op.n_wires = 1;
    return PROA_OK;
}

static proa_status make(proa__arena *arena, const proa_extension_op *d)
{
    proa_extension_handle *h = proa__arena_alloc(arena, sizeof *h);
    if (!h) return proa_error();
    h->description = d;
    h->kernel = (proa_kernel){.name = d->name, .run = d->run};
    h->kernels[0] = &h->kernel;
    h->op = (proa_op){.name = d->name,
                      .amp = PROA_AMP_ANY,
                      .id = UINT32_MAX,
                      .dtypes = UINT32_MAX,
                      .flags = d->gradient ? 0 : PROA_OP_NO_GRAD,
                      .infer = d->infer,
                      .vjp = d->gradient ? d->differentiate : NULL,
                      .kernels = h->kernels,
                      .doc = "An op of a library in C++."};
    PROA_TRY(add_fields(arena, d, &h->op));
    PROA_TRY(spell(arena, h, d));
    if (d->gradient) PROA_TRY(link_gradient(arena, h, d));
    PROA_TRY(proa_register_op(&h->op, proa_table_hash));
    *d->handle = h;
    return PROA_OK;
}

/* Registers the op and its gradients, these first. The memory of a registered op lives as long as the
 * process. */
static proa_status register_all(const proa_extension_op *d)
{
    if (*d->handle) return PROA_OK;
    if (d->gradient) PROA_TRY(register_all(d->gradient));
    proa__arena arena = {NULL};
    proa_status status = make(&arena, d);
    if (status != PROA_OK) proa__arena_free(&arena);
    return status;
}

proa_status proa__extension_register(const proa_extension_op *d)
{
    PROA_TRY(check(d));
    PROA_TRY(check_parameters(d));
    return register_all(d);
}
