// Writes what happens to instances, and to what MCP clients have at them, into the log. Single requests are logged by the
// HTTP side; probes, calls, and sessions that come and go as they should, are logged at debug level only.

import type { Observable, Subscription } from 'rxjs';
import type { EventName, GatewayEvent, GatewayEvents, Outstanding } from '../domain/events.ts';

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
    const words = isToldAlready(event) ? undefined : wordsOf(event);
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

/** Undefined: at debug level, by its type. */
function wordsOf(event: GatewayEvent): Words | undefined {
  switch (event.type) {
    case 'session.ended':
      return event.isLost ? ['info', 'session ended: it can go on nowhere'] : undefined;
    case 'upstream.ended':
      if (!event.isLost) return undefined;
      // HTTP backends end sessions that they have no more use for, which is no trouble.
      return isProcess(event)
        ? ['warn', 'process of a client ended by itself']
        : ['info', 'session of a client was ended by its backend'];
    case 'upstream.failed':
      return isProcess(event)
        ? ['warn', 'process for a client could not be started']
        : ['info', 'session for a client could not be opened at its backend'];
    case 'gateway.closing':
      return ['info', stopping(event)];
    case 'instance.unhealthy':
      return event.isPlanned ? ['info', 'instance is down for a restart'] : ['warn', 'instance is unhealthy'];
    case 'instance.restarting':
      return restartWords(event);
    default:
      return WORDS[event.type];
  }
}

function isProcess({ transport }: GatewayEvents['upstream.opened']): boolean {
  return transport === 'stdio';
}

function stopping({ calls, unanswered, graceMs }: Outstanding): string {
  if (calls === 0) return 'the gateway is stopping';
  const have = calls === 1 ? '1 call in flight has' : `${calls} calls in flight have`;
  const answers = `; ${unanswered} of them ${unanswered === 1 ? 'waits until its client answers' : 'wait until their clients answer'}`;
  return `the gateway is stopping: ${have} ${graceMs / 1000} s to finish${unanswered === 0 ? '' : answers}`;
}

function restartWords({ isPlanned, isProgram }: GatewayEvents['instance.restarting']): Words {
  if (isPlanned) return ['info', isProgram ? 'instance is started again' : 'instance is connected again'];
  return ['warn', isProgram ? 'instance will be restarted' : 'instance will be tried again'];
}

type Words = readonly ['info' | 'warn', string];

const WORDS: Readonly<Partial<Record<EventName, Words>>> = {
  'instance.registered': ['info', 'instance registered'],
  'instance.deregistered': ['info', 'instance deregistered'],
  'instance.healthy': ['info', 'instance is healthy'],
  'instance.ejected': ['warn', 'instance gets no calls for a time: those it had failed or are silent'],
  'instance.readmitted': ['info', 'instance gets calls again'],
  'instance.crashed': ['warn', 'instance broke by a fault of the gateway and starts anew'],
  'instance.draining': ['info', 'instance drains'],
  'tool.omitted': ['warn', 'tool is left out of every list: clients must not call it'],
  'session.moved': ['info', 'session goes on with another instance'],
  'registry.behind': ['warn', 'changes of other nodes cannot be read; known instances are served as before'],
  'registry.current': ['info', 'changes of other nodes are read again'],
};
