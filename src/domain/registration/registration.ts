// Makes the definition of an instance from the input of a caller: identity, transport, endpoint, command. It is
// pure: clock, randomness and the registry are arguments. Folders, networks and permissions are checked elsewhere.

import Type from 'typebox';
import { Check } from 'typebox/schema';
import { accountOfOthers } from '../errors/account-errors.ts';
import type { GatewayError } from '../errors/errors.ts';
import { configIncomplete } from '../errors/registry-errors.ts';
import { validationFailed } from '../errors/request-errors.ts';
import {
  compileShape,
  inspect,
  inspectNumbers,
  locatedAt,
  refuseIssues,
  type Shape,
} from '../errors/validation.ts';
import type { InstanceAuth } from '../instances/account-connection.ts';
import { commandWords } from '../instances/command.ts';
import {
  type ContainerRef,
  type InstanceChange,
  type InstanceDefinition,
  InstanceInput,
  instanceIdOf,
  MAX_WEIGHT,
  TemplateAuth,
} from '../instances/instance.ts';
import {
  defaultTransport,
  FUNCTION_TRANSPORT,
  TRANSPORT_TRAITS,
  type TransportKind,
} from '../instances/transport-kinds.ts';
import { canonicalText, definedFields, isJsonObject, jsonCopy, valuesIn } from '../json/json.ts';
import { ANY_NODE } from '../nodes/nodes.ts';
import { readEndpoint } from './instance-endpoint.ts';

/** Characters of the metadata of one instance, as JSON. Over it, and over the next one: VALIDATION_ERROR. */
export const MAX_METADATA_CHARACTERS = 64 * 1024;
/** Values of metadata, keys included. */
export const MAX_METADATA_VALUES = 1_000;

export interface RegistrationOrigin {
  /** Where the instance comes from. Default: `api`. */
  readonly source?: InstanceDefinition['source'];
  /** Hash of the file entry, with source `file`; of the finding, with source `sync`. */
  readonly fingerprint?: string;
  /** The container in which sync found it: a command runs there. */
  readonly container?: ContainerRef | undefined;
  /** True when the caller is limited to some templates: the server id reveals nothing about the others. Default: false. */
  readonly isLimited?: boolean;
}

export interface RegistrationContext extends RegistrationOrigin {
  /** The present instance with this id in the template, which is replaced. */
  readonly find: (id: string) => InstanceDefinition | undefined;
  /**
   * Whether an instance of the template uses such accounts at this endpoint. Default: none. With `isLimited` there
   * is no first one.
   */
  readonly usesAccounts?: (endpoint: string, who: InstanceAuth['who']) => boolean;
  /** Whether any instance of the registry has this server id. */
  readonly isServerIdTaken: (serverId: string) => boolean;
  /** Eight random lower-case hexadecimal digits. */
  readonly randomHex: () => string;
  /** ISO 8601. */
  readonly now: string;
  /** This node, which runs the program. Absent when there is only one node. */
  readonly nodeId?: string | undefined;
  /**
   * True when new programs without a working directory may run on any node, unless they name one. Default: false, and
   * they belong to this node.
   */
  readonly isAnyDefault?: boolean | undefined;
  /**
   * True when the name of a node does not return after it ends: a program that would belong to one is refused.
   * Default: false. Source: ADR 168.
   */
  readonly hasEphemeralNodes?: boolean | undefined;
  /** True when a function of this process is the backend, so that neither endpoint nor command is needed. */
  readonly isInProcess?: boolean;
  /**
   * The accounts at backends that want OAuth which are kept: none without encryption, only shared ones without users.
   * Default: `all`.
   */
  readonly accounts?: 'none' | 'shared' | 'all' | undefined;
  /** `loc` of errors. Default: `['body', 'instance']`. */
  readonly loc?: readonly (string | number)[];
}

