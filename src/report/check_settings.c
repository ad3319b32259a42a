/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a site has set of the checks: docs/report.md has the file. */
#include "base/clock.h"
#include "base/num.h"
#include "base/quote.h"
#include "base/yaml.h"
#include "report/checks.h"

#include <math.h>
#include <stdio.h>

enum {
    USUAL_LEAST_SECONDS = 300, /* as jobstats: ten samples of 30 s */
    MOST_LEAST_SECONDS = 30 * 86400,
    LONGEST_NAME = 100,
    LONGEST_LINK = 1000,
};
static const double most_threshold = 1e9;

void check_settings_default(struct arena *arena, struct check_settings *ret)
{
    ret->check = ARENA_ARRAY(arena, struct check_setting, n_checks);
    ret->least_seconds = USUAL_LEAST_SECONDS;
    for (size_t i = 0; i < n_checks; i++)
        ret->check[i] = (struct check_setting){ .threshold = checks[i].threshold,
                                                .severity = checks[i].severity };
}

struct reader {
    const char *path;
    struct check_settings settings;
    struct err *err;
};

static int read_threshold(struct reader *reader, const struct yaml_node *node,
                          const struct check *check, struct check_setting *setting)
{
    bool is_percent = check->unit && strcmp(check->unit, "%") == 0;
    double most = is_percent ? 100 : most_threshold, threshold;

    if (isnan(check->threshold))
        return yaml_refuse(node, reader->path, reader->err, "%s has no threshold; leave it out",
                           check->name);
    if (!num_get_double(node->text, &threshold) || !(threshold >= 0 && threshold <= most))
        return yaml_refuse(node, reader->path, reader->err,
                           "the threshold of %s is a number from 0 to %.0f (%s): \"%s\" "
                           "is not",
                           check->name, most, check->unit, quote(node->text).text);
    setting->threshold = threshold;
    return 0;
}

static int read_severity(struct reader *reader, const struct yaml_node *node,
                         const struct check *check, struct check_setting *setting)
{
    (void)check;
    for (enum severity severity = 0; severity < SEVERITIES; severity++) {
        if (str_eq(node->text, str_of(severity_words[severity]))) {
            setting->severity = severity;
            return 0;
        }
    }
    return yaml_refuse(node, reader->path, reader->err,
                       "severity is off, note, warning or critical: \"%s\" is not",
                       quote(node->text).text);
}

/* It is made a link for people to follow: nothing that a browser would run. */
static bool is_link(struct str text)
{
    if (text.n > LONGEST_LINK ||
        !(str_starts(text, STR("https://")) || str_starts(text, STR("http://"))))
        return false;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] <= ' ' || text.p[i] > '~')
            return false;
    return true;
}

static int read_link(struct reader *reader, const struct yaml_node *node, const struct check *check,
                     struct check_setting *setting)
{
    (void)check;
    if (!is_link(node->text))
        return yaml_refuse(
            node, reader->path, reader->err,
            "link is a URL in ASCII that begins with https:// or http://, of at most %d "
            "bytes: \"%s\" is not",
            LONGEST_LINK, quote(node->text).text);
    setting->link = node->text;
    return 0;
}

static const struct key {
    const char *name;
    int (*read)(struct reader *reader, const struct yaml_node *node, const struct check *check,
                struct check_setting *setting);
} keys[] = {
    { "threshold", read_threshold },
    { "severity", read_severity },
    { "link", read_link },
};

static int read_key(struct reader *reader, const struct yaml_node *node, const struct check *check,
                    struct check_setting *setting)
{
    for (size_t i = 0; i < COUNT(keys); i++) {
        if (!str_eq(node->key, str_of(keys[i].name)))
            continue;
        if (node->kind != YAML_SCALAR || yaml_is_null(node))
            return yaml_refuse(node, reader->path, reader->err,
                               "%s is one value; give it one, or leave it out", keys[i].name);
        return keys[i].read(reader, node, check, setting);
    }
    return yaml_refuse(node, reader->path, reader->err,
                       "unknown key %s; a check has threshold, severity and link",
                       quote(node->key).text);
}

static size_t nearest_check(struct str name)
{
    size_t nearest = 0;

    for (size_t i = 1; i < n_checks; i++)
        if (str_distance(name, str_of(checks[i].name)) <
            str_distance(name, str_of(checks[nearest].name)))
            nearest = i;
    return nearest;
}

static int read_check(struct reader *reader, const struct yaml_node *node)
{
    size_t nearest;

    if (node->key.n > LONGEST_NAME) /* comparing takes as long as it is */
        return yaml_refuse(node, reader->path, reader->err, "there is no check %s",
                           quote(node->key).text);
    nearest = nearest_check(node->key);
    if (!str_eq(node->key, str_of(checks[nearest].name)))
        return yaml_refuse(node, reader->path, reader->err,
                           "there is no check %s; did you mean %s?", quote(node->key).text,
                           checks[nearest].name);
    if (node->kind != YAML_MAPPING)
        return yaml_refuse(node, reader->path, reader->err,
                           "%s is a mapping like {threshold: 50, severity: note}",
                           checks[nearest].name);
    for (const struct yaml_node *child = node->child; child; child = child->next)
        if (read_key(reader, child, &checks[nearest], &reader->settings.check[nearest]) < 0)
            return -EINVAL;
    return 0;
}

static int read_checks(struct reader *reader, const struct yaml_node *node)
{
    if (node->kind != YAML_MAPPING && !yaml_is_null(node))
        return yaml_refuse(node, reader->path, reader->err, "checks is a mapping of their names");
    for (const struct yaml_node *child = node->child; child; child = child->next)
        if (read_check(reader, child) < 0)
            return -EINVAL;
    return 0;
}

static int read_least_runtime(struct reader *reader, const struct yaml_node *node)
{
    int64_t ns;

    if (node->kind != YAML_SCALAR || !num_get_duration_ns(node->text, &ns) ||
        ns > MOST_LEAST_SECONDS * NS_PER_SEC)
        return yaml_refuse(node, reader->path, reader->err,
                           "least_runtime is a time of at most 30d, like 5m: \"%s\" is not",
                           quote(node->text).text);
    reader->settings.least_seconds = ns / NS_PER_SEC;
    return 0;
}

static int read_root(struct reader *reader, const struct yaml_node *root)
{
    if (root->kind != YAML_MAPPING)
        return yaml_refuse(root, reader->path, reader->err,
                           "the file is a mapping with least_runtime and checks");
    for (const struct yaml_node *node = root->child; node; node = node->next) {
        int code;

        if (str_eq(node->key, STR("least_runtime")))
            code = read_least_runtime(reader, node);
        else if (str_eq(node->key, STR("checks")))
            code = read_checks(reader, node);
        else
            code = yaml_refuse(node, reader->path, reader->err,
                               "unknown key %s; there are least_runtime and checks",
                               quote(node->key).text);
        if (code < 0)
            return code;
    }
    return 0;
}

int check_settings_read(const char *path, struct arena *arena, struct check_settings *ret,
                        struct err *err)
{
    struct reader reader = { .path = path, .err = err };
    struct yaml_node *root;
    int code = yaml_read_file(arena, path, &root, err);

    if (code < 0) {
        if (err)
            err->code = EINVAL;
        return -EINVAL;
    }
    check_settings_default(arena, &reader.settings);
    code = read_root(&reader, root);
    if (code == 0)
        *ret = reader.settings;
    return code;
}
