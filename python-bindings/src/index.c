/* Indexing, x[key] and x[key] = value. Integers, slices, None and Ellipsis make a view, on which integer and
 * bool arrays gather or scatter once. As in Paddle, an integer beside arrays counts as a basic index. Uses
 * ext.h. */
#include "ext.h"

/* A parsed key. Entries for basic indices are by axis of x; `arrays` is by axis of the view that these
 * make. */
typedef struct py_key {
    int64_t axes[PROA_MAX_DIMS], starts[PROA_MAX_DIMS], ends[PROA_MAX_DIMS], steps[PROA_MAX_DIMS];
    int64_t dropped[PROA_MAX_DIMS], added[PROA_MAX_DIMS];
    proa_tensor *from[PROA_MAX_DIMS], *to[PROA_MAX_DIMS]; /* a program's variables that are starts and ends */
    proa_tensor *arrays[PROA_MAX_DIMS]; /* if n_arrays: one an axis of the view; NULL: the whole axis */
    int mask_axis[PROA_MAX_DIMS]; /* of arrays that are masks: which of theirs this axis is; of others: −1 */
    int n_axes, n_dropped, n_added, n_arrays;
    int source, view;   /* axes of x and of the view that are processed so far */
    bool strided, open; /* open: some of from or to are there */
} py_key;

/* Empties a key. The arrays are not cleared: that would take a tenth of the time of x[0]. */
static void clear_key(py_key *k)
{
    k->n_axes = k->n_dropped = k->n_added = k->n_arrays = k->source = k->view = 0;
    k->strided = k->open = false;
}

static proa_ints ints(int n, const int64_t *at) { return (proa_ints){n, at, NULL, NULL}; }

static proa_ints starts_of(const py_key *k)
{
    return (proa_ints){k->n_axes, k->starts, NULL, k->open ? k->from : NULL};
}

static proa_ints ends_of(const py_key *k)
{
    return (proa_ints){k->n_axes, k->ends, NULL, k->open ? k->to : NULL};
}

static bool too_many(const proa_tensor *x)
{
    PyErr_Format(PyExc_IndexError, "too many indices for a tensor with %d axes", (int)x->ndim);
    return false;
}

/* Whether `more` axes fit the maximum rank behind those of the view so far. */
static bool view_capacity(const py_key *k, int more)
{
    if (k->view + more <= PROA_MAX_DIMS) return true;
    PyErr_Format(PyExc_IndexError, "a tensor has at most %d axes; the index makes more", PROA_MAX_DIMS);
    return false;
}

static bool add_range(py_key *k, const proa_tensor *x, int64_t start, int64_t end, int64_t step)
{
    if (k->source >= x->ndim) return too_many(x);
    k->axes[k->n_axes] = k->source++;
    k->starts[k->n_axes] = start;
    k->ends[k->n_axes] = end;
    k->from[k->n_axes] = k->to[k->n_axes] = NULL;
    k->steps[k->n_axes++] = step;
    k->strided |= step != 1;
    return true;
}

static bool add_int(py_key *k, const proa_tensor *x, PyObject *item)
{
    if (k->source >= x->ndim) return too_many(x);
    Py_ssize_t i = PyLong_CheckExact(item) ? PyLong_AsSsize_t(item) : -1, n = (Py_ssize_t)x->shape[k->source];
    if (i == -1) { /* −1 itself, no exact int, or too large: the slow path tells which */
        PyErr_Clear();
        i = PyNumber_AsSsize_t(item, PyExc_IndexError);
        if (i == -1 && PyErr_Occurred()) return false;
    }
    if (n >= 0 && (i < -n || i >= n)) {
        PyErr_Format(PyExc_IndexError, "index %zd is out of range for axis %d with %zd elements", i,
                     k->source, n);
        return false;
    }
    if (i < 0 && n >= 0) i += n;
    k->dropped[k->n_dropped++] = k->source;
    return add_range(k, x, i, i == -1 || i == INT64_MAX ? INT64_MAX : i + 1, 1);
}

