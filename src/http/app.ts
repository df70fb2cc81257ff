// The HTTP application of a gateway: the services of its routes, their tables, and their listeners.
// src/server/sockets/listeners.ts has sockets, ports and connection timeouts.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { AuthorizationServerOptions } from '../authorization-server/authorization-server.ts';
import { LazyAuthorizationServer } from '../authorization-server/lazy-authorization-server.ts';
import type { ClusterCounts } from '../counts/cluster-counts.ts';
import { ToolRights } from '../domain/accounts/rights.ts';
import type { ForwardedCaller } from '../domain/nodes/forwarding.ts';
import type { OwnWorker, WorkerQuestion } from '../domain/nodes/workers.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { Prometheus } from '../metrics/prometheus.ts';
import { bodyMiddleware } from './body/body-middleware.ts';
import { HeldBodies } from './body/held-bodies.ts';
import { OpenRequests } from './callers/open-requests.ts';
import { createProxies } from './callers/proxies.ts';
import { composeServices, type ServicesOptions } from './compose-services.ts';
import type { UnknownCallers } from './middleware/authorize.ts';
import type { BytesReply } from './replies/reply.ts';
import { auditConnections } from './routes/accounts/connections.ts';
import { readinessOf } from './routes/gateway/readiness.ts';
import { type AppListener, routeListener } from './routing/route-listener.ts';
import { type RouteTablesOptions, routeTables } from './routing/route-tables.ts';
import { metricsOfAll } from './routing/worker-routes.ts';
import { type EventStreamOptions, EventStreams } from './sse/event-stream.ts';

type Origins = RouteTablesOptions['origins'];

export interface AppOptions extends EventStreamOptions, Origins, ServicesOptions {
  /** Signs users of MCP clients in. Undefined: there is none. */
  readonly authorizationServer?: AuthorizationServerOptions | undefined;
  /** Undefined: this node is the whole deployment. */
  readonly others?: ServicesOptions['others'] & { readonly counts?: ClusterCounts | undefined };
  /** Undefined: this process is the whole gateway. */
  readonly worker?: OwnWorker | undefined;
  /** Networks, in CIDR form, of proxies whose X-Forwarded-* headers are trusted. */
  readonly trustedProxies: readonly string[];
  readonly maxBodyBytes: number;
  readonly connections?: UnknownCallers;
}

export interface HttpApp {
  callback(): RequestListener;
  /** The metrics of this worker, for another one. */
  readonly ownMetrics: (question: Extract<WorkerQuestion, { kind: 'metrics' }>) => Promise<string>;
  /** The metrics, and the answer of `/readyz`, for the listener that serves only these (metrics-app.ts). */
  readonly metrics: Pick<Prometheus, 'text'>;
  readonly readiness: (requestId: string) => BytesReply;
  /** Serves a request that another node forwarded to this one. */
  readonly serveForwarded: (
    request: IncomingMessage,
    response: ServerResponse,
    caller: ForwardedCaller,
  ) => void;
  readonly authorizationServer: LazyAuthorizationServer | undefined;
  /** Ends every open event stream, which would keep the server open; streams of REST calls end with an error event. */
  closeStreams(): void;
  /** The ids of the principals whose requests wait for their answers. */
  openCallers(): ReadonlySet<string>;
}

/** Makes the application of a gateway. Two apps share nothing. */
export function createApp(gateway: Gateway, options: AppOptions): HttpApp {
  const { log, auth, worker } = options;
  const { requestBytes, scheduler, backendAccounts, clock } = gateway.internals;
  const proxies = createProxies(options.trustedProxies);
  const streams = new EventStreams(clock, options);
  const open = new OpenRequests(auth.changed$);
  const own = new Prometheus(gateway, worker?.number, options.others?.counts);
  const metrics = worker === undefined ? own : metricsOfAll(own, worker);
  const authorizationServer =
    options.authorizationServer &&
    new LazyAuthorizationServer(options.authorizationServer, {
      accounts: backendAccounts,
      templatesOf: templatesOf(gateway),
    });
  const services = composeServices(gateway, options, metrics, authorizationServer);
  auditConnections(backendAccounts, auth.audit);

  const bodies = bodyMiddleware(options.maxBodyBytes, {
    held: new HeldBodies(requestBytes),
    limiter: auth.limiter,
    scheduler,
    clock,
  });
  const tables = routeTables({
    services,
    log,
    proxies,
    streams,
    open,
    metrics: own,
    origins: options,
    worker,
    connections: options.connections,
  });
  const serveClient = routeListener(tables.ofClients, bodies, gateway, log);
  let serveForwarded: AppListener | undefined;
  return {
    metrics,
    readiness: (requestId) => readinessOf(services, requestId),
    authorizationServer,
    ownMetrics: ({ templates, tools }) =>
      own.text({
        ...(templates && { templates: new Set(templates) }),
        ...(tools && { tools: new ToolRights(tools) }),
      }),
    callback: () => serveClient,
    serveForwarded: (request, response, caller) => {
      serveForwarded ??= routeListener(tables.ofNodes(), bodies, gateway, log);
      serveForwarded(request, response, caller);
    },
    closeStreams: () => streams.close(),
    openCallers: () => open.callers,
  };
}

/** The templates of a view by its name. */
function templatesOf({ views }: Gateway): (view: string) => readonly string[] | undefined {
  return (view) =>
    views.has(view) ? views.find(view).definition.from.map(({ template }) => template) : undefined;
}
