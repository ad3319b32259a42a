/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --web.config.file: TLS, passwords and headers.
 * exporter-toolkit's docs/web-configuration.md defines the file. */
#ifndef SONDE_HTTP_WEBCONFIG_H
#define SONDE_HTTP_WEBCONFIG_H

#include "base/arena.h"
#include "base/err.h"
#include "http/tls.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>

struct webconfig_header {
    const char *name, *value; /* an empty value: the header is not sent at all */
    bool from_file;           /* then it beats what a handler says */
};

struct webconfig_user {
    struct str name;
    const char *hash; /* bcrypt */
};

enum { WEBCONFIG_HEADERS = 6 };

/* One reading of the file: immutable, shared, counted. */
struct webconfig {
    atomic_uint refs;
    uint64_t generation; /* of this process, never the same twice */
    struct arena arena;
    struct tls *tls; /* NULL: plain HTTP */
    struct webconfig_header headers[WEBCONFIG_HEADERS];
    const struct webconfig_user *users;
    size_t n_users;           /* 0: everybody may ask */
    int64_t rate_interval_ns; /* 0: no limit on requests */
    uint64_t rate_burst;
};

/* The files that a reading looked at, and how they were: to know when to read again. Also filled
 * when the reading failed, because any of them may be what has to be put right. */
enum { WEBCONFIG_FILES = 4 }; /* itself, certificate, key, client CA */
struct webconfig_files {
    char *path[WEBCONFIG_FILES];
    struct stat seen[WEBCONFIG_FILES];
    size_t n;
};

/* path NULL: no file, and so neither TLS nor passwords. -EINVAL, -EBADMSG, -ENOENT, … with a
 * sentence that names file and line. */
int webconfig_load(const char *path, struct webconfig_files *files, struct webconfig **ret,
                   struct err *err);
struct webconfig *webconfig_ref(struct webconfig *web);
struct webconfig *webconfig_unref(struct webconfig *web);

bool webconfig_files_changed(const struct webconfig_files *files);
void webconfig_files_clear(struct webconfig_files *files);

#endif
