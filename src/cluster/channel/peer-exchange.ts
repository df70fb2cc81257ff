// One forwarded request: passes the parts of the answer on as they come, lets the holder wait while the client
// does not read, and ends the connection when the client has left.

import type { HopOutcome } from '../../counts/cluster-counts.ts';
import { stoodStill } from '../../domain/errors/backend-errors.ts';
import type { GatewayError } from '../../domain/errors/errors.ts';
import type { Linked } from '../../domain/memory/linked-set.ts';
import type { ForwardedAnswer, ForwardedRequest, Forwarding } from '../../domain/nodes/forwarding.ts';
import type { HttpHeaders } from '../../domain/text.ts';
import type { RequestSink } from '../../net/http1/http1-connection.ts';
import { PEER_HEADERS, type RefusalReason, refusalIn } from './peer-protocol.ts';

/** The events that an exchange reports to the client of its node. */
interface ExchangeEvents {
  readonly startedAtMs: number;
  /** Something came from the node. */
  heard(): void;
  refused(reason: RefusalReason): void;
  /** The connection failed. */
  lost(error: Error): void;
  ended(outcome: HopOutcome): void;
}

/** The carrier of a request: a connection of its own, or a part of one. */
export interface Carrier {
  abort(answer: PeerExchange): void;
  pause(answer: PeerExchange): void;
  resume(answer: PeerExchange): void;
}

/** A request and the received part of its answer, whichever connection carries it. */
export class PeerExchange implements RequestSink, Forwarding, Linked {
  links?: Linked['links'];
  readonly request: ForwardedRequest;
  readonly startedAtMs: number;
  /** The time since which it waits for the node. A request that was sent and is sent again waits again. */
  waitsSinceMs: number;
  /** True after the request was sent again because its token had expired. */
  isResent = false;
  readonly #answer: ForwardedAnswer;
  readonly #events: ExchangeEvents;
  #connection: Carrier | undefined;
  #refusal: RefusalReason | undefined;
  #hasHead = false;
  #isOver = false;

  constructor(request: ForwardedRequest, answer: ForwardedAnswer, events: ExchangeEvents) {
    this.request = request;
    this.startedAtMs = events.startedAtMs;
    this.waitsSinceMs = events.startedAtMs;
    this.#answer = answer;
    this.#events = events;
  }

  get isSent(): boolean {
    return this.#connection !== undefined;
  }

  fail(error: GatewayError): void {
    if (!this.#end('failed')) return;
    this.#connection?.abort(this);
    this.#answer.failed(error);
  }

  /** Reports that the other node did not serve the request, because it has the session no more. */
  notHolder(sinceMs = this.waitsSinceMs): void {
    if (!this.#end('moved')) return;
    this.#connection?.abort(this);
    this.#answer.notHolder(sinceMs);
  }

  /** True when the request is sent again: nothing of an answer came, and it may be carried out twice. */
  retract(): boolean {
    if (this.#isOver || this.#hasHead || !this.request.isRepeatable()) return false;
    this.#connection?.abort(this);
    this.#connection = undefined;
    return true;
  }

  cancel(): void {
    if (!this.#end('cancelled')) return;
    this.#connection?.abort(this);
    this.#answer.cancelled?.();
  }

  resume(): void {
    this.#connection?.resume(this);
  }

  onRequestStart(connection: Carrier): boolean {
    if (!this.#isOver && this.request.mayBeSent?.() === false) this.fail(stoodStill());
    if (!this.#isOver) this.#connection = connection;
    return !this.#isOver;
  }

  onResponseStart(status: number, headers: HttpHeaders): void {
    const refusal = headers[PEER_HEADERS.refused];
    this.#refusal = typeof refusal === 'string' ? refusalIn(refusal) : undefined;
    if (this.#isOver || this.#refusal !== undefined) return;
    this.#events.heard();
    this.#hasHead = true;
    this.#answer.head(status, headers);
  }

  onResponseData(part: Buffer): void {
    if (this.#isOver || this.#refusal !== undefined) return;
    this.#events.heard();
    if (!this.#answer.data(part)) this.#connection?.pause(this);
  }

  onResponseEnd(): void {
    const refusal = this.#refusal;
    if (this.#isOver) return;
    if (refusal !== undefined) {
      this.#connection = undefined; // it was not carried out
      this.#events.refused(refusal);
    } else if (this.#end('answered')) this.#answer.end();
  }

  onResponseError(error: Error): void {
    if (!this.#isOver) this.#events.lost(error);
  }

  /** A part of an answer on the connection that exchanges share, where all answers have the status 200. */
  part(content: Buffer): void {
    if (!this.#hasHead) this.onResponseStart(200, {});
    this.onResponseData(content);
  }

  last(content: Buffer): void {
    this.part(content);
    this.onResponseEnd();
  }

  /** Notes why the node refuses the request, as the header of a refusal does. */
  refused(reason: RefusalReason): void {
    this.#refusal = reason;
    this.onResponseEnd();
  }

  /** Ends the exchange; false when it has ended already. */
  #end(outcome: HopOutcome): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#events.ended(outcome);
    return true;
  }
}
