// server.json of the official registry, schema 2025-12-11: each package of npm, PyPI and OCI, and each remote,
// becomes a definition whose inputs are settings. Values in it are fixed; variables of values are filled by their
// own values or defaults.

import { definedFields, isJsonObject, type JsonObject, jsonObjectsIn } from '../domain/json/json.ts';
import { TemplateError } from './definition.ts';
import { type ImportedFile, type ImportedServer, idOf, type RefusedEntry } from './imported-server.ts';

export function isServerJson(value: JsonObject): boolean {
  const { packages, remotes, $schema: schema } = value;
  const isNamed = typeof value.name === 'string';
  return (
    isNamed && (Array.isArray(packages) || Array.isArray(remotes) || /server\.schema\.json/.test(`${schema}`))
  );
}

const NAME = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/;

/** Reads a document. Throws TemplateError for one that is not of the schema. */
export function readServerJson(server: JsonObject): ImportedFile {
  const { name, description, version, packages = [], remotes = [] } = server;
  const faults = [
    ...(typeof name === 'string' && NAME.test(name) ? [] : ['name: is not <namespace>/<name>']),
    ...(typeof description === 'string' && description !== '' ? [] : ['description: is missing']),
    ...(typeof version === 'string' && version !== '' ? [] : ['version: is missing']),
    ...(Array.isArray(packages) ? [] : ['packages: is not a list']),
    ...(Array.isArray(remotes) ? [] : ['remotes: is not a list']),
  ];
  if (faults.length > 0) throw new TemplateError(faults);
  const written = [
    ...jsonObjectsIn(packages).map((each) => ({
      target: each,
      kind: textOf(each.registryType) ?? 'package',
    })),
    ...jsonObjectsIn(remotes).map((each) => ({ target: each, kind: 'remote' })),
  ];
  const servers: ImportedServer[] = [];
  const refused: RefusedEntry[] = [];
  const base = idOf(String(name).replace(/^.*\//, ''));
  for (const { target, kind } of written) {
    const label = `${String(name)} (${kind})`;
    try {
      const read = kind === 'remote' ? remoteOf(target) : packageOf(target);
      const definition = definitionOf(server, read);
      const { required = [] } = isJsonObject(definition.config_schema) ? definition.config_schema : {};
      const needs = Array.isArray(required) ? required.map(String) : [];
      servers.push({ name: label, id: written.length === 1 ? base : `${base}-${kind}`, definition, needs });
    } catch (thrown) {
      if (!(thrown instanceof TemplateError)) throw thrown;
      refused.push({ name: label, problem: thrown.message });
    }
  }
  if (written.length === 0) refused.push({ name: String(name), problem: 'has neither packages nor remotes' });
  return { servers, refused, inputs: [] };
}

interface ServerTarget {
  readonly transport: string;
  readonly command?: string;
  readonly args?: readonly string[];
  readonly endpoint?: string;
  readonly environment?: JsonObject;
  readonly settings: JsonObject;
  readonly required: readonly string[];
  readonly requires?: readonly string[];
}

function definitionOf(server: JsonObject, target: ServerTarget): JsonObject {
  const { settings, required, ...place } = target;
  const { name, title, description, version } = server;
  const fields = Object.entries(place).filter(
    ([, value]) => value !== undefined && (typeof value !== 'object' || Object.keys(value).length > 0),
  );
  return {
    name: textOf(title) ?? String(name),
    description: String(description),
    version: /^\d+\.\d+\.\d+$/.test(String(version)) ? String(version) : '0.0.0',
    author: String(name).replace(/\/.*$/, ''),
    tags: ['imported'],
    ...(Object.fromEntries(fields) as JsonObject),
    ...(Object.keys(settings).length === 0
      ? {}
      : {
          config_schema: {
            type: 'object',
            properties: settings,
            ...(required.length === 0 ? {} : { required: [...required] }),
          },
        }),
  };
}

const TRANSPORTS: Readonly<Record<string, string>> = {
  stdio: 'stdio',
  'streamable-http': 'http',
  sse: 'sse',
};

function transportOf(written: unknown): string {
  const type = isJsonObject(written) ? String(written.type) : 'none';
  const transport = Object.hasOwn(TRANSPORTS, type) ? TRANSPORTS[type] : undefined;
  if (transport === undefined) throw new TemplateError([`the transport "${type}" is not known`]);
  return transport;
}

function remoteOf(remote: JsonObject): ServerTarget {
  const transport = transportOf(remote);
  const endpoint = addressOf(
    textOf(remote.url) ?? '',
    isJsonObject(remote.variables) ? remote.variables : {},
  );
  const inputs = jsonObjectsIn(remote.headers).map((header) => keyed(header, 'header_mapping'));
  return { transport, endpoint, ...joined(inputs) };
}

/** The address with its variables. Throws TemplateError for one that has no value of its own. */
function addressOf(url: string, variables: JsonObject): string {
  const address = url.replaceAll(/\{([a-zA-Z_]\w*)\}/g, (text, name: string) => {
    const value = fixedOf(Object.hasOwn(variables, name) ? variables[name] : undefined);
    if (value === undefined)
      throw new TemplateError([
        `its address ${url} has the variable ${text}: register an instance with its own`,
      ]);
    return value;
  });
  if (!URL.canParse(address) || !/^https?:/.test(address))
    throw new TemplateError([`its address "${address}" is not an http or https URL`]);
  return address;
}

/** The command that one runtime makes of a package; `options` are the arguments of the runtime. */
type Runtime = (about: {
  readonly name: string;
  readonly version: string | undefined;
  readonly options: readonly string[];
  readonly variables: readonly string[];
}) => { readonly command: string; readonly args: readonly string[]; readonly requires?: readonly string[] };

const RUNTIMES: Readonly<Record<string, Runtime>> = {
  npm: ({ name, version, options }) => ({
    command: 'npx',
    args: [
      ...(options.some((each) => /^(-y|--yes)$/.test(each)) ? [] : ['-y']),
      ...options,
      at(name, version),
    ],
    requires: ['node'],
  }),
  pypi: ({ name, version, options }) => ({
    command: 'uvx',
    args: [...options, at(name, version)],
    requires: ['uv'],
  }),
  oci: ({ name, version, options, variables }) => ({
    command: 'docker',
    args: [
      ...['run', '--rm', '-i'].filter((each) => !options.includes(each)),
      ...options.filter((each, index) => !(index === 0 && each === 'run')),
      ...variables.flatMap((variable) => (isNamed(options, variable) ? [] : ['-e', variable])),
      version === undefined || /@|:[^/]*$/.test(name) ? name : `${name}:${version}`,
    ],
    requires: ['docker'],
  }),
};

function at(name: string, version: string | undefined): string {
  return version === undefined ? name : `${name}@${version}`;
}

/** Whether the options pass the variable to the container already. */
function isNamed(options: readonly string[], variable: string): boolean {
  return options.some((option) => option === variable || option.startsWith(`${variable}=`));
}

function packageOf(written: JsonObject): ServerTarget {
  const { registryType, identifier, version, runtimeHint } = written;
  if ('registry_type' in written || 'registry_name' in written)
    throw new TemplateError(['is of an older schema; that of 2025-12-11 has registryType']);
  const runtime = Object.hasOwn(RUNTIMES, String(registryType)) ? RUNTIMES[String(registryType)] : undefined;
  if (runtime === undefined)
    throw new TemplateError([`packages of "${String(registryType)}" are not started: npm, pypi and oci are`]);
  const name = textOf(identifier);
  if (name === undefined || /^-|\s/.test(name))
    throw new TemplateError(['identifier: is not the name of a package']);
  const transport = transportOf(written.transport);
  const variables = jsonObjectsIn(written.environmentVariables);
  const options = jsonObjectsIn(written.runtimeArguments).flatMap((each) => fixedWords(each));
  const { command, args, requires } = runtime({
    name,
    options,
    version: textOf(version),
    variables: variables.flatMap((each) => textOf(each.name) ?? []),
  });
  const inputs = variables.map((each) => keyed(each, 'env_mapping'));
  const headers = jsonObjectsIn(isJsonObject(written.transport) ? written.transport.headers : []);
  const words = wordsOf(jsonObjectsIn(written.packageArguments));
  return {
    transport,
    command: textOf(runtimeHint) ?? command,
    args: [...args, ...words.fixed],
    ...definedFields({ requires }),
    ...(hasAddress(written.transport) ? { endpoint: localAddress(written, variables) } : {}),
    ...joined([...inputs, ...headers.map((header) => keyed(header, 'header_mapping')), ...words.open]),
  };
}

function hasAddress(transport: unknown): boolean {
  return isJsonObject(transport) && transport.url !== undefined;
}

/** The address at which a program serves; its variables are values of its arguments and variables. */
function localAddress(written: JsonObject, variables: readonly JsonObject[]): string {
  const { url } = isJsonObject(written.transport) ? written.transport : {};
  const named = [
    ...variables.map((each) => [each.name, each]),
    ...jsonObjectsIn(written.packageArguments).flatMap((each) => [
      [each.valueHint, each],
      [textOf(each.name)?.replace(/^-+/, ''), each],
      [each.name, each],
    ]),
  ];
  return addressOf(textOf(url) ?? '', Object.fromEntries(named.filter(([name]) => typeof name === 'string')));
}

interface Input {
  readonly name: string;
  /** The fixed value of a variable of the environment, which no one changes. */
  readonly value?: string;
  readonly setting?: JsonObject;
  readonly isRequired?: boolean;
}

function joined(inputs: readonly Input[]): Pick<ServerTarget, 'settings' | 'required' | 'environment'> {
  const settings = inputs.flatMap(({ name, setting }) => (setting === undefined ? [] : [[name, setting]]));
  return {
    settings: Object.fromEntries(settings),
    required: inputs.flatMap(({ name, isRequired }) => (isRequired === true ? [name] : [])),
    environment: Object.fromEntries(
      inputs.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]])),
    ),
  };
}

