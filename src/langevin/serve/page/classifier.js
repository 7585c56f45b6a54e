// A classifier: classes with their spread, and a slider for which answers to accept.
"use strict";

const ROWS = 200; // of a long list are shown
const WITH_DRAWS = 50; // texts for which every draw is asked, for the dots

const STATISTICS = {
  entropy: (a) => a.entropy,
  mutual_information: (a) => a.mutual_information,
  standard_deviation: (a) => a.std[a.label],
  max_probability: (a) => 1 - a.p[a.label],
};

const classifierView = {
  answers: [],
  decisions: null,
  by: "coverage",
  stops: [],

  async start() {
    this.decisions = null;
    await this.classify([]); // what is still under way is of another model
    this.decisions = await (await ask(address("decisions"))).json();
    this.target();
    if (find("texts").value) await this.classify(this.lines());
  },

  listen() {
    find("texts").addEventListener("input", settled(guarded(() => this.classify(this.lines())), 500));
    find("ask").addEventListener("click", guarded(() => this.classify(this.lines())));
    find("alpha").addEventListener("change", guarded(() => this.classify(this.answers.map((a) => a.text))));
    find("file").addEventListener("change", guarded(async ({ target }) => {
      if (target.files[0]) await this.classify(readTable(await target.files[0].text()));
    }));
    find("level").addEventListener("input", () => this.show());
    find("download").addEventListener("click", () => this.download());
    takesDrops(document.querySelector("#classify .ask"), guarded(async (file) =>
      this.classify(readTable(await file.text()))));
  },

  lines: () => find("texts").value.split("\n").filter((line) => line.trim()),

  classify: latest(async function classify(signal, texts) {
    const all = [], alpha = find("alpha").value ? Number(find("alpha").value) : null;
    const { texts: most } = state.model.limits;
    for (let at = 0; at < texts.length; at += most) {
      find("sorting").textContent = `${at} of ${texts.length}…`;
      const some = texts.slice(at, at + most);
      const { answers } = await post("classify", { texts: some, alpha, draws: texts.length <= WITH_DRAWS }, signal);
      answers.forEach((answer, number) => all.push({ ...answer, text: some[number], place: at + number }));
    }
    find("sorting").textContent = "";
    classifierView.answers = all;
    classifierView.target();
  }),

  statistic() {
    return STATISTICS[this.decisions?.statistic ?? "entropy"];
  },

  /** What the slider can stand at: thresholds of validation, or shares of what is here. */
  target() {
    const points = this.decisions?.points ?? [];
    const own = this.answers.map(this.statistic()).sort((a, b) => a - b);
    this.stops = points.length ? points.filter((p, at) => p.accepted !== points[at - 1]?.accepted)
      : Array.from({ length: 20 }, (_, at) => ({ coverage: (at + 1) / 20,
        threshold: at === 19 || !own.length ? null : own[Math.min(own.length - 1, Math.round((at + 1) / 20 * own.length))] }));
    const options = points.length ? { coverage: "choose coverage", risk: "choose risk" } : { coverage: "choose coverage" };
    find("target").replaceChildren(choice("Slide", "slide", options, this.by, (by) => {
      this.by = by;
      this.target();
    }));
    if (!points.length) this.by = "coverage";
    const rule = this.decisions?.rule;
    if (rule) {
      find("target").append(make("p", `'langevin decide' learnt a rule: ${ruleInWords(rule)}. ` +
        "It stands in “accepted” of every answer and in the download.", { class: "note" }));
    }
    const risks = [...new Set(points.map((p) => Number(p.risk_bound.toFixed(4))))].sort((a, b) => a - b);
    this.risks = risks;
    find("level").max = (this.by === "risk" ? risks : this.stops).length - 1;
    find("level").value = find("level").max;
    this.show();
  },

  /** The chosen stop: of a risk the largest coverage whose bound is within it. */
  stop() {
    const at = Number(find("level").value);
    if (this.by === "coverage") return this.stops[at];
    return this.stops.filter((p) => p.risk_bound <= this.risks[at] + 1e-4).at(-1) ?? this.stops[0];
  },

  show() {
    const { answers } = this, stop = this.stop();
    find("deciding").hidden = !answers.length;
    find("download").disabled = !answers.length;
    if (!answers.length || !stop) {
      find("answers").replaceChildren();
      return;
    }
    const unsure = this.statistic();
    for (const a of answers) a.kept = !a.empty && (stop.threshold === null || unsure(a) < stop.threshold);
    const kept = answers.filter((a) => a.kept);
    find("level-name").textContent = this.by === "risk" ? "Errors among the accepted, at most" : "Accept the surest";
    find("share").textContent = this.by === "risk" ? percent(this.risks[Number(find("level").value)]) : percent(stop.coverage);
    find("promise").textContent = this.inWords(kept, stop);
    find("curve").replaceChildren(...(this.decisions?.points.length ? [this.curve(stop)] : []));
    const order = [...answers].sort((a, b) => unsure(b) - unsure(a));
    const rows = order.slice(0, ROWS).map((a) => ({ kind: a.kept ? "kept" : "person", cells: [
      a.text, make("div", "", {}, make("span", nameOf(a.label), { class: "label" }), setOf(a)), barsOf(a),
      short(a.entropy), short(a.mutual_information), a.kept ? "accepted" : "for a person"] }));
    const many = answers.length > ROWS ? `, the ${ROWS} least certain of ${answers.length}; all are in the download` : "";
    find("answers").replaceChildren(tableOf(`The least certain first${many}`,
      ["text", "answer", "probability, and each sample", "entropy", "disagreement", ""], rows));
  },

  inWords(kept, stop) {
    const wrong = kept.reduce((sum, a) => sum + 1 - a.p[a.label], 0);
    const here = `${kept.length} of ${this.answers.length} answers here are accepted, ` +
      `${this.answers.length - kept.length} are for a person; by its own probabilities about ` +
      `${wrong.toFixed(1)} of the accepted are wrong.`;
    const { items, confidence, caution } = this.decisions ?? {};
    if (stop.risk_bound === undefined) return `${here} Nothing is promised: ${caution ?? "no labelled sentences are here"}.`;
    const warned = caution ? ` But ${caution}.` : "";
    return `Promise: of new texts like those it was trained on, at most ${percent(stop.risk_bound)} of the accepted ` +
      `answers are wrong, with ${percent(confidence)} confidence. On ${items} validation sentences ${stop.errors} of ` +
      `${stop.accepted} accepted were (${percent(stop.risk)}).${warned} ${here}`;
  },

  /** Errors against coverage: what validation saw as dots, what is promised as a line. */
  curve(stop) {
    const [width, height] = [300, 150], { points } = this.decisions;
    const most = Math.min(1, 1.1 * Math.max(...points.map((p) => p.risk_bound)));
    const x = (coverage) => (30 + coverage * (width - 40)).toFixed(1);
    const y = (risk) => (height - 25 - risk / most * (height - 40)).toFixed(1);
    const svg = (name, attributes, text = "") => {
      const node = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
      node.textContent = text;
      return node;
    };
    const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": "Errors among the accepted answers against the share that is accepted" });
    drawn.append(
      svg("line", { class: "axis", x1: x(0), x2: x(1), y1: y(0), y2: y(0) }),
      svg("line", { class: "axis", x1: x(0), x2: x(0), y1: y(0), y2: y(most) }),
      svg("text", { x: x(1), y: height - 8, "text-anchor": "end" }, "share accepted"),
      svg("text", { x: x(0), y: 10 }, "errors: promised (line), seen (dots)"),
      svg("text", { x: 26, y: y(most), "text-anchor": "end" }, percent(most)),
      svg("text", { x: 26, y: y(0), "text-anchor": "end" }, "0"),
      svg("line", { class: "now", x1: x(stop.coverage), x2: x(stop.coverage), y1: y(0), y2: y(most) }),
      svg("polyline", { class: "bound", points: points.map((p) => `${x(p.coverage)},${y(p.risk_bound)}`).join(" ") }),
      ...points.map((p) => svg("circle", { class: "seen", r: p === stop ? 5 : 3, cx: x(p.coverage), cy: y(p.risk) })));
    return drawn;
  },

  download() {
    const lines = [["text", "label", "probability", "std", "entropy", "mutual_information", "accepted", "by_rule", "set"]];
    for (const a of [...this.answers].sort((one, other) => one.place - other.place)) {
      lines.push([a.text, a.label, a.p[a.label], a.std[a.label], a.entropy, a.mutual_information, a.kept,
        a.accepted ?? "", (a.labels ?? []).join(" ")]);
    }
    const file = new Blob([lines.map((line) => line.map(csvCell).join(",")).join("\n") + "\n"], { type: "text/csv" });
    const link = make("a", "", { href: URL.createObjectURL(file), download: "answers.csv" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  },
};

function ruleInWords({ target, value, confidence }) {
  if (target === "risk") return `at most ${percent(value)} errors with ${percent(confidence)} confidence`;
  return target === "cost" ? `an error costs ${value} times what a person does` : `the surest ${percent(value)}`;
}

/** What people read in the place of a label. */
function nameOf(label) {
  const { labels, label_names: names } = state.model;
  return names[labels.indexOf(label)] ?? label;
}

function setOf(answer) {
  if (!answer.labels || !find("alpha").value) return "";
  return make("span", `one of ${answer.labels.map(nameOf).join(", ")}`, { class: "set" });
}

function barsOf(answer) {
  const likely = Object.entries(answer.p).sort((a, b) => b[1] - a[1]).slice(0, 3);
  return bars(likely.map(([label, p], at) => ({ label: nameOf(label), value: p, spread: answer.std[label],
    dots: answer.draws?.[label] ?? [], text: p.toFixed(3), kind: at ? "" : "first" })), 1);
}

function csvCell(cell) {
  const text = String(cell);
  const safe = /^[=+\-@\t\r]/.test(text) && isNaN(text) ? `'${text}` : text; // no formulas in a spreadsheet
  return `"${safe.replaceAll('"', '""')}"`;
}

/** CSV or TSV with a header that has a column "text", or one text a line. */
function readTable(text) {
  const head = text.slice(0, text.search(/[\r\n]|$/));
  const between = ["\t", ";", ","].find((sign) => head.split(sign).some((title) => /^"?text"?$/i.test(title.trim())));
  if (between === undefined && !/^"?text"?$/i.test(head.trim())) {
    return text.split(/\r?\n/).filter((line) => line.trim());
  }
  const rows = [];
  let row = [""], inside = false;
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    if (inside && sign === '"' && text[at + 1] === '"') { row[row.length - 1] += '"'; at++; }
    else if (sign === '"') inside = !inside;
    else if (!inside && sign === between) row.push("");
    else if (!inside && sign === "\n") { rows.push(row); row = [""]; }
    else if (sign !== "\r" || inside) row[row.length - 1] += sign;
  }
  if (row.length > 1 || row[0]) rows.push(row);
  const column = rows[0].findIndex((title) => title.trim().toLowerCase() === "text");
  return rows.slice(1).map((cells) => cells[column] ?? "");
}

/** A place onto which a file can be dropped. */
function takesDrops(place, take) {
  for (const name of ["dragover", "drop", "dragleave"]) {
    place.addEventListener(name, (event) => {
      event.preventDefault();
      place.classList.toggle("over", name === "dragover");
      if (name === "drop" && event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
    });
  }
}
