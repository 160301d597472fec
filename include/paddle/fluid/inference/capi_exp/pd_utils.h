/* Frees strings and arrays that getters of Paddle's C interface returned. Implemented by inference/capi/. */
#ifndef PROA_PD_UTILS_H
#define PROA_PD_UTILS_H

#include "pd_common.h"
#include "pd_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each frees its argument; NULL is accepted. */
PADDLE_CAPI_EXPORT extern void PD_OneDimArrayInt32Destroy(__pd_take PD_OneDimArrayInt32 *array);
PADDLE_CAPI_EXPORT extern void PD_OneDimArrayCstrDestroy(__pd_take PD_OneDimArrayCstr *array);
PADDLE_CAPI_EXPORT extern void PD_OneDimArraySizeDestroy(__pd_take PD_OneDimArraySize *array);
PADDLE_CAPI_EXPORT extern void PD_TwoDimArraySizeDestroy(__pd_take PD_TwoDimArraySize *array);
PADDLE_CAPI_EXPORT extern void PD_CstrDestroy(__pd_take PD_Cstr *text);
PADDLE_CAPI_EXPORT extern void PD_OneDimArrayInt64Destroy(__pd_take PD_OneDimArrayInt64 *array);
PADDLE_CAPI_EXPORT extern void PD_IOInfoDestroy(__pd_take PD_IOInfo *info);
PADDLE_CAPI_EXPORT extern void PD_IOInfosDestroy(__pd_take PD_IOInfos *infos);

#ifdef __cplusplus
}
#endif
#endif
