// The page of 'langevin serve'. Everything shown enters as text, never as HTML.
"use strict";

const find = (id) => document.getElementById(id);
const state = { model: null, scored: null, answers: [], writing: [] };

function make(name, text = "", attributes = {}) {
  const node = document.createElement(name);
  node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function tell(text) {
  find("message").textContent = text;
  find("message").hidden = !text;
}

function headers(more = {}) {
  const token = find("token").value;
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

async function ask(path, body, type = "application/json", signal = undefined) {
  const options = body === undefined ? { headers: headers(), signal }
    : { method: "POST", headers: headers({ "Content-Type": type }), body, signal };
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is 'langevin serve' still running?");
  }
  if (answer.ok) return answer;
  if (answer.status === 401) find("token-field").hidden = false;
  let said;
  try {
    const { error } = await answer.json();
    said = `Expected ${error.expected}, got ${error.got}; ${error.do}.`;
  } catch {
    said = `The server answered ${answer.status}.`;
  }
  throw new Error(said);
}

const post = async (what, body) =>
  (await ask(`/v1/models/${state.model.name}/${what}`, JSON.stringify(body))).json();

function guarded(work) {
  return async (...given) => {
    tell("");
    try {
      await work(...given);
    } catch (error) {
      if (error.name !== "AbortError") tell(error.message);
    }
  };
}

// ---- models

async function open() {
  const { models } = await (await ask("/v1/models")).json();
  state.models = models;
  find("models").replaceChildren(...models.map((m) => make("option", `${m.name} (${m.task})`, { value: m.name })));
  choose(models[0].name);
}

function choose(name) {
  state.model = state.models.find((m) => m.name === name);
  const { title, model, sampler, temperature, how } = state.model;
  const at = temperature === null ? "" : `, temperature ${temperature}`;
  find("about").textContent = `${title ? title + ": " : ""}${model}, ${sampler}${at}, ${how} samples`;
  for (const task of ["language-model", "classify", "caption"]) find(task).hidden = task !== state.model.task;
}

// ---- language model

const surprise = (token) => -Math.log(Math.max(token.p, 1e-300));
const value = (token, by) => (by === "surprise" ? surprise(token) : token[by]);
const chosen = () => document.querySelector("input[name=by]:checked").value;

function colour() {
  const { tokens } = state.scored ?? { tokens: [] };
  const by = chosen();
  const most = by === "surprise" ? 8 : Math.max(1e-9, ...tokens.map((t) => value(t, by)));
  const nodes = find("tokens").children;
  tokens.forEach((token, at) => {
    nodes[at].style.setProperty("--share", Math.min(1, value(token, by) / most).toFixed(3));
  });
}

function shownToken(token) {
  return token.word ?? token.token;
}

function showScore(scored) {
  state.scored = scored;
  const space = scored.tokens.some((t) => t.token.length > 4) ? " " : "";
  find("tokens").replaceChildren(...scored.tokens.map((token, at) => {
    const node = make("button", shownToken(token) + space, {
      class: "token", type: "button", "aria-label": `${shownToken(token)}, p ${token.p.toPrecision(2)}` });
    for (const event of ["mouseenter", "focus", "click"]) node.addEventListener(event, () => showToken(at));
    return node;
  }));
  const unknown = scored.unknown_share > 0 ? `, ${(100 * scored.unknown_share).toFixed(1)} % unknown words` : "";
  find("summary").textContent =
    `${scored.nll.toFixed(3)} nats a token, perplexity ${scored.perplexity.toPrecision(4)}${unknown}`;
  const order = [...scored.tokens.keys()].sort(
    (a, b) => scored.tokens[b].mutual_information - scored.tokens[a].mutual_information);
  find("disputed").replaceChildren(...order.slice(0, 8).map((at) => {
    const token = scored.tokens[at];
    return make("li", `${JSON.stringify(shownToken(token))}: p = ${token.p.toPrecision(2)} ± ` +
      `${token.std.toPrecision(2)}, disagreement ${token.mutual_information.toPrecision(2)} nats`);
  }));
  find("detail").replaceChildren();
  colour();
}

function bars(rows) {
  const grid = make("div", "", { class: "bars" });
  for (const [label, share, text] of rows) {
    const bar = make("div", "", { class: "bar" });
    bar.style.width = `${(100 * share).toFixed(1)}%`;
    grid.append(make("span", label), bar, make("span", text));
  }
  return grid;
}

function showToken(at) {
  const token = state.scored.tokens[at];
  const most = Math.max(token.p, ...token.parts, 1e-12);
  const rows = [["average", token.p / most, token.p.toPrecision(3)]];
  token.parts.forEach((p, number) => {
    rows.push([state.scored.labels[number] ?? `part ${number + 1}`, p / most, p.toPrecision(3)]);
  });
  find("detail").replaceChildren(make("h3",
    `${JSON.stringify(shownToken(token))}: p = ${token.p.toPrecision(3)} ± ${token.std.toPrecision(2)}`), bars(rows));
  guarded(async () => {
    const before = state.scored.tokens.slice(0, at).map(shownToken);
    const spaced = state.scored.tokens.some((t) => t.token.length > 4);
    const { tokens } = await post("next", { text: before.join(spaced ? " " : ""), top: 5 });
    const list = tokens.map((t) => [JSON.stringify(t.token), t.p, `${t.p.toPrecision(2)} ± ${t.std.toPrecision(1)}`]);
    find("detail").append(make("h3", "Likeliest here"), bars(list));
  })();
}

async function score() {
  showScore(await post("score", { text: find("text").value, adapt: find("adapt").checked }));
}

async function write() {
  stop();
  const count = state.model.samples;
  const columns = [["average of all samples", null]];
  if (count > 1) columns.push(["sample 1 alone", 0], [`sample ${count} alone`, count - 1]);
  find("continuations").replaceChildren();
  find("stop").disabled = false;
  await Promise.all(columns.map(async ([title, sample]) => {
    const box = make("div");
    const text = make("div", "", { class: "text" });
    box.append(make("h3", title), text);
    find("continuations").append(box);
    const control = new AbortController();
    state.writing.push(control);
    const body = { prompt: find("text").value, length: Number(find("length").value),
      softmax_temperature: Number(find("temperature").value), sample };
    const answer = await ask(`/v1/models/${state.model.name}/generate`, JSON.stringify(body),
      "application/json", control.signal);
    await follow(answer, (piece) => { text.textContent += piece; });
  }));
  find("stop").disabled = true;
}

async function follow(answer, show) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value: more, done } = await reader.read();
    if (done) return;
    const events = (rest + more).split("\n\n");
    rest = events.pop();
    for (const event of events) show(JSON.parse(event.slice(6)).text);
  }
}

