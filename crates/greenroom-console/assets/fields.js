// A form out of the JSON Schema of a method's arguments. What it cannot show is written as JSON.

/** The schema that `schema` points to, if it points. @param {any} schema @param {any} defs */
function pointed(schema, defs) {
  for (let hops = 0; hops < 8 && schema?.$ref; hops += 1) schema = defs?.[String(schema.$ref).split("/").pop()];
  return schema ?? true;
}

/** The fields of a method's arguments, in their order.
 * @param {any} method @param {any} defs
 * @returns {{name: string, type: string, rust: string, required: boolean, choices: string[], min?: number, max?: number}[]} */
export function fields(method, defs) {
  const all = method.arguments?.properties ?? {};
  const order = method.arguments?.["x-order"] ?? Object.keys(all);
  return order.map((name) => {
    const schema = pointed(all[name], defs);
    const choices = choicesOf(schema);
    const simple = typeof schema.type === "string" && ["string", "integer", "number", "boolean"].includes(schema.type);
    return {
      name, choices, min: schema.minimum, max: schema.maximum,
      rust: all[name]?.["x-rust"] ?? "", required: (method.arguments.required ?? []).includes(name),
      type: choices.length ? "choice" : simple ? schema.type : "json",
    };
  });
}

/** @param {any} schema @returns {string[]} */
function choicesOf(schema) {
  if (Array.isArray(schema.enum) && schema.enum.every((one) => typeof one === "string")) return schema.enum;
  const each = Array.isArray(schema.oneOf) ? schema.oneOf.map((one) => one.const) : [];
  return each.length > 0 && each.every((one) => typeof one === "string") ? each : [];
}

/** What was typed, as arguments. Numbers keep all their digits, so that it is JSON's text.
 * @param {ReturnType<typeof fields>} wanted @param {Record<string, string>} typed
 * @returns {{json?: string, wrong?: string}} */
export function read(wanted, typed) {
  const members = [];
  for (const { name, type, required, min, max } of wanted) {
    const text = typed[name] ?? (type === "boolean" ? "false" : "");
    if (text === "" && !required && type !== "boolean") continue;
    if (type === "string" || type === "choice") {
      members.push(`${JSON.stringify(name)}:${JSON.stringify(text)}`);
      continue;
    }
    if (type === "integer" && !/^-?(0|[1-9]\d*)$/.test(text)) return { wrong: `${name} is a whole number, such as 1` };
    if (type === "number" && (text === "" || !Number.isFinite(Number(text)))) return { wrong: `${name} is a number, such as 1.5` };
    if (Number(text) < min || Number(text) > max) return { wrong: `${name} is from ${min ?? "any"} to ${max ?? "any"}` };
    try { JSON.parse(text); } catch { return { wrong: `${name} is JSON, such as {"a": 1}, ["b"] or "c"` }; }
    members.push(`${JSON.stringify(name)}:${text}`);
  }
  return { json: `{${members.join(",")}}` };
}

/** A method as one would write it. @param {any} method @param {any} defs */
export function signature(method, defs) {
  const given = fields(method, defs).map(({ name, rust, type }) => `${name}: ${rust || type}`);
  const reply = method.reply?.["x-rust"];
  return `${method.name}(${given.join(", ")})${reply ? ` -> ${reply}` : ""}`;
}
