/* Names of results in a program after the argument `name` of the call that made them. Uses ext.h. */
#include "ext.h"

#include "core/args_visit.h"

#include <proa/program.h>
#include <proa/wire.h>

/* The suffix of a result's name in Paddle: ".tmp_0" in most functions. Its number counts the variables of a
 * call; create_variable(name=name) adds none. */
static const char *suffix_of(const char *who)
{
    static const char *const odd[][2] = {
        {"alpha_dropout", ""},      {"argsort", ".tmp_1"}, {"dot", ""},  {"dropout2d", ""},
        {"dropout3d", ""},          {"flip", ""},          {"frac", ""}, {"glu", ""},
        {"layer_norm", ".tmp_2"},   {"normalize", ""},     {"tril", ""}, {"triu", ""},
        {"local_response_norm", ""}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        if (!strcmp(who, odd[i][0])) return odd[i][1];
    return ".tmp_0";
}

/* Renames the variable behind t as Paddle does. Only a variable of the main block that nobody has named is
 * renamed: not one of a branch or loop's body, and no argument. */
static proa_status name_tensor(proa_tensor *t, const char *name, const char *suffix)
{
    proa_program *p = proa_program_current();
    const char *own = p && proa_is_symbolic(t) ? proa_program_name_of(p, t) : NULL;
    char text[256];
    if (!own || strncmp(own, "tmp_", 4) != 0 || strlen(name) > sizeof text - 32 || !proa_program_find(p, own))
        return PROA_OK;
    snprintf(text, sizeof text, "%s%s", name, suffix);
    for (int n = 0; proa_program_find(p, text); n++) snprintf(text, sizeof text, "%s.tmp_%d", name, n);
    proa_status status = proa_program_rename(p, own, text);
    return status == PROA_OK ? proa_program_follow(p, t, text) : status;
}

/* True if t is a variable that the call was given. */
static bool is_input(const proa_op *op, const void *args, const proa_tensor *t)
{
    for (int i = 0; i < op->n_in; i++) {
        const proa_tensors all = proa__field_all(&op->fields[i], args);
        for (int64_t k = 0; k < all.count; k++)
            if (all.at[k] == t || (all.at[k] && all.at[k]->var && all.at[k]->var == t->var)) return true;
    }
    return false;
}

proa_status py_name_results(const proa_op *op, const void *args, const char *name)
{
    bool whole = op->n_wires && !strncmp(op->wires[0].type, "elementwise_", 12);
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) {
        const proa_field *f = &op->fields[i];
        if (f->flags & PROA_FIELD_MUTATED) continue;
        const proa_tensors all = proa__field_all(f, args);
        for (int64_t k = 0; k < all.count; k++)
            if (!proa__absent(all.at[k]) && !is_input(op, args, all.at[k]))
                PROA_TRY(name_tensor(all.at[k], name, whole ? "" : suffix_of(op->name)));
    }
    return PROA_OK;
}

proa_status py_name_objects(const char *who, PyObject *result, PyObject *const *given, Py_ssize_t n,
                            const char *name)
{
    if (py_is_tensor(result)) {
        for (Py_ssize_t i = 0; i < n; i++)
            if (given[i] == result) return PROA_OK;
        return name_tensor(py_tensor_of(result), name, suffix_of(who));
    }
    if (!PyTuple_Check(result) && !PyList_Check(result)) return PROA_OK;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); i++)
        PROA_TRY(py_name_objects(who, PySequence_Fast_GET_ITEM(result, i), given, n, name));
    return PROA_OK;
}
