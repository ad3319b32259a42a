/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Temporary directories of tests, and what is written into them. */
#include "files.h"

#include "test.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum { FILE_MAX = 64 << 20 };

/* A directory that was made, or an empty path. */
static struct place {
    char path[200];
    struct arena arena; /* of what was returned */
    bool is_on_disk;
    int log_fd; /* 0: none */
} of_program, of_test, *current = &of_program;

static pid_t program; /* this one, and no child of it */

__attribute__((constructor)) static void set_program(void)
{
    program = getpid();
}

/* Containers may allow no programs there. */
static bool has_memory(void)
{
    struct statvfs status;

    return statvfs("/dev/shm", &status) == 0 && !(status.f_flag & ST_NOEXEC) &&
           access("/dev/shm", W_OK) == 0;
}

void put_dir_on_disk(void)
{
    current->is_on_disk = true;
}

const char *test_dir(void)
{
    if (!current->path[0]) {
        bool is_in_memory = has_memory() && !current->is_on_disk;
        const char *below = getenv(is_in_memory ? "SONDE_MEMORY_DIR" : "TMPDIR");

        if (getpid() != program)
            abort(); /* nobody would remove it */
        if (!below)
            below = is_in_memory ? "/dev/shm" : "/tmp";
        snprintf(current->path, sizeof(current->path), "%s/sonde-test-XXXXXX", below);
        if (!mkdtemp(current->path))
            fail_msg("cannot make %s: %s", current->path, err_words(errno));
        assert_int_equal(chmod(current->path, 0755), 0);
    }
    return current->path;
}

static const char *path_in(const char *directory, const char *format, va_list arguments)
{
    char name[PATH_MAX], path[PATH_MAX];

    vsnprintf(name, sizeof(name), format, arguments);
    assert_true(snprintf(path, sizeof(path), "%s/%s", directory, name) < PATH_MAX);
    return arena_str(&current->arena, str_of(path)).p;
}

const char *test_path(const char *format, ...)
{
    va_list arguments;
    const char *path;

    va_start(arguments, format);
    path = path_in(test_dir(), format, arguments);
    va_end(arguments);
    return path;
}

const char *source_path(const char *format, ...)
{
    va_list arguments;
    const char *path;

    va_start(arguments, format);
    path = path_in(SOURCE_ROOT, format, arguments);
    va_end(arguments);
    return path;
}

static const char *whole_path(const char *path)
{
    return path[0] == '/' ? path : test_path("%s", path);
}

static bool is_in(const struct place *place, const char *path)
{
    size_t n = strlen(place->path);

    return n && strncmp(path, place->path, n) == 0;
}

/* Tests are run by root: none writes anywhere else. */
static const char *own_path(const char *path)
{
    path = whole_path(path);
    if (!is_in(&of_test, path) && !is_in(&of_program, path))
        fail_msg("%s is not in test_dir()", path);
    return path;
}

static void make_parents(const char *path)
{
    char above[PATH_MAX];

    snprintf(above, sizeof(above), "%s", path);
    for (char *slash = above + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir(above, 0755) < 0 && errno != EEXIST)
            fail_msg("cannot make %s: %s", above, err_words(errno));
        *slash = '/';
    }
}

const char *write_bytes(const char *path, struct str bytes)
{
    FILE *file;

    path = own_path(path);
    make_parents(path);
    file = fopen(path, "we");
    if (!file || fwrite(bytes.p, 1, bytes.n, file) != bytes.n || fclose(file) != 0)
        fail_msg("cannot write %s: %s", path, err_words(errno));
    return path;
}

const char *write_file(const char *path, const char *text)
{
    return write_bytes(path, str_of(text));
}

const char *replace_file(const char *path, const char *text)
{
    const char *part = write_file(test_path("part"), text);

    path = own_path(path);
    if (rename(part, path) < 0)
        fail_msg("cannot make %s: %s", path, err_words(errno));
    return path;
}

const char *write_script(const char *path, const char *commands)
{
    struct buf text;

    buf_init(&text, FILE_MAX);
    buf_printf(&text, "#!/bin/sh\n%s\n", commands);
    path = write_bytes(path, buf_str(&text));
    buf_free(&text);
    assert_int_equal(chmod(path, 0755), 0);
    return path;
}

const char *make_dir(const char *path)
{
    path = own_path(path);
    make_parents(path);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        fail_msg("cannot make %s: %s", path, err_words(errno));
    return path;
}

const char *make_link(const char *path, const char *target)
{
    path = own_path(path);
    make_parents(path);
    if (symlink(target, path) < 0)
        fail_msg("cannot make %s: %s", path, err_words(errno));
    return path;
}

struct str read_file(const char *path)
{
    struct str whole;
    struct buf text;
    FILE *file;
    size_t n;

    path = whole_path(path);
    file = fopen(path, "re");
    if (!file)
        fail_msg("cannot read %s: %s", path, err_words(errno));
    buf_init(&text, FILE_MAX);
    do {
        char *room = buf_room(&text, 1 << 16);

        assert_non_null(room);
        n = fread(room, 1, 1 << 16, file);
        text.n += n;
    } while (n);
    fclose(file);
    whole = arena_str(&current->arena, buf_str(&text));
    buf_free(&text);
    return whole;
}

struct log *test_log(const struct clock *clock)
{
    assert_int_equal(current->log_fd, 0);
    current->log_fd = open(write_file("log", ""), O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(current->log_fd > 0);
    return log_new(current->log_fd, LOG_DEBUG, clock);
}

struct str logged(void)
{
    return read_file("log");
}

size_t count_logged(const char *part)
{
    size_t n = 0;

    for (const char *text = logged().p; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

void assert_golden(struct str made, const char *path)
{
    const char *update = getenv("SONDE_UPDATE_GOLDEN");
    FILE *file;

    path = source_path("%s", path);
    if (update && strcmp(update, "1") == 0) {
        file = fopen(path, "we");
        assert_non_null(file);
        assert_int_equal(fwrite(made.p, 1, made.n, file), made.n);
        assert_int_equal(fclose(file), 0);
    }
    if (!str_eq(read_file(path), made))
        fail_msg("%s is not what is made (SONDE_UPDATE_GOLDEN=1 writes it):\n%.*s", path,
                 STR_ARG(made));
}

/* A test may have taken its own rights away. */
static int open_up(const char *path, const struct stat *status, int flag, struct FTW *ftw)
{
    (void)ftw;
    if (flag == FTW_D || flag == FTW_DNR)
        chmod(path, (status->st_mode | 0700) & 07777);
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *ftw)
{
    (void)status;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void remove_all(const char *path)
{
    path = own_path(path);
    nftw(path, open_up, 16, FTW_PHYS | FTW_MOUNT);
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) < 0 && errno != ENOENT)
        fail_msg("cannot remove %s: %s", path, err_words(errno));
}

static void remove_place(struct place *place)
{
    arena_clear(&place->arena);
    if (place->log_fd)
        close(place->log_fd);
    if (place->path[0])
        remove_all(place->path);
    *place = (struct place){ 0 };
}

/* There is still one of the last test if its tear-down has failed. */
void files_begin_test(void)
{
    current = &of_test;
    remove_place(&of_test);
}

void files_end_test(void)
{
    remove_place(&of_test);
}

void files_end_program(void)
{
    remove_place(&of_test);
    remove_place(&of_program);
}
