// The API for people, drawn from the server's own OpenAPI document.

const main = document.getElementById("routes");
const api = await (await fetch("openapi.json")).json();

for (const [path, methods] of Object.entries(api.paths)) {
  for (const [method, about] of Object.entries(methods)) {
    add("h2", `${method.toUpperCase()} ${path}`);
    add("p", about.description ?? about.summary);
    for (const [kind, {schema}] of Object.entries(about.requestBody?.content ?? {})) {
      add("p", `Body, ${kind}:`);
      add("pre", fields(schema));
    }
  }
}

function add(name, text) {
  const node = document.createElement(name);
  node.textContent = text;
  main.append(node);
}

// A line for each field: its name, its kind, its bounds, its default and its help.
function fields(schema) {
  const whole = schema.$ref ? api.components.schemas[schema.$ref.split("/").pop()] : schema;
  const needed = whole.required ?? [];
  const lines = Object.entries(whole.properties ?? {}).map(([name, one]) => {
    const help = one.description ? `: ${one.description}` : "";
    return `${name} (${kindOf(one)}${defaultOf(one, needed.includes(name))})${help}`;
  });
  return lines.join("\n");
}

function defaultOf(one, required) {
  if (required) return ", required";
  return one.default === undefined ? "" : `, default ${JSON.stringify(one.default)}`;
}

function kindOf(one) {
  if (one.anyOf) return one.anyOf.map(kindOf).join(" or ");
  if (one.enum) return one.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (one.type === "array") return `list of ${kindOf(one.items)}`;
  const low = one.minimum ?? one.exclusiveMinimum;
  const high = one.maximum ?? one.exclusiveMaximum;
  const most = one.maxLength ? ` of up to ${one.maxLength} characters` : "";
  return `${one.type}${most}${low === undefined ? "" : ` from ${low} to ${high}`}`;
}
