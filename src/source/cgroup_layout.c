/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "source/cgroup_layout.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    DEEPEST = 8, /* a slurmd in a container may have its scope below that of the container */
    MOST_DIRECTORIES = 20000,
    MOST_MOUNTS = 10000,
};

/* The v1 controllers that Slurm may use, the most telling first. */
static const struct str controllers[] = {
    STR_INIT("memory"), STR_INIT("cpuacct"), STR_INIT("freezer"),
    STR_INIT("cpuset"), STR_INIT("devices"),
};

struct mounts {
    char v2[CGROUP_PATH];
    char v1[COUNT(controllers)][CGROUP_PATH];
    bool has_v1; /* a controller of any kind */
};

struct walk {
    const char *root;
    struct cgroup_layout *layout;
    size_t n_directories;
};

static bool is_digits(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return s.n > 0;
}

static bool is_job_id_name(struct str name)
{
    return str_starts(name, STR("job_")) && is_digits(str_skip(name, strlen("job_")));
}

/* "s" and 13 characters of Crockford's base 32. */
static bool is_sluid_name(struct str name)
{
    if (name.n != 14 || name.p[0] != 's')
        return false;
    for (size_t i = 1; i < name.n; i++)
        if (!strchr("0123456789ABCDEFGHJKMNPQRSTVWXYZ", name.p[i]) || !name.p[i])
            return false;
    return true;
}

/* mountinfo writes space, tab, newline and backslash as \040. False if it does not fit. */
static bool unescape(struct str s, char to[CGROUP_PATH])
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (n + 1 >= CGROUP_PATH)
            return false;
        if (c == '\\' && s.n - i > 3 && is_digits((struct str){ s.p + i + 1, 3 })) {
            c = (char)((s.p[i + 1] - '0') << 6 | (s.p[i + 2] - '0') << 3 | (s.p[i + 3] - '0'));
            i += 3;
        }
        to[n++] = c;
    }
    to[n] = '\0';
    return n > 0;
}

static bool has_word(struct str list, struct str word)
{
    for (struct str rest = list; rest.p;)
        if (str_eq(str_cut(&rest, ','), word))
            return true;
    return false;
}

/* The first mount of several holds. */
static void keep_mount(struct str point, char place[CGROUP_PATH])
{
    if (!place[0] && !unescape(point, place))
        place[0] = '\0';
}

/* "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory" */
static void read_mount(struct str line, struct mounts *mounts)
{
    size_t dash = str_find_str(line, STR(" - "));
    struct str left = str_head(line, dash), right = str_skip(line, dash + strlen(" - "));
    struct str point = { 0 }, type = str_cut(&right, ' '), options;

    for (int i = 0; i < 5 && left.p; i++)
        point = str_cut(&left, ' ');
    str_cut(&right, ' ');
    options = str_trim(right);
    if (str_eq(type, STR("cgroup2")))
        keep_mount(point, mounts->v2);
    if (!str_eq(type, STR("cgroup")) || has_word(options, STR("name=systemd")))
        return;
    mounts->has_v1 = true;
    for (size_t i = 0; i < COUNT(controllers); i++)
        if (has_word(options, controllers[i]))
            keep_mount(point, mounts->v1[i]);
}

static int read_mounts(const char *root, struct mounts *mounts, struct err *err)
{
    char path[CGROUP_PATH];
    char line[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root);
    file = fopen(path, "re");
    if (!file)
        return err_set(err, errno, "cannot read %s: %s", path, err_words(errno));
    for (int i = 0; i < MOST_MOUNTS && fgets(line, sizeof(line), file); i++)
        read_mount(str_of(line), mounts);
    fclose(file);
    return 0;
}

static bool is_directory(DIR *parent, const struct dirent *entry)
{
    struct stat status;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(dirfd(parent), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(status.st_mode);
}

/* Calls `visit` for every directory in that one, with its path. */
static void each_directory(struct walk *walk, const char *path, int depth,
                           void (*visit)(struct walk *walk, const char *path, struct str name,
                                         int depth))
{
    char full[2 * CGROUP_PATH], below[CGROUP_PATH];
    const struct dirent *entry;
    DIR *directory;

    snprintf(full, sizeof(full), "%s%s", walk->root, path);
    directory = opendir(full);
    if (!directory)
        return;
    while ((entry = readdir(directory))) {
        if (entry->d_name[0] == '.' || !is_directory(directory, entry))
            continue;
        if (++walk->n_directories > MOST_DIRECTORIES ||
            snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) >= CGROUP_PATH) {
            walk->layout->is_partial = true;
            continue;
        }
        visit(walk, below, str_of(entry->d_name), depth);
    }
    closedir(directory);
}

