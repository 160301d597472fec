/* Datasets, readers, loaders: values, order, positions, threads, bad files. */
#include "core/internal.h"
#include "core/tensor.h"
#include "suite.h"

#include <math.h>
#include <proa/data.h>
#include <string.h>

static proa_dataset *csv(const char *text, proa_data_opts opts)
{
    return proa_csv_dataset_memory(text, strlen(text), opts);
}

static proa_tensors all(proa_dataset *d)
{
    int64_t indices[64], n = proa_dataset_count(d);
    for (int64_t i = 0; i < n; i++) indices[i] = i;
    return proa_dataset_batch(d, indices, n);
}

START_TEST(csv_values)
{
    proa_dataset *d = csv("a,b,c\n1, 2.5,0\r\n\n-3e2,\"4\",1\n", (proa_data_opts){.scale = 2});
    ck_assert_ptr_nonnull(d);
    ck_assert_int_eq(proa_dataset_count(d), 2);
    proa_tensors b = all(d);
    const float *x = proa_data(b.at[0]);
    const int64_t *y = proa_data(b.at[1]);
    ck_assert(x[0] == 2 && x[1] == 5 && x[2] == -600 && x[3] == 8);
    ck_assert(y[0] == 0 && y[1] == 1);
    proa_dataset_free(d);
    d = csv("7;1;2\n8;3;4",
            (proa_data_opts){
                .separator = ';', .label = PROA_ZERO, .label_dtype = PROA_F32, .shape = PROA_SHAPE(2, 1)});
    b = all(d);
    ck_assert_int_eq(proa_ndim(b.at[0]), 3);
    ck_assert(((float *)proa_data(b.at[1]))[1] == 8);
    ck_assert(((float *)proa_data(b.at[0]))[3] == 4);
    proa_dataset_free(d);
}
END_TEST

START_TEST(csv_numbers_are_correctly_rounded)
{
    const char *numbers[] = {"0.1",
                             "123456789.125",
                             "-0",
                             "1e-40",
                             "3.4028235e38",
                             "0.30000001192092896",
                             "999999999999999",
                             "1234567890123456789",
                             "inf",
                             "nan",
                             "-.5",
                             "5."};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s,0", numbers[i]);
        proa_dataset *d = csv(text, (proa_data_opts){.shape = PROA_SHAPE(1)});
        if (strcmp(numbers[i], "inf") == 0 || strcmp(numbers[i], "nan") == 0) {
            ck_assert_ptr_nonnull(d);
        }
        float got = *(float *)proa_data(all(d).at[0]), expected = (float)strtod(numbers[i], NULL);
        ck_assert_msg(memcmp(&got, &expected, 4) == 0 || (isnan(got) && isnan(expected)), "%s", numbers[i]);
        proa_dataset_free(d);
    }
}
END_TEST

