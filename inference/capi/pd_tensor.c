/* PD_Tensor functions of Paddle's C interface, over predictor handles. One list defines the functions of each
 * dtype. May use proa/inference.h alone. */
#include "capi.h"

#include <stdlib.h>
#include <string.h>

void PD_TensorDestroy(PD_Tensor *tensor)
{
    if (!tensor) return;
    proa_predictor_free(tensor->owner);
    free(tensor);
}

void PD_TensorReshape(PD_Tensor *tensor, size_t shape_size, int32_t *shape)
{
    int64_t dims[PROA_MAX_DIMS];
    if (!pd_begin("PD_TensorReshape", shape_size && !shape ? NULL : tensor)) return;
    if (shape_size > PROA_MAX_DIMS)
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  "PD_TensorReshape: '%s': %zu dimensions; at most %d are supported",
                  proa_handle_name(tensor->handle), shape_size, PROA_MAX_DIMS);
    for (size_t i = 0; i < shape_size && i < PROA_MAX_DIMS; i++) dims[i] = shape[i];
    proa_handle_reshape(tensor->handle, (proa_ints){(int64_t)shape_size, dims, NULL, NULL});
    pd_end(tensor->quiet);
}

/* ---- elements --------------------------------------------------------------------------- */

static void *data(const char *who, PD_Tensor *t, proa_dtype dtype, PD_PlaceType *place, int32_t *size)
{
    if (place) *place = PD_PLACE_UNK;
    if (size) *size = 0;
    if (!pd_begin(who, t)) return NULL;
    void *at = proa_handle_data(t->handle, dtype);
    if (!pd_end(t->quiet)) return NULL;
    proa_scope scope = proa_scope_enter();
    const proa_tensor *held = proa_handle_tensor(t->handle);
    const char *device = proa_device_of(held);
    if (place)
        *place = strcmp(device, "cpu") == 0       ? PD_PLACE_CPU
                 : strncmp(device, "gpu", 3) == 0 ? PD_PLACE_GPU
                                                  : PD_PLACE_CUSTOM;
    if (size) *size = (int32_t)proa_numel(held);
    proa_scope_leave(&scope);
    return at;
}

static void *mutable_data(const char *who, PD_Tensor *t, proa_dtype dtype)
{
    if (!pd_begin(who, t)) return NULL;
    void *at = proa_handle_mutable(t->handle, dtype);
    pd_end(t->quiet);
    return at;
}

static void copy_in(const char *who, PD_Tensor *t, const void *from, proa_dtype dtype)
{
    if (!pd_begin(who, t)) return;
    proa_handle_copy_in(t->handle, from, dtype);
    pd_end(t->quiet);
}

static void copy_out(const char *who, PD_Tensor *t, void *to, proa_dtype dtype)
{
    if (!pd_begin(who, t)) return;
    proa_handle_copy_out(t->handle, to, dtype);
    pd_end(t->quiet);
}

/* X(word, C type, dtype, PD_DataType) */
#define DTYPES(X)                      \
    X(Float, float, PROA_F32, FLOAT32) \
    X(Int64, int64_t, PROA_I64, INT64) \
    X(Int32, int32_t, PROA_I32, INT32) \
    X(Uint8, uint8_t, PROA_U8, UINT8)  \
    X(Int8, int8_t, PROA_I8, INT8)
