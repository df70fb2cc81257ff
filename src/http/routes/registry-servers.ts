// This gateway as a registry of MCP servers, in the form of the official one (its API v0.1, server.json of
// 2025-12-11): its endpoints /mcp/{template} and /mcp/{view}, as remotes. With `registry.public` anyone reads
// it, and it has names and addresses only.

import Type, { type Static } from 'typebox';
import type { Principal } from '../../domain/accounts/principal.ts';
import { mayUseView } from '../../domain/accounts/rights.ts';
import { GatewayError } from '../../domain/errors/errors.ts';
import { quoted } from '../../domain/errors/request-errors.ts';
import { cutText } from '../../domain/text.ts';
import type { StoredView } from '../../domain/views/view.ts';
import { visibleTemplates } from '../callers/visible.ts';
import { closed, idIn, named, PageCursor, pageOf, QueryTime, text, timeIn } from '../records/schemas.ts';
import { json, type Reply } from '../replies/reply.ts';
import type { HttpRequest } from '../request.ts';
import { defineRoute, type HttpRoute } from '../routing/route.ts';
import type { Services } from '../services.ts';

const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json';

/** The metadata that clients of the official registry read. */
const OFFICIAL = 'io.modelcontextprotocol.registry/official';

const ServerDetail = named('RegistryServer', {
  $schema: Type.String(),
  name: text('com.example.gateway/everything'),
  title: Type.Optional(text('Everything')),
  description: text('Tools, resources and prompts of all kinds.'),
  version: text('1.0.0'),
  remotes: Type.Array(
    Type.Object({ type: text('streamable-http'), url: text('https://gateway.example.com/mcp/everything') }),
  ),
});

const ServerResponse = Type.Object({
  server: ServerDetail,
  _meta: Type.Object({
    [OFFICIAL]: Type.Object({
      status: text('active'),
      publishedAt: text('2026-11-20T12:00:00.000Z'),
      updatedAt: text('2026-11-20T12:00:00.000Z'),
      isLatest: Type.Boolean(),
    }),
  }),
});

const ServerList = Type.Object({
  servers: Type.Array(ServerResponse),
  metadata: Type.Object({
    count: Type.Integer(),
    /** Absent on the last page. */
    nextCursor: Type.Optional(text('Hx0q3VfTcom.example.gateway/everything')),
  }),
});

/** Name of the list in cursors. */
const LIST = 'registry';
/** Servers of one page, as at the official registry. */
const USUAL_PAGE = 30;
const MAX_PAGE = 100;

export const registryServerRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/v0.1/servers', {
    summary: 'What this gateway offers, as a registry of MCP servers',
    scope: ['gateway:read', 'tools:call'],
    isRegistry: true,
    request: {
      query: closed({
        /** A part of the name, in any case. */
        search: Type.Optional(Type.String({ maxLength: 200 })),
        cursor: PageCursor,
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_PAGE })),
        /** `latest`, or an exact one. */
        version: Type.Optional(Type.String({ maxLength: 255 })),
        updated_since: QueryTime,
        /** Has no effect: a deleted template is not listed. */
        include_deleted: Type.Optional(Type.Boolean()),
      }),
    },
    errors: ['INVALID_CURSOR'],
    answers: { 200: { description: 'In the order of their names', body: ServerList } },
    handler: ({ query, principal, request }, services) => {
      const { search = '', cursor, limit = USUAL_PAGE, version = 'latest', updated_since: since } = query;
      const after = idIn(LIST, cursor) ?? '';
      const sinceMs = timeIn('updated_since', since) ?? Number.NEGATIVE_INFINITY;
      const wanted = offered(services, principal, request).filter(
        ({ server, _meta: { [OFFICIAL]: meta } }) =>
          server.name.toLowerCase().includes(search.toLowerCase()) &&
          server.name > after &&
          (version === 'latest' || version === server.version) &&
          Date.parse(meta.updatedAt) >= sinceMs,
      );
      const { page: servers, nextCursor } = pageOf(LIST, wanted, limit, ({ server }) => server.name);
      const metadata = { count: servers.length, ...(nextCursor === null ? {} : { nextCursor }) };
      return shared({ servers, metadata }, request, services);
    },
  }),
  defineRoute('GET', '/v0.1/servers/:registry_name/versions/:version', {
    summary: 'One of the servers that this gateway offers, by its encoded name; `latest` is its version',
    scope: ['gateway:read', 'tools:call'],
    isRegistry: true,
    request: {
      params: Type.Object({
        registry_name: Type.String({
          pattern: '^[A-Za-z0-9.-]{1,255}/[A-Za-z0-9._-]{1,128}$',
          examples: ['com.example.gateway/everything'],
        }),
        version: Type.String({ pattern: '^[^\\s]{1,255}$', examples: ['latest'] }),
      }),
    },
    answers: { 200: { description: 'The server', body: ServerResponse } },
    handler: ({ params: { registry_name: name, version }, principal, request }, services) => {
      const found = offered(services, principal, request).find(
        ({ server }) => server.name === name && (version === 'latest' || version === server.version),
      );
      if (found === undefined)
        throw new GatewayError(
          'NOT_FOUND',
          `There is no server ${quoted(name)} in the version ${quoted(version)}.`,
        );
      return shared(found, request, services);
    },
  }),
];

