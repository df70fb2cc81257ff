// What happens in a gateway, as facts in the past tense. Metrics, stats, logs and embedders subscribe to these.
// No event carries a secret, an argument or a result.

import type { ErrorCode } from './errors.ts';

interface InstanceFact {
  /** Wall-clock time, in ms since 1970. */
  readonly atMs: number;
  readonly template: string;
  readonly instanceId: string;
  readonly serverId: string;
}

interface Plain {
  readonly atMs: number;
}

/** Every event by its name. `on(name)` of the gateway narrows to one of them. */
export interface GatewayEvents {
  'gateway.started': Plain;
  'gateway.closing': Plain;
  'instance.registered': InstanceFact & { readonly replaced: boolean };
  'instance.deregistered': InstanceFact;
  'instance.changed': InstanceFact;
  'instance.starting': InstanceFact;
  'instance.healthy': InstanceFact & { readonly era: string };
  'instance.unhealthy': InstanceFact & { readonly reason: string };
  'instance.restarting': InstanceFact & { readonly reason: string; readonly delayMs: number };
  'instance.draining': InstanceFact;
  'instance.stopped': InstanceFact;
  /** The gateway's own part of it broke, a fault of ours: its calls are answered, and it starts anew. */
  'instance.crashed': InstanceFact & { readonly reason: string };
  'probe.finished': InstanceFact & { readonly passed: boolean; readonly durationMs: number };
  'tools.changed': InstanceFact;
  /** A call came in; it ends in one `exchange.refused`, or in an `exchange.finished` per instance that was tried. */
  'exchange.started': Plain & { readonly template: string; readonly method: string };
  'exchange.refused': Plain & {
    readonly template: string;
    readonly method: string;
    readonly code: ErrorCode;
  };
  'exchange.finished': InstanceFact & {
    readonly method: string;
    readonly outcome: ExchangeOutcome;
    readonly durationMs: number;
    /** Set when the exchange failed on its way. */
    readonly code?: ErrorCode;
  };
  /** The call goes on to another instance after this one failed it. */
  'exchange.retried': InstanceFact & { readonly method: string; readonly code: ErrorCode };
  'template.changed': Plain & { readonly template: string };
  /** What other nodes changed could not be read. It is tried again; told once, and its end by `registry.current`. */
  'registry.behind': Plain & { readonly code: ErrorCode };
  'registry.current': Plain;
}

/** `error`: answered with a JSON-RPC error; `failed`: no answer; `cancelled`: the caller went away. */
export type ExchangeOutcome = 'result' | 'error' | 'failed' | 'cancelled';

export type EventName = keyof GatewayEvents;
export type GatewayEvent = { [N in EventName]: { readonly type: N } & GatewayEvents[N] }[EventName];
