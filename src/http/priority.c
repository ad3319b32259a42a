/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Translates Go's names of TLS versions and ciphers to GnuTLS priority strings. */
#include "http/priority.h"

#include <stdint.h>

const struct priority_name priority_versions[] = {
    { "TLS10", { "VERS-TLS1.0" } },
    { "TLS11", { "VERS-TLS1.1" } },
    { "TLS12", { "VERS-TLS1.2" } },
    { "TLS13", { "VERS-TLS1.3" } },
    { 0 },
};

/* GnuTLS takes key exchange, cipher and MAC apart, and does not tell TLS 1.2 from 1.3: where the
 * names in a list differ in more than one of the three, their other combinations are accepted
 * too, and a list of ciphers is one for TLS 1.3 as well, other than in Go. */
const struct priority_name priority_ciphers[] = {
    { "TLS_AES_128_GCM_SHA256", { NULL, "AES-128-GCM", "AEAD" } },
    { "TLS_AES_256_GCM_SHA384", { NULL, "AES-256-GCM", "AEAD" } },
    { "TLS_CHACHA20_POLY1305_SHA256", { NULL, "CHACHA20-POLY1305", "AEAD" } },
    { "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", { "ECDHE-ECDSA", "AES-128-GCM", "AEAD" } },
    { "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", { "ECDHE-RSA", "AES-128-GCM", "AEAD" } },
    { "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", { "ECDHE-ECDSA", "AES-256-GCM", "AEAD" } },
    { "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", { "ECDHE-RSA", "AES-256-GCM", "AEAD" } },
    { "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
      { "ECDHE-ECDSA", "CHACHA20-POLY1305", "AEAD" } },
    { "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", { "ECDHE-RSA", "CHACHA20-POLY1305", "AEAD" } },
    { "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", { "ECDHE-ECDSA", "AES-128-CBC", "SHA1" } },
    { "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", { "ECDHE-RSA", "AES-128-CBC", "SHA1" } },
    { "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", { "ECDHE-ECDSA", "AES-256-CBC", "SHA1" } },
    { "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", { "ECDHE-RSA", "AES-256-CBC", "SHA1" } },
    { "TLS_RSA_WITH_AES_128_GCM_SHA256", { "RSA", "AES-128-GCM", "AEAD" } },
    { "TLS_RSA_WITH_AES_256_GCM_SHA384", { "RSA", "AES-256-GCM", "AEAD" } },
    { "TLS_RSA_WITH_AES_128_CBC_SHA", { "RSA", "AES-128-CBC", "SHA1" } },
    { "TLS_RSA_WITH_AES_256_CBC_SHA", { "RSA", "AES-256-CBC", "SHA1" } },
    { 0 },
};

const struct priority_name priority_curves[] = {
    { "CurveP256", { "GROUP-SECP256R1" } },
    { "CurveP384", { "GROUP-SECP384R1" } },
    { "CurveP521", { "GROUP-SECP521R1" } },
    { "X25519", { "GROUP-X25519" } },
    { 0 },
};

const struct priority_name *priority_find(const struct priority_name *names, struct str name,
                                          const char **ret_nearest)
{
    size_t least = SIZE_MAX;

    for (; names->name; names++) {
        struct str known = str_of(names->name);
        size_t distance = str_distance(known, name);

        if (str_eq(known, name))
            return names;
        if (name.n && str_find_str(known, name) < known.n)
            distance = 0; /* "P256" means CurveP256 */
        if (distance < least) {
            least = distance;
            *ret_nearest = names->name;
        }
    }
    return NULL;
}

static void write_list(struct buf *out, const struct priority_name *names,
                       const struct yaml_node *list)
{
    const char *nearest;

    for (const struct yaml_node *item = list->child; item; item = item->next) {
        const struct priority_name *row = priority_find(names, item->text, &nearest);

        for (size_t i = 0; row && i < 3; i++)
            if (row->words[i])
                buf_printf(out, ":+%s", row->words[i]);
    }
}

void priority_write(struct buf *out, const struct priority_settings *settings)
{
    buf_text(out, "NORMAL:-VERS-ALL");
    for (size_t i = settings->max_version + 1; i-- > settings->min_version;)
        buf_printf(out, ":+%s", priority_versions[i].words[0]);
    if (settings->ciphers && settings->ciphers->child) {
        buf_text(out, ":-KX-ALL:-CIPHER-ALL:-MAC-ALL");
        write_list(out, priority_ciphers, settings->ciphers);
    } else {
        buf_text(out, ":-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA"); /* as Go: forward secrecy only */
    }
    if (settings->curves && settings->curves->child) {
        buf_text(out, ":-GROUP-ALL");
        write_list(out, priority_curves, settings->curves);
    }
    if (settings->prefers_server)
        buf_text(out, ":%SERVER_PRECEDENCE");
}
