/* Brings the tensors of a kernel that takes NCHW and channels-last (CUDA_KERNEL_CHANNELS_LAST) into one of
 * the two, by copies into scratch where necessary, and copies the result back into the layout of the output.
 * C++; uses kernel.h. */
#ifndef PROA_CUDA_LAYOUT_H
#define PROA_CUDA_LAYOUT_H

#include "devices/cuda/kernel.h"

static inline bool cuda_is_channels_last(const proa_tensor *t)
{
    return cuda_given(t) && cuda_look(t).channels_last;
}

/* Copies t's elements between layouts; to_last: `to` is channels last and `from` NCHW, else reversed. */
static inline proa_status cuda_copy_layout(cuda_context *c, const cuda_tensor &t, void *to, const void *from,
                                           bool to_last)
{
    proa_strided_copy copy = {};
    int64_t item = cuda_item(t.dtype), first = item, last = item * t.shape[1];
    copy.dst = (char *)to;
    copy.src = (const char *)from;
    copy.item = (size_t)item;
    copy.ndim = t.ndim;
    for (int d = t.ndim - 1; d >= 0; d--) {
        int64_t in_last = d == 1 ? item : last;
        copy.shape[d] = t.shape[d];
        copy.to[d] = to_last ? in_last : first;
        copy.from[d] = to_last ? first : in_last;
        first *= t.shape[d];
        if (d != 1) last *= t.shape[d];
    }
    return cuda_copy_strided(c, &copy);
}

/* The layout that one kernel works in, and the scratch memory of its converted tensors, freed at the end. */
class cuda_layout
{
    enum { MAX = 4 };
    cuda_context *c;
    void *scratch[MAX] = {};
    int n = 0;

    bool fits(cuda_tensor *t) const
    {
        char *there = last ? t->last : t->data;
        if (t->channels_last == last || there) t->data = there;
        else if (cuda_is_either_layout(*t)) t->data = t->channels_last ? t->last : t->data;
        else return false;
        return true;
    }
    proa_status reserve(cuda_tensor *t)
    {
        void *p = cuda_scratch(c, (size_t)(t->numel * cuda_item(t->dtype)));
        if (!p) return cuda_host->error();
        t->data = (char *)(scratch[n++] = p);
        return PROA_OK;
    }

  public:
    bool last; /* the layout that the kernel works in */
    cuda_layout(cuda_context *context, bool channels_last) : c(context), last(channels_last) {}
    ~cuda_layout()
    {
        for (int i = 0; i < n; i++) cuda_scratch_free(c, scratch[i]);
    }
    /* Prepares an input: t->data becomes its elements in the layout, a converted copy where necessary. */
    proa_status take(cuda_tensor *t)
    {
        if (fits(t) || t->numel == 0) return PROA_OK;
        const char *from = t->channels_last ? t->last : t->data;
        PROA_TRY(reserve(t));
        return cuda_copy_layout(c, *t, t->data, from, last);
    }
    /* Prepares an output: t->data becomes memory in the layout, scratch where necessary; `give` follows. */
    proa_status place(cuda_tensor *t) { return t->numel == 0 || fits(t) ? PROA_OK : reserve(t); }
    /* Copies the result at placed.data to the output t, unless the kernel wrote it there already. */
    proa_status give(const proa_tensor *t, const cuda_tensor &placed)
    {
        cuda_tensor to = cuda_look(t);
        char *at = to.channels_last ? to.last : to.data;
        if (at == placed.data || to.numel == 0) return PROA_OK;
        return cuda_copy_layout(c, to, at, placed.data, to.channels_last);
    }
};

#endif
