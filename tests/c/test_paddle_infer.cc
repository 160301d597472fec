/* Paddle's C++ interface: a program as its users write them, over a model that this one saves. */
#include <paddle/fluid/inference/api/paddle_inference_api.h>

#include <proa.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <numeric>
#include <thread>
#include <unistd.h>

#define CHECK(condition)                                                                                  \
    do {                                                                                                  \
        if (!(condition)) throw std::runtime_error("line " + std::to_string(__LINE__) + ": " #condition); \
    } while (0)

static const float weights[12] = {1, 0, -1, 2, 0, 1, 1, -2, 3, 0, 0, 1};

static proa_tensors forward(proa_tensors in, void *w)
{
    proa_tensors out = {1, static_cast<proa_tensor **>(proa_scope_alloc(sizeof(proa_tensor *)))};
    out.at[0] = proa_relu(proa_matmul(in.at[0], static_cast<proa_tensor *>(w)));
    return out;
}

static std::string save_model()
{
    const char *folder = std::getenv("PROA_TEST_TMP");
    std::string prefix = std::string(folder ? folder : "/tmp") + "/paddle_infer_" + std::to_string(getpid());
    proa_scope scope = proa_scope_enter();
    const int64_t shape[2] = {3, 4}, open[2] = {-1, 3};
    proa_tensor *w = proa_from_data(weights, proa_ints{2, shape, nullptr, nullptr}, PROA_F32);
    proa_set_name(w, "w");
    proa_input_spec spec = {"x", {2, open, nullptr, nullptr}, PROA_F32};
    proa_program *p = proa_capture(forward, &spec, 1, w);
    CHECK(p && proa_program_save(p, prefix.c_str()) == PROA_OK);
    proa_program_free(p);
    proa_scope_leave(&scope);
    return prefix;
}

static std::vector<float> run(paddle_infer::Predictor *predictor, std::vector<float> x)
{
    auto in = predictor->GetInputHandle(predictor->GetInputNames()[0]);
    in->Reshape({static_cast<int>(x.size() / 3), 3});
    in->CopyFromCpu(x.data());
    CHECK(predictor->Run());
    auto out = predictor->GetOutputHandle(predictor->GetOutputNames()[0]);
    auto shape = out->shape();
    std::vector<float> y(
        static_cast<size_t>(std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<int>())));
    out->CopyToCpu(y.data());
    return y;
}

template <typename F> static std::string message_of(F call)
{
    try {
        call();
    } catch (const std::exception &error) {
        return error.what();
    }
    return "";
}

static void settings(const std::string &prefix)
{
    paddle_infer::Config config(prefix + ".pdmodel", prefix + ".pdiparams");
    config.DisableGlogInfo();
    config.SetCpuMathLibraryNumThreads(2);
    config.EnableMemoryOptim();
    config.EnableUseGpu(100, 0);
    config.EnableTensorRtEngine(1 << 20, 1, 5, paddle_infer::PrecisionType::kHalf, false, false);
    CHECK(!config.tensorrt_oss_enabled() && !config.tensorrt_dla_enabled());
    config.EnableTensorRtOSS();
    config.EnableTensorRtDLA(0);
    config.SetTRTDynamicShapeInfo({{"x", {1, 3}}}, {{"x", {8, 3}}}, {{"x", {4, 3}}});
    paddle_infer::experimental::InternalUtils::SetTransformerPosid(&config, "x");
    paddle_infer::experimental::InternalUtils::SetTransformerMaskid(&config, "x");
    config.CollectShapeRangeInfo("shapes");
    config.EnableTunedTensorRtDynamicShape("ranges", false);
    CHECK(config.tensorrt_oss_enabled() && config.tensorrt_dla_enabled());
    CHECK(config.tensorrt_dynamic_shape_enabled() && config.tuned_tensorrt_dynamic_shape());
    CHECK(config.shape_range_info_collected() && config.shape_range_info_path() == "ranges");
    CHECK(!config.trt_allow_build_at_runtime());
    config.SetMKLDNNOp({"conv2d"});
    config.EnableMkldnnInt8({"conv2d", "fc"});
    config.pass_builder()->DeletePass("conv_bn_fuse_pass");
    config.SwitchIrOptim(false);
    CHECK(config.prog_file() == prefix + ".pdmodel" && config.model_dir().empty());
    CHECK(config.cpu_math_library_num_threads() == 2 && config.enable_memory_optim() && !config.ir_optim());
    CHECK(!config.use_gpu() && config.gpu_device_id() == 0 && !config.tensorrt_engine_enabled());
    CHECK(config.mkldnn_enabled() && config.mkldnn_int8_enabled() && config.glog_info_disabled());
    CHECK(config.Summary().find("cpu_math_thread") != std::string::npos);
    paddle_infer::Config copy(config);
    auto predictor = paddle_infer::CreatePredictor(config);
    CHECK(!config.is_valid());
    CHECK(!message_of([&] { paddle_infer::CreatePredictor(config); }).empty());
    CHECK(run(paddle_infer::CreatePredictor(copy).get(), {1, 2, 3}) == run(predictor.get(), {1, 2, 3}));
    paddle_infer::Config late(config);
    CHECK(late.is_valid() && !config.is_valid());
    CHECK(run(paddle_infer::CreatePredictor(late).get(), {1, 2, 3}) == run(predictor.get(), {1, 2, 3}));
}

