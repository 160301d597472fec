/* Python values to and from the fields of args structs, driven by field descriptors. */
#include "ext.h"

#include <stdlib.h>

static bool wrong(const proa_op *op, const proa_field *f, const char *expected, PyObject *got)
{
    PyErr_Format(PyExc_TypeError, "%s: argument %s: expected %s, got %s", op->name, f->name, expected,
                 Py_TYPE(got)->tp_name);
    return false;
}

bool py_to_dtype(PyObject *obj, proa_dtype *dtype)
{
    *dtype = PROA_NODTYPE;
    if (obj == Py_None) return true;
    const char *name = PyUnicode_Check(obj) ? PyUnicode_AsUTF8(obj) : NULL;
    if (!name) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "expected a dtype's name such as 'float32', got %s",
                         Py_TYPE(obj)->tp_name);
        return false;
    }
    *dtype = proa_dtype_from_name(name);
    if (*dtype != PROA_NODTYPE) return true;
    PyErr_Format(PyExc_ValueError, "'%s' is no dtype; expected one such as 'float32'", name);
    return false;
}

static void *scope_room(Py_ssize_t count, size_t item)
{
    void *room = proa_scope_alloc((size_t)(count + 1) * item);
    if (!room) py_raise();
    return room;
}

bool py_to_tensors(PyObject *obj, const char *what, bool optional, proa_tensors *list)
{
    PyObject *fast = PySequence_Fast(obj, "expected a list or tuple of tensors");
    if (!fast) return false;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    list->count = n;
    list->at = scope_room(n, sizeof *list->at);
    bool ok = list->at != NULL;
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(fast, i);
        if (PyObject_TypeCheck(item, &py_tensor_type)) {
            list->at[i] = ((py_tensor *)item)->tensor;
        } else if (item == Py_None && optional) {
            list->at[i] = proa_none;
        } else {
            PyErr_Format(PyExc_TypeError, "%s: entry %zd: expected a Tensor, got %s", what, i,
                         Py_TYPE(item)->tp_name);
            ok = false;
        }
    }
    Py_DECREF(fast);
    return ok;
}

bool py_to_ints(PyObject *obj, const char *what, proa_ints *out)
{
    *out = (proa_ints){0, NULL, NULL, NULL};
    if (PyLong_Check(obj)) {
        int64_t *one = scope_room(1, sizeof *one);
        if (!one) return false;
        one[0] = PyLong_AsLongLong(obj);
        *out = (proa_ints){1, one, NULL, NULL};
        return !PyErr_Occurred();
    }
    if (PyObject_TypeCheck(obj, &py_tensor_type)) {
        out->tensor = ((py_tensor *)obj)->tensor;
        return true;
    }
    PyObject *fast = PySequence_Fast(obj, what);
    if (!fast) return false;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    int64_t *at = scope_room(n, sizeof *at);
    proa_tensor **tensors = NULL;
    bool ok = at != NULL;
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(fast, i);
        if (PyObject_TypeCheck(item, &py_tensor_type)) {
            if (!tensors) {
                tensors = scope_room(n, sizeof *tensors);
                if (tensors) memset(tensors, 0, (size_t)n * sizeof *tensors);
            }
            ok = tensors != NULL;
            if (ok) tensors[i] = ((py_tensor *)item)->tensor;
            at[i] = 0;
            continue;
        }
        PyObject *index = PyNumber_Index(item);
        at[i] = index ? PyLong_AsLongLong(index) : -1;
        Py_XDECREF(index);
        ok = !PyErr_Occurred();
    }
    Py_DECREF(fast);
    *out = (proa_ints){n, at, NULL, tensors};
    return ok;
}

static bool to_floats(PyObject *obj, proa_floats *out)
{
    PyObject *fast = PySequence_Fast(obj, "expected a list of numbers");
    if (!fast) return false;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    double *at = scope_room(n, sizeof *at);
    for (Py_ssize_t i = 0; at && i < n; i++) at[i] = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(fast, i));
    Py_DECREF(fast);
    *out = (proa_floats){n, at};
    return at && !PyErr_Occurred();
}

static bool to_enum(const proa_op *op, const proa_field *f, PyObject *obj, int *out)
{
    const char *name = PyUnicode_Check(obj) ? PyUnicode_AsUTF8(obj) : NULL;
    if (!name) return wrong(op, f, "a string", obj);
    for (int i = 0; f->choices[i]; i++)
        if (!strcmp(f->choices[i], name)) {
            *out = i;
            return true;
        }
    PyErr_Format(PyExc_ValueError, "%s: argument %s: '%s' is no %s", op->name, f->name, name, f->enum_name);
    return false;
}

static bool to_scalar(const proa_op *op, const proa_field *f, PyObject *obj, proa_scalar *out)
{
    if (PyBool_Check(obj)) {
        *out = proa_scalar_bool(obj == Py_True);
    } else if (PyLong_Check(obj)) {
        *out = proa_scalar_int(PyLong_AsLongLong(obj));
    } else if (PyFloat_Check(obj)) {
        *out = proa_scalar_float(PyFloat_AS_DOUBLE(obj));
    } else if (PyComplex_Check(obj)) {
        *out = proa_scalar_complex(PyComplex_RealAsDouble(obj), PyComplex_ImagAsDouble(obj));
    } else if (PyObject_TypeCheck(obj, &py_tensor_type)) {
        *out = proa_scalar_tensor(((py_tensor *)obj)->tensor);
    } else {
        return wrong(op, f, "a number or a one-element Tensor", obj);
    }
    return !PyErr_Occurred();
}

