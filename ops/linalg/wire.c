/* Paddle's linear algebra ops that are read as compositions: multi_dot, frobenius_norm, norm, dist. May use
 * core, the ops and proa/wire.h. */
#include "core/internal.h"
#include "core/tensor.h"
#include "impl/elementwise.h"
#include "impl/matmul.h"
#include "impl/reduce.h"

#include <proa/wire.h>

/* ---- multi_dot ------------------------------------------------------------------------------ */

enum { CHAIN_MAX = 64 };

/* A chain of matrices: dims[i] × dims[i + 1] each, cut[i][j] where the product of i to j is split. */
typedef struct chain {
    proa_tensor **at;
    double dims[CHAIN_MAX + 1], cost[CHAIN_MAX][CHAIN_MAX];
    int cut[CHAIN_MAX][CHAIN_MAX];
} chain;

/* The cheapest way to set the brackets (Cormen et al., Introduction to Algorithms, 15.2). */
static void plan_chain(chain *c, int n)
{
    for (int width = 1; width < n; width++)
        for (int i = 0; i + width < n; i++) {
            int j = i + width;
            c->cost[i][j] = -1;
            for (int k = i; k < j; k++) {
                double own = c->dims[i] * c->dims[k + 1] * c->dims[j + 1];
                double cost = c->cost[i][k] + c->cost[k + 1][j] + own;
                if (c->cost[i][j] >= 0 && cost >= c->cost[i][j]) continue;
                c->cost[i][j] = cost, c->cut[i][j] = k;
            }
        }
}

static proa_tensor *chain_product(const chain *c, int i, int j)
{
    if (i == j) return c->at[i];
    return proa_matmul(chain_product(c, i, c->cut[i][j]), chain_product(c, c->cut[i][j] + 1, j));
}

/* The first and the last may be vectors: matmul takes them as a row and a column. */
proa_status matmul_read_multi_dot(proa_wire_reader *r)
{
    proa_tensors x = proa_wire_inputs(r, "X");
    if (x.count < 2 || x.count > CHAIN_MAX)
        return proa_fail(PROA_ERR_UNSUPPORTED, "multi_dot: has %lld inputs; expected 2 to %d",
                         (long long)x.count, CHAIN_MAX);
    chain *c = proa__calloc(sizeof *c);
    if (!c) return proa_error();
    int n = (int)x.count;
    c->at = x.at;
    for (int i = 0; i < n; i++) {
        const proa_tensor *t = x.at[i];
        int64_t rows = t->ndim == 2 ? t->shape[0] : 1,
                columns = t->ndim == 2 || i == 0 ? t->shape[t->ndim - 1] : 1;
        c->dims[i] = rows < 0 ? 64 : (double)rows;
        c->dims[i + 1] = columns < 0 ? 64 : (double)columns;
    }
    plan_chain(c, n);
    proa_tensor *out = chain_product(c, 0, n - 1);
    proa__free(c);
    return proa_wire_result(r, "Out", out);
}

/* ---- norms -------------------------------------------------------------------------------------- */

proa_status p_norm_read_frobenius(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    bool all = proa_wire_int(r, "reduce_all", 0) != 0, keep = proa_wire_int(r, "keep_dim", 0) != 0;
    proa_ints axes = all ? (proa_ints){0} : proa_wire_ints(r, "dim");
    if (!all && axes.count == 0) axes = PROA_INTS(0);
    return proa_wire_result(r, "Out", proa_sqrt(proa_sum(proa_square(x), .axis = axes, .keepdim = keep)));
}

/* x over its Euclidean norm along an axis. */
proa_status p_norm_read_norm(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    proa_tensor *sum =
        proa_sum(proa_square(x), .axis = PROA_INTS(proa_wire_int(r, "axis", -1)), .keepdim = true);
    proa_tensor *norm = proa_sqrt(proa_scale(sum, .bias = proa_wire_float(r, "epsilon", 1e-10)));
    PROA_TRY(proa_wire_result(r, "Norm", norm));
    return proa_wire_result(r, "Out", proa_divide(x, norm));
}

proa_status p_norm_read_dist(proa_wire_reader *r)
{
    double p = proa_wire_float(r, "p", 2);
    proa_tensor *away = proa_subtract(proa_wire_input(r, "X"), proa_wire_input(r, "Y"));
    return proa_wire_result(r, "Out",
                            proa_p_norm(away, .porder = p == 0 ? (double)PROA_ZERO : p, .asvector = true));
}
