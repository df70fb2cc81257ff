// The table of transports: one row per kind of instance.

import type { TransportKind } from '../domain/transport-kinds.ts';
import { inProcess } from './in-process.ts';
import { stdio } from './stdio/stdio.ts';
import type { OpenTransport } from './transport.ts';

export const TRANSPORTS: Readonly<Record<TransportKind, OpenTransport>> = {
  // Loaded with their first instance: the HTTP client takes 15 MB, which a gateway of programs can do without.
  http: async (...opening) => (await import('./http/http.ts')).http(...opening),
  sse: async (...opening) => (await import('./sse/sse.ts')).sse(...opening),
  stdio,
  'in-process': inProcess,
};
