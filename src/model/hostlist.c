/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Host lists as slurm.conf(5) defines them and "scontrol show hostnames" and "show hostlist"
 * convert them. A list is measured before any memory is taken for it, so that none can ask for too
 * much. */
#include "model/hostlist.h"

#include "base/map.h"
#include "base/num.h"

enum {
    LONGEST_NUMBER = NUM_U64_MAX, /* digits; a longer one is only text */
    LONGEST_NAME = 256,           /* mean over a list that brackets make long; DNS has 255 */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_separator(char c)
{
    return c == ',' || c == ' ' || c == '\t' || c == '\n';
}

/* A list being read: where it begins, to tell the position of what is wrong. */
struct reader {
    const char *begin;
    struct err *err;
};

static int fail_at(const struct reader *reader, const char *at, const char *what)
{
    return err_set(reader->err, EBADMSG, "the host list has %s at character %zu", what,
                   (size_t)(at - reader->begin) + 1);
}

/* Takes the next comma separated item, or an empty one at the end. Its brackets are then known to
 * come in pairs. */
static int take_item(const struct reader *reader, struct str *rest, struct str *ret)
{
    const char *open = NULL;
    size_t n = 0;

    while (rest->n && is_separator(rest->p[0]))
        *rest = str_skip(*rest, 1);
    for (; n < rest->n && (open || !is_separator(rest->p[n])); n++) {
        const char *at = rest->p + n;

        if (*at == '[' && open)
            return fail_at(reader, at, "a '[' inside brackets");
        if (*at == ']' && !open)
            return fail_at(reader, at, "a ']' without '['");
        if (*at == '[')
            open = at;
        else if (*at == ']')
            open = NULL;
    }
    if (open)
        return fail_at(reader, open, "a '[' that is not closed");
    *ret = str_head(*rest, n);
    *rest = str_skip(*rest, n);
    return 0;
}

/* Takes the text before the next bracket and what stands inside it, which has p = NULL if the item
 * ends without one. */
static void take_piece(struct str *item, struct str *ret_literal, struct str *ret_ranges)
{
    *ret_literal = str_cut(item, '[');
    *ret_ranges = item->p ? str_cut(item, ']') : (struct str){ NULL, 0 };
}

/* "001-128": 1 to 128, three digits wide. "7": one number. A number too long to be counted with
 * stands for itself: text. */
struct range {
    uint64_t first, last;
    struct str text; /* of the first */
    bool is_text;
};

static bool read_number(struct str digits, uint64_t *ret)
{
    return digits.n <= LONGEST_NUMBER && num_get_u64(digits, ret);
}

static int take_range(const struct reader *reader, struct str *ranges, struct range *ret)
{
    struct str last = str_cut(ranges, ','), first = str_cut(&last, '-');
    struct range range = { .text = first };

    for (const char *at = first.p; at < (last.p ? last.p + last.n : first.p + first.n); at++)
        if (!is_digit(*at) && at != first.p + first.n)
            return fail_at(reader, at, "something that is no digit");
    if (!first.n || (last.p && !last.n))
        return fail_at(reader, first.p, "a range without a number");
    range.is_text = !read_number(first, &range.first);
    range.last = range.first;
    if (last.p && (range.is_text || !read_number(last, &range.last)))
        return fail_at(reader, first.p, "a range of numbers that are too long");
    if (range.last < range.first)
        return fail_at(reader, first.p, "a range that counts down");
    *ret = range;
    return 0;
}

static size_t length_of(uint64_t number)
{
    char digits[NUM_U64_MAX];

    return num_put_u64(digits, number);
}

/* What a list or an item of it comes to. */
struct measure {
    uint64_t hosts;
    uint64_t bytes;  /* at most, of all names with an end mark each */
    size_t brackets; /* most in one item */
};

static int too_many(const struct reader *reader)
{
    return err_set(reader->err, EFBIG, "the host list names more hosts than 64 bits can count");
}

static int measure_ranges(const struct reader *reader, struct str ranges, struct measure *item)
{
    uint64_t hosts = 0, longest = 0;

    while (ranges.p) {
        struct range range;
        uint64_t length;
        int r = take_range(reader, &ranges, &range);

        if (r < 0)
            return r;
        length = range.is_text ? 0 : length_of(range.last);
        length = length > range.text.n ? length : range.text.n;
        longest = length > longest ? length : longest;
        if (__builtin_add_overflow(hosts, range.last - range.first, &hosts) ||
            __builtin_add_overflow(hosts, 1, &hosts))
            return too_many(reader);
    }
    if (__builtin_mul_overflow(item->hosts, hosts, &item->hosts))
        return too_many(reader);
    item->bytes += longest;
    item->brackets++;
    return 0;
}

static int measure_item(const struct reader *reader, struct str text, struct measure *total)
{
    struct measure item = { .hosts = 1, .bytes = 1 };
    uint64_t bytes;

    while (text.p) {
        struct str literal, ranges;

        take_piece(&text, &literal, &ranges);
        item.bytes += literal.n;
        if (ranges.p) {
            int r = measure_ranges(reader, ranges, &item);

            if (r < 0)
                return r;
        }
    }
    if (__builtin_add_overflow(total->hosts, item.hosts, &total->hosts))
        return too_many(reader);
    if (__builtin_mul_overflow(item.hosts, item.bytes, &bytes) ||
        __builtin_add_overflow(total->bytes, bytes, &total->bytes))
        total->bytes = UINT64_MAX / 2;
    if (total->brackets < item.brackets)
        total->brackets = item.brackets;
    return 0;
}

static int measure_list(const struct reader *reader, struct str text, struct measure *ret)
{
    struct measure total = { 0 };

    for (;;) {
        struct str item;
        int r = take_item(reader, &text, &item);

        if (r < 0)
            return r;
        if (!item.n)
            break;
        r = measure_item(reader, item, &total);
        if (r < 0)
            return r;
    }
    *ret = total;
    return 0;
}

int hostlist_count(struct str text, uint64_t *ret, struct err *err)
{
    struct reader reader = { text.p, err };
    struct measure measure;
    int r = measure_list(&reader, text, &measure);

    if (r == 0)
        *ret = measure.hosts;
    return r;
}

/* A bracket while names are made from it: a wheel of a counter. */
struct wheel {
    struct str literal; /* the text before it */
    struct str ranges;
    struct str rest; /* of the ranges, after the present one */
    struct range range;
    uint64_t now;
};

/* The ranges were read once when they were measured: reading them again can't fail. */
static void start_wheel(struct wheel *wheel)
{
    wheel->rest = wheel->ranges;
    take_range(&(struct reader){ 0 }, &wheel->rest, &wheel->range);
    wheel->now = wheel->range.first;
}

/* False when it was at its end and begins again. */
static bool turn_wheel(struct wheel *wheel)
{
    if (wheel->now < wheel->range.last) {
        wheel->now++;
        return true;
    }
    if (!wheel->rest.p) {
        start_wheel(wheel);
        return false;
    }
    take_range(&(struct reader){ 0 }, &wheel->rest, &wheel->range);
    wheel->now = wheel->range.first;
    return true;
}

static char *put_text(char *to, struct str s)
{
    memcpy(to, s.p, s.n);
    return to + s.n;
}

static char *put_padded(char *to, uint64_t number, size_t width)
{
    char digits[NUM_U64_MAX];
    size_t n = num_put_u64(digits, number);

    for (; width > n; width--)
        *to++ = '0';
    return put_text(to, (struct str){ digits, n });
}

static char *put_wheel(char *to, const struct wheel *wheel)
{
    to = put_text(to, wheel->literal);
    if (wheel->range.is_text)
        return put_text(to, wheel->range.text);
    return put_padded(to, wheel->now, wheel->range.text.n);
}

/* Writes the names of one item one after the other at `to`, and where they stand into *host. */
static char *expand_item(struct str text, struct wheel *wheels, char *to, struct str **host)
{
    struct str tail = text;
    size_t n = 0, turned;

    for (;;) {
        take_piece(&text, &tail, &wheels[n].ranges);
        if (!wheels[n].ranges.p)
            break;
        wheels[n].literal = tail;
        start_wheel(&wheels[n++]);
    }
    do {
        char *name = to;

        for (size_t i = 0; i < n; i++)
            to = put_wheel(to, &wheels[i]);
        to = put_text(to, tail);
        *(*host)++ = str_span(name, to);
        *to++ = '\0';
        turned = n;
        while (turned && !turn_wheel(&wheels[turned - 1]))
            turned--;
    } while (turned);
    return to;
}

static int check_size(const struct measure *measure, size_t text_bytes, size_t most,
                      struct err *err)
{
    uint64_t most_bytes;

