// The connected accounts at backends that want OAuth: a list, and their end. The pages below /connections make them.

import Type, { type Static } from 'typebox';
import type { AuditLog } from '../../../auth/audit/audit-log.ts';
import { SCOPES } from '../../../domain/accounts/account.ts';
import { TemplateId } from '../../../domain/accounts/input-schemas.ts';
import { mayDo, type Principal, userIdIn } from '../../../domain/accounts/principal.ts';
import { isRestricted, mayUse } from '../../../domain/accounts/rights.ts';
import {
  connectionNotFound,
  insufficientPermissions,
  keysHaveNoAccount,
} from '../../../domain/errors/account-errors.ts';
import type { GatewayError } from '../../../domain/errors/errors.ts';
import { templateNotFound } from '../../../domain/errors/registry-errors.ts';
import { validationFailed } from '../../../domain/errors/request-errors.ts';
import {
  type AccountConnection,
  isResourceOf,
  SHARED,
} from '../../../domain/instances/account-connection.ts';
import { InstanceId } from '../../../domain/instances/instance.ts';
import { eachInGroups } from '../../../domain/time/task-groups.ts';
import type { TaskScheduler } from '../../../domain/time/task-scheduler.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import type { Server } from '../../../gateway/gateway-types.ts';
import { NullableTime, named, nullableText, Time, text } from '../../records/schemas.ts';
import { json, noContent } from '../../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';
import { ConnectionParams } from '../../routing/route-params.ts';
import type { Services } from '../../services.ts';

const ConnectionRecord = named('ConnectionRecord', {
  id: text('5d41402abc4b2a76b9719d911017c592'),
  who: Type.Enum(['user', 'shared']),
  /** Null for a shared account. */
  user_id: nullableText('3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10'),
  username: nullableText('ada'),
  /** The templates that use its tokens, as far as the caller may see them. */
  templates: Type.Array(Type.String(), { examples: [['mail']] }),
  issuer: text('https://login.mail.example'),
  /** The URL of the resource for which its tokens are. */
  resource: text('https://mcp.mail.example/mcp'),
  scopes: Type.Array(Type.String(), { examples: [['mail.read']] }),
  /** `ended`: it has to be connected again. */
  state: Type.Enum(['connected', 'ended']),
  reason: nullableText(),
  connected_at: Time,
  /** End of its access token, which is renewed before. */
  expires_at: NullableTime,
});

const NewConnectionBody = Type.Object(
  { template: TemplateId, instance_id: InstanceId },
  { examples: [{ template: 'mail', instance_id: 'mail-1' }] },
);
const ConnectionAddress = named('ConnectionAddress', {
  url: text('https://gateway.example/connections/p8vVbJ0dS2nS4b7k1mT0yQ3wR5uX8zA2cE6gI9lN1oQ'),
});

const ConfirmBody = Type.Object(
  {
    template: TemplateId,
    instance_id: InstanceId,
    /** The new one, as the reason of the instance names it. Default: the one that the server names now. */
    issuer: Type.Optional(Type.String({ minLength: 1, maxLength: 2048 })),
  },
  { examples: [{ template: 'mail', instance_id: 'mail-1' }] },
);
const ConfirmedServer = named('ConfirmedServer', {
  issuer: text('https://login.mail.example'),
  resource: text('https://mcp.mail.example/mcp'),
});

export const connectionRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/gateway/connections', {
    summary: 'Connected accounts at servers that want OAuth: your own, or all for an admin; newest first',
    scope: SCOPES,
    answers: { 200: { description: 'At most 1,000', body: Type.Array(ConnectionRecord) } },
    handler: async ({ principal }, { auth, gateway, scheduler, backendAccounts }) => {
      const owners = ownersSeenBy(principal);
      const vault = owners && (await backendAccounts?.open());
      const visible = (await vault?.list(owners?.owner)) ?? [];
      const users = await auth.accounts.users([...new Set(visible.map(({ owner }) => owner))]);
      const names = new Map(users.map(({ id, username }) => [id, username]));
      const templates = new Map<string, readonly string[]>();
      const uses = visible.length === 0 ? [] : await usesSeenBy(principal, gateway, scheduler);
      await scheduler.each(visible, (each) => {
        const use = useOf(each);
        if (!templates.has(use)) templates.set(use, templatesUsing(each, uses));
      });
      const shown = (each: AccountConnection) =>
        recordOf(each, names.get(each.owner), templates.get(useOf(each)) ?? []);
      return json(200, visible.map(shown));
    },
  }),
  defineRoute('POST', '/gateway/connections', {
    summary: 'The address at which a browser connects an account: your own, or the shared one for an admin',
    scope: SCOPES,
    request: { body: NewConnectionBody },
    answers: { 201: { description: 'It is valid for at least five minutes', body: ConnectionAddress } },
    errors: ['TEMPLATE_NOT_FOUND', 'SERVER_NOT_FOUND'],
    handler: async ({ body, principal }, services) => {
      const { template, instance_id: instanceId } = body;
      const { accounts, target } = targetOf(template, instanceId, principal, services);
      const owner = ownerOf(principal, target.auth.who);
      const { url } = await accounts.connectLinks.linkFor({ template, instanceId, owner });
      return json(201, { url }, { trail: { subject: `${template}/${instanceId} for ${owner}` } });
    },
  }),
  defineRoute('POST', '/gateway/connections/confirm', {
    summary: 'Use the authorization server that a server names, in place of the previous one',
    scope: 'admin',
    request: { body: ConfirmBody },
    answers: { 200: { description: 'It is used, and the instance is opened again', body: ConfirmedServer } },
    errors: ['TEMPLATE_NOT_FOUND', 'SERVER_NOT_FOUND', 'BACKEND_UNAVAILABLE'],
    handler: async ({ body, principal }, services) => {
      const { template, instance_id: instanceId, issuer } = body;
      const { accounts, target } = targetOf(template, instanceId, principal, services);
      const vault = await accounts.open();
      const { server, resource, changedTo } = await vault.confirm(target, issuer);
      if (changedTo !== undefined) throw wrong('issuer', `The server names ${changedTo}.`);
      services.gateway.restart(template, instanceId);
      const trail = { subject: `${template}/${instanceId}: ${server.issuer}` };
      return json(200, { issuer: server.issuer, resource }, { trail });
    },
  }),
  defineRoute('DELETE', '/gateway/connections/:connection_id', {
    summary: 'Disconnect an account: your own, or any for an admin; its tokens are revoked',
    scope: SCOPES,
    request: { params: ConnectionParams },
    answers: { 204: { description: 'No node uses it any more after 10 s' } },
    handler: async ({ params, principal }, { backendAccounts }) => {
      const { connection_id: id } = params;
      const owners = ownersSeenBy(principal);
      const vault = owners && (await backendAccounts?.open());
      if (!(await vault?.disconnect(id, owners?.owner))) throw connectionNotFound(id);
      return noContent();
    },
  }),
];

