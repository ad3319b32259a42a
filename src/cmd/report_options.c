/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options of `sonde report`, and the settings made from them. */
#include "cmd/report_options.h"

#include "base/quote.h"
#include "cmd/report_file.h"
#include "mail/spool.h"

#define SETTING(member) offsetof(struct report_settings, member)

enum { MAILS_PER_HOUR_MAX = 1000 };

static const int64_t most_timeout_ns = 3600 * NS_PER_SEC;

static const struct option first_rows[] = {
    { "json", OPTION_BOOL, SETTING(is_json), NULL, NULL, NULL, NULL, "Output",
      "Write JSON, an object in a line for each job: docs/report.md has its members." },
    { "html", OPTION_BOOL, SETTING(is_html), NULL, NULL, NULL, NULL, "Output",
      "Write a page of HTML with charts, that needs nothing else." },
    { "pdf", OPTION_STRING, SETTING(pdf), "FILE", NULL, NULL, NULL, "Output",
      "Write a PDF into this file; - is standard output, unless that is a terminal." },
    { "chart", OPTION_STRING, SETTING(chart), "NAME", NULL, NULL, NULL, "Output",
      "Write one chart: cpu, memory, read, written, gpu, gpu_memory, gpu_power, time or cores. "
      "Say --svg or --png as well." },
    { "svg", OPTION_BOOL, SETTING(is_svg), NULL, NULL, NULL, NULL, "Output", "The chart as SVG." },
    { "png", OPTION_BOOL, SETTING(is_png), NULL, NULL, NULL, NULL, "Output",
      "The chart as PNG, unless standard output is a terminal." },
    { "petricore", OPTION_CHOICE, SETTING(petricore), "SHAPE", NULL, NULL, "mail usage", "Output",
      "Write what petricore's web application would: its mail, or its JSON of what a job used." },
    { "mail", OPTION_BOOL, SETTING(is_mail), NULL, NULL, NULL, NULL, "Output",
      "Send the report to the job's user, or to --mail.to, as text, HTML and PDF." },
    { "color", OPTION_CHOICE, SETTING(colour), "WHEN", "auto", NULL, "auto always never", "Output",
      "Whether text has colours; auto: on a terminal, unless NO_COLOR is set." },
    { "array", OPTION_BOOL, SETTING(is_array), NULL, NULL, NULL, NULL, "Report",
      "Sum up all tasks of an array, or all components of a heterogeneous job." },
    { "checks.file", OPTION_STRING, SETTING(checks_file), "FILE", NULL, NULL, NULL, "Report",
      "What is judged and how: docs/report.md tells what can stand in it." },
    { "report.url", OPTION_STRING, SETTING(url), "URL", NULL, NULL, NULL, "Report",
      "Where more is to be seen of a job, to be named in its report: %c stands for its cluster, %j "
      "for its id." },
    { "timeout", OPTION_DURATION, SETTING(timeout_ns), "DURATION", "20s", NULL, NULL, "Report",
      "How long one report may take. What has not answered by then is not in it, and it says so." },
    { "cluster", OPTION_STRING, SETTING(cluster), "NAME", NULL, NULL, NULL, "Slurm",
      "The cluster that sacct tells of, which is also meant where a JOBID does not name one." },
};

static const struct option store_rows[] = {
    { "store", OPTION_STRING, SETTING(store), "URL", "sqlite:/var/lib/sonde/sonde.db",
      "SONDE_STORE", NULL, "Store",
      "Where the exporter keeps jobs, and what agents counted of them: sqlite:/path. Only read; "
      "without it, or where this is empty, there is what sacct tells." },
    { "series.path", OPTION_STRING, SETTING(series_path), "FILE", NULL, NULL, NULL, "Store",
      "Where sonde up keeps numbers over time, for charts and for what was used; asked where there "
      "is no --prometheus.url." },
};

