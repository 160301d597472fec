/* The file layer: checksums, atomic writing, tensor streams, state and checkpoint files. */
#include "core/internal.h"
#include "core/tensor.h"
#include "io/file.h"
#include "suite.h"

#include <fcntl.h>
#include <proa/io.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char path_text[8][512];
static int path_next;

/* A path in the tests' folder, with the process's number in it. */
static const char *tmp(const char *name)
{
    char *to = path_text[path_next++ & 7];
    snprintf(to, sizeof path_text[0], "%s/%d_%s", test_folder(), (int)getpid(), name);
    return to;
}

static bool exists(const char *path) { return access(path, F_OK) == 0; }

static void put_file(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, n, f), n);
    fclose(f);
}

static void check_file(const char *path, const char *wanted)
{
    size_t n;
    char *text = proa__read_whole(path, &n);
    ck_assert_str_eq(text, wanted);
    proa__free(text);
}

/* The temporary in which a save of path collects its bytes. */
static const char *partial_of(const char *path)
{
    return tmp(strcat(strcpy((char[256]){0}, strchr(strrchr(path, '/'), '_') + 1), PROA__TEMPORARY));
}

START_TEST(checksum_is_crc32c)
{
    unsigned char data[300];
    for (int i = 0; i < 300; i++) data[i] = (unsigned char)i;
    ck_assert_uint_eq(proa__crc32c(0, "123456789", 9), 0xE3069283u);
    ck_assert_uint_eq(proa__crc32c(0, "", 0), 0);
    for (size_t cut = 0; cut < 300; cut += 7) {
        uint32_t crc = proa__crc32c(0, data, cut);
        ck_assert_uint_eq(proa__crc32c(crc, data + cut, 300 - cut), proa__crc32c(0, data, 300));
    }
}
END_TEST

START_TEST(a_save_is_all_or_nothing)
{
    const char *path = tmp("atomic");
    put_file(path, "old", 3);
    proa_writer *w = proa_writer_open(path);
    ck_assert_ptr_nonnull(w);
    ck_assert_int_eq(proa_writer_put(w, "new content", 11), PROA_OK);
    proa_writer_abort(w);
    check_file(path, "old");
    w = proa_writer_open(path);
    ck_assert_int_eq(proa_writer_put(w, "new content", 11), PROA_OK);
    ck_assert_int_eq(proa_writer_commit(w), PROA_OK);
    check_file(path, "new content");
    ck_assert(!exists(partial_of(path)));
    unlink(path);
}
END_TEST

START_TEST(a_full_disk_is_an_error_and_leaves_nothing)
{
    const char *path = tmp("full");
    char block[1 << 17] = {1};
    put_file(path, "old", 3);
    struct rlimit limit = {1 << 18, RLIM_INFINITY}, was;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &was);
    limit.rlim_max = was.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
    proa_writer *w = proa_writer_open(path);
    proa_status status = PROA_OK;
    for (int i = 0; i < 8 && status == PROA_OK; i++) status = proa_writer_put(w, block, sizeof block);
    if (status == PROA_OK) status = proa__writer_sync(w);
    ck_assert_int_eq(status, PROA_ERR_IO);
    ck_assert_int_eq(proa_writer_commit(w), PROA_ERR_IO);
    setrlimit(RLIMIT_FSIZE, &was);
    ck_assert(!exists(partial_of(path)));
    proa_clear_error();
    check_file(path, "old");
    unlink(path);
    ck_assert_ptr_null(proa_writer_open("/no/such/folder/file"));
    ck_assert_int_eq(proa_error(), PROA_ERR_IO);
    proa_clear_error();
}
END_TEST

START_TEST(two_saves_at_once_leave_the_last_whole)
{
    const char *path = tmp("twice");
    proa_writer *a = proa_writer_open(path), *b = proa_writer_open(path);
    ck_assert_int_eq(proa_writer_put(a, "first", 5), PROA_OK);
    ck_assert_int_eq(proa_writer_put(b, "second, longer", 14), PROA_OK);
    ck_assert_int_eq(proa_writer_commit(b), PROA_OK);
    check_file(path, "second, longer");
    ck_assert_int_eq(proa_writer_commit(a), PROA_OK);
    check_file(path, "first");
    proa_writer_abort(proa_writer_open(path));
    check_file(path, "first");
    unlink(path);
}
END_TEST