    if (measure->hosts > most)
        return err_set(err, EFBIG, "the host list names %llu hosts, and at most %zu are taken",
                       (unsigned long long)measure->hosts, most);
    if (!__builtin_mul_overflow((uint64_t)most, LONGEST_NAME, &most_bytes) &&
        !__builtin_add_overflow(most_bytes, 2 * text_bytes + 1, &most_bytes) &&
        measure->bytes > most_bytes)
        return err_set(err, EFBIG, "the names of the host list are too long, written out");
    return 0;
}

int hostlist_expand(struct str text, struct arena *arena, size_t most, struct hostlist *ret,
                    struct err *err)
{
    struct reader reader = { text.p, err };
    struct measure measure;
    struct hostlist list = { 0 };
    struct wheel *wheels;
    struct str *host, item;
    char *to;
    int r;

    r = measure_list(&reader, text, &measure);
    if (r == 0)
        r = check_size(&measure, text.n, most, err);
    if (r < 0)
        return r;
    list.n = (size_t)measure.hosts;
    list.hosts = host = ARENA_ARRAY(arena, struct str, list.n);
    to = arena_alloc(arena, (size_t)measure.bytes);
    wheels = heap_array(measure.brackets + 1, sizeof(*wheels));
    for (take_item(&reader, &text, &item); item.n; take_item(&reader, &text, &item))
        to = expand_item(item, wheels, to, &host);
    free(wheels);
    *ret = list;
    return 0;
}

/* Names that differ only in their last number. */
struct family {
    struct str prefix, suffix;
    bool has_number;
    struct str least; /* the name that sorts first, and its number */
    uint64_t least_number;
};

struct member {
    uint64_t number;
    uint32_t family;
    uint32_t width; /* digits, leading zeros included */
};

static void split_name(struct str name, struct family *ret_family, struct member *ret_member)
{
    size_t end = name.n, begin;

    while (end && !is_digit(name.p[end - 1]))
        end--;
    begin = end;
    while (begin && is_digit(name.p[begin - 1]))
        begin--;
    *ret_family = (struct family){ .prefix = name, .suffix = STR(""), .least = name };
    *ret_member = (struct member){ 0 };
    if (read_number(str_span(name.p + begin, name.p + end), &ret_member->number)) {
        ret_family->prefix = str_head(name, begin);
        ret_family->suffix = str_skip(name, end);
        ret_family->has_number = true;
        ret_family->least_number = ret_member->number;
        ret_member->width = (uint32_t)(end - begin);
    }
}

static bool is_same_family(const struct family *a, const struct family *b)
{
    return a->has_number == b->has_number && str_eq(a->prefix, b->prefix) &&
           str_eq(a->suffix, b->suffix);
}

static size_t digits_at(struct str s, size_t at)
{
    size_t n = 0;

    while (at + n < s.n && is_digit(s.p[at + n]))
        n++;
    return n;
}

/* Digits by their value, whatever their length: n2 before n10. */
static int compare_naturally(struct str a, struct str b)
{
    while (a.n && b.n) {
        size_t a_digits = digits_at(a, 0), b_digits = digits_at(b, 0);
        size_t a_zeros = 0, b_zeros = 0;
        int order;

        if (!a_digits || !b_digits) {
            if (a.p[0] != b.p[0])
                return (unsigned char)a.p[0] < (unsigned char)b.p[0] ? -1 : 1;
            a = str_skip(a, 1);
            b = str_skip(b, 1);
            continue;
        }
        while (a_zeros + 1 < a_digits && a.p[a_zeros] == '0')
            a_zeros++;
        while (b_zeros + 1 < b_digits && b.p[b_zeros] == '0')
            b_zeros++;
        if (a_digits - a_zeros != b_digits - b_zeros)
            return a_digits - a_zeros < b_digits - b_zeros ? -1 : 1;
        order = memcmp(a.p + a_zeros, b.p + b_zeros, a_digits - a_zeros);
        if (!order)
            order = (a_zeros > b_zeros) - (a_zeros < b_zeros);
        if (order)
            return order;
        a = str_skip(a, a_digits);
        b = str_skip(b, b_digits);
    }
    return (a.n > 0) - (b.n > 0);
}

static int compare_families(const void *left, const void *right)
{
    const struct family *const *a = left, *const *b = right;

    return compare_naturally((*a)->least, (*b)->least);
}

static int compare_members(const void *left, const void *right)
{
    const struct member *a = left, *b = right;

    if (a->family != b->family)
        return a->family < b->family ? -1 : 1;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return (a->width > b->width) - (a->width < b->width);
}

struct families {
    struct family *family;
    size_t n, cap;
    struct arena arena;
    struct map map; /* its entry for a family's key has the family's index */
    struct buf key;
};

/* Two families must not share a key, whatever bytes they are made of: so the length of the prefix
 * is part of it. */
static struct str family_key(struct buf *key, const struct family *family)
{
    uint64_t length = family->has_number ? family->prefix.n : UINT64_MAX;