static const struct option last_rows[] = {
    { "mail.to", OPTION_STRING, SETTING(mail.to), "ADDRESS", NULL, NULL, NULL, "Mail",
      "Whom --mail is for, if not the job's user." },
    { "mail.url", OPTION_STRING, SETTING(mail.url), "URL", "sendmail:/usr/sbin/sendmail", NULL,
      NULL, "Mail",
      "How mails are sent: smtp://HOST:587 (with STARTTLS), smtps://HOST, or "
      "sendmail:/PATH." },
    { "mail.tls", OPTION_BOOL, SETTING(mail.has_tls), NULL, "true", NULL, NULL, "Mail",
      "=false sends by smtp:// without encryption; a password is not sent then." },
    { "mail.from", OPTION_STRING, SETTING(mail.from), "ADDRESS", "sonde", NULL, NULL, "Mail",
      "Whom mails are from; without @ it is one of --mail.domain, or of this host." },
    { "mail.domain", OPTION_STRING, SETTING(mail.domain), "DOMAIN", NULL, NULL, NULL, "Mail",
      "What follows the @ of users; without it, their bare names are given to the server." },
    { "mail.user", OPTION_STRING, SETTING(mail.user), "NAME", NULL, NULL, NULL, "Mail",
      "The user to send as, where the server wants one." },
    { "mail.password-file", OPTION_STRING, SETTING(mail.password_file), "FILE", NULL, NULL, NULL,
      "Mail", "A file with that user's password. Read for each mail." },
    { "mail.ca-file", OPTION_STRING, SETTING(mail.ca_file), "FILE", NULL, NULL, NULL, "Mail",
      "Certificates to trust, if not the system's." },
    { "mail.spool", OPTION_STRING, SETTING(mail.spool), "DIRECTORY", MAIL_SPOOL, NULL, NULL, "Mail",
      "Where sonde-mail keeps what Slurm wants sent." },
    { "mail.per-hour", OPTION_UINT, SETTING(mail.per_hour), "NUMBER", "20", NULL, NULL, "Mail",
      "So many mails go to one address in an hour; what is more becomes summaries." },
    { "drain", OPTION_BOOL, SETTING(drains), NULL, NULL, NULL, NULL, "Mail",
      "Send what waits in --mail.spool, each with the report of its job, and exit." },
    { "follow", OPTION_BOOL, SETTING(follows), NULL, NULL, NULL, NULL, "Mail",
      "With --drain: go on until a signal ends it." },
    { "log.level", OPTION_CHOICE, SETTING(log_level), "LEVEL", "info", NULL,
      "debug info warn error", "Log", "What --drain tells on standard error." },
};

/* What sacct needs of what Slurm's commands need. */
static bool is_of_sacct(const struct option *row)
{
    static const char *const names[] = { "slurm.conf", "slurm.bin-path", "slurm.prefix",
                                         "slurm.max-answer" };

    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(row->name, names[i]) == 0)
            return true;
    return false;
}

enum {
    MOST_ROWS = COUNT(first_rows) + SOURCE_OPTIONS + COUNT(store_rows) + PROMETHEUS_OPTIONS +
                COUNT(last_rows) + 2
};

struct made_options {
    struct option rows[MOST_ROWS];
    bool is_given[MOST_ROWS];
    size_t n, store; /* how many, and which is --store */
};

static void add_rows(struct made_options *made, const struct option *rows, size_t n)
{
    memcpy(made->rows + made->n, rows, n * sizeof(*rows));
    made->n += n;
}

/* --timeout is for all questions together. */
static void make_options(struct made_options *made)
{
    const struct option matcher = prometheus_matcher_row(SETTING(matchers));
    struct option source[SOURCE_OPTIONS], prometheus[PROMETHEUS_OPTIONS];

    source_options_rows(SETTING(source), source);
    prometheus_options_rows(SETTING(prometheus), prometheus);
    add_rows(made, first_rows, COUNT(first_rows));
    for (size_t i = 0; i < SOURCE_OPTIONS; i++)
        if (is_of_sacct(&source[i]))
            add_rows(made, &source[i], 1);
    made->store = made->n;
    add_rows(made, store_rows, COUNT(store_rows));
    for (size_t i = 0; i < PROMETHEUS_OPTIONS; i++)
        if (strcmp(prometheus[i].name, "prometheus.timeout") != 0)
            add_rows(made, &prometheus[i], 1);
    add_rows(made, &matcher, 1);
    add_rows(made, last_rows, COUNT(last_rows));
}

static int choose_form(struct report_settings *settings, struct err *err)
{
    const struct {
        const char *flag;
        bool is_wanted;
    } forms[REPORT_FORMS] = {
        [REPORT_TEXT] = { "", false },
        [REPORT_JSON] = { "--json", settings->is_json },
        [REPORT_HTML] = { "--html", settings->is_html },
        [REPORT_PDF] = { "--pdf", settings->pdf.n > 0 },
        [REPORT_CHART] = { "--chart", settings->chart.n > 0 },
        [REPORT_PETRICORE] = { "--petricore", settings->petricore.n > 0 },
        [REPORT_MAIL] = { "--mail", settings->is_mail },
    };

    settings->form = REPORT_TEXT;
    for (int form = 0; form < REPORT_FORMS; form++) {
        if (!forms[form].is_wanted)
            continue;
        if (settings->form != REPORT_TEXT)
            return err_set(err, EINVAL, "%s and %s exclude each other: leave one out",
                           forms[settings->form].flag, forms[form].flag);
        settings->form = (enum report_form)form;
    }
    if (settings->is_array && settings->form > REPORT_JSON)
        return err_set(err, EINVAL, "--array is for text and --json: leave %s out",
                       forms[settings->form].flag);
    return 0;
}

static int check_chart(struct report_settings *settings, struct err *err)
{
    if (settings->form != REPORT_CHART && (settings->is_svg || settings->is_png))
        return err_set(err, EINVAL, "--svg and --png are of a chart: say which with --chart");
    if (settings->form != REPORT_CHART)
        return 0;
    if (settings->is_svg == settings->is_png)
        return err_set(err, EINVAL, "--chart: say --svg or --png");
    if (!job_chart_find(settings->chart, &settings->which_chart))
        return err_set(err, EINVAL,
                       "--chart: there is no \"%s\"; take cpu, memory, read, written, gpu, "
                       "gpu_memory, gpu_power, time or cores",
                       quote(settings->chart).text);
    return 0;
}

