/* Calls of an operator's functions with a call's inputs and attributes: PD_KERNEL, PD_INFER_SHAPE and
 * PD_INFER_DTYPE turn a function of any of the allowed signatures into one of one type. */
#ifndef PADDLE_EXTENSION_FUNCTION_H
#define PADDLE_EXTENSION_FUNCTION_H

#include <paddle/extension/tensor.h>

#include <limits>

namespace paddle
{
namespace detail
{

/* ---- a call ------------------------------------------------------------------------------- */

/* Inputs as a function sees them: tensors, shapes or dtypes. */
template <typename T> struct Input {
    bool list, there;
    std::vector<T> values;
};

/* Arguments of one call. T is what inputs are handed over as. */
template <typename T> struct Call {
    const proa_extension_handle *op;
    const void *args;
    std::vector<Input<T>> inputs;

    proa_extension_value attribute(size_t parameter) const
    {
        proa_extension_value value;
        api().attribute(op, args, static_cast<int32_t>(parameter - inputs.size()), &value);
        return value;
    }
    Input<T> &input(size_t parameter, bool list)
    {
        PD_CHECK(parameter < inputs.size(), "parameter ", parameter + 1, " is a tensor, but there are ",
                 inputs.size(), " inputs");
        PD_CHECK(inputs[parameter].list == list, "parameter ", parameter + 1,
                 list ? " is a list, but the input is not: declare it by paddle::Vec"
                      : " is no list, but the input was declared by paddle::Vec");
        return inputs[parameter];
    }
};

/* ---- parameters --------------------------------------------------------------------------- */

/* Attribute types: their names, and conversion of a value. */
template <typename A> struct Attribute;
template <> struct Attribute<bool> {
    static const char *name() { return "bool"; }
    static bool get(const proa_extension_value &v) { return v.i != 0; }
};
template <> struct Attribute<int> {
    static const char *name() { return "int"; }
    static int get(const proa_extension_value &v)
    {
        PD_CHECK(v.i >= std::numeric_limits<int>::min() && v.i <= std::numeric_limits<int>::max(),
                 "attribute: ", v.i, " does not fit an int; declare it as int64_t");
        return static_cast<int>(v.i);
    }
};
template <> struct Attribute<int64_t> {
    static const char *name() { return "int64_t"; }
    static int64_t get(const proa_extension_value &v) { return v.i; }
};
template <> struct Attribute<float> {
    static const char *name() { return "float"; }
    static float get(const proa_extension_value &v) { return static_cast<float>(v.f); }
};
template <> struct Attribute<std::string> {
    static const char *name() { return "std::string"; }
    static std::string get(const proa_extension_value &v) { return v.s; }
};
template <> struct Attribute<std::vector<int>> {
    static const char *name() { return "std::vector<int>"; }
    static std::vector<int> get(const proa_extension_value &v)
    {
        std::vector<int> list;
        for (int64_t i = 0; i < v.count; i++) {
            proa_extension_value one = v;
            one.i = v.ints[i];
            list.push_back(Attribute<int>::get(one));
        }
        return list;
    }
};
template <> struct Attribute<std::vector<int64_t>> {
    static const char *name() { return "std::vector<int64_t>"; }
    static std::vector<int64_t> get(const proa_extension_value &v)
    {
        return std::vector<int64_t>(v.ints, v.ints + v.count);
    }
};
template <> struct Attribute<std::vector<float>> {
    static const char *name() { return "std::vector<float>"; }
    static std::vector<float> get(const proa_extension_value &v)
    {
        return std::vector<float>(v.floats, v.floats + v.count);
    }
};
template <> struct Attribute<std::vector<std::string>> {
    static const char *name() { return "std::vector<std::string>"; }
    static std::vector<std::string> get(const proa_extension_value &v)
    {
        return std::vector<std::string>(v.strings, v.strings + v.count);
    }
};

/* The value of parameter number `index`, of type A without const and reference. Inputs come first; what is
 * not specialized is an attribute. */
template <typename T, typename A> struct Parameter {
    static A get(Call<T> &call, size_t index) { return Attribute<A>::get(call.attribute(index)); }
};
template <typename T> struct Parameter<T, T> {
    static T &get(Call<T> &call, size_t index)
    {
        Input<T> &in = call.input(index, false);
        PD_CHECK(in.there, "parameter ", index + 1, " is absent: make it a paddle::optional");
        return in.values[0];
    }
};
template <typename T> struct Parameter<T, optional<T>> {
    static optional<T> get(Call<T> &call, size_t index)
    {
        Input<T> &in = call.input(index, false);
        return in.there ? optional<T>(in.values[0]) : optional<T>();
    }
};
template <typename T> struct Parameter<T, std::vector<T>> {
    static std::vector<T> &get(Call<T> &call, size_t index) { return call.input(index, true).values; }
};
template <typename T> struct Parameter<T, optional<std::vector<T>>> {
    static optional<std::vector<T>> get(Call<T> &call, size_t index)
    {
        Input<T> &in = call.input(index, true);
        return in.there ? optional<std::vector<T>>(in.values) : optional<std::vector<T>>();
    }
};

/* A shape has the type of an attribute: the position says which of the two it is. */
typedef std::vector<int64_t> Shape;
template <> struct Parameter<Shape, Shape> {
    static Shape get(Call<Shape> &call, size_t index)
    {
        if (index >= call.inputs.size()) return Attribute<Shape>::get(call.attribute(index));
        Input<Shape> &in = call.input(index, false);
        PD_CHECK(in.there, "parameter ", index + 1, " is absent: make it a paddle::optional");
        return in.values[0];
    }
};

template <typename A> struct Bare {
    typedef A type;
};
template <typename A> struct Bare<const A> {
    typedef A type;
};
template <typename A> struct Bare<A &> {
    typedef typename Bare<A>::type type;
};

/* Mutable references to optional inputs (in-place operators) need an object to refer to. */
template <typename T, typename A> struct Holder {
    typedef typename Bare<A>::type value;
    Holder(Call<T> &call, size_t index) : held(Parameter<T, value>::get(call, index)) {}
    value held;
    A get() { return held; }
};
template <typename T> struct Holder<T, T &> {
    Holder(Call<T> &call, size_t index) : held(Parameter<T, T>::get(call, index)) {}
    T &held;
    T &get() { return held; }
};
template <typename T> struct Holder<T, std::vector<T> &> {
    Holder(Call<T> &call, size_t index) : held(Parameter<T, std::vector<T>>::get(call, index)) {}
    std::vector<T> &held;
    std::vector<T> &get() { return held; }
};

/* ---- calling ------------------------------------------------------------------------------ */

template <size_t... I> struct Indices {
};
template <size_t N, size_t... I> struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {
};
template <size_t... I> struct MakeIndices<0, I...> {
    typedef Indices<I...> type;
};

/* A function and how it is called with the arguments of a Call<T>. */
template <typename T, typename F, F f> struct Caller;
template <typename T, typename R, typename... Args, R (*f)(Args...)> struct Caller<T, R (*)(Args...), f> {
    static const size_t parameters = sizeof...(Args);
    static R call(Call<T> &call) { return with(call, typename MakeIndices<sizeof...(Args)>::type()); }

  private:
    template <size_t... I> static R with(Call<T> &call, Indices<I...>)
    {
        (void)call;
        return f(Holder<T, Args>(call, I).get()...);
    }
};

/* ---- functions of one type ---------------------------------------------------------------- */

struct Kernel {
    size_t parameters;
    std::vector<Tensor> (*call)(Call<Tensor> &);
};
struct ShapeFunction {
    size_t parameters;
    std::vector<Shape> (*call)(Call<Shape> &);
};
struct DtypeFunction {
    size_t parameters;
    std::vector<DataType> (*call)(Call<DataType> &);
};

/* A kernel that returns its outputs, or changes its inputs and returns nothing. */
template <typename F, F f> struct MakeKernel;
template <typename... Args, std::vector<Tensor> (*f)(Args...)>
struct MakeKernel<std::vector<Tensor> (*)(Args...), f> {
    static Kernel make()
    {
        return {sizeof...(Args), Caller<Tensor, std::vector<Tensor> (*)(Args...), f>::call};
    }
};
template <typename... Args, void (*f)(Args...)> struct MakeKernel<void (*)(Args...), f> {
    static std::vector<Tensor> run(Call<Tensor> &call)
    {
        Caller<Tensor, void (*)(Args...), f>::call(call);
        return std::vector<Tensor>();
    }
    static Kernel make() { return {sizeof...(Args), run}; }
};
template <typename... Args, Tensor (*f)(Args...)> struct MakeKernel<Tensor (*)(Args...), f> {
    static std::vector<Tensor> run(Call<Tensor> &call)
    {
        return std::vector<Tensor>(1, Caller<Tensor, Tensor (*)(Args...), f>::call(call));
    }
    static Kernel make() { return {sizeof...(Args), run}; }
};

template <typename F, F f> struct MakeShape {
    typedef Caller<Shape, F, f> caller;
    static ShapeFunction make() { return {caller::parameters, caller::call}; }
};
template <typename F, F f> struct MakeDtype {
    typedef Caller<DataType, F, f> caller;
    static DtypeFunction make() { return {caller::parameters, caller::call}; }
};

} // namespace detail
} // namespace paddle

#define PD_KERNEL(...) (::paddle::detail::MakeKernel<decltype(&__VA_ARGS__), &__VA_ARGS__>::make())
#define PD_INFER_SHAPE(...) (::paddle::detail::MakeShape<decltype(&__VA_ARGS__), &__VA_ARGS__>::make())
#define PD_INFER_DTYPE(...) (::paddle::detail::MakeDtype<decltype(&__VA_ARGS__), &__VA_ARGS__>::make())

#endif
