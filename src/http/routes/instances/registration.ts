// Registers and deregisters instances, and tests connections before a registration.

import Type, { type Static } from 'typebox';
import { LoadBalancerSettings } from '../../../balancing/policy-schemas.ts';
import { TemplateId } from '../../../domain/accounts/input-schemas.ts';
import type { Principal } from '../../../domain/accounts/principal.ts';
import { hasAllTemplates } from '../../../domain/accounts/rights.ts';
import { type ErrorCode, GatewayError, hasCode, type ValidationItem } from '../../../domain/errors/errors.ts';
import { validationFailed } from '../../../domain/errors/request-errors.ts';
import { InstanceInput } from '../../../domain/instances/instance.ts';
import { pathWarnings } from '../../../domain/nodes/nodes.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import type { Server } from '../../../gateway/gateway-types.ts';
import type { Registration } from '../../../registry/registry-types.ts';
import { checkedCommand } from '../../callers/command-check.ts';
import { requireRightTo } from '../../callers/visible.ts';
import { HTTP_LIMITS } from '../../http-limits.ts';
import { InstanceRecord, instanceRecord } from '../../records/instance-record.ts';
import { closed, integer, LOCATION, text } from '../../records/schemas.ts';
import { json, located, noContent } from '../../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';
import { InstanceParams } from '../../routing/route-params.ts';
import type { Services } from '../../services.ts';
import { requireAdminToApprove } from '../templates/templates.ts';

const TEMPLATE = { template_name: TemplateId, load_balancer: Type.Optional(LoadBalancerSettings) };

/** A template with a nested instance, or both in one object. */
const RegisterBody = Type.Union([
  closed({ ...TEMPLATE, instance: InstanceInput }),
  closed({ ...TEMPLATE, ...InstanceInput.properties }),
]);

export const REGISTRATION_ERRORS: readonly ErrorCode[] = [
  ...([
    'TEMPLATE_NOT_FOUND',
    'DUPLICATE_SERVER',
    'DUPLICATE_VIEW',
    'CONFIG_INCOMPLETE',
    'REGISTRY_FULL',
  ] as const),
  ...(['ENDPOINT_NOT_ALLOWED', 'COMMAND_NOT_ALLOWED'] as const),
];

/** `wait`: seconds until the instance has to be healthy. */
export const WaitQuery = closed({
  wait: Type.Optional(
    Type.Integer({ minimum: 0, maximum: HTTP_LIMITS.registrationWaitSeconds, examples: [5] }),
  ),
});

const Registered = Type.Intersect([
  InstanceRecord,
  Type.Object({ message: text('Instance "everything-1" is registered.'), instance_id: text('everything-1') }),
]);

/** Lines of standard error in the answer to a connection test. */
const SHOWN_LINES = 20;

const TestSucceeded = Type.Object({
  ok: Type.Literal(true),
  era: Type.Enum(['legacy', 'modern', 'bare']),
  server: Type.Optional(Type.Object({ name: text('everything'), version: text('2.0.0') })),
  tools: integer(13),
  duration_ms: integer(240),
});

const TestFailed = Type.Object({
  ok: Type.Literal(false),
  error_code: text('BACKEND_UNAVAILABLE'),
  detail: text('The backend is unavailable: connection refused.'),
  /** The last lines that its program wrote. */
  stderr: Type.Array(Type.String()),
  duration_ms: integer(12),
});

