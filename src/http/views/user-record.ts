// How a user looks to API clients: never with a password or its hash. Source: decisions, "User record".

import Type, { type Static } from 'typebox';
import { ROLES, type User } from '../../domain/account.ts';
import { NullableTemplates } from '../schemas.ts';

/** Schema of the record. `templates` is null when all may be used. */
export const UserRecord = Type.Object({
  id: Type.String(),
  username: Type.String(),
  email: Type.String(),
  role: Type.Enum([...ROLES]),
  is_superuser: Type.Boolean(),
  templates: NullableTemplates,
  is_active: Type.Boolean(),
  created_at: Type.String(),
  updated_at: Type.String(),
});
export type UserRecord = Static<typeof UserRecord>;

/** Makes the record. */
export function userRecord(user: User): UserRecord {
  return {
    id: user.id,
    username: user.username,
    email: user.email,
    role: user.role,
    is_superuser: user.role === 'admin',
    templates: user.templates === undefined ? null : [...user.templates],
    is_active: user.isActive,
    created_at: user.createdAt,
    updated_at: user.updatedAt,
  };
}
