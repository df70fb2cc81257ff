// One registered instance: change it, take it out of balancing and back, start it anew.
// Source: decisions, "Surface A bodies".

import type { Principal } from '../../domain/account.ts';
import { InstanceChange } from '../../domain/instance.ts';
import type { Gateway } from '../../gateway.ts';
import { InstanceParams } from '../path-params.ts';
import { type BytesReply, json } from '../reply.ts';
import { type AnswerDoc, defineRoute, type Route } from '../route.ts';
import { InstanceRecord, instanceRecord } from '../views/instance-record.ts';

const record: AnswerDoc = { description: 'The instance as it is now', body: InstanceRecord };
/** An instance of another node is changed there, and started and stopped only there. */
const ERRORS = ['TEMPLATE_NOT_FOUND', 'SERVER_NOT_FOUND', 'NO_HEALTHY_INSTANCE', 'SHUTTING_DOWN'] as const;

export const instanceRoutes: readonly Route[] = [
  defineRoute({
    method: 'PATCH',
    path: '/gateway/instances/:template/:instance_id',
    summary: 'Change weight or metadata while the instance runs',
    scope: 'gateway:write',
    request: { params: InstanceParams, body: InstanceChange },
    answers: { 200: record },
    errors: ERRORS,
    handler: async ({ params, body, principal }, { gateway }) => {
      await gateway.changeInstance(params.template, params.instance_id, body);
      return recordReply(gateway, params.template, params.instance_id, principal);
    },
  }),
  commandRoute(
    'drain',
    'No new calls until it is resumed, or the gateway starts again; running calls finish',
  ),
  commandRoute('resume', 'Take calls again after draining'),
  commandRoute('restart', 'Finish running calls, then open a new session or start a new process'),
];

function commandRoute(command: 'drain' | 'resume' | 'restart', summary: string): Route {
  return defineRoute({
    method: 'POST',
    path: `/gateway/instances/:template/:instance_id/${command}`,
    summary,
    scope: 'gateway:write',
    request: { params: InstanceParams },
    answers: { 200: record },
    errors: ERRORS,
    handler: ({ params, principal }, { gateway }) => {
      gateway[command](params.template, params.instance_id);
      return recordReply(gateway, params.template, params.instance_id, principal);
    },
  });
}

function recordReply(gateway: Gateway, template: string, id: string, viewer: Principal): BytesReply {
  return json(200, instanceRecord(gateway.instance(template, id), viewer));
}
