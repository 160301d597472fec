/* Generates the docstrings of ops' callables: the op table's description, then the parameters with their
 * kinds (the first input with its dtypes) and whether they are optional, then the results. Uses ext.h. */
#include "ext.h"

#define WIDTH 96 /* columns of a line */

/* New string: the description, its lines broken at blanks before WIDTH columns. */
static PyObject *wrapped(const char *text)
{
    size_t n = strlen(text), start = 0, blank = 0;
    char *copy = PyMem_Malloc(n + 1);
    if (!copy) return PyErr_NoMemory();
    memcpy(copy, text, n + 1);
    for (size_t i = 0; i < n; i++) {
        if (copy[i] == '\n') start = i + 1, blank = 0;
        if (copy[i] == ' ') blank = i;
        if (i - start >= WIDTH && blank > start) {
            copy[blank] = '\n';
            start = blank + 1;
            blank = 0;
        }
    }
    PyObject *result = PyUnicode_FromString(copy);
    PyMem_Free(copy);
    return result;
}

/* Appends " of float32, float64": the dtypes that the op takes. */
static bool add_dtypes(PyObject **text, const proa_op *op)
{
    const char *before = " of ";
    for (int d = 0; *text && d < PROA_DTYPE_COUNT; d++) {
        if (!(op->dtypes & 1u << d)) continue;
        PyUnicode_AppendAndDel(text, PyUnicode_FromFormat("%s%s", before, proa_dtype_name((proa_dtype)d)));
        before = ", ";
    }
    return *text;
}

static PyObject *enum_text(const proa_field *f)
{
    PyObject *text = PyUnicode_FromString("one of ");
    for (int i = 0; text && f->choices[i]; i++)
        PyUnicode_AppendAndDel(&text, PyUnicode_FromFormat(i ? ", '%s'" : "'%s'", f->choices[i]));
    return text;
}

/* "Tensor of float32, float64", "int or list of int", … */
static PyObject *kind_text(const proa_op *op, const proa_field *f)
{
    static const char *const words[] = {
        [PROA_FIELD_TENSOR] = "Tensor",
        [PROA_FIELD_TENSORS] = "list of Tensor",
        [PROA_FIELD_BOOL] = "bool",
        [PROA_FIELD_INT] = "int",
        [PROA_FIELD_FLOAT] = "float",
        [PROA_FIELD_DTYPE] = "dtype or str",
        [PROA_FIELD_INTS] = "int, list of int, or Tensor",
        [PROA_FIELD_FLOATS] = "list of float",
        [PROA_FIELD_STRING] = "str",
        [PROA_FIELD_SCALAR] = "number",
        [PROA_FIELD_STEPS] = "str",
        [PROA_FIELD_STRINGS] = "list of str",
    };
    if (f->kind == PROA_FIELD_ENUM) return enum_text(f);
    bool known = f->kind < sizeof words / sizeof *words && words[f->kind];
    PyObject *text = PyUnicode_FromString(known ? words[f->kind] : "object");
    if (text && f == op->fields && f->role == PROA_IN) add_dtypes(&text, op);
    return text;
}

static void add_parameter(PyObject **text, const proa_op *op, const py_param *p)
{
    if (p->field < 0) {
        if (strcmp(p->name, "name") != 0)
            PyUnicode_AppendAndDel(text, PyUnicode_FromFormat("    %s: must be None\n", p->name));
        return;
    }
    PyObject *kind = kind_text(op, &op->fields[p->field]);
    PyUnicode_AppendAndDel(
        text,
        kind ? PyUnicode_FromFormat("    %s: %U%s\n", p->name, kind, p->required ? "" : ", optional") : NULL);
    Py_XDECREF(kind);
}

PyObject *py_op_doc(const proa_op *op, const py_entry *entry)
{
    PyObject *text = wrapped(op->doc);
    PyUnicode_AppendAndDel(&text, PyUnicode_FromString(entry->in_place
                                                           ? "\n\nIn place: the first argument is changed, "
                                                             "and returned.\n\nParameters:\n"
                                                           : "\n\nParameters:\n"));
    for (int i = 0; text && i < entry->n_params; i++) add_parameter(&text, op, &entry->params[i]);
    for (const py_param *p = entry->params + entry->n_params;
         text && p < entry->params + entry->n_params + entry->n_fixed; p++)
        PyUnicode_AppendAndDel(
            &text, PyUnicode_FromFormat("\nHere %s is %s.\n", op->fields[p->field].name, p->fallback));
    if (entry->in_place) return text;
    PyUnicode_AppendAndDel(&text, PyUnicode_FromString("\nReturns:\n"));
    int made = 0;
    for (int i = op->n_in + op->n_attr; text && i < op->n_fields; i++) {
        const proa_field *f = &op->fields[i];
        if (f->flags & PROA_FIELD_MUTATED || (entry->result >= 0 && entry->result != i)) continue;
        const char *kind = f->kind == PROA_FIELD_TENSORS ? "list of Tensor" : "Tensor";
        PyUnicode_AppendAndDel(&text, PyUnicode_FromFormat("    %s: %s\n", f->name, kind));
        made++;
    }
    if (text && !made) PyUnicode_AppendAndDel(&text, PyUnicode_FromString("    None\n"));
    return text;
}
