/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each test does it in a child, for it cannot be undone. */
#include "test.h"

#include "base/num.h"
#include "base/privileges.h"
#include "base/thread.h"
#include "files.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { UNPRIVILEGED = 64999 };

static const struct privilege kept[] = {
    { CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "Files of others cannot be read." },
    { CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "Processes of others cannot be read." },
};

/* Runs it in a child; it returns NULL, or what is wrong. */
static void in_child(const char *(*check)(void))
{
    char wrong[600] = "";
    int ends[2], status;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const char *text = check();

        if (text)
            (void)!write(ends[1], text, strlen(text));
        _exit(text != NULL);
    }
    close(ends[1]);
    (void)!read(ends[0], wrong, sizeof(wrong) - 1);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
        fail_msg("%s (status %d)", wrong, status);
}

/* A line of the thread's status in /proc: "CapEff:\t0000…". */
static const char *status_of(const char *key)
{
    static char text[8192];
    int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    struct str rest = { text, n > 0 ? (size_t)n : 0 };

    close(fd);
    while (rest.p) {
        struct str line = str_cut(&rest, '\n');

        if (str_starts(line, str_of(key))) {
            line = str_trim(str_skip(line, strlen(key)));
            text[line.p - text + (ptrdiff_t)line.n] = '\0';
            return line.p;
        }
    }
    return "";
}

static const char *expect(const char *key, const char *value)
{
    static char wrong[300];
    const char *found = status_of(key);

    if (strcmp(found, value) == 0)
        return NULL;
    snprintf(wrong, sizeof(wrong), "%s is %s, not %s", key, found, value);
    return wrong;
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return #condition;                                                                     \
    } while (0)
#define EXPECT(key, value)                                                                         \
    do {                                                                                           \
        const char *wrong_ = expect(key, value);                                                   \
        if (wrong_)                                                                                \
            return wrong_;                                                                         \
    } while (0)

/* bits 2 and 19 */
#define BOTH "0000000000080004"
#define NONE "0000000000000000"

static const char *check_root(void)
{
    uint32_t missing = 99;
    struct err err = { 0 };

    if (privileges_keep(kept, COUNT(kept), NULL, &missing, &err) < 0)
        return err.text[0] ? strdup(err.text) : "failed";
    CHECK(missing == 0);
    EXPECT("CapPrm:", BOTH);
    EXPECT("CapEff:", BOTH);
    EXPECT("CapInh:", NONE);
    EXPECT("CapAmb:", NONE);
    EXPECT("CapBnd:", BOTH);
    EXPECT("NoNewPrivs:", "1");
    CHECK(prctl(PR_GET_DUMPABLE) == 0);
    CHECK(geteuid() == 0);
    CHECK(setuid(1) < 0 && errno == EPERM);
    CHECK(kill(1, 0) == 0); /* its own user's: no capability is needed */
    return NULL;
}

TEST(root_keeps_what_is_needed_and_nothing_else)
{
    need("root");
    in_child(check_root);
}

static const char *secret;

