/* Paddle's graph_send_uv, read as a composition of ops. May use core, the ops and proa/wire.h. */
#include "core/internal.h"
#include "core/tensor.h"
#include "impl/elementwise.h"
#include "impl/index.h"

#include <proa/wire.h>

proa_status gather_read_graph_send_uv(proa_wire_reader *r)
{
    proa_tensor *x = proa_gather(proa_wire_input(r, "x"), proa_wire_input(r, "src_index"));
    proa_tensor *y = proa_gather(proa_wire_input(r, "y"), proa_wire_input(r, "dst_index"));
    bool product = strcmp(proa_wire_string(r, "message_op", "ADD"), "MUL") == 0;
    return proa_wire_result(r, "out", product ? proa_multiply(x, y) : proa_add(x, y));
}
