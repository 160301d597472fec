/* What writers of irregular Paddle forms share. May use proa/wire.h. */
#ifndef PROA_OPS_WIRE_UTIL_H
#define PROA_OPS_WIRE_UTIL_H

#include <proa/wire.h>

/* Paddle's number of a dtype; −1 for none. */
static inline __attribute__((unused)) int64_t proa__wire_dtype_number(proa_dtype d)
{
    switch (d) {
#define PROA_X(NAME, name, bytes, wire) \
    case PROA_##NAME: return wire;
        PROA_DTYPES(PROA_X)
#undef PROA_X
    default: return -1;
    }
}

static inline __attribute__((unused)) proa_status proa__wire_put_dtype(proa_wire_writer *w, const char *attr,
                                                                       proa_dtype d)
{
    return proa_wire_put_int(w, attr, PROA_WIRE_INT, proa__wire_dtype_number(d));
}

#endif
