// The snippets of the command `connect`, which set up an MCP client for a template, for a client on any machine. src/connect makes them.

import Type, { type Static } from 'typebox';
import { type Connection, type ConnectKind, locationText } from '../../connect/kind.ts';
import { validationFailed } from '../../domain/error-catalogue.ts';
import { json } from '../reply.ts';
import { defineRoute, type Route, TemplateParams } from '../route.ts';
import { CLOSED, text } from '../schemas.ts';

const Snippet = Type.Object({
  kind: text('cursor'),
  title: text('Cursor'),
  transport: Type.Enum(['http', 'stdio']),
  /** Language of the text: `json`, `sh` and others. */
  language: text('json'),
  text: text('{ "mcpServers": { "everything": { "url": "http://127.0.0.1:8080/mcp/everything" } } }'),
  location: Type.Optional(text('~/.cursor/mcp.json')),
  steps: Type.Array(Type.String()),
  /** Frequent problems and their remedies. */
  hints: Type.Array(Type.String()),
  documentation: Type.Array(Type.String()),
});

export const connectRoutes: readonly Route[] = [
  defineRoute('GET', '/gateway/connect/:template', {
    summary: 'How MCP clients are set up for a template: the snippets of the command `connect`',
    scope: 'gateway:read',
    request: {
      params: TemplateParams,
      query: Type.Object(
        {
          llm: Type.Optional(Type.String({ pattern: '^[a-z0-9-]{1,40}$', examples: ['cursor'] })),
          /** URL of the gateway for clients. Default: that of the request. */
          url: Type.Optional(
            Type.String({
              pattern: '^https?://[A-Za-z0-9._~:/[\\]-]{1,300}$',
              examples: ['http://127.0.0.1:8080'],
            }),
          ),
        },
        CLOSED,
      ),
    },
    answers: {
      200: {
        description: 'One snippet for each kind of client; without keys, which are shown once only',
        body: Type.Object({ snippets: Type.Array(Snippet) }),
      },
    },
    errors: ['TEMPLATE_NOT_FOUND'],
    handler: async ({ params, query, request }, { gateway, auth }) => {
      const { template } = params;
      gateway.requireTemplate(template);
      const { CONNECT_KINDS } = await import('../../connect/index.ts');
      const kinds = CONNECT_KINDS.filter(({ name }) => query.llm === undefined || name === query.llm);
      if (kinds.length === 0) throw unknownKind(CONNECT_KINDS);
      const url = (query.url ?? request.gatewayUrl).replace(/\/+$/, '');
      const connections = connectionsOf(template, url, auth.isEnabled);
      return json(200, { snippets: kinds.map((kind) => snippetOf(kind, connections)) });
    },
  }),
];

type RemoteConnections = Readonly<Record<Connection['transport'], Connection>>;

/** Connections of a client that may run on another machine, where `stagedoor` has to be installed. */
function connectionsOf(template: string, url: string, needsKey: boolean): RemoteConnections {
  const key = needsKey ? { variable: 'STAGEDOOR_API_KEY' } : undefined;
  const args = ['bridge', template, '--url', url];
  return {
    http: { transport: 'http', template, url, key, endpoint: `${url}/mcp/${template}` },
    stdio: { transport: 'stdio', template, url, key, program: 'bridge', command: 'stagedoor', args, env: {} },
  };
}

function snippetOf(kind: ConnectKind, connections: RemoteConnections): Static<typeof Snippet> {
  const { name, title, language, transports, file, troubleshooting, documentation } = kind;
  const connection = connections[transports.includes('http') ? 'http' : transports[0]];
  return {
    ...{ kind: name, title, transport: connection.transport, language, text: kind.snippet(connection) },
    ...(file === undefined ? {} : { location: locationText(file.locations) }),
    steps: [...kind.steps(connection)],
    hints: [...troubleshooting],
    documentation: [...documentation],
  };
}

function unknownKind(kinds: readonly ConnectKind[]) {
  const msg = `Input should be one of ${kinds.map(({ name }) => name).join(', ')}`;
  return validationFailed([{ loc: ['query', 'llm'], msg, type: 'enum' }]);
}
