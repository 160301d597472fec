/* Collectives in Paddle's programs: one op name per reduction; an average is written as a sum and a scale.
 * The number of ranks is written as it is when the program is saved. May use core, proa/wire.h and public
 * ops. */
#include "impl/collective.h"
#include "impl/shape.h"

#include <proa/wire.h>

#include "ops/collective/group.h"

/* ---- reading --------------------------------------------------------------------------- */

static int64_t ring_of(proa_wire_reader *r) { return proa_wire_int(r, "ring_id", 0); }

static proa_status read_reduce(proa_wire_reader *r, proa_reduce_type op)
{
    proa_tensor *x = proa_wire_input(r, "X");
    return x ? proa_wire_result(r, "Out", proa_all_reduce(x, .op = op, .group = ring_of(r))) : proa_error();
}

proa_status all_reduce_sum_read(proa_wire_reader *r) { return read_reduce(r, PROA_REDUCE_TYPE_SUM); }
proa_status all_reduce_max_read(proa_wire_reader *r) { return read_reduce(r, PROA_REDUCE_TYPE_MAX); }
proa_status all_reduce_min_read(proa_wire_reader *r) { return read_reduce(r, PROA_REDUCE_TYPE_MIN); }
proa_status all_reduce_prod_read(proa_wire_reader *r) { return read_reduce(r, PROA_REDUCE_TYPE_PROD); }

static proa_status read_reduce_to(proa_wire_reader *r, proa_reduce_type op)
{
    proa_tensor *x = proa_wire_input(r, "X");
    int64_t dst = rows_option(proa_wire_int(r, "root_id", 0));
    return x ? proa_wire_result(r, "Out", proa_reduce_to(x, .dst = dst, .op = op, .group = ring_of(r)))
             : proa_error();
}

proa_status reduce_to_sum_read(proa_wire_reader *r) { return read_reduce_to(r, PROA_REDUCE_TYPE_SUM); }
proa_status reduce_to_max_read(proa_wire_reader *r) { return read_reduce_to(r, PROA_REDUCE_TYPE_MAX); }
proa_status reduce_to_min_read(proa_wire_reader *r) { return read_reduce_to(r, PROA_REDUCE_TYPE_MIN); }
proa_status reduce_to_prod_read(proa_wire_reader *r) { return read_reduce_to(r, PROA_REDUCE_TYPE_PROD); }

proa_status reduce_scatter_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    if (!x) return proa_error();
    return proa_wire_result(
        r, "Out", proa_reduce_scatter(x, .group = ring_of(r), .nranks = proa_wire_int(r, "nranks", 1)));
}

/* Ops happen in the order of the program, so that nothing waits for a stream. */
proa_status sync_stream_read(proa_wire_reader *r)
{
    return proa_wire_results(r, "Out", proa_wire_inputs(r, "X"));
}

/* Part `id` of `num` equal parts of a tensor's elements. */
static proa_tensor *part_of(proa_tensor *x, int64_t num, int64_t id)
{
    if (num < 1 || id < 0 || id >= num || x->numel % num) {
        proa_fail(PROA_ERR_CORRUPT, "partial_*: part %lld of %lld of a tensor of %lld elements",
                  (long long)id, (long long)num, (long long)x->numel);
        return NULL;
    }
    return proa_slice(proa_reshape(x, PROA_INTS(-1)), PROA_INTS(0), PROA_INTS(id * (x->numel / num)),
                      PROA_INTS((id + 1) * (x->numel / num)));
}

proa_status partial_send_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    if (x) x = part_of(x, proa_wire_int(r, "num", 1), proa_wire_int(r, "id", 0));
    if (x) proa_p2p_send(x, proa_wire_int(r, "peer", 0), .group = ring_of(r));
    return proa_error();
}

proa_status partial_recv_read(proa_wire_reader *r)
{
    proa_ints shape = proa_wire_ints(r, "out_shape");
    int64_t num = proa_wire_int(r, "num", 1), id = proa_wire_int(r, "id", 0), n = 1;
    for (int64_t i = 0; i < shape.count; i++) n *= shape.at[i];
    if (num < 1 || id < 0 || id >= num || n < 0 || n % num)
        return proa_fail(PROA_ERR_CORRUPT, "partial_recv: part %lld of %lld of %lld elements", (long long)id,
                         (long long)num, (long long)n);
    proa_tensor *got = proa_p2p_recv(proa_wire_int(r, "peer", 0), PROA_INTS(n / num),
                                     .dtype = proa_wire_dtype(r, "dtype", PROA_F32), .group = ring_of(r));
    int64_t around[2] = {id * (n / num), (num - 1 - id) * (n / num)};
    got = proa_reshape(proa_pad(got, ((proa_ints){2, around, NULL, NULL})), shape);
    return proa_wire_result(r, "Out", got);
}

