/* The class Program: builds, captures, loads, saves, inspects, differentiates and optimizes programs. Uses
 * ext.h, proa/program.h and proa/io.h. */
#include "ext.h"

#include <proa/io.h>
#include <proa/program.h>

typedef struct py_program {
    PyObject_HEAD proa_program *program;
    PyObject *owner;         /* owned: the object that frees the program; NULL: this object does */
    proa_executor *executor; /* of Program.run, made at its first call */
    uint64_t version;        /* of the program that `executor` was made for */
} py_program;

static void program_dealloc(PyObject *self)
{
    py_program *p = (py_program *)self;
    proa_executor_free(p->executor);
    if (p->owner) Py_DECREF(p->owner);
    else proa_program_free(p->program);
    PyObject_Free(self);
}

PyObject *py_wrap_program(proa_program *program)
{
    if (!program) return py_raise();
    py_program *self = PyObject_New(py_program, &py_program_type);
    if (!self) {
        proa_program_free(program);
        return NULL;
    }
    *self = (py_program){.ob_base = self->ob_base, .program = program};
    return (PyObject *)self;
}

PyObject *py_view_program(proa_program *program, PyObject *owner)
{
    py_program *self = PyObject_New(py_program, &py_program_type);
    if (!self) return NULL;
    *self = (py_program){.ob_base = self->ob_base, .program = program, .owner = Py_NewRef(owner)};
    return (PyObject *)self;
}

proa_program *py_program_of(PyObject *obj) { return ((py_program *)obj)->program; }

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)type;
    if (PyTuple_GET_SIZE(args) || (kwargs && PyDict_GET_SIZE(kwargs))) {
        PyErr_SetString(PyExc_TypeError, "Program takes no arguments");
        return NULL;
    }
    return py_wrap_program(proa_program_new());
}

/* ---- which program is open ------------------------------------------------------------- */

/* The Program object that this thread has open: returned by program_open and program_current. */
static _Thread_local PyObject *opened;

static PyObject *program_open(PyObject *module, PyObject *arg)
{
    (void)module;
    if (arg != Py_None && Py_TYPE(arg) != &py_program_type) {
        PyErr_Format(PyExc_TypeError, "program_open: expected a Program or None, got %s",
                     Py_TYPE(arg)->tp_name);
        return NULL;
    }
    PyObject *was = opened;
    proa_program_open(arg == Py_None ? NULL : py_program_of(arg));
    opened = arg == Py_None ? NULL : Py_NewRef(arg);
    return was ? was : Py_NewRef(Py_None);
}

static PyObject *program_current(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    proa_program *now = proa_program_current();
    if (opened && now == py_program_of(opened)) return Py_NewRef(opened);
    if (!now) Py_RETURN_NONE;
    PyErr_SetString(PyExc_RuntimeError,
                    "program_current: a function is being captured; its program has no name yet");
    return NULL;
}

static bool to_program(PyObject *arg, proa_program **program)
{
    *program = arg == Py_None ? NULL : Py_TYPE(arg) == &py_program_type ? py_program_of(arg) : NULL;
    if (arg == Py_None || *program) return true;
    PyErr_Format(PyExc_TypeError, "program must be a Program or None, got %s", Py_TYPE(arg)->tp_name);
    return false;
}

static PyObject *variable_lod(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *t, *in = Py_None;
    proa_program *program;
    if (!PyArg_ParseTuple(args, "O!|O", py_tensor_type, &t, &in) || !to_program(in, &program)) return NULL;
    PROA_SCOPED;
    proa_tensors levels = proa_variable_lod(program, py_tensor_of(t));
    return proa_error() == PROA_OK ? py_from_tensors(levels) : py_raise();
}

