/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a table of options looks like to people: --help, and the man page in the macros of man(7).
 */
#include "base/option.h"

#include "docdir.h"

enum {
    WIDTH = 80,
    WIDEST_FLAG = 30, /* a longer one has a line of its own */
    MAN_LINE = 72,
    LONGEST_TEXT = 64 * 1024,
};

static const char *value_word(const struct option *option)
{
    static const char *const words[] = {
        [OPTION_BOOL] = "true|false", [OPTION_STRING] = "TEXT", [OPTION_LIST] = "TEXT",
        [OPTION_DURATION] = "TIME",   [OPTION_BYTES] = "SIZE",  [OPTION_UINT] = "NUMBER",
        [OPTION_CHOICE] = "WORD",
    };

    return option->value ? option->value : words[option->type];
}

static bool is_common(const struct option *option)
{
    for (const struct option *row = option_common; row->name; row++)
        if (row == option)
            return true;
    return false;
}

/* One whose name is a letter, short for the row before it and shown with that one. */
static bool is_letter(const struct option *option)
{
    return option->name && !option->name[1];
}

static void put_letter(struct buf *out, const struct option *option)
{
    if (!is_common(option) && is_letter(option + 1))
        buf_printf(out, "-%s, ", option[1].name);
}

/* "--web.listen-address=ADDRESS", "-t, --timer=SECONDS", "--[no-]collector.jobs". */
static void put_flag(struct buf *out, const struct option *option)
{
    put_letter(out, option);
    if (option->type != OPTION_BOOL)
        buf_printf(out, "--%s=%s", option->name, value_word(option));
    else if (!is_common(option))
        buf_printf(out, "--[no-]%s", option->name);
    else
        buf_printf(out, "%s--%s", strcmp(option->name, "help") == 0 ? "-h, " : "", option->name);
}

/* The initial value as a reader wants to be told of it, or empty. */
static struct str default_text(const struct option *option)
{
    struct str text = str_of(option->initial);

    return option->type == OPTION_BOOL && str_eq(text, STR("false")) ? STR("") : text;
}

static void put_choices(struct buf *out, const struct option *option)
{
    bool is_first = true;

    for (struct str rest = str_of(option->choices); rest.p; is_first = false) {
        buf_text(out, is_first ? "" : ", ");
        buf_put(out, str_cut(&rest, ' '));
    }
}

static struct str first_paragraph(struct str text)
{
    return str_head(text, str_find_str(text, STR("\n\n")));
}

static size_t count_characters(struct str s)
{
    size_t n = 0;

    for (; s.n; n++) {
        size_t length = str_utf8_len(s);

        s = str_skip(s, length ? length : 1);
    }
    return n;
}

/* The next word of *rest, empty at the end. */
static struct str take_word(struct str *rest)
{
    struct str trimmed = str_trim(*rest);
    size_t n = 0;

    while (n < trimmed.n && trimmed.p[n] != ' ' && trimmed.p[n] != '\n')
        n++;
    *rest = str_skip(trimmed, n);
    return str_head(trimmed, n);
}

/* Text that is filled into lines behind a margin. */
struct filler {
    struct buf *out;
    size_t margin, column;
};

static void fill_unit(struct filler *filler, struct str unit)
{
    size_t width = count_characters(unit);

    if (filler->column > filler->margin && filler->column + 1 + width > WIDTH) {
        buf_byte(filler->out, '\n');
        filler->column = 0;
    }
    if (filler->column > filler->margin) {
        buf_byte(filler->out, ' ');
        filler->column++;
    }
    for (; filler->column < filler->margin; filler->column++)
        buf_byte(filler->out, ' ');
    buf_put(filler->out, unit);
    filler->column += width;
}

static void fill_words(struct filler *filler, struct str text)
{
    for (struct str word = take_word(&text); word.n; word = take_word(&text))
        fill_unit(filler, word);
}

/* "[default: 10s]", kept on one line where it fits on one. */
static void fill_note(struct filler *filler, const char *label, struct str text)
{
    struct buf note;

    buf_init(&note, LONGEST_TEXT);
    buf_printf(&note, "[%s: %.*s]", label, STR_ARG(text));
    if (filler->margin + count_characters(buf_str(&note)) <= WIDTH)
        fill_unit(filler, buf_str(&note));
    else
        fill_words(filler, buf_str(&note));
    buf_free(&note);
}

