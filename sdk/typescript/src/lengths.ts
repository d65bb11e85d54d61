/** What MessagePack says of how much is in it, looked at before anything is made: the reader makes an array as long as it is said to be. */

/** Whether there are bytes for all values that `bytes` says it has. Of what is no MessagePack otherwise the reader finds out. */
export function isWhole(bytes: Uint8Array): boolean {
  // Only these two can promise more than a few values: most payloads have neither byte.
  if (!bytes.includes(ARRAY_16) && !bytes.includes(ARRAY_32)) return true;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = bytes.length;
  let [at, wanted] = [0, 1];
  while (wanted > 0) {
    // Each value has a byte at least.
    if (wanted > end - at) return false;
    const head = bytes[at++]!;
    wanted -= 1;
    if (head < 0x80 || head >= 0xe0) continue;
    if (head < 0x90) wanted += 2 * (head & 0x0f);
    else if (head < 0xa0) wanted += head & 0x0f;
    else if (head < 0xc0) at += head & 0x1f;
    else {
      const [size, per, beside] = HEADS[head - 0xc0]!;
      if (at + size > end) return false;
      const length = size === 1 ? view.getUint8(at) : size === 2 ? view.getUint16(at) : size === 4 ? view.getUint32(at) : 0;
      at += size + beside + (per === 0 ? length : 0);
      wanted += per * length;
    }
  }
  return true;
}

const ARRAY_16 = 0xdc;
const ARRAY_32 = 0xdd;

/** Of each head from 0xc0 on: the bytes of its length, the values that one of these stands for (0: a byte), and the bytes behind it in any case. */
const HEADS: readonly (readonly [size: number, per: number, beside: number])[] = [
  [0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], // nil, unused, false, true
  [1, 0, 0], [2, 0, 0], [4, 0, 0], // bin
  [1, 0, 1], [2, 0, 1], [4, 0, 1], // ext
  [0, 0, 4], [0, 0, 8], // float
  [0, 0, 1], [0, 0, 2], [0, 0, 4], [0, 0, 8], // uint
  [0, 0, 1], [0, 0, 2], [0, 0, 4], [0, 0, 8], // int
  [0, 0, 2], [0, 0, 3], [0, 0, 5], [0, 0, 9], [0, 0, 17], // fixext
  [1, 0, 0], [2, 0, 0], [4, 0, 0], // str
  [2, 1, 0], [4, 1, 0], // array
  [2, 2, 0], [4, 2, 0], // map
];