static const char *check_user(void)
{
    uint32_t missing = 99;
    struct err err = { 0 };
    gid_t groups[4];
    int fd;

    if (privileges_keep(kept, COUNT(kept), "64999", &missing, &err) < 0)
        return strdup(err.text);
    CHECK(missing == 0);
    CHECK(getuid() == UNPRIVILEGED && geteuid() == UNPRIVILEGED && getgid() == UNPRIVILEGED);
    CHECK(getgroups(4, groups) == 1 && groups[0] == UNPRIVILEGED);
    EXPECT("CapEff:", BOTH);
    EXPECT("CapPrm:", BOTH);
    EXPECT("CapBnd:", BOTH);
    CHECK(setuid(0) < 0);
    /* it reads everything and writes nothing */
    fd = open(secret, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(open(secret, O_WRONLY | O_CLOEXEC) < 0 && errno == EACCES);
    CHECK(kill(1, 0) < 0 && errno == EPERM);
    return NULL;
}

TEST(another_user_with_the_capabilities_reads_everything_and_owns_nothing)
{
    need("root");
    secret = write_file("secret", "");
    assert_int_equal(chmod(secret, 0600), 0);
    in_child(check_user);
}

static const char *check_death_signal(void)
{
    uint32_t missing;
    struct err err = { 0 };
    int number = 0;

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (privileges_keep(kept, COUNT(kept), "64999", &missing, &err) < 0)
        return strdup(err.text);
    CHECK(prctl(PR_GET_PDEATHSIG, &number) == 0 && number == SIGTERM);
    return NULL;
}

TEST(another_user_still_ends_with_its_parent)
{
    need("root");
    in_child(check_death_signal);
}

static const char *check_without(void)
{
    CHECK(thread_set_capabilities(0));
    EXPECT("CapEff:", NONE);
    EXPECT("CapPrm:", NONE);
    return NULL;
}

static void *give_up_in_thread(void *ret)
{
    *(const char **)ret = check_without();
    return NULL;
}

static const char *check_thread(void)
{
    const char *wrong = "no thread";
    uint32_t missing;
    struct err err = { 0 };
    pthread_t thread;

    if (privileges_keep(kept, COUNT(kept), NULL, &missing, &err) < 0 ||
        thread_start(&thread, "without", give_up_in_thread, &wrong, &err) < 0)
        return strdup(err.text);
    pthread_join(thread, NULL);
    if (wrong)
        return wrong;
    EXPECT("CapEff:", BOTH);
    return NULL;
}

TEST(a_thread_gives_up_its_capabilities_alone)
{
    need("root");
    in_child(check_thread);
}

static const char *check_missing(void)
{
    uint32_t missing = 99;
    struct err err = { 0 };

    if (setresgid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED) < 0 ||
        setresuid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED) < 0)
        return "cannot become nobody";
    if (privileges_keep(kept, COUNT(kept), NULL, &missing, &err) < 0)
        return strdup(err.text);
    CHECK(missing == 3);
    EXPECT("CapEff:", NONE);
    EXPECT("NoNewPrivs:", "1");
    CHECK(privileges_keep(kept, COUNT(kept), "0", &missing, &err) < 0);
    CHECK(strstr(err.text, "cannot become user 0"));
    CHECK(privileges_keep(kept, COUNT(kept), "64999", &missing, &err) == 0);
    return NULL;
}

TEST(somebody_without_capabilities_is_told_which_are_missing)
{
    need("root");
    in_child(check_missing);
}

/* As a unit's SystemCallFilter does. */
static bool forbid_capset(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_capset, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { COUNT(filter), filter };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

static const char *check_filter(void)
{
    uint32_t missing = 99;
    struct err err = { 0 };

    if (privileges_keep(kept, COUNT(kept), NULL, &missing, &err) < 0)
        return strdup(err.text);
    CHECK(forbid_capset());
    CHECK(privileges_keep(kept, COUNT(kept), NULL, &missing, &err) == 0);
    CHECK(missing == 0);
    CHECK(privileges_keep(kept, 1, NULL, &missing, &err) == -EPERM);
    CHECK(strcmp(err.text, "cannot give up capabilities: Operation not permitted") == 0);
    return NULL;
}

TEST(a_filter_that_forbids_giving_up_is_no_matter_if_nothing_is_left_to)
{
    need("root");
    in_child(check_filter);
}

static const char *check_unknown(void)
{
    uint32_t missing = 99;
    struct err err = { 0 };

    CHECK(privileges_keep(kept, COUNT(kept), "no-such-user\n", &missing, &err) == -EINVAL);
    CHECK(strstr(err.text, "there is no user \"no-such-user\\n\""));
    CHECK(missing == 99);
    return NULL;
}

TEST(an_unknown_user_is_named)
{
    in_child(check_unknown);
}

static const char *check_priority(void)
{
    privileges_lower_priority();
    CHECK(getpriority(PRIO_PROCESS, 0) >= 10);
    CHECK(syscall(SYS_ioprio_get, 1, 0) == (2 << 13 | 7));
    setpriority(PRIO_PROCESS, 0, 19);
    privileges_lower_priority();
    CHECK(getpriority(PRIO_PROCESS, 0) == 19);
    return NULL;
}

TEST(others_come_first)
{
    in_child(check_priority);
}