static void put_option_help(struct buf *out, const struct option *option, size_t margin)
{
    struct filler filler = { .out = out, .margin = margin };
    struct buf text;

    buf_init(&text, LONGEST_TEXT);
    buf_text(&text, "  ");
    put_flag(&text, option);
    filler.column = count_characters(buf_str(&text));
    buf_put(out, buf_str(&text));
    if (filler.column + 2 > margin) {
        buf_byte(out, '\n');
        filler.column = 0;
    }
    fill_words(&filler, str_of(option->help));
    buf_reset(&text);
    if (option->type == OPTION_LIST)
        fill_words(&filler, STR("May be repeated."));
    if (option->type == OPTION_CHOICE) {
        put_choices(&text, option);
        fill_note(&filler, "one of", buf_str(&text));
    }
    if (default_text(option).n)
        fill_note(&filler, "default", default_text(option));
    if (option->env)
        fill_note(&filler, "env", str_of(option->env));
    buf_byte(out, '\n');
    buf_free(&text);
}

static size_t widest_flag(const struct option *rows)
{
    size_t widest = 0;

    for (; rows->name; rows++) {
        struct buf flag;
        size_t width;

        buf_init(&flag, LONGEST_TEXT);
        put_flag(&flag, rows);
        width = count_characters(buf_str(&flag));
        buf_free(&flag);
        if (width <= WIDEST_FLAG && width > widest)
            widest = width;
    }
    return widest;
}

/* Calls `begin` before the first row of each group. */
static void put_groups(struct buf *out, const struct option *rows, size_t margin,
                       void (*begin)(struct buf *out, const char *group),
                       void (*put)(struct buf *out, const struct option *row, size_t margin))
{
    const char *group = NULL;

    for (; rows->name; rows++) {
        const char *own = rows->group ? rows->group : "Flags";

        if (is_letter(rows))
            continue;
        if (!group || strcmp(group, own) != 0)
            begin(out, own);
        group = own;
        put(out, rows, margin);
    }
}

static void begin_group_help(struct buf *out, const char *group)
{
    buf_printf(out, "\n%s:\n", group);
}

void option_help(const struct option_command *command, struct buf *out)
{
    size_t widest = widest_flag(command->options), widest_common = widest_flag(option_common);
    size_t margin = 2 + (widest > widest_common ? widest : widest_common) + 2;
    struct filler filler = { .out = out };

    buf_printf(out, "Usage: %s [FLAG]…%s%s\n\n", command->name, command->arguments ? " " : "",
               command->arguments ? command->arguments : "");
    fill_words(&filler, first_paragraph(str_of(command->description)));
    buf_byte(out, '\n');
    put_groups(out, command->options, margin, begin_group_help, put_option_help);
    put_groups(out, option_common, margin, begin_group_help, put_option_help);
    buf_byte(out, '\n');
    filler.column = 0;
    fill_words(&filler, STR("A flag takes one dash or two. It beats its environment variable, "
                            "which beats the file of --config.file."));
    if (strstr(out->p, "docs/"))
        fill_words(&filler, STR("Once installed, docs is " SONDE_DOCDIR "."));
    buf_byte(out, '\n');
}

/* Escaped for troff. Hyphens become minus signs, so that what is copied from the page works. */
static void put_roff(struct buf *out, struct str s)
{
    static const struct {
        char byte;
        const char *escape;
    } escapes[] = {
        { '\\', "\\e" },  { '-', "\\-" },   { '\'', "\\(aq" }, { '"', "\\(dq" },
        { '`', "\\(ga" }, { '^', "\\(ha" }, { '~', "\\(ti" },
    };

    while (s.n) {
        size_t length = str_utf8_len(s);
        const char *escape = NULL;

        for (size_t i = 0; i < COUNT(escapes); i++)
            if (s.p[0] == escapes[i].byte)
                escape = escapes[i].escape;
        /* ASCII terminals lack this one, and it is in every synopsis. */
        if (str_starts(s, STR("…")))
            escape = "\\&...";
        if (escape) {
            buf_text(out, escape);
        } else if (length > 1) {
            unsigned code = (unsigned char)s.p[0] & (0x7fu >> length);

            for (size_t i = 1; i < length; i++)
                code = code << 6 | ((unsigned char)s.p[i] & 0x3f);
            buf_printf(out, "\\[u%04X]", code);
        } else {
            buf_byte(out, length && (unsigned char)s.p[0] >= ' ' ? s.p[0] : ' ');
        }
        s = str_skip(s, length ? length : 1);
    }
}

