/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes jobs of real cgroups and processes. */
#include "jobs.h"

#include "base/arena.h"

#include "../bench.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
    USERS = 12,
    START_MS = 120 * 1000,
    REMOVE_MS = 10 * 1000,
    PAUSE_MS = 5,
    AT_ONCE = 96, /* jobs that come and go */
    LIFE_MS = 600,
};

static unsigned uids[USERS], n_uids;

static void find_users(void)
{
    for (struct passwd *user; n_uids < USERS && (user = getpwent());)
        if (user->pw_uid > 0 && user->pw_uid < 65534)
            uids[n_uids++] = user->pw_uid;
    endpwent();
    if (!n_uids)
        bench_give_up("the host has no user but root");
}

unsigned jobs_uid(unsigned job)
{
    if (!n_uids)
        find_users();
    return uids[job % n_uids];
}

static unsigned processes_of(const struct jobs *jobs, size_t step)
{
    return step == 0 ? BATCH_PROCESSES : jobs->processes - BATCH_PROCESSES;
}

unsigned jobs_tasks(const struct jobs *jobs, size_t step)
{
    return (processes_of(jobs, step) + PER_TASK - 1) / PER_TASK;
}

static void pause_ms(int ms)
{
    poll(NULL, 0, ms);
}

static void put(const char *directory, const char *file, const char *text)
{
    char path[FILE_PATH];
    int fd;

    file_path(directory, file, path);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        bench_give_up("%s cannot be set to \"%s\": %m", path, text);
    close(fd);
}

/* A cpuset takes no process until it has cores and memory: those of the one above it. */
static void fill_cpuset(const char *directory)
{
    static const char *const files[] = { "../cpuset.cpus", "../cpuset.mems" };

    for (size_t i = 0; i < COUNT(files); i++) {
        char path[FILE_PATH], text[4096];
        ssize_t n;
        int fd;

        file_path(directory, files[i], path);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (n <= 0)
            bench_give_up("%s cannot be read: %m", path);
        close(fd);
        text[n] = '\0';
        put(directory, strrchr(files[i], '/') + 1, text);
    }
}

static void make(const struct place *place, enum level level)
{
    for (size_t i = 0; i < (level == LEVEL_TASK ? TASK_HIERARCHIES : HIERARCHIES); i++) {
        char path[PLACE_PATH];

        place_path(place, i, level, path);
        if (mkdir(path, 0755) < 0) {
            if (errno == EEXIST)
                continue;
            bench_give_up("%s cannot be made: %m", path);
        }
        if (strcmp(hierarchies[i], "cpuset") == 0)
            fill_cpuset(path);
        if (strcmp(hierarchies[i], "memory") == 0 && level == LEVEL_JOB)
            put(path, "memory.limit_in_bytes", "1073741824");
    }
}

/* What has just ended is not gone yet. */
static void remove_one(const char *path)
{
    for (int waited = 0; rmdir(path) < 0 && errno != ENOENT; waited += PAUSE_MS) {
        if (waited >= REMOVE_MS)
            bench_give_up("%s cannot be removed: %m", path);
        pause_ms(PAUSE_MS);
    }
}

static void take_away(const struct place *place, enum level level)
{
    for (size_t i = 0; i < (level == LEVEL_TASK ? TASK_HIERARCHIES : HIERARCHIES); i++) {
        char path[PLACE_PATH];

        place_path(place, i, level, path);
        remove_one(path);
    }
}

static struct place place_of(const struct jobs *jobs, unsigned job)
{
    return (struct place){ .root = jobs->root, .uid = jobs_uid(job), .job = job };
}

static void make_step(struct place *place, const char *step, unsigned tasks)
{
    place->step = step;
    make(place, LEVEL_STEP);
    for (place->task = 0; place->task < tasks; place->task++)
        make(place, LEVEL_TASK);
}

static void take_step_away(struct place *place, const char *step, unsigned tasks)
{
    place->step = step;
    for (place->task = 0; place->task < tasks; place->task++)
        take_away(place, LEVEL_TASK);
    take_away(place, LEVEL_STEP);
}

static void make_users(const struct jobs *jobs)
{
    make(&(struct place){ .root = jobs->root }, LEVEL_SCOPE);
    for (unsigned i = 0; i < USERS; i++)
        make(&(struct place){ .root = jobs->root, .uid = jobs_uid(i) }, LEVEL_USER);
}

