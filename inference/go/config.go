package paddle

// #include <pd_inference_api.h>
import "C"

import (
	"runtime"
	"unsafe"
)

// Config says which model is loaded and how it runs. A predictor takes it. Settings that are "kept" are stored, or
// announced on stderr as missing, and have no effect on a run.
type Config struct {
	c *C.PD_Config
}

// NewConfig makes a config without a model.
func NewConfig() *Config {
	config := &Config{C.PD_ConfigCreate()}
	runtime.SetFinalizer(config, func(config *Config) { C.PD_ConfigDestroy(config.c) })
	return config
}

// SetModel names the program's and the parameters' file.
func (config *Config) SetModel(model, params string) {
	withText(model, func(m *C.char) {
		withText(params, func(p *C.char) { C.PD_ConfigSetModel(config.c, m, p) })
	})
}

// SetModelBuffer gives program and parameters as bytes, which are copied.
func (config *Config) SetModelBuffer(model, params string) {
	withText(model, func(m *C.char) {
		withText(params, func(p *C.char) {
			C.PD_ConfigSetModelBuffer(config.c, m, C.size_t(len(model)), p, C.size_t(len(params)))
		})
	})
}

// SetModelDir names the folder of a model in files of one variable each.
func (config *Config) SetModelDir(path string) {
	withText(path, func(text *C.char) { C.PD_ConfigSetModelDir(config.c, text) })
}

// SetProgFile names the program's file.
func (config *Config) SetProgFile(path string) {
	withText(path, func(text *C.char) { C.PD_ConfigSetProgFile(config.c, text) })
}

// SetParamsFile names the parameters' file.
func (config *Config) SetParamsFile(path string) {
	withText(path, func(text *C.char) { C.PD_ConfigSetParamsFile(config.c, text) })
}

// SetOptimCacheDir is kept.
func (config *Config) SetOptimCacheDir(path string) {
	withText(path, func(text *C.char) { C.PD_ConfigSetOptimCacheDir(config.c, text) })
}

// DeletePass takes a pass out.
func (config *Config) DeletePass(pass string) {
	withText(pass, func(text *C.char) { C.PD_ConfigDeletePass(config.c, text) })
}

// AppendPass puts a pass last.
func (config *Config) AppendPass(pass string) {
	withText(pass, func(text *C.char) { C.PD_ConfigAppendPass(config.c, text) })
}

// CollectShapeRangeInfo is kept.
func (config *Config) CollectShapeRangeInfo(path string) {
	withText(path, func(text *C.char) { C.PD_ConfigCollectShapeRangeInfo(config.c, text) })
}

// DisableGpu keeps the model on the CPU.
func (config *Config) DisableGpu() { C.PD_ConfigDisableGpu(config.c) }

// DisableFCPadding is kept.
func (config *Config) DisableFCPadding() { C.PD_ConfigDisableFCPadding(config.c) }

// EnableCudnn is kept.
func (config *Config) EnableCudnn() { C.PD_ConfigEnableCudnn(config.c) }

// EnableMKLDNN is kept.
func (config *Config) EnableMKLDNN() { C.PD_ConfigEnableMKLDNN(config.c) }

// EnableMkldnnBfloat16 runs products in bfloat16 where the CPU can.
func (config *Config) EnableMkldnnBfloat16() { C.PD_ConfigEnableMkldnnBfloat16(config.c) }

// EnableMkldnnInt8 runs products of a quantized model on integers.
func (config *Config) EnableMkldnnInt8() { C.PD_ConfigEnableMkldnnInt8(config.c) }

// EnableMkldnnQuantizer quantizes the LSTMs and GRUs of the model, which need no samples.
func (config *Config) EnableMkldnnQuantizer() { C.PD_ConfigEnableMkldnnQuantizer(config.c) }

// EnableProfile prints a profile when the predictor ends.
func (config *Config) EnableProfile() { C.PD_ConfigEnableProfile(config.c) }

// EnableGpuMultiStream is kept.
func (config *Config) EnableGpuMultiStream() { C.PD_ConfigEnableGpuMultiStream(config.c) }

// EnableVarseqlen is kept.
func (config *Config) EnableVarseqlen() { C.PD_ConfigEnableVarseqlen(config.c) }

// EnableONNXRuntime is kept; the run is native.
func (config *Config) EnableONNXRuntime() { C.PD_ConfigEnableONNXRuntime(config.c) }

// DisableONNXRuntime is kept.
func (config *Config) DisableONNXRuntime() { C.PD_ConfigDisableONNXRuntime(config.c) }

// EnableORTOptimization is kept.
func (config *Config) EnableORTOptimization() { C.PD_ConfigEnableORTOptimization(config.c) }

// DisableGlogInfo keeps messages off stderr.
func (config *Config) DisableGlogInfo() { C.PD_ConfigDisableGlogInfo(config.c) }

// SetInvalid makes the config one from which no predictor is made.
func (config *Config) SetInvalid() { C.PD_ConfigSetInvalid(config.c) }

// PartiallyRelease frees what a predictor does not need.
func (config *Config) PartiallyRelease() { C.PD_ConfigPartiallyRelease(config.c) }

