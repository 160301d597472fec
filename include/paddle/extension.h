/* Custom operators in C++ with Paddle's interface, header-only: kernels on paddle::Tensor, and their
 * registration by PD_BUILD_OP. A library that includes this header links nothing; Proa loads it
 * (paddle.utils.cpp_extension, proa_load_extension). */
#ifndef PADDLE_EXTENSION_H
#define PADDLE_EXTENSION_H

#include <paddle/extension/dispatch.h>
#include <paddle/extension/error.h>
#include <paddle/extension/op.h>
#include <paddle/extension/operations.h>
#include <paddle/extension/tensor.h>
#include <paddle/extension/types.h>

#endif
