// Checks the input of embedding programs without types: options of the gateway by tables of allowed values, since a wrong value would
// fail later, far from its cause; and the arguments of every call, which allocates only for an error. Issues name fields and rules,
// never values. The options of the command line come from config.ts and are valid.

import { isAbsolute } from 'node:path';
import Type from 'typebox';
import type { ErrorAnswer, RequestOptions } from '../actors/calls/requests.ts';
import { nearest } from '../config/nearest.ts';
import { validationFailed } from '../domain/error-catalogue.ts';
import type { GatewayError, ValidationItem } from '../domain/errors.ts';
import { EVENTS, type EventName } from '../domain/events.ts';
import type { ExchangeRequest } from '../domain/exchange.ts';
import { isJsonObject } from '../domain/json.ts';
import { LIST_METHODS, type ListField } from '../domain/mcp.ts';
import { type BalancerPolicy, SESSION_FAILOVER, SESSION_SHARING, STRATEGY_NAMES } from '../domain/policy.ts';
import { TEMPLATE_ID_PATTERN } from '../domain/template.ts';
import { compileShape } from '../domain/validation.ts';
import type { CloseOptions, GatewayOptions } from '../gateway-types.ts';
import type { RegisterOptions } from '../registry/registry-types.ts';
import { TemplateFile } from '../templates/definition.ts';
import { deniedBy } from '../transports/network-guard.ts';

/**
 * The same options, without undefined fields in the policy. VALIDATION_ERROR names each unknown or invalid option and the
 * expected type; never its value.
 */
export function checkedOptions(options: GatewayOptions): GatewayOptions {
  check(OPTIONS, options, 'The argument of createGateway');
  const { policy = {} } = options;
  const set = Object.entries(policy).filter(([, value]) => value !== undefined);
  return set.length === Object.keys(policy).length
    ? options
    : { ...options, policy: Object.fromEntries(set) };
}

/** Bounds are those of the settings, see config/settings.ts. */
const LONGEST_MS = 3_600_000;
const LONGEST_GRACE_MS = 600_000;
const LONGEST_IDLE_MS = 604_800_000;
const MOST_SESSIONS = 1_000_000;
const MOST_PROCESSES = 10_000;
const MOST_RETRIES = 10;
const STATE_KEY_BYTES = 32;

export function checkRegisterOptions(options: RegisterOptions): void {
  check(REGISTER_OPTIONS, options, 'The registration');
}

export function checkCloseOptions(options: CloseOptions): void {
  check(CLOSE_OPTIONS, options, 'The argument of close');
}

/** `expected` completes "expected ...". */
type Check = readonly [expected: string, accepts: (value: unknown) => boolean];

/** The options of an object; each may be missing or undefined. */
interface Table {
  readonly [option: string]: Check | Table;
}

const POLICY = {
  strategy: oneOf(STRATEGY_NAMES),
  healthIntervalMs: milliseconds(1, LONGEST_MS),
  probeTimeoutMs: milliseconds(1, LONGEST_MS),
  maxRetries: wholeNumber(0, MOST_RETRIES),
  callTimeoutMs: milliseconds(1, LONGEST_MS),
  session: oneOf(SESSION_SHARING),
  sessionFailover: oneOf(SESSION_FAILOVER),
} satisfies Record<keyof BalancerPolicy, Check>;

const SESSIONS = {
  max: wholeNumber(1, MOST_SESSIONS),
  idleMs: milliseconds(1, LONGEST_IDLE_MS),
  processes: wholeNumber(1, MOST_PROCESSES),
  share: ['a number above 0, at most 1', (value) => isNumber(value) && value > 0 && value <= 1],
} satisfies Record<keyof Required<GatewayOptions>['sessions'], Check>;

const NAME = new RegExp(TEMPLATE_ID_PATTERN);
const OBSERVABLE: Check = ['an Observable', (value) => has(value, 'subscribe')];
const FUNCTION: Check = ['a function', (value) => typeof value === 'function'];
const BOOLEAN: Check = ['true or false', (value) => typeof value === 'boolean'];

