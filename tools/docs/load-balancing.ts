// The strategies and the settings of a template, from the tables in src/balancing.

import { DEFAULT_POLICY, TEMPLATE_ROWS } from '../../src/balancing/policy.ts';
import { describedSettings, shownLoadBalancer } from '../../src/balancing/policy-schemas.ts';
import { STRATEGIES } from '../../src/balancing/strategies.ts';
import { code, table } from './markdown.ts';

export function loadBalancingReference(): string {
  const strategies = Object.entries(STRATEGIES).map(([name, { meaning }]) => [code(name), meaning]);
  const defaults = new Map<string, unknown>(Object.entries(shownLoadBalancer(DEFAULT_POLICY)));
  const settings = describedSettings().map(({ name, description, schema }, index) => {
    const values = TEMPLATE_ROWS[index]?.values;
    const accepted = values?.kind === 'text' ? values.forms.map(code).join(', ') : valuesOf(schema);
    return [code(name), description, accepted, code(shown(defaults.get(name)))];
  });
  return [
    '## Strategies',
    table(['Strategy', 'A call goes to'], strategies),
    '## Settings of a template',
    table(['Setting', 'Meaning', 'Values', 'Default'], settings),
  ].join('\n\n');
}

function valuesOf(schema: ReturnType<typeof describedSettings>[number]['schema']): string {
  if ('enum' in schema && Array.isArray(schema.enum))
    return schema.enum.map((word) => code(String(word))).join(', ');
  const { patternProperties, properties, minimum, maximum } = Object(schema);
  if (properties !== undefined) return 'annotations of MCP,';
  if (patternProperties === undefined) return `${minimum} to ${maximum}`;
  const [each] = Object.values(patternProperties);
  return `${valuesOf(Object(each))} each`;
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
