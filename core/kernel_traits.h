/* Traits that kernels declare for passes and plans of programs: constant inputs that a kernel packs into a
 * layout of its own, and outputs that it can do without. Uses proa/op.h only. */
#ifndef PROA_CORE_KERNEL_TRAITS_H
#define PROA_CORE_KERNEL_TRAITS_H

#include <proa/op.h>

/* Sets of an op's fields, by index. */
typedef struct proa__kernel_traits {
    const proa_kernel *kernel;
    /* Inputs that may come with `data` NULL when they are constants: the kernel takes their packed form
     * (core/deferred.h) and leaves their elements unread. */
    uint32_t packs;
    /* Outputs that may be PROA_NONE where nothing reads them, such as what is saved for a gradient. */
    uint32_t drops;
    struct proa__kernel_traits *next;
} proa__kernel_traits;

void proa__kernel_traits_add(proa__kernel_traits *t);

/* Registers a kernel's traits (inputs that it packs, outputs that it can do without) when the library loads.
 * Goes before the kernel's definition. */
#define PROA__KERNEL_TRAITS(name, ...)                                                       \
    extern const proa_kernel PROA_LEVELED(name);                                             \
    static proa__kernel_traits name##_traits = {.kernel = &PROA_LEVELED(name), __VA_ARGS__}; \
    __attribute__((constructor)) static void name##_traits_add(void)                         \
    {                                                                                        \
        proa__kernel_traits_add(&name##_traits);                                             \
    }

/* The set (bit mask) of field `index` alone; empty for an index of 32 or more, which no set can hold. */
static inline uint32_t proa__field_bit(int64_t index) { return index < 32 ? UINT32_C(1) << index : 0; }
static inline bool proa__has_field(uint32_t set, const proa_op *op, const proa_field *f)
{
    return set & proa__field_bit(f - op->fields);
}

/* Inputs that this kernel packs. */
uint32_t proa__kernel_packs(const proa_kernel *kernel);
/* Inputs that some kernel of the op packs on the thread's device. */
uint32_t proa__op_packs(const proa_op *op);
/* Outputs that all kernels of the op can do without on the thread's device. */
uint32_t proa__op_drops(const proa_op *op);

#endif