bool py_to_field(const proa_op *op, const proa_field *f, PyObject *obj, void *args)
{
    void *at = proa_field_at(f, args);
    switch ((proa_field_kind)f->kind) {
    case PROA_FIELD_TENSOR:
        if (obj == Py_None && f->flags & PROA_FIELD_OPTIONAL) *(proa_tensor **)at = proa_none;
        else if (PyObject_TypeCheck(obj, &py_tensor_type)) *(proa_tensor **)at = ((py_tensor *)obj)->tensor;
        else return wrong(op, f, "a Tensor", obj);
        return true;
    case PROA_FIELD_TENSORS: return py_to_tensors(obj, f->name, f->flags & PROA_FIELD_OPTIONAL, at);
    case PROA_FIELD_BOOL: {
        int truth = PyObject_IsTrue(obj);
        *(bool *)at = truth > 0;
        return truth >= 0;
    }
    case PROA_FIELD_INT: {
        PyObject *index = PyNumber_Index(obj);
        *(int64_t *)at = index ? PyLong_AsLongLong(index) : 0;
        Py_XDECREF(index);
        return !PyErr_Occurred();
    }
    case PROA_FIELD_FLOAT: *(double *)at = PyFloat_AsDouble(obj); return !PyErr_Occurred();
    case PROA_FIELD_DTYPE: return py_to_dtype(obj, at);
    case PROA_FIELD_ENUM: return to_enum(op, f, obj, at);
    case PROA_FIELD_INTS:
        if (obj == Py_None) {
            *(proa_ints *)at = (proa_ints){0, NULL, NULL, NULL};
            return true;
        }
        return py_to_ints(obj, f->name, at);
    case PROA_FIELD_FLOATS: return to_floats(obj, at);
    case PROA_FIELD_STRING: *(const char **)at = PyUnicode_AsUTF8(obj); return *(const char **)at != NULL;
    case PROA_FIELD_SCALAR:
        if (obj == Py_None) {
            *(proa_scalar *)at = (proa_scalar){0};
            return true;
        }
        return to_scalar(op, f, obj, at);
    case PROA_FIELD_BLOCK: break;
    }
    return wrong(op, f, "something else", obj);
}

/* ---- defaults: text from the table ----------------------------------------------------- */

/* The numbers of "[1, 2]"; their count, or −1. */
static int parse_numbers(const char *text, double *out, int room)
{
    int n = 0;
    for (const char *p = text; *p && n < room;) {
        if (strchr("[], ", *p)) {
            p++;
            continue;
        }
        char *end = NULL;
        out[n++] = strtod(p, &end);
        if (end == p) return -1;
        p = end;
    }
    return n;
}

static bool default_list(const proa_field *f, const double *values, int n, void *at)
{
    if (f->kind == PROA_FIELD_INTS) {
        int64_t *list = PyMem_Malloc(sizeof(int64_t) * (size_t)(n + 1));
        if (!list) return false;
        for (int i = 0; i < n; i++) list[i] = (int64_t)values[i];
        *(proa_ints *)at = (proa_ints){n, n ? list : NULL, NULL, NULL};
        if (!n) PyMem_Free(list);
        return true;
    }
    double *list = PyMem_Malloc(sizeof(double) * (size_t)(n + 1));
    if (!list) return false;
    memcpy(list, values, sizeof(double) * (size_t)n);
    *(proa_floats *)at = (proa_floats){n, list};
    return true;
}

bool py_default_field(const proa_op *op, const proa_field *f, void *args)
{
    void *at = proa_field_at(f, args);
    const char *text = f->fallback;
    double v[16] = {0};
    bool none = !strcmp(text, "none");
    switch ((proa_field_kind)f->kind) {
    case PROA_FIELD_BOOL: *(bool *)at = !strcmp(text, "true"); return true;
    case PROA_FIELD_INT: *(int64_t *)at = strtoll(text, NULL, 10); return true;
    case PROA_FIELD_FLOAT: *(double *)at = strtod(text, NULL); return true;
    case PROA_FIELD_DTYPE: {
        *(proa_dtype *)at = PROA_NODTYPE;
        static const char *const names[] = {
#define PROA_X(NAME, name, bytes, wire) #NAME,
            PROA_DTYPES(PROA_X)
#undef PROA_X
        };
        for (int i = 0; !none && i < (int)(sizeof names / sizeof *names); i++)
            if (!strcmp(text, names[i])) *(proa_dtype *)at = (proa_dtype)(i + 1);
        return true;
    }
    case PROA_FIELD_ENUM:
        for (int i = 0; f->choices[i]; i++)
            if (!strcmp(text, f->choices[i])) *(int *)at = i;
        return true;
    case PROA_FIELD_STRING: {
        size_t n = strlen(text);
        bool quoted = n >= 2 && text[0] == '"';
        char *copy = PyMem_Malloc(n + 1);
        if (!copy) return false;
        memcpy(copy, text + quoted, n + 1 - quoted);
        if (quoted) copy[n - 2] = 0;
        *(const char **)at = copy;
        return true;
    }
    case PROA_FIELD_SCALAR:
        if (none) return true;
        *(proa_scalar *)at = strpbrk(text, ".enf") ? proa_scalar_float(strtod(text, NULL))
                                                   : proa_scalar_int(strtoll(text, NULL, 10));
        return true;
    case PROA_FIELD_INTS:
    case PROA_FIELD_FLOATS: {
        int n = none ? 0 : parse_numbers(text, v, 16);
        if (n >= 0) return default_list(f, v, n, at);
        break;
    }
    default: return true;
    }
    PyErr_Format(PyExc_SystemError, "%s: argument %s: cannot read its default %s", op->name, f->name, text);
    return false;
}
