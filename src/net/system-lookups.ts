// The look-ups by the system (getaddrinfo), which knows names that DNS servers do not: below search domains, of
// multicast DNS.

import { type LookupAddress, promises } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { LruMap } from '../domain/memory/lru-map.ts';
import { type Clock, DAY_MS, settlesWithin } from '../domain/time/clock.ts';
import { isNamedHere } from './lookup.ts';

/** A look-up that takes longer is late. */
const IN_TIME_MS = 1_000;
/** The wait after which the addresses of an earlier look-up are used, if there are any. */
const HEDGE_MS = 250;
/** The longest use of the addresses of an earlier look-up. Source: RFC 8767 section 5. */
const KEPT_MS = DAY_MS;
/** A name counts as silent for this time after a late look-up without an address. */
const SILENT_MS = 10 * 60_000;
const MAX_KNOWN = 10_000;
/** The longest wait for a thread. */
const WAIT_MS = 30_000;
const MAX_WAITING = 20_000;
/** Time of one attempt to learn whether the DNS servers of a name are silent. */
const PROBE_MS = 1_000;
const PROBES = 2;

/** The longest use of one resolver, which keeps sockets open and does not learn of other DNS servers. */
const RESOLVER_MS = 10_000;

/** The manner in which a name was answered last, in the order in which names get threads. */
type Manner = 'answered' | 'unknown' | 'silent';

interface WaitingLookup {
  readonly hostname: string;
  readonly endsAtMs: number;
  /** Begins the look-up; with undefined its name has to be probed first. */
  readonly begin: (running: Running | undefined) => void;
  readonly refuse: (error: Error) => void;
}

interface Running {
  readonly manner: Manner;
  readonly beganAtMs: number;
}

interface Answered {
  readonly addresses: LookupAddress[];
  readonly atMs: number;
  /** True when the last look-up of the name was in time. */
  readonly isInTime: boolean;
}

interface Asked {
  readonly found: Promise<LookupAddress[]>;
  readonly beganAtMs: number;
}

interface SystemLookupsOptions {
  readonly clock: Clock;
  /** Asks the system. */
  readonly lookup?: (hostname: string, options: { all: true; family: number }) => Promise<LookupAddress[]>;
  /** DNS servers in place of those of the system, as `address:port`. */
  readonly servers?: readonly string[] | undefined;
}

/**
 * Runs the look-ups by the system; those of the same name share one. Each holds one of the two threads that all
 * look-ups of the process share until the DNS servers have answered, and the servers of a name may be silent for ever.
 * So these look-ups take turns at one thread, names that were answered quickly last time first; if such a name has to
 * wait too long, its previous addresses are used. Source: ADR 321.
 */
export class SystemLookups {
  readonly #options: SystemLookupsOptions;
  /** The addresses of names that were answered in time, by family and name. */
  readonly #answered = new LruMap<Answered>(MAX_KNOWN);
  /** The time at which a name was last late without an address. */
  readonly #late = new LruMap<number>(MAX_KNOWN);
  /** The look-ups under way, one for all that ask for the same name. */
  readonly #asked = new Map<string, Asked>();
  readonly #waiting: Readonly<Record<Manner, WaitingLookup[]>> = { answered: [], unknown: [], silent: [] };
  #running: Running | undefined;
  #resolver: { readonly madeAtMs: number; readonly resolver: promises.Resolver } | undefined;

  constructor(options: SystemLookupsOptions) {
    this.#options = options;
  }

