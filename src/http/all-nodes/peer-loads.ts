// The load of the other nodes, from the samples that they send while a client reads samples here: the counts since the last
// sample of this node, and the present state. Source: ADR 172.

import Type from 'typebox';
import { DurationHistogram } from '../../counts/duration-histogram.ts';
import { compileShape } from '../../domain/errors/validation.ts';
import { INSTANCE_STATES } from '../../domain/instances/instance.ts';
import { jsonIn } from '../../domain/json/json.ts';
import type { ShownNode } from '../../domain/nodes/nodes.ts';
import type { Clock } from '../../domain/time/clock.ts';
import {
  type InstanceLoad,
  type Load,
  type OtherLoads,
  sumOfInstanceLoads,
  sumOfLoads,
  sumOfTemplateLoads,
  type TakenLoads,
  type TemplateLoad,
} from '../../metrics/loads.ts';

/** A node that sent no sample in this time, in ms, is missing: they come each second. */
const SILENT_MS = 2_500;

const Counts = { in_flight: Type.Integer(), requests: Type.Integer(), failures: Type.Integer() };
const PART = compileShape(
  Type.Object({
    templates: Type.Array(
      Type.Object({
        template: Type.String(),
        ...Counts,
        queued: Type.Integer(),
        sessions: Type.Integer(),
        durations: Type.Array(Type.Tuple([Type.Integer(), Type.Integer()])),
      }),
    ),
    instances: Type.Array(
      Type.Object({ server_id: Type.String(), ...Counts, state: Type.Enum([...INSTANCE_STATES]) }),
    ),
  }),
  'body',
);

interface PeerLoadsOptions {
  /** The other members. */
  readonly others: () => readonly ShownNode[];
  readonly clock: Clock;
}

interface NodeLoad {
  /** The loads of the templates in the last sample; a sample without changes repeats it. */
  readonly templates: Map<string, TemplateLoad>;
  readonly instances: Map<string, InstanceLoad>;
  /** The counts of all samples since the last `take`, by template and by server id. */
  counted: Record<'templates' | 'instances', Map<string, Load>>;
  atMs: number;
}

const IDLE: Load = { requests: 0, failures: 0, times: undefined };

function nothingCounted(): NodeLoad['counted'] {
  return { templates: new Map(), instances: new Map() };
}

/** The counts of each of the other nodes since they were last taken. */
export class PeerLoads implements OtherLoads {
  readonly #options: PeerLoadsOptions;
  readonly #clock: Clock;
  /** The loads of the nodes by life. */
  readonly #nodes = new Map<string, NodeLoad>();
  #takenAtMs = Number.NEGATIVE_INFINITY;
  #beganAtMs = 0;

  constructor(options: PeerLoadsOptions) {
    this.#options = options;
    this.#clock = options.clock;
  }

  /** `text`: a sample of the node with this life. Anything else is dropped: its version is another one. */
  add(life: string, text: string): void {
    const part = jsonIn(text);
    if (!PART.accepts(part)) return;
    const node = this.#nodes.get(life) ?? {
      templates: new Map(),
      instances: new Map(),
      counted: nothingCounted(),
      atMs: 0,
    };
    this.#nodes.set(life, node);
    node.atMs = this.#clock.now();
    for (const { template, durations, in_flight: inFlight, ...counts } of part.templates) {
      const times = durations.length === 0 ? undefined : new DurationHistogram().withBuckets(durations);
      node.templates.set(template, { ...counts, inFlight, times });
    }
    for (const { server_id: serverId, in_flight: inFlight, ...counts } of part.instances)
      node.instances.set(serverId, { ...counts, inFlight });
    for (const kind of ['templates', 'instances'] as const)
      for (const [name, load] of node[kind])
        if (load.requests > 0) node.counted[kind].set(name, sumOfLoads(load, node.counted[kind].get(name)));
  }

  /** The node is gone, or its stream was lost. */
  forget(life: string): void {
    this.#nodes.delete(life);
  }

  take(): TakenLoads | undefined {
    const others = this.#options.others();
    const nowMs = this.#clock.now();
    if (nowMs - this.#takenAtMs > SILENT_MS) this.#beganAtMs = nowMs;
    this.#takenAtMs = nowMs;
    if (others.length === 0) return undefined;
    const [templates, instances] = [new Map<string, TemplateLoad>(), new Map<string, InstanceLoad>()];
    const partial: string[] = [];
    for (const { id, life } of others) {
      const node = this.#nodes.get(life);
      if (nowMs - Math.max(node?.atMs ?? 0, this.#beganAtMs) > SILENT_MS) partial.push(id);
      else if (node !== undefined) {
        const { counted } = node;
        for (const [name, load] of node.templates)
          templates.set(
            name,
            sumOfTemplateLoads({ ...load, ...(counted.templates.get(name) ?? IDLE) }, templates.get(name)),
          );
        for (const [id, load] of node.instances)
          instances.set(
            id,
            sumOfInstanceLoads({ ...load, ...(counted.instances.get(id) ?? IDLE) }, instances.get(id)),
          );
      }
      if (node !== undefined) node.counted = nothingCounted();
    }
    return { templates, instances, partial: partial.sort() };
  }
}
