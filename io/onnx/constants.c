/* Initializers of an ONNX graph: parameters of the program, and the numbers that lowerings need. May use
 * core, ops, jit's programs and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/graph.h"

#include "core/blocked.h"
#include "core/copy.h"
#include "core/half.h"
#include "ops/ints.h"

#include <math.h>

enum { SHARED_BYTES = 64 }; /* initializers of at most this size are looked for before a new one is made */

static onnx_value *new_initializer(onnx_graph *g, const char *name, proa_dtype dtype, int ndim,
                                   const int64_t *shape)
{
    onnx_value *v = onnx_alloc(g, 1, sizeof *v);
    onnx_tensor_proto *t = onnx_alloc(g, 1, sizeof *t);
    int64_t *dims = onnx_alloc(g, (size_t)ndim, sizeof *dims);
    if (!v || !t || !dims) return NULL;
    if (!onnx_dtype(dtype)) return onnx_refuse(g, "ONNX has no dtype %s", proa_dtype_name(dtype));
    onnx__tensor_proto__init(t);
    if (ndim) memcpy(dims, shape, (size_t)ndim * sizeof *dims);
    t->dims = dims;
    t->n_dims = (size_t)ndim;
    t->has_data_type = true;
    t->data_type = onnx_dtype(dtype);
    v->dtype = dtype;
    v->data = t;
    v->name = proa__arena_text(&g->all->arena, name);
    return v->name && onnx_list_add(g->all, &g->all->initializers, v) == PROA_OK ? v : NULL;
}

static onnx_graph *model_of(onnx_graph *g)
{
    while (g->outer) g = g->outer;
    return g;
}

onnx_value *onnx_persistable(onnx_graph *g, const proa_var *var)
{
    const proa_tensor *t = var->value;
    onnx_value *v = new_initializer(g, var->name, (proa_dtype)t->dtype, t->ndim, t->shape);
    if (!v) return NULL;
    v->named = true;
    v->tensor = var->value;
    return proa__hash_map_put(&model_of(g)->values, var, v) == PROA_OK ? v : NULL;
}

/* ---- numbers --------------------------------------------------------------------------- */

