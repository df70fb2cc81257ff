// Builds the console into web/dist. Names of files are relative, so that it works behind a path prefix of a proxy, and
// nothing is inlined: the policy of the page allows scripts and styles of the gateway only.

import { defineConfig } from 'vite';

/** The gateway that `npm run dev:console` talks to. */
const gateway = process.env.STAGEDOOR_URL ?? 'http://127.0.0.1:8000';
const API = ['/auth', '/gateway', '/mcp', '/events', '/servers', '/docs', '/openapi.json'];

export default defineConfig(({ command }) => ({
  root: import.meta.dirname,
  base: command === 'serve' ? '/console/' : './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  server: { proxy: Object.fromEntries(API.map((path) => [path, gateway])) },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
}));
