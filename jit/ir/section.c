/* Parts of programs, for pipelines: lists what each op of a program reads and writes, reduces a program to
 * some of its ops, and inserts ops that receive a variable from another rank. Also sets the device name that
 * new ops get. May use core and ops. */
#include "program.h"

#include "core/args_visit.h"
#include "core/group.h"
#include "core/internal.h"
#include "core/op_device.h"

#include <proa/ops.h>

/* ---- what ops read and write ------------------------------------------------------------ */

typedef struct listing {
    const char **names;
    int64_t count, capacity;
    bool persistable; /* a write goes to a persistable */
} listing;

static proa_status note(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    listing *l = context;
    const proa_var *v = proa__slot_var(*slot);
    (void)index;
    if (!v || v->block != 0) return PROA_OK;
    l->persistable |= f->role == PROA_OUT && v->persistable;
    if (l->count == l->capacity) {
        l->capacity = l->capacity * 2 + 8;
        const char **grown = proa_scope_alloc((size_t)l->capacity * sizeof *grown);
        if (!grown) return proa_error();
        if (l->count) memcpy(grown, l->names, (size_t)l->count * sizeof *grown);
        l->names = grown;
    }
    l->names[l->count++] = v->name;
    return PROA_OK;
}

static proa_status list_op(listing *l, const proa_instr *instr, bool reads)
{
    if (!reads) return proa__args_visit(instr->op, instr->args, PROA_OUT, note, l);
    PROA_TRY(proa__args_visit_reads(instr->op, instr->args, note, l));
    for (int i = 0; i < instr->op->n_fields; i++) {
        if (instr->op->fields[i].kind != PROA_FIELD_BLOCK) continue;
        const proa_block *inner = *(proa_block *const *)proa_field_at(&instr->op->fields[i], instr->args);
        for (int32_t k = 0; inner && inner->index && k < inner->n_ops; k++)
            PROA_TRY(list_op(l, &inner->ops[k], true));
    }
    return PROA_OK;
}

static bool may_run_again(const proa_op *op)
{
    if (op->flags & (PROA_OP_RANDOM | PROA_OP_MUTATES) || !op->n_out || proa__op_communicates(op))
        return false;
    return !proa__has_block(op);
}

proa_status proa_program_op_links(const proa_program *p, int64_t i, proa_op_links *links)
{
    PROA_TRY(proa_error());
    if (!p || !links || i < 0 || i >= proa__root(p)->n_ops)
        return proa_fail(PROA_ERR_OUT_OF_RANGE, "program_op_links: there is no op %lld", (long long)i);
    const proa_instr *instr = &proa__root(p)->ops[i];
    listing reads = {0}, writes = {0};
    PROA_TRY(list_op(&reads, instr, true));
    PROA_TRY(list_op(&writes, instr, false));
    *links = (proa_op_links){.op = instr->op->name,
                             .device = proa__op_device_name(instr->device),
                             .role = instr->role,
                             .repeatable = may_run_again(instr->op) && !writes.persistable,
                             .n_reads = reads.count,
                             .n_writes = writes.count,
                             .reads = reads.names,
                             .writes = writes.names};
    return PROA_OK;
}

/* ---- a part ----------------------------------------------------------------------------- */

typedef struct part {
    proa__hash_map made;
    proa_var **inputs;
    int32_t n, capacity;
} part;

static proa_status note_made(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    part *c = context;
    (void)f, (void)index;
    proa_var *v = proa__slot_var(*slot);
    return v ? proa__hash_map_put(&c->made, v, v) : PROA_OK;
}

static proa_status note_input(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    part *c = context;
    (void)f, (void)index;
    proa_var *v = proa__slot_var(*slot);
    if (!v || v->persistable || v->block != 0 || proa__hash_map_find(&c->made, v)) return PROA_OK;
    PROA_TRY(proa__hash_map_put(&c->made, v, v));
    PROA_TRY(proa__reserve(&c->inputs, c->n, &c->capacity, sizeof(proa_var *)));
    c->inputs[c->n++] = v;
    return PROA_OK;
}

static proa_status find_inputs(part *c, const proa_block *b)
{
    for (int32_t i = 0; i < b->n_ops; i++) {
        PROA_TRY(proa__args_visit_reads(b->ops[i].op, b->ops[i].args, note_input, c));
        PROA_TRY(proa__args_visit(b->ops[i].op, b->ops[i].args, PROA_OUT, note_made, c));
    }
    return PROA_OK;
}

