// FormData, and multipart/form-data in both directions.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { illegal } = boot;
  const { utf8Encode, utf8Decode, latin1Decode } = boot.host;

  let entriesOf;
  class FormData {
    #entries = [];
    static {
      entriesOf = (value) => {
        if (boot.isObject(value) && #entries in value) return value.#entries;
        throw illegal();
      };
      boot.isFormData = (value) => boot.isObject(value) && #entries in value;
    }
    constructor(form = undefined) {
      if (form !== undefined) throw new TypeError("FormData has no form to read here.");
    }
    append(name, value, filename = undefined) {
      const entries = entriesOf(this);
      entries.push(entry(name, value, filename, arguments.length));
    }
    delete(name) {
      const wanted = boot.usvString(name);
      remove(entriesOf(this), (known) => known[0] === wanted);
    }
    get(name) {
      const wanted = boot.usvString(name);
      const found = entriesOf(this).find((known) => known[0] === wanted);
      return found === undefined ? null : found[1];
    }
    getAll(name) {
      const wanted = boot.usvString(name);
      return entriesOf(this)
        .filter((known) => known[0] === wanted)
        .map((known) => known[1]);
    }
    has(name) {
      const wanted = boot.usvString(name);
      return entriesOf(this).some((known) => known[0] === wanted);
    }
    set(name, value, filename = undefined) {
      const entries = entriesOf(this);
      const made = entry(name, value, filename, arguments.length);
      const index = entries.findIndex((known) => known[0] === made[0]);
      if (index === -1) {
        entries.push(made);
      } else {
        entries[index] = made;
        remove(entries, (known, at) => at > index && known[0] === made[0]);
      }
    }
  }

  const remove = (entries, matches) => {
    const kept = entries.filter((known, at) => !matches(known, at));
    entries.length = 0;
    entries.push(...kept);
  };
  const entry = (name, value, filename, given) => {
    if (given < 2) throw new TypeError("FormData needs a name and a value.");
    const blob = boot.blobState(value);
    if (blob === undefined) {
      if (given > 2) throw new TypeError("A file name goes with a Blob only.");
      return [boot.usvString(name), boot.usvString(value)];
    }
    const isFile = boot.isFile(value);
    if (isFile && filename === undefined) return [boot.usvString(name), value];
    const fileName = filename ?? (isFile ? value.name : "blob");
    const modified = isFile ? value.lastModified : undefined;
    return [boot.usvString(name), boot.newFile(blob.bytes, blob.type, fileName, modified)];
  };

  boot.makeIterable(FormData, entriesOf);

  // ---- multipart out ----

  const escapeName = (name) => name.replace(/\r\n|\r|\n/g, "%0D%0A").replaceAll('"', "%22");
  boot.serializeMultipart = (form) => {
    let boundary = "----formdata-";
    for (const byte of boot.randomBytes(16)) boundary += byte.toString(16).padStart(2, "0");
    const chunks = [];
    let size = 0;
    const put = (bytes) => {
      chunks.push(bytes);
      size += bytes.byteLength;
    };
    for (const [name, value] of entriesOf(form)) {
      const disposition = `--${boundary}\r\nContent-Disposition: form-data; name="${escapeName(name)}"`;
      const blob = boot.blobState(value);
      if (blob === undefined) {
        const text = value.replace(/\r\n|\r|\n/g, "\r\n");
        put(utf8Encode(`${disposition}\r\n\r\n${text}\r\n`));
      } else {
        const type = blob.type || "application/octet-stream";
        const head = `${disposition}; filename="${escapeName(value.name)}"`;
        put(utf8Encode(`${head}\r\nContent-Type: ${type}\r\n\r\n`));
        put(blob.bytes);
        put(utf8Encode("\r\n"));
      }
    }
    put(utf8Encode(`--${boundary}--\r\n`));
    return { bytes: joined(chunks, size), type: `multipart/form-data; boundary=${boundary}` };
  };
  const joined = (chunks, size) => boot.concatBytes([new Uint8Array(0), ...chunks], size);

  // ---- multipart in ----

  // Offsets are found in a Latin-1 reading of the bytes, where one character is one byte.
  boot.parseMultipart = (bytes, boundary) => {
    const form = new FormData();
    const entries = entriesOf(form);
    const text = latin1Decode(bytes);
    const delimiter = `--${boundary}`;
    let at = text.startsWith(delimiter) ? 0 : text.indexOf(`\r\n${delimiter}`) + 2;
    if (at === 1) throw malformed("it has no boundary");
    for (;;) {
      at += delimiter.length;
      if (text.startsWith("--", at)) return form;
      const headStart = skipLineEnd(text, at);
      const headEnd = text.startsWith("\r\n", headStart)
        ? headStart
        : text.indexOf("\r\n\r\n", headStart);
      if (headEnd === -1) throw malformed("a part's headers do not end");
      const bodyStart = headEnd === headStart ? headEnd + 2 : headEnd + 4;
      const bodyEnd = text.indexOf(`\r\n${delimiter}`, bodyStart);
      if (bodyEnd === -1) throw malformed("a part does not end");
      const head = utf8Decode(bytes.subarray(headStart, headEnd), false, true);
      entries.push(readPart(head, bytes.subarray(bodyStart, bodyEnd)));
      at = bodyEnd + 2;
    }
  };
  const skipLineEnd = (text, at) => {
    while (text[at] === " " || text[at] === "\t") at += 1;
    if (!text.startsWith("\r\n", at)) throw malformed("a boundary's line does not end");
    return at + 2;
  };
  const readPart = (head, body) => {
    const disposition = /^content-disposition:\s*form-data\s*;(.*)$/im.exec(head)?.[1];
    if (disposition === undefined) throw malformed("a part has no Content-Disposition");
    const name = parameter(disposition, "name");
    if (name === undefined) throw malformed("a part has no name");
    const filename = parameter(disposition, "filename");
    if (filename === undefined) return [name, utf8Decode(body, false, false)];
    const type = /^content-type:\s*(.*?)\s*$/im.exec(head)?.[1] ?? "text/plain";
    return [name, boot.newFile(boot.copyBytes(body), type, filename, undefined)];
  };
  const parameter = (disposition, name) => {
    const found = new RegExp(`(?:^|[;\\s])${name}=(?:"([^"]*)"|([^;\\s]*))`, "i").exec(disposition);
    if (found === null) return undefined;
    const text = found[1] ?? found[2];
    return text.replace(/%0D|%0A|%22/gi, (escape) => decodeURIComponent(escape));
  };
  const malformed = (why) => new TypeError(`The multipart/form-data body is malformed: ${why}.`);

  boot.formDataOf = (pairs) => {
    const form = new FormData();
    entriesOf(form).push(...pairs);
    return form;
  };
  boot.expose(FormData);
})();
