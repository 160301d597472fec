/* Copies of 8 or 16 bytes from global to shared memory past the registers (PTX's cp.async, compute capability
 * 8.0 and later). A thread closes a group of them, and waits until at most N of its groups are under way;
 * other threads see what has come behind a barrier. The emulator copies as late as the wait. May use
 * device.h. */
#ifndef PROA_CUDA_ASYNC_H
#define PROA_CUDA_ASYNC_H

#include "devices/cuda/device.h"

#if defined(CUDA_EMULATED)

#include <deque>

struct async_piece {
    void *to;
    const void *from; /* NULL: zeros */
    int bytes;        /* 0: the end of a group, no copy */
};
CUDA_FN std::deque<async_piece> &async_queue()
{
    static std::deque<async_piece> all[1024];
    return all[threadIdx.x];
}
/* valid: if false, zeros are written and nothing is read. */
template <int BYTES> CUDA_FN void async_copy(void *to, const void *from, bool valid)
{
    async_queue().push_back({to, valid ? from : NULL, BYTES});
}
CUDA_FN void async_close() { async_queue().push_back({NULL, NULL, 0}); }
template <int WORDS> static void async_do(const async_piece &p)
{
    typedef cuda_pack<uint32_t, WORDS> pack;
    *(pack *)p.to = p.from ? *(const pack *)p.from : pack{};
}
template <int N> static void async_wait()
{
    std::deque<async_piece> &queue = async_queue();
    int groups = 0;
    for (const async_piece &p : queue) groups += p.bytes == 0;
    for (; groups > N; queue.pop_front()) {
        const async_piece &p = queue.front();
        if (p.bytes == 0) groups--;
        else if (p.bytes == 8) async_do<2>(p);
        else async_do<4>(p);
    }
}

#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800

template <int BYTES> CUDA_FN void async_copy(void *, const void *, bool) { __trap(); }
CUDA_FN void async_close() { __trap(); }
template <int N> CUDA_FN void async_wait() { __trap(); }

#else

template <int BYTES> CUDA_FN void async_copy(void *to, const void *from, bool valid)
{
    uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    int bytes = valid ? BYTES : 0;
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(at), "l"(from), "r"(bytes)
                     : "memory");
}
CUDA_FN void async_close() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> CUDA_FN void async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

#endif
#endif