static bool is_variable(PyObject *bound)
{
    return py_is_dim(bound) || (py_is_tensor(bound) && proa_is_symbolic(py_tensor_of(bound)));
}

/* Reads one end of a slice: a number, or a program's variable, whose value the run reads. */
static bool read_bound(PyObject *bound, int64_t missing, int64_t *at, proa_tensor **variable)
{
    *at = missing;
    if (bound == Py_None) return true;
    if (!is_variable(bound)) return (*at = PyNumber_AsSsize_t(bound, NULL)) != -1 || !PyErr_Occurred();
    proa_tensor *t = py_is_dim(bound) ? py_dim_tensor(bound) : py_tensor_of(bound);
    if (!t) return false;
    bool fits = t->dtype != PROA_BOOL && t->dtype <= PROA_I64 && (t->ndim == 0 || t->numel == 1);
    if (!fits)
        PyErr_Format(PyExc_IndexError, "a slice's bound is one integer, got a %s tensor of shape %s",
                     proa_dtype_name((proa_dtype)t->dtype), py_shape_text(t));
    *variable = t;
    return fits;
}

/* Adds a slice with positive step one of whose ends is a program's variable. */
static bool add_open_slice(py_key *k, const proa_tensor *x, PySliceObject *slice)
{
    int64_t step = slice->step == Py_None ? 1 : PyNumber_AsSsize_t(slice->step, PyExc_IndexError), start, end;
    if (step == -1 && PyErr_Occurred()) return false;
    if (step < 1) {
        PyErr_SetString(PyExc_IndexError, "a slice with bounds that only the run knows has a positive step");
        return false;
    }
    proa_tensor *from = NULL, *to = NULL;
    if (!view_capacity(k, 1)) return false;
    if (!read_bound(slice->start, 0, &start, &from)) return false;
    if (!read_bound(slice->stop, PY_SSIZE_T_MAX, &end, &to)) return false;
    if (!add_range(k, x, start, end, step)) return false;
    k->from[k->n_axes - 1] = from, k->to[k->n_axes - 1] = to;
    k->view++;
    return k->open = true;
}

static bool add_slice(py_key *k, const proa_tensor *x, PyObject *item)
{
    if (k->source >= x->ndim) return too_many(x);
    PySliceObject *slice = (PySliceObject *)item;
    if (is_variable(slice->start) || is_variable(slice->stop)) return add_open_slice(k, x, slice);
    Py_ssize_t start, stop, step, n = (Py_ssize_t)x->shape[k->source];
    if (PySlice_Unpack(item, &start, &stop, &step) != 0) return false;
    bool whole = step == 1 && start == 0 && stop >= (n < 0 ? PY_SSIZE_T_MAX : n);
    if (!view_capacity(k, 1)) return false;
    k->view++;
    if (whole) return k->source++, true;
    if (n >= 0) {
        Py_ssize_t count = PySlice_AdjustIndices(n, &start, &stop, step);
        if (count == 0) start = stop = 0, step = 1;
    } else if (step < 0 && slice->stop == Py_None) {
        stop = -1; /* through the first element */
    } else if (step < 0 && stop == -1) {
        start = stop = 0, step = 1;
    }
    return add_range(k, x, start, stop, step);
}

static bool add_none(py_key *k)
{
    if (!view_capacity(k, 1)) return false;
    k->added[k->n_added++] = k->view++;
    return true;
}

/* Indices of an axis of x with negative ones replaced: they count from the end. */
static proa_tensor *from_front(proa_tensor *index, proa_tensor *x, int axis)
{
    proa_dtype dtype = (proa_dtype)index->dtype;
    int64_t n = x->shape[axis];
    proa_tensor *zero = proa_full(PROA_SCALAR_SHAPE, proa_scalar_int(0), .dtype = dtype), *wrapped;
    if (n >= 0) {
        wrapped = proa_scale(index, .bias = (double)n);
    } else {
        proa_tensor *length = proa_slice(proa_shape(x), PROA_INTS(0), PROA_INTS(axis), PROA_INTS(axis + 1),
                                         .decrease_axis = PROA_INTS(0));
        if (length && length->dtype != index->dtype) length = proa_cast(length, dtype);
        wrapped = proa_add(index, length);
    }
    return proa_where(proa_less_than(index, zero), wrapped, index);
}