/** A variable or a header. A fixed value of a variable that is not a secret belongs to the definition. */
function keyed(written: JsonObject, place: 'env_mapping' | 'header_mapping'): Input {
  const name = textOf(written.name);
  if (name === undefined) throw new TemplateError(['a variable or a header has no name']);
  const value = filledOf(written);
  const isSecret = written.isSecret === true || hasSecretVariable(written);
  if (value !== undefined && place === 'env_mapping' && !isSecret && /^[A-Z][A-Z0-9_]*$/.test(name))
    return { name, value };
  const usual = isSecret ? undefined : (value ?? textOf(written.default));
  const setting = { ...settingOf(written, usual, isSecret), [place]: name };
  return { name, setting, isRequired: written.isRequired === true && usual === undefined };
}

function settingOf(written: JsonObject, usual: string | undefined, isSecret: boolean): JsonObject {
  const { format, choices } = written;
  const type = format === 'number' ? 'number' : format === 'boolean' ? 'boolean' : 'string';
  const form = textOf(written.value);
  const hint = form !== undefined ? `In the form: ${form}` : textOf(written.placeholder);
  const about = [textOf(written.description), hint].filter((text) => text !== undefined).join(' ');
  const options = Array.isArray(choices) ? choices.map(String) : [];
  return {
    type,
    ...(about === '' ? {} : { description: about }),
    ...(options.length === 0 ? {} : { enum: options }),
    ...(usual === undefined ? {} : { default: typedOf(usual, type) }),
    ...(isSecret ? { sensitive: true } : {}),
  };
}

