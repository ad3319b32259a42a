/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Computes the claim with GnuTLS, which libmicrohttpd needs anyway. */
#include "model/ingest_claim.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>

enum { SHA256_BYTES = 32 };

int ingest_claim(struct str body, char to[INGEST_CLAIM_SIZE], struct err *err)
{
    unsigned char digest[SHA256_BYTES];
    int code = gnutls_hash_fast(GNUTLS_DIG_SHA256, body.p, body.n, digest);
    int n;

    if (code < 0)
        return err_set(err, EIO, "GnuTLS cannot compute a SHA-256: %s", gnutls_strerror(code));
    n = snprintf(to, INGEST_CLAIM_SIZE, "sonde ingest ");
    for (size_t i = 0; i < SHA256_BYTES; i++)
        n += snprintf(to + n, INGEST_CLAIM_SIZE - (size_t)n, "%02x", digest[i]);
    return 0;
}
