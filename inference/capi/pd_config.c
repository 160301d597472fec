/* PD_Config functions of Paddle's C interface. Macros over lists define the regular setters and getters. May
 * use proa/inference.h alone. */
#include "capi.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- creating and freeing --------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static PD_Config *untaken; /* configs that no predictor owns */

static void end(PD_Config *c)
{
    proa_config_free(c->config);
    free(c);
}

/* Removes c from the list; false if it was not there. */
static bool take(PD_Config *c)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (PD_Config **at = &untaken; *at && !found; at = &(*at)->next) {
        if (*at != c) continue;
        *at = c->next;
        found = true;
        break;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

PD_Config *PD_ConfigCreate(void)
{
    proa_clear_error();
    PD_Config *c = pd_alloc(sizeof *c);
    if (c) c->config = proa_config_new();
    if (!c || !c->config) {
        free(c);
        pd_end(false);
        return NULL;
    }
    atomic_init(&c->refs, 1);
    pthread_mutex_lock(&lock);
    c->next = untaken;
    untaken = c;
    pthread_mutex_unlock(&lock);
    return c;
}

void PD_ConfigDestroy(PD_Config *config)
{
    if (config && take(config)) end(config);
}

void pd_config_take(PD_Config *c) { take(c); }

void pd_config_retain(PD_Config *c) { atomic_fetch_add(&c->refs, 1); }

void pd_config_release(PD_Config *c)
{
    if (atomic_fetch_sub(&c->refs, 1) == 1) end(c);
}

bool pd_is_quiet(const PD_Config *c) { return !proa_config_get(c->config, PROA_CONFIG_LOG); }

/* ---- setters and getters, by kind ------------------------------------------------------- */

static void set(const char *who, PD_Config *c, proa_config_number which, int64_t value)
{
    if (!pd_begin(who, c)) return;
    proa_config_set(c->config, which, value);
    pd_end(pd_is_quiet(c));
}

static int64_t get(const char *who, PD_Config *c, proa_config_number which)
{
    return pd_begin(who, c) ? proa_config_get(c->config, which) : 0;
}

/* X(function, number, value) */
#define SAYS(X)                                   \
    X(DisableFCPadding, FC_PADDING, 0)            \
    X(EnableMKLDNN, ONEDNN, 1)                    \
    X(EnableMkldnnQuantizer, ONEDNN_QUANTIZER, 1) \
    X(EnableMkldnnBfloat16, ONEDNN_BFLOAT16, 1)   \
    X(EnableMkldnnInt8, ONEDNN_INT8, 1)           \
    X(EnableProfile, PROFILE, 1)                  \
    X(DisableGlogInfo, LOG, 0)                    \
    X(SetInvalid, VALID, 0)                       \
    X(PartiallyRelease, PARTIAL_RELEASE, 1)
#define PD_X(F, NAME, value) \
    void PD_Config##F(PD_Config *config) { set("PD_Config" #F, config, PROA_CONFIG_##NAME, value); }
SAYS(PD_X)
#undef PD_X

/* X(function, number, type, value of x) */
#define SETS(X)                                                      \
    X(SwitchIrOptim, IR_OPTIM, PD_Bool, x != 0)                      \
    X(SwitchIrDebug, IR_DEBUG, PD_Bool, x != 0)                      \
    X(SwitchUseFeedFetchOps, FEED_FETCH_OPS, PD_Bool, x != 0)        \
    X(SwitchSpecifyInputNames, SPECIFY_INPUT_NAMES, PD_Bool, x != 0) \
    X(SetMkldnnCacheCapacity, ONEDNN_CACHE_CAPACITY, int32_t, x)     \
    X(SetCpuMathLibraryNumThreads, CPU_THREADS, int32_t, x)
#define PD_X(F, NAME, T, value) \
    void PD_Config##F(PD_Config *config, T x) { set("PD_Config" #F, config, PROA_CONFIG_##NAME, value); }
SETS(PD_X)
#undef PD_X

void(PD_ConfigEnableMemoryOptim)(PD_Config *config, PD_Bool x)
{
    set("PD_ConfigEnableMemoryOptim", config, PROA_CONFIG_MEMORY_OPTIM, x != 0);
}

/* X(function, number) */
#define ASKS(X)                                          \
    X(UseFcPadding, FC_PADDING)                          \
    X(IrOptim, IR_OPTIM)                                 \
    X(MkldnnEnabled, ONEDNN)                             \
    X(MkldnnQuantizerEnabled, ONEDNN_QUANTIZER)          \
    X(MkldnnBfloat16Enabled, ONEDNN_BFLOAT16)            \
    X(MkldnnInt8Enabled, ONEDNN_INT8)                    \
    X(MemoryOptimEnabled, MEMORY_OPTIM)                  \
    X(ProfileEnabled, PROFILE)                           \
    X(IsValid, VALID)                                    \
    X(LiteEngineEnabled, LITE_ENGINE)                    \
    X(UseFeedFetchOpsEnabled, FEED_FETCH_OPS)            \
    X(SpecifyInputName, SPECIFY_INPUT_NAMES)             \
    X(TensorRtOssEnabled, TENSORRT_OSS)                  \
    X(TensorRtDlaEnabled, TENSORRT_DLA)                  \
    X(TensorRtDynamicShapeEnabled, TENSORRT_SHAPES)      \
    X(TunedTensorRtDynamicShape, TENSORRT_TUNED)         \
    X(TrtAllowBuildAtRuntime, TENSORRT_BUILD_AT_RUNTIME) \
    X(ShapeRangeInfoCollected, SHAPES_COLLECTED)         \
    X(ThreadLocalStreamEnabled, STREAM_OF_THREAD)
#define PD_X(F, NAME) \
    PD_Bool PD_Config##F(PD_Config *config) { return get("PD_Config" #F, config, PROA_CONFIG_##NAME) != 0; }
ASKS(PD_X)
#undef PD_X

PD_Bool PD_ConfigGlogInfoDisabled(PD_Config *config)
{
    return pd_begin("PD_ConfigGlogInfoDisabled", config) && pd_is_quiet(config);
}

int32_t PD_ConfigGetCpuMathLibraryNumThreads(PD_Config *config)
{
    return (int32_t)get("PD_ConfigGetCpuMathLibraryNumThreads", config, PROA_CONFIG_CPU_THREADS);
}

int32_t PD_ConfigMemoryPoolInitSizeMb(PD_Config *config)
{
    return (int32_t)get("PD_ConfigMemoryPoolInitSizeMb", config, PROA_CONFIG_GPU_POOL_MB);
}

/* X(setter, text) and X(getter, text) */
#define TEXT_SETTERS(X)           \
    X(SetProgFile, MODEL_FILE)    \
    X(SetParamsFile, PARAMS_FILE) \
    X(SetModelDir, MODEL_DIR)     \
    X(SetOptimCacheDir, CACHE_DIR)
#define PD_X(F, NAME)                                                   \
    void PD_Config##F(PD_Config *config, const char *path)              \
    {                                                                   \
        if (!pd_begin("PD_Config" #F, config)) return;                  \
        proa_config_set_text(config->config, PROA_CONFIG_##NAME, path); \
        pd_end(pd_is_quiet(config));                                    \
    }
TEXT_SETTERS(PD_X)
#undef PD_X

#define TEXT_GETTERS(X) X(GetModelDir, MODEL_DIR) X(GetProgFile, MODEL_FILE) X(GetParamsFile, PARAMS_FILE)
#define PD_X(F, NAME)                                                    \
    const char *PD_Config##F(PD_Config *config)                          \
    {                                                                    \
        if (!pd_begin("PD_Config" #F, config)) return NULL;              \
        return proa_config_get_text(config->config, PROA_CONFIG_##NAME); \
    }
TEXT_GETTERS(PD_X)
#undef PD_X

/* ---- the model -------------------------------------------------------------------------- */

void PD_ConfigSetModel(PD_Config *config, const char *prog_file_path, const char *params_file_path)
{
    PD_ConfigSetProgFile(config, prog_file_path);
    if (proa_error() == PROA_OK) PD_ConfigSetParamsFile(config, params_file_path);
}

void PD_ConfigSetModelBuffer(PD_Config *config, const char *prog_buffer, size_t prog_buffer_size,
                             const char *params_buffer, size_t params_buffer_size)
{
    if (!pd_begin("PD_ConfigSetModelBuffer", config)) return;
    proa_config_set_buffers(config->config, prog_buffer, prog_buffer_size,
                            params_buffer_size ? params_buffer : NULL, params_buffer_size);
    pd_end(pd_is_quiet(config));
}

PD_Bool PD_ConfigModelFromMemory(PD_Config *config)
{
    return pd_begin("PD_ConfigModelFromMemory", config) && proa_config_has_buffers(config->config);
}

/* ---- lists ------------------------------------------------------------------------------ */

static void insert(const char *who, PD_Config *c, int64_t at, const char *pass)
{
    if (!pd_begin(who, c)) return;
    proa_config_insert(c->config, PROA_CONFIG_PASSES, at, pass);
    pd_end(pd_is_quiet(c));
}

void PD_ConfigInsertPass(PD_Config *config, size_t idx, const char *pass)
{
    insert("PD_ConfigInsertPass", config, idx < INT64_MAX ? (int64_t)idx : INT64_MAX, pass);
}

void PD_ConfigAppendPass(PD_Config *config, const char *pass)
{
    insert("PD_ConfigAppendPass", config, INT64_MAX, pass);
}

void PD_ConfigDeletePass(PD_Config *config, const char *pass)
{
    if (!pd_begin("PD_ConfigDeletePass", config)) return;
    proa_config_remove(config->config, PROA_CONFIG_PASSES, pass);
    pd_end(pd_is_quiet(config));
}

static const char *pass_of(const void *config, int64_t i)
{
    return proa_config_name(config, PROA_CONFIG_PASSES, i);
}

PD_OneDimArrayCstr *PD_ConfigAllPasses(PD_Config *config)
{
    if (!pd_begin("PD_ConfigAllPasses", config)) return NULL;
    size_t n = (size_t)proa_config_count(config->config, PROA_CONFIG_PASSES);
    PD_OneDimArrayCstr *all = pd_names(n, pass_of, config->config);
    pd_end(pd_is_quiet(config));
    return all;
}

static void set_list(const char *who, PD_Config *c, proa_config_list which, size_t n, const char **names)
{
    if (!pd_begin(who, n && !names ? NULL : c)) return;
    proa_config_clear(c->config, which);
    for (size_t i = 0; i < n; i++) proa_config_insert(c->config, which, (int64_t)i, names[i]);
    pd_end(pd_is_quiet(c));
}

#define LISTS(X)                   \
    X(SetMkldnnOp, ONEDNN_OPS)     \
    X(SetBfloat16Op, BFLOAT16_OPS) \
    X(DisableTensorRtOPs, TENSORRT_EXCLUDED)
#define PD_X(F, NAME)                                                   \
    void PD_Config##F(PD_Config *config, size_t n, const char **names)  \
    {                                                                   \
        set_list("PD_Config" #F, config, PROA_CONFIG_##NAME, n, names); \
    }
LISTS(PD_X)
#undef PD_X

/* ---- devices ---------------------------------------------------------------------------- */

/* Sets the config's device. If that does not exist, prints so and leaves the device as it was. */
static void use_device(const char *who, PD_Config *c, const char *type, int32_t id)
{
    char name[128];
    if (!pd_begin(who, type ? (const void *)c : NULL)) return;
    snprintf(name, sizeof name, "%s:%d", type, (int)id);
    proa_config_set_device(c->config, name);
    pd_end(pd_is_quiet(c));
}

/* The type and number of the config's device; false on the CPU. */
static bool device_of(const char *who, PD_Config *c, char *type, size_t bytes, int32_t *id)
{
    *type = 0;
    *id = 0;
    if (!pd_begin(who, c)) return false;
    const char *name = proa_config_device(c->config), *colon = strchr(name, ':');
    if (!colon) return false;
    snprintf(type, bytes, "%.*s", (int)(colon - name), name);
    *id = (int32_t)strtol(colon + 1, NULL, 10);
    return true;
}

/* True if the config's device is a GPU (gpu = true) or neither CPU nor GPU (gpu = false). *id: its number, or
 * 0. */
static bool is_on(const char *who, PD_Config *c, bool gpu, int32_t *id)
{
    char type[64];
    bool there = device_of(who, c, type, sizeof type, id) && (strcmp(type, "gpu") == 0) == gpu;
    if (!there) *id = 0;
    return there;
}

void(PD_ConfigEnableUseGpu)(PD_Config *config, uint64_t memory_pool_init_size_mb, int32_t device_id,
                            PD_PrecisionType precision_mode)
{
    (void)precision_mode;
    use_device("PD_ConfigEnableUseGpu", config, "gpu", device_id);
    if (config && proa_error() == PROA_OK)
        set("PD_ConfigEnableUseGpu", config, PROA_CONFIG_GPU_POOL_MB, (int64_t)memory_pool_init_size_mb);
}

void PD_ConfigDisableGpu(PD_Config *config)
{
    if (!pd_begin("PD_ConfigDisableGpu", config)) return;
    proa_config_set_device(config->config, "cpu");
    pd_end(pd_is_quiet(config));
}

PD_Bool PD_ConfigUseGpu(PD_Config *config)
{
    int32_t id;
    return is_on("PD_ConfigUseGpu", config, true, &id);
}

int32_t PD_ConfigGpuDeviceId(PD_Config *config)
{
    int32_t id;
    is_on("PD_ConfigGpuDeviceId", config, true, &id);
    return id;
}

void PD_ConfigEnableCustomDevice(PD_Config *config, char *device_type, int32_t device_id,
                                 PD_PrecisionType precision)
{
    (void)precision;
    use_device("PD_ConfigEnableCustomDevice", config, device_type, device_id);
}

PD_Bool PD_ConfigUseCustomDevice(PD_Config *config)
{
    int32_t id;
    return is_on("PD_ConfigUseCustomDevice", config, false, &id);
}

int32_t PD_ConfigCustomDeviceId(PD_Config *config)
{
    int32_t id;
    is_on("PD_ConfigCustomDeviceId", config, false, &id);
    return id;
}

char *PD_ConfigCustomDeviceType(PD_Config *config)
{
    char type[64];
    int32_t id;
    bool on = is_on("PD_ConfigCustomDeviceType", config, false, &id);
    device_of("PD_ConfigCustomDeviceType", config, type, sizeof type, &id);
    char *copy = pd_alloc(sizeof type);
    if (copy && on) strcpy(copy, type);
    return copy;
}

/* ---- features that Proa lacks ----------------------------------------------------------- */

/* Prints, once per feature, that Proa does not have it. */
static void absent(PD_Config *c, const char *who, const char *what, atomic_bool *said)
{
    if (!pd_begin(who, c) || pd_is_quiet(c) || atomic_exchange(said, true)) return;
    fprintf(stderr, "proa: %s: there is no %s here; the model runs natively on %s\n", who, what,
            proa_config_device(c->config));
}

/* X(function, (further parameters), (void) of them, what); those below store a number as well */
#define NOT_THERE(X)                                                                                \
    X(EnableNpu, (PD_Config * config, int32_t id), (void)id, "NPU")                                 \
    X(EnableCudnn, (PD_Config * config), (void)0, "cuDNN switch")                                   \
    X(EnableTensorRtEngine,                                                                         \
      (PD_Config * config, int64_t bytes, int32_t batch, int32_t least, PD_PrecisionType precision, \
       PD_Bool use_static, PD_Bool calibrates),                                                     \
      ((void)bytes, (void)batch, (void)least, (void)precision, (void)use_static, (void)calibrates), \
      "TensorRT")                                                                                   \
    X(EnableONNXRuntime, (PD_Config * config), (void)0, "ONNX Runtime")                             \
    X(DisableONNXRuntime, (PD_Config * config), (void)0, "ONNX Runtime")                            \
    X(EnableORTOptimization, (PD_Config * config), (void)0, "ONNX Runtime")                         \
    X(SetExecStream, (PD_Config * config, void *stream), (void)stream, "stream of the caller's")
#define PD_X(F, parameters, unused, what)            \
    void PD_Config##F parameters                     \
    {                                                \
        static atomic_bool said;                     \
        unused;                                      \
        absent(config, "PD_Config" #F, what, &said); \
    }
NOT_THERE(PD_X)
#undef PD_X

/* X(function, (further parameters), (void) of them, what, number) */
#define KEPT_AND_SAID(X)                                                                                   \
    X(SetTrtDynamicShapeInfo,                                                                              \
      (PD_Config * config, size_t n, const char **names, size_t *ranks, int32_t **least, int32_t **most,   \
       int32_t **best, PD_Bool no_fp16),                                                                   \
      ((void)n, (void)names, (void)ranks, (void)least, (void)most, (void)best, (void)no_fp16), "TensorRT", \
      TENSORRT_SHAPES)                                                                                     \
    X(EnableTensorRtOSS, (PD_Config * config), (void)0, "TensorRT", TENSORRT_OSS)                          \
    X(EnableVarseqlen, (PD_Config * config), (void)0, "TensorRT", TENSORRT_OSS)                            \
    X(EnableTensorRtDla, (PD_Config * config, int32_t core), (void)core, "TensorRT", TENSORRT_DLA)         \
    X(EnableGpuMultiStream, (PD_Config * config), (void)0, "stream of each thread", STREAM_OF_THREAD)
#define PD_X(F, parameters, unused, what, NAME)                         \
    void PD_Config##F parameters                                        \
    {                                                                   \
        static atomic_bool said;                                        \
        unused;                                                         \
        absent(config, "PD_Config" #F, what, &said);                    \
        if (config) set("PD_Config" #F, config, PROA_CONFIG_##NAME, 1); \
    }
KEPT_AND_SAID(PD_X)
#undef PD_X

void PD_ConfigEnableTunedTensorRtDynamicShape(PD_Config *config, const char *path, PD_Bool build)
{
    static atomic_bool said;
    const char *who = "PD_ConfigEnableTunedTensorRtDynamicShape";
    absent(config, who, "TensorRT", &said);
    if (!pd_begin(who, config)) return;
    proa_config_set_text(config->config, PROA_CONFIG_SHAPE_PATH, path);
    proa_config_set(config->config, PROA_CONFIG_TENSORRT_TUNED, 1);
    proa_config_set(config->config, PROA_CONFIG_TENSORRT_BUILD_AT_RUNTIME, build != 0);
    pd_end(pd_is_quiet(config));
}

void(PD_ConfigEnableXpu)(PD_Config *config, int32_t l3_workspace_size, PD_Bool locked, PD_Bool autotune,
                         const char *autotune_file, const char *precision, PD_Bool adaptive_seqlen,
                         PD_Bool enable_multi_stream)
{
    static atomic_bool said;
    (void)l3_workspace_size, (void)locked, (void)autotune, (void)autotune_file, (void)precision;
    (void)adaptive_seqlen, (void)enable_multi_stream;
    absent(config, "PD_ConfigEnableXpu", "XPU", &said);
}

void PD_ConfigEnableLiteEngine(PD_Config *config, PD_PrecisionType precision, PD_Bool zero_copy,
                               size_t passes_filter_num, const char **passes_filter, size_t ops_filter_num,
                               const char **ops_filter)
{
    static atomic_bool said;
    (void)precision, (void)zero_copy, (void)passes_filter_num, (void)passes_filter, (void)ops_filter_num;
    (void)ops_filter;
    absent(config, "PD_ConfigEnableLiteEngine", "Paddle Lite", &said);
    if (config) set("PD_ConfigEnableLiteEngine", config, PROA_CONFIG_LITE_ENGINE, 1);
}

void PD_ConfigCollectShapeRangeInfo(PD_Config *config, const char *shape_range_info_path)
{
    static atomic_bool said;
    absent(config, "PD_ConfigCollectShapeRangeInfo", "TensorRT", &said);
    if (!pd_begin("PD_ConfigCollectShapeRangeInfo", config)) return;
    proa_config_set_text(config->config, PROA_CONFIG_SHAPE_PATH, shape_range_info_path);
    proa_config_set(config->config, PROA_CONFIG_SHAPES_COLLECTED, 1);
    pd_end(pd_is_quiet(config));
}

const char *PD_ConfigShapeRangeInfoPath(PD_Config *config)
{
    if (!pd_begin("PD_ConfigShapeRangeInfoPath", config)) return NULL;
    const char *path = proa_config_get_text(config->config, PROA_CONFIG_SHAPE_PATH);
    char *copy = pd_alloc(strlen(path) + 1);
    return copy ? strcpy(copy, path) : NULL;
}

/* X(type, function) */
#define NEVER(X)                      \
    X(PD_Bool, UseXpu)                \
    X(PD_Bool, UseNpu)                \
    X(PD_Bool, CudnnEnabled)          \
    X(PD_Bool, TensorRtEngineEnabled) \
    X(PD_Bool, ONNXRuntimeEnabled)    \
    X(int32_t, XpuDeviceId)           \
    X(int32_t, NpuDeviceId)           \
    X(float, FractionOfGpuMemoryForPool)
#define PD_X(T, F)                        \
    T PD_Config##F(PD_Config *config)     \
    {                                     \
        pd_begin("PD_Config" #F, config); \
        return 0;                         \
    }
NEVER(PD_X)
#undef PD_X

PD_Cstr *PD_ConfigSummary(PD_Config *config)
{
    char *text = NULL;
    size_t size = 0;
    if (!pd_begin("PD_ConfigSummary", config)) return NULL;
    FILE *to = open_memstream(&text, &size);
    if (to) {
        proa_config_print(config->config, to);
        fclose(to);
    }
    PD_Cstr *summary = to && proa_error() == PROA_OK ? pd_text(text) : NULL;
    free(text);
    pd_end(pd_is_quiet(config));
    return summary;
}
