/* The list of kernels with traits, which their files' constructors fill when the library loads. Uses the
 * device table. */
#include "core/kernel_traits.h"

#include "core/device.h"
#include "core/internal.h"

static proa__kernel_traits *all;

void proa__kernel_traits_add(proa__kernel_traits *t)
{
    t->next = all;
    all = t;
}

static const proa__kernel_traits *traits_of(const proa_kernel *kernel)
{
    const proa__kernel_traits *t = all;
    while (t && t->kernel != kernel) t = t->next;
    return t;
}

/* The op's kernels on the thread's device, NULL-terminated; NULL: it has none. */
static const proa_kernel *const *kernels_of(const proa_op *op)
{
    int device = proa__stream()->device;
    if (device == PROA_CPU) return op->kernels;
    const proa_device_table *d = proa__device(device);
    return op->id < d->kernel_ops ? d->kernels[op->id] : NULL;
}

uint32_t proa__kernel_packs(const proa_kernel *kernel)
{
    const proa__kernel_traits *t = traits_of(kernel);
    return t ? t->packs : 0;
}

uint32_t proa__op_packs(const proa_op *op)
{
    uint32_t packs = 0;
    for (const proa_kernel *const *k = kernels_of(op); k && *k; k++) packs |= proa__kernel_packs(*k);
    return packs;
}

uint32_t proa__op_drops(const proa_op *op)
{
    const proa_kernel *const *list = kernels_of(op);
    uint32_t drops = list && *list ? UINT32_MAX : 0;
    for (const proa_kernel *const *k = list; k && *k && drops; k++) {
        const proa__kernel_traits *t = traits_of(*k);
        drops &= t ? t->drops : 0;
    }
    return drops;
}