static PyObject *set_variable_lod(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *t, *list, *in = Py_None;
    proa_program *program;
    if (!PyArg_ParseTuple(args, "O!O|O", py_tensor_type, &t, &list, &in) || !to_program(in, &program))
        return NULL;
    PROA_SCOPED;
    proa_tensors levels;
    if (!py_to_tensors(list, "levels", false, &levels)) return NULL;
    return py_none_or_raise(proa_set_variable_lod(program, py_tensor_of(t), levels));
}

static PyObject *is_capturing(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(proa_program_current() != NULL);
}

bool py_captures_function(void)
{
    const proa_program *now = proa_program_current();
    return now && !(opened && now == py_program_of(opened));
}

static PyObject *captures_function(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(py_captures_function());
}

/* ---- capture and load ------------------------------------------------------------------ */

bool py_to_specs(PyObject *specs, const proa_input_spec **out, int64_t *count)
{
    Py_ssize_t n = PyList_GET_SIZE(specs);
    proa_input_spec *list = proa_scope_alloc((size_t)(n + 1) * sizeof *list);
    if (!list) return py_raise() != NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *shape, *dtype;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(specs, i), "zOO", &list[i].name, &shape, &dtype) ||
            !py_to_ints(shape, "a spec's shape is a list of ints", &list[i].shape) ||
            !py_to_dtype(dtype, &list[i].dtype))
            return false;
    }
    *out = list;
    *count = n;
    return true;
}

proa_tensors py_call_back(proa_tensors inputs, void *callable)
{
    proa_tensors none = {0, NULL}, result = none;
    PyObject *list = py_from_tensors(inputs);
    PyObject *args = list ? PyList_AsTuple(list) : NULL;
    PyObject *out = args ? PyObject_CallObject(callable, args) : NULL;
    if (out && py_is_tensor(out)) {
        PyObject *one = PyTuple_Pack(1, out);
        Py_DECREF(out);
        out = one;
    }
    bool ok = out && py_to_tensors(out, "the function's result", false, &result);
    for (int64_t i = 0; ok && i < result.count; i++) /* they outlive their Python objects */
        ok = proa_adopt(proa_retain(result.at[i])) != NULL;
    Py_XDECREF(out);
    Py_XDECREF(args);
    Py_XDECREF(list);
    if (ok) return result;
    proa_fail(PROA_ERR_BAD_STATE, "the Python function raised");
    return none;
}

PyObject *py_raise_callback(void)
{
    if (!PyErr_Occurred()) return py_raise();
    proa_clear_error();
    return NULL;
}

/* capture(fn, [(name, shape, dtype), …]) → Program of the ops that fn calls on symbolic inputs of these
 * specs. */
static PyObject *capture(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *fn, *specs;
    if (!PyArg_ParseTuple(args, "OO!", &fn, &PyList_Type, &specs)) return NULL;
    PROA_SCOPED;
    const proa_input_spec *list;
    int64_t n;
    if (!py_to_specs(specs, &list, &n)) return NULL;
    proa_program *p = proa_capture(py_call_back, list, n, fn);
    return p ? py_wrap_program(p) : py_raise_callback();
}

static proa_status load_from(const char *path, void *program)
{
    *(proa_program **)program = proa_program_load(path);
    return proa_error();
}

static PyObject *load_program(PyObject *module, PyObject *arg)
{
    (void)module;
    proa_program *program = NULL;
    PyObject *none = py_with_path(arg, load_from, &program);
    Py_XDECREF(none);
    return none ? py_wrap_program(program) : NULL;
}

/* ---- methods --------------------------------------------------------------------------- */

static proa_program *self_of(PyObject *self) { return py_program_of(self); }

static proa_status save_to(const char *prefix, void *program) { return proa_program_save(program, prefix); }

static PyObject *program_save(PyObject *self, PyObject *arg)
{
    return py_with_path(arg, save_to, self_of(self));
}

/* The request of program_onnx_export. */
typedef struct onnx_request {
    const proa_program *program;
    long long opset;
} onnx_request;

