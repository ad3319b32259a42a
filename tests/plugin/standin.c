/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm's functions by the names that its plugins call them by: src/common/slurm_xlator.h of its
 * sources. Those that are missing here, the plugin must not need. */
#include <slurm/slurm_version.h>

#include "src/common/slurm_xlator.h"
#include "src/common/assoc_mgr.h"
#include "src/common/parse_config.h"
#include "src/common/read_config.h"

#undef SONDE_BANNED_H
#include "base/banned.h"

#include "base/str.h"
#include "standin.h"

#include <pthread.h>
#include <stdarg.h>

enum { LINES_MAX = 64, LOG_MAX = 64 * 1024, PAIRS_MAX = 32 };

slurm_conf_t slurm_conf;

static struct {
    char *lines[LINES_MAX];
    size_t n_lines;
    s_p_options_t *options;
    int n_options;
    const char *tres;
    config_key_pair_t *pairs[PAIRS_MAX];
    size_t n_pairs;
    pthread_mutex_t log_lock; /* the sender's thread logs too */
    char log[LOG_MAX];
    size_t log_n;
} slurm = { .tres = "", .log_lock = PTHREAD_MUTEX_INITIALIZER };

/* Their prototypes differ between Slurm's versions where it does not matter to a caller. */
#define STANDIN(type, name, ...)                                                                   \
    type standin_##name(__VA_ARGS__) __asm__("slurm_" #name);                                      \
    type standin_##name(__VA_ARGS__)

static void log_line(const char *level, const char *format, va_list args)
{
    size_t room;

    pthread_mutex_lock(&slurm.log_lock);
    room = sizeof(slurm.log) - slurm.log_n;
    slurm.log_n += (size_t)snprintf(slurm.log + slurm.log_n, room, "%s: ", level);
    room = sizeof(slurm.log) - slurm.log_n;
    slurm.log_n += (size_t)vsnprintf(slurm.log + slurm.log_n, room, format, args);
    if (slurm.log_n + 1 >= sizeof(slurm.log))
        abort();
    slurm.log[slurm.log_n++] = '\n';
    pthread_mutex_unlock(&slurm.log_lock);
}

STANDIN(int, error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_line("error", format, args);
    va_end(args);
    return SLURM_ERROR;
}

STANDIN(void, log_var, log_level_t level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_line(level == LOG_LEVEL_INFO ? "info" : "other", format, args);
    va_end(args);
}

STANDIN(int, get_log_level, void)
{
    return LOG_LEVEL_INFO;
}

void standin_print_log(void)
{
    pthread_mutex_lock(&slurm.log_lock);
    fwrite(slurm.log, 1, slurm.log_n, stdout);
    slurm.log_n = 0;
    pthread_mutex_unlock(&slurm.log_lock);
}

STANDIN(void *, xcalloc, size_t count, size_t size, bool clear, bool try, const char *file,
        int line, const char *function)
{
    void *item = calloc(count, size);

    (void)clear, (void)try, (void)file, (void)line, (void)function;
    return item ? item : (abort(), NULL);
}

STANDIN(void, xfree, void **item)
{
    free(*item);
    *item = NULL;
}

STANDIN(char *, xstrdup, const char *text)
{
    return text ? strdup(text) : NULL;
}

void standin_add_line(char *line)
{
    if (slurm.n_lines == LINES_MAX)
        abort();
    slurm.lines[slurm.n_lines++] = line;
}

static struct str key_of(const char *line)
{
    struct str rest = str_of(line);

    return str_cut(&rest, '=');
}

STANDIN(int, s_p_get_string, char **ret, const char *key, const s_p_hashtbl_t *table)
{
    (void)table;
    for (size_t i = 0; i < slurm.n_lines; i++)
        if (str_eq_nocase(key_of(slurm.lines[i]), str_of(key))) {
            *ret = strdup(strchr(slurm.lines[i], '=') + 1);
            return 1;
        }
    return 0;
}

STANDIN(void, transfer_s_p_options, s_p_options_t **full, s_p_options_t *options, int *count)
{
    for (; options->key; options++) {
        *full = realloc(*full, (size_t)(*count + 1) * sizeof(**full));
        (*full)[*count] = *options;
        (*full)[(*count)++].key = strdup(options->key);
    }
    slurm.options = *full;
    slurm.n_options = *count;
}

bool standin_knows_all_keys(void)
{
    for (size_t i = 0; i < slurm.n_lines; i++) {
        bool is_known = false;

        for (int k = 0; k < slurm.n_options; k++)
            is_known |= str_eq_nocase(key_of(slurm.lines[i]), str_of(slurm.options[k].key));
        if (!is_known)
            return false;
    }
    for (int k = 0; k < slurm.n_options; k++)
        free(slurm.options[k].key);
    free(slurm.options);
    slurm.options = NULL;
    slurm.n_options = 0;
    return true;
}

void standin_set_tres(const char *tres)
{
    slurm.tres = tres;
}

int assoc_mgr_find_tres_pos(slurmdb_tres_rec_t *record, bool locked)
{
    char wanted[64];
    int position = 5; /* those that are always there */

    (void)locked;
    snprintf(wanted, sizeof(wanted), "%s/%s", record->type, record->name);
    for (struct str rest = str_of(slurm.tres); rest.p; position++)
        if (str_eq_nocase(str_cut(&rest, ','), str_of(wanted)))
            return position;
    return -1;
}

STANDIN(void, list_append, void *list, void *item)
{
    (void)list;
    if (slurm.n_pairs == PAIRS_MAX)
        abort();
    slurm.pairs[slurm.n_pairs++] = item;
}

void standin_print_pairs(void)
{
    for (size_t i = 0; i < slurm.n_pairs; i++) {
        printf("%s = %s\n", slurm.pairs[i]->name, slurm.pairs[i]->value);
        free(slurm.pairs[i]->name);
        free(slurm.pairs[i]->value);
        free(slurm.pairs[i]);
    }
    slurm.n_pairs = 0;
}