START_TEST(modes_and_links_stay)
{
    char link[600];
    const char *path = tmp("mode");
    struct stat st;
    put_file(path, "old", 3);
    ck_assert_int_eq(chmod(path, 0640), 0);
    snprintf(link, sizeof link, "%s.link", path);
    unlink(link);
    ck_assert_int_eq(symlink(strrchr(path, '/') + 1, link), 0); /* relative to its folder */
    for (int there = 1; there >= 0; there--) {                  /* a dangling link's target is made */
        mode_t was = umask(027);
        proa_writer *w = proa_writer_open(link);
        umask(was);
        ck_assert_int_eq(proa_writer_put(w, "new", 3), PROA_OK);
        ck_assert_int_eq(proa_writer_commit(w), PROA_OK);
        ck_assert_int_eq(lstat(link, &st), 0);
        ck_assert(S_ISLNK(st.st_mode));
        check_file(path, "new");
        ck_assert_int_eq(stat(path, &st), 0);
        ck_assert_uint_eq(st.st_mode & 0777, 0640); /* kept; or of the umask */
        unlink(path);
    }
    unlink(link);
    ck_assert_int_eq(symlink(strrchr(link, '/') + 1, link), 0);
    ck_assert_ptr_null(proa_writer_open(link)); /* leads to itself */
    ck_assert_int_eq(proa_error(), PROA_ERR_IO);
    proa_clear_error();
    unlink(link);
    proa_writer *w = proa_writer_open("/dev/null"); /* a device stays one */
    ck_assert_int_eq(proa_writer_put(w, "gone", 4), PROA_OK);
    ck_assert_int_eq(proa_writer_commit(w), PROA_OK);
    ck_assert_int_eq(stat("/dev/null", &st), 0);
    ck_assert(S_ISCHR(st.st_mode));
}
END_TEST

START_TEST(a_name_may_be_as_long_as_the_file_system_takes)
{
    char path[600];
    const char *folder = tmp("");
    size_t n = (size_t)(strrchr(folder, '/') - folder) + 1;
    memcpy(path, folder, n);
    memset(path + n, 'n', 255);
    path[n + 255] = 0;
    proa_writer *w = proa_writer_open(path);
    ck_assert_int_eq(proa_writer_put(w, "long", 4), PROA_OK);
    ck_assert_int_eq(proa_writer_commit(w), PROA_OK);
    check_file(path, "long");
    unlink(path);
}
END_TEST

static proa__write_stage die_at;
static void die(proa__write_stage stage)
{
    if (stage == die_at) kill(getpid(), SIGKILL);
}

START_TEST(a_killed_save_leaves_a_whole_file)
{
    const char *path = tmp("killed");
    for (int stage = PROA__WROTE; stage <= PROA__RENAMED; stage++) {
        put_file(path, "old", 3);
        pid_t child = fork();
        if (child == 0) {
            die_at = (proa__write_stage)stage;
            proa__write_hook = die;
            proa_writer *w = proa_writer_open(path), *other = proa_writer_open(path);
            _exit(proa_writer_put(other, "other", 5) || proa_writer_put(w, "new", 3) ||
                  proa_writer_commit(w));
        }
        int status;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFSIGNALED(status));
        check_file(path, stage == PROA__RENAMED ? "new" : "old");
        char second[600];
        snprintf(second, sizeof second, "%s1", partial_of(path));
        ck_assert(exists(second));
        proa_writer *w = proa_writer_open(path); /* removes what the killed one left */
        ck_assert(!exists(second));
        ck_assert_int_eq(proa_writer_put(w, "again", 5), PROA_OK);
        ck_assert_int_eq(proa_writer_commit(w), PROA_OK);
        ck_assert(!exists(partial_of(path)));
    }
    unlink(path);
}
END_TEST

/* ---- tensor streams -------------------------------------------------------------------- */

