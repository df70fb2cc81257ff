// The HTTP application: the steps of a request in the order of their execution, and what the routes use.
// route-listener.ts joins both for koa; src/server/listeners.ts has sockets, ports and connection timeouts.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import Koa from 'koa';
import type { Logger } from 'pino';
import type { RateLimiter } from '../auth/limits/rate-limiter.ts';
import { isLoopback } from '../config/config.ts';
import type { ClusterCounts } from '../counts/cluster-counts.ts';
import type { SignIn } from '../domain/accounts/resource.ts';
import { methodNotAllowed, routeNotFound } from '../domain/errors/error-catalogue.ts';
import { GatewayError, gatewayStarting } from '../domain/errors/errors.ts';
import { PerList } from '../domain/memory/per-list.ts';
import type { ForwardedCaller } from '../domain/nodes/forwarding.ts';
import type { OwnWorker, WorkerQuestion } from '../domain/nodes/workers.ts';
import { mayUse, mayUseView, ToolRights } from '../domain/rights/rights.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { LoadHistory } from '../metrics/load-history.ts';
import { METRICS_TYPE, Prometheus } from '../metrics/prometheus.ts';
import { Samples } from '../metrics/samples.ts';
import type { McpEndpoint } from '../protocol/endpoint-types.ts';
import type { TemplateDefinition } from '../templates/definition.ts';
import { Tracing } from '../tracing/tracing.ts';
import { Deployment } from './all-nodes/deployment.ts';
import { PeerEvents } from './all-nodes/peer-events.ts';
import { PeerLoads } from './all-nodes/peer-loads.ts';
import { HeldBodies } from './body/held-bodies.ts';
import { bodyReaders } from './body/readers.ts';
import type { MayUsePath } from './caller-check.ts';
import { challenges } from './challenge.ts';
import { consoleReply } from './docs/console.ts';
import { documentsOf } from './docs/documents.ts';
import { ForwardedCallers } from './forwarding/forwarded-callers.ts';
import { HTTP_LIMITS } from './limits.ts';
import { observe, reportLog } from './middleware/access-log.ts';
import { auditTrail, callTrail } from './middleware/audit-trail.ts';
import { admission, authorize, localAccounts } from './middleware/authorize.ts';
import type { BodyCosts } from './middleware/body.ts';
import { errors, refuse, rpcErrors } from './middleware/errors.ts';
import { type HostOriginCheckOptions, hostOriginCheck } from './middleware/host-origin-check.ts';
import { identify, requestIds } from './middleware/request-id.ts';
import { handle, knownPath, unmatched } from './middleware/routing.ts';
import { LazyAuthorizationServer } from './oauth/lazy-authorization-server.ts';
import type { OAuthServiceOptions } from './oauth/service.ts';
import { OpenRequests } from './open-requests.ts';
import { createProxies } from './proxies.ts';
import { NOT_STORED } from './records/schemas.ts';
import { bytes, json } from './replies/reply.ts';
import { respond } from './replies/respond.ts';
import type { ReportListener, RequestState, RouteMiddleware } from './request.ts';
import type { Route } from './route.ts';
import { type AppListener, appListener, type RouteTable, routeListener } from './route-listener.ts';
import { auditConnections } from './routes/connections.ts';
import { startingReply } from './routes/health.ts';
import { ROUTES } from './routes/index.ts';
import type { Services } from './services.ts';
import { type EventStreamOptions, EventStreams } from './sse/event-stream.ts';
import { RecentEvents } from './sse/recent-events.ts';
import { metricsOfAll, tellingOthers } from './worker-routes.ts';

export interface AppOptions
  extends EventStreamOptions,
    Omit<HostOriginCheckOptions, 'proxies' | 'isRegistryPublic'>,
    Pick<Services, 'auth' | 'allowedCommands' | 'settings' | 'deniedNetworks'> {
  /** Default: that of the gateway. */
  readonly mcp?: McpEndpoint;
  readonly log: Logger;
  /** Origin of the gateway for its clients. Default: that of each request. */
  readonly publicUrl?: string | undefined;
  /** Default: only callers with rights see what it offers. */
  readonly registry?: { readonly isPublic?: boolean };
  /** Signs users of MCP clients in. Undefined: there is none. */
  readonly authorizationServer?: OAuthServiceOptions | undefined;
  /** Where MCP clients sign in. Undefined: they cannot. */
  readonly signIn?: SignIn | undefined;
  /** Undefined: this node is the whole deployment. */
  readonly others?: Pick<Services, 'peers' | 'nodes'> & { readonly counts?: ClusterCounts | undefined };
  /** Undefined: this process is the whole gateway. */
  readonly worker?: OwnWorker | undefined;
  /** Template definitions, for `POST /servers` and for the variables that a command may get. */
  readonly definitions: readonly TemplateDefinition[];
  /** Networks, in CIDR form, of proxies whose X-Forwarded-* headers are trusted. */
  readonly trustedProxies: readonly string[];
  /** Folder of the built console. Default: that of this package. */
  readonly consoleFolder?: URL;
  readonly maxBodyBytes: number;
  readonly connections?: BodyCosts['connections'];
}

