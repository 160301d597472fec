/* gather_tree on a GPU, one thread per beam, from its last step back to the first; and sequence_mask. */
#include "devices/cuda/kernel.h"

template <class S>
__global__ void gather_tree_kernel(const S *ids, const S *parents, S *out, int64_t times, int64_t batch,
                                   int64_t beams, cuda_report report)
{
    for (CUDA_EACH(i, batch * beams)) {
        int64_t beam = i % beams, row = i / beams;
        for (int64_t t = times - 1; t >= 0; t--) {
            int64_t at = (t * batch + row) * beams;
            out[at + i % beams] = ids[at + beam];
            int64_t parent = parents[at + beam];
            if (parent < 0 || parent >= beams) {
                cuda_raise(report, at + beam, parent, 0, beams - 1);
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
                           cuda_reports(c, "parents"));
    return cuda_launch(c, cuda_blocks(batch * beams), CUDA_BLOCK, gather_tree_kernel<int64_t>,
                       ids.as<int64_t>(), parents.as<int64_t>(), out.as<int64_t>(), times, batch, beams,
                       cuda_reports(c, "parents"));
}

/* ---- sequence_mask --------------------------------------------------------------------- */

__global__ void mask_longest_kernel(const char *x, proa_dtype dtype, int64_t n, int64_t *longest)
{
    int64_t most = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        most = cuda_max::join(most, cuda_index(x, dtype, i));
    most = cuda_block_reduce<cuda_max>(most);
    if (threadIdx.x == 0) *longest = most;
}

__global__ void mask_kernel(const char *x, proa_dtype dtype, int64_t length, int64_t n, char *out,
                            proa_dtype to, int64_t item)
{
    for (CUDA_EACH(i, n)) {
        int64_t row = i, place = cuda_split(row, length);
        cuda_store<int64_t>(out + i * item, to, place < cuda_index(x, dtype, row));
    }
}

/* The largest of x, which the host waits for; 0 at least. */
static proa_status longest_of(cuda_context *c, const cuda_tensor &x, int64_t *to)
{
    *to = 0;
    if (x.numel == 0) return PROA_OK;
    int64_t *found = (int64_t *)cuda_scratch(c, sizeof *found);
    if (!found) return cuda_host->error();
    proa_status s = cuda_launch(c, 1, CUDA_BLOCK, mask_longest_kernel, x.data, x.dtype, x.numel, found);
    if (s == PROA_OK) s = cuda_read(c, to, found, sizeof *to);
    cuda_scratch_free(c, found);
    return s;
}

CUDA_KERNEL(sequence_mask, CUDA_REALS >> a->dtype & 1)
{
    cuda_tensor x = cuda_look(a->x);
    int64_t length = cuda_integer(&a->maxlen, -1);
    if (length < 0) PROA_TRY(longest_of(c, x, &length));
    proa_meta meta = {a->dtype, (int8_t)(x.ndim + 1), {0}};
    for (int d = 0; d < x.ndim; d++) meta.shape[d] = x.shape[d];
    meta.shape[x.ndim] = length;
    proa_tensor *made = cuda_host->output_resize((void *)(uintptr_t)a, c->running, 0, &meta);
    if (!made) return cuda_host->error();
    int64_t n = x.numel * length;
    if (n == 0) return PROA_OK;
    return cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, mask_kernel, x.data, x.dtype, length, n,
                       cuda_look(made).data, a->dtype, cuda_item(a->dtype));
}
