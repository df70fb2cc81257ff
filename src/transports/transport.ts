// A transport is the connection to one backend. Every kind implements this interface and passes the shared conformance suite
// (spec/conformance/transport.ts). A transport knows no actors, no health and no balancing.

import type { LookupFunction } from 'node:net';
import { catchError, defer, type Observable } from 'rxjs';
import type { ExchangeEvent, ExchangeRequest } from '../domain/calls/exchange.ts';
import { nextAfter } from '../domain/calls/retry-rules.ts';
import { asGatewayError } from '../domain/errors/errors.ts';
import type { ProgramUser } from '../domain/instances/command.ts';
import type { RunInContainer } from '../domain/instances/deployment.ts';
import type { InstanceDefinition } from '../domain/instances/instance.ts';
import type { TransportKind } from '../domain/instances/transport-kinds.ts';
import type { JsonObject } from '../domain/json/json.ts';
import type { ClientProfile, ServerMessage } from '../domain/mcp/client.ts';
import type { Handshake, PinnedEra } from '../domain/mcp/mcp.ts';
import type { ByteBudget, InstanceHeldBytes } from '../domain/memory/held-bytes.ts';
import type { Clock } from '../domain/time/clock.ts';
import type { TaskScheduler } from '../domain/time/task-scheduler.ts';
import type { AddressCheck } from './network-guard.ts';
import type { GroupWatch } from './stdio/reaper.ts';

/** Why a transport ended. `reason` is a clause: "exited with code 7", "closed by the gateway". */
export interface Closed {
  readonly reason: string;
  /** True when the gateway asked for it. */
  readonly expected: boolean;
}

/** The reason of a program that ended by itself, without a failure. */
export const EXITED_CLEANLY = 'exited with code 0';

export const CLOSED_BY_GATEWAY: Closed = { reason: 'closed by the gateway', expected: true };

/** The fields of an instance's snapshot that its transport provides. */
export interface TransportDiagnostics {
  readonly pid: number | null;
  readonly stderr: readonly string[];
  /** Lines on the standard output of a program that were no JSON-RPC; absent for other backends. */
  readonly unmatchedLines?: number;
  /** Answers whose id came back as a text, and lines with an array of messages; absent for other backends, and for none. */
  readonly idsAsText?: number;
  readonly arrays?: number;
}

/** One conversation with a backend. A transport is the shared one; `openUpstream` opens others, each for one client. */
export interface Upstream {
  /** The result of the handshake; fixed for the life of the conversation. */
  readonly handshake: Handshake;
  /** Id of the process that is dedicated to one client, if any, also after its exit. */
  readonly pid?: number | undefined;
  /** True: it continues when its transport is closed or lost, and its opener closes it. Else it ends with its transport. */
  readonly isIndependent?: boolean | undefined;
  /** True: the program ends after each call, by design, so that it keeps nothing of one. Source: ADR 142. */
  readonly endsAfterCall?: boolean | undefined;
  /**
   * Cold: subscribing sends the request, unsubscribing before the answer cancels it on the backend. Emits
   * notifications, then one result or error event, then completes. Errors with BACKEND_UNAVAILABLE, whose `delivered` says
   * whether the request can have reached the backend; with `isRepaired` it may be sent again in this conversation, which never does
   * that by itself. Sending is synchronous up to the transport's own buffer. `Call` sets the deadline.
   */
  exchange(request: ExchangeRequest): Observable<ExchangeEvent>;
  /**
   * Sends a notification of the client. Dropped when the backend is gone or too many wait for it. Throws QUEUE_FULL when waiting
   * messages of the owner use too much memory. `ownerId`: default: the owner of the conversation.
   */
  notify(method: string, params: JsonObject, ownerId?: string): void;
  /**
   * Hot, no replay: messages that belong to no exchange. Completes when the conversation has closed; never errors. Requests only
   * come in a conversation that declared the capabilities of a client; over HTTP its listening stream is open while subscribed.
   */
  readonly messages$: Observable<ServerMessage>;
  /** Resolves when the listening stream that is being opened is open or has failed, after 250 ms at the latest. */
  readonly opening?: Promise<void> | undefined;
  /** Replays: emits once when the backend is gone or the conversation was closed, then completes. Never errors. */
  readonly closed$: Observable<Closed>;
  /** Fails every open exchange (BACKEND_UNAVAILABLE), then ends the backend's session or process, and for a transport every
   *  upstream that is not independent. Idempotent. Resolves when all of them have ended, and never rejects. */
  close(): Promise<void>;
}

