// Bodies of requests and responses. A body is a record {text, bytes, stream, used}: text and bytes
// stay as they are until somebody asks for a stream of them, so most bodies never become one.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const { rejected, resolved, then } = boot;
  const core = boot.readable;
  const { bodyOf, utf8Encode, utf8Decode } = boot.host;

  class BodyRecord {
    constructor(text, bytes, stream) {
      if (text !== null) this.text = text;
      else if (bytes !== null) this.bytes = bytes;
      else this.stream = stream;
    }
  }
  boot.record(BodyRecord, { text: null, bytes: null, stream: null, used: false });
  const newBody = (text, bytes, stream) => new BodyRecord(text, bytes, stream);
  const EMPTY = new Uint8Array(0);

  // What a constructor takes as a body, as {body, type}.
  const extractBody = (init) => {
    if (typeof init === "string") {
      return { body: newBody(init.toWellFormed(), null, null), type: "text/plain;charset=UTF-8" };
    }
    if (boot.isObject(init)) {
      const stream = boot.streamState(init);
      if (stream !== undefined) return { body: newBody(null, null, usable(stream)), type: null };
      const bytes = boot.bytesOf(init);
      if (bytes !== undefined) {
        return { body: newBody(null, boot.copyBytes(bytes), null), type: null };
      }
      const blob = boot.blobState(init);
      if (blob !== undefined) {
        return { body: newBody(null, blob.bytes, null), type: blob.type || null };
      }
      const query = boot.searchParamsText(init);
      if (query !== undefined) {
        const type = "application/x-www-form-urlencoded;charset=UTF-8";
        return { body: newBody(query, null, null), type };
      }
      if (boot.isFormData(init)) {
        const { bytes: form, type } = boot.serializeMultipart(init);
        return { body: newBody(null, form, null), type };
      }
    }
    return extractBody(`${init}`);
  };
  const usable = (stream) => {
    if (stream.disturbed) {
      throw new TypeError(
        "This ReadableStream is disturbed (has already been read from), and cannot be used as a body.",
      );
    }
    if (core.isLocked(stream)) {
      throw new TypeError("This ReadableStream is currently locked to a reader.");
    }
    return stream;
  };

  const isUsed = (body) =>
    body !== null && (body.used || (body.stream !== null && body.stream.disturbed));
  const usedError = () =>
    new TypeError(
      "Body has already been used. It can only be used once. Use tee() first if you need to read " +
        "it twice.",
    );

  const streamOf = (body) => {
    if (body.stream === null) {
      const bytes = body.text === null ? body.bytes : utf8Encode(body.text);
      body.stream = core.readableOfBytes(boot.copyBytes(bytes));
      if (body.used) passOver(body.stream);
    }
    return body.stream;
  };

  const passOver = (stream) => {
    core.lockForGood(stream);
    core.closeStream(stream);
  };

  // Take the body for good: {text}, {bytes} or {stream}, whichever is at hand; throws when it is
  // used.
  const takeBody = (body) => {
    if (isUsed(body)) throw usedError();
    const { stream } = body;
    if (stream !== null && core.isLocked(stream)) {
      throw new TypeError("This ReadableStream is currently locked to a reader.");
    }
    body.used = true;
    const held = body.text !== null || body.bytes !== null;
    if (!held) return { text: null, bytes: null, stream };
    if (stream !== null) {
      passOver(stream); // a stream of it was made, but not read: nobody will read it now
    }
    return { text: body.text, bytes: body.bytes, stream: null };
  };

  // Every read goes through here; `convert` gets {text, bytes} with one of them there.
  const consume = (record, convert) => {
    try {
      if (record.body === null) return resolved(convert({ text: "", bytes: null }, record));
      const taken = takeBody(record.body);
      if (taken.stream === null) return resolved(convert(taken, record));
      return then(boot.readAll(taken.stream), (bytes) => convert({ text: null, bytes }, record));
    } catch (error) {
      return rejected(error);
    }
  };
  const textOf = ({ text, bytes }) => {
    if (text === null) return utf8Decode(bytes, false, false);
    return text.startsWith("\ufeff") ? text.slice(1) : text;
  };
  // Bytes that nobody else holds: blobs share theirs, streams do not.
  const bytesFor = ({ text, bytes }) => {
    if (text !== null) return text === "" ? new Uint8Array(0) : utf8Encode(text);
    return boot.copyBytes(bytes);
  };
  const contentType = (record) => record.headers.get("content-type");

  const toFormData = (content, record) => {
    const type = contentType(record);
    if (type === null) {
      throw new TypeError("Parsing a Body as FormData requires a Content-Type header.");
    }
    const essence = type.split(";")[0].trim().toLowerCase();
    if (essence === "application/x-www-form-urlencoded") {
      return boot.formDataOf(boot.parseUrlEncoded(textOf(content)));
    }
    if (essence !== "multipart/form-data") {
      throw new TypeError(
        "Unrecognized Content-Type header value. FormData can only parse the following MIME " +
          "types: multipart/form-data, application/x-www-form-urlencoded",
      );
    }
    const found = /;\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(type);
    if (found === null) {
      throw new TypeError(
        "No boundary string in Content-Type header. The multipart/form-data MIME type requires a " +
          "boundary parameter, e.g. 'Content-Type: multipart/form-data; boundary=\"abcd\"'.",
      );
    }
    return boot.parseMultipart(bytesFor(content), found[1] ?? found[2]);
  };

  // The base of Request and Response: one private record, {headers, body, …}.
  class Body {
    get body() {
      const { body } = requiredRecord(this);
      return body === null ? null : boot.wrapStream(streamOf(body));
    }
    get bodyUsed() {
      return isUsed(requiredRecord(this).body);
    }
    arrayBuffer() {
      return read(this, (content) => boot.exactBuffer(bytesFor(content)));
    }
    blob() {
      return read(this, (content, record) =>
        boot.newBlob(bytesFor(content), contentType(record) ?? ""),
      );
    }
    bytes() {
      return read(this, bytesFor);
    }
    formData() {
      return read(this, toFormData);
    }
    json() {
      return read(this, (content) => JSON.parse(textOf(content)));
    }
    text() {
      return read(this, textOf);
    }
  }
  const requiredRecord = (value) => {
    const record = bodyOf(value);
    if (record === undefined) throw boot.illegal();
    return record;
  };
  const read = (value, convert) => {
    const record = bodyOf(value);
    return record === undefined ? rejected(boot.illegal()) : consume(record, convert);
  };
  boot.shape(Body);

  const cloneBody = (body) => {
    if (body === null) return null;
    if (isUsed(body) || (body.stream !== null && core.isLocked(body.stream))) {
      throw new TypeError("This ReadableStream is currently locked to a reader,");
    }
    if (body.text !== null || body.bytes !== null) return newBody(body.text, body.bytes, null);
    const [one, two] = boot.tee(body.stream);
    one.expectedLength = two.expectedLength = body.stream.expectedLength;
    body.stream = one;
    return newBody(null, null, two);
  };

  // The Headers object of a record, made when asked for.
  boot.headersObject = (record) => (record.headersObject ??= boot.wrapHeaders(record.headers));
  boot.Body = Body;
  boot.body = { cloneBody, EMPTY, extractBody, isUsed, newBody, streamOf, takeBody, usedError };
})();
