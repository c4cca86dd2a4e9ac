// Iterators of Headers, FormData and URLSearchParams: live, over an array of [name, value] pairs.
(() => {
  "use strict";
  const boot = globalThis.__boot;
  const iteratorPrototype = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));

  // Adds keys, values, entries, forEach and Symbol.iterator to a class. `pairsOf(object)` is asked
  // anew at each step and throws for an object of another class.
  boot.makeIterable = (constructor, pairsOf) => {
    class PairIterator {
      #target;
      #kind;
      #index = 0;
      constructor(target, kind) {
        this.#target = target;
        this.#kind = kind;
      }
      next() {
        const pairs = pairsOf(this.#target);
        if (this.#index >= pairs.length) return { value: undefined, done: true };
        const [name, value] = pairs[this.#index];
        this.#index += 1;
        if (this.#kind === "keys") return { value: name, done: false };
        return { value: this.#kind === "values" ? value : [name, value], done: false };
      }
    }
    Object.setPrototypeOf(PairIterator.prototype, iteratorPrototype);
    boot.shape(PairIterator, `${constructor.name} Iterator`);
    delete PairIterator.prototype.constructor;

    const methods = {
      entries() {
        pairsOf(this);
        return new PairIterator(this, "entries");
      },
      forEach(callback, thisArg = undefined) {
        pairsOf(this);
        if (typeof callback !== "function") throw new TypeError("forEach() needs a function.");
        for (let i = 0; i < pairsOf(this).length; i++) {
          const [name, value] = pairsOf(this)[i];
          Reflect.apply(callback, thisArg, [value, name, this]);
        }
      },
      keys() {
        pairsOf(this);
        return new PairIterator(this, "keys");
      },
      values() {
        pairsOf(this);
        return new PairIterator(this, "values");
      },
    };
    for (const name of Object.keys(methods)) {
      const value = methods[name];
      const settings = { value, enumerable: true, writable: true, configurable: true };
      Object.defineProperty(constructor.prototype, name, settings);
    }
    Object.defineProperty(constructor.prototype, Symbol.iterator, {
      value: constructor.prototype.entries,
      writable: true,
      configurable: true,
    });
  };

  // A sequence of pairs, or an iterable's worth of them, as Web IDL reads it; undefined for a
  // record.
  boot.pairsOfSequence = (init, message) => {
    const method = init[Symbol.iterator];
    if (method === undefined || method === null) return undefined;
    if (typeof method !== "function") throw new TypeError(message);
    const pairs = [];
    for (const entry of init) {
      if (!boot.isObject(entry) || typeof entry[Symbol.iterator] !== "function") {
        throw new TypeError(message);
      }
      const pair = [...entry];
      if (pair.length !== 2) throw new TypeError(message);
      pairs.push(pair);
    }
    return pairs;
  };
})();
