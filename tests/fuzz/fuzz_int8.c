/* Fuzzes INT8 execution: a quantized model and its parameters from memory, through the pass int8. */
#include "tests/fuzz/predict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_model m;
    if (fuzz_model_of(data, size, &m)) fuzz_predict_memory(&m, PROA_CONFIG_ONEDNN_INT8);
    return 0;
}
