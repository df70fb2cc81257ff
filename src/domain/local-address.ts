// Addresses of this machine: how its listeners are reached, their names in a Host header, and which only this machine can reach.

/** Loopback addresses that reach a listener on all addresses. */
const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** The URL that reaches a listener at this address from this machine. */
export function localUrl(host: string, port: number, scheme: 'http' | 'https' = 'http'): string {
  return `${scheme}://${joinHostPort(LOOPBACK[host] ?? host, port)}`;
}

export function joinHostPort(host: string, port: number | string): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** True for an address that only this machine can reach, with or without the brackets of IPv6. */
export function isLoopback(host: string): boolean {
  return ['localhost', '::1', '[::1]'].includes(host) || /^127(\.\d+){1,3}$/.test(host);
}

/** The names of this machine in a Host header, with or without a port. */
export const LOCAL_HOST = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i;
