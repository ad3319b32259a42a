/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Flags follow Go's package flag (https://pkg.go.dev/flag#hdr-Command_line_flag_syntax), which the
 * exporters that sonde replaces use; --no-x and repeated flags follow kingpin. */
#include "base/option.h"

#include "base/num.h"
#include "base/quote.h"
#include "base/yaml.h"

enum { LONGEST_NAME = 128, MOST_HELP = 1 << 20 };
enum { COMMON_FILE, COMMON_PRINT, COMMON_TAKEN }; /* rows of option_common that are not printers */

const struct option option_common[] = {
    { .name = "config.file",
      .type = OPTION_STRING,
      .value = "FILE",
      .group = "General",
      .help = "Read settings from this YAML file. Its keys are the names of the flags." },
    { .name = "config.print",
      .type = OPTION_BOOL,
      .group = "General",
      .help = "Show all settings, in the form of that file, and where each comes from, and exit." },
    { .name = "help", .type = OPTION_BOOL, .group = "General", .help = "Show this help and exit." },
    { .name = "version",
      .type = OPTION_BOOL,
      .group = "General",
      .help = "Show the version and exit." },
    { .name = NULL },
};

/* A flag as argv gives it. */
struct given {
    const struct option *option;
    struct str value;
};

struct parse {
    const struct option_command *command;
    struct arena *arena;
    char *settings;
    struct err *err;
    const char *config_file;
    struct given *given; /* room for all of argv */
    size_t n_given;
    char **rest; /* room for all of argv, and a NULL */
    size_t n_rest;
    struct option_origin *origins; /* by row */
    bool prints;                   /* --config.print */
};

static void *place_of(struct parse *parse, const struct option *option)
{
    return parse->settings + option->offset;
}

/* The row that stands for all that share its place. */
static size_t first_row(const struct parse *parse, const struct option *option)
{
    size_t i = 0;

    while (parse->command->options[i].offset != option->offset)
        i++;
    return i;
}

static void note_given(const struct parse *parse, const struct option *option)
{
    if (parse->command->is_given)
        parse->command->is_given[first_row(parse, option)] = true;
}

static bool read_bool(const struct option *option, struct arena *arena, struct str text, void *to)
{
    (void)option;
    (void)arena;
    return yaml_get_bool(text, to);
}

static bool read_string(const struct option *option, struct arena *arena, struct str text, void *to)
{
    (void)option;
    *(struct str *)to = arena_str(arena, text);
    return true;
}

/* The array has room for the next power of two, so that adding n items copies fewer than 2 n. */
static bool add_to_list(const struct option *option, struct arena *arena, struct str text, void *to)
{
    struct option_list *list = to;

    (void)option;
    if ((list->n & (list->n - 1)) == 0) {
        struct str *items = ARENA_ARRAY(arena, struct str, list->n ? list->n * 2 : 1);

        if (list->n)
            memcpy(items, list->items, list->n * sizeof(*items));
        list->items = items;
    }
    list->items[list->n++] = arena_str(arena, text);
    return true;
}

static bool read_duration(const struct option *option, struct arena *arena, struct str text,
                          void *to)
{
    (void)option;
    (void)arena;
    return num_get_duration_ns(text, to);
}

static bool read_bytes(const struct option *option, struct arena *arena, struct str text, void *to)
{
    (void)option;
    (void)arena;
    return num_get_bytes(text, to);
}

static bool read_uint(const struct option *option, struct arena *arena, struct str text, void *to)
{
    (void)option;
    (void)arena;
    return num_get_u64(text, to);
}

static bool read_choice(const struct option *option, struct arena *arena, struct str text, void *to)
{
    (void)arena;
    for (struct str rest = str_of(option->choices); rest.p;) {
        struct str word = str_cut(&rest, ' ');

        if (word.n && str_eq_nocase(word, text)) {
            *(struct str *)to = word;
            return true;
        }
    }
    return false;
}

