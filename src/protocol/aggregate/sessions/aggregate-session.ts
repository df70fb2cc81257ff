// The session of a legacy client with an aggregate. It opens a part, a session with one template, at the first use of the
// template, and another one after that part has ended; the client's own session continues. Its state is one plain value
// (domain/sessions/session-value.ts), without its parts.

import { isDeepStrictEqual } from 'node:util';
import {
  catchError,
  concat,
  defer,
  EMPTY,
  filter,
  finalize,
  from,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  ReplaySubject,
  race,
  Subject,
  switchMap,
  takeUntil,
  tap,
} from 'rxjs';
import { type ExchangeRequest, type SourcedEvent, toolOf } from '../../../domain/calls/exchange.ts';
import { backendTimeout, backendUnavailable } from '../../../domain/errors/backend-errors.ts';
import { asGatewayError, hasCode } from '../../../domain/errors/errors.ts';
import type { EndReason } from '../../../domain/errors/session-ends.ts';
import { sessionEnded } from '../../../domain/errors/session-errors.ts';
import { type JsonObject, JsonText } from '../../../domain/json/json.ts';
import { LIMITS } from '../../../domain/limits.ts';
import {
  type Client,
  type Notification,
  type Owner,
  type ServerMessage,
  updateNotice,
} from '../../../domain/mcp/client.ts';
import { RPC } from '../../../domain/mcp/jsonrpc.ts';
import {
  type Handshake,
  isLogLevel,
  type ListChange,
  SET_LEVEL,
  SUBSCRIBE,
  UNSUBSCRIBE,
} from '../../../domain/mcp/mcp.ts';
import type { AllSessions, SessionRow } from '../../../domain/sessions/all-sessions.ts';
import { type McpSession, SessionActivity } from '../../../domain/sessions/mcp-session.ts';
import type { AggregateSessionValue } from '../../../domain/sessions/session-value.ts';
import { SubscriptionRequests } from '../../../domain/sessions/subscription-requests.ts';
import { startsWithin, ticks$ } from '../../../domain/time/clock-streams.ts';
import type { Timing } from '../../../domain/time/task-scheduler.ts';
import { inTasks } from '../../../domain/time/task-streams.ts';
import type { Backends } from '../../endpoint-backends.ts';
import { exchangeInSession } from '../../legacy/legacy-over-modern.ts';
import { withListNotices } from '../../list-notices.ts';
import { ownAnswer, rpcErrorAnswer } from '../../own-answers.ts';
import type { ToTemplate } from '../aggregate-extensions.ts';
import { splitInstance, withAggregateInstance } from '../aggregate-names.ts';
import type { Selection } from '../selection.ts';
import {
  isAggregateRecoverable,
  isAllowedFor,
  type MovesUnsafe,
  viewIdOf,
} from './aggregate-session-value.ts';
import { SessionParts } from './session-parts.ts';
import {
  afterAnswer,
  askedUris,
  endOfSubscription,
  NamedUpdates,
  subscribedUris,
  withoutSubscriptions,
} from './session-subscriptions.ts';
import { UnsafeMarks } from './unsafe-marks.ts';

/** The interval at which ended sessions with templates are opened again for a client that waits for updates. */
const REOPEN_MS = 5_000;

export interface AggregateSessionDeps extends Timing {
  readonly sessions: AllSessions;
  /** See AggregateBackends. */
  readonly route: (
    request: ExchangeRequest,
    client: Client,
    toTemplate: ToTemplate,
    bound: string | undefined,
  ) => Observable<SourcedEvent>;
  readonly selection: Selection;
  readonly backendsOf: (template: string) => Backends;
  /** True for a template that exists. */
  readonly hasTemplate: (template: string) => boolean;
  readonly timeoutFor: (template: string, tool: string | undefined, ofViewMs: number | undefined) => number;
  readonly movesUnsafe: MovesUnsafe;
  /** Hot: changed lists of any template, those of new and removed templates included. Completes with the gateway. */
  readonly listChanges$: Observable<ListChange>;
}

interface AggregateSessionOptions {
  readonly value: AggregateSessionValue;
  /** The owner of the value, for which `isAllowedFor` is true. */
  readonly owner: Owner;
  readonly handshake: Handshake;
  /** The id of a session that was read again. Default: a new one. */
  readonly id?: string | undefined;
}

/**
 * One client's session. Closing removes it from AllSessions. It has no `reserve`: the sessions with its templates make the
 * reservations (`exchangeInSession`).
 */
