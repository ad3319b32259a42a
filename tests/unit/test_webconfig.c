/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of http/webconfig: the file of --web.config.file. */
#include "test.h"

#include "certificates.h"
#include "files.h"

#include "base/buf.h"
#include "base/yaml.h"
#include "http/priority.h"
#include "http/webconfig.h"

#include <gnutls/gnutls.h>
#include <fcntl.h>

#define HASH "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"

static struct certificate authority, server, stranger;
static struct webconfig_files files;

static void make_certificates(void)
{
    certificate_make(&authority, &(struct certificate_wish){ .name = "ca", .is_authority = true });
    certificate_make(&server, &(struct certificate_wish){ .name = "host", .signer = &authority });
    certificate_make(&stranger, &(struct certificate_wish){ .name = "other" });
}

static void free_certificates(void)
{
    certificate_free(&authority);
    certificate_free(&server);
    certificate_free(&stranger);
}

PROGRAM_FIXTURE(make_certificates, free_certificates)

static void set_up(void)
{
    write_file("cert.pem", server.cert_pem);
    write_file("key.pem", server.key_pem);
    write_file("ca.pem", authority.cert_pem);
    write_file("other.pem", stranger.key_pem);
}

FIXTURE(set_up, NULL)

static int load(const char *text, struct webconfig **ret, struct err *err)
{
    webconfig_files_clear(&files);
    return webconfig_load(write_file("web.yml", text), &files, ret, err);
}

static struct webconfig *load_good(const char *text)
{
    struct webconfig *web = NULL;
    struct err err;

    if (load(text, &web, &err) < 0)
        fail_msg("%s\nin\n%s", err.text, text);
    webconfig_files_clear(&files);
    return web;
}

/* Refused, in one line with the file, the line of the mistake and these words. */
static void load_bad(const char *text, unsigned line, const char *words)
{
    struct webconfig *web;
    char place[300];
    struct err err;

    assert_true(load(text, &web, &err) < 0);
    webconfig_files_clear(&files);
    snprintf(place, sizeof(place), "web.yml:%u: ", line);
    if (line)
        assert_contains(err.text, place);
    assert_contains(err.text, words);
    assert_null(strchr(err.text, '\n'));
    assert_null(strstr(err.text, HASH + 10));
}

static const char *header(const struct webconfig *web, const char *name)
{
    for (size_t i = 0; i < WEBCONFIG_HEADERS; i++)
        if (strcmp(web->headers[i].name, name) == 0)
            return web->headers[i].value;
    return NULL;
}

TEST(without_a_file_there_is_no_tls_and_no_password)
{
    struct webconfig *web;
    struct err err;

    assert_int_equal(webconfig_load(NULL, &files, &web, &err), 0);
    assert_null(web->tls);
    assert_int_equal(web->n_users, 0);
    assert_int_equal(files.n, 0);
    assert_string_equal(header(web, "X-Content-Type-Options"), "nosniff");
    webconfig_unref(web);
}

TEST(an_empty_file_changes_nothing)
{
    static const char *const empty[] = {
        "",
        "# nothing\n",
        "~\n",
        "http_server_config:\nbasic_auth_users:\n",
        "http_server_config: { headers: null }\nbasic_auth_users: ~\nrate_limit: Null\n",
    };

    for (size_t i = 0; i < COUNT(empty); i++) {
        struct webconfig *web = load_good(empty[i]);

        assert_null(web->tls);
        assert_int_equal(web->n_users, 0);
        assert_int_equal(web->rate_interval_ns, 0);
        webconfig_unref(web);
    }
}

TEST(an_empty_tls_section_is_not_taken_for_plain_http)
{
    static const char *const empty[] = {
        "tls_server_config: {}\n",
        "tls_server_config:\n  # cert_file: cert.pem\n  # key_file: key.pem\n",
        "tls_server_config: ~\n",
        "tls_server_config: null\n",
        "tls_server_config:\n  cert_file: ~\n  key_file:\n",
    };

    for (size_t i = 0; i < COUNT(empty); i++)
        load_bad(empty[i], 1, "tls_server_config lacks cert_file: add it, or remove the section");
}

