/* The class Tensor: attributes, conversions, and the methods that are not ops. Also raises Proa's errors as
 * Python exceptions. Uses ext.h. */
#include "ext.h"

#include "core/device.h"
#include "core/error.h"

#include <proa/program.h>
#include <stddef.h>
#include <structmember.h>

PyTypeObject *py_tensor_type;

/* ---- errors and results ---------------------------------------------------------------- */

static PyObject *exception_of(proa_status code)
{
    const char *name = proa_error_exception(code);
    PyObject *found = PyDict_GetItemString(PyEval_GetBuiltins(), name); /* borrowed */
    return found ? found : PyExc_RuntimeError;
}

static PyObject *raise_bare(PyObject *exception, PyObject *text)
{
    if (text) PyErr_SetObject(exception, text);
    Py_XDECREF(text);
    return NULL;
}

/* Raises "(Category) text". While a program is built Paddle checks types in Python: a bare TypeError. */
static PyObject *raise_text(proa_status code, bool of_type, PyObject *text)
{
    if (of_type && proa_program_current()) return raise_bare(PyExc_TypeError, text);
    PyObject *whole = text ? PyUnicode_FromFormat("(%s) %U", proa_error_category(code), text) : NULL;
    Py_XDECREF(text);
    return raise_bare(exception_of(code), whole);
}

PyObject *py_raise(void)
{
    proa_status code = proa_error();
    const char *message = code ? proa_error_message() : "a call failed without an error";
    PyObject *text = NULL; /* a Python callback's own exception is the better one */
    if (!PyErr_Occurred())
        text = PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "backslashreplace");
    if (text && proa_error_is_of_rank())
        raise_bare(proa_program_current() ? PyExc_RuntimeError : PyExc_OSError, text);
    else if (text) raise_text(code ? code : PROA_ERR_INTERNAL, proa_error_is_of_dtype(), text);
    proa_clear_error();
    return NULL;
}

PyObject *py_refuse(proa_status code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    raise_text(code, false, PyUnicode_FromFormatV(format, list));
    va_end(list);
    return NULL;
}

PyObject *py_refuse_type(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    raise_text(PROA_ERR_INVALID_ARGUMENT, true, PyUnicode_FromFormatV(format, list));
    va_end(list);
    return NULL;
}

PyObject *py_none_or_raise(proa_status status)
{
    if (status != PROA_OK) return py_raise();
    Py_RETURN_NONE;
}

static inline PyObject *wrap(proa_tensor *t, proa_tensor *(*own)(proa_tensor *))
{
    if (!t) return py_raise();
    if (t == proa_none) Py_RETURN_NONE;
    py_tensor *self = PyObject_New(py_tensor, py_tensor_type);
    if (!self) return NULL;
    self->tensor = own(t);
    self->weak = NULL;
    self->persistable = false;
    return (PyObject *)self;
}

PyObject *py_wrap(proa_tensor *t) { return wrap(t, proa_keep); }
PyObject *py_wrap_new(proa_tensor *t) { return wrap(t, proa_take); }

PyObject *py_from_tensors(proa_tensors list)
{
    if (proa_error()) return py_raise();
    PyObject *result = PyList_New((Py_ssize_t)list.count);
    for (Py_ssize_t i = 0; result && i < (Py_ssize_t)list.count; i++) {
        PyObject *one = py_wrap(list.at[i]);
        if (!one) Py_CLEAR(result);
        if (result) PyList_SET_ITEM(result, i, one);
    }
    return result;
}

/* ---- life ------------------------------------------------------------------------------ */

static PyObject *construct_of_tensors; /* owned: `construct` of proa/tensor/construct.py */

static PyObject *set_construct(PyObject *module, PyObject *construct)
{
    (void)module;
    Py_XSETREF(construct_of_tensors, Py_NewRef(construct));
    Py_RETURN_NONE;
}

static PyMethodDef construct_functions[] = {
    {"set_construct", set_construct, METH_O, "Sets construct(*args, **keywords), which Tensor(...) calls."},
    {0},
};

/* Tensor(t): a new object, usually of a subclass, for t's tensor; Tensor(data): as to_tensor. The other
 * arguments of Paddle's constructor are Python's part. */
