/** What may travel: plain objects, arrays and what both codecs have; all else is refused by its path. */

/**
 * The value as the codecs are given it. They would write large integers as floats, times as an extension, and what is no plain object as
 * one with whatever it happens to have.
 */
export function plain(value: unknown): unknown {
  try {
    return made(value, 0);
  } catch (error) {
    // Only what is refused pays for finding out where it is.
    throw located(value) ?? error;
  }
}

function made(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`${value} cannot travel`);
      return Number.isInteger(value) && (value > 0xffffffff || value < -0x80000000) && Number.isSafeInteger(value) ? BigInt(value) : value;
    case "object":
      break;
    case "string":
      if (!value.isWellFormed()) throw new TypeError("half of a surrogate pair cannot travel");
      return value;
    case "bigint":
      if (!isOf64Bits(value)) throw new TypeError("an integer of more than 64 bits cannot travel");
      return value;
    case "function":
    case "symbol":
      throw new TypeError(`a ${typeof value} cannot travel`);
    default:
      return value;
  }
  if (value === null || value instanceof Uint8Array) return value;
  if (depth > DEPTH_MAX) throw new TypeError(`a value of more than ${DEPTH_MAX} levels cannot travel`);
  if (Array.isArray(value)) {
    let changed: unknown[] | undefined;
    for (let at = 0; at < value.length; at++) {
      const inside = made(value[at], depth + 1);
      if (inside !== value[at]) (changed ??= [...value])[at] = inside;
    }
    return changed ?? value;
  }
  if (value instanceof Date) return value.toISOString();
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if ("toJSON" in value && typeof value.toJSON === "function") return made(value.toJSON(), depth + 1);
  if (!isPlain(value)) throw new TypeError(`${named(value)} cannot travel`);
  let changed: Record<string, unknown> | undefined;
  for (const [name, one] of Object.entries(value)) {
    if (!name.isWellFormed()) throw new TypeError("half of a surrogate pair cannot travel");
    const inside = made(one, depth + 1);
    if (inside !== one) put((changed ??= { ...value }), name, inside);
  }
  return changed ?? value;
}

/** Gives an object a property of its own, whatever its name is. */
export function put(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name === "__proto__") Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
  else object[name] = value;
}

/** Returns true if an integer has at most 64 bits, with a sign or without. */
export function isOf64Bits(value: bigint): boolean {
  return value <= BIG_MAX && value >= BIG_MIN;
}

/** Whether it is an object as a literal makes one, here or in another realm. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Why a value cannot travel, by the path of what is wrong with it; `undefined` if that is not in the value. */
function located(value: unknown, path = "", within: readonly object[] = []): TypeError | undefined {
  const where = path || "the value";
  if (typeof value === "number" && !Number.isFinite(value)) return new TypeError(`${where} is ${value}, which cannot travel: leave it out, or use null`);
  if (typeof value === "string" && !value.isWellFormed()) return new TypeError(`${where} has half of a surrogate pair, which cannot travel: use toWellFormed()`);
  if (typeof value === "bigint" && !isOf64Bits(value)) return new TypeError(`${where} has more than 64 bits, which cannot travel: use a text`);
  if (typeof value === "function" || typeof value === "symbol") return new TypeError(`${where} is a ${typeof value}, which cannot travel: leave it out`);
  if (typeof value !== "object" || value === null || value instanceof Uint8Array || value instanceof Date || value instanceof ArrayBuffer) return undefined;
  if (within.includes(value)) return new TypeError(`${where} is cyclic, it holds itself: such a value cannot travel, so hold a key or an index there`);
  if (within.length > DEPTH_MAX) return new TypeError(`${path.slice(0, 80)}.. is deeper than ${DEPTH_MAX} levels, which cannot travel: use an array`);
  const inside = [...within, value];
  if (Array.isArray(value)) return first(value.entries(), (at, one) => located(one, `${path}[${at}]`, inside));
  if ("toJSON" in value && typeof value.toJSON === "function") return located(value.toJSON(), path, inside);
  if (!isPlain(value)) return new TypeError(`${where} is ${named(value)}, which cannot travel: use ${remedy(value)}`);
  const odd = Object.keys(value).find((name) => !name.isWellFormed());
  if (odd !== undefined) return new TypeError(`the name ${JSON.stringify(odd)} in ${where} has half of a surrogate pair, which cannot travel: use toWellFormed()`);
  return first(Object.entries(value), (name, one) => located(one, path ? `${path}.${name}` : name, inside));
}

function first<K>(entries: Iterable<[K, unknown]>, look: (name: K, value: unknown) => TypeError | undefined): TypeError | undefined {
  for (const [name, value] of entries) {
    const found = look(name, value);
    if (found) return found;
  }
  return undefined;
}

function named(value: object): string {
  const { name } = (value as { constructor?: { name?: string } }).constructor ?? {};
  return name ? `an instance of ${name}` : "no plain object";
}

function remedy(value: object): string {
  if (value instanceof Map) return "a plain object, as Object.fromEntries(map), or an array of its entries";
  if (value instanceof Set) return "an array, as [...set]";
  if (ArrayBuffer.isView(value)) return "an array, or a Uint8Array of its bytes";
  return "plain objects and arrays, or give it a toJSON()";
}

/** That of the most nested value which the nodes' readers of both codecs take is less. */
const DEPTH_MAX = 1000;

/** Integers are of 64 bits, with a sign or without. */
const BIG_MAX = 2n ** 64n - 1n;
const BIG_MIN = -(2n ** 63n);