    buf_reset(key);
    buf_put(key, (struct str){ (const char *)&length, sizeof(length) });
    buf_put(key, family->prefix);
    buf_put(key, family->suffix);
    return buf_str(key);
}

static void add_family(struct families *families, const struct family *family)
{
    if (families->n == families->cap) {
        families->cap = families->cap ? families->cap * 2 : 16;
        families->family = heap_resize(families->family, families->cap, sizeof(*families->family));
    }
    families->family[families->n++] = *family;
}

/* The index of the family that a name was found to be of; it is added if it is new. `likely` is
 * where to look first: lists come sorted, or nearly. */
static uint32_t join_family(struct families *families, const struct family *found, uint32_t likely)
{
    size_t index = likely;
    struct family *family;

    if (!families->n || !is_same_family(&families->family[likely], found))
        index = map_index(&families->map, family_key(&families->key, found));
    if (index == families->n)
        add_family(families, found);
    family = &families->family[index];
    if (found->least_number < family->least_number ||
        (found->least_number == family->least_number && found->least.n < family->least.n)) {
        family->least_number = found->least_number;
        family->least = found->least;
    }
    return (uint32_t)index;
}

/* Puts the families in order, and tells each member its family's new place. */
static void sort_families(struct families *families, struct member *members, size_t n)
{
    struct family *sorted = heap_array(families->n, sizeof(*sorted));
    struct family **order = heap_array(families->n, sizeof(struct family *));
    uint32_t *rank = heap_array(families->n, sizeof(*rank));

    for (size_t i = 0; i < families->n; i++)
        order[i] = &families->family[i];
    qsort(order, families->n, sizeof(struct family *), compare_families);
    for (size_t i = 0; i < families->n; i++) {
        sorted[i] = *order[i];
        rank[order[i] - families->family] = (uint32_t)i;
    }
    for (size_t i = 0; i < n; i++)
        members[i].family = rank[members[i].family];
    free(rank);
    free(order);
    free(families->family);
    families->family = sorted;
}

static void sort_members(struct member *members, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (compare_members(&members[i - 1], &members[i]) > 0) {
            qsort(members, n, sizeof(*members), compare_members);
            return;
        }
    }
}

