/* Readers of the recurrent operators of Paddle 1.x on sequences (lstm, gru, and what its inference passes
 * make of them): a loop over time steps in which all sequences advance together, and those that have ended
 * keep their states. May use public ops, proa/wire.h and loops. */
#include "ops/composed/composed.h"
#include "impl/array.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/index.h"
#include "impl/lod.h"
#include "impl/matmul.h"
#include "impl/shape.h"

#include <proa/program.h>

enum { STATES = 2 }; /* an LSTM's: hidden, and its cell */

/* A recurrence over sequences: the states of a step are `step` of its rows and of the states before it. */
typedef struct recurrence {
    proa_wire_reader *reader;
    bool (*step)(const struct recurrence *r, proa_tensor *rows, proa_tensor **states);
    int n;            /* states */
    bool reversed;    /* from each sequence's end to its beginning */
    proa_tensor *all; /* rows of all steps, [time, sequences, width] */
    proa_tensor *length;
    proa_tensor *weight, *of_state, *peephole[3]; /* NULL where there is none */
    const char *gate, *cell, *candidate;          /* activations */
    /* Results of the loop's functions; list: the step's number, the states, arrays of all steps' states. */
    proa_tensor *condition, *list[1 + 2 * STATES];
} recurrence;

/* ---- steps --------------------------------------------------------------------------------- */

static proa_tensor *with_peephole(proa_tensor *gate, const proa_tensor *weight, proa_tensor *cell)
{
    proa_tensor *w = (proa_tensor *)(uintptr_t)weight;
    return w ? proa_add(gate, proa_multiply(w, cell)) : gate;
}

/* Gates lie as candidate, input, forget, output. Peepholes look at the cell before the step, but for the
 * output gate's, which looks at the new one. */
static bool lstm_step(const recurrence *r, proa_tensor *rows, proa_tensor **states)
{
    int64_t d = r->weight->shape[1] / 4;
    proa_tensor *gates = proa_add(rows, proa_matmul(states[0], r->weight)), *cell = states[1];
    proa_tensor *i = with_peephole(proa__part(gates, 1, d, 2 * d), r->peephole[0], cell),
                *f = with_peephole(proa__part(gates, 1, 2 * d, 3 * d), r->peephole[1], cell);
    proa_tensor *made = proa__activated(proa__part(gates, 1, 0, d), "candidate_activation", r->candidate);
    made = proa_multiply(proa__activated(i, "gate_activation", r->gate), made);
    cell = proa_add(proa_multiply(proa__activated(f, "gate_activation", r->gate), cell), made);
    states[1] = cell;
    proa_tensor *o = with_peephole(proa__part(gates, 1, 3 * d, 4 * d), r->peephole[2], cell);
    states[0] = proa_multiply(proa__activated(o, "gate_activation", r->gate),
                              proa__activated(cell, "cell_activation", r->cell));
    return states[0] != NULL;
}

/* Gates lie as update, reset, candidate. */
static bool gru_step(const recurrence *r, proa_tensor *rows, proa_tensor **states)
{
    int64_t d = r->of_state->shape[0];
    proa_tensor *before = states[0];
    proa_tensor *gates = proa_add(proa__part(rows, 1, 0, 2 * d), proa_matmul(before, r->weight));
    gates = proa__activated(gates, "gate_activation", r->gate);
    proa_tensor *update = proa__part(gates, 1, 0, d);
    proa_tensor *kept = proa_multiply(proa__part(gates, 1, d, 2 * d), before);
    proa_tensor *made = proa_add(proa__part(rows, 1, 2 * d, 3 * d), proa_matmul(kept, r->of_state));
    made = proa__activated(made, "activation", r->candidate);
    bool origin = proa_wire_int(r->reader, "origin_mode", 0) != 0; /* the update gate keeps the old state */
    proa_tensor *from = origin ? made : before, *to = origin ? before : made;
    states[0] = proa_add(from, proa_multiply(update, proa_subtract(to, from)));
    return states[0] != NULL;
}

/* ---- the loop ------------------------------------------------------------------------------ */

static proa_tensors goes_on(proa_tensors vars, void *context)
{
    recurrence *r = context;
    r->condition = proa_less_than(vars.at[0], proa_array_length(r->all));
    return (proa_tensors){r->condition != NULL, &r->condition};
}

