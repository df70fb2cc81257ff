// What `POST /servers` says about a server, as the input of a registration: its own `config`, laid over what the template's
// definition file says. Source: decisions, "Surface B bodies".

import Type, { type Static } from 'typebox';
import type { ValidationItem } from '../domain/errors.ts';
import { InstanceInput } from '../domain/instance.ts';
import { instanceShape } from '../domain/instance-shape.ts';
import { isJsonObject, type JsonObject } from '../domain/json.ts';
import { configIncomplete } from '../domain/registry-errors.ts';
import { validationFailed } from '../domain/request-errors.ts';
import { compileShape } from '../domain/validation.ts';
import type { TemplateDefinition } from '../templates/definition.ts';
import { instanceInputOf } from '../templates/instance-input.ts';

const { endpoint, command, args, working_dir, env_vars, headers, transport, force, metadata } =
  InstanceInput.properties;
const ownFields = { endpoint, command, args, working_dir, env_vars, headers, transport, force };

/** How to reach the server; other keys are settings of the template, mapped by its `config_schema`. */
export const ServerConfig = Type.Object(ownFields);
export type ServerConfig = Static<typeof ServerConfig>;

/** The weight may stand in here. */
export const InstanceMetadata = metadata;

/**
 * Makes the input of a registration. A `config` that names an `endpoint` or a `command` says all of how to reach the
 * server; else the definition does, and `config` completes it. Throws CONFIG_INCOMPLETE naming what is missing, and
 * VALIDATION_ERROR for settings that the template does not know or that are of the wrong type.
 */
export function serverInput(
  template: string,
  config: ServerConfig,
  definition: TemplateDefinition | undefined,
): InstanceInput {
  const { own: fields = [], settings = [] } = Object.groupBy(Object.entries(config), ([key]) =>
    Object.hasOwn(ownFields, key) ? 'own' : 'settings',
  );
  const own: ServerConfig = Object.fromEntries(fields);
  const fromSettings = variablesOf(Object.fromEntries(settings), definition);
  const isComplete = own.endpoint !== undefined || own.command !== undefined;
  // Placeholders are filled with themselves: what is left of them in the end is what is missing.
  const way: InstanceInput =
    definition === undefined || isComplete ? {} : instanceInputOf(definition, { SCRATCH });
  const variables = { ...way.env_vars, ...fromSettings, ...own.env_vars };
  const input: InstanceInput = {
    ...way,
    ...own,
    ...(Object.keys(variables).length === 0 ? {} : { env_vars: variables }),
  };
  if (input.endpoint === undefined && input.command === undefined) {
    const known = definition === undefined ? 'there is no template.json for' : 'neither is in the template';
    throw configIncomplete(
      `Nothing says how to reach the server: "config.endpoint" or "config.command" is missing, and ${known} "${template}".`,
    );
  }
  refusePlaceholders(input);
  // What settings became is held to the bounds of what is written directly.
  refuse(instanceShape.findings(input));
  return input;
}

/** Names of the variables that a template declares: its environment, and what its settings are mapped to. */
export function declaredVariables(definition: TemplateDefinition | undefined): string[] {
  if (definition === undefined) return [];
  const mapped = Object.keys(propertiesOf(definition)).flatMap((key) => variableOf(key, definition) ?? []);
  return [...new Set([...Object.keys(definition.environment ?? {}), ...mapped])];
}

/** The only placeholder there is: a folder that `gateway start --demo` makes for each of its servers. */
const SCRATCH = '${' + 'SCRATCH}';

/** Settings as variables of the environment, by name. */
function variablesOf(
  settings: JsonObject,
  definition: TemplateDefinition | undefined,
): Readonly<Record<string, string>> {
  const properties = definition === undefined ? {} : propertiesOf(definition);
  const unknown = Object.keys(settings).filter((key) => !Object.hasOwn(properties, key));
  if (unknown.length > 0) throw validationFailed(unknown.map(unknownSetting));
  if (definition === undefined) return {};
  const required = definition.config_schema?.required;
  const missing = (Array.isArray(required) ? required : []).filter((key) => !Object.hasOwn(settings, key));
  if (missing.length > 0) {
    throw configIncomplete(`The template needs ${missing.map((key) => `"config.${key}"`).join(', ')}.`);
  }
  const schema = Type.Unsafe<JsonObject>({ type: 'object', properties });
  refuse(compileShape(schema, 'body').findings(settings));
  return Object.fromEntries(
    Object.entries(settings).map(([key, value]) => {
      const name = variableOf(key, definition);
      if (name === undefined) {
        throw configIncomplete(`The template does not say which variable "config.${key}" sets.`);
      }
      return [name, textOf(value)];
    }),
  );
}

/** The findings are about `config`. */
function refuse(findings: readonly ValidationItem[]): void {
  if (findings.length === 0) return;
  throw validationFailed(
    findings.map((item) => ({ ...item, loc: ['body', 'config', ...item.loc.slice(1)] })),
  );
}

function unknownSetting(key: string): ValidationItem {
  return {
    loc: ['body', 'config', key.slice(0, 128)],
    msg: 'Extra inputs are not permitted',
    type: 'extra_forbidden',
  };
}

function propertiesOf({ config_schema: schema }: TemplateDefinition): JsonObject {
  return isJsonObject(schema?.properties) ? schema.properties : {};
}

/** `env_mapping` of the setting, else its name in capitals when the template's environment has that variable. */
function variableOf(key: string, definition: TemplateDefinition): string | undefined {
  const property = propertiesOf(definition)[key];
  if (isJsonObject(property) && typeof property.env_mapping === 'string') return property.env_mapping;
  const name = key.toUpperCase();
  return Object.hasOwn(definition.environment ?? {}, name) ? name : undefined;
}

/** Lists as most programs read them from a variable, other structures as JSON. */
function textOf(value: unknown): string {
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object')) return value.join(',');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function refusePlaceholders({
  command: program = '',
  args: words = [],
  env_vars: variables = {},
}: InstanceInput) {
  const unfilled = [
    ...([program, ...words].some((word) => word.includes(SCRATCH)) ? ['"config.args"'] : []),
    ...Object.entries(variables)
      .filter(([, value]) => value.includes(SCRATCH))
      .map(([name]) => `"config.env_vars.${name}"`),
  ];
  if (unfilled.length === 0) return;
  throw configIncomplete(
    `The template needs a folder of its own for each server: give ${unfilled.join(', ')}.`,
  );
}
