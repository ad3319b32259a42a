/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Server side of TLS connections, with GnuTLS. */
#include "http/tls.h"

#include "base/arena.h"

#include <arpa/inet.h>
#include <gnutls/x509.h>
#include <stdint.h>

enum { LONGEST_SAN = 1024 };

struct tls {
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t priority;
    enum tls_client_auth client_auth;
    const struct str *allowed_sans;
    size_t n_allowed_sans;
};

static gnutls_datum_t datum(struct str s)
{
    return (gnutls_datum_t){ (unsigned char *)(uintptr_t)s.p, (unsigned)s.n };
}

static int load(struct tls *tls, const struct tls_settings *settings, struct err *err)
{
    gnutls_datum_t cert = datum(settings->cert), key = datum(settings->key);
    gnutls_datum_t ca = datum(settings->client_ca);
    const char *at;
    int r;

    r = gnutls_priority_init(&tls->priority, settings->priority, &at);
    if (r < 0)
        return err_set(err, EINVAL, "GnuTLS does not take these versions, ciphers and curves: %s",
                       gnutls_strerror(r));
    r = gnutls_certificate_set_x509_key_mem2(tls->credentials, &cert, &key, GNUTLS_X509_FMT_PEM,
                                             NULL, 0);
    if (r < 0)
        return err_set(err, EINVAL, "the certificate and its key can't be used: %s",
                       gnutls_strerror(r));
    if (settings->client_ca.n == 0)
        return 0;
    r = gnutls_certificate_set_x509_trust_mem(tls->credentials, &ca, GNUTLS_X509_FMT_PEM);
    if (r <= 0)
        return err_set(err, EINVAL, "no certificate for clients to be checked against: %s",
                       r ? gnutls_strerror(r) : "the file holds none");
    return 0;
}

int tls_new(const struct tls_settings *settings, struct tls **ret, struct err *err)
{
    struct tls *tls = heap_alloc(sizeof(*tls));
    int r = gnutls_certificate_allocate_credentials(&tls->credentials);

    if (r < 0)
        r = err_set(err, ENOMEM, "GnuTLS: %s", gnutls_strerror(r));
    else
        r = load(tls, settings, err);
    if (r < 0) {
        tls_free(tls);
        return r;
    }
    tls->client_auth = settings->client_auth;
    tls->allowed_sans = settings->allowed_sans;
    tls->n_allowed_sans = settings->n_allowed_sans;
    *ret = tls;
    return 0;
}

struct tls *tls_free(struct tls *tls)
{
    if (tls) {
        if (tls->priority)
            gnutls_priority_deinit(tls->priority);
        if (tls->credentials)
            gnutls_certificate_free_credentials(tls->credentials);
        free(tls);
    }
    return NULL;
}

void tls_prepare(const struct tls *tls, gnutls_session_t session)
{
    static const gnutls_certificate_request_t requests[] = {
        [TLS_CLIENT_NONE] = GNUTLS_CERT_IGNORE,
        [TLS_CLIENT_REQUEST] = GNUTLS_CERT_REQUEST,
        [TLS_CLIENT_REQUIRE_ANY] = GNUTLS_CERT_REQUIRE,
        [TLS_CLIENT_VERIFY_IF_GIVEN] = GNUTLS_CERT_REQUEST,
        [TLS_CLIENT_REQUIRE_AND_VERIFY] = GNUTLS_CERT_REQUIRE,
    };

    gnutls_priority_set(session, tls->priority);
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, tls->credentials);
    gnutls_certificate_server_set_request(session, requests[tls->client_auth]);
}

static int verify_chain(gnutls_session_t session, struct err *err)
{
    gnutls_typed_vdata_st purpose = { .type = GNUTLS_DT_KEY_PURPOSE_OID,
                                      .data =
                                          (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT };
    gnutls_datum_t words = { 0 };
    unsigned status = 0;
    struct str text;
    int r = gnutls_certificate_verify_peers(session, &purpose, 1, &status);

    if (r < 0)
        return err_set(err, EACCES, "can't be checked: %s", gnutls_strerror(r));
    if (status == 0)
        return 0;
    gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &words, 0);
    text = words.data ? str_trim(str_of((char *)words.data)) : STR("not trusted");
    err_set(err, EACCES, "%.*s", STR_ARG(text));
    gnutls_free(words.data);
    return -EACCES;
}

/* The n-th name as text, as Go prints it. False past the last; an empty one for other kinds. */
static bool san_text(gnutls_x509_crt_t cert, unsigned n, char text[LONGEST_SAN], size_t *ret_length)
{
    unsigned char ip[LONGEST_SAN];
    size_t size = LONGEST_SAN;
    unsigned kind;
    int r = gnutls_x509_crt_get_subject_alt_name2(cert, n, text, &size, &kind, NULL);

    *ret_length = 0;
    if (r == GNUTLS_E_SHORT_MEMORY_BUFFER)
        return true;
    if (r < 0)
        return false;
    if (kind == GNUTLS_SAN_IPADDRESS && (size == 4 || size == 16)) {
        memcpy(ip, text, size);
        inet_ntop(size == 4 ? AF_INET : AF_INET6, ip, text, LONGEST_SAN);
        *ret_length = strlen(text);
    } else if (kind == GNUTLS_SAN_DNSNAME || kind == GNUTLS_SAN_RFC822NAME ||
               kind == GNUTLS_SAN_URI) {
        *ret_length = size;
    }
    return true;
}

static bool is_allowed(const struct tls *tls, gnutls_x509_crt_t cert)
{
    char text[LONGEST_SAN];
    size_t length;

    for (unsigned n = 0; san_text(cert, n, text, &length); n++)
        for (size_t i = 0; i < tls->n_allowed_sans; i++)
            if (length && str_eq((struct str){ text, length }, tls->allowed_sans[i]))
                return true;
    return false;
}

static int verify_names(const struct tls *tls, gnutls_session_t session, struct err *err)
{
    unsigned n = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &n);
    gnutls_x509_crt_t cert;
    bool ok;

    if (gnutls_x509_crt_init(&cert) < 0)
        return err_set(err, EACCES, "out of memory");
    ok = gnutls_x509_crt_import(cert, &chain[0], GNUTLS_X509_FMT_DER) >= 0 && is_allowed(tls, cert);
    gnutls_x509_crt_deinit(cert);
    return ok ? 0 : err_set(err, EACCES, "none of its names is in client_allowed_sans");
}

static bool has_certificate(gnutls_session_t session)
{
    unsigned n = 0;

    return gnutls_certificate_get_peers(session, &n) && n > 0;
}

static bool verifies(const struct tls *tls)
{
    return tls->client_auth == TLS_CLIENT_VERIFY_IF_GIVEN ||
           tls->client_auth == TLS_CLIENT_REQUIRE_AND_VERIFY;
}

bool tls_is_verified(const struct tls *tls, gnutls_session_t session)
{
    return verifies(tls) && has_certificate(session);
}

int tls_verify(const struct tls *tls, gnutls_session_t session, struct err *err)
{
    bool is_required = tls->client_auth == TLS_CLIENT_REQUIRE_ANY ||
                       tls->client_auth == TLS_CLIENT_REQUIRE_AND_VERIFY;
    int r;

    if (!has_certificate(session))
        return is_required ? err_set(err, EACCES, "there is none") : 0;
    r = verifies(tls) ? verify_chain(session, err) : 0;
    if (r == 0 && tls->allowed_sans)
        r = verify_names(tls, session, err);
    return r;
}
