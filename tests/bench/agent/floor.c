/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measures what the kernel needs for reading the agent's files. */
#include "floor.h"

#include "base/arena.h"

#include "../bench.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>

struct paths {
    char **path;
    size_t n, room;
};

struct floor {
    struct paths each, fourth, eighth, descriptors;
};

struct file {
    const char *hierarchy, *name;
};

static const struct file of_jobs[] = {
    { "cpuacct", "cpuacct.usage" },     { "cpuacct", "cpuacct.usage_user" },
    { "cpuacct", "cpuacct.usage_sys" }, { "memory", "memory.usage_in_bytes" },
    { "memory", "memory.stat" },        { "memory", "memory.max_usage_in_bytes" },
    { "memory", "memory.failcnt" },     { "memory", "memory.kmem.usage_in_bytes" },
    { "memory", "memory.oom_control" }, { NULL, NULL },
};
static const struct file of_cores[] = { { "cpuacct", "cpuacct.usage_percpu" }, { NULL, NULL } };
static const struct file settings[] = {
    { "memory", "memory.limit_in_bytes" },
    { "cpuset", "cpuset.cpus" },
    { NULL, NULL },
};
static const struct file of_events[] = {
    { "memory", "memory.failcnt" },
    { "memory", "memory.oom_control" },
    { NULL, NULL },
};
static const struct file of_steps[] = {
    { "cpuacct", "cpuacct.usage" },
    { "memory", "memory.usage_in_bytes" },
    { "memory", "memory.max_usage_in_bytes" },
    { NULL, NULL },
};
static const struct file of_lists[] = { { "memory", "cgroup.procs" }, { NULL, NULL } };

static void add_path(struct paths *paths, const char *path)
{
    if (access(path, R_OK) < 0)
        return;
    paths->path = heap_grow(paths->path, paths->n, &paths->room, sizeof(*paths->path));
    paths->path[paths->n++] = heap_str(str_of(path));
}

static size_t hierarchy_of(const char *name)
{
    size_t i = 0;

    while (strcmp(hierarchies[i], name) != 0)
        i++;
    return i;
}

static void add_files(struct paths *paths, const struct file *files, const struct place *place,
                      enum level level)
{
    for (; files->name; files++) {
        char directory[PLACE_PATH], path[FILE_PATH];

        place_path(place, hierarchy_of(files->hierarchy), level, directory);
        file_path(directory, files->name, path);
        add_path(paths, path);
    }
}

static const char *const of_processes[] = { "stat", "io" };

static void add_process(struct floor *floor, long pid)
{
    char path[64];

    for (size_t i = 0; i < COUNT(of_processes); i++) {
        snprintf(path, sizeof(path), "/proc/%ld/%s", pid, of_processes[i]);
        add_path(&floor->each, path);
    }
    snprintf(path, sizeof(path), "/proc/%ld/fd", pid);
    add_path(&floor->descriptors, path);
}

static void add_processes(struct floor *floor, const struct place *place)
{
    char directory[PLACE_PATH], path[FILE_PATH], line[32];
    FILE *list;

    place_path(place, hierarchy_of("memory"), LEVEL_TASK, directory);
    file_path(directory, "cgroup.procs", path);
    list = fopen(path, "re");
    while (list && fgets(line, sizeof(line), list))
        add_process(floor, strtol(line, NULL, 10));
    if (list)
        fclose(list);
}

static void add_directory(struct floor *floor, enum floor_kind kind, const struct place *place,
                          enum level level)
{
    add_files(&floor->fourth, of_events, place, level);
    if (kind >= FLOOR_ALL)
        add_files(&floor->each, of_lists, place, level);
    if (kind >= FLOOR_STEPS)
        add_files(&floor->fourth, of_steps, place, level);
}

struct floor *floor_new(enum floor_kind kind, const struct jobs *jobs)
{
    struct floor *floor = heap_alloc(sizeof(*floor));