static struct cgroup_scope *current_scope(struct walk *walk)
{
    return &walk->layout->scope[walk->layout->n - 1];
}

static void visit_job(struct walk *walk, const char *path, struct str name, int depth)
{
    struct cgroup_scope *scope = current_scope(walk);

    (void)depth;
    if (is_job_id_name(name))
        scope->jobs_by_id++;
    else if (is_sluid_name(name))
        scope->jobs_by_sluid++;
    else
        return;
    if (!scope->job[0])
        snprintf(scope->job, sizeof(scope->job), "%s", path);
}

static void visit_user(struct walk *walk, const char *path, struct str name, int depth)
{
    if (str_starts(name, STR("uid_")) && is_digits(str_skip(name, strlen("uid_"))))
        each_directory(walk, path, depth, visit_job);
}

/* False if there is no room for another. */
static bool add_scope(struct walk *walk, const char *path, struct str node, bool is_v2)
{
    struct cgroup_layout *layout = walk->layout;
    struct cgroup_scope *scope;

    if (layout->n == CGROUP_SCOPES) {
        layout->is_partial = true;
        return false;
    }
    scope = &layout->scope[layout->n++];
    *scope = (struct cgroup_scope){ .is_v2 = is_v2 };
    snprintf(scope->path, sizeof(scope->path), "%s", path);
    snprintf(scope->node, sizeof(scope->node), "%.*s", STR_ARG(node));
    return true;
}

/* "slurm", or "slurm_c1" where several slurmd share the host. */
static void visit_v1(struct walk *walk, const char *path, struct str name, int depth)
{
    struct str node = str_skip(name, strlen("slurm_"));

    if (!str_eq(name, STR("slurm")) && !(str_starts(name, STR("slurm_")) && node.n))
        return;
    if (add_scope(walk, path, node, false))
        each_directory(walk, path, depth, visit_user);
}

/* "slurmstepd.scope", or "c1_slurmstepd.scope". */
static void visit_v2(struct walk *walk, const char *path, struct str name, int depth)
{
    const struct str scope = STR("slurmstepd.scope"), other = STR("_slurmstepd.scope");
    bool is_others = str_ends(name, other);

    if (str_eq(name, scope) || is_others) {
        if (add_scope(walk, path, str_head(name, is_others ? name.n - other.n : 0), true))
            each_directory(walk, path, depth, visit_job);
    } else if (depth < DEEPEST) {
        each_directory(walk, path, depth + 1, visit_v2);
    }
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const struct cgroup_scope *)a)->path, ((const struct cgroup_scope *)b)->path);
}

static enum cgroup_version version_of(const struct mounts *mounts)
{
    if (mounts->has_v1)
        return mounts->v2[0] ? CGROUP_HYBRID : CGROUP_V1;
    return mounts->v2[0] ? CGROUP_V2 : CGROUP_NONE;
}

int cgroup_layout_read(const char *root, struct cgroup_layout *ret, struct err *err)
{
    struct mounts mounts = { 0 };
    struct walk walk = { .root = root, .layout = ret };
    int code = read_mounts(root, &mounts, err);

    if (code < 0)
        return code;
    *ret = (struct cgroup_layout){ .version = version_of(&mounts) };
    /* Each controller has a tree of its own, with the same jobs in it. */
    for (size_t i = 0; i < COUNT(controllers) && !ret->n; i++) {
        if (!mounts.v1[i][0])
            continue;
        if (!ret->mount[0])
            memcpy(ret->mount, mounts.v1[i], sizeof(ret->mount));
        each_directory(&walk, mounts.v1[i], 1, visit_v1);
    }
    if (mounts.v2[0]) {
        if (ret->version == CGROUP_V2)
            memcpy(ret->mount, mounts.v2, sizeof(ret->mount));
        each_directory(&walk, mounts.v2, 1, visit_v2);
    }
    qsort(ret->scope, ret->n, sizeof(ret->scope[0]), compare_paths);
    return 0;
}
