/* Faults of GPU code that the emulator finds: the kernels of tests/devices/wrong.cc, and that right ones of
 * the same form pass. */
#include "suite.h"
#include "tests/devices/wrong.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether a process that makes the call is ended by a signal. */
static bool ends(void (*call)(int), int i)
{
    int status = 0;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)!freopen("/dev/null", "w", stderr); /* what it says is for people */
        call(i);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status);
}

START_TEST(missing_barriers_show_in_some_launches)
{
    ck_assert_int_eq(wrong_reads(WRONG_BARRIER, 1), 0);
    ck_assert_int_eq(wrong_reads(WRONG_BARRIER, -1), 0);
    ck_assert_int_eq(wrong_reuse(WRONG_BARRIER), 0);
    ck_assert_int_gt(wrong_reads(WRONG_NONE, 1), 4);
    ck_assert_int_gt(wrong_reads(WRONG_NONE, -1), 4);
    ck_assert_int_gt(wrong_reuse(WRONG_NONE), 4);
}
END_TEST

START_TEST(missing_waits_for_copies_show)
{
    ck_assert_int_eq(wrong_copies(WRONG_BARRIER), 0);
    ck_assert_int_eq(wrong_copies(WRONG_NONE), 32);
}
END_TEST

START_TEST(lanes_that_are_gone_give_nonsense) { ck_assert(isnan(wrong_gone_lane())); }
END_TEST

static void undefined(int i)
{
    static void (*const calls[])(void) = {wrong_shuffles, wrong_barriers, wrong_alignment, wrong_grid,
                                          wrong_shared};
    calls[i]();
}

START_TEST(what_is_undefined_ends_the_program)
{
    for (int i = 0; i < 5; i++) ck_assert_msg(ends(undefined, i), "call %d", i);
}
END_TEST

static void nothing(int i) { (void)i; }

START_TEST(what_cannot_be_recorded_ends_the_program)
{
    for (int i = 0; i < WRONG_RECORDINGS; i++) ck_assert_msg(ends(wrong_recording, i), "call %d", i);
    ck_assert(!ends(wrong_recording, WRONG_RECORDINGS)); /* none of them */
    ck_assert(!ends(nothing, 0));
}
END_TEST

SUITE("cuda emulator", missing_barriers_show_in_some_launches, missing_waits_for_copies_show,
      lanes_that_are_gone_give_nonsense, what_is_undefined_ends_the_program,
      what_cannot_be_recorded_ends_the_program)