// SwitchIrOptim sets the switch.
func (config *Config) SwitchIrOptim(x bool) { C.PD_ConfigSwitchIrOptim(config.c, toC(x)) }

// SwitchIrDebug sets the switch.
func (config *Config) SwitchIrDebug(x bool) { C.PD_ConfigSwitchIrDebug(config.c, toC(x)) }

// EnableMemoryOptim sets the switch.
func (config *Config) EnableMemoryOptim(x bool) { C.PD_ConfigEnableMemoryOptim(config.c, toC(x)) }

// SwitchUseFeedFetchOps sets the switch.
func (config *Config) SwitchUseFeedFetchOps(x bool) {
	C.PD_ConfigSwitchUseFeedFetchOps(config.c, toC(x))
}

// SwitchSpecifyInputNames sets the switch.
func (config *Config) SwitchSpecifyInputNames(x bool) {
	C.PD_ConfigSwitchSpecifyInputNames(config.c, toC(x))
}

// IrOptim is what was set.
func (config *Config) IrOptim() bool { return toGo(C.PD_ConfigIrOptim(config.c)) }

// ModelFromMemory is what was set.
func (config *Config) ModelFromMemory() bool { return toGo(C.PD_ConfigModelFromMemory(config.c)) }

// MkldnnEnabled is what was set.
func (config *Config) MkldnnEnabled() bool { return toGo(C.PD_ConfigMkldnnEnabled(config.c)) }

// MkldnnBfloat16Enabled is what was set.
func (config *Config) MkldnnBfloat16Enabled() bool {
	return toGo(C.PD_ConfigMkldnnBfloat16Enabled(config.c))
}

// MkldnnInt8Enabled is what was set.
func (config *Config) MkldnnInt8Enabled() bool { return toGo(C.PD_ConfigMkldnnInt8Enabled(config.c)) }

// MkldnnQuantizerEnabled is what was set.
func (config *Config) MkldnnQuantizerEnabled() bool {
	return toGo(C.PD_ConfigMkldnnQuantizerEnabled(config.c))
}

// MemoryOptimEnabled is what was set.
func (config *Config) MemoryOptimEnabled() bool { return toGo(C.PD_ConfigMemoryOptimEnabled(config.c)) }

// UseFcPadding is what was set.
func (config *Config) UseFcPadding() bool { return toGo(C.PD_ConfigUseFcPadding(config.c)) }

// ProfileEnabled is what was set.
func (config *Config) ProfileEnabled() bool { return toGo(C.PD_ConfigProfileEnabled(config.c)) }

// GlogInfoDisabled is what was set.
func (config *Config) GlogInfoDisabled() bool { return toGo(C.PD_ConfigGlogInfoDisabled(config.c)) }

// IsValid is what was set.
func (config *Config) IsValid() bool { return toGo(C.PD_ConfigIsValid(config.c)) }

// UseGpu is what was set.
func (config *Config) UseGpu() bool { return toGo(C.PD_ConfigUseGpu(config.c)) }

// UseXpu is what was set.
func (config *Config) UseXpu() bool { return toGo(C.PD_ConfigUseXpu(config.c)) }

// CudnnEnabled is what was set.
func (config *Config) CudnnEnabled() bool { return toGo(C.PD_ConfigCudnnEnabled(config.c)) }

// TensorRtEngineEnabled is what was set.
func (config *Config) TensorRtEngineEnabled() bool {
	return toGo(C.PD_ConfigTensorRtEngineEnabled(config.c))
}

// ThreadLocalStreamEnabled is what was set.
func (config *Config) ThreadLocalStreamEnabled() bool {
	return toGo(C.PD_ConfigThreadLocalStreamEnabled(config.c))
}

// ONNXRuntimeEnabled is what was set.
func (config *Config) ONNXRuntimeEnabled() bool { return toGo(C.PD_ConfigONNXRuntimeEnabled(config.c)) }

// SpecifyInputName is what was set.
func (config *Config) SpecifyInputName() bool { return toGo(C.PD_ConfigSpecifyInputName(config.c)) }

// UseFeedFetchOpsEnabled is what was set.
func (config *Config) UseFeedFetchOpsEnabled() bool {
	return toGo(C.PD_ConfigUseFeedFetchOpsEnabled(config.c))
}

// ShapeRangeInfoCollected is what was set.
func (config *Config) ShapeRangeInfoCollected() bool {
	return toGo(C.PD_ConfigShapeRangeInfoCollected(config.c))
}

// TensorRtDynamicShapeEnabled is what was set.
func (config *Config) TensorRtDynamicShapeEnabled() bool {
	return toGo(C.PD_ConfigTensorRtDynamicShapeEnabled(config.c))
}

// GpuDeviceId is what was set.
func (config *Config) GpuDeviceId() int32 { return int32(C.PD_ConfigGpuDeviceId(config.c)) }

// MemoryPoolInitSizeMb is what was set.
func (config *Config) MemoryPoolInitSizeMb() int32 {
	return int32(C.PD_ConfigMemoryPoolInitSizeMb(config.c))
}

