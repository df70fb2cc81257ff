// All legacy sessions of one gateway, with one template or with an aggregate (ADR 70). ClientSessions bounds their number, ends
// those that are idle for too long (idle-sweep.ts), and can end many together. Callers of `find` must compare the owner
// themselves. ClientSessions owns the sessions, a session owns its binding, and a dedicated
// binding owns its conversation.

import { firstValueFrom, race } from 'rxjs';
import { shuttingDown } from '../../domain/errors/gateway-errors.ts';
import { nodeCutOff, nodeDraining } from '../../domain/errors/node-errors.ts';
import { type EndReason, SESSION_ENDS } from '../../domain/errors/session-ends.ts';
import { sessionEnded, sessionLost, sessionUnknown } from '../../domain/errors/session-errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { ClientProfile, ShownSession } from '../../domain/mcp/client.ts';
import type { UserShares } from '../../domain/memory/user-shares.ts';
import { lifeOf, newSessionId } from '../../domain/nodes/life.ts';
import type {
  AllSessions,
  RecoverySteps,
  SessionOrigin,
  SessionRow,
} from '../../domain/sessions/all-sessions.ts';
import type { McpSession } from '../../domain/sessions/mcp-session.ts';
import { sessionFingerprint } from '../../domain/sessions/session-fingerprint.ts';
import type { AnySessionValue, SessionValue } from '../../domain/sessions/session-value.ts';
import { type Clock, wallAt } from '../../domain/time/clock.ts';
import { timer$ } from '../../domain/time/clock-streams.ts';
import type { Instance } from '../fleet/template-group.ts';
import { InstanceRef } from '../instances/instance-ref.ts';
import { Binder } from './binding/binder.ts';
import { ClientSession } from './client-session.ts';
import { IdleSweep } from './idle-sweep.ts';
import type { SessionKeeper } from './rows/session-keeper.ts';
import { SessionRecovery } from './rows/session-recovery.ts';
import { rowKeyOf, StoredRow } from './rows/stored-row.ts';
import { longestAway, SessionBounds } from './session-bounds.ts';
import type { SessionDeps, SessionLists, SessionOptions } from './session-deps.ts';
import { SessionDrain } from './session-drain.ts';
import { isRecoverable } from './session-rules.ts';
import { newSession } from './session-transitions.ts';

interface ClientSessionsOptions extends SessionDeps {
  /** The most sessions with one template, and separately the most aggregate sessions. */
  readonly maxSessions: number;
  readonly idleMs: number;
  /** The share of the places that one owner may use. Default: LIMITS.ownerShare. */
  readonly share?: number | undefined;
  /** Counts the memory of the client profiles. */
  readonly declarations: UserShares;
  /** The present life of this node, with which new ids begin. */
  readonly life: string;
  /** Stores the sessions, so that another life can recover them. Default: sessions end with the gateway. */
  readonly keeper?: SessionKeeper | undefined;
}

/** The sessions of a gateway. See AllSessions for members that are not described here. */
export class ClientSessions implements AllSessions {
  readonly deps: SessionDeps;
  readonly binder: Binder;
  readonly #keeper: SessionKeeper | undefined;
  readonly #recovery: SessionRecovery | undefined;
  #life: string;
  readonly #bounds: SessionBounds;
  readonly #opening = new Set<McpSession>();
  readonly #open = new Map<string, McpSession>();
  readonly #idling: IdleSweep;
  readonly #closings = new Set<Promise<void>>();
  /** Resolves when the last session has ended while the gateway closes. */
  readonly #emptied = Promise.withResolvers<void>();
  /** Set while the node is drained. */
  #drain: SessionDrain | undefined;
  isClosing = false;

