/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What this host gives: munge(7), the cgroups of jobs (source/cgroup_layout.h), the exporter's
 * port.
 */
#include "base/fetch.h"
#include "base/munge.h"
#include "cmd/doctor.h"
#include "source/cgroup_layout.h"

#include <dirent.h>
#include <unistd.h>

enum { PORT_TIMEOUT_MS = 2000, LANDING_MAX = 64 * 1024 };

static int ask_munge(const char *socket, struct err *err)
{
    struct buf payload;
    char *credential;
    struct munge_origin origin;
    int code = munge_seal(socket, STR("sonde"), &credential, err);

    if (code < 0)
        return code;
    buf_init(&payload, 100);
    code = munge_unseal(socket, str_of(credential), &payload, &origin, err);
    buf_free(&payload);
    free(credential);
    return code;
}

void doctor_check_munge(struct doctor *doctor)
{
    const char *configured = doctor->conf.munge_socket[0] ? doctor->conf.munge_socket : NULL;
    const char *socket = doctor->munge_socket ? doctor->munge_socket : configured;
    int64_t began = clock_mono(&clock_real);
    bool is_needed = doctor->has_commands && !doctor->settings.prefix.n && !doctor->has_config &&
                     !doctor_has_door(doctor);
    struct err err = { 0 };

    if (ask_munge(socket, &err) == 0) {
        page_finding(doctor->page, MARK_OK, "munge", "munged answers in %s%s%s",
                     doctor_duration(clock_mono(&clock_real) - began).text, socket ? " at " : "",
                     socket ? socket : "");
        return;
    }
    if (str_eq_nocase(str_of(doctor->conf.auth), STR("auth/slurm"))) {
        page_finding(doctor->page, MARK_NOTE, "munge",
                     "is not here, and this cluster does without it (AuthType=auth/slurm)");
        return;
    }
    if (is_needed) {
        page_finding(doctor->page, MARK_FAIL, "munge", "%s", err.text);
        page_advice(doctor->page, "Start it (systemctl start munge), with the same "
                                  "/etc/munge/munge.key as on the controller.");
        return;
    }
    page_finding(doctor->page, MARK_NOTE, "munge", "no munged answers at %s",
                 socket ? socket : "its usual socket");
    page_advice(doctor->page, "If jobs are to post traces with sonde run, start it; if it listens "
                              "elsewhere, name its socket with --munge-socket.");
}

static bool is_named(const char *root, const char *pid, const char *name)
{
    char path[300], text[32];
    FILE *file;
    bool is_same;

    snprintf(path, sizeof(path), "%s/proc/%.20s/comm", root, pid);
    file = fopen(path, "re");
    if (!file)
        return false;
    is_same = fgets(text, sizeof(text), file) && str_eq(str_trim(str_of(text)), str_of(name));
    fclose(file);
    return is_same;
}

