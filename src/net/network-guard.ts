// Checks addresses against networks: denied ones, and those of trusted proxies (src/http/callers/proxies.ts). Literal addresses
// of endpoints are checked at registration; names are checked after their look-up, when a connection is made
// (net/http1/connector.ts).

import { BlockList, isIP } from 'node:net';

/** The networks that are not public. Source: the IANA registries of special-purpose addresses (RFC 6890). */
export const SPECIAL_NETWORKS: readonly string[] = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...[
    '192.0.0.0/24',
    '192.0.2.0/24',
    '192.31.196.0/24',
    '192.52.193.0/24',
    '192.88.99.0/24',
    '192.168.0.0/16',
  ],
  ...['192.175.48.0/24', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  // Public addresses of IPv6 begin with 001. IPv4 addresses in IPv6 form are refused with the rest.
  ...['::/3', '4000::/2', '8000::/1', '2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
];
/** The error for an address to which no connection is made, because of its network. */
export class AddressDenied extends Error {
  constructor(address: string) {
    super(`address ${address} is not allowed`);
    this.name = 'AddressDenied';
  }
}

/** True when an IP address is in one of the ranges. IPv4-mapped IPv6 addresses count as their IPv4 address. */
export type AddressCheck = (address: string) => boolean;

/**
 * Makes the check of CIDR ranges such as `10.0.0.0/8`. `::/96` does not include `::1`. Throws RangeError for an
 * invalid range.
 */
export function addressesIn(networks: readonly string[]): AddressCheck {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix = ''] = network.split('/');
    const version = isIP(address);
    const bits = /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN;
    if (version === 0 || !(bits <= (version === 4 ? 32 : 128))) {
      throw new RangeError(`"${network}" is not a network in CIDR form, like 10.0.0.0/8`);
    }
    const family = version === 4 ? 'ipv4' : 'ipv6';
    if (network !== '::/96') list.addSubnet(address, bits, family);
    else {
      // The loopback address only happens to lie in the range of IPv4-compatible addresses.
      list.addAddress('::', family);
      list.addRange('::2', '::ffff:ffff', family);
    }
  }
  // These addresses also reach this machine.
  if (list.check('127.0.0.1')) list.addAddress('0.0.0.0');
  if (list.check('::1', 'ipv6')) list.addAddress('::', 'ipv6');
  return (address) => {
    const [plain = ''] = address.split('%'); // fe80::1%eth0: the zone says nothing about the range
    return list.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4');
  };
}

/**
 * The literal address of an endpoint if it is denied, in any spelling; undefined otherwise. Names are checked
 * after their look-up (guardedConnector).
 */
export function deniedAddress(endpoint: string, isDenied: AddressCheck): string | undefined {
  if (!URL.canParse(endpoint)) return undefined;
  const address = new URL(endpoint).hostname.replace(/^\[|\]$/g, '');
  return isIP(address) !== 0 && isDenied(address) ? address : undefined;
}
