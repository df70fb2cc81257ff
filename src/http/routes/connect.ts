// The snippets of the command `connect`, which set up an MCP client for a template, for a client on any machine. src/connect makes them.

import Type, { type Static } from 'typebox';
import {
  type Connections,
  type ConnectKind,
  locationText,
  remoteConnections,
  stepsOf,
} from '../../connect/kind.ts';
import { json } from '../reply.ts';
import { defineRoute, type Route, TemplateParams } from '../route.ts';
import { text } from '../schemas.ts';

const Snippet = Type.Object({
  kind: text('cursor'),
  title: text('Cursor'),
  text: text('{ "mcpServers": { "everything": { "url": "http://127.0.0.1:8080/mcp/everything" } } }'),
  location: Type.Optional(text('~/.cursor/mcp.json')),
  steps: Type.Array(Type.String()),
  /** Frequent problems and their remedies. */
  hints: Type.Array(Type.String()),
});

export const connectRoutes: readonly Route[] = [
  defineRoute('GET', '/gateway/connect/:template', {
    summary: 'How MCP clients are set up for a template: the snippets of the command `connect`',
    scope: 'gateway:read',
    request: { params: TemplateParams },
    answers: {
      200: {
        description: 'One snippet for each kind of client; without keys, which are shown once only',
        body: Type.Object({ snippets: Type.Array(Snippet) }),
      },
    },
    handler: async ({ params, request }, { gateway, auth }) => {
      const { template } = params;
      gateway.requireTemplate(template);
      const { CONNECT_KINDS } = await import('../../connect/index.ts');
      const connections = remoteConnections(template, request.gatewayUrl, auth.isEnabled);
      return json(200, { snippets: CONNECT_KINDS.map((kind) => snippetOf(kind, connections)) });
    },
  }),
];

function snippetOf(kind: ConnectKind, connections: Connections): Static<typeof Snippet> {
  const { name, title, transports, file, troubleshooting } = kind;
  const connection = connections[transports.includes('http') ? 'http' : 'stdio'];
  return {
    ...{ kind: name, title, text: kind.snippet(connection) },
    ...(file === undefined ? {} : { location: locationText(file.locations) }),
    steps: stepsOf(kind, connection),
    hints: [...troubleshooting],
  };
}
