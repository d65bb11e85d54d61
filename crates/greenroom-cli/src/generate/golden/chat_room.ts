// Actors of kind chat_room, version 2. Written by `greenroom generate`: do not edit.
// Digest 85d6c00ab5e685634654a68c562701c9d39118ba6f64f8da9be69ba2946db2e1.
import type { Kind } from "greenroom";

export type Entry = { answers?: Array<Entry>; class: number | bigint; user: string };

export type Mood = "Calm" | "Glad" | "Sad";

export type NotMember = { user: string };

export type ChatRoomMethods = {
  /** Says it to all. Its own error: NotMember. */
  post(c: unknown, args: { user: string; text: string; mood?: Mood }): number | bigint;
  clear(c: unknown): null;
  other(c: unknown, args?: object): unknown;
};

export type ChatRoomReads = {
  history(c: unknown, args?: { start?: number | null }): AsyncGenerator<Entry>;
  names(c: unknown): Record<string, [boolean, number]>;
};

const called = (): never => {
  throw new Error("called by reference only");
};

/** A room with "quotes" and *\/. */
export const chatRoom: Kind<object, ChatRoomMethods, ChatRoomReads> = {
  name: "chat_room",
  definition: { version: 2, methods: { post: called, clear: called, other: called } as never, reads: { async *history() { called(); }, names: called } as never },
};