export class AggregateSession implements McpSession {
  readonly activity = new SessionActivity();
  readonly id: string;
  readonly handshake: Handshake;
  readonly isShared = false;
  readonly ended$ = new ReplaySubject<EndReason>(1);
  callCount = 0;
  generation: number | undefined;
  readonly #deps: AggregateSessionDeps;
  #value: AggregateSessionValue;
  /** The caller as it was checked last: it may use the templates of the value. */
  #owner: Owner;
  readonly #parts: SessionParts;
  readonly #requests = new SubscriptionRequests();
  /** Updates that the client may have missed. */
  readonly #missed = new Subject<Notification>();
  /** The row in the store. Undefined before the session is kept. */
  #row: SessionRow | undefined;
  #marks: UnsafeMarks | undefined;
  /** What holds the session, such as open streams; its calls are not counted. */
  #holds = 0;
  /** True once its client has listened. The first time sessions are opened at once: the session may have been read again. */
  #hasListened = false;

  constructor(session: AggregateSessionOptions, deps: AggregateSessionDeps) {
    const { value, owner, handshake, id = deps.sessions.newId() } = session;
    this.#value = value;
    this.#owner = owner;
    this.handshake = handshake;
    this.#deps = deps;
    this.id = id;
    this.#parts = new SessionParts({
      scheduler: deps.scheduler,
      openSession: this.#openPart.bind(this),
      opened: this.#restoreState.bind(this),
    });
  }

  /** The state of the session as a value that can be stored; AggregateBackends.recoverFrom makes the session again from it. */
  get value(): AggregateSessionValue {
    return this.#value;
  }

  /** See McpSession. */
  untilStored(): Promise<boolean> | undefined {
    if (!this.#isOver) this.#row ??= this.#deps.sessions.rowFor(this, 'new');
    return this.#row?.save();
  }

  /** Notes that the session was read from its row. */
  recoverAs(generation: number): void {
    this.generation = generation;
    this.#row = this.#deps.sessions.rowFor(this, 'recovered');
  }

  /** The view that it is with; undefined for all templates. */
  get view(): string | undefined {
    return viewIdOf(this.#value);
  }

  /** False when its owner may use other templates than at its start, or call other tools than before. */
  isAllowedFor(owner: Owner): boolean {
    const { templates, tools } = this.#owner;
    if (owner.templates !== templates && !isAllowedFor(this.#value, owner)) return false;
    if (owner.tools !== tools && !isDeepStrictEqual(owner.tools, tools)) return false;
    this.#owner = owner; // the next comparison is one of references
    return true;
  }

  get questionMs(): number {
    return Math.max(LIMITS.callDefaultBoundMs, ...this.#parts.all.map(({ questionMs }) => questionMs));
  }

  get partIds(): readonly string[] {
    return this.#parts.all.map(({ id }) => id);
  }

  get isStreaming(): boolean {
    return this.#holds > 0;
  }

  get isRecoverable(): boolean {
    return this.#row?.isStored === true && isAggregateRecoverable(this.#value, this.#deps.movesUnsafe);
  }

  /** False while the session is held, and does not expire; there is no idle state. */
  setIdle(): boolean {
    return this.#holds === 0 && this.callCount === 0;
  }

  get messages$(): Observable<ServerMessage> {
    const ofParts$ = defer(() => {
      if (!this.#hasListened) this.#openSubscribed();
      this.#hasListened = true;
      return this.#parts.messages((template, message) => this.#named.messages(template, message));
    });
    const messages$ = merge(ofParts$, this.#missed, this.#reopened$);
    const { scheduler, clock, selection } = this.#deps;
    const ofTemplates$ = this.#deps.listChanges$.pipe(
      filter(({ template }) => selection.includes(this.#owner, template)),
      map(({ list }) => list),
    );
    const listChanges$ = merge(ofTemplates$, selection.changed$);
    return withListNotices(messages$, listChanges$, { scheduler, clock }).pipe(takeUntil(this.ended$));
  }

  get untilListening(): Promise<void> | undefined {
    const all = this.#parts.all.flatMap(({ untilListening }) => untilListening ?? []);
    return all.length === 0 ? undefined : Promise.all(all).then(() => undefined);
  }

  isAt(instanceId: string): boolean {
    const own = splitInstance(instanceId);
    return own !== undefined && this.#parts.get(own.template)?.isAt(own.id) === true;
  }

  exchange(request: ExchangeRequest, instanceId?: string): Observable<SourcedEvent> {
    return defer(() => {
      const { endReason } = this.#value;
      if (endReason !== undefined) throw sessionEnded(endReason);
      this.callCount += 1;
      this.#used();
      const bound = instanceId === undefined ? undefined : splitInstance(instanceId)?.template;
      const events$ = request.method === SET_LEVEL ? this.#setLevel(request) : this.#route(request, bound);
      return events$.pipe(
        finalize(() => {
          this.callCount -= 1;
          this.#used();
        }),
      );
    });
  }

  notify(method: string, params: JsonObject): void {
    for (const session of this.#parts.all) session.notify(method, params);
  }

  hold(): () => void {
    this.#holds += 1;
    this.#used();
    return () => {
      this.#holds -= 1;
      this.#used();
    };
  }

  setAway(isAway: boolean): void {
    for (const session of this.#parts.all) session.setAway(isAway);
  }

  async close(reason: EndReason = 'closed'): Promise<void> {
    if (this.#isOver) return;
    this.#change({ ...this.#value, endReason: reason });
    const { sessions } = this.#deps;
    this.#row?.end(reason, sessions.leavesRow(reason));
    this.ended$.next(reason);
    this.ended$.complete();
    sessions.remove(this, reason);
    await this.#parts.close(reason);
  }

  #change(value: AggregateSessionValue): void {
    if (value === this.#value) return;
    this.#value = value;
    this.#row?.changed();
  }

  readonly #named = new NamedUpdates(
    () => this.#value,
    (template, uri) => this.#deps.selection.directory.uris.isServed(template, uri),
  );

  get #isOver(): boolean {
    return this.#value.endReason !== undefined;
  }

  #used(): void {
    if (!this.#isOver) this.#deps.sessions.used(this);
  }

  /** `bound`: the template of a task. */
  #route(request: ExchangeRequest, bound: string | undefined): Observable<SourcedEvent> {
    const arrivedAtMs = this.#deps.clock.now();
    const toTemplate: ToTemplate = (template, own) => {
      const agreed = () => this.#change(afterAnswer(this.#value, template, own, request));
      const events$ = this.#noting(template, own, agreed, () =>
        this.#carry(template, own, own.arrivedAtMs ?? arrivedAtMs),
      ).pipe(map(withAggregateInstance(template)));
      return this.#value.composed === undefined && this.view === undefined
        ? events$
        : events$.pipe(mergeMap((sourced) => this.#named.answers(template, sourced)));
    };
    const end = endOfSubscription(this.#value, request);
    if (end !== undefined) {
      this.#change(end.value);
      for (const other of end.others) this.#send(this.#parts.get(other.template), other.request);
      if (end.answering !== undefined) return toTemplate(end.answering.template, end.answering.request);
      return of(ownAnswer({ kind: 'result', result: JsonText.ofValue({}) }));
    }
    return this.#deps.route(request, { owner: this.#owner, profile: this.#value.profile }, toTemplate, bound);
  }

  /** Calls `agreed` if the answer to a request about a subscription counts. */
  #noting(
    template: string,
    request: ExchangeRequest,
    agreed: () => void,
    carry: () => Observable<SourcedEvent>,
  ): Observable<SourcedEvent> {
    const { method, params: { uri } = {} } = request;
    if (method !== SUBSCRIBE && method !== UNSUBSCRIBE) return carry();
    return defer(() => {
      const { isOverridden, end } = this.#requests.begin(`${template}\n${uri}`, request);
      const note = ({ event }: SourcedEvent) => {
        if (event.kind === 'result' && !isOverridden()) agreed();
      };
      return carry().pipe(tap(note), finalize(end));
    });
  }

  #carry(template: string, request: ExchangeRequest, arrivedAtMs: number): Observable<SourcedEvent> {
    const opening = this.#parts.with(template);
    const session = this.#parts.get(template);
    const isOpening = session === undefined;
    const session$ = isOpening
      ? race(from(opening), this.#over$).pipe(this.#inTime(template, request, arrivedAtMs))
      : of(session);
    return session$.pipe(
      switchMap((inner) =>
        exchangeInSession(inner, { ...request, arrivedAtMs }, this.#deps.clock).pipe(
          catchError((thrown: unknown) => {
            if (this.#isOver || !hasCode(thrown, 'SESSION_NOT_FOUND')) throw thrown;
            // Says nothing about the session of the client, which may have another session with the template.
            const { delivered } = asGatewayError(thrown);
            throw backendUnavailable('the session with its template has ended', { delivered });
          }),
        ),
      ),
    );
  }

  /** Errors when the session ends: a part that is being opened then may take long, and ends only afterwards. */
  get #over$(): Observable<never> {
    return this.ended$.pipe(
      map((reason) => {
        throw sessionEnded(reason);
      }),
    );
  }

  /** A call waits for a session that is being opened until its own deadline. The session is opened in any case. */
  #inTime(template: string, request: ExchangeRequest, arrivedAtMs: number) {
    const { clock, timeoutFor } = this.#deps;
    const timeoutMs = timeoutFor(template, toolOf(request), request.viewTimeoutMs);
    const leftMs = Math.max(0, Math.ceil(arrivedAtMs + timeoutMs - clock.now()));
    return startsWithin<McpSession>(clock, leftMs, () => backendTimeout(timeoutMs, 'no'));
  }

  /** Sends the level to the open sessions, and to later ones when they open. */
  #setLevel(request: ExchangeRequest): Observable<SourcedEvent> {
    const level = request.params?.level;
    if (!isLogLevel(level)) return rpcErrorAnswer(RPC.invalidParams, 'Unknown log level.');
    this.#change({ ...this.#value, logLevel: level });
    for (const session of this.#parts.all) this.#send(session, request);
    return of(ownAnswer({ kind: 'result', result: JsonText.ofValue({}) }));
  }

  #openPart(template: string): Promise<McpSession> {
    const backends = this.#deps.backendsOf(template);
    const unsafeMark = this.#row && this.#marksOf(this.#row).of(template);
    const part = { unsafeMark, isRecovered: this.generation !== undefined };
    return backends.openSession(this.#owner, this.#value.profile, { part });
  }

  #marksOf(row: SessionRow): UnsafeMarks {
    this.#marks ??= new UnsafeMarks(
      () => this.#value.unsafeIn,
      async (unsafeIn) => {
        this.#change({ ...this.#value, unsafeIn });
        await row.save();
        const { endReason } = this.#value;
        if (endReason !== undefined) throw sessionEnded(endReason); // perhaps another life has it
      },
    );
    return this.#marks;
  }

  /** A client that waits for updates may make no call that opens the next session. Never emits: its parts do. */
  get #reopened$(): Observable<never> {
    return ticks$(this.#deps.clock, REOPEN_MS).pipe(
      tap(() => {
        this.#parts.leaveDeleted(this.#deps.hasTemplate);
        this.#openSubscribed();
      }),
      ignoreElements(),
    );
  }

  #openSubscribed(): void {
    for (const template of Object.keys(this.#value.uris))
      this.#parts.with(template).catch((thrown) => this.#reopeningFailed(template, thrown));
  }

  /** A failed part is opened again later, unless the template was deleted. */
  #reopeningFailed(template: string, thrown: unknown): void {
    if (hasCode(thrown, 'TEMPLATE_NOT_FOUND')) this.#change(withoutSubscriptions(this.#value, template));
  }

  /**
   * Restores the state that the client expects its server to remember. Refusals are ignored. Updates before the subscriptions
   * may have been missed.
   */
  #restoreState(template: string, session: McpSession): void {
    const level = session.handshake.capabilities.logging === undefined ? undefined : this.#value.logLevel;
    if (level !== undefined) this.#send(session, { method: SET_LEVEL, params: { level } });
    const uris = () => subscribedUris(this.#value, template);
    if (uris().size === 0) return;
    const subscribe = (uri: string): Observable<unknown> => {
      if (!uris().has(uri)) return EMPTY; // the client has unsubscribed meanwhile
      const request = { method: SUBSCRIBE, params: { uri } };
      return defer(() => session.exchange(request)).pipe(catchError(() => EMPTY));
    };
    const restored$ = from(uris()).pipe(mergeMap(subscribe, LIMITS.concurrentRestores), ignoreElements());
    const missed$ = defer(() => inTasks(askedUris(this.#value, template), this.#deps.scheduler));
    concat(restored$, missed$).subscribe((uri) => this.#missed.next(updateNotice(uri)));
  }

  /** A refusal is ignored: that server keeps its own state. */
  #send(session: McpSession | undefined, request: ExchangeRequest): void {
    if (session !== undefined) defer(() => session.exchange(request)).subscribe({ error: () => undefined });
  }
}
