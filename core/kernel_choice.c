/* Kernel selection: picks the first kernel in an op's list that accepts the call and that FLAGS_backends
 * allows. On a device the device's own list comes first, then kernels that run anywhere, then, with
 * FLAGS_device_fallback=1, the CPU's. With FLAGS_verbose=1 prints which kernel that is, and why those before
 * it declined. May use core only. */
#include "core/args_visit.h"
#include "core/device.h"
#include "core/kernel_cache.h"
#include "core/run.h"
#include "core/thread.h"

/* Why this thread's last prepare declined; NULL if it gave no reason. */
static PROA__TLS const char *declined_because;

proa_status proa_decline(const char *why)
{
    declined_because = why;
    return PROA_DECLINED;
}

/* The number of selections made by this thread, and the number of the one under way (0: none). */
static PROA__TLS uint64_t selections, selecting;

uint64_t proa__selection(void) { return selecting; }

/* ---- FLAGS_verbose ---------------------------------------------------------------------- */

/* The answers of the tried kernels, for printing: "conv_onednn: not float32; conv_cpu: runs". */
typedef struct story {
    char text[1024];
    size_t used;
} story;

static void tell(story *told, const char *kernel, const char *outcome)
{
    if (!told || told->used >= sizeof told->text) return;
    int n = snprintf(told->text + told->used, sizeof told->text - told->used, "%s%s: %s",
                     told->used ? "; " : "", kernel, outcome);
    told->used += n > 0 ? (size_t)n : 0;
}

/* Prints one line for a selection: the op with its tensor inputs, then each kernel's answer. */
static void print_story(const proa_op *op, const void *args, const story *told)
{
    char inputs[256] = "";
    size_t used = 0;
    for (const proa_field *f = op->fields, *end = f + op->n_in; f < end && used < sizeof inputs; f++) {
        const proa_tensors all = proa__field_all(f, args);
        for (int64_t i = 0; i < all.count && used < sizeof inputs; i++) {
            if (all.at[i] == proa_none) continue;
            int n = snprintf(inputs + used, sizeof inputs - used, "%s%s %s", used ? ", " : "", f->name,
                             proa__tensor_text(all.at[i]));
            used += n > 0 ? (size_t)n : 0;
        }
    }
    if (used >= sizeof inputs) memcpy(inputs + sizeof inputs - sizeof "…", "…", sizeof "…");
    fprintf(stderr, "proa: %s(%s): %s\n", op->name, inputs, told->text);
}

/* ---- selection -------------------------------------------------------------------------- */

/* Finds the first kernel of a list that does not decline; *kernel is NULL if all do. */
static proa_status pick_from(const proa_kernel *const *list, bool anywhere, const void *args,
                             const proa_kernel **kernel, void **state, story *told)
{
    for (const proa_kernel *const *k = list; *k; k++) {
        if (anywhere && !(*k)->anywhere) continue;
        if (!anywhere && !proa__may_use(*k)) {
            tell(told, (*k)->name, "left out by FLAGS_backends");
            continue;
        }
        *kernel = *k;
        declined_because = NULL;
        proa_status status = (*k)->prepare ? (*k)->prepare(args, state) : PROA_OK;
        if (status != PROA_DECLINED) {
            tell(told, (*k)->name, status == PROA_OK ? "runs" : "fails");
            while (told && *++k) tell(told, (*k)->name, "not needed");
            return status;
        }
        tell(told, (*k)->name, declined_because ? declined_because : "declines");
    }
    *kernel = NULL;
    return PROA_OK;
}

/* Tries the device's own kernels, then those that run on any device. */
static proa_status pick_on_device(const proa_op *op, int device, const void *args, const proa_kernel **kernel,
                                  void **state, story *told)
{
    const proa_device_table *d = proa__device(device);
    const proa_kernel *const *own = op->id < d->kernel_ops ? d->kernels[op->id] : NULL;
    *kernel = NULL;
    if (own) PROA_TRY(pick_from(own, false, args, kernel, state, told));
    if (!*kernel) PROA_TRY(pick_from(op->kernels, true, args, kernel, state, told));
    if (*kernel) return PROA_OK;
    if (proa__flag_int(PROA_FLAG_device_fallback)) {
        *kernel = &proa__fallback_kernel;
        return PROA_OK;
    }
    const proa_field *f = NULL;
    const proa_tensor *first = proa__first_tensor(op, args, &f);
    return proa__op_fail(
        PROA_ERR_UNSUPPORTED, op, NULL,
        "has no kernel on %s for %s; move its inputs to the CPU (proa_to_device, Tensor.cpu), "
        "or set FLAGS_device_fallback=1 to have such ops computed there, with copies",
        d->name, first ? proa__tensor_text(first) : "these attributes");
}

static proa_status pick(const proa_op *op, const void *args, const proa_kernel **kernel, void **state,
                        story *told)
{
    const proa__thread *me = proa__thread_self;
    if (PROA__UNLIKELY(me && me->stream.device != PROA_CPU))
        return pick_on_device(op, me->stream.device, args, kernel, state, told);
    PROA_TRY(pick_from(op->kernels, false, args, kernel, state, told));
    if (*kernel) return PROA_OK;
    return proa__op_fail(PROA_ERR_UNSUPPORTED, op, NULL, "no kernel takes these inputs (FLAGS_backends=%s)",
                         proa_get_flag("backends"));
}

proa_status proa__pick_kernel(const proa_op *op, const void *args, const proa_kernel **kernel, void **state)
{
    const uint64_t outer = selecting;
    const bool verbose = proa__flag_int(PROA_FLAG_verbose);
    story told = {.used = 0};
    *state = NULL;
    selecting = ++selections;
    proa_status status = pick(op, args, kernel, state, verbose ? &told : NULL);
    selecting = outer;
    if (PROA__UNLIKELY(verbose)) print_story(op, args, &told);
    return status;
}
