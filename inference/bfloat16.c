/* Converts a loaded model's convolutions and matrix products to bfloat16, by a replay of the program under
 * autocast. May use core, amp and jit. */
#include "runtime.h"

#include "jit/passes/passes.h"

#include <proa/amp.h>
#include <proa/ops/elementwise.h>

/* Whether the CPU multiplies bfloat16 numbers. */
static bool multiplies_bfloat16(void)
{
#if defined(__x86_64__)
    return proa__cpu_level() >= 2 && __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}

static void say_once(const proa_config *c)
{
    static atomic_bool said;
    if (c->numbers[PROA_CONFIG_LOG] && !atomic_exchange(&said, true))
        fprintf(stderr,
                "proa: bfloat16: this CPU does not multiply bfloat16 numbers; the model runs in its own "
                "precision\n");
}

/* The comma-separated ops that autocast would compute in low precision but that the list excludes; NULL on
 * error. */
static const char *kept_in_float(const proa__op_types *types)
{
    size_t bytes = 1;
    for (uint32_t i = 0; i < proa_op_count; i++) bytes += strlen(proa_op_table[i]->name) + 1;
    char *text = proa_scope_alloc(bytes);
    if (!text) return NULL;
    *text = '\0';
    for (uint32_t i = 0; i < proa_op_count; i++) {
        const proa_op *op = proa_op_table[i];
        if (op->amp != PROA_AMP_LOW || proa__op_types_include(types, op->name)) continue;
        strcat(strcat(text, *text ? "," : ""), op->name);
    }
    return text;
}

/* Casts outputs back to the dtypes that they had before. */
static proa_status restore_outputs(proa_program *p, const proa_dtype *was)
{
    int64_t n = proa_program_output_count(p);
    proa_tensor **all = proa_scope_alloc(((size_t)n + 1) * sizeof *all);
    if (!all) return proa_error();
    proa_program *open = proa_program_open(p);
    for (int64_t i = 0; i < n; i++) {
        all[i] = (proa_tensor *)(uintptr_t)proa_program_output(p, i);
        if ((proa_dtype)all[i]->dtype != was[i]) all[i] = proa_cast(all[i], was[i]);
    }
    proa_program_open(open);
    PROA_TRY(proa_error());
    return proa_program_set_outputs(p, (proa_tensors){n, all});
}

proa_status proa__model_to_bfloat16(proa_program *p, const proa_config *c, const char *passes)
{
    if (!c->numbers[PROA_CONFIG_ONEDNN_BFLOAT16] || !c->numbers[PROA_CONFIG_IR_OPTIM]) return PROA_OK;
    if (!multiplies_bfloat16()) {
        say_once(c);
        return PROA_OK;
    }
    PROA_TRY(proa__passes_run_one(p, passes, "batch_norm")); /* behind casts its weights are not constants */
    int64_t n = proa_program_output_count(p);
    proa_dtype *was = proa_scope_alloc(((size_t)n + 1) * sizeof *was);
    proa__op_types types = proa__config_types(c, PROA_CONFIG_BFLOAT16_OPS);
    const char *in_float = kept_in_float(&types);
    if (!was || !in_float) return proa_error();
    for (int64_t i = 0; i < n; i++) was[i] = (proa_dtype)proa_program_output(p, i)->dtype;
    proa_status status = PROA_OK;
    PROA_AUTOCAST(PROA_AMP_O1, .dtype = PROA_BF16, .custom_f32 = *in_float ? in_float : NULL)
    {
        status = proa_program_recast(p, false);
    }
    return status == PROA_OK ? restore_outputs(p, was) : status;
}
