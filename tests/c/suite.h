/* One Check program a file: SUITE("name", test_a, test_b) is its main. Every test runs in a process of its
 * own (unless CK_FORK=no), so that none sees another's flags, caches or error. */
#ifndef PROA_TESTS_SUITE_H
#define PROA_TESTS_SUITE_H

#include <check.h>
#include <stdlib.h>

/* The folder that a test may write to: the build's under ctest, /tmp for a program started by hand. */
static inline const char *test_folder(void)
{
    const char *given = getenv("PROA_TEST_TMP");
    return given ? given : "/tmp";
}

static inline int suite_run(const char *name, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *all = tcase_create("all");
    if (!getenv("CK_DEFAULT_TIMEOUT")) tcase_set_timeout(all, 120);
    for (size_t i = 0; i < count; i++) tcase_add_test(all, tests[i]);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define SUITE(name, ...)                                             \
    int main(void)                                                   \
    {                                                                \
        const TTest *const tests[] = {__VA_ARGS__};                  \
        return suite_run(name, tests, sizeof tests / sizeof *tests); \
    }

#endif
