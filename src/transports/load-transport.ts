// Loads the module of a transport kind, which opens instances: `<kind>/<kind>.ts` in this folder, with the export
// `open`. domain/instances/transport-kinds.ts has the kinds. Source: ADR 180.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TransportKind } from '../domain/instances/transport-kinds.ts';
import type { OpenTransport } from './open-options.ts';

/**
 * The modules of a kind that are imported one after the other before its main one, in parts that take about equal
 * times: Node loads all that one import needs in a single turn of the event loop.
 */
const MODULES: Partial<Readonly<Record<TransportKind, readonly (() => Promise<unknown>)[]>>> = {
  stdio: [() => import('./stdio/stdio-channel.ts')],
  http: [
    () => import('./http/http-endpoint.ts'),
    () => import('./http/answers/http-answer.ts'),
    () => import('./http/sessions/http-handshake.ts'),
    () => import('./http/http-conversation.ts'),
    () => import('./sse/sse.ts'),
  ],
  sse: [
    () => import('./http/http-endpoint.ts'),
    () => import('./http/answers/http-answer.ts'),
    () => import('./http/managed-http.ts'),
  ],
};

/**
 * Loads a kind with its first instance, in several turns of the event loop: the HTTP client takes 15 MB, which a
 * gateway with programs only does not need.
 */
export async function loadTransport(kind: TransportKind): Promise<OpenTransport> {
  for (const part of MODULES[kind] ?? []) {
    await part();
    await nextTurn();
  }
  const { open }: { readonly open: OpenTransport } = await import(`./${kind}/${kind}.ts`);
  await nextTurn();
  return open;
}

/** Loads the kind, if this is its first instance, and opens the transport. Rejects as OpenTransport does. */
export async function openTransport(
  kind: TransportKind,
  ...opening: Parameters<OpenTransport>
): ReturnType<OpenTransport> {
  return (await loadTransport(kind))(...opening);
}