static PyObject *tensor_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    bool more = PyTuple_GET_SIZE(args) > 1 || (keywords && PyDict_GET_SIZE(keywords));
    if (more && type == py_tensor_type && construct_of_tensors) /* a subclass's __init__ has its own */
        return PyObject_Call(construct_of_tensors, args, keywords);
    PyObject *data = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : NULL;
    PROA_SCOPED;
    proa_tensor *t = data && py_is_tensor(data) ? py_tensor_of(data)
                     : data                     ? py_to_new_tensor(data, PROA_NODTYPE, NULL)
                            : proa_empty((proa_ints){1, (int64_t[]){0}, NULL, NULL}, PROA_F32);
    if (!t) return PyErr_Occurred() ? NULL : py_raise();
    py_tensor *self = (py_tensor *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->tensor = proa_keep(t);
    self->weak = NULL;
    self->persistable = false;
    return (PyObject *)self;
}

static void tensor_dealloc(PyObject *obj)
{
    py_tensor *self = (py_tensor *)obj;
    PyTypeObject *type = Py_TYPE(obj);
    if (self->weak) PyObject_ClearWeakRefs(obj);
    proa_release(self->tensor);
    type->tp_free(obj);
    Py_DECREF(type);
}

/* ---- attributes ------------------------------------------------------------------------ */

static PyObject *get_declared_shape(PyObject *self, void *closure)
{
    (void)closure;
    proa_tensor *t = py_tensor_of(self);
    PyObject *list = PyList_New(t->ndim);
    for (int i = 0; list && i < t->ndim; i++) PyList_SET_ITEM(list, i, PyLong_FromLongLong(t->shape[i]));
    return list;
}

static PyObject *get_shape(PyObject *self, void *closure)
{
    PyObject *dims = get_declared_shape(self, closure);
    return proa_is_symbolic(py_tensor_of(self)) ? py_variable_shape(self, dims) : dims;
}

static PyObject *get_strides(PyObject *self, void *closure)
{
    (void)closure;
    proa_tensor *t = py_tensor_of(self);
    int64_t item = (int64_t)proa_dtype_size((proa_dtype)t->dtype);
    PyObject *list = PyList_New(t->ndim);
    for (int i = 0; list && i < t->ndim; i++)
        PyList_SET_ITEM(list, i, PyLong_FromLongLong(t->strides[i] / item));
    return list;
}

static PyObject *get_dtype(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(py_dtype_object(proa_dtype_of(py_tensor_of(self))));
}

static PyObject *get_ndim(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(py_tensor_of(self)->ndim);
}

static PyObject *get_size(PyObject *self, void *closure)
{
    (void)closure;
    int64_t count = py_tensor_of(self)->numel;
    return count >= 0 ? PyLong_FromLongLong(count) : py_open_size(self);
}

static PyObject *get_place(PyObject *self, void *closure)
{
    (void)closure;
    return py_place_of(py_tensor_of(self));
}

static PyObject *get_grad(PyObject *self, void *closure)
{
    (void)closure;
    return py_wrap(proa_grad_of(py_tensor_of(self)));
}

static int set_grad(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    if (!value || value == Py_None) {
        proa_clear_grad(py_tensor_of(self));
        return 0;
    }
    if (!py_is_tensor(value)) {
        PyErr_Format(PyExc_TypeError, "grad: expected a Tensor or None, got %s", Py_TYPE(value)->tp_name);
        return -1;
    }
    return proa_set_grad(py_tensor_of(self), py_tensor_of(value)) == PROA_OK ? 0 : (py_raise(), -1);
}

static PyObject *get_stop_gradient(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(proa_stop_gradient(py_tensor_of(self)));
}

bool py_has_gradients(const proa_tensor *t) { return proa_dtype_of(t) >= PROA_F16; }

