/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What may stand in acct_gather.conf, and what is said of what may not. */
#include "test.h"

#include "plugin/conf.h"

#include <stdio.h>

struct outcome {
    bool is_good;
    struct profile_conf conf;
    char why[300];
};

/* Pairs of key and value, ended by CONF_KEYS. */
static struct outcome read_conf(int key, ...)
{
    const char *values[CONF_KEYS] = { NULL };
    struct outcome outcome = { 0 };
    va_list pairs;

    va_start(pairs, key);
    for (; key != CONF_KEYS; key = va_arg(pairs, int))
        values[key] = va_arg(pairs, const char *);
    va_end(pairs);
    outcome.is_good = conf_read(values, &outcome.conf, outcome.why, sizeof(outcome.why));
    return outcome;
}

static const char *shown(const struct outcome *outcome, enum conf_key key)
{
    static char text[600];

    return conf_show(&outcome->conf, key, text, sizeof(text)) ? text : NULL;
}

TEST(the_two_lines_of_the_original_are_enough)
{
    struct outcome got = read_conf(CONF_HOST, "http://localhost:9091", CONF_KEYS);

    assert_true(got.is_good);
    assert_string_equal(got.conf.settings.url, "http://localhost:9091");
    assert_string_equal(got.conf.settings.socket, "");
    assert_int_equal(got.conf.kinds, (1 << PROFILE_KINDS) - 1);
    assert_int_equal(got.conf.settings.frequency_seconds, 10);
    assert_int_equal(got.conf.settings.timeout_ms, 2000);
    assert_int_equal(got.conf.settings.names, PROFILE_NAMES_BOTH);
    assert_int_equal(got.conf.settings.labels, 0);
}

TEST(neither_a_host_nor_an_agent_is_an_error)
{
    struct outcome got = read_conf(CONF_DEFAULT, "all", CONF_KEYS);

    assert_false(got.is_good);
    assert_string_equal(
        got.why, "acct_gather.conf has neither ProfilePrometheusAgent nor ProfilePrometheusHost");
}

TEST(a_host_without_a_scheme_is_http)
{
    static const char *const pairs[][2] = {
        { "localhost:9091", "http://localhost:9091" },
        { "gateway", "http://gateway" },
        { "user:secret@gateway:9091/", "http://user:secret@gateway:9091" },
        { "https://gateway/prefix//", "https://gateway/prefix" },
        { "HTTPS://gateway", "HTTPS://gateway" },
        { "[::1]:9091", "http://[::1]:9091" },
        { "http://u:p@ss@gateway:1", "http://u:p@ss@gateway:1" },
    };

    for (size_t i = 0; i < COUNT(pairs); i++) {
        struct outcome got = read_conf(CONF_HOST, pairs[i][0], CONF_KEYS);

        assert_true(got.is_good);
        assert_string_equal(got.conf.settings.url, pairs[i][1]);
    }
}

TEST(a_bad_url_is_refused_without_repeating_it)
{
    static const char *const bad[] = {
        "",
        "http://",
        "http:///path",
        "http://:9091",
        "ftp://u:secret@gateway",
        "http://u:secret@",
        "http://u:secret@gateway?x",
        "http://u:sec ret@gateway",
        "http://u:secret\n@gateway",
        "http://u:secret/more@gateway",
        "http://user:secret",
        "http://u:secret@gateway:99999",
        "http://u:secret@gateway:",
        "http://u:secret@[::1",
        "http://u:secret@[::1]9091",
        "://u:secret@gateway",
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct outcome got = read_conf(CONF_HOST, bad[i], CONF_KEYS);

        if (got.is_good)
            fail_msg("\"%s\" was taken", bad[i]);
        assert_contains(got.why, "ProfilePrometheusHost");
        assert_null(strstr(got.why, "sec"));
    }
}

TEST(a_url_that_is_too_long_is_refused_and_not_cut)
{
    char url[600];
    struct outcome got;

    memset(url, 'a', sizeof(url));
    url[sizeof(url) - 1] = '\0';
    got = read_conf(CONF_HOST, url, CONF_KEYS);
    assert_false(got.is_good);
    url[504] = '\0';
    got = read_conf(CONF_HOST, url, CONF_KEYS);
    assert_true(got.is_good);
    assert_int_equal(strlen(got.conf.settings.url), 511);
    url[504] = 'a', url[505] = '\0';
    assert_false(read_conf(CONF_HOST, url, CONF_KEYS).is_good);
}

TEST(a_password_is_never_shown)
{
    static const char *const pairs[][2] = {
        { "http://user:secret@gateway:9091", "http://user:***@gateway:9091" },
        { "http://user:se:c@ret@gateway", "http://user:***@gateway" },
        { "http://user@gateway", "http://user@gateway" },
        { "http://gateway:9091/a:b", "http://gateway:9091/a:b" },
    };

    for (size_t i = 0; i < COUNT(pairs); i++) {
        struct outcome got = read_conf(CONF_HOST, pairs[i][0], CONF_KEYS);

        assert_true(got.is_good);
        assert_string_equal(shown(&got, CONF_HOST), pairs[i][1]);
    }
}

