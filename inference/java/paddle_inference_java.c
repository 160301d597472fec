/* JNI functions of the Java package com.baidu.paddle.inference, over Paddle's C interface. Uses
 * pd_inference_api.h, jni.h and proa_error_message. */
#include <jni.h>
#include <pd_inference_api.h>

#include <stdio.h>
#include <stdlib.h>

extern const char *proa_error_message(void);

#define NATIVE(type, name) JNIEXPORT type JNICALL Java_com_baidu_paddle_inference_Native_##name
#define CONFIG(at) ((PD_Config *)(intptr_t)(at))
#define PREDICTOR(at) ((PD_Predictor *)(intptr_t)(at))
#define TENSOR(at) ((PD_Tensor *)(intptr_t)(at))

static void fail(JNIEnv *env, const char *type, const char *message)
{
    jclass error = (*env)->FindClass(env, type);
    if (error) (*env)->ThrowNew(env, error, message);
}

/* Throws the library's error message as a Java exception. */
static void fail_as_said(JNIEnv *env) { fail(env, "java/lang/RuntimeException", proa_error_message()); }

static jstring text_of(JNIEnv *env, const char *text) { return (*env)->NewStringUTF(env, text ? text : ""); }

/* ---- configs ---------------------------------------------------------------------------- */

NATIVE(jstring, version)(JNIEnv *env, jclass c) { return (void)c, text_of(env, PD_GetVersion()); }
NATIVE(jlong, configCreate)(JNIEnv *env, jclass c)
{
    return (void)env, (void)c, (jlong)(intptr_t)PD_ConfigCreate();
}
NATIVE(void, configDestroy)(JNIEnv *env, jclass c, jlong at)
{
    (void)env, (void)c, PD_ConfigDestroy(CONFIG(at));
}

NATIVE(void, configSetText)(JNIEnv *env, jclass c, jlong at, jint which, jstring given)
{
    static void (*const set[])(PD_Config *, const char *) = {
        PD_ConfigSetModelDir, PD_ConfigSetProgFile, PD_ConfigSetParamsFile, PD_ConfigSetOptimCacheDir};
    (void)c;
    const char *text = given ? (*env)->GetStringUTFChars(env, given, NULL) : NULL;
    if (!text) {
        if (!(*env)->ExceptionCheck(env))
            fail(env, "java/lang/NullPointerException", "Config: the text is null");
        return;
    }
    set[which](CONFIG(at), text);
    (*env)->ReleaseStringUTFChars(env, given, text);
}

NATIVE(jstring, configText)(JNIEnv *env, jclass c, jlong at, jint which)
{
    static const char *(*const get[])(PD_Config *) = {PD_ConfigGetModelDir, PD_ConfigGetProgFile,
                                                      PD_ConfigGetParamsFile};
    return (void)c, text_of(env, get[which](CONFIG(at)));
}

NATIVE(void, configCall)(JNIEnv *env, jclass c, jlong at, jint which)
{
    static void (*const call[])(PD_Config *) = {PD_ConfigEnableMKLDNN, PD_ConfigEnableMkldnnBfloat16,
                                                PD_ConfigDisableGpu, PD_ConfigEnableProfile,
                                                PD_ConfigDisableGlogInfo};
    (void)env, (void)c, call[which](CONFIG(at));
}

NATIVE(jboolean, configIs)(JNIEnv *env, jclass c, jlong at, jint which)
{
    static PD_Bool (*const get[])(PD_Config *) = {
        PD_ConfigIsValid, PD_ConfigMkldnnEnabled,      PD_ConfigMkldnnBfloat16Enabled, PD_ConfigUseGpu,
        PD_ConfigIrOptim, PD_ConfigMemoryOptimEnabled, PD_ConfigProfileEnabled};
    return (void)env, (void)c, get[which](CONFIG(at)) ? JNI_TRUE : JNI_FALSE;
}

NATIVE(void, configSwitch)(JNIEnv *env, jclass c, jlong at, jint which, jboolean on)
{
    static void (*const set[])(PD_Config *, PD_Bool) = {PD_ConfigSwitchIrOptim, PD_ConfigSwitchIrDebug,
                                                        PD_ConfigEnableMemoryOptim};
    (void)env, (void)c, set[which](CONFIG(at), on ? TRUE : FALSE);
}

