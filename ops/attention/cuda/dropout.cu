/* Dropout of softmax weights on tensor cores: one bit per weight, computed before the kernels that read it. A
 * block of random numbers serves eight neighboring keys, of which a lane there has two. */
#include "ops/attention/cuda/tensor.h"

/* Each thread makes one word: 32 keys of a query. */
__global__ void attention_kept_kernel(attention_problem w, uint32_t *to, int64_t words_in_all)
{
    uint64_t seed = (uint64_t)w.seed[0], offset = (uint64_t)w.seed[1];
    for (CUDA_EACH(item, words_in_all)) {
        int64_t row = item, key = cuda_split(row, w.words) * 32;
        uint64_t first = (uint64_t)(row * w.keys + key), end = first + 32;
        uint32_t word = 0;
        for (uint64_t block = first / 8; block * 8 < end; block++) {
            proa__philox_block r = proa__philox(seed, offset + block);
            uint32_t eight = 0;
#pragma unroll
            for (int i = 0; i < 8; i++)
                eight |= (uint32_t)((r.v[i / 2] >> (i % 2 * 16) & 0xffffu) >= w.threshold) << i;
            int shift = (int)((int64_t)(block * 8) - (int64_t)first);
            word |= shift < 0 ? eight >> -shift : eight << shift;
        }
        to[item] = word;
    }
}

proa_status attention_make_kept(cuda_context *c, attention_problem *w, void **scratch)
{
    *scratch = NULL;
    w->words = (w->keys + 31) / 32;
    int64_t words = w->batch * w->heads * w->queries * w->words;
    if (!w->drop || words > ATTENTION_KEPT_WORDS) return PROA_OK;
    uint32_t *to = (uint32_t *)(*scratch = cuda_scratch(c, (size_t)words * sizeof *to));
    if (!to) return cuda_host->error();
    w->kept = to;
    return cuda_launch(c, cuda_blocks(words), CUDA_BLOCK, attention_kept_kernel, *w, to, words);
}
