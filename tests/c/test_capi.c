/* Paddle's C interface: every function, getters after setters, ownership, wrong use, clones in threads, many
 * shapes. */
#include "suite.h"

#include <paddle/fluid/inference/capi_exp/pd_inference_api.h>

#include <proa.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* relu(x · w + b) with x [-1, 3], and x [-1, 3] itself. */
static proa_tensors forward(proa_tensors in, void *context)
{
    proa_tensor **parameters = context;
    proa_tensor *y = proa_relu(proa_add(proa_matmul(in.at[0], parameters[0]), parameters[1]));
    proa_tensors out = {2, proa_scope_alloc(2 * sizeof *out.at)};
    out.at[0] = y;
    out.at[1] = proa_scale(in.at[0], .scale = PROA_SCALAR(2.0));
    return out;
}

static const float weights[12] = {1, 0, -1, 2, 0, 1, 1, -2, 3, 0, 0, 1}, biases[4] = {1, -1, 0, 0.5f};

/* Saves the model; prefix: [256]. */
static void save_model(char *prefix, const char *name)
{
    snprintf(prefix, 256, "%s/%d_%s", test_folder(), (int)getpid(), name);
    PROA_SCOPE {
        proa_tensor *parameters[2] = {proa_from_data(weights, PROA_SHAPE(3, 4), PROA_F32),
                                      proa_from_data(biases, PROA_SHAPE(4), PROA_F32)};
        ck_assert_int_eq(proa_set_name(parameters[0], "w"), PROA_OK);
        ck_assert_int_eq(proa_set_name(parameters[1], "b"), PROA_OK);
        proa_input_spec spec = {"x", PROA_SHAPE(-1, 3), PROA_F32};
        proa_program *p = proa_capture(forward, &spec, 1, parameters);
        ck_assert_msg(p != NULL, "%s", proa_error_message());
        ck_assert_int_eq(proa_program_save(p, prefix), PROA_OK);
        proa_program_free(p);
    }
}

static PD_Config *config_of(const char *prefix)
{
    char model[300], params[300];
    snprintf(model, sizeof model, "%s.pdmodel", prefix);
    snprintf(params, sizeof params, "%s.pdiparams", prefix);
    PD_Config *c = PD_ConfigCreate();
    ck_assert_ptr_nonnull(c);
    PD_ConfigSetModel(c, model, params);
    PD_ConfigDisableGlogInfo(c);
    return c;
}

static PD_Predictor *predictor_of(const char *name)
{
    char prefix[256];
    save_model(prefix, name);
    PD_Predictor *p = PD_PredictorCreate(config_of(prefix));
    ck_assert_msg(p != NULL, "%s", proa_error_message());
    return p;
}

static void check_floats(const float *have, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++) ck_assert_float_eq_tol(have[i], want[i], 1e-5f);
}

static void expected(const float *x, int rows, float *y)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < 4; c++) {
            float sum = biases[c];
            for (int k = 0; k < 3; k++) sum += x[r * 3 + k] * weights[k * 4 + c];
            y[r * 4 + c] = sum > 0 ? sum : 0;
        }
}

