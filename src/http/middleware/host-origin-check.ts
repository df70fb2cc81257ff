// Refuses requests of foreign web pages, by Host and Origin, and answers preflights. On this machine, or without
// authentication, a page may neither reach this gateway by its own domain (DNS rebinding: Host) nor call it from
// another origin (Origin). A public gateway needs credentials that browsers do not send by themselves: there `*`
// allows all origins. @koa/cors is not used: it adds a promise to every call and a second Vary, and refuses
// nothing.

import type { IncomingMessage } from 'node:http';
import type { Next } from 'koa';
import { originNotAllowed } from '../../domain/errors/request-errors.ts';
import { LOCAL_HOST } from '../../domain/local-address.ts';
import { wordsIn } from '../../domain/text.ts';
import type { Proxies } from '../callers/proxies.ts';
import type { HttpContext, HttpMiddleware } from '../context.ts';
import { HTTP_LIMITS } from '../http-limits.ts';
import { noContent } from '../replies/reply.ts';
import { respond } from '../replies/respond.ts';

export interface HostOriginCheckOptions {
  /** Hosts in addition to the names of this machine: `gateway.example` on any port, `gateway.example:8080` on port 8080. */
  readonly allowedHosts: readonly string[];
  /** Origins that may call from a browser: `https://console.example`. `*` and `null` are ignored. */
  readonly allowedOrigins: readonly string[];
  /**
   * True when this gateway serves other machines: authentication is on and it listens on more than loopback. Then any Host is
   * accepted, and `*` in `corsOrigins` counts.
   */
  readonly isPublic: boolean;
  /** The further origins that may call; `*` is all of them, on a public gateway only. */
  readonly corsOrigins: readonly string[];
  readonly proxies: Proxies;
  /**
   * Present when MCP clients can sign in: any origin may read how, and use the endpoints that need no credentials of the gateway.
   */
  readonly signIn?: object | undefined;
  /** True when the gateway is a registry for everyone: pages of any origin may read it. Default: false. */
  readonly isRegistryPublic?: boolean | undefined;
}

/** Refuses with ORIGIN_NOT_ALLOWED; answers preflights of allowed origins. */
export function hostOriginCheck(options: HostOriginCheckOptions): HttpMiddleware {
  const { allowedOrigins, isPublic, corsOrigins, proxies, signIn, isRegistryPublic } = options;
  const isHostAllowed = hostCheck(options);
  const isForAll = isPublic && corsOrigins.includes('*');
  const written = [...corsOrigins, ...allowedOrigins];
  const origins = new Set(
    written.map((origin) => origin.toLowerCase()).filter((origin) => origin !== '*' && origin !== 'null'),
  );
  return (context, next) => {
    if (!isPublic && !isHostAllowed(context.req))
      throw originNotAllowed('The Host of the request is not allowed. See allowed_hosts.');
    const { origin } = context.req.headers;
    if (origin === undefined) return next();
    const isSame = isSameOrigin(origin, context, proxies);
    if (isForAll) return shareWith('*', context, next);
    if (origins.has(origin.toLowerCase())) return shareWith(origin, context, next);
    if (isSame) return next();
    if (signIn !== undefined && OPEN_PATH.test(context.path)) return shareWith('*', context, next);
    if (isRegistryPublic && REGISTRY_PATH.test(context.path))
      return shareWith('*', context, next, WITHOUT_CREDENTIALS);
    if (signIn !== undefined && MCP_PATH.test(context.path) && !hasCredentials(context.req))
      return shareWith('*', context, next, WITHOUT_CREDENTIALS);
    throw originNotAllowed('The Origin of the request is not allowed. See cors_origins.');
  };
}

function hostCheck({ allowedHosts, proxies }: HostOriginCheckOptions): (request: IncomingMessage) => boolean {
  const hosts: ReadonlySet<string> = new Set(allowedHosts.map((host) => host.toLowerCase()));
  const isAllowed = (host: string): boolean => {
    if (LOCAL_HOST.test(host)) return true;
    const name = host.toLowerCase();
    return hosts.has(name) || hosts.has(name.replace(PORT, ''));
  };
  return (request) => {
    const { url = '' } = request;
    const host = proxies.host(request);
    if (host === undefined || !isAllowed(host)) return false;
    // `GET http://host/path` names another host, which takes precedence. Source: RFC 9112 section 3.2.2.
    return ORIGIN_FORM.test(url) || (URL.canParse(url) && isAllowed(new URL(url).host));
  };
}

