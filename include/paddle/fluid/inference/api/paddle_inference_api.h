/* Paddle's C++ interface for inference, header-only over proa/inference.h: C++11, link with -lproa.
 * Errors of Proa are thrown as a std::runtime_error whose what() is Proa's message; a device or engine that
 * there is not is only reported on stderr. One file, because it is the one that Paddle's users include. */
#ifndef PROA_PADDLE_INFERENCE_API_H
#define PROA_PADDLE_INFERENCE_API_H

#include "paddle_mkldnn_quantizer_config.h"

#include <proa/cipher.h>
#include <proa/inference.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

namespace paddle
{

/* A float16 element as its 16 bits, without arithmetic. */
struct float16 {
    uint16_t x;
};
struct bfloat16 {
    uint16_t x;
};

namespace proa_detail
{

/* Throws this thread's error, if there is one. */
inline void check()
{
    if (proa_error() == PROA_OK) return;
    std::string message = proa_error_message();
    proa_clear_error();
    throw std::runtime_error(message);
}

/* Clears the error that an earlier call of the C interface left, so that this one runs. */
inline void begin() { proa_clear_error(); }

inline std::vector<int64_t> shape_of(const proa_tensor *t)
{
    const int64_t *dims = proa_shape_of(t);
    return std::vector<int64_t>(dims, dims + proa_ndim(t));
}

} // namespace proa_detail
} // namespace paddle

namespace paddle_infer
{

using paddle::bfloat16;
using paddle::float16;

using DataType = paddle::PaddleDType;
using paddle::BFLOAT16;
using paddle::BOOL;
using paddle::FLOAT16;
using paddle::FLOAT32;
using paddle::FLOAT64;
using paddle::INT32;
using paddle::INT64;
using paddle::INT8;
using paddle::UINT8;
enum class PlaceType { kUNK = -1, kCPU, kGPU, kXPU, kNPU, kIPU, kCUSTOM };
enum class DataLayout { kUNK = -1, kAny, kNHWC, kNCHW };

namespace detail
{

template <typename T> struct dtype_of;
#define PROA_PADDLE_DTYPES(X)        \
    X(float, PROA_F32, FLOAT32, 4)   \
    X(int64_t, PROA_I64, INT64, 8)   \
    X(int32_t, PROA_I32, INT32, 4)   \
    X(uint8_t, PROA_U8, UINT8, 1)    \
    X(int8_t, PROA_I8, INT8, 1)      \
    X(float16, PROA_F16, FLOAT16, 2) \
    X(bool, PROA_BOOL, BOOL, 1)      \
    X(double, PROA_F64, FLOAT64, 8)  \
    X(bfloat16, PROA_BF16, BFLOAT16, 2)
#define PROA_X(T, dtype, NAME, bytes)               \
    template <> struct dtype_of<T> {                \
        static proa_dtype value() { return dtype; } \
    };
PROA_PADDLE_DTYPES(PROA_X)
#undef PROA_X

inline DataType data_type(proa_dtype dtype)
{
#define PROA_X(T, of, NAME, bytes) \
    if (dtype == (of)) return NAME;
    PROA_PADDLE_DTYPES(PROA_X)
#undef PROA_X
    throw std::runtime_error(std::string("DataType has no name for ") + proa_dtype_name(dtype));
}

struct predictor_free {
    void operator()(proa_predictor *p) const { proa_predictor_free(p); }
};
using predictor_ptr = std::unique_ptr<proa_predictor, predictor_free>;

inline PlaceType place_of(const char *device)
{
    if (std::strcmp(device, "cpu") == 0) return PlaceType::kCPU;
    return std::strncmp(device, "gpu", 3) == 0 ? PlaceType::kGPU : PlaceType::kCUSTOM;
}

} // namespace detail

/* Bytes of one element. */
inline int GetNumBytesOfDataType(DataType dtype)
{
#define PROA_X(T, of, NAME, bytes) \
    if (dtype == NAME) return bytes;
    PROA_PADDLE_DTYPES(PROA_X)
#undef PROA_X
    throw std::runtime_error("GetNumBytesOfDataType: there is no such DataType");
}

inline std::string GetVersion() { return std::string("version: ") + proa_version() + "\n"; }
/* Does nothing: Proa has none of Paddle's flags. */
inline void UpdateDllFlag(const char *, const char *) {}
inline std::tuple<int, int, int> GetTrtCompileVersion() { return std::make_tuple(0, 0, 0); }
inline std::tuple<int, int, int> GetTrtRuntimeVersion() { return std::make_tuple(0, 0, 0); }

/* ---- handles ---------------------------------------------------------------------------- */

/* An input or output of a predictor, which it keeps alive. */
class Tensor
{
  public:
    Tensor(const Tensor &) = delete;
    Tensor &operator=(const Tensor &) = delete;

