/* Reads conditional_block, select_input and while ops. Paddle's sub-blocks read and write variables of outer
 * blocks by name; here each becomes a function captured through proa_cond or proa_while_loop. May use jit,
 * core and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/program_read.h"

#include "core/op_device.h"

#include <proa/ops.h>
#include <proa/program.h>

static bool is(const pb_op *op, const char *type) { return strcmp(op->type, type) == 0; }

bool proa__reads_control(const char *type)
{
    return strcmp(type, "conditional_block") == 0 || strcmp(type, "select_input") == 0 ||
           strcmp(type, "while") == 0;
}

/* ---- a block, read where capture is open ----------------------------------------------- */

/* Enters the sub-block of r's op: its level, without names, whose ops are captured into the block that is
 * open. */
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
    proa__hash_map_clear(&level->names);
    level->names.by_text = true;
    level->pending = NULL;
    level->block = proa__capture_block();
    return level;
}

static proa_status read_into(proa__load *l, proa__level *level)
{
    int32_t role = l->program->role, device = proa__op_device;
    l->depth++;
    proa_status status = proa__read_ops(l, level);
    l->depth--;
    l->program->role = role;
    proa__op_device = device;
    return status;
}

/* ---- branches -------------------------------------------------------------------------- */

/* A conditional_block that is not read until a select_input pairs it with the block of the opposite
 * condition. */
struct proa__deferred {
    proa_wire_reader reader;
    const pb_slot *out;
    bool done; /* its op was captured: the names are bound to results */
    bool used;
    proa__deferred *next;
};

static const pb_slot *out_slot(const pb_op *op, const char *name)
{
    return proa__slot_find(op->outputs, op->n_outputs, name);
}

static proa_status defer(proa_wire_reader *r)
{
    proa__deferred *p = proa__arena_alloc(&r->load->arena, sizeof *p);
    if (!p) return proa_error();
    *p = (proa__deferred){*r, out_slot(r->desc, "Out"), false, false, r->level->pending};
    r->level->pending = p;
    return PROA_OK;
}

static bool makes(const proa__deferred *p, const char *name)
{
    for (size_t i = 0; p->out && i < p->out->n_arguments; i++)
        if (strcmp(p->out->arguments[i], name) == 0) return true;
    return false;
}

static proa__deferred *pending_of(const proa__level *level, const char *name)
{
    for (proa__deferred *p = level->pending; p; p = p->next)
        if (!p->done && makes(p, name)) return p;
    return NULL;
}

/* One side of a branch: the names of its results, and the conditional_block that computes them; NULL: they
 * are existing variables. */
typedef struct side {
    proa_wire_reader *reader;
    proa__deferred *block;
    const char **names;
    int64_t n;
} side;

typedef struct branching {
    side yes, no;
} branching;

static proa_tensors run_side(side *s)
{
    proa_wire_reader at = *s->reader;
    proa_tensors none = {0, NULL},
                 list = {0, proa__arena_array(&at.load->arena, (size_t)s->n + 1, sizeof *list.at)};
    if (!list.at) return none;
    if (s->block) {
        at.level = enter(&s->block->reader);
        if (!at.level || read_into(at.load, at.level) != PROA_OK) return none;
    }
    for (; list.count < s->n; list.count++) {
        list.at[list.count] = proa__name_find(&at, "Out", s->names[list.count]);
        if (!list.at[list.count]) return none;
    }
    return list;
}

static proa_tensors run_yes(proa_tensors in, void *context)
{
    (void)in;
    return run_side(&((branching *)context)->yes);
}

static proa_tensors run_no(proa_tensors in, void *context)
{
    (void)in;
    return run_side(&((branching *)context)->no);
}

static proa_tensor *condition_of(proa_wire_reader *r, const char *slot)
{
    const pb_slot *s = proa__slot_find(r->desc->inputs, r->desc->n_inputs, slot);
    if (s && s->n_arguments == 1) return proa__name_find(r, slot, s->arguments[0]);
    proa_fail(PROA_ERR_CORRUPT, "input %s must name one variable", slot);
    return NULL;
}

/* Captures a conditional_block without select_input as a branch whose other side returns the variables'
 * former values. */
static proa_status resolve(proa__deferred *p)
{
    proa_wire_reader *r = &p->reader;
    p->done = true;
    proa_tensor *pred = condition_of(r, "Cond");
    if (!pred) return proa_error();
    const char **names = (const char **)(uintptr_t)p->out->arguments;
    int64_t n = (int64_t)p->out->n_arguments;
    branching b = {{r, p, names, n}, {r, NULL, names, n}};
    proa_tensors out = proa_cond(pred, run_yes, run_no, &b);
    PROA_TRY(proa_error());
    for (int64_t i = 0; i < out.count; i++) PROA_TRY(proa__name_bind(r, names[i], out.at[i]));
    return PROA_OK;
}

proa_status proa__resolve_reads(proa_wire_reader *r, const char *name)
{
    proa__deferred *p = pending_of(r->level, name);
    return p && !p->used ? resolve(p) : PROA_OK;
}