/* Feeds rows of numbers that depend on the seed, runs, and checks the first output, by name. */
static void run_once(PD_Predictor *p, int rows, int seed, float *out)
{
    float *x = calloc((size_t)rows * 3 + 1, sizeof *x), *y = calloc((size_t)rows * 4 + 1, sizeof *y);
    for (int i = 0; i < rows * 3; i++) x[i] = (float)((i * 7 + seed * 13) % 11) - 5;
    PD_OneDimArrayCstr *inputs = PD_PredictorGetInputNames(p), *outputs = PD_PredictorGetOutputNames(p);
    PD_Tensor *in = PD_PredictorGetInputHandle(p, inputs->data[0]);
    PD_Tensor *to = PD_PredictorGetOutputHandle(p, outputs->data[0]);
    PD_TensorReshape(in, 2, (int32_t[]){rows, 3});
    PD_TensorCopyFromCpuFloat(in, x);
    ck_assert_msg(PD_PredictorRun(p) == TRUE, "%s", proa_error_message());
    PD_OneDimArrayInt32 *shape = PD_TensorGetShape(to);
    ck_assert_uint_eq(shape->size, 2);
    ck_assert_int_eq(shape->data[0], rows);
    ck_assert_int_eq(shape->data[1], 4);
    expected(x, rows, y);
    PD_TensorCopyToCpuFloat(to, x = realloc(x, (size_t)rows * 4 * sizeof *x + 4));
    check_floats(x, y, (size_t)rows * 4);
    if (out) memcpy(out, x, (size_t)rows * 4 * sizeof *x);
    PD_OneDimArrayInt32Destroy(shape);
    PD_OneDimArrayCstrDestroy(inputs);
    PD_OneDimArrayCstrDestroy(outputs);
    PD_TensorDestroy(in);
    PD_TensorDestroy(to);
    free(x);
    free(y);
}

/* ---- predictors ------------------------------------------------------------------------- */

START_TEST(quick_start)
{
    PD_Predictor *p = predictor_of("quick");
    for (int rows = 1; rows < 20; rows++) run_once(p, rows, rows, NULL);
    run_once(p, 0, 1, NULL);
    PD_PredictorTryShrinkMemory(p);
    ck_assert_int_eq(proa_error(), PROA_OK);
    run_once(p, 3, 1, NULL);
    PD_PredictorClearIntermediateTensor(p);
    ck_assert_int_eq(PD_PredictorRun(p), FALSE);
    run_once(p, 3, 1, NULL);
    PD_PredictorDestroy(p);
    ck_assert_str_eq(PD_GetVersion(), PD_GetVersion());
    ck_assert_ptr_nonnull(strstr(PD_GetVersion(), proa_version()));
}
END_TEST

START_TEST(names_numbers_infos)
{
    PD_Predictor *p = predictor_of("infos");
    ck_assert_uint_eq(PD_PredictorGetInputNum(p), 1);
    ck_assert_uint_eq(PD_PredictorGetOutputNum(p), 2);
    PD_IOInfos *in = PD_PredictorGetInputInfos(p), *out = PD_PredictorGetOutputInfos(p);
    ck_assert_uint_eq(in->size, 1);
    ck_assert_str_eq(in->io_info[0]->name->data, "x");
    ck_assert_uint_eq(in->io_info[0]->name->size, 2);
    ck_assert_uint_eq(in->io_info[0]->shape->size, 2);
    ck_assert_int_eq(in->io_info[0]->shape->data[0], -1);
    ck_assert_int_eq(in->io_info[0]->shape->data[1], 3);
    ck_assert_int_eq(in->io_info[0]->dtype, PD_DATA_FLOAT32);
    ck_assert_uint_eq(out->size, 2);
    ck_assert_int_eq(out->io_info[0]->shape->data[1], 4);
    PD_IOInfosDestroy(in);
    PD_IOInfosDestroy(out);
    PD_PredictorDestroy(p);
}
END_TEST

