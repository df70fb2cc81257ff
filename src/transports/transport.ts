// A transport: the connection to one backend. Every kind implements this interface and runs the shared
// conformance suite (spec/conformance/transport.ts). A transport knows no actors, no health and no balancing.

import type { Observable } from 'rxjs';
import type { ClientProfile, ServerMessage } from '../domain/client.ts';
import type { RunInContainer } from '../domain/container-program.ts';
import type { ExchangeEvent, ExchangeRequest } from '../domain/exchange.ts';
import type { OwnHeldBytes } from '../domain/held-bytes.ts';
import type { InstanceDefinition, TransportKind } from '../domain/instance.ts';
import type { JsonObject } from '../domain/json.ts';
import type { Peer } from '../domain/mcp.ts';
import type { TaskScheduler } from '../domain/task-scheduler.ts';
import type { Reaper } from './stdio/process-group.ts';

/** Why a transport ended. `reason` is a clause: "exited with code 7", "closed by the gateway". */
export interface Closed {
  readonly reason: string;
  /** True when the gateway asked for it. */
  readonly expected: boolean;
}

/** Facts for the instance's snapshot. */
export interface TransportEvents {
  readonly pid: number | null;
  readonly stderr: readonly string[];
  readonly unmatchedMessages: number;
}

/**
 * One conversation with a backend. A transport is the one of the instance itself, in which no client's capabilities are
 * declared; `openUpstream` opens others, each on behalf of one client and in that client's era where it can.
 */
export interface Upstream {
  /** The peer that the handshake found; fixed for the life of the conversation. */
  readonly peer: Peer;
  /** Id of the process that runs for one client alone; undefined, or absent, where there is none. It stays when it died. */
  readonly pid?: number | undefined;
  /**
   * True when it does not depend on its transport: it goes on when that is closed or lost, and its opener closes it.
   * Absent: it ends with its transport.
   */
  readonly standsAlone?: boolean | undefined;
  /**
   * Cold: subscribing sends the request, unsubscribing before the answer cancels it on the backend. Emits
   * notifications, then one result or error event, then completes. Errors with GatewayError: BACKEND_UNAVAILABLE
   * whose `delivered` says whether the request can have reached the backend. Sending is synchronous up to the
   * transport's own buffer. It sets no deadline: the dispatcher does.
   */
  exchange(request: ExchangeRequest): Observable<ExchangeEvent>;
  /** Sends a notification of the client. Dropped without room or without a backend. */
  notify(method: string, params: JsonObject): void;
  /**
   * Hot, no replay: messages that belong to no exchange. Completes when the conversation has closed. Requests only come in a
   * conversation that declared a client's capabilities; there, over HTTP, the stream of the backend is open while
   * subscribed.
   */
  readonly messages$: Observable<ServerMessage>;
  /**
   * Where messages come on a stream that is being opened: resolves when it is open or will not be, after a quarter of a
   * second at the latest. Undefined, or absent, when there is nothing to wait for.
   */
  readonly opening?: Promise<void> | undefined;
  /** Replays: emits once when the backend is gone or the transport was closed, then completes. Never errors. */
  readonly closed$: Observable<Closed>;
  /** Ends every exchange that is left (BACKEND_UNAVAILABLE), then the backend's session or process, and for a
   *  transport every upstream that does not stand alone. Idempotent. Resolves when nothing is left behind, and never
   *  rejects. */
  close(): Promise<void>;
}

/** A tool that lists come without, and why it cannot be called, as a clause. It names no argument's value. */
export interface OmittedTool {
  readonly tool: string;
  readonly reason: string;
}

export interface Transport extends Upstream {
  readonly kind: TransportKind;
  /**
   * Hot, no replay: tools that any lists of the backend come without. Each is reported once, and again when the reason is
   * another one or a list came with it meanwhile. Absent where lists come as they are.
   */
  readonly omitted$?: Observable<OmittedTool> | undefined;
  /**
   * Hot, no replay: the backend is in doubt, because a connection broke, or it answered 5xx, and no exchange failed by that.
   * Absent where every such failure fails its exchange.
   */
  readonly doubts$?: Observable<void> | undefined;
  facts(): TransportEvents;
  /**
   * Opens a conversation of its own for one client, with its capabilities, revision and name: over HTTP a session of
   * its own, over stdio a process of its own. Undefined when the backend keeps none for a single client, because it tells
   * its callers apart by request: a bare one, and over HTTP a modern one that refuses `initialize`, which is asked once.
   * The peer of the new conversation is legacy where the backend speaks that era at all, in whatever era the transport is.
   * Rejects like opening the transport does, and with QUEUE_FULL when too many of that owner are being opened.
   * `ownerId`: the owner of the conversation; default: none.
   */
  openUpstream(profile: ClientProfile, signal: AbortSignal, ownerId?: string): Promise<Upstream | undefined>;
}