/* Every % must stand before something that is known. */
static int check_url(struct str url, struct err *err)
{
    if (url.n && !str_starts(url, STR("https://")) && !str_starts(url, STR("http://")))
        return err_set(err, EINVAL, "--report.url begins with https:// or http://");
    for (size_t i = 0; i < url.n; i++) {
        if (url.p[i] != '%')
            continue;
        if (++i == url.n || !strchr("cj%", url.p[i]))
            return err_set(
                err, EINVAL,
                "--report.url: %%c stands for the cluster, %%j for the job, %%%% for %%; "
                "there is nothing else");
    }
    return 0;
}

void report_url_put(struct buf *to, struct str url, struct str cluster, uint32_t job_id)
{
    for (size_t i = 0; i < url.n; i++) {
        if (url.p[i] != '%' || i + 1 == url.n) {
            buf_byte(to, url.p[i]);
            continue;
        }
        switch (url.p[++i]) {
        case 'c':
            buf_url(to, cluster);
            break;
        case 'j':
            buf_u64(to, job_id);
            break;
        default:
            buf_byte(to, url.p[i]);
        }
    }
}

/* What one of several jobs could not be told from the others in. */
static int check_names(const struct report_settings *settings, char **names, struct err *err)
{
    bool is_one_of_a_kind = settings->form != REPORT_TEXT && settings->form != REPORT_JSON &&
                            settings->form != REPORT_MAIL;

    if (settings->follows && !settings->drains)
        return err_set(err, EINVAL, "--follow is for --drain: say that too");
    if (settings->drains && (names[0] || settings->form != REPORT_TEXT || settings->is_array))
        return err_set(err, EINVAL,
                       "--drain sends what waits in the spool: it takes no JOBID and no form");
    if (!settings->drains && !names[0])
        return err_set(err, EINVAL, "name a job, as in sonde report 4711");
    if (is_one_of_a_kind && names[1])
        return err_set(err, EINVAL, "this form is of one job: name one only");
    return 0;
}

static int check(struct arena *arena, struct report_settings *settings, char **names,
                 struct err *err)
{
    int code = choose_form(settings, err);

    if (code == 0)
        code = check_names(settings, names, err);
    if (code == 0)
        code = check_chart(settings, err);
    if (code == 0)
        code = check_url(settings->url, err);
    if (code == 0)
        code = prometheus_matchers_read(&settings->matchers, arena, &settings->matcher, err);
    if (code < 0)
        return code;
    if (settings->timeout_ns <= 0 || settings->timeout_ns > most_timeout_ns)
        return err_set(err, EINVAL, "--timeout must be more than 0 and at most 1h");
    if (!settings->mail.per_hour || settings->mail.per_hour > MAILS_PER_HOUR_MAX)
        return err_set(err, EINVAL, "--mail.per-hour is between 1 and %d", MAILS_PER_HOUR_MAX);
    if (settings->mail.to.n && settings->form != REPORT_MAIL)
        return err_set(err, EINVAL, "--mail.to is for --mail: say that too");
    return 0;
}

int report_options_parse(int argc, char **argv, struct arena *arena, struct report_settings *ret,
                         char ***ret_names, struct err *err)
{
    struct made_options made = { 0 };
    const struct option_command command = {
        .name = "sonde report",
        .summary = "tell what a job used, what it wasted, and what to write next time",
        .description =
            "Tells of a run of a job what it was given and what it used of it, what is worth "
            "changing, and the #SBATCH lines that would have fitted. A JOBID is 4711, a task of an "
            "array 4711_7, a component of a heterogeneous job 4711+1; of one cluster of several, "
            "beluga:4711. Of several runs the newest is meant. A job that runs is told until "
            "now.\n\n"
            "What is known comes from the store that sonde exporter keeps, or from sacct, where "
            "there is no store or it may not be read; from what agents counted; and from a "
            "Prometheus, if --prometheus.url names one. The report says from which, and what was "
            "not measured is not in it.\n\n"
            "Settings are read from " REPORT_FILE " if it exists and --config.file names no other. "
            "Let everybody read it: passwords stand in files of their own.\n\n"
            "With --drain it sends the mails that sonde-mail keeps, each with the report of its "
            "job, once accounting knows of its end, or after two minutes. sonde exporter and sonde "
            "web do that with --report.config.",
        .arguments = "JOBID…",
        .exit_status = "0; 1 if a job was not found, or its report could not be made; 2 if a flag "
                       "or a file is wrong.",
        .is_given = made.is_given,
        .options = made.rows,
    };
    char **longer = report_file_argv(&argc, argv, arena);
    int outcome;

    make_options(&made);
    outcome = option_parse(&command, argc, longer, environ, arena, ret, ret_names, err);
    ret->has_store = made.is_given[made.store];
    return outcome == OPTION_GO_ON ? check(arena, ret, *ret_names, err) : outcome;
}
