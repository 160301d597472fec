/* paddle::Tensor of custom operators: a reference to a dense tensor of Proa. */
#ifndef PADDLE_EXTENSION_TENSOR_H
#define PADDLE_EXTENSION_TENSOR_H

#include <paddle/extension/error.h>
#include <paddle/extension/host.h>
#include <paddle/extension/types.h>

#include <utility>
#include <vector>

namespace paddle
{

/* Copies share the elements. A tensor made by Tensor(place) has a shape and no elements until mutable_data
 * gives it some. Elements are row-major. */
class Tensor
{
  public:
    Tensor() : tensor_(nullptr), numel_(0) {}
    explicit Tensor(const Place &, const std::vector<int64_t> &shape = std::vector<int64_t>())
        : tensor_(nullptr), numel_(0), shape_(shape)
    {
    }
    explicit Tensor(PlaceType, const std::vector<int64_t> &shape = std::vector<int64_t>())
        : tensor_(nullptr), numel_(0), shape_(shape)
    {
    }
    Tensor(const Tensor &from)
        : tensor_(from.tensor_), numel_(from.numel_), shape_(from.shape_), name_(from.name_)
    {
        if (tensor_) detail::api().retain(tensor_);
    }
    Tensor(Tensor &&from) noexcept
        : tensor_(from.tensor_), numel_(from.numel_), shape_(std::move(from.shape_)),
          name_(std::move(from.name_))
    {
        from.tensor_ = nullptr;
    }
    Tensor &operator=(Tensor from) noexcept
    {
        std::swap(tensor_, from.tensor_);
        std::swap(numel_, from.numel_);
        std::swap(shape_, from.shape_);
        std::swap(name_, from.name_);
        return *this;
    }
    ~Tensor() { reset(); }

    /* ---- what it is ---- */
    bool initialized() const { return tensor_ != nullptr; }
    bool is_initialized() const { return initialized(); }
    bool defined() const { return initialized(); }
    bool is_dense_tensor() const { return true; }
    bool is_contiguous() const { return true; }
    bool is_cpu() const { return !tensor_ || detail::api().is_on_cpu(tensor_); }
    bool is_gpu() const { return !is_cpu(); }
    Place place() const { return is_cpu() ? PlaceType::kCPU : PlaceType::kGPU; }
    DataType dtype() const
    {
        return tensor_ ? static_cast<DataType>(detail::api().dtype(tensor_)) : DataType::UNDEFINED;
    }
    DataType type() const { return dtype(); }
    DataLayout layout() const { return DataLayout::NCHW; }
    std::vector<int64_t> shape() const
    {
        if (!tensor_) return shape_;
        proa_ints dims = detail::api().shape(tensor_);
        return std::vector<int64_t>(dims.at, dims.at + dims.count);
    }
    std::vector<int64_t> dims() const { return shape(); }
    std::vector<int64_t> strides() const
    {
        std::vector<int64_t> dims = shape(), strides(dims.size(), 1);
        for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
        return strides;
    }
    /* Kept, since kernels ask for it in the condition of their loops. */
    int64_t numel() const { return tensor_ ? numel_ : count(shape_.data(), shape_.size()); }
    int64_t size() const { return numel(); }
    const std::string &name() const { return name_; }
    void set_name(const std::string &name) { name_ = name; }

    /* ---- elements ---- */
    template <typename T> const T *data() const
    {
        return static_cast<const T *>(elements(detail::DtypeOf<T>::value));
    }
    template <typename T> T *data() { return static_cast<T *>(elements(detail::DtypeOf<T>::value)); }
    void *data() const { return elements(dtype()); }
    /* The elements to write to; makes them if there are none of that dtype. */
    template <typename T> T *mutable_data()
    {
        if (dtype() != detail::DtypeOf<T>::value) allocate(detail::DtypeOf<T>::value);
        return data<T>();
    }
    template <typename T> T *mutable_data(const Place &place)
    {
        PD_CHECK(place != Place(PlaceType::kGPU), "mutable_data: Proa's custom operators run on the CPU");
        return mutable_data<T>();
    }

