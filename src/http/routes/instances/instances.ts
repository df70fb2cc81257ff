// The routes of one instance: its record; change, drain, resume and restart it. Source: ADR 6.

import Type from 'typebox';
import type { Principal } from '../../../domain/accounts/principal.ts';
import { InstanceChange } from '../../../domain/instances/instance.ts';
import { whenKnown } from '../../../domain/time/when-known.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { knownAtPeers, recordWith } from '../../all-nodes/instances.ts';
import { MissingNodes, partialField } from '../../all-nodes/other-members.ts';
import { InstanceRecord, instanceRecord } from '../../records/instance-record.ts';
import { type BytesReply, json } from '../../replies/reply.ts';
import { type AnswerDoc, defineRoute, type HttpRoute } from '../../routing/route.ts';
import { InstanceParams } from '../../routing/route-params.ts';

const CommandedRecord = Type.Object({ ...InstanceRecord.properties, partial: MissingNodes });

const record: AnswerDoc = { description: 'The instance as it is now', body: InstanceRecord };

const PATH = '/gateway/instances/:template/:instance_id';

export const instanceRoutes: readonly HttpRoute[] = [
  defineRoute('GET', PATH, {
    summary: 'One instance',
    scope: 'gateway:read',
    request: { params: InstanceParams },
    answers: { 200: record },
    handler: ({ params, principal }, { gateway, otherMembers }) => {
      const server = gateway.instance(params.template, params.instance_id);
      return whenKnown(knownAtPeers(gateway, principal, otherMembers), (known) =>
        json(200, recordWith(known, server, principal)),
      );
    },
  }),
  defineRoute('PATCH', PATH, {
    summary: 'Change weight or metadata while the instance runs, or its era, which opens it again',
    scope: 'gateway:write',
    request: { params: InstanceParams, body: InstanceChange },
    answers: { 200: record },
    errors: ['REGISTRY_FULL'],
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

function commandRoute(command: 'drain' | 'resume' | 'restart', summary: string): HttpRoute {
  return defineRoute('POST', `${PATH}/${command}`, {
    summary,
    scope: 'gateway:write',
    isForwarded: true,
    request: { params: InstanceParams },
    answers: { 200: { description: 'The instance as it is now', body: CommandedRecord } },
    errors: ['NODE_UNAVAILABLE'],
    handler: (input, { gateway, otherMembers }) => {
      const { params, principal } = input;
      const { definition, runner } = gateway.instance(params.template, params.instance_id);
      const other = runner === undefined ? undefined : otherMembers.runnerOf(runner);
      if (other !== undefined) return otherMembers.send(other, 'POST', input);
      gateway[command](params.template, params.instance_id);
      const record = instanceRecord(gateway.instance(params.template, params.instance_id), principal);
      // All nodes use an instance with an endpoint.
      if (definition.nodeId !== undefined || otherMembers.isAlone) return json(200, record);
      return otherMembers
        .sendToAll('POST', input)
        .then((partial) => json(200, { ...record, ...partialField(partial) }));
    },
  });
}

function recordReply(gateway: Gateway, template: string, id: string, viewer: Principal): BytesReply {
  return json(200, instanceRecord(gateway.instance(template, id), viewer));
}