    void Reshape(const std::vector<int> &shape)
    {
        std::vector<int64_t> dims(shape.begin(), shape.end());
        start();
        proa_handle_reshape(handle_, ints(dims));
        paddle::proa_detail::check();
    }

    template <typename T> void CopyFromCpu(const T *data)
    {
        start();
        proa_handle_copy_in(handle_, data, detail::dtype_of<T>::value());
        paddle::proa_detail::check();
    }

    template <typename T> void CopyToCpu(T *data) const
    {
        start();
        proa_handle_copy_out(handle_, data, detail::dtype_of<T>::value());
        paddle::proa_detail::check();
    }

    /* Copies the elements to data, then calls callback(parameter), both on the calling thread. */
    template <typename T> void CopyToCpuAsync(T *data, void (*callback)(void *), void *parameter) const
    {
        CopyToCpu(data);
        if (callback) callback(parameter);
    }
    template <typename T> void CopyToCpuAsync(T *data, void *stream) const
    {
        (void)stream;
        CopyToCpu(data);
    }

    template <typename T> T *mutable_data(PlaceType place)
    {
        (void)place; /* ignored: data are on the predictor's device */
        start();
        T *at = static_cast<T *>(proa_handle_mutable(handle_, detail::dtype_of<T>::value()));
        paddle::proa_detail::check();
        return at;
    }

    template <typename T> T *data(PlaceType *place, int *size) const
    {
        start();
        T *at = static_cast<T *>(proa_handle_data(handle_, detail::dtype_of<T>::value()));
        paddle::proa_detail::check();
        proa_scope scope = proa_scope_enter();
        *size = static_cast<int>(proa_numel(proa_handle_tensor(handle_)));
        proa_scope_leave(&scope);
        *place = this->place();
        return at;
    }

    /* The memory stays the caller's, and must live as long as runs use it. */
    template <typename T>
    void ShareExternalData(const T *data, const std::vector<int> &shape, PlaceType place,
                           DataLayout layout = DataLayout::kNCHW)
    {
        (void)place, (void)layout;
        std::vector<int64_t> dims(shape.begin(), shape.end());
        start();
        proa_handle_share(handle_, const_cast<T *>(data), ints(dims), detail::dtype_of<T>::value());
        paddle::proa_detail::check();
    }

    std::vector<int> shape() const
    {
        int64_t dims[PROA_MAX_DIMS];
        int rank = proa_handle_shape(handle_, dims);
        return rank < 0 ? std::vector<int>() : std::vector<int>(dims, dims + rank);
    }

    void SetLoD(const std::vector<std::vector<size_t>> &lod)
    {
        std::vector<std::vector<int64_t>> numbers;
        std::vector<proa_ints> levels;
        for (const auto &level : lod) numbers.emplace_back(level.begin(), level.end());
        for (const auto &level : numbers) levels.push_back(ints(level));
        start();
        proa_handle_set_lod(handle_, levels.data(), static_cast<int64_t>(levels.size()));
        paddle::proa_detail::check();
    }

    std::vector<std::vector<size_t>> lod() const
    {
        std::vector<std::vector<size_t>> levels;
        for (int64_t i = 0; i < proa_handle_lod_levels(handle_); i++) {
            proa_ints level = proa_handle_lod(handle_, i);
            levels.emplace_back(level.at, level.at + level.count);
        }
        return levels;
    }

    const std::string &name() const { return name_; }

    DataType type() const
    {
        proa_dtype dtype = proa_handle_dtype(handle_);
        return dtype == PROA_NODTYPE ? FLOAT32 : detail::data_type(dtype);
    }

    PlaceType place() const { return detail::place_of(proa_handle_device(handle_)); }

  private:
    friend class Predictor;
    Tensor(proa_predictor *owner, proa_handle *handle)
        : owner_(proa_predictor_retain(owner)), handle_(handle), name_(proa_handle_name(handle))
    {
    }
    static void start() { paddle::proa_detail::begin(); }
    static proa_ints ints(const std::vector<int64_t> &v)
    {
        proa_ints list = {static_cast<int64_t>(v.size()), v.data(), nullptr, nullptr};
        return list;
    }

    detail::predictor_ptr owner_;
    proa_handle *handle_;
    std::string name_;
};

} // namespace paddle_infer

