/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Log lines in logfmt, one write each, on one descriptor. Values are escaped here and bounded; a
 * message that repeats without end is limited; a line that would have to wait for its reader is
 * lost, and the next one says so. Only cmd/ and the threads' main loops log: library code returns a
 * struct err. */
#ifndef SONDE_BASE_LOG_H
#define SONDE_BASE_LOG_H

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log_field {
    const char *key;
    enum { LOG_FIELD_STR, LOG_FIELD_INT, LOG_FIELD_DOUBLE } kind;
    struct str text;
    int64_t integer;
    double real;
};

#define LOG_STR(key, text)                                                                         \
    {                                                                                              \
        key, LOG_FIELD_STR, str_of(text), 0, 0                                                     \
    }
#define LOG_VIEW(key, view)                                                                        \
    {                                                                                              \
        key, LOG_FIELD_STR, view, 0, 0                                                             \
    }
#define LOG_INT(key, value)                                                                        \
    {                                                                                              \
        key, LOG_FIELD_INT, { 0 }, (int64_t)(value), 0                                             \
    }
#define LOG_DOUBLE(key, value)                                                                     \
    {                                                                                              \
        key, LOG_FIELD_DOUBLE, { 0 }, 0, value                                                     \
    }

struct log;

struct log *log_new(int fd, enum log_level least, const struct clock *clock);
struct log *log_free(struct log *log);
void log_set_level(struct log *log, enum log_level least);
bool log_level_parse(struct str name, enum log_level *ret);

/* The same `msg` is written at most 10 times a minute; the next line then says how many were left
 * out. `msg` is a literal: it names the event, the fields carry what differs. A text that is NULL
 * is left out with its key. */
void log_write(struct log *log, enum log_level level, const char *msg,
               const struct log_field *fields, size_t n_fields);

#define LOG(log, level, msg, ...)                                                                  \
    log_write(log, level, "" msg, (const struct log_field[]){ __VA_ARGS__ },                       \
              sizeof((const struct log_field[]){ __VA_ARGS__ }) / sizeof(struct log_field))

#endif
