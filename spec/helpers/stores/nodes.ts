// Several nodes on one database: each has a registry, scripted backends, and a store that can fail or delay for this node
// only. The spec decides when a node is notified of changes.

import { setImmediate as turn } from 'node:timers/promises';
import { Subject } from 'rxjs';
import { DEFAULT_POLICY } from '../../../src/balancing/policy.ts';
import type { InstanceDefinition } from '../../../src/domain/instances/instance.ts';
import type { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import type { RevisionChange } from '../../../src/persistence/revision-watch.ts';
import { Registry } from '../../../src/registry/registry.ts';
import { ActiveDefinitions } from '../../../src/templates/active-definitions.ts';
import type { InProcessHandler } from '../../../src/transports/open-options.ts';
import { Harness } from '../backends/harness.ts';
import { simulatedClock } from '../time/simulated-time.ts';
import { untimedScheduler } from '../time/turns.ts';
import { type FailingStore, failingStore } from './failing-store.ts';

export class Node {
  readonly id: string;
  readonly harness = new Harness();
  readonly store: FailingStore;
  readonly storeChanges$ = new Subject<RevisionChange>();
  readonly handlers = new Map<string, InProcessHandler>();
  readonly registry: Registry;

  constructor(id: string, database: MemoryStore) {
    this.id = id;
    this.store = failingStore(database);
    const { fleet, emit } = this.harness;
    const { store, storeChanges$, handlers } = this;
    this.registry = new Registry({
      clock: simulatedClock,
      scheduler: untimedScheduler(),
      store,
      fleet,
      policy: DEFAULT_POLICY,
      handlers,
      definitions: new ActiveDefinitions(),
      emit,
      node: { id },
      storeChanges$,
    });
  }

  /** Notifies the node of a change. With real timers the reload has finished when this resolves. */
  async emitChange(kind: RevisionChange['kind'] = 'changed'): Promise<void> {
    this.storeChanges$.next({ kind });
    for (let left = 20; left > 0; left -= 1) await turn();
  }

  /** The registry events, in order: `registered a`, `replaced a`, `changed a`, `deregistered a`, `settings t`. */
  get changes(): string[] {
    return this.harness.events.flatMap((event) => {
      if (event.type === 'instance.registered')
        return [`${event.replaced ? 'replaced' : 'registered'} ${event.instanceId}`];
      if (event.type === 'template.changed') return [`settings ${event.template}`];
      if (event.type === 'instance.changed' || event.type === 'instance.deregistered')
        return [`${event.type.slice('instance.'.length)} ${event.instanceId}`];
      return [];
    });
  }

  /** Definitions by template and id. */
  get definitions(): InstanceDefinition[] {
    return inOrder(this.registry.active.instanceDefinitions());
  }

  async close(): Promise<void> {
    await this.registry.close();
    await this.harness.close();
  }
}

/** By template and id. */
export function inOrder(definitions: readonly InstanceDefinition[]): InstanceDefinition[] {
  const name = ({ template, id }: InstanceDefinition) => `${template}/${id}`;
  return definitions.toSorted((one, other) => (name(one) < name(other) ? -1 : 1));
}
