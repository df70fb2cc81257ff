// The tables of routes, and the middleware of a request in the order of its execution: one table for clients, one for requests
// that other nodes forward to this one. route-listener.ts joins each for koa.

import type { Logger } from 'pino';
import type { RateLimiter } from '../../auth/limits/rate-limiter.ts';
import { mayUse, mayUseView } from '../../domain/accounts/rights.ts';
import { routeNotFound } from '../../domain/errors/request-errors.ts';
import type { OwnWorker } from '../../domain/nodes/workers.ts';
import type { Prometheus } from '../../metrics/prometheus.ts';
import { Samples } from '../../metrics/samples.ts';
import { Tracing } from '../../tracing/tracing.ts';
import { OtherMembers } from '../all-nodes/other-members.ts';
import type { MayUsePath } from '../callers/caller-check.ts';
import { challenges } from '../callers/challenge.ts';
import type { OpenRequests } from '../callers/open-requests.ts';
import type { Proxies } from '../callers/proxies.ts';
import type { ReportListener, RouteMiddleware } from '../context.ts';
import { ForwardedCallers } from '../forwarding/forwarded-callers.ts';
import { HTTP_LIMITS } from '../http-limits.ts';
import { observe, reportLog } from '../middleware/access-log.ts';
import { auditTrail, callTrail } from '../middleware/audit-trail.ts';
import { authorizationServerRequests } from '../middleware/authorization-server.ts';
import { admission, authorize, localAccounts, type UnknownCallers } from '../middleware/authorize.ts';
import { errors, rpcErrors } from '../middleware/error-answers.ts';
import { type HostOriginCheckOptions, hostOriginCheck } from '../middleware/host-origin-check.ts';
import { ROUTES } from '../routes/index.ts';
import type { Services } from '../services.ts';
import type { EventStreams } from '../sse/event-stream.ts';
import { boundedChanges } from './bounded-work.ts';
import { handle, knownPath, unmatched } from './handle.ts';
import type { HttpRoute } from './route.ts';
import type { RouteTable } from './route-listener.ts';
import { tellingOthers } from './worker-routes.ts';

export interface RouteTablesOptions {
  readonly services: Services;
  readonly log: Logger;
  readonly proxies: Proxies;
  readonly streams: EventStreams;
  readonly open: OpenRequests;
  /** Counts the answers to clients. */
  readonly metrics: Pick<Prometheus, 'countAnswer'>;
  /** The hosts and origins that may call. */
  readonly origins: Omit<HostOriginCheckOptions, 'proxies' | 'signIn' | 'isRegistryPublic'>;
  readonly worker: OwnWorker | undefined;
  readonly connections: UnknownCallers | undefined;
}

/** The differences between the requests of clients and those of other nodes. */
interface Callers {
  /** The middleware that finds the caller of a request. */
  readonly authorizeAt: (route: HttpRoute) => readonly RouteMiddleware[];
  /** Counts messages that do not count as requests. Undefined: another node has counted them. */
  readonly limiter?: Pick<RateLimiter, 'takeFree'>;
  readonly services: Services;
}

export function routeTables(options: RouteTablesOptions): {
  readonly ofClients: RouteTable;
  readonly ofNodes: () => RouteTable;
} {
  const { services, log, proxies, streams, open, metrics, origins, worker, connections } = options;
  const { gateway, auth, clock, signIn, authorizationServer } = services;
  const trail = auditTrail(auth.audit, proxies, clock.now);
  const challenge = challenges(signIn, proxies, log);
  const [logCall, auditCall] = [reportLog(log, clock), callTrail(auth.audit, clock.now)];
  const onReport: ReportListener = (report, context) => {
    logCall(report, context);
    auditCall(report, context);
  };
  const replies = { proxies, streams, open, onReport, clock };
  const mayUsePath: MayUsePath = (principal, name) =>
    gateway.views.has(name) ? mayUseView(principal, name) : mayUse(principal, name);
  const isRegistryPublic = services.registry?.isPublic;

  const middlewareFor =
    (callers: Callers): RouteTable['middlewareOf'] =>
    (route, readBody) => [
      ...trail(route),
      ...callers.authorizeAt(route),
      ...(route.speaks === 'json-rpc' ? [knownPath(route, gateway), rpcErrors(log)] : []),
      ...admission(route, gateway, streams.unread, callers.limiter),
      ...readBody,
      handle(route, callers.services, replies),
    ];

  const ofClients: RouteTable = {
    routes: publicRoutes(isRegistryPublic, worker),
    first: [
      errors(log),
      observe(log, metrics, new Tracing(), clock),
      hostOriginCheck({ ...origins, proxies, signIn, isRegistryPublic }),
    ],
    middlewareOf: middlewareFor({
      authorizeAt: (route) => [
        ...localAccounts(route, auth.isEnabled, proxies),
        authorize(route, { auth, proxies, mayUsePath, challenge: challenge(route), connections }),
      ],
      limiter: auth.limiter,
      services,
    }),
    besides: authorizationServer && authorizationServerRequests(authorizationServer, proxies, connections),
    unmatched: (router) => unmatched(router, auth, proxies),
  };

  return { ofClients, ofNodes: () => tableOfNodes(options, middlewareFor, mayUsePath) };
}

function tableOfNodes(
  { services, log }: RouteTablesOptions,
  middlewareFor: (callers: Callers) => RouteTable['middlewareOf'],
  mayUsePath: MayUsePath,
): RouteTable {
  const { gateway, auth, clock, scheduler } = services;
  const callers = new ForwardedCallers(auth.changed$, clock);
  // A request that was forwarded here is not forwarded again.
  const samples = new Samples(gateway, { isPart: true });
  const otherMembers = new OtherMembers({ nodes: () => [], clock, scheduler });
  const here = { ...services, peers: undefined, otherMembers, peerEvents: undefined, samples };
  return {
    routes: ROUTES.filter(({ speaks, isForwarded }) => speaks === 'json-rpc' || isForwarded),
    // The node that received the request counts its answer.
    first: [errors(log), observe(log, { countAnswer: () => {} }, new Tracing(), clock)],
    middlewareOf: middlewareFor({
      authorizeAt: (route) => [callers.assume(route, mayUsePath)],
      services: here,
    }),
    unmatched:
      () =>
      ({ method, path }) => {
        throw routeNotFound(method, path.slice(0, HTTP_LIMITS.loggedPathCharacters));
      },
  };
}

/** The routes as this app serves them. */
function publicRoutes(isRegistryPublic = false, worker: OwnWorker | undefined): readonly HttpRoute[] {
  const all = boundedChanges(ROUTES);
  const routes = isRegistryPublic
    ? all.map((route): HttpRoute => (route.isRegistry ? { ...route, scope: 'open' } : route))
    : all;
  return worker === undefined ? routes : routes.map((route) => tellingOthers(route, worker));
}
