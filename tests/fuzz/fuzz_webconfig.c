/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any --web.config.file, beside a certificate and its key: it is taken, or refused with a sentence.
 * What is taken keeps no name, hash or header that a request or an answer could be broken with. */
#include "http/webconfig.h"

#include "certificates.h"
#include "scratch.h"

enum { MOST_BYTES = 8192 };

/* Files that inputs name; they read no others, for the names of those are not theirs to know. */
static void make_files(void)
{
    struct certificate authority, server;

    certificate_make(&authority, &(struct certificate_wish){ .name = "ca", .is_authority = true });
    certificate_make(&server, &(struct certificate_wish){ .name = "host", .signer = &authority });
    scratch_write("cert.pem", str_of(server.cert_pem));
    scratch_write("key.pem", str_of(server.key_pem));
    scratch_write("ca.pem", str_of(authority.cert_pem));
    certificate_free(&authority);
    certificate_free(&server);
}

static void check_header(const struct webconfig_header *header)
{
    for (const char *c = header->value; *c; c++)
        FUZZ_CHECK((unsigned char)*c >= ' ' && *c != '\x7f', "%s: %s", header->name, header->value);
}

static void check_web(const struct webconfig *web)
{
    for (size_t i = 0; i < WEBCONFIG_HEADERS; i++)
        check_header(&web->headers[i]);
    for (size_t i = 0; i < web->n_users; i++) {
        FUZZ_CHECK(str_find(web->users[i].name, ':') == web->users[i].name.n);
        FUZZ_CHECK(strlen(web->users[i].hash) == 60);
        for (size_t k = 0; k < i; k++)
            FUZZ_CHECK(!str_eq(web->users[i].name, web->users[k].name));
    }
    FUZZ_CHECK(web->rate_interval_ns >= 0 && web->rate_burst <= UINT32_MAX);
    FUZZ_CHECK(!web->rate_interval_ns || web->rate_burst);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool has_files;
    struct webconfig_files files = { 0 };
    struct webconfig *web = NULL;
    struct err err = { 0 };
    const char *path;
    int code;

    if (size > MOST_BYTES)
        return 0;
    if (!has_files)
        make_files();
    has_files = true;
    path = scratch_write("web.yml", (struct str){ (const char *)data, size });
    code = webconfig_load(path, &files, &web, &err);
    FUZZ_CHECK(files.n >= 1 && files.n <= WEBCONFIG_FILES);
    if (code == 0) {
        check_web(web);
        webconfig_unref(web);
    } else {
        FUZZ_CHECK(err.code == -code && err.text[0]);
        FUZZ_CHECK(!strchr(err.text, '\n') && !strchr(err.text, '\x1b'));
    }
    webconfig_files_clear(&files);
    return 0;
}