  constructor({ maxSessions, idleMs, share, declarations, life, keeper, ...deps }: ClientSessionsOptions) {
    this.deps = deps;
    this.#life = life;
    this.#keeper = keeper;
    this.#recovery = keeper && new SessionRecovery(keeper, deps);
    this.binder = new Binder(deps);
    this.#bounds = new SessionBounds(maxSessions, share, declarations);
    const end = (session: McpSession) => void this.#end(session, 'idle');
    this.#idling = new IdleSweep(idleMs, deps, this.#open, end);
    deps.fleet.root.subscribe({ complete: () => void this.closeAll(0) });
    deps.fleet.templates.deleted$.subscribe((template) => void this.#endUnusable(template));
  }

  get max(): number {
    return this.#bounds.max;
  }

  /** The number of sessions, including those that are being opened. */
  get size(): number {
    return this.#opening.size + this.#open.size;
  }

  newId(): string {
    return newSessionId(this.#life);
  }

  /** The owners of the sessions: each client of a user by itself, since it may lose its rights alone. */
  get owners(): ReadonlySet<string> {
    return new Set(this.#all().map(({ value }) => value.ownerId));
  }

  /**
   * Opens a session with one template, at the instance that the strategy chooses. When the opening fails, other
   * instances are tried, at most `maxRetries`. Aborting `signal` ends the opening with SESSION_NOT_FOUND. Throws
   * SESSION_LIMIT (of the gateway, or of the owner's share), SHUTTING_DOWN, NODE_UNAVAILABLE,
   * TEMPLATE_NOT_FOUND, NO_HEALTHY_INSTANCE, BACKEND_UNAVAILABLE, BACKEND_TIMEOUT or QUEUE_FULL.
   */
  async open(
    template: string,
    ownerId: string,
    profile: ClientProfile,
    { signal, id = this.newId(), ...options }: SessionOptions = {},
  ): Promise<ClientSession> {
    this.#requireAccepting();
    if (options.part === undefined) this.#requireNewSessions();
    if (signal?.aborted) throw sessionEnded('disconnected');
    const value = newSession(template, ownerId, profile);
    this.#makeRoom(value);
    const session = this.#create(id, value, options);
    this.#opening.add(session);
    const abortOpening = () => this.#end(session, 'disconnected');
    signal?.addEventListener('abort', abortOpening);
    try {
      await session.open();
    } catch (thrown) {
      throw this.isClosing ? shuttingDown() : thrown; // the session has reported its end
    } finally {
      signal?.removeEventListener('abort', abortOpening);
    }
    // The session may have ended while it was being opened.
    if (!this.#opening.delete(session)) throw this.isClosing ? shuttingDown() : sessionEnded('disconnected');
    this.#begin(session);
    this.deps.emit({ type: 'session.opened', ...session.eventFields });
    return session;
  }

  /**
   * Makes a session again from its stored value, under the id that its client has. Nothing is opened before its first
   * use. No other session is ended to make room. Throws SESSION_NOT_FOUND when the session is over or open already,
   * SESSION_LIMIT, SHUTTING_DOWN or TEMPLATE_NOT_FOUND.
   */
  recoverFrom(id: string, value: SessionValue, generation: number, lists?: SessionLists): ClientSession {
    this.#requireAccepting();
    if (this.#open.has(id)) throw sessionLost('it is open already');
    const { endReason, greeted } = value;
    if (endReason !== undefined) throw sessionEnded(endReason);
    if (greeted === undefined) throw sessionLost('it was never open');
    this.#bounds.check(value); // again: others may have been made meanwhile, and none of them ends for it
    // A call that was under way may have arrived.
    const session = this.#create(id, { ...value, unsafe: value.unsafe === 'no' ? 'no' : 'yes' }, { lists });
    this.#begin(session);
    session.recoverAs(generation);
    this.deps.emit({ type: 'session.opened', ...session.eventFields });
    return session;
  }

  /**
   * Begins a new life of this node, after other nodes have ended the former one. They may recover its open sessions,
   * which therefore end here; sessions that are being opened have no row yet, and continue. Resolves when the ended
   * sessions take no more calls, and those that no other node knows have a row.
   */
  async beginLife(life: string): Promise<void> {
    this.#life = life;
    this.#keeper?.beginLife(life);
    await this.deps.scheduler.each(
      [...this.#open.values()],
      (session) => void this.#end(session, 'takenOver'),
    );
    await this.#keeper?.finish(); // requests of those that had no row look for it
  }

  rowFor(session: McpSession, origin: SessionOrigin): SessionRow | undefined {
    return this.#keeper && new StoredRow(this.#keeper, session, origin);
  }

  recover<V extends AnySessionValue>(
    id: string,
    ownerId: string,
    steps: RecoverySteps<V>,
  ): Promise<void> | undefined {
    if (this.#recovery === undefined || lifeOf(id) === undefined) return undefined;
    if (this.isClosing) throw shuttingDown(); // the next life may recover it
    return this.#recovery.recover(id, ownerId, steps);
  }

  /**
   * Waits until it is known whether the instance of the session can be used, at most LIMITS.firstOpeningsMs. Throws
   * SESSION_NOT_FOUND when the session cannot be recovered, SESSION_LIMIT (no other session is ended to make room) or
   * TEMPLATE_NOT_FOUND.
   */
  async checkRecoverable(value: SessionValue): Promise<void> {
    const group = this.deps.fleet.templates.group(value.template);
    const instance = value.binding && group.byId.get(value.binding.instanceId);
    await untilNotStarting(instance, this.deps.clock);
    if (!isRecoverable(value, group)) throw sessionLost('its backend does not know it any more');
    this.#bounds.check(value);
  }

  add(session: McpSession, origin: SessionOrigin): void {
    this.#requireAccepting();
    if (origin === 'new') {
      this.#requireNewSessions();
      this.#makeRoom(session.value);
    } else this.#bounds.check(session.value);
    this.#bounds.take(session.value);
    this.#begin(session);
  }

  remove(session: McpSession, reason: EndReason, { isLost = false } = {}): void {
    this.#forget(session, reason);
    if (session instanceof ClientSession) {
      const wasOpen = !this.#opening.delete(session);
      if (wasOpen)
        this.deps.emit({
          type: 'session.ended',
          ...session.eventFields,
          reason: SESSION_ENDS[reason],
          isLost,
        });
      this.#drop(session);
    } else if (this.#open.has(session.id)) this.#drop(session);
  }

  /** The open session with one template that has this id. Does not count as a use. */
  find(id: string): ClientSession | undefined {
    const session = this.#open.get(id);
    return session instanceof ClientSession ? session : undefined;
  }

  findAny(id: string): McpSession | undefined {
    return this.#open.get(id);
  }

  /**
   * The open sessions of clients. An aggregate session is listed once, with the bindings of its
   * parts.
   */
  list(): ShownSession[] {
    const startMs = wallAt(this.deps.clock, 0);
    return this.#ofClients().map((session) => this.#shown(session, startMs));
  }

  /** Ends the session with this fingerprint: when this returns, it takes no more calls. Throws SESSION_NOT_FOUND. */
  endNamed(fingerprint: string, reason: EndReason): void {
    const session = [...this.#open.values()].find(({ id }) => sessionFingerprint(id) === fingerprint);
    if (session === undefined) throw sessionUnknown(fingerprint);
    void this.#end(session, reason);
  }

  /** Ends all sessions of an owner, including those that are being opened. Resolves when all are closed. */
  async endOf(ownerId: string): Promise<void> {
    const theirs = this.#all().filter((session) => session.value.ownerId === ownerId);
    await this.deps.scheduler.each(theirs, (session) => this.#end(session, 'ownerRefused'));
  }

  /** Begins to release the sessions that other nodes can recover. Without effect when sessions are not stored. */
  drain(): void {
    const keeper = this.#keeper;
    if (keeper === undefined || this.isClosing) return;
    const hasSuccessor = ({ id }: McpSession) => keeper.holders.successorOf?.(rowKeyOf(id)) !== undefined;
    const release = (session: McpSession) => void this.#end(session, 'drained');
    this.#drain ??= new SessionDrain(this.#ofClients(), this.deps.clock, hasSuccessor, release);
  }

  endDrain(): void {
    this.#drain?.close();
    this.#drain = undefined;
  }

  leavesRow(reason: EndReason): boolean {
    return this.isClosing || reason === 'drained';
  }

  /**
   * Refuses new sessions, lets calls under way finish within `graceMs`, then ends all sessions. Resolves when all are
   * closed.
   */
  async closeAll(graceMs: number): Promise<void> {
    this.isClosing = true;
    this.endDrain();
    this.#idling.stop();
    if (this.size > 0) await this.#endAllWithin(graceMs);
    await Promise.all(this.#closings);
    await this.#keeper?.close();
  }

  async #endAllWithin(graceMs: number): Promise<void> {
    const { scheduler, clock } = this.deps;
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const disarm = clock.alarm(graceMs, resolve);
    const refusal = shuttingDown();
    await scheduler.each(this.#all(), (session) => {
      session.dismiss?.(refusal); // no next round is taken
      if (session.callCount === 0) void this.#end(session, 'shutDown');
    });
    if (this.size > 0) await Promise.race([this.#emptied.promise, late]);
    disarm();
    await scheduler.each(this.#all(), (session) => this.#end(session, 'shutDown'));
  }

  used(session: McpSession): void {
    const isUnusable = session instanceof ClientSession && session.group.isDeleted;
    if (session.callCount > 0 || !(this.isClosing || isUnusable)) this.#idling.used(session);
    else void this.#end(session, this.isClosing ? 'shutDown' : 'templateDeleted');
    this.#drain?.used(session);
  }

  /** Ends the sessions with a deleted template, which cannot be used. One with calls under way ends after them. */
  #endUnusable(template: string): Promise<void> {
    const theirs = this.#all().filter(
      ({ value }) => value.kind === 'template' && value.template === template,
    );
    return this.deps.scheduler.each(theirs, (session) => this.used(session));
  }

  /** Prevents a recovery of the session here, except where its row stays for another life. */
  #forget({ id }: McpSession, reason: EndReason): void {
    if (!this.leavesRow(reason) && reason !== 'takenOver') this.#recovery?.forget(id);
  }

  #requireAccepting(): void {
    if (this.isClosing || !this.deps.isAccepting()) throw shuttingDown();
  }

  #requireNewSessions(): void {
    if (this.deps.isDraining?.()) throw nodeDraining();
    if (this.deps.isCutOff?.()) throw nodeCutOff();
  }

  /** Makes a session in a free place. */
  #create(id: string, value: SessionValue, options: SessionOptions): ClientSession {
    this.deps.fleet.templates.group(value.template); // TEMPLATE_NOT_FOUND, before anything is counted
    this.#bounds.take(value);
    const ownValue = { ...value, profile: this.#bounds.shared(value.profile) };
    return new ClientSession(this, this.binder, id, ownValue, options);
  }

  #begin(session: McpSession): void {
    this.#open.set(session.id, session);
    this.#drain?.add(session);
    this.#idling.used(session);
    session.activity.openedAtMs = session.activity.usedAtMs;
  }

  #drop(session: McpSession): void {
    this.#bounds.release(session.value);
    this.#open.delete(session.id);
    this.#drain?.ended(session);
    if (this.isClosing && this.size === 0) this.#emptied.resolve();
  }

  /** The open sessions without the parts of aggregate sessions. */
  #ofClients(): McpSession[] {
    const sessions = [...this.#open.values()];
    const parts = new Set(sessions.flatMap(({ partIds = [] }) => partIds));
    return sessions.filter(({ id }) => !parts.has(id));
  }

  #all(): McpSession[] {
    return [...this.#opening, ...this.#open.values()];
  }

  /** `startMs`: the wall time at the start of the monotonic clock, in ms since 1970. */
  #shown(session: McpSession, startMs: number): ShownSession {
    const { openedAtMs, usedAtMs } = session.activity;
    const ids = session.value.kind === 'template' ? [session.id] : (session.partIds ?? []);
    const bound = ids.flatMap((id) => this.find(id) ?? []);
    return {
      id: sessionFingerprint(session.id),
      ownerId: session.value.ownerId,
      clientInfo: session.value.profile.clientInfo,
      bindings: bound.map(({ instance: { template, id: instanceId, serverId } }) => ({
        template,
        instanceId,
        serverId,
      })),
      openedAtMs: Math.round(startMs + openedAtMs),
      usedAtMs: Math.round(startMs + usedAtMs),
      isStreaming: session.isStreaming,
    };
  }

  #end(session: McpSession, reason: EndReason): Promise<void> {
    const closing = session.close(reason);
    this.#closings.add(closing);
    void closing.then(() => this.#closings.delete(closing));
    return closing;
  }

  /**
   * Ends the session of an absent client, if all places or all places of the owner are taken. Throws SESSION_LIMIT
   * when no client is absent.
   */
  #makeRoom(value: AnySessionValue): void {
    const exceeded = this.#bounds.exceededBy(value);
    if (exceeded === undefined) return;
    const only = exceeded.isShare ? value.ownerId : undefined;
    const away = longestAway(this.#ofClients(), value, only, this.deps.clock.now());
    if (away !== undefined) void this.#end(away, 'placeNeeded');
    else this.#bounds.check(value);
  }
}

/** Resolves when the instance is not starting any more, at most after LIMITS.firstOpeningsMs. */
async function untilNotStarting(instance: Instance | undefined, clock: Clock): Promise<void> {
  if (!(instance instanceof InstanceRef) || !instance.isStarting) return;
  const known$ = instance.until$(() => !instance.isStarting);
  await firstValueFrom(race(known$, timer$(clock, LIMITS.firstOpeningsMs)), { defaultValue: undefined });
}
