/* Automatic differentiation for Python: grad, backward, hooks, PyLayer's tape node, the optimizer's access to
 * gradients, autocast. Hooks and PyLayers take the GIL again during backward, and their exceptions reach its
 * caller unchanged. Uses ext.h. */
#include "ext.h"

#include <proa/amp.h>
#include <proa/wire.h>

/* ---- exceptions on their way through the engine ------------------------------------------ */

typedef struct raised {
    PyObject *type, *value, *trace;
} raised;

static _Thread_local raised waiting;

/* Saves the current Python exception and sets Proa's error, so that the engine stops; py_raise_backward
 * restores it. */
static void stash(const char *what)
{
    if (waiting.type) PyErr_Clear(); /* the first exception is reported */
    else PyErr_Fetch(&waiting.type, &waiting.value, &waiting.trace);
    proa_fail(PROA_ERR_BAD_STATE, "%s raised an exception", what);
}

PyObject *py_raise_backward(void)
{
    if (!waiting.type) return py_raise();
    proa_clear_error();
    raised r = waiting;
    waiting = (raised){NULL, NULL, NULL};
    PyErr_Restore(r.type, r.value, r.trace);
    return NULL;
}

/* The tensor of an object that Python returned, kept alive until the engine's scope ends. */
static proa_tensor *held(PyObject *obj) { return proa_adopt(proa_retain(py_tensor_of(obj))); }

/* ---- backward and grad ------------------------------------------------------------------- */

/* Removes outputs with stop_gradient: as in Paddle, backward of a frozen network does nothing. */
static void drop_stopped(proa_tensors *outputs, proa_tensors *grads)
{
    int64_t n = 0;
    for (int64_t i = 0; i < outputs->count; i++) {
        if (proa_stop_gradient(outputs->at[i])) continue;
        outputs->at[n] = outputs->at[i];
        if (grads->count) grads->at[n] = grads->at[i];
        n++;
    }
    outputs->count = n;
    if (grads->count) grads->count = n;
}

PyObject *py_run_backward(proa_tensors outputs, proa_tensors grads, bool retain_graph)
{
    if (!grads.count || grads.count == outputs.count) drop_stopped(&outputs, &grads);
    if (!outputs.count) Py_RETURN_NONE;
    PyThreadState *state = PyEval_SaveThread();
    proa_status status =
        proa_backward_all(outputs, grads, (proa_backward_opts){.retain_graph = retain_graph});
    PyEval_RestoreThread(state);
    if (status != PROA_OK) return py_raise_backward();
    Py_RETURN_NONE;
}

/* backward(tensors, grads=None, retain_graph=False): adds to the gradients of leaves; grads: a list with None
 * for ones. Returns None. */
static PyObject *backward(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *outputs, *given = Py_None;
    int retain = 0;
    if (!PyArg_ParseTuple(args, "O|Op", &outputs, &given, &retain)) return NULL;
    PROA_SCOPED;
    proa_tensors out, g = {0, NULL};
    if (!py_to_tensors(outputs, "tensors", false, &out)) return NULL;
    if (given != Py_None && !py_to_tensors(given, "grad_tensors", true, &g)) return NULL;
    return py_run_backward(out, g, retain);
}

/* grad(outputs, inputs, grads=None, retain_graph=False, create_graph=False, allow_unused=False) → one Tensor
 * an input; None, with allow_unused, for an input that is not reached. Leaves get no gradient. */
static PyObject *grad(PyObject *module, PyObject *args, PyObject *keywords)
{
    (void)module;
    static char *names[] = {"outputs",      "inputs",       "grads", "retain_graph",
                            "create_graph", "allow_unused", NULL};
    PyObject *outputs, *inputs, *given = Py_None;
    int retain = 0, create = 0, unused = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|Oppp", names, &outputs, &inputs, &given, &retain,
                                     &create, &unused))
        return NULL;
    PROA_SCOPED;
    proa_tensors out, in, g = {0, NULL};
    if (!py_to_tensors(outputs, "outputs", false, &out) || !py_to_tensors(inputs, "inputs", false, &in))
        return NULL;
    if (given != Py_None && !py_to_tensors(given, "grad_outputs", true, &g)) return NULL;
    proa_grad_opts opts = {.retain_graph = retain, .create_graph = create, .allow_unused = unused};
    PyThreadState *state = PyEval_SaveThread();
    proa_tensors result = proa_grad(out, in, g, opts);
    PyEval_RestoreThread(state);
    return proa_error() ? py_raise_backward() : py_from_tensors(result);
}

