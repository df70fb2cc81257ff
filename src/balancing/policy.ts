// TABLE of the settings of a template: how its calls are balanced, bounded and shown. From a
// row come its schemas in the API and in the registry file, the word of `template set`, the field in the console,
// the default `load_balancer.*` of the gateway and docs/reference/load-balancing.md; policy-schemas.ts has the
// schemas. It imports no schema library, because the command line reads the defaults first. Source: ADR 4.

import { LIMITS } from '../domain/limits.ts';
import type { ToolHints } from '../domain/views/view.ts';
import { ARGUMENT, PRINCIPAL } from './consistent-hash.ts';
import { STRATEGIES, STRATEGY_NAMES } from './strategies.ts';

/**
 * The values that a setting accepts, and the conversions between the policy and the written form. `aliases`: further
 * spellings. `meanings`: the meanings of the words. `forms`: what `pattern` accepts, in words for users. Single seconds are
 * whole numbers, except in the defaults of the gateway.
 */
type Values<Value, Written> = (
  | {
      readonly kind: 'choice';
      readonly words: readonly string[];
      readonly aliases: readonly string[];
      readonly meanings: ReadonlyMap<string, string>;
    }
  | { readonly kind: 'text'; readonly pattern: string; readonly forms: readonly string[] }
  | { readonly kind: 'hintsByTool' }
  | {
      readonly kind: 'whole' | 'seconds' | 'secondsByTool';
      readonly least: number;
      readonly most: number;
    }
) & { read(written: Written): Value; show(value: Value): Written };

interface PolicyRow<Name, Value, Written, SetBy> {
  /** The name of the setting, as users write it. */
  readonly name: Name;
  readonly values: Values<Value, Written>;
  readonly default: NoInfer<Value>;
  /** Who sets it: the templates, the gateway for all templates, or the gateway as the default of templates. */
  readonly setBy: SetBy;
  /** The option on the command line of the gateway, and the environment variable, as in config/setting-types.ts. */
  readonly flag?: string;
  readonly variable?: string;
  /** The label in the console. */
  readonly title: string;
  /** The description, in one or two sentences. */
  readonly doc: string;
}

type SetBy = 'template' | 'gateway' | 'default';

const APPROVE_MEANINGS = {
  none: 'each tool is used as its server lists it',
  pinned: 'what is listed now is approved; tools that are new or changed later wait for approval',
};

