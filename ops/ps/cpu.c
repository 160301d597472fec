/* Kernels of a parameter server's worker: operands in host memory go to the process's connection. May use
 * core and kernels. */
#include "impl/elementwise.h"
#include "impl/ps.h"

#include "core/copy.h"
#include "core/device.h"
#include "core/internal.h"
#include "core/ps.h"
#include "kernels/rowwise.h"

static const proa__ps_calls *connection(const char *op)
{
    const proa__ps_calls *calls = proa__ps;
    if (!calls)
        proa__op_fail(PROA_ERR_BAD_STATE, proa_find_op(op), "table",
                      "is on servers, to which this process is not connected; call fleet.init_worker() (in C "
                      "proa_ps_connect) first");
    return calls;
}

/* x in host memory, as float32 or int64; x itself where it is that. NULL with an error. */
static const proa_tensor *on_host(proa_tensor *x, proa_dtype dtype)
{
    PROA__ON_CPU;
    if (proa__on_device(x)) x = proa__copy_to(x, PROA_CPU);
    return x && x->dtype != dtype ? proa_cast(x, dtype) : x;
}

static double rate_of(proa_tensor *lr)
{
    const proa_tensor *t = on_host(lr, PROA_F32);
    return t && t->numel > 0 ? (double)*(const float *)(const void *)t->data : 0;
}

/* All ids in one list, without those of the padding. Of those that stay, `from` is the place among all. */
typedef struct all_ids {
    int64_t *ids, *from, n, all;
} all_ids;

static proa_status join_ids(proa_tensors lists, int64_t padding_idx, all_ids *a)
{
    for (int64_t i = 0; i < lists.count; i++) a->all += lists.at[i]->numel;
    a->ids = proa_scope_alloc((size_t)a->all * sizeof *a->ids + 1);
    a->from = proa_scope_alloc((size_t)a->all * sizeof *a->from + 1);
    if (!a->ids || !a->from) return proa_error();
    int64_t place = 0;
    for (int64_t i = 0; i < lists.count; i++) {
        const proa_tensor *t = on_host(lists.at[i], PROA_I64);
        if (!t) return proa_error();
        const int64_t *ids = (const int64_t *)(const void *)t->data;
        for (int64_t k = 0; k < t->numel; k++, place++) {
            if (padding_idx >= 0 && ids[k] == padding_idx) continue;
            a->ids[a->n] = ids[k];
            a->from[a->n++] = place;
        }
    }
    return PROA_OK;
}

static float *floats(int64_t rows, int64_t width)
{
    size_t bytes;
    if (!proa__mul_size((size_t)rows, (size_t)width * sizeof(float), &bytes)) return NULL;
    float *at = proa_scope_alloc(bytes + 1);
    if (at) memset(at, 0, bytes);
    return at;
}

/* Copies floats in host memory into a tensor, wherever that is. */
static proa_status give(proa_tensor *out, const float *values)
{
    PROA__ON_CPU;
    proa_tensor *host = out;
    if (proa__on_device(out)) {
        proa_meta meta = proa_meta_of(out);
        host = proa__tensor_new(&meta);
        if (!host) return proa_error();
    }
    memcpy(host->data, values, (size_t)out->numel * sizeof *values);
    return host == out ? PROA_OK : proa__copy(out, host);
}

PROA_KERNEL_ANYWHERE(distributed_lookup_table_cpu, distributed_lookup_table)
{
    PROA_SCOPED;
    const proa__ps_calls *ps = connection("distributed_lookup_table");
    all_ids a_ids = {0};
    if (!ps) return proa_error();
    PROA_TRY(join_ids(a->ids, a->padding_idx, &a_ids));
    float *rows = floats(a_ids.n, a->width), *all = floats(a_ids.all, a->width);
    if (!rows || !all) return proa_error();
    PROA_TRY(ps->pull(a->table, a_ids.ids, a_ids.n, a->width, a->test, rows));
    for (int64_t i = 0; i < a_ids.n; i++)
        memcpy(all + a_ids.from[i] * a->width, rows + i * a->width, (size_t)a->width * sizeof *rows);
    for (int64_t i = 0; i < a->ids.count; i++) {
        PROA_TRY(give(a->out.at[i], all));
        all += a->out.at[i]->numel;
    }
    return PROA_OK;
}

/* Joins float32 tensors into one vector of n. */
static const float *join(proa_tensors list, int64_t n)
{
    float *all = floats(n, 1), *to = all;
    for (int64_t i = 0; all && i < list.count; i++) {
        const proa_tensor *t = on_host(list.at[i], PROA_F32);
        if (!t) return NULL;
        if (t->numel) memcpy(to, t->data, (size_t)t->numel * sizeof *to);
        to += t->numel;
    }
    return all;
}

static int64_t elements(proa_tensors list)
{
    int64_t n = 0;
    for (int64_t i = 0; i < list.count; i++) n += list.at[i]->numel;
    return n;
}

PROA_KERNEL_ANYWHERE(distributed_push_sparse_cpu, distributed_push_sparse)
{
    PROA_SCOPED;
    const proa__ps_calls *ps = connection("distributed_push_sparse");
    all_ids a_ids = {0};
    if (!ps) return proa_error();
    PROA_TRY(join_ids(a->ids, a->padding_idx, &a_ids));
    int64_t n = elements(a->grads), width = a_ids.all ? n / a_ids.all : 1;
    if (a_ids.all * width != n)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op("distributed_push_sparse"), "grads",
                             "have %lld values for %lld ids; expected a row an id", (long long)n,
                             (long long)a_ids.all);
    const float *all = join(a->grads, n);
    float *rows = floats(a_ids.n, width);
    if (!all || !rows) return proa_error();
    for (int64_t i = 0; i < a_ids.n; i++)
        memcpy(rows + i * width, all + a_ids.from[i] * width, (size_t)width * sizeof *rows);
    if (a_ids.all == 0) return PROA_OK;
    return ps->push(a->table, a_ids.ids, rows, a_ids.n, width, rate_of(a->learning_rate));
}

PROA_KERNEL_ANYWHERE(ps_send_cpu, ps_send)
{
    PROA_SCOPED;
    const proa__ps_calls *ps = connection("ps_send");
    if (!ps) return proa_error();
    int64_t n = elements(a->grads);
    const float *all = join(a->grads, n);
    return all ? ps->push_dense(a->table, all, n, rate_of(a->learning_rate)) : proa_error();
}

PROA_KERNEL_ANYWHERE(ps_send_barrier_cpu, ps_send_barrier)
{
    const proa__ps_calls *ps = connection("ps_send_barrier");
    if (!ps) return proa_error();
    PROA_TRY(proa__copy(a->done, a->sent));
    return ps->step();
}

PROA_KERNEL_ANYWHERE(ps_recv_cpu, ps_recv)
{
    PROA_SCOPED;
    const proa__ps_calls *ps = connection("ps_recv");
    float *values = ps ? floats(a->width, 1) : NULL;
    if (!values) return proa_error();
    PROA_TRY(ps->pull_dense(a->table, values, a->width));
    return give(a->out, values);
}