static const struct {
    bool (*read)(const struct option *option, struct arena *arena, struct str text, void *to);
    size_t size;
    const char *is_wrong; /* continues "the value …" */
} types[] = {
    [OPTION_BOOL] = { read_bool, sizeof(bool), "is neither true nor false" },
    [OPTION_STRING] = { read_string, sizeof(struct str), NULL },
    [OPTION_LIST] = { add_to_list, sizeof(struct option_list), NULL },
    [OPTION_DURATION] = { read_duration, sizeof(int64_t),
                          "is not a duration; write a number with ms, s, m, h, d, w or y, like 10s "
                          "or "
                          "1h30m" },
    [OPTION_BYTES] = { read_bytes, sizeof(uint64_t),
                       "is not a size; write a number of bytes, or one with K, M, G or T, like "
                       "64M" },
    [OPTION_UINT] = { read_uint, sizeof(uint64_t), "is not a whole number" },
    [OPTION_CHOICE] = { read_choice, sizeof(struct str), "is not one of" },
};

static void clear_value(struct parse *parse, const struct option *option)
{
    memset(place_of(parse, option), 0, types[option->type].size);
}

/* Lists grow; everything else is replaced. */
static int set_value(struct parse *parse, const struct option *option, struct str text)
{
    const char *is_wrong = types[option->type].is_wrong;

    if (types[option->type].read(option, parse->arena, text, place_of(parse, option)))
        return 0;
    if (option->type == OPTION_CHOICE)
        return err_set(parse->err, EINVAL, "\"%s\" %s: %s", quote(text).text, is_wrong,
                       option->choices);
    return err_set(parse->err, EINVAL, "\"%s\" %s", quote(text).text, is_wrong);
}

/* From a single text, where the items of a list are separated by commas. */
static int set_from_text(struct parse *parse, const struct option *option, struct str value)
{
    if (option->type != OPTION_LIST)
        return set_value(parse, option, value);
    clear_value(parse, option);
    for (struct str rest = value; rest.p;) {
        struct str item = str_trim(str_cut(&rest, ','));

        if (item.n)
            set_value(parse, option, item);
    }
    return 0;
}

static int set_initial(struct parse *parse)
{
    const struct option *options = parse->command->options;
    size_t n = 0;

    while (options[n].name)
        n++;
    /* Backwards, so that of rows that share a place the first one's value stays. */
    while (n--) {
        int code = 0;

        clear_value(parse, &options[n]);
        if (options[n].initial)
            code = set_from_text(parse, &options[n], str_of(options[n].initial));
        if (code < 0)
            return err_prefix(parse->err, "initial value of --%s", options[n].name);
    }
    return 0;
}

static const struct option *find_row(const struct option *rows, struct str name)
{
    for (; rows->name; rows++)
        if (str_eq(name, str_of(rows->name)))
            return rows;
    return NULL;
}

/* The best guess so far at what was meant. */
struct guess {
    size_t distance;
    char name[LONGEST_NAME];
};

/* Only what is at most this far still looks like a slip of the finger. */
static struct guess begin_guess(struct str typed)
{
    size_t limit = typed.n < 8 ? typed.n / 2 : typed.n / 3 + 1;

    return (struct guess){ .distance = limit + 1 };
}

static void improve_guess(struct guess *guess, struct str typed, const char *prefix,
                          const char *name)
{
    char text[LONGEST_NAME];
    struct str whole;
    size_t distance;

    snprintf(text, sizeof(text), "%s%s", prefix, name);
    whole = str_of(text);
    distance = str_distance(typed, whole);
    /* A name without its first part: "level" for "log.level". */
    if (typed.n && whole.n > typed.n && str_ends(whole, typed) &&
        text[whole.n - typed.n - 1] == '.')
        distance = 1;
    if (distance < guess->distance) {
        guess->distance = distance;
        memcpy(guess->name, text, sizeof(text));
    }
}

