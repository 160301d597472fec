/* Binding to NCCL 2, loaded at its first use, so that the plug-in also loads on a machine without NCCL. The
 * build compares nccl.h's declarations with NCCL's header if that is installed. C; uses the dynamic
 * loader. */
#include "nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#if defined(PROA_NCCL_HEADERS)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <nccl.h>
#pragma GCC diagnostic pop
#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs " is another in this NCCL")
SAME(CUDA_NCCL_OK, ncclSuccess);
SAME(CUDA_NCCL_SYSTEM_ERROR, ncclSystemError);
SAME(CUDA_NCCL_INVALID_ARGUMENT, ncclInvalidArgument);
SAME(CUDA_NCCL_INVALID_USAGE, ncclInvalidUsage);
SAME(CUDA_NCCL_REMOTE_ERROR, ncclRemoteError);
SAME(CUDA_NCCL_IN_PROGRESS, ncclInProgress);
SAME(CUDA_NCCL_INT8, ncclInt8);
SAME(CUDA_NCCL_UINT8, ncclUint8);
SAME(CUDA_NCCL_INT32, ncclInt32);
SAME(CUDA_NCCL_INT64, ncclInt64);
SAME(CUDA_NCCL_HALF, ncclFloat16);
SAME(CUDA_NCCL_FLOAT, ncclFloat32);
SAME(CUDA_NCCL_DOUBLE, ncclFloat64);
SAME(CUDA_NCCL_BFLOAT16, ncclBfloat16);
SAME(CUDA_NCCL_SUM, ncclSum);
SAME(CUDA_NCCL_PROD, ncclProd);
SAME(CUDA_NCCL_MAX, ncclMax);
SAME(CUDA_NCCL_MIN, ncclMin);
SAME(CUDA_NCCL_AVG, ncclAvg);
SAME(sizeof(cuda_nccl_id), sizeof(ncclUniqueId));
SAME(offsetof(cuda_nccl_config, size), offsetof(ncclConfig_t, size));
SAME(offsetof(cuda_nccl_config, magic), offsetof(ncclConfig_t, magic));
SAME(offsetof(cuda_nccl_config, version), offsetof(ncclConfig_t, version));
SAME(offsetof(cuda_nccl_config, blocking), offsetof(ncclConfig_t, blocking));
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cuda_nccl table;
static char why_not[256];

static void find(void)
{
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *text = dlerror();
        snprintf(why_not, sizeof why_not, "NCCL 2 cannot be loaded: %s", text ? text : "unknown reason");
        return;
    }
    /* ISO C has no conversion from an object pointer to a function pointer, so the pointer's bytes are
     * copied. */
    void *p;
#define PROA_X(name)                                                                                       \
    p = dlsym(library, "nccl" #name);                                                                      \
    if (!p && !why_not[0])                                                                                 \
        snprintf(why_not, sizeof why_not, "libnccl.so.2 has no nccl" #name "; NCCL 2.14 or later has it"); \
    memcpy(&table.name, &p, sizeof p);
    CUDA_NCCL_FUNCTIONS(PROA_X)
#undef PROA_X
}

const cuda_nccl *cuda_nccl_default(const char **why)
{
    pthread_once(&once, find);
    *why = why_not;
    return why_not[0] ? NULL : &table;
}
