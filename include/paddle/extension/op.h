/* Registration of custom operators: PD_BUILD_OP, PD_BUILD_GRAD_OP, PD_BUILD_DOUBLE_GRAD_OP. */
#ifndef PADDLE_EXTENSION_OP_H
#define PADDLE_EXTENSION_OP_H

#include <paddle/extension/function.h>

#include <list>
#include <unordered_map>

namespace paddle
{

/* Names of slots: the gradient of a variable, a list, an argument that may be absent, and, in a gradient of a
 * gradient, the one that goes back to an input of the operator (New(Grad("X"))). */
inline std::string Grad(const std::string &name, int order = 1)
{
    std::string made = name;
    for (int i = 0; i < order; i++) made += "@GRAD";
    return made;
}
inline std::string Vec(const std::string &name) { return name + "@VECTOR"; }
inline std::string Optional(const std::string &name) { return name + "@OPTIONAL"; }
inline std::string New(const std::string &name) { return name + "@NEW"; }

namespace detail
{

/* ---- what is collected ---------------------------------------------------------------------- */

/* An operator, or the gradient of one: what the chain of setters was given, then the description that Proa
 * reads. They are in a list, so that their addresses stay. */
struct Operator {
    std::string name; /* with _grad */
    int order;        /* 0: the operator, 1: its gradient, 2: the gradient's gradient */
    std::vector<std::string> inputs, outputs, attrs;
    std::unordered_map<std::string, std::string> in_place; /* input → output */
    Kernel kernel;
    ShapeFunction infer_shape;
    DtypeFunction infer_dtype;

