/* Python classes over the configs, predictors and handles of proa/inference.h, with the methods that
 * paddle.inference (proa/inference/) is made of. Uses ext.h. */
#include "ext.h"

#include <proa/inference.h>

/* Raises this thread's error by the types of Paddle's predictors: RuntimeError for a missing name or file,
 * ValueError for a wrong dtype. */
static PyObject *raise_error(void)
{
    proa_status code = proa_error();
    bool absent = code == PROA_ERR_NO_FILE || code == PROA_ERR_NOT_FOUND || code == PROA_ERR_IO;
    if (!absent && code != PROA_ERR_WRONG_TYPE) return py_raise();
    PyErr_SetString(absent ? PyExc_RuntimeError : PyExc_ValueError, proa_error_message());
    proa_clear_error();
    return NULL;
}

static PyObject *none_or_raise(proa_status status)
{
    return status == PROA_OK ? Py_NewRef(Py_None) : raise_error();
}

/* The index of a name in a NULL-terminated list; -1 with an exception. */
static int number_of(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0) return i;
    PyErr_Format(PyExc_KeyError, "inference: there is no setting '%s'", name);
    return -1;
}

static const char *const numbers[] = {
#define PROA_X(NAME, fallback, meaning) #NAME,
    PROA_CONFIG_NUMBERS(PROA_X)
#undef PROA_X
        NULL};
static const char *const texts[] = {"MODEL_DIR", "MODEL_FILE", "PARAMS_FILE",
                                    "CACHE_DIR", "SHAPE_PATH", NULL};
static const char *const lists[] = {
    "PASSES", "ONEDNN_OPS", "BFLOAT16_OPS", "INT8_OPS", "TENSORRT_EXCLUDED", "QUANTIZER_OPS", NULL};

/* ---- configs ---------------------------------------------------------------------------- */

typedef struct py_config {
    PyObject_HEAD proa_config *config;
} py_config;

static proa_config *config_of(PyObject *self) { return ((py_config *)self)->config; }

static void config_dealloc(PyObject *self)
{
    proa_config_free(config_of(self));
    PyObject_Free(self);
}

static PyObject *wrap_config(proa_config *made)
{
    py_config *self = made ? PyObject_New(py_config, &py_config_type) : NULL;
    if (!made) return raise_error();
    if (self) self->config = made;
    else proa_config_free(made);
    return (PyObject *)self;
}

static PyObject *config_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)type, (void)args, (void)kwargs;
    return wrap_config(proa_config_new());
}

static PyObject *config_copy(PyObject *self, PyObject *unused)
{
    (void)unused;
    return wrap_config(proa_config_copy(config_of(self)));
}

/* set(name, value): sets a number (value an int) or a text of the config, by the names of PROA_CONFIG_*. */
static PyObject *config_set(PyObject *self, PyObject *args)
{
    const char *name;
    PyObject *value, *path;
    if (!PyArg_ParseTuple(args, "sO", &name, &value)) return NULL;
    if (!PyUnicode_Check(value) && !PyBytes_Check(value)) {
        int which = number_of(numbers, name);
        long long number = PyLong_AsLongLong(value);
        if (which < 0 || (number == -1 && PyErr_Occurred())) return NULL;
        return none_or_raise(proa_config_set(config_of(self), (proa_config_number)which, number));
    }
    int which = number_of(texts, name);
    if (which < 0 || !PyUnicode_FSConverter(value, &path)) return NULL;
    proa_status status =
        proa_config_set_text(config_of(self), (proa_config_text)which, PyBytes_AsString(path));
    Py_DECREF(path);
    return none_or_raise(status);
}

static PyObject *config_get(PyObject *self, PyObject *arg)
{
    const char *name = PyUnicode_AsUTF8(arg);
    if (!name) return NULL;
    for (int i = 0; texts[i]; i++)
        if (strcmp(texts[i], name) == 0)
            return PyUnicode_DecodeFSDefault(proa_config_get_text(config_of(self), (proa_config_text)i));
    int which = number_of(numbers, name);
    if (which < 0) return NULL;
    return PyLong_FromLongLong(proa_config_get(config_of(self), (proa_config_number)which));
}

