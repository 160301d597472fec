/* Lowerings of binary arithmetic, comparisons, logic, choices and casts. May use core, ops and io's own
 * headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/lower.h"

#include "impl/elementwise.h"
#include "ops/ints.h"

#include <math.h>

/* ---- operands of one dtype ---------------------------------------------------------------- */

typedef struct pair {
    onnx_value *x, *y;
} pair;

/* The first two inputs of an op in a dtype that arithmetic takes; false with an error. */
static bool operands(onnx_graph *g, const onnx_call *c, int whole, pair *to)
{
    to->x = onnx_operand(g, onnx_input(g, c, 0), whole);
    to->y = onnx_operand(g, onnx_input(g, c, 1), whole);
    if (!to->x || !to->y) return false;
    proa_dtype dtype = to->x->dtype > to->y->dtype ? to->x->dtype : to->y->dtype;
    to->x = onnx_cast(g, to->x, dtype);
    to->y = onnx_cast(g, to->y, dtype);
    return to->x && to->y;
}

/* ---- division ------------------------------------------------------------------------------- */

/* x mod y with the sign of y. ONNX's Mod has it for integers; fmod has the sign of x, and is repaired. */
static onnx_value *modulo(onnx_graph *g, onnx_value *x, onnx_value *y)
{
    if (!x || !y) return NULL;
    if (!onnx_from(g, 10)) return onnx_sub(g, x, onnx_mul(g, ONNX_NODE(g, "Floor", onnx_div(g, x, y)), y));
    onnx_value *rest = ONNX_NODE(g, "Mod", x, y);
    if (!onnx_is_float(x->dtype)) return rest;
    onnx_put_int(g, rest, "fmod", 1);
    onnx_value *zero = onnx_number(g, x->dtype, 0);
    onnx_value *opposite = onnx_test(g, "Less", onnx_mul(g, onnx_sign(g, rest), onnx_sign(g, y)), zero);
    return onnx_where(g, opposite, onnx_add(g, rest, y), rest);
}

ONNX_LOWER(lower_remainder, remainder)
{
    pair in;
    if (operands(g, c, 10, &in)) onnx_bind(g, a->out, modulo(g, in.x, in.y));
}

/* Integers are divided towards zero, so x − (x mod y) is divided, which leaves no rest. */
ONNX_LOWER(lower_floor_divide, floor_divide)
{
    pair in;
    if (!operands(g, c, 10, &in)) return;
    bool floats = onnx_is_float(in.x->dtype);
    onnx_value *whole = floats ? in.x : onnx_sub(g, in.x, modulo(g, in.x, in.y)),
               *out = onnx_div(g, whole, in.y);
    onnx_bind(g, a->out, floats ? ONNX_NODE(g, "Floor", out) : out);
}

/* ---- arithmetic ----------------------------------------------------------------------------- */

static void lower_arithmetic(onnx_graph *g, const onnx_call *c)
{
    pair in;
    if (operands(g, c, c->rule->whole, &in))
        onnx_bind(g, onnx_result(c), ONNX_NODE(g, c->rule->node, in.x, in.y));
}

/* The number where the other is NaN. */
static void lower_fmax(onnx_graph *g, const onnx_call *c)
{
    pair in;
    if (!operands(g, c, 12, &in)) return;
    onnx_value *out = ONNX_NODE(g, c->rule->node, in.x, in.y);
    if (onnx_is_float(in.x->dtype)) {
        out = onnx_where(g, onnx_is_nan(g, in.y), in.x, out);
        out = onnx_where(g, onnx_is_nan(g, in.x), in.y, out);
    }
    onnx_bind(g, onnx_result(c), out);
}

ONNX_LOWER(lower_heaviside, heaviside)
{
    pair in;
    if (!operands(g, c, 9, &in)) return;
    onnx_value *zero = onnx_number(g, in.x->dtype, 0);
    onnx_value *step = onnx_cast(g, onnx_test(g, "Greater", in.x, zero), in.x->dtype);
    onnx_bind(g, a->out, onnx_where(g, onnx_equal(g, in.x, zero), in.y, step));
}

