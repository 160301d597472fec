package com.baidu.paddle.inference;

import java.lang.ref.Cleaner;

/** The C library's functions: pointers are longs, errors are RuntimeExceptions with the library's message. */
final class Native {
    static final Cleaner CLEANER = Cleaner.create();

    static {
        System.loadLibrary("paddle_inference_java");
    }

    private Native() {}

    static native String version();

    static native long configCreate();

    static native void configDestroy(long config);

    /** Sets a text: 0 model folder, 1 program file, 2 parameter file, 3 optimization cache. */
    static native void configSetText(long config, int which, String text);

    static native String configText(long config, int which);

    /** Calls a setter without arguments: its index in configCall of paddle_inference_java.c. */
    static native void configCall(long config, int which);

    static native boolean configIs(long config, int which);

    /** Sets a switch: 0 IR optimization, 1 IR debugging, 2 memory optimization. */
    static native void configSwitch(long config, int which, boolean on);

    static native void configSetThreads(long config, int n);

    static native int configThreads(long config);

    static native void configUseGpu(long config, long memoryMb, int device);

    /** 0 device, 1 memory pool in MiB. */
    static native int configGpu(long config, int which);

    static native float configGpuFraction(long config);

    static native String configSummary(long config);

    /** Takes the config. */
    static native long predictorCreate(long config);

    static native long predictorClone(long predictor);

    static native void predictorDestroy(long predictor);

    static native String[] predictorNames(long predictor, boolean inputs);

    static native long predictorHandle(long predictor, boolean input, String name);

    static native void predictorRun(long predictor);

    static native void predictorClear(long predictor);

    static native long predictorShrink(long predictor);

    static native void tensorDestroy(long tensor);

    static native String tensorName(long tensor);

    static native int[] tensorShape(long tensor);

    static native void tensorReshape(long tensor, int[] shape);

    /** An array of float, int, long, byte or boolean with at least the tensor's elements. */
    static native void tensorCopyIn(long tensor, Object array);

    static native void tensorCopyOut(long tensor, Object array);
}
