/** Kinds: what a person writes of an actor, and what is read from it. */

import { createHash } from "node:crypto";
import { inspect } from "node:util";

import type { Context } from "./context.js";
import { Refused, isObject } from "./errors.js";

type Handler<S> = (c: Context<S>, args: any) => unknown;
export type Handlers<S> = Record<string, Handler<S>>;

/** A schema of any library that speaks Standard Schema; of one that speaks Standard JSON Schema, the description has its types. */
export interface Schema {
  readonly "~standard": {
    readonly validate: (value: unknown) => Validated | Promise<Validated>;
    readonly jsonSchema?: { readonly input: (options: { target: string }) => Record<string, unknown> };
  };
}
type Validated = { readonly value: unknown; readonly issues?: undefined } | { readonly issues: readonly Issue[] };
type Issue = { readonly message: string; readonly path?: readonly unknown[] | undefined };

/** What stands behind a kind's name. */
export interface Definition<S extends object, M, R> {
  /** What each activation begins with. */
  state?: () => S;
  /** Exclusive turns, across every await. */
  methods?: M & Handlers<S>;
  /** Reads, which interleave. Generators are streams of replies. */
  reads?: R & Handlers<S>;
  /** What checks arguments, and what the description says of types. */
  schemas?: { [name in NoInfer<keyof M | keyof R>]?: { arguments?: Schema; reply?: Schema } };
  activated?: (c: Context<S>) => unknown;
  deactivating?: (c: Context<S>, why: string) => unknown;
  persistent?: boolean;
  /** Turns commit in a journal: each member of the state that has changed, together with the messages that were sent. */
  reliable?: boolean;
  /** The first state of a state machine, which a reliable actor is then. */
  start?: string;
  /** What becomes of messages in a state machine's states. One of which nothing is said runs in all of them. */
  on?: { [name in NoInfer<keyof M | keyof R>]?: In };
  save?: "explicit" | "turn" | { after: number };
  version?: number;
  compatible?: number;
  stateVersion?: number;
  /** Makes a state from one that an older version wrote. */
  migrate?: (version: number, state: unknown) => S;
  /** Whether the state goes along when an actor moves to another node. */
  travels?: boolean;
  /** Milliseconds without a message after which an activation ends. */
  idle?: number;
  onError?: "keep" | "restart";
  /** Messages that may wait at one activation; what comes then is refused as `Overloaded`. */
  mailbox?: number;
  placement?: string;
  store?: string;
  doc?: string;
}

/**
 * States of a state machine in which a message runs, in which it waits for the next jump (`defer`), and in which it is done with, unseen
 * (`ignore`); "*" stands for all that are not named. In others it is refused.
 */
export interface In {
  run?: readonly string[];
  defer?: readonly string[];
  ignore?: readonly string[];
}

/** A kind, with the types of its methods. */
export interface Kind<S extends object, M, R> {
  readonly name: string;
  readonly definition: Definition<S, M, R>;
}

/** A kind, whatever its types. */
export interface AnyKind {
  readonly name: string;
  readonly definition: object;
}
type AnyDefinition = Definition<object, Handlers<object>, Handlers<object>>;

/** What is written of a kind, whatever its types. */
export function definitionOf(kind: AnyKind): AnyDefinition {
  return kind.definition as AnyDefinition;
}

/** An actor's kind: `actor("chat_room", { state: () => ({ .. }), methods: { .. }, reads: { .. } })`. */
export function actor<S extends object, M = {}, R = {}>(
  name: string,
  definition: Definition<S, M, R>,
): Kind<S, M, R> {
  return { name, definition };
}

/** A method that callers have. */
export interface Method {
  readonly name: string;
  readonly index: number;
  readonly isRead: boolean;
  readonly run: Handler<object>;
  readonly schema: Schema | undefined;
}

/** What the SDK knows of a kind that it serves. */
export class Served {
  readonly name: string;
  readonly methods: Method[];
  readonly version: number;
  readonly stateVersion: number;
  readonly hasState: boolean;
  readonly description: Record<string, unknown>;
  readonly digest: string;
  readonly definition: AnyDefinition;