NATIVE(void, configSetThreads)(JNIEnv *env, jclass c, jlong at, jint n)
{
    (void)env, (void)c, PD_ConfigSetCpuMathLibraryNumThreads(CONFIG(at), n);
}

NATIVE(jint, configThreads)(JNIEnv *env, jclass c, jlong at)
{
    return (void)env, (void)c, PD_ConfigGetCpuMathLibraryNumThreads(CONFIG(at));
}

NATIVE(void, configUseGpu)(JNIEnv *env, jclass c, jlong at, jlong mb, jint device)
{
    (void)env, (void)c, PD_ConfigEnableUseGpu(CONFIG(at), mb < 0 ? 0 : (uint64_t)mb, device);
}

NATIVE(jint, configGpu)(JNIEnv *env, jclass c, jlong at, jint which)
{
    (void)env, (void)c;
    return which == 0 ? PD_ConfigGpuDeviceId(CONFIG(at)) : PD_ConfigMemoryPoolInitSizeMb(CONFIG(at));
}

NATIVE(jfloat, configGpuFraction)(JNIEnv *env, jclass c, jlong at)
{
    return (void)env, (void)c, PD_ConfigFractionOfGpuMemoryForPool(CONFIG(at));
}

NATIVE(jstring, configSummary)(JNIEnv *env, jclass c, jlong at)
{
    (void)c;
    PD_Cstr *text = PD_ConfigSummary(CONFIG(at));
    jstring out = text_of(env, text ? text->data : NULL);
    PD_CstrDestroy(text);
    return out;
}

/* ---- predictors ------------------------------------------------------------------------- */

static jlong given(JNIEnv *env, void *made)
{
    if (!made) fail_as_said(env);
    return (jlong)(intptr_t)made;
}

NATIVE(jlong, predictorCreate)(JNIEnv *env, jclass c, jlong config)
{
    return (void)c, given(env, PD_PredictorCreate(CONFIG(config)));
}

NATIVE(jlong, predictorClone)(JNIEnv *env, jclass c, jlong at)
{
    return (void)c, given(env, PD_PredictorClone(PREDICTOR(at)));
}

NATIVE(void, predictorDestroy)(JNIEnv *env, jclass c, jlong at)
{
    (void)env, (void)c, PD_PredictorDestroy(PREDICTOR(at));
}

NATIVE(jobjectArray, predictorNames)(JNIEnv *env, jclass c, jlong at, jboolean inputs)
{
    (void)c;
    PD_OneDimArrayCstr *names =
        inputs ? PD_PredictorGetInputNames(PREDICTOR(at)) : PD_PredictorGetOutputNames(PREDICTOR(at));
    jclass text = names ? (*env)->FindClass(env, "java/lang/String") : NULL;
    jobjectArray out = text ? (*env)->NewObjectArray(env, (jsize)names->size, text, NULL) : NULL;
    for (size_t i = 0; out && i < names->size; i++) {
        jstring name = text_of(env, names->data[i]);
        if (!name) break;
        (*env)->SetObjectArrayElement(env, out, (jsize)i, name);
        (*env)->DeleteLocalRef(env, name);
    }
    if (!names) fail_as_said(env);
    PD_OneDimArrayCstrDestroy(names);
    return out;
}

NATIVE(jlong, predictorHandle)(JNIEnv *env, jclass c, jlong at, jboolean input, jstring name)
{
    (void)c;
    const char *text = name ? (*env)->GetStringUTFChars(env, name, NULL) : NULL;
    if (!text) return given(env, NULL);
    PD_Tensor *t = input ? PD_PredictorGetInputHandle(PREDICTOR(at), text)
                         : PD_PredictorGetOutputHandle(PREDICTOR(at), text);
    (*env)->ReleaseStringUTFChars(env, name, text);
    return given(env, t);
}

NATIVE(void, predictorRun)(JNIEnv *env, jclass c, jlong at)
{
    (void)c;
    if (!PD_PredictorRun(PREDICTOR(at))) fail_as_said(env);
}

NATIVE(void, predictorClear)(JNIEnv *env, jclass c, jlong at)
{
    (void)env, (void)c, PD_PredictorClearIntermediateTensor(PREDICTOR(at));
}

NATIVE(jlong, predictorShrink)(JNIEnv *env, jclass c, jlong at)
{
    return (void)env, (void)c, (jlong)PD_PredictorTryShrinkMemory(PREDICTOR(at));
}