/* The arc tangent of x / y, half a turn further where y is negative, and 0 at the origin. */
ONNX_LOWER(lower_atan2, atan2)
{
    const double pi = 3.14159265358979323846;
    pair in;
    if (!operands(g, c, 0, &in)) return;
    proa_dtype dtype = in.x->dtype;
    onnx_value *zero = onnx_number(g, dtype, 0), *angle = ONNX_NODE(g, "Atan", onnx_div(g, in.x, in.y));
    onnx_value *turn = onnx_where(g, onnx_test(g, "Less", in.x, zero), onnx_number(g, dtype, -pi),
                                  onnx_number(g, dtype, pi));
    onnx_value *out = onnx_where(g, onnx_test(g, "Less", in.y, zero), onnx_add(g, angle, turn), angle);
    onnx_value *origin = onnx_test(g, "And", onnx_equal(g, in.x, zero), onnx_equal(g, in.y, zero));
    onnx_bind(g, a->out, onnx_where(g, origin, zero, out));
}

ONNX_LOWER(lower_lerp, lerp)
{
    onnx_value *x = onnx_in(g, a->x), *step = onnx_sub(g, onnx_in(g, a->y), x);
    onnx_bind(g, a->out, onnx_add(g, x, onnx_mul(g, onnx_in(g, a->weight), step)));
}

/* ---- comparisons ---------------------------------------------------------------------------- */

static void lower_equal(onnx_graph *g, const onnx_call *c)
{
    onnx_value *x = onnx_input(g, c, 0), *y = onnx_input(g, c, 1);
    if (!x || !y) return;
    proa_dtype dtype = x->dtype > y->dtype ? x->dtype : y->dtype;
    onnx_value *same = onnx_equal(g, onnx_cast(g, x, dtype), onnx_cast(g, y, dtype));
    onnx_bind(g, onnx_result(c), c->rule->node ? onnx_not(g, same) : same);
}

static void lower_compare(onnx_graph *g, const onnx_call *c)
{
    pair in;
    if (operands(g, c, 9, &in)) onnx_bind(g, onnx_result(c), onnx_test(g, c->rule->node, in.x, in.y));
}

/* Before opset 12 x ≤ y is x < y or x = y. */
static void lower_compare_or_equal(onnx_graph *g, const onnx_call *c)
{
    pair in;
    if (!operands(g, c, 9, &in)) return;
    if (onnx_from(g, 12)) {
        const char *node = strcmp(c->rule->node, "Less") == 0 ? "LessOrEqual" : "GreaterOrEqual";
        onnx_bind(g, onnx_result(c), onnx_test(g, node, in.x, in.y));
        return;
    }
    onnx_bind(g, onnx_result(c),
              onnx_test(g, "Or", onnx_test(g, c->rule->node, in.x, in.y), onnx_equal(g, in.x, in.y)));
}

static onnx_value *close_to(onnx_graph *g, const onnx_call *c, double rtol, double atol, bool equal_nan)
{
    pair in;
    if (!operands(g, c, 0, &in)) return NULL;
    onnx_value *limit = onnx_add_to(g, onnx_mul_by(g, ONNX_NODE(g, "Abs", in.y), rtol), atol);
    onnx_value *far = onnx_test(g, "Greater", ONNX_NODE(g, "Abs", onnx_sub(g, in.x, in.y)), limit);
    onnx_value *nan = onnx_test(g, "Or", onnx_is_nan(g, in.x), onnx_is_nan(g, in.y));
    onnx_value *out = onnx_test(g, "And", onnx_not(g, far), onnx_not(g, nan));
    if (equal_nan)
        out = onnx_test(g, "Or", out, onnx_test(g, "And", onnx_is_nan(g, in.x), onnx_is_nan(g, in.y)));
    return onnx_test(g, "Or", out, onnx_equal(g, in.x, in.y));
}

ONNX_LOWER(lower_isclose, isclose) { onnx_bind(g, a->out, close_to(g, c, a->rtol, a->atol, a->equal_nan)); }

static onnx_value *all_true(onnx_graph *g, onnx_value *x)
{
    return onnx_reduce(g, "ReduceMin", onnx_cast(g, x, PROA_I32), 0, NULL, false);
}

ONNX_LOWER(lower_allclose, allclose)
{
    onnx_bind(g, a->out, all_true(g, close_to(g, c, a->rtol, a->atol, a->equal_nan)));
}

ONNX_LOWER(lower_equal_all, equal_all)
{
    if (a->x->ndim != a->y->ndim || !proa__shapes_agree(a->x->shape, a->y->shape, a->x->ndim)) {
        onnx_bind(g, a->out, onnx_whole(g, PROA_BOOL, 0));
        return;
    }
    onnx_bind(g, a->out, all_true(g, onnx_equal(g, onnx_in(g, a->x), onnx_in(g, a->y))));
}

