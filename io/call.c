/* Executes one op given in Paddle's format (type, slots, attributes) eagerly on tensors: the reader of
 * program files calls it, without a program. May use core and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/program_read.h"

typedef struct calling {
    proa__load load;
    pb_program pb;
    pb_block empty;
    pb_block *blocks[1];
    proa__level level;
    pb_op op;
} calling;

static void prepare(calling *at)
{
    paddle__framework__proto__program_desc__init(&at->pb);
    paddle__framework__proto__block_desc__init(&at->empty);
    at->empty.parent_idx = -1;
    at->blocks[0] = &at->empty;
    at->pb.n_blocks = 1;
    at->pb.blocks = at->blocks;
    at->level = (proa__level){.pb = &at->empty, .names = {.by_text = true}};
    at->load.pb = &at->pb;
    at->load.levels = &at->level;
    at->load.door = PROA_DOOR_CONVERT;
}

static proa_status call(calling *at, const proa_op_desc *desc, proa_named_tensor *named, int64_t n)
{
    PROA_TRY(proa__forms_shared(&at->load.forms));
    if (proa__reads_control(desc->type) || !proa__forms_next(&at->load.forms, NULL, desc->type))
        return proa_fail(PROA_ERR_UNSUPPORTED, "no op of this type can be called");
    PROA_TRY(proa__op_from_desc(&at->load.arena, desc, &at->op));
    for (int64_t i = 0; i < n; i++)
        if (named[i].tensor) PROA_TRY(proa__hash_map_put(&at->level.names, named[i].name, named[i].tensor));
    at->level.forwards.arena = &at->load.arena;
    proa_wire_reader r = {&proa__reader_table, &at->load, &at->level, &at->op, 0, 0};
    PROA_TRY(proa__read_op(&r));
    for (int64_t i = 0; i < n; i++) {
        proa_tensor *made = proa__hash_map_find(&at->level.names, named[i].name);
        if (made) named[i].tensor = made;
    }
    return PROA_OK;
}

proa_status proa_op_call(const proa_op_desc *op, proa_named_tensor *named, int64_t n_named)
{
    PROA_TRY(proa_error());
    if (!op || !op->type || n_named < 0 || (n_named > 0 && !named))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "op_call: needs an op and its tensors");
    calling at = {0};
    prepare(&at);
    proa_status status = call(&at, op, named, n_named);
    if (status != PROA_OK) {
        char text[1500];
        proa_status code = proa_error();
        snprintf(text, sizeof text, "%s", proa_error_message());
        proa_clear_error();
        status = proa_fail(code, "%s: %s", op->type, text);
    }
    proa__hash_map_clear(&at.level.names);
    proa__arena_free(&at.load.arena);
    return status;
}

bool proa_op_type_is_known(const char *type)
{
    proa__forms forms;
    return type && proa__forms_shared(&forms) == PROA_OK && proa__forms_next(&forms, NULL, type);
}

bool proa_op_type_has_gradient(const char *type)
{
    proa__forms forms;
    if (!type || proa__forms_shared(&forms) != PROA_OK) return false;
    const proa__form *form = proa__forms_next(&forms, NULL, type);
    return form && (form->op ? form->op->vjp != NULL : !form->wire->no_gradient);
}

#else
typedef int proa__no_call; /* C wants a declaration in every file */
#endif
