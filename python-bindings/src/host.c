/* The op host_call, whose kernel is a Python function, for py_func and Print in programs. The op is not in
 * the op table, so that a program with one cannot be saved. Uses ext.h and proa/op.h. */
#include "ext.h"

#include <stddef.h>

typedef struct host_args {
    proa_tensors x;
    int64_t id;     /* index of the Python functions in `functions` */
    proa_ints outs; /* for each output: dtype, rank, dims */
    proa_tensors out;
} host_args;

typedef struct host_metas {
    proa_metas out;
} host_metas;

typedef struct host_grads {
    proa_tensors d_out; /* gradients of the outputs, inputs of the gradient op */
    proa_tensors d_x;   /* gradients to make if want_x; as many as x */
    bool want_x;
} host_grads;

static const proa_op host_op;

/* List of (forward function, id of the backward or -1, bytes of flags UNSEEN and CONSTANT, one an input), by
 * id. */
static PyObject *functions;

/* ---- shapes ---------------------------------------------------------------------------- */

static int64_t count_outs(const proa_ints *outs)
{
    int64_t n = 0;
    for (int64_t i = 0; i + 1 < outs->count; i += 2 + outs->at[i + 1]) n++;
    return n;
}

static proa_status host_infer(const void *args, void *metas)
{
    const host_args *a = args;
    host_metas *m = metas;
    int64_t n = count_outs(&a->outs), at = 0;
    PROA_TRY(proa_metas_resize(&m->out, n));
    for (int64_t i = 0; i < n; i++) {
        proa_meta meta = {.dtype = (proa_dtype)a->outs.at[at], .ndim = (int8_t)a->outs.at[at + 1]};
        for (int d = 0; d < meta.ndim; d++) meta.shape[d] = a->outs.at[at + 2 + d];
        at += 2 + meta.ndim;
        m->out.at[i] = meta;
    }
    return PROA_OK;
}

/* ---- calling --------------------------------------------------------------------------- */

/* Calls fn(tensors). Its results are new in the scope; their dtypes and shapes must be those in outs. */
static proa_status call(PyObject *fn, proa_tensors inputs, const proa_ints *outs, const proa_tensors *to)
{
    PyObject *list = py_from_tensors(inputs);
    PyObject *made = list ? PyObject_CallOneArg(fn, list) : NULL;
    Py_XDECREF(list);
    proa_tensors results = {0, NULL};
    bool ok = made && py_to_tensors(made, "what the function returned", false, &results);
    for (int64_t i = 0; ok && i < results.count; i++) ok = proa_adopt(proa_retain(results.at[i])) != NULL;
    Py_XDECREF(made);
    if (!ok) return proa_fail(PROA_ERR_BAD_STATE, "py_func: the Python function raised");
    if (results.count != to->count)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "py_func: the function must return %lld tensors, got %lld", (long long)to->count,
                         (long long)results.count);
    for (int64_t i = 0, at = 0; i < results.count; at += 2 + outs->at[at + 1], i++) {
        const proa_tensor *t = results.at[i];
        bool fits = t->dtype == outs->at[at] && t->ndim == outs->at[at + 1];
        for (int d = 0; fits && d < t->ndim; d++)
            fits = outs->at[at + 2 + d] < 0 || outs->at[at + 2 + d] == t->shape[d];
        if (!fits)
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "py_func: result %lld is %s%s, not of the dtype and shape that `out` says",
                             (long long)i, proa_dtype_name((proa_dtype)t->dtype), py_shape_text(t));
        if (to->at[i] != proa_none) to->at[i] = results.at[i];
    }
    return PROA_OK;
}

static proa_status host_run(const void *args, proa_run *run)
{
    const host_args *a = args;
    (void)run;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *entry = functions ? PyList_GetItem(functions, (Py_ssize_t)a->id) : NULL; /* borrowed */
    proa_status status = entry ? call(PyTuple_GET_ITEM(entry, 0), a->x, &a->outs, &a->out)
                               : proa_fail(PROA_ERR_INTERNAL, "py_func: no function %lld", (long long)a->id);
    PyGILState_Release(lock);
    return status;
}

/* ---- the gradient: another such op ------------------------------------------------------ */

/* Flags of an input: UNSEEN is not passed to backward, CONSTANT gets no gradient. */
enum { UNSEEN = 1, CONSTANT = 2 };

static void add_spec(proa_ints *outs, const proa_tensor *like)
{
    int64_t *at = (int64_t *)(uintptr_t)outs->at + outs->count;
    *at++ = like->dtype;
    *at++ = like->ndim;
    for (int d = 0; d < like->ndim; d++) *at++ = like->shape[d];
    outs->count += 2 + like->ndim;
}

