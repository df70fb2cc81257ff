// Loads the module of a transport kind, which opens instances: `<kind>/<kind>.ts` in this folder, with the export
// `open`. domain/instances/transport-kinds.ts has the kinds. Source: ADR 180.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TransportKind } from '../domain/instances/transport-kinds.ts';
import { loadOnce } from '../domain/memory/load-once.ts';
import type { TaskScheduler } from '../domain/time/task-scheduler.ts';
import type { OpenOfKind } from './open-options.ts';

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
export async function loadTransport(kind: TransportKind): Promise<OpenOfKind> {
  for (const part of MODULES[kind] ?? []) {
    await part();
    await nextTurn();
  }
  const { open }: { readonly open: OpenOfKind } = await import(`./${kind}/${kind}.ts`);
  await nextTurn();
  return open;
}

/** The modules of the kinds of transport, each loaded with the first instance of its kind. */
export function loadedKinds(scheduler: TaskScheduler) {
  const loads = new Map<TransportKind, () => Promise<OpenOfKind>>();
  const loaded = new Map<TransportKind, OpenOfKind>();
  const load = async (kind: TransportKind): Promise<OpenOfKind> => {
    const loadKind = loads.get(kind) ?? loadOnce(() => loadTransport(kind));
    loads.set(kind, loadKind);
    const open = await loadKind();
    loaded.set(kind, open);
    await scheduler.turn(); // many have waited
    return open;
  };
  return { load, loaded: (kind: TransportKind) => loaded.get(kind) };
}