namespace paddle
{

/* ---- passes ----------------------------------------------------------------------------- */

/* Optimizing passes that run; a view of a config. */
class PaddlePassBuilder
{
  public:
    explicit PaddlePassBuilder(proa_config *config) : config_(config) {}
    std::vector<std::string> AllPasses() const
    {
        std::vector<std::string> names;
        for (int64_t i = 0; i < proa_config_count(config_, PROA_CONFIG_PASSES); i++)
            names.push_back(proa_config_name(config_, PROA_CONFIG_PASSES, i));
        return names;
    }
    void AppendPass(const std::string &name) { InsertPass(static_cast<size_t>(INT64_MAX), name); }
    void InsertPass(size_t at, const std::string &name)
    {
        proa_detail::begin();
        proa_config_insert(config_, PROA_CONFIG_PASSES, static_cast<int64_t>(at), name.c_str());
        proa_detail::check();
    }
    void DeletePass(const std::string &name)
    {
        proa_detail::begin();
        proa_config_remove(config_, PROA_CONFIG_PASSES, name.c_str());
        proa_detail::check();
    }
    void ClearPasses()
    {
        proa_detail::begin();
        proa_config_clear(config_, PROA_CONFIG_PASSES);
        proa_detail::check();
    }
    void SetPasses(const std::vector<std::string> &names)
    {
        ClearPasses();
        for (const auto &name : names) AppendPass(name);
    }
    void TurnOnDebug() { proa_config_set(config_, PROA_CONFIG_IR_DEBUG, 1); }
    std::string DebugString() const
    {
        std::string text = "Passes to apply:\n";
        for (const auto &name : AllPasses()) text += "  - " + name + "\n";
        return text;
    }

  private:
    proa_config *config_;
};

/* ---- configs ---------------------------------------------------------------------------- */

/* Settings of a predictor: the model and how it runs. docs/inference.md says which switches change a run. */
class AnalysisConfig
{
  public:
    enum class Precision { kFloat32 = 0, kInt8, kHalf, kBf16 };

    AnalysisConfig() : config_(make()) {}
    explicit AnalysisConfig(const std::string &model_dir) : config_(make()) { SetModel(model_dir); }
    AnalysisConfig(const std::string &prog_file, const std::string &params_file) : config_(make())
    {
        SetModel(prog_file, params_file);
    }
    AnalysisConfig(const AnalysisConfig &other) : config_(copy(other)) {}
    AnalysisConfig &operator=(const AnalysisConfig &other)
    {
        if (this != &other) {
            config_.reset(copy(other));
            quantizer_.reset();
        }
        return *this;
    }

