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
    const startedAtMs = performance.now();
    try {
      const opening = { ...options, ...opener, signal, memory, answers };
      return await TRANSPORTS[definition.transport].open(launched, opening);
    } catch (thrown) {
      const isLate = performance.now() - startedAtMs >= options.handshakeTimeoutMs * LATE_SHARE;
      throw signal.aborted ? thrown : withMissingVariables(thrown, launched, options.passEnv, isLate);
    }
  };
}

/** A handshake that failed after this part of its time counts as late. */
const LATE_SHARE = 0.95;

const NETWORK_FAILURE =
  /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|certificate|proxy|\b(?:ssl|tls)\b|fetch failed|timed? ?out|resolve host|name resolution/i;

/** A program that hung, or could not connect, may need a proxy or a certificate that only the gateway has in its environment. */
function withMissingVariables(
  thrown: unknown,
  { command, env, container }: InstanceDefinition,
  passEnv: readonly string[] | undefined,
  isLate: boolean,
): unknown {
  if (command === undefined || container !== undefined || !(thrown instanceof GatewayError)) return thrown;
  const { reason, stderr = [] } = thrown.facts;
  if (reason === undefined || !(isLate || stderr.some((line) => NETWORK_FAILURE.test(line)))) return thrown;
  const missing = missingVariables(env, passEnv);
  if (missing.length === 0) return thrown;
  const why = `${reason}; the gateway has ${missing.join(', ')}, which the program does not get (stdio.pass_env)`;
  return backendUnavailable(why, { ...thrown.facts, cause: thrown, delivered: 'no' });
}
