// The settings of the gateway that are the defaults of templates: rows of the table in balancing/policy.ts.

import { type AnyRow, type KeyExcept, POLICY_ROWS, type TemplatePolicy } from '../balancing/policy.ts';
import { definedFields } from '../domain/json/json.ts';
import * as types from './setting-types.ts';
import { type Setting, setting } from './setting-types.ts';

/** The rows of balancing/policy.ts that the gateway sets. */
export function policySettings(): { readonly [Key in KeyExcept<'template'>]: Setting<TemplatePolicy[Key]> } {
  const rows = POLICY_ROWS.filter(({ setBy }) => setBy !== 'template').map((row) => [
    row.key,
    policySetting(row),
  ]);
  return Object.fromEntries(rows) as ReturnType<typeof policySettings>; // `fromEntries` loses the type of each
}

function policySetting({
  name,
  values,
  default: value,
  setBy,
  doc,
  flag,
  variable,
}: AnyRow): Setting<unknown> {
  return setting({
    key: `load_balancer.${name}`,
    mustAgree: true,
    ...definedFields({ flag, variable }),
    kind: typeOf(values),
    default: value,
    doc: setBy === 'default' ? `${doc} A template may have its own.` : doc,
  });
}

/** A value as text of the command line, of the environment or of gateway.yaml. */
function typeOf(values: AnyRow['values']): types.SettingType<unknown> {
  switch (values.kind) {
    case 'choice':
      return types.choice(
        values.words,
        Object.fromEntries(values.aliases.map((alias) => [alias, String(values.read(alias))])),
      );
    case 'text':
      return types.matching(
        values.forms.map((form) => `\`${form}\``).join(' or '),
        new RegExp(values.pattern),
      );
    case 'whole':
      return types.integerWithin(values.least, values.most);
    case 'seconds':
      return types.seconds(values.least, values.most);
    case 'secondsByTool':
    case 'hintsByTool':
      throw new Error('tools belong to templates');
  }
}