const POLICY = {
  strategy: row({
    name: 'strategy',
    values: choice(STRATEGY_NAMES, {
      aliases: { weighted: 'weighted_round_robin' },
      meanings: (word) => STRATEGIES[word].meaning,
    }),
    default: 'round_robin',
    setBy: 'default',
    flag: 'strategy',
    variable: 'DEFAULT_STRATEGY',
    title: 'Strategy',
    doc: 'Which instance gets a call.',
  }),
  hashOn: row({
    name: 'hash_on',
    values: text(`^(${PRINCIPAL}|${ARGUMENT}.{1,256})$`, [PRINCIPAL, `${ARGUMENT}<name>`]),
    default: PRINCIPAL,
    setBy: 'default',
    title: 'Hash on',
    doc: '`consistent_hash`: calls with one value go to one instance: `principal` (user or key), or `argument:<name>` by its JSON text.',
  }),
  healthIntervalMs: row({
    name: 'health_check_interval',
    values: seconds(1, 3600),
    default: 30_000,
    setBy: 'default',
    flag: 'health-interval',
    title: 'Health check, s',
    doc: 'Time between two probes of one instance. A call that it answers replaces a probe.',
  }),
  probeTimeoutMs: row({
    name: 'health_check_timeout',
    values: seconds(0.1, 3600),
    default: 10_000,
    setBy: 'gateway',
    flag: 'health-timeout',
    title: 'Health check timeout, s',
    doc: 'Longest wait for the answer to a probe; then the probe has failed.',
  }),
  maxRetries: row({
    name: 'max_retries',
    values: whole(0, 10),
    default: 3,
    setBy: 'default',
    flag: 'max-retries',
    title: 'Retries',
    doc: 'How many other instances are tried after the first one fails.',
  }),
  callTimeoutMs: row({
    name: 'timeout',
    values: seconds(0.1, 3600),
    default: 60_000,
    setBy: 'default',
    flag: 'call-timeout',
    title: 'Timeout, s',
    doc: 'Longest wait for the first answer to a call; progress restarts it. `max_call_seconds` bounds the whole call.',
  }),
  toolTimeoutsMs: row({
    name: 'tool_timeouts',
    values: secondsByTool(0.1, 3600),
    default: {},
    setBy: 'template',
    title: 'Timeouts of tools, s',
    doc: 'Timeouts of calls of these tools, by name: `{"report": 300}`. Others have the timeout of the template.',
  }),
  /** Applies to programs; for other backends LIMITS.handshakeMs does. Source: ADR 113. */
  startTimeoutMs: row({
    name: 'start_timeout',
    values: seconds(5, 3600),
    default: 300_000,
    setBy: 'default',
    flag: 'start-timeout',
    title: 'Start, s',
    doc: 'Longest start of a program until its handshake; then it is stopped and started again.',
  }),
  ejectionFailures: row({
    name: 'ejection_failures',
    values: whole(1, 100),
    default: 5,
    setBy: 'default',
    title: 'Failures before ejection',
    doc: 'Calls that fail in a row before an instance is ejected; also ejects: more than half of at least twice as many calls within 10 s.',
  }),
  /**
   * `auto`: unless the client accepts requests or sets a log level, which cannot be attributed to one client of a shared process;
   * clients that declare extensions share with their like (ADR 26).
   */
  processSharing: row({
    name: 'session',
    values: choice(['auto', 'shared', 'isolated']),
    default: 'auto',
    setBy: 'template',
    title: 'Sessions',
    doc: 'Whether MCP sessions share a process.',
  }),
  /** `auto`: if it only read, and called tools that are read-only or idempotent. */
  sessionFailover: row({
    name: 'session_failover',
    values: choice(['auto', 'always', 'never']),
    default: 'auto',
    setBy: 'template',
    title: 'Session failover',
    doc: 'Whether an MCP session moves to another instance when its own is gone.',
  }),
  /** Replaces the hints that servers send, so that an admin decides what may be repeated. Source: ADR 243. */
  annotate: row({
    name: 'annotate',
    values: hintsByTool(),
    default: {},
    setBy: 'template',
    title: 'Annotations of tools',
    doc: 'Hints instead of those of the server, by tool: `{"report": {"readOnlyHint": true}}`. They decide about repeats.',
  }),
  /** A change takes the scope `admin`. Source: ADR 238. */
  approve: row({
    name: 'approve',
    values: choice(['none', 'pinned'], { meanings: (word) => APPROVE_MEANINGS[word] }),
    default: 'none',
    setBy: 'template',
    title: 'Approval of tools',
    doc: 'Whether new and changed tools are withheld until an admin approves them.',
  }),
};

type Rows = typeof POLICY;

/** All settings of a template, as the gateway uses them; times are in milliseconds. */
export type TemplatePolicy = { readonly [Key in keyof Rows]: Rows[Key]['default'] };
export type StrategyName = TemplatePolicy['strategy'];

/** The keys of the rows, without those that only `Excluded` sets. */
export type KeyExcept<Excluded extends SetBy> = {
  [Key in keyof Rows]: Rows[Key]['setBy'] extends Excluded ? never : Key;
}[keyof Rows];

/** The same settings by name in their written form, without those of the gateway only. */
export type LoadBalancer = {
  [Key in KeyExcept<'gateway'> as Rows[Key]['name']]: Parameters<Rows[Key]['values']['read']>[0];
};

/** Any row of the table, with its key in the policy. */
export interface AnyRow extends PolicyRow<string, unknown, unknown, SetBy> {
  readonly key: string;
}

export const POLICY_ROWS: readonly AnyRow[] = Object.entries(POLICY).map(([key, each]) => ({ key, ...each }));

/** The settings that a template may have. */
export const TEMPLATE_ROWS = POLICY_ROWS.filter(({ setBy }) => setBy !== 'gateway');

/** The defaults of all settings. Source: ADR 4, ADR 113. */
export const DEFAULT_POLICY = policyFrom((each) => each.default);

/** The policy with the value of each row; `fromEntries` loses their types. */
function policyFrom(valueIn: (row: AnyRow) => unknown): TemplatePolicy {
  return Object.fromEntries(POLICY_ROWS.map((each) => [each.key, valueIn(each)])) as TemplatePolicy;
}