static PyObject *config_set_buffers(PyObject *self, PyObject *args)
{
    Py_buffer model, params;
    if (!PyArg_ParseTuple(args, "y*y*", &model, &params)) return NULL;
    proa_status status = proa_config_set_buffers(config_of(self), model.buf, (size_t)model.len,
                                                 params.len ? params.buf : NULL, (size_t)params.len);
    PyBuffer_Release(&model);
    PyBuffer_Release(&params);
    return none_or_raise(status);
}

static PyObject *config_has_buffers(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(proa_config_has_buffers(config_of(self)));
}

/* names(list) → the names in one of the config's lists (PROA_CONFIG_PASSES is "PASSES"). */
static PyObject *config_names(PyObject *self, PyObject *arg)
{
    const char *list = PyUnicode_AsUTF8(arg), *name;
    int which = list ? number_of(lists, list) : -1;
    PyObject *names = which < 0 ? NULL : PyList_New(0);
    for (int64_t i = 0; names && (name = proa_config_name(config_of(self), (proa_config_list)which, i));
         i++) {
        PyObject *text = PyUnicode_FromString(name);
        if (!text || PyList_Append(names, text) < 0) Py_CLEAR(names);
        Py_XDECREF(text);
    }
    return names;
}

/* set_names(list, names): replaces the contents of one of the config's lists. */
static PyObject *config_set_names(PyObject *self, PyObject *args)
{
    const char *list;
    PyObject *names;
    if (!PyArg_ParseTuple(args, "sO", &list, &names)) return NULL;
    int which = number_of(lists, list);
    PyObject *items = which < 0 ? NULL : PySequence_List(names);
    if (!items) return NULL;
    proa_status status = proa_config_clear(config_of(self), (proa_config_list)which);
    for (Py_ssize_t i = 0; status == PROA_OK && i < PyList_GET_SIZE(items); i++) {
        const char *name = PyUnicode_AsUTF8(PyList_GET_ITEM(items, i));
        if (!name) break;
        status = proa_config_insert(config_of(self), (proa_config_list)which, i, name);
    }
    Py_DECREF(items);
    return PyErr_Occurred() ? NULL : none_or_raise(status);
}

/* set_samples(list of lists of Tensors): the quantizer's batches */
static PyObject *config_set_samples(PyObject *self, PyObject *batches)
{
    PROA_SCOPED;
    proa_status status = proa_config_clear_samples(config_of(self));
    Py_ssize_t n = PySequence_Size(batches);
    for (Py_ssize_t i = 0; i < n && status == PROA_OK; i++) {
        PyObject *row = PySequence_GetItem(batches, i), *items = row ? PySequence_List(row) : NULL;
        Py_XDECREF(row);
        if (!items) return NULL;
        proa_tensors batch = {PyList_GET_SIZE(items), NULL};
        batch.at = proa_scope_alloc(((size_t)batch.count + 1) * sizeof *batch.at);
        for (Py_ssize_t k = 0; batch.at && k < batch.count; k++) {
            PyObject *t = PyList_GET_ITEM(items, k);
            if (!py_is_tensor(t)) {
                PyErr_Format(PyExc_TypeError, "set_samples: expected a Tensor, got %s", Py_TYPE(t)->tp_name);
                Py_DECREF(items);
                return NULL;
            }
            batch.at[k] = py_tensor_of(t);
        }
        status = batch.at ? proa_config_add_samples(config_of(self), batch) : proa_error();
        Py_DECREF(items);
    }
    return n < 0 ? NULL : none_or_raise(status);
}

static PyObject *config_set_device(PyObject *self, PyObject *arg)
{
    const char *name = PyUnicode_AsUTF8(arg);
    return name ? none_or_raise(proa_config_set_device(config_of(self), name)) : NULL;
}

static PyObject *config_device(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyUnicode_FromString(proa_config_device(config_of(self)));
}

static PyObject *config_summary(PyObject *self, PyObject *unused)
{
    (void)unused;
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to) return PyErr_NoMemory();
    proa_status status = proa_config_print(config_of(self), to);
    fclose(to);
    PyObject *result = status == PROA_OK ? PyUnicode_DecodeFSDefault(text) : raise_error();
    free(text);
    return result;
}

