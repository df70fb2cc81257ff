// How the transport of an instance is opened: by the row of its kind, with what all of them are told alike.

import type { InstanceDefinition } from '../domain/instance.ts';
import { TRANSPORTS } from './index.ts';
import type { OpeningMemory, OpenOptions, Transport } from './transport.ts';

/** What opening needs besides the options of each transport. */
export interface OpeningOptions extends Omit<OpenOptions, 'signal' | 'memory' | keyof Opener> {
  /** What is really started for a definition; rejects when it is not to be started. */
  readonly launch: (definition: InstanceDefinition) => InstanceDefinition | Promise<InstanceDefinition>;
}

/** Whose transport is opened: what it hears meanwhile, and is asked. */
export type Opener = Pick<OpenOptions, 'onStarted' | 'room'>;

export type Open = (
  definition: InstanceDefinition,
  signal: AbortSignal,
  opener?: Opener,
) => Promise<Transport>;

/** Makes the function that opens instances. It remembers what was learned of each as long as its definition is there. */
export function openingWith({ launch, ...options }: OpeningOptions): Open {
  const memories = new WeakMap<InstanceDefinition, OpeningMemory>();
  return async (definition, signal, opener) => {
    const memory = memories.get(definition) ?? {};
    memories.set(definition, memory);
    const launched = await launch(definition);
    return TRANSPORTS[definition.transport].open(launched, {
      ...options,
      ...opener,
      signal,
      memory,
    });
  };
}