static proa_status export_to(const char *path, void *context)
{
    const onnx_request *r = context;
    return proa_onnx_export(r->program, path, r->opset);
}

static PyObject *program_onnx_export(PyObject *self, PyObject *args)
{
    PyObject *path;
    onnx_request r = {self_of(self), 0};
    if (!PyArg_ParseTuple(args, "OL:onnx_export", &path, &r.opset)) return NULL;
    return py_with_path(path, export_to, &r);
}

static PyObject *program_run(PyObject *self, PyObject *arg)
{
    py_program *p = (py_program *)self;
    PROA_SCOPED;
    proa_tensors inputs;
    if (!py_to_tensors(arg, "inputs", false, &inputs)) return NULL;
    if (p->executor && p->version != proa_program_version(p->program)) {
        proa_executor_free(p->executor);
        p->executor = NULL;
    }
    if (!p->executor) p->executor = proa_executor_new(p->program);
    if (!p->executor) return py_raise();
    p->version = proa_program_version(p->program);
    return py_from_tensors(proa_executor_run(p->executor, inputs));
}

static PyObject *program_clone(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"for_test", "to_train", NULL};
    int for_test = 0, to_train = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|pp", names, &for_test, &to_train)) return NULL;
    return py_wrap_program(to_train ? proa_program_clone_to_train(self_of(self))
                                    : proa_program_clone(self_of(self), for_test));
}

static PyObject *program_data(PyObject *self, PyObject *args)
{
    PyObject *shape, *dtype = Py_None;
    proa_input_spec spec = {0};
    if (!PyArg_ParseTuple(args, "zO|O", &spec.name, &shape, &dtype)) return NULL;
    PROA_SCOPED;
    if (!py_to_ints(shape, "shape is a list of ints", &spec.shape) || !py_to_dtype(dtype, &spec.dtype))
        return NULL;
    return py_wrap(proa_program_data(self_of(self), &spec));
}

static PyObject *program_data_lod(PyObject *self, PyObject *args)
{
    PyObject *t;
    int levels;
    if (!PyArg_ParseTuple(args, "O!i", py_tensor_type, &t, &levels)) return NULL;
    return py_none_or_raise(proa_program_data_lod(self_of(self), py_tensor_of(t), levels));
}

static PyObject *program_persistable(PyObject *self, PyObject *args)
{
    PyObject *shape, *dtype = Py_None;
    const char *name;
    proa_ints ints;
    proa_dtype type;
    if (!PyArg_ParseTuple(args, "sO|O", &name, &shape, &dtype)) return NULL;
    PROA_SCOPED;
    if (!py_to_ints(shape, "shape is a list of ints", &ints) || !py_to_dtype(dtype, &type)) return NULL;
    return py_wrap(proa_program_persistable(self_of(self), name, ints, type));
}

static PyObject *program_bind(PyObject *self, PyObject *args)
{
    const char *name;
    PyObject *value;
    if (!PyArg_ParseTuple(args, "sO", &name, &value)) return NULL;
    if (value != Py_None && !py_is_tensor(value)) {
        PyErr_Format(PyExc_TypeError, "Program.bind: expected a Tensor or None, got %s",
                     Py_TYPE(value)->tp_name);
        return NULL;
    }
    return py_none_or_raise(
        proa_program_bind(self_of(self), name, value == Py_None ? NULL : py_tensor_of(value)));
}

static PyObject *program_value(PyObject *self, PyObject *arg)
{
    const char *name = PyUnicode_AsUTF8(arg);
    if (!name) return NULL;
    proa_tensor *t = proa_program_value(self_of(self), name);
    return t ? py_wrap(t) : Py_NewRef(Py_None);
}

static PyObject *program_find(PyObject *self, PyObject *arg)
{
    const char *name = PyUnicode_AsUTF8(arg);
    if (!name) return NULL;
    PROA_SCOPED;
    proa_tensor *t = proa_program_find(self_of(self), name);
    return t || proa_error() != PROA_OK ? py_wrap(t) : Py_NewRef(Py_None);
}