// XpuDeviceId is what was set.
func (config *Config) XpuDeviceId() int32 { return int32(C.PD_ConfigXpuDeviceId(config.c)) }

// ModelDir is what was set, "" if nothing was.
func (config *Config) ModelDir() string { return C.GoString(C.PD_ConfigGetModelDir(config.c)) }

// ProgFile is what was set, "" if nothing was.
func (config *Config) ProgFile() string { return C.GoString(C.PD_ConfigGetProgFile(config.c)) }

// ParamsFile is what was set, "" if nothing was.
func (config *Config) ParamsFile() string { return C.GoString(C.PD_ConfigGetParamsFile(config.c)) }

// ShapeRangeInfoPath is what was set, "" if nothing was.
func (config *Config) ShapeRangeInfoPath() string {
	return C.GoString(C.PD_ConfigShapeRangeInfoPath(config.c))
}

// FractionOfGpuMemoryForPool is what was set.
func (config *Config) FractionOfGpuMemoryForPool() float32 {
	return float32(C.PD_ConfigFractionOfGpuMemoryForPool(config.c))
}

// EnableUseGpu moves the model to a device plug-in; without one it stays on the CPU, and stderr says so.
func (config *Config) EnableUseGpu(memoryMb uint64, device int32) {
	C.PD_ConfigEnableUseGpu(config.c, C.uint64_t(memoryMb), C.int32_t(device), C.PD_PRECISION_FLOAT32)
}

// EnableXpu is kept; the run is native.
func (config *Config) EnableXpu(workspace int32) {
	withText("", func(none *C.char) {
		withText("int16", func(precision *C.char) {
			C.PD_ConfigEnableXpu(config.c, C.int32_t(workspace), 0, 1, none, precision, 0, 0)
		})
	})
}

// SetCpuMathLibraryNumThreads sets the threads of a run.
func (config *Config) SetCpuMathLibraryNumThreads(n int32) {
	C.PD_ConfigSetCpuMathLibraryNumThreads(config.c, C.int32_t(n))
}

// CpuMathLibraryNumThreads is what was set.
func (config *Config) CpuMathLibraryNumThreads() int32 {
	return int32(C.PD_ConfigGetCpuMathLibraryNumThreads(config.c))
}

// SetMkldnnCacheCapacity is kept.
func (config *Config) SetMkldnnCacheCapacity(n int32) {
	C.PD_ConfigSetMkldnnCacheCapacity(config.c, C.int32_t(n))
}

// SetMKLDNNOp is kept.
func (config *Config) SetMKLDNNOp(ops []string) {
	withTexts(ops, func(n C.size_t, list **C.char) { C.PD_ConfigSetMkldnnOp(config.c, n, list) })
}

// SetBfloat16Op names the types of ops that run in bfloat16.
func (config *Config) SetBfloat16Op(ops []string) {
	withTexts(ops, func(n C.size_t, list **C.char) { C.PD_ConfigSetBfloat16Op(config.c, n, list) })
}

// InsertPass puts a pass at a place.
func (config *Config) InsertPass(at uint64, pass string) {
	withText(pass, func(text *C.char) { C.PD_ConfigInsertPass(config.c, C.size_t(at), text) })
}

// AllPasses lists the passes.
func (config *Config) AllPasses() []string { return takeTexts(C.PD_ConfigAllPasses(config.c)) }

// EnableTensorRtEngine is kept; the run is native.
func (config *Config) EnableTensorRtEngine(workspace int64, maxBatch, minSubgraph int32, precision Precision,
	useStatic, useCalibration bool) {
	C.PD_ConfigEnableTensorRtEngine(config.c, C.int64_t(workspace), C.int32_t(maxBatch), C.int32_t(minSubgraph),
		C.PD_PrecisionType(precision), toC(useStatic), toC(useCalibration))
}

// SetTRTDynamicShapeInfo is accepted; the run is native and takes any shape.
func (config *Config) SetTRTDynamicShapeInfo(least, most, best map[string][]int32, noHalfPlugins bool) {
}

// DisableTensorRtOPs is kept.
func (config *Config) DisableTensorRtOPs(ops []string) {
	withTexts(ops, func(n C.size_t, list **C.char) { C.PD_ConfigDisableTensorRtOPs(config.c, n, list) })
}

// TensorrtOssEnabled is what was set.
func (config *Config) TensorrtOssEnabled() bool { return toGo(C.PD_ConfigTensorRtOssEnabled(config.c)) }

// EnableTensorRtDLA is kept.
func (config *Config) EnableTensorRtDLA(core int32) {
	C.PD_ConfigEnableTensorRtDla(config.c, C.int32_t(core))
}

// TensorrtDlaEnabled is what was set.
func (config *Config) TensorrtDlaEnabled() bool { return toGo(C.PD_ConfigTensorRtDlaEnabled(config.c)) }

// Summary is a table of what is set.
func (config *Config) Summary() string {
	text := C.PD_ConfigSummary(config.c)
	if text == nil || text.data == nil {
		return ""
	}
	defer C.PD_CstrDestroy(text)
	return C.GoString((*C.char)(unsafe.Pointer(text.data)))
}