    for (unsigned i = 0; i < jobs->n; i++) {
        struct place place = { jobs->root, jobs_uid(FIRST_JOB + i), FIRST_JOB + i, "", 0 };

        add_files(&floor->each, of_jobs, &place, LEVEL_JOB);
        add_files(&floor->eighth, settings, &place, LEVEL_JOB);
        if (kind >= FLOOR_ALL)
            add_files(&floor->each, of_cores, &place, LEVEL_JOB);
        for (size_t step = 0; step < COUNT(steps); step++) {
            place.step = steps[step];
            add_directory(floor, kind, &place, LEVEL_STEP);
            for (place.task = 0; place.task < jobs_tasks(jobs, step); place.task++) {
                add_directory(floor, kind, &place, LEVEL_TASK);
                if (kind >= FLOOR_ALL)
                    add_processes(floor, &place);
            }
        }
    }
    return floor;
}

struct floor_counts floor_counts(const struct floor *floor)
{
    return (struct floor_counts){ floor->each.n, floor->fourth.n, floor->eighth.n,
                                  floor->descriptors.n };
}

static bool read_one(const char *path)
{
    char text[8192];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool was_read = fd >= 0 && read(fd, text, sizeof(text)) >= 0;

    if (fd >= 0)
        close(fd);
    return was_read;
}

static void read_all(const struct paths *paths)
{
    for (size_t i = 0; i < paths->n; i++)
        if (!read_one(paths->path[i]))
            bench_give_up("%s cannot be read: %m", paths->path[i]);
}

static void read_links(const char *path)
{
    _Alignas(struct dirent64) char entries[4096];
    char name[4096];
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        bench_give_up("%s cannot be read: %m", path);
    while ((n = getdents64(fd, entries, sizeof(entries))) > 0)
        for (ssize_t i = 0; i < n;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries + i);

            if (entry->d_name[0] != '.' && readlinkat(fd, entry->d_name, name, sizeof(name)) < 0)
                bench_give_up("%s/%s cannot be read: %m", path, entry->d_name);
            i += entry->d_reclen;
        }
    close(fd);
}

void floor_pass(const struct floor *floor, unsigned turn)
{
    read_all(&floor->each);
    if (turn % 4 == 0) {
        read_all(&floor->fourth);
        for (size_t i = 0; i < floor->descriptors.n; i++)
            read_links(floor->descriptors.path[i]);
    }
    if (turn % 8 == 0)
        read_all(&floor->eighth);
}

static const struct file of_peers[] = {
    { "cpuacct", "cpuacct.usage" },
    { "cpuacct", "cpuacct.stat" },
    { "cpuacct", "cpuacct.usage_percpu" },
    { "memory", "memory.usage_in_bytes" },
    { "memory", "memory.stat" },
    { "memory", "memory.max_usage_in_bytes" },
    { "memory", "memory.limit_in_bytes" },
    { "memory", "memory.memsw.usage_in_bytes" },
    { "memory", "memory.failcnt" },
    { "memory", "memory.oom_control" },
    { "cpuset", "cpuset.cpus" },
    { "cpuset", "cpuset.effective_cpus" },
    { NULL, NULL },
};

static void read_found(const char *pattern)
{
    glob_t found = { 0 };

    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            read_one(found.gl_pathv[i]);
    globfree(&found);
}

void floor_of_peers(const struct jobs *jobs)
{
    char pattern[512];

    snprintf(pattern, sizeof(pattern),
             "%s/cpuacct/slurm_bench/uid_*/job_*/step_*/task_*/cgroup.procs", jobs->root);
    read_found(pattern);
    for (unsigned i = 0; i < jobs->n; i++)
        for (const struct file *file = of_peers; file->name; file++) {
            const struct place place = { jobs->root, jobs_uid(FIRST_JOB + i), FIRST_JOB + i, "",
                                         0 };
            char directory[PLACE_PATH], path[FILE_PATH];

            place_path(&place, hierarchy_of(file->hierarchy), LEVEL_JOB, directory);
            file_path(directory, file->name, path);
            read_one(path);
        }
}
