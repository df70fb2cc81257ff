// The interface to the instances of this node that other nodes need. src/gateway implements it, src/cluster speaks with the other
// nodes. Source: ADR 170.

import type { Observable } from 'rxjs';
import type { ExchangeRequest } from '../../../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../../domain/calls/exchange-event.ts';
import type { HostDuty } from '../../../domain/instances/instance.ts';
import type { ClientProfile } from '../../../domain/mcp/client.ts';
import type { UserShares } from '../../../domain/memory/user-shares.ts';
import type { Closed, Conversation } from '../../../transports/transport.ts';

/** The instances of this node. */
export interface InstanceHost {
  /** Counts the requests, by caller. */
  readonly requestBytes: UserShares;
  /** Whether there is such an instance, at any node. */
  has(template: string, id: string): boolean;
  /**
   * Opens a conversation once the instance is up; without `profile` the one that clients share. Undefined: it has
   * no dedicated conversations. Throws when the instance does not start, or does not run here.
   */
  open(wanted: WantedConversation, signal: AbortSignal): Promise<HostedConversation | undefined>;
}

export interface WantedConversation {
  readonly template: string;
  readonly id: string;
  readonly ownerId: string;
  readonly profile?: ClientProfile | undefined;
  readonly isShared: boolean;
  readonly link: NodeLink;
}

/** The link of one other node to one instance. */
export interface NodeLink {
  /** Calls that came by this link and fill the capacity of the instance. */
  calls: number;
}

export interface HostedConversation {
  readonly conversation: Pick<
    Conversation,
    'handshake' | 'pid' | 'isIndependent' | 'endsAfterCall' | 'messages$' | 'notify'
  >;
  /** What its node does with the instance: at once, then after each change. */
  readonly duty$: Observable<HostDuty>;
  /** The calls at the instance that came otherwise; 0 at first. */
  readonly otherCalls$: Observable<number>;
  /** Emits once, when it can be used no longer. */
  readonly closed$: Observable<Closed>;
  /** Makes one attempt, which counts at the instance; for a request without a caller, the exchange alone. */
  exchange(request: ExchangeRequest): Observable<ExchangeEvent>;
  /** Ends this use of the conversation. */
  release(): void;
}
