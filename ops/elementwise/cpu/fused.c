/* fused_elementwise on the CPU: applies all steps of the chain to one 4 KiB tile before the next, so that
 * intermediate results stay in the L1 cache; chains that tiles cannot compute run as separate ops. May use
 * core only. */
#include "ops/elementwise/fused.h"

#include "ops/elementwise/numbers.h"
#include "impl/elementwise.h"

#include <stdlib.h>

#define PROA_FORMULAS_ALL 1
#include "formulas.inc"

enum { TILE_BYTES = 4096, SLOTS = 8, NOWHERE = -1 };

/* Destination of a step's result: an operand of the map (an output), or a slot. A result that is rounded to a
 * half type is kept in a slot in float32, and stored from there. */
typedef struct tile_step {
    proa_row row;
    int n;
    int at[4];         /* result, then operands: the map's operand, or OPERANDS + slot */
    proa_dtype rounds; /* the half type that the result is rounded to; NODTYPE: none */
    int store;         /* the output that takes the rounded result; NOWHERE: none */
    union {
        proa__step_args own; /* the op's args struct, with its attributes */
        proa_numbers numbers;
    } args; /* that the row reads */
} tile_step;

enum { OPERANDS = PROA_MAP_MAX };

typedef struct tiled {
    proa_dtype dtype; /* that of the computation: float32, or float64 */
    int64_t item;
    int n_out, n_in, n;
    double costs; /* of an element, as a part of what is worth a thread of its own */
    tile_step at[];
} tiled;

/* ---- preparing ------------------------------------------------------------------------- */

static int compare_name(const void *name, const void *entry)
{
    return strcmp(name, *(const char *const *)entry);
}

static void copy_row(char *const *p, int64_t n, const void *args)
{
    (void)args;
    memcpy(p[0], p[1], (size_t)n * sizeof(float));
}
static const proa_rows cast_rows = {.at = {[PROA_F32] = copy_row}, .out = PROA_ROW_OUT_SAME};

/* The rows of the step's op; fills the args that they read. */
static const proa_rows *rows_of(const proa_chain_step *step, proa_dtype d, tile_step *to)
{
    proa__step_args args;
    if (strcmp(step->op->name, "cast") == 0) return &cast_rows;
    proa__step_fill(step, &args);
    if (strcmp(step->op->name, "scale") == 0) {
        proa__scale_numbers((const void *)args.at, d, &to->args.numbers);
        return &proa__scale_rows;
    }
    if (strcmp(step->op->name, "clip") == 0) {
        proa__clip_numbers((const void *)args.at, d, &to->args.numbers);
        return &proa__clip_rows;
    }
    if (strcmp(step->op->name, "pow") == 0) {
        proa__power_numbers((const void *)args.at, d, &to->args.numbers);
        return &proa__power_rows;
    }
    memcpy(&to->args.own, &args, step->op->args_size);
    size_t n = sizeof formula_rows / sizeof *formula_rows, size = sizeof *formula_rows;
    const char *found = bsearch(step->op->name, formula_rows, n, size, compare_name);
    return found ? formula_rows[(size_t)(found - (const char *)formula_rows) / size].rows : NULL;
}

/* For each step's result, the last step that reads it. */
static void find_last(const proa_steps *s, int *last)
{
    for (int i = 0; i < s->count; i++) {
        last[i] = i;
        for (int j = 0; j < s->at[i].op->n_in; j++)
            if (s->at[i].in[j] < 0) last[~s->at[i].in[j]] = i;
    }
}

/* Chooses inner loops and slots for all steps; false: the chain cannot run in tiles. Outputs are the map's
 * first operands, inputs follow. */
static bool place_steps(tiled *t, const proa_fused_elementwise_args *a)
{
    proa_dtype dtype[PROA_STEPS_MAX];
    const proa_steps *s = &a->steps;
    int last[PROA_STEPS_MAX], place[PROA_STEPS_MAX], n_out = 0;
    bool busy[SLOTS] = {false};
    find_last(s, last);
    for (int i = 0; i < s->count; i++) {
        tile_step *to = &t->at[i];
        const proa_rows *rows = rows_of(&s->at[i], t->dtype, to);
        if (!rows || !rows->at[t->dtype] || rows->out != PROA_ROW_OUT_SAME) return false;
        int first = s->at[i].in[0];
        dtype[i] = proa__step_dtype(&s->at[i], first < 0 ? dtype[~first] : (proa_dtype)a->x.at[first]->dtype);
        to->rounds = dtype[i] == PROA_F16 || dtype[i] == PROA_BF16 ? dtype[i] : PROA_NODTYPE;
        to->row = rows->at[t->dtype];
        t->costs += 1.0 / (double)(rows->grain ? rows->grain : PROA_GRAIN / 2);
        to->n = 1 + s->at[i].op->n_in;
        for (int j = 0; j < s->at[i].op->n_in; j++) {
            int in = s->at[i].in[j];
            to->at[1 + j] = in < 0 ? place[~in] : t->n_out + in;
        }
        for (int k = 0; k < i; k++) /* a slot read here for the last time may take the result */
            if (last[k] == i && place[k] >= OPERANDS) busy[place[k] - OPERANDS] = false;
        place[i] = NOWHERE;
        to->store = s->at[i].out && to->rounds ? n_out++ : NOWHERE;
        if (s->at[i].out && !to->rounds) place[i] = n_out++;
        for (int k = 0; k < SLOTS && place[i] == NOWHERE; k++)
            if (!busy[k]) busy[k] = true, place[i] = OPERANDS + k;
        if (place[i] == NOWHERE) return false;
        if (last[i] == i && place[i] >= OPERANDS) busy[place[i] - OPERANDS] = false;
        to->at[0] = place[i];
    }
    return true;
}

