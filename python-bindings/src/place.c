/* Place classes (CPUPlace, CUDAPlace, CustomPlace), each a device's name, and functions on devices: current
 * device, copies, memory statistics, properties. Uses ext.h. */
#include "ext.h"

#include "core/device.h"

typedef struct py_place {
    PyObject_HEAD char name[48]; /* of a device, or "gpu_pinned": page-locked host memory */
} py_place;

static const char *name_of(PyObject *self) { return ((py_place *)self)->name; }
static bool is_kind(PyObject *self, const char *kind)
{
    size_t n = strlen(kind);
    return strncmp(name_of(self), kind, n) == 0 && (name_of(self)[n] == ':' || name_of(self)[n] == '\0');
}

static PyObject *place_repr(PyObject *self) { return PyUnicode_FromFormat("Place(%s)", name_of(self)); }

static PyObject *place_compare(PyObject *a, PyObject *b, int how)
{
    bool both = Py_TYPE(a)->tp_repr == place_repr && Py_TYPE(b)->tp_repr == place_repr;
    if (!both || (how != Py_EQ && how != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((strcmp(name_of(a), name_of(b)) == 0) == (how == Py_EQ));
}

static Py_hash_t place_hash(PyObject *self)
{
    Py_hash_t h = 17;
    for (const char *c = name_of(self); *c; c++) h = h * 31 + *c;
    return h == -1 ? 0 : h;
}

static PyObject *is_cpu_place(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(is_kind(self, "cpu"));
}

static PyObject *is_gpu_place(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(is_kind(self, "gpu"));
}

/* Paddle's numbers of kinds (its AllocationType). */
enum { KIND_CPU = 1, KIND_GPU, KIND_PINNED, KIND_XPU, KIND_IPU = 8, KIND_CUSTOM };

static int kind_of(PyObject *self)
{
    return is_kind(self, "cpu")          ? KIND_CPU
           : is_kind(self, "gpu")        ? KIND_GPU
           : is_kind(self, "gpu_pinned") ? KIND_PINNED
           : is_kind(self, "xpu")        ? KIND_XPU
           : is_kind(self, "ipu")        ? KIND_IPU
                                         : KIND_CUSTOM;
}

static PyObject *type_number(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(kind_of(self));
}

static PyObject *is_cuda_pinned_place(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(kind_of(self) == KIND_PINNED);
}

static PyObject *is_xpu_place(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(kind_of(self) == KIND_XPU);
}

static PyObject *is_ipu_place(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(kind_of(self) == KIND_IPU);
}

static PyObject *is_custom_place(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(kind_of(self) == KIND_CUSTOM);
}

static PyObject *custom_device_type(PyObject *self, PyObject *unused)
{
    (void)unused;
    const char *name = name_of(self), *colon = strchr(name, ':');
    return PyUnicode_FromStringAndSize(name, kind_of(self) == KIND_CUSTOM && colon ? colon - name : 0);
}

static PyObject *get_device_id(PyObject *self, PyObject *unused)
{
    (void)unused;
    const char *colon = strchr(name_of(self), ':');
    return PyLong_FromLong(colon ? strtol(colon + 1, NULL, 10) : 0);
}

static PyObject *device_name(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyUnicode_FromString(name_of(self));
}

static PyMethodDef place_methods[] = {
    {"is_cpu_place", is_cpu_place, METH_NOARGS, "True for the CPU."},
    {"is_gpu_place", is_gpu_place, METH_NOARGS, "True for a GPU."},
    {"is_cuda_pinned_place", is_cuda_pinned_place, METH_NOARGS, "True for page-locked host memory."},
    {"is_xpu_place", is_xpu_place, METH_NOARGS, "True for an XPU."},
    {"is_ipu_place", is_ipu_place, METH_NOARGS, "True for an IPU."},
    {"is_custom_place", is_custom_place, METH_NOARGS, "True for a device of another kind."},
    {"custom_device_type", custom_device_type, METH_NOARGS, "The kind of a custom device; empty for others."},
    {"gpu_device_id", get_device_id, METH_NOARGS, "The GPU's number."},
    {"custom_device_id", get_device_id, METH_NOARGS, "The device's number."},
    {"xpu_device_id", get_device_id, METH_NOARGS, "The XPU's number."},
    {"ipu_device_id", get_device_id, METH_NOARGS, "0."},
    {"get_device_id", get_device_id, METH_NOARGS, "The device's number."},
    {"_type", type_number, METH_NOARGS, "Paddle's number of the kind."},
    {"_device_name", device_name, METH_NOARGS, "The device's name: 'cpu', 'gpu:0'."},
    {0},
};

static PyObject *cpu_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    if (keywords && PyDict_GET_SIZE(keywords))
        return PyErr_Format(PyExc_TypeError, "%s takes no arguments", type->tp_name);
    if (!PyArg_ParseTuple(args, "")) return NULL;
    py_place *self = PyObject_New(py_place, type);
    if (self) strcpy(self->name, "cpu");
    return (PyObject *)self;
}

/* Makes a place of a class with a device number: CUDAPlace(id). */
static PyObject *numbered(PyTypeObject *type, PyObject *args, PyObject *keywords, const char *kind)
{
    static char *names[] = {"id", NULL};
    int id = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|i", names, &id)) return NULL;
    if (id < 0)
        return PyErr_Format(PyExc_ValueError, "%s: id must be >= 0, got %d", type->tp_name + strlen("proa."),
                            id);
    py_place *self = PyObject_New(py_place, type);
    if (self) snprintf(self->name, sizeof self->name, "%s:%d", kind, id);
    return (PyObject *)self;
}

static PyObject *gpu_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return numbered(type, args, keywords, "gpu");
}

