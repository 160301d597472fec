/* Makes the process's first client the one that the ops of ops/ps call. May use core. */
#include "dist/ps/client.h"

#include "core/ps.h"

static proa_status check_width(const char *who, int64_t table, bool dense, int64_t width)
{
    int64_t found = proa__ps_width(proa__ps_current, who, (int)table, dense);
    if (!found) return proa_error();
    if (found == width) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: width is %lld; table %lld has %lld values%s", who,
                     (long long)width, (long long)table, (long long)found, dense ? "" : " a row");
}

static proa_status pull(int64_t table, const int64_t *ids, int64_t n, int64_t width, bool test, float *out)
{
    PROA_TRY(check_width("distributed_lookup_table", table, false, width));
    return proa_ps_pull(proa__ps_current, (int)table, ids, n, test, out);
}

static proa_status push(int64_t table, const int64_t *ids, const float *grads, int64_t n, int64_t width,
                        double lr)
{
    PROA_TRY(check_width("distributed_push_sparse", table, false, width));
    return proa_ps_push(proa__ps_current, (int)table, ids, grads, n, lr);
}

static proa_status pull_dense(int64_t table, float *out, int64_t n)
{
    PROA_TRY(check_width("ps_recv", table, true, n));
    return proa_ps_pull_dense(proa__ps_current, (int)table, out);
}

static proa_status push_dense(int64_t table, const float *grads, int64_t n, double lr)
{
    PROA_TRY(check_width("ps_send", table, true, n));
    return proa_ps_push_dense(proa__ps_current, (int)table, grads, lr);
}

static proa_status step(void) { return proa_ps_step(proa__ps_current); }

static const proa__ps_calls calls = {pull, push, pull_dense, push_dense, step};

void proa__ps_install(proa_ps_client *c)
{
    proa__ps_current = c;
    proa__ps = c ? &calls : NULL;
}
