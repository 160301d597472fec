/* Reads CSV files of numbers into datasets of float32 rows and, optionally, a label column. Core and io's own
 * headers. */
#include "io/dataset.h"
#include "io/file.h"

#include "core/device.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { FIELD_MAX = 64, COLUMNS_MAX = 1 << 20 };

typedef struct csv {
    const char *at, *end;
    char separator;
    int64_t line, columns, label; /* label: column of y, −1: none */
    double scale;
    float *x;
    double *y; /* labels as doubles: exact for integers up to 2^53 */
    int64_t rows, rows_capacity;
} csv;

/* Pointer to the current line's newline, or to the end of the text. */
static const char *line_end(const csv *c)
{
    const char *e = c->at < c->end ? memchr(c->at, '\n', (size_t)(c->end - c->at)) : NULL;
    return e ? e : c->end;
}

static int64_t count_columns(const csv *c, const char *end)
{
    int64_t n = 1;
    for (const char *p = c->at; p < end; p++) n += *p == c->separator;
    return n;
}

static bool is_space(char ch) { return ch == ' ' || ch == '\t' || ch == '\r'; }

static bool is_blank(const char *p, const char *end)
{
    while (p < end && is_space(*p)) p++;
    return p == end;
}

/* Fast path of number parsing: digits with at most one dot and no exponent. False where strtod is needed. */
static bool parse_plain(const char *p, const char *end, double *v)
{
    static const double power[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    bool negative = p < end && *p == '-', dot = false;
    int64_t digits = 0, after = 0, whole = 0;
    for (p += negative; p < end; p++) {
        if (*p == '.' && !dot) {
            dot = true;
            continue;
        }
        if (*p < '0' || *p > '9' || ++digits > 15) return false;
        whole = whole * 10 + (*p - '0');
        after += dot;
    }
    *v = (double)(negative ? -whole : whole) /
         power[after]; /* both are exact doubles: the quotient is correctly rounded */
    if (negative && whole == 0) *v = -0.0;
    return digits > 0;
}

static bool parse(const char *p, const char *end, double *v)
{
    char text[FIELD_MAX], *stop;
    while (p < end && is_space(*p)) p++;
    while (end > p && is_space(end[-1])) end--;
    if (end - p >= 2 && *p == '"' && end[-1] == '"') {
        p++;
        end--;
    }
    if (parse_plain(p, end, v)) return true;
    size_t n = (size_t)(end - p);
    if (n == 0 || n >= sizeof text || memchr(p, 0, n)) return false;
    memcpy(text, p, n);
    text[n] = 0;
    *v = strtod(text, &stop);
    return *stop == 0;
}

static const char *field_end(const csv *c, const char *p, const char *end)
{
    const char *e = memchr(p, c->separator, (size_t)(end - p));
    return e ? e : end;
}

/* Whether the first line is a header: one of its fields is no number. */
static bool is_header(const csv *c, const char *end)
{
    double v;
    for (const char *p = c->at; p <= end;) {
        const char *e = field_end(c, p, end);
        if (!parse(p, e, &v)) return true;
        p = e + 1;
    }
    return false;
}

static proa_status grow(csv *c)
{
    int64_t capacity = c->rows_capacity ? c->rows_capacity * 2 : 64;
    size_t bytes;
    int64_t features = c->columns - (c->label >= 0);
    if (!proa__mul_size((size_t)capacity, (size_t)features * sizeof(float), &bytes)) return proa_error();
    float *x = proa__realloc(c->x, bytes + 1);
    if (!x) return proa_error();
    c->x = x;
    double *y = proa__realloc(c->y, (size_t)capacity * sizeof *y);
    if (!y) return proa_error();
    c->y = y;
    c->rows_capacity = capacity;
    return PROA_OK;
}

static proa_status read_row(csv *c, const char *end)
{
    int64_t column = 0, features = c->columns - (c->label >= 0);
    if (c->rows == c->rows_capacity) PROA_TRY(grow(c));
    float *x = c->x + c->rows * features;
    for (const char *p = c->at; p <= end; column++) {
        double v;
        const char *e = field_end(c, p, end);
        if (column == c->columns) break;
        if (!parse(p, e, &v))
            return proa_fail(PROA_ERR_CORRUPT, "csv: line %lld, column %lld: '%.*s' is no number",
                             (long long)c->line, (long long)column + 1, (int)(e - p < 40 ? e - p : 40), p);
        if (column == c->label) c->y[c->rows] = v;
        else *x++ = (float)(v * c->scale);
        p = e + 1;
    }
    if (column != c->columns || count_columns(c, end) != c->columns)
        return proa_fail(PROA_ERR_CORRUPT, "csv: line %lld has %lld columns, the lines before have %lld",
                         (long long)c->line, (long long)count_columns(c, end), (long long)c->columns);
    c->rows++;
    return PROA_OK;
}

static proa_status find_label(csv *c, int64_t label)
{
    c->label = -1;
    if (label == PROA_NO_LABEL) return PROA_OK;
    if (label == 0) label = -1;
    if (label == PROA_ZERO) label = 0;
    c->label = label < 0 ? label + c->columns : label;
    if (c->label >= 0 && c->label < c->columns) return PROA_OK;
    return proa_fail(PROA_ERR_OUT_OF_RANGE, "csv: label column %lld of %lld columns", (long long)label,
                     (long long)c->columns);
}

static proa_status read_lines(csv *c, const proa_data_opts *opts)
{
    bool first = true;
    for (c->line = 1; c->at < c->end; c->line++) {
        const char *end = line_end(c);
        if (!is_blank(c->at, end)) {
            if (first) {
                c->columns = count_columns(c, end);
                if (c->columns > COLUMNS_MAX)
                    return proa_fail(PROA_ERR_CORRUPT, "csv: the first line has %lld columns",
                                     (long long)c->columns);
                PROA_TRY(find_label(c, opts->label));
            }
            if (!first || !is_header(c, end)) PROA_TRY(read_row(c, end));
            first = false;
        }
        c->at = end < c->end ? end + 1 : c->end;
    }
    return first ? proa_fail(PROA_ERR_CORRUPT, "csv: there is no line with data") : PROA_OK;
}

static proa_tensor *labels(const csv *c, proa_dtype dtype)
{
    PROA__ON_CPU;
    proa_tensor *y = proa_empty(PROA_SHAPE(c->rows), dtype);
    for (int64_t i = 0; y && i < c->rows; i++) {
        double v = c->y[i];
        if (dtype == PROA_F32) ((float *)(void *)y->data)[i] = (float)v;
        else if (dtype == PROA_F64) ((double *)(void *)y->data)[i] = v;
        else if (fabs(v) <= 0x1p53 && v == floor(v)) ((int64_t *)(void *)y->data)[i] = (int64_t)v;
        else {
            proa_fail(PROA_ERR_CORRUPT,
                      "csv: label %g of sample %lld is no integer; choose .label_dtype = PROA_F32", v,
                      (long long)i);
            return NULL;
        }
    }
    return y;
}

static proa_dataset *finish(const csv *c, const proa_data_opts *opts)
{
    PROA_SCOPED;
    int64_t features = c->columns - (c->label >= 0);
    proa_dtype label_dtype = opts->label_dtype ? opts->label_dtype : PROA_I64;
    if (label_dtype != PROA_I64 && label_dtype != PROA_F32 && label_dtype != PROA_F64) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "csv: label_dtype must be int64, float32 or float64, not %s",
                  proa_dtype_name(label_dtype));
        return NULL;
    }
    PROA__ON_CPU;
    proa_tensor *fields[2] = {proa_empty(PROA_SHAPE(c->rows, features), PROA_F32), NULL};
    if (!fields[0]) return NULL;
    if (c->rows > 0 && features > 0)
        memcpy(fields[0]->data, c->x, (size_t)(c->rows * features) * sizeof(float));
    if (c->label >= 0 && !(fields[1] = labels(c, label_dtype))) return NULL;
    return proa__rows_dataset(fields, c->label >= 0 ? 2 : 1, opts->shape, PROA_NODTYPE, 1);
}

