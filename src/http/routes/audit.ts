// The audit log, for admins: newest entries first. Recording is ../middleware/audit-trail.ts.

import Type, { type Static } from 'typebox';
import type { AuditEntry } from '../../domain/account.ts';
import { HTTP_LIMITS } from '../limits.ts';
import { json } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { CLOSED, integer, NullableText, nullableText, Time, text } from '../schemas.ts';

/** One entry. `status` is 0 for a change made on the database, without HTTP. */
export const AuditRecord = Type.Object({
  id: text('019aa0b4-1f00-7000-8000-000000000001'),
  at: Time,
  actor: text('user:3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10'),
  actor_name: text('ada'),
  action: text('POST /gateway/register'),
  subject: text('/servers/everything-1'),
  status: integer(200),
  address: nullableText('127.0.0.1'),
  request_id: nullableText('7f3c2a51-6f0e-4d6b-9a63-0b7a2f1c9d44'),
});
export type AuditRecord = Static<typeof AuditRecord>;

export function auditRecord(entry: AuditEntry): AuditRecord {
  const { id, at, actor, actorName, action, subject, status, address = null, requestId = null } = entry;
  return { id, at, actor, actor_name: actorName, action, subject, status, address, request_id: requestId };
}

const DEFAULT_PAGE = 100;

export const auditRoutes: readonly Route[] = [
  defineRoute({
    method: 'GET',
    path: '/gateway/audit',
    summary: 'The audit log: changes and logins, newest first',
    scope: 'admin',
    request: {
      query: Type.Object(
        {
          limit: Type.Optional(
            Type.Integer({ minimum: 1, maximum: HTTP_LIMITS.pageRecords, examples: [DEFAULT_PAGE] }),
          ),
          /** `next_cursor` of the page before. */
          cursor: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9-]{1,64}$' })),
        },
        CLOSED,
      ),
    },
    answers: {
      200: {
        description: 'One page; `next_cursor` is null on the last one',
        body: Type.Object({ entries: Type.Array(AuditRecord), next_cursor: NullableText }),
      },
    },
    errors: [],
    handler: async ({ query }, { auth }) => {
      const { limit = DEFAULT_PAGE, cursor: before } = query;
      // One more than is asked for shows whether there is a next page.
      const entries = await auth.audit.list({ limit: limit + 1, before });
      const page = entries.slice(0, limit);
      const next_cursor = entries.length > limit ? (page.at(-1)?.id ?? null) : null;
      return json(200, { entries: page.map(auditRecord), next_cursor });
    },
  }),
];
