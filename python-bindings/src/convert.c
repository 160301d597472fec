/* Converts Python values, and the defaults that the op table gives as text, to fields of ops' args structs by
 * their field descriptors. */
#include "ext.h"

#include <proa/program.h>

#include <stdlib.h>

const char *py_shape_text(const proa_tensor *t)
{
    static _Thread_local char ring[4][256]; /* so that a message can name four tensors */
    static _Thread_local unsigned turn;
    char *text = ring[turn++ % 4];
    size_t at = 0;
    text[at++] = '[';
    for (int i = 0; i < t->ndim; i++)
        at += (size_t)snprintf(text + at, 24, i ? ", %lld" : "%lld", (long long)t->shape[i]);
    text[at++] = ']';
    text[at] = 0;
    return text;
}

static bool wrong(const char *who, const char *name, const char *expected, PyObject *got)
{
    py_refuse_type("%s: argument %s: expected %s, got %s", who, name, expected, Py_TYPE(got)->tp_name);
    return false;
}

/* Refuses a variable of a program, or a list of them, for an attribute that a run cannot give. */
static bool wrong_attribute(const char *who, const char *name, const char *expected, PyObject *got)
{
    PyObject *first = (PyList_Check(got) || PyTuple_Check(got)) && PySequence_Fast_GET_SIZE(got)
                          ? PySequence_Fast_GET_ITEM(got, 0)
                          : got;
    if (!proa_program_current() || !py_is_tensor(first)) return wrong(who, name, expected, got);
    py_refuse(PROA_ERR_INVALID_ARGUMENT, "%s: argument %s: expected %s, got a variable of the program", who,
              name, expected);
    return false;
}

static void *scope_alloc(Py_ssize_t count, size_t item)
{
    void *at = proa_scope_alloc((size_t)(count + 1) * item);
    if (!at) py_raise();
    return at;
}

/* Memory for `count` integers: from the caller's arena or, when that is full, from the scope. */
static inline int64_t *ints_alloc(py_arena *arena, Py_ssize_t count)
{
    size_t bytes = (size_t)count * sizeof(int64_t);
    if (!arena || (size_t)(arena->end - arena->at) < bytes) return scope_alloc(count, sizeof(int64_t));
    arena->at += bytes;
    return (int64_t *)(void *)(arena->at - bytes);
}

bool py_to_tensors(PyObject *obj, const char *what, bool optional, proa_tensors *list)
{
    if (py_is_tensor(obj) && proa_program_current()) { /* programs take a variable for a list of one */
        list->at = scope_alloc(1, sizeof *list->at);
        list->count = 1;
        if (list->at) list->at[0] = py_tensor_of(obj);
        return list->at != NULL;
    }
    if (!PyList_Check(obj) && !PyTuple_Check(obj)) {
        py_refuse_type("%s: expected a list or tuple of Tensors, got %s", what, Py_TYPE(obj)->tp_name);
        return false;
    }
    Py_ssize_t n = PySequence_Fast_GET_SIZE(obj);
    list->count = n;
    list->at = scope_alloc(n, sizeof *list->at);
    for (Py_ssize_t i = 0; list->at && i < n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(obj, i);
        if (py_is_tensor(item)) {
            list->at[i] = py_tensor_of(item);
            if (!proa_scope_hold(list->at[i])) return py_raise(), false;
        } else if (item == Py_None && optional) {
            list->at[i] = proa_none;
        } else {
            py_refuse_type("%s: entry %zd: expected a Tensor, got %s", what, i, Py_TYPE(item)->tp_name);
            return false;
        }
    }
    return list->at != NULL;
}

static bool to_int(PyObject *obj, int64_t *out)
{
    if (PyLong_CheckExact(obj)) {
        *out = PyLong_AsLongLong(obj);
        return !(*out == -1 && PyErr_Occurred());
    }
    if (!PyIndex_Check(obj) ||
        (PyBool_Check(obj) && !proa_program_current())) /* a program's operators take it */
        return py_refuse_type("expected an int, got %s", Py_TYPE(obj)->tp_name) != NULL;
    PyObject *index = PyNumber_Index(obj);
    *out = index ? PyLong_AsLongLong(index) : -1;
    Py_XDECREF(index);
    return !(*out == -1 && PyErr_Occurred());
}

/* New reference: entry i of a sequence of n. Raises if the length changed, which user code (__index__,
 * __float__ of an earlier entry) can do. */
