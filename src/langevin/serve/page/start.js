// Which models there are, and the view of the one that is chosen.
"use strict";

const VIEWS = { "language-model": languageView, classify: classifierView, caption: captionView };
const NOUNS = { "language-model": "text", classify: "classes", caption: "pictures" };

function showModels() {
  find("models").replaceChildren(...state.models.map((model) => {
    const button = make("button", model.name, { type: "button", value: model.name },
      make("small", ` ${NOUNS[model.task]}`));
    button.addEventListener("click", () => choose(model.name));
    return button;
  }));
}

function choose(name) {
  state.model = state.models.find((model) => model.name === name);
  const { title, task, samples, network, sampler, temperature, members, cost } = state.model;
  for (const button of find("models").children) {
    button.toggleAttribute("aria-current", button.value === name);
  }
  const at = temperature === null ? "" : ` at temperature ${temperature}`;
  const pool = Object.entries(members).map(([member, weight]) => `${member} ${short(weight, 2)}`).join(", ");
  find("about").textContent = `${samples} sample${samples > 1 ? "s" : ""} of a ${network}, drawn by ` +
    `${sampler}${at}${pool ? `; pooled: ${pool}` : ""}; ${short(1000 * cost.seconds, 2)} ms ${cost.of}`;
  find("more").hidden = false;
  find("origin").replaceChildren(
    make("p", `${title ? `${title}. ` : ""}${state.model.parameters.toLocaleString("en")} weights in each of ` +
      `${samples} samples (${state.model.why}), ${(cost.bytes / 1e6).toFixed(1)} MB of memory. An answer asks all of ` +
      "them, so it costs as many times what one network costs; where that is too slow, 'langevin distill' makes " +
      "one network of them all. The temperature is that of the posterior: 1 is Bayes' rule, below it the samples " +
      "stay nearer to the best weights, and at 0 the noise is that of the minibatches alone."),
    make("pre", state.model.recipe, { tabindex: "0" }));
  for (const id of Object.keys(VIEWS)) find(id).hidden = id !== task;
  guarded(() => VIEWS[task].start(state.model))();
}

async function open() {
  find("about").textContent = "Loading…";
  state.models = (await (await ask("/v1/models")).json()).models;
  find("token-field").hidden = true;
  showModels();
  choose((state.models.find((model) => `#${model.name}` === location.hash) ?? state.models[0]).name);
}

find("token-field").addEventListener("submit", (event) => {
  event.preventDefault();
  guarded(open)();
});
for (const view of Object.values(VIEWS)) view.listen();
guarded(open)();
