/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `sonde report` can be told, and what follows from it. */
#ifndef SONDE_CMD_REPORT_OPTIONS_H
#define SONDE_CMD_REPORT_OPTIONS_H

#include "cmd/prometheus_options.h"
#include "cmd/source_options.h"
#include "report/job_charts.h"

enum report_form {
    REPORT_TEXT,
    REPORT_JSON,
    REPORT_HTML,
    REPORT_PDF,
    REPORT_CHART,
    REPORT_PETRICORE,
    REPORT_MAIL,
    REPORT_FORMS,
};

struct report_settings {
    bool is_json, is_html, is_png, is_svg, is_mail;
    struct str pdf, chart, petricore, colour;
    bool is_array;
    int64_t timeout_ns;
    struct str store, series_path, cluster, checks_file, url;
    struct source_options source; /* of which sacct needs a few */
    struct prometheus_options prometheus;
    struct option_list matchers;
    bool drains, follows;
    struct {
        struct str to, url, from, domain, user, password_file, ca_file, spool;
        bool has_tls;
        uint64_t per_hour;
    } mail;
    struct str log_level;

    /* made from the above */
    bool has_store; /* somebody named one */
    enum report_form form;
    enum job_chart which_chart;
    struct series_matcher *matcher; /* as many as matchers has */
};

/* An option_outcome, or -EINVAL with a sentence. The names of jobs are the rest. */
int report_options_parse(int argc, char **argv, struct arena *arena, struct report_settings *ret,
                         char ***ret_names, struct err *err);

/* What --report.url says of a job, for people to follow. */
void report_url_put(struct buf *to, struct str url, struct str cluster, uint32_t job_id);

#endif