function stop() {
  for (const control of state.writing) control.abort();
  state.writing = [];
  find("stop").disabled = true;
}

// ---- classifier

const surest = (a, b) => a.entropy - b.entropy;

async function classify(texts) {
  const all = [];
  for (let at = 0; at < texts.length; at += state.model.limits.texts) {
    const some = texts.slice(at, at + state.model.limits.texts);
    const { answers } = await post("classify", { texts: some });
    answers.forEach((answer, number) => all.push({ text: some[number], ...answer }));
  }
  state.answers = all;
  find("download").disabled = !all.length;
  showAnswers();
}

function showAnswers() {
  const share = Number(find("coverage").value) / 100;
  find("share").textContent = `${Math.round(100 * share)} %`;
  const order = [...state.answers].sort(surest);
  const kept = Math.round(share * order.length);
  order.forEach((answer, at) => { answer.kept = at < kept; });
  const wrong = order.slice(0, kept).reduce((sum, a) => sum + 1 - a.p[a.label], 0);
  find("promise").textContent = state.answers.length
    ? `${kept} of ${order.length} answers accepted, ${order.length - kept} for a person. ` +
      `By its own probabilities about ${wrong.toFixed(1)} of the accepted ones are wrong` +
      `${kept ? ` (${(100 * wrong / kept).toFixed(1)} %)` : ""}.` : "";
  const table = make("table");
  const head = make("tr");
  for (const title of ["text", "label", "p ± std", "entropy", "disagreement", "accepted"]) {
    head.append(make("th", title, { scope: "col" }));
  }
  table.append(head);
  for (const answer of order.reverse().slice(0, 200)) {
    const row = make("tr", "", { class: answer.kept ? "" : "person" });
    const cells = [answer.text, answer.label,
      `${answer.p[answer.label].toFixed(3)} ± ${answer.std[answer.label].toFixed(3)}`,
      answer.entropy.toFixed(3), answer.mutual_information.toFixed(4), answer.kept ? "yes" : "ask a person"];
    for (const cell of cells) row.append(make("td", cell));
    table.append(row);
  }
  const note = state.answers.length > 200 ? make("p", "The 200 least certain are shown; all are in the download.",
    { class: "note" }) : "";
  find("answers").replaceChildren(state.answers.length ? table : "", note);
}

