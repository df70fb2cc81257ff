// Instances come and go: register, deregister. A command is code that this machine will run, so where it may come from
// is checked here. Source: decisions, "Surface A bodies" and "Commands are code".

import Type, { type Static } from 'typebox';
import { commandNotAllowed, GatewayError, validationFailed } from '../../domain/errors.ts';
import { InstanceInput, RegisterInput } from '../../domain/instance.ts';
import type { LoadBalancerSettings } from '../../domain/template.ts';
import { HTTP_LIMITS } from '../limits.ts';
import { InstanceParams } from '../path-params.ts';
import { json, noContent } from '../reply.ts';
import type { RequestFacts } from '../request-facts.ts';
import { defineRoute, type Route } from '../route.ts';
import { CLOSED } from '../schemas.ts';
import { InstanceRecord, instanceRecord } from '../views/instance-record.ts';

const { template_name, load_balancer } = RegisterInput.properties;

/** The fields of `instance` beside `template_name`. */
const FlatRegisterInput = Type.Object({ template_name, load_balancer, ...InstanceInput.properties }, CLOSED);

const RegisterBody = Type.Union([RegisterInput, FlatRegisterInput]);

const Registered = Type.Intersect([
  InstanceRecord,
  Type.Object({ message: Type.String(), instance_id: Type.String() }),
]);

export const registrationRoutes: readonly Route[] = [
  defineRoute({
    method: 'POST',
    path: '/gateway/register',
    summary: 'Register an instance, or replace one in place',
    scope: 'gateway:write',
    request: {
      query: Type.Object({
        wait: Type.Optional(Type.Integer({ minimum: 0, maximum: HTTP_LIMITS.registrationWaitSeconds })),
      }),
      body: RegisterBody,
    },
    answers: {
      201: { description: 'Registered; it starts, and is healthy when `status` says so', body: Registered },
      200: { description: 'An instance with the same id was replaced', body: Registered },
    },
    errors: ['CONFIG_INCOMPLETE', 'ENDPOINT_NOT_ALLOWED', 'COMMAND_NOT_ALLOWED'],
    handler: async ({ query, body, request }, { gateway }) => {
      const { template, instance, loadBalancer, isFlat } = unfold(body);
      if (instance.command !== undefined) requireLocal(request);
      const { definition, replaced } = await gateway
        .register(template, instance, { loadBalancer, waitMs: (query.wait ?? 0) * 1000 })
        .catch((thrown: unknown) => {
          throw isFlat ? flattened(thrown) : thrown;
        });
      const { snapshot } = gateway.instance(template, definition.id);
      return json(replaced ? 200 : 201, {
        ...instanceRecord(definition, snapshot),
        instance_id: definition.id,
        message: `Instance "${definition.id}" is ${replaced ? 'replaced' : 'registered'}.`,
      });
    },
  }),
  defineRoute({
    method: 'DELETE',
    path: '/gateway/deregister/:template/:instance_id',
    summary: 'Take an instance out; its running calls may finish',
    scope: 'gateway:write',
    request: { params: InstanceParams },
    answers: { 204: { description: 'It gets no more calls and is not stored any more' } },
    errors: ['TEMPLATE_NOT_FOUND', 'SERVER_NOT_FOUND'],
    handler: async ({ params }, { gateway }) => {
      await gateway.deregister(params.template, params.instance_id);
      return noContent();
    },
  }),
];

interface Wanted {
  readonly template: string;
  readonly instance: InstanceInput;
  readonly loadBalancer: LoadBalancerSettings;
  readonly isFlat: boolean;
}

function unfold(body: Static<typeof RegisterBody>): Wanted {
  const { template_name: template, load_balancer: loadBalancer = {}, ...rest } = body;
  return 'instance' in rest
    ? { template, loadBalancer, instance: rest.instance, isFlat: false }
    : { template, loadBalancer, instance: rest, isFlat: true };
}

/** While authentication is off, being on this machine is what shows that somebody may run programs on it. */
function requireLocal(request: RequestFacts): void {
  if (request.isLocal && request.origin === undefined) return;
  throw commandNotAllowed('While authentication is off, commands are registered from this machine only.');
}

/** Findings point into `instance`; the caller of the flat form has not written one. */
function flattened(thrown: unknown): unknown {
  const items = thrown instanceof GatewayError ? thrown.facts.items : undefined;
  if (items === undefined) return thrown;
  return validationFailed(
    items.map((item) => ({
      ...item,
      loc: item.loc.filter((word, index) => index !== 1 || word !== 'instance'),
    })),
  );
}