const OPTIONS = {
  store: ['a store, such as openStore returns', (value) => has(value, 'listInstances')],
  nodeId: ['a name', (value) => typeof value === 'string' && value !== ''],
  storeChanges$: OBSERVABLE,
  policy: POLICY,
  templates: listOf(`names that match ${TEMPLATE_ID_PATTERN}`, (name) => NAME.test(name)),
  deniedNetworks: listOf('networks in CIDR form, like 10.0.0.0/8', isNetwork),
  definitions: [
    'a list of template definitions',
    (value) => Array.isArray(value) && value.every((definition) => rules.accepts(definition)),
  ],
  passEnv: listOf('names of variables', (name) => name !== '' && !/[=\0]/.test(name)),
  protectedPaths: [
    'a list of { path, what }, each path absolute',
    (value) => Array.isArray(value) && value.every(isProtectedPath),
  ],
  graceMs: milliseconds(0, LONGEST_GRACE_MS),
  sessions: SESSIONS,
  stateKey: [
    `a Buffer of at least ${STATE_KEY_BYTES} bytes`,
    (value) => Buffer.isBuffer(value) && value.length >= STATE_KEY_BYTES,
  ],
  memoryBytes: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  changedCallers$: OBSERVABLE,
  onFault: FUNCTION,
  discovery: ['an object', isJsonObject],
  inspect: ['a function or an observer', (value) => typeof value === 'function' || has(value, 'next')],
  random: FUNCTION,
} satisfies Record<keyof GatewayOptions, Check | Table>;

const REGISTER_OPTIONS = {
  source: oneOf(['api', 'file', 'sync']),
  fingerprint: ['a text', (value) => typeof value === 'string'],
  container: ['{ engine, id }', isJsonObject],
  handler: FUNCTION,
  isLimited: BOOLEAN,
  loadBalancer: ['settings of a template', isJsonObject],
  waitMs: milliseconds(0, LONGEST_MS),
  mayBeUnhealthy: BOOLEAN,
} satisfies Record<keyof RegisterOptions, Check>;

const CLOSE_OPTIONS = {
  graceMs: milliseconds(0, LONGEST_GRACE_MS),
} satisfies Record<keyof CloseOptions, Check>;

/** The parts of a definition that a gateway uses. */
const rules = compileShape(
  Type.Object({
    id: TemplateFile.properties.id,
    environment: TemplateFile.properties.environment,
    requires: TemplateFile.properties.requires,
    ports: TemplateFile.properties.ports,
    command: TemplateFile.properties.command,
    args: TemplateFile.properties.args,
    transport: TemplateFile.properties.transport,
  }),
  'body',
);

function isProtectedPath(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  const { path, what } = value;
  return typeof path === 'string' && isAbsolute(path) && typeof what === 'string';
}

function isNetwork(text: string): boolean {
  try {
    deniedBy([text]);
    return true;
  } catch {
    return false;
  }
}

/** VALIDATION_ERROR names each unknown or invalid option, and what is expected. `what` begins its message. */
function check(table: Table, value: unknown, what: string): void {
  const items = issues(table, value, ['options']);
  if (items.length > 0) throw validationFailed(items, what);
}

function issues(table: Table, value: unknown, loc: readonly string[]): ValidationItem[] {
  const names = Object.keys(table);
  if (typeof value !== 'object' || value === null)
    return [issue(loc, `expected an object with the options ${names.join(', ')}`)];
  return Object.entries(value).flatMap(([name, written]) => {
    const at = [...loc, name];
    const row = Object.hasOwn(table, name) ? table[name] : undefined;
    if (row === undefined) return [issue(at, `unknown option; the nearest is "${nearest(name, names)}"`)];
    if (written === undefined) return [];
    if (!isCheck(row)) return issues(row, written, at);
    const [expected, accepts] = row;
    return accepts(written) ? [] : [issue(at, `expected ${expected}`)];
  });
}

function isCheck(row: Check | Table): row is Check {
  return Array.isArray(row);
}

function issue(loc: readonly string[], msg: string): ValidationItem {
  return { loc, msg, type: 'value_error' };
}

function oneOf(words: readonly string[]): Check {
  return [`one of ${words.join(', ')}`, (value) => typeof value === 'string' && words.includes(value)];
}

