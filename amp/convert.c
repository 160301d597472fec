/* The convert door (dispatch layer): type promotion, and autocast by the op table's AMP classes. Casts are op
 * calls that enter at the record door, so that they have gradients and are captured. May use core, ops,
 * autograd. */
#include "core/args_visit.h"
#include "core/internal.h"
#include "core/tensor.h"

#include <proa/amp.h>

#include "impl/elementwise.h"

/* Ops that the user moved to another AMP class: one byte per op id; 0: the table's class. */
typedef struct class_list {
    uint8_t *of;
} class_list;

static _Thread_local proa_autocast_state now __attribute__((tls_model("initial-exec")));

extern const proa_op proa__op_cast;

static bool is_half(int dtype) { return dtype == PROA_F16 || dtype == PROA_BF16; }
static bool is_float(int dtype) { return dtype >= PROA_F16 && dtype <= PROA_F64; }
static bool is_complex(int dtype) { return dtype == PROA_C64 || dtype == PROA_C128; }

static proa_status cast_to(proa_tensor **slot, proa_dtype dtype)
{
    if (*slot == proa_none || (proa_dtype)(*slot)->dtype == dtype) return PROA_OK;
    proa_cast_args a = {.x = *slot, .dtype = dtype};
    PROA_TRY(proa_call_from(PROA_DOOR_RECORD, &proa__op_cast, &a));
    *slot = a.out;
    return PROA_OK;
}

/* ---- promotion ------------------------------------------------------------------------- */

/* Type promotion as in Paddle 2.6.2: floating with floating (two different halves give float32) and floating
 * with complex. Other combinations stay unchanged, and the op rejects them. PROA_NODTYPE: no promotion. */
static proa_dtype promote(int a, int b)
{
    if (is_float(a) && is_float(b)) {
        if (is_half(a) && is_half(b)) return PROA_F32;
        return (proa_dtype)(a > b ? a : b);
    }
    if (is_complex(a) && is_complex(b)) return PROA_C128;
    if (is_complex(a) && is_float(b)) return b == PROA_F64 ? PROA_C128 : (proa_dtype)a;
    if (is_complex(b) && is_float(a)) return a == PROA_F64 ? PROA_C128 : (proa_dtype)b;
    return PROA_NODTYPE;
}

/* NumPy's kinds in rising order: bool, integer, floating, complex. */
static int kind_of(int dtype)
{
    return dtype == PROA_BOOL ? 0 : is_complex(dtype) ? 3 : is_float(dtype) ? 2 : 1;
}

/* The tensor of real numbers that an in-place call overwrites; NULL for other calls, and while a program is
 * built. */
static const proa_tensor *overwritten(const proa_call *call)
{
    if (!(call->op->flags & PROA_OP_INPLACE) || call->any & PROA_T_SYMBOLIC) return NULL;
    proa_tensor **out = proa__field_one(&call->op->fields[call->op->n_in + call->op->n_attr], call->args);
    bool fits = out && *out && !is_complex((*out)->dtype) && call->op->dtypes >> (*out)->dtype & 1;
    return fits ? *out : NULL;
}

/* In place the operands take the result's dtype, if their kind is not above its: as NumPy's x *= y. */
static proa_status bring_to(proa_dtype dtype, const proa_call *call, bool *changed)
{
    bool mixed = false;
    const proa_field *fields = call->op->fields, *end = fields + call->op->n_in;
    for (const proa_field *f = fields; f < end; f++) {
        proa_tensor **one = f->flags & PROA_FIELD_PROMOTE ? proa__field_one(f, call->args) : NULL;
        if (!one || *one == proa_none || (proa_dtype)(*one)->dtype == dtype) continue;
        if (kind_of((*one)->dtype) > kind_of(dtype)) return PROA_OK;
        mixed = true;
    }
    if (!mixed) return PROA_OK;
    *changed = true;
    for (const proa_field *f = fields; f < end; f++) {
        proa_tensor **one = f->flags & PROA_FIELD_PROMOTE ? proa__field_one(f, call->args) : NULL;
        if (one) PROA_TRY(cast_to(one, dtype));
    }
    return PROA_OK;
}

static proa_status promote_inputs(const proa_call *call, bool *changed)
{
    const proa_tensor *target = overwritten(call);
    if (target) return bring_to((proa_dtype)target->dtype, call, changed);
    int dtype = PROA_NODTYPE;
    bool mixed = false;
    for (const proa_field *f = call->op->fields, *end = f + call->op->n_in; f < end; f++) {
        proa_tensor **one = f->flags & PROA_FIELD_PROMOTE ? proa__field_one(f, call->args) : NULL;
        const proa_tensor *t = one ? *one : proa_none;
        if (t == proa_none || t->dtype == dtype) continue;
        if (dtype == PROA_NODTYPE) {
            dtype = t->dtype;
            continue;
        }
        mixed = true;
        dtype = promote(dtype, t->dtype);
        if (dtype == PROA_NODTYPE) return PROA_OK;
    }
    if (!mixed) return PROA_OK;
    *changed = true;
    for (const proa_field *f = call->op->fields, *end = f + call->op->n_in; f < end; f++) {
        proa_tensor **one = f->flags & PROA_FIELD_PROMOTE ? proa__field_one(f, call->args) : NULL;
        if (one) PROA_TRY(cast_to(one, (proa_dtype)dtype));
    }
    return PROA_OK;
}

/* ---- autocast -------------------------------------------------------------------------- */