    std::list<std::string> texts; /* parts of attrs */
    std::vector<proa_extension_slot> input_slots, output_slots;
    std::vector<proa_extension_attr> attr_types;
    proa_extension_op description;
    proa_extension_handle *handle;
};

PADDLE_EXTENSION_LOCAL inline std::list<Operator> &operators()
{
    static std::list<Operator> all;
    return all;
}

/* ---- calls from Proa -------------------------------------------------------------------------- */

inline bool is_none(const proa_tensor *t) { return !t || t == api().none; }

template <typename T> struct Reader;
template <> struct Reader<Tensor> {
    static Tensor read(proa_tensor *t) { return Tensor::borrow(t); }
};
template <> struct Reader<Shape> {
    static Shape read(proa_tensor *t)
    {
        proa_ints dims = api().shape(t);
        return Shape(dims.at, dims.at + dims.count);
    }
};
template <> struct Reader<DataType> {
    static DataType read(proa_tensor *t) { return static_cast<DataType>(api().dtype(t)); }
};

template <typename T> Call<T> read_call(const Operator &op, const void *args)
{
    Call<T> call = {op.handle, args, std::vector<Input<T>>()};
    for (size_t i = 0; i < op.inputs.size(); i++) {
        proa_tensors list = api().input(op.handle, args, static_cast<int32_t>(i));
        Input<T> in = {(op.input_slots[i].flags & PROA_SLOT_LIST) != 0, list.count > 0, std::vector<T>()};
        for (int64_t k = 0; k < list.count; k++) {
            if (is_none(list.at[k])) in.there = false;
            else in.values.push_back(Reader<T>::read(list.at[k]));
        }
        call.inputs.push_back(in);
    }
    return call;
}

/* Turns the exception that is being handled into an error of Proa's. */
inline proa_status report()
{
    try {
        throw;
    } catch (const HostError &e) {
        return api().fail(e.code(), e.what());
    } catch (const std::exception &e) {
        return api().fail(PROA_ERR_IO, e.what());
    } catch (...) {
        return api().fail(PROA_ERR_IO, "an exception that is no std::exception");
    }
}

inline proa_status run(const Operator &op, const void *args, proa_run *how)
{
    proa_extension_frame frame;
    proa_status status = api().begin(op.handle, args, &frame);
    std::vector<Tensor> made;
    std::vector<proa_tensor *> handles;
    if (status == PROA_OK) {
        try {
            Call<Tensor> call = read_call<Tensor>(op, args);
            made = op.kernel.call(call);
            for (const Tensor &t : made) handles.push_back(t.handle());
        } catch (...) {
            status = report();
        }
    }
    proa_tensors results = {static_cast<int64_t>(handles.size()), handles.data()};
    return api().end(op.handle, args, how, status == PROA_OK ? &results : nullptr, &frame);
}

inline proa_status infer(const Operator &op, const void *args, void *metas)
{
    try {
        std::vector<Shape> shapes;
        std::vector<DataType> dtypes;
        if (op.infer_shape.call) {
            Call<Shape> call = read_call<Shape>(op, args);
            shapes = op.infer_shape.call(call);
        }
        if (op.infer_dtype.call) {
            Call<DataType> call = read_call<DataType>(op, args);
            dtypes = op.infer_dtype.call(call);
        }
        PD_CHECK(!op.infer_shape.call || !op.infer_dtype.call || shapes.size() == dtypes.size(), op.name,
                 ": SetInferShapeFn gives ", shapes.size(), " shapes, SetInferDtypeFn ", dtypes.size(),
                 " dtypes");
        std::vector<proa_ints> dims;
        for (const Shape &shape : shapes) {
            proa_ints one = {static_cast<int64_t>(shape.size()), shape.data(), nullptr, nullptr};
            dims.push_back(one);
        }
        std::vector<proa_dtype> types;
        for (DataType dtype : dtypes) types.push_back(static_cast<proa_dtype>(dtype));
        proa_extension_metas inferred = {static_cast<int64_t>(dims.empty() ? types.size() : dims.size()),
                                         op.infer_shape.call ? dims.data() : nullptr,
                                         op.infer_dtype.call ? types.data() : nullptr};
        return api().infer(op.handle, args, metas, &inferred);
    } catch (...) {
        return report();
    }
}

/* The functions of one operator, which Proa calls without an argument that says which: Tag is a type of its
 * own for each operator. */
template <typename Tag, int order> struct Doors {
    static Operator *op;
    static proa_status run(const void *args, proa_run *how) { return detail::run(*op, args, how); }
    static proa_status infer(const void *args, void *metas) { return detail::infer(*op, args, metas); }
    static proa_status differentiate(const void *args, void *grads)
    {
        return api().differentiate(op->handle, args, grads);
    }
};
template <typename Tag, int order> Operator *Doors<Tag, order>::op = nullptr;

} // namespace detail

/* ---- the chain of setters ------------------------------------------------------------------------ */

/* The value of PD_BUILD_OP(name): .Inputs({…}).Outputs({…}).Attrs({"axis: int", …}).SetInplaceMap({{"X",
 * "Out"}})
 * .SetKernelFn(PD_KERNEL(f)).SetInferShapeFn(PD_INFER_SHAPE(f)).SetInferDtypeFn(PD_INFER_DTYPE(f)). */
class OpMetaInfoBuilder
{
  public:
    template <typename Tag, int order> static OpMetaInfoBuilder declare(const char *name)
    {
        detail::operators().push_back(detail::Operator());
        detail::Operator &op = detail::operators().back();
        op.name = name;
        for (int i = 0; i < order; i++) op.name += "_grad";
        op.order = order;
        op.description.run = detail::Doors<Tag, order>::run;
        op.description.infer = detail::Doors<Tag, order>::infer;
        op.description.differentiate = detail::Doors<Tag, order>::differentiate;
        detail::Doors<Tag, order>::op = &op;
        return OpMetaInfoBuilder(&op);
    }
    OpMetaInfoBuilder &Inputs(std::vector<std::string> inputs)
    {
        op_->inputs = std::move(inputs);
        return *this;
    }
    OpMetaInfoBuilder &Outputs(std::vector<std::string> outputs)
    {
        op_->outputs = std::move(outputs);
        return *this;
    }
    OpMetaInfoBuilder &Attrs(std::vector<std::string> attrs)
    {
        op_->attrs = std::move(attrs);
        return *this;
    }
    OpMetaInfoBuilder &SetInplaceMap(std::unordered_map<std::string, std::string> map)
    {
        op_->in_place = std::move(map);
        return *this;
    }
    OpMetaInfoBuilder &SetKernelFn(detail::Kernel kernel)
    {
        op_->kernel = kernel;
        return *this;
    }
    OpMetaInfoBuilder &SetInferShapeFn(detail::ShapeFunction function)
    {
        op_->infer_shape = function;
        return *this;
    }
    OpMetaInfoBuilder &SetInferDtypeFn(detail::DtypeFunction function)
    {
        op_->infer_dtype = function;
        return *this;
    }

