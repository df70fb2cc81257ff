// Checks the options of an embedding program with tables of allowed values: a wrong value would otherwise fail later, far from its
// cause. Issues name options and rules, never values. The options of the command line come from config.ts and are valid.

import { isAbsolute } from 'node:path';
import Type from 'typebox';
import { nearest } from '../config/nearest.ts';
import { validationFailed } from '../domain/error-catalogue.ts';
import type { ValidationItem } from '../domain/errors.ts';
import { isJsonObject } from '../domain/json.ts';
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
  checkMembers(OPTIONS, options, 'What the gateway is made with');
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

/** VALIDATION_ERROR names each unknown or invalid option of a registration. */
export function checkRegisterOptions(options: RegisterOptions): void {
  checkMembers(REGISTER_OPTIONS, options, 'The registration');
}

export function checkCloseOptions(options: CloseOptions): void {
  checkMembers(CLOSE_OPTIONS, options, 'What the gateway is closed with');
}

const POLICY = membersOf<BalancerPolicy>({
  strategy: oneOf(STRATEGY_NAMES),
  healthIntervalMs: milliseconds(1, LONGEST_MS),
  probeTimeoutMs: milliseconds(1, LONGEST_MS),
  maxRetries: wholeNumber(0, MOST_RETRIES),
  callTimeoutMs: milliseconds(1, LONGEST_MS),
  session: oneOf(SESSION_SHARING),
  sessionFailover: oneOf(SESSION_FAILOVER),
});

const SESSIONS = membersOf<Required<GatewayOptions>['sessions']>({
  max: wholeNumber(1, MOST_SESSIONS),
  idleMs: milliseconds(1, LONGEST_IDLE_MS),
  processes: wholeNumber(1, MOST_PROCESSES),
  share: {
    expected: 'a number above 0, at most 1',
    accepts: (value) => isNumber(value) && value > 0 && value <= 1,
  },
});

const NAME = new RegExp(TEMPLATE_ID_PATTERN);

const OPTIONS = membersOf<GatewayOptions>({
  store: { expected: 'a store, such as openStore gives', accepts: (value) => has(value, 'listInstances') },
  nodeId: { expected: 'a name', accepts: (value) => typeof value === 'string' && value !== '' },
  storeChanges$: observable(),
  policy: POLICY,
  templates: arrayOf(`names that match ${TEMPLATE_ID_PATTERN}`, (name) => NAME.test(name)),
  deniedNetworks: arrayOf('networks in CIDR form, like 10.0.0.0/8', isNetwork),
  definitions: {
    expected: 'a list of template definitions',
    accepts: (value) => Array.isArray(value) && value.every((definition) => rules.accepts(definition)),
  },
  passEnv: arrayOf('names of variables', (name) => name !== '' && !/[=\0]/.test(name)),
  protectedPaths: {
    expected: 'a list of { path, what }, each path absolute',
    accepts: (value) => Array.isArray(value) && value.every(isProtectedPath),
  },
  graceMs: milliseconds(0, LONGEST_GRACE_MS),
  sessions: SESSIONS,
  stateKey: {
    expected: `a Buffer of at least ${STATE_KEY_BYTES} bytes`,
    accepts: (value) => Buffer.isBuffer(value) && value.length >= STATE_KEY_BYTES,
  },
  memoryBytes: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  changedCallers$: observable(),
  onFault: aFunction(),
  discovery: { expected: 'an object', accepts: isJsonObject },
  inspect: {
    expected: 'a function or an observer',
    accepts: (value) => typeof value === 'function' || has(value, 'next'),
  },
  random: aFunction(),
});

const REGISTER_OPTIONS = membersOf<RegisterOptions>({
  source: oneOf(['api', 'file', 'sync']),
  fingerprint: { expected: 'a text', accepts: (value) => typeof value === 'string' },
  container: { expected: '{ engine, id }', accepts: isJsonObject },
  handler: aFunction(),
  isLimited: { expected: 'true or false', accepts: (value) => typeof value === 'boolean' },
  loadBalancer: { expected: 'settings of a template', accepts: isJsonObject },
  waitMs: milliseconds(0, LONGEST_MS),
  mayBeUnhealthy: { expected: 'true or false', accepts: (value) => typeof value === 'boolean' },
});

const CLOSE_OPTIONS = membersOf<CloseOptions>({ graceMs: milliseconds(0, LONGEST_GRACE_MS) });

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

export interface Check {
  /** Completes "expected ...". */
  readonly expected: string;
  readonly accepts: (value: unknown) => boolean;
}

/** The options of an object; each may be missing or undefined. */
export interface Members {
  readonly members: Readonly<Record<string, Check | Members>>;
}

/** A table with a row for each option. */
export function membersOf<T>(members: Readonly<Record<keyof T, Check | Members>>): Members {
  return { members };
}

/** VALIDATION_ERROR names each unknown or invalid option, and what is expected. `what` begins its message. */
export function checkMembers(table: Members, value: unknown, what: string): void {
  const items = issues(table, value, ['options']);
  if (items.length > 0) throw validationFailed(items, what);
}

function issues({ members }: Members, value: unknown, loc: readonly string[]): ValidationItem[] {
  const names = Object.keys(members);
  if (typeof value !== 'object' || value === null)
    return [issue(loc, `expected an object with the options ${names.join(', ')}`)];
  return Object.entries(value).flatMap(([name, written]) => {
    const at = [...loc, name];
    const check = Object.hasOwn(members, name) ? members[name] : undefined;
    if (check === undefined)
      return [issue(at, `there is no such option; "${nearest(name, names)}" is the nearest`)];
    if (written === undefined) return [];
    if ('members' in check) return issues(check, written, at);
    return check.accepts(written) ? [] : [issue(at, `expected ${check.expected}`)];
  });
}

function issue(loc: readonly string[], msg: string): ValidationItem {
  return { loc, msg, type: 'value_error' };
}

export function oneOf(words: readonly string[]): Check {
  return {
    expected: `one of ${words.join(', ')}`,
    accepts: (value) => typeof value === 'string' && words.includes(value),
  };
}

export function milliseconds(least: number, most: number): Check {
  return {
    expected: `milliseconds from ${least} to ${most}`,
    accepts: (value) => isNumber(value) && value >= least && value <= most,
  };
}

export function wholeNumber(least: number, most: number): Check {
  return {
    expected: `a whole number from ${least} to ${most}`,
    accepts: (value) => Number.isInteger(value) && Number(value) >= least && Number(value) <= most,
  };
}

export function arrayOf(what: string, accepts: (text: string) => boolean): Check {
  return {
    expected: `a list of ${what}`,
    accepts: (value) =>
      Array.isArray(value) && value.every((item) => typeof item === 'string' && accepts(item)),
  };
}

export function observable(): Check {
  return { expected: 'an Observable', accepts: (value) => has(value, 'subscribe') };
}

export function aFunction(): Check {
  return { expected: 'a function', accepts: (value) => typeof value === 'function' };
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}

export function has(value: unknown, method: string): boolean {
  return typeof value === 'object' && value !== null && typeof Reflect.get(value, method) === 'function';
}
