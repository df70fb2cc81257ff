// The snippets of the command `connect`, which set up an MCP client for a template or for all, for a client on any
// machine. src/connect makes them.

import Type, { type Static } from 'typebox';
import { type ConnectKind, locationText, stepsOf, targetOf } from '../../connect/connect-kind.ts';
import { CLIENT_TRANSPORTS, type ConnectTargets, remoteTargets } from '../../connect/connect-target.ts';
import { closed, text } from '../records/schemas.ts';
import { type BytesReply, json } from '../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../routing/route.ts';
import { TemplateParams } from '../routing/route-params.ts';
import type { Services } from '../services.ts';

const Snippet = Type.Object({
  kind: text('cursor'),
  title: text('Cursor'),
  /** `stdio`: by the program `stagedoor bridge`. */
  transport: Type.Enum(CLIENT_TRANSPORTS),
  /** Transports that the client can use. */
  transports: Type.Array(Type.Enum(CLIENT_TRANSPORTS)),
  text: text('{ "mcpServers": { "everything": { "url": "http://127.0.0.1:8080/mcp/everything" } } }'),
  location: Type.Optional(text('~/.cursor/mcp.json')),
  steps: Type.Array(Type.String()),
  /** Frequent problems and their remedies. */
  hints: Type.Array(Type.String()),
});

const request = {
  query: closed({
    transport: Type.Optional(
      Type.Enum(CLIENT_TRANSPORTS, {
        description: 'Of clients that can use both; the default is the MCP endpoint (`http`)',
      }),
    ),
  }),
};

const answers = {
  200: {
    description: 'One snippet for each kind of client; without keys, which are shown once only',
    body: Type.Object({ snippets: Type.Array(Snippet) }),
  },
};

export const connectRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/gateway/connect', {
    summary: 'How MCP clients are set up for all templates at once',
    scope: 'gateway:read',
    request,
    answers,
    handler: ({ query, request: { gatewayUrl } }, context) =>
      reply(undefined, query.transport, gatewayUrl, context),
  }),
  defineRoute('GET', '/gateway/connect/:template', {
    summary: 'How MCP clients are set up for a template: the snippets of the command `connect`',
    scope: 'gateway:read',
    request: { params: TemplateParams, ...request },
    answers,
    handler: ({ params, query, request: { gatewayUrl } }, context) => {
      context.gateway.requireExisting(params.template);
      return reply(params.template, query.transport, gatewayUrl, context);
    },
  }),
];

/** Requests to the HTTP API name one template, so clients that use it are omitted for all of them. */
async function reply(
  template: string | undefined,
  transport: string | undefined,
  url: string,
  { auth, signIn }: Pick<Services, 'auth' | 'signIn'>,
): Promise<BytesReply> {
  const { CONNECT_KINDS } = await import('../../connect/index.ts');
  const address = signIn?.address.baseFor(new URL(url).host);
  const targets = remoteTargets(template, url, auth.isEnabled, address);
  const kinds = CONNECT_KINDS.filter(({ usesApi = false }) => template !== undefined || !usesApi);
  return json(200, { snippets: kinds.map((kind) => snippetOf(kind, targets, transport)) });
}

function snippetOf(
  kind: ConnectKind,
  targets: ConnectTargets,
  wanted: string | undefined,
): Static<typeof Snippet> {
  const { name, title, transports, file, troubleshooting } = kind;
  const asked =
    transports.find((each) => each === wanted) ?? (transports.includes('http') ? 'http' : 'stdio');
  const target = targetOf(kind, targets, asked) ?? targets[asked];
  const { transport } = target;
  return {
    kind: name,
    title,
    transport,
    transports: [...transports],
    text: kind.snippet(target),
    ...(file === undefined ? {} : { location: locationText(file.locations) }),
    steps: stepsOf(kind, target),
    hints: [...troubleshooting],
  };
}
