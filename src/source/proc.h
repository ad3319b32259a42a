/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel says of processes: proc(5). Every read may find that the process has ended:
 * false. Reads never touch a process's files, only their names. */
#ifndef SONDE_SOURCE_PROC_H
#define SONDE_SOURCE_PROC_H

#include "base/buf.h"
#include "base/err.h"
#include "model/usage.h"

#include <sys/types.h>

struct proc; /* a place to read from, with its buffer */

int proc_open(const char *path, struct proc **ret, struct err *err); /* "/proc" */
struct proc *proc_close(struct proc *proc);                          /* returns NULL */

/* What can be known of other users' processes, so that it can be said once. */
enum proc_sight {
    PROC_SEES_OWN,  /* nothing: /proc is mounted with hidepid */
    PROC_SEES_ALL,  /* stat, but not io, environ, exe and fd: CAP_SYS_PTRACE or
                     * CAP_DAC_READ_SEARCH is missing */
    PROC_READS_ALL, /* everything */
};
enum proc_sight proc_sight(struct proc *proc);

struct proc_stat {
    pid_t pid, parent;
    char state;             /* 'Z' with threads: only the main one has ended */
    bool is_exiting;        /* its main thread: its exit record has come, or does at once */
    char comm[USAGE_COMM];  /* any bytes; ended by NUL */
    uint64_t threads;       /* that live */
    uint64_t cpu_ns;        /* its own, of all its threads, those that have ended too */
    uint64_t user_ns;       /* of it, in user mode */
    uint64_t reaped_cpu_ns; /* of children that it has waited for */
    uint64_t reaped_user_ns;
    uint64_t resident_bytes;
    uint64_t start_ticks; /* with the pid, this names a process */
};
bool proc_stat(struct proc *proc, pid_t pid, struct proc_stat *ret);

enum { PROC_THREADS_MAX = 32768 };

/* Of the whole process: its threads, those that have ended, and children that it has waited for.
 * Returns 0, -ESRCH when it has gone, -EACCES when it may not be read, -ENOENT when the kernel does
 * not count. */
int proc_io(struct proc *proc, pid_t pid, struct io_use *ret);

/* Of one of its threads alone, and of all that live, summed: a main thread that has ended before
 * the others is not one of them. `exiting`, unless NULL, is what those of them did that are about
 * to end, which may take seconds: without it, exit records and this never count the same. -EFBIG
 * when there are more than PROC_THREADS_MAX. */
int proc_io_of_thread(struct proc *proc, pid_t pid, pid_t thread, struct io_use *ret);
int proc_io_of_threads(struct proc *proc, pid_t pid, struct io_use *ret, struct io_use *exiting);

struct proc_uids {
    uint32_t real, effective, saved;
};
bool proc_uids(struct proc *proc, pid_t pid, struct proc_uids *ret);
bool proc_uid(struct proc *proc, pid_t pid, uint32_t *ret); /* the real one */

enum { PROC_VARIABLES = 64, PROC_ENVIRON_MAX = 1 << 20 };

/* The values of variables in its environment as it was at its start, or as the process has written
 * over it: at most PROC_VARIABLES in one read, of its first PROC_ENVIRON_MAX bytes. 0, -ENOENT when
 * none is there, -EAGAIN when there is no environment at all, as while it becomes another program,
 * -ESRCH, -EACCES. */
struct proc_variable {
    const char *name;
    char *value; /* of `size` bytes; any but NUL, cut at the size; empty when absent */
    size_t size;
};
int proc_environ(struct proc *proc, pid_t pid, struct proc_variable *variables, size_t n);

/* The open files of several processes together: distinct regular files by the name that
 * /proc/PID/fd/N has, descriptors of any kind, and whether a name has a match for a pattern. */
struct pattern;
struct proc_files;

/* Descriptors of one job that are looked at; more are counted but not told apart. */
enum { PROC_FILES_MAX = 262144 };

struct proc_files *proc_files_new(const struct pattern *scratch); /* NULL: none */
struct proc_files *proc_files_free(struct proc_files *files);     /* returns NULL */
void proc_files_begin(struct proc_files *files); /* forgets; memory stays, within reason */
int proc_files_add(struct proc_files *files, struct proc *proc, pid_t pid); /* 0, -ESRCH, -EACCES */
uint64_t proc_files_descriptors(const struct proc_files *files);
uint64_t proc_files_distinct(const struct proc_files *files); /* MODEL_UNKNOWN_U64: too many */
bool proc_files_found(const struct proc_files *files);        /* the pattern, anywhere */

/* Path of the process's cgroup in the hierarchy of that controller ("freezer"; "" for v2), without
 * its leading slash, appended. */
bool proc_cgroup(struct proc *proc, pid_t pid, const char *controller, struct buf *ret);

enum {
    PROC_PIDS_MAX = 1 << 18,
    PROC_DESCENDANTS_MAX = 65536, /* what callers pass as `most` */
};

/* Every process id there is, and all descendants of one (parents first), appended. -EFBIG when
 * there are more than PROC_PIDS_MAX, or than `most` descendants: processes of the whole host where
 * its kernel lists no children. */
struct pid_list;
int proc_all(struct proc *proc, struct pid_list *to, struct err *err);
int proc_descendants(struct proc *proc, pid_t ancestor, size_t most, struct pid_list *to);

#endif
