/* Binds the imported functions of a loaded library to others. Private to core. */
#ifndef PROA_CORE_RELINK_H
#define PROA_CORE_RELINK_H

#include <stdbool.h>
#include <stddef.h>

/* An imported function and what takes its place; NULL: it stays as it is. */
typedef struct proa__binding {
    const char *name;
    void (*function)(void);
} proa__binding;

/* In the shared library that holds `function`, binds every import of the list. False, and nothing is
 * changed, where there is none, where it imports a name with one of the prefixes that the list lacks, or
 * where `function` belongs to the program itself. */
bool proa__relink(void (*function)(void), const proa__binding *bindings, size_t n,
                  const char *const *prefixes);

#endif
