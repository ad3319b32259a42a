/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses format and encoding from the headers of a request. */
#include "http/negotiate.h"

#include "base/clock.h"
#include "base/num.h"

/* One member of an Accept header: its name, and its weight from q=, which is 1 unless told. */
static struct str take_member(struct str *rest, double *ret_weight)
{
    struct str parameters = str_cut(rest, ',');
    struct str name = str_trim(str_cut(&parameters, ';'));

    *ret_weight = 1;
    while (parameters.p) {
        struct str parameter = str_trim(str_cut(&parameters, ';'));

        if (str_starts(parameter, STR("q=")) &&
            !(num_get_double(str_skip(parameter, 2), ret_weight) && *ret_weight <= 1))
            *ret_weight = 0;
    }
    return name;
}

enum metric_format negotiate_format(struct str accept)
{
    double text = 0, openmetrics = 0, weight;

    for (struct str rest = accept; rest.p;) {
        struct str name = take_member(&rest, &weight);

        if (str_eq_nocase(name, STR("application/openmetrics-text"))) {
            if (weight > openmetrics)
                openmetrics = weight;
        } else if (str_eq_nocase(name, STR("text/plain")) || str_eq(name, STR("text/*")) ||
                   str_eq(name, STR("*/*"))) {
            if (weight > text)
                text = weight;
        }
    }
    return openmetrics > text ? METRIC_OPENMETRICS : METRIC_TEXT;
}

bool negotiate_gzip(struct str accept_encoding)
{
    double weight;

    for (struct str rest = accept_encoding; rest.p;) {
        struct str name = take_member(&rest, &weight);

        if (str_eq_nocase(name, STR("gzip")))
            return weight > 0;
    }
    return false;
}

int64_t negotiate_patience_ns(struct str timeout_header, int64_t otherwise_ns)
{
    double seconds, margin;

    if (!num_get_double(timeout_header, &seconds) || !(seconds > 0 && seconds < 3600))
        return otherwise_ns;
    /* A tenth, but a quarter of a second at most: sending even 100 MB on a LAN takes no longer. */
    margin = seconds / 10 < 0.25 ? seconds / 10 : 0.25;
    return (int64_t)((seconds - margin) * NS_PER_SEC);
}
