// One session of a legacy client: its id stays while it goes from one instance to another. It carries its client's calls
// and answers them before it ends. Where it stands is client-session-place.ts's business, how long it may go unused that
// of the table (client-sessions.ts).

import { randomBytes } from 'node:crypto';
import { Observable } from 'rxjs';
import type { ClientProfile, ServerMessage } from '../domain/client.ts';
import type { Answer, ExchangeRequest } from '../domain/exchange.ts';
import type { JsonObject } from '../domain/json.ts';
import type { Peer } from '../domain/mcp.ts';
import { sessionLost } from '../domain/session-errors.ts';
import { Audience } from './client-session-audience.ts';
import { ClientCall } from './client-session-call.ts';
import type { Pin, SessionParts, Stay } from './client-session-parts.ts';
import type { Pinning } from './client-session-pin.ts';
import { Place } from './client-session-place.ts';

/** Who keeps the session. */
export interface SessionKeeper {
  readonly parts: SessionParts;
  readonly pinning: Pinning;
  /** A message came, or what kept the session busy has ended. */
  used(session: ClientSession): void;
  ended(session: ClientSession): void;
}

export interface SessionFields {
  readonly template: string;
  readonly ownerId: string;
  /** Shared by all sessions with an equal one. */
  readonly profile: ClientProfile;
}

/** Randomness of an id; as base64url it is visible ASCII. */
const ID_BYTES = 32;

/** What a backend of the modern era needs no word of. */
const OWN_NOTIFICATIONS: ReadonlySet<string> = new Set([
  'notifications/roots/list_changed',
  'notifications/progress',
]);
/** The handshake is the transport's, and a call is cancelled by whoever subscribed to it. */
const NEVER_PASSED_ON: ReadonlySet<string> = new Set([
  'notifications/initialized',
  'notifications/cancelled',
]);

export class ClientSession {
  readonly id = randomBytes(ID_BYTES).toString('base64url');
  readonly template: string;
  readonly ownerId: string;
  readonly profile: ClientProfile;
  /** For its keeper: when it was last used, in ms of the gateway's monotonic clock. */
  usedAtMs = 0;
  isParked = false;
  readonly #keeper: SessionKeeper;
  readonly #place: Place;
  #calls: Set<ClientCall> | undefined;
  #audience: Audience | undefined;
  #holds = 0;
  /** Places that are kept for calls which go on. */
  #stays = 0;
  #endedFor: string | undefined;
  #endListeners: Set<() => void> | undefined;

  constructor(keeper: SessionKeeper, { template, ownerId, profile }: SessionFields) {
    const { parts, pinning } = keeper;
    this.#keeper = keeper;
    this.template = template;
    this.ownerId = ownerId;
    this.profile = profile;
    this.#place = new Place({ parts, pinning, template, ownerId, profile }, this.#asOwner());
  }

  /** Goes to an instance; for errors see ClientSessions.open. Without a promise when nothing has to be opened there. */
  open(): Promise<void> | undefined {
    return this.#place.open();
  }

  /** The backend it is pinned to; while there is none, the last one. */
  get peer(): Peer {
    const { pin } = this.#place;
    if (pin === undefined) throw new Error('a session has no peer before it is open');
    return pin.peer;
  }
  /** True while its requests travel in the instance's own conversation. */
  get isShared(): boolean {
    return this.#place.pin?.upstream === undefined;
  }
  /** What `logging/setLevel` asked for last. In the modern era it goes with each request, which is not done here. */
  get logLevel(): string | undefined {
    return this.#place.logLevel;
  }

  /**
   * One request; cold. Errors: those of Dispatcher.within; SESSION_NOT_FOUND when the session cannot go on;
   * NO_HEALTHY_INSTANCE when it could, but nobody is there, and BACKEND_TIMEOUT when that took too long: the next request
   * tries again.
   */
  exchange(request: ExchangeRequest): Observable<Answer> {
    return this.#exchange(request, undefined);
  }

