// The API for people, drawn from the server's own OpenAPI document: for each route its fields, an
// example as a command, the answer to it and what may go wrong.

const main = document.getElementById("routes");
const api = await (await fetch("openapi.json")).json();

const contents = document.getElementById("contents");

for (const [path, methods] of Object.entries(api.paths)) {
  for (const [method, about] of Object.entries(methods)) {
    addHeading(`${method.toUpperCase()} ${path}`);
    add("p", about.description ?? about.summary);
    if (about.parameters) {
      add("p", "In the address:");
      add("pre", about.parameters.map((one) => parameter(one)).join("\n"));
    }
    const bodies = Object.entries(about.requestBody?.content ?? {});
    if (bodies.length) {
      add("p", `Body, ${bodies.map(([kind]) => kind).join(" or ")}:`);
      add("pre", fields(bodies[0][1].schema));
    }
    addExample(path, method, bodies);
    addAnswers(about.responses);
  }
}

function add(name, text) {
  const node = document.createElement(name);
  // What the server's own words have in backticks is code.
  const pieces = name === "p" ? text.split("`") : [text];
  pieces.forEach((piece, index) => {
    const holder = index % 2 ? document.createElement("code") : document.createElement("span");
    holder.textContent = piece;
    node.append(holder);
  });
  main.append(node);
}

// A heading, and a link to it among the contents.
function addHeading(name) {
  const heading = document.createElement("h2");
  heading.id = name.replaceAll(/\W+/g, "-").toLowerCase();
  heading.textContent = name;
  main.append(heading);
  const link = document.createElement("a");
  link.href = `#${heading.id}`;
  link.textContent = name;
  const item = document.createElement("li");
  item.append(link);
  contents.append(item);
}

function addExample(path, method, bodies) {
  const [kind, body] = bodies[0] ?? [];
  const example = body && resolve(body.schema).examples?.[0];
  if (!example && kind) return;
  const words = [`curl -X ${method.toUpperCase()} ${location.origin}${path}`];
  if (example && kind.startsWith("multipart")) {
    for (const [field, value] of Object.entries(example)) words.push(`-F ${field}=${value}`);
  } else if (example) {
    words.push("-H 'Content-Type: application/json'");
    words.push(`-d '${JSON.stringify(example).replaceAll("'", "'\\''")}'`);
  }
  add("p", "Example:");
  add("pre", words.join(" \\\n  "));
}

function addAnswers(responses) {
  const errors = [];
  for (const [status, one] of Object.entries(responses)) {
    const [kind, content] = Object.entries(one.content ?? {})[0] ?? [];
    const example = content?.example;
    if (status < "400") {
      add("p", `Answer, ${status}${kind ? `, ${kind}` : ""}:`);
      if (example === undefined) add("pre", kind ? "(the file)" : "(nothing)");
      else add("pre", kind === "application/json" ? JSON.stringify(example, null, 1) : example);
    } else {
      const body = example === undefined ? "" : `\n    ${JSON.stringify(example)}`;
      errors.push(`${status}: ${one.description}${body}`);
    }
  }
  if (!errors.length) return;
  add("p", "Errors:");
  add("pre", errors.join("\n"));
}

function resolve(schema) {
  return schema.$ref ? api.components.schemas[schema.$ref.split("/").pop()] : schema;
}

function parameter(one) {
  const help = one.description ? `: ${one.description}` : "";
  return `${one.name} (${kindOf(one.schema)}${defaultOf(one.schema, one.required)})${help}`;
}

// A line for each field: its name, its kind, its bounds, its default and its help.
function fields(schema) {
  const whole = resolve(schema);
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
  if (one.$ref) return kindOf(resolve(one));
  if (one.anyOf) return one.anyOf.map(kindOf).join(" or ");
  if (one.enum) return one.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (one.const !== undefined) return JSON.stringify(one.const);
  if (one.type === "array") return `list of ${kindOf(one.items)}`;
  if (one.contentMediaType === "application/octet-stream") return "file";
  const low = one.minimum ?? one.exclusiveMinimum;
  const high = one.maximum ?? one.exclusiveMaximum;
  const most = one.maxLength ? ` of up to ${one.maxLength} characters` : "";
  const least = low === undefined ? "" : ` from ${low}`;
  return `${one.type ?? "anything"}${most}${least}${high === undefined ? "" : ` to ${high}`}`;
}
