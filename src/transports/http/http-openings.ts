// Opens the sessions that single clients have with one HTTP backend: how many at a time, and whether a modern backend keeps such
// sessions at all. It also bounds their deletion. http-session.ts is one session; http.ts knows which client owns it.

import { ANONYMOUS } from '../../domain/account.ts';
import type { ClientProfile } from '../../domain/client.ts';
import { backendUnavailable, openingCancelled } from '../../domain/error-catalogue.ts';
import type { GatewayError } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { LruMap } from '../../domain/lru-map.ts';
import type { Peer } from '../../domain/mcp.ts';
import type { TaskScheduler } from '../../domain/task-scheduler.ts';
import { boundedHandshake } from '../bounded-handshake.ts';
import { isRefusal } from '../handshake.ts';
import { SingleFlight } from '../single-flight.ts';
import { StartQueue } from '../stdio/start-queue.ts';
import type { ClientOpening } from '../transport.ts';
import type { HttpConnection } from './http-connection.ts';
import { connectionClosed } from './http-failures.ts';
import { HttpSession, type SessionOptions } from './http-session.ts';

export interface HttpOpeningsOptions extends Pick<SessionOptions, 'client' | 'handshakeTimeoutMs'> {
  /** The era of the transport's own conversation. */
  readonly era: Peer['era'];
  /** Longest wait of the first `initialize` with a modern backend. Default INITIALIZE_TIMEOUT_MS. */
  readonly initializeTimeoutMs?: number;
  /** Runs openings and timeouts that come due together. */
  readonly scheduler: TaskScheduler;
}

/** Conversations of one owner that may be opened with one instance at the same time; others wait. */
export const OPENINGS_PER_OWNER = LIMITS.openingsPerInstance * LIMITS.ownerShare;

/** A modern backend that does not answer `initialize` in this time, but `server/discover`, counts as one without sessions. */
const INITIALIZE_TIMEOUT_MS = 3_000;

/** The queue of openings over HTTP. Each uses a connection until it has ended, so it holds its place for as long. */
export function httpStartQueue(maxWaitMs: number, scheduler: TaskScheduler): StartQueue {
  return new StartQueue({
    atOnce: LIMITS.openingsPerInstance,
    atOncePerOwner: OPENINGS_PER_OWNER,
    waitingPerOwner: LIMITS.sessions * LIMITS.ownerShare,
    maxWaitMs,
    scheduler,
  });
}

/** Session deletes under way at the same time. */
const DELETES_AT_ONCE = 64;

/**
 * Makes the function that deletes the sessions with one backend. It resolves when the session was deleted, or had to wait for
 * longer than LIMITS.backgroundMs, and never rejects.
 */
export function sessionDeletes(
  scheduler: TaskScheduler,
): (session: Pick<HttpSession, 'end'>) => Promise<void> {
  const queue = new StartQueue({
    atOnce: DELETES_AT_ONCE,
    atOncePerOwner: DELETES_AT_ONCE,
    maxWaitMs: LIMITS.backgroundMs,
    scheduler,
  });
  return (session) =>
    queue.take({ ownerId: ANONYMOUS.id, start: () => session.end() }).catch(() => undefined); // it waited too long
}

/** The openings of one transport. */
export class HttpOpenings {
  readonly #connection: HttpConnection;
  readonly #options: HttpOpeningsOptions;
  readonly #queue: StartQueue;
  readonly #peers = new PeerMemory();
  /** Sessions whose handshake is under way. */
  readonly #sessions = new Set<HttpSession>();
  /** Determines once whether a modern backend speaks the legacy era, too. */
  readonly #legacySupport: SingleFlight;
  #hasNoSessions: boolean;
  #count = 0;
  #isClosed = false;

  constructor(connection: HttpConnection, options: HttpOpeningsOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#queue = httpStartQueue(options.handshakeTimeoutMs, options.scheduler);
    this.#hasNoSessions = options.era === 'bare';
    this.#legacySupport = new SingleFlight(options.era !== 'modern', options.scheduler);
  }

  /** Number of openings under way or waiting. */
  get count(): number {
    return this.#count;
  }

  /**
   * Opens a session as soon as the queue permits. Undefined when the backend keeps no sessions, which the first opening
   * determines while the others wait. Rejects with BACKEND_UNAVAILABLE, `delivered: 'no'`, and like StartQueue.take.
   */
  async open({ profile, ownerId, signal }: ClientOpening): Promise<HttpSession | undefined> {
    this.#count += 1;
    try {
      return await this.#legacySupport.run(signal, async () => {
        if (this.#hasNoSessions) return undefined;
        return this.#queue.take({ ownerId, signal, start: () => this.#open(profile, signal) });
      });
    } catch (thrown) {
      throw signal.aborted ? openingCancelled(thrown) : thrown;
    } finally {
      this.#count -= 1;
    }
  }

  /** Aborts all openings, and prevents others. */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.#options.scheduler.each([...this.#sessions], (session) => session.close());
  }

  async #open(profile: ClientProfile, signal: AbortSignal): Promise<HttpSession | undefined> {
    if (this.#isClosed) throw connectionClosed('closed by the gateway', false);
    const {
      client,
      handshakeTimeoutMs,
      era,
      scheduler,
      initializeTimeoutMs = INITIALIZE_TIMEOUT_MS,
    } = this.#options;
    const { intern } = this.#peers;
    const known = { client, handshakeTimeoutMs, profile, intern, known: era };
    const options = this.#legacySupport.isKnown ? known : { ...known, initializeMs: initializeTimeoutMs };
    const session = new HttpSession(this.#connection, options);
    this.#sessions.add(session);
    try {
      const bounds = { signal, timeoutMs: handshakeTimeoutMs, scheduler, abort: () => session.close() };
      await boundedHandshake(bounds, () => session.open(signal));
    } catch (thrown) {
      if (era !== 'modern' || !isRefusal(thrown)) throw thrown;
      this.#hasNoSessions = true;
    } finally {
      this.#sessions.delete(session);
    }
    this.#hasNoSessions ||= session.peer.era !== 'legacy';
    return this.#hasNoSessions ? undefined : session;
  }
}

/** A failure before the request was sent. */
export function undelivered(reason: string, cause?: unknown): GatewayError {
  return backendUnavailable(reason, { delivered: 'no', cause });
}

/** Why a conversation with a backend that has LIMITS.sessions of them is refused. */
export const NO_ROOM = `all ${LIMITS.sessions} conversations with it are taken`;

/** Different peers remembered: the greeting of a server may depend on what its client declares, in a few variants. */
const REMEMBERED = 16;

/** The peers of the last handshakes, once each: a greeting may be kilobytes, and thousands of sessions refer to one. */
export class PeerMemory {
  readonly #peers = new LruMap<Peer>(REMEMBERED);

  /** Returns the object of an earlier equal peer, or this one. */
  readonly intern = (peer: Peer): Peer => {
    const text = JSON.stringify(peer);
    const known = this.#peers.get(text) ?? peer;
    this.#peers.set(text, known);
    return known;
  };
}
