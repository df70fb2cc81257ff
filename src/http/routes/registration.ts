// Registers and deregisters instances, and decides which caller may register which command: a command is code that this
// machine runs. The rule for callers without the scope `admin` is domain/command.ts.

import Type, { type Static } from 'typebox';
import { mayDo, type Principal } from '../../domain/account.ts';
import { commandRefusal, splitCommand } from '../../domain/command.ts';
import {
  BEHIND_A_PROXY,
  commandNotAllowed,
  insufficientPermissions,
  validationFailed,
} from '../../domain/error-catalogue.ts';
import { GatewayError, type ValidationItem } from '../../domain/errors.ts';
import { InstanceInput, RegisterInput } from '../../domain/instance.ts';
import type { LoadBalancerSettings } from '../../domain/template.ts';
import { HTTP_LIMITS } from '../limits.ts';
import { InstanceParams } from '../parameters.ts';
import { json, noContent } from '../reply.ts';
import type { HttpRequest } from '../request.ts';
import { defineRoute, type Route, type Services } from '../route.ts';
import { CLOSED, LOCATION, text } from '../schemas.ts';
import { declaredVariables } from '../server-config.ts';
import { requireTemplate } from '../visible.ts';
import { InstanceRecord, instanceRecord } from './instances.ts';

const { template_name, load_balancer } = RegisterInput.properties;

/** The fields of `instance` beside `template_name`. */
const FlatRegisterInput = Type.Object({ template_name, load_balancer, ...InstanceInput.properties }, CLOSED);

/** An instance and its template; also of a connection test. */
export const RegisterBody = Type.Union([RegisterInput, FlatRegisterInput]);

const Registered = Type.Intersect([
  InstanceRecord,
  Type.Object({ message: text('Instance "everything-1" is registered.'), instance_id: text('everything-1') }),
]);

export const registrationRoutes: readonly Route[] = [
  defineRoute('POST', '/gateway/register', {
    summary: 'Register an instance, or replace one in place',
    scope: 'gateway:write',
    request: {
      query: Type.Object(
        {
          wait: Type.Optional(
            Type.Integer({ minimum: 0, maximum: HTTP_LIMITS.registrationWaitSeconds, examples: [5] }),
          ),
        },
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
          mayBeUnhealthy: true,
          isLimited: principal.templates !== undefined,
        })
        .catch((thrown: unknown) => {
          throw isFlat ? relocatedFlat(thrown) : thrown;
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
  defineRoute('DELETE', '/gateway/deregister/:template/:instance_id', {
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

interface RegistrationRequest {
  readonly template: string;
  readonly instance: InstanceInput;
  readonly loadBalancer: LoadBalancerSettings;
  readonly isFlat: boolean;
}

/** The parts of a body, whichever of its two forms it has. */
export function unfold(body: Static<typeof RegisterBody>): RegistrationRequest {
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

/** Issues point into `instance`, which the flat form does not have. */
export function relocatedFlat(thrown: unknown): unknown {
  return relocated(thrown, (loc) => loc.filter((word, index) => index !== 1 || word !== 'instance'));
}

/** A registration and its caller. */
interface CommandRequest {
  readonly template: string;
  readonly instance: InstanceInput;
  readonly principal: Principal;
  readonly request: Pick<HttpRequest, 'isLocal' | 'origin'>;
}

/**
 * The instance as it may be registered; without the scope `admin` its command is split into exactly the words that were
 * checked. Throws COMMAND_NOT_ALLOWED, and INSUFFICIENT_PERMISSIONS for `force` without the scope `admin`.
 */
export function checkedCommand(
  { template, instance, principal, request }: CommandRequest,
  { auth, allowedCommands, definitions }: Pick<Services, 'auth' | 'allowedCommands' | 'definitions'>,
): InstanceInput {
  if (instance.command === undefined) return instance;
  if (!auth.isEnabled) {
    // Only a caller on this machine, outside a browser, may run programs on it.
    if (request.isLocal && request.origin === undefined) return instance;
    throw commandNotAllowed(
      `While authentication is off, commands are registered from this machine only, and not from a web page. ${BEHIND_A_PROXY}`,
    );
  }
  if (mayDo(principal, ['admin'])) return instance;
  if (instance.force === true) throw insufficientPermissions(['admin']);
  const words = wordsOf(instance);
  const wanted = { words, workingDir: instance.working_dir, env: instance.env_vars };
  const refusal = commandRefusal(wanted, {
    allowed: allowedCommands,
    declaredNames: declaredVariables(definitions.get(template)),
  });
  if (refusal !== undefined) throw commandNotAllowed(refusal);
  const [command = '', ...args] = words;
  return { ...instance, command, args };
}

/** Empty for a command that cannot be split, which no policy allows. */
function wordsOf({ command = '', args }: InstanceInput): readonly string[] {
  if (args !== undefined) return [command, ...args];
  const split = splitCommand(command);
  return 'words' in split ? split.words : [];
}

type Loc = ValidationItem['loc'];

/** Moves the issues of a VALIDATION_ERROR to where the route has the instance in its body; other errors stay unchanged. */
export function relocated(thrown: unknown, move: (loc: Loc) => Loc): unknown {
  const items = thrown instanceof GatewayError ? thrown.facts.items : undefined;
  if (items === undefined) return thrown;
  return validationFailed(items.map((item) => ({ ...item, loc: move(item.loc) })));
}
