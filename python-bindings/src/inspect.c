/* Inspection of results for amp.debugging: a tensor's statistics, and functions of Python that are told of
 * every op's call, and of the values that it or its gradient rule makes. Uses ext.h. */
#include "ext.h"

#include "core/args_visit.h"
#include "core/numerics.h"

#include <proa/wire.h>

/* Guarded by the GIL. count(op, dtype); wants(op) → bool; report(op, dtype, device, numel, statistics) → the
 * text of an error or None. NULL: not asked for. */
static PyObject *count, *wants, *report;
/* This thread is in one of these functions, whose own calls are not inspected. */
static _Thread_local bool inside;

static const char *type_of(const proa_op *op) { return op->n_wires ? op->wires[0].type : op->name; }

/* Paddle's name of the op, or of its gradient. */
static PyObject *name_of(const proa_op *op, bool gradient)
{
    return PyUnicode_FromFormat(gradient ? "%s_grad" : "%s", type_of(op));
}

static bool is_floating(const proa_tensor *t)
{
    return !proa__slot_empty(t) && (t->dtype == PROA_F16 || t->dtype == PROA_BF16 || t->dtype == PROA_F32 ||
                                    t->dtype == PROA_F64 || t->dtype == PROA_C64 || t->dtype == PROA_C128);
}

/* The tensor whose dtype a call computes in: the first floating input, else the first tensor; or NULL. */
static const proa_tensor *computed_in(const proa_op *op, const void *args)
{
    const proa_tensor *first = NULL;
    for (int i = 0; i < op->n_fields; i++) {
        const proa_tensors all = proa__field_all(&op->fields[i], args);
        for (int64_t k = 0; k < all.count; k++) {
            if (i < op->n_in && is_floating(all.at[k])) return all.at[k];
            if (!first && !proa__slot_empty(all.at[k])) first = all.at[k];
        }
    }
    return first;
}

static PyObject *statistics(const proa_numerics *n)
{
    return Py_BuildValue("(LLLddd)", (long long)n->nan, (long long)n->inf, (long long)n->zero, n->max, n->min,
                         n->mean);
}

static void tell_count(const proa_op *op, const void *args)
{
    const proa_tensor *t = computed_in(op, args);
    PyObject *name = name_of(op, false);
    if (name && t)
        Py_XDECREF(PyObject_CallFunctionObjArgs(count, name, py_dtype_text((proa_dtype)t->dtype), NULL));
    Py_XDECREF(name);
}

/* The error's text if the function reports one, which the caller releases. */
static PyObject *tell_values(PyObject *name, const proa_tensor *t)
{
    proa_numerics n;
    if (proa_numerics_of(t, &n) != PROA_OK || !n.counted) return NULL;
    PyObject *numbers = statistics(&n);
    PyObject *said = !numbers
                         ? NULL
                         : PyObject_CallFunction(report, "OOsLO", name, py_dtype_text((proa_dtype)t->dtype),
                                                 proa_device_of(t), (long long)t->numel, numbers);
    Py_XDECREF(numbers);
    if (said == Py_None) Py_CLEAR(said);
    return said;
}

static PyObject *tell_call(const proa_op *op, const void *args, const proa_tensor *gradient)
{
    PyObject *name = name_of(op, gradient != NULL), *said = NULL;
    PyObject *wanted = name ? PyObject_CallOneArg(wants, name) : NULL;
    if (wanted == Py_True && gradient) said = tell_values(name, gradient);
    for (int i = op->n_in + op->n_attr; wanted == Py_True && !gradient && i < op->n_fields; i++) {
        const proa_tensors all = proa__field_all(&op->fields[i], args);
        for (int64_t k = 0; !said && !PyErr_Occurred() && k < all.count; k++)
            said = tell_values(name, all.at[k]);
    }
    Py_XDECREF(wanted);
    Py_XDECREF(name);
    return said;
}

/* A Python exception becomes the text of Proa's error. */
static void fail_with(PyObject *said)
{
    py_error raised = py_fetch();
    PyObject *text = said ? Py_NewRef(said) : raised.value ? PyObject_Str(raised.value) : NULL;
    const char *utf8 = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
    proa_fail(PROA_ERR_NUMERIC, "%s", utf8 ? utf8 : "the check of an op's results raised an exception");
    PyErr_Clear();
    Py_XDECREF(text);
    py_drop(raised);
}

static proa_status inspect(const proa_op *op, const void *args, const proa_tensor *gradient)
{
    if (!Py_IsInitialized()) return PROA_OK;
    PyGILState_STATE gil = PyGILState_Ensure();
    if (!inside) {
        inside = true;
        py_error before = py_fetch();
        PyObject *said = NULL;
        if (count && !gradient) tell_count(op, args);
        if (wants && !PyErr_Occurred()) said = tell_call(op, args, gradient);
        if (said || PyErr_Occurred()) fail_with(said);
        Py_XDECREF(said);
        py_restore_unless_raised(before);
        inside = false;
    }
    PyGILState_Release(gil);
    return proa_error();
}

static void keep(PyObject **slot, PyObject *function)
{
    PyObject *old = *slot;
    *slot = function == Py_None ? NULL : Py_NewRef(function);
    Py_XDECREF(old);
}

static PyObject *inspect_calls(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *counts, *asks, *reports;
    if (!PyArg_ParseTuple(args, "OOO:inspect_calls", &counts, &asks, &reports)) return NULL;
    keep(&count, counts);
    keep(&wants, asks);
    keep(&report, reports);
    proa_inspect(count || wants ? inspect : NULL, wants != NULL);
    Py_RETURN_NONE;
}

static PyObject *numerics(PyObject *module, PyObject *tensor)
{
    (void)module;
    if (!py_is_tensor(tensor))
        return PyErr_Format(PyExc_TypeError, "numerics: expected a Tensor, got %s", Py_TYPE(tensor)->tp_name);
    PROA_SCOPED;
    proa_numerics n;
    if (proa_numerics_of(py_tensor_of(tensor), &n) != PROA_OK) return py_raise();
    return n.counted ? statistics(&n) : Py_NewRef(Py_None);
}

PyMethodDef py_inspect_functions[] = {
    {"inspect_calls", inspect_calls, METH_VARARGS,
     "inspect_calls(count, wants, report): functions that are told of every op's call and results, or None."},
    {"numerics", numerics, METH_O,
     "(nan, inf, zero, max, min, mean) of a tensor; None: it is not floating-point."},
    {0},
};