/* Numbers that follow each other and can be written "first-last". */
struct run {
    uint64_t first, last;
    size_t width;   /* digits of the first; the others have as many, or as many as they need */
    size_t padding; /* runs of one padding share a pair of brackets; 0 = no leading zeros */
};

struct runs {
    struct run *run;
    size_t n, cap;
    /* Those that the next number may continue: one a width, for this number and the one before. */
    size_t open[2 * LONGEST_NUMBER + 1], n_open;
};

static void start_run(struct runs *runs, const struct member *member)
{
    bool is_padded = member->width > length_of(member->number);

    if (runs->n == runs->cap) {
        runs->cap = runs->cap ? runs->cap * 2 : 16;
        runs->run = heap_resize(runs->run, runs->cap, sizeof(*runs->run));
    }
    runs->run[runs->n] = (struct run){ member->number, member->number, member->width,
                                       is_padded ? member->width : 0 };
    runs->open[runs->n_open++] = runs->n++;
}

/* The run that the member continues, the widest if there are two ("09" and "9" both lead to "10"),
 * or NULL. */
static struct run *find_run(struct runs *runs, const struct member *member)
{
    size_t needed = length_of(member->number), still_open = 0;
    struct run *best = NULL;

    for (size_t i = 0; i < runs->n_open; i++) {
        struct run *run = &runs->run[runs->open[i]];
        size_t width = run->width > needed ? run->width : needed;

        if (member->number - run->last > 1)
            continue;
        runs->open[still_open++] = runs->open[i];
        if (run->last != member->number && width == member->width &&
            (!best || run->width > best->width))
            best = run;
    }
    runs->n_open = still_open;
    return best;
}

