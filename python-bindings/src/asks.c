/* Python functions whose failed calls raise by rules of proa/_asks.py, and whose argument `name` names their
 * results in programs. A call that succeeds pays one C call. Uses ext.h and core/error.h. */
#include "ext.h"

#include "core/error.h"

#include <proa/amp.h>
#include <proa/program.h>

#include <stddef.h>

static PyObject *answer_of_asks; /* owned: `answer` of proa/_asks.py */

/* ---- exceptions ------------------------------------------------------------------------ */

py_error py_fetch(void)
{
    py_error e;
    PyErr_Fetch(&e.type, &e.value, &e.trace);
    return e;
}

void py_drop(py_error error)
{
    Py_XDECREF(error.type);
    Py_XDECREF(error.value);
    Py_XDECREF(error.trace);
}

void py_restore_unless_raised(py_error error)
{
    if (PyErr_Occurred()) py_drop(error);
    else PyErr_Restore(error.type, error.value, error.trace);
}

void py_answer(PyObject *rules, PyObject *name, PyObject *given, const py_error *error)
{
    PyObject *failed = error && error->value ? error->value : Py_None;
    PyObject *done = answer_of_asks
                         ? PyObject_CallFunctionObjArgs(answer_of_asks, rules, name, given, failed, NULL)
                         : NULL;
    Py_XDECREF(done);
}

bool py_asks_first(const char *rules)
{
    return rules && *rules && proa_program_current() && !py_captures_function() && !proa_is_autocasting();
}

/* ---- functions ------------------------------------------------------------------------- */

/* A function of a type derived from CPython's, as callables of the op table are (ops.c): it shows the code,
 * defaults and names of `original`, and calls it. */
typedef struct py_asked {
    PyFunctionObject function;
    PyObject *original, *rules; /* owned */
    Py_ssize_t name_at;         /* the position of the parameter `name`, or −1 */
} py_asked;

static bool is_exception(void)
{
    return PyErr_Occurred() && PyErr_GivenExceptionMatches(PyErr_Occurred(), PyExc_Exception);
}

/* New reference: the arguments by name; NULL without an exception if they do not fit the code. */
static PyObject *arguments_by_name(const py_asked *self, PyObject *const *values, Py_ssize_t n,
                                   PyObject *keywords)
{
    const PyCodeObject *code = (PyCodeObject *)self->function.func_code;
    PyObject *names = PyCode_GetVarnames((PyCodeObject *)self->function.func_code);
    PyObject *defaults = self->function.func_defaults, *given = n <= code->co_argcount ? PyDict_New() : NULL;
    Py_ssize_t required = code->co_argcount - (defaults ? PyTuple_GET_SIZE(defaults) : 0);
    for (Py_ssize_t i = 0; given && names && i < n; i++)
        if (PyDict_SetItem(given, PyTuple_GET_ITEM(names, i), values[i]) != 0) Py_CLEAR(given);
    for (Py_ssize_t k = 0; given && keywords && k < PyTuple_GET_SIZE(keywords); k++)
        if (PyDict_SetItem(given, PyTuple_GET_ITEM(keywords, k), values[n + k]) != 0) Py_CLEAR(given);
    Py_ssize_t known = 0, needed = 0;
    for (Py_ssize_t i = 0; given && names && i < code->co_argcount + code->co_kwonlyargcount; i++) {
        bool has = PyDict_GetItem(given, PyTuple_GET_ITEM(names, i)) != NULL;
        known += has;
        needed += has && i < required;
    }
    if (given && (known != PyDict_GET_SIZE(given) || needed != required)) Py_CLEAR(given);
    Py_XDECREF(names);
    PyErr_Clear();
    return given;
}

/* Borrowed: the argument `name` of a call with n positional arguments, or NULL. */
static PyObject *name_given(const py_asked *self, PyObject *const *values, Py_ssize_t n, PyObject *keywords)
{
    if (self->name_at < n) return values[self->name_at];
    for (Py_ssize_t k = 0; keywords && k < PyTuple_GET_SIZE(keywords); k++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, k), "name") == 0)
            return values[n + k];
    return NULL;
}

static PyObject *named(const py_asked *self, PyObject *result, PyObject *const *values, Py_ssize_t n,
                       PyObject *keywords)
{
    PyObject *name = name_given(self, values, n, keywords);
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    Py_ssize_t all = n + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
    const char *who = PyUnicode_AsUTF8(self->function.func_name);
    if (!text || !who || py_name_objects(who, result, values, all, text) == PROA_OK) return result;
    Py_DECREF(result);
    return py_raise();
}

static PyObject *asked_call(PyObject *callable, PyObject *const *values, size_t flagged, PyObject *keywords)
{
    py_asked *self = (py_asked *)callable;
    if (py_asks_first(PyUnicode_AsUTF8(self->rules))) {
        PyObject *first = arguments_by_name(self, values, PyVectorcall_NARGS(flagged), keywords);
        if (first) py_answer(self->rules, self->function.func_name, first, NULL);
        Py_XDECREF(first);
        if (PyErr_Occurred()) return NULL;
    }
    PyObject *result = PyObject_Vectorcall(self->original, values, flagged, keywords);
    if (result && self->name_at >= 0 && proa_program_current())
        return named(self, result, values, PyVectorcall_NARGS(flagged), keywords);
    if (result || !PyUnicode_GET_LENGTH(self->rules) || !is_exception()) return result;
    py_error error = py_fetch();
    PyObject *given = arguments_by_name(self, values, PyVectorcall_NARGS(flagged), keywords);
    if (given) py_answer(self->rules, self->function.func_name, given, &error);
    Py_XDECREF(given);
    py_restore_unless_raised(error);
    return NULL;
}

