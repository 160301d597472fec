/* Reads and writes NumPy's .npy files:
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. A file whose size does not fit the
 * header is an error. Uses cli.h. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *code; /* type code without the byte order */
    proa_dtype dtype;
} codes[] = {{"b1", PROA_BOOL}, {"u1", PROA_U8},  {"i1", PROA_I8},   {"i2", PROA_I16},
             {"i4", PROA_I32},  {"i8", PROA_I64}, {"f2", PROA_F16},  {"f4", PROA_F32},
             {"f8", PROA_F64},  {"c8", PROA_C64}, {"c16", PROA_C128}};
enum { CODES = sizeof codes / sizeof codes[0], ALIGN = 64 };

typedef struct header {
    proa_dtype dtype;
    bool swap, fortran;
    int ndim;
    int64_t shape[PROA_MAX_DIMS];
} header;

/* ---- reading --------------------------------------------------------------------------- */

static proa_status damaged(const char *name, const char *what)
{
    return proa_fail(PROA_ERR_CORRUPT, "'%s' is not a whole .npy file: %s", name, what);
}

/* The value of 'key' in the header; NULL if the key is missing. */
static const char *entry(const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *s = text; (s = strstr(s, key)) != NULL; s += n)
        if (s > text && (s[-1] == '\'' || s[-1] == '"') && s[n] == s[-1]) {
            s += n + 1;
            s += strspn(s, " ");
            return *s == ':' ? s + 1 + strspn(s + 1, " ") : NULL;
        }
    return NULL;
}

static proa_status parse_dtype(const char *s, const char *name, header *h)
{
    char code[16] = "";
    size_t n = s && (*s == '\'' || *s == '"') ? strcspn(s + 1, "'\"") : 0;
    if (n == 0 || n >= sizeof code)
        return proa_fail(PROA_ERR_WRONG_TYPE, "'%s': its elements are no plain numbers", name);
    memcpy(code, s + 1, n);
    bool order = strchr("<>|=", code[0]) != NULL;
    h->swap = code[0] == '>';
    for (int i = 0; i < CODES; i++)
        if (strcmp(code + order, codes[i].code) == 0) h->dtype = codes[i].dtype;
    if (h->dtype) return PROA_OK;
    return proa_fail(PROA_ERR_WRONG_TYPE,
                     "'%s': dtype '%s' is none of Proa's; convert it with numpy.ndarray.astype", name, code);
}

static proa_status parse_shape(const char *s, const char *name, header *h)
{
    if (!s || *s++ != '(') return damaged(name, "its header has no shape");
    for (s += strspn(s, " "); *s != ')'; s += strspn(s, " ")) {
        char *end;
        if (*s < '0' || *s > '9') return damaged(name, "its shape is no list of lengths");
        long long v = strtoll(s, &end, 10); /* LLONG_MAX if too large: rejected as a size below */
        if (h->ndim == PROA_MAX_DIMS)
            return proa_fail(PROA_ERR_UNSUPPORTED, "'%s' has more than %d dims", name, PROA_MAX_DIMS);
        h->shape[h->ndim++] = v;
        s = end + (*end == 'L') + strspn(end + (*end == 'L'), " ");
        if (*s == ',') s++;
        else if (*s != ')') return damaged(name, "its shape is no list of lengths");
    }
    return PROA_OK;
}

static proa_status parse_header(const unsigned char *data, size_t bytes, const char *name, header *h,
                                size_t *start)
{
    if (bytes < 10 || memcmp(data, "\x93NUMPY", 6) != 0) return damaged(name, "it does not begin as one");
    int version = data[6];
    if (version < 1 || version > 3) return damaged(name, "its format version is not 1, 2 or 3");
    size_t at = version == 1 ? 10 : 12;
    if (bytes < at) return damaged(name, "it ends in its header");
    size_t length = (size_t)data[8] | (size_t)data[9] << 8;
    if (version > 1) length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    if (length > bytes - at) return damaged(name, "it ends in its header");
    char *text = cli_alloc(length + 1);
    if (!text) return proa_error();
    memcpy(text, data + at, length);
    *start = at + length;
    PROA_TRY(parse_dtype(entry(text, "descr"), name, h));
    const char *order = entry(text, "fortran_order");
    if (!order || (strncmp(order, "True", 4) != 0 && strncmp(order, "False", 5) != 0))
        return damaged(name, "its header does not say the order of its elements");
    h->fortran = *order == 'T';
    return parse_shape(entry(text, "shape"), name, h);
}

/* Reverses the bytes of each number; a complex element is two numbers. */
static void swap_bytes(unsigned char *data, size_t bytes, proa_dtype dtype)
{
    size_t n = proa_dtype_size(dtype);
    if (dtype == PROA_C64 || dtype == PROA_C128) n /= 2;
    for (; bytes >= n; data += n, bytes -= n)
        for (size_t i = 0; i < n / 2; i++) {
            unsigned char t = data[i];
            data[i] = data[n - 1 - i];
            data[n - 1 - i] = t;
        }
}