  /** Keeps a place at the instance that gave an answer, for a call that goes on. See Session of protocol/ports.ts. */
  stay(instanceId: string): Stay {
    const pins = [...(this.#calls ?? [])].map(({ pin }) => pin);
    const pin = [...pins, this.#place.pin].find((one) => one?.ref.id === instanceId);
    let isKept = true;
    pin?.take();
    this.#stays += 1;
    return {
      exchange: (request) => this.#exchange(request, pin),
      leave: () => {
        if (!isKept) return;
        isKept = false;
        pin?.release();
        this.#stays -= 1;
        this.#rested();
      },
    };
  }

  #exchange(request: ExchangeRequest, stay: Pin | undefined): Observable<Answer> {
    return new Observable((subscriber) => {
      if (this.#endedFor !== undefined) {
        subscriber.error(sessionLost(this.#endedFor));
        return;
      }
      this.#use();
      const call = new ClientCall(this.#place, request, subscriber, stay);
      this.#calls ??= new Set();
      this.#calls.add(call);
      subscriber.add(() => {
        call.end();
        this.#calls?.delete(call);
        this.#rested();
      });
      call.begin();
    });
  }

  /** Tells the backend something; dropped when nobody is there, or where it could not be told who says it. */
  notify(method: string, params: JsonObject): void {
    if (this.#endedFor !== undefined) return;
    this.#use();
    const upstream = this.#place.heardPin?.upstream;
    if (upstream === undefined || NEVER_PASSED_ON.has(method)) return;
    if (upstream.peer.era !== 'modern' || !OWN_NOTIFICATIONS.has(method)) upstream.notify(method, params);
  }

  /** What its backend says outside of exchanges. Hot; completes when the session has ended. Beginning to listen is using it. */
  get messages$(): Observable<ServerMessage> {
    return new Observable((subscriber) => {
      if (this.#endedFor !== undefined) return subscriber.complete();
      this.#use();
      this.#audience ??= new Audience({
        uris: () => this.#place.uris,
        changed: (isListening) => this.#listen(isListening),
        lost: () => this.#place.look(),
      });
      return this.#audience.messages$.subscribe(subscriber);
    });
  }

  /** Of what `messages$` listens to; see Session of protocol/ports.ts. */
  get opening(): Promise<void> | undefined {
    return this.#audience?.opening;
  }

  /** Keeps it from being parked or expired until the returned function is called. */
  hold(): () => void {
    let isHeld = true;
    this.#holds += 1;
    if (this.#endedFor === undefined) this.#use();
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#holds -= 1;
      this.#rested();
    };
  }

  /** Emits once when it is over, and why, as a clause; then completes. Replayed. */
  get ended$(): Observable<string> {
    return new Observable((subscriber) => {
      const tell = (): void => {
        subscriber.next(this.#endedFor ?? '');
        subscriber.complete();
      };
      if (this.#endedFor !== undefined) return tell();
      this.#endListeners ??= new Set();
      this.#endListeners.add(tell);
      return () => this.#endListeners?.delete(tell);
    });
  }

  /** Ends it for good. Its callers are answered; resolves when nothing is left at the backend. `reason` is a clause. */
  close(reason = 'it was closed'): Promise<void> {
    this.#place.end(reason);
    return this.#place.closing;
  }

  // --- for its keeper ----------------------------------------------------------------------------------------------

  /** Calls under way, those included that are about to go on. */
  get calls(): number {
    return this.#stays + (this.#calls?.size ?? 0);
  }

  /** It may neither be parked nor expire now. */
  get isBusy(): boolean {
    return this.#holds > 0 || this.calls > 0;
  }

  /**
   * Gives up everything that is not needed to go on later. False when it is in the middle of something. Who listens goes
   * on listening, which is no use of the session by itself: its client may be gone.
   */
  park(): boolean {
    if (this.isBusy || !this.#place.mayRest) return false;
    if (this.#audience?.isListening) return true;
    this.#place.rest();
    this.#calls = undefined;
    this.#audience = undefined;
    return true;
  }

  // -----------------------------------------------------------------------------------------------------------------

  #use(): void {
    this.#place.wake();
    this.#keeper.used(this);
  }

  #rested(): void {
    this.#place.rested();
    if (this.#endedFor === undefined) this.#keeper.used(this);
  }

  #listen(isListening: boolean): void {
    const { pin, phase } = this.#place;
    if (!isListening) {
      this.#audience?.detach();
      if (this.isParked) this.park();
    } else if (pin !== undefined) {
      this.#audience?.attach(pin);
      if (phase === 'adrift') this.#place.look();
    }
  }

  #asOwner() {
    const session = this;
    return {
      get isListened() {
        return session.#audience?.isListening === true;
      },
      get isCalling() {
        return session.#stays > 0 || [...(session.#calls ?? [])].some(({ pin }) => pin !== undefined);
      },
      moved: (pin: Parameters<Audience['attach']>[0]) => {
        if (session.#audience?.isListening) session.#audience.attach(pin);
      },
      changed: (uri: string, isWanted: boolean) => session.#audience?.wants(uri, isWanted),
      ended: (reason: string) => session.#end(reason),
    };
  }

  #end(reason: string): void {
    this.#endedFor = reason;
    for (const call of [...(this.#calls ?? [])]) call.refused(sessionLost(reason));
    this.#audience?.end();
    for (const tell of [...(this.#endListeners ?? [])]) tell();
    this.#keeper.ended(this);
  }
}
