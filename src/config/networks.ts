// Networks as settings write them: `10.0.0.0/8`, `fe80::/10`, a single address.
// Whether an address lies in one is asked by those who use the setting.

import { isIP } from 'node:net';

/** The CIDR form of an address or a network, `10.0.0.1/32` for a single one; undefined when `text` is neither. */
export function readNetwork(text: string): string | undefined {
  const [address = '', prefix, ...rest] = text.toLowerCase().split('/');
  const version = isIP(address);
  if (version === 0 || address.includes('%') || rest.length > 0) return undefined;
  const longest = version === 4 ? 32 : 128;
  if (prefix === undefined) return `${address}/${longest}`;
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= longest ? `${address}/${Number(prefix)}` : undefined;
}
