// Logs the events of instances, and of the sessions and processes of MCP clients; normal ones only at debug level.
// An instance that stays down is logged once, then once an hour.

import type { Observable, Subscription } from 'rxjs';
import { type EventName, type GatewayEvent, writtenFields } from '../../domain/events/events.ts';
import { hasProcesses } from '../../domain/instances/transport-kinds.ts';
import { HOUR_MS } from '../../domain/time/clock.ts';

type Level = 'debug' | 'info' | 'warn';

type EventLogger = Readonly<Record<Level, (fields: object, message: string) => void>> & {
  readonly isLevelEnabled: (level: Level) => boolean;
};

/** The interval of the lines about one instance that stays down, in ms. */
const STILL_DOWN_MS = HOUR_MS;

/** Subscribes until the events complete or the subscription is ended. Names of fields are snake_case. `now`: in ms, monotonic. */
export function logEvents(
  events$: Observable<GatewayEvent>,
  log: EventLogger,
  now: () => number = () => performance.now(),
): Subscription {
  /** The time of the last line about each instance that is down, by server id. */
  const downSince = new Map<string, number>();
  const isKnown = (event: GatewayEvent): boolean => {
    if (
      event.type === 'instance.healthy' ||
      event.type === 'instance.registered' ||
      event.type === 'instance.deregistered'
    )
      downSince.delete(event.serverId);
    const isDown = event.type === 'instance.unhealthy' || event.type === 'instance.restarting';
    if (!isDown || event.isPlanned) return false;
    const saidAtMs = downSince.get(event.serverId);
    if (saidAtMs !== undefined && now() - saidAtMs < STILL_DOWN_MS) return true;
    downSince.set(event.serverId, now());
    return false;
  };
  return events$.subscribe((event) => {
    const words = isKnown(event) ? undefined : wordsOf(event);
    // Each call has two events: records that no level prints would cost more than the rest of the log.
    if (words === undefined && !log.isLevelEnabled('debug')) return;
    const { type, atMs, ...fields } = event;
    const [level, message] = words ?? ['debug', type];
    if (log.isLevelEnabled(level)) log[level](writtenFields(fields), message);
  });
}

/** The level and the text of an event; undefined at debug level, where the text is its type. */
function wordsOf(event: GatewayEvent): readonly ['info' | 'warn', string] | undefined {
  switch (event.type) {
    case 'session.ended':
      return event.isLost ? ['info', 'session ended: no instance can continue it'] : undefined;
    case 'upstream.ended':
      // HTTP backends end sessions that they no longer need; that is not a failure.
      return event.isLost && hasProcesses(event)
        ? ['warn', 'dedicated process of a client exited']
        : undefined;
    case 'upstream.failed':
      return hasProcesses(event)
        ? ['warn', 'dedicated process for a client could not be started']
        : ['info', 'backend session for a client could not be opened'];
    case 'instance.unhealthy':
      return event.isPlanned ? ['info', 'instance is down for a restart'] : ['warn', 'instance is unhealthy'];
    case 'instance.restarting':
      return event.isPlanned ? ['info', 'instance is restarting'] : ['warn', 'instance will be restarted'];
    default:
      return WORDS[event.type];
  }
}

const WORDS: Readonly<Partial<Record<EventName, readonly ['info' | 'warn', string]>>> = {
  'gateway.closing': ['info', 'the gateway is stopping'],
  'gateway.draining': ['info', 'the node is draining: it is not ready, and opens no new sessions'],
  'gateway.resumed': ['info', 'the node takes new sessions again'],
  'instance.registered': ['info', 'instance registered'],
  'instance.deregistered': ['info', 'instance deregistered'],
  'instance.healthy': ['info', 'instance is healthy'],
  'instance.ejected': ['warn', 'instance is ejected: its calls fail or stay unanswered'],
  'instance.readmitted': ['info', 'instance is readmitted'],
  'instance.crashed': ['warn', 'instance crashed by a fault of the gateway and is restarted'],
  'instance.draining': ['info', 'instance is draining'],
  'list.cut': ['warn', 'a list does not end or is too large: what was read so far is used'],
  'tool.withheld': ['warn', 'tool is withheld from lists: clients could not use it'],
  'session.moved': ['info', 'session moved to another instance'],
  'registry.behind': ['warn', 'changes of other nodes cannot be read; known instances are served as before'],
  'registry.current': ['info', 'changes of other nodes are read again'],
};
