/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the cgroup hierarchies are mounted: proc_pid_mountinfo(5), and the mount options in
 * cgroups(7). */
#include "source/cgroup_files.h"

#include <stdio.h>

enum { MOST_MOUNTS = 10000 };

static const struct str names[CGROUP_CONTROLLERS] = {
    [CGROUP_CPUACCT] = STR_INIT("cpuacct"), [CGROUP_MEMORY] = STR_INIT("memory"),
    [CGROUP_CPUSET] = STR_INIT("cpuset"),   [CGROUP_CPU] = STR_INIT("cpu"),
    [CGROUP_BLKIO] = STR_INIT("blkio"),     [CGROUP_PIDS] = STR_INIT("pids"),
    [CGROUP_DEVICES] = STR_INIT("devices"), [CGROUP_FREEZER] = STR_INIT("freezer"),
};

/* Those that Slurm puts jobs into: with one of them under v1, v2 has no jobs. */
static const enum cgroup_controller slurms[] = {
    CGROUP_MEMORY, CGROUP_CPUACCT, CGROUP_FREEZER, CGROUP_CPUSET, CGROUP_DEVICES,
};

struct mount {
    struct str root, point, type, options;
};

/* While the file is read: the places that were filled from a mount of a whole hierarchy. */
struct found {
    struct cgroup_mounts *mounts;
    bool is_whole_unified, is_whole[CGROUP_CONTROLLERS];
};

/* "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory" */
static struct mount split(struct str line)
{
    size_t dash = str_find_str(line, STR(" - "));
    struct str left = str_head(line, dash), right = str_skip(line, dash + strlen(" - "));
    struct mount mount = { 0 };

    for (int i = 0; i < 3; i++)
        str_cut(&left, ' ');
    mount.root = str_cut(&left, ' ');
    mount.point = str_cut(&left, ' ');
    mount.type = str_cut(&right, ' ');
    str_cut(&right, ' ');
    mount.options = right;
    return mount;
}

static bool has_word(struct str list, struct str word)
{
    for (struct str rest = list; rest.p;)
        if (str_eq(str_cut(&rest, ','), word))
            return true;
    return false;
}

static bool is_octal(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '7')
            return false;
    return s.n == 3;
}

/* Space, tab, newline and backslash are written as \040. False if it does not fit. */
static bool append_unescaped(char to[256], struct str s)
{
    size_t n = strlen(to);

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (n + 1 >= 256)
            return false;
        if (c == '\\' && is_octal(str_head(str_skip(s, i + 1), 3))) {
            c = (char)((s.p[i + 1] - '0') << 6 | (s.p[i + 2] - '0') << 3 | (s.p[i + 3] - '0'));
            i += 3;
        }
        to[n++] = c;
    }
    to[n] = '\0';
    return true;
}

/* The first mount of several holds, but one of the whole hierarchy before one of a part of it. */
static void keep(const struct found *found, const struct mount *mount, char place[256],
                 bool *is_whole)
{
    const struct str sys = STR("/sys");
    struct str point = mount->point;
    char path[256] = "";

    if (place[0] && (*is_whole || !str_eq(mount->root, STR("/"))))
        return;
    if (str_eq(point, sys) || str_starts(point, STR("/sys/"))) {
        memcpy(path, found->mounts->sys, sizeof(path));
        point = str_skip(point, sys.n);
    }
    if (!append_unescaped(path, point))
        return;
    memcpy(place, path, sizeof(path));
    *is_whole = str_eq(mount->root, STR("/"));
}

static void look_at(struct found *found, struct str line)
{
    struct cgroup_mounts *mounts = found->mounts;
    struct mount mount = split(line);

    if (str_eq(mount.type, STR("cgroup2"))) {
        keep(found, &mount, mounts->unified, &found->is_whole_unified);
        if (has_word(mount.options, STR("memory_localevents")))
            mounts->has_local_events = true;
    }
    if (!str_eq(mount.type, STR("cgroup")))
        return;
    for (size_t i = 0; i < CGROUP_CONTROLLERS; i++)
        if (has_word(mount.options, names[i]))
            keep(found, &mount, mounts->controller[i], &found->is_whole[i]);
}

static bool is_unified(const struct cgroup_mounts *mounts)
{
    for (size_t i = 0; i < COUNT(slurms); i++)
        if (mounts->controller[slurms[i]][0])
            return false;
    return mounts->unified[0];
}

/* Lines that are longer than any of a cgroup are cut and their rest passed over. */
static void read_lines(FILE *file, struct found *found)
{
    char line[4096];
    bool is_rest = false;

    for (int i = 0; i < MOST_MOUNTS && fgets(line, sizeof(line), file); i++) {
        struct str text = str_of(line);
        bool has_end = str_ends(text, STR("\n"));

        if (!is_rest)
            look_at(found, str_head(text, text.n - has_end));
        is_rest = !has_end;
    }
}

static void read_cores(struct cgroup_mounts *mounts)
{
    char path[300], line[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/devices/system/cpu/possible", mounts->sys);
    file = fopen(path, "re");
    if (!file)
        return;
    if (!fgets(line, sizeof(line), file) ||
        cgroup_core_list(str_trim(str_of(line)), mounts->cores) < 0)
        memset(mounts->cores, 0, sizeof(mounts->cores));
    fclose(file);
}

int cgroup_mounts_read(const char *proc, const char *sys, struct cgroup_mounts *ret,
                       struct err *err)
{
    struct cgroup_mounts mounts = { 0 };
    struct found found = { .mounts = &mounts };
    char path[300];
    FILE *file;

    if (snprintf(mounts.sys, sizeof(mounts.sys), "%s", sys) >= (int)sizeof(mounts.sys) ||
        snprintf(path, sizeof(path), "%s/self/mountinfo", proc) >= (int)sizeof(path))
        return err_set(err, ENAMETOOLONG,
                       "the paths of /proc and /sys are too long: at most 255 bytes each");
    file = fopen(path, "re");
    if (!file)
        return err_set(err, errno, "cannot read %s: %s", path, err_words(errno));
    read_lines(file, &found);
    fclose(file);
    mounts.is_v2 = is_unified(&mounts);
    mounts.has_local_events = mounts.has_local_events || !mounts.is_v2;
    read_cores(&mounts);
    *ret = mounts;
    return 0;
}
