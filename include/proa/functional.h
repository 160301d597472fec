/* Losses and metrics that are compositions of ops, called like ops: required arguments by position, options
 * as `.name = value`. What is an op itself (proa_nll_loss, proa_huber_loss, …) is in proa/ops.h.
 * Labels and weights are not differentiated, except where said. */
#ifndef PROA_FUNCTIONAL_H
#define PROA_FUNCTIONAL_H

#include <proa/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In every loss below: PROA_LOSS_REDUCTION_MEAN (the default), _SUM or _NONE (one loss an element or row).
 * The result is new; errors are those of the ops that a loss consists of, and name these. */

/* Cross-entropy of softmax(logits) along axis, the mean over the rows that count.
 * logits: floating [..., C]; label: integer class numbers, logits' shape without axis (or with length 1
 * there), or with soft_label a distribution of logits' shape. weight: [C], one factor a class; the mean then
 * divides by the sum of the factors used. label_smoothing mixes a uniform distribution in; with it, or with
 * soft_label, ignore_index has no effect. New tensor: 0-D, or with no reduction one loss a row (of the
 * label's rank). */
typedef struct proa_cross_entropy_opts {
    char _;
    proa_tensor *weight;
    int64_t ignore_index; /* default −100: rows with this label contribute no loss; PROA_ZERO for class 0 */
    proa_loss_reduction reduction;
    bool soft_label;
    int64_t axis;           /* default −1; PROA_ZERO for the first */
    bool no_use_softmax;    /* logits are probabilities already */
    double label_smoothing; /* default 0 */
} proa_cross_entropy_opts;
PROA_API proa_tensor *proa_cross_entropy_opt(proa_tensor *logits, proa_tensor *label,
                                             proa_cross_entropy_opts opts);
#define proa_cross_entropy(...) PROA_X_cross_entropy_(__VA_ARGS__, )
#define PROA_X_cross_entropy_(logits, label, ...) \
    proa_cross_entropy_opt((logits), (label), PROA_LITERAL(proa_cross_entropy_opts){._ = 0, __VA_ARGS__})

/* Options of the losses between two tensors of one shape. */
typedef struct proa_loss_opts {
    char _;
    proa_loss_reduction reduction;
} proa_loss_opts;

/* (input − label)²; differentiable in both. */
PROA_API proa_tensor *proa_mse_loss_opt(proa_tensor *input, proa_tensor *label, proa_loss_opts opts);
#define proa_mse_loss(...) PROA_X_mse_loss_(__VA_ARGS__, )
#define PROA_X_mse_loss_(input, label, ...) \
    proa_mse_loss_opt((input), (label), PROA_LITERAL(proa_loss_opts){._ = 0, __VA_ARGS__})

/* |input − label|; differentiable in both. */
PROA_API proa_tensor *proa_l1_loss_opt(proa_tensor *input, proa_tensor *label, proa_loss_opts opts);
#define proa_l1_loss(...) PROA_X_l1_loss_(__VA_ARGS__, )
#define PROA_X_l1_loss_(input, label, ...) \
    proa_l1_loss_opt((input), (label), PROA_LITERAL(proa_loss_opts){._ = 0, __VA_ARGS__})

/* Huber's loss: quadratic up to delta (default 1), linear beyond; differentiable in both. */
typedef struct proa_smooth_l1_loss_opts {
    char _;
    proa_loss_reduction reduction;
    double delta;
} proa_smooth_l1_loss_opts;
PROA_API proa_tensor *proa_smooth_l1_loss_opt(proa_tensor *input, proa_tensor *label,
                                              proa_smooth_l1_loss_opts opts);
#define proa_smooth_l1_loss(...) PROA_X_smooth_l1_loss_(__VA_ARGS__, )
#define PROA_X_smooth_l1_loss_(input, label, ...) \
    proa_smooth_l1_loss_opt((input), (label), PROA_LITERAL(proa_smooth_l1_loss_opts){._ = 0, __VA_ARGS__})

/* Kullback-Leibler divergence of log-probabilities input from label; _BATCHMEAN divides by the batch. */
PROA_API proa_tensor *proa_kl_div_opt(proa_tensor *input, proa_tensor *label, proa_loss_opts opts);
#define proa_kl_div(...) PROA_X_kl_div_(__VA_ARGS__, )
#define PROA_X_kl_div_(input, label, ...) \
    proa_kl_div_opt((input), (label), PROA_LITERAL(proa_loss_opts){._ = 0, __VA_ARGS__})

/* Binary cross-entropy of probabilities; weight broadcasts to them. */
typedef struct proa_binary_cross_entropy_opts {
    char _;
    proa_tensor *weight;
    proa_loss_reduction reduction;
} proa_binary_cross_entropy_opts;
PROA_API proa_tensor *proa_binary_cross_entropy_opt(proa_tensor *input, proa_tensor *label,
                                                    proa_binary_cross_entropy_opts opts);
#define proa_binary_cross_entropy(...) PROA_X_binary_cross_entropy_(__VA_ARGS__, )
#define PROA_X_binary_cross_entropy_(input, label, ...) \
    proa_binary_cross_entropy_opt((input), (label),     \
                                  PROA_LITERAL(proa_binary_cross_entropy_opts){._ = 0, __VA_ARGS__})

/* Binary cross-entropy of sigmoid(logit); pos_weight (broadcasts to logit) weighs the positive class. */
typedef struct proa_binary_cross_entropy_with_logits_opts {
    char _;
    proa_tensor *weight, *pos_weight;
    proa_loss_reduction reduction;
} proa_binary_cross_entropy_with_logits_opts;
PROA_API proa_tensor *proa_binary_cross_entropy_with_logits_opt(
    proa_tensor *logit, proa_tensor *label, proa_binary_cross_entropy_with_logits_opts opts);
#define proa_binary_cross_entropy_with_logits(...) PROA_X_binary_cross_entropy_with_logits_(__VA_ARGS__, )
#define PROA_X_binary_cross_entropy_with_logits_(logit, label, ...) \
    proa_binary_cross_entropy_with_logits_opt(                      \
        (logit), (label), PROA_LITERAL(proa_binary_cross_entropy_with_logits_opts){._ = 0, __VA_ARGS__})

/* Top-k accuracy, from 0 to 1: fraction of the rows of scores [N, C] whose label (integers [N] or [N, 1]) is
 * among the k highest scores. NaN after an error. */
PROA_API double proa_top_accuracy(proa_tensor *scores, proa_tensor *label, int64_t k);

#ifdef __cplusplus
}
#endif
#endif
