/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the directories and the user of `sonde up`. */
#include "cmd/up_place.h"

#include "base/privileges.h"
#include "base/quote.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>

/* What may be in there: SQLite adds the last two to a file. */
static const char *const files[] = {
    "sonde.db",      "sonde.db-wal",  "sonde.db-shm", "sonde.db-lock",   "series.db",
    "series.db-wal", "series.db-shm", "agent.sock",   "allocations.yml",
};

static int find_user(struct up_place *place, const char *name, struct err *err)
{
    const struct passwd *entry = getpwnam(name);

    if (!entry)
        return err_set(err, EINVAL, "there is no user \"%s\": give another by --user",
                       quote(str_of(name)).text);
    snprintf(place->user, sizeof(place->user), "%s", name);
    place->uid = entry->pw_uid;
    place->gid = entry->pw_gid;
    return 0;
}

static int refuse_directory(const char *path, int code, struct err *err)
{
    return err_set(err, code,
                   "cannot make the directory %s: %s; choose another by --state.directory", path,
                   err_words(code));
}

/* 1: it was made, 0: it was there. */
static int make_directory(const char *path, struct err *err)
{
    char part[PATH_MAX];

    snprintf(part, sizeof(part), "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(part, 0755); /* if it fails, so does what follows */
        *slash = '/';
    }
    if (mkdir(part, 0700) == 0)
        return 1;
    return errno == EEXIST ? 0 : refuse_directory(path, errno, err);
}

/* Where everybody may make files: one that was there before is used only if it is what an earlier
 * one of that process number has left. */
static int make_temporary(struct up_place *place, struct err *err)
{
    struct stat info;
    int code = make_directory(place->directory, err);

    if (code < 0)
        return code;
    if (code == 0 && (lstat(place->directory, &info) < 0 || !S_ISDIR(info.st_mode) ||
                      info.st_uid != geteuid() || info.st_mode & 077))
        return err_set(err, EEXIST, "%s is in the way: remove it, or set TMPDIR", place->directory);
    place->is_temporary = true;
    if (code == 1)
        return code;
    up_place_clear(place);
    return mkdir(place->directory, 0700) == 0 ? 1 : refuse_directory(place->directory, errno, err);
}

/* To whom root becomes: only what was just made, so that nobody else's is given away. */
static int give_away(const struct up_place *place, bool is_new, struct err *err)
{
    struct stat info;
    int fd = open(place->directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int code = 0;

    if (fd < 0 || fstat(fd, &info) < 0)
        code = err_set(err, errno, "cannot open %s: %s", place->directory, err_words(errno));
    else if (is_new && fchown(fd, place->uid, place->gid) < 0)
        code =
            err_set(err, errno, "cannot give %s to user %s: %s%s", place->directory, place->user,
                    err_words(errno),
                    errno == EINVAL ? " (this container has no such user: say --user=root)" : "");
    else if (!is_new && info.st_uid != place->uid)
        code = err_set(err, EACCES,
                       "%s does not belong to user %s: give it to them (chown -R), or choose "
                       "another by --state.directory or --user",
                       place->directory, place->user);
    if (fd >= 0)
        close(fd);
    return code;
}

int up_place_make(struct up_place *place, const struct up_settings *settings, struct err *err)
{
    int code = 0;

    snprintf(place->directory, sizeof(place->directory), "%s", settings->state_dir.p);
    snprintf(place->agent_socket, sizeof(place->agent_socket), "%s/agent.sock", place->directory);
    place->was_root = geteuid() == 0;
    place->has_capabilities =
        place->was_root || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_SYS_PTRACE, 0, 0) == 1;
    place->uid = geteuid();
    place->gid = getegid();
    if (place->was_root)
        code = find_user(place, up_settings_user(settings), err);
    if (code == 0)
        code = settings->is_demo && settings->has_own_directory
                   ? make_temporary(place, err)
                   : make_directory(place->directory, err);
    if (code < 0 || !place->was_root || place->uid == 0)
        return code < 0 ? code : 0;
    return give_away(place, code == 1, err);
}

int up_place_drop_privileges(const struct up_place *place, struct err *err)
{
    uint32_t missing;

    if (place->was_root && place->uid == 0)
        return 0;
    return privileges_keep(NULL, 0, place->was_root ? place->user : NULL, &missing, err);
}

void up_place_clear(const struct up_place *place)
{
    char path[PATH_MAX + 16];

    if (!place->is_temporary)
        return;
    for (size_t i = 0; i < COUNT(files); i++) {
        snprintf(path, sizeof(path), "%s/%s", place->directory, files[i]);
        unlink(path);
    }
    rmdir(place->directory);
}
