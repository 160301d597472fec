/* A small hash map for programs and states: names or addresses to pointers. May use core. */
#ifndef PROA_CORE_HASH_MAP_H
#define PROA_CORE_HASH_MAP_H

#include <proa/core.h>

typedef struct proa__hash_map_entry {
    const void *key; /* NULL: free */
    void *value;
} proa__hash_map_entry;

typedef struct proa__hash_map {
    proa__hash_map_entry *entries; /* room is a power of two, at most half full */
    uint32_t room, count;
    bool by_text; /* keys are strings, owned by the values; otherwise addresses */
} proa__hash_map;

/* NULL if there is none. */
void *proa__hash_map_find(const proa__hash_map *m, const void *key);
/* Adds or replaces. */
proa_status proa__hash_map_put(proa__hash_map *m, const void *key, void *value);
/* Removes a key, if it is there. */
void proa__hash_map_drop(proa__hash_map *m, const void *key);
/* Forgets everything but keeps the table: putting as many entries again cannot fail. */
void proa__hash_map_wipe(proa__hash_map *m);
/* Forgets everything and frees the table; by_text stays. */
void proa__hash_map_clear(proa__hash_map *m);

#endif