proa_status proa_program_keep(proa_program *p, proa_ints ops)
{
    PROA_TRY(proa_error());
    if (!p) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "program_keep: the program is NULL");
    proa_block *b = proa__root(p);
    for (int64_t i = 0; i < ops.count; i++)
        if (ops.at[i] < 0 || ops.at[i] >= b->n_ops || (i && ops.at[i] <= ops.at[i - 1]))
            return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                             "program_keep: ops must be ascending numbers below %d, got %lld", b->n_ops,
                             (long long)ops.at[i]);
    int32_t n = 0;
    for (int32_t i = 0; i < b->n_ops; i++) {
        if (n < ops.count && ops.at[n] == i) b->ops[n++] = b->ops[i];
        else proa__instr_clear(&b->ops[i]);
    }
    b->n_ops = n;
    for (int32_t i = 0; i < b->n_vars; i++) b->vars[i]->stale = false; /* checked when they were captured */
    part c = {0};
    proa_status status = find_inputs(&c, b);
    if (status == PROA_OK) status = proa__block_set_outputs(b, NULL, 0);
    if (status == PROA_OK) status = proa__block_set_inputs(b, c.inputs, c.n);
    proa__hash_map_clear(&c.made);
    proa__free(c.inputs);
    p->version++;
    return status;
}

/* ---- messages --------------------------------------------------------------------------- */

static proa_status is_made(const proa_block *b, proa_var *v, bool *made)
{
    part c = {0};
    proa_status status = PROA_OK;
    for (int32_t i = 0; i < b->n_ops && status == PROA_OK; i++)
        status = proa__args_visit(b->ops[i].op, b->ops[i].args, PROA_OUT, note_made, &c);
    *made = proa__hash_map_find(&c.made, v) != NULL;
    proa__hash_map_clear(&c.made);
    return status;
}

/* Inserts a copy of args, made of variables' handles, in front of op `before`, and with its role and
 * device. */
static proa_status insert(proa_block *b, int64_t before, const proa_op *op, const void *args)
{
    proa_instr made = {.op = op};
    if (before < b->n_ops) made.role = b->ops[before].role, made.device = b->ops[before].device;
    made.args = proa__args_copy(op, args);
    if (!made.args) return proa_error();
    proa_status status = proa__reserve(&b->ops, b->n_ops, &b->ops_capacity, sizeof *b->ops);
    if (status != PROA_OK) {
        proa__instr_clear(&made);
        return status;
    }
    memmove(&b->ops[before + 1], &b->ops[before], (size_t)(b->n_ops - before) * sizeof *b->ops);
    b->ops[before] = made;
    b->n_ops++;
    return PROA_OK;
}

proa_status proa_program_receive(proa_program *p, const char *name, int64_t before, int64_t peer,
                                 int64_t group)
{
    PROA_TRY(proa_error());
    proa_block *b = p ? proa__root(p) : NULL;
    proa_var *v = p && name ? proa__var_find(b, name) : NULL;
    bool made = false;
    PROA_TRY(v ? is_made(b, v, &made) : PROA_OK);
    if (!v || v->persistable || made || before < 0 || before > b->n_ops)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "program_receive: needs a variable of the program that no op makes, and an op");
    proa_p2p_recv_args args = {.peer = peer,
                               .shape = {v->handle->ndim, v->handle->shape, NULL, NULL},
                               .dtype = (proa_dtype)v->handle->dtype,
                               .group = group,
                               .out = v->handle};
    PROA_TRY(insert(b, before, proa_find_op("p2p_recv"), &args));
    int32_t n = 0;
    for (int32_t i = 0; i < b->n_inputs; i++)
        if (b->inputs[i] != v) b->inputs[n++] = b->inputs[i];
    b->n_inputs = n;
    v->is_input = false;
    p->version++;
    return PROA_OK;
}

/* ---- devices ---------------------------------------------------------------------------- */

proa_status proa_set_op_device(const char *device)
{
    int32_t number = proa__op_device_number(device);
    if (number < 0)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "set_op_device: '%.40s' is too long, or there are too many devices", device);
    proa__op_device = number;
    return PROA_OK;
}

const char *proa_op_device(void) { return proa__op_device_name(proa__op_device); }