/**
 * Makes the definition of an instance of `template`. `input` comes from `checkedInput`, and the template has a valid name.
 *
 * - The default `id` is `<template>-<8 hex>`. `serverId` is the id, or `<template>.<id>` when that is taken; with
 *   `isLimited` it is always `<template>~<id>`, which is unique because no name contains a `~`. A replaced instance keeps
 *   its `serverId` and `createdAt`. Source: ADR 6.
 * - `transport` follows from the fields: an endpoint means http unless it says `sse`, a command alone stdio, both an
 *   endpoint with a program that the gateway runs.
 * - `command` is split into words only when `args` is absent.
 * - `weight` may be in `metadata.weight`; default 1.
 * - A program on standard input and output belongs to no single node if that is the default, it has no working directory,
 *   and it replaces none of this node. Any other program, and a container, belongs to the node of the context, any other
 *   endpoint to no node. Where names of nodes do not return, a program of one node is refused.
 *
 * Throws INSUFFICIENT_PERMISSIONS (see `usesAccounts`), CONFIG_INCOMPLETE (nothing to reach a server by),
 * VALIDATION_ERROR (a field is wrong by itself or contradicts another) and ENDPOINT_NOT_ALLOWED (credentials in
 * the URL).
 */
export function defineInstance(
  template: string,
  input: InstanceInput,
  context: RegistrationContext,
): InstanceDefinition {
  const loc = context.loc ?? ['body', 'instance'];
  const transport = context.isInProcess ? FUNCTION_TRANSPORT : inferTransport(input, loc);
  refuseUnused(input, loc);
  refuseAccount(input, context.accounts, loc);
  const endpoint =
    input.endpoint === undefined
      ? undefined
      : readEndpoint(input.endpoint, [...loc, 'endpoint'], TRANSPORT_TRAITS[transport].defaultPath);
  const { auth } = instanceAuth(input.auth);
  const isFirst = auth && endpoint !== undefined && context.usesAccounts?.(endpoint, auth.who) !== true;
  if (isFirst && context.isLimited === true) throw accountOfOthers();
  const program = readProgram(input, loc);
  const weight = readWeight(input, loc);
  checkMetadata(input, loc);

  const id = input.id ?? inventId(template, context);
  const existing = context.find(id);
  const { container, fingerprint } = context;
  const isLocal = program !== undefined || container !== undefined;
  return {
    id,
    serverId: existing?.serverId ?? inventServerId(template, id, context),
    template,
    transport,
    ...definedFields({ endpoint, command: program?.command, workingDir: input.working_dir }),
    args: program?.args ?? [],
    env: { ...input.env_vars },
    ...secretNames(input.secret_env_vars),
    headers: { ...input.headers },
    ...instanceAuth(input.auth),
    ...pinnedEra(input.era),
    ...(input.force === true ? { force: true } : {}),
    weight,
    metadata: { ...input.metadata },
    source: context.source ?? 'api',
    ...definedFields({
      container,
      fingerprint,
      nodeId: isLocal ? nodeOf(input, transport, context, existing) : undefined,
    }),
    createdAt: existing?.createdAt ?? context.now,
    updatedAt: context.now,
  };
}

type InputLocation = readonly (string | number)[];

function inferTransport({ transport, endpoint, command }: InstanceInput, loc: InputLocation): TransportKind {
  if (endpoint === undefined && command === undefined)
    throw configIncomplete('The instance has neither "endpoint" nor "command".');
  if (transport === undefined) return defaultTransport({ endpoint });
  const { reachedBy } = TRANSPORT_TRAITS[transport];
  if (reachedBy === 'endpoint' && endpoint === undefined)
    throw configIncomplete(`The transport "${transport}" needs an "endpoint".`);
  if (reachedBy === 'command' && command === undefined)
    throw configIncomplete(`The transport "${transport}" needs a "command".`);
  if (reachedBy === 'command' && endpoint !== undefined)
    throw invalid(
      [...loc, 'endpoint'],
      `An instance with the transport "${transport}" must not have an endpoint`,
    );
  return transport;
}

