/* Table of the cuDNN 9 functions that the plug-in calls, with names of our own for types and values. Building
 * needs none of cuDNN's headers (dnn.c checks them where they are); the library is loaded when a convolution,
 * or the device's description, first asks for it. C; uses nothing of Proa. */
#ifndef PROA_CUDA_DNN_H
#define PROA_CUDA_DNN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Handles and descriptors: opaque objects of cuDNN. */
typedef struct cuda_dnn_handle_s *cuda_dnn_handle;
typedef struct cuda_dnn_tensor_s *cuda_dnn_tensor;
typedef struct cuda_dnn_filter_s *cuda_dnn_filter;
typedef struct cuda_dnn_conv_s *cuda_dnn_conv;

enum { CUDA_DNN_FLOAT = 0, CUDA_DNN_DOUBLE = 1, CUDA_DNN_HALF = 2, CUDA_DNN_BFLOAT16 = 9 };
enum { CUDA_DNN_NCHW = 0, CUDA_DNN_NHWC = 1 };
enum { CUDA_DNN_CROSS_CORRELATION = 1 };
enum { CUDA_DNN_DEFAULT_MATH = 0, CUDA_DNN_TENSOR_OP_MATH = 1, CUDA_DNN_FMA_MATH = 3 };
enum { CUDA_DNN_DETERMINISTIC = 1 };
enum {
    CUDA_DNN_OK = 0,
    CUDA_DNN_BAD_PARAM = 2000,
    CUDA_DNN_NOT_SUPPORTED = 3000
};                                 /* apart from CUDA_DNN_OK, codes of one class share the thousands digit */
enum { CUDA_DNN_ALGORITHMS = 16 }; /* algorithms asked of a heuristic; cuDNN has 8 per direction */

/* A heuristic's proposal, for any of the three directions. */
typedef struct cuda_dnn_choice {
    int algorithm, status;
    float time;
    size_t memory;
    int deterministic, math;
    int reserved[3];
} cuda_dnn_choice;

/* Each function is cudnn<Name>, and returns 0 or a code that GetErrorString explains. `const void *` scales
 * are float, or double for double data. */
typedef struct cuda_dnn {
    size_t (*GetVersion)(void);
    const char *(*GetErrorString)(int status);
    int (*Create)(cuda_dnn_handle *handle);
    int (*SetStream)(cuda_dnn_handle handle, void *stream);
    int (*CreateTensorDescriptor)(cuda_dnn_tensor *to);
    int (*DestroyTensorDescriptor)(cuda_dnn_tensor d);
    int (*SetTensorNdDescriptor)(cuda_dnn_tensor d, int type, int dims, const int *size, const int *stride);
    int (*CreateFilterDescriptor)(cuda_dnn_filter *to);
    int (*DestroyFilterDescriptor)(cuda_dnn_filter d);
    int (*SetFilterNdDescriptor)(cuda_dnn_filter d, int type, int format, int dims, const int *size);
    int (*CreateConvolutionDescriptor)(cuda_dnn_conv *to);
    int (*DestroyConvolutionDescriptor)(cuda_dnn_conv d);
    int (*SetConvolutionNdDescriptor)(cuda_dnn_conv d, int dims, const int *pad, const int *stride,
                                      const int *dilation, int mode, int type);
    int (*SetConvolutionGroupCount)(cuda_dnn_conv d, int groups);
    int (*SetConvolutionMathType)(cuda_dnn_conv d, int math);
    int (*GetConvolutionNdForwardOutputDim)(cuda_dnn_conv d, cuda_dnn_tensor in, cuda_dnn_filter filter,
                                            int dims, int *size);
    int (*GetConvolutionForwardAlgorithm_v7)(cuda_dnn_handle handle, cuda_dnn_tensor in,
                                             cuda_dnn_filter filter, cuda_dnn_conv conv, cuda_dnn_tensor out,
                                             int capacity, int *n, cuda_dnn_choice *to);
    int (*GetConvolutionBackwardDataAlgorithm_v7)(cuda_dnn_handle handle, cuda_dnn_filter filter,
                                                  cuda_dnn_tensor out, cuda_dnn_conv conv, cuda_dnn_tensor in,
                                                  int capacity, int *n, cuda_dnn_choice *to);
    int (*GetConvolutionBackwardFilterAlgorithm_v7)(cuda_dnn_handle handle, cuda_dnn_tensor in,
                                                    cuda_dnn_tensor out, cuda_dnn_conv conv,
                                                    cuda_dnn_filter filter, int capacity, int *n,
                                                    cuda_dnn_choice *to);
    int (*ConvolutionForward)(cuda_dnn_handle handle, const void *alpha, cuda_dnn_tensor in_d, const void *in,
                              cuda_dnn_filter filter_d, const void *filter, cuda_dnn_conv conv, int algorithm,
                              void *work, size_t work_bytes, const void *beta, cuda_dnn_tensor out_d,
                              void *out);
    int (*ConvolutionBackwardData)(cuda_dnn_handle handle, const void *alpha, cuda_dnn_filter filter_d,
                                   const void *filter, cuda_dnn_tensor out_d, const void *out,
                                   cuda_dnn_conv conv, int algorithm, void *work, size_t work_bytes,
                                   const void *beta, cuda_dnn_tensor in_d, void *in);
    int (*ConvolutionBackwardFilter)(cuda_dnn_handle handle, const void *alpha, cuda_dnn_tensor in_d,
                                     const void *in, cuda_dnn_tensor out_d, const void *out,
                                     cuda_dnn_conv conv, int algorithm, void *work, size_t work_bytes,
                                     const void *beta, cuda_dnn_filter filter_d, void *filter);
} cuda_dnn;

/* Names of cuDNN's functions, for the code that fills the table. */
#define CUDA_DNN_FUNCTIONS(X)                   \
    X(GetVersion)                               \
    X(GetErrorString)                           \
    X(Create)                                   \
    X(SetStream)                                \
    X(CreateTensorDescriptor)                   \
    X(DestroyTensorDescriptor)                  \
    X(SetTensorNdDescriptor)                    \
    X(CreateFilterDescriptor)                   \
    X(DestroyFilterDescriptor)                  \
    X(SetFilterNdDescriptor)                    \
    X(CreateConvolutionDescriptor)              \
    X(DestroyConvolutionDescriptor)             \
    X(SetConvolutionNdDescriptor)               \
    X(SetConvolutionGroupCount)                 \
    X(SetConvolutionMathType)                   \
    X(GetConvolutionNdForwardOutputDim)         \
    X(GetConvolutionForwardAlgorithm_v7)        \
    X(GetConvolutionBackwardDataAlgorithm_v7)   \
    X(GetConvolutionBackwardFilterAlgorithm_v7) \
    X(ConvolutionForward)                       \
    X(ConvolutionBackwardData)                  \
    X(ConvolutionBackwardFilter)

/* Loads libcudnn.so.9. NULL: it is not installed, and *why (unless why is NULL) says so. Callable from any
 * thread. */
const cuda_dnn *cuda_dnn_installed(const char **why);
/* The emulator's stand-in for cuDNN, of the plug-in that is built for tests; never NULL. */
const cuda_dnn *cuda_dnn_emulated(void);

#ifdef __cplusplus
}
#endif
#endif
