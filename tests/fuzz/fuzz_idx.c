/* Fuzzes the IDX reader. */
#include <proa/data.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t none[1];
    proa_tensor *t = proa_read_idx_memory(size ? data : none, size);
    if (!t && proa_error() == PROA_OK) abort();
    if (t && (uint64_t)proa_numel(t) > size) abort();
    (void)!proa_finish(NULL);
    if (proa_memory_get_stats().live_bytes > (1 << 20)) abort();
    return 0;
}
