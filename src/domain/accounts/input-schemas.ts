// The schemas of templates' names and of accounts in requests. Apart from template-name.ts and account.ts, because
// commands need those two, but not typebox, which is half of the time of their start.

import Type from 'typebox';
import { MAX_TEMPLATE_LENGTH, TEMPLATE_PATTERN } from '../template-name.ts';
import { ROLE_PATTERN, SCOPES, USERNAME_PATTERN } from './account.ts';
import { RIGHTS_LIMITS, TOOL_ENTRY } from './rights.ts';

export const TemplateId = Type.String({
  pattern: TEMPLATE_PATTERN,
  maxLength: MAX_TEMPLATE_LENGTH,
  examples: ['everything'],
});

/** Names are compared without regard to case: `Ada` and `ada` are one user. */
export const Username = Type.String({ pattern: USERNAME_PATTERN, examples: ['ada'] });
/** The characters that a text for people may not have, for patterns: control characters, and those that hide or reorder text. */
const UNSEEN = '\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff';
/** A host without a dot is fine: `admin@localhost`. */
export const Email = Type.String({
  pattern: `^[^\\s@${UNSEEN}]{1,64}@[^\\s@${UNSEEN}]{1,189}$`,
  'x-words': 'an address such as ada@example.com, without spaces or invisible characters',
  examples: ['ada@localhost'],
});
export const KeyName = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: `^[^\\S${UNSEEN}]*[^\\s${UNSEEN}][^${UNSEEN}]*$`, // each run ends where the next one begins: linear
  'x-words': 'a text on one line that is not blank, without invisible characters',
  examples: ['nightly build'],
});
export const KeyPermissions = Type.Array(Type.Enum([...SCOPES]), {
  minItems: 1,
  maxItems: 16,
  examples: [['tools:call']],
});
/** Templates that a principal may use; absent: all. */
export const TemplateList = Type.Array(TemplateId, {
  maxItems: RIGHTS_LIMITS.entries.templates,
  uniqueItems: true,
});
/** Views that a principal may use; absent: see mayUseView. */
export const ViewList = Type.Array(TemplateId, { maxItems: RIGHTS_LIMITS.entries.views, uniqueItems: true });
/** Tools that a principal may call; absent: all. The order has a meaning. */
export const ToolList = Type.Array(Type.String({ pattern: TOOL_ENTRY }), {
  maxItems: RIGHTS_LIMITS.entries.tools,
  examples: [['github/issues_*', '!github/issues_delete']],
});
export const RoleName = Type.String({ pattern: ROLE_PATTERN, examples: ['user'] });