static proa_tensor *from_fortran(proa_tensor *t, int n)
{
    int64_t perm[PROA_MAX_DIMS];
    for (int i = 0; i < n; i++) perm[i] = n - 1 - i;
    return cli_npy_layout(proa_transpose(t, ((proa_ints){.count = n, .at = perm})));
}

proa_tensor *cli_npy_parse(const unsigned char *data, size_t bytes, const char *name)
{
    header h = {0};
    size_t start = 0, elements = 1, item;
    if (parse_header(data, bytes, name, &h, &start) != PROA_OK) return NULL;
    item = proa_dtype_size(h.dtype);
    bool empty = false;
    for (int i = 0; i < h.ndim; i++) empty = empty || h.shape[i] == 0;
    for (int i = 0; i < h.ndim && !empty; i++) {
        if ((uint64_t)h.shape[i] > (bytes - start) / item / elements) {
            proa_fail(PROA_ERR_CORRUPT,
                      "'%s' is cut off: its shape needs more than the %zu bytes that it has", name,
                      bytes - start);
            return NULL;
        }
        elements *= (size_t)h.shape[i];
    }
    if (empty) elements = 0;
    if (elements * item > bytes - start) {
        proa_fail(PROA_ERR_CORRUPT, "'%s' is cut off: it has %zu bytes of data, expected %zu", name,
                  bytes - start, elements * item);
        return NULL;
    }
    if (elements * item < bytes - start) {
        proa_fail(PROA_ERR_CORRUPT, "'%s' has %zu bytes of data, more than the %zu of its shape", name,
                  bytes - start, elements * item);
        return NULL;
    }
    int64_t reversed[PROA_MAX_DIMS];
    for (int i = 0; i < h.ndim; i++) reversed[i] = h.shape[h.fortran ? h.ndim - 1 - i : i];
    proa_tensor *t = proa_empty((proa_ints){.count = h.ndim, .at = reversed}, h.dtype);
    if (!t || elements == 0) return t && h.fortran ? from_fortran(t, h.ndim) : t;
    unsigned char *to = proa_data(t);
    memcpy(to, data + start, elements * item);
    if (h.swap) swap_bytes(to, elements * item, h.dtype);
    if (h.dtype == PROA_BOOL)
        for (size_t i = 0; i < elements; i++) to[i] = to[i] != 0;
    return h.fortran ? from_fortran(t, h.ndim) : t;
}

proa_tensor *cli_npy_load(const char *path)
{
    size_t bytes = 0;
    unsigned char *data = cli_read(path, &bytes);
    return data ? cli_npy_parse(data, bytes, path) : NULL;
}

/* ---- writing --------------------------------------------------------------------------- */

proa_tensor *cli_npy_layout(proa_tensor *t)
{
    if (!t) return NULL;
    if (proa_is_rows(t)) t = proa_rows_to_dense(t);
    if (t && proa_dtype_of(t) == PROA_BF16) t = proa_cast(t, PROA_F32);
    return t && !proa_is_contiguous(t) ? proa_assign(t) : t;
}

char *cli_npy_header(proa_tensor *t, size_t *bytes)
{
    const char *code = "";
    for (int i = 0; i < CODES; i++)
        if (codes[i].dtype == proa_dtype_of(t)) code = codes[i].code;
    char shape[24 * PROA_MAX_DIMS + 1] = "";
    size_t at = 0;
    for (int i = 0; i < proa_ndim(t); i++)
        at += (size_t)snprintf(shape + at, sizeof shape - at, i ? " %lld," : "%lld,",
                               (long long)proa_shape_of(t)[i]);
    if (proa_ndim(t) > 1) shape[at - 1] = 0; /* drop the last comma: (2, 3), though (3,) */
    bool bytewise = proa_dtype_size(proa_dtype_of(t)) == 1;
    char *text = cli_format("..........{'descr': '%c%s', 'fortran_order': False, 'shape': (%s), }%*s",
                            bytewise ? '|' : '<', code, shape, ALIGN, "");
    if (!text) return NULL;
    size_t n = (size_t)(strchr(text, '}') + 1 - text);
    *bytes = (n + ALIGN) / ALIGN * ALIGN;
    text[*bytes - 1] = '\n';
    memcpy(text, "\x93NUMPY\x01", 8);
    text[8] = (char)((*bytes - 10) & 255);
    text[9] = (char)((*bytes - 10) >> 8);
    return text;
}

proa_status cli_npy_save(const char *path, proa_tensor *t)
{
    size_t bytes = 0;
    t = cli_npy_layout(t);
    char *head = t ? cli_npy_header(t, &bytes) : NULL;
    if (!head) return proa_error();
    size_t data = (size_t)proa_numel(t) * proa_dtype_size(proa_dtype_of(t));
    return cli_write(path, (cli_piece[]){{head, bytes}, {proa_data(t), data}}, 2);
}
