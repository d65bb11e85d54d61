/** Greenroom: virtual actors in TypeScript, hosts and clients of Greenroom nodes. */

export { Context, type Reminder, type SetReminder, type Timer } from "./context.js";
export { ActorError, Cycle, Failure, Fenced, Refused, Unknown } from "./errors.js";
export { Host, connect, serve, type HostOptions } from "./host.js";
export { actor, type AnyKind, type Definition, type In, type Kind, type Schema } from "./kind.js";
export { Topic, type AnyRef, type CallOptions, type Ref } from "./refs.js";
export { NoNode, NotLetIn } from "./ways.js";