static void fold(struct runs *runs, const struct member *members, size_t n)
{
    runs->n = runs->n_open = 0;
    for (size_t i = 0; i < n; i++) {
        struct run *run;

        if (i && compare_members(&members[i - 1], &members[i]) == 0)
            continue;
        run = find_run(runs, &members[i]);
        if (run)
            run->last = members[i].number;
        else
            start_run(runs, &members[i]);
    }
}

/* "12" may stand in brackets with "08-09" as well as with "8-9": it goes with the padded ones if
 * there are any, as in Slurm. Returns the paddings in use, a bit each. */
static uint32_t settle_paddings(struct runs *runs)
{
    uint32_t padded = 0, used = 0;

    for (size_t i = 0; i < runs->n; i++)
        padded |= UINT32_C(1) << runs->run[i].padding;
    for (size_t i = 0; i < runs->n; i++) {
        struct run *run = &runs->run[i];

        for (size_t width = run->width; width && !run->padding; width--)
            if (padded & UINT32_C(1) << width)
                run->padding = width;
        used |= UINT32_C(1) << run->padding;
    }
    return used;
}

static void put_number(struct buf *out, uint64_t number, size_t width)
{
    char digits[LONGEST_NUMBER];

    buf_put(out, str_span(digits, put_padded(digits, number, width)));
}

static void put_runs(struct buf *out, const struct family *family, const struct runs *runs,
                     size_t padding)
{
    const struct run *only = NULL;
    size_t n = 0;

    for (size_t i = 0; i < runs->n; i++)
        if (runs->run[i].padding == padding && n++ == 0)
            only = &runs->run[i];
    buf_put(out, family->prefix);
    if (n == 1 && only->first == only->last) {
        put_number(out, only->first, only->width);
        buf_put(out, family->suffix);
        return;
    }
    for (size_t i = 0, written = 0; i < runs->n; i++) {
        const struct run *run = &runs->run[i];

        if (run->padding != padding)
            continue;
        buf_byte(out, written++ ? ',' : '[');
        put_number(out, run->first, run->width);
        if (run->last > run->first) {
            buf_byte(out, '-');
            put_number(out, run->last, run->width);
        }
    }
    buf_byte(out, ']');
    buf_put(out, family->suffix);
}

static void put_family(struct buf *out, const struct family *family, struct runs *runs,
                       const struct member *members, size_t n)
{
    uint32_t paddings;

    if (!family->has_number) {
        buf_put(out, family->prefix);
        return;
    }
    fold(runs, members, n);
    paddings = settle_paddings(runs);
    for (size_t padding = 0, written = 0; padding <= LONGEST_NUMBER; padding++) {
        if (!(paddings & UINT32_C(1) << padding))
            continue;
        if (written++)
            buf_byte(out, ',');
        put_runs(out, family, runs, padding);
    }
}

void hostlist_compress(const struct hostlist *list, struct buf *out)
{
    struct member *members = heap_array(list->n, sizeof(*members));
    struct families families = { 0 };
    struct runs runs = { 0 };
    uint32_t likely = 0;

    map_init(&families.map, &families.arena);
    buf_init(&families.key, SIZE_MAX - 1);
    for (size_t i = 0; i < list->n; i++) {
        struct family family;

        split_name(list->hosts[i], &family, &members[i]);
        likely = members[i].family = join_family(&families, &family, likely);
    }
    sort_families(&families, members, list->n);
    sort_members(members, list->n);
    for (size_t from = 0, to; from < list->n; from = to) {
        for (to = from + 1; to < list->n && members[to].family == members[from].family; to++)
            continue;
        if (from)
            buf_byte(out, ',');
        put_family(out, &families.family[members[from].family], &runs, members + from, to - from);
    }
    free(runs.run);
    buf_free(&families.key);
    map_free(&families.map);
    arena_clear(&families.arena);
    free(families.family);
    free(members);
}
