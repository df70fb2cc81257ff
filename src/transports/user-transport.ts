// The transport of an instance that is used with the account of each user: a transport for each user, opened with the first
// request. To the actors it is one modern server without state. No user gets the messages of the server to another one, lists
// included. To a user without a connection it lists one tool, `connect`, and answers everything else with the address at which
// the account is connected. Source: ADR 220.

import {
  AsyncSubject,
  catchError,
  defer,
  from,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  Subject,
  switchMap,
  takeUntil,
  tap,
  throwError,
} from 'rxjs';
import { userIdIn } from '../domain/accounts/principal.ts';
import {
  type ConnectionRequired,
  type ConnectLink,
  connectAt,
  connectionDeclined,
  noOwnAccount,
} from '../domain/calls/connection-required.ts';
import { type ExchangeRequest, toolOf } from '../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../domain/calls/exchange-event.ts';
import { backendUnavailable } from '../domain/errors/backend-errors.ts';
import { hasCode } from '../domain/errors/errors.ts';
import { tooMany } from '../domain/errors/request-errors.ts';
import type { InstanceDefinition } from '../domain/instances/instance.ts';
import type { TransportKind } from '../domain/instances/transport-kinds.ts';
import { fieldValue, isJsonObject, type JsonObject, JsonText } from '../domain/json/json.ts';
import { editedFields, REMOVED, withFields } from '../domain/json/json-fields.ts';
import { memberBytes, OPEN_BRACE, skipSpace } from '../domain/json/json-scanner.ts';
import type { Notification, ServerMessage } from '../domain/mcp/client.ts';
import { METHOD_NOT_FOUND } from '../domain/mcp/jsonrpc.ts';
import {
  type Handshake,
  isOfOtherEra,
  type ListField,
  listReturnedBy,
  MODERN_VERSIONS,
  PROGRESS,
} from '../domain/mcp/mcp.ts';
import type { Clock } from '../domain/time/clock.ts';
import { ticks$ } from '../domain/time/clock-streams.ts';
import { closeQuietly } from './close-quietly.ts';
import { forLegacy } from './legacy-form.ts';
import { CLOSED_BY_GATEWAY, type Closed, type Transport, type TransportDiagnostics } from './transport.ts';

/** The way in which users connect their accounts at one instance. */
interface Connecting {
  /** A new address for this user, or one that is still valid. */
  linkFor(userId: string): Promise<ConnectLink>;
  /** Resolves as soon as the user has connected it, at any node, or after this time. Never rejects. */
  whenConnected(userId: string, withinMs: number): Promise<void>;
}

interface UserTransportOptions {
  readonly definition: Pick<InstanceDefinition, 'template' | 'id' | 'transport'>;
  /** Throws CONNECTION_REQUIRED, and as opening any transport. */
  readonly open: (userId: string, signal: AbortSignal) => Promise<Transport>;
  /** Resolves when the server answers, also when it asks for an account. Throws BACKEND_UNAVAILABLE. */
  readonly probe: () => Promise<unknown>;
  readonly connecting: Connecting;
  /** The users whose connection has just been replaced or removed. */
  readonly changed$: Observable<string>;
  /** A notification of the server for this user alone. */
  readonly onNotice: (userId: string, notice: Notification) => void;
  readonly clock: Clock;
}

/** The tool of a user without a connection. */
const CONNECT_TOOL = 'connect';

/** Users of one instance with an open transport. One that is not in use makes room. */
const MAX_USERS = 1_000;
/** A transport without a call is closed after this time. */
const IDLE_MS = 10 * 60_000;
const SWEEP_MS = 60_000;
/** The time for which a retry waits for the connection: the user is on the way to the provider. */
const WAIT_MS = 60_000;
/** A sign of life for the deadline of the call that waits, which is often shorter. */
const SIGN_MS = 5_000;
/** The longest time for which a list counts as current. */
const LIST_MS = 10 * 60_000;

interface OpenForUser {
  readonly transport: Promise<Transport>;
  calls: number;
  usedAtMs: number;
}

