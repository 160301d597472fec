/* Converts tensors to and from buffers, NumPy arrays and DLPack capsules, and nested lists of numbers to
 * tensors. NumPy is imported at first use. Uses ext.h. */
#include "ext.h"

#include "core/device.h"

#include <proa/program.h>

/* ---- buffers --------------------------------------------------------------------------- */

/* Buffer formats (of Python's struct module) by dtype; bfloat16 has none and is exported as uint16 bits. */
static const char *const formats[PROA_DTYPE_COUNT] = {
    [PROA_BOOL] = "?", [PROA_U8] = "B",  [PROA_I8] = "b",   [PROA_I16] = "h",
    [PROA_I32] = "i",  [PROA_I64] = "q", [PROA_F16] = "e",  [PROA_BF16] = "H",
    [PROA_F32] = "f",  [PROA_F64] = "d", [PROA_C64] = "Zf", [PROA_C128] = "Zd",
};

/* New reference: the tensor with its elements in host memory. */
static PyObject *on_host(PyObject *self)
{
    if (!proa__on_device(py_tensor_of(self))) return Py_NewRef(self);
    PROA_SCOPED;
    PROA_NO_GRAD;
    return py_wrap(proa_to_device(py_tensor_of(self), "cpu"));
}

/* An object with the buffer protocol on a tensor's memory, for use inside the package. Tensor itself has
 * no buffer protocol: NumPy would then share its memory, and writes would bypass version counters and
 * gradients. */
typedef struct py_memory {
    PyObject_HEAD PyObject *tensor; /* owned: the Tensor, or its copy in host memory */
    proa_tensor *share;             /* kept: no optimizer moves its memory; NULL for a variable */
} py_memory;

static int memory_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    const proa_tensor *t = py_tensor_of(((py_memory *)self)->tensor);
    view->obj = NULL;
    if (proa_is_symbolic(t)) {
        PyErr_SetString(PyExc_BufferError, "a program's variable has no data while the program is built");
        return -1;
    }
    if (t->flags & PROA_T_STRIDED && !(flags & PyBUF_STRIDES)) {
        PyErr_SetString(PyExc_BufferError, "the tensor is strided; ask for strides or copy it");
        return -1;
    }
    _Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "shapes are handed over as they are");
    Py_ssize_t item = (Py_ssize_t)proa_dtype_size((proa_dtype)t->dtype);
    *view = (Py_buffer){.buf = t->data,
                        .obj = Py_NewRef(self),
                        .len = (Py_ssize_t)t->numel * item,
                        .itemsize = item,
                        .ndim = t->ndim,
                        .format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)formats[t->dtype] : NULL,
                        .shape = flags & PyBUF_ND ? (Py_ssize_t *)t->shape : NULL,
                        .strides = flags & PyBUF_STRIDES ? (Py_ssize_t *)t->strides : NULL};
    return 0;
}

static void memory_dealloc(PyObject *self)
{
    proa_release(((py_memory *)self)->share);
    Py_DECREF(((py_memory *)self)->tensor);
    PyObject_Free(self);
}

static PyBufferProcs memory_buffer = {.bf_getbuffer = memory_getbuffer};
static PyTypeObject memory_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa._core.Memory",
    .tp_basicsize = sizeof(py_memory),
    .tp_dealloc = memory_dealloc,
    .tp_as_buffer = &memory_buffer,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "The memory of a tensor, or of its copy on the host.",
};

/* memory(tensor): a py_memory of the tensor. Deferred elements are read here, as NumPy would take an error of
 * the buffer protocol for an object without a buffer. */
