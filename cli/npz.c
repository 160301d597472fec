/* Reads and writes NumPy's .npz files: zip archives of uncompressed .npy files. Sizes are read from the
 * archive's directory and held against the file; each entry's checksum is verified. Layout: PKWARE's APPNOTE.
 * Uses cli.h. */
#include "cli.h"

#include <string.h>

enum { LOCAL = 30, CENTRAL = 46, END = 22, END64 = 56, LOCATOR = 20, COMMENT_MAX = 65535 };

static uint64_t get(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes; i-- > 0;) v = v << 8 | p[i];
    return v;
}

static unsigned char *put(unsigned char *p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) *p++ = (unsigned char)(v >> 8 * i);
    return p;
}

/* Continues the zip format's CRC-32 (polynomial 0xEDB88320) `crc`, 0 at the beginning, by `data`. */
static uint32_t crc32(uint32_t crc, const void *data, size_t bytes)
{
    static uint32_t table[256];
    if (!table[1])
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int k = 0; k < 8; k++) c = c & 1 ? 0xEDB88320u ^ c >> 1 : c >> 1;
            table[i] = c;
        }
    const unsigned char *p = data;
    crc = ~crc;
    while (bytes--) crc = table[(crc ^ *p++) & 255] ^ crc >> 8;
    return ~crc;
}

/* ---- reading --------------------------------------------------------------------------- */

typedef struct archive {
    const char *path;
    const unsigned char *at;
    size_t bytes;
    uint64_t entries, directory, directory_bytes;
} archive;

typedef struct member {
    const char *name;
    uint64_t method, flags, crc, packed, size, local;
} member;

static proa_status damaged(const archive *z, const char *what)
{
    return proa_fail(PROA_ERR_CORRUPT, "'%s' is not a whole .npz file: %s", z->path, what);
}

static proa_status find_directory(archive *z)
{
    if (z->bytes < END) return damaged(z, "it is too short");
    size_t at = z->bytes - END, stop = at > COMMENT_MAX ? at - COMMENT_MAX : 0;
    while (memcmp(z->at + at, "PK\5\6", 4) != 0)
        if (at-- == stop) return damaged(z, "it has no archive directory (is it cut off?)");
    const unsigned char *end = z->at + at;
    z->entries = get(end + 10, 2);
    z->directory_bytes = get(end + 12, 4);
    z->directory = get(end + 16, 4);
    if (at >= LOCATOR && memcmp(end - LOCATOR, "PK\6\7", 4) == 0) {
        uint64_t where = get(end - LOCATOR + 8, 8);
        if (z->bytes < END64 || where > z->bytes - END64 || memcmp(z->at + where, "PK\6\6", 4) != 0)
            return damaged(z, "its 64-bit directory is damaged");
        z->entries = get(z->at + where + 32, 8);
        z->directory_bytes = get(z->at + where + 40, 8);
        z->directory = get(z->at + where + 48, 8);
    }
    if (z->directory > z->bytes || z->directory_bytes > z->bytes - z->directory)
        return damaged(z, "its directory is outside");
    if (z->entries > z->directory_bytes / CENTRAL) return damaged(z, "its directory is too short");
    return PROA_OK;
}

/* Reads zip64 sizes: those of size, packed size and offset that are 0xFFFFFFFF in the directory follow in
 * this order in extra field 1. */
static void read_extra(const unsigned char *extra, size_t bytes, member *m)
{
    for (size_t at = 0; bytes - at >= 4;) {
        size_t id = (size_t)get(extra + at, 2), n = (size_t)get(extra + at + 2, 2);
        if (n > bytes - at - 4) return;
        const unsigned char *p = extra + at + 4, *end = p + n;
        uint64_t *wide[] = {&m->size, &m->packed, &m->local};
        for (int i = 0; id == 1 && i < 3; i++)
            if (*wide[i] == UINT32_MAX && end - p >= 8) {
                *wide[i] = get(p, 8);
                p += 8;
            }
        at += 4 + n;
    }
}

static proa_status next_member(const archive *z, uint64_t *at, member *m)
{
    uint64_t left = z->directory + z->directory_bytes - *at;
    const unsigned char *p = z->at + *at;
    if (left < CENTRAL || memcmp(p, "PK\1\2", 4) != 0) return damaged(z, "its directory is damaged");
    uint64_t name = get(p + 28, 2), extra = get(p + 30, 2), comment = get(p + 32, 2);
    if (name + extra + comment > left - CENTRAL) return damaged(z, "its directory is damaged");
    *m = (member){.flags = get(p + 8, 2),
                  .method = get(p + 10, 2),
                  .crc = get(p + 16, 4),
                  .packed = get(p + 20, 4),
                  .size = get(p + 24, 4),
                  .local = get(p + 42, 4)};
    read_extra(p + CENTRAL + name, (size_t)extra, m);
    char *text = cli_format("%.*s", (int)name, (const char *)p + CENTRAL);
    if (!text) return proa_error();
    if (cli_ends_with(text, ".npy")) text[strlen(text) - 4] = 0;
    m->name = text;
    *at += CENTRAL + name + extra + comment;
    return PROA_OK;
}

