/* Fuzzes the program reader: any bytes are a program, or a typed error; never a crash, never a leak. */
#include <proa/io.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned char params[4096]; /* what persistable variables would be read from */
    proa_memory_set_cap((int64_t)1 << 30);
    size_t head = size < 2 ? 0 : (size_t)(data[0] | data[1] << 8) % sizeof params;
    proa_program *p = proa_program_load_memory(data, size, size && data[0] & 1 ? params : NULL,
                                               size && data[0] & 1 ? head : 0);
    if (!p && proa_error() == PROA_OK) abort();
    proa_program_free(p);
    (void)!proa_finish(NULL);
    if (proa_memory_get_stats().live_bytes > (1 << 20)) abort();
    return 0;
}