/** Refuses fields without effect, because the caller expects an effect. */
function refuseUnused(input: InstanceInput, loc: InputLocation): void {
  refuseEra(input.era, input.transport, loc);
  const { endpoint, command, args, working_dir, env_vars, secret_env_vars, headers, force, node } = input;
  const isFilled = (field: object | undefined) => field !== undefined && Object.keys(field).length > 0;
  if (command === undefined) {
    if (isFilled(args)) throw configIncomplete('"args" are given, but the "command" is missing.');
    if (working_dir !== undefined)
      throw invalid([...loc, 'working_dir'], 'Only a command has a working directory');
    if (force === true) throw invalid([...loc, 'force'], 'Only a command can be forced');
    if (node !== undefined) throw invalid([...loc, 'node'], 'Only a command runs on a node');
    if (isFilled(env_vars)) throw invalid([...loc, 'env_vars'], 'Only a command has environment variables');
    if (isFilled(secret_env_vars))
      throw invalid([...loc, 'secret_env_vars'], 'Only a command has environment variables');
  }
  refuseAuth(input, loc);
  if (endpoint === undefined && isFilled(headers))
    throw invalid([...loc, 'headers'], 'Only an endpoint has headers');
}

/** An account is for a server at an endpoint that the gateway does not start. */
function refuseAuth({ auth, command, endpoint, headers = {} }: InstanceInput, loc: InputLocation): void {
  if (auth === undefined) return;
  const { mode, who, client_id, client_secret, scopes } = auth;
  const at = [...loc, 'auth'];
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  if (mode === 'headers' && names.length === 0) throw invalid(at, 'There are no "headers"');
  if (mode === 'none' && names.includes('authorization'))
    throw invalid(at, 'There is a header "Authorization"');
  if (mode !== 'oauth') {
    const other = [who, client_id, client_secret, scopes].some((field) => field !== undefined);
    if (other) throw invalid(at, 'Only the mode "oauth" has other fields');
    return;
  }
  if (command !== undefined || endpoint === undefined)
    throw invalid(at, 'Only a server at an endpoint, without a command, is reached with OAuth');
  if (names.includes('authorization'))
    throw invalid(at, 'A server that is reached with OAuth must have no header "Authorization"');
  if (who === undefined) throw invalid([...at, 'who'], WHO);
  if (client_secret !== undefined && client_id === undefined)
    throw invalid([...at, 'client_secret'], 'A client_secret needs a client_id');
}

/**
 * The input with the `auth` of its template, where it may have one. Its own fields go first, and so does a header
 * `Authorization`.
 */
export function withTemplateAuth(input: InstanceInput, inherited: TemplateAuth | undefined): InstanceInput {
  const { auth, command, endpoint, headers = {} } = input;
  if (inherited === undefined || endpoint === undefined || command !== undefined) return input;
  if (auth !== undefined)
    return auth.mode !== 'oauth' || inherited.mode !== 'oauth'
      ? input
      : { ...input, auth: { ...inherited, ...auth } };
  const hasOwn = Object.keys(headers).some((name) => name.toLowerCase() === 'authorization');
  return hasOwn ? input : { ...input, auth: inherited };
}

/**
 * A copy of the `auth` of a template. Throws VALIDATION_ERROR, with the object at `loc`; also for credentials, which
 * belong to instances.
 */
export function checkedTemplateAuth(written: unknown, loc: InputLocation): TemplateAuth {
  const credential = ['client_id', 'client_secret'].find((name) => isJsonObject(written) && name in written);
  if (credential !== undefined)
    throw invalid([...loc, credential], 'A template has no credentials: give them to its instances');
  const auth = checkedInput(written, templateAuthShape, loc);
  const { mode, who, scopes } = auth;
  if (mode === 'oauth' && who === undefined) throw invalid([...loc, 'who'], WHO);
  if (mode !== 'oauth' && (who !== undefined || scopes !== undefined))
    throw invalid(loc, 'Only the mode "oauth" has other fields');
  return auth;
}

