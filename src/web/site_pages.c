/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All pages, a row for each, in the order of the navigation. */
#include "web/cluster_pages.h"
#include "web/job_pages.h"
#include "web/site_inside.h"

/* clang-format off */
const struct site_page *const site_pages[] = {
    &site_search,
    &show_overview,
    &show_jobs,
    &show_job,
    &show_array,
    &show_user,
    &show_account,
    &show_plot,
    &show_pie,
    &show_series,
    &show_report,
    &show_pdf,
    &show_mail,
    &show_usage,
    &show_petricore_user,
    &show_nodes,
    &show_node,
    &show_partitions,
    &show_reservations,
    &show_clusters,
    &show_allocations,
    &show_health,
    &show_trend_chart,
    &show_trend_data,
    NULL,
};
/* clang-format on */