static int set_stop_gradient(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    int stop = value ? PyObject_IsTrue(value) : -1;
    if (stop < 0) return -1;
    proa_tensor *t = py_tensor_of(self);
    proa_program *open = proa_is_symbolic(t) ? proa_program_current() : NULL;
    if (open && proa_program_stop_gradient(open, t, stop) != PROA_OK)
        proa_clear_error();                      /* an error about another program's variable */
    if (!stop && !py_has_gradients(t)) return 0; /* as in Paddle no error; no gradient flows */
    return proa_set_stop_gradient(t, stop) == PROA_OK ? 0 : (py_raise(), -1);
}

static PyObject *get_is_leaf(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(proa_is_leaf(py_tensor_of(self)));
}

/* The `name` attribute; a tensor without one is named at first access, where Paddle names tensors when it
 * makes them. */
static PyObject *get_name(PyObject *self, void *closure)
{
    (void)closure;
    proa_tensor *t = py_tensor_of(self);
    if (!proa_name_of(t)) {
        static atomic_llong counter; /* process-wide, so that names stay unique */
        char name[48];
        snprintf(name, sizeof name, "generated_tensor_%lld", atomic_fetch_add(&counter, 1));
        if (proa_set_name(t, name) != PROA_OK) return py_raise();
    }
    return PyUnicode_FromString(proa_name_of(t));
}

static int set_name(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    const char *name = value && PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : NULL;
    if (!name) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "name: expected a string");
        return -1;
    }
    return proa_set_name(py_tensor_of(self), name) == PROA_OK ? 0 : (py_raise(), -1);
}

static PyObject *get_persistable(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((py_tensor *)self)->persistable);
}

/* Marks a program's variable, so that its value is still in the scope after a run. */
static int keep_in_scope(PyObject *self)
{
    PyObject *module = PyImport_ImportModule("proa.static.variable");
    PyObject *done = module ? PyObject_CallMethod(module, "keep_in_scope", "O", self) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int set_persistable(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    int on = value ? PyObject_IsTrue(value) : -1;
    if (on < 0) return -1;
    ((py_tensor *)self)->persistable = on;
    return on && proa_is_symbolic(py_tensor_of(self)) ? keep_in_scope(self) : 0;
}

/* x.data is x; x.data = value overwrites its elements. */
static PyObject *get_data(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(self);
}

static PyObject *set_elements(PyObject *self, PyObject *value, const char *who);

static int set_data(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    PyObject *same = value ? set_elements(self, value, "data") : NULL;
    if (!value) PyErr_SetString(PyExc_TypeError, "data: a tensor's elements cannot be deleted");
    Py_XDECREF(same);
    return same ? 0 : -1;
}

static PyObject *get_version(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLong(proa__guarded_version(py_tensor_of(self)));
}

static PyObject *get_is_symbolic(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(proa_is_symbolic(py_tensor_of(self)));
}

/* The attribute T: the tensor transposed, its axes in reverse order. */
static PyObject *get_transposed(PyObject *self, void *closure)
{
    (void)closure;
    proa_tensor *t = py_tensor_of(self);
    int64_t perm[PROA_MAX_DIMS];
    for (int i = 0; i < t->ndim; i++) perm[i] = t->ndim - 1 - i;
    PROA_SCOPED;
    return py_wrap(proa_transpose(t, ((proa_ints){t->ndim, perm, NULL, NULL})));
}

static PyGetSetDef tensor_getset[] = {
    {"shape", get_shape, NULL, "List of ints; of a program's variable a tuple, with -1 where unknown.", NULL},
    {"declared_shape", get_declared_shape, NULL,
     "shape to describe a variable by: unknown dims are the int -1.", NULL},
    {"strides", get_strides, NULL, "List of ints, in elements.", NULL},
    {"dtype", get_dtype, NULL, "The element type: paddle.float32, …", NULL},
    {"ndim", get_ndim, NULL, "Number of axes.", NULL},
    {"size", get_size, NULL, "Number of elements.", NULL},
    {"place", get_place, NULL, "The device of its memory: Place(cpu), …", NULL},
    {"grad", get_grad, set_grad, "The accumulated gradient, or None.", NULL},
    {"stop_gradient", get_stop_gradient, set_stop_gradient, "False: a gradient is wanted.", NULL},
    {"is_leaf", get_is_leaf, NULL, "True if no recorded op made it.", NULL},
    {"grad_fn", py_grad_fn, NULL, "The node of the recorded graph that its gradient goes to, or None.", NULL},
    {"name", get_name, set_name, "Name of a parameter or variable.", NULL},
    {"persistable", get_persistable, set_persistable, "True: saved with the model.", NULL},
    {"is_symbolic", get_is_symbolic, NULL, "True for a variable of a program: it has no elements.", NULL},
    {"data", get_data, set_data, "The tensor itself; when set, its elements are overwritten.", NULL},
    {"inplace_version", get_version, NULL, "How often it was written to.", NULL},
    {"T", get_transposed, NULL, "The tensor with its axes in reverse order.", NULL},
    {0},
};

/* ---- methods --------------------------------------------------------------------------- */

static PyObject *tensor_backward(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"grad_tensor", "retain_graph", NULL};
    PyObject *grad = Py_None;
    PyObject *retain = Py_False;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OO:backward", names, &grad, &retain)) return NULL;
    if (!PyBool_Check(retain) && retain != Py_None)
        return PyErr_Format(PyExc_ValueError,
                            "(InvalidArgument) backward: retain_graph: expected a bool, got %s",
                            Py_TYPE(retain)->tp_name);
    if (grad != Py_None && !py_is_tensor(grad))
        return PyErr_Format(PyExc_TypeError, "backward: grad_tensor: expected a Tensor, got %s",
                            Py_TYPE(grad)->tp_name);
    proa_tensor *t = py_tensor_of(self), *given = grad == Py_None ? proa_none : py_tensor_of(grad);
    return py_run_backward((proa_tensors){1, &t}, (proa_tensors){1, &given}, retain == Py_True);
}

