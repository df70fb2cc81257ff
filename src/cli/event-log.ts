// Writes what happens to instances into the log. Single requests are logged by the HTTP side; probes and calls are
// logged at debug level only.

import type { Observable, Subscription } from 'rxjs';
import type { EventName, GatewayEvent } from '../domain/events.ts';

/** The part of a pino logger that is used. */
export type EventLog = Readonly<
  Record<'debug' | 'info' | 'warn', (fields: object, message: string) => void>
> & {
  readonly isLevelEnabled: (level: 'debug') => boolean;
};

/** Follows the events until they complete; the subscription may be ended before. Names of fields are snake_case. */
export function logEvents(events$: Observable<GatewayEvent>, log: EventLog): Subscription {
  const isToldAlready = sameFailureFilter();
  return events$.subscribe((event) => {
    const words = isToldAlready(event) ? undefined : WORDS[event.type];
    // Two events per call come this way; taking them apart for nobody would cost more than the rest of the log.
    if (words === undefined && !log.isLevelEnabled('debug')) return;
    const { type, atMs, ...fields } = event;
    const [level, message] = words ?? ['debug', type];
    log[level](snakeCase(fields), message);
  });
}

/**
 * A failed start is two facts, "will be restarted" and then "is unhealthy" for the same reason; true for the second.
 * It remembers one reason per instance that is waiting for its restart.
 */
function sameFailureFilter(): (event: GatewayEvent) => boolean {
  const reasons = new Map<string, string>();
  return (event) => {
    if (!('instanceId' in event) || !event.type.startsWith('instance.')) return false;
    const instance = `${event.template}/${event.instanceId}`;
    if (event.type === 'instance.restarting') reasons.set(instance, event.reason);
    else if (event.type === 'instance.unhealthy') return reasons.get(instance) === event.reason;
    else reasons.delete(instance);
    return false;
  };
}

function snakeCase(fields: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      value,
    ]),
  );
}

const WORDS: Readonly<Partial<Record<EventName, readonly ['info' | 'warn', string]>>> = {
  'gateway.closing': ['info', 'the gateway is stopping'],
  'instance.registered': ['info', 'instance registered'],
  'instance.deregistered': ['info', 'instance deregistered'],
  'instance.healthy': ['info', 'instance is healthy'],
  'instance.unhealthy': ['warn', 'instance is unhealthy'],
  'instance.restarting': ['warn', 'instance will be restarted'],
  'instance.crashed': ['warn', 'instance broke by a fault of the gateway and starts anew'],
  'instance.draining': ['info', 'instance drains'],
  'registry.behind': ['warn', 'changes of other nodes cannot be read; known instances are served as before'],
  'registry.current': ['info', 'changes of other nodes are read again'],
};
