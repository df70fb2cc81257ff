// The API description, a document for programs and two pages for people, and the console: its page and its files. All are open,
// because they hold no data: a page asks for data with the credentials of its user. Source: ADR 21, ADR 72.

import Type from 'typebox';
import { REDOC_ASSETS, SWAGGER_ASSETS } from '../docs/assets.ts';
import { CONSOLE_TYPES } from '../docs/console.ts';
import type { PageName } from '../docs/documents.ts';
import { noContent, type Reply } from '../reply.ts';
import { type AnswerDoc, defineRoute, type Route } from '../route.ts';
import { AnyObject } from '../schemas.ts';

const CACHED = {
  ETag: 'Send it as `If-None-Match` to get the body only when it changed',
  'Cache-Control': 'How long to keep it: files with a hash in their name for ever',
};
const UNCHANGED: AnswerDoc = { description: 'Not changed since', headers: CACHED };

/** No page of the console has a `%` in its path: one is left only where the router could not decode it. */
const ConsoleParams = Type.Object({
  path: Type.String({ pattern: '^[^%\\u0000]*$', examples: ['templates'] }),
});

export const documentRoutes: readonly Route[] = [
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
      304: UNCHANGED,
    },
    handler: ({ request }, { documents }) => documents.description(request.headers['if-none-match']),
  }),
  pageRoute('docs', 'The API to read and to try, by Swagger UI'),
  pageRoute('redoc', 'The API to read, by ReDoc'),
  assetRoute('docs', Object.keys(SWAGGER_ASSETS), ['text/javascript', 'text/css', 'image/png']),
  assetRoute('redoc', Object.keys(REDOC_ASSETS), ['text/javascript']),
  consoleRoute('/console', 'The console for browsers'),
  consoleRoute('/console/*path', 'A file of the console; its page for every other path, slashes included'),
];

function pageRoute(name: PageName, summary: string): Route {
  return defineRoute('GET', `/${name}`, {
    summary,
    scope: 'open',
    answers: {
      200: { description: 'The page', body: Type.String(), types: ['text/html'], headers: CACHED },
      304: UNCHANGED,
      308: { description: 'The address without the slash at its end', headers: { Location: 'That address' } },
    },
    handler: ({ request }, { documents }): Reply | Promise<Reply> =>
      // Links of the page are relative to its address.
      request.path.endsWith('/')
        ? { ...noContent({ headers: ['Location', `../${name}`] }), status: 308 }
        : documents.page(name, request.headers['if-none-match']),
  });
}

function assetRoute(name: PageName, files: readonly string[], types: readonly string[]): Route {
  return defineRoute('GET', `/${name}/assets/:file`, {
    summary: `A file of the page /${name}`,
    scope: 'open',
    request: { params: Type.Object({ file: Type.Enum([...files]) }) },
    answers: {
      200: { description: 'The file', body: Type.String(), types, headers: CACHED },
      304: UNCHANGED,
    },
    errors: ['NOT_FOUND'],
    handler: ({ params, request }, { documents }) =>
      documents.asset(name, String(params.file), request.headers['if-none-match']),
  });
}

function consoleRoute(path: string, summary: string): Route {
  return defineRoute('GET', path, {
    summary,
    scope: 'open',
    ...(path.includes('*') ? { request: { params: ConsoleParams } } : {}),
    answers: {
      200: {
        description: 'The page, or the file; compressed as `Accept-Encoding` allows',
        body: Type.String(),
        types: [...CONSOLE_TYPES],
        headers: CACHED,
      },
      304: UNCHANGED,
    },
    errors: ['NOT_FOUND'],
    handler: ({ request }, { consoleFiles }) => consoleFiles.reply(request),
  });
}
