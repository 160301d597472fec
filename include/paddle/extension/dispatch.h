/* Selection of a kernel's element type by a dtype: PD_DISPATCH_…_TYPES(dtype, "name", [&] { … data_t … }). */
#ifndef PADDLE_EXTENSION_DISPATCH_H
#define PADDLE_EXTENSION_DISPATCH_H

#include <paddle/extension/error.h>
#include <paddle/extension/types.h>

#define PD_CASE_(dtype, type, ...)    \
    case ::paddle::DataType::dtype: { \
        typedef type data_t;          \
        __VA_ARGS__();                \
        break;                        \
    }
#define PD_CASES_FLOATING_(...)           \
    PD_CASE_(FLOAT32, float, __VA_ARGS__) \
    PD_CASE_(FLOAT64, double, __VA_ARGS__)
#define PD_CASES_HALF_(...) PD_CASE_(FLOAT16, ::paddle::float16, __VA_ARGS__)
#define PD_CASES_INTEGRAL_(...)           \
    PD_CASE_(INT32, int32_t, __VA_ARGS__) \
    PD_CASE_(INT64, int64_t, __VA_ARGS__) \
    PD_CASE_(INT8, int8_t, __VA_ARGS__)   \
    PD_CASE_(UINT8, uint8_t, __VA_ARGS__) \
    PD_CASE_(INT16, int16_t, __VA_ARGS__)
#define PD_CASES_COMPLEX_(...)                            \
    PD_CASE_(COMPLEX64, ::paddle::complex64, __VA_ARGS__) \
    PD_CASE_(COMPLEX128, ::paddle::complex128, __VA_ARGS__)
#define PD_CASES_OTHER_(...)          \
    PD_CASE_(BOOL, bool, __VA_ARGS__) \
    PD_CASE_(BFLOAT16, ::paddle::bfloat16, __VA_ARGS__)

#define PD_DISPATCH_(dtype, name, cases)                                                             \
    do {                                                                                             \
        ::paddle::DataType pd_dtype_ = (dtype);                                                      \
        switch (pd_dtype_) {                                                                         \
            cases default                                                                            \
                : PD_THROW("function " #name " is not implemented for data type `", pd_dtype_, "`"); \
        }                                                                                            \
    } while (0)

#define PD_DISPATCH_FLOATING_TYPES(dtype, name, ...) \
    PD_DISPATCH_(dtype, name, PD_CASES_FLOATING_(__VA_ARGS__))
#define PD_DISPATCH_FLOATING_AND_HALF_TYPES(dtype, name, ...) \
    PD_DISPATCH_(dtype, name, PD_CASES_FLOATING_(__VA_ARGS__) PD_CASES_HALF_(__VA_ARGS__))
#define PD_DISPATCH_INTEGRAL_TYPES(dtype, name, ...) \
    PD_DISPATCH_(dtype, name, PD_CASES_INTEGRAL_(__VA_ARGS__))
#define PD_DISPATCH_COMPLEX_TYPES(dtype, name, ...) PD_DISPATCH_(dtype, name, PD_CASES_COMPLEX_(__VA_ARGS__))
#define PD_DISPATCH_FLOATING_AND_INTEGRAL_TYPES(dtype, name, ...) \
    PD_DISPATCH_(dtype, name, PD_CASES_FLOATING_(__VA_ARGS__) PD_CASES_INTEGRAL_(__VA_ARGS__))
#define PD_DISPATCH_FLOATING_AND_COMPLEX_TYPES(dtype, name, ...) \
    PD_DISPATCH_(dtype, name, PD_CASES_FLOATING_(__VA_ARGS__) PD_CASES_COMPLEX_(__VA_ARGS__))
#define PD_DISPATCH_FLOATING_AND_INTEGRAL_AND_COMPLEX_TYPES(dtype, name, ...)    \
    PD_DISPATCH_(dtype, name,                                                    \
                 PD_CASES_FLOATING_(__VA_ARGS__) PD_CASES_INTEGRAL_(__VA_ARGS__) \
                     PD_CASES_COMPLEX_(__VA_ARGS__))

#endif
