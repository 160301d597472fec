/* Fuzzes predictors from memory: a model and its parameters, with the passes for float32. */
#include "tests/fuzz/predict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_model m;
    if (fuzz_model_of(data, size, &m)) fuzz_predict_memory(&m, PROA_CONFIG_IR_OPTIM);
    return 0;
}