static PyObject *xpu_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return numbered(type, args, keywords, "xpu");
}

static PyObject *npu_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return numbered(type, args, keywords, "npu");
}

static PyObject *custom_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"dev_type", "dev_id", NULL};
    const char *kind;
    int id = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "s|i", names, &kind, &id)) return NULL;
    if (id < 0) return PyErr_Format(PyExc_ValueError, "CustomPlace: dev_id must be >= 0, got %d", id);
    if (strlen(kind) > 32) return PyErr_Format(PyExc_ValueError, "CustomPlace: no device is called %s", kind);
    py_place *self = PyObject_New(py_place, type);
    if (self) snprintf(self->name, sizeof self->name, "%.32s:%d", kind, id);
    return (PyObject *)self;
}

static PyObject *ipu_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *self = cpu_new(type, args, keywords);
    if (self) strcpy(((py_place *)self)->name, "ipu:0");
    return self;
}

static PyObject *pinned_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *self = cpu_new(type, args, keywords);
    if (self) strcpy(((py_place *)self)->name, "gpu_pinned");
    return self;
}

static PyTypeObject place_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa.Place",
    .tp_basicsize = sizeof(py_place),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_repr = place_repr,
    .tp_richcompare = place_compare,
    .tp_hash = place_hash,
    .tp_methods = place_methods,
    .tp_doc = "The device of a tensor's memory.",
};
#define PLACE(variable, label, make, text)                                                  \
    static PyTypeObject variable = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa." label, \
                                    .tp_basicsize = sizeof(py_place),                       \
                                    .tp_flags = Py_TPFLAGS_DEFAULT,                         \
                                    .tp_base = &place_type,                                 \
                                    .tp_new = make,                                         \
                                    .tp_repr = place_repr,                                  \
                                    .tp_doc = text}
PLACE(cpu_type, "CPUPlace", cpu_new, "The CPU.");
PLACE(gpu_type, "CUDAPlace", gpu_new, "GPU number id.");
PLACE(xpu_type, "XPUPlace", xpu_new,
      "Kunlun processor number id; using it needs a plug-in that brings such a device.");
PLACE(ipu_type, "IPUPlace", ipu_new,
      "Graphcore's processors; using it needs a plug-in that brings such a device.");
PLACE(npu_type, "NPUPlace", npu_new,
      "Ascend processor number id; using it needs a plug-in that brings such a device.");
PLACE(custom_type, "CustomPlace", custom_new, "Device number dev_id of a plug-in's kind.");
PLACE(pinned_type, "CUDAPinnedPlace", pinned_new, "Host memory that GPUs copy from fast.");

static PyObject *new_place(const char *name)
{
    PyTypeObject *type = !strcmp(name, "cpu")        ? &cpu_type
                         : !strncmp(name, "gpu:", 4) ? &gpu_type
                                                     : &custom_type;
    py_place *self = PyObject_New(py_place, type);
    if (self) snprintf(self->name, sizeof self->name, "%s", name);
    return (PyObject *)self;
}

PyObject *py_place_of(const proa_tensor *t) { return new_place(proa_device_of(t)); }