static PyObject *program_reshape_inputs(PyObject *self, PyObject *args)
{
    PyObject *list, *variable, *shape, *dtype;
    if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &list)) return NULL;
    PROA_SCOPED;
    size_t n = (size_t)PyList_GET_SIZE(list);
    proa_tensor **inputs = proa_scope_alloc((n + 1) * sizeof(proa_tensor *));
    proa_ints *shapes = proa_scope_alloc((n + 1) * sizeof *shapes);
    proa_dtype *dtypes = proa_scope_alloc((n + 1) * sizeof *dtypes);
    if (!inputs || !shapes || !dtypes) return py_raise();
    for (size_t i = 0; i < n; i++) {
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, (Py_ssize_t)i), "O!OO", py_tensor_type, &variable, &shape,
                              &dtype) ||
            !py_to_ints(shape, "shape is a list of ints", &shapes[i]) || !py_to_dtype(dtype, &dtypes[i]))
            return NULL;
        inputs[i] = py_tensor_of(variable);
    }
    return py_none_or_raise(proa_program_reshape_inputs(
        self_of(self), (proa_tensors){.count = (int64_t)n, .at = inputs}, shapes, dtypes));
}

static PyObject *program_rename(PyObject *self, PyObject *args)
{
    const char *name, *to;
    if (!PyArg_ParseTuple(args, "ss", &name, &to)) return NULL;
    return py_none_or_raise(proa_program_rename(self_of(self), name, to));
}

static PyObject *set_ends(PyObject *self, PyObject *list, proa_status (*set)(proa_program *, proa_tensors))
{
    PROA_SCOPED;
    proa_tensors ends;
    return py_to_tensors(list, "the list", false, &ends) ? py_none_or_raise(set(self_of(self), ends)) : NULL;
}

static PyObject *program_set_inputs(PyObject *self, PyObject *list)
{
    return set_ends(self, list, proa_program_set_inputs);
}

static PyObject *program_set_outputs(PyObject *self, PyObject *list)
{
    return set_ends(self, list, proa_program_set_outputs);
}

static PyObject *program_stop_gradient(PyObject *self, PyObject *args)
{
    PyObject *t;
    int stop;
    if (!PyArg_ParseTuple(args, "O!p", py_tensor_type, &t, &stop)) return NULL;
    return py_none_or_raise(proa_program_stop_gradient(self_of(self), py_tensor_of(t), stop));
}

static PyObject *program_set_role(PyObject *self, PyObject *arg)
{
    long role = PyLong_AsLong(arg);
    if (role == -1 && PyErr_Occurred()) return NULL;
    return PyLong_FromLong(proa_program_set_role(self_of(self), (int32_t)role));
}

static PyObject *program_recast(PyObject *self, PyObject *arg)
{
    int marked_only = PyObject_IsTrue(arg);
    return marked_only < 0 ? NULL : py_none_or_raise(proa_program_recast(self_of(self), marked_only));
}

static PyObject *program_mark(PyObject *self, PyObject *arg)
{
    int mark = PyObject_IsTrue(arg);
    return mark < 0 ? NULL : PyBool_FromLong(proa_program_mark(self_of(self), mark));
}

static PyObject *program_prune(PyObject *self, PyObject *unused)
{
    (void)unused;
    return py_none_or_raise(proa_program_prune(self_of(self)));
}

static PyObject *program_text(PyObject *self, PyObject *unused)
{
    (void)unused;
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to) return PyErr_NoMemory();
    proa_status status = proa_program_print(self_of(self), to);
    fclose(to);
    PyObject *result = status == PROA_OK ? PyUnicode_FromStringAndSize(text, (Py_ssize_t)size) : py_raise();
    free(text);
    return result;
}

static PyObject *program_blocks(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLongLong(proa_program_block_count(self_of(self)));
}

