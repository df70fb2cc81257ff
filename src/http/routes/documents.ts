// The API description: a document for programs, and two pages for people. Open, like the paths of the routes themselves.
// Source: ADR 21.

import Type from 'typebox';
import { REDOC_ASSETS, SWAGGER_ASSETS } from '../docs/assets.ts';
import type { PageName } from '../docs/documents.ts';
import { noContent, type Reply } from '../reply.ts';
import { type AnswerDoc, defineRoute, type Route } from '../route.ts';
import { AnyObject } from '../schemas.ts';

const CACHED = {
  ETag: 'Send it as `If-None-Match` to hear only of changes',
  'Cache-Control': 'How long to keep it',
};
const UNCHANGED: AnswerDoc = { description: 'Not changed since', headers: CACHED };

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
    handler: ({ request }, { documents }) => documents.description(request.ifNoneMatch),
  }),
  pageRoute('docs', 'The API to read and to try, by Swagger UI'),
  pageRoute('redoc', 'The API to read, by ReDoc'),
  assetRoute('docs', Object.keys(SWAGGER_ASSETS), ['text/javascript', 'text/css', 'image/png']),
  assetRoute('redoc', Object.keys(REDOC_ASSETS), ['text/javascript']),
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
      request.path.endsWith('/') ? moved(`../${name}`) : documents.page(name, request.ifNoneMatch),
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
      documents.asset(name, String(params.file), request.ifNoneMatch),
  });
}

function moved(location: string): Reply {
  return { ...noContent({ headers: ['Location', location] }), status: 308 };
}
