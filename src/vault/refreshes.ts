// The access token of a connection: from memory, from its row, or refreshed.

import { asGatewayError, hasCode } from '../domain/errors/errors.ts';
import type { WhyNotConnected } from '../domain/instances/account-connection.ts';
import { LruMap } from '../domain/memory/lru-map.ts';
import { type Clock, MAX_SKEW_MS, sleep } from '../domain/time/clock.ts';
import type { OutsidePlace } from '../net/outside/outside-places.ts';
import { untilDatabaseAnswers } from '../persistence/until-database-answers.ts';
import { untilTaken } from '../persistence/until-taken.ts';
import {
  type AccountConnections,
  accountConnectionKey,
  type Lives,
  type ReadAccountConnection,
  type StoredAccountConnection,
} from './account-connections.ts';
import { BackendFetchFailure } from './backend-fetch.ts';
import { tokensIn } from './issued-tokens.ts';
import { isDue, isOver, type KnownToken, KnownTokens } from './known-tokens.ts';
import type { AccountTarget, OAuthBackend } from './oauth-backends.ts';
import { OAuthRefusal, type OAuthRequests } from './oauth-requests.ts';
import type { OwnClients } from './own-clients.ts';

/** The longest refresh of one node, in ms: the time for one answer of the authorization server, and for the database. */
const REFRESH_LEASE_MS = 30_000;
/** The longest wait for another node, or for other refreshes at the same server, in ms. */
const WAIT_MS = 10_000;
const CHECK_MS = 100;
/** The most leases in a row that may end without a new token. */
const MAX_TRIES = 2;
const MAX_KNOWN = 10_000;
/** The most scopes that are kept for the next connecting: a server may name others at each call. */
const MAX_WANTED = 100;
/** The most rounds of one call, in which others change the row between its reading and its change. */
const MAX_CHANGES = 20;
/** The time after a failure in which the authorization server is not asked, in ms. */
const AGAIN_MS = 5_000;

/** The failure of a call without a usable token: `why` says whether there was a connection. */
export class NotConnected extends Error {
  override readonly name = 'NotConnected';
  readonly why: WhyNotConnected;

  constructor(why: WhyNotConnected) {
    super('there is no usable connection');
    this.why = why;
  }
}

interface RefreshesOptions {
  readonly clock: Clock;
  /** The lives of the nodes; undefined on the only node. */
  readonly lives?: Lives | undefined;
  readonly connections: AccountConnections;
  readonly clients: OwnClients;
  readonly requests: OAuthRequests;
  /** Called when a connection that had a token here is another one: the account was connected again at another node. */
  readonly onReplaced: (value: StoredAccountConnection) => void;
  /** Called with tokens that came when the connection was no longer there. */
  readonly onUnused: (value: StoredAccountConnection) => void;
  /** Called when the connection has ended by itself; `reason` is a clause. */
  readonly onEnded: (value: StoredAccountConnection, reason: string) => void;
  readonly warn: (line: string) => void;
}

/** One request for new tokens. */
interface Refresh {
  readonly target: AccountTarget;
  readonly backend: OAuthBackend;
  readonly read: ReadAccountConnection;
  readonly refreshToken: string;
  /** The number of requests with this refresh token, this one included. */
  readonly tries: number;
  readonly place: OutsidePlace;
}

/**
 * The access tokens that this node has in memory, and the refreshes that are under way. A refresh token is often for
 * one use, so one node at a time refreshes a connection, by a lease on its row; the others wait for the new version, or
 * for the end of that node. A connection whose grant is gone has ended: it is not tried again until its owner connects
 * it. Source: ADR 218.
 */
export class Refreshes {
  readonly #options: RefreshesOptions;
  readonly #known: KnownTokens;
  readonly #failed = new LruMap<{ readonly failure: BackendFetchFailure; readonly atMs: number }>(MAX_KNOWN);
  readonly #loading = new Map<string, Promise<string>>();
  /** The lease that each connection had when it was last read, and since when, by the monotonic clock. */
  readonly #leases = new LruMap<{ readonly untilMs: number; readonly sinceMs: number }>(MAX_KNOWN);
  /** The leases of this node by which nothing was asked for: it is unknown whether their rows were written. */
  readonly #unused = new LruMap<{ readonly untilMs: number; readonly life?: string | undefined }>(MAX_KNOWN);
  /** The connections whose new tokens the database has not taken yet, with the writes that are under way. */
  readonly #unstored = new Map<string, Promise<unknown>>();

  constructor(options: RefreshesOptions) {
    this.#options = options;
    this.#known = new KnownTokens(options.clock);
  }

  /** The token from memory, if it need not be read or refreshed now. */
  known(key: string): string | undefined {
    return this.#known.current(key, this.#unstored.has(key));
  }