/* A line of its own, where a leading full stop would be a request. */
static void put_roff_line(struct buf *out, struct str s)
{
    if (s.n && s.p[0] == '.')
        buf_text(out, "\\&");
    put_roff(out, s);
    buf_byte(out, '\n');
}

static void put_roff_paragraph(struct buf *out, struct str text)
{
    struct buf line;

    buf_init(&line, LONGEST_TEXT);
    for (struct str word = take_word(&text); word.n; word = take_word(&text)) {
        if (line.n && line.n + 1 + word.n > MAN_LINE) {
            put_roff_line(out, buf_str(&line));
            buf_reset(&line);
        }
        buf_text(&line, line.n ? " " : "");
        buf_put(&line, word);
    }
    if (line.n)
        put_roff_line(out, buf_str(&line));
    buf_free(&line);
}

static void put_roff_paragraphs(struct buf *out, struct str text)
{
    bool is_first = true;

    while (str_trim(text).n) {
        struct str paragraph = first_paragraph(text);

        buf_text(out, is_first ? "" : ".PP\n");
        put_roff_paragraph(out, paragraph);
        text = str_skip(text, paragraph.n + strlen("\n\n"));
        is_first = false;
    }
}

/* A line of the form: before BOLD after. */
static void put_roff_bold(struct buf *out, const char *before, struct str bold, const char *after)
{
    buf_text(out, before);
    buf_text(out, "\\fB");
    put_roff(out, bold);
    buf_text(out, "\\fP");
    buf_text(out, after);
    buf_byte(out, '\n');
}

static void begin_group_man(struct buf *out, const char *group)
{
    buf_text(out, ".SS \"");
    put_roff(out, str_of(group));
    buf_text(out, "\"\n");
}

static void put_option_man(struct buf *out, const struct option *option, size_t margin)
{
    struct buf text;

    (void)margin;
    buf_init(&text, LONGEST_TEXT);
    buf_text(out, ".TP\n");
    if (option->type == OPTION_BOOL) {
        put_flag(&text, option);
        put_roff_bold(out, "", buf_str(&text), "");
    } else {
        buf_text(out, "\\fB");
        put_letter(&text, option);
        put_roff(out, buf_str(&text));
        buf_text(out, "\\-\\-");
        put_roff(out, str_of(option->name));
        buf_text(out, "\\fP=\\fI");
        put_roff(out, str_of(value_word(option)));
        buf_text(out, "\\fP\n");
    }
    put_roff_paragraph(out, str_of(option->help));
    if (option->type == OPTION_LIST)
        buf_text(out, "May be repeated.\n");
    if (option->type == OPTION_CHOICE) {
        buf_reset(&text);
        put_choices(&text, option);
        put_roff_bold(out, "One of: ", buf_str(&text), ".");
    }
    if (default_text(option).n)
        put_roff_bold(out, "Default: ", default_text(option), ".");
    if (option->env)
        put_roff_bold(out, "Environment: ", str_of(option->env), ".");
    buf_free(&text);
}

/* "sonde-exporter" */
static void put_page_name(struct buf *out, const char *command_name, bool is_upper)
{
    for (const char *p = command_name; *p; p++) {
        char c = *p == ' ' ? '-' : *p;

        if (is_upper && c >= 'a' && c <= 'z')
            c = (char)(c - 'a' + 'A');
        put_roff(out, (struct str){ &c, 1 });
    }
}

static void put_man_head(struct buf *out, const struct option_command *command)
{
    buf_text(out, ".TH ");
    put_page_name(out, command->name, true);
    buf_text(out,
             " 1 \"\" \"sonde " SONDE_VERSION "\" \"sonde\"\n.nh\n.ad l\n.ss 12 0\n.SH NAME\n");
    put_page_name(out, command->name, false);
    buf_text(out, " \\- ");
    put_roff(out, str_of(command->summary));
    buf_text(out, "\n.SH SYNOPSIS\n");
    put_roff_bold(out, "", str_of(command->name), " [\\fIFLAG\\fP]...");
    if (command->arguments) {
        buf_text(out, "\\fI");
        put_roff(out, str_of(command->arguments));
        buf_text(out, "\\fP\n");
    }
    buf_text(out, ".SH DESCRIPTION\n");
    put_roff_paragraphs(out, str_of(command->description));
}

