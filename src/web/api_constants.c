/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What accounts were promised, as the allocations file has it. docs/allocations.md. */
#include "source/allocation_file.h"
#include "web/api_call.h"

static const struct api_param params[] = {
    API_PARAM("cluster", API_PARAM_WORDS, filter.clusters, "On any of these clusters."),
    API_PARAM("account", API_PARAM_WORDS, filter.accounts, "To any of these accounts."),
};

#define ENTRY(name, type, member)                                                                  \
    {                                                                                              \
        name, type, offsetof(struct allocation_entry, member)                                      \
    }

static const struct api_field entry_fields[] = {
    ENTRY("cluster", API_TEXT, cluster),
    ENTRY("account", API_TEXT, account),
    ENTRY("from", API_TIME, from),
    ENTRY("to", API_TIME, to),
    ENTRY("cpu_years", API_NUMBER, cpu_years),
    ENTRY("gpu_years", API_NUMBER, gpu_years),
    ENTRY("storage_bytes", API_NUMBER, storage_bytes),
    ENTRY("students", API_NUMBER, students),
};

static const struct api_member entry_members[] = {
    { "includes", API_MEMBER_TEXTS, true, "Other accounts whose use counts here too.", NULL },
};
static const struct api_shape entry_shape = API_SHAPE(entry_fields, entry_members);
static const struct api_member members[] = {
    { "constants", API_MEMBER_LIST, false, "As the file has them.", &entry_shape },
};
static const struct api_shape shape = API_MEMBERS(members);

static bool is_one_of(struct str word, const struct words *words)
{
    for (size_t i = 0; i < words->n; i++)
        if (str_eq(word, words->word[i]))
            return true;
    return words->n == 0;
}

static void put_entry(struct buf *out, const struct allocation_entry *entry)
{
    api_json_next(out);
    buf_byte(out, '{');
    api_json_fields(out, entry_fields, COUNT(entry_fields), entry);
    if (entry->n_includes) {
        api_json_name(out, "includes");
        buf_byte(out, '[');
        for (size_t i = 0; i < entry->n_includes; i++) {
            api_json_next(out);
            buf_json(out, entry->includes[i]);
        }
        buf_byte(out, ']');
    }
    buf_byte(out, '}');
}

static int answer_constants(struct api_call *call)
{
    const struct job_filter *filter = &call->request.filter;
    struct allocation_list list;

    if (!call->config->allocations_file)
        return api_refuse(call, 404,
                          "there is no file of allocations: start sonde web with "
                          "--allocations.file");
    if (allocation_file_read(call->config->allocations_file, &call->arena, &list, &call->err) < 0) {
        LOG(call->config->log, LOG_ERROR, "the file of allocations cannot be read",
            LOG_STR("error", call->err.text));
        return api_refuse(call, 503,
                          "the file of allocations cannot be read: sonde's log says why");
    }
    api_json_name(&call->out, "constants");
    buf_byte(&call->out, '[');
    for (size_t i = 0; i < list.n; i++)
        if (is_one_of(list.entry[i].cluster, &filter->clusters) &&
            is_one_of(list.entry[i].account, &filter->accounts) &&
            viewer_may_see_account(&call->viewer, list.entry[i].account))
            put_entry(&call->out, &list.entry[i]);
    buf_byte(&call->out, ']');
    return 0;
}

const struct api_resource api_constants = {
    .path = "/api/v1/constants",
    .shown = "/api/v1/constants",
    .summary = "What accounts were promised: the allocations file.",
    .example = "",
    .params = params,
    .n_params = COUNT(params),
    .needs = API_MAY_STORE,
    .shape = &shape,
    .answer = answer_constants,
};
