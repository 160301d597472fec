/* Shared parts of Paddle's C interface. May use proa/inference.h alone. */
#ifndef PROA_INFERENCE_CAPI_H
#define PROA_INFERENCE_CAPI_H

#include "paddle/fluid/inference/capi_exp/pd_inference_api.h"

#include <proa/inference.h>
#include <stdatomic.h>

struct PD_Config {
    proa_config *config;
    PD_Config *next; /* in the list of configs that no predictor has taken */
    atomic_int refs; /* its predictors; 1 while nobody has taken it */
};

struct PD_Predictor {
    proa_predictor *predictor;
    PD_Config *config; /* taken: it ends with its last predictor */
    bool quiet;
};

struct PD_Tensor {
    proa_handle *handle;
    proa_predictor *owner; /* retained: the handle stays good */
    bool quiet;
};

/* Every call starts without an error. False, with one, for a NULL argument. */
bool pd_begin(const char *who, const void *argument);
/* Prints this thread's error, which stays for proa_error_message, unless `quiet`. False if there is one. */
bool pd_end(bool quiet);
/* Zeroed memory of the C library, which the Destroy functions free; NULL with an error. */
void *pd_alloc(size_t bytes);
PD_Cstr *pd_text(const char *text);
/* n names, given by number. */
PD_OneDimArrayCstr *pd_names(size_t n, const char *(*name)(const void *of, int64_t i), const void *of);
/* PD_DATA_UNK for dtypes that Paddle's enum does not name. */
PD_DataType pd_data_type(proa_dtype dtype);
/* Whether the config's failures are printed. */
bool pd_is_quiet(const PD_Config *c);
/* A predictor more, and one fewer; the last one ends it. */
void pd_config_retain(PD_Config *c);
void pd_config_release(PD_Config *c);
/* Takes a config that a predictor was made of out of the list of those that their owner destroys. */
void pd_config_take(PD_Config *c);

#endif