/* clear_grad(): sets an existing gradient to zero, as Paddle does. */
static PyObject *tensor_clear_grad(PyObject *self, PyObject *unused)
{
    (void)unused;
    return py_none_or_raise(proa_zero_grad(py_tensor_of(self)));
}

/* clear_gradient(set_to_zero=True) makes the gradient zero; with False it is dropped. */
static PyObject *tensor_clear_gradient(PyObject *self, PyObject *args, PyObject *keywords)
{
    PyObject *given = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : NULL; /* of more, none */
    if (!given && keywords) given = PyDict_GetItemString(keywords, "set_to_zero");
    int zero = given ? PyObject_IsTrue(given) : 1;
    if (zero < 0) return NULL;
    if (proa_is_symbolic(py_tensor_of(self)))
        return PyErr_Format(PyExc_AssertionError,
                            "clear_gradient: a program's variable keeps no gradient; this is for eager "
                            "tensors");
    if (zero) return tensor_clear_grad(self, NULL);
    proa_clear_grad(py_tensor_of(self));
    Py_RETURN_NONE;
}

static PyObject *tensor_detach(PyObject *self, PyObject *unused)
{
    (void)unused;
    PROA_SCOPED;
    return py_wrap(proa_detach(py_tensor_of(self)));
}

static PyObject *tensor_clone(PyObject *self, PyObject *unused)
{
    (void)unused;
    PROA_SCOPED;
    return py_wrap(proa_assign(py_tensor_of(self)));
}

static PyObject *tensor_contiguous(PyObject *self, PyObject *unused)
{
    (void)unused;
    return proa_is_contiguous(py_tensor_of(self)) ? Py_NewRef(self) : tensor_clone(self, NULL);
}

static PyObject *tensor_is_contiguous(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(proa_is_contiguous(py_tensor_of(self)));
}

static PyObject *tensor_retain_grads(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (proa_stop_gradient(py_tensor_of(self))) Py_RETURN_NONE; /* there is none to keep, as in Paddle */
    return py_none_or_raise(proa_retain_grad(py_tensor_of(self)));
}

static PyObject *tensor_data_ptr(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(proa_data(py_tensor_of(self)));
}

static PyObject *tensor_element_size(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromSize_t(proa_dtype_size(proa_dtype_of(py_tensor_of(self))));
}

