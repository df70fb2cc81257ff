// How a line of the audit log looks to API clients.

import Type, { type Static } from 'typebox';
import type { AuditEntry } from '../../domain/account.ts';
import { NullableText } from '../schemas.ts';

/** Schema of one line. `status` is 0 for what was done on the database, without HTTP. */
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

/** Makes the line. */
export function auditRecord(entry: AuditEntry): AuditRecord {
  const { id, at, actor, actorName, action, subject, status, address = null, requestId = null } = entry;
  return { id, at, actor, actor_name: actorName, action, subject, status, address, request_id: requestId };
}