export interface HttpApp {
  callback(): RequestListener;
  /** The metrics of this worker, for another one. */
  readonly ownMetrics: (question: Extract<WorkerQuestion, { kind: 'metrics' }>) => Promise<string>;
  /** For the listener that serves metrics alone. */
  readonly metrics: Pick<Prometheus, 'text'>;
  /** Serves a request that another node forwarded to this one. */
  readonly serveForwarded: (
    request: IncomingMessage,
    response: ServerResponse,
    caller: ForwardedCaller,
  ) => void;
  readonly authorizationServer: LazyAuthorizationServer | undefined;
  /** Ends every open event stream, which would keep the server open; streams of REST calls end with an error event. */
  closeStreams(): void;
  /** Ids of the principals whose requests wait for their answers. */
  openCallers(): ReadonlySet<string>;
}

/** How the requests of clients and those of other nodes differ. */
interface Callers {
  /** The steps that find the caller of a request. */
  readonly authorizeAt: (route: Route) => readonly RouteMiddleware[];
  /** Counts messages that do not count as requests. Undefined: another node has counted them. */
  readonly limiter?: Pick<RateLimiter, 'takeFree'>;
  readonly services: Services;
}

/** Makes the application of a gateway. Two apps share nothing. */
export function createApp(gateway: Gateway, options: AppOptions): HttpApp {
  const { log, auth, worker } = options;
  const { requestBytes, scheduler, backendAccounts } = gateway.internals;
  const proxies = createProxies(options.trustedProxies);
  const streams = new EventStreams(options);
  const open = new OpenRequests(auth.changed$);
  const readers = bodyReaders(options.maxBodyBytes, {
    held: new HeldBodies(requestBytes),
    limiter: auth.limiter,
    scheduler,
    connections: options.connections,
  });
  const own = new Prometheus(gateway, worker?.number, options.others?.counts);
  const metrics = worker === undefined ? own : metricsOfAll(own, worker);
  const authorizationServer =
    options.authorizationServer &&
    new LazyAuthorizationServer(options.authorizationServer, {
      proxies,
      accounts: backendAccounts,
      templatesOf: templatesOf(gateway),
    });
  const services = servicesOf(gateway, options, metrics, authorizationServer);
  auditConnections(backendAccounts, auth.audit);

  const trail = auditTrail(auth.audit, proxies);
  const challenge = challenges(options.signIn, proxies, log);
  const [logCall, auditCall] = [reportLog(log), callTrail(auth.audit)];
  const onReport: ReportListener = (report, context) => {
    logCall(report, context);
    auditCall(report, context);
  };
  const replies = { proxies, streams, open, onReport };
  const mayUsePath: MayUsePath = (principal, name) =>
    gateway.views.has(name) ? mayUseView(principal, name) : mayUse(principal, name);
  const stepsFor =
    ({ authorizeAt, limiter, services }: Callers): RouteTable['stepsOf'] =>
    (route, readBody) => [
      ...trail(route),
      ...authorizeAt(route),
      ...(route.speaks === 'json-rpc' ? [knownPath(route, gateway), rpcErrors(log)] : []),
      ...admission(route, gateway, streams.unread, limiter),
      ...readBody,
      handle(route, services, replies),
    ];
  const isRegistryPublic = options.registry?.isPublic;
  const ofClients: RouteTable = {
    routes: publicRoutes(isRegistryPublic, worker),
    first: [
      errors(log),
      observe(log, own, new Tracing()),
      hostOriginCheck({ ...options, proxies, isRegistryPublic }),
    ],
    stepsOf: stepsFor({
      authorizeAt: (route) => [
        ...localAccounts(route, auth.isEnabled, proxies),
        authorize(route, auth, proxies, mayUsePath, challenge(route)),
      ],
      limiter: auth.limiter,
      services,
    }),
    besides: authorizationServer?.step(),
    unmatched: (router) => unmatched(router, auth, proxies),
  };
  /** Not made before it is needed: most gateways have no other nodes. */
  const ofNodes = (): RouteTable => {
    const callers = new ForwardedCallers(auth.changed$);
    // A request that was forwarded here is not forwarded again.
    const samples = new Samples(gateway, { isPart: true });
    const here = { ...services, peers: undefined, deployment: undefined, peerEvents: undefined, samples };
    return {
      routes: ROUTES.filter(({ speaks, isForwarded }) => speaks === 'json-rpc' || isForwarded),
      // The node that received the request counts its answer.
      first: [errors(log), observe(log, { countAnswer: () => {} }, new Tracing())],
      stepsOf: stepsFor({ authorizeAt: (route) => [callers.assume(route, mayUsePath)], services: here }),
      unmatched:
        () =>
        ({ method, path }) => {
          throw routeNotFound(method, path.slice(0, HTTP_LIMITS.loggedPathCharacters));
        },
    };
  };
  const listener = routeListener(ofClients, readers, gateway, log);
  let serveForwarded: AppListener | undefined;
  return {
    metrics,
    authorizationServer,
    ownMetrics: ({ templates, tools }) =>
      own.text({
        ...(templates && { templates: new Set(templates) }),
        ...(tools && { tools: new ToolRights(tools) }),
      }),
    callback: () => listener,
    serveForwarded: (request, response, caller) => {
      serveForwarded ??= routeListener(ofNodes(), readers, gateway, log);
      serveForwarded(request, response, caller);
    },
    closeStreams: () => streams.close(),
    openCallers: () => open.callers,
  };
}

