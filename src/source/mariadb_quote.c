/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names and texts inside a statement: https://mariadb.com/kb/en/identifier-names/ and
 * https://mariadb.com/kb/en/string-literals/, for a connection in UTF-8 whose sql_mode is empty. */
#include "base/buf.h"
#include "base/quote.h"
#include "source/mariadb.h"

enum { NAME_MAX_CHARACTERS = 64, NAME_MAX_BYTES = 3 /* of a character: no more than U+FFFF */ };

static int refuse(struct str text, const char *why, struct err *err)
{
    return err_set(err, EINVAL, "\"%s\" cannot be a name in a database: %s", quote(text).text, why);
}

int mariadb_put_name(struct buf *to, struct str name, struct err *err)
{
    size_t n_characters = 0, length;

    if (!name.n)
        return refuse(name, "it is empty", err);
    if (name.p[name.n - 1] == ' ')
        return refuse(name, "it ends with a space", err);
    for (struct str rest = name; rest.n; rest = str_skip(rest, length)) {
        length = str_printable_len(rest);
        if (!length || length > NAME_MAX_BYTES)
            return refuse(name, "it has control characters, or bytes that are no character there",
                          err);
        if (++n_characters > NAME_MAX_CHARACTERS)
            return refuse(name, "it is longer than 64 characters", err);
    }
    buf_byte(to, '`');
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] == '`')
            buf_byte(to, '`');
        buf_byte(to, name.p[i]);
    }
    buf_byte(to, '`');
    return 0;
}

/* The text is not shown: it may be a password. */
int mariadb_put_string(struct buf *to, struct str text, struct err *err)
{
    size_t length;

    for (struct str rest = text; rest.n; rest = str_skip(rest, length)) {
        length = str_utf8_len(rest);
        if (!length || rest.p[0] == '\0')
            return err_set(err, EINVAL, "a text for the database is not UTF-8, or has a NUL in it");
    }
    buf_byte(to, '\'');
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '\'' || text.p[i] == '\\')
            buf_byte(to, text.p[i]);
        buf_byte(to, text.p[i]);
    }
    buf_byte(to, '\'');
    return 0;
}
