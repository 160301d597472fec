// Custom operators in the style of Paddle 2.6: each uses another part of the interface. Sources compile
// against Paddle's own headers, too.
#include "paddle/extension.h"

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

// ---- cube: a gradient, and a gradient of it, by functions on tensors -------------------------------

std::vector<paddle::Tensor> Cube(const paddle::Tensor &x) { return {x * x * x}; }

std::vector<paddle::Tensor> CubeGrad(const paddle::Tensor &x, const paddle::Tensor &d_out)
{
    return {paddle::experimental::scale(x * x, 3) * d_out};
}

std::vector<paddle::Tensor> CubeGradGrad(const paddle::Tensor &x, const paddle::Tensor &d_out,
                                         const paddle::Tensor &dd_x)
{
    return {paddle::experimental::scale(x, 6) * d_out * dd_x, paddle::experimental::scale(x * x, 3) * dd_x};
}

PD_BUILD_OP(ext_cube).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(Cube));
PD_BUILD_GRAD_OP(ext_cube)
    .Inputs({"X", paddle::Grad("Out")})
    .Outputs({paddle::Grad("X")})
    .SetKernelFn(PD_KERNEL(CubeGrad));
PD_BUILD_DOUBLE_GRAD_OP(ext_cube)
    .Inputs({"X", paddle::Grad("Out"), paddle::Grad(paddle::Grad("X"))})
    .Outputs({paddle::New(paddle::Grad("X")), paddle::Grad(paddle::Grad("Out"))})
    .SetKernelFn(PD_KERNEL(CubeGradGrad));

// ---- join: a list of inputs, an attribute, functions that infer ------------------------------------

std::vector<paddle::Tensor> Join(const std::vector<paddle::Tensor> &xs, int64_t axis)
{
    return {paddle::concat(xs, axis)};
}

std::vector<paddle::Tensor> JoinGrad(const std::vector<paddle::Tensor> &xs, const paddle::Tensor &d_out,
                                     int64_t axis)
{
    std::vector<int64_t> lengths;
    for (const auto &x : xs) lengths.push_back(x.shape()[axis]);
    return paddle::split(d_out, lengths, axis);
}

std::vector<std::vector<int64_t>> JoinShape(const std::vector<std::vector<int64_t>> &shapes,
                                            const int64_t &axis)
{
    std::vector<int64_t> shape = shapes[0];
    for (size_t i = 1; i < shapes.size(); i++) {
        bool open = shape[axis] < 0 || shapes[i][axis] < 0;
        shape[axis] = open ? -1 : shape[axis] + shapes[i][axis];
    }
    return {shape};
}

std::vector<paddle::DataType> JoinDtype(const std::vector<paddle::DataType> &dtypes) { return {dtypes[0]}; }

