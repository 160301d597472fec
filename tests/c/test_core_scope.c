/* Scopes: what leaves with them, what is kept, returned or dropped. */
#include "core/internal.h"
#include "core/tensor.h"
#include "suite.h"

#include <pthread.h>
#include <unistd.h>

static int64_t live(void) { return proa_memory_get_stats().live_blocks; }
static proa_tensor *one(void) { return proa_empty(PROA_SHAPE(1), PROA_F32); }

START_TEST(a_scope_releases)
{
    one();
    int64_t before = live();
    PROA_SCOPE {
        for (int i = 0; i < 100; i++) one();
        ck_assert_ptr_nonnull(proa_scope_alloc(1000));
        ck_assert_int_eq(live(), before + 201);
    }
    ck_assert_int_eq(live(), before);
    ck_assert_int_eq(proa_finish(NULL), 0);
    ck_assert_int_eq(live(), before - 2);
}
END_TEST

static int leave_by_return(void)
{
    PROA_SCOPE {
        one();
        PROA_SCOPE {
            one();
            return 7;
        }
    }
    return 0;
}

static void leave_declared(void)
{
    PROA_SCOPED;
    one();
}

START_TEST(break_return_and_goto_leave)
{
    int64_t before = live();
    ck_assert_int_eq(leave_by_return(), 7);
    ck_assert_int_eq(live(), before);
    PROA_SCOPE {
        one();
        break;
    }
    ck_assert_int_eq(live(), before);
    PROA_SCOPE {
        one();
        goto out;
    }
out:
    ck_assert_int_eq(live(), before);
    for (int i = 0; i < 3; i++) {
        leave_declared();
        PROA_SCOPE {
            one();
            continue;
        }
    }
    ck_assert_int_eq(live(), before);
}
END_TEST

static proa_tensor *made_inside(int which)
{
    PROA_SCOPED;
    proa_tensor *t[5];
    for (int i = 0; i < 5; i++) t[i] = proa_from_data(&i, PROA_SCALAR_SHAPE, PROA_I32);
    proa_return(t[4]);
    return proa_return(t[which]);
}

START_TEST(return_moves_up_one_scope)
{
    int64_t before = live();
    PROA_SCOPE {
        proa_tensor *t = made_inside(2);
        ck_assert_int_eq(proa_item_int(t), 2);
        ck_assert_int_eq(live(), before + 4); /* the two that were returned */
        proa_tensor *u = made_inside(4);
        ck_assert_int_eq(proa_item_int(u), 4);
        ck_assert_int_eq(live(), before + 6);
        ck_assert_int_eq(proa_item_int(t), 2);
        proa_drop(t);
        proa_drop(u);
        ck_assert_int_eq(live(), before + 2);
    }
    ck_assert_int_eq(live(), before);
}
END_TEST

START_TEST(return_climbs_several_scopes)
{
    int64_t before = live();
    proa_tensor *t = NULL;
    PROA_SCOPE {
        one();
        PROA_SCOPE {
            one();
            PROA_SCOPE {
                one();
                t = one();
                one();
                proa_return(t);
                proa_return(t); /* twice is once */
            }
            ck_assert_int_eq(live(), before + 6);
            proa_return(t);
        }
        ck_assert_int_eq(live(), before + 4);
        PROA_SCOPE {
            proa_return(t); /* made further out: stays where it is */
        }
        ck_assert_int_eq(live(), before + 4);
    }
    ck_assert_int_eq(live(), before);
    ck_assert_ptr_null(proa_return(NULL));
    ck_assert_ptr_eq(proa_return(proa_none), proa_none);
}
END_TEST