static PyObject *memory_of(PyObject *module, PyObject *obj)
{
    (void)module;
    if (!py_is_tensor(obj))
        return PyErr_Format(PyExc_TypeError, "memory: expected a Tensor, got %s", Py_TYPE(obj)->tp_name);
    if (py_tensor_of(obj)->flags & PROA_T_META)
        return py_refuse(PROA_ERR_BAD_STATE,
                         "memory: the Tensor has shape and dtype alone, as one on a mesh of processes");
    PyObject *host = PyType_Ready(&memory_type) == 0 ? on_host(obj) : NULL;
    if (!host) return NULL;
    PROA_SCOPED;
    proa_tensor *t = py_tensor_of(host), *share = NULL;
    if (!proa_is_symbolic(t) && (proa__plain(t) != PROA_OK || !(share = proa_keep(proa_detach(t))))) {
        Py_DECREF(host);
        return py_raise();
    }
    py_memory *self = PyObject_New(py_memory, &memory_type);
    if (self) {
        self->tensor = host;
        self->share = share;
        return (PyObject *)self;
    }
    proa_release(share);
    Py_DECREF(host);
    return NULL;
}

/* Borrowed reference: the attribute `name` of the module numpy, cached in *found. */
static PyObject *numpy_function(const char *name, PyObject **found)
{
    if (*found) return *found;
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (numpy) *found = PyObject_GetAttrString(numpy, name);
    Py_XDECREF(numpy);
    return *found;
}

/* FLAGS_set_to_1d, Paddle's flag for scripts of before 2.5: numpy() of a tensor without dims has one dim. */
static bool one_d_arrays(int value)
{
    static int on = -1;
    if (on < 0 && value < 0) {
        const char *text = getenv("FLAGS_set_to_1d");
        value = text && *text && strcmp(text, "0") != 0 && strcasecmp(text, "false") != 0;
    }
    if (value >= 0) on = value;
    return on != 0;
}

/* set_to_1d(value=None): sets FLAGS_set_to_1d if a value is given; returns the flag. */
static PyObject *set_to_1d(PyObject *module, PyObject *args)
{
    (void)module;
    int value = -1;
    if (!PyArg_ParseTuple(args, "|p:set_to_1d", &value)) return NULL;
    return PyBool_FromLong(one_d_arrays(value));
}

PyObject *py_tensor_numpy(PyObject *self, PyObject *unused)
{
    if (proa_is_symbolic(py_tensor_of(self)))
        return PyErr_Format(PyExc_AssertionError,
                            "numpy: a program's variable has no data; fetch it with Executor.run");
    (void)unused;
    /* made here, since NumPy would ignore an exception of the buffer protocol */
    static PyObject *found;
    PyObject *memory = memory_of(NULL, self);
    PyObject *copy = memory ? numpy_function("array", &found) : NULL;
    PyObject *array = copy ? PyObject_CallOneArg(copy, memory) : NULL;
    Py_XDECREF(memory);
    if (array && py_tensor_of(self)->ndim == 0 && one_d_arrays(-1))
        Py_SETREF(array, PyObject_CallMethod(array, "reshape", "i", 1));
    return array;
}

/* The dtype of a buffer format. NumPy's uint16 is taken as bfloat16 bits, as in Paddle, whose numpy() returns
 * bfloat16 so. */
static proa_dtype dtype_of_format(const char *format, Py_ssize_t item)
{
    if (!format) return PROA_U8;
    if (strchr("@=<", *format)) format++;
    if (!strcmp(format, "l") || !strcmp(format, "q")) return item == 8 ? PROA_I64 : PROA_I32;
    for (int d = 1; d < PROA_DTYPE_COUNT; d++)
        if (!strcmp(format, formats[d])) return (proa_dtype)d;
    return PROA_NODTYPE;
}

static void release_buffer(void *context)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyBuffer_Release(context);
    PyMem_Free(context);
    PyGILState_Release(gil);
}

