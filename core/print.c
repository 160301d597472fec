/* Prints tensors: shape, dtype and values; of more than 1000 elements only the first and last three along
 * each axis. Copies the values of a tensor on a device to host memory first. Uses tensor.c. */
#include "core/blocked.h"
#include "core/copy.h"
#include "core/thread.h"

#include <inttypes.h>
#include <math.h>

enum { SHOW_ALL = 1000, EDGE = 3 };

typedef struct printer {
    const proa_tensor *t;
    FILE *to;
    bool abridged;
} printer;

static void print_real(double v, FILE *to)
{
    if (isnan(v)) fputs("nan", to);
    else if (isinf(v)) fputs(v < 0 ? "-inf" : "inf", to);
    else if (v == floor(v) && fabs(v) < 1e7) fprintf(to, "%.0f.", v);
    else fprintf(to, "%.8g", v);
}

static void print_element(proa_dtype dtype, const char *at, FILE *to)
{
    int64_t integer;
    switch (dtype) {
    case PROA_BOOL: fputs(*at ? "True" : "False", to); break;
    case PROA_I64:
        memcpy(&integer, at, sizeof integer);
        fprintf(to, "%" PRId64, integer);
        break;
    case PROA_U8:
    case PROA_I8:
    case PROA_I16:
    case PROA_I32: fprintf(to, "%.0f", proa__element(dtype, at, false)); break;
    case PROA_C64:
    case PROA_C128: {
        double im = proa__element(dtype, at, true);
        fputc('(', to);
        print_real(proa__element(dtype, at, false), to);
        if (!(im < 0)) fputc('+', to);
        print_real(im, to);
        fputs("j)", to);
        break;
    }
    default: print_real(proa__element(dtype, at, false), to);
    }
}

/* Prints the values from `at` along this axis and those behind it. Recursive; the depth is at most
 * PROA_MAX_DIMS. */
static void print_axis(const printer *p, int axis, const char *at)
{
    const proa_tensor *t = p->t;
    if (axis == t->ndim) {
        print_element((proa_dtype)t->dtype, at, p->to);
        return;
    }
    int64_t n = t->shape[axis];
    fputc('[', p->to);
    for (int64_t i = 0; i < n; i++) {
        if (i > 0) {
            fputs(axis == t->ndim - 1 ? ", " : ",\n", p->to);
            if (axis < t->ndim - 1) fprintf(p->to, "%*s", axis + 3, "");
        }
        if (p->abridged && n > 2 * EDGE && i == EDGE) {
            fputs("..., ", p->to);
            i = n - EDGE;
        }
        print_axis(p, axis + 1, at + i * t->strides[axis]);
    }
    fputc(']', p->to);
}

void proa_print(const proa_tensor *t, FILE *to)
{
    if (!to) return;
    if (!t || proa__absent(t)) {
        fprintf(to, "%s\n", proa__tensor_text(t));
        return;
    }
    fprintf(to, "Tensor(shape=%s, dtype=%s", proa__shape_text(t->shape, t->ndim),
            proa_dtype_name((proa_dtype)t->dtype));
    if (t->name) fprintf(to, ", name=%s", t->name);
    if (t->kind == PROA_ROWS) fprintf(to, ", rows of %lld", (long long)proa__rows_of(t)->height);
    if (!t->storage || (t->flags & (PROA_T_SYMBOLIC | PROA_T_META)) || t->kind > PROA_ROWS) {
        fprintf(to, ", %s)\n", t->flags & PROA_T_SYMBOLIC ? "a variable of a program" : "no dense values");
        return;
    }
    if (proa__plain(t) != PROA_OK) {
        fputs(", no memory to show its values)\n", to);
        return;
    }
    fputs(")\n  ", to);
    printer p = {t, to, t->numel > SHOW_ALL};
    proa_tensor host; /* of a tensor on a device: a row-major copy in host memory */
    void *copy = NULL;
    if (t->storage->device != PROA_CPU && t->numel > 0) {
        size_t bytes = (size_t)t->numel * proa_dtype_size((proa_dtype)t->dtype);
        copy = proa__alloc(bytes);
        if (!copy || proa_copy_out(t, copy, bytes) != PROA_OK) {
            fputs("(its values cannot be copied here)\n", to);
            proa__free(copy);
            return;
        }
        host = proa__shallow_copy(t);
        int64_t numel;
        (void)proa__row_major(host.shape, host.ndim, proa_dtype_size((proa_dtype)host.dtype), host.strides,
                              &numel);
        host.data = copy;
        p.t = &host;
    }
    print_axis(&p, 0, p.t->data);
    fputc('\n', to);
    proa__free(copy);
}