/* Adds an array index; a bool mask is on each of its axes. */
static bool add_array(py_key *k, proa_tensor *x, proa_tensor *t)
{
    bool mask = t->dtype == PROA_BOOL;
    int covers = mask ? t->ndim : 1;
    if (k->source + covers > x->ndim) return too_many(x);
    if (!view_capacity(k, covers)) return false;
    if (!mask && t->dtype > PROA_I64) {
        PyErr_Format(PyExc_IndexError, "a tensor index must be of an integer dtype or bool, got %s",
                     proa_dtype_name((proa_dtype)t->dtype));
        return false;
    }
    for (int d = 0; mask && d < covers; d++)
        if (t->shape[d] != x->shape[k->source + d]) {
            PyErr_Format(PyExc_IndexError, "a mask of shape %s does not fit axis %d with %lld elements",
                         py_shape_text(t), k->source + d, (long long)x->shape[k->source + d]);
            return false;
        }
    if (!k->n_arrays) memset(k->arrays, 0, sizeof k->arrays);
    proa_tensor *array = mask ? t : from_front(t, x, k->source);
    if (!array) return py_raise(), false;
    for (int d = 0; d < covers; d++, k->n_arrays++, k->view++, k->source++) {
        k->arrays[k->view] = array;
        k->mask_axis[k->view] = mask ? d : -1;
    }
    return true;
}

static bool add_item(py_key *k, proa_tensor *x, PyObject *item)
{
    if (PyLong_CheckExact(item)) return add_int(k, x, item);
    if (item == Py_None) return add_none(k);
    if (PySlice_Check(item)) return add_slice(k, x, item);
    if (PyBool_Check(item) || PyFloat_Check(item) || PyUnicode_Check(item)) {
        PyErr_Format(PyExc_IndexError,
                     "an index is an int, slice, None, Ellipsis, bool mask or integer array, got %s",
                     Py_TYPE(item)->tp_name);
        return false;
    }
    if (py_is_dim(item)) {
        proa_tensor *t = py_dim_tensor(item);
        return t && add_array(k, x, t);
    }
    if (py_is_tensor(item)) {
        proa_tensor *t = py_tensor_of(item);
        bool single = t->ndim == 0 && t->dtype != PROA_BOOL && !proa_is_symbolic(t);
        return single ? add_int(k, x, item) : add_array(k, x, t);
    }
    bool array =
        PyList_Check(item) || PyTuple_Check(item) || PyObject_CheckBuffer(item) || PyRange_Check(item);
    if (!array || (PyIndex_Check(item) && PyLong_Check(item))) {
        if (PyIndex_Check(item)) return add_int(k, x, item);
        PyErr_Format(PyExc_IndexError,
                     "an index is an int, slice, None, Ellipsis, bool mask or integer array, got %s",
                     Py_TYPE(item)->tp_name);
        return false;
    }
    PyObject *list = PyRange_Check(item) ? PySequence_List(item) : Py_NewRef(item);
    proa_tensor *t = list ? py_to_new_tensor(list, PROA_NODTYPE, proa_device_of(x)) : NULL;
    Py_XDECREF(list);
    if (!t) return PyErr_Occurred() ? false : (py_raise(), false);
    if (t->numel == 0 && t->dtype >= PROA_F16) t = proa_cast(t, PROA_I64); /* [] has no dtype of its own */
    return t ? add_array(k, x, t) : (py_raise(), false);
}

