/** Where a token may go: over TLS, or to this machine. */

/** True if what is sent to `url` crosses a network without encryption. */
export function isInTheClear(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !isLoopback(hostname.replace(/^\[|\]$/g, ""));
}

/** The error of a token that would go to `url` in the clear. */
export function refusal(url: string): string {
  return `${url} is plain HTTP, where others could read the token; write https://`;
}

/** The token in `text` as a header carries it: secrets end in a newline, editors put a byte order mark in front. */
export function headerToken(text: string | undefined): string | undefined {
  const token = text?.trim();
  if (token && !/^[!-~]+$/.test(token)) throw new Error("the token of this program is none: it has spaces, or characters that no token has");
  return token || undefined;
}

/** Addresses are as `URL` writes them. */
function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host) || /^::ffff:7f/.test(host);
}
