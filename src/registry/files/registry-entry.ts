// Reads one entry of a registry document. Fields have several names, because documents come from several
// tools. registry-file.ts finds the entries in a document.

import { hash } from 'node:crypto';
import { GatewayError } from '../../domain/errors/errors.ts';
import { issueLines, pathTo } from '../../domain/errors/validation.ts';
import type { Variables } from '../../domain/instances/command.ts';
import { type InstanceInput, instanceIdOf, type TemplateAuth } from '../../domain/instances/instance.ts';
import { transportNamed } from '../../domain/instances/transport-kinds.ts';
import { canonicalText, isJsonObject, type JsonObject } from '../../domain/json/json.ts';
import { didYouMean } from '../../domain/nearest.ts';
import {
  checkedInput,
  defineInstance,
  instanceShape,
  type RegistrationContext,
  withTemplateAuth,
} from '../../domain/registration/registration.ts';
import { withoutPlaceholders } from './entry-placeholders.ts';

/** The problem of a field that is not known, with the name that was probably meant. */
export function unknownField(path: string, name: string, known: readonly string[]): string {
  const guess = didYouMean(name, known);
  return `${path}: unknown field${guess === undefined ? '' : `; ${guess}`}`;
}

export interface RegistryEntry {
  readonly template: string;
  /** The id is that of the entry, else its key, else derived from the fingerprint. */
  readonly input: InstanceInput & { readonly id: string };
  /** SHA-256 of the template and the input, in hexadecimal digits. */
  readonly fingerprint: string;
  /** The server id in the file: that of the instance where the entry was exported. */
  readonly serverId?: string;
}

export interface EntrySource {
  readonly value: unknown;
  /** Path of the entry: `templates.demo.instances[0]`. */
  readonly path: string;
  readonly template: string;
  readonly key: string | undefined;
  /** Authorization of its template: that of an entry without its own. */
  readonly auth?: TemplateAuth;
  /** The values of placeholders: the environment of this program. */
  readonly variables: Variables;
}

/** The names of each field; the first one that is present is used. Source: docs/guides/registry-file.md. */
export const FIELD_NAMES: Readonly<Record<keyof InstanceInput, readonly string[]>> = {
  id: ['id', 'instance_id', 'server_id'],
  endpoint: ['endpoint', 'url'],
  command: ['command'],
  args: ['args'],
  working_dir: ['working_dir', 'cwd'],
  env_vars: ['env_vars', 'env', 'environment'],
  secret_env_vars: ['secret_env_vars'],
  headers: ['headers'],
  auth: ['auth'],
  transport: ['transport', 'type'],
  era: ['era'],
  node: ['node'],
  force: ['force'],
  weight: ['weight'],
  metadata: ['metadata', 'instance_metadata'],
};

/** Fields that other code reads, and fields of API records: a saved answer of the API is a registry document, too. */
const OTHER_NAMES: readonly string[] = [
  ...['template_name', 'template', 'config', 'server_id', 'source', 'node_id', 'status', 'healthy', 'state'],
  ...['in_flight', 'created_at', 'updated_at', 'last_check', 'last_health_check', 'health', 'latency_ms'],
  ...['next_attempt_at', 'nodes', 'running_on'],
  ...['score', 'restarts', 'requests', 'errors', 'pid', 'reason', 'ejection', 'stderr'],
  ...['consecutive_failures', 'sessions', 'own_processes', 'warnings', 'container'],
];

/**
 * Fields of MCP clients with lists that leave tools out, or name the tools that are left. A gateway serves all tools, and must
 * not serve these.
 */
const LEFT_OUT_TOOLS = ['disabledTools', 'disabled_tools', 'excludeTools', 'exclude_tools', 'blockedTools'];
const LEFT_TOOLS = [
  'enabledTools',
  'enabled_tools',
  'includeTools',
  'allowedTools',
  'allowed_tools',
  'tools',
];
const SWITCHES = ['disabled', 'enabled'];

/** Replaces a secret in records of the API; see http/routes/instances/instances.ts. */
const MASK = '***';

/**
 * Reads an entry; `entry` is undefined when it is unusable, or disabled. `problems` also name fields without effect. A
 * registration of `entry.input` does not fail for reasons in the input alone.
 */
export function readEntry(source: EntrySource): {
  entry?: RegistryEntry;
  isDisabled?: boolean;
  problems: string[];
} {
  const { value, path, template, key, variables } = source;
  if (!isJsonObject(value)) return { problems: [`${path}: must be an object`] };
  const owner = value.template_name ?? value.template ?? template;
  if (owner !== template) return { problems: [`${path}: says that it belongs to another template`] };
  // The command of such an entry is a program of the container, not of this machine.
  if (typeof value.container === 'string')
    return { problems: [`${path}: runs in a container; register it with sync`] };
  const written = collect(value, path);
  const refusals = [...SWITCHES, ...LEFT_OUT_TOOLS, ...LEFT_TOOLS].flatMap((name) =>
    refusalOf(name, written),
  );
  if (refusals.length > 0) return { problems: refusals };
  if (written.get('disabled')?.value === true || written.get('enabled')?.value === false)
    return { isDisabled: true, problems: [] };
  const problems: string[] = [];
  const fields = fieldsOf(written, problems);
  if (key !== undefined && !fields.has('id')) fields.set('id', { value: key, path });
  removeUnused(fields, problems);

  const locate = (field?: string): string =>
    field === undefined ? path : (fields.get(field)?.path ?? pathTo(path, field));
  const { filled: translated, problems: unfilled } = withoutPlaceholders(
    translate(fields),
    variables,
    locate,
  );
  if (unfilled.length > 0) return { problems: [...problems, ...unfilled] };
  let input: InstanceInput;
  try {
    const own = checkedInput(translated, instanceShape, ['body']);
    input = withTemplateAuth(own, source.auth);
    if (input !== own) translated.auth = input.auth;
    const masked = maskedIn(input, locate);
    if (masked.length > 0) return { problems: [...problems, ...masked] };
    defineInstance(template, input, PROBE);
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    const { items } = thrown.facts;
    const issues = items === undefined ? [`${path}: ${thrown.message}`] : issueLines(items, locate);
    return { problems: [...problems, ...issues] };
  }

  // The fingerprint is not that of the copy, which has no undefined fields, and dates as text: instances in the database have
  // these fingerprints.
  const fingerprint = hash('sha256', canonicalText({ template, input: translated }));
  const id = input.id ?? instanceIdOf(template, fingerprint);
  const { server_id } = value;
  const exported = typeof server_id === 'string' ? { serverId: server_id } : {};
  return { entry: { template, input: { ...input, id }, fingerprint, ...exported }, problems };
}