TEST(every_key_of_the_toolkit_is_known)
{
    struct webconfig *web;

    web = load_good("tls_server_config:\n"
                    "  cert_file: cert.pem\n"
                    "  key_file: key.pem\n"
                    "  client_auth_type: RequireAndVerifyClientCert\n"
                    "  client_ca_file: ca.pem\n"
                    "  client_allowed_sans: [ one.example, 10.0.0.1 ]\n"
                    "  min_version: TLS12\n"
                    "  max_version: TLS13\n"
                    "  cipher_suites:\n"
                    "    - TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256\n"
                    "    - TLS_AES_256_GCM_SHA384\n"
                    "  prefer_server_cipher_suites: false\n"
                    "  curve_preferences: [ CurveP256, X25519 ]\n"
                    "http_server_config:\n"
                    "  http2: true\n"
                    "  headers:\n"
                    "    Content-Security-Policy: default-src 'self'\n"
                    "    X-Frame-Options: sameorigin\n"
                    "    X-Content-Type-Options: nosniff\n"
                    "    X-XSS-Protection: 1; mode=block\n"
                    "    Strict-Transport-Security: max-age=31536000\n"
                    "basic_auth_users:\n"
                    "  alice: " HASH "\n"
                    "  bob: $2b$12$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi\n"
                    "rate_limit:\n"
                    "  interval: 250ms\n"
                    "  burst: 20\n");
    assert_non_null(web->tls);
    assert_int_equal(web->n_users, 2);
    assert_str(web->users[0].name, "alice");
    assert_string_equal(web->users[0].hash, HASH);
    assert_string_equal(header(web, "X-Frame-Options"), "sameorigin");
    assert_string_equal(header(web, "Strict-Transport-Security"), "max-age=31536000");
    assert_string_equal(header(web, "X-XSS-Protection"), "1; mode=block");
    assert_string_equal(header(web, "Referrer-Policy"), "no-referrer");
    assert_int_equal(web->rate_interval_ns, 250000000);
    assert_int_equal(web->rate_burst, 20);
    webconfig_unref(web);
}

TEST(a_blank_header_is_left_out)
{
    struct webconfig *web =
        load_good("http_server_config:\n  headers:\n    X-Frame-Options: \"\"\n");

    assert_string_equal(header(web, "X-Frame-Options"), "");
    webconfig_unref(web);
    web = load_good("http_server_config:\n  headers:\n    X-Frame-Options: ~\n");
    assert_string_equal(header(web, "X-Frame-Options"), "");
    webconfig_unref(web);
}

static void append_indented(struct buf *out, const char *pem)
{
    for (struct str line, rest = str_of(pem); rest.p;) {
        line = str_cut(&rest, '\n');
        buf_printf(out, "    %.*s\n", STR_ARG(line));
    }
}

TEST(certificates_may_stand_in_the_file_itself)
{
    struct webconfig *web;
    struct buf text;

    buf_init(&text, 100000);
    buf_text(&text, "tls_server_config:\n  client_auth_type: VerifyClientCertIfGiven\n  cert: |\n");
    append_indented(&text, server.cert_pem);
    buf_text(&text, "  key: |\n");
    append_indented(&text, server.key_pem);
    buf_text(&text, "  client_ca: |\n");
    append_indented(&text, authority.cert_pem);
    web = load_good(text.p);
    assert_non_null(web->tls);
    webconfig_unref(web);
    buf_text(&text, "  cert_file: cert.pem\n");
    load_bad(text.p, 1, "both cert and cert_file");
    buf_free(&text);
}

TEST(an_unknown_key_is_named_with_its_line_and_the_nearest)
{
    load_bad("tls_server_confg:\n  cert_file: x\n", 1,
             "\"tls_server_confg\", the nearest valid one is \"tls_server_config\"");
    load_bad("\ntls_server_config:\n  cert_flie: x\n", 3,
             "\"cert_flie\", the nearest valid one is \"cert_file\"");
    load_bad("http_server_config:\n  headers:\n    X-Frame-Option: deny\n", 3,
             "\"X-Frame-Option\", the nearest valid one is \"X-Frame-Options\"");
    load_bad("http_server_config:\n  headers:\n    Referrer-Policy: x\n", 3, "Referrer-Policy");
    load_bad("rate_limit: { brust: 1 }\n", 1, "\"brust\", the nearest valid one is \"burst\"");
}