proa_dataset *proa_csv_dataset_memory(const void *data, size_t bytes, proa_data_opts opts)
{
    if (proa_error() != PROA_OK) return NULL;
    if (!data || (opts.dtype && opts.dtype != PROA_F32)) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "csv: data must not be NULL, and x is float32");
        return NULL;
    }
    csv c = {.at = data,
             .end = (const char *)data + bytes,
             .separator = opts.separator ? opts.separator : ',',
             .scale = opts.scale != 0 ? opts.scale : 1};
    if (bytes >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) c.at += 3;
    proa_dataset *d = read_lines(&c, &opts) == PROA_OK ? finish(&c, &opts) : NULL;
    proa__free(c.x);
    proa__free(c.y);
    return d;
}

/* Adds the file's path to the text of the current error. */
static void name_file(const char *path)
{
    char text[1500];
    proa_status code = proa_error();
    if (code == PROA_OK || strstr(proa_error_message(), path)) return;
    snprintf(text, sizeof text, "%s", proa_error_message());
    proa_clear_error();
    proa_fail(code, "'%s': %s", path, text);
}

proa_dataset *proa_csv_dataset_opt(const char *path, proa_data_opts opts)
{
    size_t bytes;
    if (proa_error() != PROA_OK) return NULL;
    if (!path) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "csv: path must not be NULL");
        return NULL;
    }
    char *data = proa__read_whole(path, &bytes);
    proa_dataset *d = data ? proa_csv_dataset_memory(data, bytes, opts) : NULL;
    proa__free(data);
    name_file(path);
    return d;
}

proa_loader *proa_load_csv_opt(const char *path, proa_data_opts opts)
{
    proa_dataset *d = proa_csv_dataset_opt(path, opts);
    return d ? proa_loader_opt(d, opts) : NULL;
}
