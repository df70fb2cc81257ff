// Turns the `config` of `POST /servers` into the input of a registration, with the defaults of the template's definition.

import Type, { type Static } from 'typebox';
import type { ValidationItem } from '../../domain/errors/errors.ts';
import { configIncomplete } from '../../domain/errors/registry-errors.ts';
import { validationFailed } from '../../domain/errors/request-errors.ts';
import { compileShape, inspectNumbers, locatedAt, refuseIssues } from '../../domain/errors/validation.ts';
import { InstanceInput } from '../../domain/instances/instance.ts';
import { definedFields, type JsonObject } from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { cutText } from '../../domain/text.ts';
import type { ActiveDefinition } from '../../templates/active-definitions.ts';
import {
  configFieldsOf,
  mappedFields,
  partsOf,
  type SettingValues,
  typedValues,
  withDefaults,
} from '../../templates/config-schema.ts';
import { SCRATCH } from '../../templates/definition.ts';
import { instanceInputOf } from '../../templates/launch.ts';
import { withinTurn } from './within-turn.ts';

const { id, weight, metadata, ...ownFields } = InstanceInput.properties;

/** The connection to the server; other keys are settings of the template, mapped by its `config_schema`. */
export const ServerConfig = Type.Object(ownFields, {
  examples: [{ endpoint: 'http://127.0.0.1:3001/mcp' }],
});
export type ServerConfig = Static<typeof ServerConfig>;

export const InstanceMetadata = metadata;

/** The longest check of settings by the schema of their template, in ms. */
export const MAX_CHECK_MS = 250;

/**
 * Makes the input of a registration. A `config` with an `endpoint` or a `command` is complete; any other is merged into the
 * definition. Throws CONFIG_INCOMPLETE, which names the missing fields, and VALIDATION_ERROR for unknown settings and wrong
 * types.
 */
export function serverInput(
  template: string,
  config: ServerConfig,
  definition: ActiveDefinition | undefined,
): InstanceInput {
  const { own: fields = [], settings = [] } = Object.groupBy(Object.entries(config), ([key]) =>
    Object.hasOwn(ownFields, key) ? 'own' : 'settings',
  );
  const own: ServerConfig = Object.fromEntries(fields);
  const isComplete = own.endpoint !== undefined || own.command !== undefined;
  const values = checkedSettings(Object.fromEntries(settings), definition, isComplete);
  const connection = connectionOf(definition, values, isComplete);
  const {
    env_vars: fromTemplate,
    secret_env_vars: secret = [],
    headers: headersOfTemplate,
    ...rest
  } = connection;
  const variables = { ...fromTemplate, ...own.env_vars };
  const headers = { ...headersOfTemplate, ...own.headers };
  const secretNames = [...new Set([...secret, ...(own.secret_env_vars ?? [])])];
  const input: InstanceInput = {
    ...rest,
    ...own,
    ...(Object.keys(variables).length === 0 ? {} : { env_vars: variables }),
    ...(secretNames.length === 0 ? {} : { secret_env_vars: secretNames }),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
  };
  if (input.endpoint === undefined && input.command === undefined) {
    throw configIncomplete(
      `Neither "config" nor the template "${template}" has an "endpoint" or a "command" for the server.`,
    );
  }
  refusePlaceholders(input, definition);
  return input;
}

/** The definition with the settings; for a complete `config` only the variables and headers that come from settings. */
function connectionOf(
  definition: ActiveDefinition | undefined,
  values: SettingValues,
  isComplete: boolean,
): InstanceInput {
  if (definition === undefined) return {};
  // Placeholders are not replaced, so that unfilled ones can be found.
  if (!isComplete) return instanceInputOf(definition, SCRATCH, values);
  const { env: env_vars, headers, secretEnv: secret_env_vars } = mappedFields(definition, values);
  return { env_vars, headers, secret_env_vars };
}

/** Names of the variables that a template declares: its environment, and those that its settings are mapped to. */
export function declaredVariables(definition: ActiveDefinition | undefined): string[] {
  const mapped = configFieldsOf(definition).flatMap(({ variable }) => variable ?? []);
  return [...new Set([...Object.keys(definition?.environment ?? {}), ...mapped])];
}