/* ---- hooks ------------------------------------------------------------------------------- */

static void release_object(void *context)
{
    if (Py_IsInitialized()) {
        PyGILState_STATE gil = PyGILState_Ensure();
        Py_DECREF((PyObject *)context);
        PyGILState_Release(gil);
    }
}

/* Calls a gradient hook, with the convert door open, so that its code promotes dtypes as elsewhere. */
static proa_tensor *call_hook(proa_tensor *g, void *context)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    bool convert = proa_door_set(PROA_DOOR_CONVERT, true);
    PyObject *hook = Py_NewRef((PyObject *)context); /* it may remove itself */
    PyObject *given = py_wrap(g), *made = given ? PyObject_CallOneArg(hook, given) : NULL;
    proa_tensor *next = NULL;
    if (made == Py_None) {
        next = g;
    } else if (made && !py_is_tensor(made)) {
        PyErr_Format(PyExc_TypeError, "register_hook: the hook must return a Tensor or None, got %s",
                     Py_TYPE(made)->tp_name);
    } else if (made) {
        next = held(made);
    }
    Py_XDECREF(made);
    Py_XDECREF(given);
    Py_DECREF(hook);
    if (PyErr_Occurred()) stash("a gradient hook");
    proa_door_set(PROA_DOOR_CONVERT, convert);
    PyGILState_Release(gil);
    return next;
}

static bool is_hook_call(const char *who, PyObject *const *args, Py_ssize_t n)
{
    if (n == 2 && py_is_tensor(args[0])) return true;
    PyErr_Format(PyExc_TypeError, "%s: expected a Tensor and one argument more", who);
    return false;
}

/* register_hook(tensor, fn) → id for remove_hook. fn(gradient) is called in backward and returns the gradient
 * to go on with, or None to keep it. */
static PyObject *register_hook(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (!is_hook_call("register_hook", args, n)) return NULL;
    if (!PyCallable_Check(args[1])) {
        PyErr_Format(PyExc_TypeError, "register_hook: the hook must be callable, got %s",
                     Py_TYPE(args[1])->tp_name);
        return NULL;
    }
    Py_INCREF(args[1]);
    int64_t id = proa_register_hook(py_tensor_of(args[0]), call_hook, args[1], release_object);
    if (id > 0) return PyLong_FromLongLong(id);
    Py_DECREF(args[1]);
    return py_raise();
}

/* remove_hook(tensor, id) → False if the tensor has no hook of that id. */
static PyObject *remove_hook(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (!is_hook_call("remove_hook", args, n)) return NULL;
    long long id = PyLong_AsLongLong(args[1]);
    if (id == -1 && PyErr_Occurred()) return NULL;
    return PyBool_FromLong(proa_remove_hook(py_tensor_of(args[0]), id));
}

static PyObject *retain_grads(PyObject *module, PyObject *obj)
{
    (void)module;
    if (py_is_tensor(obj)) return py_none_or_raise(proa_retain_grad(py_tensor_of(obj)));
    PyErr_Format(PyExc_TypeError, "retain_grads: expected a Tensor, got %s", Py_TYPE(obj)->tp_name);
    return NULL;
}

/* ---- hooks of saved tensors ---------------------------------------------------------------- */

/* The object that is kept for a saved tensor: (unpack_hook, what pack_hook returned).
 * context: (pack_hook, unpack_hook). */
static void *pack_saved(proa_tensor *t, void *context)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *hooks = context, *kept = NULL;
    PROA_SCOPED;
    PyObject *given = py_wrap(proa_detach(t));
    PyObject *made = given ? PyObject_CallOneArg(PyTuple_GET_ITEM(hooks, 0), given) : NULL;
    if (made) kept = PyTuple_Pack(2, PyTuple_GET_ITEM(hooks, 1), made);
    Py_XDECREF(made);
    Py_XDECREF(given);
    if (PyErr_Occurred()) proa_fail(PROA_ERR_BAD_STATE, "a pack hook raised an exception"); /* it is raised */
    PyGILState_Release(gil);
    return kept;
}

