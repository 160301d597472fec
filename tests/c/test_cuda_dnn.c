/* cuDNN's descriptors, those of the installed library against the emulator's stand-in: the same calls are
 * refused, and the same output sizes come out. Where no cuDNN is installed there is nothing to compare. */
#include "devices/cuda/dnn.h"
#include "suite.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const cuda_dnn *both[2];

/* One convolution as the plug-in describes it; returns the class of the first refusal (thousands), or 0, and
 * the output's sizes. */
typedef struct shape {
    int type, compute, format, dims, in[5], filter[5], pad[3], stride[3], dilation[3], groups, math;
} shape;

static int describe(const cuda_dnn *f, const shape *s, int *size)
{
    cuda_dnn_tensor in;
    cuda_dnn_filter filter;
    cuda_dnn_conv conv;
    int stride[5], code;
    unsigned step = 1; /* sizes beyond int are tried, too: they wrap */
    for (int i = s->dims + 1; i >= 0; i--) stride[i] = (int)step, step *= (unsigned)s->in[i];
    ck_assert_int_eq(f->CreateTensorDescriptor(&in), 0);
    ck_assert_int_eq(f->CreateFilterDescriptor(&filter), 0);
    ck_assert_int_eq(f->CreateConvolutionDescriptor(&conv), 0);
    code = f->SetTensorNdDescriptor(in, s->type, s->dims + 2, s->in, stride);
    if (!code) code = f->SetFilterNdDescriptor(filter, s->type, s->format, s->dims + 2, s->filter);
    if (!code)
        code = f->SetConvolutionNdDescriptor(conv, s->dims, s->pad, s->stride, s->dilation,
                                             CUDA_DNN_CROSS_CORRELATION, s->compute);
    if (!code) code = f->SetConvolutionGroupCount(conv, s->groups);
    if (!code) code = f->SetConvolutionMathType(conv, s->math);
    memset(size, 0, 5 * sizeof *size);
    if (!code) code = f->GetConvolutionNdForwardOutputDim(conv, in, filter, s->dims + 2, size);
    f->DestroyTensorDescriptor(in);
    f->DestroyFilterDescriptor(filter);
    f->DestroyConvolutionDescriptor(conv);
    return code / 1000;
}

static void compare(const shape *s)
{
    int size[2][5], code[2];
    for (int i = 0; i < 2; i++) code[i] = describe(both[i], s, size[i]);
    ck_assert_msg(code[0] == code[1], "%d dims, x %d %d %d %d, filter %d %d %d %d: real %d, emulated %d",
                  s->dims, s->in[0], s->in[1], s->in[2], s->in[3], s->filter[0], s->filter[1], s->filter[2],
                  s->filter[3], code[0], code[1]);
    if (code[0] == 0) ck_assert_int_eq(memcmp(size[0], size[1], sizeof size[0]), 0);
}

static unsigned state = 1;
static int pick(int low, int high)
{
    state = state * 1664525u + 1013904223u;
    return low + (int)(state >> 8) % (high - low + 1);
}

static const shape usual = {CUDA_DNN_FLOAT,       CUDA_DNN_FLOAT, CUDA_DNN_NCHW, 2,         {2, 4, 9, 8, 7},
                            {6, 4, 3, 3, 3},      {0, 0, 0},      {1, 1, 1},     {1, 1, 1}, 1,
                            CUDA_DNN_DEFAULT_MATH};

static bool have_real(void)
{
    const char *why;
    both[0] = cuda_dnn_installed(&why);
    both[1] = cuda_dnn_emulated();
    if (both[0]) return true;
    printf("not compared: %s\n", why);
    return false;
}

START_TEST(every_size)
{
    if (!have_real()) return;
    ck_assert_uint_eq(both[0]->GetVersion() / 10000, both[1]->GetVersion() / 10000);
    for (int round = 0; round < 2000; round++) {
        shape s = usual;
        s.dims = pick(2, 3);
        s.groups = pick(1, 3);
        s.format = pick(0, 1);
        s.filter[1] = pick(1, 3);
        s.in[1] = pick(0, 9) ? s.filter[1] * s.groups : pick(1, 9); /* sometimes channels that do not agree */
        s.filter[0] = s.groups * pick(1, 4);
        for (int i = 0; i < s.dims; i++) {
            s.in[2 + i] = pick(1, 12), s.filter[2 + i] = pick(1, 5);
            s.pad[i] = pick(0, 3), s.stride[i] = pick(1, 3), s.dilation[i] = pick(1, 3);
        }
        compare(&s);
    }
}
END_TEST

START_TEST(every_refusal)
{
    if (!have_real()) return;
    static const int types[] = {CUDA_DNN_FLOAT, CUDA_DNN_DOUBLE, CUDA_DNN_HALF, CUDA_DNN_BFLOAT16, 77};
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 4; k++) {
            shape s = usual;
            s.type = types[i], s.compute = types[k];
            compare(&s);
        }
    for (int wrong = -1; wrong <= 0; wrong++) {
        shape s = usual;
        s.stride[1] = wrong, compare(&s);
        s = usual, s.dilation[0] = wrong, compare(&s);
        s = usual, s.pad[0] = wrong, compare(&s);
        s = usual, s.groups = wrong, compare(&s);
        s = usual, s.filter[1] = wrong, compare(&s);
        s = usual, s.in[0] = wrong, compare(&s);
    }
    shape s = usual;
    s.math = 9, compare(&s);
    s = usual, s.format = 7, compare(&s);
    s = usual, s.in[0] = 1 << 16, s.in[1] = s.filter[1] = 128, s.in[2] = 1 << 5, s.in[3] = 1 << 3,
    compare(&s);
    for (int elements = -1; elements <= 1; elements++) { /* about 2^31 of them */
        s = usual, s.in[0] = 1, s.in[1] = s.filter[1] = 1, s.in[2] = 1 << 16, s.in[3] = (1 << 15) + elements;
        compare(&s);
    }
}
END_TEST

SUITE("cuda dnn", every_size, every_refusal)