  forget(key: string): void {
    this.#known.forget(key);
    this.#failed.delete(key);
  }

  /** The token; all callers of this node share one reading. Throws NotConnected, and BackendFetchFailure. */
  token(target: AccountTarget, backend: OAuthBackend, owner: string, refused?: string): Promise<string> {
    const key = accountConnectionKey(owner, backend);
    const name = `${key} ${refused ?? ''}`;
    const loading = this.#loading.get(name) ?? this.#load(target, backend, key, refused);
    if (!this.#loading.has(name)) {
      this.#loading.set(name, loading);
      const done = () => void this.#loading.delete(name);
      loading.then(done, done);
    }
    return loading;
  }

  /** Resolves when no token is asked for any more, and no new ones wait for the database. Never rejects. */
  async stored(): Promise<void> {
    await Promise.allSettled(this.#loading.values());
    await Promise.allSettled(this.#unstored.values());
  }

  /** Ends the connection: the backend refuses a token that was just made, so another one would not help. */
  async end(key: string, refused: string, reason: string): Promise<void> {
    const read = await this.#options.connections.find(key);
    if (read?.value.accessToken === refused) await this.#end(read, reason);
  }

  /** Notes scopes that a call needs, too: the next connecting asks for them. Throws DATABASE_UNAVAILABLE. */
  async want(key: string, scopes: readonly string[]): Promise<void> {
    const { connections } = this.#options;
    await untilTaken(async () => {
      const read = await connections.find(key);
      if (read === undefined) return null;
      const { scopes: granted, wanted: before = [] } = read.value;
      const wanted = [...new Set([...scopes, ...granted, ...before])].slice(0, MAX_WANTED);
      // Each write makes a renewal at another node read the row again.
      if (wanted.every((scope) => before.includes(scope))) return read;
      return connections.replace(read, { ...read.value, wanted });
    });
  }

  async #load(
    target: AccountTarget,
    backend: OAuthBackend,
    key: string,
    refused: string | undefined,
  ): Promise<string> {
    const { now, wall } = this.#options.clock;
    const beganAtMs = now();
    const before = this.#known.toRead(key);
    if (refused !== undefined) this.#known.useUp(key, refused);
    const newer = this.#unstored.has(key) ? this.known(key) : undefined;
    if (newer !== undefined) return newer;
    let first: string | undefined;
    // A round either waits for the lease of another node, all together for WAIT_MS, or tries to take the lease.
    for (let changes = 0; changes < MAX_CHANGES; ) {
      const read = await this.#read(key, before, refused);
      if (typeof read === 'string') return read;
      const { value } = read;
      if (value.ended !== undefined) {
        this.#known.useUp(key);
        throw new NotConnected('ended');
      }
      first ??= value.accessToken;
      // A token that changed meanwhile is used even if it expires soon.
      const isGood = value.accessToken !== first || !isDue(value, wall());
      if (isGood && value.accessToken !== refused) {
        void this.#options.connections.used(read);
        return this.#keep(read, before);
      }
      const mayStillBeUsed = value.accessToken !== refused && !isOver(value, wall());
      if (this.#isHeld(key, value.lease)) {
        if (now() - beganAtMs > WAIT_MS) {
          if (mayStillBeUsed) return this.#keep(read, before);
          throw new BackendFetchFailure('another node renews its token, and has not finished');
        }
        await sleep(this.#options.clock, CHECK_MS);
        continue;
      }
      changes += 1;
      const token = await this.#renewOnce(target, backend, read, {
        before,
        mayStillBeUsed,
      });
      if (token !== undefined) return token;
    }
    throw new BackendFetchFailure('its connection is changed by other nodes all the time');
  }