/* ---- tensors ---------------------------------------------------------------------------- */

NATIVE(void, tensorDestroy)(JNIEnv *env, jclass c, jlong at)
{
    (void)env, (void)c, PD_TensorDestroy(TENSOR(at));
}
NATIVE(jstring, tensorName)(JNIEnv *env, jclass c, jlong at)
{
    return (void)c, text_of(env, PD_TensorGetName(TENSOR(at)));
}

NATIVE(jintArray, tensorShape)(JNIEnv *env, jclass c, jlong at)
{
    (void)c;
    PD_OneDimArrayInt32 *shape = PD_TensorGetShape(TENSOR(at));
    jsize n = shape ? (jsize)shape->size : 0;
    jintArray out = (*env)->NewIntArray(env, n);
    if (out && n) (*env)->SetIntArrayRegion(env, out, 0, n, (const jint *)shape->data);
    PD_OneDimArrayInt32Destroy(shape);
    return out;
}

NATIVE(void, tensorReshape)(JNIEnv *env, jclass c, jlong at, jintArray shape)
{
    (void)c;
    jint *dims = (*env)->GetIntArrayElements(env, shape, NULL);
    if (!dims) return;
    PD_TensorReshape(TENSOR(at), (size_t)(*env)->GetArrayLength(env, shape), (int32_t *)dims);
    (*env)->ReleaseIntArrayElements(env, shape, dims, JNI_ABORT);
}

/* JNI signatures of the array types that copies accept. */
static const char *const kinds[] = {"[F", "[I", "[J", "[B", "[Z"};

static int kind_of(JNIEnv *env, jobject array)
{
    for (int k = 0; array && k < 5; k++) {
        jclass type = (*env)->FindClass(env, kinds[k]);
        if (!type || (*env)->IsInstanceOf(env, array, type)) return type ? k : -1;
    }
    return -1;
}

static int64_t elements(PD_Tensor *t)
{
    PD_OneDimArrayInt32 *shape = PD_TensorGetShape(t);
    int64_t n = 1;
    for (size_t i = 0; shape && i < shape->size; i++) n *= shape->data[i];
    PD_OneDimArrayInt32Destroy(shape);
    return n;
}

static void copy(PD_Tensor *t, int kind, void *data, int in)
{
    switch (kind) {
    case 0: in ? PD_TensorCopyFromCpuFloat(t, data) : PD_TensorCopyToCpuFloat(t, data); break;
    case 1: in ? PD_TensorCopyFromCpuInt32(t, data) : PD_TensorCopyToCpuInt32(t, data); break;
    case 2: in ? PD_TensorCopyFromCpuInt64(t, data) : PD_TensorCopyToCpuInt64(t, data); break;
    case 3: in ? PD_TensorCopyFromCpuInt8(t, data) : PD_TensorCopyToCpuInt8(t, data); break;
    default: in ? PD_TensorCopyFromCpuUint8(t, data) : PD_TensorCopyToCpuUint8(t, data); break;
    }
}

/* Copies between a tensor and a Java array (`in`: array to tensor); throws if the array has too few
 * elements. */
static void move(JNIEnv *env, jlong at, jobject array, int in)
{
    int kind = kind_of(env, array);
    int64_t n = elements(TENSOR(at));
    char text[200];
    if (kind < 0) {
        fail(env, "java/lang/IllegalArgumentException",
             "Tensor: expected an array of float, int, long, byte or boolean");
        return;
    }
    jsize capacity = (*env)->GetArrayLength(env, array);
    if (capacity < n) {
        snprintf(text, sizeof text, "Tensor: '%.80s' has %lld elements, the array %d",
                 PD_TensorGetName(TENSOR(at)), (long long)n, (int)capacity);
        fail(env, "java/lang/IllegalArgumentException", text);
        return;
    }
    void *data = (*env)->GetPrimitiveArrayCritical(env, array, NULL);
    if (!data) return;
    copy(TENSOR(at), kind, data, in);
    (*env)->ReleasePrimitiveArrayCritical(env, array, data, in ? JNI_ABORT : 0);
}

NATIVE(void, tensorCopyIn)(JNIEnv *env, jclass c, jlong at, jobject array)
{
    (void)c, move(env, at, array, 1);
}
NATIVE(void, tensorCopyOut)(JNIEnv *env, jclass c, jlong at, jobject array)
{
    (void)c, move(env, at, array, 0);
}