static proa_tensor *unpack_saved(void *packed)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    proa_tensor *t = NULL;
    PyObject *kept = packed,
             *made = PyObject_CallOneArg(PyTuple_GET_ITEM(kept, 0), PyTuple_GET_ITEM(kept, 1));
    if (made && !py_is_tensor(made))
        PyErr_Format(PyExc_TypeError, "saved_tensors_hooks: unpack_hook must return a Tensor, got %s",
                     Py_TYPE(made)->tp_name);
    else if (made) t = held(made);
    Py_XDECREF(made);
    if (PyErr_Occurred()) stash("an unpack hook");
    PyGILState_Release(gil);
    return t;
}

/* set_saved_hooks(None or (pack_hook, unpack_hook)): the thread's hooks of saved tensors; returns the former
 * ones. */
static PyObject *set_saved_hooks(PyObject *module, PyObject *pair)
{
    (void)module;
    if (pair != Py_None && !(PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2))
        return PyErr_Format(PyExc_TypeError, "set_saved_hooks: expected None or two hooks, got %s",
                            Py_TYPE(pair)->tp_name);
    proa_saved_hooks hooks = {0};
    if (pair != Py_None)
        hooks = (proa_saved_hooks){pack_saved, unpack_saved, release_object, Py_NewRef(pair)};
    proa_saved_hooks before = proa_set_saved_hooks(hooks);
    return before.pack ? before.context : Py_NewRef(Py_None); /* the reference that the hooks had */
}

/* ---- PyLayer ----------------------------------------------------------------------------- */

/* State owned by a PyLayer's tape node and, during apply, the outputs of its forward. */
typedef struct layer {
    PyObject *backward;
    proa_tensors outputs;
} layer;

static proa_tensors layer_forward(proa_tensors inputs, void *context)
{
    (void)inputs;
    return ((layer *)context)->outputs;
}

static void layer_release(void *context)
{
    release_object(((layer *)context)->backward);
    PyMem_RawFree(context);
}

/* Converts a sequence of Tensors and Nones to a list that is kept alive until the engine's scope ends. */
static bool held_list(PyObject *made, proa_tensors *list)
{
    PyObject *fast = PySequence_Fast(made, "PyLayer: backward must return Tensors");
    if (!fast) return false;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    list->at = proa_scope_alloc((size_t)(n + 1) * sizeof *list->at);
    list->count = n;
    bool ok = list->at != NULL;
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(fast, i);
        list->at[i] = item == Py_None ? proa_none : py_is_tensor(item) ? held(item) : NULL;
        ok = list->at[i] != NULL;
        if (!ok && !proa_error())
            PyErr_Format(PyExc_TypeError, "PyLayer: backward must return Tensors or None, got %s",
                         Py_TYPE(item)->tp_name);
    }
    Py_DECREF(fast);
    return ok;
}

static proa_tensors layer_backward(proa_tensors inputs, proa_tensors outputs, proa_tensors grads,
                                   void *context)
{
    (void)inputs;
    proa_tensors list = {0, NULL};
    PyGILState_STATE gil = PyGILState_Ensure();
    bool convert = proa_door_set(PROA_DOOR_CONVERT, true);
    PyObject *given = py_from_tensors(grads), *outs = given ? py_from_tensors(outputs) : NULL;
    PyObject *made =
        outs ? PyObject_CallFunctionObjArgs(((layer *)context)->backward, given, outs, NULL) : NULL;
    if (made) held_list(made, &list);
    Py_XDECREF(made);
    Py_XDECREF(outs);
    Py_XDECREF(given);
    if (PyErr_Occurred()) stash("a PyLayer's backward");
    proa_door_set(PROA_DOOR_CONVERT, convert);
    PyGILState_Release(gil);
    return list;
}

/* Wraps results as Python objects; an output with the handle that was passed in keeps its object. */
static PyObject *same_objects(PyObject *given, proa_tensors before, proa_tensors after)
{
    PyObject *list = PyList_New((Py_ssize_t)after.count);
    for (Py_ssize_t i = 0; list && i < (Py_ssize_t)after.count; i++) {
        bool same = after.at[i] == before.at[i];
        PyObject *one = same ? Py_NewRef(PyList_GET_ITEM(given, i)) : py_wrap(after.at[i]);
        if (!one) Py_CLEAR(list);
        else PyList_SET_ITEM(list, i, one);
    }
    return list;
}

/* py_layer(name, inputs, outputs, backward, keep_outputs): records the computation of outputs from inputs as
 * one tape node. backward(grads, outputs) returns one gradient an input; it gets the outputs if they are
 * kept. */