/** Sends a request of the gateway itself, which no Call carries. Cold, like `exchange`. */
export function ownExchange(
  upstream: Pick<Upstream, 'exchange'>,
  request: ExchangeRequest,
): Observable<ExchangeEvent> {
  return defer(() => upstream.exchange(request)).pipe(
    catchError((thrown: unknown) => {
      const failed = { error: asGatewayError(thrown), mayRepeat: true };
      if (nextAfter(failed, { here: 1, next: 0 }) === 'stop') throw thrown;
      return upstream.exchange({ ...request, isRepeat: true });
    }),
  );
}

/** A tool that is left out of lists. `reason`: why it cannot be called, as a clause without values of arguments. */
export interface WithheldTool {
  readonly tool: string;
  readonly reason: string;
}

/** The part of a conversation that a call needs. */
export type CallUpstream = Pick<Upstream, 'exchange' | 'isIndependent' | 'endsAfterCall'>;

export interface Transport extends Upstream {
  readonly kind: TransportKind;
  /** Calls at the instance besides those of this node, while another one runs it. */
  readonly otherCalls?: number;
  /** What it waits for although it is open, as a clause. */
  readonly note?: string | undefined;
  diagnostics(): TransportDiagnostics;
  /**
   * The backend answers nothing in the era of the transport: the next opening tries the other one first. False when there is no other.
   * Default: there is none.
   */
  leaveEra?(): boolean;
  /**
   * Opens a conversation for one client, with its capabilities, revision and name: over HTTP a session, over stdio a process.
   * Undefined when the backend has no such conversations: a bare one, and over HTTP a modern one that refuses `initialize`,
   * which is tried once. The new conversation is legacy if the backend speaks that era, whatever the era of the transport.
   * Rejects like opening the transport. `ownerId`: the owner of the conversation; default: ANONYMOUS. `isShared`: several clients
   * use it, and none of them can be asked anything; only over stdio. The caller bounds the number of conversations.
   */
  openUpstream(
    profile: ClientProfile,
    signal: AbortSignal,
    ownerId?: string,
    isShared?: boolean,
  ): Promise<Upstream | undefined>;
}

/** The access tokens of one owner for one backend that wants OAuth. */
export interface BearerTokens {
  /** The token to be sent now; a promise while it is read or renewed. Rejects with CONNECTION_REQUIRED. */
  current(): string | Promise<string>;
  /** The backend refused this token. Resolves with true when there is another one. Rejects as `current`. */
  renewed(refused: string): Promise<boolean>;
  /** The backend also refused the token of `renewed`: the account has to be connected again. Resolves with CONNECTION_REQUIRED. */
  refusedAgain(refused: string): Promise<Error>;
  /** The backend wants these scopes, which the token does not have. Resolves with CONNECTION_REQUIRED. */
  lacks(scopes: readonly string[]): Promise<Error>;
}

/** The accounts at one backend that wants OAuth. */
export interface BackendAccount {
  readonly who: 'user' | 'shared';
  /** Asks the backend which authorization server it wants. Rejects with BACKEND_UNAVAILABLE, also when that has changed. */
  check(): Promise<void>;
  tokens(owner: string): BearerTokens;
  /** Asks for an answer without an account, which may be a 401. Rejects with BACKEND_UNAVAILABLE. */
  probe(): Promise<void>;
  /** Where this caller connects the shared account; undefined when it may not. Default: unknown. */
  readonly addressFor?: ((caller: string) => Promise<string | undefined>) | undefined;
  /** Calls the listener when the shared account is connected at this node, until the returned function is called. */
  onConnected(listener: () => void): () => void;
}

