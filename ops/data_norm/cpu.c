/* data_norm on the CPU: rows go by columns of statistics. May use core and the helpers of ops/. */
#include "kernels/rowwise.h"
#include "impl/data_norm.h"

#include <math.h>

#define DATA_NORM(T, root)                                                                               \
    static void norm_##T(const proa_data_norm_args *a)                                                   \
    {                                                                                                    \
        const T *x = (const T *)(const void *)a->x->data;                                                \
        const T *size = (const T *)(const void *)a->batch_size->data;                                    \
        const T *sum = (const T *)(const void *)a->batch_sum->data;                                      \
        const T *squares = (const T *)(const void *)a->batch_square_sum->data;                           \
        T *y = (T *)(void *)a->y->data, *means = (T *)(void *)a->means->data;                            \
        T *scales = (T *)(void *)a->scales->data;                                                        \
        int64_t n = a->x->shape[0], w = a->x->shape[1];                                                  \
        for (int64_t k = 0; k < w; k++) means[k] = sum[k] / size[k];                                     \
        for (int64_t k = 0; k < w; k++) scales[k] = root(size[k] / squares[k]);                          \
        for (int64_t i = 0; i < n; i++)                                                                  \
            for (int64_t k = 0; k < w; k++) y[i * w + k] = (x[i * w + k] - means[k]) * scales[k];        \
    }                                                                                                    \
    static void norm_grad_##T(const proa_data_norm_grad_args *a)                                         \
    {                                                                                                    \
        const T *x = (const T *)(const void *)a->x->data, *dy = (const T *)(const void *)a->d_y->data;   \
        const T *means = (const T *)(const void *)a->means->data;                                        \
        const T *scales = (const T *)(const void *)a->scales->data;                                      \
        T *dx = (T *)(void *)a->d_x->data, *size = (T *)(void *)a->d_batch_size->data;                   \
        T *sum = (T *)(void *)a->d_batch_sum->data, *squares = (T *)(void *)a->d_batch_square_sum->data; \
        int64_t n = a->x->shape[0], w = a->x->shape[1];                                                  \
        for (int64_t k = 0; k < w; k++) {                                                                \
            size[k] = (T)n;                                                                              \
            sum[k] = 0;                                                                                  \
            squares[k] = (T)n * (T)a->epsilon;                                                           \
        }                                                                                                \
        for (int64_t i = 0; i < n; i++)                                                                  \
            for (int64_t k = 0; k < w; k++) {                                                            \
                T v = x[i * w + k], far = v - means[k];                                                  \
                dx[i * w + k] = dy[i * w + k] * scales[k];                                               \
                sum[k] += v;                                                                             \
                squares[k] += far * far;                                                                 \
            }                                                                                            \
    }
DATA_NORM(float, sqrtf)
DATA_NORM(double, sqrt)

PROA_KERNEL(data_norm_cpu, data_norm)
{
    if (a->x->dtype == PROA_F64) norm_double(a);
    else norm_float(a);
    return PROA_OK;
}

PROA_KERNEL(data_norm_grad_cpu, data_norm_grad)
{
    if (a->x->dtype == PROA_F64) norm_grad_double(a);
    else norm_grad_float(a);
    return PROA_OK;
}
