// How console shows values: as Node's util.inspect does without colours. Depth, lengths and the
// whole text are bounded, and nothing a value does while it is looked at can escape.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const MAX_DEPTH = 2;
  const MAX_ITEMS = 100;
  const MAX_STRING = 10_000;
  const LINE = 80;
  const CUSTOM = Symbol.for("nodejs.util.inspect.custom");
  const IDENTIFIER = /^[a-zA-Z_][a-zA-Z_0-9]*$/;
  const TypedArray = Object.getPrototypeOf(Uint8Array);

  // Classes of the platform show what their getters say: they have no own properties.
  const platform = new Set();
  boot.isPlatform = (constructor) => platform.has(constructor);
  boot.addPlatform = (constructor) => platform.add(constructor);

  // ---- primitives ----

  const escapes = { "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", "\\": "\\\\" };
  const quote = (text) => {
    const mark = !text.includes("'")
      ? "'"
      : !text.includes('"')
        ? '"'
        : !/[`$]/.test(text)
          ? "`"
          : "'";
    const escaped = text.replace(/[\x00-\x1f\x7f-\x9f\\']/g, (c) => {
      if (c === "'") return mark === "'" ? "\\'" : c;
      return escapes[c] ?? `\\x${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
    });
    return `${mark}${escaped}${mark}`;
  };
  const showString = (context, text) => {
    let trailer = "";
    if (text.length > MAX_STRING) {
      const rest = text.length - MAX_STRING;
      text = text.slice(0, MAX_STRING);
      trailer = `... ${rest} more character${rest > 1 ? "s" : ""}`;
    }
    if (text.length > 16 && text.length > LINE - context.indent - 4 && text.includes("\n")) {
      const lines = text.split(/(?<=\n)/);
      return lines.map(quote).join(` +\n${" ".repeat(context.indent + 2)}`) + trailer;
    }
    return quote(text) + trailer;
  };
  const showPrimitive = (context, value) => {
    switch (typeof value) {
      case "string":
        return showString(context, value);
      case "number":
        return Object.is(value, -0) ? "-0" : `${value}`;
      case "bigint":
        return `${value}n`;
      case "symbol":
        return value.toString();
      default:
        return `${value}`;
    }
  };

  // ---- objects ----

  const constructorName = (value) => {
    for (let at = value; at !== null; at = Object.getPrototypeOf(at)) {
      const found = Object.getOwnPropertyDescriptor(at, "constructor");
      if (found !== undefined && typeof found.value === "function" && found.value.name !== "") {
        return found.value.name;
      }
    }
    return null;
  };
  const prefixOf = (value, fallback, size = undefined) => {
    const name = constructorName(value);
    const count = size === undefined ? "" : `(${size})`;
    let tag = value[Symbol.toStringTag];
    if (typeof tag !== "string" || tag === "" || tag === name) tag = "";
    else tag = `[${tag}] `;
    if (name === null) return `[${fallback}${count}: null prototype] ${tag}`;
    return `${name}${count} ${tag}`;
  };

  const show = (context, value, depth) => {
    if (!boot.isObject(value)) return showPrimitive(context, value);
    if (typeof value[CUSTOM] === "function" && value[CUSTOM] !== boot.inspect) {
      const custom = value[CUSTOM](MAX_DEPTH - depth, {}, boot.inspect);
      if (custom !== value)
        return typeof custom === "string" ? custom : show(context, custom, depth);
    }
    if (context.seen.includes(value)) {
      let index = context.circular.indexOf(value);
      if (index === -1) index = context.circular.push(value) - 1;
      return `[Circular *${index + 1}]`;
    }
    return showObject(context, value, depth);
  };

  const showObject = (context, value, depth) => {
    const shape = shapeOf(context, value);
    if (shape.whole !== undefined && shape.keys.length === 0) return shape.whole;
    if (shape.isEmpty && shape.keys.length === 0) return shape.braces.join("");
    if (depth > context.depth) {
      const name = constructorName(value) ?? "Object: null prototype";
      return Array.isArray(value) ? "[Array]" : `[${name}]`;
    }
    context.seen.push(value);
    context.level = depth;
    const output = shape.entries === undefined ? [] : shape.entries(depth);
    for (const key of shape.keys)
      output.push(showProperty(context, value, key, depth, shape.isList));
    if (shape.platform) output.push(...showGetters(context, value, depth));
    context.seen.pop();
    const [open, close] = shape.braces;
    const reference = context.circular.indexOf(value);
    const mark = reference === -1 ? "" : `<ref *${reference + 1}> `;
    const base = shape.whole ?? "";
    if (output.length === 0 && base === "") return `${mark}${open}${close}`;
    return join(context, output, { base: mark + base, open, close, depth, value, shape });
  };

  const ownKeys = (value, isList) =>
    Reflect.ownKeys(value).filter((key) => {
      if (isList && typeof key === "string" && /^(0|[1-9]\d*)$/.test(key)) return false;
      return Object.prototype.propertyIsEnumerable.call(value, key);
    });

  // What kind of object it is: {whole} text, or {braces, entries(depth)} and the own keys to show.
  const shapeOf = (context, value) => {
    const isList = Array.isArray(value) || value instanceof TypedArray;
    const shape = { keys: ownKeys(value, isList), braces: ["{", "}"], isList, whole: undefined };
    shape.isEmpty = isList ? value.length === 0 : false;
    const braces = (prefix, open = "{", close = "}") => [`${prefix}${open}`, close];
    if (Array.isArray(value)) {
      const prefix = prefixOf(value, "Array", value.length);
      shape.braces = braces(prefix.startsWith("Array(") ? "" : prefix, "[", "]");
      shape.entries = (depth) => showArray(context, value, depth);
    } else if (value instanceof TypedArray) {
      shape.braces = braces(prefixOf(value, "TypedArray", value.length), "[", "]");
      shape.entries = () => showTypedArray(context, value);
    } else if (value instanceof Map) {
      shape.isEmpty = value.size === 0;
      shape.braces = braces(prefixOf(value, "Map", value.size));
      shape.entries = (depth) => showMap(context, Map.prototype.entries.call(value), depth, " => ");
    } else if (value instanceof Set) {
      shape.isEmpty = value.size === 0;
      shape.braces = braces(prefixOf(value, "Set", value.size));
      shape.entries = (depth) => showSet(context, value, depth);
    } else if (typeof value === "function") {
      shape.whole = functionText(value);
    } else if (value instanceof Error || value instanceof DOMException) {
      shape.whole = errorText(context, value);
      shape.keys = errorKeys(value, shape.keys);
    } else if (value instanceof Date) {
      shape.whole = Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
    } else if (value instanceof RegExp) {
      shape.whole = RegExp.prototype.toString.call(value);
    } else if (value instanceof ArrayBuffer) {
      shape.braces = braces(prefixOf(value, "ArrayBuffer"));
      shape.entries = () => showBuffer(value);
    } else if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet) {
      shape.braces = braces(prefixOf(value, "Object"));
      shape.entries = () => (value instanceof Promise ? [] : ["<items unknown>"]);
    } else if (value instanceof Number || value instanceof String || value instanceof Boolean) {
      const name = constructorName(value);
      shape.whole = `[${name}: ${showPrimitive(context, value.valueOf())}]`;
      if (value instanceof String)
        shape.keys = shape.keys.filter((key) => !/^\d+$/.test(`${String(key)}`));
    } else if (platform.has(value.constructor)) {
      shape.platform = true;
      shape.braces = braces(prefixOf(value, "Object"));
      if (typeof value.entries === "function") {
        shape.entries = (depth) => showMap(context, value.entries(), depth, " => ");
      }
    } else {
      const prefix = prefixOf(value, "Object");
      shape.isEmpty = true;
      shape.braces = braces(prefix === "Object " ? "" : prefix);
    }
    return shape;
  };

  const functionText = (value) => {
    const source = Function.prototype.toString.call(value);
    const name = typeof value.name === "string" ? value.name : "";
    if (/^class\b/.test(source)) {
      const parent = Object.getPrototypeOf(value)?.name;
      const base = `class ${name === "" ? "(anonymous)" : name}`;
      return parent ? `[${base} extends ${parent}]` : `[${base}]`;
    }
    const kind = value[Symbol.toStringTag] ?? "Function";
    return name === "" ? `[${kind} (anonymous)]` : `[${kind}: ${name}]`;
  };
  const errorText = (context, error) => {
    const { name, message, stack } = boot.describeError(error);
    const text = stack === "" ? `[${message === "" ? name : `${name}: ${message}`}]` : stack;
    return context.indent === 0 ? text : text.replaceAll("\n", `\n${" ".repeat(context.indent)}`);
  };
  const errorKeys = (error, keys) => {
    const shown = keys.filter((key) => key !== "stack" && key !== "message" && key !== "name");
    for (const key of ["cause", "errors"]) {
      if (Object.hasOwn(error, key) && !shown.includes(key)) shown.push(key);
    }
    return shown;
  };

  // ---- entries ----

  const more = (count) => `... ${count} more item${count > 1 ? "s" : ""}`;
  const nested = (context, by, action) => {
    context.indent += by;
    try {
      return action();
    } finally {
      context.indent -= by;
    }
  };
  const showArray = (context, value, depth) => {
    const output = [];
    let index = 0;
    while (index < value.length && output.length < MAX_ITEMS) {
      if (Object.hasOwn(value, index)) {
        output.push(showProperty(context, value, index, depth, true, true));
        index += 1;
      } else {
        const start = index;
        while (index < value.length && !Object.hasOwn(value, index) && index - start < 1e6)
          index += 1;
        output.push(`<${index - start} empty item${index - start > 1 ? "s" : ""}>`);
      }
    }
    if (index < value.length) output.push(more(value.length - index));
    return output;
  };
  const showTypedArray = (context, value) => {
    const output = Array.from(value.subarray(0, MAX_ITEMS), (one) => showPrimitive(context, one));
    if (value.length > MAX_ITEMS) output.push(more(value.length - MAX_ITEMS));
    return output;
  };
  const showMap = (context, entries, depth, arrow) =>
    nested(context, 2, () => {
      const output = [];
      for (const [key, value] of entries) {
        if (output.length === MAX_ITEMS) {
          output.push("... more items");
          break;
        }
        output.push(`${show(context, key, depth + 1)}${arrow}${show(context, value, depth + 1)}`);
      }
      return output;
    });
  const showSet = (context, value, depth) =>
    nested(context, 2, () => {
      const output = [];
      for (const one of Set.prototype.values.call(value)) {
        if (output.length === MAX_ITEMS) {
          output.push(more(value.size - MAX_ITEMS));
          break;
        }
        output.push(show(context, one, depth + 1));
      }
      return output;
    });
  const showBuffer = (value) => {
    if (value.detached) return ["(detached)", "byteLength: 0"];
    const bytes = new Uint8Array(value, 0, Math.min(50, value.byteLength));
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const rest = value.byteLength - bytes.length;
    const tail = rest > 0 ? ` ... ${rest} more byte${rest > 1 ? "s" : ""}` : "";
    return [`[Uint8Contents]: <${hex}${tail}>`, `byteLength: ${value.byteLength}`];
  };
  const showProperty = (context, value, key, depth, inList, bare = false) => {
    const found = Object.getOwnPropertyDescriptor(value, key) ?? { value: value[key] };
    let text;
    if (found.get !== undefined) text = found.set === undefined ? "[Getter]" : "[Getter/Setter]";
    else if (found.set !== undefined) text = "[Setter]";
    else text = nested(context, 2, () => show(context, found.value, depth + 1));
    if (bare) return text;
    return `${showKey(key, found.enumerable)}: ${text}`;
  };
  const showKey = (key, enumerable = true) => {
    if (typeof key === "symbol") return `[${key.toString()}]`;
    if (key === "__proto__") return "['__proto__']";
    const text = IDENTIFIER.test(key) ? key : quote(key);
    return enumerable ? text : `[${text}]`;
  };
  const showGetters = (context, value, depth) => {
    const output = [];
    const names = new Set();
    for (let at = Object.getPrototypeOf(value); at !== Object.prototype && at !== null;) {
      for (const name of Object.keys(at)) {
        const { get } = Object.getOwnPropertyDescriptor(at, name);
        if (get === undefined || names.has(name)) continue;
        names.add(name);
        let text;
        try {
          const read = Reflect.apply(get, value, []);
          if (read instanceof Promise) continue;
          text = nested(context, 2, () => show(context, read, depth + 1));
        } catch {
          continue;
        }
        output.push(`${showKey(name)}: ${text}`);
      }
      at = Object.getPrototypeOf(at);
    }
    return output;
  };

  // ---- layout ----

  const join = (context, output, { base, open, close, depth, value, shape }) => {
    const entries = output.length;
    const isArray = Array.isArray(value) || shape.isList;
    if (isArray && entries > 6) output = group(context, output, value);
    const lead = base === "" || base.endsWith(" ") ? base : `${base} `;
    if (context.level - depth < 3 && entries === output.length) {
      const start = output.length + context.indent + open.length + base.length + 10;
      const length = output.reduce((sum, text) => sum + text.length, output.length + start);
      if (length <= LINE && !output.some((text) => text.includes("\n")) && !base.includes("\n")) {
        return `${lead}${open} ${output.join(", ")} ${close}`;
      }
    }
    const indent = `\n${" ".repeat(context.indent)}`;
    return `${lead}${open}${indent}  ${output.join(`,${indent}  `)}${indent}${close}`;
  };
  // Long lists of short items stand in columns.
  const group = (context, output, value) => {
    const count = output.at(-1).startsWith("... ") ? output.length - 1 : output.length;
    const lengths = output.slice(0, count).map((text) => text.length + 2);
    const longest = Math.max(...lengths);
    const total = lengths.reduce((sum, length) => sum + length, 0);
    if (longest * 3 + context.indent >= LINE) return output;
    if (total / longest <= 5 && longest > 8) return output;
    const bias = Math.sqrt(longest - total / output.length);
    const biased = Math.max(longest - 3 - bias, 1);
    const columns = Math.min(
      Math.round(Math.sqrt(2.5 * biased * count) / biased),
      Math.floor((LINE - context.indent) / longest),
      12,
      15,
    );
    if (columns <= 1) return output;
    const widths = [];
    for (let column = 0; column < columns; column++) {
      let width = 0;
      for (let i = column; i < count; i += columns) width = Math.max(width, lengths[i]);
      widths.push(width);
    }
    const numeric = value.every?.((one) => typeof one === "number" || typeof one === "bigint");
    const rows = [];
    for (let i = 0; i < count; i += columns) {
      const end = Math.min(i + columns, count);
      let row = "";
      for (let j = i; j < end; j++) {
        const isLast = j === end - 1;
        const text = isLast ? output[j] : `${output[j]}, `;
        const width = widths[j - i] - (isLast ? 2 : 0);
        if (numeric) row += text.padStart(width);
        else row += isLast ? text : text.padEnd(width);
      }
      rows.push(row);
    }
    if (count < output.length) rows.push(output[count]);
    return rows;
  };

  boot.inspect = (value, depth = MAX_DEPTH) => {
    try {
      const limit = typeof depth === "number" ? depth : MAX_DEPTH;
      return show({ seen: [], circular: [], indent: 0, level: 0, depth: limit }, value, 0);
    } catch {
      return "[value that cannot be shown]";
    }
  };
})();
