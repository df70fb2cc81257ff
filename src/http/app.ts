// The HTTP application: the middlewares in the order of their execution, and the routes. src/server/listeners.ts has
// sockets, ports and connection timeouts.

import { channel } from 'node:diagnostics_channel';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import Koa from 'koa';
import type { Logger } from 'pino';
import type { ClusterCounts } from '../actors/cluster-counts.ts';
import { isLoopback } from '../config/config.ts';
import { methodNotAllowed, routeNotFound } from '../domain/error-catalogue.ts';
import { GatewayError, gatewayStarting } from '../domain/errors.ts';
import type { ForwardedCaller } from '../domain/forwarding.ts';
import type { SignIn } from '../domain/resource.ts';
import { mayUse, mayUseView, ToolRights } from '../domain/rights.ts';
import type { WorkerPlace, WorkerQuestion } from '../domain/workers.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { METRICS_TYPE, Prometheus } from '../metrics/prometheus.ts';
import { LoadHistory, Samples } from '../metrics/samples.ts';
import { resumesSse } from '../protocol/legacy/legacy-sse.ts';
import type { TemplateDefinition } from '../templates/definition.ts';
import { Tracing } from '../tracing/tracing.ts';
import { HeldBodies } from './body/held-bodies.ts';
import { koaBodyReader, readDirect } from './body/read.ts';
import type { MayUsePath } from './caller-check.ts';
import { Deployment } from './deployment/deployment.ts';
import { PeerEvents } from './deployment/peer-events.ts';
import { PeerLoads } from './deployment/peer-loads.ts';
import { consoleReply } from './docs/console.ts';
import { documentsOf } from './docs/documents.ts';
import { ForwardedCallers } from './forwarded-callers.ts';
import { HTTP_LIMITS } from './limits.ts';
import { observe, reportLog } from './middleware/access-log.ts';
import { auditTrail, callTrail } from './middleware/audit-trail.ts';
import { admission, authorize, localAccounts } from './middleware/authorize.ts';
import { type BodyCosts, body } from './middleware/body.ts';
import { errors, guarded, identify, refuse, requestIds, rpcErrors } from './middleware/errors.ts';
import { type HostOriginCheckOptions, hostOriginCheck } from './middleware/host-origin-check.ts';
import { handle, knownPath, unmatched } from './middleware/routing.ts';
import type { AuthorizationServer } from './oauth/authorization-server.ts';
import { OpenRequests } from './open-requests.ts';
import { PlainContext, plainCalls } from './plain-call.ts';
import { createProxies } from './proxies.ts';
import { bytes, json, LATER_STREAM } from './reply.ts';
import type {
  HttpMiddleware,
  HttpStep,
  KoaContext,
  ReportListener,
  RequestState,
  RouteContext,
  RouteMiddleware,
} from './request.ts';
import { respond } from './respond.ts';
import type { Route, Services } from './route.ts';
import { auditConnections } from './routes/connections.ts';
import { startingReply } from './routes/health.ts';
import { ROUTES } from './routes/index.ts';
import { NOT_STORED } from './schemas.ts';
import { challenges } from './sign-in.ts';
import { type EventStreamOptions, EventStreams } from './sse/event-stream.ts';
import { RecentEvents } from './sse/recent-events.ts';
import { metricsOfAll, tellingOthers } from './worker-routes.ts';

/** Its ES modules import node:http; see server/listeners.ts. */
const { Router }: typeof import('@koa/router') = createRequire(import.meta.url)('@koa/router');

export interface AppOptions
  extends EventStreamOptions,
    Omit<HostOriginCheckOptions, 'proxies' | 'isRegistryPublic'>,
    Pick<Services, 'auth' | 'mcp' | 'allowedCommands' | 'settings' | 'deniedNetworks' | 'owners' | 'nodes'> {
  readonly log: Logger;
  /** Origin of the gateway for its clients. Default: that of each request. */
  readonly publicUrl?: string | undefined;
  /** Default: only callers with rights see what it offers. */
  readonly registry?: { readonly isPublic?: boolean };
  /** Signs users of MCP clients in. Undefined: there is none. */
  readonly authorizationServer?: AuthorizationServer | undefined;
  /** Where MCP clients sign in. Undefined: they cannot. */
  readonly signIn?: SignIn | undefined;
  /** Undefined without other nodes. */
  readonly clusterCounts?: ClusterCounts | undefined;
  /** Undefined: this process is the whole gateway. */
  readonly worker?: WorkerPlace | undefined;
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
  /** Ends every open event stream, which would keep the server open; streams of REST calls end with an error event. */
  closeStreams(): void;
  /** Ids of the principals whose requests wait for their answers. */
  openCallers(): ReadonlySet<string>;
}