static int put_context(struct parse *parse, const struct yaml_node *node, struct str name)
{
    return err_prefix(parse->err, "%s:%u: %s", quote(str_of(parse->config_file)).text, node->line,
                      quote(name).text);
}

static int set_from_list(struct parse *parse, const struct option *option,
                         const struct yaml_node *list)
{
    for (const struct yaml_node *item = list->child; item; item = item->next) {
        if (item->kind != YAML_SCALAR || yaml_is_null(item)) {
            err_set(parse->err, EINVAL, "an item of the list is not a text");
            return put_context(parse, item, str_of(option->name));
        }
        if (set_value(parse, option, item->text) < 0)
            return put_context(parse, item, str_of(option->name));
    }
    return 0;
}

static int set_from_node(struct parse *parse, const struct option *option,
                         const struct yaml_node *node)
{
    struct str name = str_of(option->name);
    struct option_origin *origin = &parse->origins[first_row(parse, option)];
    int code = 0;

    if (origin->line)
        code = err_set(parse->err, EINVAL, "already given on line %u; remove one of the two",
                       origin->line);
    else if (node->kind == YAML_MAPPING)
        code = err_set(parse->err, EINVAL, "takes a value, not a mapping");
    else if (node->kind == YAML_LIST && option->type != OPTION_LIST)
        code = err_set(parse->err, EINVAL, "takes one value, not a list");
    if (code < 0)
        return put_context(parse, node, name);
    origin->line = node->line;
    if (yaml_is_null(node))
        return 0;
    origin->is_file = true;
    note_given(parse, option);
    if (option->type == OPTION_LIST)
        clear_value(parse, option);
    if (node->kind == YAML_LIST)
        return set_from_list(parse, option, node);
    return set_value(parse, option, node->text) < 0 ? put_context(parse, node, name) : 0;
}

static bool is_parent(const struct parse *parse, struct str name)
{
    for (const struct option *row = parse->command->options; row->name; row++)
        if (str_starts(str_of(row->name), name) && row->name[name.n] == '.')
            return true;
    return false;
}

static int refuse_key(struct parse *parse, const struct yaml_node *node, struct str name)
{
    struct guess guess = begin_guess(name);
    struct quote file = quote(str_of(parse->config_file));

    if (parse->command->elsewhere && find_row(parse->command->elsewhere, name))
        return err_set(parse->err, EINVAL, "%s:%u: %s does not belong here: %s", file.text,
                       node->line, quote(name).text, parse->command->elsewhere_is);
    for (const struct option *row = parse->command->options; row->name; row++)
        improve_guess(&guess, name, "", row->name);
    if (guess.name[0])
        return err_set(parse->err, EINVAL, "%s:%u: unknown key %s; did you mean %s?", file.text,
                       node->line, quote(name).text, guess.name);
    return err_set(parse->err, EINVAL,
                   "%s:%u: unknown key %s; the keys are the names of the flags, see --help",
                   file.text, node->line, quote(name).text);
}

static int set_from_mapping(struct parse *parse, struct str parent, const struct yaml_node *mapping)
{
    int code = 0;

    for (const struct yaml_node *node = mapping->child; node && !code; node = node->next) {
        char text[LONGEST_NAME];
        int n = snprintf(text, sizeof(text), "%.*s%s%s", STR_ARG(parent), parent.n ? "." : "",
                         node->key.p);
        struct str name = str_head(str_of(text), (size_t)n);
        const struct option *option = find_row(parse->command->options, name);
        bool can_be_parent = node->kind == YAML_MAPPING || yaml_is_null(node);

        if (can_be_parent && is_parent(parse, name))
            code = set_from_mapping(parse, name, node);
        else if (option)
            code = set_from_node(parse, option, node);
        else if (!parse->command->shares_file)
            code = refuse_key(parse, node, name);
    }
    return code;
}

