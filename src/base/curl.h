/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libcurl (https://curl.se/libcurl/c/), loaded when it is first needed: a program that can make
 * requests, but makes none, does not pay for it. docs/decisions/libcurl.md */
#ifndef SONDE_BASE_CURL_H
#define SONDE_BASE_CURL_H

#include "base/err.h"

#include <curl/curl.h>
#include <stdbool.h>

/* Each is called by the name that libcurl gives it, without its curl_. */
#define LIBCURL_FUNCTIONS(FUNCTION)                                                                \
    FUNCTION(global_init)                                                                          \
    FUNCTION(easy_init)                                                                            \
    FUNCTION(easy_cleanup)                                                                         \
    FUNCTION(easy_reset)                                                                           \
    FUNCTION(easy_setopt)                                                                          \
    FUNCTION(easy_getinfo)                                                                         \
    FUNCTION(easy_perform)                                                                         \
    FUNCTION(easy_strerror)                                                                        \
    FUNCTION(multi_init)                                                                           \
    FUNCTION(multi_cleanup)                                                                        \
    FUNCTION(multi_add_handle)                                                                     \
    FUNCTION(multi_remove_handle)                                                                  \
    FUNCTION(multi_perform)                                                                        \
    FUNCTION(multi_poll)                                                                           \
    FUNCTION(multi_info_read)                                                                      \
    FUNCTION(slist_append)                                                                         \
    FUNCTION(slist_free_all)                                                                       \
    FUNCTION(url)                                                                                  \
    FUNCTION(url_cleanup)                                                                          \
    FUNCTION(url_set)                                                                              \
    FUNCTION(url_get)                                                                              \
    FUNCTION(free)

struct libcurl {
#define LIBCURL_MEMBER(name) __typeof__(curl_##name) *name;
    LIBCURL_FUNCTIONS(LIBCURL_MEMBER)
#undef LIBCURL_MEMBER
};

/* The same for everybody, ready for use, and never unloaded. -ENOENT with a sentence that names the
 * package if it is not installed. Any thread may be the first. */
int libcurl_open(const struct libcurl **ret, struct err *err);

/* Of a host as it stands in a URL. */
bool libcurl_is_loopback(const char *host);

/* The two that take anything: an int where libcurl reads a long would go unnoticed. Its own checks
 * (typecheck-gcc.h) say nothing where its headers are the system's. */
#define LIBCURL_SETOPT(libcurl, easy, option, value)                                               \
    __extension__({                                                                                \
        _Static_assert(LIBCURL_IS_NUMBER(value) == LIBCURL_TAKES_NUMBER(option),                   \
                       "libcurl takes another type for " #option);                                 \
        (libcurl)->easy_setopt(easy, option, value);                                               \
    })
#define LIBCURL_IS_NUMBER(value) _Generic((value), long : 1, long long : 1, default : 0)
#define LIBCURL_TAKES_NUMBER(option)                                                               \
    ((option) < CURLOPTTYPE_OBJECTPOINT ||                                                         \
     ((option) >= CURLOPTTYPE_OFF_T && (option) < CURLOPTTYPE_BLOB))

#define LIBCURL_GETINFO(libcurl, easy, info, to)                                                   \
    __extension__({                                                                                \
        _Static_assert(LIBCURL_KIND_OF(to) == ((info)&CURLINFO_TYPEMASK),                          \
                       "libcurl gives another type for " #info);                                   \
        (libcurl)->easy_getinfo(easy, info, to);                                                   \
    })
#define LIBCURL_KIND_OF(to) _Generic((to), long * : CURLINFO_LONG, const char ** : CURLINFO_STRING)

#endif
