/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Drops privileges and keeps only the capabilities that are needed. */
#include "base/privileges.h"

#include "base/num.h"
#include "base/quote.h"
#include "base/thread.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static const int niceness = 10;

struct identity {
    uid_t uid;
    gid_t gid;
    char name[64]; /* empty: only the number is known, and there are no other groups */
};

static int find_identity(const char *user, struct identity *ret, struct err *err)
{
    char text[4096];
    struct passwd entry, *found = NULL;
    uint64_t number = 0;
    bool is_number = num_get_u64(str_of(user), &number);
    int code = is_number ? getpwuid_r((uid_t)number, &entry, text, sizeof(text), &found)
                         : getpwnam_r(user, &entry, text, sizeof(text), &found);

    if (found) {
        *ret = (struct identity){ .uid = found->pw_uid, .gid = found->pw_gid };
        snprintf(ret->name, sizeof(ret->name), "%s", found->pw_name);
        return 0;
    }
    if (is_number && number > 0 && number < UINT32_MAX) {
        *ret = (struct identity){ .uid = (uid_t)number, .gid = (gid_t)number };
        return 0;
    }
    return err_set(err, EINVAL, "there is no user \"%s\"%s%s", quote(str_of(user)).text,
                   code ? ": " : "", code ? err_words(code) : "");
}

/* Only limits what can be gained later; it takes a capability that systemd's unit does not give,
 * but then systemd has done it. */
static void bound(uint64_t set)
{
    for (int i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
        if (!(set & UINT64_C(1) << i))
            prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
}

/* The kernel forgets which signal the end of our parent sends (PR_SET_PDEATHSIG) when the user
 * changes. */
static void restore_death_signal(int number, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, number, 0, 0, 0);
    if (number && getppid() != parent)
        raise(number);
}

static int become(const struct identity *identity, struct err *err)
{
    pid_t parent = getppid();
    int death_signal = 0;

    prctl(PR_GET_PDEATHSIG, &death_signal, 0, 0, 0);
    prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    if ((identity->name[0] ? initgroups(identity->name, identity->gid)
                           : setgroups(1, &identity->gid)) < 0 ||
        setresgid(identity->gid, identity->gid, identity->gid) < 0 ||
        setresuid(identity->uid, identity->uid, identity->uid) < 0)
        return err_set(
            err, errno,
            "cannot become user %u: %s; only root can, without --user it stays who it is",
            (unsigned)identity->uid, err_words(errno));
    restore_death_signal(death_signal, parent);
    return 0;
}

int privileges_keep(const struct privilege *kept, size_t n, const char *user, uint32_t *ret_missing,
                    struct err *err)
{
    struct thread_capabilities had;
    struct identity identity = { 0 };
    uint64_t wanted = 0, keep;
    uint32_t missing = 0;
    int code = 0;

    if (!thread_get_capabilities(&had))
        return err_set(err, errno, "cannot read the capabilities of this process: %s",
                       err_words(errno));
    if (user)
        code = find_identity(user, &identity, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < n; i++) {
        wanted |= UINT64_C(1) << kept[i].number;
        if (!(had.permitted & UINT64_C(1) << kept[i].number))
            missing |= UINT32_C(1) << i;
    }
    keep = had.permitted & wanted;
    bound(keep);
    if (user && (getuid() != identity.uid || geteuid() != identity.uid))
        code = become(&identity, err);
    if (code < 0)
        return code;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (!thread_set_capabilities(keep))
        return err_set(err, errno, "cannot give up capabilities: %s", err_words(errno));
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    *ret_missing = missing;
    return 0;
}

void privileges_lower_priority(void)
{
    /* ioprio_set(2): its header is newer than some systems that sonde is built on. */
    enum { WHO_PROCESS = 1, CLASS_BEST_EFFORT = 2, CLASS_SHIFT = 13, LOWEST = 7 };

    const struct rlimit back_to_usual = { 20, 20 }; /* getrlimit(2): nice 0 */

    setrlimit(RLIMIT_NICE, &back_to_usual);
    errno = 0;
    if (getpriority(PRIO_PROCESS, 0) < niceness && !errno)
        setpriority(PRIO_PROCESS, 0, niceness);
    /* Not the idle class: while jobs keep the disk busy, that would stop the agent whenever a page
     * of its program has to be read again. */
    syscall(SYS_ioprio_set, WHO_PROCESS, 0, CLASS_BEST_EFFORT << CLASS_SHIFT | LOWEST);
}

void privileges_hurry(bool is_urgent)
{
    setpriority(PRIO_PROCESS, (id_t)gettid(), is_urgent ? 0 : niceness);
}