static void check_tensor(const proa_tensor *a, const proa_tensor *b)
{
    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_nonnull(b);
    ck_assert_int_eq(proa_dtype_of(a), proa_dtype_of(b));
    ck_assert_int_eq(proa_ndim(a), proa_ndim(b));
    for (int i = 0; i < proa_ndim(a); i++) ck_assert_int_eq(proa_shape_of(a)[i], proa_shape_of(b)[i]);
    size_t n = (size_t)proa_numel(a) * proa_dtype_size(proa_dtype_of(a));
    char *x = proa__alloc(n + 1), *y = proa__alloc(n + 1);
    ck_assert_int_eq(proa_copy_out(a, x, n), PROA_OK);
    ck_assert_int_eq(proa_copy_out(b, y, n), PROA_OK);
    ck_assert_mem_eq(x, y, n);
    proa__free(x);
    proa__free(y);
}

/* Every dtype and several shapes, filled with bytes. */
static proa_tensor *sample(proa_dtype dtype, proa_ints shape)
{
    proa_tensor *t = proa_empty(shape, dtype);
    size_t n = (size_t)proa_numel(t) * proa_dtype_size(dtype);
    for (size_t i = 0; i < n; i++) ((char *)proa_data(t))[i] = (char)(i * 37 + 11);
    if (dtype == PROA_BOOL)
        for (size_t i = 0; i < n; i++) ((char *)proa_data(t))[i] = i & 1;
    return t;
}

