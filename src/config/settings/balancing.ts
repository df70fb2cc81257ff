// Rows of the table of settings (../settings.ts): how calls and sessions are spread, and how long they may take.

import { LIMITS } from '../../domain/limits.ts';
import {
  DEFAULT_POLICY,
  SESSION_FAILOVER,
  SESSION_SHARING,
  type SessionFailover,
  type SessionSharing,
  STRATEGY_NAMES,
  type StrategyName,
} from '../../domain/policy.ts';
import { setting } from '../setting.ts';
import { choice, integer, seconds } from '../setting-types.ts';

export const BALANCING_SETTINGS = {
  strategy: setting<StrategyName>({
    key: 'load_balancer.strategy',
    flag: 'strategy',
    variable: 'DEFAULT_STRATEGY',
    kind: choice(STRATEGY_NAMES, { weighted: 'weighted_round_robin' }),
    default: DEFAULT_POLICY.strategy,
    doc: 'How calls are spread in a template that has no strategy of its own.',
  }),
  healthInterval: setting({
    key: 'load_balancer.health_check_interval',
    flag: 'health-interval',
    variable: 'HEALTH_INTERVAL',
    kind: seconds(1, 3600),
    default: DEFAULT_POLICY.healthIntervalMs,
    doc: 'Time between two probes of one instance, where its template says nothing.',
  }),
  healthTimeout: setting({
    key: 'load_balancer.health_check_timeout',
    flag: 'health-timeout',
    variable: 'HEALTH_TIMEOUT',
    kind: seconds(0.1, 3600),
    default: DEFAULT_POLICY.probeTimeoutMs,
    doc: 'Longest wait for the answer to a probe; after it the probe has failed.',
  }),
  maxRetries: setting({
    key: 'load_balancer.max_retries',
    flag: 'max-retries',
    variable: 'MAX_RETRIES',
    kind: integer(0, 10),
    default: DEFAULT_POLICY.maxRetries,
    doc: 'Further instances tried after the first one failed, where the template says nothing.',
  }),
  callTimeout: setting({
    key: 'load_balancer.timeout',
    flag: 'call-timeout',
    variable: 'CALL_TIMEOUT',
    kind: seconds(0.1, 3600),
    default: DEFAULT_POLICY.callTimeoutMs,
    doc: 'Longest wait for the first answer to a call, where the template says nothing; progress restarts it. No call lasts longer than 600 s in all.',
  }),
  session: setting<SessionSharing>({
    key: 'load_balancer.session',
    flag: 'session',
    variable: 'SESSION',
    kind: choice(SESSION_SHARING),
    default: DEFAULT_POLICY.session,
    doc: 'Whether MCP sessions share the processes of a template, where the template says nothing. See docs/guides/mcp-sessions.md.',
  }),
  sessionFailover: setting<SessionFailover>({
    key: 'load_balancer.session_failover',
    flag: 'session-failover',
    variable: 'SESSION_FAILOVER',
    kind: choice(SESSION_FAILOVER),
    default: DEFAULT_POLICY.sessionFailover,
    doc: 'Whether an MCP session moves to another instance when its own is gone, where the template says nothing.',
  }),
  maxSessions: setting({
    key: 'sessions.max',
    flag: 'max-sessions',
    variable: 'MAX_SESSIONS',
    kind: integer(1, 1_000_000),
    default: LIMITS.sessions,
    doc: 'MCP sessions at a time, all templates together; one more gets 503.',
  }),
  sessionIdle: setting({
    key: 'sessions.idle_seconds',
    flag: 'session-idle-seconds',
    variable: 'SESSION_IDLE_SECONDS',
    kind: seconds(1, 604_800),
    default: LIMITS.sessionIdleMs,
    doc: 'An MCP session ends after so long without a message and without an open stream.',
  }),
  maxProcesses: setting({
    key: 'sessions.max_processes',
    flag: 'max-processes',
    variable: 'MAX_PROCESSES',
    kind: integer(1, 10_000),
    default: LIMITS.isolatedProcesses,
    doc: 'Processes that one instance may run for single MCP clients; one more gets 429.',
  }),
  sessionShare: setting({
    key: 'sessions.share',
    flag: 'session-share',
    variable: 'SESSION_SHARE',
    kind: integer(1, 100, 'percent'),
    default: LIMITS.ownerShare * 100,
    doc: 'How much of `sessions.max` and of `sessions.max_processes` one caller may hold, at least 8 of each; 100: all. Over it: 503, 429.',
  }),
  grace: setting({
    key: 'grace_seconds',
    flag: 'grace-seconds',
    variable: 'GRACE_SECONDS',
    kind: seconds(0, 600),
    default: LIMITS.graceMs,
    doc: 'Time that running calls have to end when the gateway stops.',
  }),
} as const;
