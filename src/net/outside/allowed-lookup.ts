// The look-up of a name that an outsider chose, where only some addresses may be asked.

import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { AddressCheck } from '../network-guard.ts';

interface AllowedLookupOptions {
  /** Finds the addresses of a name; `family` is 4, 6 or 0 for both. */
  readonly find: (hostname: string, family: number) => Promise<readonly LookupAddress[]>;
  readonly isAllowed: AddressCheck;
  /** The error for a name that has no address, or one that is not allowed. */
  readonly refused: () => Error;
  /** The error in the place of that of `find`. */
  readonly failed: (thrown: Error) => Error;
}

/** The look-up for a socket. All addresses must be allowed: another look-up would choose any of them. */
export function allowedLookup({ find, isAllowed, refused, failed }: AllowedLookupOptions): LookupFunction {
  return (hostname, options, callback) => {
    find(hostname, Number(options.family ?? 0)).then(
      (found) => {
        const [first] = found;
        if (first === undefined || !found.every(({ address }) => isAllowed(address)))
          return callback(refused(), '', 4);
        if (options.all) return callback(null, [...found]);
        return callback(null, first.address, first.family);
      },
      (thrown) => callback(failed(thrown), '', 4),
    );
  };
}
