/* Finds the forward op (type T) of a gradient op (type T_grad) in a program file by the slots that both name
 * alike. An index by type and variable makes one search independent of the number of ops. May use core's hash
 * map and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/program_read.h"

bool proa__ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n > k && strcmp(text + n - k, end) == 0;
}

bool proa__is_grad_of_form(const proa__forms *forms, const char *type)
{
    char base[128];
    size_t n = strlen(type);
    if (!proa__ends_with(type, "_grad") || n - 5 >= sizeof base) return false;
    memcpy(base, type, n - 5);
    base[n - 5] = 0;
    return proa__forms_next(forms, NULL, base) != NULL;
}

static bool same_names(const pb_slot *a, const pb_slot *b)
{
    if (a->n_arguments != b->n_arguments) return false;
    for (size_t i = 0; i < a->n_arguments; i++)
        if (strcmp(a->arguments[i], b->arguments[i]) != 0) return false;
    return true;
}

/* Whether `of` is the op whose gradient `grad` computes: the slots that both have name the same variables. */
static bool is_forward(const pb_op *of, const pb_op *grad)
{
    size_t n = strlen(of->type), shared = 0;
    if (strncmp(of->type, grad->type, n) != 0 || strcmp(grad->type + n, "_grad") != 0) return false;
    for (size_t i = 0; i < grad->n_inputs; i++) {
        const pb_slot *s = grad->inputs[i], *in = proa__slot_find(of->inputs, of->n_inputs, s->parameter);
        if (!in) in = proa__slot_find(of->outputs, of->n_outputs, s->parameter);
        if (!in || s->n_arguments == 0 || in->n_arguments == 0) continue;
        if (!same_names(s, in)) return false;
        shared++;
    }
    return shared > 0;
}

static proa_status note(proa__forwards *f, const pb_op *op, pb_slot *const *slots, size_t n, size_t index)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < slots[i]->n_arguments; k++) {
            char *key = proa__arena_format(f->arena, "%s %s", op->type, slots[i]->arguments[k]);
            if (!key) return proa_error();
            PROA_TRY(proa__hash_map_put(&f->map, key, (void *)(uintptr_t)(index + 1)));
        }
    return PROA_OK;
}

proa_status proa__forward_add(proa__forwards *f, const pb_op *op, size_t index)
{
    if (proa__ends_with(op->type, "_grad")) return PROA_OK;
    f->map.by_text = true;
    PROA_TRY(note(f, op, op->inputs, op->n_inputs, index));
    return note(f, op, op->outputs, op->n_outputs, index);
}

bool proa__forward_find(const proa__forwards *f, const pb_op *grad, pb_op *const *ops, size_t *index)
{
    char key[512];
    size_t n = strlen(grad->type);
    if (!proa__ends_with(grad->type, "_grad") || !f->map.by_text) return false;
    for (size_t i = 0; i < grad->n_inputs; i++) {
        const pb_slot *s = grad->inputs[i];
        if (proa__ends_with(s->parameter, "@GRAD")) continue;
        for (size_t k = 0; k < s->n_arguments; k++) {
            int used = snprintf(key, sizeof key, "%.*s %s", (int)(n - 5), grad->type, s->arguments[k]);
            if (used < 0 || (size_t)used >= sizeof key) continue;
            size_t found = (size_t)(uintptr_t)proa__hash_map_find(&f->map, key);
            if (found == 0 || !is_forward(ops[found - 1], grad)) continue;
            *index = found - 1;
            return true;
        }
    }
    return false;
}

#else
typedef int proa__no_forward; /* C wants a declaration in every file */
#endif
