/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plugin's lines of acct_gather.conf: what they are called, what they may say, and what holds
 * where they say nothing. Plain text in, plain values out; docs/plugin.md describes them. */
#ifndef SONDE_PLUGIN_CONF_H
#define SONDE_PLUGIN_CONF_H

#include "plugin/step.h"

#define CONF_ALL(KEY)                                                                              \
    KEY(CONF_HOST, "ProfilePrometheusHost")                                                        \
    KEY(CONF_DEFAULT, "ProfilePrometheusDefault")                                                  \
    KEY(CONF_FREQUENCY, "ProfilePrometheusFrequency")                                              \
    KEY(CONF_TIMEOUT, "ProfilePrometheusTimeout")                                                  \
    KEY(CONF_AGENT, "ProfilePrometheusAgent")                                                      \
    KEY(CONF_LABELS, "ProfilePrometheusExtraLabels")                                               \
    KEY(CONF_NAMES, "ProfilePrometheusNames")

#define CONF_NUMBER(key, name) key,
enum conf_key { CONF_ALL(CONF_NUMBER) CONF_KEYS };
#undef CONF_NUMBER

extern const char *const conf_names[CONF_KEYS];

struct profile_conf {
    struct profile_settings settings;
    unsigned kinds; /* 1 << enum profile_kind: of a job that has not said --profile */
};

/* A value is NULL where the file does not have the key. False: with a sentence in `why` that names
 * the key, and never a password; *ret is then of no use. */
bool conf_read(const char *const values[CONF_KEYS], struct profile_conf *ret, char *why,
               size_t room);

/* The value that is in force, as the key would say it, and the password of a URL as "***". False:
 * it is not set. */
bool conf_show(const struct profile_conf *conf, enum conf_key key, char *to, size_t room);

#endif
