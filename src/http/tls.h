/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The TLS side of a connection (GnuTLS): our certificate, what is accepted, who may connect.
 * Made whole or not at all, then immutable, so that a new one can take its place while sessions
 * of the old one go on. */
#ifndef SONDE_HTTP_TLS_H
#define SONDE_HTTP_TLS_H

#include "base/err.h"
#include "base/str.h"

#include <gnutls/gnutls.h>

/* As Go's tls.ClientAuthType, which exporter-toolkit's configuration names. */
enum tls_client_auth {
    TLS_CLIENT_NONE,
    TLS_CLIENT_REQUEST,
    TLS_CLIENT_REQUIRE_ANY,
    TLS_CLIENT_VERIFY_IF_GIVEN,
    TLS_CLIENT_REQUIRE_AND_VERIFY,
};

struct tls_settings {
    struct str cert, key, client_ca; /* PEM texts; client_ca may be empty */
    enum tls_client_auth client_auth;
    const struct str *allowed_sans; /* NULL: any; must live as long as the struct tls */
    size_t n_allowed_sans;
    const char *priority; /* GnuTLS's words for versions, ciphers and curves */
};

struct tls;

int tls_new(const struct tls_settings *settings, struct tls **ret, struct err *err);
struct tls *tls_free(struct tls *tls);

/* A new session, before its handshake. */
void tls_prepare(const struct tls *tls, gnutls_session_t session);

/* The client's certificate, during the handshake: 0, or -EACCES and why it is refused. */
int tls_verify(const struct tls *tls, gnutls_session_t session, struct err *err);

/* After the handshake: whether the client has a certificate that an authority of ours signed. */
bool tls_is_verified(const struct tls *tls, gnutls_session_t session);

#endif
