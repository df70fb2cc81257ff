// Error codes of Node's own sockets, the same for every driver.

const CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT', // a socket file
  'EACCES',
]);

/** True when the connection failed, not the statement. */
export function isNetworkTrouble(code: string): boolean {
  return CODES.has(code);
}
