/* fused_elementwise as one CUDA kernel, compiled at run time (devices/cuda/module.h) when the op is prepared:
 * for a captured program, when its execution plan is made, never while the plan runs or is recorded as a CUDA
 * graph. */
#include "devices/cuda/fuse.h"
#include "devices/cuda/kernel.h"
#include "devices/cuda/module.h"
#include "ops/elementwise/cuda/fused_map.h"

#include <stdlib.h>

namespace
{

enum { CAPABILITIES = 4 }; // different ones among a machine's GPUs

struct fused_state {
    int n;
    struct {
        int major, minor;
        cuda_module *module;
    } of[CAPABILITIES];
};

/* All of float64, or none; all outputs of one shape, to which the inputs broadcast. */
bool fits(const proa_fused_elementwise_args *a)
{
    if (a->x.count < 1 || a->out.count < 1 || a->x.count + a->out.count > FUSED_OPERANDS) return false;
    cuda_tensor to = cuda_look(a->out.at[0]);
    if (!(CUDA_FLOATS >> to.dtype & 1) || to.ndim > FUSED_DIMS) return false;
    for (int64_t k = 0; k < a->x.count + a->out.count; k++) {
        bool in = k >= a->out.count;
        cuda_tensor t = cuda_look(in ? a->x.at[k - a->out.count] : a->out.at[k]);
        int lead = to.ndim - t.ndim;
        if (!(CUDA_FLOATS >> t.dtype & 1) || (t.dtype == PROA_F64) != (to.dtype == PROA_F64)) return false;
        if (lead < 0 || (!in && lead)) return false;
        for (int d = 0; d < t.ndim; d++)
            if (t.shape[d] != to.shape[lead + d] && !(in && t.shape[d] == 1)) return false;
    }
    return true;
}

void release(void *p)
{
    fused_state *s = static_cast<fused_state *>(p);
    for (int i = 0; i < s->n; i++) cuda_module_give(s->of[i].module);
    free(s);
}

/* Compiles for every compute capability among the GPUs, because prepare does not know on which one the op
 * will run. */
bool make(fused_state *s, const char *source)
{
    static const char *const names[CUDA_MODULE_KERNELS] = {CUDA_FUSED_ANY, CUDA_FUSED_PACKED};
    for (int i = 0; cuda_gpu(i); i++) {
        const cuda_context *c = cuda_gpu(i);
        int major = c->description.major, minor = c->description.minor, k = 0;
        while (k < s->n && (s->of[k].major != major || s->of[k].minor != minor)) k++;
        if (k < s->n) continue;
        if (k == CAPABILITIES) return false;
        c->driver->use(c->index);
        s->of[k] = {major, minor, cuda_module_take(c->driver, major, minor, source, names)};
        if (!s->of[k].module) return false;
        s->n++;
    }
    return true;
}

proa_status prepare(const void *args, void **state)
{
    const proa_fused_elementwise_args *a = static_cast<const proa_fused_elementwise_args *>(args);
    if (!fits(a)) return PROA_DECLINED;
    char *source = static_cast<char *>(malloc(CUDA_FUSE_BYTES));
    fused_state *s = static_cast<fused_state *>(calloc(1, sizeof *s));
    proa_status status = PROA_DECLINED; // without memory or compiler the ops run one after the other
    if (source && s) {
        proa_dtype dtypes[FUSED_OPERANDS];
        for (int64_t i = 0; i < a->x.count; i++) dtypes[i] = cuda_look(a->x.at[i]).dtype;
        status = cuda_fuse(&a->steps, (int)a->x.count, dtypes, source);
    }
    if (status == PROA_OK && !make(s, source)) status = PROA_DECLINED;
    free(source);
    if (status == PROA_OK) *state = s;
    else if (s) release(s);
    return status;
}

/* Outputs, then inputs, and their items; neighboring dims that every operand walks as one become one. */
int fill_map(const proa_fused_elementwise_args *a, fused_map *m, int64_t *item)
{
    cuda_tensor to = cuda_look(a->out.at[0]), t[FUSED_OPERANDS];
    int n = (int)(a->out.count + a->x.count);
    m->numel = to.numel;
    for (int o = 0; o < n; o++) {
        t[o] = cuda_look(o < a->out.count ? a->out.at[o] : a->x.at[o - a->out.count]);
        m->at[o].data = t[o].data;
        item[o] = cuda_item(t[o].dtype);
    }
    for (int d = 0; d < to.ndim; d++) {
        if (to.shape[d] == 1) continue;
        bool joins = m->ndim > 0;
        int64_t step[FUSED_OPERANDS];
        for (int o = 0; o < n; o++) {
            int at = d - (to.ndim - t[o].ndim);
            step[o] = at < 0 || t[o].shape[at] == 1 ? 0 : t[o].strides[at];
            joins = joins && m->at[o].strides[m->ndim - 1] == step[o] * to.shape[d];
        }
        if (!joins) m->shape[m->ndim++] = 1;
        m->shape[m->ndim - 1] *= to.shape[d];
        for (int o = 0; o < n; o++) m->at[o].strides[m->ndim - 1] = step[o];
    }
    if (m->ndim == 0) m->shape[m->ndim++] = 1;
    return n;
}

/* Whether fused_packed (ops/elementwise/cuda/fused.h) takes it: every run of `pack` elements is aligned. */
bool is_packed(const fused_map *m, int n, const int64_t *item, int64_t pack)
{
    int64_t last = m->ndim - 1;
    if (m->shape[last] % pack) return false;
    for (int o = 0; o < n; o++) {
        const fused_operand &p = m->at[o];
        if (p.strides[last] == 0) continue;
        int64_t run = pack * item[o];
        if (p.strides[last] != item[o] || (uintptr_t)p.data % (uintptr_t)run) return false;
        for (int64_t d = 0; d < last; d++)
            if (p.strides[d] % run) return false;
    }
    return true;
}

proa_status run(const void *args, proa_run *run)
{
    const proa_fused_elementwise_args *a = static_cast<const proa_fused_elementwise_args *>(args);
    const fused_state *s = static_cast<const fused_state *>(run->state);
    cuda_context *c = static_cast<cuda_context *>(run->device);
    fused_map m = {};
    int64_t item[FUSED_OPERANDS], least = 8;
    int n = fill_map(a, &m, item), k = 0;
    if (m.numel == 0) return PROA_OK;
    while (s->of[k].major != c->description.major || s->of[k].minor != c->description.minor) k++;
    for (int o = 0; o < n; o++) least = item[o] < least ? item[o] : least;
    bool packed = is_packed(&m, n, item, 16 / least);
    unsigned blocks = cuda_blocks(m.numel, CUDA_BLOCK * (packed ? 16 / least : 1));
    c->launches++;
    int code =
        c->driver->launch(s->of[k].module->kernel[packed], blocks, CUDA_BLOCK, &m, sizeof m, c->stream);
    return cuda_check(c, code, "a launch", false);
}

const proa_kernel kernel = {"fused_elementwise_cuda", prepare, release, run, false, NULL};
const cuda_register registered("fused_elementwise", &kernel);

} // namespace