static int set_from_file(struct parse *parse)
{
    struct yaml_node *root;

    if (!parse->config_file)
        return 0;
    if (yaml_read_file(parse->arena, parse->config_file, &root, parse->err) < 0) {
        parse->err->code = EINVAL;
        return -EINVAL;
    }
    if (root->kind != YAML_MAPPING)
        return err_set(parse->err, EINVAL, "%s:%u: write lines of the form KEY: VALUE",
                       quote(str_of(parse->config_file)).text, root->line);
    return set_from_mapping(parse, STR(""), root);
}

static struct str find_variable(char *const *env, const char *name)
{
    size_t n = strlen(name);

    for (; env && *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return str_of(*env + n + 1);
    return STR("");
}

static int set_from_env(struct parse *parse, char *const *env)
{
    for (const struct option *row = parse->command->options; row->name; row++) {
        struct str value = row->env ? find_variable(env, row->env) : STR("");

        if (!value.n)
            continue;
        note_given(parse, row);
        parse->origins[first_row(parse, row)].is_env = true;
        if (set_from_text(parse, row, value) < 0)
            return err_prefix(parse->err, "environment variable %s", row->env);
    }
    return 0;
}

static void put_version(const struct option_command *command, struct buf *out)
{
    (void)command;
    buf_text(out, "sonde " SONDE_VERSION "\n");
}

static const struct printer {
    struct str name;
    void (*put)(const struct option_command *command, struct buf *out);
} printers[] = {
    { STR_INIT("help"), option_help },
    { STR_INIT("h"), option_help },
    { STR_INIT("version"), put_version },
    { STR_INIT("man"), option_man },
};

static const struct printer *find_printer(struct str name)
{
    for (size_t i = 0; i < COUNT(printers); i++)
        if (str_eq(name, printers[i].name))
            return &printers[i];
    return NULL;
}

static int write_out(struct parse *parse, struct buf *text)
{
    bool ok = fwrite(text->p, 1, text->n, stdout) == text->n && fflush(stdout) == 0;

    buf_free(text);
    if (!ok)
        return err_set(parse->err, EIO, "cannot write to standard output: %s", err_words(errno));
    return OPTION_EXIT_OK;
}

static int print(struct parse *parse, const struct printer *printer)
{
    struct buf text;

    buf_init(&text, MOST_HELP);
    printer->put(parse->command, &text);
    return write_out(parse, &text);
}

static int print_settings(struct parse *parse)
{
    struct buf text;

    buf_init(&text, MOST_HELP);
    option_print(parse->command, parse->settings, parse->origins, parse->config_file, &text);
    return write_out(parse, &text);
}

/* A flag cut into its parts: -name, --name=value, --no-name. */
struct flag {
    const struct option *option; /* NULL: unknown */
    struct str name;             /* as typed */
    struct str value;            /* p NULL: none attached */
    bool is_negated;
};

static bool looks_like_flag(const char *arg)
{
    return arg[0] == '-' && arg[1] != '\0';
}

static bool ends_flags(const struct parse *parse, const char *arg)
{
    const char *end_flag = parse->command->end_flag;

    if (strcmp(arg, "--") == 0)
        return true;
    return end_flag && looks_like_flag(arg) && strcmp(arg + (arg[1] == '-' ? 2 : 1), end_flag) == 0;
}

/* -t15, -b/etc/file: the value of a letter stands behind it. Only what can't be taken for a word is
 * one, so that a mistyped name is still told as such. */
static void cut_letter(const struct parse *parse, const char *arg, struct flag *flag)
{
    const struct option *option = find_row(parse->command->options, (struct str){ arg + 1, 1 });

    if (arg[1] == '-' || !option || option->type == OPTION_BOOL || !arg[2] ||
        !strchr("0123456789./", arg[2]))
        return;
    *flag =
        (struct flag){ .option = option, .name = str_of(option->name), .value = str_of(arg + 2) };
}

static struct flag cut_flag(const struct parse *parse, const char *arg)
{
    struct flag flag = { .value = str_of(arg + (arg[1] == '-' ? 2 : 1)) };
    const struct option *options = parse->command->options;

