/* Creation of communication rings in Paddle's startup programs: the ops that make a ring's id (a variable
 * that is no tensor in Paddle) and the ops that join the ring by that id. May use core, proa/wire.h and
 * public ops. */
#include "impl/collective.h"

#include <proa/wire.h>

#include "ops/collective/group.h"

/* other_endpoints, joined by commas; in the scope. */
static const char *joined_endpoints(proa_wire_reader *r)
{
    size_t n = 1;
    const char *one;
    for (int64_t i = 0; (one = proa_wire_string_at(r, "other_endpoints", i)); i++) n += strlen(one) + 1;
    char *text = proa_scope_alloc(n), *to = text;
    if (!text) return NULL;
    *to = 0;
    for (int64_t i = 0; (one = proa_wire_string_at(r, "other_endpoints", i)); i++) {
        size_t length = strlen(one);
        if (i) *to++ = ',';
        memcpy(to, one, length + 1);
        to += length;
    }
    return text;
}

proa_status gen_ring_id_read(proa_wire_reader *r)
{
    const char *own = proa_wire_string(r, "endpoint", ""), *others = joined_endpoints(r);
    if (!own || !others) return proa_error();
    return proa_wire_result(r, "Out",
                            proa_gen_ring_id(own, others, .rank = proa_wire_int(r, "rank", 0),
                                             .group = proa_wire_int(r, "ring_id", 0)));
}

proa_status gen_ring_id_write(const void *args, proa_wire_writer *w)
{
    const proa_gen_ring_id_args *a = args;
    PROA_TRY(proa_wire_op(w, "c_gen_nccl_id"));
    PROA_TRY(proa_wire_put_output_raw(w, "Out", a->id));
    PROA_TRY(proa_wire_put_string(w, "endpoint", a->endpoint));
    PROA_TRY(proa_wire_put_strings(w, "other_endpoints", a->other_endpoints));
    PROA_TRY(proa_wire_put_int(w, "rank", PROA_WIRE_INT, a->rank));
    return proa_wire_put_int(w, "ring_id", PROA_WIRE_INT, a->group);
}

proa_status init_ring_read(proa_wire_reader *r)
{
    proa_tensor *id = proa_wire_input(r, "X");
    const char *endpoints = proa_wire_string(r, "endpoints", "");
    if (!id || !endpoints) return proa_error();
    proa_init_ring(id, .nranks = proa_wire_int(r, "nranks", 0), .rank = proa_wire_int(r, "rank", 0),
                   .group = proa_wire_int(r, "ring_id", 0), .endpoints = endpoints);
    return proa_error();
}

proa_status init_ring_all_read(proa_wire_reader *r)
{
    proa_init_ring(PROA_NONE, .group = proa_wire_int(r, "ring_id", 0));
    return proa_error();
}

proa_status init_ring_write(const void *args, proa_wire_writer *w)
{
    const proa_init_ring_args *a = args;
    PROA_TRY(proa_wire_op(w, a->nranks > 0 ? "c_comm_init" : "c_comm_init_all"));
    if (a->nranks > 0) {
        PROA_TRY(proa_wire_put_input(w, "X", a->id));
        PROA_TRY(proa_wire_put_int(w, "nranks", PROA_WIRE_INT, a->nranks));
        PROA_TRY(proa_wire_put_int(w, "rank", PROA_WIRE_INT, a->rank));
        PROA_TRY(proa_wire_put_string(w, "endpoints", a->endpoints));
    }
    return proa_wire_put_int(w, "ring_id", PROA_WIRE_INT, a->group);
}
