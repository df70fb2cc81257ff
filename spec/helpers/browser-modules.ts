// Serves the modules of the official client to web pages. An import map selects the builds for browsers, as a bundler
// would.

import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { startRawServer } from '../transports/raw-server.ts';

/** A separate origin that serves the modules. */
export interface ModuleServer {
  /** Pages of this origin can `import('@modelcontextprotocol/client')`. */
  readonly origin: string;
  close(): Promise<void>;
}

const root = new URL('../../node_modules/', import.meta.url);
const sdk = '@modelcontextprotocol/client';

/** The modules that the client imports by name, and their paths under node_modules. */
const IMPORTS: Readonly<Record<string, string>> = {
  [sdk]: `${sdk}/dist/index.mjs`,
  [`${sdk}/_shims`]: `${sdk}/dist/shimsBrowser.mjs`,
  '@modelcontextprotocol/core/internal': '@modelcontextprotocol/core/dist/internal.mjs',
  'eventsource-parser/stream': `${sdk}/node_modules/eventsource-parser/dist/stream.js`,
  eventsource: 'eventsource/dist/index.js',
  'eventsource-parser': 'eventsource-parser/dist/index.js',
  jose: 'jose/dist/webapi/index.js',
  'pkce-challenge': 'pkce-challenge/dist/index.browser.js',
  'zod/v4': 'zod/v4/index.js',
};

/** Starts the server on a free port. */
export async function serveModules(): Promise<ModuleServer> {
  const { port, close } = await startRawServer(async ({ url = '/' }, response) => {
    if (url === '/') {
      response.writeHead(200, { 'content-type': 'text/html' }).end(page());
      return;
    }
    const file = new URL(`.${url}`, root);
    const isModule = file.href.startsWith(root.href) && /\.m?js$/.test(file.pathname);
    const text = isModule ? await readFile(fileURLToPath(file)).catch(() => undefined) : undefined;
    response.writeHead(text === undefined ? 404 : 200, { 'content-type': 'text/javascript' }).end(text);
  });
  return { origin: `http://127.0.0.1:${port}`, close };
}

function page(): string {
  const imports = Object.fromEntries(Object.entries(IMPORTS).map(([name, path]) => [name, `/${path}`]));
  return `<!doctype html><link rel="icon" href="data:,"><script type="importmap">${JSON.stringify({ imports })}</script>`;
}
