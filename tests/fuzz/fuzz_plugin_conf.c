/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The profile plugin's lines of acct_gather.conf: a line is a value of the key whose number its
 * first byte is. What is taken can be shown, is taken again as it is shown, and what is said of it
 * never has the password of a URL. */
#include "plugin/conf.h"

#include "base/arena.h"

#include "fuzz.h"

#include <stdio.h>

enum { MOST_BYTES = 4096 };

/* What stands between the first colon after "//" and the last "@" before the path. */
static struct str password_of(struct str url)
{
    size_t scheme = str_find_str(url, STR("://"));
    struct str authority = scheme < url.n ? str_skip(url, scheme + 3) : url;
    size_t at = 0, colon;

    authority = str_head(authority, str_find(authority, '/'));
    for (size_t i = 0; i < authority.n; i++)
        if (authority.p[i] == '@')
            at = i;
    authority = str_head(authority, at);
    colon = str_find(authority, ':');
    return str_skip(authority, colon < authority.n ? colon + 1 : authority.n);
}

/* Only of one that stands nowhere else in the URL. */
static void check_secrecy(const char *url, const char *shown)
{
    struct str whole = str_of(url ? url : ""), password = password_of(whole);
    size_t at = str_find_str(whole, password);

    if (password.n < 8 || password.p != whole.p + at ||
        str_find_str(str_skip(whole, at + 1), password) < whole.n - at - 1)
        return;
    FUZZ_CHECK(str_find_str(str_of(shown), password) == strlen(shown), "%s", shown);
}

static void check_shown_again(const struct profile_conf *conf)
{
    char texts[CONF_KEYS][600], why[300];
    const char *values[CONF_KEYS] = { NULL };
    struct profile_conf again;

    for (int key = 0; key < CONF_KEYS; key++) {
        bool is_set = conf_show(conf, key, texts[key], sizeof(texts[key]));

        if (key == CONF_HOST && is_set) {
            check_secrecy(conf->settings.url, texts[key]);
            values[key] = conf->settings.url;
        } else if (is_set) {
            values[key] = texts[key];
        }
    }
    FUZZ_CHECK(conf_read(values, &again, why, sizeof(why)), "%s", why);
    FUZZ_CHECK(strcmp(again.settings.url, conf->settings.url) == 0);
    FUZZ_CHECK(strcmp(again.settings.socket, conf->settings.socket) == 0);
    FUZZ_CHECK(again.settings.labels == conf->settings.labels && again.kinds == conf->kinds);
    FUZZ_CHECK(again.settings.names == conf->settings.names);
    FUZZ_CHECK(again.settings.frequency_seconds == conf->settings.frequency_seconds);
    FUZZ_CHECK(again.settings.timeout_ms == conf->settings.timeout_ms);
}

static void check_good(const struct profile_conf *conf)
{
    const struct profile_settings *settings = &conf->settings;

    FUZZ_CHECK(settings->url[0] || settings->socket[0]);
    FUZZ_CHECK(strnlen(settings->url, sizeof(settings->url)) < sizeof(settings->url));
    FUZZ_CHECK(strnlen(settings->socket, sizeof(settings->socket)) < sizeof(settings->socket));
    FUZZ_CHECK(settings->frequency_seconds >= 1 && settings->timeout_ms >= 1000);
    for (const char *c = settings->url; *c; c++)
        FUZZ_CHECK((unsigned char)*c > ' ' && *c != '\x7f');
    check_shown_again(conf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = { (const char *)data, size };
    const char *values[CONF_KEYS] = { NULL };
    struct arena arena = { 0 };
    struct profile_conf conf;
    char why[300] = "";

    if (size == 0 || size > MOST_BYTES)
        return 0;
    while (rest.p) {
        struct str line = str_cut(&rest, '\n');

        line = str_head(line, str_find(line, '\0'));
        if (line.n)
            values[(uint8_t)line.p[0] % CONF_KEYS] = arena_str(&arena, str_skip(line, 1)).p;
    }
    if (conf_read(values, &conf, why, sizeof(why))) {
        check_good(&conf);
    } else {
        FUZZ_CHECK(why[0] && strnlen(why, sizeof(why)) < sizeof(why));
        FUZZ_CHECK(!strchr(why, '\n') && !strchr(why, '\x1b'));
        check_secrecy(values[CONF_HOST], why);
    }
    arena_clear(&arena);
    return 0;
}
