/* Row files of sparse tables: FOLDER/NAME_txt/NAME.block<server>.txt, "id tab count tab unseen days tab
 * entered tab v,v,…," a line, and a .meta beside it. May use core and io. */
#define _GNU_SOURCE
#include "dist/ps/table.h"

#include "core/internal.h"

#include <proa/io.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VALUE_BYTES = 24 /* of a float in %.9g, with its comma */ };

/* ---- paths ----------------------------------------------------------------------------- */

static proa_status file_path(const proa__ps_table *t, const char *folder, int block, const char *suffix,
                             char path[PATH_MAX])
{
    int n = snprintf(path, PATH_MAX, "%s/%s_txt/%s.block%d.%s", folder, t->opts.name, t->opts.name, block,
                     suffix);
    if (n >= 0 && n < PATH_MAX) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "parameter server: the folder's path is longer than %d bytes",
                     PATH_MAX - 300);
}

/* Makes the folders on the way to a file. */
static proa_status make_folders(const char *path)
{
    char part[PATH_MAX];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return proa_fail(PROA_ERR_IO, "parameter server: cannot make the folder %s: %s", part,
                             strerror(errno));
        *slash = '/';
    }
    return PROA_OK;
}

/* ---- writing --------------------------------------------------------------------------- */

static proa_status write_row(const proa__ps_table *t, const proa__ps_row *row, char *line, proa_writer *w)
{
    size_t n = (size_t)sprintf(line, "%" PRId64 "\t%" PRIu32 "\t%" PRIu32 "\t%d\t", row->id, row->count,
                               row->unseen_days, row->entered);
    for (int64_t i = 0; i < t->floats; i++)
        n += (size_t)snprintf(line + n, VALUE_BYTES, "%.9g,", (double)row->values[i]);
    line[n++] = '\n';
    return proa_writer_put(w, line, n);
}

static proa_status write_bucket(const proa__ps_table *t, proa__ps_bucket *b, proa_ps_save_mode mode,
                                char *line, proa_writer *w, int64_t *rows)
{
    for (size_t c = 0; c < b->capacity; c++)
        for (proa__ps_row *row = b->chains[c]; row; row = row->next) {
            if (mode == PROA_PS_SAVE_DELTA && !row->need_save) continue;
            PROA_TRY(write_row(t, row, line, w));
            ++*rows;
        }
    return PROA_OK;
}

static void mark_saved(proa__ps_bucket *b)
{
    for (size_t c = 0; c < b->capacity; c++)
        for (proa__ps_row *row = b->chains[c]; row; row = row->next) row->need_save = false;
}

static proa_status write_rows(proa__ps_table *t, const char *path, proa_ps_save_mode mode, char *line,
                              int64_t *rows)
{
    proa_writer *w = proa_writer_open(path);
    if (!w) return proa_error();
    proa_status status = PROA_OK;
    for (int i = 0; i < PROA__PS_BUCKETS; i++) pthread_mutex_lock(&t->buckets[i].lock);
    for (int i = 0; i < PROA__PS_BUCKETS && status == PROA_OK; i++)
        status = write_bucket(t, &t->buckets[i], mode, line, w, rows);
    if (status == PROA_OK) status = proa_writer_commit(w);
    else proa_writer_abort(w);
    for (int i = 0; i < PROA__PS_BUCKETS; i++) {
        if (status == PROA_OK && mode != PROA_PS_SAVE_ALL) mark_saved(&t->buckets[i]);
        pthread_mutex_unlock(&t->buckets[i].lock);
    }
    return status;
}

static proa_status write_meta(const proa__ps_table *t, const char *path, int64_t rows)
{
    char text[1024];
    int64_t width = t->opts.width;
    int n = snprintf(text, sizeof text, "param=%s\nshard_id=%d\nrow_names=%s\nrow_dims=%" PRId64,
                     t->opts.name, t->server, proa__ps_part_names(t->opts.rule), width);
    int moments = t->opts.rule == PROA_PS_ADAM ? 2 : t->opts.rule == PROA_PS_ADAGRAD;
    for (int i = 0; i < moments; i++) n += snprintf(text + n, sizeof text - (size_t)n, ",%" PRId64, width);
    if (t->opts.rule == PROA_PS_ADAM) n += snprintf(text + n, sizeof text - (size_t)n, ",1,1");
    n += snprintf(text + n, sizeof text - (size_t)n, "\ncount=%" PRId64 "\n", rows);
    proa_writer *w = proa_writer_open(path);
    if (!w) return proa_error();
    if (proa_writer_put(w, text, (size_t)n) == PROA_OK) return proa_writer_commit(w);
    proa_writer_abort(w);
    return proa_error();
}