static PyObject *program_block_parent(PyObject *self, PyObject *arg)
{
    long long i = PyLong_AsLongLong(arg);
    if (i == -1 && PyErr_Occurred()) return NULL;
    int64_t parent = proa_program_block_parent(self_of(self), i);
    return proa_error() == PROA_OK ? PyLong_FromLongLong(parent) : py_raise();
}

static PyObject *one_var(const proa_program *p, int64_t block, int64_t i)
{
    proa_var_info v;
    if (proa_program_var(p, block, i, &v) != PROA_OK) return py_raise();
    PROA_SCOPED;
    proa_tensor *t =
        block == 0 ? proa_program_find(p, v.name) : proa_retain((proa_tensor *)(uintptr_t)v.tensor);
    PyObject *handle = py_wrap(t);
    if (block != 0) proa_release(t);
    if (!handle) return NULL;
    return Py_BuildValue("(sNNNNN)", v.name, handle, PyBool_FromLong(v.persistable),
                         PyBool_FromLong(v.is_input), PyBool_FromLong(v.has_value),
                         PyBool_FromLong(v.stop_gradient));
}

static PyObject *one_op(const proa_program *p, int64_t block, int64_t i)
{
    int32_t role;
    const char *name = proa_program_op(p, block, i, &role);
    return name ? Py_BuildValue("(si)", name, (int)role) : py_raise();
}

static PyObject *text_list(const char *const *names, int64_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *name = PyUnicode_FromString(names[i]);
        if (!name) Py_CLEAR(list);
        else PyList_SET_ITEM(list, (Py_ssize_t)i, name);
    }
    return list;
}

static PyObject *op_links(const proa_program *p, int64_t i)
{
    PROA_SCOPED;
    proa_op_links l;
    if (proa_program_op_links(p, i, &l) != PROA_OK) return py_raise();
    return Py_BuildValue("(sisNNN)", l.op, (int)l.role, l.device, text_list(l.reads, l.n_reads),
                         text_list(l.writes, l.n_writes), PyBool_FromLong(l.repeatable));
}

/* links(): what the ops of the root block read and write. */
static PyObject *program_links(PyObject *self, PyObject *unused)
{
    (void)unused;
    const proa_program *p = self_of(self);
    int64_t n = proa_program_op_count(p, 0);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *one = op_links(p, i);
        if (!one) Py_CLEAR(list);
        else PyList_SET_ITEM(list, (Py_ssize_t)i, one);
    }
    return list;
}

static PyObject *program_keep(PyObject *self, PyObject *list)
{
    PROA_SCOPED;
    proa_ints ops;
    return py_to_ints(list, "ops", &ops) ? py_none_or_raise(proa_program_keep(self_of(self), ops)) : NULL;
}

static PyObject *program_receive(PyObject *self, PyObject *args)
{
    const char *name;
    long long before, peer, group;
    if (!PyArg_ParseTuple(args, "sLLL:receive", &name, &before, &peer, &group)) return NULL;
    return py_none_or_raise(proa_program_receive(self_of(self), name, before, peer, group));
}

static PyObject *list_block(PyObject *self, PyObject *arg, int64_t (*count)(const proa_program *, int64_t),
                            PyObject *(*one)(const proa_program *, int64_t, int64_t))
{
    const proa_program *p = self_of(self);
    long long block = PyLong_AsLongLong(arg);
    if (block == -1 && PyErr_Occurred()) return NULL;
    int64_t n = count(p, block);
    if (proa_error() != PROA_OK) return py_raise();
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *item = one(p, block, i);
        if (!item) Py_CLEAR(list);
        else PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    return list;
}

static PyObject *program_vars(PyObject *self, PyObject *arg)
{
    return list_block(self, arg, proa_program_var_count, one_var);
}

static PyObject *program_ops(PyObject *self, PyObject *arg)
{
    return list_block(self, arg, proa_program_op_count, one_op);
}

