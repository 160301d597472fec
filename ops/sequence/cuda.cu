/* gather_tree on a GPU: a thread a beam, from its last step back. */
#include "devices/cuda/kernel.h"

template <class S>
__global__ void gather_tree_kernel(const S *ids, const S *parents, S *out, int64_t times, int64_t batch,
                                   int64_t beams, cuda_fault *fault)
{
    for (CUDA_EACH(i, batch * beams)) {
        int64_t beam = i % beams, row = i / beams;
        for (int64_t t = times - 1; t >= 0; t--) {
            int64_t at = (t * batch + row) * beams;
            out[at + i % beams] = ids[at + beam];
            int64_t parent = parents[at + beam];
            if (parent < 0 || parent >= beams) {
                cuda_raise(fault, "gather_tree", "parents", at + beam, parent, 0, beams - 1);
                break;
            }
            beam = parent;
        }
    }
}

CUDA_KERNEL(gather_tree, true)
{
    cuda_tensor ids = cuda_look(a->ids), parents = cuda_look(a->parents), out = cuda_look(a->out);
    int64_t times = ids.shape[0], batch = ids.shape[1], beams = ids.shape[2];
    if (out.numel == 0) return PROA_OK;
    if (ids.dtype == PROA_I32)
        return cuda_launch(c, cuda_blocks(batch * beams), CUDA_BLOCK, gather_tree_kernel<int32_t>,
                           ids.as<int32_t>(), parents.as<int32_t>(), out.as<int32_t>(), times, batch, beams,
                           c->fault);
    return cuda_launch(c, cuda_blocks(batch * beams), CUDA_BLOCK, gather_tree_kernel<int64_t>,
                       ids.as<int64_t>(), parents.as<int64_t>(), out.as<int64_t>(), times, batch, beams,
                       c->fault);
}
