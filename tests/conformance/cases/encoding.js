const bytes = (...list) => new Uint8Array(list);

export default {
  encode: () => new TextEncoder().encode("aü€😀"),
  encode_lone_surrogate: () => new TextEncoder().encode("a\ud800b"),
  encode_nothing: () => new TextEncoder().encode(),
  encode_into: () => {
    const target = new Uint8Array(4);
    const { read, written } = new TextEncoder().encodeInto("aü€", target);
    return [read, written, target];
  },
  decode: () => new TextDecoder().decode(bytes(0x61, 0xc3, 0xbc, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80)),
  decode_replaces: () => new TextDecoder().decode(bytes(0x61, 0xff, 0xe2, 0x82, 0x62, 0xf0, 0x9f)),
  decode_fatal: () => new TextDecoder("utf-8", { fatal: true }).decode(bytes(0xff)),
  decode_bom: () => [new TextDecoder().decode(bytes(0xef, 0xbb, 0xbf, 0x61)).length, new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes(0xef, 0xbb, 0xbf, 0x61)).length],
  decode_stream: () => {
    const decoder = new TextDecoder();
    return [decoder.decode(bytes(0xe2, 0x82), { stream: true }), decoder.decode(bytes(0xac, 0x61), { stream: true }), decoder.decode()];
  },
  decode_stream_cut: () => {
    const decoder = new TextDecoder();
    return [decoder.decode(bytes(0xe2, 0x82), { stream: true }), decoder.decode()];
  },
  labels: () => ["utf8", "UTF-8", "unicode-1-1-utf-8", "latin1", "ascii", "utf-16", "windows-1252"].map((label) => new TextDecoder(label).encoding),
  latin1: () => new TextDecoder("latin1").decode(bytes(0x80, 0xe9, 0xff)),
  utf16: () => new TextDecoder("utf-16le").decode(bytes(0x61, 0x00, 0x3d, 0xd8, 0x00, 0xde)),
  unknown_label: () => new TextDecoder("foo"),
  btoa: () => btoa("hello\xff"),
  btoa_wide: () => btoa("€"),
  atob: () => atob(" aGk= "),
  atob_bad: () => atob("a"),
  encoder_stream: async () => {
    const stream = new ReadableStream({ start(c) { c.enqueue("a"); c.enqueue("ü"); c.close(); } });
    return new Response(stream.pipeThrough(new TextEncoderStream())).bytes();
  },
  decoder_stream: async () => {
    const stream = new ReadableStream({ start(c) { c.enqueue(bytes(0xc3)); c.enqueue(bytes(0xbc)); c.close(); } });
    const chunks = [];
    for await (const chunk of stream.pipeThrough(new TextDecoderStream())) chunks.push(chunk);
    return chunks.join("");
  },
};