static pid_t start_stepd(const struct jobs *jobs, const struct place *place, unsigned processes,
                         unsigned life_ms, int ready)
{
    char title[64], uid[16], job[16], count[16], life[16], stepd[512], program[512], scratch[512];
    pid_t pid = fork();

    if (pid < 0)
        bench_give_up("a process cannot be started: %m");
    if (pid > 0)
        return pid;
    if (ready != READY_FD)
        dup2(ready, READY_FD);
    snprintf(title, sizeof(title), "slurmstepd: [%u.%s]", place->job, place->step);
    snprintf(uid, sizeof(uid), "%u", place->uid);
    snprintf(job, sizeof(job), "%u", place->job);
    snprintf(count, sizeof(count), "%u", processes);
    snprintf(life, sizeof(life), "%u", life_ms);
    snprintf(stepd, sizeof(stepd), "%s/slurmstepd", jobs->work);
    snprintf(program, sizeof(program), "%s/simulate", jobs->work);
    snprintf(scratch, sizeof(scratch), "%s/scratch", jobs->work);
    execl(stepd, title, place->root, uid, job, place->step, count, life, program, scratch,
          (char *)NULL);
    perror(stepd);
    _exit(1);
}

static void wait_for(int ready, unsigned n)
{
    char bytes[4096];

    while (n) {
        struct pollfd wish = { ready, POLLIN, 0 };
        ssize_t got = poll(&wish, 1, START_MS) > 0 ? read(ready, bytes, sizeof(bytes)) : 0;

        if (got <= 0)
            bench_give_up("%u processes have not come up", n);
        n -= (unsigned)got;
    }
}

void jobs_start(struct jobs *jobs)
{
    int ready[2];

    if (pipe2(ready, O_CLOEXEC) < 0)
        bench_give_up("no pipe: %m");
    /* Processes whose parents are killed come to this one. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    jobs->stepds = heap_array(jobs->n * COUNT(steps), sizeof(*jobs->stepds));
    make_users(jobs);
    for (unsigned i = 0; i < jobs->n; i++) {
        struct place place = place_of(jobs, FIRST_JOB + i);

        make(&place, LEVEL_JOB);
        for (size_t step = 0; step < COUNT(steps); step++) {
            make_step(&place, steps[step], jobs_tasks(jobs, step));
            jobs->stepds[i * COUNT(steps) + step] =
                start_stepd(jobs, &place, processes_of(jobs, step), 0, ready[1]);
        }
    }
    close(ready[1]);
    wait_for(ready[0], jobs->n * jobs->processes);
    close(ready[0]);
}

void jobs_end(struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->n * COUNT(steps); i++)
        kill(jobs->stepds[i], SIGKILL);
    for (size_t i = 0; i < jobs->n * COUNT(steps); i++)
        waitpid(jobs->stepds[i], NULL, 0);
    for (unsigned i = 0; i < jobs->n; i++) {
        struct place place = place_of(jobs, FIRST_JOB + i);

        for (size_t step = 0; step < COUNT(steps); step++)
            take_step_away(&place, steps[step], jobs_tasks(jobs, step));
        take_away(&place, LEVEL_JOB);
    }
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    free(jobs->stepds);
    jobs->stepds = NULL;
}

static void end_passing(const struct jobs *jobs, unsigned job, pid_t stepd)
{
    struct place place = place_of(jobs, job);

    waitpid(stepd, NULL, 0);
    take_step_away(&place, steps[0], 1);
    take_away(&place, LEVEL_JOB);
}

void jobs_pass(struct jobs *jobs, unsigned first, unsigned n)
{
    pid_t stepds[AT_ONCE] = { 0 };
    int ready[2];

    if (pipe2(ready, O_CLOEXEC) < 0)
        bench_give_up("no pipe: %m");
    make_users(jobs);
    for (unsigned i = 0; i < n + AT_ONCE; i++) {
        pid_t *slot = &stepds[i % AT_ONCE];
        struct place place = place_of(jobs, first + i);

        if (*slot)
            end_passing(jobs, first + i - AT_ONCE, *slot);
        *slot = 0;
        if (i >= n)
            continue;
        make(&place, LEVEL_JOB);
        make_step(&place, steps[0], 1);
        *slot = start_stepd(jobs, &place, 1, LIFE_MS, ready[1]);
        wait_for(ready[0], 1);
    }
    close(ready[0]);
    close(ready[1]);
}