static PyMethodDef config_methods[] = {
    {"copy", config_copy, METH_NOARGS, "A config of which a predictor can be made."},
    {"set", config_set, METH_VARARGS, "set(name, int or text)"},
    {"get", config_get, METH_O, "A setting: int or text."},
    {"set_buffers", config_set_buffers, METH_VARARGS, "set_buffers(model, params): bytes."},
    {"has_buffers", config_has_buffers, METH_NOARGS, "Whether set_buffers was called."},
    {"names", config_names, METH_O, "The names of a list."},
    {"set_names", config_set_names, METH_VARARGS, "set_names(list, names)"},
    {"set_samples", config_set_samples, METH_O, "The quantizer's batches: lists of Tensors."},
    {"set_device", config_set_device, METH_O, "Where the model runs."},
    {"device", config_device, METH_NOARGS, "Where the model runs."},
    {"summary", config_summary, METH_NOARGS, "A table of what is set."},
    {0},
};

PyTypeObject py_config_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa._core.InferenceConfig",
    .tp_basicsize = sizeof(py_config),
    .tp_dealloc = config_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = config_methods,
    .tp_new = config_new,
};

/* ---- handles ---------------------------------------------------------------------------- */

typedef struct py_handle {
    PyObject_HEAD proa_handle *handle;
    proa_predictor *owner; /* retained */
} py_handle;

static proa_handle *handle_of(PyObject *self) { return ((py_handle *)self)->handle; }

static void handle_dealloc(PyObject *self)
{
    proa_predictor_free(((py_handle *)self)->owner);
    PyObject_Free(self);
}

static PyObject *wrap_handle(proa_predictor *owner, proa_handle *h)
{
    py_handle *self = h ? PyObject_New(py_handle, &py_handle_type) : NULL;
    if (!h) return raise_error();
    if (!self) return NULL;
    self->handle = h;
    self->owner = proa_predictor_retain(owner);
    return (PyObject *)self;
}

static PyObject *list_ints(proa_ints ints)
{
    PyObject *list = PyList_New((Py_ssize_t)ints.count);
    for (int64_t i = 0; list && i < ints.count; i++) {
        PyObject *number = PyLong_FromLongLong(ints.at[i]);
        if (!number) Py_CLEAR(list);
        else PyList_SET_ITEM(list, (Py_ssize_t)i, number);
    }
    return list;
}

/* shape(): a list, or None while the handle has neither data nor a shape. */
static PyObject *handle_shape(PyObject *self, PyObject *unused)
{
    (void)unused;
    int64_t dims[PROA_MAX_DIMS];
    int ndim = proa_handle_shape(handle_of(self), dims);
    return ndim < 0 ? Py_NewRef(Py_None) : list_ints((proa_ints){ndim, dims, NULL, NULL});
}

static PyObject *handle_dtype(PyObject *self, PyObject *unused)
{
    (void)unused;
    proa_dtype dtype = proa_handle_dtype(handle_of(self));
    return Py_NewRef(dtype == PROA_NODTYPE ? Py_None : py_dtype_text(dtype));
}

static PyObject *handle_reshape(PyObject *self, PyObject *shape)
{
    PROA_SCOPED;
    proa_ints ints;
    if (!py_to_ints(shape, "reshape: the shape is a list of ints", &ints)) return NULL;
    return none_or_raise(proa_handle_reshape(handle_of(self), ints));
}

static PyObject *handle_set_tensor(PyObject *self, PyObject *t)
{
    if (!py_is_tensor(t))
        return PyErr_Format(PyExc_TypeError, "expected a Tensor, got %s", Py_TYPE(t)->tp_name);
    return none_or_raise(proa_handle_set_tensor(handle_of(self), py_tensor_of(t)));
}

static PyObject *handle_tensor(PyObject *self, PyObject *unused)
{
    (void)unused;
    PROA_SCOPED;
    proa_tensor *t = proa_handle_tensor(handle_of(self));
    return t ? py_wrap(t) : raise_error();
}

static PyObject *handle_set_lod(PyObject *self, PyObject *levels)
{
    PROA_SCOPED;
    PyObject *items = PySequence_List(levels);
    if (!items) return NULL;
    Py_ssize_t n = PyList_GET_SIZE(items);
    proa_ints *all = proa_scope_alloc(((size_t)n + 1) * sizeof *all);
    bool fits = all != NULL;
    for (Py_ssize_t i = 0; fits && i < n; i++)
        fits = py_to_ints(PyList_GET_ITEM(items, i), "set_lod: a level is a list of ints", &all[i]);
    PyObject *result = fits ? none_or_raise(proa_handle_set_lod(handle_of(self), all, n)) : NULL;
    Py_DECREF(items);
    return result;
}

