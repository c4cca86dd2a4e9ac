// The guest half of the AI binding: the class behind `env.AI`, with the members, errors and state of
// workerd's. The host half checks everything; nothing here is trusted.
(() => {
  "use strict";
  const { defineBinding, op, shape } = globalThis.__belem;
  const { Error, Response, TypeError } = globalThis;
  const { stringify } = JSON;
  const MAY_CONSTRUCT = {};

  class InferenceUpstreamError extends Error {
    constructor(message, name = "InferenceUpstreamError") {
      super(message);
      this.name = name;
    }
  }

  class AiInternalError extends Error {
    constructor(message) {
      super(message);
      this.name = "AiInternalError";
    }
  }

  const unavailable = (member) => {
    throw new AiInternalError(`env.AI.${member}() is not available in this version of Belem.`);
  };

  // The options that the host acts on or refuses. The others mean nothing here and are not sent:
  // gateway and extraHeaders (there is no gateway), rejectIfBusy (the daemon never queues for long).
  const sentOptions = ({ queueRequest, tags, websocket }) => ({ queueRequest, tags, websocket });

  const rawResponse = ({ status, headers, result, error }, stream) =>
    new Response(stream ?? stringify(error ?? result), { status, headers });

  class Ai {
    #capability;
    lastRequestId = null;
    aiGatewayLogId = null;
    lastRequestHttpStatusCode = null;
    lastRequestInternalStatusCode = null;

    constructor(token, capability) {
      if (token !== MAY_CONSTRUCT) throw new TypeError("Illegal constructor");
      this.#capability = capability;
    }

    async run(model, inputs, options) {
      options = options ?? {};
      const { prefix, returnRawResponse, signal } = options;
      this.lastRequestId = null;
      this.lastRequestHttpStatusCode = null;
      this.lastRequestInternalStatusCode = null;

      const args = {
        model: prefix ? `${prefix}:${model}` : model,
        inputs,
        options: sentOptions(options),
      };
      const { value: head, body: stream } = await op(
        this.#capability, "run", args, undefined, signal ?? undefined,
      );
      this.lastRequestId = head.headers["cf-ai-req-id"];
      this.lastRequestHttpStatusCode = head.status;
      this.lastRequestInternalStatusCode = head.error?.internalCode ?? null;

      if (returnRawResponse) return rawResponse(head, stream);
      if (head.error) {
        const { description, internalCode, name } = head.error;
        throw new InferenceUpstreamError(`${internalCode}: ${description}`, name);
      }
      return stream ?? head.result;
    }

    async models(params) {
      const { value } = await op(this.#capability, "models", params ?? {});
      return value;
    }

    getLogs() {
      return [];
    }

    gateway() {
      unavailable("gateway");
    }

    toMarkdown() {
      unavailable("toMarkdown");
    }

    autorag() {
      unavailable("autorag");
    }

    aiSearch() {
      unavailable("aiSearch");
    }

    async fetch() {
      unavailable("fetch");
    }
  }

  shape(Ai);
  defineBinding("ai", ({ capability }) => new Ai(MAY_CONSTRUCT, capability));
})();
