// SPDX-License-Identifier: GPL-2.0-or-later
// What makes the pages nicer: each of them is complete without it. Data never becomes markup: what
// is replaced is parsed from a page of our own, anything else is set as text.
"use strict";

(() => {
  const here = document.currentScript.dataset;
  const LIVE_MS = 15000, MOST_LIVE_MS = 120000, TYPE_MS = 200, CHART_POINTS_MAX = 20000;

  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const two = (number) => String(number).padStart(2, "0");

  // ---- times in the reader's zone ----

  function words(date) {
    return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
      `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  }

  function localiseTimes(root) {
    for (const time of all("time[datetime]", root)) {
      const date = new Date(time.dateTime);
      if (isNaN(date)) continue;
      time.title = time.dateTime;
      time.textContent = words(date);
    }
  }

  // ---- tables that show all their rows: sorted here ----

  function keyOf(row, column) {
    const cell = row.cells[column];
    const data = cell?.querySelector("[data-value]"), time = cell?.querySelector("time[datetime]");
    if (data) return Number(data.dataset.value);
    if (time) return Date.parse(time.dateTime);
    const text = cell ? cell.textContent.trim() : "";
    return text === "–" || text === "" ? null : text;
  }

  // What is unknown comes last, whichever way.
  function compare(a, b, way) {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return (a - b) * way;
    return String(a).localeCompare(String(b), undefined, { numeric: true }) * way;
  }

  function sortRows(table, column, way) {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [keyOf(row, column), row]);
    rows.sort((a, b) => compare(a[0], b[0], way));
    body.append(...rows.map((pair) => pair[1]));
    all("thead th", table).forEach((heading, i) => {
      if (i === column) heading.setAttribute("aria-sort", way < 0 ? "descending" : "ascending");
      else heading.removeAttribute("aria-sort");
    });
  }

  function makeSortable(table) {
    if (!table.tBodies[0] || table.tBodies[0].rows.length < 2) return;
    all("thead th", table).forEach((heading, i) => {
      if (!heading.textContent.trim()) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const is = heading.getAttribute("aria-sort");
        const first = heading.classList.contains("number") ? -1 : 1;
        sortRows(table, i, is === "ascending" ? -1 : is === "descending" ? 1 : first);
      });
    });
  }

  function sortedBy(root) {
    return all("table[data-whole]", root).map((table) => {
      const headings = all("thead th", table);
      const column = headings.findIndex((heading) => heading.hasAttribute("aria-sort"));
      return { column, way: column >= 0 && headings[column].getAttribute("aria-sort") === "descending" ? -1 : 1 };
    });
  }

  // ---- charts ----

  let dygraphs; // a promise, once

  function loadDygraphs() {
    dygraphs ??= new Promise((resolve, reject) => {
      if (!here.dygraphScript) return reject(new Error("not built in"));
      const style = document.createElement("link"), script = document.createElement("script");
      style.rel = "stylesheet";
      style.href = here.dygraphStyle;
      script.src = here.dygraphScript;
      script.onload = () => resolve(window.Dygraph);
      script.onerror = reject;
      document.head.append(style, script);
    });
    return dygraphs;
  }

  async function fetchSeries(address) {
    const answer = await fetch(address, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(answer.status);
    const data = await answer.json();
    if (!data.points.length || data.points.length > CHART_POINTS_MAX) throw new Error("nothing to draw");
    data.points = data.points.map((point) => [new Date(point[0] * 1000), ...point.slice(1)]);
    return data;
  }

  // Dygraphs takes text for markup in titles and legends, but not in nodes that it is given.
  function element(name, text, parts = []) {
    const made = document.createElement(name);
    made.textContent = text;
    made.append(...parts);
    return made;
  }

  function swatch(colour) {
    const made = element("i", "");
    made.style.setProperty("--colour", colour);
    return made;
  }

  function valuesAt(data) {
    const parts = document.createDocumentFragment();
    if (data.x === undefined) return parts;
    parts.append(element("div", words(new Date(data.x))));
    for (const series of data.series)
      if (series.isVisible && series.yHTML !== undefined)
        parts.append(element("div", "", [swatch(series.color), `${series.label}: ${series.yHTML}`]));
    return parts;
  }

  const variable = (name, of = document.documentElement) => getComputedStyle(of).getPropertyValue("--" + name).trim();

  // A state has its own colour; where two have the same, and for other words, one that is left.
  function coloursOf(names) {
    const probe = document.body.appendChild(element("i", "")), taken = new Set();
    const left = ["blue", "amber", "green", "purple", "teal", "red", "grey", "ink", "faint", "link"].map((n) => variable(n));
    const own = names.map((name) => {
      probe.className = /^\w+$/.test(name) ? name.toLowerCase() : "";
      const colour = variable("colour", probe);
      return colour && !taken.has(colour) && taken.add(colour) ? colour : null;
    });
    probe.remove();
    return own.map((colour) => {
      const next = colour ?? left.find((other) => !taken.has(other)) ?? left[0];
      taken.add(next);
      return next;
    });
  }

  function options(data) {
    return {
      labels: data.labels, legend: "follow", legendFormatter: valuesAt, includeZero: true, strokeWidth: 1.5,
      colors: coloursOf(data.labels.slice(1)), axisLineColor: variable("grey"), gridLineColor: variable("line"),
      labelsKMB: data.unit !== "bytes", labelsKMG2: data.unit === "bytes",
    };
  }

  // The image keeps its place, and with it what a screen reader says.
  async function draw(figure) {
    const image = figure.querySelector("img[data-series]");
    const drawn = element("div", ""), place = element("div", ""), key = element("ul", "");
    try {
      const [Dygraph, data] = await Promise.all([loadDygraphs(), fetchSeries(image.dataset.series)]);
      key.className = "legend";
      drawn.className = "drawn";
      drawn.setAttribute("aria-hidden", "true");
      drawn.title = "Drag to zoom, double-click to see all";
      drawn.append(element("p", image.alt), key, place);
      figure.append(drawn);
      figure.graph = new Dygraph(place, data.points, options(data));
      key.append(...figure.graph.getColors().map((colour, i) =>
        element("li", "", [swatch(colour), data.labels[i + 1]])));
      figure.graph.resize();
      image.className = "unseen";
    } catch {
      drawn.remove();
      delete figure.graph;
    }
  }

  async function renew(figure) {
    try {
      const data = await fetchSeries(figure.querySelector("img").dataset.series);
      if (!figure.graph.isZoomed()) figure.graph.updateOptions({ file: data.points, labels: data.labels });
    } catch { /* it shows what was there */ }
  }

  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries)
      if (entry.isIntersecting) {
        seen.unobserve(entry.target);
        draw(entry.target);
      }
  }, { rootMargin: "200px" });

  // ---- what changes while one looks ----

  const raw = new WeakMap(); // as the server wrote it

  function prepare(root) {
    localiseTimes(root);
    all("table[data-whole]", root).forEach(makeSortable);
    for (const image of all("figure.chart img[data-series]", root))
      if (!image.parentElement.graph) seen.observe(image.parentElement);
  }

  // A chart that is drawn already is kept, and gets the new numbers.
  function keepCharts(old, fresh) {
    const figures = all("figure.chart", old).filter((figure) => figure.graph);
    for (const figure of figures) {
      const series = figure.querySelector("img").dataset.series;
      const same = all("figure.chart", fresh).find((f) => f.querySelector("img")?.dataset.series === series);
      if (!same) continue;
      same.replaceWith(figure);
      renew(figure);
    }
  }

  function replace(old, fresh) {
    const text = fresh.outerHTML;
    const has = (node) => node && old.contains(node);
    if (raw.get(old) === text || has(document.activeElement?.closest("input, select, textarea"))) {
      all("figure.chart", old).forEach((figure) => figure.graph && renew(figure));
      return;
    }
    const sorted = sortedBy(old), added = document.importNode(fresh, true);
    raw.set(added, text);
    keepCharts(old, added);
    prepare(added);
    all("table[data-whole]", added).forEach((table, i) => {
      if (sorted[i]?.column >= 0) sortRows(table, sorted[i].column, sorted[i].way);
    });
    old.replaceWith(added);
  }

  async function refresh(address) {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const old of all("[data-live][id]")) {
      const fresh = page.getElementById(old.id);
      if (fresh) replace(old, fresh);
    }
  }

  let wait = LIVE_MS, timer;

  async function tick() {
    if (document.visibilityState === "visible" && document.getSelection().isCollapsed)
      try {
        await refresh(location.href);
        wait = LIVE_MS;
      } catch {
        wait = Math.min(2 * wait, MOST_LIVE_MS);
      }
    timer = setTimeout(tick, wait);
  }

  function live() {
    const parts = all("[data-live][id]");
    if (!parts.length) return;
    for (const part of parts) raw.set(part, part.outerHTML);
    timer = setTimeout(tick, wait);
    document.addEventListener("visibilitychange", () => {
      clearTimeout(timer);
      if (document.visibilityState === "visible") tick();
    });
  }

  // Columns that the server sorts: without leaving the page, where that part of it can be replaced.
  function sortInPlace() {
    document.addEventListener("click", async (event) => {
      const link = event.target.closest("[data-live][id] thead th a");
      if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      try {
        await refresh(link.href);
        history.pushState(null, "", link.href);
      } catch {
        location.assign(link.href);
      }
    });
    addEventListener("popstate", () => refresh(location.href).catch(() => location.reload()));
  }

  // ---- search ----

  function typeAhead() {
    const input = document.querySelector(".search input[name=q]"), list = document.getElementById("found");
    let timer, paths = new Map(), asked = 0;
    if (!input || !list) return;

    async function ask() {
      const text = input.value.trim(), number = ++asked;
      if (text.length < 2) return list.replaceChildren();
      try {
        const answer = await fetch("/api/v1/search?limit=10&q=" + encodeURIComponent(text));
        const found = answer.ok ? (await answer.json()).results : [];
        if (number !== asked) return;
        paths = new Map(found.map((row) => [row.name, row.path]));
        list.replaceChildren(...found.map((row) => {
          const option = document.createElement("option");
          option.value = row.name;
          option.label = `${row.name} (${row.kind})`;
          return option;
        }));
      } catch { /* the form still works */ }
    }

    input.addEventListener("input", (event) => {
      const path = paths.get(input.value);
      const isChosen = !event.inputType || event.inputType === "insertReplacementText";
      clearTimeout(timer);
      if (isChosen && /^\/[^/]/.test(path ?? "")) location.assign(path);
      else timer = setTimeout(ask, TYPE_MS);
    });
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey ||
          event.target.closest("input, select, textarea")) return;
      event.preventDefault();
      input.focus();
    });
  }

  function chooseCluster() {
    const form = document.querySelector("form.cluster");
    form?.querySelector("button")?.remove();
    form?.addEventListener("change", () => form.requestSubmit());
  }

  live();
  prepare(document);
  sortInPlace();
  typeAhead();
  chooseCluster();
})();
