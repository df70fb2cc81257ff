// Checks what an embedding program makes a gateway with: a word that is none would break it later, at a moment when nobody
// looks. The program itself reads its settings from config.ts, and comes here with what is right already.

import { nearest } from '../config/nearest.ts';
import { type ValidationItem, validationFailed } from '../domain/errors.ts';
import { type BalancerPolicy, SESSION_FAILOVER, SESSION_SHARING, STRATEGY_NAMES } from '../domain/policy.ts';
import { TEMPLATE_ID_PATTERN } from '../domain/template.ts';
import type { GatewayOptions } from '../gateway-types.ts';
import { deniedBy } from '../transports/network-guard.ts';

/** The same options, without what is undefined in the policy. VALIDATION_ERROR names each that cannot be used, or is none, and what would do; never its value. */
export function checkedOptions(options: GatewayOptions): GatewayOptions {
  const items = findings(OPTIONS, options, ['options']);
  if (items.length > 0) throw validationFailed(items, 'What the gateway is made with');
  const { policy = {} } = options;
  const set = Object.entries(policy).filter(([, value]) => value !== undefined);
  return set.length === Object.keys(policy).length
    ? options
    : { ...options, policy: Object.fromEntries(set) };
}

interface Check {
  /** Completes "expected ...". */
  readonly expected: string;
  readonly accepts: (value: unknown) => boolean;
}

/** What an object may hold. All of it may be missing, or undefined. */
interface Members {
  readonly members: Readonly<Record<string, Check | Members>>;
}

function membersOf<T>(members: Readonly<Record<keyof T, Check | Members>>): Members {
  return { members };
}

/** Bounds are those of the settings, see config/settings/balancing.ts. */
const LONGEST_MS = 3_600_000;
const LONGEST_GRACE_MS = 600_000;
const LONGEST_IDLE_MS = 604_800_000;
const MOST_SESSIONS = 1_000_000;
const MOST_PROCESSES = 10_000;
const MOST_RETRIES = 10;
const SEAL_BYTES = 32;

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
  news$: observable(),
  policy: POLICY,
  templates: listOf(`names that match ${TEMPLATE_ID_PATTERN}`, (name) => NAME.test(name)),
  deniedNetworks: listOf('networks in CIDR form, like 10.0.0.0/8', isNetwork),
  graceMs: milliseconds(0, LONGEST_GRACE_MS),
  sessions: SESSIONS,
  sealKey: {
    expected: `a Buffer of at least ${SEAL_BYTES} bytes`,
    accepts: (value) => Buffer.isBuffer(value) && value.length >= SEAL_BYTES,
  },
  changedCallers$: observable(),
  onFault: aFunction(),
  random: aFunction(),
});

function findings({ members }: Members, value: unknown, loc: readonly string[]): ValidationItem[] {
  const names = Object.keys(members);
  if (typeof value !== 'object' || value === null)
    return [finding(loc, `expected an object with the options ${names.join(', ')}`)];
  return Object.entries(value).flatMap(([name, written]) => {
    const at = [...loc, name];
    const check = Object.hasOwn(members, name) ? members[name] : undefined;
    if (check === undefined)
      return [finding(at, `there is no such option; "${nearest(name, names)}" is the nearest`)];
    if (written === undefined) return [];
    if ('members' in check) return findings(check, written, at);
    return check.accepts(written) ? [] : [finding(at, `expected ${check.expected}`)];
  });
}

function finding(loc: readonly string[], msg: string): ValidationItem {
  return { loc, msg, type: 'value_error' };
}

function oneOf(words: readonly string[]): Check {
  return {
    expected: `one of ${words.join(', ')}`,
    accepts: (value) => typeof value === 'string' && words.includes(value),
  };
}

function milliseconds(least: number, most: number): Check {
  return {
    expected: `milliseconds from ${least} to ${most}`,
    accepts: (value) => isNumber(value) && value >= least && value <= most,
  };
}

function wholeNumber(least: number, most: number): Check {
  return {
    expected: `a whole number from ${least} to ${most}`,
    accepts: (value) => Number.isInteger(value) && Number(value) >= least && Number(value) <= most,
  };
}

function listOf(what: string, accepts: (text: string) => boolean): Check {
  return {
    expected: `a list of ${what}`,
    accepts: (value) =>
      Array.isArray(value) && value.every((each) => typeof each === 'string' && accepts(each)),
  };
}

function observable(): Check {
  return { expected: 'an Observable', accepts: (value) => has(value, 'subscribe') };
}

function aFunction(): Check {
  return { expected: 'a function', accepts: (value) => typeof value === 'function' };
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}

function has(value: unknown, method: string): boolean {
  return typeof value === 'object' && value !== null && typeof Reflect.get(value, method) === 'function';
}

function isNetwork(text: string): boolean {
  try {
    deniedBy([text]);
    return true;
  } catch {
    return false; // which is what was asked
  }
}