static int asked_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((py_asked *)self)->original);
    return PyFunction_Type.tp_traverse(self, visit, arg);
}

static void asked_dealloc(PyObject *self)
{
    Py_CLEAR(((py_asked *)self)->original);
    Py_CLEAR(((py_asked *)self)->rules);
    PyFunction_Type.tp_dealloc(self);
}

/* Pickled and copied by name. */
static PyObject *asked_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(((py_asked *)self)->function.func_qualname);
}

static PyObject *asked_doc(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef(((py_asked *)self)->function.func_doc);
}

static PyGetSetDef asked_getset[] = {{"__doc__", asked_doc, NULL, NULL, NULL}, {0}};
static PyMethodDef asked_methods[] = {{"__reduce__", asked_reduce, METH_NOARGS, "For pickle."}, {0}};

static PyTypeObject asked_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa._core.AskedFunction",
    .tp_basicsize = sizeof(py_asked),
    .tp_flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = asked_dealloc,
    .tp_traverse = asked_traverse,
    .tp_vectorcall_offset = offsetof(py_asked, function.vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_getset = asked_getset,
    .tp_methods = asked_methods,
};

/* The position of the parameter `name`; beyond all others if it is given by name only; −1 without it. */
static Py_ssize_t find_name(PyObject *code)
{
    const PyCodeObject *c = (PyCodeObject *)code;
    PyObject *names = PyCode_GetVarnames((PyCodeObject *)code);
    Py_ssize_t at = -1;
    for (Py_ssize_t i = 0; names && i < c->co_argcount + c->co_kwonlyargcount; i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "name") == 0)
            at = i < c->co_argcount ? i : PY_SSIZE_T_MAX;
    Py_XDECREF(names);
    return at;
}

/* asked(function, rules) → a function whose failed calls ask the rules. */
static PyObject *asked(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *original, *rules;
    if (!PyArg_ParseTuple(args, "O!U", &PyFunction_Type, &original, &rules)) return NULL;
    py_asked *self = PyObject_GC_New(py_asked, &asked_type);
    if (!self) return NULL;
    PyFunctionObject *from = (PyFunctionObject *)original, *to = &self->function;
    memset((char *)self + sizeof(PyObject), 0, sizeof *self - sizeof(PyObject));
    to->func_globals = Py_XNewRef(from->func_globals);
    to->func_builtins = Py_XNewRef(from->func_builtins);
    to->func_name = Py_XNewRef(from->func_name);
    to->func_qualname = Py_XNewRef(from->func_qualname);
    to->func_code = Py_XNewRef(from->func_code);
    to->func_defaults = Py_XNewRef(from->func_defaults);
    to->func_kwdefaults = Py_XNewRef(from->func_kwdefaults);
    to->func_doc = Py_XNewRef(from->func_doc);
    to->func_dict = Py_XNewRef(from->func_dict);
    to->func_closure = Py_XNewRef(from->func_closure);
    to->func_module = Py_XNewRef(from->func_module);
    to->vectorcall = asked_call;
    self->original = Py_NewRef(original);
    self->rules = Py_NewRef(rules);
    self->name_at = find_name(from->func_code);
    PyObject_GC_Track((PyObject *)self);
    return (PyObject *)self;
}

bool py_ready_asks(void)
{
    asked_type.tp_base = &PyFunction_Type; /* in a shared library no constant */
    if (PyType_Ready(&asked_type) != 0) return false;
    asked_type.tp_new = NULL;
    return true;
}

static PyObject *set_answer(PyObject *module, PyObject *answer)
{
    (void)module;
    Py_XSETREF(answer_of_asks, Py_NewRef(answer));
    Py_RETURN_NONE;
}

static PyObject *as_dtype(PyObject *module, PyObject *obj)
{
    (void)module;
    proa_dtype dtype;
    if (!py_to_dtype(obj, &dtype)) return NULL;
    return Py_NewRef(dtype == PROA_NODTYPE ? Py_None : py_dtype_object(dtype));
}

/* The first code's exception counts where several codes are of one category. */
static PyObject *error_categories(PyObject *module, PyObject *nothing)
{
    (void)module, (void)nothing;
    PyObject *all = PyDict_New();
    for (int code = PROA_ERR_OK + 1; all && code < PROA_ERR_COUNT; code++) {
        PyObject *category = PyUnicode_FromString(proa_error_category((proa_status)code));
        PyObject *exception = PyUnicode_FromString(proa_error_exception((proa_status)code));
        if (!category || !exception || !PyDict_SetDefault(all, category, exception)) Py_CLEAR(all);
        Py_XDECREF(category);
        Py_XDECREF(exception);
    }
    return all;
}

PyMethodDef py_asks_functions[] = {
    {"as_dtype", as_dtype, METH_O, "as_dtype(obj) -> the dtype that obj names; None for None"},
    {"asked", asked, METH_VARARGS, "asked(function, rules) -> a function whose failed calls ask the rules"},
    {"error_categories", error_categories, METH_NOARGS, "{category of an error: name of its exception}"},
    {"set_answer", set_answer, METH_O, "Sets answer(rules, name, arguments, error), which failed calls ask."},
    {0},
};