/* Removes the files of servers that an earlier job had and this one has not: they would be read, too. */
static proa_status remove_others(const proa__ps_table *t, const char *folder)
{
    char path[PATH_MAX];
    for (int block = t->servers;; block++) {
        PROA_TRY(file_path(t, folder, block, "txt", path));
        if (unlink(path) != 0) break;
        PROA_TRY(file_path(t, folder, block, "meta", path));
        unlink(path);
    }
    return errno == ENOENT
               ? PROA_OK
               : proa_fail(PROA_ERR_IO, "parameter server: cannot remove %s: %s", path, strerror(errno));
}

proa_status proa__ps_table_save(proa__ps_table *t, const char *folder, proa_ps_save_mode mode)
{
    char path[PATH_MAX];
    int64_t rows = 0;
    PROA_TRY(file_path(t, folder, t->server, "txt", path));
    PROA_TRY(make_folders(path));
    char *line = proa__alloc(128 + (size_t)t->floats * VALUE_BYTES);
    if (!line) return proa_error();
    proa_status status = write_rows(t, path, mode, line, &rows);
    proa__free(line);
    PROA_TRY(status);
    PROA_TRY(file_path(t, folder, t->server, "meta", path));
    PROA_TRY(write_meta(t, path, rows));
    return t->server == 0 ? remove_others(t, folder) : PROA_OK;
}

/* ---- reading --------------------------------------------------------------------------- */

/* A line under way, for its errors. */
typedef struct place {
    const char *path;
    long long number;
} place;

static proa_status corrupt(const place *p, const char *what, const char *expected)
{
    return proa_fail(PROA_ERR_CORRUPT, "%s:%lld: %s; expected %s", p->path, p->number, what, expected);
}

/* A whole number up to `most`, and the character behind it. */
static bool whole(char **at, uint64_t most, char behind, uint64_t *v)
{
    char *end;
    if (**at < '0' || **at > '9') return false;
    errno = 0;
    *v = strtoull(*at, &end, 10);
    bool good = errno == 0 && *v <= most && *end == behind;
    *at = end + 1;
    return good;
}

static bool read_id(char **at, int64_t *id)
{
    char *end;
    errno = 0;
    bool begins = (**at >= '0' && **at <= '9') || (**at == '-' && (*at)[1] >= '0' && (*at)[1] <= '9');
    *id = begins ? strtoll(*at, &end, 10) : 0;
    bool good = begins && errno == 0 && *end == '\t';
    if (good) *at = end + 1;
    return good;
}

/* Reads comma-separated floats; returns how many there were before the line's end, −1: another form. */
static int64_t read_values(char *at, float *values, int64_t most)
{
    int64_t n = 0;
    while (*at && *at != '\n') {
        char *end;
        float v = *at == ' ' || *at == '\t' ? NAN : strtof(at, &end);
        if (*at == ' ' || *at == '\t' || end == at || (*end != ',' && *end != '\n' && *end) || n == most)
            return -1;
        values[n++] = v;
        at = *end == ',' ? end + 1 : end;
    }
    return n;
}

/* Reads the fields of a line into *row's own and `values`. A line of two columns, id and values, is one of
 * older versions of Paddle. */
static proa_status parse(const proa__ps_table *t, const place *p, char *line, proa__ps_row *row,
                         float *values)
{
    uint64_t count = 1, days = 0, entered = 1;
    char *at = line, expected[120];
    if (!read_id(&at, &row->id)) return corrupt(p, "the line begins with no id", "a whole number and a tab");
    if (strchr(at, '\t') && (!whole(&at, UINT32_MAX, '\t', &count) || !whole(&at, UINT32_MAX, '\t', &days) ||
                             !whole(&at, 1, '\t', &entered)))
        return corrupt(p, "the columns behind the id have another form",
                       "count, days unseen, and 0 or 1, with tabs between");
    int64_t n = read_values(at, values, t->floats);
    bool given = n == t->floats || n == t->opts.width;
    snprintf(expected, sizeof expected,
             "%lld numbers (or %lld, without the rule's states), with commas between", (long long)t->floats,
             (long long)t->opts.width);
    if (!given) return corrupt(p, "the values of the row have another number or form", expected);
    if (n < t->floats) proa__ps_new_states(&t->opts, values, t->opts.width);
    row->count = (uint32_t)count;
    row->unseen_days = (uint32_t)days;
    row->entered = entered;
    return PROA_OK;
}