START_TEST(take_hands_over_the_scopes_share)
{
    int64_t before = live();
    proa_tensor *last = NULL, *inner = NULL, *outer = NULL, *moved = NULL;
    PROA_SCOPE {
        outer = one();
        PROA_SCOPE {
            inner = one();
            one();
            last = proa_take(one());
            ck_assert_ptr_eq(proa_take(inner), inner); /* others lie above it */
            ck_assert_ptr_eq(proa_take(inner), inner); /* no scope has it: one more owner */
            proa_take(outer);                          /* its scope has its own */
            moved = proa_take(proa_return(one()));     /* moves up all the same */
        }
        ck_assert_int_eq(live(), before + 8);
        proa_release(inner);
        proa_release(inner);
        proa_release(last);
        ck_assert_int_eq(live(), before + 4);
    }
    ck_assert_int_eq(live(), before + 4);
    proa_release(outer);
    proa_release(moved);
    ck_assert_int_eq(live(), before);
    ck_assert_ptr_null(proa_take(NULL));
    ck_assert_ptr_eq(proa_take(proa_none), proa_none);
    proa_tensor *rooted = proa_take(one()); /* in the root scope: as proa_keep */
    proa_drop(rooted);
    proa_release(rooted);
    ck_assert_int_eq(live(), before);
}
END_TEST

START_TEST(keep_outlives_the_scope)
{
    int64_t before = live();
    proa_tensor *t = NULL;
    PROA_SCOPE {
        t = proa_keep(one());
    }
    ck_assert_int_eq(live(), before + 2);
    *(float *)proa_data(t) = 3;
    PROA_SCOPE {
        proa_return(t); /* owned elsewhere: nothing to move */
    }
    ck_assert_float_eq((float)proa_item(t), 3);
    proa_release(t);
    ck_assert_int_eq(live(), before);
    ck_assert_ptr_null(proa_keep(NULL));
}
END_TEST

START_TEST(drop_is_early_and_leaves_no_hole)
{
    int64_t before = live();
    PROA_SCOPE {
        for (int i = 0; i < 100000; i++) { /* the stack must not grow */
            proa_tensor *a = one(), *b = one();
            proa_drop(a);
            proa_drop(b);
        }
        ck_assert_int_eq(live(), before);
        proa_tensor *a = one(), *b = one();
        proa_drop(a);
        proa_drop(proa_return(b));
        one();
    }
    ck_assert_int_eq(live(), before);
    proa_drop(NULL);
    proa_drop(proa_none);
    ck_assert_int_eq(proa_error(), PROA_OK);
}
END_TEST

START_TEST(a_carried_state_leaves_no_holes)
{
    one();
    int64_t bytes = proa_memory_get_stats().live_bytes;
    for (int round = 0; round < 2; round++) {
        proa_tensor *other = one(), *state = one();
        for (int i = 0; i < 100000; i++) {
            proa_tensor *next = one();
            if (i == 500) proa_drop(other);
            proa_drop(state);
            state = next;
        }
        *(float *)proa_data(state) = 4;
        ck_assert_float_eq((float)proa_item(state), 4);
        proa_drop(state);
        ck_assert_int_eq(proa_memory_get_stats().live_bytes, bytes);
        if (round == 0) proa_scope_enter(); /* the same inside a scope */
    }
    ck_assert_int_eq(proa_finish(NULL), 0);
}
END_TEST