  /** The look-up function for sockets. */
  readonly lookup: LookupFunction = (hostname, { all, family = 0 }, callback) => {
    this.#hedged(hostname, Number(String(family).replace('IPv', ''))).then(
      (found) => {
        const [first] = found;
        if (all || first === undefined) callback(null, found);
        else callback(null, first.address, first.family);
      },
      (error) => callback(error, ''),
    );
  };

  /**
   * Looks up a name that DNS servers do not know, after all others. Throws `ETIMEOUT` when its turn did not come
   * in this time.
   */
  async findLast(hostname: string, family: number, waitMs: number): Promise<LookupAddress[]> {
    const endsAtMs = this.#options.clock.now() + waitMs;
    const running = await this.#place('silent', { hostname, endsAtMs });
    return running === undefined ? [] : this.#ask(hostname, family, running);
  }

  async #hedged(hostname: string, family: number): Promise<LookupAddress[]> {
    const { now } = this.#options.clock;
    const { found, beganAtMs } = this.#shared(hostname, family);
    const before = this.#answered.get(keyOf(hostname, family));
    if (before === undefined || now() - before.atMs > KEPT_MS) return found;
    const isInTime = await settlesWithin(found, beganAtMs + HEDGE_MS - now(), this.#options.clock);
    return isInTime ? found : before.addresses;
  }

  #shared(hostname: string, family: number): Asked {
    const key = keyOf(hostname, family);
    const asked = this.#asked.get(key) ?? {
      found: this.#find(hostname, family).finally(() => this.#asked.delete(key)),
      beganAtMs: this.#options.clock.now(),
    };
    this.#asked.set(key, asked);
    return asked;
  }

  async #find(hostname: string, family: number): Promise<LookupAddress[]> {
    const endsAtMs = this.#options.clock.now() + WAIT_MS;
    for (let mustProbe = false; ; mustProbe = true) {
      const manner = await this.#mannerOf(hostname, family, mustProbe);
      const running = await this.#place(manner, { hostname, endsAtMs });
      if (running !== undefined) return this.#ask(hostname, family, running);
    }
  }

  async #mannerOf(hostname: string, family: number, mustProbe: boolean): Promise<Manner> {
    const lateAtMs = this.#late.get(hostname);
    if (lateAtMs !== undefined && this.#options.clock.now() - lateAtMs < SILENT_MS) return 'silent';
    const isAnswered = this.#answered.get(keyOf(hostname, family))?.isInTime === true;
    if ((mustProbe || !isAnswered) && (await this.#isSilent(hostname, family))) return 'silent';
    return isAnswered ? 'answered' : 'unknown';
  }

  /** Asks without a thread. */
  async #isSilent(hostname: string, family: number): Promise<boolean> {
    // Names of one label belong to the network of the gateway.
    if (!hostname.includes('.') || (await isNamedHere(hostname))) return false;
    const resolver = this.#newResolver();
    const answers = await Promise.allSettled([
      ...(family === 6 ? [] : [resolver.resolve4(hostname)]),
      ...(family === 4 ? [] : [resolver.resolve6(hostname)]),
    ]);
    return answers.some((each) => each.status === 'rejected' && each.reason?.code === 'ETIMEOUT');
  }

  #newResolver(): promises.Resolver {
    const { servers, clock } = this.#options;
    if (this.#resolver === undefined || clock.now() - this.#resolver.madeAtMs > RESOLVER_MS) {
      const resolver = new promises.Resolver({ timeout: PROBE_MS, tries: PROBES });
      if (servers !== undefined) resolver.setServers(servers);
      this.#resolver = { madeAtMs: clock.now(), resolver };
    }
    return this.#resolver.resolver;
  }

  /**
   * Resolves with undefined when the name has to be probed first, because another one was late. Throws when the
   * wait is over.
   */
  #place(manner: Manner, name: Pick<WaitingLookup, 'hostname' | 'endsAtMs'>): Promise<Running | undefined> {
    const waiting = this.#waiting[manner];
    if (waiting.length >= MAX_WAITING) return Promise.reject(noPlace(name));
    const { promise, resolve, reject } = Promise.withResolvers<Running | undefined>();
    waiting.push({ ...name, begin: resolve, refuse: reject });
    this.#beginNext();
    return promise;
  }

  #beginNext(): void {
    const { now } = this.#options.clock;
    for (let manner = this.#nextManner(); manner !== undefined; manner = this.#nextManner()) {
      const waiting = this.#waiting[manner].shift();
      if (waiting === undefined) return;
      if (now() > waiting.endsAtMs) waiting.refuse(noPlace(waiting));
      else {
        const running = { manner, beganAtMs: now() };
        this.#running = running;
        waiting.begin(running);
      }
    }
  }

  #nextManner(): Manner | undefined {
    if (this.#running !== undefined) return undefined;
    return (['answered', 'unknown', 'silent'] as const).find((manner) => this.#waiting[manner].length > 0);
  }

  async #ask(hostname: string, family: number, running: Running): Promise<LookupAddress[]> {
    const { lookup = askSystem, clock } = this.#options;
    const key = keyOf(hostname, family);
    let found: LookupAddress[] | undefined;
    try {
      found = await lookup(hostname, { all: true, family });
      return found;
    } finally {
      const endedAtMs = clock.now();
      const isInTime = endedAtMs - running.beganAtMs <= IN_TIME_MS;
      const before = this.#answered.get(key);
      if (found !== undefined) this.#answered.set(key, { addresses: found, atMs: endedAtMs, isInTime });
      else if (before !== undefined) this.#answered.set(key, { ...before, isInTime: false });
      if (!isInTime && found === undefined) this.#late.set(hostname, endedAtMs);
      this.#running = undefined;
      // Others that were answered before may be silent now, too.
      if (!isInTime) for (const waiting of this.#waiting.answered.splice(0)) waiting.begin(undefined);
      this.#beginNext();
    }
  }
}

function keyOf(hostname: string, family: number): string {
  return `${family} ${hostname}`;
}

const askSystem: NonNullable<SystemLookupsOptions['lookup']> = (hostname, options) =>
  promises.lookup(hostname, options);

function noPlace({ hostname }: Pick<WaitingLookup, 'hostname'>): Error {
  const text = `look-up of ${hostname}: the DNS servers of too many names do not answer`;
  return Object.assign(new Error(text), { code: 'ETIMEOUT' });
}