bool py_to_device_name(const char *who, PyObject *obj, const char **name)
{
    if (PyObject_TypeCheck(obj, &place_type)) {
        *name = is_kind(obj, "gpu_pinned") ? "cpu" : name_of(obj);
        return true;
    }
    *name = PyUnicode_Check(obj) ? PyUnicode_AsUTF8(obj) : NULL;
    if (*name) return true;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%s: expected a device such as 'cpu' or 'gpu:0', or a place, got %s",
                     who, Py_TYPE(obj)->tp_name);
    return false;
}

/* ---- functions ------------------------------------------------------------------------- */

static PyObject *set_device(PyObject *module, PyObject *arg)
{
    (void)module;
    const char *name;
    return py_to_device_name("set_device", arg, &name) ? py_none_or_raise(proa_set_device(name)) : NULL;
}

static PyObject *get_device(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(proa_get_device());
}

static PyObject *current_place(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return new_place(proa_get_device());
}

static PyObject *device_names(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *list = PyList_New(0);
    const char *name;
    for (int i = 0; list && (name = proa_device_name(i)); i++) {
        PyObject *text = PyUnicode_FromString(name);
        if (!text || PyList_Append(list, text) != 0) Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

static PyObject *load_devices(PyObject *module, PyObject *arg)
{
    (void)module;
    const char *path = PyUnicode_Check(arg) ? PyUnicode_AsUTF8(arg) : NULL;
    if (!path) return PyErr_Format(PyExc_TypeError, "load_devices: expected a file's name");
    int n = proa_load_devices(path);
    return n < 0 ? py_raise() : PyLong_FromLong(n);
}

static const char MARK[] = "proa.mark";

static void mark_free(PyObject *capsule) { proa_mark_free(PyCapsule_GetPointer(capsule, MARK)); }

static PyObject *device_mark(PyObject *module, PyObject *arg)
{
    (void)module;
    const char *name;
    if (!py_to_device_name("device_mark", arg, &name)) return NULL;
    proa_mark *m = proa_mark_new(name);
    if (!m) return py_raise();
    PyObject *capsule = PyCapsule_New(m, MARK, mark_free);
    if (!capsule) proa_mark_free(m);
    return capsule;
}

static PyObject *mark_done(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule;
    int wait, done;
    if (!PyArg_ParseTuple(args, "Op:mark_done", &capsule, &wait)) return NULL;
    proa_mark *m = PyCapsule_GetPointer(capsule, MARK);
    if (!m) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    done = proa_mark_done(m, wait);
    Py_END_ALLOW_THREADS;
    return done < 0 ? py_raise() : PyBool_FromLong(done);
}

/* to_device(tensor, device) → a copy on the device through which gradients flow; the tensor itself if it is
 * there. */
static PyObject *to_device(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *tensor, *device;
    const char *name;
    if (!PyArg_ParseTuple(args, "O!O:to_device", py_tensor_type, &tensor, &device)) return NULL;
    if (!py_to_device_name("to_device", device, &name)) return NULL;
    PROA_SCOPED;
    proa_tensor *moved = proa_to_device(py_tensor_of(tensor), name);
    if (moved && moved == py_tensor_of(tensor)) return Py_NewRef(tensor);
    return py_wrap(moved);
}

/* send(tensor, device): starts an asynchronous copy to the device; call arrive(copy) before using it. */
static PyObject *send(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *tensor, *device;
    const char *name;
    if (!PyArg_ParseTuple(args, "O!O:send", py_tensor_type, &tensor, &device)) return NULL;
    if (!py_to_device_name("send", device, &name)) return NULL;
    PROA_SCOPED;
    int id = proa_device_find("send", name);
    return id < 0 ? py_raise() : py_wrap(proa_send_to(py_tensor_of(tensor), id));
}

static PyObject *arrive(PyObject *module, PyObject *arg)
{
    (void)module;
    if (!PyObject_TypeCheck(arg, py_tensor_type))
        return PyErr_Format(PyExc_TypeError, "arrive: expected a Tensor");
    return py_none_or_raise(proa_arrive(py_tensor_of(arg)));
}

static PyObject *synchronize(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return py_none_or_raise(proa_synchronize());
}

static const proa_device_table *table_of(PyObject *arg)
{
    const char *name;
    if (!py_to_device_name("device", arg, &name)) return NULL;
    const proa_device_table *table = proa_find_device(name);
    if (!table) py_raise();
    return table;
}

/* device_memory(device, reset) → (live, peak, cached, total) bytes; `reset` sets the peak to the live
 * bytes. */
static PyObject *device_memory(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *device;
    int reset = 0;
    proa_device_memory m = {0, 0, 0, 0};
    if (!PyArg_ParseTuple(args, "O|p:device_memory", &device, &reset)) return NULL;
    const proa_device_table *table = table_of(device);
    if (!table) return NULL;
    if (table->memory) table->memory(table->context, &m, reset);
    return Py_BuildValue("LLLL", (long long)m.live_bytes, (long long)m.peak_bytes, (long long)m.cached_bytes,
                         (long long)m.total_bytes);
}

static PyObject *device_trim(PyObject *module, PyObject *arg)
{
    (void)module;
    const proa_device_table *table = table_of(arg);
    if (!table) return NULL;
    if (table->trim) table->trim(table->context);
    Py_RETURN_NONE;
}

static PyObject *device_describe(PyObject *module, PyObject *arg)
{
    (void)module;
    const proa_device_table *table = table_of(arg);
    if (!table) return NULL;
    return PyUnicode_FromString(table->describe ? table->describe(table->context) : table->name);
}

/* A device's numeric property by name; None if the device lacks it. */
static PyObject *device_property(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *device;
    const char *name;
    int64_t value = 0;
    if (!PyArg_ParseTuple(args, "Os:device_property", &device, &name)) return NULL;
    const proa_device_table *table = table_of(device);
    if (!table) return NULL;
    if (!table->property || !table->property(table->context, name, &value)) Py_RETURN_NONE;
    return PyLong_FromLongLong(value);
}

/* Names of the ops that run on a device: it has a kernel for them, or the CPU's kernel runs anywhere. */
static PyObject *device_kernels(PyObject *module, PyObject *arg)
{
    (void)module;
    const proa_device_table *table = table_of(arg);
    PyObject *list = table ? PyList_New(0) : NULL;
    for (uint32_t i = 0; list && i < proa_op_count; i++) {
        const proa_op *op = proa_op_table[i];
        bool has = i < table->kernel_ops && table->kernels[i] && table->kernels[i][0];
        for (const proa_kernel *const *k = op->kernels; *k && !has; k++) has = (*k)->anywhere;
        PyObject *text = has ? PyUnicode_FromString(op->name) : NULL;
        if (has && (!text || PyList_Append(list, text) != 0)) Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

PyMethodDef py_device_functions[] = {
    {"set_device", set_device, METH_O, "Where new tensors are made: 'cpu', 'gpu:0'."},
    {"get_device", get_device, METH_NOARGS, "Where new tensors are made."},
    {"current_place", current_place, METH_NOARGS, "The same as a place."},
    {"device_names", device_names, METH_NOARGS, "The devices there are, the CPU first."},
    {"load_devices", load_devices, METH_O, "Loads a device plug-in; how many devices it brought."},
    {"send", send, METH_VARARGS, "A copy on its way to a device; arrive(copy) before it is used."},
    {"device_mark", device_mark, METH_O, "An event behind the work that a device has now."},
    {"mark_done", mark_done, METH_VARARGS, "mark_done(event, wait): whether that work is done."},
    {"arrive", arrive, METH_O, "What is queued from now on finds there what send brings."},
    {"to_device", to_device, METH_VARARGS, "The tensor on a device: itself, or a copy."},
    {"synchronize", synchronize, METH_NOARGS, "Waits for the work of this thread's device."},
    {"device_memory", device_memory, METH_VARARGS, "Bytes of a device: live, peak, cached, total."},
    {"device_trim", device_trim, METH_O, "Gives a device's cached memory back."},
    {"device_describe", device_describe, METH_O, "One line on a device."},
    {"device_property", device_property, METH_VARARGS, "A number of a device by name, or None."},
    {"device_kernels", device_kernels, METH_O, "Names of the ops that run on a device without the CPU."},
    {0},
};

bool py_add_places(PyObject *module)
{
    PyTypeObject *const types[] = {&place_type, &cpu_type, &gpu_type,    &xpu_type,
                                   &npu_type,   &ipu_type, &custom_type, &pinned_type};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (PyType_Ready(types[i]) != 0) return false;
        const char *name = strchr(types[i]->tp_name, '.') + 1;
        if (PyModule_AddObjectRef(module, name, (PyObject *)types[i]) != 0) return false;
    }
    return true;
}
