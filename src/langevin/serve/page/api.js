// A plain page of /openapi.json: each path, what it is for, what it takes, what it gives, and a line to copy.
"use strict";

const TYPES = { text: "The end of the", prompt: "The end of the", texts: ["What is this ?"], features: [0.1, 0.2] };

function typeOf(schema, all) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map((one) => typeOf(one, all)).join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items ?? { type: "anything" }, all)}`;
  if (schema.type === "object" && schema.additionalProperties) return `object of ${typeOf(schema.additionalProperties, all)}`;
  return schema.type ?? "anything";
}

function fieldsOf(title, schema, all) {
  const needed = new Set(schema.required ?? []);
  const rows = Object.entries(schema.properties ?? {}).map(([name, own]) => ({ cells: [name, typeOf(own, all),
    own.default !== undefined ? JSON.stringify(own.default) : needed.has(name) ? "needed" : "", own.description ?? ""] }));
  return rows.length ? [tableOf(title, ["field", "type", "default", "what it is"], rows)] : [];
}

function curl(method, path, schema) {
  const where = `curl ${location.origin}${path.replace("{name}", "NAME")}`;
  if (method !== "post") return where;
  const first = (schema?.required ?? [])[0] ?? ["text", "prompt"].find((name) => schema?.properties?.[name]) ?? "text";
  return `${where} -H 'Content-Type: application/json' -d '${JSON.stringify({ [first]: TYPES[first] })}'`;
}

async function show() {
  const all = await (await fetch("/openapi.json")).json();
  const schemaAt = (content) => {
    const schema = content?.["application/json"]?.schema;
    return schema?.$ref ? all.components.schemas[schema.$ref.split("/").pop()] : schema;
  };
  const sections = Object.entries(all.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, told]) => {
      const taken = schemaAt(told.requestBody?.content), given = schemaAt(told.responses?.["200"]?.content);
      return make("section", "", {}, make("h2", `${method.toUpperCase()} ${path}`), make("p", told.description ?? ""),
        make("pre", curl(method, path, taken), { tabindex: "0" }),
        ...(taken ? fieldsOf("It takes", taken, all) : []), ...(given ? fieldsOf("It gives", given, all) : []));
    }));
  const records = Object.entries(all.components.schemas).map(([name, schema]) => make("section", "", { id: name },
    make("h3", name), ...(schema.description ? [make("p", schema.description)] : []), ...fieldsOf("", schema, all)));
  document.getElementById("paths").replaceChildren(...sections, make("h2", "Records"), ...records);
}

show().catch((error) => { document.getElementById("paths").textContent = String(error); });