/* The dtype to which autocast casts a call's float32 and half inputs; PROA_NODTYPE: no cast. */
static proa_dtype target_dtype(const proa_call *call)
{
    const proa_op *op = call->op;
    const class_list *lists = now.lists;
    int amp = lists && op->id < proa_op_count && lists->of[op->id] ? lists->of[op->id] : op->amp;
    bool single = false, half = false;
    for (const proa_field *f = op->fields, *end = f + op->n_in; f < end; f++) {
        const proa_tensors all = proa__field_all(f, call->args);
        if (f->flags & PROA_FIELD_NO_GRAD) continue;
        for (int64_t i = 0; i < all.count; i++) {
            const proa_dtype dtype = (proa_dtype)all.at[i]->dtype;
            if (dtype == PROA_F64 || is_complex(dtype)) return PROA_NODTYPE;
            single = single || dtype == PROA_F32;
            half = half || is_half(dtype);
        }
    }
    if (amp == PROA_AMP_F32) return PROA_F32;
    if (amp == PROA_AMP_LOW || (now.level == PROA_AMP_O2 && amp == PROA_AMP_ANY)) return now.dtype;
    return single && half ? PROA_F32 : PROA_NODTYPE;
}

/* Replaces the list by a copy in the scope's memory with float32 and half tensors cast to dtype; the
 * caller's array stays unchanged. */
static proa_status cast_list(proa_tensors *list, proa_dtype dtype)
{
    proa_tensor **at = proa_scope_alloc((size_t)(list->count + 1) * sizeof *at);
    if (!at) return proa_error();
    for (int64_t i = 0; i < list->count; i++) {
        at[i] = list->at[i];
        if (at[i]->dtype == PROA_F32 || is_half(at[i]->dtype)) PROA_TRY(cast_to(&at[i], dtype));
    }
    list->at = at;
    return PROA_OK;
}

static proa_status autocast(const proa_call *call, bool *changed)
{
    const proa_op *op = call->op;
    /* casts, and ops that overwrite inputs, keep their dtypes */
    if (op == &proa__op_cast || op->flags & PROA_OP_MUTATES) return PROA_OK;
    proa_dtype dtype = target_dtype(call);
    if (dtype == PROA_NODTYPE) return PROA_OK;
    *changed = true;
    for (const proa_field *f = op->fields, *end = f + op->n_in; f < end; f++) {
        if (f->flags & PROA_FIELD_NO_GRAD) continue;
        proa_tensor **one = proa__field_one(f, call->args);
        if (!one) PROA_TRY(cast_list(proa_field_tensors(f, call->args), dtype));
        else if ((*one)->dtype == PROA_F32 || is_half((*one)->dtype)) PROA_TRY(cast_to(one, dtype));
    }
    return PROA_OK;
}

static proa_status convert(proa_call *call)
{
    bool casts = now.level != PROA_AMP_OFF, promotes = call->op->flags & PROA_OP_PROMOTES;
    if (!casts && !promotes) return proa_call_inner(PROA_DOOR_CONVERT, call);
    bool changed = false;
    if (casts) PROA_TRY(autocast(call, &changed));
    if (promotes) PROA_TRY(promote_inputs(call, &changed));
    if (!changed) return proa_call_inner(PROA_DOOR_CONVERT, call);
    return proa_call_from(PROA_DOOR_RECORD, call->op, call->args);
}

/* ---- switching ------------------------------------------------------------------------- */

static proa_status add_names(class_list *lists, const char *names, uint8_t amp)
{
    char name[64];
    while (names && *names) {
        size_t n = strcspn(names, ",");
        const char *start = names + strspn(names, " ");
        size_t length = (size_t)(names + n - start);
        while (length > 0 && start[length - 1] == ' ') length--;
        if (length > 0) {
            snprintf(name, sizeof name, "%.*s", (int)length, start);
            const proa_op *op = length < sizeof name ? proa_find_op(name) : NULL;
            if (!op || op->id >= proa_op_count)
                return proa_fail(PROA_ERR_NOT_FOUND, "autocast: there is no op called \"%s\"", name);
            lists->of[op->id] = amp;
        }
        names += n + (names[n] == ',');
    }
    return PROA_OK;
}

static void free_lists(class_list *lists)
{
    if (lists) proa__free(lists->of);
    proa__free(lists);
}

proa_autocast_state proa_autocast_enter(proa_amp_level level, proa_autocast_opts opts)
{
    proa_autocast_state before = now;
    before.set = false;
    if (proa_error()) return before;
    proa_dtype dtype = opts.dtype ? opts.dtype : PROA_BF16;
    if (!is_half((int)dtype)) {
        proa_fail(PROA_ERR_WRONG_TYPE, "autocast: dtype is %s; expected bfloat16 or float16",
                  proa_dtype_name(dtype));
        return before;
    }
    class_list *lists = NULL;
    if (opts.custom_low || opts.custom_f32) {
        lists = proa__calloc(sizeof *lists);
        if (lists) lists->of = proa__calloc(proa_op_count);
        if (!lists || !lists->of || add_names(lists, opts.custom_low, PROA_AMP_LOW) != PROA_OK ||
            add_names(lists, opts.custom_f32, PROA_AMP_F32) != PROA_OK) {
            free_lists(lists);
            return before;
        }
    }
    now = (proa_autocast_state){level, dtype, lists, true};
    proa__convert_all(level != PROA_AMP_OFF);
    before.set = true;
    return before;
}

void proa_autocast_leave(const proa_autocast_state *before)
{
    if (now.lists != before->lists) free_lists(now.lists);
    now = *before;
    proa__convert_all(now.level != PROA_AMP_OFF);
}

bool proa_is_autocasting(void) { return now.level != PROA_AMP_OFF; }

__attribute__((constructor)) static void install(void) { proa_door_install(PROA_DOOR_CONVERT, convert); }
