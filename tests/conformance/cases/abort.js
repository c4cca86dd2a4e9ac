export default {
  reason_is_an_abort_error: () => {
    const controller = new AbortController();
    controller.abort();
    return [controller.signal.aborted, controller.signal.reason.name, controller.signal.reason.message];
  },
  own_reason: () => {
    const controller = new AbortController();
    controller.abort("enough");
    return controller.signal.reason;
  },
  throw_if_aborted: () => AbortSignal.abort().throwIfAborted(),
  static_abort_with_reason: () => AbortSignal.abort(7).reason,
  event_fires_once: () => {
    const controller = new AbortController();
    let count = 0;
    controller.signal.addEventListener("abort", () => count++);
    controller.signal.onabort = () => count++;
    controller.abort();
    controller.abort();
    return count;
  },
  any_follows: () => {
    const controller = new AbortController();
    const signal = AbortSignal.any([new AbortController().signal, controller.signal]);
    controller.abort("one of them");
    return [signal.aborted, signal.reason];
  },
  fetch_with_aborted_signal: () => fetch("http://127.0.0.1:1/", { signal: AbortSignal.abort() }),
  fetch_to_a_closed_port: () => fetch("http://127.0.0.1:1/"),
  timeout_reason: async () => {
    const signal = AbortSignal.timeout(5);
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    return [signal.reason.name, signal.reason.message];
  },
  event_target: () => {
    const target = new EventTarget();
    const seen = [];
    target.addEventListener("x", (event) => seen.push(event.type, event.target === target), { once: true });
    target.dispatchEvent(new Event("x"));
    target.dispatchEvent(new Event("x"));
    return seen;
  },
  prevent_default: () => {
    const target = new EventTarget();
    target.addEventListener("x", (event) => event.preventDefault());
    return [target.dispatchEvent(new Event("x", { cancelable: true })), target.dispatchEvent(new Event("x"))];
  },
};
