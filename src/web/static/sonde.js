// SPDX-License-Identifier: GPL-2.0-or-later
// What makes the pages nicer: each of them is complete without it. Data never becomes markup: what
// is replaced is parsed from a page of our own, anything else is set as text.
"use strict";

(() => {
  const here = document.currentScript.dataset;
  const LIVE_MS = 15000, MOST_LIVE_MS = 120000, ANSWER_MS = 20000, TYPE_MS = 200;
  const IMAGE_MS = 60000, MOST_CHART_MS = 600000, CHART_POINTS_MAX = 20000;

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

  async function ask(address, type) {
    const answer = await fetch(address, { headers: { Accept: type }, signal: AbortSignal.timeout(ANSWER_MS) });
    if (!answer.ok) throw new Error(answer.status);
    return answer;
  }

  async function fetchSeries(address) {
    const data = await (await ask(address, "application/json")).json();
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

  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  // As the server's images have them: src/report/chart.c.
  const PALETTE = ["ink", "blue", "red", "green", "purple", "amber", "teal", "grey", "olive"];

  // A limit is dashed; other lines need not be, where there is colour.
  function looks(data) {
    const series = {};
    data.colours.forEach((colour, i) => {
      series[data.labels[i + 1]] = { strokePattern: colour ? null : [4, 3], strokeWidth: colour ? 1.5 : 1 };
    });
    return {
      series, colors: data.colours.map((colour) => variable(PALETTE[colour] ?? "ink")),
      axisLineColor: variable("grey"), gridLineColor: variable("line"),
    };
  }

  const decimals = (value) => value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) < 1 ? 2 : Math.abs(value) < 100 ? 1 : 0 });

  function bytes(value) {
    const rung = Math.min(6, Math.max(0, Math.floor(Math.log2(Math.abs(value) || 1) / 10)));
    return `${decimals(value / 1024 ** rung)} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][rung]}`;
  }

  const AMOUNTS = {
    bytes, "bytes/s": (value) => bytes(value) + "/s", ratio: (value) => `${decimals(100 * value)} %`,
    watts: (value) => `${decimals(value)} W`, seconds: (value) => `${decimals(value)} s`,
  };

  function options(data) {
    const put = AMOUNTS[data.unit] ?? decimals;
    return {
      ...looks(data), labels: data.labels, legend: "follow", legendFormatter: valuesAt, includeZero: true,
      labelsKMG2: /^bytes/.test(data.unit),
      axes: { y: { axisLabelFormatter: put, valueFormatter: put, axisLabelWidth: 64 } },
    };
  }

  function putKey(figure) {
    const { labels, colours } = figure.data;
    figure.querySelector(".legend").replaceChildren(...colours.map((colour, i) =>
      element("li", "", [swatch(variable(PALETTE[colour] ?? "ink")), labels[i + 1]])));
  }

  // When it can have a point that it has not.
  function plan(figure, data) {
    const [first, second] = data?.points ?? [], step = second ? second[0] - first[0] : IMAGE_MS;
    figure.every = Math.min(MOST_CHART_MS, Math.max(LIVE_MS, step));
    figure.due = performance.now() + figure.every;
  }

  // The image keeps its place, and with it what a screen reader says.
  async function draw(figure) {
    const image = figure.querySelector("img");
    const drawn = element("div", ""), place = element("div", ""), key = element("ul", "");
    plan(figure);
    if (!image.dataset.series) return;
    try {
      const [Dygraph, data] = await Promise.all([loadDygraphs(), fetchSeries(image.dataset.series)]);
      key.className = "legend";
      drawn.className = "drawn";
      drawn.setAttribute("aria-hidden", "true");
      drawn.title = "Drag to zoom, double-click to see all";
      drawn.append(element("p", image.alt), key, place);
      figure.append(drawn);
      figure.data = data;
      putKey(figure);
      figure.graph = new Dygraph(place, data.points, options(data));
      figure.graph.resize();
      plan(figure, data);
      image.classList.add("unseen");
    } catch {
      drawn.remove();
      delete figure.graph;
    }
  }

  // Where one has zoomed in and what one points at stay.
  function redraw(figure, data) {
    const graph = figure.graph, row = graph.getSelection(), at = row >= 0 ? graph.getValue(row, 0) : null;
    figure.data = data;
    graph.updateOptions({ ...options(data), file: data.points });
    putKey(figure);
    const same = at === null ? -1 : data.points.findIndex((point) => +point[0] === at);
    if (same >= 0) graph.setSelection(same);
  }

  function stamped(address) {
    const url = new URL(address, location.href);
    url.searchParams.set("at", Math.floor(Date.now() / 1000));
    return url.pathname + url.search;
  }

  function stamp(figure) {
    for (const part of all("source", figure)) part.srcset = stamped(part.srcset);
    for (const part of all("img", figure)) part.src = stamped(part.src);
  }

  // The old image stands until the new one is there.
  async function renewImage(figure) {
    const fresh = new Image();
    fresh.src = stamped(figure.querySelector("img").currentSrc);
    await fresh.decode();
    stamp(figure);
  }

  async function renew(figure) {
    const image = figure.querySelector("img");
    figure.due = Infinity; // until it is known
    try {
      if (!figure.graph) {
        await renewImage(figure);
        plan(figure);
        return;
      }
      const data = await fetchSeries(image.dataset.series);
      if (!figure.matches(":active")) redraw(figure, data); // a zoom is being drawn
      figure.isNewer = true;
      plan(figure, data);
    } catch { // it shows what was there, and is asked for less often
      figure.every = Math.min(MOST_CHART_MS, 2 * figure.every);
      figure.due = performance.now() + figure.every;
    }
  }

  const isDue = (figure) => figure.isSeen && "goesOn" in figure.dataset && figure.due <= performance.now();

  // Those on the screen, one after the other.
  async function renewCharts() {
    for (const figure of all("figure.chart").filter(isDue)) await renew(figure);
  }

  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      target.isSeen = isIntersecting;
      if (isIntersecting && target.due === undefined) draw(target);
      else if (!isPaused && isDue(target)) renew(target);
    }
  }, { rootMargin: "200px" });

  // Paper has the server's image: lines, not dots, and colours for white.
  addEventListener("beforeprint", () => {
    for (const figure of all("figure.chart").filter((figure) => figure.isNewer)) {
      figure.isNewer = false;
      stamp(figure);
    }
  });

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const figure of all("figure.chart").filter((figure) => figure.graph)) {
      figure.graph.updateOptions(looks(figure.data));
      putKey(figure);
    }
  });

  // ---- what changes while one looks ----

  const raw = new WeakMap(); // as the server wrote it

  function prepare(root) {
    localiseTimes(root);
    all("table[data-whole]", root).forEach(makeSortable);
    all("figure.chart", root).forEach((figure) => seen.observe(figure));
  }

  // What has the focus has it afterwards too, and boxes stay scrolled.
  function placeIn(old) {
    const at = old.contains(document.activeElement) ? document.activeElement : null;
    const number = at ? all(at.localName, old).indexOf(at) : -1;
    const boxes = all(".wide", old).map((box) => box.scrollLeft);
    return (added) => {
      const alike = at ? all(at.localName, added) : [];
      all(".wide", added).forEach((box, i) => { box.scrollLeft = boxes[i] ?? 0; });
      (alike.find((other) => at.href && other.href === at.href) ?? alike[number])?.focus({ preventScroll: true });
    };
  }

  function replace(old, fresh) {
    const text = fresh.outerHTML;
    if (raw.get(old) === text || old.contains(document.activeElement?.closest("input, select, textarea") ?? null)) return;
    const sorted = sortedBy(old), added = document.importNode(fresh, true), putPlace = placeIn(old);
    raw.set(added, text);
    prepare(added);
    all("table[data-whole]", added).forEach((table, i) => {
      if (sorted[i]?.column >= 0) sortRows(table, sorted[i].column, sorted[i].way);
    });
    old.replaceWith(added);
    putPlace(added);
  }

  async function refresh(address) {
    const page = new DOMParser().parseFromString(await (await ask(address, "text/html")).text(), "text/html");
    for (const old of all("[data-live][id]")) {
      const fresh = page.getElementById(old.id);
      if (fresh) replace(old, fresh);
    }
  }

  // One look at a time, none while the page is hidden or paused, and fewer while the server is away.
  const status = element("p", ""), said = element("span", ""), pause = element("button", "");
  let wait = LIVE_MS, due = performance.now() + wait, timer, isLooking = false;
  let isPaused = matchMedia("(prefers-reduced-motion: reduce)").matches;

  function wake() {
    clearTimeout(timer);
    if (!isPaused && !isLooking && document.visibilityState === "visible")
      timer = setTimeout(look, Math.max(0, due - performance.now()));
  }

  async function look() {
    isLooking = true;
    try {
      if (document.getSelection().isCollapsed) await refresh(location.href);
      wait = LIVE_MS;
      say("");
      await renewCharts();
    } catch {
      wait = Math.min(2 * wait, MOST_LIVE_MS);
      say(`No answer: asking again in ${Math.round(wait / 1000)} s. `);
    }
    isLooking = false;
    due = performance.now() + wait;
    wake();
  }

  function say(text) {
    if (said.textContent !== text) said.textContent = text;
    pause.textContent = isPaused ? "Resume updates" : "Pause updates";
  }

  function live() {
    const parts = all("[data-live][id]");
    if (!parts.length) return;
    for (const part of parts) raw.set(part, part.outerHTML);
    pause.type = "button";
    said.setAttribute("role", "status");
    status.append(said, pause);
    document.querySelector("footer")?.firstElementChild?.after(status);
    pause.addEventListener("click", () => {
      isPaused = !isPaused;
      due = performance.now();
      say("");
      wake();
    });
    document.addEventListener("visibilitychange", wake);
    say("");
    wake();
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

    async function find() {
      const text = input.value.trim(), number = ++asked;
      if (text.length < 2) return list.replaceChildren();
      try {
        const answer = await ask("/api/v1/search?limit=10&q=" + encodeURIComponent(text), "application/json");
        const found = (await answer.json()).results;
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
      else timer = setTimeout(find, TYPE_MS);
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
