/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of a test, in a directory of its own that is removed with all that is in it when the test
 * has ended, also when it has failed. */
#ifndef SONDE_TESTS_FILES_H
#define SONDE_TESTS_FILES_H

#include "base/log.h"
#include "base/str.h"

/* The directory of the test that runs or, if the program's set-up calls this, of the program. It is
 * in memory, as a disk may be a hundred times slower: below SONDE_MEMORY_DIR or /dev/shm. Where
 * that cannot be, it is below TMPDIR or /tmp. Everybody may enter it. A child may use it if it was
 * forked after the first call. */
const char *test_dir(void);

/* The next test_dir() is below TMPDIR or /tmp: no program in memory may be set-uid. */
void put_dir_on_disk(void);

/* A path in that directory. What is returned here and below lives as long as the directory. */
__attribute__((format(printf, 1, 2))) const char *test_path(const char *format, ...);

/* Writes a file anew, and the directories above it. A relative path is one in test_dir(); no other
 * place is written to. Returns the whole path. */
const char *write_file(const char *path, const char *text);
const char *write_bytes(const char *path, struct str bytes);

/* The same, moved into place: no reader meets half of it. */
const char *replace_file(const char *path, const char *text);

/* A program that /bin/sh runs. */
const char *write_script(const char *path, const char *commands);

/* A directory, with those above it, and a link. */
const char *make_dir(const char *path);
const char *make_link(const char *path, const char *target);

/* A whole file, with a NUL behind it; relative as above. */
struct str read_file(const char *path);

/* Removes a file, or a directory with all that is in it; what is not there is no error. */
void remove_all(const char *path);

/* A log of all levels into a file of test_dir(), what is in it, and how often something is. */
struct log *test_log(const struct clock *clock);
struct str logged(void);
size_t count_logged(const char *part);

/* A path in the repository, such as "tests/data/x.json". */
__attribute__((format(printf, 1, 2))) const char *source_path(const char *format, ...);

/* Fails unless that file of the repository has this text; SONDE_UPDATE_GOLDEN=1 writes it. */
void assert_golden(struct str made, const char *path);

/* For test.c. */
void files_begin_test(void);
void files_end_test(void);
void files_end_program(void);

#endif