const WHO = 'Set it to "user" (own accounts) or "shared" (one account for all)';
const templateAuthShape = compileShape(
  Type.Object(TemplateAuth.properties, { additionalProperties: false }),
  'body',
);

function refuseAccount(
  { auth }: InstanceInput,
  accounts: RegistrationContext['accounts'],
  loc: InputLocation,
): void {
  if (auth?.mode !== 'oauth') return;
  if (accounts === 'none')
    throw configIncomplete(
      'Accounts at backends are stored encrypted: set GATEWAY_SECRET_KEY or GATEWAY_ENCRYPTION_KEY on every gateway of this database.',
    );
  if (accounts === 'shared' && auth.who === 'user')
    throw invalid([...loc, 'auth', 'who'], 'While authentication is off there are no users: use "shared"');
}

function instanceAuth(auth: InstanceInput['auth']): Pick<InstanceDefinition, 'auth'> {
  if (auth?.mode !== 'oauth' || auth.who === undefined) return {};
  const { who, client_id: clientId, client_secret: clientSecret, scopes } = auth;
  return { auth: { who, ...definedFields({ clientId, clientSecret, scopes }) } };
}

/** The node of a program or a container. A server at an endpoint, and a container, are at one node. */
function nodeOf(
  input: InstanceInput,
  transport: TransportKind,
  context: RegistrationContext,
  existing: InstanceDefinition | undefined,
): string | undefined {
  const { node, working_dir } = input;
  const { nodeId, isAnyDefault = false, container, loc = ['body', 'instance'] } = context;
  const isMovable = TRANSPORT_TRAITS[transport].reachedBy === 'command' && container === undefined;
  if (node === ANY_NODE && !isMovable)
    throw invalid([...loc, 'node'], 'Only a program on standard input and output runs on any node');
  const isEphemeral = context.hasEphemeralNodes === true && container === undefined;
  const stays = existing !== undefined && existing.nodeId === nodeId && !isEphemeral;
  const isAny = isAnyDefault && isMovable && working_dir === undefined && !stays;
  const wanted = node ?? (isAny ? ANY_NODE : nodeId);
  if (isEphemeral && wanted !== ANY_NODE) throw ephemeralNode(input, isMovable, loc);
  return wanted;
}

function ephemeralNode({ node, working_dir }: InstanceInput, isMovable: boolean, loc: InputLocation) {
  if (!isMovable)
    return invalid(
      [...loc, 'endpoint'],
      'A program that serves an endpoint belongs to one node, whose name is not used again after it ends. Run it as a service, and register its endpoint alone',
    );
  return invalid(
    [...loc, node === undefined && working_dir !== undefined ? 'working_dir' : 'node'],
    'A program must not belong to one node: its name is not used again after it ends. Set "node" to "any"',
  );
}

function refuseEra(
  era: InstanceInput['era'],
  transport: TransportKind | undefined,
  loc: InputLocation,
): void {
  if (transport === undefined || era === undefined || era === 'auto') return;
  const { onlyEra, title } = TRANSPORT_TRAITS[transport];
  if (onlyEra !== undefined && era !== onlyEra)
    throw invalid([...loc, 'era'], `${title} is a transport of the ${onlyEra} era`);
}

function pinnedEra(era: InstanceInput['era']): Pick<InstanceDefinition, 'era'> {
  return era === undefined || era === 'auto' ? {} : { era };
}

function secretNames(names: readonly string[] = []): Pick<InstanceDefinition, 'secretEnv'> {
  return names.length === 0 ? {} : { secretEnv: [...new Set(names)] };
}