function milliseconds(least: number, most: number): Check {
  return [
    `milliseconds from ${least} to ${most}`,
    (value) => isNumber(value) && value >= least && value <= most,
  ];
}

function wholeNumber(least: number, most: number): Check {
  return [
    `a whole number from ${least} to ${most}`,
    (value) => Number.isInteger(value) && Number(value) >= least && Number(value) <= most,
  ];
}

function listOf(what: string, accepts: (text: string) => boolean): Check {
  return [
    `a list of ${what}`,
    (value) => Array.isArray(value) && value.every((item) => typeof item === 'string' && accepts(item)),
  ];
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}

function has(value: unknown, method: string): boolean {
  return typeof value === 'object' && value !== null && typeof Reflect.get(value, method) === 'function';
}

// --- arguments of calls ---------------------------------------------------------------------------------------------

/** The error for an invalid request; undefined for a valid one. VALIDATION_ERROR names the field, never its value. */
export function refusalOfRequest(
  request: ExchangeRequest,
  options: RequestOptions | undefined,
): GatewayError | undefined {
  if (typeof request !== 'object' || request === null)
    return invalidArgument('request', 'expected an object');
  const { method, params, headers } = request;
  if (typeof method !== 'string' || method === '')
    return invalidArgument('method', 'expected the name of a method');
  if (params !== undefined && !isFields(params)) return invalidArgument('params', 'expected an object');
  if (headers !== undefined && !isFields(headers)) return invalidArgument('headers', 'expected an object');
  return refusalOfOptions(options);
}

export function refusalOfCall(
  tool: string,
  args: object,
  options: RequestOptions | undefined,
): GatewayError | undefined {
  if (typeof tool !== 'string' || tool === '') return invalidArgument('tool', 'expected the name of a tool');
  if (!isFields(args)) return invalidArgument('args', 'expected an object');
  return refusalOfOptions(options);
}

export function refusalOfList(
  field: ListField,
  options: RequestOptions | undefined,
): GatewayError | undefined {
  const fields = Object.keys(LIST_METHODS);
  if (!fields.includes(field)) return invalidArgument('field', `expected one of ${fields.join(', ')}`);
  return refusalOfOptions(options);
}

/** The same for the arguments of `Gateway.errorOf`. */
export function refusalOfAnswer(request: ExchangeRequest, answered: ErrorAnswer): GatewayError | undefined {
  const isAnswer = isFields(answered) && isFields(answered.error);
  return isAnswer
    ? refusalOfRequest(request, undefined)
    : invalidArgument('answered', 'expected an error answer');
}

/** VALIDATION_ERROR for a name that is not the name of an event. */
export function checkEventName(name: EventName): void {
  if (typeof name !== 'string') throw invalidArgument('name', 'expected the name of an event');
  if (Object.hasOwn(EVENTS, name)) return;
  const nearestName = nearest(name, Object.keys(EVENTS));
  throw invalidArgument('name', `unknown event; the nearest is "${nearestName}"`);
}

function refusalOfOptions(options: RequestOptions | undefined): GatewayError | undefined {
  if (options === undefined) return undefined;
  if (!isFields(options)) return invalidArgument('options', 'expected an object');
  const { timeoutMs, instanceId, signal, caller, requestId } = options;
  // Without an upper bound: LIMITS.callLongestMs limits every call.
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs > 0))
    return invalidArgument('timeoutMs', 'expected milliseconds above 0');
  if (instanceId !== undefined && typeof instanceId !== 'string')
    return invalidArgument('instanceId', 'expected the id of an instance');
  if (caller !== undefined && typeof caller !== 'string')
    return invalidArgument('caller', 'expected the id of a caller');
  if (requestId !== undefined && typeof requestId !== 'string')
    return invalidArgument('requestId', 'expected the id of a request');
  if (signal !== undefined && !(signal instanceof AbortSignal))
    return invalidArgument('signal', 'expected an AbortSignal');
  return undefined;
}

function isFields(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalidArgument(field: string, msg: string): GatewayError {
  return validationFailed([issue(['arguments', field], msg)]);
}