/* set_value of a program's variable: stores the value in the executors' scope. */
static PyObject *set_in_scope(PyObject *self, PyObject *value)
{
    PyObject *module = PyImport_ImportModule("proa.static.variable");
    PyObject *done = module ? PyObject_CallMethod(module, "set_in_scope", "OO", self, value) : NULL;
    Py_XDECREF(module);
    if (!done) return NULL;
    Py_DECREF(done);
    return Py_NewRef(self);
}

/* Overwrites the elements with those of value, outside of any gradient. */
static PyObject *set_elements(PyObject *self, PyObject *value, const char *who)
{
    if (proa_is_symbolic(py_tensor_of(self))) return set_in_scope(self, value);
    PROA_SCOPED;
    PROA_NO_GRAD;
    proa_tensor *t = py_tensor_of(self);
    proa_tensor *from = py_is_tensor(value)
                            ? py_tensor_of(value)
                            : py_to_new_tensor(value, PROA_NODTYPE, proa_device_of(py_tensor_of(self)));
    if (!from) return PyErr_Occurred() ? NULL : py_raise();
    bool same = from->ndim == t->ndim;
    for (int i = 0; same && i < t->ndim; i++)
        same = from->shape[i] == t->shape[i] || (proa_is_symbolic(from) && from->shape[i] < 0);
    if (!same)
        return PyErr_Format(PyExc_ValueError, "%s: expected a value of shape %s, got %s", who,
                            py_shape_text(t), py_shape_text(from));
    if (from->dtype != t->dtype)
        return PyErr_Format(PyExc_ValueError,
                            "%s: expected a value of dtype %s, got %s; convert it with astype", who,
                            proa_dtype_name((proa_dtype)t->dtype), proa_dtype_name((proa_dtype)from->dtype));
    from = proa_to_device(from, proa_device_of(t));
    if (from) from = proa_assign(from); /* contiguous, and apart from t's memory */
    if (!from) return py_raise();
    uint32_t before = proa__guarded_version(t);
    if (proa_is_contiguous(t) && !proa__on_device(t) && !proa_is_symbolic(from)) {
        size_t bytes = (size_t)t->numel * proa_dtype_size((proa_dtype)t->dtype);
        if (proa__plain(from) != PROA_OK || proa_copy_in(t, from->data, bytes) != PROA_OK) return py_raise();
    } else {
        proa_ints none = {0, NULL, NULL, NULL};
        if (!proa_set_value_(t, from, none, none, none)) return py_raise();
    }
    proa__unguard_since(t, before);
    return Py_NewRef(self);
}

/* The one argument of a method, by position or by its name; NULL with an exception otherwise. */
static PyObject *only_argument(const char *method, const char *name, PyObject *const *args, Py_ssize_t n,
                               PyObject *keywords)
{
    Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    if (n + named != 1)
        return PyErr_Format(PyExc_TypeError, "%s: expected one argument, %s, got %zd", method, name,
                            n + named);
    if (named && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, 0), name) != 0)
        return PyErr_Format(PyExc_TypeError, "%s: there is no argument %R; the call is %s(%s)", method,
                            PyTuple_GET_ITEM(keywords, 0), method, name);
    return args[0];
}

static PyObject *tensor_set_value(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    PyObject *value = only_argument("set_value", "value", args, n, keywords);
    if (!value) return NULL;
    PyObject *same = set_elements(self, value, "set_value");
    if (!same) return NULL;
    Py_DECREF(same);
    Py_RETURN_NONE;
}

static PyObject *tensor_copy_(PyObject *self, PyObject *args)
{
    if (!PyTuple_GET_SIZE(args)) return PyErr_Format(PyExc_TypeError, "copy_: argument value is missing");
    PyObject *value = PyTuple_GET_ITEM(args, 0); /* as in Paddle, nothing looks at what follows */
    if (!py_is_tensor(value))
        return py_refuse_type("copy_: value must be a Tensor, got %s", Py_TYPE(value)->tp_name);
    return set_elements(self, value, "copy_");
}