PD_BUILD_OP(ext_join)
    .Inputs({paddle::Vec("Xs")})
    .Outputs({"Out"})
    .Attrs({"axis: int64_t"})
    .SetKernelFn(PD_KERNEL(Join))
    .SetInferShapeFn(PD_INFER_SHAPE(JoinShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(JoinDtype));
PD_BUILD_GRAD_OP(ext_join)
    .Inputs({paddle::Vec("Xs"), paddle::Grad("Out")})
    .Outputs({paddle::Grad(paddle::Vec("Xs"))})
    .Attrs({"axis: int64_t"})
    .SetKernelFn(PD_KERNEL(JoinGrad));

// ---- describe: attributes of every type, which come back as numbers --------------------------------

std::vector<paddle::Tensor> Describe(const paddle::Tensor &x, bool b, int i, float f, int64_t l,
                                     const std::string &s, const std::vector<int> &is,
                                     const std::vector<float> &fs, const std::vector<int64_t> &ls,
                                     const std::vector<std::string> &ss)
{
    auto out = paddle::empty({9}, paddle::DataType::FLOAT64, x.place());
    double *at = out.data<double>();
    at[0] = b;
    at[1] = i;
    at[2] = f;
    at[3] = static_cast<double>(l);
    at[4] = static_cast<double>(s.size());
    at[5] = std::accumulate(is.begin(), is.end(), 0);
    at[6] = std::accumulate(fs.begin(), fs.end(), 0.F);
    at[7] = static_cast<double>(std::accumulate(ls.begin(), ls.end(), int64_t(0)));
    at[8] = 0;
    for (const auto &text : ss) at[8] = at[8] * 10 + static_cast<double>(text.size());
    return {out};
}

std::vector<std::vector<int64_t>> DescribeShape(const std::vector<int64_t> &) { return {{9}}; }
std::vector<paddle::DataType> DescribeDtype(const paddle::DataType &) { return {paddle::DataType::FLOAT64}; }

PD_BUILD_OP(ext_describe)
    .Inputs({"X"})
    .Outputs({"Out"})
    .Attrs({"b: bool", "i: int", "f: float", "l: int64_t", "s: std::string", "ints: std::vector<int>",
            "floats: std::vector<float>", "longs: std::vector<int64_t>", "texts: std::vector<std::string>"})
    .SetKernelFn(PD_KERNEL(Describe))
    .SetInferShapeFn(PD_INFER_SHAPE(DescribeShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(DescribeDtype));

// ---- add_maybe: an input that may be absent ---------------------------------------------------------

std::vector<paddle::Tensor> AddMaybe(const paddle::Tensor &x, const paddle::optional<paddle::Tensor> &y)
{
    return {y ? x + y.get() : x};
}

std::vector<paddle::Tensor> AddMaybeGrad(const paddle::Tensor &x, const paddle::Tensor &d_out)
{
    return {d_out};
}

std::vector<std::vector<int64_t>> AddMaybeShape(const std::vector<int64_t> &x,
                                                const paddle::optional<std::vector<int64_t>> &)
{
    return {x};
}
std::vector<paddle::DataType> AddMaybeDtype(const paddle::DataType &x,
                                            const paddle::optional<paddle::DataType> &)
{
    return {x};
}

PD_BUILD_OP(ext_add_maybe)
    .Inputs({"X", paddle::Optional("Y")})
    .Outputs({"Out"})
    .SetKernelFn(PD_KERNEL(AddMaybe))
    .SetInferShapeFn(PD_INFER_SHAPE(AddMaybeShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(AddMaybeDtype));
PD_BUILD_GRAD_OP(ext_add_maybe)
    .Inputs({"X", paddle::Grad("Out")})
    .Outputs({paddle::Grad("X")})
    .SetKernelFn(PD_KERNEL(AddMaybeGrad));

// ---- double_: in place, without a result ------------------------------------------------------------

void Double(paddle::Tensor &x)
{
    PD_DISPATCH_FLOATING_TYPES(x.dtype(), "Double", ([&] {
                                   data_t *at = x.data<data_t>();
                                   for (int64_t i = 0; i < x.numel(); i++) at[i] *= 2;
                               }));
}

void DoubleGrad(paddle::Tensor &d_out) { Double(d_out); }

PD_BUILD_OP(ext_double_)
    .Inputs({"X"})
    .Outputs({"Out"})
    .SetInplaceMap({{"X", "Out"}})
    .SetKernelFn(PD_KERNEL(Double));
PD_BUILD_GRAD_OP(ext_double_)
    .Inputs({paddle::Grad("Out")})
    .Outputs({paddle::Grad("X")})
    .SetInplaceMap({{paddle::Grad("Out"), paddle::Grad("X")}})
    .SetKernelFn(PD_KERNEL(DoubleGrad));

// ---- pieces: a list of outputs -----------------------------------------------------------------------

std::vector<paddle::Tensor> Pieces(const paddle::Tensor &x, int n)
{
    std::vector<paddle::Tensor> pieces;
    int64_t rows = x.shape()[0] / n;
    for (int i = 0; i < n; i++) pieces.push_back(x.slice(i * rows, (i + 1) * rows));
    return pieces;
}

std::vector<std::vector<int64_t>> PiecesShape(const std::vector<int64_t> &x, const int &n)
{
    std::vector<int64_t> shape = x;
    if (shape[0] > 0) shape[0] /= n;
    return std::vector<std::vector<int64_t>>(n, shape);
}
std::vector<paddle::DataType> PiecesDtype(const paddle::DataType &x, const int &n)
{
    return std::vector<paddle::DataType>(n, x);
}

PD_BUILD_OP(ext_pieces)
    .Inputs({"X"})
    .Outputs({paddle::Vec("Out")})
    .Attrs({"n: int"})
    .SetKernelFn(PD_KERNEL(Pieces))
    .SetInferShapeFn(PD_INFER_SHAPE(PiecesShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(PiecesDtype));