static size_t count_processes(const char *root, const char *name)
{
    const struct dirent *entry;
    char path[300];
    size_t n = 0;
    DIR *proc;

    snprintf(path, sizeof(path), "%s/proc", root);
    proc = opendir(path);
    if (!proc)
        return 0;
    while ((entry = readdir(proc)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            n += is_named(root, entry->d_name, name);
    closedir(proc);
    return n;
}

static const char *const version_words[] = {
    [CGROUP_NONE] = "no cgroups are mounted",
    [CGROUP_V1] = "version 1",
    [CGROUP_V2] = "version 2",
    [CGROUP_HYBRID] = "version 1, with version 2 beside it for systemd",
};

static void tell_scopes(struct doctor *doctor, const struct cgroup_layout *layout, size_t n_slurmd)
{
    const struct cgroup_scope *first = &layout->scope[0];
    size_t by_id = 0, by_sluid = 0, unreadable = 0;
    char others[80] = "";

    for (size_t i = 0; i < layout->n; i++) {
        const struct cgroup_scope *scope = &layout->scope[i];
        char path[2 * CGROUP_PATH];

        by_id += scope->jobs_by_id;
        by_sluid += scope->jobs_by_sluid;
        snprintf(path, sizeof(path), "%s%s/cgroup.procs", doctor->root, scope->job);
        unreadable += scope->job[0] && access(path, R_OK) != 0;
    }
    if (layout->n > 1)
        snprintf(others, sizeof(others), " and %zu others (this host has several slurmd)",
                 layout->n - 1);
    page_finding(doctor->page, MARK_OK, "jobs", "%zu%s in %s%s%s", by_id + by_sluid,
                 layout->is_partial ? " or more" : "", first->path, others,
                 by_id ? ", named job_N" : "");
    if (by_sluid) {
        page_finding(doctor->page, MARK_NOTE, "jobs",
                     "%zu are named by SLUID, as Slurm does from 26.05 on: programs that look for "
                     "job_N do not see them",
                     by_sluid);
        page_advice(doctor->page, "If one of yours needs the old names: CgroupJobIdPaths=yes in "
                                  "cgroup.conf (26.05.2 and later).");
    }
    if (unreadable) {
        page_finding(doctor->page, MARK_WARN, "jobs", "cannot be read by this user: %s",
                     first->job);
        page_advice(doctor->page,
                    "Run as root, or mount /sys/fs/cgroup readably in the container.");
    }
    if (!n_slurmd)
        page_finding(doctor->page, MARK_NOTE, "slurmd",
                     "is not to be seen here, but its cgroups are: left behind, or it runs in a "
                     "container");
}

void doctor_check_cgroups(struct doctor *doctor)
{
    struct cgroup_layout *layout = heap_alloc(sizeof(*layout));
    size_t n_slurmd = count_processes(doctor->root, "slurmd");
    struct err err = { 0 };

    if (cgroup_layout_read(doctor->root, layout, &err) < 0) {
        page_finding(doctor->page, MARK_NOTE, "cgroups", "%s", err.text);
    } else {
        page_finding(doctor->page, MARK_OK, "cgroups", "%s%s%s", version_words[layout->version],
                     layout->mount[0] ? ", at " : "", layout->mount);
        if (layout->n) {
            tell_scopes(doctor, layout, n_slurmd);
        } else if (n_slurmd) {
            page_finding(doctor->page, MARK_NOTE, "jobs",
                         "slurmd runs here, but keeps no jobs in cgroups");
            page_advice(doctor->page, "If a job runs here now: ProctrackType=proctrack/cgroup and "
                                      "TaskPlugin=task/cgroup in slurm.conf make it do so.");
        } else {
            page_finding(doctor->page, MARK_OK, "slurmd", "does not run on this host");
        }
    }
    free(layout);
}

static int keep_page(void *ctx, struct str piece, struct err *err)
{
    (void)err;
    buf_put(ctx, piece);
    return 0;
}

void doctor_check_port(struct doctor *doctor)
{
    struct fetch_result result;
    struct buf text;
    struct err err = { 0 };
    const struct fetch fetch = {
        .url = "http://127.0.0.1:9092/",
        .timeout_ms = PORT_TIMEOUT_MS,
        .max_answer = LANDING_MAX,
        .cancelled = &doctor->is_cancelled,
        .sink = keep_page,
        .ctx = &text,
    };
    int code;

    buf_init(&text, LANDING_MAX);
    code = fetch_run(&fetch, &result, &err);
    if (code == -ECONNREFUSED) {
        page_finding(doctor->page, MARK_OK, "port 9092", "is free for the exporter");
    } else if (code == 0 && str_find_str(buf_str(&text), STR("<title>sonde exporter<")) < text.n) {
        page_finding(doctor->page, MARK_OK, "port 9092", "a sonde exporter answers there");
    } else if (code == -ENOENT) {
        page_finding(doctor->page, MARK_WARN, "port 9092", "%s", err.text);
    } else if (code != -ECANCELED) {
        page_finding(doctor->page, MARK_NOTE, "port 9092",
                     "something listens there that does not show itself as a sonde exporter");
        page_advice(doctor->page, "If it is another program, give the exporter a port of its own: "
                                  "--web.listen-address.");
    }
    buf_free(&text);
}