proa_status partial_all_gather_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    int64_t nranks = proa_wire_int(r, "nranks", 1), shape[PROA_MAX_DIMS];
    proa_tensor *part = x ? part_of(x, nranks, proa_wire_int(r, "rank", 0)) : NULL;
    if (!part) return proa_error();
    memcpy(shape, x->shape, sizeof shape);
    proa_tensor *all = proa_all_gather(part, .group = ring_of(r), .nranks = nranks);
    return proa_wire_result(r, "Out", proa_reshape(all, ((proa_ints){x->ndim, shape, NULL, NULL})));
}

/* ---- writing --------------------------------------------------------------------------- */

static proa_status write_one(proa_wire_writer *w, const char *type, proa_tensor *x, proa_tensor *out,
                             int64_t group)
{
    PROA_TRY(proa_wire_op(w, type));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(proa_wire_put_output(w, "Out", out));
    PROA_TRY(proa_wire_put_int(w, "ring_id", PROA_WIRE_INT, group));
    return proa_wire_put_int(w, "use_calc_stream", PROA_WIRE_BOOLEAN, 1);
}

static proa_status put_nranks(proa_wire_writer *w, const char *op, int64_t group, int64_t nranks)
{
    int64_t ranks = ranks_of(op, group, nranks);
    return ranks < 0 ? proa_error() : proa_wire_put_int(w, "nranks", PROA_WIRE_INT, ranks);
}

static proa_status put_rank(proa_wire_writer *w, const char *op, int64_t group, int64_t rank, int64_t nranks)
{
    rank = rank_in(op, group, rank);
    if (rank < 0) return proa_error();
    PROA_TRY(proa_wire_put_int(w, "rank", PROA_WIRE_INT, rank));
    return put_nranks(w, op, group, nranks);
}

/* Destination of an average's sum, before its division: a temporary like out; otherwise out itself. */
static proa_tensor *sum_of(proa_wire_writer *w, proa_tensor *out, proa_reduce_type op)
{
    proa_meta meta = proa_meta_of(out);
    return op == PROA_REDUCE_TYPE_AVG ? proa_wire_temporary(w, &meta) : out;
}

static proa_status write_division(proa_wire_writer *w, const char *name, proa_tensor *sum, proa_tensor *out,
                                  int64_t group, int64_t nranks)
{
    if (sum == out) return PROA_OK;
    int64_t ranks = ranks_of(name, group, nranks);
    if (ranks < 0) return proa_error();
    PROA_TRY(proa_wire_op(w, "scale"));
    PROA_TRY(proa_wire_put_input(w, "X", sum));
    PROA_TRY(proa_wire_put_output(w, "Out", out));
    PROA_TRY(proa_wire_put_float(w, "scale", 1.0 / (double)ranks));
    PROA_TRY(proa_wire_put_float(w, "bias", 0));
    return proa_wire_put_int(w, "bias_after_scale", PROA_WIRE_BOOLEAN, 1);
}

proa_status all_reduce_write(const void *args, proa_wire_writer *w)
{
    static const char *const types[] = {"c_allreduce_sum", "c_allreduce_max", "c_allreduce_min",
                                        "c_allreduce_prod", "c_allreduce_sum"};
    const proa_all_reduce_args *a = args;
    proa_tensor *sum = sum_of(w, a->out, a->op);
    if (!sum) return proa_error();
    PROA_TRY(write_one(w, types[a->op], a->x, sum, a->group));
    PROA_TRY(proa_wire_put_int(w, "use_model_parallel", PROA_WIRE_BOOLEAN, 0));
    return write_division(w, "all_reduce", sum, a->out, a->group, 0);
}

proa_status reduce_to_write(const void *args, proa_wire_writer *w)
{
    static const char *const types[] = {"c_reduce_sum", "c_reduce_max", "c_reduce_min", "c_reduce_prod"};
    const proa_reduce_to_args *a = args;
    if (a->op == PROA_REDUCE_TYPE_AVG)
        return ROWS_FAIL(
            reduce_to, UNSUPPORTED, "op",
            "is AVG: Paddle's format has no such op, and a division would change the other ranks' x");
    PROA_TRY(write_one(w, types[a->op], a->x, a->out, a->group));
    return proa_wire_put_int(w, "root_id", PROA_WIRE_INT, a->dst);
}

