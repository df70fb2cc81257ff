// The tools of a template with their approval, and the approval itself. Source: ADR 238.

import Type from 'typebox';
import { callable } from '../../../domain/lists/listed-tools.ts';
import { MissingNodes, partialField } from '../../all-nodes/other-members.ts';
import { Digest, learnWaiting, ownWaiting } from '../../all-nodes/waiting-tools.ts';
import { AnyObject, closed, text } from '../../records/schemas.ts';
import { jsonInTurns } from '../../replies/json-in-turns.ts';
import { json } from '../../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';
import { TemplateParams } from '../../routing/route-params.ts';
import type { Services } from '../../services.ts';

/** A tool of a template or a view, with its approval. */
export const TOOL_FIELDS = {
  name: text('search'),
  state: Type.Enum(['approved', 'new', 'changed', 'withheld'], {
    description: '`withheld`: clients could not use it; only lists of all templates leave it out',
  }),
  reason: Type.Optional(text('its definition has changed since it was approved')),
  /** The newest approved definition. */
  approved: Type.Optional(AnyObject),
  /** The newest definition that waits for approval. */
  listed: Type.Optional(AnyObject),
  waiting: Type.Optional(
    Type.Array(Type.Object({ digest: Digest, definition: AnyObject }), {
      description: 'All definitions that wait, the newest last: instances can differ',
    }),
  ),
};
const ToolRecord = Type.Object(TOOL_FIELDS);
type ToolRecord = Type.Static<typeof ToolRecord>;

export const Approving = closed({
  /** Absent: all. */
  tools: Type.Optional(
    Type.Union([Type.Literal('all'), Type.Array(Type.String({ minLength: 1 }), { maxItems: 10_000 })]),
  ),
  digests: Type.Optional(
    Type.Array(Digest, {
      maxItems: 80_000,
      description: 'Approves these definitions only, which were read. Absent: all that wait',
    }),
  ),
});

/** All tools of a template: approved ones with the newest approved definition, others with the listed one. */
async function toolsOf(
  template: string,
  { gateway, approvals }: Pick<Services, 'gateway' | 'approvals'>,
): Promise<ToolRecord[]> {
  const { policy, withheld } = gateway.template(template);
  const reasons = new Map(
    withheld.flatMap(({ list, name, reason }) => (list === 'tools' ? [[name, reason]] : [])),
  );
  if (policy.approve === 'pinned') {
    const states = await approvals.states(template);
    const known = new Set(states.map(({ tool }) => tool));
    return [
      ...states.map(({ tool, state, ...definitions }) => ({
        ...described(tool, state, reasons),
        ...definitions,
      })),
      ...[...reasons.keys()]
        .filter((tool) => !known.has(tool))
        .map((tool) => described(tool, 'withheld', reasons)),
    ];
  }
  const { items } = await gateway.list(template, 'tools');
  const names = new Set([...items.map(({ name }) => String(name)), ...reasons.keys()]);
  return [...names].map((name) => described(name, reasons.has(name) ? 'withheld' : 'approved', reasons));
}

function described(
  name: string,
  state: ToolRecord['state'],
  reasons: ReadonlyMap<string, string>,
): ToolRecord {
  const reason = reasons.get(name);
  return { name, state, ...(reason !== undefined && { reason }) };
}

const PATH = '/gateway/templates/:template/tools';

export const templateToolRoutes: readonly HttpRoute[] = [
  defineRoute('GET', PATH, {
    summary: 'The tools of a template, and whether their definitions are approved',
    scope: 'gateway:write',
    isForwarded: true,
    asksServers: true,
    request: { params: TemplateParams },
    answers: {
      200: {
        description: 'Of a template that is not pinned, every usable tool is approved',
        body: Type.Object({
          template_name: text('everything'),
          approve: Type.Enum(['none', 'pinned']),
          tools: Type.Array(ToolRecord),
          partial: MissingNodes,
        }),
      },
    },
    errors: ['NO_HEALTHY_INSTANCE', 'BACKEND_UNAVAILABLE', 'BACKEND_TIMEOUT', 'QUEUE_FULL', 'SHUTTING_DOWN'],
    handler: async ({ params: { template }, principal, request }, services) => {
      const { gateway, scheduler } = services;
      const { approve } = gateway.template(template).policy;
      if (request.isForwarded) return ownWaiting(template, services);
      const partial = await learnWaiting('templates', template, principal, services);
      const all = await toolsOf(template, services);
      const toolOf = ({ name }: ToolRecord) => ({ template, tool: name });
      const tools = await callable(principal, all, toolOf, scheduler);
      return jsonInTurns({ template_name: template, approve, tools, ...partialField(partial) }, scheduler);
    },
  }),
  defineRoute('POST', `${PATH}/approve`, {
    summary: 'Approve definitions of tools of a pinned template that wait',
    scope: 'admin',
    request: { params: TemplateParams, body: Approving },
    answers: {
      200: {
        description: 'The tools that waited for it',
        body: Type.Object({ template_name: text('everything'), approved: Type.Array(text('search')) }),
      },
    },
    errors: ['TOOL_NOT_FOUND', 'SHUTTING_DOWN'],
    handler: async ({ params: { template }, body, principal }, services) => {
      const { gateway, approvals } = services;
      const { tools = 'all', digests } = body;
      gateway.requireExisting(template);
      await learnWaiting('templates', template, principal, services);
      const approved = await approvals.approve(template, tools === 'all' ? undefined : tools, digests);
      return json(200, { template_name: template, approved });
    },
  }),
];
