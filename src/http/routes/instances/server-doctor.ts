// Examines the servers of a template for faults. It runs here, since only the gateway has their addresses and secrets.

import Type from 'typebox';
import { callable } from '../../../domain/lists/listed-tools.ts';
import { DENIED_NETWORKS } from '../../../domain/registration/instance-endpoint.ts';
import type { Finding } from '../../../gateway/doctor/faults.ts';
import { nullableText, text } from '../../records/schemas.ts';
import { jsonInTurns } from '../../replies/json-in-turns.ts';
import { withinShare } from '../../routing/bounded-work.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';
import { TemplateParams } from '../../routing/route-params.ts';
import type { Services } from '../../services.ts';

const FindingBody = Type.Object({
  /** See docs/reference/server-faults.md. */
  code: text('unsafe-name'),
  list: Type.Optional(text('tools')),
  /** Name of the item of the list. */
  name: Type.Optional(text('get weather')),
  message: text('get weather: many clients refuse this name.'),
  remedy: text('use letters, digits, `_` and `-`'),
});

/** The most concurrent examinations, and the part of them that one caller may run. */
export const EXAMINATIONS = { atOnce: 4, share: 0.5 } as const;

export const serverDoctorRoutes: readonly HttpRoute[] = [
  defineRoute('POST', '/gateway/templates/:template/doctor', {
    summary: 'Examine the servers of a template for faults; no tool is called',
    scope: 'gateway:write',
    changesNothing: true,
    errors: ['QUEUE_FULL'],
    request: { params: TemplateParams },
    answers: {
      200: {
        description: 'What was found at each instance; `ok` when there is nothing',
        body: Type.Object({
          template_name: text('everything'),
          ok: Type.Boolean(),
          instances: Type.Array(
            Type.Object({
              id: text('everything-1'),
              era: nullableText('legacy'),
              lists: Type.Record(Type.String(), Type.Integer()),
              findings: Type.Array(FindingBody),
            }),
          ),
        }),
      },
    },
    handler: async ({ params: { template }, principal, request }, services) => {
      const { gateway, scheduler } = services;
      gateway.requireExisting(template);
      const [examined, { remedyOf }] = await Promise.all([
        examine(services, template, principal.id, request.signal),
        import('../../../gateway/doctor/faults.ts'),
      ]);
      const toolOf = ({ list, name }: Finding) =>
        list === 'tools' && name !== undefined ? { template, tool: name } : undefined;
      const instances = await Promise.all(
        examined.map(async ({ instance, era, lists, findings }) => {
          const shown = await callable(principal, findings, toolOf, scheduler);
          const described = shown.map((finding) => ({ ...finding, remedy: remedyOf(finding.code) }));
          return { id: instance, era, lists, findings: described };
        }),
      );
      const ok = instances.every(({ findings }) => findings.length === 0);
      return jsonInTurns({ template_name: template, ok, instances }, scheduler);
    },
  }),
];

/** Examines in the share of the caller. Throws QUEUE_FULL. */
async function examine(services: Services, template: string, callerId: string, signal: AbortSignal) {
  const { gateway, clock, scheduler, examinations, deniedNetworks = DENIED_NETWORKS } = services;
  return withinShare(examinations, callerId, 'running examinations of servers', async () => {
    const { examineTemplate } = await import('../../../gateway/doctor/server-doctor.ts');
    return examineTemplate(gateway, template, { clock, scheduler, deniedNetworks, signal });
  });
}
