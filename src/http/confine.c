/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System call filters for threads: seccomp(2), made by libseccomp. */
#include "http/confine.h"

#include "base/str.h"
#include "base/thread.h"

#include <linux/capability.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

/* By name: a call that libseccomp or this architecture lacks is left out. */
static const char *const refused[] = {
    /* other programs */
    "execve",
    "execveat",
    /* other processes */
    "kcmp",
    "pidfd_getfd",
    "process_madvise",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    /* the kernel */
    "bpf",
    "delete_module",
    "finit_module",
    "init_module",
    "ioperm",
    "iopl",
    "kexec_file_load",
    "kexec_load",
    "perf_event_open",
    "reboot",
    "syslog",
    "userfaultfd",
    /* io_uring carries out other calls past the filter */
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    /* file systems and namespaces */
    "acct",
    "chroot",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "mount",
    "mount_setattr",
    "move_mount",
    "open_by_handle_at",
    "open_tree",
    "pivot_root",
    "quotactl",
    "quotactl_fd",
    "setns",
    "swapoff",
    "swapon",
    "umount",
    "umount2",
    "unshare",
    /* keys */
    "add_key",
    "keyctl",
    "request_key",
    /* the machine's clock and name */
    "adjtimex",
    "clock_adjtime",
    "clock_settime",
    "setdomainname",
    "sethostname",
    "settimeofday",
    "vhangup",
};

static int fill(scmp_filter_ctx filter)
{
    int code = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));

    if (code == 0)
        code = seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1); /* the kernel's errno */
    /* Else kernels before 5.16 slow the thread down, to protect programs that run code of others.
     * Older ones do not know it. */
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
    for (size_t i = 0; i < COUNT(refused) && code == 0; i++) {
        int number = seccomp_syscall_resolve_name(refused[i]);

        if (number != __NR_SCMP_ERROR)
            code = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
    }
    return code;
}

/* Root that has not given up capabilities (base/privileges.h) stays as it is: the files that its
 * threads open may belong to others. */
static bool keeps_capabilities(void)
{
    return geteuid() == 0 && prctl(PR_CAPBSET_READ, CAP_DAC_OVERRIDE, 0, 0, 0) == 1;
}

int confine_thread(struct err *err)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int code = filter ? fill(filter) : -ENOMEM;

    if (code == 0)
        code = seccomp_load(filter);
    seccomp_release(filter);
    if (code < 0)
        return err_set(err, -code, "cannot filter system calls of a thread: %s", err_words(-code));
    if (!keeps_capabilities() && !thread_set_capabilities(0))
        return err_set(err, errno, "cannot give up capabilities of a thread: %s", err_words(errno));
    return 0;
}

static void *try(void *err)
{
    confine_thread(err);
    return NULL;
}

int confine_try(struct err *err)
{
    pthread_t thread;
    int code;

    err->code = 0;
    code = thread_start(&thread, "confined", try, err, err);
    if (code < 0)
        return code;
    pthread_join(thread, NULL);
    return -err->code;
}
