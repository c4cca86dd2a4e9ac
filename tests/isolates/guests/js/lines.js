// Arguments of console.log, and the text they give. The texts are Node's.
export default [
  [
    () => ["a", 1, null, undefined, true, 5n, Symbol("x"), -0],
    "a 1 null undefined true 5n Symbol(x) -0",
  ],
  [
    () => [{ a: 1, "b-c": "x", [Symbol("s")]: [1, "two"] }],
    "{ a: 1, 'b-c': 'x', [Symbol(s)]: [ 1, 'two' ] }",
  ],
  [() => [[], {}, [[]], [{}]], "[] {} [ [] ] [ {} ]"],
  [() => [{ a: { b: { c: { d: 1 } } } }], "{ a: { b: { c: [Object] } } }"],
  [() => [[[[[1]]]]], "[ [ [ [Array] ] ] ]"],
  [
    () => [new Map([["a", { b: 1 }]]), new Set([1, "x"])],
    "Map(1) { 'a' => { b: 1 } } Set(2) { 1, 'x' }",
  ],
  [() => [[1, , 3, , ,]], "[ 1, <1 empty item>, 3, <2 empty items> ]"],
  [
    () => [new Uint8Array([1, 2]), new ArrayBuffer(2)],
    "Uint8Array(2) [ 1, 2 ] ArrayBuffer { [Uint8Contents]: <00 00>, byteLength: 2 }",
  ],
  [
    () => [function f() {}, () => {}, class A {}, class B extends Map {}, async () => {}],
    "[Function: f] [Function (anonymous)] [class A] [class B extends Map] [AsyncFunction (anonymous)]",
  ],
  [() => [new Date(0), /a/g, new Date(NaN)], "1970-01-01T00:00:00.000Z /a/g Invalid Date"],
  [
    () => [
      new (class Foo {
        x = 1;
      })(),
      Object.create(null),
      Object.create({}),
    ],
    "Foo { x: 1 } [Object: null prototype] {} {}",
  ],
  [
    () => [new Number(1), new String("a"), new Boolean(false)],
    "[Number: 1] [String: 'a'] [Boolean: false]",
  ],
  [
    () => [
      {
        get a() {
          return 1;
        },
        set b(x) {},
        get c() {
          return 1;
        },
        set c(x) {},
      },
    ],
    "{ a: [Getter], b: [Setter], c: [Getter/Setter] }",
  ],
  [
    () => [
      (() => {
        const o = { n: 1 };
        o.self = o;
        return o;
      })(),
    ],
    "<ref *1> { n: 1, self: [Circular *1] }",
  ],
  [() => [["it's", "a\nb", 'say "it\'s"']], "[ \"it's\", 'a\\nb', `say \"it's\"` ]"],
  [() => [{ f() {}, g: class {} }], "{ f: [Function: f], g: [class g] }"],
  [() => [Object.assign(() => {}, { a: 1 })], "[Function (anonymous)] { a: 1 }"],
  [() => [new WeakMap(), Symbol.iterator], "WeakMap { <items unknown> } Symbol(Symbol.iterator)"],
  [
    () => [Array.from({ length: 8 }, (_, i) => i * 100)],
    "[\n    0, 100, 200, 300,\n  400, 500, 600, 700\n]",
  ],
  [
    () => [{ a: "x".repeat(60), b: "y".repeat(30) }],
    "{\n  a: 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',\n  b: 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy'\n}",
  ],
  [() => [{ a: { b: { c: {} } } }], "{ a: { b: { c: {} } } }"],
  [() => [Array(101).fill(7).length, "x".repeat(3)], "101 xxx"],
  [
    () => [
      "%s is %d years and %i, %f, %j %O%% %c.",
      "Bob",
      42.5,
      42.9,
      "1.5",
      { a: 1 },
      [1],
      "css",
      "more",
    ],
    'Bob is 42.5 years and 42, 1.5, {"a":1} [ 1 ]% . more',
  ],
  [() => ["100%", 5], "100% 5"],
  [() => ["%s", { a: { b: 1 } }, "x"], "{ a: [Object] } x"],
  [() => ["a", "b"], "a b"],
  [() => [], ""],
];
