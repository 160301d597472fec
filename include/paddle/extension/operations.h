/* Functions on paddle::Tensor: creation, and operators of Proa by their types in Paddle's format. Nothing is
 * recorded for a gradient: that is the gradient operator's. */
#ifndef PADDLE_EXTENSION_OPERATIONS_H
#define PADDLE_EXTENSION_OPERATIONS_H

#include <paddle/extension/tensor.h>

#include <proa/wire.h>

#include <algorithm>

namespace paddle
{

/* A number of any type. */
class Scalar
{
  public:
    Scalar(double value) : value_(value) {}
    Scalar(float value) : value_(value) {}
    Scalar(int value) : value_(value) {}
    Scalar(int64_t value) : value_(static_cast<double>(value)) {}
    Scalar(bool value) : value_(value) {}
    template <typename T> T to() const { return static_cast<T>(value_); }

  private:
    double value_;
};

namespace detail
{

/* A call of an operator in Paddle's format. */
class Operation
{
  public:
    explicit Operation(const char *type) : desc_() { desc_.type = type; }

    Operation &input(const char *slot, const Tensor &t) { return input(slot, std::vector<Tensor>(1, t)); }
    Operation &input(const char *slot, const std::vector<Tensor> &ts)
    {
        inputs_.push_back(add(slot, ts.size(), "in"));
        for (const Tensor &t : ts) tensors_.push_back(t.handle());
        return *this;
    }
    Operation &output(const char *slot, size_t n = 1)
    {
        outputs_.push_back(add(slot, n, "out"));
        tensors_.resize(tensors_.size() + n, nullptr);
        n_out_ += outputs_.size() == 1 ? n : 0;
        return *this;
    }
    Operation &attr(const char *name, bool v) { return number(name, PROA_WIRE_BOOLEAN, v, 0); }
    Operation &attr(const char *name, int v) { return number(name, PROA_WIRE_INT, v, 0); }
    Operation &attr(const char *name, int64_t v) { return number(name, PROA_WIRE_LONG, v, 0); }
    Operation &attr(const char *name, float v) { return number(name, PROA_WIRE_FLOAT, 0, v); }
    Operation &attr(const char *name, DataType v);
    Operation &attr(const char *name, const std::vector<int64_t> &v)
    {
        lists_.push_back(v);
        proa_op_attr a = proa_op_attr();
        a.name = name;
        a.type = PROA_WIRE_LONGS;
        a.count = static_cast<int64_t>(v.size());
        attrs_.push_back(a);
        return *this;
    }
    /* Runs it and returns the tensors of the first output slot. */
    std::vector<Tensor> all();
    Tensor one() { return all().at(0); }

  private:
    struct Slot {
        const char *name;
        std::vector<std::string> vars;
    };

    Slot add(const char *slot, size_t n, const char *kind)
    {
        Slot made = {slot, std::vector<std::string>()};
        for (size_t i = 0; i < n; i++) made.vars.push_back(kind + std::to_string(names_++));
        return made;
    }
    Operation &number(const char *name, int type, int64_t i, double f)
    {
        proa_op_attr a = proa_op_attr();
        a.name = name;
        a.type = type;
        a.i = i;
        a.f = f;
        attrs_.push_back(a);
        return *this;
    }
    static std::vector<proa_op_slot> slots_of(const std::vector<Slot> &from,
                                              std::vector<std::vector<const char *>> *names)
    {
        std::vector<proa_op_slot> slots;
        names->reserve(from.size()); /* the slots point into it */
        for (const Slot &slot : from) {
            std::vector<const char *> vars;
            for (const std::string &var : slot.vars) vars.push_back(var.c_str());
            names->push_back(vars);
            proa_op_slot made = {slot.name, static_cast<int64_t>(vars.size()), names->back().data()};
            slots.push_back(made);
        }
        return slots;
    }