static proa_status host_vjp(const void *args, void *grads)
{
    const host_args *a = args;
    host_grads *g = grads;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *entry = PyList_GetItem(functions, (Py_ssize_t)a->id);
    long backward = entry ? PyLong_AsLong(PyTuple_GET_ITEM(entry, 1)) : -1;
    const char *how = entry ? PyBytes_AsString(PyTuple_GET_ITEM(entry, 2)) : NULL;
    PyGILState_Release(lock);
    if (backward < 0 || !how || !g->want_x) return PROA_OK; /* no input wants a gradient */
    size_t n = (size_t)(a->x.count + g->d_out.count);
    host_args b = {.id = backward};
    b.x.at = proa_scope_alloc((n + 1) * sizeof *b.x.at);
    b.outs.at = proa_scope_alloc(((size_t)a->x.count * (2 + PROA_MAX_DIMS) + 1) * sizeof *b.outs.at);
    if (!b.x.at || !b.outs.at) return proa_error();
    for (int64_t i = 0; i < a->x.count; i++) {
        if (!(how[i] & UNSEEN)) b.x.at[b.x.count++] = a->x.at[i];
        if (!(how[i] & CONSTANT)) add_spec(&b.outs, a->x.at[i]);
    }
    for (int64_t i = 0; i < g->d_out.count; i++) b.x.at[b.x.count++] = g->d_out.at[i];
    PROA_TRY(proa_call_op(&host_op, &b));
    for (int64_t i = 0, k = 0; i < a->x.count; i++)
        if (!(how[i] & CONSTANT)) g->d_x.at[i] = b.out.at[k++];
    return PROA_OK;
}

/* ---- the op ---------------------------------------------------------------------------- */

static const proa_field fields[] = {
    {"x", NULL, NULL, NULL, offsetof(host_args, x), offsetof(host_grads, d_x), offsetof(host_grads, want_x),
     PROA_FIELD_TENSORS, PROA_IN, PROA_FIELD_SAVED, -1, -1},
    {"id", NULL, NULL, NULL, offsetof(host_args, id), 0xffff, 0xffff, PROA_FIELD_INT, PROA_ATTR, 0, -1, -1},
    {"outs", NULL, NULL, NULL, offsetof(host_args, outs), 0xffff, 0xffff, PROA_FIELD_INTS, PROA_ATTR, 0, -1,
     -1},
    {"out", NULL, NULL, NULL, offsetof(host_args, out), offsetof(host_grads, d_out), 0xffff,
     PROA_FIELD_TENSORS, PROA_OUT, PROA_FIELD_SAVED, -1, -1},
};

static const proa_kernel kernel = {.name = "host_call_python", .run = host_run, .anywhere = true};
static const proa_kernel *const kernels[] = {&kernel, NULL};

static const proa_op host_op = {
    .name = "host_call",
    .fields = fields,
    .n_fields = 4,
    .n_in = 1,
    .n_attr = 2,
    .n_out = 1,
    .args_size = sizeof(host_args),
    .grads_size = sizeof(host_grads),
    .metas_size = sizeof(host_metas),
    .flags = PROA_OP_DATA_SHAPE,
    .amp = PROA_AMP_ANY,
    .id = UINT32_MAX,
    .dtypes = UINT32_MAX,
    .infer = host_infer,
    .vjp = host_vjp,
    .kernels = kernels,
    .doc = "Calls a Python function.",
};

/* ---- for Python ------------------------------------------------------------------------ */

/* host_function(forward, backward id or -1, flags UNSEEN and CONSTANT in one byte per input) → id */
static PyObject *host_function(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *forward, *backward, *skip;
    if (!PyArg_ParseTuple(args, "OO!O!:host_function", &forward, &PyLong_Type, &backward, &PyBytes_Type,
                          &skip))
        return NULL;
    if (!functions && !(functions = PyList_New(0))) return NULL;
    PyObject *entry = PyTuple_Pack(3, forward, backward, skip);
    bool ok = entry && PyList_Append(functions, entry) == 0;
    Py_XDECREF(entry);
    return ok ? PyLong_FromSsize_t(PyList_GET_SIZE(functions) - 1) : NULL;
}

/* host_call([Tensor], id, [(dtype, shape), …]) → [Tensor] */
static PyObject *host_call(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *inputs, *specs;
    host_args a = {0};
    long long id;
    if (!PyArg_ParseTuple(args, "OLO!:host_call", &inputs, &id, &PyList_Type, &specs)) return NULL;
    PROA_SCOPED;
    a.id = id;
    Py_ssize_t n = PyList_GET_SIZE(specs);
    int64_t *at = proa_scope_alloc(((size_t)n * (2 + PROA_MAX_DIMS) + 1) * sizeof *at);
    if (!at) return py_raise();
    a.outs.at = at;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *shape, *dtype;
        proa_dtype type;
        proa_ints dims;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(specs, i), "OO", &dtype, &shape) ||
            !py_to_dtype(dtype, &type) || !py_to_ints(shape, "a shape is a list of ints", &dims))
            return NULL;
        if (dims.count > PROA_MAX_DIMS)
            return PyErr_Format(PyExc_ValueError, "py_func: a shape has too many axes");
        *at++ = type;
        *at++ = dims.count;
        for (int64_t d = 0; d < dims.count; d++) *at++ = dims.at[d];
    }
    a.outs.count = at - a.outs.at;
    if (!py_to_tensors(inputs, "x", false, &a.x)) return NULL;
    if (proa_call_op(&host_op, &a) != PROA_OK) return py_raise();
    return py_from_tensors(a.out);
}

PyMethodDef py_host_functions[] = {
    {"host_function", host_function, METH_VARARGS,
     "Keeps a function that host_call can call; returns its number."},
    {"host_call", host_call, METH_VARARGS, "An op that calls a Python function."},
    {0},
};
