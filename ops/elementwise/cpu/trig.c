/* CPU kernels of functions without a vectorized formula: one call of the C library or of a scalar formula
 * per element. sin and cos of float32 are vectorized in pieces without huge operands. May use core only. */
#define PROA_FORMULAS_TRIG 1
#include "ops/elementwise/complex.h"
#include "ops/elementwise/inner_loops.h"

enum { QUICK_PIECE = 64 };

/* Piece by piece: vector code where all of a piece is small enough for it. */
#define ROW_quick(op)                                                                                       \
    PROA_ROW_HEAD_(op, F32)                                                                                 \
    PROA_ROW_OUT_(T)                                                                                        \
    for (int64_t first = 0, m; first < n; first += m) {                                                     \
        int quick = 1;                                                                                      \
        m = n - first < QUICK_PIECE ? n - first : QUICK_PIECE;                                              \
        for (int64_t i = first; i < first + m; i++) quick &= m_sine_is_quick(x[i]);                         \
        if (quick) {                                                                                        \
            _Pragma("GCC ivdep") for (int64_t i = first; i < first + m; i++) out[i] = m_##op##_quick(x[i]); \
        } else {                                                                                            \
            for (int64_t i = first; i < first + m; i++) out[i] = op##_F32(x[i]);                            \
        }                                                                                                   \
    }                                                                                                       \
    }
#define ROW_plain(op)                                                               \
    PROA_ROW_HEAD_(op, F32) PROA_ROW_OUT_(T) PROA_ROW_LOOP out[i] = op##_F32(x[i]); \
    }

/* SECOND picks ROW_quick for the two ops that are named here, ROW_plain for the others. */
#define QUICK_sin , quick
#define QUICK_cos , quick
#define SECOND_(a, b, ...) b
#define SECOND(...) SECOND_(__VA_ARGS__)
#define TRIG_ROW_F32(op) PROA_PASTE(ROW_, SECOND(QUICK_##op, plain, ))(op)
#define TRIG_ROW(op, D)                                                           \
    PROA_ROW_HEAD_(op, D) PROA_ROW_OUT_(T) PROA_ROW_LOOP out[i] = op##_##D(x[i]); \
    }
#define TRIG_ROW_F64(op) TRIG_ROW(op, F64)
#define TRIG_ROW_C64(op) TRIG_ROW(op, C64)
#define TRIG_ROW_C128(op) TRIG_ROW(op, C128)
#undef PROA_ROW_UNARY_0
#define PROA_ROW_UNARY_0(op, D) TRIG_ROW_##D(op)

#include "formulas.inc"
