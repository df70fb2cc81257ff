// The documents by which an MCP client finds out where to sign in for a resource. They do not depend on which
// templates exist, and any origin may read them. Source: RFC 9728, ADR 205.

import Type from 'typebox';
import { CLIENT_SCOPES, type ResourcePath } from '../../domain/accounts/account.ts';
import type { SignIn } from '../../domain/accounts/resource.ts';
import { routeNotFound } from '../../domain/errors/request-errors.ts';
import { RESOURCE_DOCUMENT } from '../callers/challenge.ts';
import { NOT_STORED, named, text } from '../records/schemas.ts';
import { json, type Reply } from '../replies/reply.ts';
import type { HttpRequest } from '../request.ts';
import { defineRoute, type HttpRoute } from '../routing/route.ts';
import { TemplateParams } from '../routing/route-params.ts';
import type { Services } from '../services.ts';

const ProtectedResource = named('ProtectedResource', {
  resource: text('http://127.0.0.1:8080/mcp/everything'),
  authorization_servers: Type.Array(Type.String(), { examples: [['http://127.0.0.1:8080']] }),
  scopes_supported: Type.Array(Type.String(), { examples: [CLIENT_SCOPES] }),
  bearer_methods_supported: Type.Array(Type.String(), { examples: [['header']] }),
  resource_name: text('stagedoor: everything'),
});

export const wellKnownRoutes: readonly HttpRoute[] = [
  defineRoute('GET', RESOURCE_DOCUMENT, {
    ...about('Where MCP clients sign in for the gateway'),
    handler: ({ request }, services) => documentOf('', request, services),
  }),
  defineRoute('GET', `${RESOURCE_DOCUMENT}/mcp`, {
    ...about('Where MCP clients sign in for all templates as one server'),
    handler: ({ request }, services) => documentOf('/mcp', request, services),
  }),
  defineRoute('GET', `${RESOURCE_DOCUMENT}/mcp/:template`, {
    ...about('Where MCP clients sign in for a template, whether it exists or not'),
    request: { params: TemplateParams },
    handler: ({ params, request }, services) => documentOf(`/mcp/${params.template}`, request, services),
  }),
];

function about(summary: string) {
  return {
    summary,
    scope: 'open',
    answers: { 200: { description: 'The document', body: ProtectedResource } },
    errors: ['NOT_FOUND'],
  } as const;
}

/** Ours first: clients take the first one. */
function serversOf({ address, issuers = [], hasOwnServer = true }: SignIn): readonly string[] {
  return hasOwnServer ? [address.issuer, ...issuers] : issuers;
}

/**
 * Throws NOT_FOUND where clients cannot sign in: there is no sign-in, or the gateway was reached by a name that is not its
 * own.
 */
function documentOf(path: ResourcePath, request: HttpRequest, { signIn }: Pick<Services, 'signIn'>): Reply {
  const base = signIn?.address.baseFor(request.host);
  if (signIn === undefined || base === undefined) throw routeNotFound('GET', request.path);
  const about = path === '' ? '' : `: ${path === '/mcp' ? 'all templates' : path.slice('/mcp/'.length)}`;
  const document = {
    resource: `${base}${path}`,
    authorization_servers: serversOf(signIn),
    scopes_supported: CLIENT_SCOPES,
    bearer_methods_supported: ['header'],
    resource_name: `stagedoor${about}`,
  };
  return json(200, document, { headers: NOT_STORED });
}
