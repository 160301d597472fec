/* Binding to cuDNN 9, loaded at its first use, so that the plug-in also loads on a machine without cuDNN.
 * The build compares dnn.h's declarations with cuDNN's headers if those are installed. C; uses the dynamic
 * loader. */
#include "dnn.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#if defined(PROA_CUDNN_HEADERS)
#include <cudnn.h>
#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs " is another in this cuDNN")
SAME(CUDA_DNN_FLOAT, CUDNN_DATA_FLOAT);
SAME(CUDA_DNN_DOUBLE, CUDNN_DATA_DOUBLE);
SAME(CUDA_DNN_HALF, CUDNN_DATA_HALF);
SAME(CUDA_DNN_BFLOAT16, CUDNN_DATA_BFLOAT16);
SAME(CUDA_DNN_NCHW, CUDNN_TENSOR_NCHW);
SAME(CUDA_DNN_NHWC, CUDNN_TENSOR_NHWC);
SAME(CUDA_DNN_CROSS_CORRELATION, CUDNN_CROSS_CORRELATION);
SAME(CUDA_DNN_DEFAULT_MATH, CUDNN_DEFAULT_MATH);
SAME(CUDA_DNN_TENSOR_OP_MATH, CUDNN_TENSOR_OP_MATH);
SAME(CUDA_DNN_FMA_MATH, CUDNN_FMA_MATH);
SAME(CUDA_DNN_DETERMINISTIC, CUDNN_DETERMINISTIC);
SAME(CUDA_DNN_BAD_PARAM, CUDNN_STATUS_BAD_PARAM);
SAME(CUDA_DNN_NOT_SUPPORTED, CUDNN_STATUS_NOT_SUPPORTED);
#define SAME_CHOICE(direction)                                                                         \
    _Static_assert(sizeof(cuda_dnn_choice) == sizeof(direction) &&                                     \
                       offsetof(cuda_dnn_choice, algorithm) == offsetof(direction, algo) &&            \
                       offsetof(cuda_dnn_choice, status) == offsetof(direction, status) &&             \
                       offsetof(cuda_dnn_choice, memory) == offsetof(direction, memory) &&             \
                       offsetof(cuda_dnn_choice, deterministic) == offsetof(direction, determinism) && \
                       offsetof(cuda_dnn_choice, math) == offsetof(direction, mathType),               \
                   #direction " is another in this cuDNN")
SAME_CHOICE(cudnnConvolutionFwdAlgoPerf_t);
SAME_CHOICE(cudnnConvolutionBwdDataAlgoPerf_t);
SAME_CHOICE(cudnnConvolutionBwdFilterAlgoPerf_t);
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cuda_dnn table;
static char why_not[256];

static void find(void)
{
    void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *text = dlerror();
        snprintf(why_not, sizeof why_not, "cuDNN 9 cannot be loaded: %s", text ? text : "unknown reason");
        return;
    }
    /* ISO C has no conversion from an object pointer to a function pointer, so the pointer's bytes are
     * copied. */
    void *p;
#define PROA_X(name)                                                                              \
    p = dlsym(library, "cudnn" #name);                                                            \
    if (!p && !why_not[0]) snprintf(why_not, sizeof why_not, "libcudnn.so.9 has no cudnn" #name); \
    memcpy(&table.name, &p, sizeof p);
    CUDA_DNN_FUNCTIONS(PROA_X)
#undef PROA_X
}

const cuda_dnn *cuda_dnn_installed(const char **why)
{
    pthread_once(&once, find);
    if (why) *why = why_not;
    return why_not[0] ? NULL : &table;
}
