/* Fuzzes the CSV reader. */
#include <proa/data.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t none[1];
    proa_data_opts opts = {.label = size & 1 ? 0 : PROA_NO_LABEL,
                           .label_dtype = size & 2 ? PROA_F32 : PROA_I64};
    proa_dataset *d = proa_csv_dataset_memory(size ? data : none, size, opts);
    if (!d && proa_error() == PROA_OK) abort();
    if (d && proa_dataset_count(d) > 0) {
        int64_t last = proa_dataset_count(d) - 1;
        proa_dataset_batch(d, &last, 1);
    }
    proa_dataset_free(d);
    (void)!proa_finish(NULL);
    if (proa_memory_get_stats().live_bytes > (1 << 20)) abort();
    return 0;
}