#if !defined(NDEBUG)
START_TEST(a_debug_build_reports_a_full_root_scope)
{
    FILE *f = tmpfile();
    int saved = dup(STDERR_FILENO);
    dup2(fileno(f), STDERR_FILENO);
    PROA_SCOPE {
        for (int i = 0; i < 10050; i++) one();
    }
    ck_assert_int_eq(lseek(fileno(f), 0, SEEK_END), 0); /* other scopes may hold as many as they like */
    for (int i = 0; i < 20100; i++) one();
    dup2(saved, STDERR_FILENO);
    char text[400] = {0};
    rewind(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    ck_assert_uint_gt(n, 0);
    ck_assert_ptr_nonnull(strstr(text, "PROA_SCOPE"));
    ck_assert_ptr_null(strstr(strstr(text, "PROA_SCOPE") + 1, "PROA_SCOPE")); /* once */
    ck_assert_int_eq(proa_finish(NULL), 0);
    fclose(f);
}
END_TEST
#else
START_TEST(a_debug_build_reports_a_full_root_scope) { ck_assert_ptr_nonnull(one()); }
END_TEST
#endif

START_TEST(misuse_is_an_error_not_a_crash)
{
    int64_t before = live();
    proa_tensor *t = NULL;
    PROA_SCOPE {
        t = proa_keep(one());
    }
    proa_drop(t); /* kept, in no scope */
    ck_assert_int_eq(proa_error(), PROA_ERR_BAD_STATE);
    proa_clear_error();
    proa_release(t);
    PROA_SCOPE {
        t = one();
        proa_release(t); /* its scope owns it */
        ck_assert_int_eq(proa_error(), PROA_ERR_BAD_STATE);
        proa_clear_error();
        proa_keep(t);
        proa_release(t);
        ck_assert_int_eq(proa_error(), PROA_OK);
    }
    ck_assert_int_eq(live(), before);
    proa_scope outer = proa_scope_enter();
    one();
    proa_scope inner = proa_scope_enter();
    one();
    proa_scope_leave(&outer); /* ends the inner one, too */
    ck_assert_int_eq(live(), before);
    proa_scope_leave(&inner);
    proa_scope_leave(&outer);
    one();
    ck_assert_int_eq(live(), before + 2);
    proa_scope_leave(&inner);
    ck_assert_int_eq(live(), before + 2);
    ck_assert_int_eq(proa_finish(NULL), 0);
}
END_TEST

START_TEST(deep_and_wide)
{
    enum { DEEP = 2000 };
    static proa_scope at[DEEP];
    int64_t before = live(), bytes = proa_memory_get_stats().live_bytes;
    for (int i = 0; i < DEEP; i++) {
        at[i] = proa_scope_enter();
        for (int k = 0; k < 5; k++) one();
    }
    ck_assert_int_ge(live(), before + 10 * DEEP);
    for (int i = DEEP; i-- > 0;) {
        proa_return(one());
        proa_scope_leave(&at[i]);
    }
    ck_assert_int_eq(proa_finish(NULL), 0);
    ck_assert_int_eq(live(), before);
    ck_assert_int_eq(proa_memory_get_stats().live_bytes, bytes);
}
END_TEST

static void *other_thread(void *t)
{
    proa_drop(t); /* not in a scope of this thread */
    bool refused = proa_error() == PROA_ERR_BAD_STATE;
    PROA_SCOPE {
        one();
    }
    return refused ? t : NULL;
}

START_TEST(scopes_belong_to_a_thread)
{
    PROA_SCOPE {
        proa_tensor *t = one();
        pthread_t thread;
        void *got = NULL;
        pthread_create(&thread, NULL, other_thread, t);
        pthread_join(thread, &got);
        ck_assert_ptr_eq(got, t);
        ck_assert_int_eq(proa_error(), PROA_OK); /* so do errors */
    }
}
END_TEST

START_TEST(no_memory_for_a_scope)
{
    PROA_SCOPE {
        for (int i = 0; i < 511; i++) one(); /* with the mark the inline stack is full */
        proa_memory_fail_after(0);
        int64_t before = live();
        PROA_SCOPE {
            ck_assert_int_eq(proa_error(), PROA_ERR_OUT_OF_MEMORY);
        }
        proa_clear_error();
        proa_memory_fail_after(0);
        ck_assert_ptr_null(proa_scope_alloc(10));
        proa_clear_error();
        proa_memory_fail_after(1); /* the block, then the stack */
        ck_assert_ptr_null(proa_scope_alloc(10));
        ck_assert_int_eq(live(), before);
        proa_clear_error();
        ck_assert_ptr_nonnull(proa_scope_alloc(10));
    }
}
END_TEST

SUITE("core_scope", a_scope_releases, break_return_and_goto_leave, return_moves_up_one_scope,
      return_climbs_several_scopes, take_hands_over_the_scopes_share, keep_outlives_the_scope,
      drop_is_early_and_leaves_no_hole, a_carried_state_leaves_no_holes,
      a_debug_build_reports_a_full_root_scope, misuse_is_an_error_not_a_crash, deep_and_wide,
      scopes_belong_to_a_thread, no_memory_for_a_scope)