/** The policy of a template: its own settings over the defaults of the gateway. */
export function policyOf(loadBalancer: Partial<LoadBalancer>, defaults: TemplatePolicy): TemplatePolicy {
  const own = new Map<string, unknown>(Object.entries(loadBalancer));
  const present = new Map<string, unknown>(Object.entries(defaults));
  return policyFrom(({ key, name, values, setBy }) => {
    const value = setBy === 'gateway' ? undefined : own.get(name);
    return value === undefined ? present.get(key) : values.read(value);
  });
}

/**
 * The longest wait for the first answer to a request, in ms: the timeout of its caller, of the view, of the
 * tool, or of the template, in this order. `tool`: the called tool, if any.
 */
export function timeoutFor(
  { callTimeoutMs, toolTimeoutsMs }: TemplatePolicy,
  tool?: string,
  ofViewMs?: number,
  ofCallerMs?: number,
): number {
  const ownMs = ofCallerMs ?? ofViewMs;
  if (ownMs !== undefined) return ownMs;
  const hasOwn = tool !== undefined && Object.hasOwn(toolTimeoutsMs, tool);
  return (hasOwn ? toolTimeoutsMs[tool] : undefined) ?? callTimeoutMs;
}

/** The longest duration of a call with this timeout, in ms. `maxCallMs`: the setting, which a longer timeout extends. */
export function longestCallMs(timeoutMs: number, maxCallMs: number = LIMITS.callDefaultBoundMs): number {
  return Math.min(Math.max(maxCallMs, timeoutMs), LIMITS.callHardBoundMs);
}

/**
 * The longest wait for an answer of the client to a question, in ms: LIMITS.callDefaultBoundMs, or as long as a
 * call may take. Source: ADR 40.
 */
export function longestQuestionMs(policy: TemplatePolicy, maxCallMs?: number): number {
  return longestCallMs(Math.max(LIMITS.callDefaultBoundMs, timeoutFor(policy)), maxCallMs);
}

function row<const Name extends string, Value, Written, const At extends SetBy>(
  written: PolicyRow<Name, Value, Written, At>,
): PolicyRow<Name, Value, Written, At> {
  return written;
}

function choice<const Word extends string, const Alias extends string = never>(
  words: readonly Word[],
  options: {
    aliases?: Readonly<Record<Alias, NoInfer<Word>>>;
    meanings?: (word: NoInfer<Word>) => string;
  } = {},
): Values<Word, Word | Alias> {
  const aliases = new Map<string, Word>(Object.entries<Word>(options.aliases ?? {}));
  const { meanings: meaningOf } = options;
  const meanings = new Map(
    meaningOf === undefined ? [] : words.map((word) => [word, meaningOf(word)] as const),
  );
  return {
    kind: 'choice',
    words,
    aliases: [...aliases.keys()],
    meanings,
    read: (written) => aliases.get(written) ?? (written as Word),
    show: (word) => word,
  };
}

function text(pattern: string, forms: readonly string[]): Values<string, string> {
  return { kind: 'text', pattern, forms, read: (written) => written, show: (value) => value };
}

function whole(least: number, most: number): Values<number, number> {
  return { kind: 'whole', least, most, read: (written) => written, show: (value) => value };
}

function hintsByTool(): Values<Readonly<Record<string, ToolHints>>, Readonly<Record<string, ToolHints>>> {
  return { kind: 'hintsByTool', read: (written) => written, show: (value) => value };
}

/** A number of seconds, in milliseconds in the policy. */
function seconds(least: number, most: number): Values<number, number> {
  return {
    kind: 'seconds',
    least,
    most,
    read: (written) => written * 1000,
    show: (ms) => ms / 1000,
  };
}

/** Seconds by tool, in whole milliseconds in the policy. */
function secondsByTool(
  least: number,
  most: number,
): Values<Readonly<Record<string, number>>, Readonly<Record<string, number>>> {
  const scaled = (times: Readonly<Record<string, number>>, scale: (value: number) => number) =>
    Object.fromEntries(Object.entries(times).map(([tool, value]) => [tool, scale(value)]));
  return {
    kind: 'secondsByTool',
    least,
    most,
    read: (written) => scaled(written, (value) => Math.round(value * 1000)),
    show: (value) => scaled(value, (ms) => ms / 1000),
  };
}
