/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of sonde admin doctor: what its checks learn, in the order in which they run. */
#ifndef SONDE_CMD_DOCTOR_H
#define SONDE_CMD_DOCTOR_H

#include "base/quote.h"
#include "cmd/doctor_page.h"
#include "cmd/source_options.h"

enum { DOORS_MAX = 6, DOOR_FIELDS = 128, CONF_PATH = 512 };

/* One question to one door. */
struct look {
    bool is_asked;
    int code; /* 0: it was answered */
    struct err err;
    char warning[SOURCE_WARNING];
    int64_t took_ns;
    size_t records; /* nodes, or jobs; of other kinds 0 */
    uint64_t skipped;
    bool has[DOOR_FIELDS];    /* fields of the kind that any reading had: doctor_doors.c */
    bool always[DOOR_FIELDS]; /* fields that every reading had */
};

struct door {
    char name[40];
    struct str spec;    /* as --source names it */
    bool is_wanted;     /* named by --source */
    bool is_configured; /* there are flags that only it needs */
    bool is_open;       /* it could be asked at all; otherwise `err` */
    bool works;         /* nodes and jobs came */
    struct err err;
    unsigned kinds; /* what it knows of */
    struct look looks[KINDS];
    int64_t took_ns, cpu_ns;
    struct source_about about;
};

/* What slurm.conf says, as far as it matters here. */
struct conf {
    bool is_found; /* or a server that gives it */
    char auth[64], munge_socket[CONF_PATH];
};

struct doctor {
    const struct source_options *options;
    struct source_settings settings;
    const char *munge_socket; /* NULL: as slurm.conf says, or the usual */
    const char *root;         /* before paths in /proc and /sys; "" */
    struct page *page;

    struct conf conf;
    bool has_commands; /* squeue and sinfo are here */
    struct quote command_version;

    struct door doors[DOORS_MAX];
    size_t n_doors;
    char taken[40]; /* the door that the exporter would take; empty: none */

    /* What the cluster said of itself through the first door that told. */
    bool has_config;
    struct quote cluster, version;
    bool has_user;         /* the next four are known */
    const char *user_door; /* the door through which it is that user */
    struct quote user;
    uint32_t user_id;
    unsigned hidden; /* see model/config.h */
    bool has_time;
    double clock_ahead; /* seconds that our clock is ahead of slurmctld's */

    pthread_mutex_t lock;   /* of the next one */
    struct source *current; /* that is being asked */
    atomic_bool is_cancelled;
};

void doctor_check_commands(struct doctor *doctor);
void doctor_check_conf(struct doctor *doctor);
void doctor_check_doors(struct doctor *doctor);
void doctor_check_missing(struct doctor *doctor);
void doctor_check_choice(struct doctor *doctor);
void doctor_check_cluster(struct doctor *doctor);
void doctor_check_private_data(struct doctor *doctor);
void doctor_check_token(struct doctor *doctor);
void doctor_check_clock(struct doctor *doctor);
void doctor_check_munge(struct doctor *doctor);
void doctor_check_cgroups(struct doctor *doctor);
void doctor_check_port(struct doctor *doctor);

/* Whether any door works. */
bool doctor_has_door(const struct doctor *doctor);

/* Ends what is being waited for, and keeps anything else from beginning. By another thread. */
void doctor_cancel(struct doctor *doctor);

/* "3 ms", "1.4 s" */
struct duration {
    char text[24];
};
struct duration doctor_duration(int64_t ns);

#endif
