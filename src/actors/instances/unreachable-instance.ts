// An instance that is registered, but cannot be reached from this node: there is no connection to its node, or its
// secrets cannot be decrypted. An instance that another node serves through the peer channel is an InstanceRef
// (instance-ref.ts).

import { instanceElsewhere } from '../../domain/errors/backend-errors.ts';
import type { InstanceDefinition, InstanceSnapshot } from '../../domain/instances/instance.ts';
import { runsAnywhere } from '../../domain/nodes/nodes.ts';

/** An instance that is only listed, as stopped and with a reason, and never started here. */
export class UnreachableInstance {
  readonly id: string;
  readonly serverId: string;
  readonly template: string;
  readonly state = 'stopped';
  definition: InstanceDefinition;

  readonly #reason: (() => string) | undefined;

  /** `reason`: why it does not run here. Default: another node runs it. */
  constructor(definition: InstanceDefinition, reason?: () => string) {
    this.#reason = reason;
    this.id = definition.id;
    this.serverId = definition.serverId;
    this.template = definition.template;
    this.definition = definition;
  }

  get reason(): string {
    return this.definition.locked ?? this.#reason?.() ?? elsewhereReason(this.definition);
  }

  /** Replaces weight and metadata. The node of the instance does the same when it reads the change. */
  change(definition: InstanceDefinition): void {
    this.definition = definition;
  }

  /** The error of every command to this instance: NO_HEALTHY_INSTANCE, with the reason. */
  refusal() {
    return instanceElsewhere(this.id, this.reason);
  }

  snapshot(): InstanceSnapshot {
    return {
      id: this.id,
      serverId: this.serverId,
      template: this.template,
      state: this.state,
      healthy: false,
      inFlight: 0,
      weight: this.definition.weight,
      score: 0,
      latencyMs: null,
      consecutiveFailures: 0,
      lastCheck: null,
      nextAttemptAt: null,
      reason: this.reason,
      ejection: null,
      restarts: 0,
      era: null,
      pid: null,
      stderr: [],
    };
  }
}

/** Why an instance of another node cannot be started here, as a clause. */
export function elsewhereReason({ nodeId }: Pick<InstanceDefinition, 'nodeId'>): string {
  return runsAnywhere({ nodeId }) ? 'another node runs it, or none' : `it runs on the node "${nodeId}"`;
}
