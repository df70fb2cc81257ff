// A transport is the connection to one backend. Every kind implements this interface and passes the shared
// conformance suite (spec/conformance/transport.ts). A transport knows no actors, no health and no balancing.
// open-options.ts has what opening one takes.

import type { Observable } from 'rxjs';
import type { ExchangeRequest } from '../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../domain/calls/exchange-event.ts';
import type { TransportKind } from '../domain/instances/transport-kinds.ts';
import type { JsonObject } from '../domain/json/json.ts';
import type { ClientProfile, ServerMessage } from '../domain/mcp/client.ts';
import type { Handshake } from '../domain/mcp/mcp.ts';

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

/**
 * One handshake with a backend, and the exchanges after it. A transport is the shared conversation;
 * `openConversation` opens others.
 */
export interface Conversation {
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
   * notifications, then one result or error event, then completes. Errors with BACKEND_UNAVAILABLE, whose
   * `delivered` says whether the request can have reached the backend; with `isRepaired` it may be sent again in
   * this conversation. By itself it does that only once, after a refusal of its credentials, with new ones.
   * Sending is synchronous up to the transport's own buffer. `Call` sets the deadline.
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
  readonly untilListening?: Promise<void> | undefined;
  /** Hot: its listening stream is open again, and messages before may have been missed. Undefined where that is never so. */
  readonly resumed$?: Observable<void> | undefined;
  /** Replays: emits once when the backend is gone or the conversation was closed, then completes. Never errors. */
  readonly closed$: Observable<Closed>;
  /**
   * Fails every open exchange (BACKEND_UNAVAILABLE), then ends the backend's session or process, and for a transport every
   * conversation that is not independent. Idempotent. Resolves when all of them have ended, and never rejects.
   */
  close(): Promise<void>;
}

/** The part of a conversation that a call needs. */
export type CallConversation = Pick<Conversation, 'exchange' | 'isIndependent' | 'endsAfterCall'>;

/** For whom a conversation is opened. */
export interface ConversationOpening {
  readonly profile: ClientProfile;
  /** Cancels the opening; what was started is stopped. */
  readonly signal: AbortSignal;
  /** The owner of the conversation. Default: ANONYMOUS. */
  readonly ownerId?: string | undefined;
  /** Several clients use it, and none of them can be asked anything; only over stdio. */
  readonly isShared?: boolean | undefined;
}

export interface Transport extends Conversation {
  readonly kind: TransportKind;
  /** Calls at the instance besides those of this node, while another one runs it. */
  readonly otherCalls?: number;
  /** What it waits for although it is open, as a clause. */
  readonly note?: string | undefined;
  diagnostics(): TransportDiagnostics;
  /**
   * The backend answers nothing in the era of the transport: the next opening tries the other one first. False
   * when there is no other. Default: there is none.
   */
  leaveEra?(): boolean;
  /**
   * Opens a conversation for one client, with its capabilities, revision and name: over HTTP a session, over stdio a process.
   * Undefined when the backend has no such conversations: a bare one, and over HTTP a modern one that refuses `initialize`,
   * which is tried once. The new conversation is legacy if the backend speaks that era, whatever the era of the transport.
   * Rejects like opening the transport. The caller bounds the number of conversations.
   */
  openConversation(opening: ConversationOpening): Promise<Conversation | undefined>;
}
