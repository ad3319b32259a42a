/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Against a munged of its own, with its own key and socket. */
#include "test.h"

#include "base/munge.h"
#include "base/thread.h"
#include "files.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>

static bool library_is_missing;

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
    return library_is_missing ? NULL : __real_dlopen(name, flags);
}

static const char munged_program[] = "/usr/sbin/munged";
static const char host_address[] = "127.0.0.9";
static pid_t munged;
static const char *munge_socket;

static void start_munged(void)
{
    static const char *const files[] = { "key", "socket", "pid", "log", "seed" };
    char flags[COUNT(files)][300];
    unsigned char key[256];
    /* In a user namespace, /tmp has an unknown owner, which munged refuses without --force. */
    char *argv[COUNT(files) + 5] = { (char *)munged_program, (char *)"--foreground",
                                     (char *)"--force", (char *)"--origin=127.0.0.9" };
    posix_spawn_file_actions_t actions;

    need("munge");
    assert_int_equal(getrandom(key, sizeof(key), 0), sizeof(key));
    assert_int_equal(chmod(write_bytes("key", (struct str){ (char *)key, sizeof(key) }), 0600), 0);
    munge_socket = test_path("socket");
    for (size_t i = 0; i < COUNT(files); i++) {
        snprintf(flags[i], sizeof(flags[i]), "--%s%s=%s", files[i], i == 1 ? "" : "-file",
                 test_path("%s", files[i]));
        argv[i + 4] = flags[i];
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    assert_int_equal(posix_spawn(&munged, munged_program, &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    wait_until_true(access(munge_socket, W_OK) == 0);
}

static void stop_munged(void)
{
    kill(munged, SIGTERM);
    waitpid(munged, NULL, 0);
}

PROGRAM_FIXTURE(start_munged, stop_munged)

static char *seal(struct str payload)
{
    struct err err = { 0 };
    char *credential = NULL;

    if (munge_seal(munge_socket, payload, &credential, &err) < 0)
        fail_msg("%s", err.text);
    return credential;
}

static int unseal(struct str credential, struct buf *to, struct munge_origin *ret, struct err *err)
{
    return munge_unseal(munge_socket, credential, to, ret, err);
}

static void *seal_once(void *arg)
{
    char *credential;
    int code = munge_seal(munge_socket, STR("x"), &credential, NULL);

    if (code == 0)
        free(credential);
    *(int *)arg = code;
    return NULL;
}

/* In a process of its own, and before anything else, since the library is looked for once. */
TEST(without_the_library_it_is_named)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        struct err err = { 0 };
        char *credential;
        int code;

        library_is_missing = true;
        code = munge_seal(NULL, STR("x"), &credential, &err);
        _exit(code == -ENOENT && strstr(err.text, "libmunge.so.2") ? 0 : 1);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

TEST(several_threads_may_be_the_first)
{
    pthread_t threads[4];
    int codes[COUNT(threads)];

    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(thread_start(&threads[i], "seal", seal_once, &codes[i], NULL), 0);
    for (size_t i = 0; i < COUNT(threads); i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(codes[i], 0);
    }
}

TEST(what_was_sealed_comes_out_with_its_maker)
{
    static const char payload[] = "{\"job_id\":1}\0and after a NUL";
    struct buf out;
    struct munge_origin origin = { .uid = (uid_t)-1 };
    struct err err;
    char *credential;

    credential = seal((struct str){ payload, sizeof(payload) });
    assert_true(str_starts(str_of(credential), STR("MUNGE:")));
    buf_init(&out, 1000);
    buf_text(&out, "before ");
    assert_int_equal(unseal(str_of(credential), &out, &origin, &err), 0);
    assert_true(str_starts(buf_str(&out), STR("before {\"job_id\":1}")));
    assert_int_equal(out.n, strlen("before ") + sizeof(payload));
    assert_memory_equal(out.p + strlen("before "), payload, sizeof(payload));
    assert_int_equal(origin.uid, geteuid());
    assert_string_equal(inet_ntoa(origin.address), host_address);
    buf_free(&out);
    free(credential);
}

TEST(a_credential_opens_once)
{
    struct buf out;
    struct munge_origin origin = { .uid = 4711 };
    struct err err;
    char *credential;

    credential = seal(STR("secret"));
    buf_init(&out, 1000);
    assert_int_equal(unseal(str_of(credential), &out, &origin, &err), 0);
    buf_reset(&out);
    origin.uid = 4711;
    assert_int_equal(unseal(str_of(credential), &out, &origin, &err), -EACCES);
    assert_contains(err.text, "one use");
    assert_int_equal(origin.uid, 4711);
    assert_int_equal(out.n, 0);
    buf_free(&out);
    free(credential);
}

TEST(a_changed_credential_is_refused_wherever_it_was_changed)
{
    struct buf out;
    struct munge_origin origin = { .uid = 4711 };
    struct err err;
    char *credential;
    size_t n;

    credential = seal(STR("a payload that is long enough to be hit"));
    n = strlen(credential);
    buf_init(&out, 1000);
    for (size_t i = 0; i < n; i++) {
        char before = credential[i];

        /* The last letter before the padding can be changed without a change of what it says. */
        if (before == '=' || credential[i + 1] == '=' || credential[i + 1] == ':')
            continue;
        credential[i] = before == 'A' ? 'B' : 'A';
        assert_int_equal(unseal(str_of(credential), &out, &origin, &err), -EACCES);
        assert_string_not_equal(err.text, "");
        credential[i] = before;
    }
    assert_int_equal(unseal(str_head(str_of(credential), n / 2), &out, &origin, &err), -EACCES);
    assert_int_equal(out.n, 0);
    assert_int_equal(origin.uid, 4711);
    assert_int_equal(unseal(str_of(credential), &out, &origin, &err), 0);
    buf_free(&out);
    free(credential);
}

TEST(rubbish_is_refused)
{
    static const struct str rubbish[] = {
        STR_INIT(""),        STR_INIT("MUNGE:"),          STR_INIT("MUNGE::"),
        STR_INIT("{\"a\"}"), STR_INIT("MUNGE:AAAA====:"), STR_INIT("\xff\xfe\x01"),
    };
    struct buf out;
    struct munge_origin origin;
    struct err err;

    buf_init(&out, 1000);
    for (size_t i = 0; i < COUNT(rubbish); i++)
        assert_int_equal(unseal(rubbish[i], &out, &origin, &err), -EACCES);
    buf_free(&out);
}

TEST(nothing_can_hide_behind_a_nul)
{
    struct buf out, longer;
    struct munge_origin origin;
    struct err err;
    char *credential;

    credential = seal(STR("x"));
    buf_init(&out, 1000);
    buf_init(&longer, 1000);
    buf_text(&longer, credential);
    buf_put(&longer, STR("\0hidden"));
    assert_int_equal(unseal(buf_str(&longer), &out, &origin, &err), -EACCES);
    assert_contains(err.text, "NUL");
    buf_free(&out);
    buf_free(&longer);
    free(credential);
}

TEST(ceilings_hold_on_both_sides)
{
    struct buf out, large;
    struct munge_origin origin = { .uid = 4711 };
    struct err err;
    char *credential;

    credential = seal(STR("0123456789"));
    buf_init(&out, 9);
    assert_int_equal(unseal(str_of(credential), &out, &origin, &err), -EFBIG);
    assert_int_equal(origin.uid, 4711);
    free(credential);
    buf_free(&out);

    buf_init(&large, 4 << 20);
    while (!large.over)
        buf_text(&large, "much too much of it ");
    assert_int_equal(munge_seal(munge_socket, buf_str(&large), &credential, &err), -EFBIG);
    buf_free(&large);
}

TEST(without_munged_the_socket_is_named)
{
    struct err err;
    struct buf out;
    struct munge_origin origin;
    char *credential;

    assert_int_equal(munge_seal("/nonexistent/socket", STR("x"), &credential, &err), -ENOENT);
    assert_contains(err.text, "/nonexistent/socket");
    assert_contains(err.text, "is munged running");
    buf_init(&out, 100);
    assert_int_equal(munge_unseal("/nonexistent/socket", STR("MUNGE:AAAA:"), &out, &origin, &err),
                     -ENOENT);
    buf_free(&out);
}
