// The console: its page and its files. Open, because they hold no data; what the page shows, it asks for with the
// credentials of its user. Source: ADR 72.

import Type from 'typebox';
import { CONSOLE_TYPES } from '../docs/console.ts';
import { defineRoute, type Route } from '../route.ts';

const CACHED = {
  ETag: 'Send it as `If-None-Match` to hear only of changes',
  'Cache-Control': 'How long to keep it: files with a hash in their name for ever',
};

/** No page of the console has a `%` in its path: one is left only where the router could not decode it. */
const ConsoleParams = Type.Object({
  path: Type.String({ pattern: '^[^%\\u0000]*$', examples: ['templates'] }),
});

export const consoleRoutes: readonly Route[] = [
  consoleRoute('/console', 'The console for browsers'),
  consoleRoute('/console/*path', 'A file of the console; its page for every other path, slashes included'),
];

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
      304: { description: 'Not changed since', headers: CACHED },
    },
    errors: ['NOT_FOUND'],
    handler: ({ request }, { consoleFiles }) => consoleFiles.reply(request),
  });
}
