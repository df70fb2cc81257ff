// Clients of the built-in authorization server that an admin adds: they may get scopes that others do not. Clients
// that registered themselves are listed, too.

import Type, { type Static } from 'typebox';
import { checkLists } from '../../../auth/accounts/accounts.ts';
import { BadClient, type ClientRecord } from '../../../authorization-server/clients/client-record.ts';
import type { Clients } from '../../../authorization-server/clients/clients.ts';
import { SCOPES } from '../../../domain/accounts/account.ts';
import { clientNotFound } from '../../../domain/errors/account-errors.ts';
import { GatewayError } from '../../../domain/errors/errors.ts';
import { validationFailed } from '../../../domain/errors/request-errors.ts';
import { listsIn, shownListFields, shownLists, WRITTEN_LISTS } from '../../records/rights-fields.ts';
import { closed, NOT_STORED, NullableTime, named, Time, text } from '../../records/schemas.ts';
import { json, noContent } from '../../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';
import type { Services } from '../../services.ts';

const ID = '3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10';

const OAuthClient = named('OAuthClient', {
  client_id: text(ID),
  name: text('build server'),
  redirect_uris: Type.Array(Type.String(), { examples: [['http://127.0.0.1:33418/callback']] }),
  source: Type.Enum(['added', 'registered', 'document']),
  /** Scopes that the client may get besides those of every client. */
  scopes: Type.Array(Type.Enum([...SCOPES]), { examples: [['gateway:write']] }),
  ...shownListFields(null),
  created_at: Time,
  last_used_at: NullableTime,
});

/** The only answer that contains a secret. */
const NewOAuthClient = Type.Object({
  ...OAuthClient.properties,
  client_secret: Type.Optional(text('x'.repeat(43))),
});

const NewClientBody = closed({
  name: Type.String({ minLength: 1, maxLength: 60, examples: ['build server'] }),
  redirect_uris: Type.Array(Type.String({ minLength: 1, maxLength: 500 }), {
    minItems: 1,
    maxItems: 10,
    examples: [['http://127.0.0.1:33418/callback']],
  }),
  scopes: Type.Optional(
    Type.Array(Type.Enum([...SCOPES]), { maxItems: 16, examples: [['tools:call', 'gateway:write']] }),
  ),
  ...WRITTEN_LISTS,
  /** True for a client that can keep a secret. */
  confidential: Type.Optional(Type.Boolean({ examples: [false] })),
});

const ClientParams = Type.Object({
  client_id: Type.String({ pattern: '^[0-9a-f-]{36}$', examples: [ID] }),
});

export const clientRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/auth/clients', {
    summary: 'List the MCP clients that an admin added, and those that registered themselves',
    scope: 'admin',
    answers: { 200: { description: 'At most 1,000, the newest first', body: Type.Array(OAuthClient) } },
    errors: ['NOT_FOUND'],
    handler: async (_, services) => {
      const listed = await (await clientsOf(services)).list();
      return json(
        200,
        listed.map(({ client, createdAt, usedAt }) => recordOf(client, createdAt, usedAt)),
      );
    },
  }),
  defineRoute('POST', '/auth/clients', {
    summary: 'Add an MCP client: it needs no registration, and may get all of these scopes',
    scope: 'admin',
    request: { body: NewClientBody },
    answers: { 201: { description: 'The client, with its secret if it has one', body: NewOAuthClient } },
    errors: ['NOT_FOUND'],
    handler: async ({ body }, services) => {
      const clients = await clientsOf(services);
      const { name, redirect_uris: redirectUris, scopes = [], confidential = false, ...lists } = body;
      try {
        checkLists(lists);
        const input = { name, redirectUris, scopes, lists: listsIn(lists), isConfidential: confidential };
        const { client, createdAt } = await clients.add(input);
        const secret = client.secret === undefined ? {} : { client_secret: client.secret };
        const record = recordOf(client, createdAt);
        const trail = { subject: `/auth/clients/${client.id}` };
        return json(201, { ...record, ...secret }, { headers: NOT_STORED, trail });
      } catch (thrown) {
        if (!(thrown instanceof BadClient)) throw thrown;
        throw validationFailed([
          { loc: ['body', 'redirect_uris'], msg: thrown.message, type: 'value_error' },
        ]);
      }
    },
  }),
  defineRoute('DELETE', '/auth/clients/:client_id', {
    summary: 'Remove an MCP client, and end its grants',
    scope: 'admin',
    request: { params: ClientParams },
    answers: { 204: { description: 'Removed; its tokens are no longer valid' } },
    errors: ['NOT_FOUND'],
    handler: async ({ params }, services) => {
      if (!(await (await clientsOf(services)).remove(params.client_id)))
        throw clientNotFound(params.client_id);
      return noContent();
    },
  }),
];

/** Throws NOT_FOUND where there is no authorization server. */
async function clientsOf({ authorizationServer }: Services): Promise<Clients> {
  if (authorizationServer === undefined)
    throw new GatewayError('NOT_FOUND', 'Sign-in of MCP clients is off: see auth.oauth.');
  return authorizationServer.clients();
}

function recordOf(client: ClientRecord, createdAt: string, usedAt?: string): Static<typeof OAuthClient> {
  return {
    client_id: client.id,
    name: client.name,
    redirect_uris: [...client.redirectUris],
    source: client.source,
    scopes: [...client.scopes],
    ...shownLists(client.lists ?? {}),
    created_at: createdAt,
    last_used_at: usedAt ?? null,
  };
}