/* Key of a small initializer in the map of constants: dtype, shape and elements, as hexadecimal digits. */
static char *key_of(onnx_graph *g, proa_dtype dtype, int ndim, const int64_t *shape, const void *elements,
                    size_t bytes)
{
    char text[2 * SHARED_BYTES + 32];
    size_t n = (size_t)snprintf(text, sizeof text, "%d/%d/%lld/", (int)dtype, ndim,
                                (long long)(ndim ? shape[0] : 0));
    for (size_t i = 0; i < bytes; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%02x", ((const unsigned char *)elements)[i]);
    return proa__arena_text(&g->all->arena, text);
}

onnx_value *onnx_data(onnx_graph *g, proa_dtype dtype, int ndim, const int64_t *shape, const void *elements)
{
    size_t bytes = proa_dtype_size(dtype);
    for (int i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(bytes, (size_t)shape[i], &bytes))
            return onnx_refuse(g, "a constant of shape %s is too large", proa__shape_text(shape, ndim));
    if (proa_error() != PROA_OK) return NULL;
    char *key = NULL;
    if (bytes <= SHARED_BYTES && ndim <= 1) {
        if (!(key = key_of(g, dtype, ndim, shape, elements, bytes))) return NULL;
        onnx_value *known = proa__hash_map_find(&g->all->constants, key);
        if (known) return known;
    }
    char name[32];
    do snprintf(name, sizeof name, "onnx_%u", g->all->temporaries++);
    while (proa__var_find(proa__root(g->all->program), name));
    onnx_value *v = new_initializer(g, name, dtype, ndim, shape);
    void *copy = onnx_alloc(g, bytes, 1);
    if (!v || !copy) return NULL;
    if (bytes) memcpy(copy, elements, bytes);
    v->data->has_raw_data = true;
    v->data->raw_data = (ProtobufCBinaryData){bytes, copy};
    if (key && proa__hash_map_put(&g->all->constants, key, v) != PROA_OK) return NULL;
    return v;
}

onnx_value *onnx_ints(onnx_graph *g, int64_t n, const int64_t *at)
{
    return onnx_data(g, PROA_I64, 1, &n, at);
}

onnx_value *onnx_int(onnx_graph *g, int64_t v) { return onnx_ints(g, 1, &v); }

/* Writes a number as one element of a dtype. */
static void encode(proa_dtype dtype, double v, int64_t whole, char *to)
{
    uint16_t half = dtype == PROA_F16 ? proa__f32_to_f16((float)v) : proa__f32_to_bf16((float)v);
    float single = (float)v;
    int32_t i32 = (int32_t)whole;
    int16_t i16 = (int16_t)whole;
    int8_t i8 = (int8_t)whole;
    uint8_t u8 = dtype == PROA_BOOL ? v != 0 : (uint8_t)whole;
    const void *from = dtype == PROA_F64                        ? (const void *)&v
                       : dtype == PROA_F32                      ? (const void *)&single
                       : dtype == PROA_I64                      ? (const void *)&whole
                       : dtype == PROA_I32                      ? (const void *)&i32
                       : dtype == PROA_I16                      ? (const void *)&i16
                       : dtype == PROA_I8                       ? (const void *)&i8
                       : dtype == PROA_U8 || dtype == PROA_BOOL ? (const void *)&u8
                                                                : (const void *)&half;
    memcpy(to, from, proa_dtype_size(dtype));
}

static int64_t whole_of(double v)
{
    if (v != v) return 0;
    return v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : (int64_t)v;
}

onnx_value *onnx_number(onnx_graph *g, proa_dtype dtype, double v)
{
    char element[16];
    if (dtype >= PROA_C64) return onnx_refuse(g, "it is not exported for complex numbers");
    encode(dtype, v, whole_of(v), element);
    return onnx_data(g, dtype, 0, NULL, element);
}

onnx_value *onnx_whole(onnx_graph *g, proa_dtype dtype, int64_t v)
{
    char element[16];
    if (dtype >= PROA_C64) return onnx_refuse(g, "it is not exported for complex numbers");
    encode(dtype, (double)v, v, element);
    return onnx_data(g, dtype, 0, NULL, element);
}

onnx_value *onnx_numbers(onnx_graph *g, proa_dtype dtype, int64_t n, const double *v)
{
    size_t size = proa_dtype_size(dtype);
    char *elements = onnx_alloc(g, (size_t)n, size);
    if (!elements) return NULL;
    for (int64_t i = 0; i < n; i++) encode(dtype, v[i], whole_of(v[i]), elements + (size_t)i * size);
    return onnx_data(g, dtype, 1, &n, elements);
}

/* ---- attributes that tensors may supply ------------------------------------------------- */

onnx_value *onnx_scalar(onnx_graph *g, proa_dtype dtype, const proa_scalar *v)
{
    switch (v->kind) {
    case PROA_SCALAR_BOOL:
    case PROA_SCALAR_INT: return onnx_whole(g, dtype, v->i);
    case PROA_SCALAR_FLOAT: return onnx_number(g, dtype, v->f);
    case PROA_SCALAR_TENSOR: {
        onnx_value *x = onnx_cast(g, onnx_in(g, v->tensor), dtype);
        return v->tensor->ndim ? onnx_reshape(g, x, 0, NULL) : x;
    }
    default: return onnx_refuse(g, "a number that it needs is missing or complex");
    }
}

const void *onnx_constant(const onnx_graph *g, const proa_tensor *t)
{
    (void)g;
    if (!t || proa__absent(t) || !t->var || !t->var->persistable || !t->var->value) return NULL;
    const proa_tensor *value = t->var->value;
    if (value->flags & (PROA_T_STRIDED | PROA_T_DEVICE) || proa__plain(value) != PROA_OK) return NULL;
    return value->data;
}

/* The only element of a constant tensor of integers. */
static bool constant_entry(const onnx_graph *g, const proa_tensor *t, int64_t i, int64_t *to)
{
    const char *data = onnx_constant(g, t);
    if (!data || i >= t->numel) return false;
    if (t->dtype == PROA_I64) memcpy(to, data + i * 8, 8);
    else if (t->dtype == PROA_I32) {
        int32_t v;
        memcpy(&v, data + i * 4, 4);
        *to = v;
    } else return false;
    return true;
}

bool onnx_known_scalar(const onnx_graph *g, const char *argument, const proa_scalar *v, double *to)
{
    int64_t whole;
    if (v->kind == PROA_SCALAR_FLOAT) return *to = v->f, true;
    if (v->kind == PROA_SCALAR_INT || v->kind == PROA_SCALAR_BOOL) return *to = (double)v->i, true;
    if (v->kind == PROA_SCALAR_TENSOR && constant_entry(g, v->tensor, 0, &whole))
        return *to = (double)whole, true;
    onnx_refuse(g, "%s comes from a tensor, which ONNX does not allow: give a number", argument);
    return false;
}

int64_t onnx_known(const onnx_graph *g, const proa_ints *v, int64_t *to, int64_t max)
{
    bool one = v->tensor && !proa__absent(v->tensor) && !v->tensors;
    int64_t n = one ? v->tensor->numel : v->count;
    if (n < 0 || n > max) return -1;
    for (int64_t i = 0; i < n; i++) {
        const proa_tensor *entry = v->tensors ? v->tensors[i] : NULL;
        if (one ? !constant_entry(g, v->tensor, i, &to[i])
                : proa__is_given(entry) && !constant_entry(g, entry, 0, &to[i]))
            return -1;
        if (!one && !proa__is_given(entry)) to[i] = v->at[i];
    }
    return n;
}

onnx_value *onnx_list_value(onnx_graph *g, const proa_ints *v)
{
    int64_t known[ONNX_MAX_DIMS], n = onnx_known(g, v, known, ONNX_MAX_DIMS);
    if (n >= 0) return onnx_ints(g, n, known);
    if (!v->tensors) {
        onnx_value *all = onnx_cast(g, onnx_in(g, v->tensor), PROA_I64);
        return v->tensor->ndim == 1 ? all : ONNX_RESHAPE(g, all, -1);
    }
    onnx_value **parts = onnx_alloc(g, (size_t)v->count, sizeof *parts);
    for (int64_t i = 0; parts && i < v->count; i++) {
        const proa_tensor *t = v->tensors[i];
        if (!proa__is_given(t)) {
            parts[i] = onnx_int(g, v->at ? v->at[i] : 0);
            continue;
        }
        parts[i] = onnx_cast(g, onnx_in(g, t), PROA_I64);
        if (t->ndim != 1) parts[i] = ONNX_RESHAPE(g, parts[i], 1);
    }
    return parts ? onnx_concat(g, v->count, parts, 0) : NULL;
}

#else
typedef int proa__no_onnx_constants; /* C wants a declaration in every file */
#endif
