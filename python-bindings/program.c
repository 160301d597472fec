/* Programs for Python: capture a callable, load, save, run. Uses ext.h and proa/program.h, proa/io.h. */
#include "ext.h"

#include <proa/io.h>
#include <proa/program.h>

typedef struct py_program {
    PyObject_HEAD proa_program *program;
    proa_executor *executor; /* made at first run */
} py_program;

static void program_dealloc(PyObject *self)
{
    py_program *p = (py_program *)self;
    proa_executor_free(p->executor);
    proa_program_free(p->program);
    PyObject_Free(self);
}

static PyObject *wrap_program(proa_program *program)
{
    if (!program) return py_raise();
    py_program *self = PyObject_New(py_program, &py_program_type);
    if (!self) {
        proa_program_free(program);
        return NULL;
    }
    self->program = program;
    self->executor = NULL;
    return (PyObject *)self;
}

/* What the function returned, until capture is done with it. One capture at a time holds the GIL. */
static PyObject *holder;

/* Calls the Python function with symbolic tensors; an exception becomes the capture's error and is kept. */
static proa_tensors call_python(proa_tensors inputs, void *context)
{
    proa_tensors none = {0, NULL}, result = none;
    PyObject *list = py_from_tensors(inputs);
    PyObject *args = list ? PyList_AsTuple(list) : NULL;
    PyObject *out = args ? PyObject_CallObject(context, args) : NULL;
    if (out && py_is_tensor(out)) {
        PyObject *one = PyTuple_Pack(1, out);
        Py_DECREF(out);
        out = one;
    }
    bool ok = out && py_to_tensors(out, "the captured function's result", false, &result);
    /* the results must outlive their Python objects: they move to the capture's list, kept by its holder */
    if (ok) {
        Py_XSETREF(holder, out);
        out = NULL;
    }
    Py_XDECREF(out);
    Py_XDECREF(args);
    Py_XDECREF(list);
    if (ok) return result;
    proa_fail(PROA_ERR_BAD_STATE, "capture: the Python function raised");
    return none;
}

/* capture(fn, [(name, shape, dtype), …]) */
static PyObject *capture(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *fn, *specs;
    if (!PyArg_ParseTuple(args, "OO!", &fn, &PyList_Type, &specs)) return NULL;
    PROA_SCOPED;
    Py_ssize_t n = PyList_GET_SIZE(specs);
    proa_input_spec *list = proa_scope_alloc((size_t)(n + 1) * sizeof *list);
    if (!list) return py_raise();
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *shape, *dtype;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(specs, i), "zOO", &list[i].name, &shape, &dtype) ||
            !py_to_ints(shape, "a spec's shape is a list of ints", &list[i].shape) ||
            !py_to_dtype(dtype, &list[i].dtype))
            return NULL;
    }
    proa_program *p = proa_capture(call_python, list, n, fn);
    Py_CLEAR(holder);
    if (!p && PyErr_Occurred()) {
        proa_clear_error();
        return NULL;
    }
    return wrap_program(p);
}

static PyObject *load_program(PyObject *module, PyObject *arg)
{
    (void)module;
    const char *path = PyUnicode_AsUTF8(arg);
    return path ? wrap_program(proa_program_load(path)) : NULL;
}

static PyObject *program_save(PyObject *self, PyObject *arg)
{
    const char *prefix = PyUnicode_AsUTF8(arg);
    if (!prefix) return NULL;
    if (proa_program_save(((py_program *)self)->program, prefix) != PROA_OK) return py_raise();
    Py_RETURN_NONE;
}

static PyObject *program_run(PyObject *self, PyObject *arg)
{
    py_program *p = (py_program *)self;
    PROA_SCOPED;
    proa_tensors inputs;
    if (!py_to_tensors(arg, "inputs", false, &inputs)) return NULL;
    if (!p->executor) p->executor = proa_executor_new(p->program);
    if (!p->executor) return py_raise();
    return py_from_tensors(proa_executor_run(p->executor, inputs));
}

static PyObject *names_of(const proa_program *p, int64_t n,
                          const proa_tensor *(*at)(const proa_program *, int64_t))
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (Py_ssize_t i = 0; list && i < (Py_ssize_t)n; i++) {
        const char *name = proa_name_of(at(p, i));
        PyList_SET_ITEM(list, i, PyUnicode_FromString(name ? name : ""));
    }
    return list;
}

static PyObject *get_inputs(PyObject *self, void *closure)
{
    (void)closure;
    const proa_program *p = ((py_program *)self)->program;
    return names_of(p, proa_program_input_count(p), proa_program_input);
}

static PyObject *get_outputs(PyObject *self, void *closure)
{
    (void)closure;
    const proa_program *p = ((py_program *)self)->program;
    return names_of(p, proa_program_output_count(p), proa_program_output);
}

static PyGetSetDef program_getset[] = {
    {"inputs", get_inputs, NULL, "names of the inputs", NULL},
    {"outputs", get_outputs, NULL, "names of the outputs", NULL},
    {0},
};

static PyMethodDef program_methods[] = {
    {"save", program_save, METH_O, "Writes <prefix>.pdmodel and <prefix>.pdiparams."},
    {"run", program_run, METH_O, "Runs the program on a list of tensors."},
    {0},
};

PyTypeObject py_program_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa._core.Program",
    .tp_basicsize = sizeof(py_program),
    .tp_dealloc = program_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = program_methods,
    .tp_getset = program_getset,
};

PyMethodDef py_program_functions[] = {
    {"capture", capture, METH_VARARGS, "Records a callable as a Program."},
    {"load_program", load_program, METH_O, "Reads a .pdmodel and its parameters."},
    {0},
};
