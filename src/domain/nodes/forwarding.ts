// What crosses between two nodes when one of them forwards the request of a client to the holder of its session,
// or sends an exchange to the node of an instance. src/http reads the request of a client and writes the answer,
// src/cluster sends and receives both. Source: ADR 148, 170.

import type { Principal } from '../accounts/principal.ts';
import type { GatewayError } from '../errors/errors.ts';
import type { InstanceDefinition } from '../instances/instance.ts';
import type { HttpHeaders } from '../text.ts';

/** The client of a forwarded request, as the node that checked its credentials knows it. */
export interface ForwardedCaller {
  readonly principal: Principal;
  readonly requestId: string;
  /** The address of the client; undefined when its connection is closed. */
  readonly address: string | undefined;
}

/** One HTTP request of a client. Credentials, limits and the body were checked. */
export interface ForwardedRequest {
  /** `session`: to the holder of the session; `instance`: to the node that runs an instance. Default: `session`. */
  readonly hop?: Hop;
  readonly caller: ForwardedCaller;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** All headers of the client, by name in lower case; the channel passes only those that the holder needs. */
  readonly headers: HttpHeaders;
  /** The body; empty for GET and DELETE. */
  readonly body: Buffer;
  /** True for an answer that may stay open: it takes none of the places for calls. */
  readonly isStream: boolean;
  /**
   * True for a small request whose answer never waits for `resume`: it may go over the connection that exchanges
   * share. Default: false.
   */
  readonly mayShare?: boolean;
  /** Whether it may be carried out twice. */
  readonly isRepeatable: () => boolean;
  /** It is asked when there is a connection, before the first byte. False: it fails with `stoodStill`. Default: true. */
  readonly mayBeSent?: (() => boolean) | undefined;
  /**
   * The time, by the monotonic clock, until which the request may wait for its node: a part of its wait is over.
   * Default: 15 s from now.
   */
  readonly untilMs?: number | undefined;
  /**
   * The longest time until the end of the answer, in ms, which the node keeps; it is asked of a request that takes long. Streams
   * have none. Default: none.
   */
  readonly longestMs?: (() => number) | undefined;
}

/** A kind of way from one node to another. A request takes at most one of each kind: first `session`, then `instance`. */
export type Hop = 'session' | 'instance';

/** Gets the answer of the holder as it arrives: the head, parts of the body, and the end; or a failure, at any time. */
export interface ForwardedAnswer {
  head(status: number, headers: HttpHeaders): void;
  /** False: nothing more is to be read before `Forwarding.resume`. */
  data(part: Buffer): boolean;
  end(): void;
  /** NODE_UNAVAILABLE, or the error of a request that may not be sent; called once, instead of `end`. */
  failed(error: GatewayError): void;
  /**
   * The node certainly did not carry it out, and has the session no more. Called once, instead of the head.
   * `sinceMs`: since when it has waited, by the monotonic clock.
   */
  notHolder(sinceMs: number): void;
  /** It was cancelled, and gets nothing more. */
  cancelled?(): void;
}

/** A forwarded request that is under way. */
export interface Forwarding {
  /** True when the node may have got it. */
  readonly isSent: boolean;
  resume(): void;
  /**
   * The client is disconnected: closes the connection to the holder, which cancels the request there. Without effect after the
   * end of the answer.
   */
  cancel(): void;
}

/** The fields that say where an instance runs. */
export type InstanceOnNode = Pick<InstanceDefinition, 'nodeId' | 'serverId'>;

/** The session of the request belongs to another life. The request was not carried out, and has to be sent there. */
export class NotHolder extends Error {
  /** The life that has the session; undefined where only the row of the session says it: see ForwardedAnswer.notHolder. */
  readonly life: string | undefined;
  /** The time, by the monotonic clock, since which the request has waited for a node. Undefined: it has not waited. */
  readonly sinceMs: number | undefined;

  constructor(life?: string, sinceMs?: number) {
    super('another node has the session');
    this.life = life;
    this.sinceMs = sinceMs;
  }
}

/** Header of an answer to a forwarded request, and its value where the node carried nothing out and has the session no more. */
export const REFUSED_HEADER = 'peer-refused';
export const NOT_HOLDER = 'moved';
