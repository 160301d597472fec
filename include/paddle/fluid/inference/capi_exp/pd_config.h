/* Configs of Paddle's C interface. PD_ functions never abort: a call that fails does nothing, returns NULL,
 * FALSE or 0, and leaves its message for proa_error_message (proa/core.h). Implemented by inference/capi/. */
#ifndef PROA_PD_CONFIG_H
#define PROA_PD_CONFIG_H

#include "pd_common.h"
#include "pd_types.h"
#include "pd_utils.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PD_Config PD_Config;

/* An empty config, with the defaults of docs/inference.md. PD_PredictorCreate takes it; destroying it after
 * that, or NULL, does nothing. */
PADDLE_CAPI_EXPORT extern __pd_give PD_Config *PD_ConfigCreate(void);
PADDLE_CAPI_EXPORT extern void PD_ConfigDestroy(__pd_take PD_Config *config);

/* Model: two files, a folder with __model__ and one file a variable, or buffers, which are copied. */
PADDLE_CAPI_EXPORT extern void PD_ConfigSetModel(__pd_keep PD_Config *config, const char *prog_file_path,
                                                 const char *params_file_path);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetModelDir(__pd_keep PD_Config *config, const char *path);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetProgFile(__pd_keep PD_Config *config, const char *path);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetParamsFile(__pd_keep PD_Config *config, const char *path);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetModelBuffer(__pd_keep PD_Config *config, const char *prog_buffer,
                                                       size_t prog_buffer_size, const char *params_buffer,
                                                       size_t params_buffer_size);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigModelFromMemory(__pd_keep PD_Config *config);

