/* Names and sizes of dtypes, from the list in proa/core.h, and the thread's default dtype. May use core
 * only. */
#include "core/error.h"
#include "core/thread.h"

#include <stdio.h>

static const char *const names[PROA_DTYPE_COUNT] = {[PROA_NODTYPE] = "none",
#define PROA_X(NAME, name, bytes, wire) [PROA_##NAME] = #name,
                                                    PROA_DTYPES(PROA_X)
#undef PROA_X
};

static inline bool is_known(proa_dtype dtype) { return dtype >= PROA_NODTYPE && dtype < PROA_DTYPE_COUNT; }

const char *proa_dtype_name(proa_dtype dtype) { return is_known(dtype) ? names[dtype] : "unknown"; }

const char *proa_dtypes_text(uint32_t dtypes, char text[PROA_DTYPES_TEXT])
{
    size_t n = 0;
    text[0] = 0;
    for (int d = 1; d < PROA_DTYPE_COUNT; d++)
        if (dtypes >> d & 1 && n < PROA_DTYPES_TEXT)
            n += (size_t)snprintf(text + n, PROA_DTYPES_TEXT - n, "%s%s", n ? ", " : "", names[d]);
    return text;
}

size_t proa_dtype_size(proa_dtype dtype) { return proa__dtype_bytes((unsigned)dtype); }

proa_dtype proa_dtype_from_name(const char *name)
{
    for (int i = 1; name && i < PROA_DTYPE_COUNT; i++)
        if (strcmp(name, names[i]) == 0) return (proa_dtype)i;
    return PROA_NODTYPE;
}

proa_dtype proa_default_dtype(void)
{
    const proa__thread *me = proa__thread_self;
    return me ? me->default_dtype : PROA_F32;
}

void proa_set_default_dtype(proa_dtype dtype)
{
    if (dtype != PROA_F16 && dtype != PROA_BF16 && dtype != PROA_F32 && dtype != PROA_F64) {
        proa_fail(PROA_ERR_WRONG_TYPE,
                  "set_default_dtype: expected float16, bfloat16, float32 or float64, got %s",
                  proa_dtype_name(dtype));
        return;
    }
    proa__thread *me = proa__me();
    if (me) me->default_dtype = dtype;
    else proa_fail(PROA_ERR_OUT_OF_MEMORY, "set_default_dtype: no memory for this thread's settings");
}