static PyObject *entry_of(PyObject *fast, Py_ssize_t i, Py_ssize_t n)
{
    if (PySequence_Fast_GET_SIZE(fast) == n) return Py_NewRef(PySequence_Fast_GET_ITEM(fast, i));
    PyErr_Format(PyExc_RuntimeError, "a list of %zd entries changed its length while it was read", n);
    return NULL;
}

/* Converts one entry of an integer list: a number goes to *at, a one-element tensor to *tensors, from which
 * the op reads the value when it runs. */
static bool to_entry(PyObject *item, Py_ssize_t i, Py_ssize_t n, int64_t *at, proa_tensor ***tensors)
{
    bool dim = py_is_dim(item);
    if (!dim && !py_is_tensor(item)) return to_int(item, &at[i]);
    if (!*tensors) {
        *tensors = scope_alloc(n, sizeof **tensors);
        if (!*tensors) return false;
        memset(*tensors, 0, (size_t)n * sizeof **tensors);
    }
    at[i] = 0;
    (*tensors)[i] = dim ? py_dim_tensor(item) : py_tensor_of(item);
    if (dim) return (*tensors)[i] != NULL;
    return proa_scope_hold((*tensors)[i]) || (py_raise(), false);
}

static bool to_ints(PyObject *obj, const char *what, proa_ints *out, py_arena *arena)
{
    *out = (proa_ints){0, NULL, NULL, NULL};
    bool plain = PyList_CheckExact(obj) || PyTuple_CheckExact(obj);
    if (!plain && py_is_tensor(obj)) {
        out->tensor = py_tensor_of(obj);
        return true;
    }
    if (!plain && PyIndex_Check(obj)) {
        int64_t *one = ints_alloc(arena, 1);
        proa_tensor **tensors = NULL;
        bool ok = one && to_entry(obj, 0, 1, one, &tensors);
        *out = (proa_ints){1, one, NULL, tensors};
        return ok;
    }
    bool text = PyUnicode_Check(obj) || PyBytes_Check(obj);
    if (!plain && (text || !PySequence_Check(obj))) {
        py_refuse_type("%s: expected an int or a list of ints, got %s", what, Py_TYPE(obj)->tp_name);
        return false;
    }
    PyObject *fast = plain ? Py_NewRef(obj) : PySequence_Fast(obj, what);
    if (!fast) return false;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    int64_t *at = ints_alloc(arena, n);
    proa_tensor **tensors = NULL;
    bool ok = at != NULL;
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        PyObject *item = entry_of(fast, i, n);
        ok = item && to_entry(item, i, n, at, &tensors);
        Py_XDECREF(item);
    }
    Py_DECREF(fast);
    *out = (proa_ints){n, at, NULL, tensors};
    return ok;
}

bool py_to_ints(PyObject *obj, const char *what, proa_ints *out) { return to_ints(obj, what, out, NULL); }

static bool to_floats(const char *who, const char *name, PyObject *obj, proa_floats *out)
{
    bool one = PyFloat_Check(obj) || PyLong_Check(obj);
    if (!one && (PyUnicode_Check(obj) || !PySequence_Check(obj)))
        return wrong_attribute(who, name, "a list of numbers", obj);
    PyObject *fast = one ? PyTuple_Pack(1, obj) : PySequence_Fast(obj, "expected a list of numbers");
    if (!fast) return false;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    double *at = scope_alloc(n, sizeof *at);
    for (Py_ssize_t i = 0; at && i < n; i++) {
        PyObject *item = entry_of(fast, i, n);
        at[i] = item ? PyFloat_AsDouble(item) : -1;
        Py_XDECREF(item);
        if (at[i] == -1 && PyErr_Occurred()) {
            if (PyErr_ExceptionMatches(PyExc_TypeError))
                PyErr_Clear(), wrong(who, name, "a list of numbers", obj);
            at = NULL;
        }
    }
    Py_DECREF(fast);
    *out = (proa_floats){n, at};
    return at != NULL;
}

/* The texts are borrowed from the strings of the list, which the caller of the op holds. */
static bool to_strings(const char *who, const char *name, PyObject *obj, proa_strings *out)
{
    if (!PyList_Check(obj) && !PyTuple_Check(obj))
        return wrong_attribute(who, name, "a list of strings", obj);
    Py_ssize_t n = PySequence_Fast_GET_SIZE(obj);
    const char **at = scope_alloc(n, sizeof *at);
    *out = (proa_strings){n, at};
    for (Py_ssize_t i = 0; at && i < n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(obj, i);
        if (!PyUnicode_Check(item)) return wrong_attribute(who, name, "a list of strings", obj);
        if (!(at[i] = PyUnicode_AsUTF8(item))) return false;
    }
    return at != NULL;
}