/* Number of axes of x that a key's item indexes; −1 with an exception. */
static int covers(PyObject *item)
{
    if (item == Py_None || item == Py_Ellipsis) return 0;
    if (py_is_tensor(item) && py_tensor_of(item)->dtype == PROA_BOOL) return py_tensor_of(item)->ndim;
    if (!PyObject_CheckBuffer(item)) return 1;
    Py_buffer view; /* the buffer of a NumPy mask */
    if (PyObject_GetBuffer(item, &view, PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0) return PyErr_Clear(), 1;
    int n = view.format && !strcmp(view.format, "?") ? view.ndim : 1;
    PyBuffer_Release(&view);
    return n;
}

static bool read_key(py_key *k, proa_tensor *x, PyObject *key)
{
    clear_key(k);
    if (!PyTuple_Check(key) && key != Py_Ellipsis) return add_item(k, x, key);
    Py_ssize_t n = PyTuple_Check(key) ? PyTuple_GET_SIZE(key) : 1;
    int named = 0, dots = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_Check(key) ? PyTuple_GET_ITEM(key, i) : key;
        named += covers(item);
        dots += item == Py_Ellipsis;
    }
    if (dots > 1) {
        PyErr_SetString(PyExc_IndexError, "an index can have one Ellipsis ('...') only");
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_Check(key) ? PyTuple_GET_ITEM(key, i) : key;
        if (item == Py_Ellipsis) {
            int skip = x->ndim - named;
            if (skip < 0) return too_many(x);
            if (!view_capacity(k, skip)) return false;
            k->source += skip, k->view += skip;
        } else if (!add_item(k, x, item)) {
            return false;
        }
    }
    return true;
}

/* The view of x by the key's integers, slices and Nones. */
static proa_tensor *basic(proa_tensor *x, const py_key *k)
{
    proa_ints axes = ints(k->n_axes, k->axes), starts = starts_of(k), ends = ends_of(k);
    proa_ints dropped = ints(k->n_dropped, k->dropped);
    proa_tensor *out = x;
    if (k->strided)
        out = proa_strided_slice(x, axes, starts, ends, ints(k->n_axes, k->steps), .decrease_axis = dropped);
    else if (k->n_axes || !(k->n_added || k->n_arrays))
        out = proa_slice(x, axes, starts, ends, .decrease_axis = dropped);
    for (int i = 0; out && i < k->n_added; i++) out = proa_unsqueeze(out, PROA_INTS(k->added[i]));
    return out;
}

/* ---- arrays ---------------------------------------------------------------------------- */

/* An index by arrays: the permutation that moves their axes to the front, and the position of the result's
 * axes for them. */
typedef struct py_gather {
    int64_t perm[PROA_MAX_DIMS];
    int n, first;      /* axes with arrays; position in the result of the axes for them */
    bool moved;        /* perm moves some axis */
    proa_tensor *mask; /* the only array, if it is a mask; else NULL */
} py_gather;

static proa_tensor *joined(proa_tensor *const *arrays, int n)
{
    proa_tensor *list[PROA_MAX_DIMS], *sum = arrays[0];
    for (int i = 1; i < n; i++) { /* their common shape, by adding zeros of each */
        proa_tensor *zeros = sum ? proa_multiply(arrays[i], proa_full(PROA_SCALAR_SHAPE, proa_scalar_int(0),
                                                                      .dtype = PROA_I64))
                                 : NULL;
        sum = zeros ? proa_add(sum, zeros) : NULL;
    }
    for (int i = 0; sum && i < n; i++) {
        list[i] = proa_expand(arrays[i], ints(sum->ndim, sum->shape));
        if (!list[i]) return NULL;
    }
    proa_tensors all = {n, list};
    return sum ? proa_stack(all, .axis = -1) : NULL;
}

