/* A small hash map for programs and states: names or addresses to pointers. May use core. */
#ifndef PROA_JIT_MAP_H
#define PROA_JIT_MAP_H

#include <proa/core.h>

typedef struct proa__map_entry {
    const void *key; /* NULL: free */
    void *value;
} proa__map_entry;

typedef struct proa__map {
    proa__map_entry *entries; /* room is a power of two, at most half full */
    uint32_t room, count;
    bool by_text; /* keys are strings, owned by the values; otherwise addresses */
} proa__map;

/* NULL if there is none. */
void *proa__map_find(const proa__map *m, const void *key);
/* Adds or replaces. */
proa_status proa__map_put(proa__map *m, const void *key, void *value);
/* Removes a key, if it is there. */
void proa__map_drop(proa__map *m, const void *key);
/* Forgets everything but keeps the table: putting as many entries again cannot fail. */
void proa__map_wipe(proa__map *m);
/* Forgets everything and frees the table; by_text stays. */
void proa__map_clear(proa__map *m);

#endif
