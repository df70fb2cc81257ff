// The tools of a view with their approval, and the approval itself. Source: ADR 238.

import Type from 'typebox';
import { callable } from '../../../domain/lists/listed-tools.ts';
import { MissingNodes, partialField } from '../../all-nodes/other-members.ts';
import { learnWaiting, ownWaiting } from '../../all-nodes/waiting-tools.ts';
import { text } from '../../records/schemas.ts';
import { jsonInTurns } from '../../replies/json-in-turns.ts';
import { json } from '../../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';
import { ViewParams } from '../../routing/route-params.ts';
import { Approving, TOOL_FIELDS } from './template-tools.ts';
import { visibleView } from './views.ts';

const ViewTool = Type.Object({
  ...TOOL_FIELDS,
  template: text('everything'),
  /** Name at the server. */
  tool: text('echo'),
});

const PATH = '/gateway/views/:view/tools';

export const viewToolRoutes: readonly HttpRoute[] = [
  defineRoute('GET', PATH, {
    summary: 'The tools of a view, and whether their definitions are approved',
    scope: 'gateway:write',
    isForwarded: true,
    request: { params: ViewParams },
    answers: {
      200: {
        description:
          'By the names under which they are listed, or would be; of a view that is not pinned, every usable tool is approved',
        body: Type.Object({
          view: text('support'),
          approve: Type.Enum(['none', 'pinned']),
          tools: Type.Array(ViewTool),
          partial: MissingNodes,
        }),
      },
    },
    handler: async ({ params, principal, request }, services) => {
      const { gateway, scheduler } = services;
      const { definition } = visibleView(principal, gateway, params.view);
      const { id, approve = 'none' } = definition;
      if (request.isForwarded) return ownWaiting(id, services);
      const partial = await learnWaiting('views', id, principal, services);
      const tools = await callable(principal, await gateway.views.tools(id), (tool) => tool, scheduler);
      return jsonInTurns({ view: id, approve, tools, ...partialField(partial) }, scheduler);
    },
  }),
  defineRoute('POST', `${PATH}/approve`, {
    summary: 'Approve definitions of tools of a pinned view that wait',
    scope: 'admin',
    request: { params: ViewParams, body: Approving },
    answers: {
      200: {
        description: 'The tools that waited for it',
        body: Type.Object({ view: text('support'), approved: Type.Array(text('search')) }),
      },
    },
    errors: ['TOOL_NOT_FOUND', 'SHUTTING_DOWN'],
    handler: async ({ params, body: { tools = 'all', digests }, principal }, services) => {
      const { gateway } = services;
      const { id } = visibleView(principal, gateway, params.view).definition;
      await learnWaiting('views', id, principal, services);
      const approved = await gateway.views.approve(id, tools === 'all' ? undefined : tools, digests);
      return json(200, { view: id, approved: [...approved] });
    },
  }),
];