START_TEST(zero_copy)
{
    PD_Predictor *p = predictor_of("zero");
    PD_Tensor *in = PD_PredictorGetInputHandle(p, "x");
    PD_OneDimArrayCstr *names = PD_PredictorGetOutputNames(p);
    PD_Tensor *out = PD_PredictorGetOutputHandle(p, names->data[0]);
    ck_assert_str_eq(PD_TensorGetName(in), "x");
    PD_OneDimArrayInt32 *none = PD_TensorGetShape(in);
    ck_assert_uint_eq(none->size, 0);
    PD_OneDimArrayInt32Destroy(none);
    PD_TensorReshape(in, 2, (int32_t[]){2, 3});
    float *x = PD_TensorMutableDataFloat(in, PD_PLACE_CPU), want[8];
    ck_assert_ptr_nonnull(x);
    PD_PlaceType place;
    int32_t size;
    ck_assert_ptr_eq(PD_TensorDataFloat(in, &place, &size), x);
    ck_assert_int_eq(place, PD_PLACE_CPU);
    ck_assert_int_eq(size, 6);
    const float *first = NULL;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 6; i++) x[i] = (float)(i - 2 + round);
        ck_assert_int_eq(PD_PredictorRun(p), TRUE);
        const float *y = PD_TensorDataFloat(out, &place, &size);
        ck_assert_int_eq(size, 8);
        expected(x, 2, want);
        check_floats(y, want, 8);
        if (round) ck_assert_ptr_eq(y, first); /* an output keeps its memory */
        first = y;
    }
    ck_assert_int_eq(PD_TensorGetDataType(out), PD_DATA_FLOAT32);
    ck_assert_ptr_null(PD_TensorDataInt32(out, &place, &size));
    PD_OneDimArrayCstrDestroy(names);
    PD_PredictorDestroy(p);
    PD_TensorDestroy(in); /* after its predictor */
    PD_TensorDestroy(out);
}
END_TEST