function quoted(cell) {
  const text = String(cell);
  const safe = /^[=+\-@\t\r]/.test(text) && isNaN(text) ? `'${text}` : text;  // no formulas in a spreadsheet
  return `"${safe.replaceAll('"', '""')}"`;
}

function download() {
  const lines = [["text", "label", "probability", "std", "entropy", "mutual_information", "accepted"]];
  for (const a of state.answers) {
    lines.push([a.text, a.label, a.p[a.label], a.std[a.label], a.entropy, a.mutual_information, a.kept]);
  }
  const file = new Blob([lines.map((line) => line.map(quoted).join(",")).join("\n") + "\n"], { type: "text/csv" });
  const link = make("a", "", { href: URL.createObjectURL(file), download: "answers.csv" });
  link.click();
  URL.revokeObjectURL(link.href);
}

function readTable(text) {
  // CSV with a header that has a column "text", or one text a line.
  const rows = [];
  let row = [""], inside = false;
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    if (inside && sign === '"' && text[at + 1] === '"') { row[row.length - 1] += '"'; at++; }
    else if (sign === '"') inside = !inside;
    else if (!inside && sign === ",") row.push("");
    else if (!inside && sign === "\n") { rows.push(row); row = [""]; }
    else if (sign !== "\r" || inside) row[row.length - 1] += sign;
  }
  if (row.length > 1 || row[0]) rows.push(row);
  const column = (rows[0] ?? []).findIndex((title) => title.trim().toLowerCase() === "text");
  if (column >= 0) return rows.slice(1).map((cells) => cells[column] ?? "");
  return text.split(/\r?\n/).filter((line) => line.trim());
}

// ---- captions

async function describe(file) {
  const seen = find("seen");
  seen.src = URL.createObjectURL(file);
  seen.hidden = false;
  find("captions").replaceChildren(make("p", "Looking…"));
  const answer = await (await ask(`/v1/models/${state.model.name}/caption`, file, file.type)).json();
  const best = answer.captions.map((c) => [c.caption, Math.exp(c.log_p), `log p ${c.log_p.toFixed(2)} ± ${c.log_p_std.toFixed(2)}`]);
  const alone = answer.per_sample.map((c) => make("li", `sample of step ${c.step}: ${c.caption}`));
  const list = make("ul");
  list.append(...alone);
  find("captions").replaceChildren(make("h3", "The average says"), bars(best), make("h3", "Single samples say"), list);
}

// ---- listeners

find("models").addEventListener("change", (event) => choose(event.target.value));
find("token").addEventListener("change", guarded(open));
find("token-field").addEventListener("submit", (event) => event.preventDefault());
find("score").addEventListener("click", guarded(score));
find("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) guarded(score)();
});
for (const node of document.querySelectorAll("input[name=by]")) node.addEventListener("change", colour);
find("write").addEventListener("click", guarded(write));
find("stop").addEventListener("click", stop);
find("ask").addEventListener("click", guarded(() =>
  classify(find("texts").value.split("\n").filter((line) => line.trim()))));
find("file").addEventListener("change", guarded(async (event) => {
  const [file] = event.target.files;
  if (file) await classify(readTable(await file.text()));
}));
find("coverage").addEventListener("input", showAnswers);
find("download").addEventListener("click", download);
find("drop").addEventListener("click", () => find("picture").click());
find("drop").addEventListener("keydown", (event) => {
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); find("picture").click(); }
});
find("picture").addEventListener("change", guarded(async (event) => {
  if (event.target.files[0]) await describe(event.target.files[0]);
}));
for (const name of ["dragover", "drop", "dragleave"]) {
  find("drop").addEventListener(name, (event) => {
    event.preventDefault();
    find("drop").classList.toggle("over", name === "dragover");
    if (name === "drop" && event.dataTransfer.files[0]) guarded(describe)(event.dataTransfer.files[0]);
  });
}
guarded(open)();