/** The context for the rules about several fields; the definition itself is not used. */
const PROBE: RegistrationContext = {
  find: () => undefined,
  isServerIdTaken: () => false,
  randomHex: () => '00000000',
  now: '',
  loc: ['body'],
};

interface EntryValue {
  readonly value: unknown;
  readonly path: string;
}

/** All fields as written, those of `config` included. */
function collect(entry: JsonObject, path: string): ReadonlyMap<string, EntryValue> {
  const written = new Map<string, EntryValue>();
  const config = isJsonObject(entry.config) ? entry.config : {};
  for (const [section, sectionPath] of [
    [config, pathTo(path, 'config')],
    [entry, path],
  ] as const) {
    for (const [name, value] of Object.entries(section)) {
      if (value !== null) written.set(name, { value, path: pathTo(sectionPath, name) });
    }
  }
  return written;
}

/** The reasons why a field makes the entry unusable: it would be served in another way than it says. */
function refusalOf(name: string, written: ReadonlyMap<string, EntryValue>): string[] {
  const { value, path } = written.get(name) ?? {};
  if (value === undefined) return [];
  if (SWITCHES.includes(name)) return typeof value === 'boolean' ? [] : [`${path}: must be true or false`];
  const isEmpty = Array.isArray(value) && value.length === 0;
  const isAll = value === '*' || (Array.isArray(value) && value.includes('*'));
  if (LEFT_OUT_TOOLS.includes(name) ? isEmpty : isAll) return [];
  return [`${path}: the gateway serves all tools of a server; the entry is used when this field is removed`];
}

/** The values by the names of a registration. */
function fieldsOf(written: ReadonlyMap<string, EntryValue>, problems: string[]): Map<string, EntryValue> {
  const fields = new Map<string, EntryValue>();
  for (const [field, names] of Object.entries(FIELD_NAMES)) {
    const [first, ...others] = names.filter((name) => written.has(name));
    const chosen = first === undefined ? undefined : written.get(first);
    if (chosen !== undefined) fields.set(field, chosen);
    for (const name of others) {
      if (OTHER_NAMES.includes(name)) continue;
      problems.push(`${written.get(name)?.path}: has no effect, because "${first}" is given`);
    }
  }
  const known = [
    ...Object.values(FIELD_NAMES).flat(),
    ...[OTHER_NAMES, SWITCHES, LEFT_OUT_TOOLS, LEFT_TOOLS].flat(),
  ];
  for (const [name, { path }] of written) {
    if (!known.includes(name)) problems.push(unknownField(path, name, known));
  }
  return fields;
}

/** Removes fields of a program from an entry without one, and headers from an entry without an endpoint. */
function removeUnused(fields: Map<string, EntryValue>, problems: string[]): void {
  for (const [field, needed] of [
    ['working_dir', 'command'],
    ['env_vars', 'command'],
    ['secret_env_vars', 'command'],
    ['force', 'command'],
    ['node', 'command'],
    ['headers', 'endpoint'],
  ] as const) {
    const written = fields.get(field);
    if (written === undefined || fields.has(needed)) continue;
    fields.delete(field);
    const isEmpty = isJsonObject(written.value) && Object.keys(written.value).length === 0;
    if (!isEmpty) problems.push(`${written.path}: has no effect, because there is no ${needed}`);
  }
}

function translate(fields: ReadonlyMap<string, EntryValue>): Record<string, unknown> {
  const input: Record<string, unknown> = {};
  for (const [field, { value }] of fields) input[field] = value;
  const { transport, command, args, env_vars, headers } = input;
  if (typeof transport === 'string') input.transport = transportNamed(transport) ?? transport;
  if (Array.isArray(command)) {
    input.command = command[0];
    input.args = [...command.slice(1), ...(Array.isArray(args) ? args : [])];
  }
  if (isJsonObject(env_vars)) input.env_vars = asTexts(env_vars);
  if (isJsonObject(headers)) input.headers = asTexts(headers);
  return input;
}

/** `PORT: 8080` is a number in YAML, but text for the program. */
function asTexts(values: JsonObject): Record<string, unknown> {
  const isPlain = (value: unknown) => typeof value === 'number' || typeof value === 'boolean';
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, isPlain(value) ? String(value) : value]),
  );
}

function maskedIn({ env_vars, headers, auth }: InstanceInput, locate: (field: string) => string): string[] {
  return Object.entries({ env_vars, headers, auth }).flatMap(([field, values]) =>
    Object.entries(values ?? {})
      .filter(([, value]) => value === MASK)
      .map(([name]) => `${pathTo(locate(field), name)}: is masked; write the value itself`),
  );
}
