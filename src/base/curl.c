/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads libcurl with dlopen when it is first needed. */
#include "base/curl.h"

#include "base/str.h"

#include <dlfcn.h>
#include <pthread.h>

/* GnuTLS is what the HTTP server has loaded already. Fedora has the second name only. */
static const char *const names[] = { "libcurl-gnutls.so.4", "libcurl.so.4" };

static const struct {
    const char *symbol;
    size_t offset;
} functions[] = {
#define ROW(name) { "curl_" #name, offsetof(struct libcurl, name) },
    LIBCURL_FUNCTIONS(ROW)
#undef ROW
};

static struct libcurl libcurl;
static struct err load_err; /* why it could not be loaded */

static int find_functions(void *library, const char *name, struct err *err)
{
    for (size_t i = 0; i < COUNT(functions); i++) {
        void *function = dlsym(library, functions[i].symbol);

        if (!function)
            return err_set(err, ENOENT, "%s has no %s; install libcurl 7.74 or newer", name,
                           functions[i].symbol);
        memcpy((char *)&libcurl + functions[i].offset, &function, sizeof(function));
    }
    return 0;
}

static int start(void)
{
    CURLcode result = libcurl.global_init(CURL_GLOBAL_DEFAULT);

    if (result != CURLE_OK)
        return err_set(&load_err, EIO, "libcurl cannot be used: %s", libcurl.easy_strerror(result));
    return 0;
}

static void load(void)
{
    for (size_t i = 0; i < COUNT(names); i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);

        if (!library)
            continue;
        if (find_functions(library, names[i], &load_err) == 0)
            start();
        return;
    }
    err_set(&load_err, ENOENT,
            "libcurl cannot be loaded, and no HTTP request made without it; install it (Debian: "
            "libcurl3-gnutls or libcurl4, Fedora: libcurl) and start again");
}

int libcurl_open(const struct libcurl **ret, struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    if (load_err.code)
        return err_set(err, load_err.code, "%s", load_err.text);
    *ret = &libcurl;
    return 0;
}

bool libcurl_is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "[::1]") == 0;
}