static PyObject *py_layer(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *name, *inputs, *outputs, *fn;
    int keep;
    if (!PyArg_ParseTuple(args, "UO!O!Op", &name, &PyList_Type, &inputs, &PyList_Type, &outputs, &fn, &keep))
        return NULL;
    PROA_SCOPED;
    proa_tensors in, out;
    if (!py_to_tensors(inputs, "inputs", false, &in) || !py_to_tensors(outputs, "outputs", false, &out))
        return NULL;
    layer *context = PyMem_RawCalloc(1, sizeof *context);
    if (!context) return py_raise();
    *context = (layer){Py_NewRef(fn), out};
    Py_INCREF(name); /* kept for the process: error messages use it, and PyLayer classes are few */
    PyUnicode_InternInPlace(&name);
    proa_function f = {PyUnicode_AsUTF8(name), layer_forward, layer_backward, layer_release, true, !keep};
    proa_tensors made = proa_apply(&f, in, context);
    return proa_error() ? py_raise() : same_objects(outputs, out, made);
}

/* ---- gradients of many parameters --------------------------------------------------------- */

/* gather_grads(params) -> (list of gradients, with None for parameters without one or with stop_gradient;
 * their count) */
static PyObject *gather_grads(PyObject *module, PyObject *params)
{
    (void)module;
    PyObject *fast = PySequence_Fast(params, "gather_grads: expected a list of Tensors");
    if (!fast) return NULL;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast), found = 0;
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *p = PySequence_Fast_GET_ITEM(fast, i), *g = NULL;
        if (!py_is_tensor(p)) {
            PyErr_Format(PyExc_TypeError, "parameters: entry %zd: expected a Tensor, got %s", i,
                         Py_TYPE(p)->tp_name);
        } else {
            proa_tensor *t = py_tensor_of(p);
            g = py_wrap(t->flags & PROA_T_GRAD ? proa_grad_of(t) : proa_none);
            found += g && g != Py_None;
        }
        if (!g) Py_CLEAR(list);
        else PyList_SET_ITEM(list, i, g);
    }
    Py_DECREF(fast);
    return list ? Py_BuildValue("(Nn)", list, found) : NULL;
}

/* clear_grads(params, set_to_zero): sets the gradients of parameters without stop_gradient to zero, or drops
 * them if set_to_zero is False. */
static PyObject *clear_grads(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    int zero = n == 2 ? PyObject_IsTrue(args[1]) : -1;
    PyObject *fast = zero >= 0 ? PySequence_Fast(args[0], "clear_grads: expected a list of Tensors") : NULL;
    if (!fast) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "clear_grads: takes (params, set_to_zero)");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast); i++) {
        PyObject *p = PySequence_Fast_GET_ITEM(fast, i);
        if (!py_is_tensor(p) || !(py_tensor_of(p)->flags & PROA_T_GRAD)) continue;
        if (zero) (void)proa_zero_grad(py_tensor_of(p));
        else proa_clear_grad(py_tensor_of(p));
    }
    Py_DECREF(fast);
    return py_none_or_raise(proa_error());
}

/* ---- autocast ---------------------------------------------------------------------------- */

/* Appends the op of that name, or the ops with a wire form of that type. */
static bool add_ops_named(PyObject *list, const char *name)
{
    for (uint32_t i = 0; i < proa_op_count; i++) {
        const proa_op *op = proa_op_table[i];
        bool match = !strcmp(op->name, name);
        for (int w = 0; w < op->n_wires && !match; w++)
            match = op->wires[w].type && !strcmp(op->wires[w].type, name);
        PyObject *text = match ? PyUnicode_FromString(op->name) : NULL;
        if (match && (!text || PyList_Append(list, text) < 0)) {
            Py_XDECREF(text);
            return false;
        }
        Py_XDECREF(text);
    }
    return true;
}

/* New string of comma-separated op names; names that mean no op are left out, as in Paddle. */
static PyObject *op_names(PyObject *names)
{
    PyObject *list = PyList_New(0), *item, *joined = NULL;
    PyObject *each = list && names != Py_None ? PyObject_GetIter(names) : NULL;
    bool ok = list && (each || names == Py_None);
    while (ok && each && (item = PyIter_Next(each))) {
        const char *name = PyUnicode_AsUTF8(item);
        ok = name && add_ops_named(list, name);
        Py_DECREF(item);
    }
    PyObject *comma = ok && !PyErr_Occurred() ? PyUnicode_FromString(",") : NULL;
    if (comma) joined = PyUnicode_Join(comma, list);
    Py_XDECREF(comma);
    Py_XDECREF(each);
    Py_XDECREF(list);
    return joined;
}

