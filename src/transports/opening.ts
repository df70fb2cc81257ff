// How the transport of an instance is opened: by the row of its kind, with the options that all kinds share.

import { backendUnavailable } from '../domain/error-catalogue.ts';
import { GatewayError } from '../domain/errors.ts';
import type { HeldBytes } from '../domain/held-bytes.ts';
import type { InstanceDefinition } from '../domain/instance.ts';
import { TRANSPORTS } from './index.ts';
import { missingVariables } from './stdio/child-process.ts';
import type { OpeningMemory, OpenOptions, Transport } from './transport.ts';

/** What opening needs besides the options of each transport. */
export interface OpeningOptions extends Omit<OpenOptions, 'signal' | 'memory' | 'answers' | keyof Opener> {
  /** Where answers of all instances that are not complete are counted. Default: nowhere. */
  readonly heldAnswers?: HeldBytes;
  /** What is really started for a definition; rejects when it is not to be started. */
  readonly launch: (definition: InstanceDefinition) => InstanceDefinition | Promise<InstanceDefinition>;
}

/** The instance whose transport is opened: its callbacks during the opening. */
export type Opener = Pick<OpenOptions, 'onStarted' | 'room'>;

export type Open = (
  definition: InstanceDefinition,
  signal: AbortSignal,
  opener?: Opener,
) => Promise<Transport>;

/** Makes the function that opens instances. It remembers what was learned of each as long as its definition is there. */
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

/** A handshake that took this part of its time failed because it was over. */
const LATE_SHARE = 0.95;

/** What programs write that did not get through to somewhere. */
const NETWORK_TROUBLE =
  /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|certificate|proxy|\b(?:ssl|tls)\b|fetch failed|timed? ?out|resolve host|name resolution/i;

/** A program that hung, or had trouble with the network, may detail a proxy or an authority that the gateway knows. */
function withMissingVariables(
  thrown: unknown,
  { command, env, container }: InstanceDefinition,
  passEnv: readonly string[] | undefined,
  isLate: boolean,
): unknown {
  if (command === undefined || container !== undefined || !(thrown instanceof GatewayError)) return thrown;
  const { reason, stderr = [] } = thrown.facts;
  if (reason === undefined || !(isLate || stderr.some((line) => NETWORK_TROUBLE.test(line)))) return thrown;
  const missing = missingVariables(env, passEnv);
  if (missing.length === 0) return thrown;
  const why = `${reason}; the gateway has ${missing.join(', ')}, which the program does not get (stdio.pass_env)`;
  return backendUnavailable(why, { ...thrown.facts, cause: thrown, delivered: 'no' });
}
