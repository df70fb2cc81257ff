// The services that the handlers of routes use. compose-services.ts makes them.

import type { Auth } from '../auth/auth.ts';
import type { LazyAuthorizationServer } from '../authorization-server/lazy-authorization-server.ts';
import type { ForwardingPeers } from '../cluster/channel/peers.ts';
import type { ConfigRow } from '../config/config.ts';
import type { SignIn } from '../domain/accounts/resource.ts';
import type { AllowedCommand } from '../domain/instances/command.ts';
import type { PerList } from '../domain/memory/per-list.ts';
import type { UserShares } from '../domain/memory/user-shares.ts';
import type { ShownNode } from '../domain/nodes/nodes.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { GatewayInternals } from '../gateway/internals.ts';
import type { LoadHistory } from '../metrics/load-history.ts';
import type { Prometheus } from '../metrics/prometheus.ts';
import type { Samples } from '../metrics/samples.ts';
import type { OtherMembers } from './all-nodes/other-members.ts';
import type { PeerEvents } from './all-nodes/peer-events.ts';
import type { documentsOf } from './docs/api-pages.ts';
import type { consoleReply } from './docs/console.ts';
import type { StatisticsRecord } from './records/statistics-record.ts';
import type { RecentEvents } from './sse/recent-events.ts';

/** The services of the handlers. */
export interface Services
  extends Pick<
    GatewayInternals,
    | 'clock'
    | 'requestBytes'
    | 'scheduler'
    | 'backendAccounts'
    | 'readiness'
    | 'definitions'
    | 'storedDefinitions'
    | 'approvals'
    | 'promisedAnswers'
    | 'traffic'
  > {
  readonly gateway: Gateway;
  readonly auth: Auth;
  /** Answers of REST with the lists that are in use. */
  readonly listAnswers: PerList<Buffer>;
  /** Undefined: there are no other nodes. */
  readonly peers?: ForwardingPeers | undefined;
  /** The other nodes, for answers about the deployment. A request of another node is answered for this node alone: it has none. */
  readonly otherMembers: OtherMembers;
  /** The nodes of the deployment, this one first; none for a gateway of its own. */
  readonly nodes: () => readonly ShownNode[];
  /** Commands that callers without the scope `admin` may register. */
  readonly allowedCommands: readonly AllowedCommand[];
  /**
   * The gateway as a registry: whether it is open to all, and its public address. Undefined: by rights, at the
   * address of the request.
   */
  readonly registry?: { readonly isPublic?: boolean; readonly publicUrl?: string | undefined } | undefined;
  /** CIDR ranges that no backend may have. Default: DENIED_NETWORKS. */
  readonly deniedNetworks?: readonly string[] | undefined;
  /** What anybody may know of the statistics of the deployment, made once a second at most. */
  readonly openStatistics: () => Promise<StatisticsRecord>;
  readonly events: RecentEvents;
  /** The events of other nodes. Undefined without them, and for a request of another node, which gets those of this node alone. */
  readonly peerEvents?: PeerEvents | undefined;
  /** The place where MCP clients sign in. Undefined when they cannot sign in. */
  readonly signIn?: SignIn | undefined;
  readonly authorizationServer?: LazyAuthorizationServer | undefined;
  /** The examinations of servers under way, by caller. */
  readonly examinations: UserShares;
  /** The syncs under way, by caller. */
  readonly syncs: UserShares;
  readonly samples: Samples;
  readonly history: LoadHistory;
  readonly metrics: Pick<Prometheus, 'text'>;
  readonly documents: ReturnType<typeof documentsOf>;
  readonly consoleReply: ReturnType<typeof consoleReply>;
  readonly log: { level: string };
  /** The settings in effect, secrets masked. */
  readonly settings: readonly ConfigRow[];
}