static proa_tensor *read_member(const archive *z, const member *m)
{
    const char *name = cli_format("%s:%s", z->path, m->name);
    if (!name) return NULL;
    if (m->flags & 1 || m->method != 0) {
        proa_fail(PROA_ERR_UNSUPPORTED, "'%s' is %s: write it with numpy.savez, which stores", name,
                  m->flags & 1 ? "encrypted" : "compressed");
        return NULL;
    }
    const unsigned char *p = z->at + m->local;
    if (z->bytes < LOCAL || m->local > z->bytes - LOCAL || memcmp(p, "PK\3\4", 4) != 0) {
        damaged(z, "an entry does not begin where its directory says");
        return NULL;
    }
    uint64_t start = m->local + LOCAL + get(p + 26, 2) + get(p + 28, 2);
    if (m->packed != m->size || start > z->bytes || m->size > z->bytes - start) {
        damaged(z, "an entry extends beyond its end");
        return NULL;
    }
    if (crc32(0, z->at + start, (size_t)m->size) != m->crc) {
        proa_fail(PROA_ERR_CORRUPT, "'%s': its checksum does not fit its data", name);
        return NULL;
    }
    return cli_npy_parse(z->at + start, (size_t)m->size, name);
}

proa_status cli_npz_load(const char *path, cli_named **items, int64_t *n)
{
    archive z = {.path = path};
    z.at = cli_read(path, &z.bytes);
    if (!z.at) return proa_error();
    PROA_TRY(find_directory(&z));
    cli_named *list = cli_array((size_t)z.entries + 1, sizeof *list);
    if (!list) return proa_error();
    uint64_t at = z.directory;
    for (uint64_t i = 0; i < z.entries; i++) {
        member m;
        PROA_TRY(next_member(&z, &at, &m));
        list[i] = (cli_named){m.name, read_member(&z, &m)};
        if (!list[i].tensor) return proa_error();
    }
    *items = list;
    *n = (int64_t)z.entries;
    return PROA_OK;
}

/* ---- writing --------------------------------------------------------------------------- */

/* Writes the fields that local header and directory share, from "version needed" on; the date is 1 January
 * 1980. */
static unsigned char *put_common(unsigned char *p, uint32_t crc, uint64_t size, size_t name)
{
    p = put(p, 20, 2);    /* version */
    p = put(p, 0x800, 2); /* names are UTF-8 */
    p = put(p, 0, 2);     /* stored */
    p = put(put(p, 0, 2), 1 << 5 | 1, 2);
    p = put(p, crc, 4);
    p = put(put(p, size, 4), size, 4);
    p = put(p, name, 2);
    return put(p, 0, 2); /* extra */
}

proa_status cli_npz_save(const char *path, const cli_named *items, int64_t n)
{
    cli_piece *pieces = cli_array((size_t)n * 4 + 2, sizeof *pieces);
    size_t capacity = END;
    if (n >= UINT16_MAX) return proa_fail(PROA_ERR_OVERFLOW, "'%s': too many tensors for one archive", path);
    for (int64_t i = 0; i < n; i++) capacity += CENTRAL + strlen(items[i].name) + 4;
    unsigned char *directory = cli_alloc(capacity), *d = directory;
    if (!pieces || !directory) return proa_error();
    uint64_t at = 0;
    int64_t k = 0;
    for (int64_t i = 0; i < n; i++) {
        proa_tensor *t = cli_npy_layout(items[i].tensor);
        size_t head = 0;
        char *text = t ? cli_npy_header(t, &head) : NULL, *name = cli_format("%s.npy", items[i].name);
        unsigned char *local = cli_alloc(LOCAL);
        if (!text || !name || !local) return proa_error();
        size_t data = (size_t)proa_numel(t) * proa_dtype_size(proa_dtype_of(t)), length = strlen(name);
        if (at + head + data >= UINT32_MAX || length > UINT16_MAX)
            return proa_fail(PROA_ERR_OVERFLOW, "'%s' would be larger than 4 GiB: save .npy files (--output)",
                             path);
        uint32_t crc = crc32(crc32(0, text, head), proa_data(t), data);
        put_common(put(local, 0x04034B50, 4), crc, head + data, length);
        d = put_common(put(put(d, 0x02014B50, 4), 20, 2), crc, head + data, length);
        d = put(put(put(put(put(d, 0, 2), 0, 2), 0, 2), 0, 4), at, 4);
        memcpy(d, name, length);
        d += length;
        pieces[k++] = (cli_piece){local, LOCAL};
        pieces[k++] = (cli_piece){name, length};
        pieces[k++] = (cli_piece){text, head};
        pieces[k++] = (cli_piece){proa_data(t), data};
        at += LOCAL + length + head + data;
    }
    size_t bytes = (size_t)(d - directory);
    d = put(put(put(d, 0x06054B50, 4), 0, 2), 0, 2);
    d = put(put(put(put(put(d, (uint64_t)n, 2), (uint64_t)n, 2), bytes, 4), at, 4), 0, 2);
    pieces[k++] = (cli_piece){directory, (size_t)(d - directory)};
    return cli_write(path, pieces, k);
}