/** Opens the transport, once the backend answers. Throws BACKEND_UNAVAILABLE. */
export async function openUserTransport(options: UserTransportOptions): Promise<Transport> {
  await options.probe();
  return new UserTransport(options);
}

class UserTransport implements Transport {
  readonly kind: TransportKind;
  readonly handshake: Handshake;
  readonly messages$ = new Subject<ServerMessage>();
  readonly closed$ = new AsyncSubject<Closed>();
  readonly #options: UserTransportOptions;
  readonly #users = new Map<string, OpenForUser>();
  /** The transports that finish their calls and get no others. */
  readonly #left = new Set<OpenForUser>();
  readonly #ending = new AbortController();
  readonly #stop: () => void;

  constructor(options: UserTransportOptions) {
    this.#options = options;
    this.kind = options.definition.transport;
    const list = { listChanged: true };
    const capabilities = { tools: list, prompts: list, resources: list, completions: {} };
    const serverInfo = { name: options.definition.template, version: '' };
    const [protocolVersion] = MODERN_VERSIONS;
    this.handshake = { era: 'modern', protocolVersion, serverInfo, capabilities, greeting: { capabilities } };
    const stopSweeps = options.clock.background.every(SWEEP_MS, () => this.#sweep());
    const changed = options.changed$.subscribe((userId) => this.#leave(userId));
    this.#stop = () => {
      stopSweeps();
      changed.unsubscribe();
    };
  }

  exchange(request: ExchangeRequest): Observable<ExchangeEvent> {
    const { callerId } = request;
    if (callerId === undefined) return defer(() => this.#own(request));
    const userId = userIdIn(callerId);
    if (userId === undefined) return of(refusal(noOwnAccount(this.#template)));
    return this.#carry(request, userId).pipe(
      catchError((thrown: unknown) => {
        if (!hasCode(thrown, 'CONNECTION_REQUIRED')) throw thrown;
        return this.#withoutConnection(request, userId);
      }),
      takeUntil(this.closed$.pipe(map(refuse))), // what was sent has its error already
    );
  }

  /** Notifications of clients concern their requests, which each have their own message here. */
  notify(): void {}

  async openConversation(): Promise<undefined> {}

  diagnostics(): TransportDiagnostics {
    return { pid: null, stderr: [] };
  }

  async close(): Promise<void> {
    if (this.#ending.signal.aborted) return;
    this.#stop();
    this.#ending.abort();
    const all = [...this.#users.values(), ...this.#left];
    this.#users.clear();
    await Promise.all(all.map((user) => this.#end(user)));
    this.messages$.complete();
    this.closed$.next(CLOSED_BY_GATEWAY);
    this.closed$.complete();
  }

  get #template(): string {
    return this.#options.definition.template;
  }

  /** A request of the gateway: a probe. There is no list that all users have. */
  async *#own({ method }: ExchangeRequest): AsyncGenerator<ExchangeEvent> {
    if (method !== 'server/discover') {
      yield { kind: 'error', error: METHOD_NOT_FOUND };
      return;
    }
    await this.#options.probe();
    yield { kind: 'result', result: JsonText.ofValue({}) };
  }

  // --- users with a connection -----------------------------------------------------------------------------

  #carry(request: ExchangeRequest, userId: string): Observable<ExchangeEvent> {
    return defer(() => {
      const user = this.#of(userId);
      user.calls += 1;
      request.held?.(true); // opening has a bound of its own
      const release = () => request.held?.(false);
      const opened$ = from(user.transport).pipe(tap({ next: release, error: release }));
      const events$ = opened$.pipe(switchMap((transport) => this.#ask(transport, request)));
      const failed = (thrown: unknown): void => {
        const isPresent = this.#users.get(userId) === user; // else the connection was replaced meanwhile
        if (isPresent && hasCode(thrown, 'CONNECTION_REQUIRED')) this.#leave(userId);
      };
      return events$.pipe(tap({ error: failed, finalize: () => this.#used(user) }));
    });
  }

  #ask(transport: Transport, request: ExchangeRequest): Observable<ExchangeEvent> {
    const { era, capabilities } = transport.handshake;
    const list = listReturnedBy(request.method);
    if (list !== undefined && era !== 'bare' && capabilities[capabilityOf(list)] === undefined)
      return of(listResult(list, []));
    if (isOfOtherEra(request.method, era)) return of({ kind: 'error', error: METHOD_NOT_FOUND });
    const own = withoutVisits(request);
    const events$ = transport.exchange(era === 'modern' ? own : forLegacy(own));
    if (list !== undefined) return events$.pipe(map(ownList));
    // The client has the list from before.
    return toolOf(request) === CONNECT_TOOL ? events$.pipe(map(connectedAlready)) : events$;
  }

  #of(userId: string): OpenForUser {
    const known = this.#users.get(userId);
    if (known !== undefined) return known;
    this.#makeRoom();
    const { signal } = this.#ending;
    const { open, clock, onNotice } = this.#options;
    if (signal.aborted) refuse(CLOSED_BY_GATEWAY);
    const user: OpenForUser = { transport: open(userId, signal), calls: 0, usedAtMs: clock.now() };
    this.#users.set(userId, user);
    const forget = () => this.#users.get(userId) === user && this.#users.delete(userId);
    user.transport.then((transport) => {
      transport.closed$.subscribe(forget);
      transport.messages$.subscribe((message) => {
        if (message.kind === 'notification') onNotice(userId, message);
      });
    }, forget);
    return user;
  }

  /** The next call opens another transport: this one may have a session of another account. */
  #leave(userId: string): void {
    const user = this.#users.get(userId);
    if (user === undefined) return;
    this.#users.delete(userId);
    this.#left.add(user);
    if (user.calls === 0) void this.#end(user);
  }

  #used(user: OpenForUser): void {
    user.calls -= 1;
    user.usedAtMs = this.#options.clock.now();
    if (user.calls === 0 && this.#left.has(user)) void this.#end(user);
  }

  #makeRoom(): void {
    if (this.#users.size < MAX_USERS) return;
    const idle = [...this.#users].filter(([, { calls }]) => calls === 0);
    const [longest] = idle.toSorted(([, a], [, b]) => a.usedAtMs - b.usedAtMs);
    if (longest === undefined)
      throw tooMany('users with calls at the instance', { most: MAX_USERS, isShare: false }, 1);
    void this.#close(...longest);
  }

  #sweep(): void {
    const until = this.#options.clock.now() - IDLE_MS;
    for (const [userId, user] of this.#users)
      if (user.calls === 0 && user.usedAtMs <= until) void this.#close(userId, user);
  }

  #close(userId: string, user: OpenForUser): Promise<void> {
    if (this.#users.get(userId) === user) this.#users.delete(userId);
    return this.#end(user);
  }

  async #end(user: OpenForUser): Promise<void> {
    this.#left.delete(user);
    await user.transport.then(closeQuietly, () => {
      // The transport was never opened.
    });
  }

  // --- users without one -----------------------------------------------------------------------------------

  #withoutConnection(request: ExchangeRequest, userId: string): Observable<ExchangeEvent> {
    const list = listReturnedBy(request.method);
    if (list !== undefined) return of(listResult(list, list === 'tools' ? [this.#connectTool()] : []));
    const response = visitResponseOf(request);
    if (response === undefined) return this.#required(request, userId);
    if (response !== 'accept') return of(refusal(connectionDeclined(this.#template)));
    return defer(() => {
      const waiting = this.#options.connecting.whenConnected(userId, WAIT_MS);
      const events$ = from(waiting).pipe(mergeMap(() => this.#carryOrAsk(request, userId)));
      return merge(signsOfLife(this.#options.clock).pipe(takeUntil(from(waiting))), events$);
    });
  }

  #carryOrAsk(request: ExchangeRequest, userId: string): Observable<ExchangeEvent> {
    return this.#carry(request, userId).pipe(
      catchError((thrown: unknown) =>
        hasCode(thrown, 'CONNECTION_REQUIRED') ? this.#required(request, userId) : throwError(() => thrown),
      ),
    );
  }

  #required(request: ExchangeRequest, userId: string): Observable<ExchangeEvent> {
    return from(this.#options.connecting.linkFor(userId)).pipe(
      map((link): ExchangeEvent => {
        const required = connectAt(this.#template, link);
        if (toolOf(request) !== CONNECT_TOOL) return refusal(required);
        return textResult(`Open ${link.url} in a browser, and connect your account at "${this.#template}".`);
      }),
    );
  }

  #connectTool(): JsonObject {
    return {
      name: CONNECT_TOOL,
      description: `Connect your account at "${this.#template}": answers with the address to open in a browser. Its tools are listed afterwards.`,
      inputSchema: { type: 'object', properties: {} },
      annotations: { readOnlyHint: true },
    };
  }
}

/** Throws the error of a request that was not sent, because the transport has ended. */
function refuse({ reason }: Closed): never {
  throw backendUnavailable(reason, { delivered: 'no' });
}

function refusal(error: ConnectionRequired): ExchangeEvent {
  return { kind: 'error', error };
}

function textResult(text: string): ExchangeEvent {
  return { kind: 'result', result: JsonText.ofValue({ content: [{ type: 'text', text }] }) };
}

function capabilityOf(list: ListField): string {
  return list === 'resourceTemplates' ? 'resources' : list;
}

function listResult(list: ListField, items: readonly JsonObject[]): ExchangeEvent {
  return {
    kind: 'result',
    result: JsonText.ofValue({ [list]: [...items], ttlMs: 0, cacheScope: 'private' }),
  };
}

/** The list of one user, whatever the server says about its scope. A large one is not parsed. */
function ownList(event: ExchangeEvent): ExchangeEvent {
  if (event.kind !== 'result') return event;
  const { bytes } = event.result;
  if (bytes[skipSpace(bytes, 0)] !== OPEN_BRACE) return event;
  const kept = editedFields(bytes, (key, value) => {
    if (key === 'cacheScope') return REMOVED;
    return key === 'ttlMs' && Number(value.toString()) > LIST_MS ? MAX_LIFETIME : undefined;
  });
  return { ...event, result: JsonText.ofBytes(withFields(kept, PRIVATE)) };
}
const MAX_LIFETIME = Buffer.from(String(LIST_MS));
const PRIVATE = Buffer.from('"cacheScope":"private"');

/** The server has no such tool; one of that name has answered otherwise. */
function connectedAlready(event: ExchangeEvent): ExchangeEvent {
  const isRefused =
    event.kind === 'error' ||
    (event.kind === 'result' && memberBytes(event.result.bytes, 'isError')?.toString() === 'true');
  return isRefused ? textResult('Your account is connected: list the tools again.') : event;
}

const VISIT = /^visit-\d+$/;

/** The answer of the client about the address that it was asked to open; undefined when it was not asked. */
function visitResponseOf({ params }: ExchangeRequest): string | undefined {
  const responses = fieldValue(params?.inputResponses);
  if (!isJsonObject(responses)) return undefined;
  const visit = Object.entries(responses).find(([key]) => VISIT.test(key))?.[1];
  if (!isJsonObject(visit)) return undefined;
  return typeof visit.action === 'string' ? visit.action : '';
}

/** The server did not ask for the visit. */
function withoutVisits(request: ExchangeRequest): ExchangeRequest {
  if (visitResponseOf(request) === undefined || request.params?.requestState !== undefined) return request;
  const { inputResponses: _, ...params } = request.params ?? {};
  return { ...request, params };
}

/** Each sign starts the deadline of the call again. */
function signsOfLife(clock: Clock): Observable<ExchangeEvent> {
  return ticks$(clock, SIGN_MS).pipe(
    map((_, index) => {
      const params = { progress: index + 1, message: 'Waiting until the account is connected' };
      return { kind: 'notification', method: PROGRESS, params };
    }),
  );
}