START_TEST(every_dtype)
{
    PD_Predictor *p = predictor_of("dtypes");
    PD_Tensor *t = PD_PredictorGetInputHandle(p, "x");
    PD_PlaceType place;
    int32_t size;
    PD_TensorReshape(t, 1, (int32_t[]){3});
#define ONE(W, T, NAME)                                                                           \
    do {                                                                                          \
        T from[3] = {1, 2, 3}, to[3] = {0};                                                       \
        PD_TensorCopyFromCpu##W(t, from);                                                         \
        ck_assert_int_eq(PD_TensorGetDataType(t), PD_DATA_##NAME);                                \
        PD_TensorCopyToCpu##W(t, to);                                                             \
        ck_assert_mem_eq(from, to, sizeof from);                                                  \
        T *at = PD_TensorMutableData##W(t, PD_PLACE_CPU);                                         \
        at[1] = 7;                                                                                \
        ck_assert_ptr_eq(PD_TensorData##W(t, &place, &size), at);                                 \
        ck_assert(size == 3 && place == PD_PLACE_CPU && PD_TensorData##W(t, NULL, NULL)[1] == 7); \
    } while (0)
    ONE(Float, float, FLOAT32);
    ONE(Int64, int64_t, INT64);
    ONE(Int32, int32_t, INT32);
    ONE(Uint8, uint8_t, UINT8);
    ONE(Int8, int8_t, INT8);
#undef ONE
    PD_TensorDestroy(t);
    PD_PredictorDestroy(p);
}
END_TEST

START_TEST(sequences)
{
    PD_Predictor *p = predictor_of("lod");
    PD_Tensor *t = PD_PredictorGetInputHandle(p, "x");
    size_t numbers[3] = {0, 1, 3};
    PD_OneDimArraySize level = {3, numbers}, *levels[1] = {&level};
    PD_TwoDimArraySize lod = {1, levels};
    PD_TensorSetLod(t, &lod);
    numbers[1] = 9;
    PD_TwoDimArraySize *have = PD_TensorGetLod(t);
    ck_assert_uint_eq(have->size, 1);
    ck_assert_uint_eq(have->data[0]->size, 3);
    ck_assert_uint_eq(have->data[0]->data[1], 1);
    PD_TwoDimArraySizeDestroy(have);
    PD_TensorSetLod(t, &lod); /* falls: refused */
    ck_assert_int_ne(proa_error(), PROA_OK);
    have = PD_TensorGetLod(t);
    ck_assert_uint_eq(have->data[0]->data[1], 1);
    PD_TwoDimArraySizeDestroy(have);
    PD_TensorDestroy(t);
    PD_PredictorDestroy(p);
}
END_TEST

static void *run_clone(void *clone)
{
    float *out = calloc(40 * 12, sizeof *out);
    for (int i = 1; i <= 40; i++) run_once(clone, 1 + i % 3, i, out + 12 * (i - 1));
    return out;
}

START_TEST(ten_clones_in_ten_threads)
{
    PD_Predictor *first = predictor_of("clones"), *clones[10];
    pthread_t threads[10];
    for (int i = 0; i < 10; i++) clones[i] = PD_PredictorClone(i % 2 ? clones[i - 1] : first);
    PD_PredictorDestroy(first); /* clones outlive it */
    float *out[10];
    for (int i = 0; i < 10; i++) pthread_create(&threads[i], NULL, run_clone, clones[i]);
    for (int i = 0; i < 10; i++) pthread_join(threads[i], (void **)&out[i]);
    for (int i = 1; i < 10; i++) ck_assert_mem_eq(out[0], out[i], 480 * sizeof(float));
    for (int i = 0; i < 10; i++) free(out[i]), PD_PredictorDestroy(clones[i]);
}
END_TEST

static char *read_file(const char *path, size_t *bytes)
{
    char *data = malloc(1 << 20);
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    *bytes = fread(data, 1, 1 << 20, f);
    fclose(f);
    return data;
}

START_TEST(models_from_memory)
{
    char prefix[256], path[300];
    size_t n, m;
    save_model(prefix, "memory");
    snprintf(path, sizeof path, "%s.pdmodel", prefix);
    char *model = read_file(path, &n);
    snprintf(path, sizeof path, "%s.pdiparams", prefix);
    char *params = read_file(path, &m);
    PD_Config *c = PD_ConfigCreate();
    ck_assert_int_eq(PD_ConfigModelFromMemory(c), FALSE);
    PD_ConfigSetModelBuffer(c, model, n, params, m);
    ck_assert_int_eq(PD_ConfigModelFromMemory(c), TRUE);
    memset(model, 0, n), free(model), free(params); /* copied */
    PD_Predictor *p = PD_PredictorCreate(c);
    run_once(p, 5, 1, NULL);
    PD_PredictorDestroy(p);
}
END_TEST

START_TEST(models_from_folders)
{
    char dir[256], path[300];
    save_model(dir, "folder");
    PROA_SCOPE {
        proa_program *p = proa_program_load(dir);
        snprintf(path, sizeof path, "%s.pdmodel", dir);
        size_t n;
        char *model = read_file(path, &n), inside[600];
        snprintf(path, sizeof path, "mkdir -p %s", dir);
        ck_assert_int_eq(system(path), 0);
        snprintf(inside, sizeof inside, "%s/__model__", dir);
        FILE *f = fopen(inside, "wb");
        ck_assert_uint_eq(fwrite(model, 1, n, f), n);
        fclose(f);
        free(model);
        for (int i = 0; i < 2; i++) {
            const char *name = i ? "b" : "w";
            snprintf(inside, sizeof inside, "%s/%s", dir, name);
            ck_assert_int_eq(proa_tensor_save(proa_program_value(p, name), inside), PROA_OK);
        }
        proa_program_free(p);
    }
    PD_Config *c = PD_ConfigCreate();
    PD_ConfigSetModelDir(c, dir);
    ck_assert_str_eq(PD_ConfigGetModelDir(c), dir);
    PD_Predictor *p = PD_PredictorCreate(c);
    ck_assert_msg(p != NULL, "%s", proa_error_message());
    run_once(p, 4, 2, NULL);
    PD_PredictorDestroy(p);
}
END_TEST

static void is(const char *what, int have, int want) { ck_assert_msg(have == want, "%s: %d", what, have); }

/* ---- configs ---------------------------------------------------------------------------- */

START_TEST(switches)
{
    PD_Config *c = PD_ConfigCreate();
    PD_ConfigDisableGlogInfo(c);
    ck_assert_int_eq(PD_ConfigGlogInfoDisabled(c), TRUE);
#define IS(F, value) is(#F, PD_Config##F(c), value)
    IS(UseFcPadding, TRUE), PD_ConfigDisableFCPadding(c), IS(UseFcPadding, FALSE);
    IS(IrOptim, TRUE), PD_ConfigSwitchIrOptim(c, FALSE), IS(IrOptim, FALSE);
    IS(MkldnnEnabled, TRUE), PD_ConfigEnableMKLDNN(c), IS(MkldnnEnabled, TRUE);
    IS(MkldnnInt8Enabled, FALSE), PD_ConfigEnableMkldnnInt8(c), IS(MkldnnInt8Enabled, TRUE);
    IS(MkldnnQuantizerEnabled, FALSE), PD_ConfigEnableMkldnnQuantizer(c), IS(MkldnnQuantizerEnabled, TRUE);
    IS(MkldnnBfloat16Enabled, FALSE), PD_ConfigEnableMkldnnBfloat16(c), IS(MkldnnBfloat16Enabled, TRUE);
    IS(MemoryOptimEnabled, FALSE), PD_ConfigEnableMemoryOptim(c), IS(MemoryOptimEnabled, TRUE);
    PD_ConfigEnableMemoryOptim(c, FALSE), IS(MemoryOptimEnabled, FALSE);
    IS(ProfileEnabled, FALSE), PD_ConfigEnableProfile(c), IS(ProfileEnabled, TRUE);
    IS(IsValid, TRUE), PD_ConfigSetInvalid(c), IS(IsValid, FALSE);
    IS(GetCpuMathLibraryNumThreads, 1), PD_ConfigSetCpuMathLibraryNumThreads(c, 3);
    IS(GetCpuMathLibraryNumThreads, 3);
    IS(LiteEngineEnabled, FALSE), PD_ConfigEnableLiteEngine(c, PD_PRECISION_FLOAT32, TRUE, 0, NULL, 0, NULL);
    IS(LiteEngineEnabled, TRUE);
    PD_ConfigSwitchUseFeedFetchOps(c, TRUE), IS(UseFeedFetchOpsEnabled, TRUE);
    PD_ConfigSwitchSpecifyInputNames(c, TRUE), IS(SpecifyInputName, TRUE);
    const char *ops[] = {"conv2d", "relu"};
    PD_ConfigSwitchIrDebug(c, FALSE), PD_ConfigPartiallyRelease(c), PD_ConfigSetMkldnnCacheCapacity(c, 4);
    PD_ConfigSetMkldnnOp(c, 2, ops), PD_ConfigSetBfloat16Op(c, 2, ops),
        PD_ConfigDisableTensorRtOPs(c, 2, ops);
    PD_ConfigSetOptimCacheDir(c, "cache");
    ck_assert_int_eq(proa_error(), PROA_OK);
    PD_ConfigDestroy(c);
}
END_TEST

START_TEST(devices_that_are_not_there)
{
    PD_Config *c = PD_ConfigCreate();
    PD_ConfigDisableGlogInfo(c);
    PD_ConfigEnableUseGpu(c, 100, 0), PD_ConfigEnableUseGpu(c, 100, 0, PD_PRECISION_HALF);
    IS(UseGpu, FALSE), IS(GpuDeviceId, 0), IS(MemoryPoolInitSizeMb, 100);
    PD_ConfigDisableGpu(c);
    ck_assert(PD_ConfigFractionOfGpuMemoryForPool(c) == 0);
    PD_ConfigEnableXpu(c, 100), PD_ConfigEnableXpu(c, 100, 0, 1, "", "int16", 0);
    IS(UseXpu, FALSE), IS(XpuDeviceId, 0);
    PD_ConfigEnableNpu(c, 0), IS(UseNpu, FALSE), IS(NpuDeviceId, 0);
    PD_ConfigEnableCudnn(c), IS(CudnnEnabled, FALSE);
    PD_ConfigEnableTensorRtEngine(c, 1 << 20, 1, 3, PD_PRECISION_INT8, FALSE, TRUE),
        IS(TensorRtEngineEnabled, FALSE);
    const char *names[] = {"x"};
    int32_t dims[] = {1, 3}, *shapes[] = {dims};
    size_t rank[] = {2};
    IS(TensorRtDynamicShapeEnabled, FALSE);
    PD_ConfigSetTrtDynamicShapeInfo(c, 1, names, rank, shapes, shapes, shapes, FALSE);
    IS(TensorRtDynamicShapeEnabled, TRUE);
    IS(TensorRtOssEnabled, FALSE), PD_ConfigEnableTensorRtOSS(c), IS(TensorRtOssEnabled, TRUE);
    PD_ConfigEnableVarseqlen(c), IS(TensorRtOssEnabled, TRUE);
    IS(TensorRtDlaEnabled, FALSE), PD_ConfigEnableTensorRtDla(c, 0), IS(TensorRtDlaEnabled, TRUE);
    IS(TunedTensorRtDynamicShape, FALSE), IS(TrtAllowBuildAtRuntime, FALSE);
    PD_ConfigEnableTunedTensorRtDynamicShape(c, "shapes", TRUE);
    IS(TunedTensorRtDynamicShape, TRUE), IS(TrtAllowBuildAtRuntime, TRUE);
    IS(ShapeRangeInfoCollected, FALSE), PD_ConfigCollectShapeRangeInfo(c, "shapes"),
        IS(ShapeRangeInfoCollected, TRUE);
    char *path = (char *)(uintptr_t)PD_ConfigShapeRangeInfoPath(c);
    ck_assert_str_eq(path, "shapes");
    free(path);
    PD_ConfigEnableGpuMultiStream(c), IS(ThreadLocalStreamEnabled, TRUE);
    PD_ConfigEnableONNXRuntime(c), PD_ConfigEnableORTOptimization(c), IS(ONNXRuntimeEnabled, FALSE);
    PD_ConfigDisableONNXRuntime(c), PD_ConfigSetExecStream(c, NULL);
    char type[] = "nothing";
    PD_ConfigEnableCustomDevice(c, type, 0, PD_PRECISION_FLOAT32), IS(UseCustomDevice, FALSE),
        IS(CustomDeviceId, 0);
    path = PD_ConfigCustomDeviceType(c);
    ck_assert_str_eq(path, "");
    free(path);
    PD_ConfigDestroy(c);
}
END_TEST

START_TEST(texts_and_passes)
{
    PD_Config *c = PD_ConfigCreate();
    PD_ConfigSetProgFile(c, "a"), PD_ConfigSetParamsFile(c, "b");
    ck_assert_str_eq(PD_ConfigGetProgFile(c), "a");
    ck_assert_str_eq(PD_ConfigGetParamsFile(c), "b");
    ck_assert_str_eq(PD_ConfigGetModelDir(c), "");
    PD_OneDimArrayCstr *before = PD_ConfigAllPasses(c);
    ck_assert_uint_gt(before->size, 5);
    PD_ConfigDeletePass(c, before->data[0]), PD_ConfigDeletePass(c, "conv_bn_fuse_pass");
    PD_ConfigInsertPass(c, 0, "mine"), PD_ConfigAppendPass(c, "last");
    PD_OneDimArrayCstr *after = PD_ConfigAllPasses(c);
    ck_assert_uint_eq(after->size, before->size + 1);
    ck_assert_str_eq(after->data[0], "mine");
    ck_assert_str_eq(after->data[after->size - 1], "last");
    PD_Cstr *summary = PD_ConfigSummary(c);
    ck_assert_uint_eq(summary->size, strlen(summary->data) + 1);
    ck_assert_ptr_nonnull(strstr(summary->data, "cpu_math_thread"));
    PD_OneDimArrayCstrDestroy(before), PD_OneDimArrayCstrDestroy(after), PD_CstrDestroy(summary);
    PD_ConfigDestroy(c);
}
END_TEST

START_TEST(configs_end_with_their_predictors)
{
    char prefix[256];
    save_model(prefix, "owned");
    PD_Config *c = config_of(prefix);
    PD_Predictor *p = PD_PredictorCreate(c);
    ck_assert_ptr_null(PD_PredictorCreate(c)); /* a config is for one predictor */
    PD_ConfigDestroy(c);                       /* late, and harmless */
    ck_assert_int_eq(PD_ConfigIrOptim(c), TRUE);
    PD_Predictor *clone = PD_PredictorClone(p);
    PD_PredictorDestroy(p);
    ck_assert_int_eq(PD_ConfigIrOptim(c), TRUE);
    run_once(clone, 2, 1, NULL);
    PD_PredictorDestroy(clone);
    PD_ConfigDestroy(NULL), PD_PredictorDestroy(NULL), PD_TensorDestroy(NULL), PD_CstrDestroy(NULL);
    PD_OneDimArrayInt32Destroy(NULL), PD_OneDimArrayInt64Destroy(NULL), PD_OneDimArraySizeDestroy(NULL);
    PD_OneDimArrayCstrDestroy(NULL), PD_TwoDimArraySizeDestroy(NULL), PD_IOInfoDestroy(NULL);
    PD_IOInfosDestroy(NULL);
}
END_TEST

/* ---- wrong use -------------------------------------------------------------------------- */

static bool said(const char *what) { return strstr(proa_error_message(), what) != NULL; }

START_TEST(wrong_models)
{
    char prefix[256], path[300];
    save_model(prefix, "wrong");
    PD_Config *c = PD_ConfigCreate();
    PD_ConfigDisableGlogInfo(c);
    ck_assert_ptr_null(PD_PredictorCreate(c));
    ck_assert(said("names no model"));
    PD_ConfigSetModel(c, "/no/model", "/no/params");
    ck_assert_ptr_null(PD_PredictorCreate(c));
    ck_assert(said("/no/model"));
    snprintf(path, sizeof path, "%s.pdmodel", prefix);
    PD_ConfigSetProgFile(c, path);
    ck_assert_ptr_null(PD_PredictorCreate(c));
    ck_assert(said("parameter file '/no/params'"));
    PD_ConfigSetParamsFile(c, path); /* a program is no parameters */
    ck_assert_ptr_null(PD_PredictorCreate(c));
    snprintf(path, sizeof path, "%s.pdiparams", prefix);
    PD_ConfigSetParamsFile(c, path);
    PD_Predictor *p = PD_PredictorCreate(c); /* mended */
    run_once(p, 2, 1, NULL);
    PD_PredictorDestroy(p);
    c = PD_ConfigCreate();
    PD_ConfigDisableGlogInfo(c);
    PD_ConfigSetInvalid(c);
    ck_assert_ptr_null(PD_PredictorCreate(c));
    ck_assert(said("invalid"));
    PD_ConfigDestroy(c);
}
END_TEST

START_TEST(wrong_inputs)
{
    PD_Predictor *p = predictor_of("inputs");
    float x[12] = {0};
    int32_t whole[12] = {0};
    ck_assert_int_eq(PD_PredictorRun(p), FALSE);
    ck_assert(said("'x' has no data"));
    ck_assert_ptr_null(PD_PredictorGetInputHandle(p, "y"));
    ck_assert(said("it has: x"));
    ck_assert_ptr_null(PD_PredictorGetOutputHandle(p, NULL));
    PD_Tensor *in = PD_PredictorGetInputHandle(p, "x");
    PD_TensorCopyFromCpuFloat(in, x);
    ck_assert(said("reshape it first"));
    PD_TensorReshape(in, 2, (int32_t[]){3, 4});
    PD_TensorCopyFromCpuFloat(in, x);
    ck_assert_int_eq(PD_PredictorRun(p), FALSE);
    ck_assert(said("x"));
    PD_TensorReshape(in, 1, (int32_t[]){3});
    PD_TensorCopyFromCpuFloat(in, x);
    ck_assert_int_eq(PD_PredictorRun(p), FALSE);
    PD_TensorReshape(in, 2, (int32_t[]){2, 3});
    PD_TensorCopyFromCpuInt32(in, whole);
    ck_assert_int_eq(PD_PredictorRun(p), FALSE);
    PD_TensorReshape(in, 2, (int32_t[]){-2, 3});
    ck_assert_int_ne(proa_error(), PROA_OK);
    PD_TensorReshape(in, 99, (int32_t[99]){1});
    ck_assert(said("at most"));
    run_once(p, 2, 1, NULL); /* it goes on working */
    ck_assert_int_eq(proa_error(), PROA_OK);
    PD_TensorDestroy(in);
    PD_PredictorDestroy(p);
}
END_TEST

START_TEST(nothing_for_null)
{
    ck_assert_int_eq(dup2(fileno(fopen("/dev/null", "w")), STDERR_FILENO), STDERR_FILENO);
    ck_assert_ptr_null(PD_PredictorCreate(NULL));
    ck_assert_ptr_null(PD_PredictorClone(NULL));
    ck_assert_ptr_null(PD_PredictorGetInputNames(NULL));
    ck_assert_ptr_null(PD_PredictorGetOutputInfos(NULL));
    ck_assert_ptr_null(PD_PredictorGetInputHandle(NULL, "x"));
    ck_assert_int_eq(PD_PredictorRun(NULL), FALSE);
    ck_assert_uint_eq(PD_PredictorTryShrinkMemory(NULL), 0);
    ck_assert_ptr_null(PD_TensorGetShape(NULL));
    ck_assert_ptr_null(PD_TensorGetLod(NULL));
    ck_assert_ptr_null(PD_TensorMutableDataFloat(NULL, PD_PLACE_CPU));
    ck_assert_ptr_null(PD_ConfigAllPasses(NULL));
    ck_assert_ptr_null(PD_ConfigSummary(NULL));
    ck_assert_ptr_null(PD_ConfigGetProgFile(NULL));
    ck_assert_int_eq(PD_ConfigIrOptim(NULL), FALSE);
    PD_ConfigSetModel(NULL, "a", "b"), PD_ConfigSwitchIrOptim(NULL, TRUE), PD_TensorSetLod(NULL, NULL);
    PD_ConfigDeletePass(NULL, NULL), PD_PredictorClearIntermediateTensor(NULL),
        PD_TensorReshape(NULL, 0, NULL);
    PD_Config *c = PD_ConfigCreate();
    PD_ConfigSetModel(c, NULL, NULL), PD_ConfigAppendPass(c, NULL),
        PD_ConfigSetModelBuffer(c, NULL, 3, NULL, 4);
    PD_ConfigSetMkldnnOp(c, 2, NULL), PD_ConfigEnableCustomDevice(c, NULL, 0, 0);
    PD_ConfigDestroy(c);
    ck_assert_int_ne(proa_error(), PROA_OK);
}
END_TEST

/* Resident memory in KiB. */
static long resident(void)
{
    long pages = 0, whole = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld %ld", &whole, &pages) != 2) pages = 0;
    if (f) fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

START_TEST(memory_stays_flat)
{
    PD_Predictor *p = predictor_of("flat");
    for (int i = 0; i < 500; i++) run_once(p, 1 + i % 250, 1, NULL);
    long before = resident();
    for (int i = 0; i < 2000; i++) run_once(p, 1 + i % 250, 1, NULL);
    long after = resident();
#if defined(__SANITIZE_ADDRESS__) || \
    defined(__SANITIZE_THREAD__) /* which keep freed memory, and notes of it */
    (void)before, (void)after;
#else
    ck_assert_msg(after <= before + before / 50, "%ld KiB, then %ld", before, after);
#endif
    PD_PredictorDestroy(p);
}
END_TEST

SUITE("capi", quick_start, names_numbers_infos, zero_copy, every_dtype, sequences, ten_clones_in_ten_threads,
      models_from_memory, models_from_folders, switches, devices_that_are_not_there, texts_and_passes,
      configs_end_with_their_predictors, wrong_models, wrong_inputs, nothing_for_null, memory_stays_flat)