/* A new tensor that shares and keeps an object's buffer. bits: 2-byte integers are bfloat16. */
static proa_tensor *share(PyObject *array, bool bits)
{
    Py_buffer *view = PyMem_Calloc(1, sizeof *view);
    if (!view) return PyErr_NoMemory(), NULL;
    if (PyObject_GetBuffer(array, view, PyBUF_STRIDED | PyBUF_FORMAT | PyBUF_WRITABLE) != 0) {
        PyErr_Clear();
        if (PyObject_GetBuffer(array, view, PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0) {
            PyMem_Free(view);
            return NULL;
        }
    }
    proa_dtype dtype =
        bits && view->itemsize == 2 ? PROA_BF16 : dtype_of_format(view->format, view->itemsize);
    proa_tensor *t = NULL;
    if (dtype == PROA_NODTYPE)
        PyErr_Format(PyExc_ValueError, "%sarrays of format '%s' have no dtype here; convert them first",
                     proa_program_current() ? "" : "(InvalidArgument) ", view->format ? view->format : "");
    else if (view->ndim > PROA_MAX_DIMS)
        PyErr_Format(PyExc_ValueError, "a tensor has at most %d axes, the array has %d", PROA_MAX_DIMS,
                     view->ndim);
    else
        t = proa_from_foreign(view->buf, (proa_ints){view->ndim, (const int64_t *)view->shape, NULL, NULL},
                              (const int64_t *)view->strides, dtype, release_buffer, view);
    if (!t) {
        PyBuffer_Release(view);
        PyMem_Free(view);
    }
    return t;
}

/* from_numpy(array, bfloat16=False): shares the array's memory. */
static PyObject *from_numpy(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *array;
    int bits = 0;
    if (!PyArg_ParseTuple(args, "O|p:from_numpy", &array, &bits)) return NULL;
    PROA_SCOPED;
    proa_tensor *t = share(array, bits);
    return t || !PyErr_Occurred() ? py_wrap(t) : NULL;
}

/* True if t can be fed for the variable without a copy: same dtype, a shape that fits, contiguous,
 * aligned. */
static bool suits_variable(const proa_tensor *t, const proa_tensor *variable)
{
    bool fits = t->dtype == variable->dtype && t->ndim == variable->ndim && !(t->flags & PROA_T_STRIDED) &&
                (uintptr_t)t->data % proa_dtype_size((proa_dtype)t->dtype) == 0;
    for (int i = 0; fits && i < t->ndim; i++)
        fits = variable->shape[i] < 0 || variable->shape[i] == t->shape[i];
    return fits;
}

/* feed(value, variable): a tensor that shares the value's buffer, for a run that only reads it. None if the
 * value has to be copied or does not fit. */
static PyObject *feed(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 2 || !py_is_tensor(args[1])) {
        PyErr_SetString(PyExc_TypeError, "feed: expected a value and a variable");
        return NULL;
    }
    if (!PyObject_CheckBuffer(args[0]) || py_is_tensor(args[0]) || strcmp(proa_get_device(), "cpu") != 0)
        Py_RETURN_NONE;
    PROA_SCOPED;
    proa_tensor *t = share(args[0], false);
    if (t && suits_variable(t, py_tensor_of(args[1]))) return py_wrap(t);
    PyErr_Clear();
    proa_clear_error();
    Py_RETURN_NONE;
}

/* empty_bytes(n): a uint8 tensor whose values are unspecified, for readers to fill. */
static PyObject *empty_bytes(PyObject *module, PyObject *arg)
{
    (void)module;
    int64_t count = PyLong_AsLongLong(arg);
    if (count == -1 && PyErr_Occurred()) return NULL;
    PROA_SCOPED;
    proa_tensor *t = proa_empty(PROA_SHAPE(count), PROA_U8);
    return t ? py_wrap(t) : py_raise();
}

/* ---- nested lists ---------------------------------------------------------------------- */

typedef struct py_nest {
    int64_t shape[PROA_MAX_DIMS];
    int ndim;
    proa_dtype dtype; /* widest kind of number so far: BOOL, I64, F32 (any float), C64 */
    bool plain;       /* rectangular, and its entries are Python numbers */
} py_nest;

static bool is_list(PyObject *obj) { return PyList_Check(obj) || PyTuple_Check(obj); }