export const registrationRoutes: readonly HttpRoute[] = [
  defineRoute('POST', '/gateway/register', {
    summary: 'Register an instance, or replace one in place',
    scope: 'gateway:write',
    request: { query: WaitQuery, body: RegisterBody },
    requestHeaders: {
      'If-Match': 'The `updated_at` of the version that was read, in quotes: another one is not replaced.',
    },
    answers: {
      201: {
        description: 'Registered; it starts, and is healthy when `status` says so',
        body: Registered,
        headers: LOCATION,
      },
      200: { description: 'An instance with the same id was replaced', body: Registered, headers: LOCATION },
    },
    errors: [...REGISTRATION_ERRORS, 'PRECONDITION_FAILED'],
    handler: async ({ query, body, request, principal }, services) => {
      const wanted = registrationIn(body);
      const { template } = wanted;
      requireRightTo(principal, template);
      const instance = checkedCommand({ ...wanted, principal, request }, services);
      const { gateway, backendAccounts } = services;
      const { definition, replaced } = await registerInstance(
        { ...wanted, instance, ifMatch: request.headers['if-match'] },
        query,
        principal,
        gateway,
      );
      const accountWarnings = await warningsOfAccount(backendAccounts, definition, principal);
      const record = registeredRecord(gateway.instance(template, definition.id), principal);
      const registered = {
        ...record,
        warnings: [...record.warnings, ...accountWarnings],
        instance_id: definition.id,
        message: `Instance "${definition.id}" is ${replaced ? 'replaced' : 'registered'}.`,
      };
      return located(replaced ? 200 : 201, `/servers/${definition.serverId}`, registered);
    },
  }),
  defineRoute('DELETE', '/gateway/deregister/:template/:instance_id', {
    summary: 'Deregister an instance; its running calls may finish',
    scope: 'gateway:write',
    request: { params: InstanceParams },
    answers: { 204: { description: 'It gets no more calls and is no longer stored' } },
    handler: async ({ params }, { gateway }) => {
      await gateway.deregister(params.template, params.instance_id);
      return noContent();
    },
  }),
  defineRoute('POST', '/gateway/test', {
    summary: 'Try the connection to an instance without registering it: at most 10 s',
    scope: 'gateway:write',
    request: { body: RegisterBody },
    answers: {
      200: {
        description:
          'The connection was opened, the tools were listed, and it was closed; or why that failed',
        body: Type.Union([TestSucceeded, TestFailed]),
      },
    },
    errors: [...REGISTRATION_ERRORS.filter((code) => code !== 'DUPLICATE_SERVER'), 'QUEUE_FULL'],
    handler: async ({ body, request, principal }, services) => {
      const wanted = registrationIn(body);
      requireRightTo(principal, wanted.template);
      const instance = checkedCommand({ ...wanted, principal, request }, services);
      const { durationMs: duration_ms, ...outcome } = await services.gateway
        .testConnection(wanted.template, instance, {
          signal: request.signal,
          callerId: principal.id,
          isLimited: !hasAllTemplates(principal),
        })
        .catch(rethrown(wanted.locate));
      request.signal.throwIfAborted();
      if (outcome.isOk) {
        const { era, server, tools } = outcome;
        return json(200, { ok: true, era, ...(server && { server }), tools, duration_ms });
      }
      const { code: error_code, message: detail } = outcome.error;
      const stderr = outcome.stderr.slice(-SHOWN_LINES);
      return json(200, { ok: false, error_code, detail, stderr, duration_ms });
    },
  }),
];

type Loc = ValidationItem['loc'];

interface RegistrationRequest {
  readonly template: string;
  readonly instance: InstanceInput;
  readonly loadBalancer?: LoadBalancerSettings;
  readonly ifMatch?: string | undefined;
  /** Maps a location in `{ instance }` to one in the body of the request. */
  readonly locate: (loc: Loc) => Loc;
}

function registrationIn(body: Static<typeof RegisterBody>): RegistrationRequest {
  const { template_name: template, load_balancer: loadBalancer = {}, ...rest } = body;
  if ('instance' in rest) return { template, loadBalancer, instance: rest.instance, locate: (loc) => loc };
  const locate = (loc: Loc) => loc.filter((word, index) => index !== 1 || word !== 'instance');
  return { template, loadBalancer, instance: rest, locate };
}

export function registerInstance(
  { template, instance, loadBalancer = {}, ifMatch, locate }: RegistrationRequest,
  { wait = 0 }: Static<typeof WaitQuery>,
  principal: Principal,
  gateway: Gateway,
): Promise<Registration> {
  const isLimited = !hasAllTemplates(principal);
  requireAdminToApprove(principal, loadBalancer);
  return gateway
    .register(template, instance, {
      ...{ loadBalancer, ifMatch, isLimited },
      ...{ waitMs: wait * 1000, mayBeUnhealthy: true },
    })
    .catch(rethrown(locate));
}

/** The record, with the warnings that only the answer to a registration has. */
export function registeredRecord(server: Server, viewer: Principal): InstanceRecord {
  const record = instanceRecord(server, viewer);
  return { ...record, warnings: [...record.warnings, ...pathWarnings(server.definition)] };
}

/**
 * Finds the authorization server of a backend that wants OAuth. A registration also confirms another one than
 * before, for all templates: so not by a caller of some.
 */
async function warningsOfAccount(
  backendAccounts: Services['backendAccounts'],
  { template, id, endpoint, auth }: Server['definition'],
  principal: Principal,
): Promise<string[]> {
  if (backendAccounts === undefined || endpoint === undefined || auth === undefined) return [];
  try {
    const vault = await backendAccounts.open();
    const target = { template, id, endpoint, auth };
    const accepted = hasAllTemplates(principal) ? 'any' : 'stored';
    const { way, backend } = await vault.discover(target, accepted);
    const { issuer } = backend.server;
    return way === undefined
      ? [`the authorization server ${issuer} does not register this gateway by itself: give a client_id`]
      : [];
  } catch (thrown) {
    if (hasCode(thrown, 'DATABASE_UNAVAILABLE'))
      return [`no account can be connected yet: the database does not answer`];
    const { BackendFetchFailure } = await import('../../../vault/backend-fetch.ts'); // loaded with the vault
    if (!(thrown instanceof BackendFetchFailure)) throw thrown;
    return [`no account can be connected yet: ${thrown.message}`];
  }
}

/** Throws an error again; the issues of a VALIDATION_ERROR get other locations. */
function rethrown(locate: RegistrationRequest['locate']): (thrown: unknown) => never {
  return (thrown) => {
    const items = thrown instanceof GatewayError ? thrown.facts.items : undefined;
    throw items === undefined
      ? thrown
      : validationFailed(items.map((item) => ({ ...item, loc: locate(item.loc) })));
  };
}
