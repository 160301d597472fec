/* Rebinds imported functions of a loaded library to other implementations. Private to core. */
#ifndef PROA_CORE_RELINK_H
#define PROA_CORE_RELINK_H

#include <stdbool.h>
#include <stddef.h>

/* An imported function and its replacement; NULL: the import stays as it is. */
typedef struct proa__binding {
    const char *name;
    void (*function)(void);
} proa__binding;

/* Binds every import that the list names and that has one of the prefixes, in the shared library that
 * contains `function`. False, with nothing changed, where there is no such library, where it imports none
 * that has a replacement, where it imports a function with one of the prefixes that is not in the list, or
 * where `function` belongs to the program itself; false, too, where a page of its table cannot be made
 * writable. */
bool proa__relink(void (*function)(void), const proa__binding *bindings, size_t n,
                  const char *const *prefixes);

#endif
