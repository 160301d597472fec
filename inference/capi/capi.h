/* Structs and helpers shared by the files of Paddle's C inference interface (PD_*). May use proa/inference.h
 * alone. */
#ifndef PROA_INFERENCE_CAPI_H
#define PROA_INFERENCE_CAPI_H

#include "paddle/fluid/inference/capi_exp/pd_inference_api.h"

#include <proa/inference.h>
#include <stdatomic.h>

struct PD_Config {
    proa_config *config;
    PD_Config *next; /* in the list of configs that no predictor has taken */
    atomic_int refs; /* number of its predictors; 1 before the first */
};

struct PD_Predictor {
    proa_predictor *predictor;
    PD_Config *config; /* freed with its last predictor */
    bool quiet;
};

struct PD_Tensor {
    proa_handle *handle;
    proa_predictor *owner; /* retained, so that the handle stays valid */
    bool quiet;
};

/* Begins a PD_ call: clears the thread's error. False with an error if argument is NULL. */
bool pd_begin(const char *who, const void *argument);
/* Ends a PD_ call: prints this thread's error unless `quiet`, and keeps it for proa_error_message. False if
 * there is one. */
bool pd_end(bool quiet);
/* Zeroed memory of the C library, which the Destroy functions free; NULL with an error. */
void *pd_alloc(size_t bytes);
PD_Cstr *pd_text(const char *text);
/* An array of n strings, copied from name(of, 0) to name(of, n - 1). */
PD_OneDimArrayCstr *pd_names(size_t n, const char *(*name)(const void *of, int64_t i), const void *of);
/* PD_DATA_UNK for dtypes that Paddle's enum does not name. */
PD_DataType pd_data_type(proa_dtype dtype);
/* Whether errors of the config and its predictors are not printed. */
bool pd_is_quiet(const PD_Config *c);
/* Add and release a predictor's reference to a config; the last release frees it. */
void pd_config_retain(PD_Config *c);
void pd_config_release(PD_Config *c);
/* Removes a config from the list of those that PD_ConfigDestroy frees: a predictor owns it now. */
void pd_config_take(PD_Config *c);

#endif
