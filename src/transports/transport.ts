// What a transport is: the way to one backend and back. Every kind implements this interface and runs the shared
// conformance suite (spec/conformance/transport.ts). A transport knows no actors, no health and no balancing.

import type { Observable } from 'rxjs';
import type { ExchangeEvent, ExchangeRequest } from '../domain/exchange.ts';
import type { InstanceDefinition, TransportKind } from '../domain/instance.ts';
import type { JsonObject } from '../domain/json.ts';
import type { Peer } from '../domain/mcp.ts';

/** Why a transport ended. `reason` is a clause: "exited with code 7", "closed by the gateway". */
export interface Closed {
  readonly reason: string;
  /** True when the gateway asked for it. */
  readonly expected: boolean;
}

/** Something the backend said that answers nothing: list_changed, a log line that no exchange owns. */
export interface BackendNotification {
  readonly method: string;
  readonly params: JsonObject;
}

/** Facts for the instance's snapshot. */
export interface TransportFacts {
  readonly pid: number | null;
  readonly stderr: readonly string[];
  readonly strayMessages: number;
}

export interface Transport {
  readonly kind: TransportKind;
  /** What the handshake learned; fixed for the life of the transport. */
  readonly peer: Peer;
  /**
   * Cold: subscribing sends the request, unsubscribing before the answer cancels it on the backend. Emits
   * notifications, then one result or error event, then completes. Errors with GatewayError: BACKEND_UNAVAILABLE
   * whose `delivered` says whether the request can have reached the backend. Sending is synchronous up to the
   * transport's own buffer. It sets no deadline: the dispatcher does.
   */
  exchange(request: ExchangeRequest): Observable<ExchangeEvent>;
  /** Hot, no replay: notifications that belong to no exchange. Completes when the transport has closed. */
  readonly messages$: Observable<BackendNotification>;
  /** Replays: emits once when the backend is gone or the transport was closed, then completes. Never errors. */
  readonly closed$: Observable<Closed>;
  facts(): TransportFacts;
  /** Ends every exchange that is left (BACKEND_UNAVAILABLE), then the backend's session or process. Idempotent.
   *  Resolves when nothing is left behind, and never rejects. */
  close(): Promise<void>;
}

/** What opening needs besides the definition. */
export interface OpenOptions {
  /** Ends the opening; whatever was started by then is stopped. */
  readonly signal: AbortSignal;
  /** Longest time until the handshake is finished. */
  readonly handshakeTimeoutMs: number;
  /** Name and version told to backends. */
  readonly client: { readonly name: string; readonly version: string };
  /** CIDR ranges no connection may reach, checked on the resolved address when connecting. */
  readonly deniedNetworks: readonly string[];
  /** Functions that serve `in-process` instances, by the instance's `serverId`. */
  readonly handlers: ReadonlyMap<string, InProcessHandler>;
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