/* The file or folder that was set, "" if none. Borrowed until it is set again. */
PADDLE_CAPI_EXPORT extern const char *PD_ConfigGetModelDir(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern const char *PD_ConfigGetProgFile(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern const char *PD_ConfigGetParamsFile(__pd_keep PD_Config *config);

/* Optimizing passes. Without them results have the bits of eager execution. */
PADDLE_CAPI_EXPORT extern void PD_ConfigSwitchIrOptim(__pd_keep PD_Config *config, PD_Bool x);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigIrOptim(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigSwitchIrDebug(__pd_keep PD_Config *config, PD_Bool x);

/* Removes a pass from, or adds one to, those that run, by Proa's names; unknown names are stored unused. */
PADDLE_CAPI_EXPORT extern void PD_ConfigDeletePass(__pd_keep PD_Config *config, const char *pass);
PADDLE_CAPI_EXPORT extern void PD_ConfigInsertPass(__pd_keep PD_Config *config, size_t idx, const char *pass);
PADDLE_CAPI_EXPORT extern void PD_ConfigAppendPass(__pd_keep PD_Config *config, const char *pass);
PADDLE_CAPI_EXPORT extern __pd_give PD_OneDimArrayCstr *PD_ConfigAllPasses(__pd_keep PD_Config *config);

/* Threads of a run; below 1: those of the calling thread. */
PADDLE_CAPI_EXPORT extern void PD_ConfigSetCpuMathLibraryNumThreads(__pd_keep PD_Config *config, int32_t n);
PADDLE_CAPI_EXPORT extern int32_t PD_ConfigGetCpuMathLibraryNumThreads(__pd_keep PD_Config *config);

/* oneDNN's switches. Kernels are chosen by speed in any case; capacity and op lists are stored unused. */
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableMKLDNN(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigMkldnnEnabled(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetMkldnnOp(__pd_keep PD_Config *config, size_t ops_num,
                                                    const char **op_list);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetMkldnnCacheCapacity(__pd_keep PD_Config *config, int32_t n);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableMkldnnQuantizer(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigMkldnnQuantizerEnabled(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableMkldnnBfloat16(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigMkldnnBfloat16Enabled(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetBfloat16Op(__pd_keep PD_Config *config, size_t ops_num,
                                                      const char **op_list);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableMkldnnInt8(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigMkldnnInt8Enabled(__pd_keep PD_Config *config);

/* Switches that are kept and read back: docs/inference.md says which change a run. */
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableMemoryOptim(__pd_keep PD_Config *config, PD_Bool x);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigMemoryOptimEnabled(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigDisableFCPadding(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigUseFcPadding(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableProfile(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigProfileEnabled(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigDisableGlogInfo(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigGlogInfoDisabled(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetInvalid(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigIsValid(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigPartiallyRelease(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetOptimCacheDir(__pd_keep PD_Config *config, const char *path);
PADDLE_CAPI_EXPORT extern void PD_ConfigSwitchUseFeedFetchOps(__pd_keep PD_Config *config, PD_Bool x);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigUseFeedFetchOpsEnabled(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigSwitchSpecifyInputNames(__pd_keep PD_Config *config, PD_Bool x);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigSpecifyInputName(__pd_keep PD_Config *config);

/* A GPU, where a device plug-in offers one; otherwise this is said once and the model runs on the CPU. */
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableUseGpu(__pd_keep PD_Config *config,
                                                     uint64_t memory_pool_init_size_mb, int32_t device_id,
                                                     PD_PrecisionType precision_mode);
PADDLE_CAPI_EXPORT extern void PD_ConfigDisableGpu(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigUseGpu(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern int32_t PD_ConfigGpuDeviceId(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern int32_t PD_ConfigMemoryPoolInitSizeMb(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern float PD_ConfigFractionOfGpuMemoryForPool(__pd_keep PD_Config *config);

/* Devices and engines that there are not: said once, and the model runs natively. */
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableXpu(__pd_keep PD_Config *config, int32_t l3_workspace_size,
                                                  PD_Bool locked, PD_Bool autotune, const char *autotune_file,
                                                  const char *precision, PD_Bool adaptive_seqlen,
                                                  PD_Bool enable_multi_stream);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableNpu(__pd_keep PD_Config *config, int32_t device_id);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigUseXpu(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigUseNpu(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern int32_t PD_ConfigXpuDeviceId(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern int32_t PD_ConfigNpuDeviceId(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableCudnn(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigCudnnEnabled(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableTensorRtEngine(__pd_keep PD_Config *config,
                                                             int64_t workspace_size, int32_t max_batch_size,
                                                             int32_t min_subgraph_size,
                                                             PD_PrecisionType precision, PD_Bool use_static,
                                                             PD_Bool use_calib_mode);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigTensorRtEngineEnabled(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetTrtDynamicShapeInfo(__pd_keep PD_Config *config, size_t tensor_num,
                                                               const char **tensor_name, size_t *shapes_num,
                                                               int32_t **min_shape, int32_t **max_shape,
                                                               int32_t **optim_shape,
                                                               PD_Bool disable_trt_plugin_fp16);
PADDLE_CAPI_EXPORT extern void PD_ConfigDisableTensorRtOPs(__pd_keep PD_Config *config, size_t ops_num,
                                                           const char **ops_name);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableTensorRtOSS(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigTensorRtOssEnabled(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableTensorRtDla(__pd_keep PD_Config *config, int32_t dla_core);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigTensorRtDlaEnabled(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableLiteEngine(__pd_keep PD_Config *config,
                                                         PD_PrecisionType precision, PD_Bool zero_copy,
                                                         size_t passes_filter_num, const char **passes_filter,
                                                         size_t ops_filter_num, const char **ops_filter);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigLiteEngineEnabled(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableGpuMultiStream(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigThreadLocalStreamEnabled(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableONNXRuntime(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigDisableONNXRuntime(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigONNXRuntimeEnabled(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableORTOptimization(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableCustomDevice(__pd_keep PD_Config *config, char *device_type,
                                                           int32_t device_id, PD_PrecisionType precision);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigUseCustomDevice(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern int32_t PD_ConfigCustomDeviceId(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern char *PD_ConfigCustomDeviceType(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigTensorRtDynamicShapeEnabled(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableTunedTensorRtDynamicShape(__pd_keep PD_Config *config,
                                                                        const char *shape_range_info_path,
                                                                        PD_Bool allow_build_at_runtime);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigTunedTensorRtDynamicShape(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigTrtAllowBuildAtRuntime(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigCollectShapeRangeInfo(__pd_keep PD_Config *config,
                                                              const char *shape_range_info_path);
PADDLE_CAPI_EXPORT extern const char *PD_ConfigShapeRangeInfoPath(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigShapeRangeInfoCollected(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableVarseqlen(__pd_keep PD_Config *config);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetExecStream(__pd_keep PD_Config *config, void *stream);

/* The settings as a table, text that the caller frees by PD_CstrDestroy. */
PADDLE_CAPI_EXPORT extern __pd_give PD_Cstr *PD_ConfigSummary(__pd_keep PD_Config *config);

#ifdef __cplusplus
}
#endif

/* Callers of 2.1 leave out the last arguments that later versions have added. */
#define PD_ConfigEnableUseGpu(...) PD_CONFIG_GPU_(__VA_ARGS__, PD_PRECISION_FLOAT32, )
#define PD_CONFIG_GPU_(config, mb, id, precision, ...) \
    (PD_ConfigEnableUseGpu)((config), (mb), (id), (precision))
#define PD_ConfigEnableMemoryOptim(...) PD_CONFIG_MEMORY_(__VA_ARGS__, TRUE, )
#define PD_CONFIG_MEMORY_(config, x, ...) (PD_ConfigEnableMemoryOptim)((config), (x))
#define PD_ConfigEnableXpu(...) PD_CONFIG_XPU_(__VA_ARGS__, 0, 1, "", "int16", 0, 0, )
#define PD_CONFIG_XPU_(config, l3, locked, tune, file, precision, adaptive, streams, ...) \
    (PD_ConfigEnableXpu)((config), (l3), (locked), (tune), (file), (precision), (adaptive), (streams))

#endif
