/* Merges consecutive optimizer steps that differ in their tensors only into one step, which updates many
 * parameters in one sweep. May use core and ops. */
#include "edit.h"

#include "core/internal.h"
#include "core/run.h"

/* True if attributes and single inputs are equal, and each list is present in both or in neither. */
static bool same_settings(const proa_instr *a, const proa_instr *b)
{
    if (a->op != b->op || a->role != b->role) return false;
    for (int i = 0; i < a->op->n_fields; i++) {
        const proa_field *f = &a->op->fields[i];
        const void *x = proa_field_at(f, a->args), *y = proa_field_at(f, b->args);
        switch ((proa_field_kind)f->kind) {
        case PROA_FIELD_TENSORS:
            if (!((const proa_tensors *)x)->count != !((const proa_tensors *)y)->count) return false;
            break;
        case PROA_FIELD_TENSOR:
            if (proa__slot_var(*(proa_tensor *const *)x) != proa__slot_var(*(proa_tensor *const *)y))
                return false;
            break;
        case PROA_FIELD_BOOL:
            if (*(const bool *)x != *(const bool *)y) return false;
            break;
        case PROA_FIELD_INT:
            if (*(const int64_t *)x != *(const int64_t *)y) return false;
            break;
        case PROA_FIELD_FLOAT:
            if (memcmp(x, y, sizeof(double)) != 0) return false;
            break;
        default: return false;
        }
    }
    return true;
}

/* Concatenates the lists of ops [from, to), in memory of the scope. */
static proa_status join(const proa_instr *ops, int32_t from, int32_t to, void *args)
{
    const proa_op *op = ops[from].op;
    memcpy(args, ops[from].args, op->args_size);
    for (int i = 0; i < op->n_fields; i++) {
        const proa_field *f = &op->fields[i];
        if (!proa__field_list(f, args)) continue;
        proa_tensors all = {0, NULL};
        for (int32_t k = from; k < to; k++) all.count += proa_field_tensors(f, ops[k].args)->count;
        if (!all.count) continue;
        all.at = proa_scope_alloc((size_t)all.count * sizeof(proa_tensor *));
        if (!all.at) return proa_error();
        int64_t n = 0;
        for (int32_t k = from; k < to; k++) {
            const proa_tensors *one = proa_field_tensors(f, ops[k].args);
            for (int64_t j = 0; j < one->count; j++) ((proa_tensor **)(uintptr_t)all.at)[n++] = one->at[j];
        }
        *proa_field_tensors(f, args) = all;
    }
    return PROA_OK;
}

/* True if no parameter of the step is in `seen`, those of the steps that it would be merged with; adds them.
 * False, too, with an error. */
static bool is_apart(proa__hash_map *seen, const proa_instr *instr)
{
    const proa_tensors *params = proa_field_tensors(&instr->op->fields[0], instr->args);
    for (int64_t i = 0; i < params->count; i++)
        if (proa__hash_map_find(seen, proa__slot_var(params->at[i]))) return false;
    for (int64_t i = 0; i < params->count; i++)
        if (proa__hash_map_put(seen, proa__slot_var(params->at[i]), seen) != PROA_OK) return false;
    return true;
}

proa_status proa__pass_optimizer(proa_block *b, const proa__pass_context *context)
{
    (void)context;
    proa_status status = PROA_OK;
    int32_t n = 0;
    for (int32_t i = 0, end; i < b->n_ops && status == PROA_OK; i = end) {
        end = i + 1;
        proa__hash_map seen = {0};
        if (proa__is_step(&b->ops[i]) && is_apart(&seen, &b->ops[i]))
            while (end < b->n_ops && proa__is_step(&b->ops[end]) && same_settings(&b->ops[i], &b->ops[end]) &&
                   is_apart(&seen, &b->ops[end]))
                end++;
        proa__hash_map_clear(&seen);
        char args[PROA_ARGS_MAX] __attribute__((aligned(16)));
        if (end - i > 1) {
            proa_instr made = {.role = b->ops[i].role, .marks = b->ops[i].marks};
            status = join(b->ops, i, end, args);
            if (status == PROA_OK) status = proa__instr_become(&made, b->ops[i].op, args);
            if (status != PROA_OK) break;
            for (int32_t k = i; k < end; k++) proa__instr_clear(&b->ops[k]);
            b->ops[i] = made;
        }
    }
    for (int32_t i = 0; i < b->n_ops; i++)
        if (b->ops[i].args) b->ops[n++] = b->ops[i];
    b->n_ops = n;
    b->program->version++;
    return status != PROA_OK ? status : proa_error();
}