static const char token_name[] = "proa.autocast";

static void free_token(PyObject *token) { PyMem_Free(PyCapsule_GetPointer(token, token_name)); }

/* autocast_enter(level, dtype, white=None, black=None) → token for autocast_leave. level: 0 (off), 1 or 2;
 * white, black: names of ops to run in dtype, in float32. */
static PyObject *autocast_enter(PyObject *module, PyObject *args)
{
    (void)module;
    int level;
    PyObject *dtype_object, *white = Py_None, *black = Py_None;
    proa_dtype dtype;
    if (!PyArg_ParseTuple(args, "iO|OO", &level, &dtype_object, &white, &black)) return NULL;
    if (level < 0 || level > 2) {
        PyErr_Format(PyExc_ValueError, "autocast_enter: level must be 0, 1 or 2, got %d", level);
        return NULL;
    }
    if (!py_to_dtype(dtype_object, &dtype)) return NULL;
    PyObject *low = op_names(white), *single = low ? op_names(black) : NULL, *token = NULL;
    proa_autocast_state *before = single ? PyMem_Malloc(sizeof *before) : NULL;
    if (single && !before) PyErr_NoMemory();
    if (before) {
        *before = proa_autocast_enter((proa_amp_level)level,
                                      (proa_autocast_opts){.dtype = dtype,
                                                           .custom_low = PyUnicode_AsUTF8(low),
                                                           .custom_f32 = PyUnicode_AsUTF8(single)});
        token = before->set ? PyCapsule_New(before, token_name, free_token) : py_raise();
        if (!token) PyMem_Free(before);
    }
    Py_XDECREF(low);
    Py_XDECREF(single);
    return token;
}

static PyObject *is_autocasting(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(proa_is_autocasting());
}

/* autocast_leave(token): restores the autocast state from before autocast_enter; a second call does
 * nothing. */
static PyObject *autocast_leave(PyObject *module, PyObject *token)
{
    (void)module;
    proa_autocast_state *before = PyCapsule_GetPointer(token, token_name);
    if (!before) return NULL;
    if (before->set) {
        before->set = false;
        proa_autocast_leave(before);
    }
    Py_RETURN_NONE;
}

static PyObject *set_recording(PyObject *module, PyObject *arg)
{
    (void)module;
    int on = PyObject_IsTrue(arg);
    return on < 0 ? NULL : PyBool_FromLong(proa_set_recording(on));
}

static PyObject *is_recording(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(proa_recording());
}

#define FAST(fn) (PyCFunction)(void (*)(void)) fn, METH_FASTCALL
PyMethodDef py_autograd_functions[] = {
    {"backward", backward, METH_VARARGS, "Adds gradients to the leaves."},
    {"grad", (PyCFunction)(void (*)(void))grad, METH_VARARGS | METH_KEYWORDS, "d(outputs)/d(inputs)."},
    {"register_hook", FAST(register_hook), "Calls a function with a tensor's gradient; returns an id."},
    {"set_saved_hooks", set_saved_hooks, METH_O, "Sets the hooks of saved tensors; returns the former ones."},
    {"remove_hook", FAST(remove_hook), "Removes a hook by its id."},
    {"retain_grads", retain_grads, METH_O, "Keeps the gradient of a tensor that is no leaf."},
    {"py_layer", py_layer, METH_VARARGS, "Makes a Python function one recorded step."},
    {"gather_grads", gather_grads, METH_O, "Gradients of a list of parameters, and how many there are."},
    {"clear_grads", FAST(clear_grads), "Zeros or drops the gradients of a list of parameters."},
    {"autocast_enter", autocast_enter, METH_VARARGS, "Switches autocast; returns a token."},
    {"is_autocasting", is_autocasting, METH_NOARGS,
     "is_autocasting() -> whether autocast is on for this thread"},
    {"autocast_leave", autocast_leave, METH_O, "Undoes autocast_enter."},
    {"set_recording", set_recording, METH_O, "Switches recording; returns what it was."},
    {"is_recording", is_recording, METH_NOARGS, "True if calls are recorded."},
    {0},
};