/** A template, or a view, with the times of its record. */
interface Offer {
  readonly id: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly version?: string | undefined;
  readonly publishedAt: string;
  readonly updatedAt: string;
}

/** The templates and views that the caller may use, in the order of their names. */
function offered(
  services: Services,
  principal: Principal,
  { gatewayUrl }: HttpRequest,
): readonly Static<typeof ServerResponse>[] {
  const { gateway, registry } = services;
  const { isPublic = false, publicUrl = gatewayUrl } = registry ?? {};
  const namespace = new URL(publicUrl).hostname
    .split('.')
    .reverse()
    .join('.')
    .replaceAll(/[^a-z0-9.-]/g, '-');
  const templates = isPublic ? gateway.templates() : visibleTemplates(gateway, principal);
  const views = gateway.views
    .list()
    .filter(({ definition: { id } }) => isPublic || mayUseView(principal, id));
  const offers = [...templates.flatMap((id) => offerOf(services, id) ?? []), ...views.map(offerOfView)];
  return offers
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .map(({ id, publishedAt, updatedAt, ...texts }) => {
      const { title, description, version = '1.0.0' } = isPublic ? {} : texts;
      return {
        server: {
          $schema: SCHEMA,
          name: `${namespace}/${id}`,
          ...(title === undefined ? {} : { title: cutText(title, MAX_TEXT_LENGTH) }),
          description: cutText(description || `The MCP server ${id} of this gateway.`, MAX_TEXT_LENGTH),
          version,
          remotes: [{ type: 'streamable-http', url: `${publicUrl}/mcp/${id}` }],
        },
        _meta: { [OFFICIAL]: { status: 'active', publishedAt, updatedAt, isLatest: true } },
      };
    });
}

/** A template without an instance has nothing to offer. */
function offerOf({ gateway, definitions }: Services, id: string): Offer | undefined {
  const { instances } = gateway.template(id);
  const times = instances.flatMap(({ createdAt, updatedAt }) => [createdAt, updatedAt]).sort();
  const [publishedAt, updatedAt] = [times[0], times.at(-1)];
  if (publishedAt === undefined || updatedAt === undefined) return undefined;
  const { name: title, description, version } = definitions.get(id) ?? {};
  return { id, title, description, version, publishedAt, updatedAt };
}

function offerOfView({ definition: { id, title, description, version }, updatedAt }: StoredView): Offer {
  return { id, title, description, version, publishedAt: updatedAt, updatedAt };
}

/** The most characters of titles and descriptions, by the schema of server.json. */
const MAX_TEXT_LENGTH = 100;

/**
 * The reply, with the header for pages of all origins where everyone may read it; for a request with an origin, the check of
 * origins has set the header.
 */
function shared(body: object, request: HttpRequest, { registry }: Pick<Services, 'registry'>): Reply {
  const isSent = registry?.isPublic === true && request.headers.origin === undefined;
  return json(200, body, isSent ? { headers: ['Access-Control-Allow-Origin', '*'] } : {});
}
