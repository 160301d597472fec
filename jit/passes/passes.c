/* The table of passes, the choice of the passes that run, and the dumps of programs before and after. May use
 * core and ops. */
#include "passes.h"

#include "core/args_visit.h"
#include "core/deferred.h"
#include "core/device.h"
#include "core/internal.h"
#include "core/kernel_traits.h"

#define PASS_ROW(name, doc, frozen, whole, asked) {#name, doc, frozen, whole, asked, proa__pass_##name},
const proa__pass proa__pass_table[] = {PROA__PASSES(PASS_ROW){NULL, NULL, false, false, false, NULL}};

enum { MAX_PASSES = 32 };

/* ---- choosing --------------------------------------------------------------------------- */

static int find(const char *name, size_t n)
{
    for (int i = 0; proa__pass_table[i].name; i++)
        if (strlen(proa__pass_table[i].name) == n && strncmp(proa__pass_table[i].name, name, n) == 0)
            return i;
    return -1;
}

static proa_status unknown(const char *name, size_t n)
{
    char known[256];
    size_t used = 0;
    for (int i = 0; proa__pass_table[i].name && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 proa__pass_table[i].name);
    return proa_fail(PROA_ERR_NOT_FOUND, "passes: there is no pass '%.*s'; there are: %s, all and none",
                     (int)n, name, known);
}

static void set_all(bool *wanted, bool to)
{
    for (int i = 0; proa__pass_table[i].name; i++) wanted[i] = to && !proa__pass_table[i].asked;
}

/* True if the list has "-name". */
static bool leaves_out(const char *names, const char *name)
{
    for (const char *at = names; at && (at = strchr(at, '-')); at++) {
        size_t n = strcspn(at + 1, ", ");
        if (strlen(name) == n && strncmp(at + 1, name, n) == 0) return true;
    }
    return false;
}

/* Parses a list of names. If the first one is to be left out ("-cse"), the list starts from all passes. */
static proa_status choose(const char *names, bool *wanted)
{
    set_all(wanted, false);
    bool first = true;
    for (const char *at = names; *at;) {
        size_t n = strcspn(at, ", ");
        bool out = *at == '-';
        const char *name = at + out;
        size_t length = n - (size_t)out;
        if (n) {
            if (first && out) set_all(wanted, true);
            first = false;
            int i = find(name, length);
            if (length == 3 && strncmp(name, "all", 3) == 0) set_all(wanted, !out);
            else if (length == 4 && strncmp(name, "none", 4) == 0) set_all(wanted, false);
            else if (i < 0) return unknown(name, length);
            else wanted[i] = !out;
        }
        at += n;
        at += strspn(at, ", ");
    }
    return PROA_OK;
}

/* ---- running --------------------------------------------------------------------------- */

static void dump(const proa_program *p, const char *when, const char *pass)
{
    fprintf(stderr, "---- program %s%s%s\n", when, pass ? " " : "", pass ? pass : "");
    proa_program_print(p, stderr);
}

/* True if the thread's device, or that of a parameter, is another than the CPU. */
static bool is_on_device(const proa_program *p)
{
    bool on = proa__stream()->device != PROA_CPU;
    const proa_block *root = p->blocks[0];
    for (int32_t i = 0; i < root->n_vars && !on; i++)
        on = root->vars[i]->value && proa__on_device(root->vars[i]->value);
    return on;
}

static proa_status run_pass(proa_program *p, const proa__pass *pass, const proa__pass_context *context)
{
    int32_t n = p->n_blocks; /* the number of blocks, which passes do not change */
    for (int32_t k = 0; k < n; k++) PROA_TRY(pass->run(p->blocks[k], context));
    return PROA_OK;
}

/* The passes, among those chosen, that a run is limited to. */
typedef struct part {
    bool whole;       /* those that need forward and backward together */
    const char *only; /* NULL: any name */
} part;

static bool concerns(const part *of, const proa__pass *pass, bool frozen)
{
    return (!pass->frozen || frozen) && (!of->whole || pass->whole) &&
           (!of->only || strcmp(pass->name, of->only) == 0);
}

/* Lets kernels pack a constant that passes have made, and free its memory. Small ones are not worth it. */
static proa_status defer_input(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const proa_op *op = context;
    const proa_var *v = proa__slot_var(*slot);
    (void)index;
    if (!v || !v->persistable || !v->value || !proa__has_field(proa__op_packs(op), op, f)) return PROA_OK;
    int64_t bytes = v->value->numel * (int64_t)proa_dtype_size((proa_dtype)v->value->dtype);
    return bytes < proa__flag_int(PROA_FLAG_deferred_bytes) ? PROA_OK : proa__defer(v->value);
}

static proa_status defer_constants(const proa_program *p)
{
    const proa_block *root = proa__root(p);
    for (int32_t i = 0; i < root->n_ops; i++) {
        const proa_instr *instr = &root->ops[i];
        if (proa__op_packs(instr->op))
            PROA_TRY(
                proa__args_visit(instr->op, instr->args, PROA_IN, defer_input, (void *)(uintptr_t)instr->op));
    }
    return PROA_OK;
}

static proa_status run_chosen(proa_program *p, const char *names, proa__pass_context context, part of)
{
    bool wanted[MAX_PASSES] = {false};
    PROA_TRY(proa_error());
    if (!names) names = proa_get_flag("passes");
    if (!names) return proa_error();
    PROA_TRY(choose(names, wanted));
    bool ordered = leaves_out(names, "overlap") || leaves_out(proa_get_flag("passes"), "overlap");
    wanted[find("overlap", strlen("overlap"))] =
        !ordered; /* changes the order alone: runs with "none", too */
    bool dumps = proa__flag_int(PROA_FLAG_dump_passes), recording = proa_door_set(PROA_DOOR_RECORD, false);
    proa_block *open = proa__capture_into(NULL); /* passes run ops, which must not be captured */
    proa_status status = PROA_OK;
    if (dumps) dump(p, "before passes", NULL);
    context.on_device = is_on_device(p);
    for (int i = 0; proa__pass_table[i].name && status == PROA_OK; i++) {
        const proa__pass *pass = &proa__pass_table[i];
        if (!wanted[i] || !concerns(&of, pass, context.frozen)) continue;
        uint64_t version = p->version;
        PROA_SCOPE {
            status = run_pass(p, pass, &context);
        }
        if (dumps && p->version != version) dump(p, "after", pass->name);
    }
    proa__capture_into(open);
    proa_door_set(PROA_DOOR_RECORD, recording);
    if (context.frozen && !of.only && status == PROA_OK) status = defer_constants(p);
    if (context.frozen) proa_memory_trim(); /* frees temporaries of computed weights */
    return status;
}

proa_status proa__passes_run(proa_program *p, const char *names, bool frozen)
{
    return run_chosen(p, names, (proa__pass_context){.frozen = frozen}, (part){0});
}

proa_status proa__passes_run_int8(proa_program *p, const char *names, proa__op_types int8)
{
    return run_chosen(p, names, (proa__pass_context){.frozen = true, .int8 = int8}, (part){0});
}

proa_status proa__passes_run_one(proa_program *p, const char *names, const char *pass)
{
    return run_chosen(p, names, (proa__pass_context){.frozen = true}, (part){.only = pass});
}

proa_status proa__passes_run_whole(proa_program *p)
{
    return run_chosen(p, NULL, (proa__pass_context){0}, (part){.whole = true});
}

proa_status proa_program_optimize(proa_program *p, const char *passes, bool frozen)
{
    PROA_TRY(proa_error());
    if (!p) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "program_optimize: the program is NULL");
    return proa__passes_run(p, passes, frozen);
}
