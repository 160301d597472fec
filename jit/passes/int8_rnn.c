/* INT8 pass for LSTM and GRU: an rnn op that draws no dropout, saves nothing for a backward, and has only
 * quantized matrices (integers times a step) becomes rnn_int8. Its kernel rounds states, and inputs that are
 * not quantized already, row by row. May use core and ops. */
#include "int8.h"

#include "core/internal.h"
#include "impl/elementwise.h"
#include "impl/int8.h"
#include "impl/matmul.h"
#include "impl/rnn.h"
#include "impl/shape.h"

/* Sums of more products of bytes may not fit in 32 bits. */
enum { MAX_COLUMNS = 1 << 16 };

static bool is_unused(const int8_pass *p, const proa_tensor *slot)
{
    const proa_var *v = proa__slot_var(slot);
    return !v || proa__is_unused(&p->uses, v);
}

/* The grid of a matrix with one scale, or one a row; NULL: it has none. */
static const grid *matrix_grid(const int8_pass *p, const proa_tensor *slot)
{
    const grid *g = proa__int8_grid_of(p, slot);
    if (!g || g->kind != GRID_WEIGHT || g->integers || !g->weight_largest || g->weight->ndim != 2)
        return NULL;
    const proa_tensor *largest = g->weight_largest;
    bool by_row = g->axis == 0 && largest->numel == g->weight->shape[0];
    return (by_row || largest->numel == 1) && g->weight->shape[1] <= MAX_COLUMNS ? g : NULL;
}

static bool suits(const int8_pass *p, const proa_rnn_args *a)
{
    bool gated = a->mode == PROA_RNN_MODE_LSTM || a->mode == PROA_RNN_MODE_GRU;
    bool random = a->training && a->dropout_prob > 0 && a->num_layers > 1;
    if (!gated || random || a->input->dtype != PROA_F32 || a->weight_list.count % 2 ||
        !is_unused(p, a->reserve) || !is_unused(p, a->dropout_state))
        return false;
    for (int64_t i = 0; i < a->weight_list.count / 2; i++)
        if (!matrix_grid(p, a->weight_list.at[i])) return false;
    return true;
}

/* The step of each row of a matrix. */
static proa_tensor *steps_of(const grid *g)
{
    proa_tensor *largest = proa_reshape(proa_cast(g->weight_largest, PROA_F64), PROA_SHAPE(-1));
    proa_tensor *steps = proa_scale(largest, .scale = PROA_SCALAR(1.0 / INT8_RANGE));
    return proa_cast(proa_expand(steps, PROA_SHAPE(g->weight->shape[0])), PROA_F32);
}

/* The value whose transpose a slot reads, or the slot itself. */
static const proa_tensor *before_transpose(const int8_pass *p, const proa_tensor *slot)
{
    const proa__use *use = proa__use_of(&p->uses, proa__slot_var(slot));
    const proa_instr *maker = use && use->maker != PROA__NOBODY ? &p->block->ops[use->maker] : NULL;
    if (!maker || !proa__is_op(maker, "transpose")) return slot;
    return ((const proa_transpose_args *)maker->args)->x;
}

/* Reads the input's integers if it is on a grid, perhaps transposed; otherwise the kernel quantizes it. */
static proa_status set_input(int8_pass *p, proa_rnn_int8_args *to, proa_tensor *slot)
{
    const proa_tensor *made = before_transpose(p, slot);
    const grid *g = proa__int8_grid_of(p, made);
    to->input = slot;
    to->step = 1;
    if (!g || g->kind != GRID_ACTIVATION || g->integers) return PROA_OK;
    to->step = g->largest / INT8_RANGE;
    const proa_var *from = made == slot ? g->from : proa__slot_var(slot);
    const wanted *of = proa__int8_want(p, from, g->largest, g->low);
    if (of) to->input = of->handle;
    return of ? PROA_OK : proa_error();
}

proa_status proa__int8_rnn(int8_pass *p, int32_t at)
{
    proa_instr *instr = &p->block->ops[at];
    if (!proa__is_op(instr, "rnn") || !proa__int8_is_asked(p, instr)) return PROA_OK;
    const proa_rnn_args *a = instr->args;
    if (!suits(p, a)) return PROA_OK;
    const int64_t n = a->weight_list.count / 2;
    proa_tensor **lists = proa_scope_alloc((size_t)(2 * n) * sizeof *lists);
    if (!lists) return proa_error();
    for (int64_t i = 0; i < n; i++) {
        const grid *g = matrix_grid(p, a->weight_list.at[i]);
        proa_tensor *steps = steps_of(g);
        lists[i] = steps ? proa__new_constant(p->block, g->weight) : NULL;
        lists[n + i] = lists[i] ? proa__new_constant(p->block, steps) : NULL;
        if (!lists[n + i]) return proa_error();
    }
    proa_rnn_int8_args made = {.pre_state = a->pre_state,
                               .weight_list = {n, lists},
                               .scale_list = {n, lists + n},
                               .bias_list = {n, a->weight_list.at + n},
                               .sequence_length = a->sequence_length,
                               .mode = a->mode,
                               .num_layers = a->num_layers,
                               .is_bidirec = a->is_bidirec,
                               .out = a->out,
                               .state = a->state};
    PROA_TRY(set_input(p, &made, a->input));
    p->n_products++;
    return proa__instr_become(instr, proa_find_op("rnn_int8"), &made);
}
