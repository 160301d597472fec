/* The profiler from C: rows of eager calls and of programs, stretches, table, trace, errors, and every
 * allocation of a recording failing once. */
#include "suite.h"

#include <proa.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void expect(proa_status code, const char *part)
{
    ck_assert_int_eq(proa_error(), code);
    ck_assert_msg(strstr(proa_error_message(), part) != NULL, "'%s' lacks '%s'", proa_error_message(), part);
    proa_clear_error();
}

static proa_profile_row row_of(const char *name)
{
    static proa_profile_row rows[100];
    int64_t n = proa_profile_rows(rows, 100);
    for (int64_t i = 0; i < n && i < 100; i++)
        if (strcmp(rows[i].name, name) == 0) return rows[i];
    return (proa_profile_row){.name = NULL};
}

static void work(int times)
{
    PROA_SCOPED;
    proa_tensor *x = proa_full(PROA_SHAPE(3, 4), 1.0), *y = proa_full(PROA_SHAPE(4, 5), 1.0);
    for (int i = 0; i < times; i++) proa_exp(proa_matmul(x, y));
}

START_TEST(rows_and_stretches)
{
    work(1);
    ck_assert_int_eq(proa_profile_rows(NULL, 0), 0);
    ck_assert_int_eq((int)proa_profile_begin(), 0);
    ck_assert_int_eq(proa_profile_start(), PROA_OK);
    ck_assert(proa_profile_is_on());
    int64_t began = proa_profile_begin();
    work(7);
    ck_assert_int_eq(proa_profile_end("seven", began), PROA_OK);
    ck_assert_int_eq(proa_profile_stop(), PROA_OK);
    ck_assert(!proa_profile_is_on());
    work(1);
    ck_assert_int_eq(proa_profile_end("late", began), PROA_OK); /* is of no recording */
    ck_assert(!row_of("late").name);
    proa_profile_row m = row_of("matmul"), e = row_of("exp"), s = row_of("seven");
    ck_assert(m.is_op && e.is_op && !s.is_op);
    ck_assert_int_eq(m.count, 7);
    ck_assert(m.flops == 7 * 2.0 * 3 * 4 * 5 && e.flops == 0);
    ck_assert(m.bytes == 7 * 4.0 * (12 + 20 + 15) && e.bytes == 7 * 4.0 * 30);
    ck_assert(m.least > 0 && m.least <= m.most && m.most <= m.total);
    ck_assert(s.count == 1 && s.total >= m.total + e.total && s.total <= proa_profile_seconds());
    ck_assert_int_eq(proa_profile_start(), PROA_OK); /* forgets */
    ck_assert_int_eq(proa_profile_rows(NULL, 0), 0);
    ck_assert_int_eq(proa_profile_stop(), PROA_OK);
    ck_assert_int_eq(proa_profile_stop(), PROA_OK);
}
END_TEST

static proa_tensors forward(proa_tensors in, void *context)
{
    (void)context;
    proa_tensor *out = proa_exp(proa_matmul(in.at[0], in.at[0]));
    proa_tensor **list = proa_scope_alloc(sizeof *list);
    if (!list) return (proa_tensors){0, NULL};
    list[0] = out;
    return (proa_tensors){1, list};
}

START_TEST(steps_of_programs)
{
    proa_program *p = proa_capture(forward, &(proa_input_spec){.shape = PROA_SHAPE(4, 4)}, 1, NULL);
    proa_executor *e = proa_executor_new(p);
    ck_assert_msg(e != NULL, "%s", proa_error_message());
    proa_tensor *x = proa_full(PROA_SHAPE(4, 4), 0.5);
    proa_profile_start();
    for (int i = 0; i < 3; i++) proa_executor_run(e, PROA_LIST(x));
    proa_profile_stop();
    ck_assert_int_eq(row_of("matmul").count, 3);
    ck_assert_int_eq(row_of("exp").count, 3);
    ck_assert_str_eq(row_of("exp").kernel, "exp_cpu");
    ck_assert_int_eq(strncmp(row_of("matmul").kernel, "matmul_", 7), 0);
    proa_executor_free(e);
    proa_program_free(p);
}
END_TEST

START_TEST(table_and_trace)
{
    char text[4096] = "", path[] = "/tmp/proa-profile-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    proa_profile_start();
    work(2);
    ck_assert_int_eq(proa_profile_write_trace(path), PROA_ERR_BAD_STATE);
    expect(PROA_ERR_BAD_STATE, "stop it first");
    ck_assert_int_eq(proa_profile_start(), PROA_ERR_BAD_STATE);
    expect(PROA_ERR_BAD_STATE, "already");
    proa_profile_stop();
    FILE *to = fmemopen(text, sizeof text, "w");
    ck_assert_int_eq(proa_profile_print(to, PROA_PROFILE_BY_TOTAL, "us"), PROA_OK);
    fclose(to);
    ck_assert_msg(strstr(text, "total us") && strstr(text, "\nmatmul ") && strstr(text, " exp_cpu "), "%s",
                  text);
    ck_assert_int_eq(proa_profile_print(stdout, PROA_PROFILE_BY_TOTAL, "h"), PROA_ERR_INVALID_ARGUMENT);
    expect(PROA_ERR_INVALID_ARGUMENT, "'h'");
    ck_assert_int_eq(proa_profile_write_trace(path), PROA_OK);
    to = fopen(path, "r");
    size_t n = fread(text, 1, sizeof text - 1, to);
    text[n] = 0;
    fclose(to);
    unlink(path);
    ck_assert_msg(strstr(text, "\"traceEvents\":[\n{\"name\":\"full\",\"cat\":\"op\",\"ph\":\"X\""), "%s",
                  text);
    proa_profile_write_trace("/no/such/folder/trace.json");
    expect(PROA_ERR_IO, "/no/such/folder");
}
END_TEST

/* The call that finds no memory to be recorded fails; the profiler goes on. */
START_TEST(every_allocation_may_fail)
{
    for (int64_t n = 0;; n++) {
        proa_profile_start();
        proa_memory_fail_after(n);
        work(1);
        int64_t began = proa_profile_begin();
        proa_profile_end("stretch", began);
        bool failed = proa_error() != PROA_OK;
        if (failed) expect(PROA_ERR_OUT_OF_MEMORY, "memory");
        proa_memory_fail_after(-1);
        ck_assert_int_eq(proa_profile_stop(), PROA_OK);
        if (!failed && row_of("stretch").count == 1) {
            ck_assert_int_gt(n, 0);
            break;
        }
        ck_assert_int_lt(n, 200);
    }
}
END_TEST

SUITE("profile", rows_and_stretches, steps_of_programs, table_and_trace, every_allocation_may_fail)