/* Determines a nested list's shape, by the first entries, and the widest kind of its numbers. */
static void look(PyObject *obj, int depth, py_nest *n)
{
    if (!is_list(obj)) {
        proa_dtype d = PyBool_Check(obj)           ? PROA_BOOL
                       : PyLong_CheckExact(obj)    ? PROA_I64
                       : PyFloat_CheckExact(obj)   ? PROA_F32
                       : PyComplex_CheckExact(obj) ? PROA_C64
                                                   : PROA_NODTYPE;
        if (n->ndim < 0) n->ndim = depth;
        if (d == PROA_NODTYPE || depth != n->ndim) n->plain = false;
        if (d > n->dtype) n->dtype = d;
        return;
    }
    Py_ssize_t count = PySequence_Fast_GET_SIZE(obj);
    if (depth >= PROA_MAX_DIMS || (n->ndim >= 0 && depth >= n->ndim)) {
        n->plain = false;
        return;
    }
    if (n->shape[depth] < 0) n->shape[depth] = count;
    if (n->shape[depth] != count) n->plain = false;
    if (count == 0 && n->ndim < 0) n->ndim = depth + 1;
    for (Py_ssize_t i = 0; n->plain && i < count; i++) look(PySequence_Fast_GET_ITEM(obj, i), depth + 1, n);
}

/* Writes the numbers of a nested list in row-major order to *at; false with an exception if one does not
 * convert. */
static bool fill(PyObject *obj, proa_dtype dtype, char **at)
{
    if (is_list(obj)) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(obj); i++)
            if (!fill(PySequence_Fast_GET_ITEM(obj, i), dtype, at)) return false;
        return true;
    }
    if (dtype == PROA_BOOL) {
        *(bool *)*at = PyObject_IsTrue(obj) == 1;
        *at += sizeof(bool);
    } else if (dtype == PROA_I64) {
        *(int64_t *)*at = PyLong_AsLongLong(obj);
        *at += sizeof(int64_t);
    } else if (dtype == PROA_F64) {
        *(double *)*at = PyFloat_AsDouble(obj);
        *at += sizeof(double);
    } else {
        Py_complex c = PyComplex_AsCComplex(obj);
        memcpy(*at, &c, sizeof c);
        *at += sizeof c;
    }
    return !PyErr_Occurred();
}

/* A new tensor of a nested list of numbers. With PROA_NODTYPE floats get the default dtype, complex numbers
 * the complex dtype of that precision, integers int64. */
static proa_tensor *from_numbers(PyObject *data, const py_nest *n, proa_dtype dtype)
{
    proa_dtype made = n->dtype == PROA_F32 ? PROA_F64 : n->dtype == PROA_C64 ? PROA_C128 : n->dtype;
    if (made == PROA_NODTYPE) made = PROA_F64; /* the list is empty: the default floating dtype */
    proa_ints shape = {n->ndim, n->shape, NULL, NULL};
    PROA__ON_CPU;
    proa_tensor *t = proa_empty(shape, made);
    if (!t) return NULL;
    char *at = t->data;
    if (!fill(data, made, &at)) return NULL;
    proa_dtype floating = proa_default_dtype();
    proa_dtype natural = made == PROA_F64    ? floating
                         : made == PROA_C128 ? (floating == PROA_F64 ? PROA_C128 : PROA_C64)
                                             : made;
    proa_dtype wanted = dtype ? dtype : natural;
    return wanted == made ? t : proa_cast(t, wanted);
}

/* ---- anything array-like --------------------------------------------------------------- */

/* Converts NumPy scalars and arrays, objects with __array__, and lists of them to one NumPy array. */
static PyObject *as_array(PyObject *data);

/* Prepares a list's entry for NumPy: tensors become arrays, as NumPy would read them element by element. */
static PyObject *entry_as_array(PyObject *item)
{
    if (py_is_tensor(item)) return py_tensor_numpy(item, NULL);
    if (!is_list(item)) return Py_NewRef(item);
    if (Py_EnterRecursiveCall(" while reading a nested list")) return NULL; /* it may contain itself */
    PyObject *array = as_array(item);
    Py_LeaveRecursiveCall();
    return array;
}

static PyObject *as_array(PyObject *data)
{
    static PyObject *found;
    PyObject *convert = numpy_function("asarray", &found);
    PyObject *array = NULL, *plain = data;
    Py_INCREF(plain);
    if (is_list(data)) {
        PyObject *list = PySequence_List(data);
        for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
            PyObject *one = entry_as_array(PyList_GET_ITEM(list, i));
            if (!one) Py_CLEAR(list);
            if (list) PyList_SetItem(list, i, one);
        }
        Py_SETREF(plain, list);
    }
    if (convert && plain) array = PyObject_CallOneArg(convert, plain);
    Py_XDECREF(plain);
    return array;
}