/* With `ones`, true if t broadcasts to the shape of `to`; without, only if its dims equal the last dims of
 * `to`. */
static bool spreads(const proa_tensor *t, const proa_tensor *to, bool ones)
{
    int lead = to->ndim - t->ndim;
    for (int i = 0; i < t->ndim; i++)
        if (lead < 0 || (t->shape[i] != to->shape[lead + i] && !(ones && t->shape[i] == 1))) return false;
    return true;
}

static proa_status tiled_prepare(const void *args, void **state)
{
    const proa_fused_elementwise_args *a = args;
    proa_dtype d = a->x.at[0]->dtype == PROA_F64 ? PROA_F64 : PROA_F32;
    if (a->x.count + a->out.count > PROA_MAP_MAX) return proa_decline("too many operands");
    for (int64_t k = 1; k < a->out.count; k++)
        if (a->out.at[k]->ndim != a->out.at[0]->ndim || !spreads(a->out.at[k], a->out.at[0], false))
            return proa_decline("outputs of different shapes");
    for (int64_t i = 0; i < a->x.count; i++)
        if (!spreads(a->x.at[i], a->out.at[0], true)) return proa_decline("an input that does not broadcast");
    tiled *t = proa__calloc(sizeof *t + (size_t)a->steps.count * sizeof *t->at);
    if (!t) return proa_error();
    t->dtype = d;
    t->item = (int64_t)proa_dtype_size(d);
    t->n_in = (int)a->x.count;
    t->n_out = (int)a->out.count;
    t->n = (int)a->steps.count;
    if (!place_steps(t, a)) {
        proa__free(t);
        return proa_decline("steps of a dtype or number that it lacks");
    }
    *state = t;
    return PROA_OK;
}

/* ---- running --------------------------------------------------------------------------- */

static void fused_row(char *const *p, int64_t n, const void *args)
{
    const tiled *t = args;
    _Alignas(64) char slots[SLOTS][TILE_BYTES], half[TILE_BYTES / 2];
    int64_t tile = TILE_BYTES / t->item;
    for (int64_t i = 0; i < n; i += tile) {
        int64_t m = n - i < tile ? n - i : tile;
        for (int k = 0; k < t->n; k++) {
            const tile_step *step = &t->at[k];
            char *at[4];
            for (int j = 0; j < step->n; j++)
                at[j] =
                    step->at[j] >= OPERANDS ? slots[step->at[j] - OPERANDS] : p[step->at[j]] + i * t->item;
            step->row(at, m, &step->args);
            if (step->rounds) {
                char *to = step->store == NOWHERE ? half : p[step->store] + i * (int64_t)sizeof(uint16_t);
                proa__convert(step->rounds, to, t->dtype, at[0], m);
                proa__convert(t->dtype, at[0], step->rounds, to, m);
            }
        }
    }
}

PROA_KERNEL_PREPARED(fused_elementwise_tiled_cpu, fused_elementwise, tiled_prepare, proa__free)
{
    const tiled *t = run->state;
    proa_map map = {.row = fused_row, .grain = (int64_t)(1.0 / t->costs), .n = t->n_out + t->n_in, .args = t};
    for (int k = 0; k < map.n; k++) {
        map.tensor[k] = k < t->n_out ? a->out.at[k] : a->x.at[k - t->n_out];
        map.as[k] = k < t->n_out ? (proa_dtype)a->out.at[k]->dtype : t->dtype;
    }
    return proa__map_run(&map);
}

/* ---- the composition, on any device ---------------------------------------------------- */

static proa_status compose(const proa_fused_elementwise_args *a)
{
    proa_tensor *made[PROA_STEPS_MAX];
    int64_t k = 0;
    for (int i = 0; i < a->steps.count; i++) {
        const proa_chain_step *step = &a->steps.at[i];
        const proa_op *op = step->op;
        proa__step_args args;
        proa__step_fill(step, &args);
        for (int j = 0; j < op->n_in; j++)
            *proa_field_tensor(&op->fields[j], &args) =
                step->in[j] < 0 ? made[~step->in[j]] : a->x.at[step->in[j]];
        proa_tensor **out = proa_field_tensor(&op->fields[op->n_fields - 1], &args);
        *out = step->out ? a->out.at[k++] : NULL;
        PROA_TRY(proa_call_from(PROA_DOOR_RUN, op, &args));
        made[i] = *out;
    }
    return PROA_OK;
}

/* Runs the steps as separate ops, on whatever device the tensors are. */
PROA_KERNEL_ANYWHERE(fused_elementwise_cpu, fused_elementwise)
{
    proa_status status = PROA_OK;
    PROA_SCOPE {
        status = compose(a);
    }
    return status;
}