static void put_man_environment(struct buf *out, const struct option *rows)
{
    bool is_first = true;

    for (; rows->name; rows++) {
        if (!rows->env)
            continue;
        if (is_first)
            buf_text(out, ".SH ENVIRONMENT\nAn empty variable counts as one that is not set.\n");
        is_first = false;
        buf_text(out, ".TP\n");
        put_roff_bold(out, "", str_of(rows->env), "");
        buf_text(out, "As \\fB\\-\\-");
        put_roff(out, str_of(rows->name));
        buf_text(out, rows->type == OPTION_LIST ? "\\fP, items separated by commas.\n" : "\\fP.\n");
    }
}

static bool is_other_name(const struct option *rows, const struct option *row)
{
    while (rows->offset != row->offset)
        rows++;
    return rows != row;
}

/* A line that yaml_read_text takes for the row's initial value. */
static void put_yaml_line(struct buf *out, const struct option *row)
{
    struct str initial = str_of(row->initial);

    buf_printf(out, "%s:", row->name);
    if (row->type == OPTION_LIST) {
        buf_text(out, " [");
        for (struct str rest = initial; rest.p;) {
            buf_json(out, str_trim(str_cut(&rest, ',')));
            buf_text(out, rest.p ? ", " : "");
        }
        buf_byte(out, ']');
    } else if (row->type == OPTION_STRING && row->initial) {
        buf_byte(out, ' ');
        buf_json(out, initial);
    } else if (row->type == OPTION_BOOL) {
        buf_printf(out, " %s", row->initial ? row->initial : "false");
    } else if (row->initial) {
        buf_printf(out, " %s", row->initial);
    }
}

/* How a key can be nested, shown with the first that can. */
static void put_man_nesting(struct buf *out, const struct option *rows)
{
    const char *dot;

    while (rows->name && !strchr(rows->name, '.'))
        rows++;
    if (!rows->name)
        return;
    dot = strchr(rows->name, '.');
    buf_text(out, "They stand whole or nested at their dots:\n.PP\n.EX\n");
    put_roff(out, str_of(rows->name));
    buf_printf(out, ": %s\n", value_word(rows));
    put_roff(out, str_span(rows->name, dot));
    buf_text(out, ":\n  ");
    put_roff(out, str_of(dot + 1));
    buf_printf(out, ": %s\n.EE\n.PP\n", value_word(rows));
}

static void put_man_files(struct buf *out, const struct option *rows, bool is_shared)
{
    struct buf line;

    if (!rows->name)
        return;
    buf_text(out, ".SH FILES\n"
                  "The file that \\fB\\-\\-config.file\\fP names is YAML, at most 1 MB.\n"
                  "Its keys are the names of the flags.\n");
    put_man_nesting(out, rows);
    buf_text(out, "A flag that may be repeated is a list, or a single value.\n");
    buf_text(out, is_shared ? "A key that is given twice is an error; one that is not a flag of "
                              "this command\nis passed over, so that the file may be another "
                              "command's.\n"
                            : "A key that does not exist, or that is given twice, is an error.\n");
    buf_text(out, "A key without a value leaves the default.\n"
                  "With all the defaults, the file would be:\n"
                  ".PP\n.EX\n");
    buf_init(&line, LONGEST_TEXT);
    for (const struct option *row = rows; row->name; row++) {
        if (is_other_name(rows, row))
            continue;
        buf_reset(&line);
        put_yaml_line(&line, row);
        put_roff_line(out, buf_str(&line));
    }
    buf_free(&line);
    buf_text(out, ".EE\n");
}

static void put_man_tail(struct buf *out, const struct option_command *command)
{
    buf_text(out, ".SH EXIT STATUS\n");
    if (command->exit_status)
        put_roff_paragraphs(out, str_of(command->exit_status));
    else
        buf_text(out, ".TP\n\\fB0\\fP\nIt did what it was told.\n"
                      ".TP\n\\fB1\\fP\nIt failed; a sentence on standard error says what to do.\n"
                      ".TP\n\\fB2\\fP\nA flag, a variable or the file is wrong; nothing was "
                      "done.\n");
    buf_text(out, ".SH SEE ALSO\n");
    if (strchr(command->name, ' '))
        buf_text(out, ".BR sonde (1),\n");
    buf_text(out, ".BR slurm (1)\n.PP\nMore is in\n.IR ");
    put_roff(out, STR(SONDE_DOCDIR));
    buf_text(out, " ,\nwhich this page calls docs.\n");
}

