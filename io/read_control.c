/* Branches and loops of Paddle's programs. Their blocks read and write variables of the blocks round them by
 * name; here they become functions, captured through proa_cond and proa_while_loop. May use jit, core and io's
 * own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/program_read.h"

#include <proa/ops.h>
#include <proa/program.h>

enum { UNSELECTED = -1 };

static bool is(const pb_op *op, const char *type) { return strcmp(op->type, type) == 0; }

bool proa__reads_control(const char *type)
{
    return strcmp(type, "conditional_block") == 0 || strcmp(type, "select_input") == 0 || strcmp(type, "while") == 0;
}

/* ---- a block, read where capture is open ----------------------------------------------- */

/* The level of an op's sub-block, with no names yet; its ops go where capture is open now. */
static proa__level *enter(proa_wire_reader *r)
{
    const pb_attr *a = proa__attr_find(r->desc, "sub_block");
    proa__load *l = r->load;
    int64_t at = a && (int)a->type == PROA_WIRE_BLOCK ? a->block_idx : 0;
    if (at <= 0 || at >= (int64_t)l->pb->n_blocks || l->depth >= PROA__DEPTH_MAX ||
        l->pb->blocks[at]->parent_idx != (int32_t)(r->level - l->levels)) {
        proa_fail(PROA_ERR_CORRUPT, "block %lld cannot be the sub-block of this op", (long long)at);
        return NULL;
    }
    proa__level *level = &l->levels[at];
    proa__map_clear(&level->names);
    level->names.by_text = true;
    level->block = proa__capture_block();
    return level;
}

static proa_status read_into(proa__load *l, proa__level *level)
{
    int32_t role = l->program->role;
    l->depth++;
    proa_status status = proa__read_ops(l, level);
    l->depth--;
    l->program->role = role;
    return status;
}

/* ---- branches -------------------------------------------------------------------------- */

/* A conditional_block that waits for the select_input that says which other one it belongs to. */
struct proa__pending {
    proa_wire_reader reader;
    const pb_slot *out;
    bool done;
    proa__pending *next;
};

static const pb_slot *out_slot(const pb_op *op, const char *name)
{
    return proa__slot_find(op->outputs, op->n_outputs, name);
}

static proa_status defer(proa_wire_reader *r)
{
    proa__pending *p = proa__arena_alloc(&r->load->arena, sizeof *p);
    if (!p) return proa_error();
    *p = (proa__pending){*r, out_slot(r->desc, "Out"), false, r->level->pending};
    r->level->pending = p;
    return PROA_OK;
}

static proa__pending *pending_of(const proa__level *level, const char *name, int64_t *index)
{
    for (proa__pending *p = level->pending; p; p = p->next)
        for (size_t i = 0; !p->done && p->out && i < p->out->n_arguments; i++)
            if (strcmp(p->out->arguments[i], name) == 0) {
                *index = (int64_t)i;
                return p;
            }
    return NULL;
}

typedef struct branching {
    proa__pending *yes, *no; /* no NULL: what the names stood for before */
    int64_t n;
} branching;

/* The values that a block's names have once its ops are read. */
static proa_tensors run_block(proa__pending *p, int64_t n)
{
    proa_tensors none = {0, NULL}, list = {0, proa__arena_array(&p->reader.load->arena, (size_t)n + 1, sizeof *list.at)};
    proa__level *level = enter(&p->reader);
    if (!level || !list.at || read_into(p->reader.load, level) != PROA_OK) return none;
    for (; list.count < n; list.count++) {
        proa_wire_reader inside = {p->reader.load, level, p->reader.desc, 0, 0};
        list.at[list.count] = proa__name_find(&inside, "Out", p->out->arguments[list.count]);
        if (!list.at[list.count]) return none;
    }
    return list;
}

static proa_tensors read_yes(proa_tensors in, void *context)
{
    const branching *b = context;
    (void)in;
    return run_block(b->yes, b->n);
}

static proa_tensors read_no(proa_tensors in, void *context)
{
    const branching *b = context;
    (void)in;
    return run_block(b->no, b->n);
}

