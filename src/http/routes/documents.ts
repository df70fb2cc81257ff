// The API description, a document for programs and two pages for people, the console with its files, and the start page `/`.
// All are open, because they hold no data: a page requests data with the credentials of its user. Source: ADR 21, ADR 72.

import Type from 'typebox';
import { API_VERSION } from '../../domain/version.ts';
import { PAGE_ASSETS, type PageName } from '../docs/api-pages.ts';
import { CONSOLE_TYPES } from '../docs/console.ts';
import { AnyObject, text } from '../records/schemas.ts';
import { json, noContent, type Reply } from '../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../routing/route.ts';
import { GatewayHealth, ownHealth } from './gateway/health.ts';

const CACHED = { 'Cache-Control': 'How long to keep it: files with a hash in their name for ever' };

/** The path of a file of the console, which has no `%`: the router leaves one only where it could not decode a segment. */
const ConsoleParams = Type.Object({
  path: Type.String({ pattern: '^[^%\\u0000]*$', examples: ['templates'] }),
});

export const documentRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/openapi.json', {
    summary: 'This description, as OpenAPI 3.1',
    scope: 'open',
    answers: {
      200: {
        description: 'The document',
        body: AnyObject,
        headers: CACHED,
        example: { openapi: '3.1.0', info: { title: 'Stagedoor', version: '2.0.0' } },
      },
    },
    handler: (_, { documents }) => documents.description(),
  }),
  pageRoute('docs', 'The API documentation with Swagger UI, to read and to try'),
  pageRoute('redoc', 'The API documentation with ReDoc, to read'),
  assetRoute('docs', ['text/javascript', 'text/css', 'image/png']),
  assetRoute('redoc', ['text/javascript']),
  consoleRoute('/console', 'The console for browsers'),
  consoleRoute('/console/*path', 'A file of the console, or its page'),
];

function pageRoute(name: PageName, summary: string): HttpRoute {
  return defineRoute('GET', `/${name}`, {
    summary,
    scope: 'open',
    answers: {
      200: { description: 'The page', body: Type.String(), types: ['text/html'], headers: CACHED },
      308: { description: 'The address without the slash at its end', headers: { Location: 'That address' } },
    },
    handler: ({ request }, { documents }): Reply | Promise<Reply> =>
      // Links of the page are relative to its address.
      request.path.endsWith('/')
        ? { ...noContent({ headers: ['Location', `../${name}`] }), status: 308 }
        : documents.page(name),
  });
}

function assetRoute(name: PageName, types: readonly string[]): HttpRoute {
  return defineRoute('GET', `/${name}/assets/:file`, {
    summary: `A file of the page /${name}`,
    scope: 'open',
    request: { params: Type.Object({ file: Type.Enum(Object.keys(PAGE_ASSETS[name])) }) },
    answers: { 200: { description: 'The file', body: Type.String(), types, headers: CACHED } },
    handler: ({ params }, { documents }) => documents.asset(name, String(params.file)),
  });
}

function consoleRoute(path: string, summary: string): HttpRoute {
  return defineRoute('GET', path, {
    summary,
    scope: 'open',
    ...(path.includes('*') ? { request: { params: ConsoleParams } } : {}),
    answers: {
      200: {
        description: 'The page, or the file; compressed if `Accept-Encoding` allows gzip',
        body: Type.String(),
        types: [...CONSOLE_TYPES],
        headers: CACHED,
      },
      308: {
        description: 'The console with a slash at its end, or a page without what is below it',
        headers: { Location: 'That address' },
      },
    },
    errors: ['NOT_FOUND'],
    handler: ({ request }, services) => services.consoleReply(request),
  });
}

const LINKS = {
  console: '/console',
  mcp: '/mcp',
  mcp_template: '/mcp/{template}',
  health: '/gateway/health',
  docs: '/docs',
  redoc: '/redoc',
  openapi: '/openapi.json',
} as const;

const HomeRecord = Type.Object({
  name: Type.Literal('stagedoor'),
  status: GatewayHealth.properties.status,
  version: text('2.0.0'),
  links: Type.Record(Type.String(), Type.String()),
});

export const homeRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/', {
    summary: 'Status and links: the console for browsers, JSON for other clients',
    scope: 'open',
    answers: {
      200: {
        description: 'Status and links',
        body: HomeRecord,
        example: { name: 'stagedoor', status: 'healthy', version: API_VERSION, links: LINKS },
        headers: { Vary: '`Accept` decides between the two' },
      },
      303: {
        description: 'For browsers',
        headers: { Location: 'The console, relative to this address', Vary: '`Accept`' },
      },
    },
    handler: async ({ request }, { gateway, traffic }) => {
      if (request.wantsPage)
        return { ...noContent({ headers: [...COMMON, 'Location', 'console/'] }), status: 303 };
      const { status } = await ownHealth({ gateway, traffic });
      const view = { name: 'stagedoor', status, version: API_VERSION, links: LINKS };
      return json(200, view, { headers: COMMON });
    },
  }),
];

/** The answer is not stored, because the status changes. */
const COMMON = ['Vary', 'Accept', 'Cache-Control', 'no-store'];
