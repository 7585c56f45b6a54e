// Tokens on colours, bars and tables: for the page of the service and for the report of a run.
// Everything enters as text, never as HTML.
"use strict";

const SURPRISED = 8; // nats at which a token is as strongly coloured as can be

const MEASURES = {
  surprise: { name: "surprise", unit: "nats", of: (t) => -Math.log(Math.max(t.p, 1e-300)), most: () => SURPRISED },
  p: { name: "probability", unit: "", of: (t) => t.p, most: () => 1 },
  entropy: { name: "entropy", unit: "nats", of: (t) => t.entropy, most: (all) => Math.max(1, ...all) },
  mutual_information: { name: "disagreement", unit: "nats", of: (t) => t.mutual_information,
    most: (all) => Math.max(1e-3, ...all) },
};

function make(name, text = "", attributes = {}, ...children) {
  const node = document.createElement(name);
  if (text !== "") node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

const short = (x, digits = 3) =>
  (x !== 0 && Math.abs(x) < 1e-3 ? x.toExponential(1) : Number(x.toPrecision(digits)).toString());
const quoted = (text) => `“${text}”`;

/** One bar a row: {label, value, text, spread, dots, kind}, all lengths as shares of `most`. */
function bars(rows, most = Math.max(1e-12, ...rows.map((row) => row.value))) {
  const grid = make("div", "", { class: "bars" });
  const share = (x) => Math.min(1, Math.max(0, x / most)).toFixed(4);
  for (const { label, value, text, spread, dots = [], kind = "" } of rows) {
    const bar = make("div", "", { class: "bar" });
    bar.style.setProperty("--width", share(value));
    const track = make("div", "", { class: `track ${kind}`, "aria-hidden": "true" }, bar);
    for (const at of dots) {
      const dot = make("div", "", { class: "dot" });
      dot.style.setProperty("--at", share(at));
      track.append(dot);
    }
    if (spread) {
      const line = make("div", "", { class: "spread" });
      line.style.setProperty("--from", share(value - spread));
      line.style.setProperty("--to", share(value + spread));
      track.append(line);
    }
    grid.append(make("span", label, { class: kind, title: label }), track, make("span", text, { class: kind }));
  }
  return grid;
}

/** Rows of strings or nodes under their headings. */
function tableOf(caption, columns, rows) {
  const cell = (name, content, attributes = {}) => (typeof content === "string"
    ? make(name, content, attributes) : make(name, "", attributes, content));
  const head = make("tr", "", {}, ...columns.map((title) => cell("th", title, { scope: "col" })));
  const body = rows.map(({ cells, kind = null }) =>
    make("tr", "", { class: kind }, ...cells.map((content) => cell("td", content))));
  return make("div", "", { class: "wide" }, make("table", "", { class: "words" },
    make("caption", caption), make("thead", "", {}, head), make("tbody", "", {}, ...body)));
}

/** Some choices of which one holds. */
function choice(legend, name, options, chosen, changed) {
  const field = make("fieldset", "", { class: "switch" }, make("legend", legend));
  for (const [value, label] of Object.entries(options)) {
    const input = make("input", "", { type: "radio", name, value });
    input.checked = value === chosen;
    input.addEventListener("change", () => changed(value));
    field.append(make("label", "", {}, input, label));
  }
  return field;
}

const named = (token) => token.word ?? token.token;

/** What a token is, with one bar for each part: the third figure of the paper, alive. */
function tokenDetail(token, labels, samples) {
  const facts = make("dl", "", { class: "facts" });
  const pairs = [["probability", `${short(token.p)} ± ${short(token.std, 2)}`],
    ["surprise, nats", short(MEASURES.surprise.of(token))], ["entropy, nats", short(token.entropy)],
    ["disagreement, nats", short(token.mutual_information)]];
  for (const [name, value] of pairs) facts.append(make("div", "", {}, make("dt", name), make("dd", value)));
  const rows = [{ label: samples < token.parts.length ? "pool" : "average", value: token.p, spread: token.std,
    text: short(token.p), kind: "first" }];
  token.parts.forEach((p, at) => rows.push({ label: labels[at] ?? `part ${at + 1}`, value: p, text: short(p),
    kind: at < samples ? "" : "other" }));
  const unknown = token.word ? ", a word it does not know" : "";
  return [make("h3", `${quoted(named(token))}${unknown}`), facts, bars(rows)];
}

/**
 * A text whose tokens are coloured, and explained when one points at them or walks over them.
 * `more` adds to the detail of a token, later if it must.
 */
function tokenReader(scored, { level, by = "surprise", name = "by", note = "", more = null } = {}) {
  const { tokens, labels, samples } = scored;
  const detail = make("div", "", { class: "detail", "aria-live": "polite" }, make("p",
    "Point at a token, or walk over them with the arrow keys: each bar is one sample of the weights.",
    { class: "note" }));
  const text = make("div", "", { class: "text", role: "group", "aria-label": "Tokens of the text" });
  const ramp = make("span", "", { class: "ramp" });
  const low = make("span"), high = make("span");
  const nodes = tokens.map((token, at) => {
    const node = make("button", token.token === "" ? "·" : named(token), { type: "button",
      class: token.word ? "token unknown" : "token", tabindex: at ? "-1" : "0" });
    for (const event of ["mouseenter", "focus", "click"]) node.addEventListener(event, () => show(at));
    return node;
  });
  nodes.forEach((node, at) => {
    text.append(node);
    const { token } = tokens[at];
    if (level === "word") text.append(token === "<eos>" ? "\n" : " ");
    else if (token === "⏎") text.append("\n");
  });
  text.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    const here = nodes.indexOf(document.activeElement);
    if (step === undefined || here < 0) return;
    event.preventDefault();
    nodes[Math.min(nodes.length - 1, Math.max(0, here + step))].focus();
  });

  function show(at) {
    if (nodes[at].hasAttribute("aria-current")) return;
    for (const node of text.querySelectorAll("[aria-current]")) node.removeAttribute("aria-current");
    for (const node of nodes) node.tabIndex = -1;
    nodes[at].setAttribute("aria-current", "true");
    nodes[at].tabIndex = 0;
    detail.replaceChildren(...tokenDetail(tokens[at], labels, samples));
    if (more) more(at, detail);
  }

  function colour(measure) {
    const { of, most, unit, name: told } = MEASURES[measure];
    const values = tokens.map(of);
    const top = most(values);
    view.dataset.by = measure;
    nodes.forEach((node, at) => {
      node.style.setProperty("--share", Math.min(1, values[at] / top).toFixed(3));
      node.setAttribute("aria-label", `${named(tokens[at])}: ${told} ${short(values[at])}`);
    });
    low.textContent = "0";
    high.textContent = `${short(top, 2)}${unit ? ` ${unit}` : ""}${measure === "surprise" ? " or more" : ""}`;
  }

  const names = Object.fromEntries(Object.entries(MEASURES).map(([key, value]) => [key, value.name]));
  const tools = make("div", "", { class: "tools" }, choice("Colour", name, names, by, colour),
    make("span", "", { class: "legend" }, low, ramp, high), make("span", note, { class: "note" }));
  const view = make("div", "", { class: "reading" }, tools, text, detail);
  colour(by);
  return { view, show, focus: (at) => nodes[at].focus() };
}

/** The tokens about which the samples disagree most, first. */
const disputed = (tokens, count) => [...tokens.keys()].sort(
  (a, b) => tokens[b].mutual_information - tokens[a].mutual_information).slice(0, count);

// A report holds scored texts as data; each becomes a text to read.
for (const data of document.querySelectorAll("script.scored")) {
  const { level, ...scored } = JSON.parse(data.textContent);
  data.after(tokenReader(scored, { level, by: "mutual_information", name: `by-${data.id}` }).view);
}
