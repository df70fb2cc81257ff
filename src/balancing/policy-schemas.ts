// Schemas and conversions of a template's load balancer settings, as they are written and shown. They are made from the
// table in policy.ts.

import Type, { type TSchema, type TSchemaOptions } from 'typebox';
import { ToolAnnotations } from '../domain/views/view-schema.ts';
import { type AnyRow, type LoadBalancer, POLICY_ROWS, TEMPLATE_ROWS, type TemplatePolicy } from './policy.ts';

/** The most tools that may have a timeout of their own. */
const MAX_TOOLS = 256;
const EXAMPLES = [{ strategy: 'least_connections', timeout: 30 }];

/** Settings as users write them: times in seconds; `weighted` is an alias of a strategy. Source: ADR 4. */
export type LoadBalancerSettings = Partial<LoadBalancer>;
export const LoadBalancerSettings = Type.Unsafe<LoadBalancerSettings>(
  optional(
    fieldsOf(TEMPLATE_ROWS, (row) => schemasOf(row).written),
    { schemaName: 'LoadBalancerSettings', examples: EXAMPLES },
  ),
);

/**
 * A change of settings. `null` removes a setting, so that its default applies again: that of the definition,
 * otherwise that of the gateway.
 */
export type LoadBalancerChange = { [Name in keyof LoadBalancerSettings]?: LoadBalancerSettings[Name] | null };
export const LoadBalancerChange = Type.Unsafe<LoadBalancerChange>(
  optional(
    fieldsOf(TEMPLATE_ROWS, (row) => Type.Union([schemasOf(row).written, Type.Null()])),
    { schemaName: 'LoadBalancerChange', examples: EXAMPLES },
  ),
);

/** The settings in force: those of a template over the defaults of the gateway, whose times may have decimals. */
export const ShownLoadBalancer = Type.Unsafe<LoadBalancer>(
  Type.Object(
    fieldsOf(TEMPLATE_ROWS, (row) => schemasOf(row).shown),
    { schemaName: 'LoadBalancer' },
  ),
);

/** The defaults of the gateway, as an embedding program gives them: times are in milliseconds. */
export const PolicyOptions = Type.Unsafe<Partial<TemplatePolicy>>(
  optional(fieldsOf(POLICY_ROWS, (row) => schemasOf(row).exact, 'key')),
);

/**
 * The settings that a template may have, to build a form. `schema` is without aliases, and names the meanings
 * of choices.
 */
export function describedSettings() {
  return TEMPLATE_ROWS.map((row) => {
    const { name, title, doc: description, values } = row;
    if (values.kind !== 'choice') return { name, title, description, schema: schemasOf(row).written };
    const enumNames = values.words.map((word) => [word, values.meanings.get(word) ?? []].flat().join(': '));
    return { name, title, description, schema: { enum: values.words, enumNames } };
  });
}

export function shownLoadBalancer(policy: TemplatePolicy): LoadBalancer {
  const present = new Map<string, unknown>(Object.entries(policy));
  const entries = TEMPLATE_ROWS.map(({ key, name, values }) => [name, values.show(present.get(key))]);
  return Object.fromEntries(entries) as LoadBalancer; // `fromEntries` loses the type of each
}

function fieldsOf(
  rows: readonly AnyRow[],
  schemaOf: (row: AnyRow) => TSchema,
  name: 'name' | 'key' = 'name',
): Record<string, TSchema> {
  return Object.fromEntries(rows.map((row) => [row[name], schemaOf(row)]));
}

function optional(fields: Record<string, TSchema>, options: TSchemaOptions = {}) {
  return Type.Partial(Type.Object(fields), { additionalProperties: false, ...options });
}

/** The schemas of a setting: `written` for requests and files, `shown` for answers, `exact` for the policy. */
function schemasOf({ values, default: value }: AnyRow) {
  const example = { examples: [values.show(value)] };
  switch (values.kind) {
    case 'choice': {
      const exact = Type.Enum([...values.words]);
      const shown = Type.Enum([...values.words], example);
      return { written: Type.Enum([...values.words, ...values.aliases]), shown, exact };
    }
    case 'text': {
      const exact = Type.String({ pattern: values.pattern });
      return { written: exact, shown: Type.String(example), exact };
    }
    case 'whole': {
      const whole = Type.Integer({ minimum: values.least, maximum: values.most });
      return { written: whole, shown: Type.Integer(example), exact: whole };
    }
    case 'seconds': {
      const { least, most } = values;
      const written = Type.Integer({ minimum: Math.ceil(least), maximum: most });
      return {
        written,
        shown: Type.Number(example),
        exact: Type.Number({ minimum: 1, maximum: most * 1000 }),
      };
    }
    case 'hintsByTool': {
      const hints = byTool(ToolAnnotations, { report: { readOnlyHint: true } });
      return { written: hints, shown: hints, exact: hints };
    }
    case 'secondsByTool': {
      const { least, most } = values;
      const written = byTool(Type.Number({ minimum: least, maximum: most }), { report: 300 });
      const exact = byTool(Type.Number({ minimum: 1, maximum: most * 1000 }), { report: 300_000 });
      return { written, shown: written, exact };
    }
  }
}

function byTool(value: TSchema, example: Readonly<Record<string, unknown>>) {
  return Type.Record(Type.String({ pattern: '^[\\s\\S]{1,256}$' }), value, {
    additionalProperties: false,
    maxProperties: MAX_TOOLS,
    examples: [example],
  });
}