    void SetModel(const std::string &model_dir) { text(PROA_CONFIG_MODEL_DIR, model_dir); }
    void SetModel(const std::string &prog_file, const std::string &params_file)
    {
        SetProgFile(prog_file);
        SetParamsFile(params_file);
    }
    void SetProgFile(const std::string &path) { text(PROA_CONFIG_MODEL_FILE, path); }
    void SetParamsFile(const std::string &path) { text(PROA_CONFIG_PARAMS_FILE, path); }
    void SetOptimCacheDir(const std::string &path) { text(PROA_CONFIG_CACHE_DIR, path); }
    const std::string &model_dir() const { return ask(PROA_CONFIG_MODEL_DIR); }
    const std::string &prog_file() const { return ask(PROA_CONFIG_MODEL_FILE); }
    const std::string &params_file() const { return ask(PROA_CONFIG_PARAMS_FILE); }
    void SetModelBuffer(const char *prog, size_t prog_size, const char *params, size_t params_size)
    {
        proa_detail::begin();
        proa_config_set_buffers(config_.get(), prog, prog_size, params_size ? params : nullptr, params_size);
        proa_detail::check();
    }
    void SetModelBuffer(const std::string &prog, const std::string &params)
    {
        SetModelBuffer(prog.data(), prog.size(), params.data(), params.size());
    }
    bool model_from_memory() const { return proa_config_has_buffers(config_.get()); }

#define PROA_SAYS(X)                              \
    X(EnableMKLDNN, ONEDNN, 1)                    \
    X(DisableMKLDNN, ONEDNN, 0)                   \
    X(EnableMkldnnQuantizer, ONEDNN_QUANTIZER, 1) \
    X(EnableMkldnnBfloat16, ONEDNN_BFLOAT16, 1)   \
    X(EnableProfile, PROFILE, 1)                  \
    X(DisableGlogInfo, LOG, 0)                    \
    X(SetInvalid, VALID, 0)                       \
    X(DisableFCPadding, FC_PADDING, 0)            \
    X(PartiallyRelease, PARTIAL_RELEASE, 1)
#define PROA_X(F, NAME, value) \
    void F() const { set(PROA_CONFIG_##NAME, value); }
    PROA_SAYS(PROA_X)
#undef PROA_X
#undef PROA_SAYS
    void EnableMkldnnInt8(const std::unordered_set<std::string> &ops = {})
    {
        set(PROA_CONFIG_ONEDNN_INT8, 1);
        list(PROA_CONFIG_INT8_OPS, ops);
    }
    void SwitchIrOptim(int x = true) { set(PROA_CONFIG_IR_OPTIM, x != 0); }
    void SwitchIrDebug(int x = true) { set(PROA_CONFIG_IR_DEBUG, x != 0); }
    void SwitchUseFeedFetchOps(int x = true) { set(PROA_CONFIG_FEED_FETCH_OPS, x != 0); }
    void SwitchSpecifyInputNames(bool x = true) { set(PROA_CONFIG_SPECIFY_INPUT_NAMES, x); }
    void EnableMemoryOptim(bool x = true) { set(PROA_CONFIG_MEMORY_OPTIM, x); }
    void SetMkldnnCacheCapacity(int capacity) { set(PROA_CONFIG_ONEDNN_CACHE_CAPACITY, capacity); }
    void SetCpuMathLibraryNumThreads(int n) { set(PROA_CONFIG_CPU_THREADS, n); }
    void SetMKLDNNOp(std::unordered_set<std::string> ops) { list(PROA_CONFIG_ONEDNN_OPS, ops); }
    void SetBfloat16Op(std::unordered_set<std::string> ops) { list(PROA_CONFIG_BFLOAT16_OPS, ops); }

#define PROA_ASKS(X)                                         \
    X(ir_optim, IR_OPTIM)                                    \
    X(mkldnn_enabled, ONEDNN)                                \
    X(mkldnn_int8_enabled, ONEDNN_INT8)                      \
    X(mkldnn_bfloat16_enabled, ONEDNN_BFLOAT16)              \
    X(mkldnn_quantizer_enabled, ONEDNN_QUANTIZER)            \
    X(enable_memory_optim, MEMORY_OPTIM)                     \
    X(profile_enabled, PROFILE)                              \
    X(is_valid, VALID)                                       \
    X(use_fc_padding, FC_PADDING)                            \
    X(specify_input_name, SPECIFY_INPUT_NAMES)               \
    X(use_feed_fetch_ops_enabled, FEED_FETCH_OPS)            \
    X(lite_engine_enabled, LITE_ENGINE)                      \
    X(tensorrt_oss_enabled, TENSORRT_OSS)                    \
    X(tensorrt_varseqlen_enabled, TENSORRT_OSS)              \
    X(tensorrt_dla_enabled, TENSORRT_DLA)                    \
    X(tensorrt_dynamic_shape_enabled, TENSORRT_SHAPES)       \
    X(tuned_tensorrt_dynamic_shape, TENSORRT_TUNED)          \
    X(trt_allow_build_at_runtime, TENSORRT_BUILD_AT_RUNTIME) \
    X(shape_range_info_collected, SHAPES_COLLECTED)          \
    X(thread_local_stream_enabled, STREAM_OF_THREAD)
#define PROA_X(F, NAME) \
    bool F() const { return get(PROA_CONFIG_##NAME) != 0; }
    PROA_ASKS(PROA_X)
#undef PROA_X
#undef PROA_ASKS
    bool glog_info_disabled() const { return !get(PROA_CONFIG_LOG); }
    int cpu_math_library_num_threads() const { return static_cast<int>(get(PROA_CONFIG_CPU_THREADS)); }
    int memory_pool_init_size_mb() const { return static_cast<int>(get(PROA_CONFIG_GPU_POOL_MB)); }

    /* A device that is not there is said on stderr, and the model stays on the CPU. */
    void EnableUseGpu(uint64_t memory_pool_init_size_mb, int device_id = 0,
                      Precision precision = Precision::kFloat32)
    {
        (void)precision;
        if (use_device("gpu:" + std::to_string(device_id)))
            set(PROA_CONFIG_GPU_POOL_MB, static_cast<int64_t>(memory_pool_init_size_mb));
    }
    void EnableCustomDevice(const std::string &type, int device_id = 0,
                            Precision precision = Precision::kFloat32)
    {
        (void)precision;
        use_device(type + ":" + std::to_string(device_id));
    }
    void DisableGpu() { proa_config_set_device(config_.get(), "cpu"); }
    bool use_gpu() const { return std::strncmp(proa_config_device(config_.get()), "gpu", 3) == 0; }
    int gpu_device_id() const { return use_gpu() ? std::atoi(proa_config_device(config_.get()) + 4) : 0; }
    float fraction_of_gpu_memory_for_pool() const { return 0; }

    /* Engines that Proa lacks: says so on stderr, and the model runs natively. */
    template <typename... Args> void EnableTensorRtEngine(Args...) { absent("TensorRT"); }
    template <typename... Args> void EnableTensorRtDLA(Args...)
    {
        keep("TensorRT", PROA_CONFIG_TENSORRT_DLA);
    }
    template <typename... Args> void EnableXpu(Args...) { absent("XPU"); }
    template <typename... Args> void EnableNpu(Args...) { absent("NPU"); }
    template <typename... Args> void EnableIpu(Args...) { absent("IPU"); }
    template <typename... Args> void EnableOpenVINOEngine(Args...) { absent("OpenVINO"); }
    template <typename... Args> void EnableLiteEngine(Args...)
    {
        keep("Paddle Lite", PROA_CONFIG_LITE_ENGINE);
    }
    void SetTRTDynamicShapeInfo(std::map<std::string, std::vector<int>>,
                                std::map<std::string, std::vector<int>>,
                                std::map<std::string, std::vector<int>>, bool = false)
    {
        keep("TensorRT", PROA_CONFIG_TENSORRT_SHAPES);
    }
    void Exp_DisableTensorRtOPs(const std::vector<std::string> &ops)
    {
        list(PROA_CONFIG_TENSORRT_EXCLUDED, ops);
    }
    void EnableTensorRtOSS() { keep("TensorRT", PROA_CONFIG_TENSORRT_OSS); }
    void EnableVarseqlen() { keep("TensorRT", PROA_CONFIG_TENSORRT_OSS); }
    void CollectShapeRangeInfo(const std::string &path)
    {
        text(PROA_CONFIG_SHAPE_PATH, path);
        keep("TensorRT", PROA_CONFIG_SHAPES_COLLECTED);
    }
    void EnableTunedTensorRtDynamicShape(const std::string &path = "", bool build_at_runtime = true)
    {
        text(PROA_CONFIG_SHAPE_PATH, path);
        set(PROA_CONFIG_TENSORRT_BUILD_AT_RUNTIME, build_at_runtime);
        keep("TensorRT", PROA_CONFIG_TENSORRT_TUNED);
    }
    std::string shape_range_info_path() const { return ask(PROA_CONFIG_SHAPE_PATH); }
    void EnableGpuMultiStream() { keep("stream of each thread", PROA_CONFIG_STREAM_OF_THREAD); }
    void EnableCUDNN() { absent("cuDNN switch"); }
    void EnableONNXRuntime() { absent("ONNX Runtime"); }
    void DisableONNXRuntime() {}
    void EnableORTOptimization() { absent("ONNX Runtime"); }
    void SetExecStream(void *) { absent("stream of the caller's"); }
#define PROA_NEVER(X)          \
    X(use_xpu)                 \
    X(use_npu)                 \
    X(cudnn_enabled)           \
    X(tensorrt_engine_enabled) \
    X(use_onnxruntime)         \
    X(ort_optimization_enabled)
#define PROA_X(F) \
    bool F() const { return false; }
    PROA_NEVER(PROA_X)
#undef PROA_X
#undef PROA_NEVER

    /* Choices among Paddle's executors, IRs and compilers: without effect, as Proa has none to choose
     * among. */
    void EnableNewIR(bool = true) {}
    void EnableNewExecutor(bool = true) {}
    bool new_ir_enabled() const { return false; }
    bool new_executor_enabled() const { return false; }
    void EnableCINN() { absent("CINN"); }
    bool cinn_enabled() const { return false; }
    void EnableTensorRtInspector(bool = true) { absent("TensorRT"); }
    bool tensorrt_inspector_enabled() const { return false; }
    void MarkTrtEngineOutputs(const std::vector<std::string> & = {}) {}
    template <typename... Args> void SetIpuConfig(Args...) { absent("IPU"); }
    template <typename... Args> void SetIpuCustomInfo(Args...) { absent("IPU"); }
    /* Passes of the user's own are kept by name; those that Proa does not have are ignored. */
    void EnableCustomPasses(const std::vector<std::string> &passes, bool alone = false)
    {
        if (alone) proa_config_clear(config_.get(), PROA_CONFIG_PASSES);
        for (const std::string &name : passes) pass_builder()->AppendPass(name);
    }

    /* The same model for the older interface, without passes. */
    NativeConfig ToNativeConfig() const
    {
        NativeConfig native;
        native.model_dir = model_dir();
        native.prog_file = prog_file();
        native.param_file = params_file();
        native.use_gpu = use_gpu();
        native.device = gpu_device_id();
        native.specify_input_name = specify_input_name();
        native.SetCpuMathLibraryNumThreads(cpu_math_library_num_threads());
        return native;
    }

    /* The quantizer's samples and op types; throws unless EnableMkldnnQuantizer was called. */
    MkldnnQuantizerConfig *mkldnn_quantizer_config() const
    {
        if (!mkldnn_quantizer_enabled())
            throw std::runtime_error("mkldnn_quantizer_config: call EnableMkldnnQuantizer first");
        if (!quantizer_) quantizer_.reset(new MkldnnQuantizerConfig(config_.get()));
        return quantizer_.get();
    }

    PaddlePassBuilder *pass_builder() const
    {
        builder_.reset(new PaddlePassBuilder(config_.get()));
        return builder_.get();
    }

    std::string Summary() const
    {
        char *table = nullptr;
        size_t size = 0;
        proa_detail::begin();
        std::FILE *to = open_memstream(&table, &size);
        if (!to) throw std::runtime_error("Summary: no memory");
        proa_config_print(config_.get(), to);
        std::fclose(to);
        std::string all(table, size);
        std::free(table);
        proa_detail::check();
        return all;
    }

    /* Proa's config; borrowed. */
    proa_config *proa() const { return config_.get(); }

  private:
    struct release {
        void operator()(proa_config *c) const { proa_config_free(c); }
    };
    static proa_config *make()
    {
        proa_detail::begin();
        proa_config *c = proa_config_new();
        proa_detail::check();
        return c;
    }
    static proa_config *copy(const AnalysisConfig &other)
    {
        proa_detail::begin();
        proa_config *c = proa_config_copy(other.config_.get());
        proa_detail::check();
        return c;
    }
    void set(proa_config_number which, int64_t value) const
    {
        proa_detail::begin();
        proa_config_set(config_.get(), which, value);
        proa_detail::check();
    }
    int64_t get(proa_config_number which) const { return proa_config_get(config_.get(), which); }
    void text(proa_config_text which, const std::string &value)
    {
        proa_detail::begin();
        proa_config_set_text(config_.get(), which, value.c_str());
        proa_detail::check();
    }
    const std::string &ask(proa_config_text which) const
    {
        return texts_[which] = proa_config_get_text(config_.get(), which);
    }
    template <typename Names> void list(proa_config_list which, const Names &names)
    {
        proa_detail::begin();
        proa_config_clear(config_.get(), which);
        for (const auto &name : names) proa_config_insert(config_.get(), which, INT64_MAX, name.c_str());
        proa_detail::check();
    }
    bool use_device(const std::string &name)
    {
        proa_detail::begin();
        if (proa_config_set_device(config_.get(), name.c_str()) == PROA_OK) return true;
        if (!glog_info_disabled()) std::fprintf(stderr, "proa: %s\n", proa_error_message());
        proa_clear_error();
        return false;
    }
    void absent(const char *what) const
    {
        if (!glog_info_disabled())
            std::fprintf(stderr, "proa: there is no %s here; the model runs natively\n", what);
    }

    void keep(const char *what, proa_config_number which) const
    {
        absent(what);
        set(which, 1);
    }

    std::unique_ptr<proa_config, release> config_;
    mutable std::unique_ptr<PaddlePassBuilder> builder_;
    mutable std::unique_ptr<MkldnnQuantizerConfig> quantizer_;
    mutable std::map<int, std::string> texts_;
};

} // namespace paddle

namespace paddle_infer
{

using Config = paddle::AnalysisConfig;
using PrecisionType = Config::Precision;

/* ---- predictors ------------------------------------------------------------------------- */

/* An output hook's view of a tensor, for the length of the call. */
class HookTensor
{
  public:
    explicit HookTensor(const proa_tensor *t) : tensor_(t) {}
    std::vector<int64_t> shape() const { return paddle::proa_detail::shape_of(tensor_); }
    int64_t numel() const { return proa_numel(tensor_); }
    DataType type() const { return detail::data_type(proa_dtype_of(tensor_)); }
    template <typename T> const T *data() const
    {
        if (proa_dtype_of(tensor_) != detail::dtype_of<T>::value())
            throw std::runtime_error("HookTensor: the elements have another dtype");
        return static_cast<const T *>(proa_data(tensor_));
    }

  private:
    const proa_tensor *tensor_;
};

/* A model that is ready to run; one thread at a time. */
class Predictor
{
  public:
    using OutputTensorHookFunc =
        std::function<void(const std::string &op, const std::string &variable, const HookTensor &value)>;

    Predictor() = delete;
    Predictor(const Predictor &) = delete;
    Predictor &operator=(const Predictor &) = delete;
    explicit Predictor(const Config &config)
    {
        paddle::proa_detail::begin();
        predictor_.reset(proa_predictor_new(config.proa()));
        paddle::proa_detail::check();
        config.SetInvalid();
    }
    ~Predictor()
    {
        if (hook_) proa_predictor_set_hook(predictor_.get(), nullptr, nullptr);
    }

    std::vector<std::string> GetInputNames() const { return names(inputs(), proa_predictor_input); }
    std::vector<std::string> GetOutputNames() const { return names(outputs(), proa_predictor_output); }
    std::unique_ptr<Tensor> GetInputHandle(const std::string &name)
    {
        return handle(proa_predictor_find_input, name);
    }
    std::unique_ptr<Tensor> GetOutputHandle(const std::string &name)
    {
        return handle(proa_predictor_find_output, name);
    }

    bool Run()
    {
        paddle::proa_detail::begin();
        proa_predictor_run(predictor_.get());
        paddle::proa_detail::check();
        return true;
    }

    std::unique_ptr<Predictor> Clone(void *stream = nullptr)
    {
        (void)stream;
        paddle::proa_detail::begin();
        detail::predictor_ptr made(proa_predictor_clone(predictor_.get()));
        paddle::proa_detail::check();
        return std::unique_ptr<Predictor>(new Predictor(std::move(made)));
    }

    std::map<std::string, std::vector<int64_t>> GetInputTensorShape() const
    {
        return shapes(inputs(), proa_predictor_input);
    }
    std::map<std::string, std::vector<int64_t>> GetOutputTensorShape() const
    {
        return shapes(outputs(), proa_predictor_output);
    }
    std::map<std::string, DataType> GetInputTypes() const { return types(inputs(), proa_predictor_input); }
    std::map<std::string, DataType> GetOutputTypes() const { return types(outputs(), proa_predictor_output); }

    void ClearIntermediateTensor()
    {
        paddle::proa_detail::begin();
        proa_predictor_clear(predictor_.get());
        paddle::proa_detail::check();
    }
    uint64_t TryShrinkMemory()
    {
        paddle::proa_detail::begin();
        uint64_t bytes = static_cast<uint64_t>(proa_predictor_shrink(predictor_.get()));
        paddle::proa_detail::check();
        return bytes;
    }

    /* An exception that the hook throws ends the program. */
    void RegisterOutputHook(const OutputTensorHookFunc &hook)
    {
        hook_.reset(new OutputTensorHookFunc(hook));
        paddle::proa_detail::begin();
        proa_predictor_set_hook(predictor_.get(), call_hook, hook_.get());
        paddle::proa_detail::check();
    }

    void *GetExecStream() const { return nullptr; }

  private:
    using at_fn = proa_handle *(*)(const proa_predictor *, int64_t);
    using find_fn = proa_handle *(*)(const proa_predictor *, const char *);

    explicit Predictor(detail::predictor_ptr made) : predictor_(std::move(made)) {}
    int64_t inputs() const { return proa_predictor_input_count(predictor_.get()); }
    int64_t outputs() const { return proa_predictor_output_count(predictor_.get()); }
    const proa_tensor *variable(at_fn at, int64_t i) const
    {
        return proa_handle_variable(at(predictor_.get(), i));
    }
    std::vector<std::string> names(int64_t n, at_fn at) const
    {
        std::vector<std::string> list;
        for (int64_t i = 0; i < n; i++) list.push_back(proa_handle_name(at(predictor_.get(), i)));
        return list;
    }
    std::map<std::string, std::vector<int64_t>> shapes(int64_t n, at_fn at) const
    {
        std::map<std::string, std::vector<int64_t>> all;
        for (int64_t i = 0; i < n; i++)
            all[proa_handle_name(at(predictor_.get(), i))] = paddle::proa_detail::shape_of(variable(at, i));
        return all;
    }
    std::map<std::string, DataType> types(int64_t n, at_fn at) const
    {
        std::map<std::string, DataType> all;
        for (int64_t i = 0; i < n; i++)
            all[proa_handle_name(at(predictor_.get(), i))] =
                detail::data_type(proa_dtype_of(variable(at, i)));
        return all;
    }
    std::unique_ptr<Tensor> handle(find_fn find, const std::string &name)
    {
        paddle::proa_detail::begin();
        proa_handle *found = find(predictor_.get(), name.c_str());
        paddle::proa_detail::check();
        return std::unique_ptr<Tensor>(new Tensor(predictor_.get(), found));
    }
    static void call_hook(const char *op, const char *name, const proa_tensor *value, void *hook) noexcept
    {
        (*static_cast<OutputTensorHookFunc *>(hook))(op, name, HookTensor(value));
    }

    detail::predictor_ptr predictor_;
    std::unique_ptr<OutputTensorHookFunc> hook_;
};

/* Takes over the config: it is invalid afterwards, and serves for no second predictor. */
inline std::shared_ptr<Predictor> CreatePredictor(const Config &config)
{
    return std::make_shared<Predictor>(config);
}

namespace services
{

/* Predictors of one model: index 0 is the first, the others are its clones. */
class PredictorPool
{
  public:
    PredictorPool() = delete;
    explicit PredictorPool(const Config &config, size_t size = 1)
    {
        if (size < 1) throw std::runtime_error("PredictorPool: expected at least one predictor, got 0");
        all_.emplace_back(new Predictor(config));
        for (size_t i = 1; i < size; i++) all_.push_back(all_[0]->Clone());
    }
    Predictor *Retrive(size_t index)
    {
        if (index < all_.size()) return all_[index].get();
        throw std::runtime_error("PredictorPool: there are " + std::to_string(all_.size()) +
                                 " predictors, got index " + std::to_string(index));
    }

  private:
    std::vector<std::unique_ptr<Predictor>> all_;
};

} // namespace services

namespace experimental
{

/* Names the inputs that TensorRT's variable-length attention would read. There is no TensorRT: without
 * effect. */
class InternalUtils
{
  public:
    static void SetTransformerPosid(Config *, const std::string &) {}
    static void SetTransformerMaskid(Config *, const std::string &) {}
};

} // namespace experimental
} // namespace paddle_infer

namespace paddle
{

/* ---- encrypted models ------------------------------------------------------------------- */

namespace framework
{

/* A cipher of proa/cipher.h; texts and keys are bytes. */
class Cipher
{
  public:
    explicit Cipher(const std::string &config_file)
    {
        proa_detail::begin();
        cipher_.reset(proa_cipher_new(config_file.c_str()));
        proa_detail::check();
    }
    std::string Encrypt(const std::string &text, const std::string &key)
    {
        return run(proa_cipher_encrypt, text, key);
    }
    std::string Decrypt(const std::string &data, const std::string &key)
    {
        return run(proa_cipher_decrypt, data, key);
    }
    void EncryptToFile(const std::string &text, const std::string &key, const std::string &path)
    {
        proa_detail::begin();
        proa_cipher_encrypt_file(cipher_.get(), text.data(), text.size(), key.data(), key.size(),
                                 path.c_str());
        proa_detail::check();
    }
    std::string DecryptFromFile(const std::string &key, const std::string &path)
    {
        void *out = nullptr;
        size_t bytes = 0;
        proa_detail::begin();
        proa_cipher_decrypt_file(cipher_.get(), path.c_str(), key.data(), key.size(), &out, &bytes);
        return take(out, bytes);
    }

  private:
    using run_fn = proa_status (*)(const proa_cipher *, const void *, size_t, const void *, size_t, void **,
                                   size_t *);
    struct release {
        void operator()(proa_cipher *c) const { proa_cipher_free(c); }
    };
    std::string run(run_fn fn, const std::string &from, const std::string &key)
    {
        void *out = nullptr;
        size_t bytes = 0;
        proa_detail::begin();
        fn(cipher_.get(), from.data(), from.size(), key.data(), key.size(), &out, &bytes);
        return take(out, bytes);
    }
    static std::string take(void *out, size_t bytes)
    {
        proa_detail::check();
        std::string text(static_cast<char *>(out), bytes);
        proa_cipher_release(out, bytes);
        return text;
    }
    std::unique_ptr<proa_cipher, release> cipher_;
};

/* Keys: raw bytes, their number given in bits. */
class CipherUtils
{
  public:
    CipherUtils() = delete;
    static std::string GenKey(int bits)
    {
        std::string key(static_cast<size_t>(bits > 0 ? bits / 8 : 0), '\0');
        proa_detail::begin();
        proa_cipher_make_key(&key[0], key.size());
        proa_detail::check();
        return key;
    }
    static std::string GenKeyToFile(int bits, const std::string &path)
    {
        std::string key(static_cast<size_t>(bits > 0 ? bits / 8 : 0), '\0');
        proa_detail::begin();
        proa_cipher_make_key_file(&key[0], key.size(), path.c_str());
        proa_detail::check();
        return key;
    }
    static std::string ReadKeyFromFile(const std::string &path)
    {
        std::string key(64, '\0');
        size_t bytes = 0;
        proa_detail::begin();
        proa_cipher_read_key(path.c_str(), &key[0], key.size(), &bytes);
        proa_detail::check();
        key.resize(bytes);
        return key;
    }
};

} // namespace framework

/* The cipher of a configuration file; "": AES_CTR_NoPadding. */
inline std::shared_ptr<framework::Cipher> MakeCipher(const std::string &config_file)
{
    return std::make_shared<framework::Cipher>(config_file);
}

} // namespace paddle

#include "paddle_predictor.h"

#endif
