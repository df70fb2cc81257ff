// Opens instances. The module of a kind of transport is `<kind>/<kind>.ts` in this folder and exports `open`;
// domain/instances/transport-kinds.ts has the kinds. Source: ADR 180.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TransportKind } from '../domain/instances/transport-kinds.ts';
import type { OpenTransport } from './open-options.ts';

/**
 * Modules that need about equal times, each with what only the later ones need, too: Node loads all that an import
 * needs in one turn.
 */
const PARTS: Partial<Readonly<Record<TransportKind, readonly (() => Promise<unknown>)[]>>> = {
  stdio: [() => import('./stdio/stdio-channel.ts')],
  http: [
    () => import('./http/http-endpoint.ts'),
    () => import('./http/http-answer.ts'),
    () => import('./http/http-handshake.ts'),
    () => import('./http/http-conversation.ts'),
    () => import('./sse/sse.ts'),
  ],
  sse: [
    () => import('./http/http-endpoint.ts'),
    () => import('./http/http-answer.ts'),
    () => import('./http/managed-http.ts'),
  ],
};

/**
 * Loads a kind with its first instance, in several turns: the HTTP client takes 15 MB, which a gateway of programs
 * can do without.
 */
export async function loadTransport(kind: TransportKind): Promise<OpenTransport> {
  for (const part of PARTS[kind] ?? []) {
    await part();
    await nextTurn();
  }
  const { open }: { readonly open: OpenTransport } = await import(`./${kind}/${kind}.ts`);
  await nextTurn();
  return open;
}

export async function openTransport(
  kind: TransportKind,
  ...opening: Parameters<OpenTransport>
): ReturnType<OpenTransport> {
  return (await loadTransport(kind))(...opening);
}