/* Makes the object refer to the tensor of `other`: elements, shape, dtype and gradient history. */
static PyObject *tensor_become(PyObject *self, PyObject *other)
{
    if (!py_is_tensor(other))
        return PyErr_Format(PyExc_TypeError, "_become: expected a Tensor, got %s", Py_TYPE(other)->tp_name);
    proa_tensor *before = py_tensor_of(self);
    ((py_tensor *)self)->tensor = proa_retain(py_tensor_of(other));
    proa_release(before);
    return Py_NewRef(self);
}

/* As _become, of a tensor that nobody else has: for who watches versions, one more write to self. */
static PyObject *tensor_take_over(PyObject *self, PyObject *other)
{
    if (!py_is_tensor(other)) return tensor_become(self, other);
    uint32_t writes = proa__guarded_version(py_tensor_of(self)) + 1;
    proa_tensor *taken = py_tensor_of(other);
    while (taken->storage && proa__guarded_version(taken) < writes) proa__bump_version(taken);
    return tensor_become(self, other);
}

static double half_at(const proa_tensor *t, const char *at)
{
    proa_tensor one = proa__shallow_copy(t);
    one.data = (char *)(uintptr_t)at;
    one.numel = 1;
    one.ndim = 0;
    one.flags = 0;
    return proa_item(&one);
}

static PyObject *number_at(const proa_tensor *t, const char *at)
{
    switch ((proa_dtype)t->dtype) {
    case PROA_BOOL: return PyBool_FromLong(*(const bool *)at);
    case PROA_C64: return PyComplex_FromDoubles(((const float *)at)[0], ((const float *)at)[1]);
    case PROA_C128: return PyComplex_FromDoubles(((const double *)at)[0], ((const double *)at)[1]);
    case PROA_U8: return PyLong_FromLong(*(const uint8_t *)at);
    case PROA_I8: return PyLong_FromLong(*(const int8_t *)at);
    case PROA_I16: return PyLong_FromLong(*(const int16_t *)at);
    case PROA_I32: return PyLong_FromLong(*(const int32_t *)at);
    case PROA_I64: return PyLong_FromLongLong(*(const int64_t *)at);
    case PROA_F32: return PyFloat_FromDouble(*(const float *)at);
    case PROA_F64: return PyFloat_FromDouble(*(const double *)at);
    default: return PyFloat_FromDouble(half_at(t, at));
    }
}

static bool has_data(const proa_tensor *t, const char *who)
{
    if (!proa_is_symbolic(t)) return true;
    PyErr_Format(PyExc_RuntimeError, "%s: a program's variable has no data while the program is built", who);
    return false;
}

/* item(): the one element; item(i): element i in row-major order; item(i, j, …): the one at these indices. */
static PyObject *tensor_item(PyObject *self, PyObject *args)
{
    proa_tensor *t = py_tensor_of(self);
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    if (!has_data(t, "item")) return NULL;
    if (n == 0 && t->numel != 1)
        return PyErr_Format(PyExc_ValueError,
                            "(InvalidArgument) item: only a tensor of one element is a number; this one has "
                            "shape %s: name the element",
                            py_shape_text(t));
    int64_t index[PROA_MAX_DIMS] = {0};
    if (n != 0 && n != 1 && n != t->ndim)
        return PyErr_Format(PyExc_ValueError, "(InvalidArgument) item: expected 1 or %d indices, got %zd",
                            (int)t->ndim, n);
    for (Py_ssize_t i = 0; i < n; i++) {
        int64_t limit = n == 1 ? t->numel : t->shape[i];
        index[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(args, i));
        if (index[i] == -1 && PyErr_Occurred()) return NULL;
        if (index[i] < 0) index[i] += limit;
        if (index[i] < 0 || index[i] >= limit)
            return PyErr_Format(PyExc_IndexError, "item: index %zd is out of range for %lld elements", i,
                                (long long)limit);
    }
    if (n == 1)
        for (int64_t left = index[0], d = t->ndim - 1; d >= 0; d--) {
            index[d] = left % t->shape[d];
            left /= t->shape[d];
        }
    if (proa__plain(t) != PROA_OK) return py_raise();
    const char *at = t->data;
    for (int d = 0; d < t->ndim; d++) at += index[d] * t->strides[d];
    _Alignas(16) char one[16];
    if (!proa__on_device(t)) return number_at(t, at);
    const proa_device_table *device = proa_find_device(proa_device_of(t));
    bool got = device->copy_out(device->context, one, at, proa_dtype_size((proa_dtype)t->dtype)) == PROA_OK;
    return got ? number_at(t, one) : py_raise();
}

