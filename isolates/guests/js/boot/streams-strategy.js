// Queuing strategies, and how a stream reads one.
(() => {
  "use strict";
  const boot = globalThis.__boot;

  class CountQueuingStrategy {
    #highWaterMark;
    constructor(init) {
      this.#highWaterMark = requireHighWaterMark(init, "CountQueuingStrategy");
    }
    get highWaterMark() {
      return this.#highWaterMark;
    }
    get size() {
      return countSize;
    }
  }

  class ByteLengthQueuingStrategy {
    #highWaterMark;
    constructor(init) {
      this.#highWaterMark = requireHighWaterMark(init, "ByteLengthQueuingStrategy");
    }
    get highWaterMark() {
      return this.#highWaterMark;
    }
    get size() {
      return byteLengthSize;
    }
  }

  // One function for all instances, as the standard asks; arrow functions are not constructors.
  const { size: countSize } = { size: () => 1 };
  const { size: byteLengthSize } = { size: (chunk) => chunk.byteLength };

  function requireHighWaterMark(init, name) {
    if (!boot.isObject(init) || init.highWaterMark === undefined) {
      throw new TypeError(`${name} needs an object with a highWaterMark.`);
    }
    return Number(init.highWaterMark);
  }

  boot.highWaterMark = (strategy, fallback) => {
    const value = strategy?.highWaterMark;
    if (value === undefined) return fallback;
    const number = Number(value);
    if (Number.isNaN(number) || number < 0) throw new RangeError("Invalid highWaterMark");
    return number;
  };

  // undefined stands for "every chunk counts 1", which spares a call per chunk.
  boot.sizeAlgorithm = (strategy) => {
    const size = strategy?.size;
    if (size === undefined) return undefined;
    if (typeof size !== "function") throw new TypeError("The strategy's size is not a function.");
    return (chunk) => size(chunk);
  };

  boot.checkedSize = (size) => {
    const number = Number(size);
    if (Number.isNaN(number) || number < 0 || number === Infinity) {
      throw new RangeError("The return value of a queuing strategy's size function is invalid.");
    }
    return number;
  };

  // The method `name` of a user's source, sink or transformer as a function that returns a promise.
  boot.promiseMethod = (owner, name) => {
    const method = boot.optionalMethod(owner, name);
    if (method === undefined) return undefined;
    return (...args) => {
      try {
        return boot.resolved(Reflect.apply(method, owner, args));
      } catch (error) {
        return boot.rejected(error);
      }
    };
  };
  boot.optionalMethod = (owner, name) => {
    const method = owner?.[name];
    if (method === undefined) return undefined;
    if (typeof method !== "function") throw new TypeError(`'${name}' is not a function.`);
    return method;
  };

  boot.expose(CountQueuingStrategy, ByteLengthQueuingStrategy);
})();