/* The model is a product and a bias: by its quantizer it answers as in float, but for the integers' grid. */
static void quantizer(const std::string &prefix)
{
    paddle_infer::Config config(prefix + ".pdmodel", prefix + ".pdiparams"), plain(config);
    CHECK(message_of([&] { config.mkldnn_quantizer_config(); }).find("EnableMkldnnQuantizer") !=
          std::string::npos);
    config.EnableMkldnnQuantizer();
    auto *options = config.mkldnn_quantizer_config();
    std::vector<float> x = {1, 2, 3, -1, -2, -3};
    auto data = std::make_shared<std::vector<paddle::PaddleTensor>>(1);
    paddle::PaddleTensor &sample = (*data)[0];
    sample.name = "x";
    sample.shape = {2, 3};
    sample.data.Resize(4);
    CHECK(message_of([&] { options->SetWarmupData(data); }).find("its shape needs 24") != std::string::npos);
    sample.data.Reset(x.data(), x.size() * sizeof(float));
    options->SetWarmupData(data);
    options->SetWarmupBatchSize(2);
    options->SetEnabledOpTypes({"fc"});
    options->SetDefaultScaleAlgo(paddle::ScaleAlgo::MAX);
    CHECK(options->warmup_data() == data && options->warmup_batch_size() == 2);
    CHECK(options->enabled_op_types().count("fc") == 1);
    CHECK(options->default_scale_algo() == paddle::ScaleAlgo::MAX);
    std::vector<float> have = run(paddle_infer::CreatePredictor(paddle_infer::Config(config)).get(), x);
    std::vector<float> want = run(paddle_infer::CreatePredictor(plain).get(), x);
    CHECK(have.size() == want.size() && have != want);
    for (size_t i = 0; i < have.size(); i++) CHECK(std::fabs(have[i] - want[i]) <= 0.2f);
    options->SetScaleAlgo("fc", "Input", paddle::ScaleAlgo::KL);
    options->SetScaleAlgo("fc", "W", paddle::ScaleAlgo::MAX);
    CHECK(options->scale_algo("fc", "W") == paddle::ScaleAlgo::MAX);
    CHECK(options->scale_algo("conv2d", "Filter") == paddle::ScaleAlgo::MAX);
    std::vector<float> whole = run(paddle_infer::CreatePredictor(paddle_infer::Config(config)).get(), x);
    CHECK(whole != have && whole != want);
    options->SetScaleAlgo("fc", "Input", paddle::ScaleAlgo::NONE);
    CHECK(run(paddle_infer::CreatePredictor(paddle_infer::Config(config)).get(), x) == want);
    options->SetScaleAlgo("fc", "Input", paddle::ScaleAlgo::MAX);
    options->SetExcludedOpIds({0, 1, 2});
    CHECK(options->excluded_op_ids().count(2) == 1);
    CHECK(run(paddle_infer::CreatePredictor(paddle_infer::Config(config)).get(), x) == want);
}

