// A plain page of /openapi.json: path, what it is for, what it takes.
"use strict";

function add(parent, name, text) {
  const node = document.createElement(name);
  node.textContent = text;
  parent.append(node);
  return node;
}

async function show() {
  const all = await (await fetch("/openapi.json")).json();
  const main = document.getElementById("paths");
  main.replaceChildren();
  for (const [path, methods] of Object.entries(all.paths)) {
    for (const [method, told] of Object.entries(methods)) {
      const section = add(main, "section", "");
      add(section, "h2", `${method.toUpperCase()} ${path}`);
      if (told.description) add(section, "p", told.description);
      const name = told.requestBody?.content?.["application/json"]?.schema?.$ref?.split("/").pop();
      if (name) {
        const { description, properties } = all.components.schemas[name];
        if (description) add(section, "p", description);
        add(section, "pre", JSON.stringify(properties, null, 2));
      }
    }
  }
}

show().catch((error) => { document.getElementById("paths").textContent = String(error); });
