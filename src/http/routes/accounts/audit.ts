// The audit log, for admins. ../../middleware/audit-trail.ts records it.

import Type, { type Static } from 'typebox';
import { type AuditEntry, type AuditedCall, idAt } from '../../../domain/events/audit-entries.ts';
import { definedFields } from '../../../domain/json/json.ts';
import { LIMITS } from '../../../domain/limits.ts';
import {
  closed,
  idIn,
  integer,
  named,
  nullable,
  nullableText,
  PageCursor,
  PageLimit,
  pageOf,
  QueryTime,
  Time,
  text,
  timeIn,
} from '../../records/schemas.ts';
import { json } from '../../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';

const Outcome = Type.Enum(['result', 'tool_error', 'error', 'failed', 'cancelled'], { examples: ['failed'] });

const CallRecord = Type.Object({
  template: text('everything'),
  tool: text('echo'),
  /** The view through which the call came, if any. */
  view: nullableText('support'),
  instance_id: nullableText('everything-1'),
  outcome: Outcome,
  duration_ms: integer(12),
  attempts: integer(1),
  arguments_sha256: nullableText(),
  arguments: nullableText(),
});

/** `status`: 0 for a change on the database without HTTP; of a call the status that REST answers. */
const AuditRecord = named('AuditEntry', {
  id: text('019aa0b4-1f00-7000-8000-000000000001'),
  at: Time,
  actor: text('user:3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10'),
  actor_name: text('ada'),
  action: text('POST /gateway/register'),
  subject: text('/servers/everything-1'),
  status: integer(200),
  address: nullableText('127.0.0.1'),
  request_id: nullableText('7f3c2a51-6f0e-4d6b-9a63-0b7a2f1c9d44'),
  /**
   * Requests of this action from this address, without valid credentials or beyond those of one caller in a minute, that were
   * not recorded one by one; absent when there are none.
   */
  suppressed: Type.Optional(integer(12)),
  call: nullable(CallRecord),
});

function auditRecord(entry: AuditEntry): Static<typeof AuditRecord> {
  const { id, at, actor, actorName, action, subject, status, address = null, requestId = null } = entry;
  const { suppressed, call } = entry;
  return {
    id,
    at,
    actor,
    actor_name: actorName,
    action,
    subject,
    status,
    address,
    request_id: requestId,
    ...definedFields({ suppressed }),
    call: call === undefined ? null : callRecord(call),
  };
}

function callRecord(call: AuditedCall): Static<typeof CallRecord> {
  const { template, tool, view = null, instance = null, outcome, durationMs, attempts, digest = null } = call;
  return {
    template,
    tool,
    view,
    instance_id: instance,
    outcome,
    duration_ms: durationMs,
    attempts,
    arguments_sha256: digest,
    arguments: call.arguments ?? null,
  };
}

const TextFilter = Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.auditTextUnits }));
/** The beginning of the ids of that time. Throws VALIDATION_ERROR. */
function idOfTime(field: 'from' | 'to', text: string | undefined): string | undefined {
  const atMs = timeIn(field, text);
  return atMs === undefined ? undefined : idAt(atMs);
}

export const auditRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/gateway/audit', {
    summary: 'The audit log: changes, logins and calls of tools, newest first',
    scope: 'admin',
    request: {
      query: closed({
        limit: PageLimit,
        /** `next_cursor` of the page before. */
        cursor: PageCursor,
        /** Id or name. */
        actor: TextFilter,
        /** `tools/call` for calls, else method and path pattern. */
        action: TextFilter,
        status: Type.Optional(Type.Integer({ minimum: 0, maximum: 599 })),
        template: TextFilter,
        tool: TextFilter,
        view: TextFilter,
        outcome: Type.Optional(Outcome),
        from: QueryTime,
        to: QueryTime,
      }),
    },
    errors: ['INVALID_CURSOR'],
    answers: {
      200: {
        description: 'One page; `next_cursor` is null on the last one',
        body: Type.Object({ entries: Type.Array(AuditRecord), next_cursor: nullableText() }),
      },
    },
    handler: async ({ query, request }, { auth }) => {
      const { limit = 100, cursor, from, to, ...filter } = query;
      const after = idOfTime('from', from);
      const [before] = [idIn('audit', cursor), idOfTime('to', to)].filter((id) => id !== undefined).sort();
      // One entry more than requested shows whether there is a next page.
      const wanted = { limit: limit + 1, before, from: after, ...filter };
      const entries = await auth.audit.list(wanted, request.signal);
      const { page, nextCursor } = pageOf('audit', entries, limit, ({ id }) => id);
      return json(200, { entries: page.map(auditRecord), next_cursor: nextCursor });
    },
  }),
];