/* The dense [time, …] tensor of all rows is an array of the steps' rows, and so are the results. */
static proa_tensors advance(proa_tensors vars, void *context)
{
    recurrence *r = context;
    proa_tensors none = {0, NULL};
    proa_tensor *at = vars.at[0], *states[STATES];
    for (int i = 0; i < r->n; i++) states[i] = vars.at[1 + i];
    if (!r->step(r, proa_array_read(r->all, at), states)) return none;
    proa_tensor *lasts = proa_unsqueeze(proa_less_than(at, r->length), PROA_INTS(1));
    for (int i = 0; i < r->n; i++) {
        r->list[1 + i] = proa_where(lasts, states[i], vars.at[1 + i]);
        r->list[1 + r->n + i] = proa_array_write(vars.at[1 + r->n + i], r->list[1 + i], at);
        if (!r->list[1 + r->n + i]) return none;
    }
    r->list[0] = proa__times(at, 1, 1);
    return r->list[0] ? (proa_tensors){1 + 2 * r->n, r->list} : none;
}

/* A state before the first step: the variable of a slot, or zeros. */
static proa_tensor *first_state(const recurrence *r, const char *slot, int64_t width)
{
    proa_tensor *given = proa_wire_input(r->reader, slot);
    if (!given || given != PROA_NONE) return given;
    proa_tensor *zeros = proa_full_like(r->length, PROA_SCALAR(0), .dtype = (proa_dtype)r->all->dtype);
    return proa_expand(proa_unsqueeze(zeros, PROA_INTS(1)), PROA_INTS(-1, width));
}

/* Binds the states of all steps, as rows of sequences, to the output slots. */
static proa_status bind(recurrence *r, proa_tensors vars, const char *const *slots)
{
    for (int i = 0; i < r->n; i++) {
        proa_tensor *steps = proa_transpose(vars.at[1 + r->n + i], PROA_INTS(1, 0, 2));
        proa_sequence_unpad_result rows = proa_sequence_unpad(steps, r->length);
        proa_tensor *out = r->reversed ? proa_sequence_reverse(rows.out, rows.out_offsets) : rows.out;
        PROA_TRY(proa_wire_result(r->reader, slots[2 * i], out));
        PROA_TRY(proa_wire_result(r->reader, slots[2 * i + 1], rows.out_offsets));
    }
    return PROA_OK;
}

/* Runs the recurrence over x [rows, …], whose sequences the offsets tell. widths: of each state. */
static proa_status run(recurrence *r, proa_tensor *x, proa_tensor *offsets, const int64_t *widths,
                       const char *const *slots)
{
    static const char *const first[STATES] = {"H0", "C0"};
    if (r->reversed) x = proa_sequence_reverse(x, offsets);
    proa_sequence_pad_result padded = proa_sequence_pad(x, proa__constant(x, 0), offsets);
    r->length = padded.length;
    r->all = proa_transpose(padded.out, PROA_INTS(1, 0, 2));
    if (!r->all) return proa_error();
    proa_tensor *vars[1 + 2 * STATES] = {proa_full(PROA_INTS(1), PROA_SCALAR(0), .dtype = PROA_I64)};
    for (int i = 0; i < r->n; i++) {
        vars[1 + i] = first_state(r, first[i], widths[i]);
        vars[1 + r->n + i] =
            proa_array_create(.dtype = (proa_dtype)r->all->dtype, .item = PROA_INTS(0, widths[i]));
    }
    proa_tensors made = proa_while_loop(goes_on, advance, (proa_tensors){1 + 2 * r->n, vars}, r);
    return proa_error() == PROA_OK ? bind(r, made, slots) : proa_error();
}

/* ---- the operators ------------------------------------------------------------------------- */

enum { WIDEST = 1 << 24 }; /* of a state, so that sizes of weights do not overflow */

/* Checks x [rows, gates · D], and the weight [D, gates · D]. */
static proa_status check(proa_tensor *x, const char *slot, proa_tensor *offsets, proa_tensor *weight,
                         int gates)
{
    if (!x || !offsets || !weight) return proa_error();
    if (proa__absent(offsets))
        return proa_fail(PROA_ERR_UNSUPPORTED, "input %s carries no sequences (LoD) that are known here",
                         slot);
    bool known = weight->ndim == 2 && weight->shape[0] > 0 && weight->shape[0] <= WIDEST;
    if (known && weight->shape[1] == gates * weight->shape[0] && x->ndim == 2) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                     "the weight is %s and %s %s; expected [D, %d D] with a known D, and rows of %d D",
                     proa__tensor_text(weight), slot, proa__tensor_text(x), gates, gates);
}