/* The block was not run, and no other makes its variables: they are what they were, or nothing. */
static proa_tensors keep_old(proa_tensors in, void *context)
{
    const branching *b = context;
    (void)in;
    proa_wire_reader *r = &b->yes->reader;
    proa_tensors none = {0, NULL}, list = {0, proa__arena_array(&r->load->arena, (size_t)b->n + 1, sizeof *list.at)};
    for (; list.at && list.count < b->n; list.count++) {
        list.at[list.count] = proa__name_find(r, "Out", b->yes->out->arguments[list.count]);
        if (!list.at[list.count]) return none;
    }
    return list;
}

static proa_tensor *condition_of(proa_wire_reader *r, const char *slot)
{
    const pb_slot *s = proa__slot_find(r->desc->inputs, r->desc->n_inputs, slot);
    if (s && s->n_arguments == 1) return proa__name_find(r, slot, s->arguments[0]);
    proa_fail(PROA_ERR_CORRUPT, "input %s must name one variable", slot);
    return NULL;
}

static proa_status close_branch(branching *b, proa_tensor *pred, proa_tensors *out)
{
    b->n = b->yes->out ? (int64_t)b->yes->out->n_arguments : 0;
    if (b->no && (!b->no->out || (int64_t)b->no->out->n_arguments != b->n))
        return proa_fail(PROA_ERR_UNSUPPORTED, "the two branches make different numbers of variables");
    *out = proa_cond(pred, read_yes, b->no ? read_no : keep_old, b);
    return proa_error();
}

/* One conditional_block without a partner. */
static proa_status settle(proa__pending *p)
{
    branching b = {p, NULL, 0};
    proa_tensors out = {0, NULL};
    proa_wire_reader *r = &p->reader;
    p->done = true; /* whatever it reads by its own names was there before */
    proa_tensor *pred = condition_of(r, "Cond");
    if (!pred) return proa_error();
    PROA_TRY(close_branch(&b, pred, &out));
    for (int64_t i = 0; i < out.count; i++) PROA_TRY(proa__name_bind(r, p->out->arguments[i], out.at[i]));
    return PROA_OK;
}

proa_status proa__settle_reads(proa_wire_reader *r, const char *name)
{
    int64_t index;
    proa__pending *p = pending_of(r->level, name, &index);
    return p ? settle(p) : PROA_OK;
}

proa_status proa__settle_all(proa__level *level)
{
    for (proa__pending *p = level->pending; p; p = p->next)
        if (!p->done && p->out && p->out->n_arguments) PROA_TRY(settle(p));
    return PROA_OK;
}

/* Out = X[Mask]; the two X are the results of two conditional_blocks, of which one ran. */
static proa_status read_select(proa_wire_reader *r)
{
    const pb_slot *x = proa__slot_find(r->desc->inputs, r->desc->n_inputs, "X"), *out = out_slot(r->desc, "Out");
    if (!x || x->n_arguments != 2 || !out || out->n_arguments != 1)
        return proa_fail(PROA_ERR_UNSUPPORTED, "selects among %zu variables; two are supported", x ? x->n_arguments : 0);
    int64_t at = UNSELECTED, other = UNSELECTED;
    branching b = {pending_of(r->level, x->arguments[1], &at), pending_of(r->level, x->arguments[0], &other), 0};
    if (b.yes && b.no && at == other) {
        proa_tensors made = {0, NULL};
        b.yes->done = b.no->done = true;
        proa_tensor *pred = condition_of(&b.yes->reader, "Cond");
        if (!pred) return proa_error();
        PROA_TRY(close_branch(&b, pred, &made));
        for (int64_t i = 0; i < made.count; i++) { /* both names mean the one that was chosen */
            PROA_TRY(proa__name_bind(r, b.yes->out->arguments[i], made.at[i]));
            PROA_TRY(proa__name_bind(r, b.no->out->arguments[i], made.at[i]));
        }
    }
    if (b.yes && !b.yes->done) PROA_TRY(settle(b.yes));
    if (b.no && !b.no->done) PROA_TRY(settle(b.no));
    proa_tensor *no = proa__name_find(r, "X", x->arguments[0]), *yes = proa__name_find(r, "X", x->arguments[1]);
    if (!no || !yes) return proa_error();
    if (yes != no) {
        proa_tensor *mask = condition_of(r, "Mask");
        if (!mask) return proa_error();
        yes = proa_where(proa_cast(mask, PROA_BOOL), yes, no);
        if (!yes) return proa_error();
    }
    return proa__name_bind(r, out->arguments[0], yes);
}

/* ---- loops ----------------------------------------------------------------------------- */