/** The settings, converted to the types of their schema and validated. */
function checkedSettings(
  given: JsonObject,
  definition: ActiveDefinition | undefined,
  isComplete: boolean,
): SettingValues {
  const settings = configFieldsOf(definition);
  const known = Object.fromEntries(settings.map(({ name, schema }) => [name, schema]));
  const unknown = Object.keys(given).filter((key) => !Object.hasOwn(known, key));
  if (unknown.length > 0) throw validationFailed(unknown.map(unknownSetting));
  if (definition === undefined) return {};
  const values = typedValues(definition, given);
  refuseConfig(inspectNumbers(values));
  const completed = withDefaults(definition, values);
  const needed = definition.config_schema?.required;
  const missing = (Array.isArray(needed) ? needed : []).filter((key) => !Object.hasOwn(completed, key));
  if (missing.length > 0)
    throw configIncomplete(`The template needs ${missing.map((key) => `"config.${key}"`).join(', ')}.`);
  const { $schema, $id, required, ...rules } = definition.config_schema ?? {};
  const definitions = definedFields({ $defs: rules.$defs, definitions: rules.definitions });
  const each = { type: 'object', properties: known, ...definitions };
  const shapeOf = (schema: object) =>
    compileShape(Type.Unsafe<JsonObject>(schema), 'body', (check) => withinTurn(MAX_CHECK_MS, check));
  refuseConfig(shapeOf(each).issues(completed));
  // Rules about several settings together, such as anyOf.
  if (!shapeOf(rules).accepts(completed)) refuseConfig([CONTRADICTION]);
  const asWords = settings.filter(
    ({ name, argument }) => argument !== undefined && Object.hasOwn(values, name),
  );
  if (isComplete && asWords.length > 0)
    throw validationFailed(asWords.map(({ name }) => unknownSetting(name)));
  // A word of a value must not become an option of the program.
  const isOption = (word: unknown) => /^-/.test(String(word));
  const options = asWords.filter(({ name, separator }) => partsOf(values[name], separator).some(isOption));
  const rule = { msg: 'Value should not start with "-"', type: 'value_error' };
  refuseConfig(options.map(({ name }) => ({ loc: ['body', name], ...rule })));
  const [unmapped] = mappedFields(definition, values).unmapped;
  if (unmapped !== undefined)
    throw configIncomplete(`The template does not say where "config.${unmapped}" goes.`);
  return values;
}

const CONTRADICTION: ValidationItem = {
  loc: ['body'],
  msg: 'The settings do not fit together; the config_schema of the template says which are needed',
  type: 'value_error',
};

function refuseConfig(issues: readonly ValidationItem[]): void {
  refuseIssues(locatedAt(['body', 'config'], issues));
}

function unknownSetting(key: string): ValidationItem {
  return {
    loc: ['body', 'config', cutText(key, LIMITS.locCharacters)],
    msg: 'Extra inputs are not permitted',
    type: 'extra_forbidden',
  };
}

function refusePlaceholders(
  { command: program = '', args: words = [], env_vars: variables = {} }: InstanceInput,
  definition: ActiveDefinition | undefined,
) {
  const unfilled = [
    ...([program, ...words].some((word) => word.includes(SCRATCH)) ? wordSettings(definition) : []),
    ...Object.entries(variables)
      .filter(([, value]) => value.includes(SCRATCH))
      .map(([name]) => settingOf(name, definition)),
  ];
  if (unfilled.length === 0) return;
  const names = unfilled.map((name) => `"config.${name}"`).join(', ');
  throw configIncomplete(`The template requires a separate folder for each server: set ${names}.`);
}

/** The setting that fills a variable; the variable itself if none does. */
function settingOf(variable: string, definition: ActiveDefinition | undefined): string {
  const setting = configFieldsOf(definition).find((each) => each.variable === variable);
  return setting?.name ?? `env_vars.${variable}`;
}

/** The settings that fill placeholders of the command; `args` if none does. */
function wordSettings(definition: ActiveDefinition | undefined): string[] {
  const filling = configFieldsOf(definition).filter(
    ({ argument, schema }) => argument !== undefined && JSON.stringify(schema).includes(SCRATCH),
  );
  return filling.length === 0 ? ['args'] : filling.map(({ name }) => name);
}
