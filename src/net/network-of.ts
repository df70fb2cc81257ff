// The networks by which attempts of a client are counted.

import { isIPv6 } from 'node:net';

/** The /64 network of an IPv6 address, since a host usually has a whole one; an IPv4 address itself. */
export function networkOf(address: string): string {
  return networkOfGroups(address, 4);
}

/** The /48 network of an IPv6 address, since a customer of a provider may have a whole one; an IPv4 address itself. */
export function siteOf(address: string): string {
  return networkOfGroups(address, 3);
}

/** `groups`: of 16 bits. */
function networkOfGroups(address: string, groups: number): string {
  const [plain = ''] = address.split('%');
  if (!isIPv6(plain)) return plain;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)?.[1];
  if (mapped !== undefined) return mapped;
  const [head = '', rest] = plain.toLowerCase().split('::');
  const first = head === '' ? [] : head.split(':');
  const last = rest?.split(':') ?? [];
  const gap = rest === undefined ? 0 : 8 - first.length - last.length;
  return [...first, ...Array<string>(Math.max(0, gap)).fill('0'), ...last]
    .slice(0, groups)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':');
}
