// Actors of kind chat_room, version 2. Written by `greenroom generate`: do not edit.
// Digest 3158434407ba22667e971872af54d7f6e8bd9156a128b9925b710e839dc7f33b.
import type { Kind } from "greenroom";

export type Entry = { answers?: Array<Entry>; class: number | bigint; user: string };

export type Index = { [key: string]: Index };

export type Mood = "Calm" | "Glad" | "Sad";

export type NotMember = { user: string };

export type Tree = Array<Tree>;

export type ChatRoomMethods = {
  /** Says it to all. Its own error: NotMember. */
  post(c: unknown, args: { user: string; text: string; mood?: Mood }): number | bigint;
  clear(c: unknown): null;
  plant(c: unknown, args: { tree: Tree }): Index;
  other(c: unknown, args?: object): unknown;
};

export type ChatRoomReads = {
  history(c: unknown, args?: { start?: number | null }): AsyncGenerator<Entry>;
  names(c: unknown): { [key: string]: [boolean, number] };
};

const called = (): never => {
  throw new Error("called by reference only");
};

/** A room with "quotes" and *\/. */
export const chatRoom: Kind<object, ChatRoomMethods, ChatRoomReads> = {
  name: "chat_room",
  definition: { version: 2, methods: { post: called, clear: called, plant: called, other: called } as never, reads: { async *history() { called(); }, names: called } as never },
};
