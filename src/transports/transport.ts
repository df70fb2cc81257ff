// The interfaces of a transport, the connection to one backend. Each kind implements them, and passes the shared
// conformance suite (spec/conformance/transport.ts). A transport knows no actors, no health and no balancing.
// open-options.ts has the options of an opening.

import type { Observable } from 'rxjs';
import type { ExchangeRequest } from '../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../domain/calls/exchange-event.ts';
import type { ProgramEnd } from '../domain/instances/found-instances.ts';
import type { OddOutput } from '../domain/instances/instance.ts';
import type { TransportKind } from '../domain/instances/transport-kinds.ts';
import type { JsonObject } from '../domain/json/json.ts';
import type { ClientProfile, ServerMessage } from '../domain/mcp/client.ts';
import type { Handshake } from '../domain/mcp/mcp.ts';

/** The end of a transport. `reason` is a clause, such as "exited with code 7" or "closed by the gateway". */
export interface Closed extends ProgramEnd {
  /** True when the gateway asked for the end. */
  readonly isExpected: boolean;
  /** True when nothing has failed, and it is to be opened again at once. Default: false. */
  readonly opensAtOnce?: boolean;
}

export const CLOSED_BY_GATEWAY: Closed = { reason: 'closed by the gateway', isExpected: true };

/** The fields of an instance's snapshot that its transport provides. */
export interface TransportDiagnostics {
  readonly pid: number | null;
  readonly stderr: readonly string[];
  /** Absent for none. */
  readonly oddOutput?: OddOutput;
}

/**
 * One handshake with a backend, and the exchanges after it. The transport itself is the shared conversation;
 * `openConversation` opens others.
 */
export interface Conversation {
  /** The result of the handshake, which never changes. */
  readonly handshake: Handshake;
  /** The id of the process that is dedicated to one client, also after its exit; undefined without one. */
  readonly pid?: number | undefined;
  /**
   * True when the conversation continues after its transport was closed or lost; its opener then closes it. Otherwise
   * it ends with its transport.
   */
  readonly isIndependent?: boolean | undefined;
  /** True when the program ends after each call, by design, so that it keeps nothing of one. Source: ADR 113. */
  readonly endsAfterCall?: boolean | undefined;
  /**
   * True when another node runs the instance and counts the subscribed resources of each owner: it is asked for each of
   * them. Default: false.
   */
  readonly countsOwners?: boolean | undefined;
  /**
   * Sends a request; cold. Unsubscribing before the answer cancels it on the backend. Emits notifications, then one
   * result or error event, then completes. Errors with BACKEND_UNAVAILABLE: `delivered` says whether the request can
   * have reached the backend, and with `isRepaired` it may be sent again in this conversation. The conversation
   * itself repeats a request only once, after a refusal of its credentials, with new ones. Sending is synchronous up
   * to the transport's own buffer. `Call` sets the deadline.
   */
  exchange(request: ExchangeRequest): Observable<ExchangeEvent>;
  /**
   * Sends a notification of the client. It is dropped when the backend is gone, or when too many wait for it. Throws
   * QUEUE_FULL when waiting messages of the owner use too much memory. `ownerId`: default the owner of the
   * conversation.
   */
  notify(method: string, params: JsonObject, ownerId?: string): void;
  /**
   * The messages that belong to no exchange. Hot, no replay. Completes when the conversation has closed; never
   * errors. Requests come only in a conversation that declared client capabilities. Over HTTP the listening stream is
   * open while there is a subscriber.
   */
  readonly messages$: Observable<ServerMessage>;
  /**
   * Resolves when the listening stream that is being opened is open or has failed, after at most 250 ms; undefined
   * when none is being opened.
   */
  readonly untilListening?: Promise<void> | undefined;
  /**
   * Emits when messages may have been missed and the listening stream is open again, or the session was replaced by one that
   * has none. Hot. Undefined where that cannot happen.
   */
  readonly resumed$?: Observable<void> | undefined;
  /**
   * Emits once when the backend is gone or the conversation was closed, then completes. Late subscribers get it, too.
   * Never errors.
   */
  readonly closed$: Observable<Closed>;
  /**
   * Fails every open exchange with BACKEND_UNAVAILABLE, then ends the backend's session or process, and for a
   * transport every conversation that is not independent. Idempotent. Resolves when all have ended; never rejects.
   */
  close(): Promise<void>;
}

/** The part of a conversation that a call needs. */
export interface CallConversation extends Pick<Conversation, 'exchange' | 'isIndependent' | 'endsAfterCall'> {
  /** True when the conversation had a use before this one, and may have ended unnoticed since. Default: false. */
  readonly isReused?: boolean;
}

/** The client for which a conversation is opened, and its bounds. */
export interface ConversationOpening {
  readonly profile: ClientProfile;
  /** Aborting it cancels the opening, and stops a started program. */
  readonly signal: AbortSignal;
  /** The owner of the conversation. Default: ANONYMOUS. */
  readonly ownerId?: string | undefined;
  /** True when several clients use the conversation, none of which can be asked anything; only over stdio. */
  readonly isShared?: boolean | undefined;
}

export interface Transport extends Conversation {
  readonly kind: TransportKind;
  /** The number of calls at the instance besides those of this node, when another node runs it. */
  readonly otherCalls?: number;
  /** The event that the transport waits for although it is open, as a clause; undefined when it waits for nothing. */
  readonly note?: string | undefined;
  diagnostics(): TransportDiagnostics;
  /**
   * Reports that the backend answers nothing in the era of the transport: the next opening tries the other era first.
   * Returns false when there is no other. Default: there is none.
   */
  leaveEra?(): boolean;
  /**
   * Opens a conversation for one client, with its capabilities, revision and name: over HTTP a session, over stdio a
   * process. Resolves with undefined when the backend has no such conversations: a bare one, and over HTTP a modern
   * one that refuses `initialize`, which is tried once. The new conversation is legacy if the backend speaks that
   * era, whatever the era of the transport. Throws like the opening of the transport. The caller bounds the number
   * of conversations.
   */
  openConversation(opening: ConversationOpening): Promise<Conversation | undefined>;
}
