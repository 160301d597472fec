/* Python classes and functions for executors, compiled functions, and captured branches and loops (cond,
 * while_loop). Uses ext.h and proa/program.h. */
#include "ext.h"

#include <proa/program.h>

/* ---- Executor -------------------------------------------------------------------------- */

typedef struct py_executor {
    PyObject_HEAD proa_executor *executor;
    bool busy; /* a thread is in run() without the GIL: a second run raises */
} py_executor;

static void executor_dealloc(PyObject *self)
{
    proa_executor_free(((py_executor *)self)->executor);
    PyObject_Free(self);
}

/* Executor(program, inputs=None, outputs=None, prune=False, frozen=False, passes=None): an executor on a
 * private, optimized copy of the program; inputs, outputs: variables to feed and fetch, None: the
 * program's. */
static PyObject *executor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"program", "inputs", "outputs", "prune", "frozen", "passes", NULL};
    PyObject *program, *inputs = Py_None, *outputs = Py_None;
    int prune = 0, frozen = 0;
    const char *passes = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|OOppz", names, &py_program_type, &program, &inputs,
                                     &outputs, &prune, &frozen, &passes))
        return NULL;
    PROA_SCOPED;
    proa_executor_opts opts = {.prune = prune, .frozen = frozen, .passes = passes};
    if (inputs != Py_None && !py_to_tensors(inputs, "inputs", false, &opts.inputs)) return NULL;
    if (outputs != Py_None && !py_to_tensors(outputs, "outputs", false, &opts.outputs)) return NULL;
    proa_executor *e = proa_executor_with(py_program_of(program), opts);
    if (!e) return py_raise();
    py_executor *self = PyObject_New(py_executor, type);
    if (self) *self = (py_executor){.ob_base = self->ob_base, .executor = e};
    else proa_executor_free(e);
    return (PyObject *)self;
}

static PyObject *executor_run(PyObject *self, PyObject *arg)
{
    PROA_SCOPED;
    proa_tensors inputs;
    if (!py_to_tensors(arg, "inputs", false, &inputs)) return NULL;
    py_executor *e = (py_executor *)self;
    if (e->busy) {
        PyErr_SetString(PyExc_RuntimeError,
                        "Executor.run: another thread runs this executor; make one for each");
        return NULL;
    }
    e->busy = true;
    PyThreadState *state = PyEval_SaveThread();
    proa_tensors results = proa_executor_run(e->executor, inputs);
    PyEval_RestoreThread(state);
    e->busy = false;
    return proa_error() == PROA_OK ? py_from_tensors(results) : py_raise();
}

static PyObject *stats_dict(proa_executor_stats s)
{
    return Py_BuildValue("{sLsLsLsL}", "arena_bytes", (long long)s.arena_bytes, "plans", (long long)s.plans,
                         "plans_made", (long long)s.plans_made, "overlapped", (long long)s.overlapped);
}

static PyObject *executor_stats(PyObject *self, PyObject *unused)
{
    (void)unused;
    return stats_dict(proa_executor_get_stats(((py_executor *)self)->executor));
}

static PyMethodDef executor_methods[] = {
    {"run", executor_run, METH_O, "Runs on a list of tensors; returns the list of outputs."},
    {"stats", executor_stats, METH_NOARGS, "arena_bytes, plans, plans_made, overlapped"},
    {0},
};

PyTypeObject py_executor_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa._core.Executor",
    .tp_basicsize = sizeof(py_executor),
    .tp_dealloc = executor_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = executor_methods,
    .tp_new = executor_new,
};

/* ---- Compiled -------------------------------------------------------------------------- */

typedef struct py_compiled {
    PyObject_HEAD proa_compiled *compiled;
    PyObject *source; /* owned: the function or Program that it was compiled from */
} py_compiled;

PyTypeObject py_compiled_type;

static void compiled_dealloc(PyObject *self)
{
    py_compiled *c = (py_compiled *)self;
    proa_compiled_free(c->compiled);
    Py_XDECREF(c->source);
    PyObject_Free(self);
}

static PyObject *wrap_compiled(proa_compiled *compiled, PyObject *source)
{
    py_compiled *self = PyObject_New(py_compiled, &py_compiled_type);
    if (!self) {
        proa_compiled_free(compiled);
        return NULL;
    }
    self->compiled = compiled;
    self->source = Py_NewRef(source);
    return (PyObject *)self;
}

/* compile(fn, specs, training=False) → Compiled: fn captured for inputs of these specs [(name, shape,
 * dtype)]; training: with a captured backward. */
static PyObject *compile(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"fn", "specs", "training", NULL};
    (void)module;
    PyObject *fn, *specs;
    int training = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!|p", names, &fn, &PyList_Type, &specs, &training))
        return NULL;
    PROA_SCOPED;
    const proa_input_spec *list;
    int64_t n;
    if (!py_to_specs(specs, &list, &n)) return NULL;
    proa_compiled *c = proa_compile(py_call_back, list, n, fn, training);
    return c ? wrap_compiled(c, fn) : py_raise_callback();
}