typedef struct looping {
    proa_wire_reader *reader;
    const char *condition_name;
    const char **names; /* of the variables that the body changes */
    int64_t n;
    proa_tensor *condition; /* as it is now */
    size_t n_renames;       /* before the loop: a body that is read again starts from here */
} looping;

static proa_tensors ask(proa_tensors vars, void *context)
{
    const looping *lp = context;
    (void)vars;
    return (proa_tensors){1, (proa_tensor **)(uintptr_t)&lp->condition};
}

static proa_tensors body(proa_tensors vars, void *context)
{
    looping *lp = context;
    proa_wire_reader *r = lp->reader;
    proa_tensors none = {0, NULL}, list = {0, proa__arena_array(&r->load->arena, (size_t)lp->n + 1, sizeof *list.at)};
    r->load->n_renames = lp->n_renames;
    proa__level *level = list.at ? enter(r) : NULL;
    if (!level) return none;
    for (int64_t i = 0; i < lp->n; i++)
        if (proa__map_put(&level->names, lp->names[i], vars.at[i]) != PROA_OK) return none;
    if (read_into(r->load, level) != PROA_OK) return none;
    proa_wire_reader inside = {r->load, level, r->desc, 0, 0};
    lp->condition = proa__name_find(&inside, "Condition", lp->condition_name);
    for (; lp->condition && list.count < lp->n; list.count++) {
        list.at[list.count] = proa__name_find(&inside, "Out", lp->names[list.count]);
        if (!list.at[list.count]) return none;
    }
    return lp->condition ? list : none;
}

static bool writes(const pb_block *b, const char *name)
{
    for (size_t i = 0; i < b->n_ops; i++)
        for (size_t s = 0; s < b->ops[i]->n_outputs; s++)
            for (size_t k = 0; k < b->ops[i]->outputs[s]->n_arguments; k++)
                if (strcmp(b->ops[i]->outputs[s]->arguments[k], name) == 0) return true;
    return false;
}

/* What the body changes, and was there before. */
static proa_status find_changed(looping *lp, proa_tensors *vars)
{
    proa_wire_reader *r = lp->reader;
    const pb_slot *out = out_slot(r->desc, "Out");
    const pb_attr *a = proa__attr_find(r->desc, "sub_block");
    size_t room = out ? out->n_arguments : 0;
    lp->names = proa__arena_array(&r->load->arena, room + 1, sizeof *lp->names);
    vars->at = proa__arena_array(&r->load->arena, room + 1, sizeof *vars->at);
    if (!lp->names || !vars->at) return proa_error();
    if (!a || a->block_idx <= 0 || (size_t)a->block_idx >= r->load->pb->n_blocks)
        return proa_fail(PROA_ERR_CORRUPT, "attribute sub_block names no block");
    for (size_t i = 0; i < room; i++) {
        const char *name = out->arguments[i];
        if (strcmp(name, lp->condition_name) == 0 || !writes(r->load->pb->blocks[a->block_idx], name)) continue;
        if (!proa__name_known(r, name)) continue;
        proa_tensor *t = proa__name_find(r, "Out", name);
        if (!t) return proa_error();
        lp->names[lp->n++] = name;
        vars->at[vars->count++] = t;
    }
    return PROA_OK;
}

static proa_status read_while(proa_wire_reader *r)
{
    const pb_slot *s = proa__slot_find(r->desc->inputs, r->desc->n_inputs, "Condition");
    looping lp = {.reader = r, .n_renames = r->load->n_renames};
    lp.condition = condition_of(r, "Condition");
    if (!lp.condition) return proa_error();
    lp.condition_name = s->arguments[0];
    proa_tensors vars = {0, NULL};
    PROA_TRY(find_changed(&lp, &vars));
    proa_tensor *before = lp.condition;
    proa_tensors out = proa_while_loop(ask, body, vars, &lp);
    PROA_TRY(proa_error());
    for (int64_t i = 0; i < out.count; i++) PROA_TRY(proa__name_bind(r, lp.names[i], out.at[i]));
    proa_tensor *over = proa_full_like(before, 0);
    return over ? proa__name_bind(r, lp.condition_name, over) : proa_error();
}

proa_status proa__read_control(proa_wire_reader *r)
{
    if (is(r->desc, "conditional_block")) return defer(r);
    return is(r->desc, "while") ? read_while(r) : read_select(r);
}

#else
typedef int proa__no_read_control; /* C wants a declaration in every file */
#endif
