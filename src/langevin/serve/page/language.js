// A language model: how surprising each token is, who disagrees about it, how the text goes on.
"use strict";

const languageView = {
  scored: null,
  reader: null,
  dice: 0,
  writing: new AbortController(),

  start(model) {
    this.stop();
    this.clear();
    find("adapt").checked = false;
    find("continuations").replaceChildren();
    if (!find("text").value) find("text").value = document.querySelector(".chip").dataset.text;
    return this.score();
  },

  clear() {
    this.scored = null;
    find("summary").replaceChildren();
    find("reader").replaceChildren();
    find("disputes").hidden = true;
    find("busy").textContent = "";
  },

  listen() {
    const rescore = guarded(() => this.score());
    find("text").addEventListener("input", settled(rescore));
    find("adapt").addEventListener("change", rescore);
    for (const chip of document.querySelectorAll(".chip[data-text]")) {
      chip.addEventListener("click", () => {
        find("text").value = chip.dataset.text;
        rescore();
      });
    }
    find("begin").addEventListener("click", guarded(() => this.begin()));
    find("write").addEventListener("click", guarded(() => this.write()));
    find("stop").addEventListener("click", () => this.stop());
  },

  score: latest(async function score(signal) {
    const text = find("text").value;
    if (!text) {
      languageView.clear();
      return;
    }
    find("busy").textContent = "reading…";
    try {
      const scored = await post("score", { text, adapt: find("adapt").checked }, signal);
      languageView.show(scored, text);
    } finally {
      if (!signal.aborted) find("busy").textContent = "";
    }
  }),

  show(scored, text) {
    this.scored = scored;
    const by = document.querySelector("input[name=by]:checked")?.value ?? "surprise";
    this.reader = tokenReader(scored, { level: state.model.level, by,
      note: find("adapt").checked ? "it learns while it reads" : "",
      more: (at, detail) => guarded(() => this.alternatives(text, at, detail))() });
    find("reader").replaceChildren(this.reader.view);
    find("summary").replaceChildren(...this.tiles(scored));
    find("disputes").hidden = scored.samples < 2;
    find("disputed").replaceChildren(...disputed(scored.tokens, 8).map((at) => {
      const token = scored.tokens[at];
      const button = make("button", "", { type: "button" }, ...this.inContext(at),
        make("small", `p ${short(token.p, 2)} ± ${short(token.std, 2)}`),
        make("small", `${short(token.mutual_information, 2)} nats`));
      button.addEventListener("click", () => this.reader.focus(at));
      return make("li", "", {}, button);
    }));
  },

  /** A word stands for itself; a letter is shown with those before it. */
  inContext(at) {
    const { tokens } = this.scored, name = make("strong", named(tokens[at]));
    if (state.model.level === "word") return [name];
    return [make("i", tokens.slice(Math.max(0, at - 8), at).map((token) => token.token).join("")), name];
  },

  tiles(scored) {
    const tile = (name, value, kind = "", ...more) =>
      make("div", "", { class: kind }, make("dt", name), make("dd", value, {}, ...more));
    const tiles = [tile("nats a token", scored.nll.toFixed(3)), tile("perplexity", short(scored.perplexity, 4))];
    if (scored.bits_per_byte !== null) tiles.push(tile("bits a byte", scored.bits_per_byte.toFixed(3)));
    if (state.model.level !== "byte") tiles.push(tile("unknown", percent(scored.unknown_share)));
    if (scored.surprise) {
      const { quantile, window } = scored.surprise;
      const mark = make("i");
      mark.style.setProperty("--at", quantile.toFixed(3));
      tiles.push(tile(`more surprising than ${percent(quantile)} of ${window}-token windows of its own held-out text`,
        quantile > 0.95 ? "foreign to this model" : quantile > 0.7 ? "a little strange" : "at home",
        "broad", make("div", "", { class: "gauge", "aria-hidden": "true" }, mark)));
    }
    return tiles;
  },

  alternatives: latest(async function alternatives(signal, text, at, detail) {
    const { tokens } = await post("next", { text, tokens: at, top: 6 }, signal);
    const rows = tokens.map((token) => ({ label: quoted(token.token), value: token.p, spread: token.std,
      dots: token.parts, text: `${short(token.p, 2)} ± ${short(token.std, 1)}` }));
    const most = Math.max(...rows.map((row) => Math.max(row.value + row.spread, ...row.dots)));
    detail.append(make("h3", "Likeliest here"), bars(rows, most));
  }),

  columns() {
    const { samples, labels, members } = state.model, pooled = Object.keys(members).length > 0;
    const single = (sample) => ({ title: `${labels[sample]} alone`, sample });
    const whole = pooled ? `the pool of ${Object.keys(members).join(" and ")}` : `the average of ${samples}`;
    const all = samples > 1 ? [0, samples - 1] : [0];
    if (samples === 1 && !pooled) return [{ ...single(0), kind: "average" }];
    return [{ title: whole, sample: null, kind: "average" }, ...all.map(single)];
  },

  async write() {
    this.stop();
    const control = this.writing = new AbortController();
    const asked = { prompt: find("text").value, length: Number(find("length").value),
      softmax_temperature: Number(find("temperature").value), seed: this.dice++ };
    const boxes = this.columns().map(({ title, sample, kind }) => {
      const text = make("div", "", { class: "text", tabindex: "0" },
        make("span", asked.prompt.slice(-160), { class: "given" }));
      return { sample, text, box: make("div", "", { class: kind }, make("h3", title), text) };
    });
    find("continuations").replaceChildren(...boxes.map(({ box }) => box));
    find("stop").disabled = false;
    try {
      await Promise.all(boxes.map(async ({ sample, text }) => {
        const answer = await ask(address("generate"), JSON.stringify({ ...asked, sample }), control);
        await this.follow(answer, (piece) => text.append(piece));
      }));
    } finally {
      if (control === this.writing) find("stop").disabled = true;
    }
  },

  async begin() {
    find("text").value = "";
    this.clear();
    const asked = { length: state.model.level === "word" ? 30 : 160, seed: this.dice++ };
    const answer = await ask(address("generate"), JSON.stringify(asked));
    await this.follow(answer, (piece) => { find("text").value += piece; });
    await this.score();
  },

  async follow(answer, show) {
    const pieces = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = "", done = false, more; !done;) {
      ({ value: more = "", done } = await pieces.read());
      const events = (rest + more).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const { text, error } = JSON.parse(event.slice("data: ".length));
        show(text);
        if (error) throw new Error(`Expected ${error.expected}, got ${error.got}; ${error.do}.`);
      }
    }
  },

  stop() {
    this.writing.abort();
    find("stop").disabled = true;
  },
};