void option_man(const struct option_command *command, struct buf *out)
{
    put_man_head(out, command);
    buf_text(out, ".SH OPTIONS\n"
                  "A flag takes one dash or two, and its value after an equals sign or as the\n"
                  "next argument.\n"
                  "Given more than once, the last one holds.\n"
                  "A flag beats its environment variable, which beats the file of\n"
                  "\\fB\\-\\-config.file\\fP.\n");
    put_groups(out, command->options, 0, begin_group_man, put_option_man);
    put_groups(out, option_common, 0, begin_group_man, put_option_man);
    put_man_environment(out, command->options);
    put_man_files(out, command->options, command->shares_file);
    put_man_tail(out, command);
}

/* A URL without the password that may stand in it. */
static void put_without_password(struct buf *out, struct str text)
{
    size_t begin = str_find_str(text, STR("://"));
    struct str rest = str_skip(text, begin + strlen("://"));
    struct str host = str_head(rest, str_find(rest, '/'));
    size_t at = str_find(host, '@'), colon = str_find(str_head(host, at), ':');
    struct buf shown;

    if (begin == text.n || at == host.n || colon == at) {
        buf_json(out, text);
        return;
    }
    buf_init(&shown, text.n + 16);
    buf_put(&shown, str_head(text, begin + strlen("://") + colon));
    buf_text(&shown, ":***");
    buf_put(&shown, str_skip(rest, at));
    buf_json(out, buf_str(&shown));
    buf_free(&shown);
}

/* "90s", "5m", "1d": in the largest unit of which it is a whole number. */
static void put_duration(struct buf *out, int64_t ns)
{
    static const struct {
        int64_t ns;
        const char *unit;
    } units[] = {
        { INT64_C(86400000000000), "d" },
        { INT64_C(3600000000000), "h" },
        { INT64_C(60000000000), "m" },
        { INT64_C(1000000000), "s" },
    };

    for (size_t i = 0; i < COUNT(units); i++) {
        if (ns && ns % units[i].ns == 0) {
            buf_i64(out, ns / units[i].ns);
            buf_text(out, units[i].unit);
            return;
        }
    }
    buf_i64(out, ns / 1000000);
    buf_text(out, "ms");
}

static void put_list(struct buf *out, const struct option_list *list)
{
    buf_byte(out, '[');
    for (size_t i = 0; i < list->n; i++) {
        buf_text(out, i ? ", " : "");
        put_without_password(out, list->items[i]);
    }
    buf_byte(out, ']');
}

static void put_value(struct buf *out, const struct option *row, const void *place)
{
    switch (row->type) {
    case OPTION_BOOL:
        buf_text(out, *(const bool *)place ? "true" : "false");
        break;
    case OPTION_STRING:
        put_without_password(out, *(const struct str *)place);
        break;
    case OPTION_CHOICE: /* none is chosen by a key without a value */
        if (((const struct str *)place)->n)
            buf_json(out, *(const struct str *)place);
        break;
    case OPTION_LIST:
        put_list(out, place);
        break;
    case OPTION_DURATION:
        put_duration(out, *(const int64_t *)place);
        break;
    case OPTION_BYTES:
    case OPTION_UINT:
        buf_u64(out, *(const uint64_t *)place);
        break;
    }
}

static void put_origin(struct buf *out, const struct option *row, const struct option_origin *of,
                       const char *config_file)
{
    if (of->is_flag)
        buf_text(out, "flag");
    else if (of->is_env)
        buf_printf(out, "environment, %s", row->env ? row->env : "by another name");
    else if (of->is_file)
        buf_printf(out, "%s:%u", config_file, of->line);
    else
        buf_text(out, "default");
}

void option_print(const struct option_command *command, const void *settings,
                  const struct option_origin *origins, const char *config_file, struct buf *out)
{
    const struct option *rows = command->options;

    buf_printf(out, "# %s: what holds, and where it comes from.\n", command->name);
    for (size_t i = 0; rows[i].name; i++) {
        if (is_letter(&rows[i]) || is_other_name(rows, &rows[i]))
            continue;
        buf_printf(out, "%s: ", rows[i].name);
        put_value(out, &rows[i], (const char *)settings + rows[i].offset);
        buf_text(out, "  # ");
        put_origin(out, &rows[i], &origins[i], config_file);
        buf_byte(out, '\n');
    }
}