function readProgram(
  input: InstanceInput,
  loc: InputLocation,
): { command: string; args: readonly string[] } | undefined {
  if (input.command === undefined) return undefined;
  const split = commandWords(input);
  if ('problem' in split)
    throw invalid([...loc, 'command'], `The command cannot be split into words: ${split.problem}`);
  const [command = '', ...args] = split.words;
  if (command.trim() === '') throw invalid([...loc, 'command'], 'The command is empty');
  return { command, args };
}

/** The definition after a change. Throws VALIDATION_ERROR. */
export function changedInstance(
  before: InstanceDefinition,
  change: InstanceChange,
  updatedAt: string,
): InstanceDefinition {
  const { era: pinned, ...others } = before;
  const { era = pinned, metadata = before.metadata } = change;
  refuseEra(era, before.transport, ['body']);
  const weight = changedWeight(change, before);
  return { ...others, ...pinnedEra(era), weight, metadata, updatedAt };
}

/** One in the metadata counts if it differs from the one there before. */
function changedWeight(change: InstanceChange, before: InstanceDefinition): number {
  const written = before.metadata.weight;
  const isOther = canonicalText(change.metadata?.weight ?? written) !== canonicalText(written);
  return isOther ? readWeight(change, ['body']) : (change.weight ?? before.weight);
}

function readWeight({ weight, metadata }: InstanceChange, loc: InputLocation): number {
  const written = weight ?? metadata?.weight ?? 1;
  if (Check(InstanceInput.properties.weight, written)) return written;
  throw invalid([...loc, 'metadata', 'weight'], `A weight must be a whole number from 1 to ${MAX_WEIGHT}`);
}

/** Throws VALIDATION_ERROR for metadata above the limits. */
export function checkMetadata({ metadata = {} }: Pick<InstanceInput, 'metadata'>, loc: InputLocation): void {
  if (valuesIn(metadata, MAX_METADATA_VALUES) > MAX_METADATA_VALUES)
    throw invalid([...loc, 'metadata'], `Metadata must have at most ${MAX_METADATA_VALUES} values and keys`);
  if (JSON.stringify(metadata).length > MAX_METADATA_CHARACTERS)
    throw invalid(
      [...loc, 'metadata'],
      `Metadata must be at most ${MAX_METADATA_CHARACTERS} characters of JSON`,
    );
}

/**
 * A copy of an object with this shape: an embedding program may change its own, and a document in YAML may have
 * values that are not JSON. Throws VALIDATION_ERROR, with the object at `loc`; also for numbers that are not exact.
 */
export function checkedInput<T>(written: unknown, shape: Shape<T>, loc: InputLocation): T {
  const copy = jsonCopy(written);
  if (!isJsonObject(copy)) {
    const msg = 'Input should be a dictionary that JSON can hold';
    throw validationFailed([{ loc, msg, type: 'dict_type' }]);
  }
  refuseIssues(locatedAt(loc, inspect(copy)));
  refuseIssues(locatedAt(loc, inspectNumbers(written))); // the copy has null for an infinite one
  if (shape.accepts(copy)) return copy;
  throw validationFailed(locatedAt(loc, shape.issues(copy)));
}

function inventId(template: string, context: RegistrationContext): string {
  for (;;) {
    const id = instanceIdOf(template, context.randomHex());
    if (context.find(id) === undefined) return id;
  }
}

function inventServerId(
  template: string,
  id: string,
  { isServerIdTaken, isLimited }: RegistrationContext,
): string {
  if (isLimited) return `${template}~${id}`;
  if (!isServerIdTaken(id)) return id;
  let serverId = `${template}.${id}`;
  // An instance of another template may have this id.
  for (let number = 2; isServerIdTaken(serverId); number += 1) serverId = `${template}.${id}.${number}`;
  return serverId;
}

function invalid(loc: InputLocation, msg: string): GatewayError {
  return validationFailed([{ loc, msg, type: 'value_error' }]);
}

/** Issues have a `loc` as if the instance were the body. */
export const instanceShape = compileShape(InstanceInput, 'body');