START_TEST(csv_errors_say_where)
{
    struct {
        const char *text, *says;
    } cases[] = {{"1,2\n3\n", "line 2"},    {"1,2\n3,x\n", "line 2, column 2"},
                 {"", "no line"},           {"1,2\n3,4,5\n", "line 2"},
                 {"1,0.5\n", "no integer"}, {"1,2\n,3\n", "line 2, column 1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_ptr_null(csv(cases[i].text, (proa_data_opts){0}));
        ck_assert_int_eq(proa_error(), PROA_ERR_CORRUPT);
        ck_assert_msg(strstr(proa_error_message(), cases[i].says) != NULL, "%s", proa_error_message());
        proa_clear_error();
    }
    ck_assert_ptr_null(csv("1,2\n", (proa_data_opts){.shape = PROA_SHAPE(3)}));
    ck_assert_int_eq(proa_error(), PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
    ck_assert_ptr_null(csv("1,2\n", (proa_data_opts){.label = 5}));
    ck_assert_int_eq(proa_error(), PROA_ERR_OUT_OF_RANGE);
    proa_clear_error();
    ck_assert_ptr_null(proa_load_csv("/no/such/file.csv", .batch = 2));
    ck_assert_int_eq(proa_error(), PROA_ERR_NO_FILE);
    ck_assert_str_eq(proa_error_exception(proa_error()), "FileNotFoundError");
    proa_clear_error();
}
END_TEST

START_TEST(the_digits_are_there)
{
    proa_loader *l = proa_load_csv("examples/data/digits_test.csv", .shape = PROA_SHAPE(1, 8, 8),
                                   .scale = 1.0 / 16, .batch = 64);
    ck_assert_ptr_nonnull(l);
    int64_t seen = 0, counts[10] = {0};
    proa_each (b, l) {
        ck_assert_int_eq(proa_ndim(b->x), 4);
        const float *x = proa_data(b->x);
        for (int64_t i = 0; i < proa_numel(b->x); i++) ck_assert(x[i] >= 0 && x[i] <= 1);
        for (int64_t i = 0; i < b->size; i++) counts[((int64_t *)proa_data(b->y))[i]]++;
        seen += b->size;
    }
    ck_assert_int_eq(seen, 360);
    for (int i = 0; i < 10; i++) ck_assert(counts[i] >= 34 && counts[i] <= 38);
    proa_loader_free(l);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(idx_files)
{
    static const unsigned char file[] = {0, 0, 0x0c, 2, 0, 0, 0,    1,    0,    0,
                                         0, 2, 0,    0, 1, 2, 0xff, 0xff, 0xff, 0xfe};
    proa_tensor *t = proa_read_idx_memory(file, sizeof file);
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(proa_dtype_of(t), PROA_I32);
    ck_assert_int_eq(((int32_t *)proa_data(t))[0], 258);
    ck_assert_int_eq(((int32_t *)proa_data(t))[1], -2);
    for (size_t n = 0; n < sizeof file; n++) {
        ck_assert_ptr_null(proa_read_idx_memory(file, n));
        ck_assert_int_eq(proa_error(), PROA_ERR_CORRUPT);
        proa_clear_error();
    }
    static const unsigned char huge[] = {0,   0,   8,   4,   255, 255, 255, 255, 255, 255,
                                         255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    ck_assert_ptr_null(proa_read_idx_memory(huge, sizeof huge));
    ck_assert_int_eq(proa_error(), PROA_ERR_CORRUPT);
    proa_clear_error();
}
END_TEST

/* ---- loaders --------------------------------------------------------------------------- */

static proa_dataset *numbers(int64_t n)
{
    PROA_SCOPED;
    proa_tensor *t = proa_empty(PROA_SHAPE(n), PROA_I64);
    for (int64_t i = 0; i < n; i++) ((int64_t *)proa_data(t))[i] = i;
    return proa_tensor_dataset(PROA_LIST(t));
}

/* The samples of one epoch, in order; returns their number. */
static int64_t epoch(proa_loader *l, int64_t *to)
{
    int64_t n = 0;
    proa_each (b, l) {
        ck_assert(b->y == PROA_NONE);
        memcpy(to + n, proa_data(b->x), (size_t)b->size * 8);
        n += b->size;
    }
    return n;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

START_TEST(an_epoch_is_a_permutation)
{
    int64_t first[103], second[103], again[103];
    proa_loader *l = proa_loader_new(numbers(103), .batch = 10, .shuffle = true, .seed = 5);
    ck_assert_int_eq(proa_loader_batches(l), 11);
    ck_assert_int_eq(epoch(l, first), 103);
    ck_assert_int_eq(epoch(l, second), 103);
    ck_assert_int_ne(memcmp(first, second, sizeof first), 0);
    ck_assert_int_eq(proa_loader_set_position(l, (proa_position){5, 0, 0}), PROA_OK);
    epoch(l, again);
    ck_assert_int_eq(memcmp(first, again, sizeof first), 0);
    qsort(first, 103, 8, compare);
    for (int64_t i = 0; i < 103; i++) ck_assert_int_eq(first[i], i);
    proa_loader_free(l);
    l = proa_loader_new(numbers(103), .batch = 10, .drop_last = true, .prefetch = PROA_NO_PREFETCH);
    ck_assert_int_eq(epoch(l, first), 100);
    for (int64_t i = 0; i < 100; i++) ck_assert_int_eq(first[i], i);
    proa_loader_free(l);
}
END_TEST

START_TEST(a_position_resumes_exactly)
{
    int64_t whole[200], resumed[200], n = 0;
    proa_loader *l = proa_loader_new(numbers(100), .batch = 7, .shuffle = true, .seed = 9);
    epoch(l, whole);
    epoch(l, whole + 100);
    proa_loader_free(l);
    l = proa_loader_new(numbers(100), .batch = 7, .shuffle = true, .seed = 9);
    n = epoch(l, resumed);
    proa_position at = {0};
    proa_each (b, l) {
        memcpy(resumed + n, proa_data(b->x), (size_t)b->size * 8);
        n += b->size;
        if (b->index == 3) {
            at = proa_loader_position(l);
            break;
        }
    }
    proa_position after = proa_loader_position(l);
    ck_assert(after.epoch == 1 && after.next == 4 && at.next == 4);
    proa_loader_free(l);
    l = proa_loader_new(numbers(100), .batch = 7, .shuffle = true);
    ck_assert_int_eq(proa_loader_set_position(l, at), PROA_OK);
    n += epoch(l, resumed + n);
    ck_assert_int_eq(n, 200);
    ck_assert_int_eq(memcmp(whole, resumed, sizeof whole), 0);
    ck_assert_int_eq(proa_loader_position(l).epoch, 2);
    proa_loader_free(l);
}
END_TEST

START_TEST(ranks_share_a_batch)
{
    int64_t one[50], parts[2][50], n[2];
    proa_loader *l = proa_loader_new(numbers(50), .batch = 8, .shuffle = true, .seed = 3);
    epoch(l, one);
    proa_loader_free(l);
    for (int r = 0; r < 2; r++) {
        l = proa_loader_new(numbers(50), .batch = 4, .shuffle = true, .seed = 3, .rank = r, .size = 2);
        n[r] = epoch(l, parts[r]);
        proa_loader_free(l);
    }
    ck_assert_int_eq(n[0] + n[1], 50);
    for (int b = 0; b < 6; b++)
        for (int r = 0; r < 2; r++) ck_assert_int_eq(memcmp(one + 8 * b + 4 * r, parts[r] + 4 * b, 32), 0);
}
END_TEST

static proa_status failing(void *context, int64_t index, proa_tensor **to)
{
    (void)context;
    if (index == 5) return proa_fail(PROA_ERR_IO, "sample five is gone");
    to[0] = proa_empty(PROA_SHAPE(2), PROA_F32);
    return to[0] ? PROA_OK : proa_error();
}

START_TEST(an_error_ends_the_loop)
{
    proa_dataset_desc desc = {.count = 10, .fields = 1, .item = failing};
    for (int prefetch = -1; prefetch < 4; prefetch++) {
        int64_t live = proa_memory_get_stats().live_blocks;
        proa_loader *l = proa_loader_new(proa_dataset_new(&desc), .batch = 2, .prefetch = prefetch);
        int seen = 0;
        proa_each (b, l) seen += (int)b->size;
        ck_assert_int_eq(seen, 4);
        ck_assert_int_eq(proa_error(), PROA_ERR_IO);
        ck_assert_str_eq(proa_error_message(), "sample five is gone");
        proa_clear_error();
        seen = 0;
        proa_each (b, l) {
            seen++;
            proa_fail(PROA_ERR_NUMERIC, "stop");
        }
        ck_assert_int_eq(seen, 1);
        proa_clear_error();
        proa_loader_free(l);
        ck_assert_int_eq(proa_memory_get_stats().live_blocks, live);
    }
}
END_TEST

static int64_t leave_early(proa_loader *l)
{
    proa_each (b, l) {
        proa_empty(PROA_SHAPE(1000), PROA_F32);
        if (b->index == 1) return proa_numel(b->x);
    }
    return -1;
}

START_TEST(return_leaves_scope_and_thread)
{
    proa_loader *l = proa_loader_new(numbers(40), .batch = 4, .prefetch = 3);
    int64_t live = proa_memory_get_stats().live_blocks;
    for (int i = 0; i < 20; i++) ck_assert_int_eq(leave_early(l), 4);
    ck_assert_int_eq(proa_memory_get_stats().live_blocks, live);
    proa_each (a, l) {
        proa_each (b, l) (void)b;
        ck_assert_int_eq(proa_error(), PROA_ERR_BAD_STATE);
        ck_assert_ptr_nonnull(a);
    }
    proa_clear_error();
    proa_loader_free(l);
}
END_TEST

START_TEST(text_windows)
{
    const char *text = "h\xc3\xa9llo w\xc3\xb6rld";
    proa_text *t = proa_text_from_memory(text, strlen(text), false);
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(proa_text_vocabulary(t), 9); /* space d h l o r w é ö */
    ck_assert_int_eq(proa_numel(proa_text_tokens(t)), 11);
    proa_tensor *code = proa_text_encode(t, "\xc3\xb6l");
    char to[5];
    ck_assert_int_eq(proa_text_decode(t, ((int64_t *)proa_data(code))[0], to), PROA_OK);
    ck_assert_str_eq(to, "\xc3\xb6");
    ck_assert_ptr_null(proa_text_encode(t, "xyz"));
    ck_assert_int_eq(proa_error(), PROA_ERR_NOT_FOUND);
    proa_clear_error();
    proa_dataset *d = proa_text_dataset(t, 4, 3);
    ck_assert_int_eq(proa_dataset_count(d), 3);
    proa_tensors b = proa_dataset_batch(d, (int64_t[]){2}, 1);
    const int64_t *x = proa_data(b.at[0]), *y = proa_data(b.at[1]),
                  *all_tokens = proa_data(proa_text_tokens(t));
    for (int i = 0; i < 4; i++) ck_assert(x[i] == all_tokens[6 + i] && y[i] == all_tokens[7 + i]);
    proa_dataset_free(d);
    proa_text_free(t);
    ck_assert_ptr_null(proa_text_from_memory("a\xff", 2, false));
    ck_assert_int_eq(proa_error(), PROA_ERR_CORRUPT);
    proa_clear_error();
    t = proa_text_from_memory("a\xff", 2, true);
    ck_assert_int_eq(proa_text_vocabulary(t), 256);
    proa_text_free(t);
    t = proa_text_load("examples/data/alice.txt", false);
    ck_assert_ptr_nonnull(t);
    ck_assert(proa_numel(proa_text_tokens(t)) > 100000 && proa_text_vocabulary(t) < 100);
    proa_text_free(t);
}
END_TEST

START_TEST(progress_lines)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    proa_progress *p = proa_progress_new(f, "epoch 1", 10);
    proa_progress_value(p, "loss", 0.5);
    proa_progress_step(p, 10);
    proa_progress_end(p);
    fclose(f);
    ck_assert_ptr_nonnull(strstr(text, "epoch 1 10/10  loss 0.5"));
    ck_assert_ptr_null(strchr(text, '\r'));
    free(text);
}
END_TEST

SUITE("io_data", csv_values, csv_numbers_are_correctly_rounded, csv_errors_say_where, the_digits_are_there,
      idx_files, an_epoch_is_a_permutation, a_position_resumes_exactly, ranks_share_a_batch,
      an_error_ends_the_loop, return_leaves_scope_and_thread, text_windows, progress_lines)
