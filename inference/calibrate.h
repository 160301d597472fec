/* Statistics of activations over samples, and the scales that follow from them. May use core. */
#ifndef PROA_INFERENCE_CALIBRATE_H
#define PROA_INFERENCE_CALIBRATE_H

#include "core/internal.h"

enum { PROA__BINS = 2048 };

/* Statistics of one activation. */
typedef struct proa__observed {
    double sum, largest; /* of the batches' largest magnitudes */
    double *bins;        /* counts of magnitudes in 0 … largest; owned; NULL: not counted */
} proa__observed;

/* Takes a batch's largest magnitude into account. t is float32. */
proa_status proa__observe_largest(proa__observed *o, proa_tensor *t);
/* Counts a batch's magnitudes, once all batches' largest is known. */
proa_status proa__observe_bins(proa__observed *o, proa_tensor *t);
/* The scale at which the histogram of the quantized values has the smallest Kullback-Leibler divergence
 * (Migacz, 2017). bits: 2 to 11. */
double proa__scale_of_divergence(const proa__observed *o, int64_t bits);

#endif
