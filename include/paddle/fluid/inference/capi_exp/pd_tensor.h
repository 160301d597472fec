/* Handles of inputs and outputs of Paddle's C interface; see pd_config.h. Implemented by inference/capi/. */
#ifndef PROA_PD_TENSOR_H
#define PROA_PD_TENSOR_H

#include "pd_common.h"
#include "pd_types.h"
#include "pd_utils.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PD_Tensor PD_Tensor;

/* Ends the handle, not the data. Accepts NULL. */
PADDLE_CAPI_EXPORT extern void PD_TensorDestroy(__pd_take PD_Tensor *tensor);

/* Sets the shape of an input, before its data. */
PADDLE_CAPI_EXPORT extern void PD_TensorReshape(__pd_keep PD_Tensor *tensor, size_t shape_size,
                                                int32_t *shape);

/* The address of an input of this dtype and of the shape that was set. */
PADDLE_CAPI_EXPORT extern float *PD_TensorMutableDataFloat(__pd_keep PD_Tensor *tensor, PD_PlaceType place);
PADDLE_CAPI_EXPORT extern int64_t *PD_TensorMutableDataInt64(__pd_keep PD_Tensor *tensor, PD_PlaceType place);
PADDLE_CAPI_EXPORT extern int32_t *PD_TensorMutableDataInt32(__pd_keep PD_Tensor *tensor, PD_PlaceType place);
PADDLE_CAPI_EXPORT extern uint8_t *PD_TensorMutableDataUint8(__pd_keep PD_Tensor *tensor, PD_PlaceType place);
PADDLE_CAPI_EXPORT extern int8_t *PD_TensorMutableDataInt8(__pd_keep PD_Tensor *tensor, PD_PlaceType place);

/* The address of the elements, their place and number; NULL if they have another dtype. */
PADDLE_CAPI_EXPORT extern float *PD_TensorDataFloat(__pd_keep PD_Tensor *tensor, PD_PlaceType *place,
                                                    int32_t *size);
PADDLE_CAPI_EXPORT extern int64_t *PD_TensorDataInt64(__pd_keep PD_Tensor *tensor, PD_PlaceType *place,
                                                      int32_t *size);
PADDLE_CAPI_EXPORT extern int32_t *PD_TensorDataInt32(__pd_keep PD_Tensor *tensor, PD_PlaceType *place,
                                                      int32_t *size);
PADDLE_CAPI_EXPORT extern uint8_t *PD_TensorDataUint8(__pd_keep PD_Tensor *tensor, PD_PlaceType *place,
                                                      int32_t *size);
PADDLE_CAPI_EXPORT extern int8_t *PD_TensorDataInt8(__pd_keep PD_Tensor *tensor, PD_PlaceType *place,
                                                    int32_t *size);

/* Copies as many elements as the shape says, and sets the dtype. */
PADDLE_CAPI_EXPORT extern void PD_TensorCopyFromCpuFloat(__pd_keep PD_Tensor *tensor, const float *data);
PADDLE_CAPI_EXPORT extern void PD_TensorCopyFromCpuInt64(__pd_keep PD_Tensor *tensor, const int64_t *data);
PADDLE_CAPI_EXPORT extern void PD_TensorCopyFromCpuInt32(__pd_keep PD_Tensor *tensor, const int32_t *data);
PADDLE_CAPI_EXPORT extern void PD_TensorCopyFromCpuUint8(__pd_keep PD_Tensor *tensor, const uint8_t *data);
PADDLE_CAPI_EXPORT extern void PD_TensorCopyFromCpuInt8(__pd_keep PD_Tensor *tensor, const int8_t *data);

/* Copies all elements; nothing if they have another dtype. */
PADDLE_CAPI_EXPORT extern void PD_TensorCopyToCpuFloat(__pd_keep PD_Tensor *tensor, float *data);
PADDLE_CAPI_EXPORT extern void PD_TensorCopyToCpuInt64(__pd_keep PD_Tensor *tensor, int64_t *data);
PADDLE_CAPI_EXPORT extern void PD_TensorCopyToCpuInt32(__pd_keep PD_Tensor *tensor, int32_t *data);
PADDLE_CAPI_EXPORT extern void PD_TensorCopyToCpuUint8(__pd_keep PD_Tensor *tensor, uint8_t *data);
PADDLE_CAPI_EXPORT extern void PD_TensorCopyToCpuInt8(__pd_keep PD_Tensor *tensor, int8_t *data);

/* The shape; empty before there is one. Offsets of sequences, a list a level, which are copied. */
PADDLE_CAPI_EXPORT extern __pd_give PD_OneDimArrayInt32 *PD_TensorGetShape(__pd_keep PD_Tensor *tensor);
PADDLE_CAPI_EXPORT extern void PD_TensorSetLod(__pd_keep PD_Tensor *tensor, PD_TwoDimArraySize *lod);
PADDLE_CAPI_EXPORT extern __pd_give PD_TwoDimArraySize *PD_TensorGetLod(__pd_keep PD_Tensor *tensor);

/* The variable's name (the handle's) and the dtype; PD_DATA_UNK for one that PD_DataType does not name. */
PADDLE_CAPI_EXPORT extern const char *PD_TensorGetName(__pd_keep PD_Tensor *tensor);
PADDLE_CAPI_EXPORT extern PD_DataType PD_TensorGetDataType(__pd_keep PD_Tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