static py_gather plan_gather(const proa_tensor *view, const py_key *k)
{
    py_gather g = {.n = 0};
    int first = -1, last = -1, at = 0;
    for (int d = 0; d < view->ndim; d++) {
        if (!k->arrays[d]) continue;
        if (first < 0) first = d;
        last = d;
        g.perm[at++] = d;
    }
    g.n = at;
    for (int d = 0; d < view->ndim; d++)
        if (!k->arrays[d]) g.perm[at++] = d;
    g.first = last - first + 1 == g.n ? first : 0; /* apart from each other: in front, as NumPy has it */
    g.moved = first != 0 || last - first + 1 != g.n;
    bool one = k->mask_axis[first] == 0;
    for (int i = 1; i < g.n; i++) one = one && k->mask_axis[g.perm[i]] == i;
    if (one) g.mask = k->arrays[first];
    return g;
}

/* The points [arrays…, n] that the arrays name together. NULL on error. */
static proa_tensor *points(const py_gather *g, const py_key *k)
{
    proa_tensor *arrays[PROA_MAX_DIMS] = {NULL}, *found = NULL;
    if (g->mask) return proa_nonzero(g->mask);
    for (int i = 0; i < g->n; i++) {
        int64_t axis = k->mask_axis[g->perm[i]];
        proa_tensor *one = k->arrays[g->perm[i]];
        if (axis >= 0) {
            if (axis == 0) found = proa_nonzero(one);
            one = found ? proa_slice(found, PROA_INTS(1), PROA_INTS(axis), PROA_INTS(axis + 1),
                                     .decrease_axis = PROA_INTS(1))
                        : NULL;
        }
        arrays[i] = one && one->dtype != PROA_I64 ? proa_cast(one, PROA_I64) : one;
        if (!arrays[i]) return NULL;
    }
    return joined(arrays, g->n);
}

/* Moves the first `wide` axes to position `first`, or back. */
static proa_tensor *move_front(proa_tensor *t, int wide, int first, bool back)
{
    int64_t perm[PROA_MAX_DIMS];
    int at = 0;
    if (first == 0 || !t) return t;
    if (!back) {
        for (int d = 0; d < first; d++) perm[at++] = wide + d;
        for (int d = 0; d < wide; d++) perm[at++] = d;
        for (int d = wide + first; d < t->ndim; d++) perm[at++] = d;
    } else {
        for (int d = 0; d < wide; d++) perm[at++] = first + d;
        for (int d = 0; d < first; d++) perm[at++] = d;
        for (int d = wide + first; d < t->ndim; d++) perm[at++] = d;
    }
    return proa_transpose(t, ints(at, perm));
}

static proa_tensor *gather(proa_tensor *view, const py_key *k)
{
    py_gather g = plan_gather(view, k);
    proa_tensor *index = points(&g, k);
    proa_tensor *front = g.moved ? proa_transpose(view, ints(view->ndim, g.perm)) : view;
    proa_tensor *out = front && index ? proa_gather_nd(front, index) : NULL;
    return out ? move_front(out, index->ndim - 1, g.first, false) : NULL;
}

/* t transposed by the inverse of perm. */
static proa_tensor *restored(proa_tensor *t, const py_gather *g)
{
    int64_t back[PROA_MAX_DIMS];
    if (!t || !g->moved) return t;
    for (int d = 0; d < t->ndim; d++) back[g->perm[d]] = d;
    return proa_transpose(t, ints(t->ndim, back));
}

/* The view with the indexed elements replaced by value. */
static proa_tensor *scattered(proa_tensor *view, const py_key *k, proa_tensor *value)
{
    py_gather g = plan_gather(view, k);
    proa_tensor *index = g.mask ? g.mask : points(&g, k);
    proa_tensor *front = g.moved ? proa_transpose(view, ints(view->ndim, g.perm)) : view;
    if (!index || !front) return NULL;
    if (g.first && value->ndim) { /* it broadcasts to the result, whose arrays' axes are not in front */
        int wide = g.mask ? 1 : index->ndim - 1, all = wide + view->ndim - g.n;
        while (value && value->ndim < all) value = proa_unsqueeze(value, PROA_INTS(0));
        value = value ? move_front(value, wide, g.first, true) : NULL;
    }
    return value ? restored(proa_index_put(front, index, value), &g) : NULL;
}

/* ---- the slots ------------------------------------------------------------------------- */

