// A captioner: what the average says of a picture beside what single samples say.
"use strict";

const ALONE = 5; // samples that speak for themselves

const captionView = {
  shown: null,

  start(model) {
    find("blind").hidden = model.pictures;
    find("drop").hidden = !model.pictures;
    find("captions").replaceChildren();
    find("seen").hidden = true;
  },

  listen() {
    const describe = guarded((file) => this.describe(file));
    const choosePicture = () => find("picture").click();
    find("drop").addEventListener("click", choosePicture);
    find("drop").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choosePicture();
    });
    find("picture").addEventListener("change", ({ target }) => {
      if (target.files[0]) describe(target.files[0]);
    });
    takesDrops(find("drop"), describe);
    document.addEventListener("paste", ({ clipboardData }) => {
      if (state.model?.task === "caption" && clipboardData.files[0]) describe(clipboardData.files[0]);
    });
  },

  describe: latest(async function describe(signal, file) {
    URL.revokeObjectURL(captionView.shown);
    captionView.shown = find("seen").src = URL.createObjectURL(file);
    find("seen").hidden = false;
    find("captions").replaceChildren(make("p", "Looking…"));
    const several = `per_sample=${Math.min(ALONE, state.model.samples)}`;
    try {
      const path = address(`caption?beam=5&top=3&${several}`);
      captionView.show(await (await ask(path, file, { type: file.type, signal })).json());
    } catch (error) {
      if (!signal.aborted) find("captions").replaceChildren();
      throw error;
    }
  }),

  show({ captions, per_sample: alone }) {
    const [best, ...others] = captions, widest = Math.max(...best.words.map((word) => word.std), 1e-9);
    const said = make("p", "", { class: "said", "data-by": "mutual_information" });
    for (const word of best.words.slice(0, -1)) {
      const node = make("span", word.word, { class: "token", title: `p ${short(word.p)} ± ${short(word.std, 2)}` });
      node.style.setProperty("--share", (word.std / widest).toFixed(3));
      said.append(node, " ");
    }
    const words = new Set(best.caption.split(" "));
    const list = (rows) => make("ul", "", { class: "others" }, ...rows.map(([name, text]) => make("li", "", {},
      make("small", name), ...text.split(" ").flatMap((word) =>
        [words.has(word) ? word : make("mark", word), " "]))));
    const spread = ({ log_p: p, log_p_std: std }) => `log p ${p.toFixed(1)} ± ${std.toFixed(1)}`;
    const several = new Set(alone.map((one) => one.chain)).size > 1;
    const first = alone.filter((one, at) => alone.findIndex((other) =>
      other.chain === one.chain && other.step === one.step) === at);
    const name = ({ chain, step }) => (several ? `chain ${chain}, step ${step}` : `step ${step}`);
    find("captions").replaceChildren(
      make("h3", `The average of ${state.model.samples} samples says`), said,
      make("p", `${spread(best)}; the stronger the colour, the more the samples differ about a word.`, { class: "note" }),
      make("h3", "Single samples say"), list(first.map((one) => [name(one), one.caption])),
      make("h3", "The average would also say"), list(others.map((one) => [spread(one), one.caption])));
  },
};
