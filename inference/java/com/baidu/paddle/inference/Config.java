package com.baidu.paddle.inference;

/** Which model is loaded and how it runs. A predictor takes it. */
public class Config {
    private static final int MODEL_DIR = 0;
    private static final int PROG_FILE = 1;
    private static final int PARAMS_FILE = 2;
    private static final int ENABLE_MKLDNN = 0;
    private static final int ENABLE_BFLOAT16 = 1;
    private static final int DISABLE_GPU = 2;
    private static final int ENABLE_PROFILE = 3;
    private static final int DISABLE_GLOG = 4;
    private static final int IS_VALID = 0;
    private static final int MKLDNN_ENABLED = 1;
    private static final int BFLOAT16_ENABLED = 2;
    private static final int USE_GPU = 3;
    private static final int IR_OPTIM = 4;
    private static final int MEMORY_OPTIM = 5;
    private static final int PROFILE_ENABLED = 6;

    /** Holds the C config until a predictor takes it. */
    private static final class Held implements Runnable {
        long pointer = Native.configCreate();

        @Override
        public synchronized void run() {
            if (pointer != 0) Native.configDestroy(pointer);
            pointer = 0;
        }

        synchronized void forget() {
            pointer = 0;
        }
    }

    private final Held held = new Held();

    public Config() {
        Native.CLEANER.register(this, held);
    }

    private long pointer() {
        if (held.pointer == 0) throw new IllegalStateException("Config: a predictor has taken it; make another");
        return held.pointer;
    }

    /** Makes a C predictor, which takes the C config; after an exception the config still has it. */
    long makePredictor() {
        long made = Native.predictorCreate(pointer());
        held.forget();
        return made;
    }

    public boolean isValid() {
        return Native.configIs(pointer(), IS_VALID);
    }

    public void setCppModel(String modelFile, String paramsFile) {
        setCppProgFile(modelFile);
        setCppParamsFile(paramsFile);
    }

    public void setCppModelDir(String modelDir) {
        Native.configSetText(pointer(), MODEL_DIR, modelDir);
    }

    public void setCppProgFile(String progFile) {
        Native.configSetText(pointer(), PROG_FILE, progFile);
    }

    public void setCppParamsFile(String paramsFile) {
        Native.configSetText(pointer(), PARAMS_FILE, paramsFile);
    }

    public String getCppModelDir() {
        return Native.configText(pointer(), MODEL_DIR);
    }

    public String getCppProgFile() {
        return Native.configText(pointer(), PROG_FILE);
    }

    public String getCppParamsFile() {
        return Native.configText(pointer(), PARAMS_FILE);
    }

    public String getModelFile() {
        return getCppProgFile();
    }

    public String getProgFile() {
        return getCppProgFile();
    }

    public String getParamsFile() {
        return getCppParamsFile();
    }

    public String getModelDir() {
        return getCppModelDir();
    }

    public void setCpuMathLibraryNumThreads(int n) {
        Native.configSetThreads(pointer(), n);
    }

    public int getCpuMathLibraryNumThreads() {
        return Native.configThreads(pointer());
    }

    public int getMathThreadsNum() {
        return getCpuMathLibraryNumThreads();
    }

    public void enableMKLDNN() {
        Native.configCall(pointer(), ENABLE_MKLDNN);
    }

    public boolean mkldnnEnabled() {
        return Native.configIs(pointer(), MKLDNN_ENABLED);
    }

    public void enableMkldnnBfloat16() {
        Native.configCall(pointer(), ENABLE_BFLOAT16);
    }

    public boolean mkldnnBfloat16Enabled() {
        return Native.configIs(pointer(), BFLOAT16_ENABLED);
    }

    public void enableUseGpu(long memoryMb, int device) {
        Native.configUseGpu(pointer(), memoryMb, device);
    }

    public void disableGpu() {
        Native.configCall(pointer(), DISABLE_GPU);
    }

    public boolean useGpu() {
        return Native.configIs(pointer(), USE_GPU);
    }

    public int getGpuDeviceId() {
        return Native.configGpu(pointer(), 0);
    }

    public int getMemoryPoolInitSizeMb() {
        return Native.configGpu(pointer(), 1);
    }

    public float getFractionOfGpuMemoryForPool() {
        return Native.configGpuFraction(pointer());
    }

    public void switchIrOptim(boolean on) {
        Native.configSwitch(pointer(), 0, on);
    }

    public boolean irOptim() {
        return Native.configIs(pointer(), IR_OPTIM);
    }

    public boolean switchIrDebug(boolean on) {
        Native.configSwitch(pointer(), 1, on);
        return on;
    }

    public void enableMemoryOptim(boolean on) {
        Native.configSwitch(pointer(), 2, on);
    }

    public boolean memoryOptimEnabled() {
        return Native.configIs(pointer(), MEMORY_OPTIM);
    }

    public void enableProfile() {
        Native.configCall(pointer(), ENABLE_PROFILE);
    }

    public boolean profileEnabled() {
        return Native.configIs(pointer(), PROFILE_ENABLED);
    }

    public void disableGlogInfo() {
        Native.configCall(pointer(), DISABLE_GLOG);
    }

    /** A table of what is set. */
    public String summary() {
        return Native.configSummary(pointer());
    }
}
