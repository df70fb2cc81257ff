// Makes the services that the handlers of routes use: from the gateway, also from those parts that its public API does not have,
// and from the options of the app.

import type { Logger } from 'pino';
import type { LazyAuthorizationServer } from '../authorization-server/lazy-authorization-server.ts';
import { ANONYMOUS } from '../domain/accounts/principal.ts';
import { PerList } from '../domain/memory/per-list.ts';
import { shareOf, UserShares } from '../domain/memory/user-shares.ts';
import { sharedAnswer } from '../domain/time/shared-answer.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { MAX_RUNS } from '../gateway/sync.ts';
import { LoadHistory } from '../metrics/load-history.ts';
import { Samples } from '../metrics/samples.ts';
import { OtherMembers } from './all-nodes/other-members.ts';
import { PeerEvents } from './all-nodes/peer-events.ts';
import { PeerLoads } from './all-nodes/peer-loads.ts';
import { statisticsOf } from './all-nodes/statistics.ts';
import { documentsOf } from './docs/api-pages.ts';
import { consoleReply } from './docs/console.ts';
import { ROUTES } from './routes/index.ts';
import { EXAMINATIONS } from './routes/instances/server-doctor.ts';
import type { Services } from './services.ts';
import { RecentEvents } from './sse/recent-events.ts';

export interface ServicesOptions
  extends Pick<Services, 'auth' | 'allowedCommands' | 'settings' | 'deniedNetworks' | 'signIn'> {
  readonly log: Logger;
  /** Origin of the gateway for its clients. Default: that of each request. */
  readonly publicUrl?: string | undefined;
  /** The registry of this gateway. Default: only callers with rights see its entries. */
  readonly registry?: { readonly isPublic?: boolean };
  /** If it is undefined, this node is the whole deployment. */
  readonly others?: Pick<Services, 'peers' | 'nodes'>;
  /** Folder of the built console. Default: that of this package. */
  readonly consoleFolder?: URL;
}

export function composeServices(
  gateway: Gateway,
  options: ServicesOptions,
  metrics: Services['metrics'],
  authorizationServer: LazyAuthorizationServer | undefined,
): Services {
  const { peers, nodes = () => [] } = options.others ?? {};
  const { clock, requestBytes, scheduler, backendAccounts, readiness } = gateway.internals;
  const { definitions, storedDefinitions, approvals, promisedAnswers, traffic } = gateway.internals;
  const otherMembers = new OtherMembers({ peers, nodes, clock, scheduler });
  const statistics = { gateway, traffic, otherMembers, scheduler };
  const events = new RecentEvents(gateway.events$, clock);
  const loads = new PeerLoads({ others: () => otherMembers.list(), clock });
  return {
    gateway,
    clock,
    requestBytes,
    scheduler,
    backendAccounts,
    readiness,
    definitions,
    storedDefinitions,
    approvals,
    promisedAnswers,
    traffic,
    auth: options.auth,
    listAnswers: new PerList(),
    allowedCommands: options.allowedCommands,
    settings: options.settings,
    log: options.log,
    documents: documentsOf(async () => {
      // Loaded on demand: the module is large, and most apps never serve the description.
      const { openApiDocument } = await import('./openapi/openapi-document.ts');
      return openApiDocument(ROUTES);
    }),
    metrics,
    deniedNetworks: options.deniedNetworks,
    registry: { ...options.registry, publicUrl: options.publicUrl },
    peers,
    nodes,
    signIn: options.signIn,
    authorizationServer,
    otherMembers,
    openStatistics: sharedAnswer(() => statisticsOf(ANONYMOUS, statistics), clock.now),
    events,
    peerEvents: peers && new PeerEvents({ otherMembers, peers, events, loads, clock }),
    consoleReply: consoleReply(options.consoleFolder),
    examinations: new UserShares(EXAMINATIONS.atOnce, shareOf(EXAMINATIONS.atOnce, EXAMINATIONS.share, 1)),
    syncs: new UserShares(MAX_RUNS),
    samples: new Samples(gateway, peers === undefined ? {} : { others: loads }),
    history: new LoadHistory(gateway, { isAdded: peers !== undefined }),
  };
}
