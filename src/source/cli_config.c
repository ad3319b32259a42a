/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cluster's name and version, and what PrivateData hides from us, from scontrol(1): "scontrol
 * show config", and "scontrol show assoc_mgr flags=users" for our AdminLevel. PrivateData hides
 * nothing from root, SlurmUser, operators and administrators: slurm.conf(5). */
#include "base/quote.h"
#include "source/cli.h"
#include "source/pairs.h"

#include <unistd.h>

struct show_config {
    struct lined lined;
    bool has_private_data; /* … been told */
    uint32_t slurm_user_id;
};

static unsigned read_words(struct str list)
{
    unsigned words = 0;

    for (struct str rest = list; rest.p;) {
        struct str word = str_trim(str_cut(&rest, ','));

        for (unsigned i = 0; i < PRIVATE_DATA; i++)
            if (str_eq_nocase(word, private_data_words[i]) || str_eq_nocase(word, STR("all")))
                words |= 1u << i;
    }
    return words;
}

/* "ClusterName             = sandbox" */
static void read_setting(void *ctx, struct str line)
{
    struct show_config *show = ctx;
    struct answer *answer = &show->lined.answer;
    struct config *config = &answer->section->config;
    struct str value = line, key = str_trim(str_cut(&value, '='));

    value = str_trim(value);
    if (str_eq(key, STR("ClusterName")) && !config->cluster) {
        config->cluster = answer_name(answer, value);
    } else if (str_eq(key, STR("SLURM_VERSION")) && !config->version) {
        config->version = answer_name(answer, value);
    } else if (str_eq(key, STR("PrivateData")) && !show->has_private_data) {
        show->has_private_data = true;
        config->private = config->hidden = read_words(value);
    } else if (str_eq(key, STR("SlurmUser")) && show->slurm_user_id == MODEL_UNKNOWN_U32) {
        pairs_name(value, &value);
        show->slurm_user_id = answer_u32(value, MODEL_UNKNOWN_U32);
    }
}

static void begin_config(struct answer *answer)
{
    answer->section->config.user_id = geteuid();
    ((struct show_config *)answer)->slurm_user_id = MODEL_UNKNOWN_U32;
    lined_begin(answer, read_setting);
}

static int end_config(struct answer *answer, struct err *err)
{
    const struct show_config *show = (const struct show_config *)answer;
    struct config *config = &answer->section->config;
    int code = lined_end(answer, NULL, err);

    if (code == 0 && !config->version && !show->has_private_data)
        return err_set(err, EBADMSG, "there is no configuration in it");
    if (config->user_id == 0 || config->user_id == show->slurm_user_id)
        config->hidden = 0;
    return code;
}

const struct answer_class answer_config = {
    .size = sizeof(struct show_config),
    .begin = begin_config,
    .feed = lined_feed,
    .end = end_config,
    .free = lined_free,
};

enum { NAME, DEFAULT_ACCOUNT, ADMIN_LEVEL, KEYS };

static const struct str keys[KEYS] = {
    [NAME] = STR_INIT("UserName"),
    [DEFAULT_ACCOUNT] = STR_INIT("DefAccount"),
    [ADMIN_LEVEL] = STR_INIT("AdminLevel"),
};

/* "UserName=dave(2004) DefAccount=ops DefWckey= AdminLevel=Operator" */
static void read_user(void *ctx, struct str line)
{
    struct answer *answer = ctx;
    struct config *config = &answer->section->config;
    struct str values[KEYS], number, name;

    if (!pairs_read(line, keys, KEYS, values))
        return;
    name = pairs_name(values[NAME], &number);
    if (answer_u32(number, MODEL_UNKNOWN_U32) != config->user_id || config->user)
        return;
    config->user = answer_name(answer, name);
    if (str_eq(values[ADMIN_LEVEL], STR("Operator")) ||
        str_eq(values[ADMIN_LEVEL], STR("Administrator")))
        config->hidden = 0;
}

static void begin_users(struct answer *answer)
{
    lined_begin(answer, read_user);
}

static int end_users(struct answer *answer, struct err *err)
{
    return lined_end(answer, NULL, err);
}

const struct answer_class answer_config_user = {
    .size = sizeof(struct lined),
    .begin = begin_users,
    .feed = lined_feed,
    .end = end_users,
    .free = lined_free,
};

static void put_hidden(struct buf *to, unsigned hidden)
{
    const char *separator = "";

    for (unsigned i = 0; i < PRIVATE_DATA; i++)
        if (hidden >> i & 1) {
            buf_printf(to, "%s%s", separator, private_data_words[i].p);
            separator = ", ";
        }
}

void config_warn(const struct section *section, const struct err *err,
                 char ret_warning[SOURCE_WARNING])
{
    const struct config *config = &section->config;
    struct buf text;

    if (!config->hidden)
        return;
    buf_init(&text, 4 * SOURCE_WARNING);
    buf_text(&text, "PrivateData hides ");
    put_hidden(&text, config->hidden);
    if (config->user) {
        struct quote name = quote(section_text(section, config->user));

        buf_printf(&text,
                   " of others from user %s: numbers are too small; to show them: "
                   "sacctmgr modify user %s set adminlevel=operator",
                   name.text, name.text);
    } else {
        buf_printf(&text,
                   " of others from user id %u: numbers are too small; to show them: "
                   "sacctmgr add user NAME account=ACCOUNT adminlevel=operator",
                   config->user_id);
    }
    if (err)
        buf_printf(&text, " (his admin level is not told: %s)", err->text);
    snprintf(ret_warning, SOURCE_WARNING, "%s", text.p);
    buf_free(&text);
}
