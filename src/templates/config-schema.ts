// The settings of the instances of a template, from its `config_schema`: a JSON Schema whose properties also name the place of a
// value. `env_mapping` is a variable, `command_arg` a word of the command, `header_mapping` a header of HTTP.

import { isJsonObject, type JsonObject, type JsonValue } from '../domain/json/json.ts';
import type { TemplateDefinition } from './definition.ts';

export type SettingValues = Readonly<Record<string, unknown>>;

/** A field of the schema, and its places; without a place it has no effect. */
interface ConfigField {
  readonly name: string;
  readonly schema: JsonValue | undefined;
  readonly variable: string | undefined;
  /** The option before the value; empty when the value is a word without an option. */
  readonly argument: string | undefined;
  readonly header: string | undefined;
  readonly separator: string | undefined;
  readonly isSecret: boolean;
}

type Schemas = Pick<TemplateDefinition, 'config_schema' | 'environment'>;

/** The settings in the order of the schema, which is also the order of the words. */
export function configFieldsOf(definition: Schemas | undefined): readonly ConfigField[] {
  const { config_schema: schema, environment = {} } = definition ?? {};
  return Object.entries(isJsonObject(schema?.properties) ? schema.properties : {}).map(([name, written]) => {
    const property = isJsonObject(written) ? withDefinition(written, schema) : written;
    const rules = isJsonObject(property) ? property : {};
    // Default: the variable of the template's environment that has the name of the setting in capitals.
    const capitals = name.toUpperCase();
    const declared = Object.hasOwn(environment, capitals) ? capitals : undefined;
    // Every user of the machine can read the words of a command.
    const isSecret = rules.sensitive === true;
    const option = isSecret ? undefined : rules.command_arg;
    return {
      name,
      schema: property,
      variable: text(rules.env_mapping) ?? declared,
      argument: option === true ? '' : text(option),
      header: text(rules.header_mapping),
      separator: text(rules.env_separator),
      isSecret,
    };
  });
}

/** The names of the variables that the template's settings declare as secret. */
export function secretVariables(definition: Schemas | undefined): string[] {
  return configFieldsOf(definition).flatMap(({ isSecret, variable }) =>
    isSecret && variable !== undefined ? [variable] : [],
  );
}

/** The property with the definition of the schema that it refers to. */
function withDefinition(property: JsonObject, schema: SettingValues = {}): JsonObject {
  const { $ref, ...own } = property;
  const [, section = '', name = ''] =
    /^#\/(\$defs|definitions)\/(.+)$/.exec(typeof $ref === 'string' ? $ref : '') ?? [];
  const definitions = schema[section];
  const definition = isJsonObject(definitions) ? definitions[name] : undefined;
  return isJsonObject(definition) ? { ...definition, ...own } : property;
}

/** The values, with texts converted where the schema declares a number, a boolean, or a list of them or of texts. */
export function typedValues(definition: Schemas, values: SettingValues): SettingValues {
  const settings = new Map(configFieldsOf(definition).map((setting) => [setting.name, setting]));
  const typedEntries = Object.entries(values).map(([name, value]) => {
    const setting = settings.get(name);
    return [name, typed(value, setting?.schema, setting?.separator)];
  });
  return Object.fromEntries(typedEntries);
}

function typed(value: unknown, schema: unknown, separator = ','): unknown {
  if (typeof value !== 'string' || !isJsonObject(schema)) return value;
  const { type, items } = schema;
  if (type === 'boolean') return value === 'true' ? true : value === 'false' ? false : value;
  if (type === 'array')
    return value
      .split(separator)
      .filter((part) => part !== '')
      .map((part) => typed(part, items));
  const isNumber = (type === 'integer' || type === 'number') && value.trim() !== '';
  return isNumber && Number.isFinite(Number(value)) ? Number(value) : value;
}

/** The values, with the defaults of settings that have a place and no value. */
export function withDefaults(definition: Schemas, values: SettingValues): SettingValues {
  const defaults = configFieldsOf(definition).flatMap((setting): [string, unknown][] => {
    const value = isJsonObject(setting.schema) ? setting.schema.default : undefined;
    return value === undefined || value === null || !isMapped(setting) ? [] : [[setting.name, value]];
  });
  return { ...Object.fromEntries(defaults), ...values };
}

/** Puts each value in its place, without checks; `unmapped` names the values without a place, `secretEnv` secret variables. */
export function mappedFields(definition: Schemas, values: SettingValues) {
  const args: string[] = [];
  const env: Record<string, string> = {};
  const headers: Record<string, string> = {};
  const given = configFieldsOf(definition).filter(({ name }) => Object.hasOwn(values, name));
  for (const { name, variable, argument, header, separator } of given) {
    const value = values[name];
    if (variable !== undefined) env[variable] = textOf(value, separator);
    if (header !== undefined) headers[header] = textOf(value, separator);
    if (argument !== undefined) args.push(...wordsOf(value, argument, separator));
  }
  const secretEnv = given.flatMap(({ isSecret, variable }) => (isSecret && variable ? [variable] : []));
  const unmapped = given.filter((setting) => !isMapped(setting)).map(({ name }) => name);
  return { args, env, headers, unmapped, secretEnv };
}

function isMapped({ variable, argument, header }: ConfigField): boolean {
  return variable !== undefined || argument !== undefined || header !== undefined;
}

/** The schema for display: defaults and examples of sensitive settings, and of definitions for them, are masked. */
export function withoutSecretDefaults(schema: SettingValues): Record<string, unknown> {
  const { properties } = schema;
  const secrets = new Set<unknown>();
  for (const { name, isSecret } of configFieldsOf({ config_schema: schema })) {
    const written = isSecret && isJsonObject(properties) ? properties[name] : undefined;
    if (isSecret) secrets.add(`#/properties/${name}`).add(isJsonObject(written) ? written.$ref : undefined);
  }
  const shown = (path: string, rules: unknown) =>
    isJsonObject(rules) && (rules.sensitive === true || secrets.has(path)) ? masked(rules) : rules;
  const entries = Object.entries(schema).map(([section, value]) => {
    if (!SECTIONS.includes(section) || !isJsonObject(value)) return [section, value];
    const own = Object.entries(value).map(([name, rules]) => [name, shown(`#/${section}/${name}`, rules)]);
    return [section, Object.fromEntries(own)];
  });
  return Object.fromEntries(entries);
}

/** The parts of a schema with the rules of settings. */
const SECTIONS: readonly string[] = ['properties', '$defs', 'definitions'];

function masked({ default: value, examples, ...rest }: JsonObject): JsonObject {
  return { ...rest, ...(value === undefined ? {} : { default: '***' }) };
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The text of a value: a list with its separator, by default that of most variables; other structures as JSON. */
function textOf(value: unknown, separator = ','): string {
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object')) return value.join(separator);
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** The words of a value and its option. A switch is its option alone. */
function wordsOf(value: unknown, option: string, separator: string | undefined): string[] {
  if (typeof value === 'boolean' && option !== '') return value ? [option] : [];
  return partsOf(value, separator).flatMap((part) =>
    option === '' ? [textOf(part)] : [option, textOf(part)],
  );
}

/** The values that become words of a command: the items of a list, the parts of a text that has a separator. */
export function partsOf(value: unknown, separator: string | undefined): readonly unknown[] {
  return typeof value === 'string' && separator !== undefined
    ? value.split(separator).filter((part) => part !== '')
    : [value].flat();
}
