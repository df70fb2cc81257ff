// Decides at connect time whether an address may be reached: names are checked after they were resolved, on the very
// address that is used, so that a name cannot change its mind between the check and the connection (DNS rebinding).
// It opens sockets for undici; whether an endpoint may be registered at all is decided elsewhere.

import { lookup as systemLookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';

/** Ranges denied by default; one list for the setting and for the guard. */
export { DENIED_NETWORKS as DENIED_NETWORKS_DEFAULT } from '../domain/denied-networks.ts';

/** Raised instead of a connection to a denied address. */
export class AddressDenied extends Error {
  readonly code = 'ADDRESS_DENIED';
  readonly address: string;

  constructor(address: string) {
    super(`address ${address} is not allowed`);
    this.name = 'AddressDenied';
    this.address = address;
  }
}

/** Whether an IP address lies in one of the ranges. IPv4-mapped IPv6 addresses count as their IPv4 address. */
export type AddressCheck = (address: string) => boolean;

/** Makes the check for CIDR ranges like `10.0.0.0/8`. Throws RangeError for anything that is no range. */
export function deniedBy(networks: readonly string[]): AddressCheck {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix = ''] = network.split('/');
    const version = isIP(address);
    const bits = /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN;
    if (version === 0 || !(bits <= (version === 4 ? 32 : 128))) {
      throw new RangeError(`"${network}" is no network in CIDR form, like 10.0.0.0/8`);
    }
    list.addSubnet(address, bits, version === 4 ? 'ipv4' : 'ipv6');
  }
  return (address) => {
    const [plain = ''] = address.split('%'); // fe80::1%eth0: the zone says nothing about the range
    return list.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4');
  };
}

/**
 * The address that an endpoint names, when that is a literal one in a denied network. The URL class has brought all its
 * spellings into one form (decimal, octal, IPv4 in IPv6). A name is only known when it is resolved, see the connector.
 */
export function deniedAddress(endpoint: string, isDenied: AddressCheck): string | undefined {
  if (!URL.canParse(endpoint)) return undefined;
  const address = new URL(endpoint).hostname.replace(/^\[|\]$/g, '');
  return isIP(address) !== 0 && isDenied(address) ? address : undefined;
}

/** A connector for undici that refuses denied addresses with AddressDenied. `lookup` is the system's by default. */
export function guardedConnector(
  networks: readonly string[],
  timeoutMs: number,
  lookup: LookupFunction = systemLookup,
): buildConnector.connector {
  const isDenied = deniedBy(networks);
  const connect = buildConnector({ timeout: timeoutMs, lookup: guardedLookup(isDenied, lookup) });
  return (options, callback) => {
    // Sockets skip the lookup for literal addresses, so those are looked at here.
    if (isIP(options.hostname) !== 0 && isDenied(options.hostname)) {
      callback(new AddressDenied(options.hostname), null);
      return;
    }
    connect(options, callback);
  };
}

function guardedLookup(isDenied: AddressCheck, lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, options, (error, found, family) => {
      if (error) return callback(error, found, family);
      if (!Array.isArray(found)) {
        return isDenied(found) ? callback(new AddressDenied(found), '') : callback(null, found, family);
      }
      const allowed = found.filter(({ address }) => !isDenied(address));
      const [first] = found;
      if (allowed.length === 0 && first) return callback(new AddressDenied(first.address), []);
      callback(null, allowed);
    });
  };
}