/* An LSTM of gates x, to which the bias was not added yet. Bias: four gates', then three peepholes. */
static proa_status lstm_of(proa_wire_reader *reader, proa_tensor *x, const char *slot, proa_tensor *offsets,
                           proa_tensor *weight, bool biased, const char *const *slots)
{
    PROA_TRY(check(x, slot, offsets, weight, 4));
    int64_t d = weight->shape[0];
    proa_tensor *bias = proa_wire_input(reader, "Bias");
    if (!bias) return proa_error();
    recurrence r = {.reader = reader,
                    .step = lstm_step,
                    .n = 2,
                    .reversed = proa_wire_int(reader, "is_reverse", 0) != 0,
                    .weight = weight,
                    .gate = proa_wire_string(reader, "gate_activation", "sigmoid"),
                    .cell = proa_wire_string(reader, "cell_activation", "tanh"),
                    .candidate = proa_wire_string(reader, "candidate_activation", "tanh")};

    if (!proa__absent(bias)) {
        if (biased) x = proa_add(x, proa__part(bias, 1, 0, 4 * d));
        bool peepholes = proa_wire_int(reader, "use_peepholes", 1) != 0 && bias->shape[1] == 7 * d;
        for (int i = 0; peepholes && i < 3; i++)
            r.peephole[i] = proa__part(bias, 1, (4 + i) * d, (5 + i) * d);
    }
    int64_t widths[] = {d, d};
    return run(&r, x, offsets, widths, slots);
}

static proa_status gru_of(proa_wire_reader *reader, proa_tensor *x, const char *slot, proa_tensor *offsets,
                          proa_tensor *weight)
{
    static const char *const slots[] = {"Hidden", "Hidden@LOD"};
    PROA_TRY(check(x, slot, offsets, weight, 3));
    int64_t d = weight->shape[0];
    proa_tensor *bias = proa_wire_input(reader, "Bias"), *flat = proa_reshape(weight, PROA_INTS(3 * d * d));
    if (!bias) return proa_error();
    recurrence r = {.reader = reader,
                    .step = gru_step,
                    .n = 1,
                    .reversed = proa_wire_int(reader, "is_reverse", 0) != 0,
                    .weight = proa_reshape(proa__part(flat, 0, 0, 2 * d * d), PROA_INTS(d, 2 * d)),
                    .of_state = proa_reshape(proa__part(flat, 0, 2 * d * d, 3 * d * d), PROA_INTS(d, d)),
                    .gate = proa_wire_string(reader, "gate_activation", "sigmoid"),
                    .candidate = proa_wire_string(reader, "activation", "tanh")};
    if (!r.of_state) return proa_error();
    return run(&r, proa__absent(bias) ? x : proa_add(x, bias), offsets, &d, slots);
}

proa_status lstm_read(proa_wire_reader *r)
{
    static const char *const slots[] = {"Hidden", "Hidden@LOD", "Cell", "Cell@LOD"};
    return lstm_of(r, proa_wire_input(r, "Input"), "Input", proa_wire_input(r, "Input@LOD"),
                   proa_wire_input(r, "Weight"), true, slots);
}

proa_status gru_read(proa_wire_reader *r)
{
    return gru_of(r, proa_wire_input(r, "Input"), "Input", proa_wire_input(r, "Input@LOD"),
                  proa_wire_input(r, "Weight"));
}

proa_status fusion_lstm_read(proa_wire_reader *r)
{
    static const char *const slots[] = {"Hidden", "Hidden@LOD", "Cell", "Cell@LOD"};
    proa_tensor *gates = proa_matmul(proa_wire_input(r, "X"), proa_wire_input(r, "WeightX"));
    return lstm_of(r, gates, "X", proa_wire_input(r, "X@LOD"), proa_wire_input(r, "WeightH"), true, slots);
}

proa_status fusion_gru_read(proa_wire_reader *r)
{
    proa_tensor *gates = proa_matmul(proa_wire_input(r, "X"), proa_wire_input(r, "WeightX"));
    return gru_of(r, gates, "X", proa_wire_input(r, "X@LOD"), proa_wire_input(r, "WeightH"));
}

/* The rows of a table, which hold products and the gates' biases already. */
proa_status fused_embedding_fc_lstm_read(proa_wire_reader *r)
{
    static const char *const slots[] = {"Hidden", "Hidden@LOD", "Cell", "Cell@LOD"};
    proa_tensor *ids = proa_reshape(proa_wire_input(r, "Ids"), PROA_INTS(-1));
    return lstm_of(r, proa_gather(proa_wire_input(r, "Embeddings"), ids), "Ids",
                   proa_wire_input(r, "Ids@LOD"), proa_wire_input(r, "WeightH"), false, slots);
}
