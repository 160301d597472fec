/* Custom ops from libraries in C++: loading a library, and a Python callable for each of its ops. Uses ext.h,
 * proa/extension.h and proa/wire.h. */
#include "ext.h"

#include <proa/extension.h>
#include <proa/wire.h>

/* load_extension(path) → names of the library's ops. */
static PyObject *load_extension(PyObject *module, PyObject *path)
{
    (void)module;
    PyObject *bytes;
    if (!PyUnicode_FSConverter(path, &bytes)) return NULL;
    const char *const *names = proa_load_extension(PyBytes_AS_STRING(bytes));
    Py_DECREF(bytes);
    if (!names) return py_raise();
    PyObject *list = PyList_New(0);
    for (; list && *names; names++) {
        PyObject *name = PyUnicode_FromString(*names);
        if (!name || PyList_Append(list, name) != 0) Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

/* ---- callables --------------------------------------------------------------------------- */

/* A callable's entry, with the memory that it points to. */
typedef struct made_entry {
    py_entry entry;
    const char *names[2];
    char name[128], signature[2048];
    py_param params[]; /* n_in + n_attr */
} made_entry;

static void fill_params(made_entry *to, const proa_op *op)
{
    size_t used = (size_t)snprintf(to->signature, sizeof to->signature, "(");
    for (int i = 0; i < op->n_in + op->n_attr; i++) {
        const proa_field *f = &op->fields[i];
        bool optional = f->flags & PROA_FIELD_OPTIONAL;
        to->params[i] = (py_param){.name = f->name, .field = (int8_t)i, .required = !optional};
        if (used < sizeof to->signature)
            used += (size_t)snprintf(to->signature + used, sizeof to->signature - used, "%s%s", i ? ", " : "",
                                     f->name);
    }
    if (used < sizeof to->signature) snprintf(to->signature + used, sizeof to->signature - used, ")");
}

static made_entry *make_entry(const proa_op *op)
{
    int n = op->n_in + op->n_attr;
    made_entry *to = PyMem_Calloc(1, sizeof *to + (size_t)n * sizeof *to->params);
    if (!to) return NULL;
    fill_params(to, op);
    snprintf(to->name, sizeof to->name, "_core.%s", op->name);
    to->names[0] = to->name;
    to->entry = (py_entry){.names = to->names,
                           .params = to->params,
                           .signature = to->signature,
                           .n_params = (uint8_t)n,
                           .result = -1};
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) to->entry.in_place |= op->fields[i].alias >= 0;
    return to;
}

static const proa_op *find_op(PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    const proa_op *op = text ? proa_find_op(text) : NULL;
    if (text && !op)
        PyErr_Format(PyExc_ValueError, "there is no custom operator %R: load its library first", name);
    return op;
}

/* extension_function(name) → the callable of a custom op, which lives as long as the process. */
static PyObject *extension_function(PyObject *module, PyObject *name)
{
    const proa_op *op = find_op(name);
    if (!op) return NULL;
    made_entry *entry = make_entry(op);
    return entry ? py_function_of(module, &entry->entry, op) : PyErr_NoMemory();
}

/* ---- names of slots ---------------------------------------------------------------------- */

static bool append_name(PyObject *list, const char *text)
{
    PyObject *name = PyUnicode_FromString(text);
    bool done = name && PyList_Append(list, name) == 0;
    Py_XDECREF(name);
    return done;
}

/* extension_slots(name) → ([inputs], [attributes], [outputs]), spelled as in programs. */
static PyObject *extension_slots(PyObject *module, PyObject *name)
{
    (void)module;
    const proa_op *op = find_op(name);
    if (!op) return NULL;
    if (!op->n_wires) return PyErr_Format(PyExc_ValueError, "%R has no form in Paddle's format", name);
    const proa_wire *wire = op->wires;
    PyObject *in = PyList_New(0), *attrs = PyList_New(0), *out = PyList_New(0), *all = NULL;
    bool good = in && attrs && out;
    for (int i = 0; good && i < wire->n_slots; i++)
        good = append_name(wire->slots[i].field < op->n_in ? in : out, wire->slots[i].slot);
    for (int i = 0; good && i < wire->n_attrs; i++) good = append_name(attrs, wire->attrs[i].name);
    if (good) all = PyTuple_Pack(3, in, attrs, out);
    Py_XDECREF(in);
    Py_XDECREF(attrs);
    Py_XDECREF(out);
    return all;
}

PyMethodDef py_extension_functions[] = {
    {"load_extension", load_extension, METH_O, "Loads a library of custom operators; the names of its ops."},
    {"extension_function", extension_function, METH_O, "The callable of a custom operator."},
    {"extension_slots", extension_slots, METH_O,
     "Names of a custom operator's inputs, attributes and outputs."},
    {0},
};
