// The health probe of an instance: one request of the gateway itself. instance.machine.ts decides what its result means.

import { fromPromise } from 'xstate';
import type { FinalEvent } from '../../domain/calls/exchange-event.ts';
import { backendUnavailable } from '../../domain/errors/backend-errors.ts';
import { definedFields } from '../../domain/json/json.ts';
import { RPC } from '../../domain/mcp/jsonrpc.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { answerOf, gatewayExchange } from '../../transports/gateway-requests.ts';
import type { Transport } from '../../transports/transport.ts';
import type { InstanceTransport } from './instance-transport.ts';

export interface ProbeInput {
  readonly clock: Clock;
  readonly opened: Pick<InstanceTransport, 'lastMessageAtMs'> & {
    readonly transport: Pick<Transport, 'handshake' | 'exchange'>;
  };
  readonly timeoutMs: number;
}

/** The result of a probe that has passed. */
export interface ProbeResult {
  readonly durationMs: number;
  /** False when the backend sent another message in that time instead of an answer to the probe. */
  readonly isAnswered: boolean;
}

/**
 * Sends one probe. Resolves when the backend answers it, also when a server does not know `ping` (a bare one must
 * then list its tools), or when the backend sends another message in that time. Otherwise rejects, on any other error
 * and without an answer. Source: MCP 2025-11-25 utilities/ping; 2026-07-28 server/discover; ADR 7.
 */
export const probe = fromPromise<ProbeResult, ProbeInput>(async ({ input }) => {
  const startedAtMs = input.clock.now();
  let isAnswered = true;
  try {
    await ask(input);
  } catch (failure) {
    if (input.opened.lastMessageAtMs <= startedAtMs) throw failure;
    isAnswered = false;
  }
  return { durationMs: input.clock.now() - startedAtMs, isAnswered };
});

async function ask({ opened: { transport }, timeoutMs, clock }: ProbeInput): Promise<void> {
  const { era } = transport.handshake;
  const send = (method: string) => answerOf(gatewayExchange(transport, { method }), timeoutMs, clock);
  const answer = await send(era === 'modern' ? 'server/discover' : 'ping');
  if (answer.kind === 'result') return;
  if (answer.error.code !== RPC.methodNotFound) throw failureOf(answer);
  if (era !== 'bare') return;
  const list = await send('tools/list');
  if (list.kind === 'error') throw failureOf(list);
}

function failureOf({ error, refusal }: Extract<FinalEvent, { kind: 'error' }>) {
  return backendUnavailable(`its probe was answered with error ${error.code}`, {
    delivered: 'yes',
    ...definedFields({ refusal }),
  });
}
