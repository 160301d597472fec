/* Enums and structs of Paddle's C interface. Uses pd_common.h. */
#ifndef PROA_PD_TYPES_H
#define PROA_PD_TYPES_H

#include "pd_common.h"

PD_ENUM(PD_PrecisionType){PD_PRECISION_FLOAT32 = 0, PD_PRECISION_INT8, PD_PRECISION_HALF};
PD_ENUM(PD_PlaceType){PD_PLACE_UNK = -1, PD_PLACE_CPU, PD_PLACE_GPU, PD_PLACE_XPU, PD_PLACE_CUSTOM};
/* The order is not that of C++'s DataType. */
PD_ENUM(PD_DataType){PD_DATA_UNK = -1, PD_DATA_FLOAT32, PD_DATA_INT32,
                     PD_DATA_INT64,    PD_DATA_UINT8,   PD_DATA_INT8};

typedef struct PD_OneDimArrayInt32 {
    size_t size;
    int32_t *data;
} PD_OneDimArrayInt32;

typedef struct PD_OneDimArraySize {
    size_t size;
    size_t *data;
} PD_OneDimArraySize;

typedef struct PD_OneDimArrayInt64 {
    size_t size;
    int64_t *data;
} PD_OneDimArrayInt64;

typedef struct PD_OneDimArrayCstr {
    size_t size;
    char **data;
} PD_OneDimArrayCstr;

/* size counts the NUL; the empty text is {0, NULL}. */
typedef struct PD_Cstr {
    size_t size;
    char *data;
} PD_Cstr;

typedef struct PD_TwoDimArraySize {
    size_t size;
    PD_OneDimArraySize **data;
} PD_TwoDimArraySize;

typedef struct PD_IOInfo {
    PD_Cstr *name;
    PD_OneDimArrayInt64 *shape;
    PD_DataType dtype;
} PD_IOInfo;

typedef struct PD_IOInfos {
    size_t size;
    PD_IOInfo **io_info;
} PD_IOInfos;

#endif