    flag.name = str_cut(&flag.value, '=');
    flag.option = find_row(options, flag.name);
    for (size_t i = 0; i < COMMON_TAKEN && !flag.option; i++)
        if (str_eq(flag.name, str_of(option_common[i].name)))
            flag.option = &option_common[i];
    if (!flag.option && str_starts(flag.name, STR("no-"))) {
        flag.option = find_row(options, str_skip(flag.name, strlen("no-")));
        flag.is_negated = flag.option && flag.option->type == OPTION_BOOL;
        if (!flag.is_negated)
            flag.option = NULL;
    }
    if (!flag.option)
        cut_letter(parse, arg, &flag);
    return flag;
}

static const char *dashes(const struct option *option)
{
    return option->name[1] ? "--" : "-";
}

static int refuse_flag(struct parse *parse, struct str name)
{
    struct guess guess = begin_guess(name);

    for (const struct option *row = parse->command->options; row->name; row++) {
        improve_guess(&guess, name, "", row->name);
        if (row->type == OPTION_BOOL)
            improve_guess(&guess, name, "no-", row->name);
    }
    for (const struct option *row = option_common; row->name; row++)
        improve_guess(&guess, name, "", row->name);
    if (guess.name[0])
        return err_set(parse->err, EINVAL, "unknown flag --%s; did you mean --%s? See --help",
                       quote(name).text, guess.name);
    return err_set(parse->err, EINVAL, "unknown flag --%s; see --help for those there are",
                   quote(name).text);
}

/* The value that follows as the next argument. A flag that exists is not taken for one, so that
 * `--log.level --demo` is told apart from a level of that name. */
static int take_next(struct parse *parse, struct flag *flag, const char *next)
{
    if (!next || ends_flags(parse, next) ||
        (looks_like_flag(next) &&
         (cut_flag(parse, next).option || find_printer(cut_flag(parse, next).name))))
        return err_set(parse->err, EINVAL, "flag %s%s needs a value; write %s%s=%s",
                       dashes(flag->option), flag->option->name, dashes(flag->option),
                       flag->option->name, flag->option->value ? flag->option->value : "VALUE");
    flag->value = str_of(next);
    return 0;
}

/* Returns how many arguments were taken, or OPTION_EXIT_OK in *ret_outcome. */
static int take_flag(struct parse *parse, char **args, enum option_outcome *ret_outcome)
{
    struct flag flag = cut_flag(parse, args[0]);
    const struct printer *printer = flag.option ? NULL : find_printer(flag.name);
    int taken = 1, code = 0;

    if (printer) {
        code = print(parse, printer);
        *ret_outcome = OPTION_EXIT_OK;
        return code < 0 ? code : taken;
    }
    if (!flag.option)
        return refuse_flag(parse, flag.name);
    if (flag.is_negated && flag.value.p)
        return err_set(parse->err, EINVAL, "flag --%s takes no value", quote(flag.name).text);
    if (flag.option->type == OPTION_BOOL && !flag.value.p) {
        flag.value = flag.is_negated ? STR("false") : STR("true");
    } else if (!flag.value.p) {
        code = take_next(parse, &flag, args[1]);
        taken = 2;
    }
    if (code < 0)
        return code;
    if (flag.option == &option_common[COMMON_FILE])
        parse->config_file = flag.value.n ? flag.value.p : NULL;
    else if (flag.option == &option_common[COMMON_PRINT])
        parse->prints = yaml_get_bool(flag.value, &parse->prints) && parse->prints;
    else
        parse->given[parse->n_given++] = (struct given){ flag.option, flag.value };
    return taken;
}

static int take_argument(struct parse *parse, char *arg, const char *before)
{
    struct flag flag = { .option = NULL };
    bool unused;

    if (parse->command->arguments) {
        parse->rest[parse->n_rest++] = arg;
        return 1;
    }
    if (looks_like_flag(before))
        flag = cut_flag(parse, before);
    if (flag.option && flag.option->type == OPTION_BOOL && !flag.is_negated && !flag.value.p &&
        read_bool(NULL, NULL, str_of(arg), &unused))
        return err_set(parse->err, EINVAL, "unexpected argument %s; write --%s=%s",
                       quote(str_of(arg)).text, flag.option->name, quote(str_of(arg)).text);
    return err_set(parse->err, EINVAL,
                   "unexpected argument \"%s\"; %s takes flags only, see --help",
                   quote(str_of(arg)).text, parse->command->name);
}

/* Sorts argv into given flags, the file and the rest; nothing is set yet. */
static int read_argv(struct parse *parse, int argc, char **argv, enum option_outcome *ret_outcome)
{
    bool flags_ended = false;
    int taken;

    for (int i = 1; i < argc && *ret_outcome == OPTION_GO_ON; i += taken) {
        if (!flags_ended && ends_flags(parse, argv[i])) {
            flags_ended = true;
            taken = 1;
        } else if (!flags_ended && looks_like_flag(argv[i])) {
            taken = take_flag(parse, argv + i, ret_outcome);
        } else {
            flags_ended = flags_ended || parse->command->takes_command;
            taken = take_argument(parse, argv[i], argv[i - 1]);
        }
        if (taken < 0)
            return taken;
    }
    return 0;
}

static int set_from_argv(struct parse *parse, bool *is_begun)
{
    for (size_t i = 0; i < parse->n_given; i++) {
        const struct option *option = parse->given[i].option;
        bool *list_is_begun = &is_begun[first_row(parse, option)];
        struct str value = parse->given[i].value;

        note_given(parse, option);
        parse->origins[first_row(parse, option)].is_flag = true;
        if (option->type == OPTION_LIST && !*list_is_begun) {
            clear_value(parse, option);
            *list_is_begun = true;
        }
        if (option->type == OPTION_LIST && !value.n)
            continue;
        if (set_value(parse, option, value) < 0)
            return err_prefix(parse->err, "%s%s", dashes(option), option->name);
    }
    return 0;
}

bool option_is_given(const struct option_command *command, const char *name)
{
    const struct option *row = find_row(command->options, str_of(name));
    size_t i = 0;

    while (row && command->options[i].offset != row->offset)
        i++;
    return row && command->is_given[i];
}

bool option_list_equal(struct option_list a, struct option_list b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (!str_eq(a.items[i], b.items[i]))
            return false;
    return true;
}

int option_parse(const struct option_command *command, int argc, char **argv, char *const *env,
                 struct arena *arena, void *settings, char ***ret_rest, struct err *err)
{
    struct err unwanted;
    struct parse parse = {
        .command = command,
        .arena = arena,
        .settings = settings,
        .err = err ? err : &unwanted,
        .given = ARENA_ARRAY(arena, struct given, (size_t)argc + 1),
        .rest = ARENA_ARRAY(arena, char *, (size_t)argc + 1),
    };
    enum option_outcome outcome = OPTION_GO_ON;
    size_t n_rows = 0;
    int code;

    while (command->options[n_rows].name)
        n_rows++;
    parse.origins = ARENA_ARRAY(arena, struct option_origin, n_rows);
    code = read_argv(&parse, argc, argv, &outcome);
    if (code < 0 || outcome != OPTION_GO_ON)
        return code < 0 ? code : (int)outcome;
    code = set_initial(&parse);
    if (!code)
        code = set_from_file(&parse);
    if (!code)
        code = set_from_env(&parse, env);
    if (!code)
        code = set_from_argv(&parse, ARENA_ARRAY(arena, bool, n_rows));
    if (!code && command->complete)
        command->complete(command, settings, arena);
    if (!code)
        *ret_rest = parse.rest;
    return !code && parse.prints ? print_settings(&parse) : code;
}
