// Runs the cases of one area and answers [what it gave, what it should give] for each, by name.
import cases from "./cases.js";

const PATIENCE_MS = 10_000; // only a case that hangs meets it

const plain = (value) => {
  if (value === undefined) return "(undefined)";
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (value instanceof ArrayBuffer) return { bytes: [...new Uint8Array(value)] };
  if (value instanceof Uint8Array) return { bytes: [...value] };
  return Array.isArray(value) ? value.map(plain) : value;
};

const outcome = async (run, given, expected) => {
  const hung = scheduler.wait(PATIENCE_MS).then(() => Promise.reject(new Error("the case hung")));
  try {
    return plain(await Promise.race([run(given), hung]));
  } catch (error) {
    const thrown = { throws: error?.name ?? String(error) };
    const asked = expected?.message !== undefined;
    return asked || expected?.throws !== thrown.throws
      ? { ...thrown, message: error?.message }
      : thrown;
  }
};

export default {
  async fetch(request, env, ctx) {
    const answers = {};
    for (const [name, [run, expected]] of Object.entries(cases)) {
      answers[name] = [await outcome(run, { request, env, ctx }, expected), expected];
    }
    return Response.json(answers);
  },
};