  private:
    explicit OpMetaInfoBuilder(detail::Operator *op) : op_(op) {}
    detail::Operator *op_;
};

/* ---- the description ------------------------------------------------------------------------- */

namespace detail
{

inline proa_extension_slot slot_of(const std::string &name)
{
    proa_extension_slot slot = {name.c_str(), 0, -1};
    if (name.find("@VECTOR") != std::string::npos) slot.flags |= PROA_SLOT_LIST;
    if (name.find("@OPTIONAL") != std::string::npos) slot.flags |= PROA_SLOT_OPTIONAL;
    return slot;
}

/* "axis: int" → name and type. */
inline proa_extension_attr attr_of(Operator &op, const std::string &text)
{
    size_t colon = text.find(':');
    PD_CHECK(colon != std::string::npos, op.name, ": attribute '", text, "' is not spelled \"name: type\"");
    std::string parts[2] = {text.substr(0, colon), text.substr(colon + 1)};
    const char *at[2];
    for (int i = 0; i < 2; i++) {
        size_t first = parts[i].find_first_not_of(' '), last = parts[i].find_last_not_of(' ');
        op.texts.push_back(first == std::string::npos ? "" : parts[i].substr(first, last - first + 1));
        at[i] = op.texts.back().c_str();
    }
    proa_extension_attr attr = {at[0], at[1]};
    return attr;
}

inline void check_parameters(const Operator &op, const char *which, size_t given, bool all)
{
    size_t inputs = op.inputs.size(), whole = inputs + op.attrs.size();
    PD_CHECK(given == whole || (!all && given == inputs), op.name, ": the function of ", which, " has ",
             given, " parameters, expected ", whole, " (", inputs, " inputs, ", op.attrs.size(),
             " attributes)");
}

/* Fills in the description of a collected operator. */
inline void describe(Operator &op)
{
    PD_CHECK(op.kernel.call, op.name, ": there is no kernel: call .SetKernelFn(PD_KERNEL(function))");
    check_parameters(op, "SetKernelFn", op.kernel.parameters, true);
    if (op.infer_shape.call) check_parameters(op, "SetInferShapeFn", op.infer_shape.parameters, false);
    if (op.infer_dtype.call) check_parameters(op, "SetInferDtypeFn", op.infer_dtype.parameters, false);
    for (const std::string &name : op.inputs) op.input_slots.push_back(slot_of(name));
    for (const std::string &name : op.outputs) op.output_slots.push_back(slot_of(name));
    for (const std::string &text : op.attrs) op.attr_types.push_back(attr_of(op, text));
    for (size_t i = 0; i < op.inputs.size(); i++) {
        std::unordered_map<std::string, std::string>::const_iterator to = op.in_place.find(op.inputs[i]);
        for (size_t k = 0; to != op.in_place.end() && k < op.outputs.size(); k++)
            if (op.outputs[k] == to->second) op.output_slots[k].in_place = static_cast<int32_t>(i);
    }
    proa_extension_op &d = op.description;
    d.name = op.name.c_str();
    d.inputs = op.input_slots.data();
    d.outputs = op.output_slots.data();
    d.attrs = op.attr_types.data();
    d.n_inputs = static_cast<int32_t>(op.inputs.size());
    d.n_outputs = static_cast<int32_t>(op.outputs.size());
    d.n_attrs = static_cast<int32_t>(op.attrs.size());
    d.infers = op.infer_shape.call || op.infer_dtype.call;
    d.handle = &op.handle;
    for (Operator &other : operators())
        if (other.order == op.order + 1 && other.name == op.name + "_grad") d.gradient = &other.description;
}

inline void register_all(void (*see)(const char *, void *), void *context)
{
    for (Operator &op : operators())
        if (!op.description.name) describe(op);
    for (Operator &op : operators()) {
        if (op.order > 0) continue;
        if (!op.handle) check(api().register_op(&op.description));
        see(op.name.c_str(), context);
    }
}

} // namespace detail
} // namespace paddle

/* Proa calls this when it has loaded the library. */
extern "C" __attribute__((weak, visibility("default"))) proa_status proa_extension_entry(
    const proa_extension_api *api, void (*see)(const char *name, void *context), void *context)
{
    if (api->abi != PROA_EXTENSION_ABI)
        return api->fail(PROA_ERR_BAD_STATE,
                         "load_extension: the library was built for another version of Proa's "
                         "interface; build it again");
    try {
        paddle::detail::host() = api;
        paddle::detail::register_all(see, context);
    } catch (...) {
        return paddle::detail::report();
    }
    return PROA_OK;
}

#define PD_BUILD_(name, order)                                                               \
    namespace                                                                                \
    {                                                                                        \
    struct PD_op_##name##_##order {                                                          \
    };                                                                                       \
    }                                                                                        \
    static ::paddle::OpMetaInfoBuilder __attribute__((unused)) PD_builder_##name##_##order = \
        ::paddle::OpMetaInfoBuilder::declare<PD_op_##name##_##order, order>(#name)
#define PD_BUILD_OP(name) PD_BUILD_(name, 0)
#define PD_BUILD_GRAD_OP(name) PD_BUILD_(name, 1)
#define PD_BUILD_DOUBLE_GRAD_OP(name) PD_BUILD_(name, 2)

#endif
