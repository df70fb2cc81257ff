// The client of servers that outsiders name: their places, and the addresses that may be asked.

import type { LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import type { Clock } from '../../domain/time/clock.ts';
import { type AddressCheck, addressesIn, SPECIAL_NETWORKS } from '../network-guard.ts';
import { OutsideHandshakes } from '../tls/outside-handshakes.ts';
import { type OutsidePlace, OutsidePlaces } from './outside-places.ts';
import {
  askOutside,
  type OutsideAnswer,
  OutsideFailure,
  type OutsideRequest,
  OutsideSilence,
} from './outside-request.ts';

/** The rules for the addresses of a server. */
interface AddressRules {
  readonly isAllowed: AddressCheck;
  /** Finds the addresses of a name; `family` is 4, 6 or 0 for both. */
  readonly find: (hostname: string, family: number) => Promise<readonly LookupAddress[]>;
  /** The error for a server that has no address, or one that is not allowed. */
  readonly refused: () => Error;
  /** The error in the place of that of `find`. Default: the same. */
  readonly failed?: (thrown: Error) => Error;
}

/** Asks servers, each in a place for it and only at allowed addresses. It owns the places and the handshakes, and needs no end. */
export class OutsideClient {
  readonly #clock: Clock;
  readonly #places: OutsidePlaces;
  readonly #handshakes: OutsideHandshakes;
  readonly #isSpecial = addressesIn(SPECIAL_NETWORKS);
  readonly #isOpen: AddressCheck;

  /** `openNetworks`: networks that count as public although they are not, in CIDR form. */
  constructor(clock: Clock, openNetworks: readonly string[]) {
    this.#clock = clock;
    this.#places = new OutsidePlaces(clock);
    this.#handshakes = new OutsideHandshakes(clock);
    this.#isOpen = addressesIn(openNetworks);
  }

  /** True for an address that is not special, or is in an open network. */
  readonly isPublic: AddressCheck = (address) => !this.#isSpecial(address) || this.#isOpen(address);

  /** A place for a request to this server; undefined if there is none. */
  place({ host }: URL): OutsidePlace | undefined {
    return this.#places.take(host);
  }

  /** Resolves with a place as soon as there is one; undefined if there was none within the time, in ms. */
  waitForPlace({ host }: URL, maxWaitMs: number): Promise<OutsidePlace | undefined> {
    return this.#places.wait(host, maxWaitMs);
  }

  /** Asks the server, and gives the place back. Throws like `askOutside`, and the errors of the rules. */
  async ask(
    url: URL,
    place: OutsidePlace,
    rules: AddressRules,
    request: Omit<OutsideRequest, 'lookup' | 'handshakes' | 'alarm'>,
  ): Promise<OutsideAnswer> {
    let isSilent = false;
    try {
      const host = url.hostname.replace(/^\[|\]$/g, '');
      if (isIP(host) !== 0 && !rules.isAllowed(host)) throw rules.refused();
      const { alarm } = this.#clock;
      return await askOutside(url, {
        ...request,
        lookup: lookupBy(rules),
        handshakes: this.#handshakes,
        alarm,
      });
    } catch (thrown) {
      isSilent = thrown instanceof OutsideSilence;
      throw thrown;
    } finally {
      place(isSilent);
    }
  }
}

/** Why a server gave no answer, as the end of a sentence about it. The text of an error of another kind may quote the server. */
export function whyUnanswered(thrown: unknown): string {
  return thrown instanceof OutsideFailure ? thrown.message : 'cannot be reached';
}

/** The look-up for a socket. All addresses must be allowed: another look-up would choose any of them. */
function lookupBy({ find, isAllowed, refused, failed = (thrown) => thrown }: AddressRules): LookupFunction {
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