  constructor(kind: AnyKind) {
    if (!isObject(kind) || typeof kind.name !== "string" || !isObject(kind.definition)) {
      throw new TypeError(`${inspect(kind, { depth: 0 })} is no kind: give what actor("name", { .. }) has made`);
    }
    const { name } = kind;
    const definition = (this.definition = definitionOf(kind));
    this.name = name;
    this.version = definition.version ?? 1;
    this.stateVersion = definition.stateVersion ?? 1;
    this.hasState = Boolean(definition.persistent || definition.travels);
    if (!/^[\w.-]{1,64}$/.test(name)) throw new TypeError(`kind ${JSON.stringify(name)} is not 1 to 64 letters, digits, _, - and .`);
    if (definition.save !== undefined && !definition.persistent) throw new TypeError(`${name}: \`save\` is for persistent: true`);
    const { persistent, travels, placement, store, onError } = definition;
    if (definition.reliable && (persistent || travels || placement || store || onError)) {
      throw new TypeError(`${name}: reliable: true says already where it is and what is kept; leave the other options out`);
    }
    const { start, on } = definition;
    if (start !== undefined ? !definition.reliable : on !== undefined) {
      throw new TypeError(`${name} is no state machine: write both reliable: true and its first state, start`);
    }
    const all = [
      ...Object.entries(definition.methods ?? {}).map(([method, run]) => ({ method, run, isRead: isGenerator(run) })),
      ...Object.entries(definition.reads ?? {}).map(([method, run]) => ({ method, run, isRead: true })),
    ];
    if (all.length === 0) throw new TypeError(`${name} has no method: write at least one`);
    if (new Set(all.map(({ method }) => method)).size < all.length) throw new TypeError(`${name} has two methods of one name`);
    const other = all.find(({ run }) => typeof run !== "function");
    if (other) throw new TypeError(`${name}.${other.method} is ${inspect(other.run, { depth: 0 })}, and no function`);
    this.methods = all.map(({ method, run, isRead }, index) => {
      const schema = definition.schemas?.[method]?.arguments;
      return { name: method, index, isRead, run: run as Handler<object>, schema };
    });
    const unknown = Object.keys(on ?? {}).find((said) => !all.some(({ method }) => method === said));
    if (unknown !== undefined) throw new TypeError(`${name} has no method ${unknown}, of which \`on\` says something`);
    this.description = this.#describe();
    const size = Buffer.byteLength(JSON.stringify(this.description));
    if (size > DESCRIPTION_MAX) {
      throw new TypeError(`${name}: its description has ${size} bytes, and ${DESCRIPTION_MAX} are the most: let schemas take and give smaller types`);
    }
    this.digest = digest(this.description);
  }

  #describe(): Record<string, unknown> {
    const { definition: said, name: kind } = this;
    const options: Record<string, unknown> = {};
    if (said.persistent) options.persistent = true;
    if (said.persistent) options.save = typeof said.save === "object" ? { after_ms: said.save.after } : (said.save ?? "explicit");
    if (said.reliable) options.reliable = true;
    if (said.start !== undefined) options.start = said.start;
    if (said.travels) options.migrate = true;
    if (said.idle !== undefined) options.idle_ms = Math.round(said.idle);
    if (said.onError === "restart") options.on_error = "restart";
    if (said.mailbox !== undefined) options.mailbox = said.mailbox;
    if (said.placement !== undefined) options.placement = said.placement;
    if (said.store !== undefined) options.store = said.store;
    const defs: Record<string, unknown> = {};
    const methods = this.methods.map(({ name, isRead, run }) => {
      const schemas = said.schemas?.[name];
      const answer = of(schemas?.reply, defs);
      return {
        name, read: isRead, arguments: of(schemas?.arguments, defs), [isGenerator(run) ? "stream" : "reply"]: answer, error: true,
        ...statesOf(kind, name, said.on?.[name]),
      };
    });
    const states = said.persistent ? [{ name: "self", version: this.stateVersion }] : [];
    const version = this.version;
    const compatible = said.compatible ?? 1;
    return { greenroom: 1, kind, version, compatible, doc: said.doc ?? "", options, methods, states, topics: [], $defs: defs };
  }
}

/** What a description says of a method's states. */
function statesOf(kind: string, method: string, said: In | undefined): { states?: Record<string, string> } {
  if (said === undefined) return {};
  const states = new Map<string, string>();
  for (const handling of ["run", "defer", "ignore"] as const) {
    for (const state of said[handling] ?? []) {
      if (states.has(state)) throw new TypeError(`${kind}.${method} names the state ${state} twice`);
      states.set(state, handling);
    }
  }
  return { states: Object.fromEntries(states) };
}