/** `caller`: of a request that another node forwarded. */
type AppListener = (request: IncomingMessage, response: ServerResponse, caller?: ForwardedCaller) => void;

/** Diagnostics channel: every request of every app of the process, published before the answer. */
const ARRIVALS = channel('stagedoor:request');

/** Makes the application of a gateway. Two apps share nothing. */
export function createApp(gateway: Gateway, options: AppOptions): HttpApp {
  const { log, auth, mcp, allowedCommands, settings, maxBodyBytes } = options;
  const proxies = createProxies(options.trustedProxies);
  const streams = new EventStreams(options);
  const open = new OpenRequests(auth.changed$);
  const formBytes = Math.min(maxBodyBytes, HTTP_LIMITS.formBytes);
  const costs = {
    held: new HeldBodies(gateway.requestBytes),
    limiter: auth.limiter,
    connections: options.connections,
  };
  const readers = {
    direct: body(readDirect, formBytes, 'json', costs, HTTP_LIMITS.formFields),
    call: body(readDirect, maxBodyBytes, 'call', costs),
    form: body(readDirect, formBytes, 'form', costs, HTTP_LIMITS.formFields),
    bytes: body(readDirect, maxBodyBytes, 'bytes', costs),
  };
  const koaBody = body(koaBodyReader(), maxBodyBytes, 'json', costs, HTTP_LIMITS.managementValues);
  const folder = new Map(options.definitions.map((definition) => [definition.id, definition]));
  const definitions = {
    get: (id: string) => folder.get(id) ?? gateway.stored.definitions.find(id),
  };
  const documents = documentsOf(async () => {
    // Loaded on demand: the module is large, and most apps never serve the description.
    const { openApiDocument } = await import('./openapi/document.ts');
    return openApiDocument(ROUTES);
  });
  auditConnections(gateway, auth.audit);
  const trail = auditTrail(auth.audit, proxies);
  const challenge = challenges(options.signIn, proxies, log);
  const [logCall, auditCall] = [reportLog(log), callTrail(auth.audit)];
  const onReport: ReportListener = (report, context) => {
    logCall(report, context);
    auditCall(report, context);
  };
  const { worker } = options;
  const own = new Prometheus(gateway, worker?.number, options.clusterCounts);
  const metrics = worker === undefined ? own : metricsOfAll(own, worker);
  const routes = options.registry?.isPublic
    ? ROUTES.map((route): Route => (route.isRegistry ? { ...route, scope: 'open' } : route))
    : ROUTES;
  const publicRoutes = worker === undefined ? routes : routes.map((route) => tellingOthers(route, worker));
  const deployment = new Deployment(options);
  const events = new RecentEvents(gateway.events$);
  const loads = new PeerLoads({ others: () => deployment.others() });
  const services: Services = {
    gateway,
    auth,
    mcp,
    allowedCommands,
    definitions,
    settings,
    log,
    documents,
    metrics,
    deniedNetworks: options.deniedNetworks,
    registry: { ...options.registry, publicUrl: options.publicUrl },
    owners: options.owners,
    nodes: options.nodes,
    signIn: options.signIn,
    authorizationServer: options.authorizationServer,
    deployment,
    events,
    peerEvents: options.owners && new PeerEvents({ deployment, owners: options.owners, events, loads }),
    consoleReply: consoleReply(options.consoleFolder),
    samples: new Samples(gateway, options.owners === undefined ? {} : { others: loads }),
    history: new LoadHistory(gateway, { isAdded: options.owners !== undefined }),
  };

  const mayUsePath: MayUsePath = (principal, name) =>
    gateway.views.has(name) ? mayUseView(principal, name) : mayUse(principal, name);
  // The steps of one route, after the common ones below. A body is read after authorization.
  const stepsOf = <C extends RouteContext>(
    route: Route,
    readBody: readonly HttpStep<C>[],
  ): readonly HttpStep<C>[] => [
    ...trail(route),
    ...localAccounts(route, auth.isEnabled, proxies),
    ...challenge(route),
    authorize(route, auth, proxies, mayUsePath),
    ...(route.speaks === 'json-rpc' ? [knownPath(route, gateway), rpcErrors(log)] : []),
    ...admission(route, gateway, streams.unread, auth.limiter),
    ...readBody,
    handle(route, services, { proxies, streams, open, onReport }),
  ];
  const directReader = (route: Route): readonly RouteMiddleware[] | undefined => {
    if (route.request.body === undefined) return [];
    if (route.speaks === 'json-rpc') return [readers.bytes];
    const { reader = 'koa-body' } = route;
    return reader === 'koa-body' ? undefined : [readers[reader]];
  };
  const common: readonly HttpMiddleware[] = [
    errors(log),
    observe(log, own, new Tracing()),
    hostOriginCheck({ ...options, proxies, isRegistryPublic: options.registry?.isPublic }),
  ];
  const plainRoutes = publicRoutes.flatMap((route) => {
    const reader = route.unlessTemplate === undefined ? directReader(route) : undefined;
    if (reader === undefined) return [];
    return [{ route, steps: compose<RouteContext>([...common, ...stepsOf(route, reader)]) }];
  });
  const router = routerOf(publicRoutes, gateway, (route) =>
    compose(stepsOf<KoaContext & RouteContext>(route, directReader(route) ?? [koaBody])),
  );
  const app = new Koa<RequestState, Record<never, never>>();
  for (const step of common) app.use(step);
  if (options.authorizationServer !== undefined)
    app.use(options.authorizationServer.step(proxies, gateway.accounts, templatesOf(gateway)));
  app.use(router.routes());
  app.use(unmatched(router, auth, proxies));
  const listener = listenerOf(app, log, { callOf: plainCalls(plainRoutes), arrivals: ARRIVALS });

  /** Not made before it is needed: most gateways have no other nodes. */
  const forwardedListener = () => {
    const callers = new ForwardedCallers(auth.changed$);
    // A request that was forwarded here is not forwarded again.
    const samples = new Samples(gateway, { isPart: true });
    const here = { ...services, owners: undefined, deployment: undefined, peerEvents: undefined, samples };
    const steps = <C extends RouteContext>(route: Route, readBody: readonly HttpStep<C>[]): HttpStep<C>[] => [
      ...trail(route),
      callers.assume(route, mayUsePath),
      ...(route.speaks === 'json-rpc' ? [knownPath(route, gateway), rpcErrors(log)] : []),
      ...admission(route, gateway, streams.unread),
      ...readBody,
      handle(route, here, { proxies, streams, open, onReport }),
    ];
    // The node that received the request counts its answer.
    const first = [errors(log), observe(log, { countAnswer: () => {} }, new Tracing())];
    const routes = ROUTES.filter(({ speaks, isForwarded }) => speaks === 'json-rpc' || isForwarded);
    const plain = routes.map((route) => {
      const all = [...first, ...steps(route, directReader(route) ?? [])];
      return { route, steps: compose<RouteContext>(all) };
    });
    const forwarded = new Koa<RequestState, Record<never, never>>();
    for (const step of first) forwarded.use(step);
    const router = routerOf(routes, gateway, (route) =>
      compose(steps<KoaContext & RouteContext>(route, directReader(route) ?? [])),
    );
    forwarded.use(router.routes());
    forwarded.use(({ method, path }) => {
      throw routeNotFound(method, path.slice(0, HTTP_LIMITS.loggedPathCharacters));
    });
    return listenerOf(forwarded, log, { callOf: plainCalls(plain) });
  };
  let serveForwarded: HttpApp['serveForwarded'] | undefined;
  return {
    metrics,
    ownMetrics: ({ templates, tools }) =>
      own.text({
        ...(templates && { templates: new Set(templates) }),
        ...(tools && { tools: new ToolRights(tools) }),
      }),
    callback: () => listener,
    serveForwarded: (request, response, caller) => {
      serveForwarded ??= forwardedListener();
      serveForwarded(request, response, caller);
    },
    closeStreams: () => streams.close(),
    openCallers: () => open.callers,
  };
}

