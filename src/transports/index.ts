// The table of transports: one row per kind of instance.

import type { TransportKind } from '../domain/instance.ts';
import { inProcess } from './in-process.ts';
import { stdio } from './stdio/stdio.ts';
import type { TransportType } from './transport.ts';

export const TRANSPORTS: Readonly<Record<TransportKind, TransportType>> = {
  http: lazyTransport(async () => (await import('./http/http.ts')).http),
  sse: lazyTransport(async () => (await import('./sse/sse.ts')).sse),
  stdio,
  'in-process': inProcess,
};

/** A row that is loaded with its first instance: the HTTP client takes 15 MB, which a gateway of programs can do without. */
function lazyTransport(load: () => Promise<TransportType>): TransportType {
  return { open: async (definition, options) => (await load()).open(definition, options) };
}
