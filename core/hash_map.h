/* A small hash map from strings or addresses to pointers, for programs and checkpoint states. May use
 * core. */
#ifndef PROA_CORE_HASH_MAP_H
#define PROA_CORE_HASH_MAP_H

#include <proa/core.h>

typedef struct proa__hash_map_entry {
    const void *key; /* NULL: free */
    void *value;
} proa__hash_map_entry;

typedef struct proa__hash_map {
    proa__hash_map_entry *entries; /* the capacity is a power of two, at most half of it is used */
    uint32_t capacity, count;
    bool by_text; /* keys are strings, owned by the values; otherwise addresses */
} proa__hash_map;

/* The value of key; NULL if the map does not have the key. */
void *proa__hash_map_find(const proa__hash_map *m, const void *key);
/* Adds a key, or replaces its value. */
proa_status proa__hash_map_put(proa__hash_map *m, const void *key, void *value);
/* Removes a key; does nothing if it is not there. */
void proa__hash_map_drop(proa__hash_map *m, const void *key);
/* Removes all keys but keeps the table: putting as many again cannot fail. */
void proa__hash_map_wipe(proa__hash_map *m);
/* Removes all keys and frees the table; by_text stays as it was. */
void proa__hash_map_clear(proa__hash_map *m);

#endif
