/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A YAML file as a small tree that knows its lines (libyaml). For configuration: one document, no
 * anchors or aliases, a ceiling on size and depth, a key twice in one mapping is an error. */
#ifndef SONDE_BASE_YAML_H
#define SONDE_BASE_YAML_H

#include "base/arena.h"
#include "base/err.h"

enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAPPING };

struct yaml_node {
    enum yaml_kind kind;
    unsigned line;                  /* from 1; of the key where there is one */
    struct str key;                 /* of a mapping's member, else empty */
    struct str text;                /* of a scalar; holds no NUL and is ended by one */
    bool quoted;                    /* of a scalar: "" is a text, an unquoted empty one is null */
    struct yaml_node *child, *next; /* members of a list or mapping, in order */
};

/* Reads a file or a text, of at most 1 MB, 32 levels and 100,000 values; the tree lives in the
 * arena. An empty file is an empty mapping. -EBADMSG or -EFBIG with a sentence that begins with
 * "NAME:LINE: ", or why the file can't be read. */
int yaml_read_file(struct arena *arena, const char *path, struct yaml_node **ret, struct err *err);
int yaml_read_text(struct arena *arena, const char *name, struct str text, struct yaml_node **ret,
                   struct err *err);

/* "key:", "key: ~" and "key: null", in any case; never what is quoted. */
bool yaml_is_null(const struct yaml_node *node);

/* true, yes, on, t, 1 and false, no, off, f, 0, in any case; also for what a flag says. */
bool yaml_get_bool(struct str text, bool *ret);

/* "NAME:LINE: sentence", for who reads the tree and finds something in it that will not do. Returns
 * -EINVAL. */
int yaml_refuse(const struct yaml_node *node, const char *name, struct err *err, const char *format,
                ...) __attribute__((format(printf, 4, 5)));

#endif