/** Answers requests until the gateway is created: 503 with Retry-After, and `/livez` as usual. It writes no log lines. */
export function createStartingApp(): RequestListener {
  const app = new Koa<RequestState, Record<never, never>>();
  const newId = requestIds();
  app.use((context) => {
    identify(context, newId);
    if (context.path === '/livez') respond(context, json(200, { status: 'alive' }));
    else if (resumesSse(context.headers)) respond(context, LATER_STREAM);
    else refuse(context, startingReply(context.state.requestId));
  });
  return app.callback();
}

/**
 * Answers only `/metrics`, without credentials: the bound address decides which callers reach it. On loopback the Host must be this
 * machine or an allowed one, so that no web page reads it by DNS rebinding. `metrics`: undefined while the gateway starts.
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
  return listenerOf(app, log);
}

interface ListenerOptions {
  /** Requests that are served without koa. Default: none. */
  readonly callOf?: ReturnType<typeof plainCalls>;
  /** Where the requests are published. Default: nowhere. */
  readonly arrivals?: typeof ARRIVALS;
}

/**
 * Like app.callback(), but without listeners for the end of the connection (1.5 us per request), without koa's lines on standard
 * error and its answers: respond.ts and sse/ write every reply. Logs, and disconnects, only when the answer to an error fails.
 */
