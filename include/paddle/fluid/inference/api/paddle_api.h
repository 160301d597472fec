/* Arrays of Paddle's older C++ interface, which its quantizer takes as samples, and its config: PaddleDType,
 * PaddleBuf, PaddleTensor, NativeConfig. C++11; paddle_inference_api.h includes it. */
#ifndef PROA_PADDLE_API_H
#define PROA_PADDLE_API_H

#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace paddle
{

enum PaddleDType { FLOAT32, INT64, INT32, UINT8, INT8, FLOAT16, BOOL, FLOAT64, BFLOAT16 };

/* A block of memory: its own, or the caller's, which must outlive it. A copy owns its bytes. */
class PaddleBuf
{
  public:
    PaddleBuf() = default;
    explicit PaddleBuf(size_t length) { Resize(length); }
    PaddleBuf(void *data, size_t length) : data_(data), length_(length) {}
    PaddleBuf(const PaddleBuf &other) { *this = other; }
    PaddleBuf(PaddleBuf &&other) noexcept { swap(other); }
    ~PaddleBuf() { Free(); }
    PaddleBuf &operator=(const PaddleBuf &other)
    {
        if (this == &other) return *this;
        PaddleBuf copy(other.length_);
        const char *from = static_cast<const char *>(other.data_);
        for (size_t i = 0; i < other.length_; i++) static_cast<char *>(copy.data_)[i] = from[i];
        swap(copy);
        return *this;
    }
    PaddleBuf &operator=(PaddleBuf &&other) noexcept
    {
        swap(other);
        return *this;
    }
    /* Makes it own at least `length` bytes; where it allocates them, the former contents are lost. */
    void Resize(size_t length)
    {
        if (owned_ && length <= length_) return;
        Free();
        data_ = std::malloc(length ? length : 1);
        if (!data_) throw std::bad_alloc();
        owned_ = true;
        length_ = length;
    }
    void Reset(void *data, size_t length)
    {
        Free();
        data_ = data;
        length_ = length;
    }
    bool empty() const { return length_ == 0; }
    void *data() const { return data_; }
    size_t length() const { return length_; }

  private:
    void swap(PaddleBuf &other) noexcept
    {
        std::swap(data_, other.data_);
        std::swap(length_, other.length_);
        std::swap(owned_, other.owned_);
    }
    void Free()
    {
        if (owned_) std::free(data_);
        data_ = nullptr;
        length_ = 0;
        owned_ = false;
    }

    void *data_ = nullptr;
    size_t length_ = 0;
    bool owned_ = false;
};

struct PaddleTensor {
    std::string name;
    std::vector<int> shape;
    PaddleBuf data;
    PaddleDType dtype = FLOAT32;
    std::vector<std::vector<size_t>> lod;
};

/* Settings of a predictor without optimizing passes. */
struct NativeConfig {
    std::string model_dir, prog_file, param_file;
    bool use_gpu = false;
    int device = 0;
    float fraction_of_gpu_memory = -1;
    bool specify_input_name = false;
    int cpu_math_library_num_threads_ = 1;
    void SetCpuMathLibraryNumThreads(int n) { cpu_math_library_num_threads_ = n; }
    int cpu_math_library_num_threads() const { return cpu_math_library_num_threads_; }
};

} // namespace paddle

#endif
