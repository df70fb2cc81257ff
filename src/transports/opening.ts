// Opens the transport of an instance by the row of its kind, with the options that all kinds share.

import { backendUnavailable } from '../domain/error-catalogue.ts';
import { GatewayError } from '../domain/errors.ts';
import type { HeldBytes } from '../domain/held-bytes.ts';
import type { InstanceDefinition } from '../domain/instance.ts';
import { TRANSPORTS } from './index.ts';
import { missingVariables } from './stdio/child-process.ts';
import type { OpeningMemory, OpenOptions, Transport } from './transport.ts';

export interface OpeningOptions extends Omit<OpenOptions, 'signal' | 'memory' | 'answers' | keyof Opener> {
  /** Counts incomplete answers of all instances. Default: not counted. */
  readonly heldAnswers?: HeldBytes;
  /** Resolves with the definition that is really started; rejects when the given one must not be started. */
  readonly launch: (definition: InstanceDefinition) => InstanceDefinition | Promise<InstanceDefinition>;
}

export type Opener = Pick<OpenOptions, 'onStarted' | 'room'>;

export type Open = (
  definition: InstanceDefinition,
  signal: AbortSignal,
  opener?: Opener,
) => Promise<Transport>;

/** Makes the function that opens instances. It keeps an OpeningMemory for each definition. */
export function openingWith({ launch, heldAnswers, ...options }: OpeningOptions): Open {
  const memories = new WeakMap<InstanceDefinition, OpeningMemory>();
  return async (definition, signal, opener) => {
    const memory = memories.get(definition) ?? {};
    memories.set(definition, memory);
    const answers = heldAnswers?.of(definition.serverId);
    const launched = await launch(definition);
    try {
      const opening = { ...options, ...opener, signal, memory, answers };
      return await TRANSPORTS[definition.transport].open(launched, opening);
    } catch (thrown) {
      throw signal.aborted ? thrown : withMissingVariables(thrown, launched, options.passEnv);
    }
  };
}

/** A program may have failed because it needs a proxy or a certificate that only the gateway has in its environment. */
function withMissingVariables(
  thrown: unknown,
  { command, env, container }: InstanceDefinition,
  passEnv: readonly string[] | undefined,
): unknown {
  if (command === undefined || container !== undefined || !(thrown instanceof GatewayError)) return thrown;
  const { reason } = thrown.facts;
  const missing = missingVariables(env, passEnv);
  if (reason === undefined || missing.length === 0) return thrown;
  const why = `${reason}; the gateway has ${missing.join(', ')}, which the program does not get (stdio.pass_env)`;
  return backendUnavailable(why, { ...thrown.facts, cause: thrown, delivered: 'no' });
}