/** The client that a conversation is opened for. */
export interface ClientOpening {
  readonly profile: ClientProfile;
  readonly ownerId: string;
  /** Cancels the opening. */
  readonly signal: AbortSignal;
}

/** Gets a program as soon as it was started; `facts` shows its output so far, as long as it is being opened. */
type OnStarted = (facts: () => TransportEvents) => void;

/** Options of an opening besides the definition. */
export interface OpenOptions {
  /** Ends the opening; whatever was started by then is stopped. */
  readonly signal: AbortSignal;
  /** Longest time until the handshake is finished. */
  readonly handshakeTimeoutMs: number;
  /** Name and version sent to backends. */
  readonly client: { readonly name: string; readonly version: string };
  /** CIDR ranges no connection may reach, checked on the resolved address when connecting. */
  readonly deniedNetworks: readonly string[];
  /** Functions that serve `in-process` instances, by the instance's `serverId`. */
  readonly handlers: ReadonlyMap<string, InProcessHandler>;
  /** How many programs more the instance may run for single clients now, beside those that clients have. Default: any. */
  readonly room?: (() => number) | undefined;
  /** Where unfinished answers of the instance are counted. Default: nowhere. */
  readonly answers?: OwnHeldBytes | undefined;
  /** The gateway's, for tasks that come due in thousands. Default: one of its own. */
  readonly scheduler?: TaskScheduler | undefined;
  /** Default: none. */
  readonly onStarted?: OnStarted | undefined;
  /** Ends the programs of a gateway that died. Default: none. */
  readonly reaper?: Reaper | undefined;
  /** Variables of the gateway that programs get. Default: those of PASS_ENV. */
  readonly passEnv?: readonly string[] | undefined;
  /** Starts programs in containers. Default: none can be. */
  readonly runInContainer?: RunInContainer | undefined;
  /** What earlier openings of the same instance left for this one, which changes it for the next. Default: nothing. */
  readonly memory?: OpeningMemory | undefined;
}

/** Kept by the caller that opens an instance again and again, as long as its definition stays. */
export interface OpeningMemory {
  /** Over a pipe: the known era of its program. Undefined: not known. */
  era?: 'legacy' | 'modern' | undefined;
  /**
   * How the last opening of a program failed whose era is not known: with the probe for the modern era unanswered; or again,
   * after that, with a probe or without one. Undefined: it did not fail, or for another reason.
   */
  failure?: 'unanswered' | 'unprobed' | 'probed' | undefined;
  /** Of a modern one: the era in which it speaks to a single client. Undefined: not known. */
  dedicatedEra?: 'legacy' | 'modern' | undefined;
  /** Why tools were reported as left out of lists, by their names. Undefined: none was. */
  omitted?: Map<string, string> | undefined;
  /** Over HTTP: when `server/discover` was left unanswered, in ms of a monotonic clock. Undefined: not lately. */
  unansweredAtMs?: number | undefined;
  /** Over HTTP: the last opening failed after the connection had been ended on that question. */
  wasCutOff?: boolean | undefined;
}

/** A backend that is a function: gets method and params, returns the result or throws a `JsonRpcError`-shaped value. */
export type InProcessHandler = (
  request: ExchangeRequest,
  context: { readonly signal: AbortSignal; readonly notify: (method: string, params: JsonObject) => void },
) => Promise<unknown> | unknown;

/** One row of the table in index.ts. */
export interface TransportType {
  readonly kind: TransportKind;
  /** Connects or starts the backend and shakes hands. Rejects with BACKEND_UNAVAILABLE, `delivered: 'no'`, with
   *  the tail of stderr. Nothing is left running after a rejection. */
  readonly open: (definition: InstanceDefinition, options: OpenOptions) => Promise<Transport>;
}
