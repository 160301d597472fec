/* Makes the process's first client the one that the ops of ops/ps call. May use core. */
#include "dist/ps/client.h"

#include "core/ps.h"

/* The client that the ops use. Written under replace's lock. */
static _Atomic(proa_ps_client *) current;

static proa_status check_width(const char *who, int64_t table, bool dense, int64_t width)
{
    int64_t found = proa__ps_width(current, who, (int)table, dense);
    if (!found) return proa_error();
    if (found == width) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: width is %lld; table %lld has %lld values%s", who,
                     (long long)width, (long long)table, (long long)found, dense ? "" : " a row");
}

static proa_status pull(int64_t table, const int64_t *ids, int64_t n, int64_t width, bool test, float *out)
{
    PROA_TRY(check_width("distributed_lookup_table", table, false, width));
    return proa_ps_pull(current, (int)table, ids, n, test, out);
}

static proa_status push(int64_t table, const int64_t *ids, const float *grads, int64_t n, int64_t width,
                        double lr)
{
    PROA_TRY(check_width("distributed_push_sparse", table, false, width));
    return proa_ps_push(current, (int)table, ids, grads, n, lr);
}

static proa_status pull_dense(int64_t table, float *out, int64_t n)
{
    PROA_TRY(check_width("ps_recv", table, true, n));
    return proa_ps_pull_dense(current, (int)table, out);
}

static proa_status push_dense(int64_t table, const float *grads, int64_t n, double lr)
{
    PROA_TRY(check_width("ps_send", table, true, n));
    return proa_ps_push_dense(current, (int)table, grads, lr);
}

static proa_status step(void) { return proa_ps_step(current); }

static const proa__ps_calls calls = {pull, push, pull_dense, push_dense, step};

void proa__ps_replace(proa_ps_client *from, proa_ps_client *to)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (current == from) {
        current = to;
        proa__ps = to ? &calls : NULL;
    }
    pthread_mutex_unlock(&lock);
}
