/* See wrong.h. Compiled as kernels are for the emulator. */
#include "wrong.h"

#include "devices/cuda/async.h"
#include "devices/cuda/device.h"
#include "devices/cuda/driver.h"

namespace
{

enum { THREADS = 64, LAUNCHES = 32 };

template <class K> void launch(dim3 grid, unsigned threads, K kernel)
{
    emulate_launch(
        grid, threads, [](void *k) { (*static_cast<K *>(k))(); }, &kernel);
}

} // namespace

int wrong_reads(wrong_wait wait, int from)
{
    int wrong = 0;
    for (int i = 0; i < LAUNCHES; i++) {
        int out[THREADS];
        launch(1, THREADS, [&]() {
            __shared__ int at[THREADS];
            at[threadIdx.x] = i;
            if (wait == WRONG_BARRIER) __syncthreads();
            out[threadIdx.x] = at[(threadIdx.x + THREADS + unsigned(from)) % THREADS];
        });
        bool same = true;
        for (int t = 0; t < THREADS; t++) same = same && out[t] == i;
        wrong += !same;
    }
    return wrong;
}

int wrong_reuse(wrong_wait wait)
{
    int wrong = 0;
    for (int i = 0; i < LAUNCHES; i++) {
        int out[THREADS] = {};
        launch(1, THREADS, [&]() {
            __shared__ int at[THREADS];
            for (int round = 0; round < 3; round++) {
                if (wait == WRONG_BARRIER) __syncthreads();
                at[threadIdx.x] = round;
                __syncthreads();
                out[threadIdx.x] += at[(threadIdx.x + 1) % THREADS] == round;
            }
        });
        bool same = true;
        for (int t = 0; t < THREADS; t++) same = same && out[t] == 3;
        wrong += !same;
    }
    return wrong;
}

int wrong_copies(wrong_wait wait)
{
    int wrong = 0;
    for (int i = 0; i < LAUNCHES; i++) {
        typedef cuda_pack<int, 4> pack;
        pack from[THREADS], out[THREADS];
        for (int t = 0; t < THREADS; t++) from[t] = {{i, t, i, t}};
        launch(1, THREADS, [&]() {
            __shared__ pack at[THREADS];
            async_copy<16>(at + threadIdx.x, from + threadIdx.x, true);
            async_close();
            if (wait == WRONG_BARRIER) async_wait<0>();
            out[threadIdx.x] = at[threadIdx.x];
            async_wait<0>();
        });
        wrong += memcmp(from, out, sizeof out) != 0;
    }
    return wrong;
}

float wrong_gone_lane()
{
    float got = 0;
    launch(1, 32, [&]() {
        if (threadIdx.x == 1) return;
        float v = __shfl_xor_sync(~0u, 1.0f, 1);
        if (threadIdx.x == 0) got = v;
    });
    return got;
}

void wrong_shuffles()
{
    float out[32];
    launch(1, 32, [&]() {
        if (threadIdx.x < 16) out[threadIdx.x] = __shfl_xor_sync(~0u, 1.0f, 1);
        else out[threadIdx.x] = __shfl_xor_sync(~0u, 2.0f, 2) + 1;
    });
}

void wrong_barriers()
{
    int out[THREADS];
    launch(1, THREADS, [&]() {
        out[threadIdx.x] = 0;
        if (threadIdx.x < 32) {
            __syncthreads();
            out[threadIdx.x] = 1;
        } else {
            out[threadIdx.x] = 2;
            __syncthreads();
        }
    });
}

void wrong_alignment()
{
    alignas(16) static float from[8];
    static float *volatile at = from + 2;
    float out[4];
    launch(1, 1, [&]() {
        cuda_pack<float, 4> some = *(const cuda_pack<float, 4> *)(const void *)at;
        memcpy(out, &some, sizeof out);
    });
}

void wrong_shared()
{
    emulate_launch(
        1, 1, [](void *) { emulate_shared()[64] = 0; }, nullptr, 64);
}

void wrong_grid()
{
    launch(dim3(1, 65536), 1, []() {});
}

void wrong_recording(int i)
{
    const cuda_driver *d = cuda_driver_default();
    void *stream, *event, *memory, *host;
    int n;
    d->count(&n);
    d->stream_create(&stream);
    d->event_create(&event);
    d->event_record(event, stream);
    d->malloc(&memory, 16);
    d->host_malloc(&host, 16);
    d->graph_begin(stream);
    if (i == 0) d->stream_sync(stream);
    if (i == 1) d->stream_wait(stream, event);
    if (i == 2) d->event_record(event, stream);
    if (i == 3) d->free(memory);
    if (i == 4) d->copy(memory, host, 16, CUDA_TO_DEVICE, stream);
}