/* ---- logic ---------------------------------------------------------------------------------- */

static void lower_logical(onnx_graph *g, const onnx_call *c)
{
    onnx_value *x = onnx_cast(g, onnx_input(g, c, 0), PROA_BOOL),
               *y = onnx_cast(g, onnx_input(g, c, 1), PROA_BOOL);
    onnx_bind(g, onnx_result(c), ONNX_NODE(g, c->rule->node, x, y));
}

ONNX_LOWER(lower_logical_not, logical_not)
{
    onnx_bind(g, a->out, onnx_not(g, onnx_cast(g, onnx_in(g, a->x), PROA_BOOL)));
}

static void lower_bitwise(onnx_graph *g, const onnx_call *c)
{
    onnx_value *x = onnx_input(g, c, 0), *y = onnx_input(g, c, 1);
    if (!x || !y) return;
    const char *bits = c->rule->node[0] == 'A'   ? "BitwiseAnd"
                       : c->rule->node[0] == 'O' ? "BitwiseOr"
                                                 : "BitwiseXor";
    if (x->dtype != PROA_BOOL && onnx_needs(g, 18)) return;
    onnx_bind(g, onnx_result(c), ONNX_NODE(g, x->dtype == PROA_BOOL ? c->rule->node : bits, x, y));
}

ONNX_LOWER(lower_bitwise_not, bitwise_not)
{
    onnx_value *x = onnx_in(g, a->x);
    if (!x || (x->dtype != PROA_BOOL && onnx_needs(g, 18))) return;
    onnx_bind(g, a->out, ONNX_NODE(g, x->dtype == PROA_BOOL ? "Not" : "BitwiseNot", x));
}

ONNX_LOWER(lower_where, where)
{
    onnx_bind(g, a->out, onnx_where(g, onnx_in(g, a->condition), onnx_in(g, a->x), onnx_in(g, a->y)));
}

const onnx_rule onnx_rules_elementwise[] = {
    {"add", lower_arithmetic, "Add", 0, 7},
    {"subtract", lower_arithmetic, "Sub", 0, 7},
    {"multiply", lower_arithmetic, "Mul", 0, 7},
    {"divide", lower_arithmetic, "Div", 0, 7},
    {"elementwise_pow", lower_arithmetic, "Pow", 0, 12},
    {"maximum", lower_arithmetic, "Max", 8, 12},
    {"minimum", lower_arithmetic, "Min", 8, 12},
    {"fmax", lower_fmax, "Max", 9, 0},
    {"fmin", lower_fmax, "Min", 9, 0},
    {"floor_divide", lower_floor_divide, NULL, 0, 0},
    {"remainder", lower_remainder, NULL, 0, 0},
    {"heaviside", lower_heaviside, NULL, 9, 0},
    {"atan2", lower_atan2, NULL, 9, 0},
    {"lerp", lower_lerp, NULL, 0, 0},
    {"equal", lower_equal, NULL, 0, 0},
    {"not_equal", lower_equal, "Not", 0, 0},
    {"less_than", lower_compare, "Less", 0, 0},
    {"greater_than", lower_compare, "Greater", 0, 0},
    {"less_equal", lower_compare_or_equal, "Less", 0, 0},
    {"greater_equal", lower_compare_or_equal, "Greater", 0, 0},
    {"isclose", lower_isclose, NULL, 0, 0},
    {"allclose", lower_allclose, NULL, 0, 0},
    {"equal_all", lower_equal_all, NULL, 0, 0},
    {"logical_and", lower_logical, "And", 0, 0},
    {"logical_or", lower_logical, "Or", 0, 0},
    {"logical_xor", lower_logical, "Xor", 0, 0},
    {"logical_not", lower_logical_not, NULL, 0, 0},
    {"bitwise_and", lower_bitwise, "And", 0, 0},
    {"bitwise_or", lower_bitwise, "Or", 0, 0},
    {"bitwise_xor", lower_bitwise, "Xor", 0, 0},
    {"bitwise_not", lower_bitwise_not, NULL, 0, 0},
    {"where", lower_where, NULL, 9, 0},
    {"cast", onnx_lower_same, NULL, 0, 0}, /* onnx_bind casts to the output's dtype */
    {"assign", onnx_lower_same, NULL, 0, 0},
    {"share_data", onnx_lower_same, NULL, 0, 0},
    {0},
};

#else
typedef int proa__no_onnx_elementwise; /* C wants a declaration in every file */
#endif