static PyObject *list_of(const proa_tensor *t, int axis, const char *at)
{
    if (axis == t->ndim) return number_at(t, at);
    PyObject *list = PyList_New((Py_ssize_t)t->shape[axis]);
    for (Py_ssize_t i = 0; list && i < (Py_ssize_t)t->shape[axis]; i++) {
        PyObject *one = list_of(t, axis + 1, at + i * t->strides[axis]);
        if (!one) Py_CLEAR(list);
        if (list) PyList_SET_ITEM(list, i, one);
    }
    return list;
}

static PyObject *tensor_tolist(PyObject *self, PyObject *unused)
{
    (void)unused;
    proa_tensor *t = py_tensor_of(self);
    if (!has_data(t, "tolist")) return NULL;
    PROA_SCOPED;
    PROA_NO_GRAD;
    t = proa_to_device(t, "cpu");
    return t && proa__plain(t) == PROA_OK ? list_of(t, 0, t->data) : py_raise();
}

static PyObject *tensor_astype(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    proa_dtype dtype;
    PyObject *obj = only_argument("astype", "dtype", args, n, keywords);
    if (!obj) return NULL;
    if (!py_to_dtype(obj, &dtype)) return NULL;
    if (dtype == PROA_NODTYPE) return PyErr_Format(PyExc_TypeError, "astype: expected a dtype, got None");
    PROA_SCOPED;
    return py_wrap(proa_cast(py_tensor_of(self), dtype));
}

static PyObject *tensor_repr(PyObject *self)
{
    PyObject *shape = get_declared_shape(self, NULL);
    const char *dtype = proa_dtype_name(proa_dtype_of(py_tensor_of(self)));
    PyObject *text = shape ? PyUnicode_FromFormat("Tensor(shape=%R, dtype=%s)", shape, dtype) : NULL;
    Py_XDECREF(shape);
    return text;
}

/* Paddle's methods of C++ do not look at arguments that they do not have. */
#define IGNORING(fn)                                                                                       \
    static PyObject *fn##_ignoring(PyObject *self, PyObject *const *values, Py_ssize_t n, PyObject *names) \
    {                                                                                                      \
        (void)values, (void)n, (void)names;                                                                \
        return fn(self, NULL);                                                                             \
    }
IGNORING(py_tensor_numpy)
IGNORING(tensor_retain_grads)
IGNORING(tensor_detach)
IGNORING(tensor_clone)
IGNORING(tensor_contiguous)
IGNORING(tensor_is_contiguous)
IGNORING(tensor_data_ptr)
IGNORING(tensor_element_size)

