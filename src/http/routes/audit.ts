// The audit log, for admins: newest entries first. Recording is ../middleware/audit-trail.ts.

import Type, { type Static } from 'typebox';
import type { AuditEntry } from '../../domain/account.ts';
import { HTTP_LIMITS } from '../limits.ts';
import { json } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { CLOSED, NullableText } from '../schemas.ts';

/** One entry. `status` is 0 for a change made on the database, without HTTP. */
export const AuditRecord = Type.Object({
  id: Type.String(),
  at: Type.String(),
  actor: Type.String(),
  actor_name: Type.String(),
  action: Type.String(),
  subject: Type.String(),
  status: Type.Integer(),
  address: NullableText,
  request_id: NullableText,
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
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: HTTP_LIMITS.pageRecords })),
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
