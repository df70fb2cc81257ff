// The challenge by which MCP clients learn how to sign in: the header `WWW-Authenticate` of a 401 names the document of the path,
// and that of a 403 the scopes that another sign-in can get. routes/well-known.ts serves the documents. Source:
// RFC 9728, RFC 6750, ADR 205.

import type { Logger } from 'pino';
import { CLIENT_SCOPES, type ResourcePath, type Scope } from '../../domain/accounts/account.ts';
import type { Principal } from '../../domain/accounts/principal.ts';
import { type GatewayAddress, isResourcePath, type SignIn } from '../../domain/accounts/resource.ts';
import type { GatewayError } from '../../domain/errors/errors.ts';
import type { Challenge } from '../context.ts';
import type { HttpRoute } from '../routing/route.ts';
import { HOST, type Proxies } from './proxies.ts';

/** Path of the documents about resources; that of the resource follows. Source: RFC 9728 section 3.1. */
export const RESOURCE_DOCUMENT = '/.well-known/oauth-protected-resource';

/**
 * Makes the function that finds the resource of a request to a route: the one that its path names, also for REST; else the
 * gateway.
 */
export function resourceOfRoute(path: string): (pathName: string | undefined) => ResourcePath {
  if (path.startsWith('/mcp/:template'))
    return (pathName) => {
      const resource = `/mcp/${pathName}`;
      return isResourcePath(resource) ? resource : '';
    };
  const resource = path === '/mcp' || path.startsWith('/mcp/') ? '/mcp' : '';
  return () => resource;
}

/** Makes the challenges of one app: one for each route with credentials; none where no client can sign in. */
export function challenges(
  signIn: SignIn | undefined,
  proxies: Pick<Proxies, 'host'>,
  log: Pick<Logger, 'warn'>,
): (route: Pick<HttpRoute, 'path' | 'scope'>) => Challenge | undefined {
  if (signIn === undefined) return () => undefined;
  const { address } = signIn;
  let isWarned = false;
  /** Clients by another name get a plain 401: the operator has to say which address is the right one. */
  const warnOnce = (host: string | undefined): void => {
    if (isWarned || host === undefined || !HOST.test(host)) return;
    isWarned = true;
    log.warn(
      `MCP clients that reach the gateway as ${host} cannot sign in. If this is its address, add to gateway.yaml: public_url: https://${host}`,
    );
  };
  return (route) => (route.scope === 'open' ? undefined : challengeOf(route, address, proxies, warnOnce));
}

function challengeOf(
  { path, scope }: Pick<HttpRoute, 'path' | 'scope'>,
  address: GatewayAddress,
  proxies: Pick<Proxies, 'host'>,
  onOtherName: (host: string | undefined) => void,
): Challenge {
  const anyOf = [scope].flat();
  const resourceOf = resourceOfRoute(path);
  return ({ req, state, path }, error) => {
    if (error.status !== 401 && error.status !== 403) return undefined;
    const host = proxies.host(req);
    const base = address.baseFor(host);
    if (base === undefined) {
      onOtherName(host);
      return undefined;
    }
    const [, pathName] = NAME_IN_PATH.exec(path) ?? [];
    const document = `resource_metadata="${base}${RESOURCE_DOCUMENT}${resourceOf(pathName)}"`;
    if (error.status === 403) return stepUp(error, state.principal, document);
    const fault = error.code === 'AUTHENTICATION_REQUIRED' ? '' : 'error="invalid_token", ';
    return `Bearer ${fault}${document}, scope="${[...new Set([...CLIENT_SCOPES, ...anyOf])].join(' ')}"`;
  };
}

const NAME_IN_PATH = /^\/mcp\/([^/]+)/;

/**
 * The scopes that the operation needs with those that the token has, if both the account and the client may get
 * them: otherwise the client would ask again for ever.
 */
function stepUp(
  { code, facts: { requiredPermissions: needed = [] } }: GatewayError,
  principal: Principal | undefined,
  document: string,
): string | undefined {
  const { client, scopes } = principal ?? {};
  if (code !== 'INSUFFICIENT_PERMISSIONS' || client === undefined || scopes === undefined) return undefined;
  const missing = needed.find((scope) => client.obtainable.has(scope) && !scopes.has(scope));
  if (missing === undefined) return undefined;
  const wanted: readonly Scope[] = [...new Set([...scopes, missing])];
  return `Bearer error="insufficient_scope", ${document}, scope="${wanted.join(' ')}"`;
}