#define PD_ACCESS(W, T, dtype, NAME)                                           \
    T *PD_TensorMutableData##W(PD_Tensor *tensor, PD_PlaceType place)          \
    {                                                                          \
        (void)place; /* the predictor's device is used */                      \
        return mutable_data("PD_TensorMutableData" #W, tensor, dtype);         \
    }                                                                          \
    T *PD_TensorData##W(PD_Tensor *tensor, PD_PlaceType *place, int32_t *size) \
    {                                                                          \
        return data("PD_TensorData" #W, tensor, dtype, place, size);           \
    }
DTYPES(PD_ACCESS)
#define PD_COPY(W, T, dtype, NAME)                                 \
    void PD_TensorCopyFromCpu##W(PD_Tensor *tensor, const T *from) \
    {                                                              \
        copy_in("PD_TensorCopyFromCpu" #W, tensor, from, dtype);   \
    }                                                              \
    void PD_TensorCopyToCpu##W(PD_Tensor *tensor, T *to)           \
    {                                                              \
        copy_out("PD_TensorCopyToCpu" #W, tensor, to, dtype);      \
    }
DTYPES(PD_COPY)

PD_DataType pd_data_type(proa_dtype dtype)
{
#define PD_X(W, T, of, NAME) \
    if (dtype == (of)) return PD_DATA_##NAME;
    DTYPES(PD_X)
#undef PD_X
    return PD_DATA_UNK;
}

PD_DataType PD_TensorGetDataType(PD_Tensor *tensor)
{
    if (!pd_begin("PD_TensorGetDataType", tensor)) return PD_DATA_UNK;
    return pd_data_type(proa_handle_dtype(tensor->handle));
}

const char *PD_TensorGetName(PD_Tensor *tensor)
{
    return pd_begin("PD_TensorGetName", tensor) ? proa_handle_name(tensor->handle) : NULL;
}

/* ---- shapes and sequences --------------------------------------------------------------- */

PD_OneDimArrayInt32 *PD_TensorGetShape(PD_Tensor *tensor)
{
    int64_t dims[PROA_MAX_DIMS];
    if (!pd_begin("PD_TensorGetShape", tensor)) return NULL;
    int rank = proa_handle_shape(tensor->handle, dims);
    PD_OneDimArrayInt32 *shape = pd_alloc(sizeof *shape);
    if (shape && rank > 0) shape->data = pd_alloc((size_t)rank * sizeof *shape->data);
    for (int i = 0; shape && shape->data && i < rank; i++) shape->data[i] = (int32_t)dims[i];
    if (shape && shape->data) shape->size = (size_t)rank;
    pd_end(tensor->quiet);
    return shape;
}

void PD_TensorSetLod(PD_Tensor *tensor, PD_TwoDimArraySize *lod)
{
    proa_ints levels[4] = {{0, NULL, NULL, NULL}};
    int64_t *numbers[4] = {NULL, NULL, NULL, NULL};
    if (!pd_begin("PD_TensorSetLod", lod ? (const void *)tensor : NULL)) return;
    for (size_t i = 0; i < lod->size && i < 4 && proa_error() == PROA_OK; i++) {
        const PD_OneDimArraySize *level = lod->data[i];
        numbers[i] = pd_alloc(level->size * sizeof *numbers[i]);
        for (size_t k = 0; numbers[i] && k < level->size; k++) numbers[i][k] = (int64_t)level->data[k];
        levels[i] = (proa_ints){(int64_t)level->size, numbers[i], NULL, NULL};
    }
    proa_handle_set_lod(tensor->handle, levels, (int64_t)lod->size);
    for (int i = 0; i < 4; i++) free(numbers[i]);
    pd_end(tensor->quiet);
}

static PD_OneDimArraySize *new_level(proa_ints offsets)
{
    PD_OneDimArraySize *level = pd_alloc(sizeof *level);
    if (level) level->data = pd_alloc((size_t)offsets.count * sizeof *level->data);
    if (level && level->data) level->size = (size_t)offsets.count;
    for (size_t i = 0; level && i < level->size; i++) level->data[i] = (size_t)offsets.at[i];
    return level;
}

PD_TwoDimArraySize *PD_TensorGetLod(PD_Tensor *tensor)
{
    if (!pd_begin("PD_TensorGetLod", tensor)) return NULL;
    size_t n = (size_t)proa_handle_lod_levels(tensor->handle);
    PD_TwoDimArraySize *lod = pd_alloc(sizeof *lod);
    if (lod) lod->data = pd_alloc(n * sizeof *lod->data);
    while (lod && lod->data && lod->size < n && proa_error() == PROA_OK) {
        lod->data[lod->size] = new_level(proa_handle_lod(tensor->handle, (int64_t)lod->size));
        lod->size++;
    }
    if (pd_end(tensor->quiet)) return lod;
    PD_TwoDimArraySizeDestroy(lod);
    return NULL;
}
