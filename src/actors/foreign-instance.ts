// An instance that this node lists and never starts: another node runs its program, or its secrets cannot be read.

import { runsElsewhere } from '../domain/backend-errors.ts';
import type { InstanceDefinition, InstanceSnapshot } from '../domain/instance.ts';

/** Stands in the lists where an InstanceRef would. To this node it is stopped, and says why. */
export class ForeignInstance {
  readonly id: string;
  readonly serverId: string;
  readonly template: string;
  readonly state = 'stopped';
  #definition: InstanceDefinition;

  constructor(definition: InstanceDefinition) {
    this.id = definition.id;
    this.serverId = definition.serverId;
    this.template = definition.template;
    this.#definition = definition;
  }

  get definition(): InstanceDefinition {
    return this.#definition;
  }
  get reason(): string {
    const { locked, nodeId } = this.#definition;
    return locked ?? `it runs on the node "${nodeId}"`;
  }

  /** Replaces weight and metadata; its node does the same when it reads the change. */
  change(definition: InstanceDefinition): void {
    this.#definition = definition;
  }

  /** What every command to it ends with: NO_HEALTHY_INSTANCE, and why. */
  refusal() {
    return runsElsewhere(this.id, this.reason);
  }

  snapshot(): InstanceSnapshot {
    return {
      id: this.id,
      serverId: this.serverId,
      template: this.template,
      state: this.state,
      healthy: false,
      inFlight: 0,
      weight: this.#definition.weight,
      score: 0,
      latencyMs: null,
      consecutiveFailures: 0,
      lastCheck: null,
      reason: this.reason,
      ejection: null,
      restarts: 0,
      requests: 0,
      errors: 0,
      era: null,
      pid: null,
      stderr: [],
      strayMessages: 0,
    };
  }
}
