// The instance machine with a short way for the events that every call sends. They change numbers and no state, so
// they need no walk through the state tree: 1.5 us instead of 7 for the pair. Everything else, and these whenever
// somebody waits for what they change, goes through the machine (instance.machine.ts), which means the same by them.

import type { InstanceMachineSnapshot } from './instance.machine.ts';
import { instanceMachine } from './instance.machine.ts';
import type { InstanceEvent } from './instance-setup.ts';
import { afterRelease, afterRequest, type InstanceStatistics } from './instance-statistics.ts';

type Transition = typeof instanceMachine.transition;

/** What a supervisor spawns. */
export const instanceLogic: typeof instanceMachine = Object.create(instanceMachine, {
  transition: { value: transition },
});

function transition(
  snapshot: InstanceMachineSnapshot,
  event: InstanceEvent,
  scope: Parameters<Transition>[2],
): ReturnType<Transition> {
  const { context, value, children } = snapshot;
  // While it leaves or restarts, the machine waits for the last call to end.
  if (snapshot.status === 'active' && value.duty === 'serving') {
    if (event.type === 'released') return counted(snapshot, afterRelease(context.statistics, event.ending));
    if (event.type === 'request.past') return counted(snapshot, afterRequest(context.statistics));
    if (event.type === 'request' && children.session !== undefined && typeof value.connection === 'object') {
      const { session } = children;
      scope.defer(() => session.send(event));
      return counted(snapshot, afterRequest(context.statistics));
    }
  }
  return instanceMachine.transition(snapshot, event, scope);
}

/** The same state with other numbers. */
function counted(snapshot: InstanceMachineSnapshot, statistics: InstanceStatistics): InstanceMachineSnapshot {
  return { ...snapshot, context: { ...snapshot.context, statistics } };
}
