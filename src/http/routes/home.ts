// The start page `/`: status and links as JSON; for browsers the console, or if it is not built a page without scripts and other files.

import Type from 'typebox';
import { API_VERSION } from '../../domain/version.ts';
import { bytes, json, noContent } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { text } from '../schemas.ts';
import { GatewayHealth, healthOf } from './health.ts';

const LINKS = {
  console: '/console',
  mcp: '/mcp',
  mcp_template: '/mcp/{template}',
  health: '/gateway/health',
  docs: '/docs',
  redoc: '/redoc',
  openapi: '/openapi.json',
} as const;

const HomeView = Type.Object({
  name: Type.Literal('stagedoor'),
  status: GatewayHealth.properties.status,
  version: text('2.0.0'),
  links: Type.Record(Type.String(), Type.String()),
});

export const homeRoutes: readonly Route[] = [
  defineRoute('GET', '/', {
    summary: 'Status and links: the console for browsers, JSON for other clients',
    scope: 'open',
    answers: {
      200: {
        description: 'Status and links',
        body: HomeView,
        types: ['application/json', 'text/html'],
        example: { name: 'stagedoor', status: 'healthy', version: API_VERSION, links: LINKS },
        headers: { Vary: '`Accept` decides between the two' },
      },
      303: {
        description: 'For browsers, when the console is built',
        headers: { Location: 'The console, relative to this address', Vary: '`Accept`' },
      },
    },
    handler: async ({ request }, { gateway, consoleFiles }) => {
      if (request.wantsPage && consoleFiles.isBuilt)
        return { ...noContent({ headers: [...COMMON, 'Location', 'console'] }), status: 303 };
      const { status } = await healthOf(gateway);
      const view = { name: 'stagedoor', status, version: API_VERSION, links: LINKS };
      if (!request.wantsPage) return json(200, view, { headers: COMMON });
      return { ...bytes(200, pageOf(status), { headers: PAGE }), type: 'text/html; charset=utf-8' };
    },
  }),
];

/** Not stored, because the status changes. */
const COMMON = ['Vary', 'Accept', 'Cache-Control', 'no-store'];
const POLICY =
  "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const PAGE = [...COMMON, 'Content-Security-Policy', POLICY, 'Referrer-Policy', 'no-referrer'];

/** It contains no input of a caller. */
function pageOf(status: string): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>Stagedoor</title>
  <link rel="icon" href="data:,">
</head>
<body>
  <h1>Stagedoor</h1>
  <p>A gateway for MCP servers. It is ${status} (<a href="gateway/health">health</a>).</p>
  <h2>MCP clients</h2>
  <p>The URL is the address of this page followed by <code>mcp/{template}</code> for one template, or by
  <code>mcp</code> for all templates that the caller may use. Clients of HTTP+SSE add <code>/sse</code> to either. Each
  request needs an API key in <code>X-API-Key</code>, unless authentication is off.</p>
  <h2>HTTP API</h2>
  <ul>
    <li><a href="docs">To read and to try</a></li>
    <li><a href="redoc">To read</a></li>
    <li><a href="openapi.json">OpenAPI 3.1</a></li>
  </ul>
</body>
</html>
`;
}
