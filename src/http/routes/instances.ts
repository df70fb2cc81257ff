// One registered instance: change it, take it out of balancing and back, start it anew.
// Source: decisions, "Surface A bodies".

import Type from 'typebox';
import { InstanceInput } from '../../domain/instance.ts';
import type { Gateway } from '../../gateway.ts';
import { InstanceParams } from '../path-params.ts';
import { type BytesReply, json } from '../reply.ts';
import { type AnswerDoc, defineRoute, type Route } from '../route.ts';
import { CLOSED } from '../schemas.ts';
import { InstanceRecord, instanceRecord } from '../views/instance-record.ts';

const { weight, metadata } = InstanceInput.properties;
const InstanceChange = Type.Object({ weight, metadata }, CLOSED);

const record: AnswerDoc = { description: 'The instance as it is now', body: InstanceRecord };
const NOT_FOUND = ['TEMPLATE_NOT_FOUND', 'SERVER_NOT_FOUND'] as const;

export const instanceRoutes: readonly Route[] = [
  defineRoute({
    method: 'PATCH',
    path: '/gateway/instances/:template/:instance_id',
    summary: 'Change weight or metadata while the instance goes on',
    scope: 'gateway:write',
    request: { params: InstanceParams, body: InstanceChange },
    answers: { 200: record },
    errors: NOT_FOUND,
    handler: async ({ params, body }, { gateway }) => {
      await gateway.changeInstance(params.template, params.instance_id, body);
      return recordReply(gateway, params.template, params.instance_id);
    },
  }),
  commandRoute('drain', 'No new calls until it is resumed; running calls finish'),
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
    errors: NOT_FOUND,
    handler: ({ params }, { gateway }) => {
      gateway[command](params.template, params.instance_id);
      return recordReply(gateway, params.template, params.instance_id);
    },
  });
}

function recordReply(gateway: Gateway, template: string, id: string): BytesReply {
  const { definition, snapshot } = gateway.instance(template, id);
  return json(200, instanceRecord(definition, snapshot));
}
