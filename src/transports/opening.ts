// How the transport of an instance is opened: by the row of its kind, with what all of them are told alike.

import type { InstanceDefinition } from '../domain/instance.ts';
import { TRANSPORTS } from './index.ts';
import type { OpenOptions, Transport } from './transport.ts';

/** What opening needs besides the options of each transport. */
export interface OpeningOptions extends Omit<OpenOptions, 'signal'> {
  /** What is really started for a definition. */
  readonly launch: (definition: InstanceDefinition) => InstanceDefinition;
}

export type Open = (definition: InstanceDefinition, signal: AbortSignal) => Promise<Transport>;

/** Makes the function that opens instances. */
export function openingWith({ launch, ...options }: OpeningOptions): Open {
  return (definition, signal) =>
    TRANSPORTS[definition.transport].open(launch(definition), { ...options, signal });
}
