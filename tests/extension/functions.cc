// An operator for each of the functions on tensors: fn_call(x, y, name) is paddle::<name> of x, or of x
// and y.
#include "paddle/extension.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace
{

using paddle::Tensor;

typedef std::function<Tensor(const Tensor &, const Tensor &)> Function;

#define UNARY(name)                                                            \
    {                                                                          \
#name, [](const Tensor &x, const Tensor &) { return paddle::name(x); } \
    }
#define BINARY(name)                                                               \
    {                                                                              \
#name, [](const Tensor &x, const Tensor &y) { return paddle::name(x, y); } \
    }
#define CASE(name, ...)                                                      \
    {                                                                        \
#name, [](const Tensor &x, const Tensor &y) { (void)y; return __VA_ARGS__; } \
    }

const std::map<std::string, Function> functions = {
    UNARY(abs),
    UNARY(acos),
    UNARY(asin),
    UNARY(atan),
    UNARY(ceil),
    UNARY(cos),
    UNARY(cosh),
    UNARY(erf),
    UNARY(exp),
    UNARY(expm1),
    UNARY(floor),
    UNARY(isfinite),
    UNARY(isinf),
    UNARY(isnan),
    UNARY(log),
    UNARY(log10),
    UNARY(log1p),
    UNARY(log2),
    UNARY(logsigmoid),
    UNARY(reciprocal),
    UNARY(relu),
    UNARY(round),
    UNARY(rsqrt),
    UNARY(sigmoid),
    UNARY(sign),
    UNARY(silu),
    UNARY(sin),
    UNARY(sinh),
    UNARY(sqrt),
    UNARY(square),
    UNARY(tan),
    UNARY(tanh),
    BINARY(add),
    BINARY(subtract),
    BINARY(multiply),
    BINARY(divide),
    BINARY(maximum),
    BINARY(minimum),
    BINARY(remainder),
    BINARY(floor_divide),
    BINARY(elementwise_pow),
    BINARY(equal),
    BINARY(not_equal),
    BINARY(less_than),
    BINARY(less_equal),
    BINARY(greater_than),
    BINARY(greater_equal),
    CASE(logical_and, paddle::logical_and(x > y, x < y)),
    CASE(logical_or, paddle::logical_or(x > y, x < y)),
    CASE(logical_xor, paddle::logical_xor(x >= y, x <= y)),
    CASE(logical_not, paddle::logical_not(x == y)),
    CASE(scale, paddle::scale(x, 2, 1, false)),
    CASE(pow, paddle::pow(x, 3)),
    CASE(clip, paddle::clip(x, 0.2, 0.5)),
    CASE(where, paddle::where(x > y, x, y)),
    CASE(cast, x.cast(paddle::DataType::INT32)),
    CASE(operators, (1 + x * 2 - y / 4) / x - (3 - y) * 0.5 + 2 / x + -y * (x - 1)),
    CASE(sum, paddle::sum(x)),
    CASE(sum_axis, paddle::sum(x, {1}, paddle::DataType::FLOAT64, true)),
    CASE(mean, paddle::mean(x, {0})),
    CASE(max, paddle::max(x, {-1}, true)),
    CASE(min, paddle::min(x)),
    CASE(prod, paddle::prod(x, {0, 1})),
    CASE(matmul, paddle::matmul(x, y, false, true)),
    CASE(softmax, paddle::softmax(x, 0)),
    CASE(reshape, paddle::reshape(x, {3, -1})),
    CASE(transpose, paddle::transpose(x, {1, 0})),
    CASE(unsqueeze, paddle::unsqueeze(x, {0, 2})),
    CASE(squeeze, paddle::squeeze(paddle::unsqueeze(x, {1}), {1})),
    CASE(expand, paddle::expand(x, {4, 2, 3})),
    CASE(tile, paddle::tile(x, {2, 1})),
    CASE(flip, paddle::flip(x, {1})),
    CASE(concat, paddle::concat({x, y}, 1)),
    CASE(stack, paddle::stack({x, y}, 1)),
    CASE(split, paddle::split(x, {1, 2}, 1)[1]),
    CASE(slice, x.slice(1, 2)),
    CASE(gather, paddle::gather(x, paddle::full({2}, 1, paddle::DataType::INT64), 1)),
    CASE(zeros, paddle::zeros({2}) + paddle::ones({2}) * 3),
    CASE(full_like, paddle::full_like(x, 1.5)),
    CASE(zeros_like, paddle::zeros_like(x, paddle::DataType::INT64)),
    CASE(ones_like, paddle::ones_like(x)),
    CASE(copy_to, x.copy_to(paddle::CPUPlace(), true)),
};

std::vector<Tensor> CallFunction(const Tensor &x, const Tensor &y, const std::string &name)
{
    PD_CHECK(functions.count(name), "there is no function ", name);
    return {functions.at(name)(x, y)};
}

// The result may have any shape: eager calls take it as it is.
std::vector<std::vector<int64_t>> AnyShape(const std::vector<int64_t> &x, const std::vector<int64_t> &)
{
    return {x};
}
std::vector<paddle::DataType> AnyDtype(const paddle::DataType &x, const paddle::DataType &) { return {x}; }

} // namespace

PD_BUILD_OP(fn_call)
    .Inputs({"X", "Y"})
    .Outputs({"Out"})
    .Attrs({"name: std::string"})
    .SetKernelFn(PD_KERNEL(CallFunction))
    .SetInferShapeFn(PD_INFER_SHAPE(AnyShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(AnyDtype));