PyObject *py_getitem(PyObject *self, PyObject *key)
{
    proa_tensor *x = py_tensor_of(self);
    PROA_SCOPED;
    py_key k;
    if (!read_key(&k, x, key)) return NULL;
    proa_tensor *out = basic(x, &k);
    if (out && k.n_arrays) out = gather(out, &k);
    return py_wrap_new(out);
}

/* The value as a tensor of x's dtype. */
static proa_tensor *value_like(const proa_tensor *x, PyObject *value)
{
    proa_scalar v;
    if (!py_is_tensor(value) && py_to_scalar(value, &v))
        return proa_full(PROA_SCALAR_SHAPE, v, .dtype = (proa_dtype)x->dtype);
    if (PyErr_Occurred()) return NULL;
    proa_tensor *t =
        py_is_tensor(value) ? py_tensor_of(value) : py_to_new_tensor(value, PROA_NODTYPE, proa_device_of(x));
    return t && t->dtype != x->dtype ? proa_cast(t, (proa_dtype)x->dtype) : t;
}

/* x[mask] = one element in a program, where the mask's count is unknown: selects between value and x for all
 * elements. NULL without an error if key and value have another form. */
static proa_tensor *masked(proa_tensor *x, PyObject *key, PyObject *value)
{
    proa_tensor *mask = proa_is_symbolic(x) && py_is_tensor(key) ? py_tensor_of(key) : NULL;
    if (!mask || mask->dtype != PROA_BOOL || mask->ndim != x->ndim) return NULL;
    proa_tensor *v = value_like(x, value);
    if (!v || v->numel != 1) return NULL;
    v = proa_add(proa_full_like(x, 0), v->ndim > x->ndim ? proa_reshape(v, PROA_SCALAR_SHAPE) : v);
    return proa_where(mask, v, x);
}

int py_setitem(PyObject *self, PyObject *key, PyObject *value)
{
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "elements of a tensor cannot be deleted");
        return -1;
    }
    proa_tensor *x = py_tensor_of(self);
    PROA_SCOPED;
    py_key k;
    clear_key(&k);
    proa_tensor *whole = masked(x, key, value);
    if (!whole && (PyErr_Occurred() || proa_error() || !read_key(&k, x, key)))
        return PyErr_Occurred() ? -1 : (py_raise(), -1);
    proa_tensor *from = whole ? whole : value_like(x, value);
    if (from && k.n_arrays) { /* what the basic part shows, with the arrays' elements replaced */
        proa_tensor *view = basic(x, &k);
        if (view && from && view->numel == 0) return 0; /* nothing is selected */
        from = view ? scattered(view, &k, from) : NULL;
    }
    if (from &&
        proa_set_value_(x, from, ints(k.n_axes, k.axes), starts_of(&k), ends_of(&k),
                        .steps = ints(k.n_axes, k.steps), .decrease_axes = ints(k.n_dropped, k.dropped),
                        .none_axes = ints(k.n_added, k.added)))
        return 0;
    if (!PyErr_Occurred()) py_raise();
    return -1;
}

Py_ssize_t py_tensor_len(PyObject *self)
{
    proa_tensor *t = py_tensor_of(self);
    if (t->ndim > 0 && t->shape[0] >= 0) return (Py_ssize_t)t->shape[0];
    if (t->ndim) PyErr_SetString(PyExc_TypeError, "the length of this axis is not known in a program");
    else /* as in Paddle, whose Python asserts it of tensors with data */
        PyErr_SetString(proa_is_symbolic(t) ? PyExc_TypeError : PyExc_AssertionError,
                        "a tensor with no axes has no length");
    return -1;
}

PyObject *py_tensor_row(PyObject *self, Py_ssize_t i)
{
    PyObject *key = PyLong_FromSsize_t(i), *row = key ? py_getitem(self, key) : NULL;
    Py_XDECREF(key);
    return row;
}

PyObject *py_tensor_iter(PyObject *self) { return py_tensor_len(self) < 0 ? NULL : PySeqIter_New(self); }