static void handles(paddle_infer::Predictor *predictor)
{
    std::vector<float> x = {1, 2, 3, -1, -2, -3}, y = run(predictor, x), shared(8);
    CHECK(y.size() == 8 && y[0] == 10 && y[1] == 2 && y[4] == 0);
    auto in = predictor->GetInputHandle("x");
    auto out = predictor->GetOutputHandle(predictor->GetOutputNames()[0]);
    paddle_infer::PlaceType place;
    int size;
    CHECK(out->data<float>(&place, &size)[0] == 10 && size == 8 && place == paddle_infer::PlaceType::kCPU);
    CHECK(out->type() == paddle_infer::DataType::FLOAT32 && in->name() == "x");
    in->ShareExternalData(x.data(), {2, 3}, paddle_infer::PlaceType::kCPU);
    out->ShareExternalData(shared.data(), {2, 4}, paddle_infer::PlaceType::kCPU);
    CHECK(predictor->Run() && shared == y);
    in->mutable_data<float>(paddle_infer::PlaceType::kCPU)[0] = 0;
    in->SetLoD({{0, 1, 2}});
    CHECK(in->lod() == std::vector<std::vector<size_t>>({{0, 1, 2}}));
    CHECK(predictor->GetInputTensorShape()["x"] == std::vector<int64_t>({-1, 3}));
    CHECK(predictor->GetInputTypes()["x"] == paddle_infer::FLOAT32);
    CHECK(message_of([&] { predictor->GetInputHandle("y"); }).find("it has: x") != std::string::npos);
    CHECK(!message_of([&] { run(predictor, {1, 2, 3}); }).empty()); /* not the shape of what is shared */
    in->Reshape({1, 2});
    in->CopyFromCpu(x.data());
    CHECK(!message_of([&] { predictor->Run(); }).empty());
    predictor->ClearIntermediateTensor();
    CHECK(run(predictor, x) == y); /* it goes on working */
}

static void pools(const std::string &prefix)
{
    paddle_infer::services::PredictorPool pool(
        paddle_infer::Config(prefix + ".pdmodel", prefix + ".pdiparams"), 4);
    std::vector<std::vector<float>> results(4);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 4; i++)
        threads.emplace_back([&, i] { results[i] = run(pool.Retrive(i), {1, 2, 3, 4, 5, 6}); });
    for (auto &thread : threads) thread.join();
    for (const auto &result : results) CHECK(result == results[0]);
    CHECK(!message_of([&] { pool.Retrive(4); }).empty());
    CHECK(pool.Retrive(0)->GetInputHandle(pool.Retrive(0)->GetInputNames()[0])->place() ==
          paddle_infer::PlaceType::kCPU);
    int seen = 0;
    pool.Retrive(0)->RegisterOutputHook([&](const std::string &, const std::string &,
                                            const paddle_infer::HookTensor &t) { seen += t.numel() > 0; });
    run(pool.Retrive(0), {1, 2, 3});
    CHECK(seen > 0);
    CHECK(run(pool.Retrive(1)->Clone().get(), {1, 2, 3}) == run(pool.Retrive(0), {1, 2, 3}));
}

static std::string read(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
}

static void ciphers(const std::string &prefix)
{
    using paddle::framework::CipherUtils;
    std::string missing = message_of([] { paddle::MakeCipher(""); });
    if (!missing.empty()) {
        CHECK(missing.find("libcrypto") != std::string::npos);
        return;
    }
    auto cipher = paddle::MakeCipher("");
    std::string key = CipherUtils::GenKeyToFile(256, prefix + ".key");
    CHECK(CipherUtils::ReadKeyFromFile(prefix + ".key") == key && key.size() == 32);
    cipher->EncryptToFile(read(prefix + ".pdmodel"), key, prefix + ".secret");
    std::string model = cipher->DecryptFromFile(key, prefix + ".secret"),
                params = read(prefix + ".pdiparams");
    CHECK(model == read(prefix + ".pdmodel") && cipher->Decrypt(cipher->Encrypt("text", key), key) == "text");
    paddle_infer::Config config;
    config.SetModelBuffer(model.data(), model.size(), params.data(), params.size());
    CHECK(config.model_from_memory() && run(paddle_infer::CreatePredictor(config).get(), {1, 2, 3})[0] == 10);
    CHECK(!message_of([&] { cipher->Encrypt("text", "short"); }).empty());
}

int main()
{
    try {
        std::string prefix = save_model();
        quantizer(prefix);
        settings(prefix);
        handles(
            paddle_infer::CreatePredictor(paddle_infer::Config(prefix + ".pdmodel", prefix + ".pdiparams"))
                .get());
        pools(prefix);
        ciphers(prefix);
        CHECK(paddle_infer::GetNumBytesOfDataType(paddle_infer::DataType::INT64) == 8);
        CHECK(paddle_infer::GetVersion().find(proa_version()) != std::string::npos);
        CHECK(!message_of([] { paddle_infer::CreatePredictor(paddle_infer::Config("/nowhere")); }).empty());
    } catch (const std::exception &error) {
        std::fprintf(stderr, "test_paddle_infer: %s\n", error.what());
        return 1;
    }
    return 0;
}