TEST(wrong_values_are_refused_with_their_line)
{
#define TLS "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n"
    load_bad(TLS "  min_version: TLS14\n", 4, "\"TLS14\" is not known, the nearest valid one is");
    load_bad(TLS "  min_version: TLS13\n  max_version: TLS12\n", 1, "above max_version");
    load_bad(TLS "  cipher_suites:\n    - TLS_AES_128_GCM_SHA265\n", 5, "TLS_AES_128_GCM_SHA256");
    load_bad(TLS "  cipher_suites: [ ~ ]\n", 4, "list of texts");
    load_bad(TLS "  cipher_suites: TLS_AES_128_GCM_SHA256\n", 4, "takes a list");
    load_bad(TLS "  curve_preferences: [ P256 ]\n", 4, "CurveP256");
    load_bad(TLS "  client_auth_type: Require\n", 4, "\"Require\" is not known");
    load_bad(TLS "  prefer_server_cipher_suites: maybe\n", 4, "true or false");
    load_bad(TLS "  client_ca_file: ca.pem\n", 1, "client_auth_type");
    load_bad(TLS "  client_auth_type: RequireAndVerifyClientCert\n", 4, "client_ca_file");
    load_bad(TLS "  client_ca_file: ca.pem\n  client_auth_type: VerifyClientCertIfGiven\n"
                 "  client_allowed_sans: [ a ]\n",
             6, "client_allowed_sans needs");
    load_bad("tls_server_config:\n  min_version: TLS13\n", 1, "lacks cert_file");
    load_bad("tls_server_config:\n  cert_file: cert.pem\n", 1, "lacks key_file");
    load_bad("tls_server_config: [ a ]\n", 1, "keys and values");
    load_bad("http_server_config:\n  headers:\n    X-Frame-Options: allow\n", 3,
             "deny or sameorigin");
    load_bad("http_server_config:\n  headers:\n    Content-Security-Policy: \"a\\nb: c\"\n", 3,
             "one line");
    load_bad("http_server_config: { http2: 2 }\n", 1, "true or false");
    load_bad("basic_auth_users:\n  alice: secret\n", 2, "\"alice\" is not a bcrypt hash");
    load_bad("basic_auth_users:\n  alice: $2x$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/"
             "VcEd00UAV/LDeSi\n",
             2, "bcrypt");
    load_bad("basic_auth_users:\n  alice: $2y$31$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/"
             "VcEd00UAV/LDeSi\n",
             2, "from 4 to 18");
    load_bad("basic_auth_users:\n  \"a:b\": " HASH "\n", 2, "colon");
    load_bad("basic_auth_users: [ alice ]\n", 1, "names and hashes");
    load_bad("rate_limit: { interval: 5, burst: 1 }\n", 1, "with its unit");
    load_bad("rate_limit: { interval: 1s }\n", 1, "burst of 0");
    load_bad("rate_limit: { interval: 1s, burst: -1 }\n", 1, "number of requests");
}

TEST(files_that_can_not_be_used_are_named)
{
    load_bad("tls_server_config:\n  cert_file: missing.pem\n  key_file: key.pem\n", 0,
             "missing.pem: No such file");
    load_bad("tls_server_config:\n  cert_file: cert.pem\n  key_file: other.pem\n", 1,
             "certificate and its key");
    load_bad("tls_server_config:\n  cert_file: web.yml\n  key_file: key.pem\n", 1, "certificate");
    load_bad("tls_server_config:\n  cert_file: .\n  key_file: key.pem\n", 0, "is not a file");
    load_bad(TLS "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: web.yml\n", 1,
             "clients to be checked against");
}

TEST(a_change_of_any_file_is_noticed_also_after_a_failure)
{
    struct webconfig *web;
    struct err err;

    assert_int_equal(load(TLS, &web, &err), 0);
    assert_false(webconfig_files_changed(&files));
    write_file("key.pem", stranger.key_pem);
    assert_true(webconfig_files_changed(&files));
    webconfig_unref(web);

    assert_true(load(TLS, &web, &err) < 0); /* the key does not fit */
    assert_false(webconfig_files_changed(&files));
    write_file("key.pem", server.key_pem);
    assert_true(webconfig_files_changed(&files));
    unlink(test_path("ca.pem"));
    assert_true(load(TLS "  client_auth_type: RequireAnyClientCert\n  client_ca_file: ca.pem\n",
                     &web, &err) < 0);
    assert_false(webconfig_files_changed(&files));
    write_file("ca.pem", authority.cert_pem);
    assert_true(webconfig_files_changed(&files));
    webconfig_files_clear(&files);
}

TEST(gnutls_takes_every_name_that_go_has)
{
    for (const struct priority_name *c = priority_ciphers; c->name; c++) {
        for (const struct priority_name *g = priority_curves; g->name; g++) {
            struct yaml_node cipher = { .text = str_of(c->name) },
                             curve = { .text = str_of(g->name) };
            struct yaml_node ciphers = { .child = &cipher }, curves = { .child = &curve };
            struct priority_settings settings = { 0, 3, &ciphers, &curves, true };
            gnutls_priority_t priority;
            struct buf out;

            buf_init(&out, 10000);
            priority_write(&out, &settings);
            if (gnutls_priority_init(&priority, out.p, NULL) != 0)
                fail_msg("GnuTLS does not take %s", out.p);
            gnutls_priority_deinit(priority);
            buf_free(&out);
        }
    }
}
