// The types of the platform, as far as this worker uses it. Editors read this file; nothing else does.
// For all of the platform: npm install --save-dev @cloudflare/workers-types, and delete what is below Env.

interface Env {
  AI: Ai;
  CACHE: KVNamespace;
  MODEL: string;
}

interface Ai {
  run(model: string, inputs: AiTextInput & { stream: true }): Promise<ReadableStream<Uint8Array>>;
  run(model: string, inputs: AiTextInput): Promise<{ response: string }>;
  run<Output = unknown>(model: string, inputs: object): Promise<Output>;
}

interface AiTextInput {
  prompt?: string;
  messages?: { role: "system" | "user" | "assistant"; content: string }[];
  max_tokens?: number;
  temperature?: number;
  stream?: boolean;
}

interface KVNamespace {
  get(key: string): Promise<string | null>;
  get(key: string, type: "text"): Promise<string | null>;
  get<Value = unknown>(key: string, type: "json"): Promise<Value | null>;
  get(key: string, type: "arrayBuffer"): Promise<ArrayBuffer | null>;
  get(key: string, type: "stream"): Promise<ReadableStream<Uint8Array> | null>;
  put(
    key: string,
    value: string | ArrayBuffer | ArrayBufferView | ReadableStream,
    options?: { expiration?: number; expirationTtl?: number; metadata?: unknown },
  ): Promise<void>;
  delete(key: string): Promise<void>;
  list(options?: { prefix?: string; limit?: number; cursor?: string }): Promise<{
    keys: { name: string; expiration?: number; metadata?: unknown }[];
    list_complete: boolean;
    cursor?: string;
  }>;
}

interface ExecutionContext {
  waitUntil(promise: Promise<unknown>): void;
  passThroughOnException(): void;
}

interface ExportedHandler<Env = unknown> {
  fetch?(request: Request, env: Env, ctx: ExecutionContext): Response | Promise<Response>;
}