proa_status proa__resolve_all(proa__level *level)
{
    for (proa__deferred *p = level->pending; p; p = p->next)
        if (!p->done && !p->used && p->out && p->out->n_arguments) PROA_TRY(resolve(p));
    return PROA_OK;
}

static const pb_slot *select_slot(const pb_op *op)
{
    const pb_slot *x = is(op, "select_input") ? proa__slot_find(op->inputs, op->n_inputs, "X") : NULL;
    return x && x->n_arguments == 2 ? x : NULL;
}

/* Collects the variable pairs of all select_inputs, from r's op on, that choose between the two blocks. The
 * blocks may list their variables in different orders. */
static proa_status find_pairs(proa_wire_reader *r, branching *b)
{
    const pb_block *block = r->level->pb;
    proa__deferred *yes = b->yes.block, *no = b->no.block;
    b->yes.names = proa__arena_array(&r->load->arena, yes->out->n_arguments + 1, sizeof *b->yes.names);
    b->no.names = proa__arena_array(&r->load->arena, yes->out->n_arguments + 1, sizeof *b->no.names);
    if (!b->yes.names || !b->no.names) return proa_error();
    for (size_t i = r->at; i < block->n_ops && b->yes.n < (int64_t)yes->out->n_arguments; i++) {
        const pb_slot *x = select_slot(block->ops[i]);
        if (!x || !makes(no, x->arguments[0]) || !makes(yes, x->arguments[1])) continue;
        b->no.names[b->no.n++] = x->arguments[0];
        b->yes.names[b->yes.n++] = x->arguments[1];
    }
    return PROA_OK;
}

/* Captures two blocks of opposite conditions as one branch, and binds both names of each pair to its
 * result. */
static proa_status join(proa_wire_reader *r, branching *b)
{
    PROA_TRY(find_pairs(r, b));
    b->yes.block->used = b->no.block->used = true;
    proa_tensor *pred = condition_of(&b->yes.block->reader, "Cond");
    if (!pred) return proa_error();
    proa_tensors made = proa_cond(pred, run_yes, run_no, b);
    PROA_TRY(proa_error());
    b->yes.block->done = b->no.block->done = true;
    for (int64_t i = 0; i < made.count; i++) {
        PROA_TRY(proa__name_bind(r, b->yes.names[i], made.at[i]));
        PROA_TRY(proa__name_bind(r, b->no.names[i], made.at[i]));
    }
    return PROA_OK;
}

/* Reads select_input, Out = X[Mask]: a choice between results of two conditional_blocks, of one and an
 * existing variable, or of two variables. */
static proa_status read_select(proa_wire_reader *r)
{
    const pb_slot *x = select_slot(r->desc), *out = out_slot(r->desc, "Out");
    if (!x || !out || out->n_arguments != 1)
        return proa_fail(PROA_ERR_UNSUPPORTED, "selects among other than two variables");
    branching b = {{r, pending_of(r->level, x->arguments[1]), (const char **)(uintptr_t)&x->arguments[1], 1},
                   {r, pending_of(r->level, x->arguments[0]), (const char **)(uintptr_t)&x->arguments[0], 1}};
    if (b.yes.block && b.no.block) {
        b.yes.n = b.no.n = 0;
        PROA_TRY(join(r, &b));
        proa_tensor *t = proa__name_find(r, "X", x->arguments[1]);
        return t ? proa__name_bind(r, out->arguments[0], t) : proa_error();
    }
    if (b.yes.block) b.yes.block->used = true;
    if (b.no.block) b.no.block->used = true;
    if (!b.yes.block && !b.no.block) {
        proa_tensor *yes = proa__name_find(r, "X", x->arguments[1]),
                    *no = proa__name_find(r, "X", x->arguments[0]);
        if (!yes || !no) return proa_error();
        if (yes == no) return proa__name_bind(r, out->arguments[0], yes); /* bound by join() */
    }
    proa_tensor *mask = condition_of(r, "Mask");
    proa_tensors made = proa_cond(mask ? proa_cast(mask, PROA_BOOL) : NULL, run_yes, run_no, &b);
    PROA_TRY(proa_error());
    return proa__name_bind(r, out->arguments[0], made.at[0]);
}

/* ---- loops ----------------------------------------------------------------------------- */