/* gradients(targets, inputs, target_grads=None, no_grad=None) → one variable an input, None where no gradient
 * arrives; appends the ops that compute them. target_grads None: ones; no_grad: variables to stop at. */
static PyObject *program_gradients(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"targets", "inputs", "target_grads", "no_grad", NULL};
    PyObject *lists[4] = {NULL, NULL, Py_None, Py_None};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO", names, &lists[0], &lists[1], &lists[2],
                                     &lists[3]))
        return NULL;
    PROA_SCOPED;
    proa_tensors t[4] = {{0, NULL}};
    for (int i = 0; i < 4; i++)
        if (lists[i] != Py_None && !py_to_tensors(lists[i], names[i], i == 2, &t[i])) return NULL;
    proa_tensors grads = proa_program_gradients(self_of(self), t[0], t[1], t[2], t[3]);
    return proa_error() == PROA_OK ? py_from_tensors(grads) : py_raise_backward();
}

/* ---- attributes ------------------------------------------------------------------------ */

static PyObject *names_of(const proa_program *p, int64_t n,
                          const proa_tensor *(*at)(const proa_program *, int64_t))
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (Py_ssize_t i = 0; list && i < (Py_ssize_t)n; i++) {
        const char *name = proa_name_of(at(p, i));
        PyObject *text = PyUnicode_FromString(name ? name : ""); /* a file's names need not be UTF-8 */
        if (!text) Py_CLEAR(list);
        else PyList_SET_ITEM(list, i, text);
    }
    return list;
}

static PyObject *get_inputs(PyObject *self, void *closure)
{
    (void)closure;
    return names_of(self_of(self), proa_program_input_count(self_of(self)), proa_program_input);
}

static PyObject *get_outputs(PyObject *self, void *closure)
{
    (void)closure;
    return names_of(self_of(self), proa_program_output_count(self_of(self)), proa_program_output);
}

static PyObject *get_version(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(proa_program_version(self_of(self)));
}

/* optimize(passes=None, frozen=False): runs passes on the program itself: names joined by commas, None: all
 * that apply. frozen: parameters are constants. */
static PyObject *program_optimize(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"passes", "frozen", NULL};
    const char *passes = NULL;
    int frozen = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|zp:optimize", names, &passes, &frozen)) return NULL;
    if (proa_program_optimize(self_of(self), passes, frozen) != PROA_OK) return py_raise();
    Py_RETURN_NONE;
}

static PyGetSetDef program_getset[] = {
    {"inputs", get_inputs, NULL, "names of the inputs", NULL},
    {"outputs", get_outputs, NULL, "names of the outputs", NULL},
    {"version", get_version, NULL, "grows with every change", NULL},
    {0},
};