proa_status all_gather_write(const void *args, proa_wire_writer *w)
{
    const proa_all_gather_args *a = args;
    PROA_TRY(write_one(w, "c_allgather", a->x, a->out, a->group));
    return put_nranks(w, "all_gather", a->group, a->nranks);
}

proa_status reduce_scatter_write(const void *args, proa_wire_writer *w)
{
    const proa_reduce_scatter_args *a = args;
    if (a->op != PROA_REDUCE_TYPE_SUM && a->op != PROA_REDUCE_TYPE_AVG)
        return ROWS_FAIL(reduce_scatter, UNSUPPORTED, "op",
                         "is neither SUM nor AVG: Paddle's format has no such op");
    proa_tensor *sum = sum_of(w, a->out, a->op);
    if (!sum) return proa_error();
    PROA_TRY(write_one(w, "c_reducescatter", a->x, sum, a->group));
    PROA_TRY(put_nranks(w, "reduce_scatter", a->group, a->nranks));
    return write_division(w, "reduce_scatter", sum, a->out, a->group, a->nranks);
}

proa_status scatter_from_write(const void *args, proa_wire_writer *w)
{
    const proa_scatter_from_args *a = args;
    PROA_TRY(write_one(w, "c_scatter", a->x, a->out, a->group));
    PROA_TRY(proa_wire_put_int(w, "root", PROA_WIRE_INT, a->src));
    return put_nranks(w, "scatter_from", a->group, a->nranks);
}

proa_status mp_concat_write(const void *args, proa_wire_writer *w)
{
    const proa_mp_concat_args *a = args;
    PROA_TRY(write_one(w, "c_concat", a->x, a->out, a->group));
    PROA_TRY(proa_wire_put_int(w, "use_model_parallel", PROA_WIRE_BOOLEAN, 1));
    return put_rank(w, "mp_concat", a->group, a->rank, a->nranks);
}

proa_status mp_split_write(const void *args, proa_wire_writer *w)
{
    const proa_mp_split_args *a = args;
    PROA_TRY(write_one(w, "c_split", a->x, a->out, a->group));
    PROA_TRY(proa_wire_put_int(w, "use_model_parallel", PROA_WIRE_BOOLEAN, 1));
    return put_rank(w, "mp_split", a->group, a->rank, a->nranks);
}

static proa_status put_loss(proa_wire_writer *w, int64_t ignore_index, int64_t group, int64_t rank,
                            int64_t nranks)
{
    PROA_TRY(proa_wire_put_int(w, "ignore_index", PROA_WIRE_LONG, ignore_index));
    PROA_TRY(proa_wire_put_int(w, "ring_id", PROA_WIRE_INT, group));
    return put_rank(w, "mp_cross_entropy", group, nranks > 0 ? rank : -1, nranks);
}

proa_status mp_cross_entropy_write(const void *args, proa_wire_writer *w)
{
    const proa_mp_cross_entropy_args *a = args;
    PROA_TRY(proa_wire_op(w, "c_softmax_with_cross_entropy"));
    PROA_TRY(proa_wire_put_input(w, "Logits", a->logits));
    PROA_TRY(proa_wire_put_input(w, "Label", a->label));
    PROA_TRY(proa_wire_put_output(w, "Softmax", a->softmax));
    PROA_TRY(proa_wire_put_output(w, "Loss", a->loss));
    return put_loss(w, a->ignore_index, a->group, a->rank, a->nranks);
}

proa_status mp_cross_entropy_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_mp_cross_entropy_grad_args *a = args;
    PROA_TRY(proa_wire_op(w, "c_softmax_with_cross_entropy_grad"));
    PROA_TRY(proa_wire_put_input(w, "Softmax", a->softmax));
    PROA_TRY(proa_wire_put_input(w, "Label", a->label));
    PROA_TRY(proa_wire_put_input(w, "Loss@GRAD", a->d_loss));
    PROA_TRY(proa_wire_put_output(w, "Logits@GRAD", a->d_logits));
    return put_loss(w, a->ignore_index, a->group, a->rank, a->nranks);
}