function typedOf(text: string, type: string): string | number | boolean {
  if (type === 'boolean') return text === 'true';
  return type === 'number' && Number.isFinite(Number(text)) ? Number(text) : text;
}

/** The arguments of a package: the first ones that are fixed are words, the others settings, in their order. */
function wordsOf(written: readonly JsonObject[]): { fixed: string[]; open: Input[] } {
  const values = written.map((each) => filledOf(each));
  const firstOpen = written.findIndex((each, index) => values[index] === undefined && !isSwitch(each));
  const split = firstOpen === -1 ? written.length : firstOpen;
  const fixed = written.slice(0, split).flatMap((each) => fixedWords(each));
  const open = written.slice(split).map((each, index): Input => {
    const option = each.type === 'named' ? textOf(each.name) : undefined;
    const name = textOf(each.valueHint) ?? option?.replace(/^-+/, '') ?? `word_${split + index + 1}`;
    const usual = filledOf(each) ?? textOf(each.default);
    const { type, ...setting } = settingOf(each, usual, false);
    const isList = each.isRepeated === true;
    return {
      name,
      setting: {
        ...(isList
          ? { type: 'array', items: { type: 'string' } }
          : { type: isSwitch(each) ? 'boolean' : type }),
        ...setting,
        ...(isList && usual !== undefined ? { default: [usual] } : {}),
        ...(isSwitch(each) ? { default: true } : {}),
        command_arg: option ?? true,
      },
      isRequired: each.isRequired === true && usual === undefined,
    };
  });
  return { fixed, open };
}

/** True for an option without a value of any kind. */
function isSwitch({
  type,
  value,
  valueHint,
  default: usual,
  variables,
  isRequired,
  format,
}: JsonObject): boolean {
  const isOpen =
    valueHint !== undefined || usual !== undefined || variables !== undefined || format !== undefined;
  return type === 'named' && value === undefined && !isOpen && isRequired !== true;
}

/** The words of an argument whose value is fixed. Throws TemplateError for one that is not. */
function fixedWords(written: JsonObject): string[] {
  const option = written.type === 'named' ? textOf(written.name) : undefined;
  if (isSwitch(written)) return option === undefined ? [] : [option];
  const value = filledOf(written) ?? textOf(written.default);
  if (value === undefined) {
    if (written.isRequired !== true) return [];
    const what = option ?? textOf(written.valueHint) ?? 'an argument';
    throw new TemplateError([
      `${what} of its runtime needs a value: register an instance with its own command`,
    ]);
  }
  return option === undefined ? [value] : [option, value];
}

/** `value` with its variables; undefined when there is none, or a variable has no value. */
function filledOf(written: JsonObject): string | undefined {
  const { value, variables } = written;
  if (typeof value !== 'string') return undefined;
  if (!isJsonObject(variables)) return value;
  let isFilled = true;
  const filled = value.replaceAll(/\{([^{}]+)\}/g, (text, name: string) => {
    if (!Object.hasOwn(variables, name)) return text; // as the schema says
    const found = fixedOf(Object.hasOwn(variables, name) ? variables[name] : undefined);
    isFilled &&= found !== undefined;
    return found ?? text;
  });
  return isFilled ? filled : undefined;
}

function fixedOf(input: unknown): string | undefined {
  if (!isJsonObject(input) || input.isSecret === true) return undefined;
  return textOf(input.value) ?? textOf(input.default);
}

function hasSecretVariable({ variables }: JsonObject): boolean {
  return (
    isJsonObject(variables) &&
    Object.values(variables).some((each) => isJsonObject(each) && each.isSecret === true)
  );
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
