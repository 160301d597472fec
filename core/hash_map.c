/* Hash map with open addressing and linear probing; see hash_map.h. May use core. */
#include "hash_map.h"

#include "core/internal.h"

static uint64_t hash_of(const proa__hash_map *m, const void *key)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    if (m->by_text) {
        for (const unsigned char *c = key; *c; c++) h = (h ^ *c) * UINT64_C(0x100000001b3);
    } else {
        h = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);
    }
    return h ^ (h >> 29);
}

static bool same_key(const proa__hash_map *m, const void *a, const void *b)
{
    return a == b || (m->by_text && strcmp(a, b) == 0);
}

/* The entry of key, or the free entry where it would be inserted. */
static proa__hash_map_entry *place(const proa__hash_map *m, const void *key)
{
    uint32_t mask = m->capacity - 1;
    uint32_t i = (uint32_t)hash_of(m, key) & mask;
    while (m->entries[i].key && !same_key(m, m->entries[i].key, key)) i = (i + 1) & mask;
    return &m->entries[i];
}

void *proa__hash_map_find(const proa__hash_map *m, const void *key)
{
    if (!m->capacity || !key) return NULL;
    return place(m, key)->value;
}

static proa_status grow(proa__hash_map *m)
{
    if (m->capacity > UINT32_MAX / 4)
        return proa_fail(PROA_ERR_OVERFLOW, "a map of more than %u entries", m->capacity / 2);
    proa__hash_map bigger = {NULL, m->capacity ? m->capacity * 2 : 16, m->count, m->by_text};
    bigger.entries = proa__calloc(bigger.capacity * sizeof *bigger.entries);
    if (!bigger.entries) return proa_error();
    for (uint32_t i = 0; i < m->capacity; i++)
        if (m->entries[i].key) *place(&bigger, m->entries[i].key) = m->entries[i];
    proa__free(m->entries);
    *m = bigger;
    return PROA_OK;
}

proa_status proa__hash_map_put(proa__hash_map *m, const void *key, void *value)
{
    proa__hash_map_entry *e = m->capacity ? place(m, key) : NULL;
    if ((!e || !e->key) && m->count * 2 >= m->capacity) {
        PROA_TRY(grow(m));
        e = place(m, key);
    }
    if (!e->key) m->count++;
    *e = (proa__hash_map_entry){key, value};
    return PROA_OK;
}

void proa__hash_map_drop(proa__hash_map *m, const void *key)
{
    proa__hash_map_entry *e = m->capacity ? place(m, key) : NULL;
    if (!e || !e->key) return;
    m->count--;
    uint32_t mask = m->capacity - 1, hole = (uint32_t)(e - m->entries);
    for (uint32_t i = (hole + 1) & mask; m->entries[i].key; i = (i + 1) & mask) {
        uint32_t home = (uint32_t)hash_of(m, m->entries[i].key) & mask;
        if (((i - home) & mask) < ((i - hole) & mask)) continue; /* never before its home slot */
        m->entries[hole] = m->entries[i];
        hole = i;
    }
    m->entries[hole] = (proa__hash_map_entry){NULL, NULL};
}

void proa__hash_map_wipe(proa__hash_map *m)
{
    if (m->capacity) memset(m->entries, 0, m->capacity * sizeof *m->entries);
    m->count = 0;
}

void proa__hash_map_clear(proa__hash_map *m)
{
    proa__free(m->entries);
    *m = (proa__hash_map){NULL, 0, 0, m->by_text};
}