/* Raises what Paddle raises for data that NumPy made an array of texts or of objects. */
static void refuse_array(PyObject *data, PyObject *array, proa_dtype dtype)
{
    PyObject *type = PyObject_GetAttrString(array, "dtype");
    PyObject *kind = type ? PyObject_GetAttrString(type, "kind") : NULL;
    const char *letter = kind && PyUnicode_Check(kind) ? PyUnicode_AsUTF8(kind) : NULL;
    bool text = letter && strchr("US", *letter);
    Py_XDECREF(type);
    Py_XDECREF(kind);
    PyErr_Clear();
    if (text)
        PyErr_Format(dtype ? PyExc_TypeError : PyExc_ValueError,
                     "%sto_tensor: the data holds texts, not numbers", dtype ? "" : "(InvalidArgument) ");
    else
        PyErr_Format(PySequence_Check(data) ? PyExc_ValueError : PyExc_TypeError,
                     "to_tensor: the data is no array of numbers: rows of different lengths, or "
                     "objects of type %s inside",
                     Py_TYPE(data)->tp_name);
}

static proa_tensor *from_data(PyObject *data, proa_dtype dtype)
{
    py_nest n = {.ndim = -1, .plain = true};
    for (int i = 0; i < PROA_MAX_DIMS; i++) n.shape[i] = -1;
    if (!PyObject_CheckBuffer(data)) look(data, 0, &n);
    else n.plain = false;
    if (n.plain) {
        if (n.ndim < 0) n.ndim = 0;
        return from_numbers(data, &n, dtype);
    }
    bool single = PyUnicode_Check(data) || PyDict_Check(data) || data == Py_None || PyCallable_Check(data);
    if (single) {
        PyErr_Format(PyExc_TypeError, "to_tensor: expected numbers, lists of numbers or an array, got %s",
                     Py_TYPE(data)->tp_name);
        return NULL;
    }
    bool own = PyObject_CheckBuffer(data);
    PyObject *array = as_array(data);
    if (!array) return NULL;
    proa_tensor *shared = share(array, false), *t = NULL;
    if (shared) {
        bool floats = !own && (shared->dtype == PROA_F64); /* from lists and scalars: default dtype */
        proa_dtype wanted = dtype ? dtype : floats ? proa_default_dtype() : (proa_dtype)shared->dtype;
        t = wanted == (proa_dtype)shared->dtype ? proa_assign(shared) : proa_cast(shared, wanted);
    } else if (PyErr_ExceptionMatches(PyExc_BufferError) ||
               (!own && PyErr_ExceptionMatches(PyExc_ValueError))) {
        PyErr_Clear();
        refuse_array(data, array, dtype);
    }
    Py_DECREF(array);
    return t;
}

proa_tensor *py_to_new_tensor(PyObject *data, proa_dtype dtype, const char *device)
{
    if (py_is_tensor(data)) {
        proa_tensor *t = proa_detach(py_tensor_of(data));
        if (!t) return NULL;
        t = dtype && dtype != (proa_dtype)t->dtype ? proa_cast(t, dtype) : proa_assign(t);
        return t && device ? proa_to_device(t, device) : t;
    }
    proa_program *open =
        proa_program_current() ? proa_program_open(NULL) : NULL; /* not as ops of the program */
    proa_tensor *t = from_data(data, dtype);
    if (open) proa_program_open(open);
    return t ? proa_to_device(t, device ? device : proa_get_device()) : NULL;
}

/* to_tensor(data, dtype=None, place=None, stop_gradient=True): a new Tensor with a copy of data (numbers,
 * nested lists, arrays, a Tensor). dtype None: the data's, for Python floats the default dtype. */
