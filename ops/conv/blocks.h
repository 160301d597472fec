/* Blocked layouts of images and filters (a block of channels is a vector) in which Proa's own convolutions
 * work, as formats of core/blocked.h, which are oneDNN's tags and those that oneDNN works in itself. May use
 * core and kernels/vector.h. */
#ifndef PROA_OPS_CONV_BLOCKS_H
#define PROA_OPS_CONV_BLOCKS_H

#include "core/blocked.h"
#include "kernels/vector.h"
#include "ops/conv/geometry.h"

/* Channels per block. Filters are [out / block][in / block][row][column][in of the block][out of the block].
 * The formats are 0 in a build without blocked layouts. */
#if PROA_HAVE_ONEDNN
#include <dnnl_types.h>
#else
enum { dnnl_aBcd8b, dnnl_aBcd16b = dnnl_aBcd8b, dnnl_ABcd8b8a = dnnl_aBcd8b, dnnl_ABcd16b16a = dnnl_aBcd8b };
#endif
#if VECTOR_BYTES == 32
enum { CONV_BLOCK = 8, CONV_IMAGE_FORMAT = dnnl_aBcd8b, CONV_FILTER_FORMAT = dnnl_ABcd8b8a };
#else
enum { CONV_BLOCK = 16, CONV_IMAGE_FORMAT = dnnl_aBcd16b, CONV_FILTER_FORMAT = dnnl_ABcd16b16a };
#endif

/* False on CPU levels whose vectors hold no block. Kernels decline there, and ask again when they run, so
 * that compilers leave their code out. */
#define CONV_BLOCKS_FIT (VECTOR_BYTES == 4 * CONV_BLOCK)

/* Layout of a batch of images, blocked or NCHW; steps in floats. */
typedef struct image_map {
    float *data;
    int64_t image, block, place, channel, places, blocks;
} image_map;

static inline image_map image_map_of(float *data, bool blocked, int64_t channels, int64_t places)
{
    const int64_t blocks = (channels + CONV_BLOCK - 1) / CONV_BLOCK;
    return (image_map){.data = data,
                       .image = (blocked ? blocks * CONV_BLOCK : channels) * places,
                       .block = CONV_BLOCK * places,
                       .place = blocked ? CONV_BLOCK : 1,
                       .channel = blocked ? 1 : places,
                       .places = places,
                       .blocks = blocks};
}

/* An operand or the result in its blocked layout: the tensor's memory if it has that layout, else scratch. */
typedef struct conv_form {
    const proa_tensor *of;
    int format;
    float *data, *scratch; /* scratch: NULL where data is the tensor's */
} conv_form;

/* Of two operands, the filter second, and the result; of wgrad, the filter is the result. */
enum { CONV_RESULT = 2, CONV_FORMS };

/* Makes the forms of a call; a result that the call owns becomes blocked itself. conv_forms_end follows. */
static inline proa_status conv_forms_begin(const proa_run *run, conv_kind kind, const proa_tensor *first,
                                           const proa_tensor *second, proa_tensor *result, conv_form *forms)
{
    const proa_tensor *const of[CONV_FORMS] = {first, second, result};
    const int filter = kind == BACKWARD_WEIGHTS ? CONV_RESULT : 1;
    for (int i = 0; i < CONV_FORMS; i++)
        forms[i] = (conv_form){.of = of[i], .format = i == filter ? CONV_FILTER_FORMAT : CONV_IMAGE_FORMAT};
    if (run->fresh) PROA_TRY(proa__block_output(result, forms[CONV_RESULT].format));
    for (int i = 0; i < CONV_FORMS; i++) {
        conv_form *f = &forms[i];
        const int format = proa__format(f->of);
        f->data = (float *)(void *)proa__memory(f->of);
        if (format == f->format) continue;
        f->scratch = proa_scratch(proa__format_bytes(f->of, f->format));
        if (!f->scratch) return proa_error();
        if (i != CONV_RESULT) PROA_TRY(proa__convert_blocked(f->of, format, f->data, f->format, f->scratch));
        f->data = f->scratch;
    }
    return PROA_OK;
}

/* Writes the result if `status` is OK, and frees scratch. */
static inline proa_status conv_forms_end(conv_form *forms, proa_status status)
{
    const conv_form *r = &forms[CONV_RESULT];
    if (status == PROA_OK && r->scratch)
        status =
            proa__convert_blocked(r->of, r->format, r->scratch, proa__format(r->of), proa__memory(r->of));
    for (int i = 0; i < CONV_FORMS; i++) proa_scratch_free(forms[i].scratch);
    return status;
}

/* The formats as functions of args and state, which PROA_KERNEL_BLOCKED takes. */
#define CONV_FORMAT_FN(name, format)                            \
    static inline int name(const void *args, const void *state) \
    {                                                           \
        (void)args, (void)state;                                \
        return format;                                          \
    }
CONV_FORMAT_FN(conv_image_format, CONV_IMAGE_FORMAT)
CONV_FORMAT_FN(conv_filter_format, CONV_FILTER_FORMAT)
CONV_FORMAT_FN(conv_row_major, 0)

#endif
