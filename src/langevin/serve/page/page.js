// The page of 'langevin serve': how the server is asked, and what is told when it cannot answer.
// Everything shown enters as text, never as HTML.
"use strict";

const find = (id) => document.getElementById(id);
const state = { models: [], model: null };

function tell(text) {
  find("message").textContent = text;
  find("message").hidden = !text;
}

async function ask(path, body, { type = "application/json", signal } = {}) {
  const token = find("token").value;
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const options = body === undefined ? { headers, signal }
    : { method: "POST", headers: { ...headers, "Content-Type": type }, body, signal };
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is 'langevin serve' still running?");
  }
  if (answer.ok) return answer;
  if (answer.status === 401) {
    find("token-field").hidden = false;
    find("token").focus();
  }
  let said = `The server answered ${answer.status}.`;
  try {
    const { error } = await answer.json();
    said = `Expected ${error.expected}, got ${error.got}; ${error.do}.`;
  } catch { /* not ours: the number has to do */ }
  throw new Error(said);
}

const address = (what) => `/v1/models/${encodeURIComponent(state.model.name)}/${what}`;
const post = async (what, body, signal) => (await ask(address(what), JSON.stringify(body), { signal })).json();

/** Work whose failure is told on the page; what was broken off on purpose is not. */
function guarded(work) {
  return async (...given) => {
    tell("");
    try {
      return await work(...given);
    } catch (error) {
      if (error.name !== "AbortError") tell(error.message);
      return undefined;
    }
  };
}

/** The latest call only: an earlier one that is still under way is broken off. */
function latest(work) {
  let control = new AbortController();
  return (...given) => {
    control.abort();
    control = new AbortController();
    return work(control.signal, ...given);
  };
}

/** Once nothing came for a moment. */
function settled(work, milliseconds = 350) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, milliseconds);
  };
}

function percent(share) {
  return `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
}