static PyObject *handle_lod(PyObject *self, PyObject *unused)
{
    (void)unused;
    int64_t n = proa_handle_lod_levels(handle_of(self));
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *level = list_ints(proa_handle_lod(handle_of(self), i));
        if (!level) Py_CLEAR(list);
        else PyList_SET_ITEM(list, (Py_ssize_t)i, level);
    }
    return list;
}

static PyMethodDef handle_methods[] = {
    {"shape", handle_shape, METH_NOARGS, "The shape; None before there is one."},
    {"dtype", handle_dtype, METH_NOARGS, "The dtype's name; None before there are data."},
    {"reshape", handle_reshape, METH_O, "Sets an input's shape."},
    {"set_tensor", handle_set_tensor, METH_O, "Makes a Tensor the input."},
    {"tensor", handle_tensor, METH_NOARGS, "A Tensor of the data."},
    {"set_lod", handle_set_lod, METH_O, "Offsets of sequences, a list a level."},
    {"lod", handle_lod, METH_NOARGS, "These offsets."},
    {0},
};

PyTypeObject py_handle_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa._core.InferenceHandle",
    .tp_basicsize = sizeof(py_handle),
    .tp_dealloc = handle_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_methods = handle_methods,
};

/* ---- predictors ------------------------------------------------------------------------- */

typedef struct py_predictor {
    PyObject_HEAD proa_predictor *predictor;
    PyObject *hook; /* NULL: none */
    bool busy;      /* a thread runs it without the GIL */
} py_predictor;

static proa_predictor *predictor_of(PyObject *self) { return ((py_predictor *)self)->predictor; }

static void predictor_dealloc(PyObject *self)
{
    proa_predictor_set_hook(predictor_of(self), NULL, NULL); /* handles may keep the predictor */
    proa_predictor_free(predictor_of(self));
    Py_XDECREF(((py_predictor *)self)->hook);
    PyObject_Free(self);
}

static PyObject *wrap_predictor(proa_predictor *made)
{
    py_predictor *self = made ? PyObject_New(py_predictor, &py_predictor_type) : NULL;
    if (!made) return raise_error();
    if (self) *self = (py_predictor){.ob_base = self->ob_base, .predictor = made};
    else proa_predictor_free(made);
    return (PyObject *)self;
}

static PyObject *predictor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)type, (void)kwargs;
    PyObject *config;
    if (!PyArg_ParseTuple(args, "O!", &py_config_type, &config)) return NULL;
    return wrap_predictor(proa_predictor_new(config_of(config)));
}

static PyObject *predictor_clone(PyObject *self, PyObject *unused)
{
    (void)unused;
    return wrap_predictor(proa_predictor_clone(predictor_of(self)));
}

static PyObject *names_of(const proa_predictor *p, int64_t n,
                          proa_handle *(*at)(const proa_predictor *, int64_t))
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *name = PyUnicode_FromString(proa_handle_name(at(p, i)));
        if (!name) Py_CLEAR(list);
        else PyList_SET_ITEM(list, (Py_ssize_t)i, name);
    }
    return list;
}

static PyObject *predictor_inputs(PyObject *self, PyObject *unused)
{
    (void)unused;
    const proa_predictor *p = predictor_of(self);
    return names_of(p, proa_predictor_input_count(p), proa_predictor_input);
}

static PyObject *predictor_outputs(PyObject *self, PyObject *unused)
{
    (void)unused;
    const proa_predictor *p = predictor_of(self);
    return names_of(p, proa_predictor_output_count(p), proa_predictor_output);
}

static PyObject *predictor_input(PyObject *self, PyObject *arg)
{
    const char *name = PyUnicode_AsUTF8(arg);
    return name ? wrap_handle(predictor_of(self), proa_predictor_find_input(predictor_of(self), name)) : NULL;
}

static PyObject *predictor_output(PyObject *self, PyObject *arg)
{
    const char *name = PyUnicode_AsUTF8(arg);
    return name ? wrap_handle(predictor_of(self), proa_predictor_find_output(predictor_of(self), name))
                : NULL;
}

static PyObject *predictor_run(PyObject *self, PyObject *unused)
{
    (void)unused;
    py_predictor *p = (py_predictor *)self;
    if (p->busy) {
        PyErr_SetString(PyExc_RuntimeError, "run: another thread runs this predictor; clone it for each");
        return NULL;
    }
    p->busy = true;
    proa_status status;
    if (p->hook) status = proa_predictor_run(p->predictor);
    else {
        PyThreadState *state = PyEval_SaveThread();
        status = proa_predictor_run(p->predictor);
        PyEval_RestoreThread(state);
    }
    p->busy = false;
    if (PyErr_Occurred()) { /* an exception of the hook, which the run raises */
        proa_clear_error();
        return NULL;
    }
    return none_or_raise(status);
}

