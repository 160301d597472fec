// Custom operators that fail when they are called, each in its own way.
#include "paddle/extension.h"

#include <stdexcept>
#include <vector>

std::vector<paddle::Tensor> Throws(const paddle::Tensor &)
{
    throw std::runtime_error("the kernel is out of order");
}
std::vector<paddle::Tensor> Checks(const paddle::Tensor &x)
{
    PD_CHECK(x.numel() == 3, "x has ", x.numel(), " elements, expected 3");
    return {x};
}
std::vector<paddle::Tensor> TooMany(const paddle::Tensor &x) { return {x, x}; }
std::vector<paddle::Tensor> Empty(const paddle::Tensor &) { return {paddle::Tensor()}; }
std::vector<paddle::Tensor> OtherDtype(const paddle::Tensor &x)
{
    return {paddle::empty(x.shape(), paddle::DataType::INT32)};
}
std::vector<paddle::Tensor> WrongType(const paddle::Tensor &x)
{
    x.data<double>();
    return {x};
}
std::vector<paddle::Tensor> Multiplies(const paddle::Tensor &x)
{
    return {paddle::matmul(x, paddle::ones({7, 7}))};
}
std::vector<paddle::Tensor> ThrowsNumber(const paddle::Tensor &) { throw 3; }
std::vector<paddle::Tensor> Two(const paddle::Tensor &x, const paddle::Tensor &) { return {x}; }
std::vector<paddle::Tensor> Fine(const paddle::Tensor &x) { return {x * 2}; }
std::vector<paddle::Tensor> BadGrad(const paddle::Tensor &d_out) { return {d_out.slice(0, 1)}; }

#define MISTAKE(name, function) \
    PD_BUILD_OP(name).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(function))
MISTAKE(bad_throws, Throws);
MISTAKE(bad_checks, Checks);
MISTAKE(bad_too_many, TooMany);
MISTAKE(bad_empty, Empty);
MISTAKE(bad_other_dtype, OtherDtype);
MISTAKE(bad_wrong_type, WrongType);
MISTAKE(bad_multiplies, Multiplies);
MISTAKE(bad_throws_number, ThrowsNumber);
PD_BUILD_OP(bad_infers).Inputs({"X", "Y"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(Two));
MISTAKE(bad_gradient, Fine);
PD_BUILD_GRAD_OP(bad_gradient)
    .Inputs({paddle::Grad("Out")})
    .Outputs({paddle::Grad("X")})
    .SetKernelFn(PD_KERNEL(BadGrad));
