// Custom operators in the style of Paddle 2.1: Tensor(PlaceType), reshape, mutable_data; several outputs,
// half floats and complex numbers.
#include "paddle/extension.h"

#include <vector>

template <typename data_t> void leaky(const data_t *x, data_t *out, int64_t n, float slope)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = x[i] > static_cast<data_t>(0) ? x[i] : static_cast<data_t>(x[i] * slope);
}

std::vector<paddle::Tensor> Leaky(const paddle::Tensor &x, float slope)
{
    paddle::Tensor out(paddle::PlaceType::kCPU);
    out.reshape(x.shape());
    PD_DISPATCH_FLOATING_AND_HALF_TYPES(
        x.type(), "leaky",
        ([&] { leaky<data_t>(x.data<data_t>(), out.mutable_data<data_t>(x.place()), x.size(), slope); }));
    return {out};
}

PD_BUILD_OP(old_leaky).Inputs({"X"}).Outputs({"Out"}).Attrs({"slope: float"}).SetKernelFn(PD_KERNEL(Leaky));

std::vector<paddle::Tensor> Halves(const paddle::Tensor &x)
{
    PD_CHECK(x.shape().size() > 0, "x has no dims");
    paddle::Tensor whole(paddle::PlaceType::kCPU), signs(paddle::PlaceType::kCPU);
    whole.reshape(x.shape());
    signs.reshape(x.shape());
    float *at = whole.mutable_data<float>();
    int32_t *sign = signs.mutable_data<int32_t>();
    const float *from = x.data<float>();
    for (int64_t i = 0; i < x.size(); i++) {
        at[i] = from[i] / 2;
        sign[i] = from[i] < 0;
    }
    return {whole, signs};
}

std::vector<std::vector<int64_t>> HalvesShape(std::vector<int64_t> x) { return {x, x}; }
std::vector<paddle::DataType> HalvesDtype(paddle::DataType x) { return {x, paddle::DataType::INT32}; }

PD_BUILD_OP(old_halves)
    .Inputs({"X"})
    .Outputs({"Half", "Sign"})
    .SetKernelFn(PD_KERNEL(Halves))
    .SetInferShapeFn(PD_INFER_SHAPE(HalvesShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(HalvesDtype));

std::vector<paddle::Tensor> HalvesGrad(const paddle::Tensor &d_half)
{
    paddle::Tensor d_x(paddle::PlaceType::kCPU, d_half.shape());
    const float *from = d_half.data<float>();
    float *at = d_x.mutable_data<float>();
    for (int64_t i = 0; i < d_half.size(); i++) at[i] = from[i] / 2;
    return {d_x};
}

PD_BUILD_GRAD_OP(old_halves)
    .Inputs({paddle::Grad("Half")})
    .Outputs({paddle::Grad("X")})
    .SetKernelFn(PD_KERNEL(HalvesGrad));

std::vector<paddle::Tensor> Twins(const paddle::Tensor &x)
{
    paddle::Tensor out = x + x;
    return {out, out};
}

std::vector<std::vector<int64_t>> TwinsShape(std::vector<int64_t> x) { return {x, x}; }
std::vector<paddle::DataType> TwinsDtype(paddle::DataType x) { return {x, x}; }

PD_BUILD_OP(old_twins)
    .Inputs({"X"})
    .Outputs({"A", "B"})
    .SetKernelFn(PD_KERNEL(Twins))
    .SetInferShapeFn(PD_INFER_SHAPE(TwinsShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(TwinsDtype));
