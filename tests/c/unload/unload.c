/* A host that loads libproa.so as a plug-in, and unloads it while workers spin and threads that used it live
 * on. Usage: unload LIBRARY. No library but C's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <proa.h>
#include <proa/threads.h>

#define FIND(handle, function) ((__typeof__(&(function)))(uintptr_t)dlsym(handle, #function))

enum { ROUNDS = 3, USERS = 3, SIDE = 256 };

typedef struct user {
    const char *library;
    pthread_barrier_t *used, *unloaded;
    float sum;
    int workers;
} user;

/* Loads the library under a lock. The loader has one too, but ThreadSanitizer does not see it, and would take
 * the constructors on the first thread and the calls on the second for a race. */
static void *load(const char *library)
{
    static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&loading);
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    pthread_mutex_unlock(&loading);
    return loaded;
}

/* Loads the library, has it work on two threads, and unloads it at once. */
static bool use(user *u)
{
    void *library = load(u->library);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return false;
    }
    FIND(library, proa_set_threads)(2);
    static const int64_t sizes[] = {SIDE, SIDE};
    proa_ints shape = {2, sizes, NULL, NULL};
    proa_tensor *x = FIND(library, proa_full_opt)(shape, FIND(library, proa_scalar_float)(0.5),
                                                  (proa_full_opts){.dtype = PROA_F32});
    proa_tensor *y = FIND(library, proa_matmul_opt)(x, x, (proa_matmul_opts){0});
    proa_tensor *sum = FIND(library, proa_sum_opt)(y, (proa_sum_opts){0});
    bool ok = FIND(library, proa_copy_out)(sum, &u->sum, sizeof u->sum) == PROA_OK;
    u->workers = FIND(library, proa_threads_info)().workers;
    dlclose(library);
    return ok;
}

static void *live(void *p)
{
    user *u = p;
    bool ok = use(u);
    pthread_barrier_wait(u->used);
    pthread_barrier_wait(
        u->unloaded); /* by everybody: this thread ends afterwards, and has things to release */
    return ok ? u : NULL;
}

int main(int argc, char **argv)
{
    const float want = (float)SIDE * SIDE * SIDE * 0.25f;
    bool right = argc == 2;
    for (int round = 0; right && round < ROUNDS; round++) {
        pthread_barrier_t used, unloaded;
        pthread_t threads[USERS];
        user users[USERS];
        pthread_barrier_init(&used, NULL, USERS + 1);
        pthread_barrier_init(&unloaded, NULL, USERS + 1);
        for (int i = 0; i < USERS; i++) {
            users[i] = (user){argv[1], &used, &unloaded, 0, 0};
            if (pthread_create(&threads[i], NULL, live, &users[i]) != 0) return 1;
        }
        pthread_barrier_wait(&used);
        usleep(20000); /* workers go to sleep, in code that must still be there */
        pthread_barrier_wait(&unloaded);
        for (int i = 0; i < USERS; i++) {
            void *ok = NULL;
            pthread_join(threads[i], &ok);
            right = right && ok && users[i].sum == want && users[i].workers >= 1;
            right =
                right && users[i].workers <= USERS; /* those of threads that ended serve the next round's */
        }
        pthread_barrier_destroy(&used);
        pthread_barrier_destroy(&unloaded);
    }
    printf("%s\n", right ? "right" : "wrong");
    return right ? 0 : 1;
}
