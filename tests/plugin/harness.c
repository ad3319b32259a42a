/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads a profile plugin as slurmstepd does and makes the calls that it is told to:
 *
 *   harness PLUGIN [KEY=VALUE...]
 *
 * ProfilePrometheus...=VALUE are lines of acct_gather.conf; job, step (a number, batch, extern or
 * interactive), component, node, user, account, partition, cluster, profile (Slurm's bits),
 * interconnect and tres say what the step and Slurm are. Then it reads commands, a line each, and
 * answers each with what there is to say and a line "." (see the table `commands`). */
#include <slurm/slurm_version.h>

#include "src/common/slurm_xlator.h"
#include "src/common/read_config.h"
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
#include "src/interfaces/acct_gather_profile.h"
#else
#include "src/common/slurm_acct_gather_profile.h"
#endif
#include "src/slurmd/slurmstepd/slurmstepd_job.h"

#undef SONDE_BANNED_H
#include "base/banned.h"

#include "base/curl.h"
#include "base/num.h"
#include "base/str.h"
#include "standin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { WORDS_MAX = 48, FIELDS_MAX = 40, DATASETS_MAX = 5000 };

/* As in slurm_acct_gather_profile_ops_t of Slurm's acct_gather_profile.c. */
static struct {
    int (*init)(void);
    int (*fini)(void);
    void (*child_forked)(void);
    void (*conf_options)(s_p_options_t **, int *);
    void (*conf_set)(s_p_hashtbl_t *);
    void *(*get)(enum acct_gather_profile_info, void *);
    int (*node_step_start)(stepd_step_rec_t *);
    int (*node_step_end)(void);
    int (*task_start)(uint32_t);
    int (*task_end)(pid_t);
    int64_t (*create_group)(const char *);
    int (*create_dataset)(const char *, int64_t, acct_gather_profile_dataset_t *);
    int (*add_sample_data)(uint32_t, void *, time_t);
    void (*conf_values)(void *);
    bool (*is_active)(uint32_t);
} ops;

#define P "acct_gather_profile_p_"
static const struct {
    const char *name;
    void *to;
} symbols[] = {
    { "init", &ops.init },
    { "fini", &ops.fini },
    { P "child_forked", &ops.child_forked },
    { P "conf_options", &ops.conf_options },
    { P "conf_set", &ops.conf_set },
    { P "get", &ops.get },
    { P "node_step_start", &ops.node_step_start },
    { P "node_step_end", &ops.node_step_end },
    { P "task_start", &ops.task_start },
    { P "task_end", &ops.task_end },
    { P "create_group", &ops.create_group },
    { P "create_dataset", &ops.create_dataset },
    { P "add_sample_data", &ops.add_sample_data },
    { P "conf_values", &ops.conf_values },
    { P "is_active", &ops.is_active },
};

union value {
    uint64_t u64;
    double d;
};

struct dataset {
    int id;
    acct_gather_profile_dataset_t fields[FIELDS_MAX + 1];
    size_t n;
};

static struct {
    const char *program;
    void *plugin;
    stepd_step_rec_t step;
    char *env[8];
    const char *host; /* of the options */
    struct dataset *datasets[DATASETS_MAX];
    size_t n_datasets;
} harness;

static const acct_gather_profile_dataset_t task_fields[] = {
    { (char *)"CPUFrequency", PROFILE_FIELD_UINT64 },
    { (char *)"CPUTime", PROFILE_FIELD_DOUBLE },
    { (char *)"CPUUtilization", PROFILE_FIELD_DOUBLE },
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
    { (char *)"GPUMemMB", PROFILE_FIELD_UINT64 },
    { (char *)"GPUUtilization", PROFILE_FIELD_DOUBLE },
#endif
    { (char *)"RSS", PROFILE_FIELD_UINT64 },
    { (char *)"VMSize", PROFILE_FIELD_UINT64 },
    { (char *)"Pages", PROFILE_FIELD_UINT64 },
    { (char *)"ReadMB", PROFILE_FIELD_DOUBLE },
    { (char *)"WriteMB", PROFILE_FIELD_DOUBLE },
    { NULL, PROFILE_FIELD_NOT_SET },
};
static const acct_gather_profile_dataset_t energy_fields[] = {
    { (char *)"Power", PROFILE_FIELD_UINT64 },
    { NULL, PROFILE_FIELD_NOT_SET },
};
static const acct_gather_profile_dataset_t network_fields[] = {
    { (char *)"PacketsIn", PROFILE_FIELD_UINT64 },
    { (char *)"PacketsOut", PROFILE_FIELD_UINT64 },
    { (char *)"InMB", PROFILE_FIELD_DOUBLE },
    { (char *)"OutMB", PROFILE_FIELD_DOUBLE },
    { NULL, PROFILE_FIELD_NOT_SET },
};
static const acct_gather_profile_dataset_t filesystem_fields[] = {
    { (char *)"Reads", PROFILE_FIELD_UINT64 },
    { (char *)"ReadMB", PROFILE_FIELD_DOUBLE },
    { (char *)"Writes", PROFILE_FIELD_UINT64 },
    { (char *)"WriteMB", PROFILE_FIELD_DOUBLE },
    { NULL, PROFILE_FIELD_NOT_SET },
};

static void complain(const char *what, const char *about)
{
    fprintf(stderr, "harness: %s: %s\n", about, what);
    exit(2);
}

static uint64_t number(const char *text)
{
    uint64_t value;

    if (!num_get_u64(str_of(text), &value))
        complain("is no number", text);
    return value;
}

static void load_plugin(const char *path)
{
    harness.plugin = dlopen(path, RTLD_LAZY);
    if (!harness.plugin)
        complain(dlerror(), path);
    for (size_t i = 0; i < COUNT(symbols); i++) {
        void *found = dlsym(harness.plugin, symbols[i].name);

        if (!found)
            complain("is not in the plugin", symbols[i].name);
        memcpy(symbols[i].to, &found, sizeof(found));
    }
}

static uint32_t step_number(const char *text)
{
    return strcmp(text, "batch") == 0         ? SLURM_BATCH_SCRIPT
           : strcmp(text, "extern") == 0      ? SLURM_EXTERN_CONT
           : strcmp(text, "interactive") == 0 ? SLURM_INTERACTIVE_STEP
                                              : (uint32_t)number(text);
}

static void add_variable(const char *name, const char *value)
{
    size_t n = 0;

    while (harness.env[n])
        n++;
    if (n + 1 == COUNT(harness.env) || asprintf(&harness.env[n], "%s=%s", name, value) < 0)
        complain("is one variable too many", name);
}

static void take_setting(char *setting)
{
    char *value = strchr(setting, '=');
    struct str key = str_span(setting, value ? value++ : setting);
    stepd_step_rec_t *step = &harness.step;

    if (!value)
        complain("is not KEY=VALUE", setting);
    if (str_starts(key, STR("ProfilePrometheus"))) {
        standin_add_line(setting);
        if (str_eq(key, STR("ProfilePrometheusHost")))
            harness.host = value;
    } else if (str_eq(key, STR("job")))
        step->step_id.job_id = (uint32_t)number(value);
    else if (str_eq(key, STR("step")))
        step->step_id.step_id = step_number(value);
    else if (str_eq(key, STR("component")))
        step->step_id.step_het_comp = (uint32_t)number(value);
    else if (str_eq(key, STR("node")))
        step->node_name = value;
    else if (str_eq(key, STR("user")))
        step->user_name = value;
    else if (str_eq(key, STR("account")))
        add_variable("SLURM_JOB_ACCOUNT", value);
    else if (str_eq(key, STR("partition")))
        add_variable("SLURM_JOB_PARTITION", value);
    else if (str_eq(key, STR("cluster")))
        slurm_conf.cluster_name = value;
    else if (str_eq(key, STR("profile")))
        step->profile = (uint32_t)number(value);
    else if (str_eq(key, STR("interconnect")))
        slurm_conf.acct_gather_interconnect_type = value;
    else if (str_eq(key, STR("tres")))
        standin_set_tres(value);
    else
        complain("is no setting", setting);
}

static void do_version(char **words)
{
    const uint32_t *version = dlsym(harness.plugin, "plugin_version");

    (void)words;
    printf("%s\n%s\n%06x %06x\n", (const char *)dlsym(harness.plugin, "plugin_name"),
           (const char *)dlsym(harness.plugin, "plugin_type"), *version, SLURM_VERSION_NUMBER);
}

static void do_init(char **words)
{
    (void)words;
    printf("%d\n", ops.init());
}

static void do_conf_options(char **words)
{
    s_p_options_t *options = NULL;
    int count = 0;

    (void)words;
    ops.conf_options(&options, &count);
    for (int i = 0; i < count; i++)
        printf("%s %d\n", options[i].key, options[i].type == S_P_STRING);
    if (!standin_knows_all_keys())
        printf("fatal: an unknown key\n");
}

static void do_conf_set(char **words)
{
    static char table;

    ops.conf_set(words[0] && strcmp(words[0], "none") == 0 ? NULL : (s_p_hashtbl_t *)&table);
}

static void do_conf_values(char **words)
{
    void *list = &harness;

    (void)words;
    ops.conf_values(&list);
    standin_print_pairs();
}

static void do_get(char **words)
{
    uint32_t running = 77, by_default = 77;
    char *directory = (char *)"?";

    (void)words;
    ops.get(ACCT_GATHER_PROFILE_RUNNING, &running);
    ops.get(ACCT_GATHER_PROFILE_DEFAULT, &by_default);
    ops.get(ACCT_GATHER_PROFILE_DIR, &directory);
    printf("running %u default %u directory %s active %d\n", running, by_default,
           directory ? directory : "-", ops.is_active(ACCT_GATHER_PROFILE_NOT_SET));
}

/* A batch step has its environment only later: Slurm's batch_stepd_step_rec_create(). */
static void do_node_step_start(char **words)
{
    (void)words;
    if (harness.step.step_id.step_id != SLURM_BATCH_SCRIPT)
        harness.step.env = harness.env;
    printf("%d\n", ops.node_step_start(&harness.step));
    harness.step.env = harness.env;
}

static void do_task_start(char **words)
{
    printf("%d\n", ops.task_start((uint32_t)number(words[0])));
}

static void do_task_end(char **words)
{
    (void)words;
    printf("%d\n", ops.task_end(getpid()));
}

static void do_group(char **words)
{
    printf("%lld\n", (long long)ops.create_group(words[0]));
}

static void add_field(struct dataset *dataset, char *name, acct_gather_profile_field_type_t type)
{
    if (dataset->n == FIELDS_MAX)
        complain("is one field too many", name);
    dataset->fields[dataset->n].name = strdup(name);
    dataset->fields[dataset->n++].type = type;
}

/* NAME PARENT [FIELD:u64|FIELD:double ...]: without fields, those of that version of Slurm. */
static void do_dataset(char **words)
{
    static const struct {
        const char *name;
        const acct_gather_profile_dataset_t *fields;
    } known[] = {
        { "Energy", energy_fields },
        { "Network", network_fields },
        { "Filesystem", filesystem_fields },
    };
    const acct_gather_profile_dataset_t *usual = task_fields;
    struct dataset *dataset = calloc(1, sizeof(*dataset));
    int64_t parent;

    if (!words[1] || !num_get_i64(str_of(words[1]), &parent) || harness.n_datasets == DATASETS_MAX)
        complain("cannot be made", "dataset");
    for (size_t i = 0; i < COUNT(known); i++)
        if (strcmp(known[i].name, words[0]) == 0)
            usual = known[i].fields;
    for (char **word = words + 2; *word; word++) {
        char *colon = strchr(*word, ':');

        if (!colon)
            complain("is not FIELD:TYPE", *word);
        *colon = '\0';
        add_field(dataset, *word,
                  strcmp(colon + 1, "u64") == 0 ? PROFILE_FIELD_UINT64 : PROFILE_FIELD_DOUBLE);
    }
    for (; !words[2] && usual->name; usual++)
        add_field(dataset, usual->name, usual->type);
    dataset->id = ops.create_dataset(words[0], parent, dataset->fields);
    harness.datasets[harness.n_datasets++] = dataset;
    printf("%d\n", dataset->id);
}

static const struct dataset *find_dataset(const char *id)
{
    for (size_t i = 0; i < harness.n_datasets; i++)
        if ((uint64_t)harness.datasets[i]->id == number(id))
            return harness.datasets[i];
    complain("is no dataset", id);
    return NULL;
}

/* ID [FIELD=VALUE ...]: the others are 0. */
static void do_sample(char **words)
{
    const struct dataset *dataset = find_dataset(words[0]);
    union value values[FIELDS_MAX] = { 0 };

    for (char **word = words + 1; *word; word++) {
        struct str rest = str_of(*word), name = str_cut(&rest, '=');
        bool is_known = false;

        for (size_t i = 0; i < dataset->n; i++)
            if (str_eq(name, str_of(dataset->fields[i].name)))
                is_known = dataset->fields[i].type == PROFILE_FIELD_UINT64
                               ? num_get_u64(rest, &values[i].u64)
                               : num_get_double(rest, &values[i].d);
        if (!is_known)
            complain("is no FIELD=VALUE of the dataset", *word);
    }
    printf("%d\n", ops.add_sample_data((uint32_t)dataset->id, values, time(NULL)));
}

/* A number that nobody gave out, as a caller with a fault would. */
static void do_stray_sample(char **words)
{
    union value values[FIELDS_MAX] = { 0 };

    printf("%d\n", ops.add_sample_data((uint32_t)number(words[0]), values, time(NULL)));
}

static void do_node_step_end(char **words)
{
    (void)words;
    printf("%d\n", ops.node_step_end());
}

static void do_fini(char **words)
{
    (void)words;
    printf("%d\n", ops.fini());
}

static void do_log(char **words)
{
    (void)words;
    standin_print_log();
}

static size_t count_entries(const char *path)
{
    DIR *directory = opendir(path);
    size_t n = 0;

    while (directory && readdir(directory))
        n++;
    if (directory)
        closedir(directory);
    return n - 2;
}

static void do_threads(char **words)
{
    (void)words;
    printf("%zu\n", count_entries("/proc/self/task"));
}

/* Which shared libraries with that in their name are loaded. */
static void do_libraries(char **words)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[4400], last[4400] = "";

    while (maps && fgets(line, sizeof(line), maps)) {
        const char *path = strchr(line, '/');

        if (path && strstr(path, words[0]) && strcmp(path, last) != 0) {
            printf("%s", path);
            snprintf(last, sizeof(last), "%s", path);
        }
    }
    if (maps)
        fclose(maps);
}