typedef struct looping {
    proa_wire_reader *reader;
    const char *condition_name;
    const char **names; /* names of the loop variables */
    int64_t n;
    proa_tensor *condition; /* the tensor of condition_name: before the loop, then as the body leaves it */
    size_t n_renames;       /* at the loop's start, to which a second read of the body returns */
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
    proa_tensors none = {0, NULL},
                 list = {0, proa__arena_array(&r->load->arena, (size_t)lp->n + 1, sizeof *list.at)};
    r->load->n_renames = lp->n_renames;
    proa__level *level = list.at ? enter(r) : NULL;
    if (!level) return none;
    for (int64_t i = 0; i < lp->n; i++)
        if (proa__hash_map_put(&level->names, lp->names[i], vars.at[i]) != PROA_OK) return none;
    if (read_into(r->load, level) != PROA_OK) return none;
    proa_wire_reader inside = *r;
    inside.level = level;
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

enum { LOOKED_MAX = 1 << 24 }; /* ops; after so many searched, every loop variable is kept */

/* Whether the op or one of its sub-blocks reads `name`; true where the search is given up. Input X of a loop
 * lists all of its variables, temporaries of the body too: its condition and body tell what is read. */
static bool op_reads(proa__load *l, const pb_op *op, const char *name, int depth)
{
    if (depth >= PROA__DEPTH_MAX || ++l->looked > LOOKED_MAX) return true;
    for (size_t s = 0; s < op->n_inputs; s++)
        for (size_t k = 0; k < op->inputs[s]->n_arguments; k++)
            if (strcmp(op->inputs[s]->arguments[k], name) == 0 &&
                !(is(op, "while") && strcmp(op->inputs[s]->parameter, "X") == 0))
                return true;
    const pb_attr *a = proa__attr_find(op, "sub_block");
    if (!a || a->block_idx <= 0 || (size_t)a->block_idx >= l->pb->n_blocks) return false;
    const pb_block *b = l->pb->blocks[a->block_idx];
    bool found = false;
    for (size_t i = 0; i < b->n_ops && !found; i++) found = op_reads(l, b->ops[i], name, depth + 1);
    return found;
}

/* Whether the body may read the value of `name` from before a step. */
static bool body_needs(proa__load *l, const pb_block *body, const char *name)
{
    for (size_t i = 0; i < body->n_ops; i++) {
        if (op_reads(l, body->ops[i], name, 0)) return true;
        bool plain = !proa__attr_find(body->ops[i], "sub_block"); /* no branch or loop */
        for (size_t s = 0; plain && s < body->ops[i]->n_outputs; s++)
            for (size_t k = 0; k < body->ops[i]->outputs[s]->n_arguments; k++)
                if (strcmp(body->ops[i]->outputs[s]->arguments[k], name) == 0) return false;
    }
    return true;
}

/* Whether the loop needs the value of `name` from before it, or ops behind it read the value. False for
 * temporaries of the body, which Paddle's dy2static also makes loop variables, with placeholders of arbitrary
 * shape. Always true in sub-blocks. */
static bool matters(const proa_wire_reader *r, const pb_block *body, const char *name)
{
    const pb_block *here = r->level->pb;
    if (r->level != r->load->levels) return true;
    for (size_t i = r->at; i < here->n_ops; i++)
        if (here->ops[i] != r->desc && op_reads(r->load, here->ops[i], name, 0)) return true;
    return body_needs(r->load, body, name);
}

/* A loop variable as it is before the loop. A placeholder that only a loop without steps would show
 * (dy2static makes them for names that the body defines) may be of another dtype or rank than the body's
 * value, whose declaration it then follows, without elements along unknown dims. */
static proa_tensor *value_before(proa_wire_reader *r, const pb_block *body, const char *name)
{
    proa_tensor *t = proa__name_find(r, "Out", name);
    proa_meta declared;
    if (!t || !proa__declared(r->load, r->level->pb, name, &declared)) return t;
    if ((t->dtype == declared.dtype && t->ndim == declared.ndim) || body_needs(r->load, body, name)) return t;
    for (int i = 0; i < declared.ndim; i++)
        if (declared.shape[i] < 0) declared.shape[i] = 0;
    proa_ints dims = {declared.ndim, declared.shape, NULL, NULL};
    return proa_full(dims, PROA_SCALAR(0), .dtype = declared.dtype);
}

/* Lists the loop variables: those that exist before the loop and that the body writes. */
static proa_status find_changed(looping *lp, proa_tensors *vars)
{
    proa_wire_reader *r = lp->reader;
    const pb_slot *out = out_slot(r->desc, "Out");
    const pb_attr *a = proa__attr_find(r->desc, "sub_block");
    size_t capacity = out ? out->n_arguments : 0;
    lp->names = proa__arena_array(&r->load->arena, capacity + 1, sizeof *lp->names);
    vars->at = proa__arena_array(&r->load->arena, capacity + 1, sizeof *vars->at);
    if (!lp->names || !vars->at) return proa_error();
    if (!a || a->block_idx <= 0 || (size_t)a->block_idx >= r->load->pb->n_blocks)
        return proa_fail(PROA_ERR_CORRUPT, "attribute sub_block names no block");
    const pb_block *inside = r->load->pb->blocks[a->block_idx];
    for (size_t i = 0; i < capacity; i++) {
        const char *name = out->arguments[i];
        if (strcmp(name, lp->condition_name) == 0 || !writes(inside, name)) continue;
        if (!proa__name_known(r, name) || !matters(r, inside, name)) continue;
        proa_tensor *t = value_before(r, inside, name);
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
