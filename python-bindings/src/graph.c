/* GradNode, the type of Tensor.grad_fn: a node of the recorded graph. Uses ext.h. */
#include "ext.h"

#include "autograd/graph.h"

#include <proa/wire.h>

typedef struct py_grad_node {
    PyObject_HEAD proa_node *node; /* owned */
} py_grad_node;

static PyTypeObject grad_node_type;

static const proa_node *node_of(PyObject *self) { return ((py_grad_node *)self)->node; }

/* Takes over the reference; None for NULL. */
static PyObject *wrap(proa_node *node)
{
    if (!node) Py_RETURN_NONE;
    py_grad_node *self = PyObject_New(py_grad_node, &grad_node_type);
    if (self) self->node = node;
    else proa_node_drop(node);
    return (PyObject *)self;
}

static void grad_node_free(PyObject *self)
{
    proa_node_drop(((py_grad_node *)self)->node);
    PyObject_Free(self);
}

static PyObject *grad_node_name(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (proa_node_is_leaf(node_of(self))) return PyUnicode_FromString("GradNodeAccumulation");
    const proa_op *op = proa_node_op(node_of(self));
    if (!op) return PyUnicode_FromString("GradNodePyLayer");
    PyObject *names = PyImport_ImportModule("proa.utils.kernel_names");
    const char *type = op->n_wires ? op->wires[0].type : op->name;
    PyObject *name = names ? PyObject_CallMethod(names, "gradient_node", "s", type) : NULL;
    Py_XDECREF(names);
    return name;
}

static PyObject *next_functions(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *list = PyList_New(0);
    for (int32_t i = 0; list && i < proa_node_n_edges(node_of(self)); i++) {
        proa_node *next = proa_node_next(node_of(self), i);
        PyObject *one = next ? wrap(next) : NULL;
        if (next && (!one || PyList_Append(list, one) != 0)) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static PyObject *grad_node_compare(PyObject *a, PyObject *b, int how)
{
    bool both = Py_TYPE(a) == &grad_node_type && Py_TYPE(b) == &grad_node_type;
    if (!both || (how != Py_EQ && how != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((node_of(a) == node_of(b)) == (how == Py_EQ));
}

static Py_hash_t grad_node_hash(PyObject *self) { return (Py_hash_t)((uintptr_t)node_of(self) >> 4); }

PyObject *py_grad_fn(PyObject *self, void *closure)
{
    (void)closure;
    PROA_SCOPED;
    proa_node *node = proa_node_of(py_tensor_of(self));
    return !node && proa_error() != PROA_OK ? py_raise() : wrap(node);
}

static PyMethodDef methods[] = {{"name", grad_node_name, METH_NOARGS, "Paddle's name of the node."}, {0}};
static PyGetSetDef getset[] = {
    {"next_functions", next_functions, NULL, "The nodes that gradients go to from here.", NULL}, {0}};

static PyTypeObject grad_node_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa.GradNode",
    .tp_basicsize = sizeof(py_grad_node),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = grad_node_free,
    .tp_richcompare = grad_node_compare,
    .tp_hash = grad_node_hash,
    .tp_methods = methods,
    .tp_getset = getset,
    .tp_doc = "A node of the recorded graph: Tensor.grad_fn.",
};

bool py_ready_graph(void) { return PyType_Ready(&grad_node_type) == 0; }
