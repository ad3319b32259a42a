/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Structs of amounts as JSON objects and back, by one table of their members. What is unknown is
 * absent: NAN and empty texts are not written, what is not there stays as it was. */
#ifndef SONDE_REPORT_FACTS_JSON_H
#define SONDE_REPORT_FACTS_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum fact_kind {
    FACT_AMOUNT, /* double: from 0 to 1e24 */
    FACT_TRUTH,  /* double, 1 or 0, from true or false */
    FACT_TEXT,   /* struct str */
    FACT_OBJECT, /* what `table` has, from this offset on */
    FACT_LIST,   /* of objects; they are not written from here */
};

struct fact_table {
    const struct fact_member {
        const char *name;
        enum fact_kind kind;
        size_t offset;
        const struct fact_table *table; /* of an object, and of each in a list */
        void *(*begin)(void *ctx); /* a place for the next of a list; NULL: it is passed over */
    } * member;
    size_t n;
};

#define FACT(record, name, kind, field)                                                            \
    {                                                                                              \
        name, kind, offsetof(record, field), NULL, NULL                                            \
    }
#define FACT_OF(record, name, field, table)                                                        \
    {                                                                                              \
        name, FACT_OBJECT, offsetof(record, field), table, NULL                                    \
    }
#define FACTS(name, table, begin)                                                                  \
    {                                                                                              \
        name, FACT_LIST, 0, table, begin                                                           \
    }
#define FACT_TABLE(members)                                                                        \
    {                                                                                              \
        members, COUNT(members)                                                                    \
    }

enum { FACTS_DOCUMENT_MAX = 64 * 1024, FACTS_TEXT_MAX = 4096 };

/* Members of one object, without its brackets. */
void fact_put(struct buf *to, const struct fact_table *table, const void *from);

/* A comma if something stands before that wants one, and the name. */
void fact_put_name(struct buf *to, const char *name);

/* A whole document. Texts are copied into the arena. -EBADMSG with a sentence for what is not an
 * object with such members; others are passed over. */
int fact_read(struct str document, const struct fact_table *table, void *to, void *ctx,
              struct arena *arena, struct err *err);

#endif
