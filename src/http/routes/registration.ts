// Instances come and go: register, deregister. Which commands may be registered is ../checked-command.ts.
// Source: decisions, "Surface A bodies".

import Type, { type Static } from 'typebox';
import { InstanceInput, RegisterInput } from '../../domain/instance.ts';
import type { LoadBalancerSettings } from '../../domain/template.ts';
import { checkedCommand } from '../checked-command.ts';
import { HTTP_LIMITS } from '../limits.ts';
import { InstanceParams } from '../path-params.ts';
import { relocated } from '../relocated.ts';
import { json, noContent } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { CLOSED, LOCATION } from '../schemas.ts';
import { requireTemplate } from '../visible.ts';
import { InstanceRecord, instanceRecord } from './instances.ts';

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
      query: Type.Object(
        { wait: Type.Optional(Type.Integer({ minimum: 0, maximum: HTTP_LIMITS.registrationWaitSeconds })) },
        CLOSED,
      ),
      body: RegisterBody,
    },
    answers: {
      201: {
        description: 'Registered; it starts, and is healthy when `status` says so',
        body: Registered,
        headers: LOCATION,
      },
      200: { description: 'An instance with the same id was replaced', body: Registered, headers: LOCATION },
    },
    errors: [
      'TEMPLATE_NOT_FOUND',
      'DUPLICATE_SERVER',
      'CONFIG_INCOMPLETE',
      'REGISTRY_FULL',
      'ENDPOINT_NOT_ALLOWED',
      'COMMAND_NOT_ALLOWED',
      'SHUTTING_DOWN',
    ],
    handler: async ({ query, body, request, principal }, services) => {
      const { gateway } = services;
      const { template, instance: wanted, loadBalancer, isFlat } = unfold(body);
      requireTemplate(principal, template);
      const instance = checkedCommand({ template, instance: wanted, principal, request }, services);
      const { definition, replaced } = await gateway
        .register(template, instance, {
          loadBalancer,
          waitMs: (query.wait ?? 0) * 1000,
          isLimited: principal.templates !== undefined,
        })
        .catch((thrown: unknown) => {
          throw isFlat ? relocated(thrown, withoutInstance) : thrown;
        });
      const subject = `/servers/${definition.serverId}`;
      const registered = {
        ...instanceRecord(gateway.instance(template, definition.id), principal),
        instance_id: definition.id,
        message: `Instance "${definition.id}" is ${replaced ? 'replaced' : 'registered'}.`,
      };
      return json(replaced ? 200 : 201, registered, { headers: ['Location', subject], trail: { subject } });
    },
  }),
  defineRoute({
    method: 'DELETE',
    path: '/gateway/deregister/:template/:instance_id',
    summary: 'Take an instance out; its running calls may finish',
    scope: 'gateway:write',
    request: { params: InstanceParams },
    answers: { 204: { description: 'It gets no more calls and is not stored any more' } },
    errors: ['TEMPLATE_NOT_FOUND', 'SERVER_NOT_FOUND', 'SHUTTING_DOWN'],
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
  if (!('instance' in rest)) return { template, loadBalancer, instance: rest, isFlat: true };
  const { instance, force } = rest;
  return {
    template,
    loadBalancer,
    instance: force === undefined ? instance : { force, ...instance },
    isFlat: false,
  };
}

/** Findings point into `instance`; the caller of the flat form has not written one. */
function withoutInstance(loc: readonly (string | number)[]): readonly (string | number)[] {
  return loc.filter((word, index) => index !== 1 || word !== 'instance');
}
