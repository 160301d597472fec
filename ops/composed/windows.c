/* Readers of operators on windows: the short-time Fourier transform, and windows of images as sequences. May
 * use public ops and proa/wire.h. */
#include "ops/composed/composed.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/fft.h"
#include "impl/reduce.h"
#include "impl/shape.h"
#include "impl/vision.h"

/* [N, frequencies, windows] of rows [N, time], whose windows begin hop_length apart. */
proa_status stft_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *window = proa_wire_input(r, "Window");
    proa_tensor *parts = proa_frame(x, proa_wire_int(r, "n_fft", 0), proa_wire_int(r, "hop_length", 0));
    parts = proa_multiply(proa_transpose(parts, PROA_INTS(0, 2, 1)), window);
    proa_fft_norm norm = proa_wire_int(r, "normalized", 0) ? PROA_FFT_NORM_ORTHO : PROA_FFT_NORM_BACKWARD;
    proa_tensor *waves =
        proa_fft_r2c(parts, PROA_INTS(2), .norm = norm, .no_onesided = proa_wire_int(r, "onesided", 1) == 0);
    return proa_wire_result(r, "Out", proa_transpose(waves, PROA_INTS(0, 2, 1)));
}

/* Offsets of as many sequences as there are rows of columns [N, size, windows], each of all windows. */
static proa_tensor *equal_parts(proa_tensor *columns)
{
    proa_tensor *ones = proa_full_like(proa__part(columns, 1, 0, 1), PROA_SCALAR(1), .dtype = PROA_I64);
    proa_tensor *counts = proa_sum(ones, .axis = PROA_INTS(1, 2));
    proa_tensor *first = proa_full(PROA_INTS(1), PROA_SCALAR(0), .dtype = PROA_I64);
    return proa_concat(PROA_LIST(first, proa_cumsum(counts, .axis = PROA_SCALAR(0))));
}

/* The windows of each image as a sequence of rows, channel by channel. */
proa_status im2sequence_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *sizes = proa_wire_input(r, "Y");
    if (!x || !sizes) return proa_error();
    if (!proa__absent(sizes))
        return proa_fail(PROA_ERR_UNSUPPORTED, "images of sizes of their own (input Y) are not read");
    proa_ints strides = proa_wire_ints(r, "strides"), pads = proa_wire_ints(r, "paddings");
    proa_tensor *columns =
        proa_unfold(x, proa_wire_ints(r, "kernels"), strides.count ? strides : PROA_INTS(1, 1),
                    pads.count ? pads : PROA_INTS(0, 0, 0, 0), PROA_INTS(1, 1));
    if (!columns) return proa_error();
    proa_tensor *rows = proa_transpose(columns, PROA_INTS(0, 2, 1));
    rows = proa_reshape(rows, PROA_INTS(-1, columns->shape[1]));
    PROA_TRY(proa_wire_result(r, "Out", rows));
    return proa_wire_result(r, "Out@LOD", equal_parts(columns));
}
