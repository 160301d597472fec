/* Implements the driver table (driver.h) with CUDA's runtime library. */
#include "driver.h"

#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

static int count(int *n) { return (int)cudaGetDeviceCount(n); }

// All kernels are compiled for the same GPUs: what is there for this one is there for all.
__global__ void probe_kernel() {}

static int describe(int device, cuda_description *to)
{
    cudaDeviceProp p;
    cudaFuncAttributes probe;
    cudaError_t code = cudaGetDeviceProperties(&p, device);
    if (code == cudaSuccess) code = cudaFuncGetAttributes(&probe, (const void *)probe_kernel);
    if (code != cudaSuccess) return (int)code;
    memcpy(to->name, p.name, sizeof to->name - 1);
    to->name[sizeof to->name - 1] = 0;
    for (size_t i = 0; i < sizeof p.uuid.bytes; i++)
        snprintf(to->identity + 2 * i, 3, "%02x", (unsigned char)p.uuid.bytes[i]);
    to->major = p.major;
    to->minor = p.minor;
    to->multiprocessors = p.multiProcessorCount;
    to->memory = p.totalGlobalMem;
    return 0;
}

static int use(int device) { return (int)cudaSetDevice(device); }
static int take(void **p, size_t bytes) { return (int)cudaMalloc(p, bytes); }
static int give(void *p) { return (int)cudaFree(p); }
static int host_take(void **p, size_t bytes) { return (int)cudaMallocHost(p, bytes); }
static int host_give(void *p) { return (int)cudaFreeHost(p); }

static int stream_create(void **stream)
{
    return (int)cudaStreamCreateWithFlags((cudaStream_t *)stream, cudaStreamNonBlocking);
}
static int stream_free(void *stream) { return (int)cudaStreamDestroy((cudaStream_t)stream); }
static int stream_sync(void *stream) { return (int)cudaStreamSynchronize((cudaStream_t)stream); }
static int stream_wait(void *stream, void *event)
{
    return (int)cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0);
}
static int event_create(void **event)
{
    return (int)cudaEventCreateWithFlags((cudaEvent_t *)event, cudaEventDisableTiming);
}
static int event_free(void *event) { return (int)cudaEventDestroy((cudaEvent_t)event); }
static int event_record(void *event, void *stream)
{
    return (int)cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream);
}
static int event_query(void *event)
{
    cudaError_t code = cudaEventQuery((cudaEvent_t)event);
    if (code != cudaErrorNotReady) return (int)code;
    (void)cudaGetLastError(); // CUDA records "not ready" as its last error: clear it
    return CUDA_NOT_READY;
}
static int event_sync(void *event) { return (int)cudaEventSynchronize((cudaEvent_t)event); }

static int copy(void *to, const void *from, size_t bytes, cuda_direction direction, void *stream)
{
    static const cudaMemcpyKind kinds[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost,
                                           cudaMemcpyDeviceToDevice};
    return (int)cudaMemcpyAsync(to, from, bytes, kinds[direction], (cudaStream_t)stream);
}

static int graph_begin(void *stream)
{
    return (int)cudaStreamBeginCapture((cudaStream_t)stream, cudaStreamCaptureModeRelaxed);
}
static int graph_end(void *stream, void **to)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t ready = NULL;
    cudaError_t code = cudaStreamEndCapture((cudaStream_t)stream, &graph);
    if (code == cudaSuccess && !graph) code = cudaErrorStreamCaptureInvalidated;
    if (code == cudaSuccess) code = cudaGraphInstantiate(&ready, graph, 0);
    if (graph) cudaGraphDestroy(graph);
    *to = ready;
    return (int)code;
}
static int graph_launch(void *graph, void *stream)
{
    return (int)cudaGraphLaunch((cudaGraphExec_t)graph, (cudaStream_t)stream);
}
static int graph_free(void *graph) { return (int)cudaGraphExecDestroy((cudaGraphExec_t)graph); }

static int module_load(void **module, const void *image, size_t)
{
    return (int)cudaLibraryLoadData((cudaLibrary_t *)module, image, NULL, NULL, 0, NULL, NULL, 0);
}
static int module_kernel(void *module, const char *name, void **kernel)
{
    return (int)cudaLibraryGetKernel((cudaKernel_t *)kernel, (cudaLibrary_t)module, name);
}
/* Waits for the device first: kernels of the module may be running. */
static int module_unload(void *module)
{
    cudaError_t code = cudaDeviceSynchronize();
    return (int)(code == cudaSuccess ? cudaLibraryUnload((cudaLibrary_t)module) : code);
}
static int launch(void *kernel, unsigned blocks, unsigned threads, const void *argument, size_t, void *stream)
{
    void *list[] = {(void *)argument};
    return (int)cudaLaunchKernel((const void *)kernel, dim3(blocks), dim3(threads), list, 0,
                                 (cudaStream_t)stream);
}

static int last_error() { return (int)cudaGetLastError(); }
static const char *error_text(int code) { return cudaGetErrorString((cudaError_t)code); }

static const cuda_driver driver = {
    count,         describe,      use,           take,        give,         host_take,    host_give,
    stream_create, stream_free,   stream_sync,   stream_wait, event_create, event_free,   event_record,
    event_query,   event_sync,    copy,          graph_begin, graph_end,    graph_launch, graph_free,
    module_load,   module_kernel, module_unload, launch,      last_error,   error_text,   MADE_FOR};

const cuda_driver *cuda_driver_default(void) { return &driver; }