    /* ---- other tensors of it ---- */
    /* Before there are elements, the shape that they will have; afterwards their number must stay. */
    void reshape(const std::vector<int64_t> &shape)
    {
        shape_ = shape;
        if (tensor_) *this = Tensor::adopt(detail::check(detail::api().view(tensor_, ints_of(shape))));
    }
    Tensor cast(DataType dtype) const;
    Tensor slice(int64_t begin, int64_t end) const;
    Tensor copy_to(const Place &place, bool blocking = true) const
    {
        (void)blocking;
        PD_CHECK(place != Place(PlaceType::kGPU), "copy_to: Proa's custom operators run on the CPU");
        return adopt(detail::check(detail::api().copy(handle())));
    }
    template <typename T> Tensor copy_to(const Place &place) const { return copy_to(place); }
    /* Takes a copy of the elements of src. */
    void copy_(const Tensor &src, const Place &place, bool blocking = true)
    {
        *this = src.copy_to(place, blocking);
    }
    void reset()
    {
        if (tensor_) detail::api().release(tensor_);
        tensor_ = nullptr;
    }

    /* ---- for the header's own use ---- */
    /* Takes over one reference. */
    static Tensor adopt(proa_tensor *made)
    {
        Tensor t;
        t.tensor_ = made;
        if (!made) return t;
        proa_ints dims = detail::api().shape(made);
        t.numel_ = count(dims.at, static_cast<size_t>(dims.count));
        return t;
    }
    static Tensor borrow(proa_tensor *t) { return adopt(detail::api().retain(t)); }
    static Tensor empty(const std::vector<int64_t> &shape, DataType dtype)
    {
        return adopt(detail::check(detail::api().empty(ints_of(shape), static_cast<proa_dtype>(dtype))));
    }
    proa_tensor *handle() const
    {
        PD_CHECK(tensor_, "The tensor has no elements yet: call mutable_data, or make it by paddle::empty");
        return tensor_;
    }

  private:
    static int64_t count(const int64_t *dims, size_t n)
    {
        int64_t product = 1;
        for (size_t i = 0; i < n; i++) product *= dims[i];
        return product;
    }
    static proa_ints ints_of(const std::vector<int64_t> &list)
    {
        proa_ints ints = {static_cast<int64_t>(list.size()), list.data(), nullptr, nullptr};
        return ints;
    }
    void allocate(DataType dtype)
    {
        *this = empty(shape(), dtype); /* the name goes: it was the old elements' */
    }
    void *elements(DataType wanted) const
    {
        PD_CHECK(dtype() == wanted, "The tensor's elements are ", dtype(), ", not ", wanted);
        return detail::api().data(handle());
    }

    proa_tensor *tensor_;
    int64_t numel_;              /* of tensor_ */
    std::vector<int64_t> shape_; /* while there are no elements */
    std::string name_;
};

/* ---- absent tensors ----------------------------------------------------------------------- */

struct none_t {
};
const none_t none = none_t();

/* An optional argument: a Tensor, or a list of them. */
template <typename T> class optional
{
  public:
    optional() : there_(false) {}
    optional(none_t) : there_(false) {}
    optional(const T &value) : there_(true), value_(value) {}
    explicit operator bool() const { return there_; }
    bool is_initialized() const { return there_; }
    const T &get() const
    {
        PD_CHECK(there_, "The optional argument was not given");
        return value_;
    }
    T &get()
    {
        PD_CHECK(there_, "The optional argument was not given");
        return value_;
    }
    const T *get_ptr() const { return there_ ? &value_ : nullptr; }
    T *get_ptr() { return there_ ? &value_ : nullptr; }
    const T &operator*() const { return get(); }
    T &operator*() { return get(); }
    const T *operator->() const { return &get(); }
    T *operator->() { return &get(); }
    void reset()
    {
        there_ = false;
        value_ = T();
    }

  private:
    bool there_;
    T value_;
};

} // namespace paddle

#endif
