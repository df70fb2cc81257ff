// How the transport of an instance is opened: by the row of its kind, with what all of them are told alike.

import type { InstanceDefinition } from '../domain/instance.ts';
import { TRANSPORTS } from './index.ts';
import type { OnStarted, OpeningMemory, OpenOptions, Transport } from './transport.ts';

/** What opening needs besides the options of each transport. */
export interface OpeningOptions extends Omit<OpenOptions, 'signal' | 'memory' | 'onStarted'> {
  /** What is really started for a definition. */
  readonly launch: (definition: InstanceDefinition) => InstanceDefinition;
}

export type Open = (
  definition: InstanceDefinition,
  signal: AbortSignal,
  onStarted?: OnStarted,
) => Promise<Transport>;

/** Makes the function that opens instances. It remembers what was learned of each as long as its definition is there. */
export function openingWith({ launch, ...options }: OpeningOptions): Open {
  const memories = new WeakMap<InstanceDefinition, OpeningMemory>();
  return (definition, signal, onStarted) => {
    const memory = memories.get(definition) ?? {};
    memories.set(definition, memory);
    return TRANSPORTS[definition.transport].open(launch(definition), {
      ...options,
      signal,
      memory,
      onStarted,
    });
  };
}