/**
 * True when the origin is the gateway's own. Also stores in the state whether the host is the same, for the session cookie of the
 * console.
 */
function isSameOrigin(origin: string, { req: request, state }: HttpContext, proxies: Proxies): boolean {
  const [scheme, host] = origin.toLowerCase().split('://', 2);
  // An origin never contains the default port of its scheme, but some proxies forward it.
  const own = proxies
    .host(request)
    ?.toLowerCase()
    .replace(scheme === 'https' ? /:443$/ : /:80$/, '');
  state.isSameHost = host !== undefined && host === own;
  return state.isSameHost && scheme === proxies.scheme(request);
}

/** The paths of documents about signing in, and of endpoints for sign-in that clients use without a page. */
const OPEN_PATH = /^\/\.well-known\/|^\/oauth\/(?:register|token|revoke|jwks)$/;
/** The gateway as a registry; its routes are only read. */
const REGISTRY_PATH = /^\/v0\.1\/servers(?:\/|$)/;
/** The endpoint for MCP clients: there the 401 says where to begin. */
const MCP_PATH = /^\/mcp(?:\/[^/]+)?(?:\/(?:mcp|sse))?$/;

/** True for a request with credentials, and for the question whether they may be sent. */
function hasCredentials({ headers }: IncomingMessage): boolean {
  const asked = (headers['access-control-request-headers'] ?? '').toLowerCase().split(',');
  return CREDENTIAL_HEADERS.some(
    (name) => headers[name] !== undefined || asked.some((header) => header.trim() === name),
  );
}

const CREDENTIAL_HEADERS: readonly string[] = ['authorization', 'x-api-key', 'x-stagedoor-console'];

const PORT = /:\d{1,5}$/;
const ORIGIN_FORM = /^[/*]/;

/** Lets pages of one other origin, or of all (`*`), read the answer; without cookies, which only pages of this gateway use. */
function shareWith(
  origin: string,
  context: HttpContext,
  next: Next,
  allowed: readonly string[] = ALLOWED_HEADERS,
): unknown {
  const { req: request, res: response } = context;
  response.setHeader('Access-Control-Allow-Origin', origin);
  if (origin !== '*') context.state.variesByOrigin = true;
  response.setHeader('Access-Control-Expose-Headers', EXPOSED_HEADERS);
  if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined)
    return next();
  respond(context, noContent({ headers: preflightHeaders(request, allowed) }));
  return undefined;
}

const EXPOSED_HEADERS = wordsIn(
  'X-Request-ID X-Instance-ID Retry-After WWW-Authenticate Location X-Total-Count',
  'X-Next-Cursor X-RateLimit-Limit X-RateLimit-Remaining X-RateLimit-Reset Mcp-Session-Id',
).join(', ');

/** Headers that a page may send. Not `X-Stagedoor-Console`, with which the session cookie is accepted. */
const ALLOWED_HEADERS = wordsIn(
  'Accept Authorization Content-Type X-API-Key X-Request-ID Last-Event-ID',
  'Mcp-Session-Id MCP-Protocol-Version Mcp-Method Mcp-Name',
);

/** Headers named by tools. Source: MCP 2026-07-28 basic/transports/streamable-http, custom headers. */
const PARAMETER_HEADER = /^mcp-param-[a-z0-9_-]{1,64}$/i;

const WITHOUT_CREDENTIALS = ALLOWED_HEADERS.filter(
  (name) => !CREDENTIAL_HEADERS.includes(name.toLowerCase()),
);

function preflightHeaders({ headers }: IncomingMessage, allowed: readonly string[]): readonly string[] {
  const requested = (headers['access-control-request-headers'] ?? '').split(',').map((name) => name.trim());
  const parameters = requested.filter((name) => PARAMETER_HEADER.test(name));
  return [
    ...['Access-Control-Allow-Methods', 'GET, HEAD, POST, PUT, PATCH, DELETE'],
    ...['Access-Control-Allow-Headers', [...allowed, ...parameters].join(', ')],
    ...['Access-Control-Max-Age', String(HTTP_LIMITS.preflightSeconds)],
  ];
}
