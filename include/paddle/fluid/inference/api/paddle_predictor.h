/* Predictors of Paddle's older C++ interface: PaddlePredictor, ZeroCopyTensor, CreatePaddlePredictor. C++11;
 * paddle_inference_api.h includes it. */
#ifndef PROA_PADDLE_PREDICTOR_H
#define PROA_PADDLE_PREDICTOR_H

#include "paddle_inference_api.h"

namespace paddle
{

/* An input or output of a predictor, which it keeps alive. */
class ZeroCopyTensor
{
  public:
    explicit ZeroCopyTensor(std::unique_ptr<paddle_infer::Tensor> handle) : handle_(std::move(handle)) {}
    void Reshape(const std::vector<int> &shape) { handle_->Reshape(shape); }
    template <typename T> void copy_from_cpu(const T *data) { handle_->CopyFromCpu(data); }
    template <typename T> void copy_to_cpu(T *data) const { handle_->CopyToCpu(data); }
    template <typename T> T *mutable_data(paddle_infer::PlaceType place)
    {
        return handle_->mutable_data<T>(place);
    }
    template <typename T> T *data(paddle_infer::PlaceType *place, int *size) const
    {
        return handle_->data<T>(place, size);
    }
    std::vector<int> shape() const { return handle_->shape(); }
    void SetLoD(const std::vector<std::vector<size_t>> &lod) { handle_->SetLoD(lod); }
    std::vector<std::vector<size_t>> lod() const { return handle_->lod(); }
    const std::string &name() const { return handle_->name(); }
    PaddleDType type() const { return handle_->type(); }
    paddle_infer::PlaceType place() const { return handle_->place(); }

  private:
    std::unique_ptr<paddle_infer::Tensor> handle_;
};

/* A model that takes and gives arrays; one thread at a time. */
class PaddlePredictor
{
  public:
    struct Config {
        std::string model_dir;
    };

    PaddlePredictor() = delete;
    PaddlePredictor(const PaddlePredictor &) = delete;
    PaddlePredictor &operator=(const PaddlePredictor &) = delete;
    /* Inputs are found by name if the config says so (SwitchSpecifyInputNames), else taken in order. */
    PaddlePredictor(std::unique_ptr<paddle_infer::Predictor> made, bool by_name)
        : predictor_(std::move(made)), by_name_(by_name)
    {
    }

    bool Run(const std::vector<PaddleTensor> &inputs, std::vector<PaddleTensor> *outputs, int batch_size = -1)
    {
        (void)batch_size;
        const std::vector<std::string> names = predictor_->GetInputNames();
        if (inputs.size() != names.size())
            throw std::runtime_error("PaddlePredictor: the model has " + std::to_string(names.size()) +
                                     " inputs, got " + std::to_string(inputs.size()));
        for (size_t i = 0; i < names.size(); i++)
            feed(inputs[i], by_name_ && !inputs[i].name.empty() ? inputs[i].name : names[i]);
        predictor_->Run();
        outputs->clear();
        for (const std::string &name : predictor_->GetOutputNames()) outputs->push_back(fetch(name));
        return true;
    }

    std::vector<std::string> GetInputNames() { return predictor_->GetInputNames(); }
    std::vector<std::string> GetOutputNames() { return predictor_->GetOutputNames(); }
    std::map<std::string, std::vector<int64_t>> GetInputTensorShape()
    {
        return predictor_->GetInputTensorShape();
    }
    std::unique_ptr<ZeroCopyTensor> GetInputTensor(const std::string &name)
    {
        return std::unique_ptr<ZeroCopyTensor>(new ZeroCopyTensor(predictor_->GetInputHandle(name)));
    }
    std::unique_ptr<ZeroCopyTensor> GetOutputTensor(const std::string &name)
    {
        return std::unique_ptr<ZeroCopyTensor>(new ZeroCopyTensor(predictor_->GetOutputHandle(name)));
    }
    bool ZeroCopyRun() { return predictor_->Run(); }
    void ClearIntermediateTensor() { predictor_->ClearIntermediateTensor(); }
    uint64_t TryShrinkMemory() { return predictor_->TryShrinkMemory(); }
    std::unique_ptr<PaddlePredictor> Clone(void *stream = nullptr)
    {
        return std::unique_ptr<PaddlePredictor>(new PaddlePredictor(predictor_->Clone(stream), by_name_));
    }

  private:
    void feed(const PaddleTensor &from, const std::string &name)
    {
        auto to = predictor_->GetInputHandle(name);
        size_t bytes = static_cast<size_t>(paddle_infer::GetNumBytesOfDataType(from.dtype));
        for (int n : from.shape) bytes *= n > 0 ? static_cast<size_t>(n) : 0;
        if (bytes > from.data.length())
            throw std::runtime_error("PaddlePredictor: '" + name + "' has " +
                                     std::to_string(from.data.length()) + " bytes, its shape needs " +
                                     std::to_string(bytes));
        to->Reshape(from.shape);
#define PROA_X(T, of, NAME, size) \
    if (from.dtype == NAME) to->CopyFromCpu(static_cast<const T *>(from.data.data()));
        using namespace paddle_infer;
        PROA_PADDLE_DTYPES(PROA_X)
#undef PROA_X
        if (!from.lod.empty()) to->SetLoD(from.lod);
    }

    PaddleTensor fetch(const std::string &name)
    {
        auto from = predictor_->GetOutputHandle(name);
        PaddleTensor to;
        to.name = name;
        to.shape = from->shape();
        to.dtype = from->type();
        to.lod = from->lod();
        size_t bytes = static_cast<size_t>(paddle_infer::GetNumBytesOfDataType(to.dtype));
        for (int n : to.shape) bytes *= static_cast<size_t>(n);
        to.data.Resize(bytes);
#define PROA_X(T, of, NAME, size) \
    if (to.dtype == NAME) from->CopyToCpu(static_cast<T *>(to.data.data()));
        using namespace paddle_infer;
        PROA_PADDLE_DTYPES(PROA_X)
#undef PROA_X
        return to;
    }

    std::unique_ptr<paddle_infer::Predictor> predictor_;
    bool by_name_;
};

/* A predictor of an AnalysisConfig or a NativeConfig, which remains the caller's. */
template <typename C> std::unique_ptr<PaddlePredictor> CreatePaddlePredictor(const C &config);

template <>
inline std::unique_ptr<PaddlePredictor> CreatePaddlePredictor<AnalysisConfig>(const AnalysisConfig &config)
{
    AnalysisConfig copy(config);
    std::unique_ptr<paddle_infer::Predictor> made(new paddle_infer::Predictor(copy));
    return std::unique_ptr<PaddlePredictor>(
        new PaddlePredictor(std::move(made), config.specify_input_name()));
}
template <>
inline std::unique_ptr<PaddlePredictor> CreatePaddlePredictor<NativeConfig>(const NativeConfig &native)
{
    AnalysisConfig config;
    if (!native.model_dir.empty()) config.SetModel(native.model_dir);
    if (!native.prog_file.empty()) config.SetModel(native.prog_file, native.param_file);
    if (native.use_gpu) config.EnableUseGpu(100, native.device);
    config.SwitchIrOptim(false);
    config.SwitchSpecifyInputNames(native.specify_input_name);
    config.SetCpuMathLibraryNumThreads(native.cpu_math_library_num_threads());
    return CreatePaddlePredictor(config);
}

} // namespace paddle

#endif
