/* _core.LayerBase, the base of nn.Layer: attribute lookup of parameters, sublayers and buffers, and the call
 * of forward() with its hooks, in C for speed. Uses the CPython API alone. */
#include "ext.h"

#include <structmember.h>

enum { REGISTRIES = 3, DICTS = 5 };

/* Dicts of a layer, in order: parameters, sublayers, buffers; hooks before and after forward. NULL until
 * Layer.__init__ ran. */
typedef struct py_layer {
    PyObject_HEAD PyObject *dict[DICTS];
} py_layer;

static PyObject *name_forward, *name_call;

static int layer_traverse(PyObject *self, visitproc visit, void *arg)
{
    py_layer *layer = (py_layer *)self;
    for (int i = 0; i < DICTS; i++) Py_VISIT(layer->dict[i]);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int layer_clear(PyObject *self)
{
    py_layer *layer = (py_layer *)self;
    for (int i = 0; i < DICTS; i++) Py_CLEAR(layer->dict[i]);
    return 0;
}

static void layer_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    layer_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* The parameter, sublayer or buffer of that name: a new reference, or NULL, perhaps with an exception. */
static PyObject *registered(py_layer *layer, PyObject *name)
{
    for (int i = 0; i < REGISTRIES; i++) {
        if (!layer->dict[i] || !PyDict_Check(layer->dict[i])) continue;
        PyObject *found = PyDict_GetItemWithError(layer->dict[i], name);
        if (found || PyErr_Occurred()) return Py_XNewRef(found);
    }
    return NULL;
}

static PyObject *layer_getattro(PyObject *self, PyObject *name)
{
    /* The type's attributes and the instance's own come first, and a miss there costs no exception. */
    PyObject *found = _PyObject_GenericGetAttrWithDict(self, name, NULL, 1);
    if (found || PyErr_Occurred()) return found;
    found = registered((py_layer *)self, name);
    if (found || PyErr_Occurred()) return found;
    return PyObject_GenericGetAttr(self, name); /* for its message, or a property's own AttributeError */
}

/* __getattr__, as user classes call it by super(): looks among parameters, sublayers and buffers. */
static PyObject *layer_getattr(PyObject *self, PyObject *name)
{
    if (!PyUnicode_Check(name))
        return PyErr_Format(PyExc_TypeError, "__getattr__: an attribute's name is a string, got %s",
                            Py_TYPE(name)->tp_name);
    PyObject *found = registered((py_layer *)self, name);
    if (!found && !PyErr_Occurred())
        PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'", Py_TYPE(self)->tp_name, name);
    return found;
}

/* A subclass inherits __getattr__ as a method, for which CPython takes a slow slot: give it this type's own
 * slot back unless the class defines lookup of its own. */
static PyObject *layer_init_subclass(PyObject *cls, PyObject *args, PyObject *keywords)
{
    (void)args, (void)keywords;
    PyTypeObject *type = (PyTypeObject *)cls;
    static const char *const names[] = {"__getattr__", "__getattribute__"};
    for (PyTypeObject *t = type; t && t->tp_dict; t = t->tp_base) {
        if (t->tp_dealloc == layer_dealloc) { /* reached LayerBase: nothing of its own on the way */
            type->tp_getattro = layer_getattro;
            Py_RETURN_NONE;
        }
        for (int i = 0; i < 2; i++)
            if (PyDict_GetItemString(t->tp_dict, names[i])) Py_RETURN_NONE;
    }
    Py_RETURN_NONE;
}

static bool filled(PyObject *dict) { return dict && PyDict_Check(dict) && PyDict_GET_SIZE(dict) > 0; }

static PyObject *layer_call(PyObject *self, PyObject *args, PyObject *keywords)
{
    py_layer *layer = (py_layer *)self;
    bool hooked = filled(layer->dict[3]) || filled(layer->dict[4]);
    PyObject *forward = PyObject_GetAttr(self, hooked ? name_call : name_forward);
    if (!forward) return NULL;
    PyObject *result = PyObject_Call(forward, args, keywords);
    Py_DECREF(forward);
    return result;
}

static PyMemberDef layer_members[] = {
    {"_parameters", T_OBJECT, offsetof(py_layer, dict[0]), 0, NULL},
    {"_sub_layers", T_OBJECT, offsetof(py_layer, dict[1]), 0, NULL},
    {"_buffers", T_OBJECT, offsetof(py_layer, dict[2]), 0, NULL},
    {"_forward_pre_hooks", T_OBJECT, offsetof(py_layer, dict[3]), 0, NULL},
    {"_forward_post_hooks", T_OBJECT, offsetof(py_layer, dict[4]), 0, NULL},
    {0},
};

static PyMethodDef layer_methods[] = {
    {"__getattr__", layer_getattr, METH_O, "The parameter, sublayer or buffer of that name."},
    {"__init_subclass__", (PyCFunction)(void (*)(void))layer_init_subclass,
     METH_VARARGS | METH_KEYWORDS | METH_CLASS, "Keeps attribute lookup fast in subclasses."},
    {0},
};

static PyType_Slot layer_slots[] = {
    {Py_tp_traverse, layer_traverse}, {Py_tp_clear, layer_clear},       {Py_tp_dealloc, layer_dealloc},
    {Py_tp_getattro, layer_getattro}, {Py_tp_call, layer_call},         {Py_tp_members, layer_members},
    {Py_tp_methods, layer_methods},   {Py_tp_doc, "Base of nn.Layer."}, {0, NULL},
};

static PyType_Spec layer_spec = {
    .name = "proa._core.LayerBase",
    .basicsize = sizeof(py_layer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = layer_slots,
};

bool py_add_layer(PyObject *module)
{
    name_forward = PyUnicode_InternFromString("forward");
    name_call = PyUnicode_InternFromString("_dygraph_call_func");
    if (!name_forward || !name_call) return false;
    PyObject *type = PyType_FromSpec(&layer_spec);
    return type && PyModule_AddObject(module, "LayerBase", type) == 0;
}