static proa_status keep_row(proa__ps_table *t, const proa__ps_row *read, const float *values)
{
    proa__ps_bucket *b = proa__ps_bucket_of(t, read->id);
    pthread_mutex_lock(&b->lock);
    proa__ps_row *row = proa__ps_row_of(t, b, read->id);
    if (row) {
        row->count = read->count;
        row->unseen_days = read->unseen_days;
        row->entered = read->entered;
        row->need_save = false;
        memcpy(row->values, values, (size_t)t->floats * sizeof *values);
    }
    pthread_mutex_unlock(&b->lock);
    return row ? PROA_OK : proa_error();
}

static proa_status read_lines(proa__ps_table *t, const char *path, FILE *f, float *values)
{
    place p = {.path = path};
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n;
    proa_status status = PROA_OK;
    errno = 0;
    while (status == PROA_OK && (n = getline(&line, &capacity, f)) >= 0) {
        proa__ps_row row;
        p.number++;
        if (strlen(line) != (size_t)n) status = corrupt(&p, "the line has a zero byte", "text");
        else status = parse(t, &p, line, &row, values);
        if (status == PROA_OK && (uint64_t)row.id % (uint64_t)t->servers == (uint64_t)t->server)
            status = keep_row(t, &row, values);
    }
    if (status == PROA_OK && ferror(f))
        status = proa_fail(PROA_ERR_IO, "cannot read %s: %s", path, strerror(errno));
    if (status == PROA_OK && !feof(f))
        status = proa_fail(PROA_ERR_OUT_OF_MEMORY, "%s: no memory for a line", path);
    free(line);
    return status;
}

static proa_status read_file(proa__ps_table *t, const char *path, float *values)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return proa_fail(errno == ENOENT ? PROA_ERR_NO_FILE : PROA_ERR_IO, "cannot open %s: %s", path,
                         strerror(errno));
    proa_status status = read_lines(t, path, f, values);
    fclose(f);
    return status;
}

/* The number of block files, which must be those of servers 0 … n − 1; −1 with an error. */
static int count_blocks(const proa__ps_table *t, const char *folder)
{
    char path[PATH_MAX], prefix[256];
    int n = 0, most = -1;
    snprintf(path, sizeof path, "%s/%s_txt", folder, t->opts.name);
    snprintf(prefix, sizeof prefix, "%s.block", t->opts.name);
    DIR *d = opendir(path);
    if (!d) {
        proa_fail(errno == ENOENT ? PROA_ERR_NO_FILE : PROA_ERR_IO, "cannot open %s: %s", path,
                  strerror(errno));
        return -1;
    }
    for (const struct dirent *e; (e = readdir(d));) {
        char *end;
        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0) continue;
        long block = strtol(e->d_name + strlen(prefix), &end, 10);
        if (strcmp(end, ".txt") != 0 || block < 0 || block > INT_MAX - 1) continue;
        n++;
        if (block > most) most = (int)block;
    }
    closedir(d);
    if (n > 0 && n == most + 1) return n;
    proa_fail(PROA_ERR_CORRUPT,
              "%s has %d files %s<number>.txt, the highest number is %d; expected 0 and all below "
              "the highest",
              path, n, prefix, most);
    return -1;
}

proa_status proa__ps_table_load(proa__ps_table *t, const char *folder)
{
    char path[PATH_MAX];
    int blocks = count_blocks(t, folder);
    if (blocks < 0) return proa_error();
    float *values = proa__alloc((size_t)t->floats * sizeof *values);
    if (!values) return proa_error();
    proa_status status = PROA_OK;
    for (int i = 0; i < blocks && status == PROA_OK; i++) {
        status = file_path(t, folder, i, "txt", path);
        if (status == PROA_OK) status = read_file(t, path, values);
    }
    proa__free(values);
    return status;
}
