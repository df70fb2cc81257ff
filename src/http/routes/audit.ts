// The audit log as admins read it: who changed what, newest first. What is recorded is ../middleware/audit-trail.ts.

import Type from 'typebox';
import { HTTP_LIMITS } from '../limits.ts';
import { json } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { CLOSED, NullableText } from '../schemas.ts';
import { AuditRecord, auditRecord } from '../views/audit-record.ts';

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
