// How the load balancer settings of a template look to API clients: complete, in whole seconds where they are whole.
// Source: spec, "Gateway configuration per template"; decisions "Units"; ADR 4.

import Type, { type Static } from 'typebox';
import {
  type BalancerPolicy,
  SESSION_FAILOVER,
  SESSION_SHARING,
  STRATEGY_NAMES,
} from '../../domain/policy.ts';

/** Schema of the settings in force: the template's own over the gateway's defaults. */
export const LoadBalancerView = Type.Object({
  strategy: Type.Enum([...STRATEGY_NAMES]),
  health_check_interval: Type.Number(),
  max_retries: Type.Integer(),
  timeout: Type.Number(),
  session: Type.Enum([...SESSION_SHARING]),
  session_failover: Type.Enum([...SESSION_FAILOVER]),
});
export type LoadBalancerView = Static<typeof LoadBalancerView>;

/** Translates a policy. */
export function loadBalancerView(policy: BalancerPolicy): LoadBalancerView {
  return {
    strategy: policy.strategy,
    health_check_interval: policy.healthIntervalMs / 1000,
    max_retries: policy.maxRetries,
    timeout: policy.callTimeoutMs / 1000,
    session: policy.session,
    session_failover: policy.sessionFailover,
  };
}