static PyMethodDef program_methods[] = {
    {"save", program_save, METH_O, "Writes <prefix>.pdmodel and <prefix>.pdiparams."},
    {"onnx_export", program_onnx_export, METH_VARARGS, "onnx_export(path, opset): writes an ONNX model."},
    {"run", program_run, METH_O, "Runs the program on a list of tensors."},
    {"clone", (PyCFunction)(void (*)(void))program_clone, METH_VARARGS | METH_KEYWORDS, "A deep copy."},
    {"data", program_data, METH_VARARGS, "data(name, shape, dtype=None): a fed variable."},
    {"reshape_inputs", program_reshape_inputs, METH_VARARGS,
     "reshape_inputs([(variable, shape, dtype)]): other shapes and dtypes, which what ops make of them "
     "follows."},
    {"data_lod", program_data_lod, METH_VARARGS,
     "data_lod(data, levels): inputs <name>@LOD_<level> for the offsets of its sequences."},
    {"persistable", program_persistable, METH_VARARGS,
     "persistable(name, shape, dtype=None): one without data yet."},
    {"bind", program_bind, METH_VARARGS,
     "bind(name, tensor): the data of a persistable variable; None: none."},
    {"value", program_value, METH_O, "The tensor of a persistable variable, or None."},
    {"find", program_find, METH_O, "The variable of that name, or None."},
    {"rename", program_rename, METH_VARARGS, "rename(name, to)"},
    {"set_inputs", program_set_inputs, METH_O, "What is fed, in order."},
    {"set_outputs", program_set_outputs, METH_O, "What run, prune and save go by."},
    {"stop_gradient", program_stop_gradient, METH_VARARGS, "stop_gradient(variable, stop)"},
    {"set_role", program_set_role, METH_O, "What ops are for from now on; returns what they were."},
    {"recast", program_recast, METH_O,
     "recast(marked_only): sends every op through the doors again, under the autocast that is on."},
    {"mark", program_mark, METH_O, "mark(on): whether ops from now on are marked; returns what was."},
    {"prune", program_prune, METH_NOARGS, "Drops ops that no output needs."},
    {"optimize", (PyCFunction)(void (*)(void))program_optimize, METH_VARARGS | METH_KEYWORDS,
     "optimize(passes=None, frozen=False): runs passes on this program, to look at what they make of it."},
    {"text", program_text, METH_NOARGS, "One line an op."},
    {"blocks", program_blocks, METH_NOARGS, "How many blocks there are."},
    {"block_parent", program_block_parent, METH_O, "The number of the block round a block; -1: none."},
    {"vars", program_vars, METH_O,
     "[(name, variable, persistable, is_input, has_value, stop_gradient)] of a block."},
    {"ops", program_ops, METH_O, "[(op, role)] of a block."},
    {"links", program_links, METH_NOARGS,
     "[(op, role, device, [read], [written], may run again)] of the root block."},
    {"keep", program_keep, METH_O, "keep(numbers): drops the other ops of the root block."},
    {"receive", program_receive, METH_VARARGS,
     "receive(name, before, peer, group): an input becomes what another rank sends."},
    {"gradients", (PyCFunction)(void (*)(void))program_gradients, METH_VARARGS | METH_KEYWORDS,
     "gradients(targets, inputs, target_grads=None, no_grad=None) -> [Tensor or None]"},
    {0},
};

PyTypeObject py_program_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa._core.Program",
    .tp_basicsize = sizeof(py_program),
    .tp_dealloc = program_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = program_methods,
    .tp_getset = program_getset,
    .tp_new = program_new,
};

static PyObject *set_op_device(PyObject *module, PyObject *name)
{
    (void)module;
    const char *text = name == Py_None ? "" : PyUnicode_AsUTF8(name);
    if (!text) return NULL;
    PyObject *was = PyUnicode_FromString(proa_op_device());
    if (was && proa_set_op_device(text) == PROA_OK) return was;
    Py_XDECREF(was);
    return py_raise();
}

PyMethodDef py_program_functions[] = {
    {"capture", capture, METH_VARARGS, "Records a callable as a Program."},
    {"load_program", load_program, METH_O, "Reads a .pdmodel and its parameters."},
    {"program_open", program_open, METH_O,
     "Ops become ops of this Program (None: run); returns what was open."},
    {"program_current", program_current, METH_NOARGS, "The open Program, or None."},
    {"variable_lod", variable_lod, METH_VARARGS,
     "variable_lod(variable, program=None): the offsets of its levels of sequences; None: the open program."},
    {"set_variable_lod", set_variable_lod, METH_VARARGS,
     "set_variable_lod(variable, [offsets, ...], program=None)"},
    {"captures_function", captures_function, METH_NOARGS,
     "True while ops go to the program of a function that is being captured."},
    {"is_capturing", is_capturing, METH_NOARGS, "True while ops become ops of a program."},
    {"set_op_device", set_op_device, METH_O,
     "set_op_device(name): where ops of programs are placed from now on; returns what was."},
    {0},
};
