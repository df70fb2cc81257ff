// The grants of MCP clients: the permissions that users have given them, and their end. The authorization server makes grants.

import Type, { type Static } from 'typebox';
import type { Grants, ShownGrant } from '../../../auth/grants/grants.ts';
import { SCOPES } from '../../../domain/accounts/account.ts';
import { countedIdOf, grantIdIn, mayDo, type Principal } from '../../../domain/accounts/principal.ts';
import { isRestricted } from '../../../domain/accounts/rights.ts';
import { grantNotFound } from '../../../domain/errors/account-errors.ts';
import { NullableTime, named, Time, text } from '../../records/schemas.ts';
import { json, noContent } from '../../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';
import { GrantParams } from '../../routing/route-params.ts';

const GrantRecord = named('GrantRecord', {
  id: text('8c0e7f64-35a5-4a0e-9f43-8a3d9d2f6a11'),
  client_id: text('3f1b2c4d5e6f708192a3b4c5d6e7f801'),
  client_name: text('Claude Code'),
  user_id: text('3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10'),
  username: text('ada'),
  scopes: Type.Array(Type.Enum([...SCOPES]), { examples: [['tools:call', 'gateway:read']] }),
  /** The URL of the gateway, or of a part of it, where the tokens of the grant work. */
  resource: text('http://127.0.0.1:8080/mcp/everything'),
  created_at: Time,
  last_used_at: NullableTime,
  expires_at: Time,
});

function grantRecord({ grant, username }: ShownGrant): Static<typeof GrantRecord> {
  const { id, clientId, clientName, userId, scopes, resource, createdAt, lastUsedAt, expiresAt } = grant;
  return {
    id,
    client_id: clientId,
    client_name: clientName,
    user_id: userId,
    username,
    scopes: [...scopes],
    resource,
    created_at: createdAt,
    last_used_at: lastUsedAt ?? null,
    expires_at: expiresAt,
  };
}

export const grantRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/auth/grants', {
    summary: 'What MCP clients may do for their users: your own grants, or all for an admin; newest first',
    scope: SCOPES,
    answers: { 200: { description: 'At most 1,000', body: Type.Array(GrantRecord) } },
    handler: async ({ principal }, { auth }) => {
      const visible = await visibleTo(principal, auth.grants);
      return json(200, visible.map(grantRecord));
    },
  }),
  defineRoute('DELETE', '/auth/grants/:grant_id', {
    summary: 'End a grant: your own, or any for an admin; its client has to ask its user again',
    scope: SCOPES,
    request: { params: GrantParams },
    answers: {
      204: { description: 'Its tokens are refused, by other gateways of the database within 12 s' },
    },
    handler: async ({ params, principal }, { auth }) => {
      const { grant_id: id } = params;
      if (auth.grants === undefined || !(await mayEnd(principal, id, auth.grants))) throw grantNotFound(id);
      await auth.grants.revoke(id);
      return noContent();
    },
  }),
];

function seesAll(principal: Principal): boolean {
  return mayDo(principal, ['admin']) && !isRestricted(principal);
}

/** An API key has no grants, and a client sees no other one of its user. */
async function visibleTo(principal: Principal, grants: Grants | undefined): Promise<readonly ShownGrant[]> {
  if (grants === undefined) return [];
  if (seesAll(principal)) return grants.list();
  if (principal.kind !== 'user') return [];
  const own = await grants.list(principal.userId ?? countedIdOf(principal.id));
  return principal.client === undefined ? own : own.filter(({ grant }) => isOf(grant.id, principal));
}

async function mayEnd(principal: Principal, id: string, grants: Grants): Promise<boolean> {
  if (seesAll(principal)) return true;
  if (principal.kind !== 'user') return false;
  if (principal.client !== undefined) return isOf(id, principal);
  const [grant] = await grants.find([id]);
  return grant !== undefined && grant.userId === principal.userId;
}

function isOf(grantId: string, principal: Principal): boolean {
  return grantIdIn(principal.id) === grantId;
}