/* Makes an exception `from` that is set one of type `to`, with its text. Always NULL. */
static PyObject *refuse_again(PyObject *from, PyObject *to)
{
    if (!PyErr_ExceptionMatches(from)) return NULL;
    py_error error = py_fetch();
    PyErr_SetObject(to, error.value);
    py_drop(error);
    return NULL;
}

static PyObject *to_tensor(PyObject *module, PyObject *args, PyObject *keywords)
{
    (void)module;
    static char *names[] = {"data", "dtype", "place", "stop_gradient", NULL};
    PyObject *data, *dtype_object = Py_None, *place = Py_None;
    int stop = 1;
    proa_dtype dtype;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OOp:to_tensor", names, &data, &dtype_object, &place,
                                     &stop))
        return NULL;
    const char *device = NULL;
    const bool building = proa_program_current() != NULL;
    if (PyObject_IsTrue(dtype_object) < 0) return NULL; /* as Paddle asks first: an array has no truth */
    if (!py_to_dtype(dtype_object, &dtype)) {
        bool asked = py_is_tensor(data) && !building; /* Paddle then has its own list of dtypes */
        return asked ? refuse_again(PyExc_ValueError, PyExc_TypeError) : NULL;
    }
    if (place != Py_None && !py_to_device_name("to_tensor", place, &device)) {
        return refuse_again(PyExc_TypeError, PyExc_ValueError);
    }
    PROA_SCOPED;
    PROA_NO_GRAD;
    proa_tensor *t = py_to_new_tensor(data, dtype, device);
    if (!t && PyErr_Occurred()) return building ? refuse_again(PyExc_TypeError, PyExc_RuntimeError) : NULL;
    if (!t) return py_raise();
    if (!stop && py_has_gradients(t) && proa_set_stop_gradient(t, false) != PROA_OK) return py_raise();
    return py_wrap(t);
}

/* ---- DLPack ---------------------------------------------------------------------------- */

/* The structs of DLPack 0.8. */
typedef struct dl_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides; /* strides in elements, NULL: row-major */
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor t;
    void *context;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

enum { DL_INT, DL_UINT, DL_FLOAT, DL_BFLOAT = 4, DL_COMPLEX = 5, DL_BOOL = 6, DL_CPU = 1 };

static uint8_t dl_code(proa_dtype d)
{
    if (d == PROA_BOOL) return DL_BOOL;
    if (d == PROA_U8) return DL_UINT;
    if (d <= PROA_I64) return DL_INT;
    return d == PROA_BF16 ? DL_BFLOAT : d >= PROA_C64 ? DL_COMPLEX : DL_FLOAT;
}

typedef struct dl_export {
    dl_managed managed;
    int64_t shape[PROA_MAX_DIMS], strides[PROA_MAX_DIMS];
} dl_export;

static void dl_delete(dl_managed *self)
{
    proa_release(self->context);
    free(self);
}

static void dl_capsule_free(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "dltensor")) return; /* a consumer renamed and owns it */
    dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
    if (m) m->deleter(m);
}

/* to_dlpack(tensor): a DLPack capsule on the CPU tensor's memory, which it keeps alive until it is consumed
 * or freed. */
static PyObject *to_dlpack(PyObject *module, PyObject *obj)
{
    (void)module;
    if (!py_is_tensor(obj))
        return PyErr_Format(PyExc_TypeError, "to_dlpack: expected a Tensor, got %s", Py_TYPE(obj)->tp_name);
    proa_tensor *t = py_tensor_of(obj);
    if (proa_is_symbolic(t))
        return PyErr_Format(PyExc_BufferError, "to_dlpack: a program's variable has no data");
    if (proa__on_device(t))
        return PyErr_Format(PyExc_BufferError, "to_dlpack: the tensor is on %s; take its copy here: x.cpu()",
                            proa_device_of(t));
    void *data = proa_data(t);
    if (!data && t->numel) return py_raise();
    dl_export *e = calloc(1, sizeof *e); /* the consumer frees it, perhaps without the GIL */
    if (!e) return PyErr_NoMemory();
    int64_t item = (int64_t)proa_dtype_size((proa_dtype)t->dtype);
    for (int i = 0; i < t->ndim; i++) e->shape[i] = t->shape[i], e->strides[i] = t->strides[i] / item;
    e->managed = (dl_managed){.t = {.data = data,
                                    .device = {DL_CPU, 0},
                                    .ndim = t->ndim,
                                    .dtype = {dl_code((proa_dtype)t->dtype), (uint8_t)(item * 8), 1},
                                    .shape = e->shape,
                                    .strides = e->strides},
                              .context = proa_keep(t),
                              .deleter = dl_delete};
    PyObject *capsule = PyCapsule_New(&e->managed, "dltensor", dl_capsule_free);
    if (!capsule) dl_delete(&e->managed);
    return capsule;
}