static bool to_steps(const char *who, const char *name, PyObject *obj, proa_steps *out)
{
    const char *text = PyUnicode_Check(obj) ? PyUnicode_AsUTF8(obj) : NULL;
    if (!text) return PyErr_Occurred() ? false : wrong_attribute(who, name, "a string", obj);
    *out = proa_steps_read(text);
    return out->at || (py_raise(), false);
}

static bool to_enum(const char *who, const char *param, const proa_field *f, PyObject *obj, int *out)
{
    const char *name = PyUnicode_Check(obj) ? PyUnicode_AsUTF8(obj) : NULL;
    if (!name &&
        proa_program_current()) { /* in programs Paddle's Python looks for the value among the choices */
        PyErr_Format(PyExc_ValueError, "%s: argument %s: expected a string, got %s", who, param,
                     Py_TYPE(obj)->tp_name);
        return false;
    }
    if (!name) return wrong(who, param, "a string", obj);
    for (int i = 0; f->choices[i]; i++)
        if (!strcmp(f->choices[i], name)) {
            *out = i;
            return true;
        }
    py_refuse(PROA_ERR_INVALID_ARGUMENT, "%s: argument %s: '%s' is no %s", who, param, name, f->enum_name);
    return false;
}

/* Whether obj is array-like with axes: Python converts one with a single element to a number, here it is
 * none. */
static bool has_length(PyObject *obj)
{
    if (!PySequence_Check(obj)) return false;
    bool has = PySequence_Size(obj) >= 0;
    PyErr_Clear();
    return has;
}

bool py_to_scalar(PyObject *obj, proa_scalar *out)
{
    if (PyBool_Check(obj)) {
        *out = proa_scalar_bool(obj == Py_True);
    } else if (PyFloat_Check(obj)) {
        *out = proa_scalar_float(PyFloat_AS_DOUBLE(obj));
    } else if (PyLong_Check(obj)) {
        *out = proa_scalar_int(PyLong_AsLongLong(obj));
    } else if (PyComplex_Check(obj)) {
        *out = proa_scalar_complex(PyComplex_RealAsDouble(obj), PyComplex_ImagAsDouble(obj));
    } else if (py_is_tensor(obj)) {
        *out = proa_scalar_tensor(py_tensor_of(obj));
    } else if (py_is_dim(obj)) {
        proa_tensor *t = py_dim_tensor(obj);
        if (t) *out = proa_scalar_tensor(t);
    } else if (has_length(obj)) {
        return false;
    } else if (PyIndex_Check(obj)) {
        int64_t i;
        if (!to_int(obj, &i)) return false;
        *out = proa_scalar_int(i);
    } else if (PyNumber_Check(obj) && Py_TYPE(obj)->tp_as_number->nb_float) {
        double d = PyFloat_AsDouble(obj);
        *out = proa_scalar_float(d);
    } else {
        return false;
    }
    return !PyErr_Occurred();
}

static bool to_number(const char *who, const char *name, const proa_field *f, PyObject *obj, void *at)
{
    if (py_is_tensor(obj)) { /* for a plain numeric attribute a one-element tensor is read now */
        if (proa_is_symbolic(py_tensor_of(obj))) {
            py_refuse(
                PROA_ERR_INVALID_ARGUMENT,
                "%s: %s is a variable of a program, or a length that is unknown while the program is made; a "
                "Python number is needed here",
                who, name);
            return false;
        }
        double d = proa_item(py_tensor_of(obj));
        if (f->kind == PROA_FIELD_INT) *(int64_t *)at = proa_item_int(py_tensor_of(obj));
        else *(double *)at = d;
        if (!proa_error()) return true;
        py_raise();
        return false;
    }
    if (f->kind == PROA_FIELD_INT) {
        if (!PyIndex_Check(obj) || (PyBool_Check(obj) && !proa_program_current()))
            return wrong_attribute(who, name, "an int", obj);
        return to_int(obj, at);
    }
    if (PyUnicode_Check(obj) || !PyNumber_Check(obj)) return wrong_attribute(who, name, "a number", obj);
    *(double *)at = PyFloat_AsDouble(obj);
    return !PyErr_Occurred();
}