static void call_hook(const char *op, const char *variable, const proa_tensor *value, void *context)
{
    py_predictor *p = context;
    if (PyErr_Occurred()) return; /* after the hook's first exception it is not called again in this run */
    PROA_SCOPED;
    /* copied, as the memory is reused by the next op */
    proa_tensor *copy = proa_is_contiguous(value)
                            ? proa_from_data(proa_data(value),
                                             (proa_ints){proa_ndim(value), proa_shape_of(value), NULL, NULL},
                                             proa_dtype_of(value))
                            : NULL;
    if (!copy) return;
    PyObject *t = py_wrap(copy);
    PyObject *result = t ? PyObject_CallFunction(p->hook, "ssO", op, variable, t) : NULL;
    Py_XDECREF(t);
    Py_XDECREF(result);
}

/* set_hook(hook): calls hook(op type, variable's name, copy of the Tensor) for every output of an op; None:
 * removes it. */
static PyObject *predictor_set_hook(PyObject *self, PyObject *hook)
{
    py_predictor *p = (py_predictor *)self;
    bool none = hook == Py_None;
    proa_status status = proa_predictor_set_hook(p->predictor, none ? NULL : call_hook, none ? NULL : p);
    Py_XDECREF(p->hook);
    p->hook = none ? NULL : Py_NewRef(hook);
    return none_or_raise(status);
}

static PyObject *predictor_clear(PyObject *self, PyObject *unused)
{
    (void)unused;
    return none_or_raise(proa_predictor_clear(predictor_of(self)));
}

static PyObject *predictor_shrink(PyObject *self, PyObject *unused)
{
    (void)unused;
    int64_t bytes = proa_predictor_shrink(predictor_of(self));
    return proa_error() == PROA_OK ? PyLong_FromLongLong(bytes) : raise_error();
}

/* ops() → types of the ops in the optimized program's root block, in order. */
static PyObject *predictor_ops(PyObject *self, PyObject *unused)
{
    (void)unused;
    const proa_program *program = proa_predictor_program(predictor_of(self));
    int64_t n = proa_program_op_count(program, 0);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        int32_t role;
        PyObject *name = PyUnicode_FromString(proa_program_op(program, 0, i, &role));
        if (!name) Py_CLEAR(list);
        else PyList_SET_ITEM(list, (Py_ssize_t)i, name);
    }
    return list;
}

static PyMethodDef predictor_methods[] = {
    {"clone", predictor_clone, METH_NOARGS, "A predictor of the same model for another thread."},
    {"inputs", predictor_inputs, METH_NOARGS, "Names of the inputs."},
    {"outputs", predictor_outputs, METH_NOARGS, "Names of the outputs."},
    {"input", predictor_input, METH_O, "The handle of an input."},
    {"output", predictor_output, METH_O, "The handle of an output."},
    {"run", predictor_run, METH_NOARGS, "Runs on what the input handles hold."},
    {"set_hook", predictor_set_hook, METH_O,
     "Sets what is called with (op, variable, Tensor) after every op."},
    {"clear", predictor_clear, METH_NOARGS, "Releases the tensors of inputs and outputs."},
    {"shrink", predictor_shrink, METH_NOARGS, "Frees arenas and plans; returns the arenas' bytes."},
    {"ops", predictor_ops, METH_NOARGS, "Names of the ops that run."},
    {0},
};

PyTypeObject py_predictor_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa._core.InferencePredictor",
    .tp_basicsize = sizeof(py_predictor),
    .tp_dealloc = predictor_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = predictor_methods,
    .tp_new = predictor_new,
};

static PyObject *pass_names(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *list = PyList_New(0);
    const char *name;
    for (int64_t i = 0; list && (name = proa_pass_name(i)); i++) {
        PyObject *text = PyUnicode_FromString(name);
        if (!text || PyList_Append(list, text) < 0) Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

PyMethodDef py_inference_functions[] = {
    {"pass_names", pass_names, METH_NOARGS,
     "Names of the optimizing passes, in the order in which they run."},
    {0},
};
