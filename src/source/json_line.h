/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines that look like JSON objects and are made by string formatting: squeue -o '{"id": %A, …}'.
 * Nothing in them is escaped, and numbers may be "1.50K". */
#ifndef SONDE_SOURCE_JSON_LINE_H
#define SONDE_SOURCE_JSON_LINE_H

#include "base/buf.h"
#include "base/json.h"

enum { JSON_LINE_FIELDS = 16 };

struct json_line {
    struct str between[JSON_LINE_FIELDS + 1]; /* before each field, and after the last */
    struct str keys[JSON_LINE_FIELDS];
    size_t n;
    struct json *json;
    struct buf unescaped;
};

/* `format` is what the command was asked for: "{\"id\": %A, \"r\": \"%R\"}". It must stay valid. */
void json_line_init(struct json_line *form, struct str format);
void json_line_free(struct json_line *form);

/* Takes the fields of one line, in the format's order. A line in that very format is cut where the
 * format says, and the last field may hold anything. Another one may have the keys in any order,
 * some missing (p = NULL) and some more, and is unescaped as JSON; of two with one key the first
 * counts. False if the line is neither. Valid until the next call. */
bool json_line_read(struct json_line *form, struct str line, struct str *ret_fields);

#endif
