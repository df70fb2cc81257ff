// Opens instances. The module of a kind of transport is `<kind>/<kind>.ts` in this folder and exports `open`; domain/transport-kinds.ts has
// the kinds. Source: ADR 180.

import type { TransportKind } from '../domain/transport-kinds.ts';
import type { OpenTransport } from './transport.ts';

/** Opens an instance. Its kind is loaded with the first one: the HTTP client takes 15 MB, which a gateway of programs can do without. */
export async function openTransport(
  kind: TransportKind,
  ...opening: Parameters<OpenTransport>
): ReturnType<OpenTransport> {
  const { open }: { readonly open: OpenTransport } = await import(`./${kind}/${kind}.ts`);
  return open(...opening);
}
