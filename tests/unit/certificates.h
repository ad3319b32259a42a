/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Certificates for tests, made when they are needed. */
#ifndef SONDE_TESTS_CERTIFICATES_H
#define SONDE_TESTS_CERTIFICATES_H

#include <gnutls/x509.h>
#include <stdbool.h>

struct certificate {
    gnutls_x509_crt_t cert;
    gnutls_x509_privkey_t key;
    char cert_pem[4096], key_pem[4096];
};

struct certificate_wish {
    const char *name;                  /* CN, and a DNS name beside it */
    const struct certificate *signer;  /* NULL: itself */
    bool is_authority, is_for_clients; /* else for servers */
    const char *email, *uri;           /* more names, or NULL */
    const unsigned char *ip;           /* 4 bytes, or NULL */
    bool is_expired;
};

void certificate_make(struct certificate *ret, const struct certificate_wish *wish);
void certificate_free(struct certificate *certificate);

/* Credentials of a client that trusts nobody in particular; `own` may be NULL. */
gnutls_certificate_credentials_t certificate_credentials(const struct certificate *own);

#endif