static PyObject *compile_program(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *program;
    int training = 0;
    if (!PyArg_ParseTuple(args, "O!|p", &py_program_type, &program, &training)) return NULL;
    proa_compiled *c = proa_compile_program(py_program_of(program), training);
    return c ? wrap_compiled(c, program) : py_raise();
}

static PyObject *compiled_call(PyObject *self, PyObject *arg)
{
    PROA_SCOPED;
    proa_tensors inputs;
    if (!py_to_tensors(arg, "inputs", false, &inputs)) return NULL;
    proa_tensors results = proa_compiled_call(((py_compiled *)self)->compiled, inputs);
    return proa_error() == PROA_OK ? py_from_tensors(results) : py_raise_callback();
}

static PyObject *compiled_program(PyObject *self, void *closure)
{
    (void)closure;
    proa_program *p = (proa_program *)(uintptr_t)proa_compiled_program(((py_compiled *)self)->compiled);
    return py_view_program(p, self);
}

static PyObject *compiled_stats(PyObject *self, PyObject *unused)
{
    (void)unused;
    return stats_dict(proa_compiled_get_stats(((py_compiled *)self)->compiled));
}

static PyMethodDef compiled_methods[] = {
    {"stats", compiled_stats, METH_NOARGS, "arena_bytes, plans, plans_made, overlapped"},
    {"call", compiled_call, METH_O, "Calls it on a list of tensors; returns the list of results."},
    {0},
};

static PyGetSetDef compiled_getset[] = {
    {"program", compiled_program, NULL, "the forward Program", NULL},
    {0},
};

PyTypeObject py_compiled_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa._core.Compiled",
    .tp_basicsize = sizeof(py_compiled),
    .tp_dealloc = compiled_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = compiled_methods,
    .tp_getset = compiled_getset,
};

/* ---- branches and loops ---------------------------------------------------------------- */

typedef struct functions {
    PyObject *first, *second;
} functions;

static proa_tensors call_first(proa_tensors inputs, void *context)
{
    return py_call_back(inputs, ((functions *)context)->first);
}

static proa_tensors call_second(proa_tensors inputs, void *context)
{
    return py_call_back(inputs, ((functions *)context)->second);
}

/* cond(pred, true_fn, false_fn) → list of the Tensors that the chosen function returns; an op with two blocks
 * if pred is a program's variable. */
static PyObject *cond(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *pred;
    functions f;
    if (!PyArg_ParseTuple(args, "O!OO", py_tensor_type, &pred, &f.first, &f.second)) return NULL;
    PROA_SCOPED;
    proa_tensors results = proa_cond(py_tensor_of(pred), call_first, call_second, &f);
    return proa_error() == PROA_OK ? py_from_tensors(results) : py_raise_callback();
}

/* with_backward(x, inputs, backward) → copies of the list x, whose gradients to the inputs backward makes. */
static PyObject *with_backward(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *x, *inputs, *backward;
    if (!PyArg_ParseTuple(args, "OOO", &x, &inputs, &backward)) return NULL;
    PROA_SCOPED;
    proa_tensors made, from;
    if (!py_to_tensors(x, "x", false, &made) || !py_to_tensors(inputs, "inputs", false, &from)) return NULL;
    proa_tensors results = proa_with_backward(made, from, py_call_back, backward);
    return proa_error() == PROA_OK ? py_from_tensors(results) : py_raise_callback();
}

/* while_loop(cond_fn, body_fn, vars) → list of the last Tensors of the loop variables. cond_fn(*vars) returns
 * one bool; body_fn(*vars) returns the next vars. */
static PyObject *while_loop(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *list;
    functions f;
    if (!PyArg_ParseTuple(args, "OOO", &f.first, &f.second, &list)) return NULL;
    PROA_SCOPED;
    proa_tensors vars;
    if (!py_to_tensors(list, "loop_vars", false, &vars)) return NULL;
    proa_tensors results = proa_while_loop(call_first, call_second, vars, &f);
    return proa_error() == PROA_OK ? py_from_tensors(results) : py_raise_callback();
}

PyMethodDef py_execute_functions[] = {
    {"compile", (PyCFunction)(void (*)(void))compile, METH_VARARGS | METH_KEYWORDS,
     "compile(fn, specs, training=False) -> Compiled"},
    {"compile_program", compile_program, METH_VARARGS,
     "compile_program(program, training=False) -> Compiled"},
    {"cond", cond, METH_VARARGS, "cond(pred, true_fn, false_fn) -> [Tensor]"},
    {"with_backward", with_backward, METH_VARARGS, "with_backward([Tensor], [Tensor], backward) -> [Tensor]"},
    {"while_loop", while_loop, METH_VARARGS, "while_loop(cond_fn, body_fn, [Tensor]) -> [Tensor]"},
    {0},
};