/** Options of an opening besides the definition. */
export interface OpenOptions {
  /** Cancels the opening; what was started is stopped. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly handshakeTimeoutMs: number;
  /** Name and version of the gateway, sent to backends. */
  readonly client: { readonly name: string; readonly version: string };
  /** True for addresses that no connection may reach; the resolved address is checked. */
  readonly isDenied: AddressCheck;
  /** Looks up the names of endpoints. Default: as Node does. */
  readonly lookup?: LookupFunction | undefined;
  /** Functions that serve `in-process` instances, by the instance's `serverId`. */
  readonly handlers: ReadonlyMap<string, InProcessHandler>;
  /** Returns how many more programs the instance may run for single clients. Default: no limit. */
  readonly room?: (() => number) | undefined;
  /** Counts incomplete answers of the instance. Default: not counted. */
  readonly answers?: InstanceHeldBytes | undefined;
  /** Counts the messages that wait to be sent, by caller. Default: not counted. Source: ADR 90. */
  readonly waitingBytes?: ByteBudget | undefined;
  /** Runs tasks that come due together. */
  readonly scheduler: TaskScheduler;
  /** Called when a program was started; `diagnostics` returns its state during the opening. Default: none. */
  readonly onStarted?: ((diagnostics: () => TransportDiagnostics) => void) | undefined;
  /** Called for a tool that is left out of lists, once, and again when the reason has changed. Default: none. */
  readonly onWithheld?: ((withheld: WithheldTool) => void) | undefined;
  /**
   * Lists the tools again, for a call that was refused because a header is missing; undefined when too many calls wait for that.
   * Never rejects. Default: they are not listed again.
   */
  readonly relistTools?: (() => Promise<void> | undefined) | undefined;
  /** Stops the programs after the death of the gateway. Default: none. */
  readonly reaper?: GroupWatch | undefined;
  /** Variables of the gateway that programs get. Default: those of PASS_ENV. */
  readonly passEnv?: readonly string[] | undefined;
  /** The user of programs outside of containers. Default: that of the gateway. */
  readonly user?: ProgramUser | undefined;
  /** Starts programs in containers. Default: none can be. */
  readonly runInContainer?: RunInContainer | undefined;
  /** Results of earlier openings of the instance, to which this one adds its own. */
  readonly history: OpeningHistory;
  /** Set when the backend wants OAuth. */
  readonly account?: BackendAccount | undefined;
  /** Tokens for each request. Default: none is sent. */
  readonly tokens?: BearerTokens | undefined;
  /** The only era that is tried. Default: both. */
  readonly era?: PinnedEra | undefined;
}

/** The part of the options that the owner of a transport knows. */
export interface OpeningHooks extends Pick<OpenOptions, 'onStarted' | 'onWithheld' | 'relistTools' | 'room'> {
  /** The node that runs the instance drains it, or takes it back. */
  readonly onDraining?: (isDraining: boolean) => void;
  /** Longest start of a program. Default: that of DEFAULT_POLICY. */
  readonly startTimeoutMs?: number;
}

/** Opens the transport of one instance. */
export type Open = (signal: AbortSignal, hooks?: OpeningHooks) => Promise<Transport>;

/** The results of the openings of one instance. */
export interface OpeningHistory {
  /**
   * Over stdio: the next opening goes without the probe for the modern era, because the program left it unanswered, or the last
   * opening with it failed. Undefined: no opening has failed since the probe was answered.
   */
  skipsProbe?: boolean | undefined;
  /** The backend announced the modern era and then answered nothing in it: the legacy one is tried first. Source: ADR 121. */
  prefersLegacy?: true;
  /** What is known of the command, also from other instances. Default: nothing. */
  readonly command?: CommandHistory | undefined;
}

/** What running a command has shown. */
export interface CommandHistory {
  /** Programs of it end when a request is cancelled, so they get no cancellation any more. Source: ADR 119. */
  endsWhenCancelled?: boolean;
  /** A program of it ended by itself, without a failure, right after its first call was answered. Source: ADR 142. */
  endsAfterCall?: boolean;
}

/** See Transport.leaveEra; once, and only from the modern era, because a server that announces it was asked for it first. */
export function leavesEra(
  era: Handshake['era'],
  { era: pinned, history }: Pick<OpenOptions, 'era' | 'history'>,
): boolean {
  if (era !== 'modern' || pinned !== undefined || history.prefersLegacy) return false;
  history.prefersLegacy = true;
  return true;
}

/** A backend that is a function: it gets the request, and returns the result or throws a value like `JsonRpcError`. */
export type InProcessHandler = (
  request: ExchangeRequest,
  context: { readonly signal: AbortSignal; readonly notify: (method: string, params: JsonObject) => void },
) => Promise<unknown> | unknown;

/**
 * What the module of each kind exports as `open` (index.ts): connects to the backend or starts it, and shakes hands. Rejects with
 * BACKEND_UNAVAILABLE, `delivered: 'no'`, with the last lines of stderr. Nothing is left running after a rejection.
 */
export type OpenTransport = (definition: InstanceDefinition, options: OpenOptions) => Promise<Transport>;
