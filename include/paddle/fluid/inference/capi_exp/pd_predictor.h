/* Predictors of Paddle's C interface; see pd_config.h. Implemented by inference/capi/. */
#ifndef PROA_PD_PREDICTOR_H
#define PROA_PD_PREDICTOR_H

#include "pd_common.h"
#include "pd_config.h"
#include "pd_tensor.h"
#include "pd_types.h"
#include "pd_utils.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PD_Predictor PD_Predictor;

/* A predictor of the config, which it takes. NULL if the model cannot be loaded. */
PADDLE_CAPI_EXPORT extern __pd_give PD_Predictor *PD_PredictorCreate(__pd_take PD_Config *config);

/* A predictor of the same model, for another thread; it may outlive the original. */
PADDLE_CAPI_EXPORT extern __pd_give PD_Predictor *PD_PredictorClone(__pd_keep PD_Predictor *predictor);

/* Names of inputs and outputs in the model's order, which the caller frees. */
PADDLE_CAPI_EXPORT extern __pd_give PD_OneDimArrayCstr *PD_PredictorGetInputNames(
    __pd_keep PD_Predictor *predictor);
PADDLE_CAPI_EXPORT extern __pd_give PD_OneDimArrayCstr *PD_PredictorGetOutputNames(
    __pd_keep PD_Predictor *predictor);
PADDLE_CAPI_EXPORT extern size_t PD_PredictorGetInputNum(__pd_keep PD_Predictor *predictor);
PADDLE_CAPI_EXPORT extern size_t PD_PredictorGetOutputNum(__pd_keep PD_Predictor *predictor);

/* Names, shapes (-1: any length) and dtypes of the model. */
PADDLE_CAPI_EXPORT extern __pd_give PD_IOInfos *PD_PredictorGetInputInfos(__pd_keep PD_Predictor *predictor);
PADDLE_CAPI_EXPORT extern __pd_give PD_IOInfos *PD_PredictorGetOutputInfos(__pd_keep PD_Predictor *predictor);

/* A new handle on each call; NULL if there is no such name. */
PADDLE_CAPI_EXPORT extern __pd_give PD_Tensor *PD_PredictorGetInputHandle(__pd_keep PD_Predictor *predictor,
                                                                          const char *name);
PADDLE_CAPI_EXPORT extern __pd_give PD_Tensor *PD_PredictorGetOutputHandle(__pd_keep PD_Predictor *predictor,
                                                                           const char *name);

/* FALSE if an input is missing or does not fit; the predictor can run again. */
PADDLE_CAPI_EXPORT extern PD_Bool PD_PredictorRun(__pd_keep PD_Predictor *predictor);

/* Releases the tensors of inputs and outputs; frees the memory of runs, whose bytes it returns. */
PADDLE_CAPI_EXPORT extern void PD_PredictorClearIntermediateTensor(__pd_keep PD_Predictor *predictor);
PADDLE_CAPI_EXPORT extern uint64_t PD_PredictorTryShrinkMemory(__pd_keep PD_Predictor *predictor);

/* Accepts NULL. */
PADDLE_CAPI_EXPORT extern void PD_PredictorDestroy(__pd_take PD_Predictor *predictor);

/* "version: …" Static. */
PADDLE_CAPI_EXPORT extern const char *PD_GetVersion(void);

#ifdef __cplusplus
}
#endif
#endif
