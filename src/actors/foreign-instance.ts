// An instance that this node lists but never starts: another node runs its program, or its secrets cannot be decrypted.

import { runsElsewhere } from '../domain/error-catalogue.ts';
import type { InstanceDefinition, InstanceSnapshot } from '../domain/instance.ts';

/** Listed in place of an InstanceRef, as stopped, with the reason. */
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

  /** The error of every command to it: NO_HEALTHY_INSTANCE, with the reason. */
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
      unmatchedMessages: 0,
    };
  }
}