#if defined(PROA_HAVE_PROTOBUF_C)
START_TEST(tensor_streams_return_what_was_saved)
{
    const char *path = tmp("tensor");
    proa_ints shapes[] = {PROA_SCALAR_SHAPE, PROA_SHAPE(1), PROA_SHAPE(3, 5), PROA_SHAPE(2, 0, 4),
                          PROA_SHAPE(1, 2, 1, 2, 1, 2, 1, 2, 3)};
    for (int d = PROA_BOOL; d < PROA_DTYPE_COUNT; d++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            PROA_SCOPE {
                proa_tensor *t = sample((proa_dtype)d, shapes[s]);
                ck_assert_int_eq(proa_tensor_save(t, path), PROA_OK);
                check_tensor(proa_tensor_load(path), t);
                struct stat st;
                stat(path, &st);
                size_t bytes = (size_t)proa_numel(t) * proa_dtype_size((proa_dtype)d);
                ck_assert_uint_eq(((size_t)st.st_size - bytes) % 64, 0);
            }
    unlink(path);
    ck_assert_int_eq(proa_finish(NULL), 0);
}
END_TEST

START_TEST(a_loaded_tensor_can_be_written_to)
{
    const char *path = tmp("write");
    proa_tensor *t = sample(PROA_F32, PROA_SHAPE(100));
    ck_assert_int_eq(proa_tensor_save(t, path), PROA_OK);
    proa_tensor *u = proa_tensor_load(path);
    memset(proa_data(u), 0, 400);
    check_tensor(proa_tensor_load(path), t);
    unlink(path);
}
END_TEST

/* FORMAT: an FP32 [2] as Paddle writes it, data not aligned. */
static const unsigned char paddle_stream[] = {0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0,   0,  0, 0, 0, 0,
                                              4, 0, 0, 0, 8, 5, 16, 2, 0, 0, 128, 63, 0, 0, 0, 64};

START_TEST(paddles_own_stream_is_read)
{
    proa_tensor *t = proa_tensor_load_memory(paddle_stream, sizeof paddle_stream);
    ck_assert_ptr_nonnull(t);
    ck_assert(((float *)proa_data(t))[0] == 1.0f && ((float *)proa_data(t))[1] == 2.0f);
    const char *path = tmp("unaligned");
    put_file(path, paddle_stream, sizeof paddle_stream);
    check_tensor(proa_tensor_load(path), t);
    unlink(path);
}
END_TEST

START_TEST(damaged_streams_are_refused)
{
    unsigned char copy[sizeof paddle_stream + 1];
    for (size_t n = 0; n < sizeof paddle_stream;
         n++) { /* every truncation, the last tensor's data included */
        ck_assert_ptr_null(proa_tensor_load_memory(paddle_stream, n));
        ck_assert_int_eq(proa_error(), PROA_ERR_CORRUPT);
        proa_clear_error();
    }
    memcpy(copy, paddle_stream, sizeof paddle_stream);
    copy[sizeof paddle_stream] = 0;
    ck_assert_ptr_null(proa_tensor_load_memory(copy, sizeof copy));
    ck_assert_int_eq(proa_error(), PROA_ERR_CORRUPT);
    proa_clear_error();
    copy[0] = 1; /* version */
    ck_assert_ptr_null(proa_tensor_load_memory(copy, sizeof paddle_stream));
    proa_clear_error();
    copy[0] = 0;
    for (size_t i = 0; i < sizeof paddle_stream; i++)
        for (int bit = 0; bit < 8; bit++) { /* any answer but a crash */
            copy[i] ^= (unsigned char)(1 << bit);
            proa_tensor_load_memory(copy, sizeof paddle_stream);
            proa_clear_error();
            copy[i] ^= (unsigned char)(1 << bit);
        }
}
END_TEST
#endif

/* ---- state ----------------------------------------------------------------------------- */

static proa_state *example_state(void)
{
    proa_state *s = proa_state_new();
    for (int d = PROA_BOOL; d < PROA_DTYPE_COUNT; d++) {
        char name[32];
        snprintf(name, sizeof name, "tensor.%s", proa_dtype_name((proa_dtype)d));
        ck_assert_int_eq(proa_state_put(s, name, sample((proa_dtype)d, PROA_SHAPE(3, 4))), PROA_OK);
    }
    ck_assert_int_eq(proa_state_put(s, "empty", sample(PROA_F32, PROA_SHAPE(0, 3))), PROA_OK);
    ck_assert_int_eq(proa_state_put(s, "scalar", sample(PROA_F64, PROA_SCALAR_SHAPE)), PROA_OK);
    ck_assert_int_eq(proa_state_put_int(s, "step", -77), PROA_OK);
    ck_assert_int_eq(proa_state_put_float(s, "rate", 0.1), PROA_OK);
    ck_assert_int_eq(proa_state_put_bytes(s, "note", "hello", 5), PROA_OK);
    ck_assert_int_eq(proa_state_put_bytes(s, "nothing", NULL, 0), PROA_OK);
    return s;
}

START_TEST(a_checkpoint_returns_what_was_saved)
{
    const char *path = tmp("ckpt");
    proa_state *s = example_state();
    ck_assert_int_eq(proa_state_save(s, path), PROA_OK);
    proa_state *t = proa_state_load(path);
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(t->count, s->count);
    for (int64_t i = 0; i < s->count; i++) {
        ck_assert_str_eq(s->items[i].name, t->items[i].name);
        if (s->items[i].tensor) check_tensor(s->items[i].tensor, t->items[i].tensor);
        else {
            ck_assert_uint_eq(s->items[i].n_bytes, t->items[i].n_bytes);
            ck_assert_int_eq(memcmp(s->items[i].bytes, t->items[i].bytes, s->items[i].n_bytes), 0);
        }
    }
    int64_t step;
    double rate;
    ck_assert_int_eq(proa_state_get_int(t, "step", &step), PROA_OK);
    ck_assert_int_eq(proa_state_get_float(t, "rate", &rate), PROA_OK);
    ck_assert_int_eq(step, -77);
    ck_assert(rate == 0.1);
    proa_tensor *to = proa_empty(PROA_SHAPE(3, 4), PROA_F32);
    ck_assert_int_eq(proa_state_copy_to(t, "tensor.float32", to), PROA_OK);
    check_tensor(to, proa_state_get(s, "tensor.float32"));
    ck_assert_int_eq(proa_state_copy_to(t, "tensor.int64", to), PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
    ck_assert_ptr_null(proa_state_get(t, "absent"));
    ck_assert_int_eq(proa_error(), PROA_ERR_NOT_FOUND);
    proa_clear_error();
    proa_state_free(s);
    proa_state_free(t);
    unlink(path);
}
END_TEST

/* So many that a search along the list would take minutes. */
START_TEST(a_state_of_many_records_is_found_by_name)
{
    enum { N = 100000 };
    const char *path = tmp("many");
    char name[32];
    proa_state *s = proa_state_new();
    for (int pass = 0; pass < 2; pass++) /* the second replaces */
        for (int i = 0; i < N; i++) {
            snprintf(name, sizeof name, "record.%d", i);
            ck_assert_int_eq(proa_state_put_int(s, name, pass ? (int64_t)i * i : -1), PROA_OK);
        }
    ck_assert_int_eq(s->count, N);
    ck_assert_int_eq(proa_state_save(s, path), PROA_OK);
    proa_state_free(s);
    s = proa_state_load(path);
    ck_assert_ptr_nonnull(s);
    ck_assert_int_eq(s->count, N);
    for (int i = 0; i < N; i++) {
        int64_t v = -1;
        snprintf(name, sizeof name, "record.%d", i);
        ck_assert_str_eq(s->items[i].name, name);
        ck_assert_int_eq(proa_state_get_int(s, name, &v), PROA_OK);
        ck_assert_int_eq(v, (int64_t)i * i);
    }
    ck_assert_ptr_null(proa_state_find(s, "record"));
    ck_assert_ptr_null(proa_state_find(s, NULL));
    proa_state_free(s);
    unlink(path);
    ck_assert_ptr_null(proa_state_load(path));
    ck_assert_int_eq(proa_error(), PROA_ERR_NO_FILE);
    proa_clear_error();
}
END_TEST

START_TEST(every_flipped_bit_and_every_cut_is_found)
{
    const char *path = tmp("flip");
    proa_state *s = example_state();
    ck_assert_int_eq(proa_state_save(s, path), PROA_OK);
    proa_state_free(s);
    size_t n;
    unsigned char *data = (unsigned char *)proa__read_whole(path, &n);
    int64_t live = proa_memory_get_stats().live_blocks;
    for (size_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit++) {
            data[i] ^= (unsigned char)(1 << bit);
            ck_assert_msg(!proa_state_load_memory(data, n), "bit %d of byte %zu", bit, i);
            ck_assert(proa_error() == PROA_ERR_CORRUPT || proa_error() == PROA_ERR_UNSUPPORTED);
            proa_clear_error();
            data[i] ^= (unsigned char)(1 << bit);
        }
    for (size_t i = 0; i < n; i++) {
        ck_assert_ptr_null(proa_state_load_memory(data, i));
        ck_assert_int_eq(proa_error(), PROA_ERR_CORRUPT);
        proa_clear_error();
    }
    ck_assert_int_eq(proa_memory_get_stats().live_blocks, live);
    s = proa_state_load_memory(data, n);
    ck_assert_ptr_nonnull(s);
    proa_state_free(s);
    proa__free(data);
    unlink(path);
}
END_TEST

START_TEST(no_memory_at_any_point_leaves_no_trace)
{
    const char *path = tmp("oom");
    proa_state *s = example_state();
    ck_assert_int_eq(proa_state_save(s, path), PROA_OK);
    int64_t live = proa_memory_get_stats().live_blocks;
    for (int64_t k = 0; k < 400; k++) {
        proa_memory_fail_after(k);
        proa_state *t = proa_state_load(path);
        proa_memory_fail_after(-1);
        ck_assert(t || proa_error() == PROA_ERR_OUT_OF_MEMORY);
        proa_clear_error();
        bool done = t != NULL;
        proa_state_free(t);
        ck_assert_int_eq(proa_memory_get_stats().live_blocks, live);
        if (done) break;
        ck_assert_int_lt(k, 399);
    }
    proa_state_free(s);
    unlink(path);
}
END_TEST

SUITE("io_files", checksum_is_crc32c, a_save_is_all_or_nothing, a_full_disk_is_an_error_and_leaves_nothing,
      two_saves_at_once_leave_the_last_whole, modes_and_links_stay,
      a_name_may_be_as_long_as_the_file_system_takes, a_killed_save_leaves_a_whole_file,
#if defined(PROA_HAVE_PROTOBUF_C)
      tensor_streams_return_what_was_saved, a_loaded_tensor_can_be_written_to, paddles_own_stream_is_read,
      damaged_streams_are_refused,
#endif
      a_checkpoint_returns_what_was_saved, a_state_of_many_records_is_found_by_name,
      every_flipped_bit_and_every_cut_is_found, no_memory_at_any_point_leaves_no_trace)