#define WITH_KEYWORDS(fn) (PyCFunction)(void (*)(void)) fn, METH_VARARGS | METH_KEYWORDS
#define FAST_KEYWORDS(fn) (PyCFunction)(void (*)(void)) fn, METH_FASTCALL | METH_KEYWORDS
/* "name(signature)\n--\n\n" is where inspect and help() find a signature. */
#define DOC(call, text) call "\n--\n\n" text
static PyMethodDef tensor_methods[] = {
    {"numpy", FAST_KEYWORDS(py_tensor_numpy_ignoring),
     DOC("numpy($self, /)", "A new NumPy array of the elements (bfloat16: its bits as uint16).")},
    {"item", tensor_item, METH_VARARGS, DOC("item($self, /, *args)", "One element as a Python number.")},
    {"tolist", tensor_tolist, METH_NOARGS, DOC("tolist($self, /)", "The elements as nested lists.")},
    {"astype", FAST_KEYWORDS(tensor_astype), DOC("astype($self, dtype)", "The elements in another dtype.")},
    {"backward", WITH_KEYWORDS(tensor_backward),
     DOC("backward($self, grad_tensor=None, retain_graph=False)",
         "Adds d(self)/d(leaf) to the gradient of every leaf.")},
    {"clear_grad", tensor_clear_grad, METH_NOARGS, DOC("clear_grad($self)", "Sets the gradient to zero.")},
    {"clear_gradient", WITH_KEYWORDS(tensor_clear_gradient),
     DOC("clear_gradient($self, set_to_zero=True)", "Sets the gradient to zero, or drops it.")},
    {"retain_grads", FAST_KEYWORDS(tensor_retain_grads_ignoring),
     DOC("retain_grads($self, /)", "Keeps the gradient of a tensor that is not a leaf.")},
    {"detach", FAST_KEYWORDS(tensor_detach_ignoring),
     DOC("detach($self, /)", "The same memory without history.")},
    {"clone", FAST_KEYWORDS(tensor_clone_ignoring), DOC("clone($self, /)", "A copy, recorded.")},
    {"contiguous", FAST_KEYWORDS(tensor_contiguous_ignoring),
     DOC("contiguous($self, /)", "Itself, or a row-major copy.")},
    {"is_contiguous", FAST_KEYWORDS(tensor_is_contiguous_ignoring),
     DOC("is_contiguous($self, /)", "True if row-major without gaps.")},
    {"set_value", FAST_KEYWORDS(tensor_set_value),
     DOC("set_value($self, value)", "Overwrites the elements.")},
    {"copy_", tensor_copy_, METH_VARARGS,
     DOC("copy_($self, other, blocking=True, /)", "Overwrites the elements; returns itself.")},
    {"_become", tensor_become, METH_O,
     DOC("_become($self, other, /)", "Shows another tensor from now on; returns itself.")},
    {"_take_over", tensor_take_over, METH_O,
     DOC("_take_over($self, other, /)", "_become, of a tensor that nobody else has, as one more write.")},
    {"data_ptr", FAST_KEYWORDS(tensor_data_ptr_ignoring),
     DOC("data_ptr($self, /)", "Address of the first element.")},
    {"element_size", FAST_KEYWORDS(tensor_element_size_ignoring),
     DOC("element_size($self, /)", "Bytes of one element.")},
    {0},
};

static PyMemberDef tensor_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(py_tensor, weak), READONLY, NULL},
    {0},
};

/* ---- the type -------------------------------------------------------------------------- */

static int tensor_init(PyObject *self, PyObject *args, PyObject *keywords)
{
    (void)self, (void)args, (void)keywords; /* tensor_new has initialized the object */
    return 0;
}

bool py_make_tensor_type(PyObject *module)
{
    PyType_Slot slots[64] = {
        {Py_tp_new, tensor_new},
        {Py_tp_init, tensor_init},
        {Py_tp_dealloc, tensor_dealloc},
        {Py_tp_repr, tensor_repr},
        {Py_tp_getset, tensor_getset},
        {Py_tp_methods, tensor_methods},
        {Py_tp_members, tensor_members},
        {Py_tp_doc, "A tensor: elements of one dtype in a strided shape, and how to differentiate them."},
        {Py_mp_subscript, py_getitem},
        {Py_mp_ass_subscript, py_setitem},
        {Py_mp_length, py_tensor_len},
        {Py_sq_item, py_tensor_row}, /* a sequence: NumPy and unpacking see rows */
        {Py_tp_iter, py_tensor_iter},
    };
    int n = 0;
    while (slots[n].slot) n++;
    for (const PyType_Slot *s = py_operator_slots; s->slot; s++) slots[n++] = *s;
    PyType_Spec spec = {"proa.Tensor", sizeof(py_tensor), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    py_tensor_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!py_tensor_type) return false;
    /* NumPy leaves array + tensor to the tensor's operator */
    PyObject *priority = PyLong_FromLong(100);
    bool ok = priority &&
              PyObject_SetAttrString((PyObject *)py_tensor_type, "__array_priority__", priority) == 0 &&
              PyObject_SetAttrString((PyObject *)py_tensor_type, "__array_ufunc__", Py_None) == 0;
    Py_XDECREF(priority);
    return ok && PyModule_AddFunctions(module, construct_functions) == 0 &&
           PyModule_AddObjectRef(module, "Tensor", (PyObject *)py_tensor_type) == 0;
}
