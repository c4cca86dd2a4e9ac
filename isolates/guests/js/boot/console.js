// console: lines of text for the host, each with the request it belongs to.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { send } = boot.host;
  const { LOG } = boot.ToHost;
  const MAX_TEXT = 128 * 1024;
  // The host records 256 KiB of characters of a request, and 16 for each line (isolates/logs.py):
  // what is past that need not cross. Twice that here, as code units are at most two a character,
  // so that it is always the host which says that lines were dropped.
  const LOG_UNITS = 2 * 256 * 1024;
  const LINE_UNITS = 16;

  const loose = { __proto__: null, logUnits: 0 }; // lines of no request
  let indent = "";
  const counts = boot.newMap();
  const timers = boot.newMap();

  const format = (values) => {
    const rest = [...values];
    let text = "";
    if (typeof rest[0] === "string") {
      const pattern = rest.shift();
      if (rest.length === 0 || !pattern.includes("%")) text = pattern;
      else text = substitute(pattern, rest);
      if (rest.length > 0) text += " ";
    }
    return text + rest.map(plain).join(" ");
  };
  const plain = (value) => (typeof value === "string" ? value : boot.inspect(value));
  const substitute = (pattern, rest) =>
    pattern.replace(/%([sdifjoOc%])/g, (whole, kind) => {
      if (kind === "%") return "%";
      if (rest.length === 0) return whole;
      const value = rest.shift();
      switch (kind) {
        case "s":
          return boot.isObject(value)
            ? boot.inspect(value, 0)
            : typeof value === "bigint"
              ? `${value}n`
              : String(value);
        case "d":
          return boot.isObject(value) || typeof value === "symbol" ? "NaN" : `${Number(value)}`;
        case "i":
          return boot.isObject(value) || typeof value === "symbol" ? "NaN" : `${parseInt(value)}`;
        case "f":
          return typeof value === "symbol" ? "NaN" : `${parseFloat(value)}`;
        case "j":
          return json(value);
        case "c":
          return "";
        default:
          return boot.inspect(value, kind === "o" ? 4 : 2);
      }
    });
  const json = (value) => {
    try {
      return JSON.stringify(value) ?? "undefined";
    } catch {
      return "[Circular]";
    }
  };

  // A console never throws: not for a hostile value, and not for want of memory.
  const write = (level, text) => {
    try {
      let line = indent === "" ? text : indent + text.replaceAll("\n", `\n${indent}`);
      if (line.length > MAX_TEXT)
        line = `${line.slice(0, MAX_TEXT)}... ${line.length - MAX_TEXT} more characters`;
      const budget = boot.context.current ?? loose;
      if (budget.logUnits >= LOG_UNITS) return;
      budget.logUnits += line.length + LINE_UNITS;
      send(LOG, boot.requestId(), { __proto__: null, level, text: line });
    } catch {
      // Nothing is left to say it with.
    }
  };
  const print = (level, values) => {
    let text;
    try {
      text = format(values);
    } catch {
      text = "[values that cannot be shown]";
    }
    write(level, text);
  };
  const labelOf = (label) => {
    try {
      return label === undefined ? "default" : `${label}`;
    } catch {
      return "default";
    }
  };
  const elapsed = (label) => {
    const start = timers.get(label);
    return start === undefined ? undefined : `${label}: ${Date.now() - start}ms`;
  };

  const console = {
    debug: (...values) => print("debug", values),
    error: (...values) => print("error", values),
    info: (...values) => print("info", values),
    log: (...values) => print("log", values),
    warn: (...values) => print("warn", values),
    dir: (value, options) => {
      const depth = options?.depth;
      write("log", boot.inspect(value, depth === null ? Infinity : depth));
    },
    dirxml: (...values) => print("log", values),
    table: (rows, columns) => {
      const table = boot.isObject(rows) ? boot.tableText(rows, columns) : undefined;
      if (table === undefined) print("log", [rows]);
      else write("log", table);
    },
    trace: (...values) => {
      const stack = `${new Error().stack}`.split("\n").slice(1).join("\n").trimEnd();
      const message = values.length === 0 ? "" : `: ${format(values)}`;
      write("debug", `Trace${message}\n${stack}`);
    },
    group: (...values) => {
      if (values.length > 0) print("log", values);
      if (indent.length < 64) indent += "  ";
    },
    groupCollapsed: (...values) => console.group(...values),
    groupEnd: () => {
      indent = indent.slice(2);
    },
    clear: () => {
      indent = "";
    },
    count: (label) => {
      const name = labelOf(label);
      const count = (counts.get(name) ?? 0) + 1;
      if (counts.size < 1000 || counts.has(name)) counts.set(name, count);
      write("log", `${name}: ${count}`);
    },
    countReset: (label) => {
      if (!counts.delete(labelOf(label)))
        write("warn", `Count for '${labelOf(label)}' does not exist`);
    },
    assert: (condition, ...values) => {
      if (condition) return;
      if (typeof values[0] === "string") values[0] = `Assertion failed: ${values[0]}`;
      else values.unshift("Assertion failed");
      print("error", values);
    },
    time: (label) => {
      const name = labelOf(label);
      if (timers.has(name)) write("warn", `Timer '${name}' already exists`);
      else if (timers.size < 1000) timers.set(name, Date.now());
    },
    timeLog: (label, ...values) => {
      const text = elapsed(labelOf(label));
      if (text === undefined) write("warn", `Timer '${labelOf(label)}' does not exist`);
      else print("log", [text, ...values]);
    },
    timeEnd: (label) => {
      const text = elapsed(labelOf(label));
      if (text === undefined) write("warn", `Timer '${labelOf(label)}' does not exist`);
      else write("log", text);
      timers.delete(labelOf(label));
    },
  };
  Object.defineProperty(console, Symbol.toStringTag, { value: "console", configurable: true });
  boot.defineGlobal("console", console);

  // ---- table ----

  boot.tableText = (rows, columns) => {
    const isIterable = rows instanceof Map || rows instanceof Set;
    const entries = isIterable
      ? [...rows].map((row, index) => [index, rows instanceof Map ? row[1] : row])
      : Object.entries(rows);
    const heads = [];
    let hasValues = false;
    for (const [, row] of entries) {
      if (!boot.isObject(row)) hasValues = true;
      else if (columns === undefined) {
        for (const key of Object.keys(row)) if (!heads.includes(key)) heads.push(key);
      }
    }
    if (columns !== undefined) heads.push(...columns);
    const cell = (value) => boot.inspect(value, 0);
    const lines = entries.map(([index, row]) => [
      `${index}`,
      ...heads.map((head) =>
        boot.isObject(row) && Object.hasOwn(row, head) ? cell(row[head]) : "",
      ),
      ...(hasValues ? [boot.isObject(row) ? "" : cell(row)] : []),
    ]);
    const head = ["(index)", ...heads, ...(hasValues ? ["Values"] : [])];
    const widths = head.map((text, at) =>
      lines.reduce((width, line) => Math.max(width, line[at].length), text.length),
    );
    const rule = (left, middle, right) =>
      left + widths.map((width) => "─".repeat(width + 2)).join(middle) + right;
    const text = (line) => `│ ${line.map((one, at) => one.padEnd(widths[at])).join(" │ ")} │`;
    return [
      rule("┌", "┬", "┐"),
      text(head),
      rule("├", "┼", "┤"),
      ...lines.map(text),
      rule("└", "┴", "┘"),
    ].join("\n");
  };

  // ---- what nobody caught ----

  boot.logError = (text) => write("error", text);
  boot.logWarning = (text) => write("warn", text);
  boot.reportError = (error) => {
    if (boot.hasGlobalListener("error")) {
      const { message } = boot.describeError(error);
      const event = new boot.ErrorEvent("error", { error, message, cancelable: true });
      if (!boot.dispatchGlobal(event)) return;
    }
    write("error", `Uncaught ${boot.inspect(error)}`);
  };
  boot.host.onUnhandled((reason, promise) => {
    if (boot.hasGlobalListener("unhandledrejection")) {
      const event = boot.newRejectionEvent("unhandledrejection", promise, reason);
      if (!boot.dispatchGlobal(event)) return;
    }
    write("error", `Uncaught (in promise) ${boot.inspect(reason)}`);
  });
  boot.defineGlobal("reportError", function reportError(error) {
    if (arguments.length === 0) throw new TypeError("reportError() needs an error.");
    boot.reportError(error);
  });
})();
