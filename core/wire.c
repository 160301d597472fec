/* Public functions of wire readers and writers (Paddle's serialized ops): each calls through the function
 * table of its reader or writer. May use core only. */
#include "core/wire_table.h"

static const proa__wire_reader_table *reader_table(const proa_wire_reader *r)
{
    return *(const proa__wire_reader_table *const *)(const void *)r;
}

static const proa__wire_writer_table *writer_table(const proa_wire_writer *w)
{
    return *(const proa__wire_writer_table *const *)(const void *)w;
}

#define READ(result, name, parameters, arguments) \
    result proa_wire_##name parameters { return reader_table(r)->name##_ arguments; }
PROA__WIRE_READER(READ)

#define WRITE(result, name, parameters, arguments) \
    result proa_wire_##name parameters { return writer_table(w)->name##_ arguments; }
PROA__WIRE_WRITER(WRITE)