function listenerOf(
  app: Koa<RequestState, Record<never, never>>,
  log: Pick<Logger, 'error'>,
  { callOf = () => undefined, arrivals }: ListenerOptions = {},
): AppListener {
  const run = compose<KoaContext>(app.middleware);
  return (request, response, caller) => {
    const failed = (thrown: unknown): void => {
      log.error({ err: thrown }, 'request failed');
      response.destroy();
    };
    // Of a forwarded request, the node that has the client answers it.
    if (caller === undefined && arrivals?.hasSubscribers) arrivals.publish({ request, response });
    const call = callOf(request);
    void guarded(() => {
      if (call !== undefined)
        return call.steps(new PlainContext(app, request, response, call.template, caller), nothing);
      const context = app.createContext<RequestState>(request, response);
      if (caller !== undefined) context.state.forwarded = caller;
      return run(context, nothing);
    }, failed);
  };
}

/** `next` of the last step, which does not call it. */
async function nothing(): Promise<void> {}

function routerOf(
  routes: readonly Route[],
  gateway: Pick<Gateway, 'hasTemplate' | 'views'>,
  stepsOf: (route: Route) => HttpStep<KoaContext & RouteContext>,
) {
  const router = new Router<RequestState, Record<never, never>>({ sensitive: true });
  for (const route of routes) {
    const row = router.register(route.path, [route.method], unlessTemplate(route, gateway, stepsOf(route)));
    // The router adds HEAD to every GET; at the MCP endpoint it would open a stream that is never read.
    if (route.speaks === 'json-rpc') row.methods = row.methods.filter((method) => method !== 'HEAD');
  }
  return router;
}

/** The steps of a route, skipped while a template of this name exists. */
function unlessTemplate<C>(
  { unlessTemplate: template }: Route,
  gateway: Pick<Gateway, 'hasTemplate' | 'views'>,
  steps: HttpStep<C>,
): HttpStep<C> {
  if (template === undefined) return steps;
  return (context, next) =>
    gateway.hasTemplate(template) || gateway.views.has(template) ? next() : steps(context, next);
}

/**
 * Composes steps: they run in order, then `next`. koa-compose creates a bound function and a promise for each step of each request, to
 * detect a second call of `next`, which no step here makes: one function for all steps of a request counts them. A step may throw
 * synchronously: steps that catch errors use `await`, or `guarded`.
 */
function compose<C>(steps: readonly HttpStep<C>[]): HttpStep<C> {
  return (context, next) => {
    let begun = 0;
    const run: typeof next = () => {
      const step = steps[begun];
      begun += 1;
      return step === undefined ? next() : step(context, run);
    };
    return run();
  };
}

function templatesOf({ views }: Gateway): (view: string) => readonly string[] | undefined {
  return (view) =>
    views.has(view) ? views.find(view).definition.from.map(({ template }) => template) : undefined;
}
