/* Shared parts of soak tests: their length, a network over images of any size, and resident memory. */
#ifndef PROA_TESTS_SOAK_H
#define PROA_TESTS_SOAK_H

#include "lists.h"
#include "suite.h"

#include <proa.h>
#include <stdio.h>
#include <unistd.h>

enum { SOAK_CLASSES = 5, SOAK_CHANNELS = 3 };

/* `make soak` sets PROA_TEST_SOAK. */
static inline bool soak_is_long(void) { return getenv("PROA_TEST_SOAK") != NULL; }

/* The context of soak_network: a filter and a matrix. */
#define SOAK_WEIGHTS                                                                                  \
    {                                                                                                 \
        proa_gaussian(PROA_SHAPE(4, SOAK_CHANNELS, 3, 3)), proa_gaussian(PROA_SHAPE(4, SOAK_CLASSES)) \
    }

/* Class probabilities: a convolution, ReLU, the mean of each feature map, a matrix product, softmax. */
static inline proa_tensors soak_network(proa_tensors in, void *context)
{
    proa_tensor **w = context;
    proa_tensor *h = proa_relu(proa_conv2d(in.at[0], w[0], PROA_NONE, .padding = PROA_INTS(1, 1)));
    proa_tensor *flat = proa_mean(h, .axis = PROA_INTS(2, 3));
    return one(proa_softmax(proa_matmul(flat, w[1])));
}

/* Resident memory in KiB; 0 if it is unknown. */
static inline double soak_resident(void)
{
    long pages = 0, whole = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld %ld", &whole, &pages) != 2) pages = 0;
    if (f) fclose(f);
    return (double)pages * ((double)sysconf(_SC_PAGESIZE) / 1024);
}

#endif
