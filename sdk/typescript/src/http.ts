/** A client for browsers: calls by `fetch` at a node's HTTP door. Its types are those of the kind, imported with `import type`. */

import { headerToken, isInTheClear, refusal } from "./clear.js";
import type { Kind } from "./kind.js";
import type { CallOptions, Ref } from "./refs.js";

/** A call that came to no reply, as the door says it. */
export class Problem extends Error {
  constructor(readonly status: number, readonly members: Record<string, unknown>) {
    super(String(members.detail ?? members.title ?? `status ${status}`));
  }

  /** Whether the method may have run. */
  get mayHaveRun(): boolean {
    return this.members.may_have_run !== false;
  }

  /** The method's own error, if it is one. */
  get error(): unknown {
    return this.members.error;
  }
}

/** The actors behind a door: `door("http://localhost:7070").ref<typeof chatRoom>("chat_room", "lobby").post({ .. })`. */
export function door(url: string, { token: secret, fetch: by = fetch }: { token?: string; fetch?: typeof fetch } = {}) {
  const token = headerToken(secret);
  // In a page, a door without a host is the page's own.
  if (token && isInTheClear(new URL(url, globalThis.location?.href).href)) throw new Error(refusal(url));
  const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };
  async function call(path: string, args: unknown, { timeout, signal, context, idempotencyKey }: CallOptions = {}): Promise<unknown> {
    const signals = [signal, timeout === undefined ? undefined : AbortSignal.timeout(timeout)].filter((each) => each !== undefined);
    const pairs = Object.entries(context ?? {}).map(([key, value]) => `${key}=${encodeURIComponent(value)}`);
    const carried = {
      ...(pairs.length > 0 && { baggage: pairs.join(",") }),
      ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
    };
    const answer = await by(`${url}/${path}`, {
      method: "POST", headers: { ...headers, ...carried }, body: JSON.stringify(args ?? {}), signal: signals.length > 0 ? AbortSignal.any(signals) : null,
    });
    const text = await answer.text();
    const value: unknown = text ? JSON.parse(text) : null;
    if (!answer.ok) throw new Problem(answer.status, (value ?? {}) as Record<string, unknown>);
    return value;
  }
  return {
    ref<K>(kind: string, key: string): K extends Kind<infer _, infer M, infer R> ? Omit<Ref<M, R>, "$send"> : never {
      const get = (_: object, name: string | symbol) =>
        typeof name !== "string" || name === "then"
          ? undefined
          : (args: unknown, options?: CallOptions) => call([kind, key, name].map(encodeURIComponent).join("/"), args, options);
      return new Proxy({}, { get }) as never;
    },
  };
}