TEST(kinds_are_a_list)
{
    static const struct {
        const char *value;
        unsigned kinds;
        const char *shown;
    } rows[] = {
        { "all", 15, "all" },
        { "None", 0, "none" },
        { "task", 1 << PROFILE_OF_TASK, "task" },
        { "Energy, FILESYSTEM", 1 << PROFILE_OF_ENERGY | 1 << PROFILE_OF_FILESYSTEM,
          "energy,filesystem" },
        { "lustre", 1 << PROFILE_OF_FILESYSTEM, "filesystem" },
        { "network,task,network", 1 << PROFILE_OF_TASK | 1 << PROFILE_OF_NETWORK, "task,network" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct outcome got = read_conf(CONF_HOST, "h", CONF_DEFAULT, rows[i].value, CONF_KEYS);

        assert_true(got.is_good);
        assert_int_equal(got.conf.kinds, rows[i].kinds);
        assert_string_equal(shown(&got, CONF_DEFAULT), rows[i].shown);
    }
}

TEST(unknown_words_are_named)
{
    static const struct {
        enum conf_key key;
        const char *value, *why;
    } rows[] = {
        { CONF_DEFAULT, "tasks", "\"tasks\"" },
        { CONF_DEFAULT, "", "\"\"" },
        { CONF_DEFAULT, "task,,energy", "\"\"" },
        { CONF_DEFAULT, "none,task", "none" },
        { CONF_LABELS, "user,qos", "\"qos\"" },
        { CONF_LABELS, "a\nb", "\"a\\nb\"" },
        { CONF_NAMES, "old", "\"old\"" },
        { CONF_FREQUENCY, "0", "\"0\"" },
        { CONF_FREQUENCY, "10s", "\"10s\"" },
        { CONF_FREQUENCY, "3601", "3600" },
        { CONF_FREQUENCY, "-1", "\"-1\"" },
        { CONF_FREQUENCY, "99999999999999999999999", "3600" },
        { CONF_TIMEOUT, "", "\"\"" },
        { CONF_TIMEOUT, "61", "60" },
        { CONF_AGENT, "run/sonde", "\"run/sonde\"" },
        { CONF_AGENT, "", "\"\"" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct outcome got = read_conf(CONF_HOST, "h", (int)rows[i].key, rows[i].value, CONF_KEYS);

        if (got.is_good)
            fail_msg("%s=\"%s\" was taken", conf_names[rows[i].key], rows[i].value);
        assert_contains(got.why, conf_names[rows[i].key]);
        assert_contains(got.why, rows[i].why);
        assert_null(strchr(got.why, '\n'));
    }
}

TEST(all_that_is_said_holds_and_is_shown)
{
    struct outcome got =
        read_conf(CONF_AGENT, "/run/sonde/profile.sock", CONF_FREQUENCY, " 30 ", CONF_TIMEOUT, "5",
                  CONF_LABELS, "cluster,User", CONF_NAMES, "NEW", CONF_KEYS);

    assert_true(got.is_good);
    assert_string_equal(got.conf.settings.socket, "/run/sonde/profile.sock");
    assert_int_equal(got.conf.settings.frequency_seconds, 30);
    assert_int_equal(got.conf.settings.timeout_ms, 5000);
    assert_int_equal(got.conf.settings.labels, PROFILE_LABEL_USER | PROFILE_LABEL_CLUSTER);
    assert_int_equal(got.conf.settings.names, PROFILE_NAMES_NEW);
    assert_null(shown(&got, CONF_HOST));
    assert_string_equal(shown(&got, CONF_AGENT), "/run/sonde/profile.sock");
    assert_string_equal(shown(&got, CONF_FREQUENCY), "30");
    assert_string_equal(shown(&got, CONF_TIMEOUT), "5");
    assert_string_equal(shown(&got, CONF_LABELS), "user,cluster");
    assert_string_equal(shown(&got, CONF_NAMES), "new");
}

TEST(a_socket_path_must_fit_its_address)
{
    char path[120];

    memset(path, 'a', sizeof(path));
    path[0] = '/';
    path[108] = '\0';
    assert_false(read_conf(CONF_AGENT, path, CONF_KEYS).is_good);
    path[107] = '\0';
    assert_true(read_conf(CONF_AGENT, path, CONF_KEYS).is_good);
}

TEST(a_sentence_fits_the_room_that_there_is)
{
    const char *values[CONF_KEYS] = { [CONF_DEFAULT] = "what is this" };
    struct profile_conf conf;
    char why[20];

    assert_false(conf_read(values, &conf, why, sizeof(why)));
    assert_int_equal(strlen(why), sizeof(why) - 1);
}