/** The routes as this app serves them. */
function publicRoutes(isRegistryPublic = false, worker: OwnWorker | undefined): readonly Route[] {
  const routes = isRegistryPublic
    ? ROUTES.map((route): Route => (route.isRegistry ? { ...route, scope: 'open' } : route))
    : ROUTES;
  return worker === undefined ? routes : routes.map((route) => tellingOthers(route, worker));
}

/** What handlers of routes use. */
function servicesOf(
  gateway: Gateway,
  options: AppOptions,
  metrics: Services['metrics'],
  authorizationServer: LazyAuthorizationServer | undefined,
): Services {
  const { peers, nodes } = options.others ?? {};
  const { requestBytes, scheduler, backendAccounts, readiness } = gateway.internals;
  const { approvals, requests, traffic, definitions: stored } = gateway.internals;
  const inFolder = new Map(options.definitions.map((definition) => [definition.id, definition]));
  const deployment = new Deployment(options.others ?? {});
  const events = new RecentEvents(gateway.events$);
  const loads = new PeerLoads({ others: () => deployment.others() });
  return {
    gateway,
    requestBytes,
    scheduler,
    backendAccounts,
    readiness,
    approvals,
    requests,
    traffic,
    auth: options.auth,
    listAnswers: new PerList(),
    mcp: options.mcp ?? gateway.mcp,
    allowedCommands: options.allowedCommands,
    definitions: { get: (id) => inFolder.get(id) ?? stored.find(id) },
    storedDefinitions: stored,
    settings: options.settings,
    log: options.log,
    documents: documentsOf(async () => {
      // Loaded on demand: the module is large, and most apps never serve the description.
      const { openApiDocument } = await import('./openapi/document.ts');
      return openApiDocument(ROUTES);
    }),
    metrics,
    deniedNetworks: options.deniedNetworks,
    registry: { ...options.registry, publicUrl: options.publicUrl },
    peers,
    nodes,
    signIn: options.signIn,
    authorizationServer,
    deployment,
    events,
    peerEvents: peers && new PeerEvents({ deployment, peers, events, loads }),
    consoleReply: consoleReply(options.consoleFolder),
    samples: new Samples(gateway, peers === undefined ? {} : { others: loads }),
    history: new LoadHistory(gateway, { isAdded: peers !== undefined }),
  };
}

/** Answers requests until the gateway is created: 503 with Retry-After, and `/livez` as usual. It writes no log lines. */
export function createStartingApp(): RequestListener {
  const app = new Koa<RequestState, Record<never, never>>();
  const newId = requestIds();
  app.use((context) => {
    identify(context, newId);
    if (context.path === '/livez') respond(context, json(200, { status: 'alive' }));
    else refuse(context, startingReply(context.state.requestId));
  });
  return app.callback();
}

/**
 * Answers only `/metrics`, without credentials: the bound address decides which callers reach it. On loopback the
 * Host must be this machine or an allowed one, so that no web page reads it by DNS rebinding. `metrics`: undefined
 * while the gateway starts.
 */
export function createMetricsApp(
  { host, allowedHosts }: { readonly host: string; readonly allowedHosts: readonly string[] },
  metrics: () => HttpApp['metrics'] | undefined,
  log: Pick<Logger, 'error'>,
): RequestListener {
  const app = new Koa<RequestState, Record<never, never>>();
  const origins = { allowedOrigins: [], corsOrigins: [], isPublic: false };
  app.use(errors(log));
  // On another address it is for other machines, by any name; web pages cannot read its answers.
  if (isLoopback(host)) app.use(hostOriginCheck({ ...origins, allowedHosts, proxies: createProxies([]) }));
  app.use(async (context) => {
    const { path, method } = context;
    if (path !== '/metrics') throw new GatewayError('NOT_FOUND', 'Only /metrics is served here.');
    if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed(method, path, ['GET', 'HEAD']);
    const source = metrics();
    if (source === undefined) throw gatewayStarting();
    const text = await source.text();
    respond(context, { ...bytes(200, text, { headers: NOT_STORED }), type: METRICS_TYPE });
  });
  return appListener(app, log);
}

/** By the name of a view. */
function templatesOf({ views }: Gateway): (view: string) => readonly string[] | undefined {
  return (view) =>
    views.has(view) ? views.find(view).definition.from.map(({ template }) => template) : undefined;
}
