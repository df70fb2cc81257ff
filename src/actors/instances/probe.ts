// One health probe: the cheapest request that a backend of its era must answer, over the session that serves calls.
// instance.machine.ts decides what passed and failed probes mean.

import { fromPromise } from 'xstate';
import { backendUnavailable } from '../../domain/error-catalogue.ts';
import type { FinalEvent } from '../../domain/exchange.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import type { Era } from '../../domain/mcp.ts';
import type { SessionLink } from './session.ts';

export interface ProbeInput {
  readonly link: Pick<SessionLink, 'peer' | 'ask' | 'lastMessageAtMs'>;
  readonly timeoutMs: number;
  readonly now: () => number;
}

export interface ProbeResult {
  readonly durationMs: number;
  /** False when the backend did not answer the probe, but sent another message meanwhile. */
  readonly isAnswered: boolean;
}

/** The method of the probe, by era. Source: MCP 2025-11-25 utilities/ping; 2026-07-28 server/discover; ADR 7. */
const PROBE_METHODS: Readonly<Record<Era, string>> = {
  legacy: 'ping',
  modern: 'server/discover',
  bare: 'ping',
};

/**
 * Resolves when the backend answered. A server that does not know `ping` passes, too; a bare one must then list its tools.
 * Rejects on any other error, and without an answer, unless the backend sent another message meanwhile.
 */
export const probe = fromPromise<ProbeResult, ProbeInput>(async ({ input }) => {
  const startedAtMs = input.now();
  let isAnswered = true;
  try {
    await ask(input);
  } catch (failure) {
    if (input.link.lastMessageAtMs() <= startedAtMs) throw failure;
    isAnswered = false;
  }
  return { durationMs: input.now() - startedAtMs, isAnswered };
});

async function ask({ link, timeoutMs }: ProbeInput): Promise<void> {
  const { era } = link.peer;
  const answer = await link.ask({ method: PROBE_METHODS[era] }, timeoutMs);
  if (answer.kind === 'result') return;
  if (answer.error.code !== RPC.methodNotFound) throw refusal(answer);
  if (era !== 'bare') return;
  const list = await link.ask({ method: 'tools/list' }, timeoutMs);
  if (list.kind === 'error') throw refusal(list);
}

function refusal(answer: Extract<FinalEvent, { kind: 'error' }>) {
  return backendUnavailable(`its probe was answered with error ${answer.error.code}`, { delivered: 'yes' });
}