    proa_op_desc desc_;
    std::vector<Slot> inputs_, outputs_;
    std::vector<proa_tensor *> tensors_; /* of inputs, then NULL for outputs */
    std::vector<proa_op_attr> attrs_;
    std::vector<std::vector<int64_t>> lists_; /* of the list attributes, in their order */
    size_t names_ = 0, n_out_ = 0;
};

inline std::vector<Tensor> Operation::all()
{
    std::vector<std::vector<const char *>> in, out;
    std::vector<proa_op_slot> inputs = slots_of(inputs_, &in), outputs = slots_of(outputs_, &out);
    std::vector<proa_named_tensor> named;
    for (const Slot &slot : inputs_)
        for (const std::string &var : slot.vars) named.push_back({var.c_str(), tensors_[named.size()]});
    size_t first = named.size();
    for (const Slot &slot : outputs_)
        for (const std::string &var : slot.vars) named.push_back({var.c_str(), nullptr});
    for (size_t i = 0, list = 0; i < attrs_.size(); i++)
        if (attrs_[i].type == PROA_WIRE_LONGS) attrs_[i].ints = lists_[list++].data();
    desc_.inputs = inputs.data();
    desc_.n_inputs = static_cast<int64_t>(inputs.size());
    desc_.outputs = outputs.data();
    desc_.n_outputs = static_cast<int64_t>(outputs.size());
    desc_.attrs = attrs_.data();
    desc_.n_attrs = static_cast<int64_t>(attrs_.size());
    check(api().call(&desc_, named.data(), static_cast<int64_t>(named.size())));
    std::vector<Tensor> results;
    for (size_t i = first; i < named.size(); i++) {
        Tensor made = Tensor::adopt(named[i].tensor);
        if (i < first + n_out_) results.push_back(made);
    }
    return results;
}

/* Paddle's numbers of dtypes (VarType.Type), which attributes hold. */
inline int wire_of(DataType dtype)
{
    switch (static_cast<proa_dtype>(dtype)) {
#define PROA_X(NAME, name, bytes, wire) \
    case PROA_##NAME: return wire;
        PROA_DTYPES(PROA_X)
#undef PROA_X
    default: return -1;
    }
}
inline Operation &Operation::attr(const char *name, DataType v) { return attr(name, wire_of(v)); }

inline Tensor unary(const char *type, const Tensor &x)
{
    return Operation(type).input("X", x).output("Out").one();
}
inline Tensor binary(const char *type, const Tensor &x, const Tensor &y)
{
    return Operation(type).input("X", x).input("Y", y).output("Out").attr("axis", -1).one();
}
inline Tensor reduce(const char *type, const Tensor &x, const std::vector<int64_t> &axis, bool keepdim)
{
    return Operation(type)
        .input("X", x)
        .output("Out")
        .attr("dim", axis)
        .attr("keep_dim", keepdim)
        .attr("reduce_all", axis.empty())
        .one();
}
inline Tensor shaped(const char *type, const Tensor &x, const char *attr, const std::vector<int64_t> &value)
{
    return Operation(type).input("X", x).output("Out").attr(attr, value).one();
}

} // namespace detail

/* ---- creation ----------------------------------------------------------------------------- */

inline Tensor empty(const std::vector<int64_t> &shape, DataType dtype = DataType::FLOAT32,
                    const Place & = CPUPlace())
{
    return Tensor::empty(shape, dtype);
}
inline Tensor full(const std::vector<int64_t> &shape, const Scalar &value, DataType dtype = DataType::FLOAT32,
                   const Place & = CPUPlace())
{
    return detail::Operation("fill_constant")
        .output("Out")
        .attr("shape", shape)
        .attr("value", value.to<float>())
        .attr("dtype", dtype)
        .one();
}
inline Tensor zeros(const std::vector<int64_t> &shape, DataType dtype = DataType::FLOAT32,
                    const Place &place = CPUPlace())
{
    return full(shape, 0, dtype, place);
}
inline Tensor ones(const std::vector<int64_t> &shape, DataType dtype = DataType::FLOAT32,
                   const Place &place = CPUPlace())
{
    return full(shape, 1, dtype, place);
}
inline Tensor empty_like(const Tensor &x, DataType dtype = DataType::UNDEFINED, const Place & = Place())
{
    return Tensor::empty(x.shape(), dtype == DataType::UNDEFINED ? x.dtype() : dtype);
}
inline Tensor full_like(const Tensor &x, const Scalar &value, DataType dtype = DataType::UNDEFINED,
                        const Place & = Place())
{
    return full(x.shape(), value, dtype == DataType::UNDEFINED ? x.dtype() : dtype);
}
inline Tensor zeros_like(const Tensor &x, DataType dtype = DataType::UNDEFINED, const Place &place = Place())
{
    return full_like(x, 0, dtype, place);
}
inline Tensor ones_like(const Tensor &x, DataType dtype = DataType::UNDEFINED, const Place &place = Place())
{
    return full_like(x, 1, dtype, place);
}

/* ---- elementwise ---------------------------------------------------------------------------- */

#define PADDLE_UNARY_(name, type) \
    inline Tensor name(const Tensor &x) { return detail::unary(#type, x); }
PADDLE_UNARY_(abs, abs)
PADDLE_UNARY_(acos, acos)
PADDLE_UNARY_(asin, asin)
PADDLE_UNARY_(atan, atan)
PADDLE_UNARY_(ceil, ceil)
PADDLE_UNARY_(cos, cos)
PADDLE_UNARY_(cosh, cosh)
PADDLE_UNARY_(erf, erf)
PADDLE_UNARY_(exp, exp)
PADDLE_UNARY_(expm1, expm1)
PADDLE_UNARY_(floor, floor)
PADDLE_UNARY_(isfinite, isfinite_v2)
PADDLE_UNARY_(isinf, isinf_v2)
PADDLE_UNARY_(isnan, isnan_v2)
PADDLE_UNARY_(log, log)
PADDLE_UNARY_(log10, log10)
PADDLE_UNARY_(log1p, log1p)
PADDLE_UNARY_(log2, log2)
PADDLE_UNARY_(logical_not, logical_not)
PADDLE_UNARY_(logsigmoid, logsigmoid)
PADDLE_UNARY_(reciprocal, reciprocal)
PADDLE_UNARY_(relu, relu)
PADDLE_UNARY_(round, round)
PADDLE_UNARY_(rsqrt, rsqrt)
PADDLE_UNARY_(sigmoid, sigmoid)
PADDLE_UNARY_(sign, sign)
PADDLE_UNARY_(silu, silu)
PADDLE_UNARY_(sin, sin)
PADDLE_UNARY_(sinh, sinh)
PADDLE_UNARY_(sqrt, sqrt)
PADDLE_UNARY_(square, square)
PADDLE_UNARY_(tan, tan)
PADDLE_UNARY_(tanh, tanh)
#undef PADDLE_UNARY_

#define PADDLE_BINARY_(name, type) \
    inline Tensor name(const Tensor &x, const Tensor &y) { return detail::binary(#type, x, y); }
PADDLE_BINARY_(add, elementwise_add)
PADDLE_BINARY_(subtract, elementwise_sub)
PADDLE_BINARY_(multiply, elementwise_mul)
PADDLE_BINARY_(divide, elementwise_div)
PADDLE_BINARY_(maximum, elementwise_max)
PADDLE_BINARY_(minimum, elementwise_min)
PADDLE_BINARY_(remainder, elementwise_mod)
PADDLE_BINARY_(floor_divide, elementwise_floordiv)
PADDLE_BINARY_(elementwise_pow, elementwise_pow)
PADDLE_BINARY_(equal, equal)
PADDLE_BINARY_(not_equal, not_equal)
PADDLE_BINARY_(less_than, less_than)
PADDLE_BINARY_(less_equal, less_equal)
PADDLE_BINARY_(greater_than, greater_than)
PADDLE_BINARY_(greater_equal, greater_equal)
PADDLE_BINARY_(logical_and, logical_and)
PADDLE_BINARY_(logical_or, logical_or)
PADDLE_BINARY_(logical_xor, logical_xor)
#undef PADDLE_BINARY_

inline Tensor scale(const Tensor &x, const Scalar &by, float bias = 0, bool bias_after_scale = true)
{
    return detail::Operation("scale")
        .input("X", x)
        .output("Out")
        .attr("scale", by.to<float>())
        .attr("bias", bias)
        .attr("bias_after_scale", bias_after_scale)
        .one();
}
inline Tensor pow(const Tensor &x, const Scalar &exponent)
{
    return detail::Operation("pow").input("X", x).output("Out").attr("factor", exponent.to<float>()).one();
}
inline Tensor clip(const Tensor &x, const Scalar &low, const Scalar &high)
{
    return detail::Operation("clip")
        .input("X", x)
        .output("Out")
        .attr("min", low.to<float>())
        .attr("max", high.to<float>())
        .one();
}
inline Tensor where(const Tensor &condition, const Tensor &x, const Tensor &y)
{
    return detail::Operation("where")
        .input("Condition", condition)
        .input("X", x)
        .input("Y", y)
        .output("Out")
        .one();
}
inline Tensor cast(const Tensor &x, DataType dtype)
{
    return detail::Operation("cast")
        .input("X", x)
        .output("Out")
        .attr("in_dtype", x.dtype())
        .attr("out_dtype", dtype)
        .one();
}
inline Tensor Tensor::cast(DataType dtype) const { return paddle::cast(*this, dtype); }

inline Tensor operator+(const Tensor &x, const Tensor &y) { return add(x, y); }
inline Tensor operator-(const Tensor &x, const Tensor &y) { return subtract(x, y); }
inline Tensor operator*(const Tensor &x, const Tensor &y) { return multiply(x, y); }
inline Tensor operator/(const Tensor &x, const Tensor &y) { return divide(x, y); }
inline Tensor operator+(const Tensor &x, const Scalar &y) { return scale(x, 1, y.to<float>()); }
inline Tensor operator-(const Tensor &x, const Scalar &y) { return scale(x, 1, -y.to<float>()); }
inline Tensor operator*(const Tensor &x, const Scalar &y) { return scale(x, y); }
inline Tensor operator/(const Tensor &x, const Scalar &y) { return divide(x, full_like(x, y)); }
inline Tensor operator+(const Scalar &x, const Tensor &y) { return y + x; }
inline Tensor operator-(const Scalar &x, const Tensor &y) { return scale(y, -1, x.to<float>()); }
inline Tensor operator*(const Scalar &x, const Tensor &y) { return y * x; }
inline Tensor operator/(const Scalar &x, const Tensor &y) { return divide(full_like(y, x), y); }
inline Tensor operator-(const Tensor &x) { return scale(x, -1); }
inline Tensor operator<(const Tensor &x, const Tensor &y) { return less_than(x, y); }
inline Tensor operator<=(const Tensor &x, const Tensor &y) { return less_equal(x, y); }
inline Tensor operator>(const Tensor &x, const Tensor &y) { return greater_than(x, y); }
inline Tensor operator>=(const Tensor &x, const Tensor &y) { return greater_equal(x, y); }
inline Tensor operator==(const Tensor &x, const Tensor &y) { return equal(x, y); }
inline Tensor operator!=(const Tensor &x, const Tensor &y) { return not_equal(x, y); }

/* ---- reductions and products ---------------------------------------------------------------- */

inline Tensor sum(const Tensor &x, const std::vector<int64_t> &axis = {},
                  DataType dtype = DataType::UNDEFINED, bool keepdim = false)
{
    return detail::reduce("reduce_sum", dtype == DataType::UNDEFINED ? x : cast(x, dtype), axis, keepdim);
}
inline Tensor mean(const Tensor &x, const std::vector<int64_t> &axis = {}, bool keepdim = false)
{
    return detail::reduce("reduce_mean", x, axis, keepdim);
}
inline Tensor max(const Tensor &x, const std::vector<int64_t> &axis = {}, bool keepdim = false)
{
    return detail::reduce("reduce_max", x, axis, keepdim);
}
inline Tensor min(const Tensor &x, const std::vector<int64_t> &axis = {}, bool keepdim = false)
{
    return detail::reduce("reduce_min", x, axis, keepdim);
}
inline Tensor prod(const Tensor &x, const std::vector<int64_t> &axis = {}, bool keepdim = false)
{
    return detail::reduce("reduce_prod", x, axis, keepdim);
}
inline Tensor matmul(const Tensor &x, const Tensor &y, bool transpose_x = false, bool transpose_y = false)
{
    return detail::Operation("matmul_v2")
        .input("X", x)
        .input("Y", y)
        .output("Out")
        .attr("trans_x", transpose_x)
        .attr("trans_y", transpose_y)
        .one();
}
inline Tensor softmax(const Tensor &x, int axis = -1)
{
    return detail::Operation("softmax").input("X", x).output("Out").attr("axis", axis).one();
}

/* ---- shapes --------------------------------------------------------------------------------- */

inline Tensor reshape(const Tensor &x, const std::vector<int64_t> &shape)
{
    return detail::shaped("reshape2", x, "shape", shape);
}
inline Tensor transpose(const Tensor &x, const std::vector<int64_t> &perm)
{
    return detail::shaped("transpose2", x, "axis", perm);
}
inline Tensor squeeze(const Tensor &x, const std::vector<int64_t> &axis = {})
{
    return detail::shaped("squeeze2", x, "axes", axis);
}
inline Tensor unsqueeze(const Tensor &x, const std::vector<int64_t> &axis)
{
    return detail::shaped("unsqueeze2", x, "axes", axis);
}
inline Tensor expand(const Tensor &x, const std::vector<int64_t> &shape)
{
    return detail::shaped("expand_v2", x, "shape", shape);
}
inline Tensor tile(const Tensor &x, const std::vector<int64_t> &repeats)
{
    return detail::shaped("tile", x, "repeat_times", repeats);
}
inline Tensor flip(const Tensor &x, const std::vector<int64_t> &axis)
{
    return detail::shaped("flip", x, "axis", axis);
}
inline Tensor concat(const std::vector<Tensor> &x, const Scalar &axis = 0)
{
    return detail::Operation("concat").input("X", x).output("Out").attr("axis", axis.to<int>()).one();
}
inline Tensor stack(const std::vector<Tensor> &x, int axis = 0)
{
    return detail::Operation("stack").input("X", x).output("Y").attr("axis", axis).one();
}
inline std::vector<Tensor> split(const Tensor &x, const std::vector<int64_t> &sections,
                                 const Scalar &axis = 0)
{
    return detail::Operation("split")
        .input("X", x)
        .output("Out", sections.size())
        .attr("sections", sections)
        .attr("num", 0)
        .attr("axis", axis.to<int>())
        .all();
}
inline Tensor gather(const Tensor &x, const Tensor &index, const Scalar &axis = 0)
{
    return detail::Operation("gather")
        .input("X", x)
        .input("Index", index)
        .output("Out")
        .attr("axis", axis.to<int>())
        .one();
}
/* Rows begin to end of the first dim, copied. */
inline Tensor Tensor::slice(int64_t begin, int64_t end) const
{
    return detail::Operation("slice")
        .input("Input", *this)
        .output("Out")
        .attr("axes", std::vector<int64_t>(1, 0))
        .attr("starts", std::vector<int64_t>(1, begin))
        .attr("ends", std::vector<int64_t>(1, end))
        .one();
}

/* Paddle declares its functions in a namespace of their own, and names most of them in its outer one. */
namespace experimental = ::paddle;

} // namespace paddle

#endif