/* Replaces a TypeError of Python's conversions (a float for an int) by Paddle's, which names op and
 * argument. */
static bool refuse_value(const char *who, const char *name)
{
    if (!PyErr_ExceptionMatches(PyExc_TypeError) || proa_program_current()) return false;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    py_refuse_type("%s: argument %s: %S", who, name, value ? value : Py_None);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return false;
}

static bool is_numpy_bool(PyObject *obj)
{
    const char *kind = Py_TYPE(obj)->tp_name;
    return !strcmp(kind, "numpy.bool_") || !strcmp(kind, "numpy.bool");
}

static bool is_plain_number(PyObject *obj)
{
    return PyLong_Check(obj) || PyFloat_Check(obj) || PyComplex_Check(obj);
}

/* Borrowed: entry 0 of a tuple whose entry 0 is a tensor, which eager Paddle takes for a Tensor argument;
 * otherwise obj. */
static PyObject *first_of_tuple(PyObject *obj)
{
    if (proa_program_current() || !PyTuple_Check(obj) || PyTuple_GET_SIZE(obj) == 0) return obj;
    PyObject *first = PyTuple_GET_ITEM(obj, 0);
    return py_is_tensor(first) ? first : obj;
}

bool py_to_field(const char *who, const proa_field *f, const char *name, PyObject *obj, void *args,
                 py_arena *arena)
{
    void *at = proa_field_at(f, args);
    switch ((proa_field_kind)f->kind) {
    case PROA_FIELD_TENSOR:
        if (!py_is_tensor(obj)) obj = first_of_tuple(obj);
        if (py_is_tensor(obj)) *(proa_tensor **)at = py_tensor_of(obj);
        else if (obj == Py_None && f->flags & PROA_FIELD_OPTIONAL) *(proa_tensor **)at = proa_none;
        else return wrong(who, name, "a Tensor", obj);
        return true;
    case PROA_FIELD_TENSORS:
        if (obj == Py_None && f->flags & PROA_FIELD_OPTIONAL) return true;
        return py_to_tensors(obj, name, f->flags & PROA_FIELD_OPTIONAL, at);
    case PROA_FIELD_BOOL:
        if (!PyBool_Check(obj) && !is_numpy_bool(obj) && !(is_plain_number(obj) && proa_program_current()))
            return wrong_attribute(who, name, "a bool", obj);
        *(bool *)at = PyObject_IsTrue(obj) == 1;
        return true;
    case PROA_FIELD_INT:
    case PROA_FIELD_FLOAT: return to_number(who, name, f, obj, at) || refuse_value(who, name);
    case PROA_FIELD_DTYPE: return py_to_dtype(obj, at);
    case PROA_FIELD_ENUM: return to_enum(who, name, f, obj, at);
    case PROA_FIELD_INTS: return to_ints(obj, name, at, arena) || refuse_value(who, name);
    case PROA_FIELD_FLOATS: return to_floats(who, name, obj, at);
    case PROA_FIELD_STRING:
        if (!PyUnicode_Check(obj)) return wrong_attribute(who, name, "a string", obj);
        *(const char **)at = PyUnicode_AsUTF8(obj);
        return *(const char **)at != NULL;
    case PROA_FIELD_STRINGS: return to_strings(who, name, obj, at);
    case PROA_FIELD_STEPS: return to_steps(who, name, obj, at);
    case PROA_FIELD_SCALAR:
        if (py_to_scalar(obj, at)) return true;
        return PyErr_Occurred() ? false : wrong(who, name, "a number or a one-element Tensor", obj);
    case PROA_FIELD_BLOCK: break;
    }
    return wrong(who, name, "something else", obj);
}

/* ---- defaults: text from the table ----------------------------------------------------- */

/* Parses "[1, 2]" into out; returns the count, at most `capacity`; −1 if an entry is no number. */
static int parse_numbers(const char *text, double *out, int capacity)
{
    int n = 0;
    for (const char *p = text; *p && n < capacity;) {
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

bool py_default_field(const char *who, const proa_field *f, const char *text, void *args)
{
    void *at = proa_field_at(f, args);
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
    PyErr_Format(PyExc_SystemError, "%s: argument %s: cannot read its default %s", who, f->name, text);
    return false;
}
