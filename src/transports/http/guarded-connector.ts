// Decides at connect time whether an address may be reached: names are checked after they were resolved, on the very
// address that is used, so that a name cannot change its mind between the check and the connection (DNS rebinding).
// It opens sockets for undici; what is denied is network-guard.ts.

import { lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { type AddressCheck, AddressDenied, deniedBy } from '../network-guard.ts';

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
