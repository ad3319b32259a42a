/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes certificates and keys for tests of TLS. */
#include "test.h"

#include "certificates.h"

static void make_key(struct certificate *c)
{
    size_t size = sizeof(c->key_pem) - 1;

    assert_int_equal(gnutls_x509_privkey_init(&c->key), 0);
    assert_int_equal(gnutls_x509_privkey_generate(c->key, GNUTLS_PK_ECDSA,
                                                  GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
                                                  0),
                     0);
    assert_int_equal(gnutls_x509_privkey_export(c->key, GNUTLS_X509_FMT_PEM, c->key_pem, &size), 0);
    c->key_pem[size] = '\0';
}

static void add_names(gnutls_x509_crt_t cert, const struct certificate_wish *wish)
{
    const unsigned append = GNUTLS_FSAN_APPEND;

    gnutls_x509_crt_set_dn_by_oid(cert, GNUTLS_OID_X520_COMMON_NAME, 0, wish->name,
                                  (unsigned)strlen(wish->name));
    gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_DNSNAME, wish->name,
                                         (unsigned)strlen(wish->name), append);
    if (wish->email)
        gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_RFC822NAME, wish->email,
                                             (unsigned)strlen(wish->email), append);
    if (wish->uri)
        gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_URI, wish->uri,
                                             (unsigned)strlen(wish->uri), append);
    if (wish->ip)
        gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_IPADDRESS, wish->ip, 4, append);
}

void certificate_make(struct certificate *ret, const struct certificate_wish *wish)
{
    const struct certificate *signer = wish->signer ? wish->signer : ret;
    static unsigned char serial = 1;
    time_t now = time(NULL);
    size_t size = sizeof(ret->cert_pem) - 1;

    make_key(ret);
    assert_int_equal(gnutls_x509_crt_init(&ret->cert), 0);
    gnutls_x509_crt_set_version(ret->cert, 3);
    gnutls_x509_crt_set_serial(ret->cert, &serial, 1);
    serial++;
    gnutls_x509_crt_set_activation_time(ret->cert, now - 7200);
    gnutls_x509_crt_set_expiration_time(ret->cert, wish->is_expired ? now - 3600 : now + 86400);
    gnutls_x509_crt_set_key(ret->cert, ret->key);
    add_names(ret->cert, wish);
    gnutls_x509_crt_set_ca_status(ret->cert, wish->is_authority);
    gnutls_x509_crt_set_key_usage(ret->cert, wish->is_authority ? GNUTLS_KEY_KEY_CERT_SIGN
                                                                : GNUTLS_KEY_DIGITAL_SIGNATURE);
    if (!wish->is_authority)
        gnutls_x509_crt_set_key_purpose_oid(
            ret->cert, wish->is_for_clients ? GNUTLS_KP_TLS_WWW_CLIENT : GNUTLS_KP_TLS_WWW_SERVER,
            0);
    assert_int_equal(
        gnutls_x509_crt_sign2(ret->cert, signer->cert, signer->key, GNUTLS_DIG_SHA256, 0), 0);
    assert_int_equal(gnutls_x509_crt_export(ret->cert, GNUTLS_X509_FMT_PEM, ret->cert_pem, &size),
                     0);
    ret->cert_pem[size] = '\0';
}

void certificate_free(struct certificate *certificate)
{
    gnutls_x509_crt_deinit(certificate->cert);
    gnutls_x509_privkey_deinit(certificate->key);
}

gnutls_certificate_credentials_t certificate_credentials(const struct certificate *own)
{
    gnutls_certificate_credentials_t credentials;

    assert_int_equal(gnutls_certificate_allocate_credentials(&credentials), 0);
    if (own) {
        gnutls_datum_t cert = { (unsigned char *)(uintptr_t)own->cert_pem,
                                (unsigned)strlen(own->cert_pem) };
        gnutls_datum_t key = { (unsigned char *)(uintptr_t)own->key_pem,
                               (unsigned)strlen(own->key_pem) };

        assert_true(gnutls_certificate_set_x509_key_mem(credentials, &cert, &key,
                                                        GNUTLS_X509_FMT_PEM) >= 0);
    }
    return credentials;
}
