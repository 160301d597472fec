/* Umbrella header of Paddle's C interface for inference. C99 and C++11. */
#ifndef PROA_PD_INFERENCE_API_H
#define PROA_PD_INFERENCE_API_H

#include "pd_common.h"
#include "pd_config.h"
#include "pd_predictor.h"
#include "pd_tensor.h"
#include "pd_types.h"
#include "pd_utils.h"

#endif
