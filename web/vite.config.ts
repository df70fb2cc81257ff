// Builds the console into web/dist. Names of files are relative, so that it works behind a path prefix of a proxy, and
// nothing is inlined: the policy of the page allows scripts and styles of the gateway only.

import { defineConfig, type Plugin } from 'vite';
import { REGISTRABLE_KINDS, TRANSPORT_TRAITS } from '../src/domain/instances/transport-kinds.ts';
import { ERA_REVISIONS } from '../src/domain/mcp/mcp.ts';

/** The gateway that `npm run dev:console` talks to. */
const gateway = process.env.STAGEDOOR_URL ?? 'http://127.0.0.1:8000';
const API = ['/auth', '/gateway', '/mcp', '/events', '/servers', '/docs', '/openapi.json'];

/** For JSX: the server of development reads it in one place, the build in another. */
const inject: Record<string, [string, string]> = { h: ['preact', 'h'], Fragment: ['preact', 'Fragment'] };

/** Leaves out what loads the further files of a chunk beforehand, 0.6 kB compressed: few pages have one, and no styles. */
const noPreloads: Plugin = {
  name: 'no-preloads',
  enforce: 'pre',
  apply: 'build',
  load: (id) =>
    id.endsWith('vite/preload-helper.js') ? 'export const __vitePreload = (load) => load();' : null,
};

/** The style comes before the script, so that the page paints without waiting for it. */
const styleFirst: Plugin = {
  name: 'style-first',
  apply: 'build',
  transformIndexHtml: {
    order: 'post',
    handler: (html) => html.replace('<script type="module"', '<script type="module" fetchpriority="low"'),
  },
};

/** The kinds of transport of an endpoint, from the table of the gateway: the name and the title of each. */
const endpointTransports = REGISTRABLE_KINDS.filter(
  (kind) => TRANSPORT_TRAITS[kind].reachedBy === 'endpoint',
).map((kind) => {
  const { title, onlyEra } = TRANSPORT_TRAITS[kind];
  return [kind, onlyEra === 'legacy' ? `${title} (older)` : title];
});

export default defineConfig(({ command }) => ({
  root: import.meta.dirname,
  base: command === 'serve' ? '/console/' : './',
  // Calls of `h` are half a kilobyte shorter, compressed, than those of the automatic runtime.
  oxc: {
    jsx: { runtime: 'classic', pragma: 'h', pragmaFrag: 'Fragment', development: false },
    inject,
  },
  define: {
    ENDPOINT_TRANSPORTS: JSON.stringify(endpointTransports),
    ERAS: JSON.stringify(Object.entries(ERA_REVISIONS)),
  },
  plugins: [noPreloads, styleFirst],
  server: { proxy: Object.fromEntries(API.map((path) => [path, gateway])) },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: false,
    rolldownOptions: {
      treeshake: { propertyReadSideEffects: false },
      transform: { inject },
      // One first script, although pages use parts of it; and one of forms, of which the template page uses a part.
      output: {
        codeSplitting: {
          groups: [
            { name: 'index', tags: ['$initial'] },
            { name: 'schema', test: /schema(-form)?\.tsx?$/ },
          ],
        },
      },
    },
    reportCompressedSize: false,
  },
}));