  /** Tries to renew the tokens of the row once: the new token, or the present one. Undefined when the row is to be read again. */
  async #renewOnce(
    target: AccountTarget,
    backend: OAuthBackend,
    read: ReadAccountConnection,
    { before, mayStillBeUsed }: { before: KnownToken | undefined; mayStillBeUsed: boolean },
  ): Promise<string | undefined> {
    const { lease, refreshToken } = read.value;
    if (refreshToken === undefined) {
      if (mayStillBeUsed) return this.#keep(read, before);
      await this.#end(read, 'its access has ended, and it cannot be renewed');
      return undefined;
    }
    const tries = (lease?.tries ?? 0) + (this.#isUnused(read.key, lease) ? 0 : 1);
    if (tries > MAX_TRIES) {
      await this.#end(read, 'its tokens could not be renewed');
      return undefined;
    }
    let renewed: ReadAccountConnection | undefined;
    try {
      const place = await this.#place(backend, mayStillBeUsed ? 0 : WAIT_MS);
      const refreshed = this.#refresh({ target, backend, read, refreshToken, tries, place });
      renewed = await refreshed.finally(place);
    } catch (thrown) {
      if (!mayStillBeUsed) throw thrown;
      return this.#keep(read, before);
    }
    if (renewed === undefined) return undefined;
    const token = this.#keep(renewed, before);
    return (await this.#storeNew(renewed, refreshToken)) === 'lost' ? undefined : token;
  }

  /** The row; the token in memory while the database does not answer. */
  async #read(
    key: string,
    before: KnownToken | undefined,
    refused: string | undefined,
  ): Promise<ReadAccountConnection | string> {
    try {
      const read = await this.#options.connections.find(key);
      if (read !== undefined) return read;
      this.#known.useUp(key);
      throw new NotConnected('none');
    } catch (thrown) {
      const isAway = hasCode(thrown, 'DATABASE_UNAVAILABLE') && before?.token !== refused;
      const token = isAway ? this.#known.withoutRow(key, before) : undefined;
      if (token === undefined) throw thrown;
      return token;
    }
  }

  /**
   * True while the lease holds: for as long as this node has seen it, since the clock of its node may be behind or ahead, by
   * MAX_SKEW_MS at most. That of a node that has ended counts as over: the node will not store the token that it asked for. That
   * of this node holds until its tokens are stored.
   */
  #isHeld(key: string, lease: StoredAccountConnection['lease']): boolean {
    const { lives, clock } = this.#options;
    if (this.#unstored.has(key)) return true;
    if (lease === undefined || this.#isUnused(key, lease)) return false;
    const { untilMs, life } = lease;
    const skewMs = life === undefined ? 0 : MAX_SKEW_MS; // on a file all processes have one clock
    if (untilMs + skewMs <= clock.wall()) return false;
    if (life !== undefined && lives?.hasEnded(life) === true) return false;
    const seen = this.#leases.get(key);
    if (seen?.untilMs === untilMs) return clock.now() - seen.sinceMs < REFRESH_LEASE_MS;
    this.#leases.set(key, { untilMs, sinceMs: clock.now() });
    return true;
  }

  #isUnused(key: string, lease: StoredAccountConnection['lease']): boolean {
    const unused = this.#unused.get(key);
    return unused !== undefined && unused.untilMs === lease?.untilMs && unused.life === lease.life;
  }

  /**
   * A place for the request of a refresh. Users whose tokens end at the same time, as after a night, wait here for each other,
   * before they take leases: these would end meanwhile. Source: ADR 440.
   */
  async #place({ server }: OAuthBackend, maxWaitMs: number): Promise<OutsidePlace> {
    const place = await this.#options.requests.place(server.token_endpoint, maxWaitMs);
    if (place !== undefined) return place;
    throw new BackendFetchFailure('its authorization server renews other tokens, and has not finished');
  }

  #keep(read: ReadAccountConnection, before: KnownToken | undefined): string {
    const { connectedAt, value } = read;
    this.#known.keep(read);
    if (before !== undefined && before.connectedAt !== connectedAt) this.#options.onReplaced(value);
    return value.accessToken;
  }

  /**
   * Takes the lease and asks for new tokens, unless another node did: the row has the result then. Resolves with the connection
   * with its new tokens, which are not stored yet.
   */
  async #refresh(refresh: Refresh): Promise<ReadAccountConnection | undefined> {
    const { connections, clock } = this.#options;
    const { read, refreshToken, tries } = refresh;
    const failed = this.#failed.get(read.key);
    if (failed !== undefined && clock.now() - failed.atMs < AGAIN_MS) throw failed.failure;
    const lease = { untilMs: clock.wall() + REFRESH_LEASE_MS, tries, life: this.#options.lives?.life() };
    const taken = await connections.replace(read, { ...read.value, lease }).catch((thrown: unknown) => {
      if (asGatewayError(thrown).delivered === 'unknown') this.#unused.set(read.key, lease);
      throw thrown;
    });
    if (taken === undefined) return undefined;
    let answer: ReturnType<typeof tokensIn>;
    try {
      answer = await this.#asked(refresh, taken.value);
    } catch (thrown) {
      if (thrown instanceof OAuthRefusal && FINAL.has(thrown.code)) {
        await this.#end(taken, thrown.message);
        return undefined;
      }
      if (thrown instanceof BackendFetchFailure)
        this.#failed.set(read.key, { failure: thrown, atMs: clock.now() });
      const isLeased = ({ value }: ReadAccountConnection) => value.lease?.untilMs === lease.untilMs;
      await untilSilent((silent) => this.#store(taken, { lease: undefined }, isLeased, silent));
      throw thrown;
    }
    this.#failed.delete(read.key);
    const { scopes = taken.value.scopes, refreshToken: next = refreshToken, ...tokens } = answer;
    const value = {
      ...taken.value,
      ...tokens,
      refreshToken: next,
      scopes,
      ended: undefined,
      lease: undefined,
    };
    return { ...taken, value };
  }

  /**
   * Stores tokens that were got for this refresh token, also after this call has ended, if the database is silent. `lost`: there
   * is another connection now, or none.
   */
  #storeNew(taken: ReadAccountConnection, used: string): Promise<'stored' | 'silent' | 'lost'> {
    const { key } = taken;
    return untilSilent((silent) => {
      const storing = this.#storeTokens(taken, used, silent).finally(() => this.#unstored.delete(key));
      this.#unstored.set(key, storing);
      return storing;
    });
  }

  async #storeTokens(
    taken: ReadAccountConnection,
    used: string,
    silent: () => void,
  ): Promise<'stored' | 'lost'> {
    const { key, connectedAt, value } = taken;
    const { accessToken, refreshToken, expiresAtMs, dueAtMs, scopes } = value;
    const tokens = { accessToken, refreshToken, expiresAtMs, dueAtMs, scopes };
    // Another node may have taken the lease after this one, or have ended the connection because its tokens are used up.
    const isSame = (read: ReadAccountConnection) =>
      read === taken || (read.connectedAt === connectedAt && (read.value.refreshToken ?? used) === used);
    const changes = { ...tokens, ended: undefined, lease: undefined };
    const outcome = await this.#store(taken, changes, isSame, silent).catch((thrown: unknown) => {
      const what = `the database has not taken new tokens of an account at ${value.issuer}`;
      this.#options.warn(`${what}: it has to be connected again`);
      throw thrown;
    });
    if (outcome === 'gone') this.#options.onUnused(value);
    if (outcome !== 'stored') this.#known.useUp(key, accessToken);
    return outcome === 'stored' ? outcome : 'lost';
  }

  /**
   * Stores changes in the row, as long as `isFor` is true for it. The earlier refresh token is used up, so new tokens must not be
   * lost, whatever else changes the row, or the database does. `silent` is called when the database does not answer.
   */
  async #store(
    taken: ReadAccountConnection,
    changes: Partial<StoredAccountConnection>,
    isFor: (read: ReadAccountConnection) => boolean,
    silent: () => void,
  ): Promise<'stored' | 'other' | 'gone'> {
    const { connections, clock } = this.#options;
    let read: ReadAccountConnection | undefined = taken;
    while (read !== undefined && isFor(read)) {
      const before: ReadAccountConnection = read;
      const write = () => connections.replace(before, { ...before.value, ...changes });
      if ((await untilDatabaseAnswers(clock, write, silent)) !== undefined) return 'stored';
      read = await untilDatabaseAnswers(clock, () => connections.find(taken.key), silent);
    }
    return read === undefined ? 'gone' : 'other';
  }

  async #asked({ target, backend, refreshToken, place }: Refresh, value: StoredAccountConnection) {
    const { clients, requests, clock } = this.#options;
    const { server, resource } = backend;
    const oauth = await import('oauth4webapi');
    // A refresh token belongs to the client that got it.
    const own = clients.holding(target, value);
    if (own === undefined) throw new OAuthRefusal('invalid_client');
    const [client, auth] = await clients.authOf(own, server);
    const answer = await requests.ask(
      target.endpoint,
      async (options) =>
        oauth.processRefreshTokenResponse(
          server,
          client,
          await oauth.refreshTokenGrantRequest(server, client, auth, refreshToken, {
            ...options,
            additionalParameters: { resource },
          }),
        ),
      place,
    );
    return tokensIn(answer, clock.wall());
  }

  async #end(read: ReadAccountConnection, reason: string): Promise<void> {
    const { connections, onEnded } = this.#options;
    const { refreshToken: _, lease: __, ...value } = read.value;
    this.#known.useUp(read.key);
    const ended = await connections.replace(read, { ...value, accessToken: '', ended: reason });
    if (ended !== undefined) onEnded(read.value, reason);
  }
}

/** Waits for work that goes on by itself, until it ends or has called `silent`. Throws as it does before that. */
function untilSilent<T>(run: (silent: () => void) => Promise<T>): Promise<T | 'silent'> {
  const silence = Promise.withResolvers<'silent'>();
  return Promise.race([run(() => silence.resolve('silent')), silence.promise]);
}

/** The errors after which the same refresh never succeeds. Source: RFC 6749 section 5.2. */
const FINAL: ReadonlySet<string> = new Set([
  'invalid_grant',
  'invalid_client',
  'unauthorized_client',
  'invalid_scope',
]);