/* Memory of this process alone, in KiB. */
static void do_memory(char **words)
{
    FILE *rollup = fopen("/proc/self/smaps_rollup", "re");
    char line[200];

    (void)words;
    while (rollup && fgets(line, sizeof(line), rollup))
        if (str_starts(str_of(line), STR("Private_Dirty:")))
            printf("%s", line);
    if (rollup)
        fclose(rollup);
}

static void list_descriptors(void)
{
    for (int fd = 3; fd < 1024; fd++) {
        char path[64], target[200];
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        n = readlink(path, target, sizeof(target) - 1);
        if (n >= 0)
            printf("%d %.*s\n", fd, (int)n, target);
    }
}

static void do_descriptors(char **words)
{
    (void)words;
    list_descriptors();
}

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static long waits(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
}

/* As a task is made. What it calls between fork and exec must do nothing there: above all, not wait
 * for the sender, which is not in the child. */
static void do_fork(char **words)
{
    pid_t child;
    int status;

    (void)words;
    fflush(stdout);
    child = fork();
    if (child == 0) {
        long before = waits();

        ops.child_forked();
        ops.node_step_end();
        ops.fini();
        if (waits() > before)
            _exit(1);
        execl(harness.program, "harness", "--descriptors", NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    printf("status %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void print_latencies(int64_t *taken, size_t n)
{
    qsort(taken, n, sizeof(*taken), by_size);
    printf("median_ns %lld p999_ns %lld max_ns %lld\n", (long long)taken[n / 2],
           (long long)taken[n - 1 - n / 1000], (long long)taken[n - 1]);
}

/* ID N PAUSE_US: what a sample costs who gives it. A pause lets others use the caches meanwhile. */
static void do_measure(char **words)
{
    const struct dataset *dataset = find_dataset(words[0]);
    size_t n = number(words[1]);
    uint64_t pause_us = number(words[2]);
    struct timespec pause = { .tv_sec = (time_t)(pause_us / 1000000),
                              .tv_nsec = (long)(pause_us % 1000000 * 1000) };
    int64_t *taken = calloc(n ? n : 1, sizeof(*taken));

    for (size_t i = 0; i < n; i++) {
        union value values[FIELDS_MAX];
        int64_t begin;

        for (size_t k = 0; k < dataset->n; k++)
            if (dataset->fields[k].type == PROFILE_FIELD_UINT64)
                values[k].u64 = 1000 + i;
            else
                values[k].d = 0.25;
        if (pause_us)
            nanosleep(&pause, NULL);
        begin = now_ns();
        ops.add_sample_data((uint32_t)dataset->id, values, 1);
        taken[i] = now_ns() - begin;
    }
    if (n)
        print_latencies(taken, n);
    free(taken);
}

static size_t drop(char *data, size_t size, size_t n, void *to)
{
    (void)data, (void)to;
    return size * n;
}

/* N TIMEOUT_MS: what it would cost if each sample were pushed where it is taken, as by the plugin
 * of this name that came first: a request of its own on a connection of its own. */
static void do_blocking(char **words)
{
    static const char body[] = "CPUTime 0.25\nRSS 1000\n";
    size_t n = number(words[0]);
    long timeout_ms = (long)number(words[1]);
    int64_t *taken = calloc(n ? n : 1, sizeof(*taken));
    const struct libcurl *curl;
    struct err err;
    char url[1000];

    if (libcurl_open(&curl, &err) < 0 || !harness.host)
        complain("libcurl and ProfilePrometheusHost are needed", "blocking");
    snprintf(url, sizeof(url), "%s/metrics/job/1/instance/blocking", harness.host);
    for (size_t i = 0; i < n; i++) {
        int64_t begin = now_ns();
        CURL *easy = curl->easy_init();

        LIBCURL_SETOPT(curl, easy, CURLOPT_URL, url);
        LIBCURL_SETOPT(curl, easy, CURLOPT_POSTFIELDS, body);
        LIBCURL_SETOPT(curl, easy, CURLOPT_WRITEFUNCTION, drop);
        LIBCURL_SETOPT(curl, easy, CURLOPT_NOSIGNAL, 1L);
        LIBCURL_SETOPT(curl, easy, CURLOPT_TIMEOUT_MS, timeout_ms);
        curl->easy_perform(easy);
        curl->easy_cleanup(easy);
        taken[i] = now_ns() - begin;
    }
    if (n)
        print_latencies(taken, n);
    free(taken);
}

static const struct {
    const char *name;
    int n_words; /* at least */
    void (*run)(char **words);
} commands[] = {
    { "version", 0, do_version },
    { "init", 0, do_init },
    { "conf_options", 0, do_conf_options },
    { "conf_set", 0, do_conf_set }, /* none: as without a file */
    { "conf_values", 0, do_conf_values },
    { "get", 0, do_get },
    { "node_step_start", 0, do_node_step_start },
    { "task_start", 1, do_task_start },
    { "task_end", 0, do_task_end },
    { "group", 1, do_group },
    { "dataset", 2, do_dataset },
    { "sample", 1, do_sample },
    { "stray_sample", 1, do_stray_sample },
    { "node_step_end", 0, do_node_step_end },
    { "fini", 0, do_fini },
    { "log", 0, do_log },
    { "threads", 0, do_threads },
    { "libraries", 1, do_libraries },
    { "memory", 0, do_memory },
    { "descriptors", 0, do_descriptors },
    { "fork", 0, do_fork },
    { "measure", 3, do_measure },
    { "blocking", 2, do_blocking },
};

static void obey(char *line)
{
    char *words[WORDS_MAX + 1] = { NULL };
    int n = 0;

    for (char *save, *word = strtok_r(line, " \n", &save); word && n < WORDS_MAX;
         word = strtok_r(NULL, " \n", &save))
        words[n++] = word;
    for (size_t i = 0; n && i < COUNT(commands); i++)
        if (strcmp(commands[i].name, words[0]) == 0 && n > commands[i].n_words) {
            commands[i].run(words + 1);
            puts(".");
            fflush(stdout);
            return;
        }
    complain("is no command, or lacks words", n ? words[0] : "");
}

static void free_all(void)
{
    for (size_t i = 0; i < harness.n_datasets; i++) {
        for (size_t k = 0; k < harness.datasets[i]->n; k++)
            free(harness.datasets[i]->fields[k].name);
        free(harness.datasets[i]);
    }
    for (char **variable = harness.env; *variable; variable++)
        free(*variable);
}

int main(int argc, char **argv)
{
    char line[4096];

    if (argc == 2 && strcmp(argv[1], "--descriptors") == 0) {
        list_descriptors();
        return 0;
    }
    if (argc < 2)
        complain("PLUGIN [KEY=VALUE...]", "usage");
    harness.program = argv[0];
    harness.step.step_id.step_het_comp = NO_VAL;
    harness.step.step_id.job_id = 1;
    harness.step.node_name = (char *)"node";
    harness.step.user_name = (char *)"user";
    slurm_conf.cluster_name = (char *)"cluster";
    for (int i = 2; i < argc; i++)
        take_setting(argv[i]);
    load_plugin(argv[1]);
    while (fgets(line, sizeof(line), stdin))
        obey(line);
    dlclose(harness.plugin);
    free_all();
    return 0;
}
