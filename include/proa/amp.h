/* Automatic mixed precision: autocast and the gradient scaler. Implemented by amp/; needs proa/core.h and
 * proa/optim.h. The op table says which ops run in low precision, which in float32. */
#ifndef PROA_AMP_H
#define PROA_AMP_H

#include <proa/core.h>
#include <proa/optim.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum proa_amp_level {
    PROA_AMP_OFF = 0,
    PROA_AMP_O1, /* low precision for ops of class low_precision, float32 for class float32 */
    PROA_AMP_O2  /* low precision for everything but class float32; see proa_amp_decorate */
} proa_amp_level;

/* Options of autocast on this thread. custom_low and custom_f32 are comma-separated op names on top of the
 * table's classes (NULL: none). */
typedef struct proa_autocast_opts {
    char _;
    proa_dtype dtype; /* PROA_BF16 (default) or PROA_F16 */
    const char *custom_low, *custom_f32;
} proa_autocast_opts;

typedef struct proa_autocast_state {
    proa_amp_level level;
    proa_dtype dtype;
    void *lists; /* the custom op lists; freed by proa_autocast_leave */
    bool set;
} proa_autocast_state;

/* Switches autocast for this thread. Returns the former state, which proa_autocast_leave restores. */
PROA_API proa_autocast_state proa_autocast_enter(proa_amp_level level, proa_autocast_opts opts);
/* Restores the state that proa_autocast_enter returned. The macro PROA_AUTOCAST calls both. */
PROA_API void proa_autocast_leave(const proa_autocast_state *before);
/* Whether autocast is on for this thread. */
PROA_API bool proa_is_autocasting(void);
/* PROA_AUTOCAST(PROA_AMP_O1, .dtype = PROA_BF16) { … } */
#define PROA_AUTOCAST(...) PROA_AUTOCAST_(__VA_ARGS__, )
#define PROA_AUTOCAST_(level, ...)                                                                \
    for (__attribute__((cleanup(proa_autocast_leave))) proa_autocast_state proa_autocast_ =       \
             proa_autocast_enter((level), PROA_LITERAL(proa_autocast_opts){._ = 0, __VA_ARGS__}); \
         proa_autocast_.set; proa_autocast_.set = false)

/* Dynamic loss scaling, so that small float16 gradients do not underflow. A step whose gradients overflow is
 * skipped; the scale grows after `growth_interval` good steps in a row and shrinks after `backoff_interval`
 * bad ones. Zero options: Paddle's defaults. */
typedef struct proa_scaler_opts {
    char _;
    double init_scale;                         /* 65536 (2^16) */
    double growth, backoff;                    /* 2, 0.5 */
    int64_t growth_interval, backoff_interval; /* 2000, 1 */
    bool fixed;                                /* never changes the scale */
} proa_scaler_opts;
typedef struct proa_scaler proa_scaler;
/* A new scaler; INVALID_ARGUMENT for options out of range. Free it with proa_scaler_free. */
PROA_API proa_scaler *proa_scaler_new_opt(proa_scaler_opts opts);
#define proa_scaler_new(...) proa_scaler_new_opt(PROA_LITERAL(proa_scaler_opts){._ = 0, __VA_ARGS__})
PROA_API void proa_scaler_free(proa_scaler *s); /* accepts NULL */
/* Returns loss × scale, a new tensor to call backward on. */
PROA_API proa_tensor *proa_scaler_scale(proa_scaler *s, proa_tensor *loss);
/* Divides the optimizer's gradients by the scale, steps unless one of them is not finite, and updates the
 * scale. */
PROA_API proa_status proa_scaler_step(proa_scaler *s, proa_optimizer *opt);
/* The factor that the next proa_scaler_scale applies. */
PROA_API double proa_scaler_get(const proa_scaler *s);
/* True if the last step was skipped because a gradient was not finite. */
PROA_API bool proa_scaler_skipped(const proa_scaler *s);
/* The scaler's state (scale and counters) as tensors, for checkpoints. The list ends with the scope, tensors
 * are borrowed. */
PROA_API proa_named_list proa_scaler_state(proa_scaler *s);

/* O2: casts the floating parameters of a layer's list to dtype (their optimizer keeps float32 masters). */
PROA_API proa_status proa_amp_decorate(proa_tensors parameters, proa_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