/** Records each connection that ended by itself; requests record the others. */
export function auditConnections(
  backendAccounts: Services['backendAccounts'],
  audit: Pick<AuditLog, 'record'>,
): void {
  backendAccounts?.changes$.subscribe(({ type, owner, resource, reason = 'unknown reason' }) => {
    if (type !== 'refresh-failed') return;
    audit.record({
      actor: 'gateway',
      actorName: 'gateway',
      action: 'REFRESH /gateway/connections',
      status: 0,
      subject: `${resource} for ${owner}: ${reason}`,
    });
  });
}

/**
 * What an instance wants an account for, if the caller may use its template. Throws TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND;
 * VALIDATION_ERROR: it wants none.
 */
function targetOf(
  template: string,
  instanceId: string,
  principal: Principal,
  { gateway, backendAccounts: accounts }: Pick<Services, 'gateway' | 'backendAccounts'>,
) {
  if (!mayUse(principal, template)) throw templateNotFound(template);
  gateway.instance(template, instanceId);
  const target = accounts?.targetOf(template, instanceId);
  if (accounts === undefined || target === undefined)
    throw wrong('instance_id', 'The instance wants no account.');
  return { accounts, target };
}

/** An admin connects the shared account, a user the own one. An API key has none. */
function ownerOf(principal: Principal, who: 'user' | 'shared'): string {
  if (who === 'shared') {
    if (!mayDo(principal, ['admin'])) throw insufficientPermissions(['admin']);
    return SHARED;
  }
  const userId = userIdIn(principal.id);
  if (userId === undefined) throw keysHaveNoAccount();
  return userId;
}

function wrong(field: string, msg: string): GatewayError {
  return validationFailed([{ loc: ['body', field], msg, type: 'value_error' }]);
}

/**
 * The filter by owner; without an owner it gives all connections. API keys and clients of a user see none: they only use them.
 */
function ownersSeenBy(principal: Principal): { readonly owner?: string } | undefined {
  if (mayDo(principal, ['admin']) && !isRestricted(principal)) return {};
  const { kind, userId, client } = principal;
  return kind !== 'user' || userId === undefined || client !== undefined ? undefined : { owner: userId };
}

/** A use of connected accounts: by the instances of a template at one endpoint. */
interface AccountUse {
  readonly template: string;
  readonly endpoint: string;
  readonly isShared: boolean;
}

/** The uses at the templates that the viewer may use. Those of the instances of a load balanced template are one. */
async function usesSeenBy(
  viewer: Principal,
  gateway: Pick<Gateway, 'templates' | 'eachServer'>,
  scheduler: TaskScheduler,
): Promise<readonly AccountUse[]> {
  const uses = new Map<string, AccountUse>();
  const note = ({ definition: { template, endpoint, auth } }: Server): void => {
    if (auth === undefined || endpoint === undefined) return;
    const isShared = auth.who === 'shared';
    uses.set(`${template} ${isShared} ${endpoint}`, { template, endpoint, isShared });
  };
  const visible = gateway.templates().filter((template) => mayUse(viewer, template));
  await eachInGroups(gateway.eachServer(visible), note, scheduler);
  return [...uses.values()];
}

/** The same for connections that the same templates use. */
function useOf({ owner, resource }: AccountConnection): string {
  return `${owner === SHARED} ${resource}`;
}

function templatesUsing({ owner, resource }: AccountConnection, uses: readonly AccountUse[]): string[] {
  const isUsed = ({ endpoint, isShared }: AccountUse) =>
    isShared === (owner === SHARED) && isResourceOf(resource, endpoint);
  return [...new Set(uses.filter(isUsed).map(({ template }) => template))];
}

function recordOf(
  { owner, connectedAt, expiresAt, scopes, ...others }: AccountConnection,
  username: string | undefined,
  templates: readonly string[],
): Static<typeof ConnectionRecord> {
  const isShared = owner === SHARED;
  return {
    ...others,
    scopes: [...scopes],
    templates: [...templates],
    who: isShared ? 'shared' : 'user',
    user_id: isShared ? null : owner,
    username: username ?? null,
    connected_at: connectedAt,
    expires_at: expiresAt,
  };
}