/** Checks arguments against a method's schema: gives what the schema makes of them. */
export async function checked(schema: Schema, value: unknown): Promise<unknown> {
  return fitting(await schema["~standard"].validate(value));
}

/** The same where nobody can wait: of a schema that answers later, nothing is known yet. */
export function checkedNow(schema: Schema, value: unknown): void {
  const found = schema["~standard"].validate(value);
  if (found instanceof Promise) found.catch(() => {});
  else fitting(found);
}

function fitting(found: Validated): unknown {
  if (found.issues === undefined) return found.value;
  const [first] = found.issues;
  const path = (first?.path ?? []).map((part) => (isObject(part) ? String(part.key) : String(part))).join(".");
  throw new Refused("Invalid", { field: path, message: first?.message ?? "the arguments do not fit" });
}

/** SHA-256 of a description's canonical bytes: the same in all SDKs. */
export function digest(description: Record<string, unknown>): string {
  return createHash("sha256").update(canonical(description)).digest("hex");
}

/** What a description is known by: without docs and annotations, keys sorted, no spaces. */
export function canonical(description: Record<string, unknown>): string {
  const isSaid = (name: string, value: unknown) => name !== "doc" && value !== null && value !== undefined;
  const method = (name: string, value: unknown) => (OF_METHOD.has(name) ? schemaText(value) : text(value));
  return object(description, isSaid, (name, value) => {
    if (name === "methods" && Array.isArray(value)) {
      return list(value, (one) => (isObject(one) ? object(one, isSaid, method) : text(one)));
    }
    return name === "$defs" ? named(value) : text(value);
  });
}

function schemaText(schema: unknown): string {
  if (!isObject(schema)) return text(schema);
  const counts = (name: string) => !ANNOTATIONS.has(name) && !name.startsWith("x-");
  if (!Object.keys(schema).some(counts)) return "true";
  return object(schema, counts, (name, value) => {
    if (ONE.has(name)) return schemaText(value);
    if (SEVERAL.has(name) && Array.isArray(value)) return list(value, schemaText);
    return BY_NAME.has(name) ? named(value) : text(value);
  });
}

function named(schemas: unknown): string {
  return isObject(schemas) ? object(schemas, () => true, (_, schema) => schemaText(schema)) : text(schemas);
}

function object(members: Record<string, unknown>, counts: (name: string, value: unknown) => boolean, write: (name: string, value: unknown) => string): string {
  const said = Object.entries(members).filter(([name, value]) => counts(name, value));
  said.sort(([one], [other]) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
  return `{${said.map(([name, value]) => `${JSON.stringify(name)}:${write(name, value)}`).join(",")}}`;
}

function list(values: unknown[], write: (value: unknown) => string): string {
  return `[${values.map(write).join(",")}]`;
}

function text(value: unknown): string {
  if (Array.isArray(value)) return list(value, text);
  if (isObject(value)) return object(value, () => true, (_, inside) => text(inside));
  if (typeof value !== "number") return JSON.stringify(value);
  if (Number.isInteger(value) && Math.abs(value) <= 2 ** 48) return String(value === 0 ? 0 : value);
  const bits = Buffer.alloc(4);
  bits.writeFloatBE(Math.fround(value));
  return `"f32:${bits.toString("hex")}"`;
}

/** A schema's JSON Schema, if it has one; `true` of what is not known. */
function of(schema: Schema | undefined, defs: Record<string, unknown>): unknown {
  const found = schema?.["~standard"].jsonSchema?.input({ target: "draft-2020-12" });
  if (found === undefined) return true;
  const { $schema: _, $defs: inner, ...rest } = found;
  if (isObject(inner)) Object.assign(defs, inner);
  return rest;
}

export function isGenerator(run: unknown): boolean {
  const tag = Object.prototype.toString.call(run);
  return tag === "[object AsyncGeneratorFunction]" || tag === "[object GeneratorFunction]";
}

const DESCRIPTION_MAX = 256 << 10;
const OF_METHOD = new Set(["arguments", "reply", "error", "stream"]);
const ANNOTATIONS = new Set(["$comment", "default", "deprecated", "description", "examples", "title"]);
const ONE = new Set([
  "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems",
  "unevaluatedProperties", "contentSchema",
]);
const SEVERAL = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
const BY_NAME = new Set(["properties", "patternProperties", "dependentSchemas"]);
