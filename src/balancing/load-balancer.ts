// The settings of a template's load balancer as they are written: in the API, in the registry file, with `template set`. policy.ts has
// the settings as the gateway uses them.

import Type, { type Static } from 'typebox';
import { definedFields } from '../domain/json.ts';
import { type BalancerPolicy, SESSION_FAILOVER, SESSION_SHARING, STRATEGY_NAMES } from './policy.ts';

const CLOSED = { additionalProperties: false } as const;

const EXAMPLE = { strategy: 'least_connections', timeout: 30 };
const FIELDS = {
  strategy: Type.Enum([...STRATEGY_NAMES, 'weighted']),
  /** Seconds between two probes of one instance. */
  health_check_interval: Type.Integer({ minimum: 1, maximum: 3600 }),
  /** Further candidates tried after the first one failed. */
  max_retries: Type.Integer({ minimum: 0, maximum: 10 }),
  /** Seconds until the first answer of a call. */
  timeout: Type.Integer({ minimum: 1, maximum: 3600 }),
  /** Seconds that a program may take until its handshake. */
  start_timeout: Type.Integer({ minimum: 5, maximum: 3600 }),
  session: Type.Enum([...SESSION_SHARING]),
  /** Whether an MCP session moves to another instance when its own is gone. */
  session_failover: Type.Enum([...SESSION_FAILOVER]),
};

/** Settings as they are written: seconds, whole numbers; `weighted` is an alias. Source: ADR 4. */
export const LoadBalancerSettings = Type.Partial(Type.Object(FIELDS), {
  ...CLOSED,
  schemaName: 'LoadBalancerSettings',
  examples: [EXAMPLE],
});
export type LoadBalancerSettings = Static<typeof LoadBalancerSettings>;

const NULLABLE = Object.fromEntries(
  Object.entries(FIELDS).map(([name, field]) => [name, Type.Union([field, Type.Null()])]),
);

/** A change of settings: null removes one, so that the default of the gateway applies again. */
export type LoadBalancerChange = { [Name in keyof LoadBalancerSettings]?: LoadBalancerSettings[Name] | null };
export const LoadBalancerChange = Type.Unsafe<LoadBalancerChange>(
  Type.Partial(Type.Object(NULLABLE), {
    ...CLOSED,
    schemaName: 'LoadBalancerChange',
    examples: [EXAMPLE],
  }),
);

/** Settings after a change; an undefined field changes nothing. */
export function changedSettings(
  settings: LoadBalancerSettings,
  change: LoadBalancerChange,
): LoadBalancerSettings {
  const entries = Object.entries({ ...settings, ...definedFields(change) });
  return Object.fromEntries(entries.filter(([, value]) => value !== null));
}

/** A template as it is stored: its name and the settings that differ from the defaults. */
export interface TemplateSettings {
  readonly name: string;
  readonly loadBalancer: LoadBalancerSettings;
}

/** Lays a template's own settings over the gateway's defaults. */
export function policyOf(settings: LoadBalancerSettings, defaults: BalancerPolicy): BalancerPolicy {
  const { strategy, health_check_interval, max_retries, timeout, start_timeout } = settings;
  const { session, session_failover } = settings;
  return {
    strategy: strategy === 'weighted' ? 'weighted_round_robin' : (strategy ?? defaults.strategy),
    healthIntervalMs:
      health_check_interval === undefined ? defaults.healthIntervalMs : health_check_interval * 1000,
    probeTimeoutMs: defaults.probeTimeoutMs,
    maxRetries: max_retries ?? defaults.maxRetries,
    callTimeoutMs: timeout === undefined ? defaults.callTimeoutMs : timeout * 1000,
    startTimeoutMs: start_timeout === undefined ? defaults.startTimeoutMs : start_timeout * 1000,
    session: session ?? defaults.session,
    sessionFailover: session_failover ?? defaults.sessionFailover,
  };
}