static void dl_release(void *context)
{
    dl_managed *m = context;
    PyGILState_STATE gil = PyGILState_Ensure();
    if (m->deleter) m->deleter(m);
    PyGILState_Release(gil);
}

static proa_dtype dl_dtype(const dl_tensor *t)
{
    for (int d = 1; d < PROA_DTYPE_COUNT && t->dtype.lanes == 1; d++)
        if (dl_code((proa_dtype)d) == t->dtype.code && proa_dtype_size((proa_dtype)d) * 8 == t->dtype.bits)
            return (proa_dtype)d;
    return PROA_NODTYPE;
}

/* from_dlpack(x): a tensor on the memory of a capsule, or of an object with __dlpack__. */
static PyObject *from_dlpack(PyObject *module, PyObject *obj)
{
    (void)module;
    PyObject *capsule =
        PyCapsule_CheckExact(obj) ? Py_NewRef(obj) : PyObject_CallMethod(obj, "__dlpack__", NULL);
    if (!capsule) return NULL;
    dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
    PyObject *result = NULL;
    PROA_SCOPED;
    proa_dtype dtype = m ? dl_dtype(&m->t) : PROA_NODTYPE;
    if (m && (m->t.device.type != DL_CPU || dtype == PROA_NODTYPE || m->t.ndim > PROA_MAX_DIMS)) {
        PyErr_Format(PyExc_BufferError,
                     "from_dlpack: expected a CPU tensor of a dtype that paddle has and at most "
                     "%d axes",
                     PROA_MAX_DIMS);
    } else if (m) {
        int64_t strides[PROA_MAX_DIMS], item = (int64_t)proa_dtype_size(dtype);
        for (int i = 0; m->t.strides && i < m->t.ndim; i++) strides[i] = m->t.strides[i] * item;
        proa_tensor *t = proa_from_foreign((char *)m->t.data + m->t.byte_offset,
                                           (proa_ints){m->t.ndim, m->t.shape, NULL, NULL},
                                           m->t.strides ? strides : NULL, dtype, dl_release, m);
        if (t) PyCapsule_SetName(capsule, "used_dltensor");
        result = py_wrap(t);
    }
    Py_DECREF(capsule);
    return result;
}

PyMethodDef py_array_functions[] = {
    {"empty_bytes", empty_bytes, METH_O, "A uint8 tensor to fill."},
    {"feed", (PyCFunction)(void (*)(void))feed, METH_FASTCALL,
     "A tensor on a value's memory if it may be a variable's value as it is, else None."},
    {"set_to_1d", set_to_1d, METH_VARARGS,
     "FLAGS_set_to_1d, after it was set to the argument, if one is given."},
    {"from_numpy", from_numpy, METH_VARARGS, "A tensor on an array's memory."},
    {"memory", memory_of, METH_O, "What has the buffer protocol on a tensor's memory."},
    {"to_tensor", (PyCFunction)(void (*)(void))to_tensor, METH_VARARGS | METH_KEYWORDS,
     "to_tensor(data, dtype=None, place=None, stop_gradient=True)\n--\n\n"
     "A new tensor with a copy of numbers, nested lists, arrays or tensors."},
    {"to_dlpack", to_dlpack, METH_O, "A DLPack capsule on the tensor's memory."},
    {"from_dlpack", from_dlpack, METH_O, "A tensor on the memory of a DLPack capsule."},
    {0},
};
